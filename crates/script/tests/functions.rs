//! Goal: values go into a function and come out unchanged; a query's functions share a runtime that
//! nobody else sees.
//! Method: any value through the identity; functions that try to keep something.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{pool, short_limits, wait};
use item::{Json, Value};
use proptest::prelude::*;
use script::{Argument, Failure, Functions, Limits, Pool, PoolOptions, Program};

fn program(source: &str) -> Arc<Program> {
    Arc::new(Program::compile("udf", source).unwrap())
}

fn functions(sources: &[&str]) -> Functions {
    let programs: Vec<_> = sources.iter().map(|source| program(source)).collect();
    Functions::new(&programs, &Limits::default(), Instant::now() + Duration::from_secs(60)).unwrap()
}

/// JSON values, with names and texts that are easy to get wrong.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z0-9]{0,4}",
        Just("__proto__".to_owned()),
        Just("constructor".to_owned()),
        Just("length".to_owned()),
        Just("a\u{0}b\"\\\u{1f600}\u{7f}\u{2028}é".to_owned()),
    ];
    let number = prop_oneof![any::<i32>().prop_map(f64::from), -1e300..1e300f64, Just(0.1)];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number.prop_map(Value::Number),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        // Names that look like positions come first in JavaScript; the order is not what is tested.
        let member = (text.clone().prop_map(|name| format!("n{name}")), inner.clone());
        let odd = (Just("__proto__".to_owned()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::array),
            prop::collection::vec(prop_oneof![4 => member, 1 => odd], 0..6).prop_map(|members| {
                Value::object(
                    members.into_iter().map(|(name, value)| (name.into(), value)).collect(),
                )
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn values_go_through_unchanged(value in values()) {
        thread_local! {
            static IDENTITY: Functions =
                functions(&["function (x) { return x; }", "function (x) { return JSON.parse(JSON.stringify(x)); }"]);
        }
        IDENTITY.with(|functions| {
            prop_assert_eq!(&functions.call(0, &[Argument::Value(&value)]).unwrap(), &value);
            prop_assert_eq!(&functions.call(1, &[Argument::Value(&value)]).unwrap(), &value);
            let json = Json::parse(value.to_json().as_bytes()).unwrap();
            prop_assert_eq!(&functions.call(0, &[Argument::Node(json.root())]).unwrap(), &value);
            Ok(())
        })?;
    }
}

#[test]
fn undefined_goes_in_and_out() {
    let functions = functions(&[
        "function (a, b) { return typeof a + arguments.length + b; }",
        "() => undefined",
    ]);
    let result =
        functions.call(0, &[Argument::Value(&Value::Undefined), Argument::Value(&Value::Null)]);
    assert_eq!(result.unwrap(), Value::from("undefined2null"));
    assert_eq!(functions.call(1, &[]).unwrap(), Value::Undefined);
}

#[test]
fn state_stays_within_a_query() {
    let count = "function () { globalThis.n = (globalThis.n || 0) + 1; return n; }";
    let first = functions(&[count, "() => typeof n"]);
    for n in 1..4 {
        assert_eq!(first.call(0, &[]).unwrap(), Value::Number(f64::from(n)));
    }
    assert_eq!(first.call(1, &[]).unwrap(), Value::from("number"));
    let second = functions(&[count, "() => typeof n"]);
    assert_eq!(second.call(1, &[]).unwrap(), Value::from("undefined"));
}

/// A thread has one runtime for the functions of all its queries; they must not notice.
#[test]
fn every_query_finds_a_runtime_as_new() {
    let limits = Limits { memory_bytes: 4 << 20, ..short_limits() };
    let pool = Pool::new(PoolOptions { threads: 1, limits });
    let look = "() => [typeof n, [1, 2].join(), typeof JSON, Math.random()]";
    let spoil = [
        "() => { globalThis.n = 1; Array.prototype.join = () => 'no'; delete globalThis.JSON; Math.random = () => 1; }",
        "() => { globalThis.n = []; for (;;) n.push({}); }",
        "() => { for (;;) globalThis.n = 1; }",
        "() => { Promise.resolve().then(() => { globalThis.n = 1; }); throw 1; }",
    ];
    let mut randoms = Vec::new();
    for spoil in spoil {
        for source in [look, spoil] {
            let program = program(source);
            let called =
                wait(&pool, (), move |session| session.functions(&[program]).unwrap().call(0, &[]));
            let Ok(Ok(found)) = called else { continue };
            let Some([kind, text, json, random]) = found.as_array() else { continue };
            assert_eq!(
                [kind, text, json],
                [&Value::from("undefined"), &Value::from("1,2"), &Value::from("object")],
                "before {spoil}"
            );
            randoms.push(random.to_json());
        }
    }
    assert_eq!(randoms.len(), spoil.len());
    randoms.sort();
    randoms.dedup();
    assert_eq!(randoms.len(), spoil.len(), "{randoms:?}");
}

#[test]
fn functions_of_two_queries_can_be_there_at_once() {
    let pool = Pool::new(PoolOptions { threads: 1, limits: short_limits() });
    let count = program("function () { globalThis.n = (globalThis.n || 0) + 1; return n; }");
    for _ in 0..3 {
        let count = count.clone();
        let counts = wait(&pool, (), move |session| {
            let first = session.functions(std::slice::from_ref(&count)).unwrap();
            let one = first.call(0, &[]).unwrap();
            let second = session.functions(&[count]).unwrap();
            [one, second.call(0, &[]).unwrap(), first.call(0, &[]).unwrap()]
        });
        assert_eq!(counts.unwrap().map(|n| n.to_json()), ["1", "1", "2"]);
    }
}

#[test]
fn a_failed_call_does_not_harm_the_next() {
    let functions = functions(&[
        "function (x) { if (x) throw new Error(400, 'x'); return 1; }",
        "function f() { return f(); }",
        "function () { var a = []; for (;;) a.push({}); }",
    ]);
    for _ in 0..3 {
        let failed = functions.call(0, &[Argument::Value(&Value::Bool(true))]).unwrap_err();
        assert!(
            matches!(failed, Failure::Exception { number: 400, ref message, .. } if message == "Error: x")
        );
        assert!(functions.call(1, &[]).is_err());
        let failed = functions.call(2, &[]).unwrap_err();
        assert!(
            matches!(failed, Failure::Exception { ref message, .. } if message.contains("memory")),
            "{failed:?}"
        );
        assert_eq!(
            functions.call(0, &[Argument::Value(&Value::Bool(false))]).unwrap(),
            Value::Number(1.0)
        );
    }
}

#[test]
fn functions_share_the_time_of_their_session() {
    let pool = pool(short_limits());
    let looping = program("function () { for (;;); }");
    let started = Instant::now();
    let result = wait(&pool, (), move |session| {
        let functions = session.functions(&[looping]).unwrap();
        (functions.call(0, &[]), functions.call(0, &[]), functions.fuel())
    });
    let (first, second, fuel) = result.unwrap();
    assert!(
        matches!(first, Err(Failure::Timeout { .. }))
            && matches!(second, Err(Failure::Timeout { .. }))
    );
    assert!(fuel > 0 && started.elapsed() < Duration::from_millis(1300));
}

#[test]
fn a_result_may_be_large_but_not_larger() {
    let functions = functions(&["function (n) { return 'x'.repeat(n); }"]);
    let call = |n: f64| functions.call(0, &[Argument::Value(&Value::Number(n))]);
    let max = f64::from(4 << 20) - 2.0;
    assert!(call(max - 1.0).is_ok() && call(max).is_ok());
    assert!(matches!(call(max + 1.0), Err(Failure::Exception { number: 413, .. })));
}
