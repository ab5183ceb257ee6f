//! Goal: no script takes more than its time and memory, or harms the scripts after it.
//! Method: a collection of scripts in `data/hostile.txt`, each with its outcome. Each must be answered a
//! second after its time at the latest; then an ordinary script must run as if nothing had been, and
//! everything that a script can reach must be as the first script found it.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails there.

mod common;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{Shelf, call, execute, pool, procedure, short_limits, wait};
use script::{Failure, Limits, Pool, Program, Stop};

struct Case {
    name: String,
    outcome: String,
    source: String,
}

fn cases() -> Vec<Case> {
    let text = include_str!("data/hostile.txt");
    let blocks = text.split("\n\n").skip(1);
    let case = |block: &str| {
        let (head, source) = block.split_once('\n').unwrap();
        let (name, outcome) = head.split_once(": ").unwrap();
        Case { name: name.to_owned(), outcome: outcome.to_owned(), source: source.to_owned() }
    };
    blocks.map(case).collect()
}

fn limits() -> Limits {
    Limits { memory_bytes: 16 << 20, ..short_limits() }
}

/// Runs a script; the outcome as the list writes it.
fn outcome(pool: &Pool, shelf: &Shelf, source: &str) -> String {
    let call = call(source, procedure(&[]));
    let (sender, receiver) = mpsc::channel();
    let work = move |session: &mut script::Session<'_, common::Desk>| session.execute(&call);
    let running = pool.submit(shelf.open(), None, work, move |answer| drop(sender.send(answer)));
    let limit = limits().run + Duration::from_secs(1);
    let answer = receiver.recv_timeout(limit).expect("answered within a second of its time");
    drop(running);
    match answer {
        Ok(Ok(_)) => "done".to_owned(),
        Ok(Err(Failure::Exception { message, .. })) => format!("threw {message}"),
        Ok(Err(Failure::Timeout { .. })) => "timeout".to_owned(),
        Ok(Err(Failure::Revoked)) => "revoked".to_owned(),
        Ok(Err(Failure::Fatal)) => "fatal".to_owned(),
        Err(Stop::Overdue) => "overdue".to_owned(),
        Err(Stop::Unavailable) => "unavailable".to_owned(),
        Err(Stop::Fault(text)) => format!("fault {text}"),
    }
}

fn matches(found: &str, expected: &str) -> bool {
    expected.split(" | ").any(|expected| match expected.strip_prefix("threw ") {
        Some(part) => found.starts_with("threw") && found.contains(part),
        None if expected == "threw" => found.starts_with("threw"),
        None => found == expected,
    })
}

/// That the pool still runs scripts, with untouched built-ins.
fn check_ordinary(pool: &Pool, name: &str) {
    let shelf = Shelf::with(&[r#"{"id":"a","n":1}"#]);
    let source = "function () { __.readDocument(__.getAltLink() + '/docs/a', function (e, d) { \
                  d.n++; __.replaceDocument(d._self, d); __.response.setBody([1, [2]].join()); }); }";
    let outcome = execute(pool, &shelf, call(source, procedure(&[])));
    assert_eq!(outcome.unwrap().body.unwrap(), "\"1,2\"", "after {name}");
    assert_eq!(shelf.texts(), [r#"{"id":"a","n":2}"#], "after {name}");
}

/// Writes down what can be reached from the global object and from literals: names, flags, prototypes,
/// plain values, and the order of it all.
const SURVEY: &str = r"function () {
  var found = [], seen = new Map(), { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  function shown(value) {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return typeof value + ' ' + String(value);
    if (!seen.has(value)) { seen.set(value, seen.size); walk(value); }
    return typeof value + ' #' + seen.get(value);
  }
  function walk(object) {
    found.push('#' + seen.get(object) + ' ' + Object.prototype.toString.call(object) + Object.isExtensible(object), shown(getPrototypeOf(object)));
    for (var key of ownKeys(object)) {
      var d = getOwnPropertyDescriptor(object, key), parts = 'value' in d ? [d.writable, shown(d.value)] : [shown(d.get), shown(d.set)];
      found.push([String(key), d.enumerable, d.configurable, ...parts].join(' '));
    }
  }
  shown(globalThis);
  [async () => 1, function* () {}, async function* () {}, [].values(), new Map().entries(), new Set().values(), 'x'.matchAll(/x/g), /x/].forEach(shown);
  __.response.setBody(found.join('\n'));
}";

/// The times of these tests are short; a survey that a busy machine had none for is done again.
fn survey(pool: &Pool) -> String {
    loop {
        let call = call(SURVEY, procedure(&[]));
        match wait(pool, Shelf::default().open(), move |session| session.execute(&call)) {
            Ok(Err(Failure::Timeout { .. } | Failure::Revoked)) => {}
            Err(Stop::Overdue | Stop::Unavailable) => {}
            Ok(Ok(outcome)) => break String::from_utf8(outcome.body.unwrap().to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn hostile_scripts_are_contained() {
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let ordinary = pool(limits());
    let untouched = survey(&ordinary);
    assert!(untouched.len() > 50_000, "{untouched}");
    let mut wrong = Vec::new();
    for Case { name, outcome: expected, source } in cases {
        // Threads that the watchdog gives up stay with their pool.
        let own = expected.contains("overdue").then(|| pool(limits()));
        let pool = own.as_ref().unwrap_or(&ordinary);
        let shelf = Shelf::with(&[r#"{"id":"first"}"#]);
        let started = Instant::now();
        let found = outcome(pool, &shelf, &source);
        let took = started.elapsed();
        if std::env::var_os("SHOW").is_some() {
            println!("{took:>8.0?}  {name}: {}", found.chars().take(80).collect::<String>());
        }
        if !matches(&found, &expected) {
            wrong.push(format!("{name}: {expected} expected, {found} found"));
        }
        check_ordinary(pool, &name);
        // Not an assertion of equality, which would print both.
        assert!(survey(pool) == untouched, "after {name}, scripts find something else");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sources that are hard on the compiler.
#[test]
fn hostile_sources_are_refused_or_compiled() {
    let check = |source: String| {
        let started = Instant::now();
        let _ = Program::compile("s", &source);
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{}",
            source.get(..60).unwrap_or(&source)
        );
    };
    check(format!("function f() {{ return {}1{}; }}", "(".repeat(100_000), ")".repeat(100_000)));
    check(format!("function f() {{ {} }}", "{".repeat(100_000)));
    check(format!("function f() {{ return {}1; }}", "-".repeat(100_000)));
    check(format!("function f() {{ return {}1; }}", "!".repeat(100_000)));
    check(format!("function f() {{ return {}; }}", "[".repeat(100_000)));
    check(format!("function f() {{ return '{}'; }}", "x".repeat(2_000_000)));
    check(format!("function f() {{ {} }}", "var a = 1;".repeat(100_000)));
    check(format!("{}function f() {{}}", "/* */;".repeat(100_000)));
    check(format!("{}function f() {{}}{}", "(".repeat(10_000), ")".repeat(10_000)));
    check(format!("function f() {{ return /{}/; }}", "(a|".repeat(10_000)));
    check("function f() {} /* no end".to_owned());
    check("`${`".to_owned());
    check("\u{2028}function\u{2029}f() {}".to_owned());
    check("function f() { return \"\u{1f600}\"; }".to_owned());
    check("() => { while (true); })(".to_owned());
}
