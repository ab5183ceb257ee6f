//! Bytes order like values, and ranges hold what predicates select.
//!
//! Goal: X1–X3. Method: random values of all types, with strings around the limit, compared with
//! an order written down on its own.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "helpers of tests")]

use std::cmp::Ordering;
use std::ops::Bound;

use index::encode::{STRING_BYTES_MAX, decode, write};
use index::{Bounds, Path, Policy, Scalar, composite_range, range, term};
use item::{Draft, Kind};
use model::container::IndexingPolicy;
use model::container::path::Segment;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any value, with strings that share long beginnings. Boxed, like all strategies here: unboxed they
/// overflow the stack of a test thread.
fn scalar() -> BoxedStrategy<Scalar<'static>> {
    prop_oneof![
        Just(Scalar::Undefined),
        Just(Scalar::Null),
        any::<bool>().prop_map(Scalar::Bool),
        number().prop_map(Scalar::Number),
        number().prop_map(Scalar::Number),
        text().prop_map(|text| Scalar::String(text.into())),
        text().prop_map(|text| Scalar::String(text.into())),
        Just(Scalar::Array),
        Just(Scalar::Object),
    ]
    .boxed()
}

fn number() -> impl Strategy<Value = f64> {
    let corners = vec![
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        2.2250738585072014e-308,
        f64::MAX,
        f64::MIN,
        1.0,
        -1.0,
        9007199254740992.0,
        0.1,
    ];
    prop_oneof![
        prop::sample::select(corners),
        any::<f64>().prop_filter("JSON has neither", |number| number.is_finite()),
        (-5i32..5).prop_map(f64::from),
    ]
}

fn text() -> BoxedStrategy<String> {
    let short = prop_oneof![
        prop::collection::vec(
            prop::sample::select(vec!['\0', '\u{1}', 'a', 'b', 'é', '😀', '\u{10FFFF}']),
            0..4
        ),
        prop::collection::vec(any::<char>(), 0..6),
    ]
    .prop_map(|chars| chars.into_iter().collect::<String>());
    let long = (STRING_BYTES_MAX - 3..STRING_BYTES_MAX + 2, short.clone())
        .prop_map(|(length, end)| format!("{}{end}", "x".repeat(length)));
    prop_oneof![3 => short, 1 => long].boxed()
}

fn rank(scalar: &Scalar<'_>) -> u8 {
    match scalar {
        Scalar::Undefined => 0,
        Scalar::Null => 1,
        Scalar::Bool(false) => 2,
        Scalar::Bool(true) => 3,
        Scalar::Number(_) => 4,
        Scalar::String(_) => 5,
        Scalar::Array => 6,
        Scalar::Object => 7,
    }
}

/// The order of values.
fn compare(a: &Scalar<'_>, b: &Scalar<'_>) -> Ordering {
    match (a, b) {
        (Scalar::Number(a), Scalar::Number(b)) => a.partial_cmp(b).unwrap(),
        (Scalar::String(a), Scalar::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn bytes(scalar: &Scalar<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write(scalar, &mut out);
    out
}

fn path() -> BoxedStrategy<Path> {
    let name = prop_oneof![
        text(),
        prop::sample::select(vec!["", "a", "\0", "a\0"]).prop_map(str::to_owned),
    ];
    let segment = prop_oneof![3 => name.prop_map(Segment::Property), 1 => Just(Segment::Elements)];
    prop::collection::vec(segment, 0..4).prop_map(Path::new).boxed()
}

fn kind(scalar: &Scalar<'_>) -> Option<Kind> {
    match scalar {
        Scalar::Undefined => None,
        Scalar::Null => Some(Kind::Null),
        Scalar::Bool(_) => Some(Kind::Bool),
        Scalar::Number(_) => Some(Kind::Number),
        Scalar::String(_) => Some(Kind::String),
        Scalar::Array => Some(Kind::Array),
        Scalar::Object => Some(Kind::Object),
    }
}

/// Whether a value satisfies a predicate, by definition.
fn satisfies(scalar: &Scalar<'_>, bounds: &Bounds<'_>) -> bool {
    match bounds {
        Bounds::All => true,
        Bounds::Defined => *scalar != Scalar::Undefined,
        Bounds::OfKind(wanted) => kind(scalar) == Some(*wanted),
        Bounds::Equal(other) => compare(scalar, other).is_eq(),
        Bounds::Prefix(start) => matches!(scalar, Scalar::String(text) if text.starts_with(start)),
        Bounds::Between(lower, upper) => {
            let is_kind = |other: &Scalar<'_>| kind(other).is_some() && kind(scalar) == kind(other);
            let above = match lower {
                Bound::Included(lower) => is_kind(lower) && compare(scalar, lower).is_ge(),
                Bound::Excluded(lower) => is_kind(lower) && compare(scalar, lower).is_gt(),
                Bound::Unbounded => *scalar != Scalar::Undefined,
            };
            let below = match upper {
                Bound::Included(upper) => is_kind(upper) && compare(scalar, upper).is_le(),
                Bound::Excluded(upper) => is_kind(upper) && compare(scalar, upper).is_lt(),
                Bound::Unbounded => *scalar != Scalar::Undefined,
            };
            above && below
        }
    }
}

fn bound() -> BoxedStrategy<Bound<Scalar<'static>>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => scalar().prop_map(Bound::Included),
        2 => scalar().prop_map(Bound::Excluded),
    ]
    .boxed()
}

fn bounds() -> BoxedStrategy<Bounds<'static>> {
    let kinds = vec![Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
    prop_oneof![
        1 => Just(Bounds::All),
        1 => Just(Bounds::Defined),
        1 => prop::sample::select(kinds).prop_map(Bounds::OfKind),
        3 => scalar().prop_map(Bounds::Equal),
        6 => (bound(), bound()).prop_map(|(lower, upper)| Bounds::Between(lower, upper)),
        2 => text().prop_map(|text| Bounds::Prefix(text.leak())),
    ]
    .boxed()
}

/// Keys have an ordinal behind the term; its top bits are zero.
fn keys(term: &[u8]) -> [Vec<u8>; 2] {
    [[0; 8], [0x0F, 255, 255, 255, 255, 255, 255, 255]].map(|ordinal| [term, &ordinal[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn byte_order_is_value_order(a in scalar(), b in scalar()) {
        let (order, found) = (compare(&a, &b), bytes(&a).cmp(&bytes(&b)));
        // Two cut strings with the same beginning are one term.
        let both_cut = !a.is_exact(STRING_BYTES_MAX) && !b.is_exact(STRING_BYTES_MAX);
        prop_assert!(found == order || (both_cut && found.is_eq()), "{a:?} {b:?}");
    }

    #[test]
    fn no_encoding_is_a_prefix_of_another(a in scalar(), b in scalar()) {
        let (a, b) = (bytes(&a), bytes(&b));
        prop_assert!(a == b || !a.starts_with(&b)); // S1
    }

    #[test]
    fn decoding_gives_back_what_was_encoded(scalar in scalar(), more in any::<[u8; 8]>()) {
        let encoded = bytes(&scalar);
        let (decoded, used) = decode(&[&encoded[..], &more[..]].concat()).unwrap();
        prop_assert_eq!(used, encoded.len());
        prop_assert_eq!(decoded.exact, scalar.is_exact(STRING_BYTES_MAX));
        match (&scalar, &decoded.scalar) {
            (Scalar::String(whole), Scalar::String(kept)) if !decoded.exact => {
                prop_assert!(whole.starts_with(&**kept) && kept.len() > STRING_BYTES_MAX - 4);
            }
            _ => prop_assert!(compare(&scalar, &decoded.scalar).is_eq()),
        }
    }

    #[test]
    fn paths_come_back_and_differ(a in path(), b in path()) {
        let (x, y) = (a.to_bytes(), b.to_bytes());
        if a.is_exact() {
            prop_assert_eq!(Path::decode(&x), Some((a.clone(), x.len())));
        }
        prop_assert_eq!(a == b, x == y); // X2
        prop_assert!(x == y || !x.starts_with(&y));
    }

    #[test]
    fn any_bytes_decode_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = (decode(&bytes), Path::decode(&bytes));
    }

    #[test]
    fn a_range_holds_what_its_predicate_selects(scalar in scalar(), bounds in bounds(), path in path()) {
        let found = range(&path, &bounds);
        let selected = satisfies(&scalar, &bounds);
        for key in keys(&term(&path, &scalar)) {
            let inside = found.contains(&key);
            prop_assert!(inside || !selected, "{scalar:?} is missing from {bounds:?}");
            prop_assert!(!inside || selected || !found.exact, "{scalar:?} is too much in {bounds:?}");
        }
    }

    #[test]
    fn ranges_keep_to_their_path(scalar in scalar(), bounds in bounds(), a in path(), b in path()) {
        let found = range(&a, &bounds);
        prop_assert!(a == b || keys(&term(&b, &scalar)).iter().all(|key| !found.contains(key)));
    }
}

/// A policy with one composite index over /a, /b, /c.
fn composite(orders: [&str; 3]) -> Policy {
    let [a, b, c] = orders;
    let json = json!({"compositeIndexes": [[
        {"path": "/a", "order": a}, {"path": "/b", "order": b}, {"path": "/c", "order": c},
    ]]});
    Policy::compile(&IndexingPolicy::parse(&json).unwrap())
}

fn composite_term(policy: &Policy, values: &[Scalar<'_>; 3]) -> Vec<u8> {
    let mut item = json!({"id": "1"});
    for (name, scalar) in ["a", "b", "c"].iter().zip(values) {
        let value = match scalar {
            Scalar::Undefined => continue,
            Scalar::Null => Value::Null,
            Scalar::Bool(bool) => Value::from(*bool),
            Scalar::Number(number) => Value::from(*number),
            Scalar::String(text) => Value::from(text.as_ref()),
            Scalar::Array => json!([1]),
            Scalar::Object => json!({"x": 1}),
        };
        item[*name] = value;
    }
    let draft = Draft::parse(item.to_string().as_bytes()).unwrap();
    let terms = policy.composite_terms(draft.root());
    assert_eq!(terms.len(), 1);
    terms.iter().next().unwrap().to_vec()
}

/// Values short enough for composite terms; arrays and objects count as undefined.
fn small() -> BoxedStrategy<Scalar<'static>> {
    let is_small =
        |scalar: &Scalar<'_>| !matches!(scalar, Scalar::String(text) if text.len() > 100);
    scalar()
        .prop_filter("short strings", is_small)
        .prop_map(|scalar| match scalar {
            Scalar::Array | Scalar::Object => Scalar::Undefined,
            Scalar::Number(number) => Scalar::Number(number + 0.0),
            other => other,
        })
        .boxed()
}

fn triple() -> BoxedStrategy<[Scalar<'static>; 3]> {
    (small(), small(), small()).prop_map(|(a, b, c)| [a, b, c]).boxed()
}

fn orders() -> impl Strategy<Value = [&'static str; 3]> {
    let order = || prop::sample::select(vec!["ascending", "descending"]);
    (order(), order(), order()).prop_map(|(a, b, c)| [a, b, c])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn composite_terms_order_like_order_by(orders in orders(), x in triple(), y in triple()) {
        let policy = composite(orders);
        let by_path = (0..3).map(|i| match orders[i] {
            "ascending" => compare(&x[i], &y[i]),
            _ => compare(&y[i], &x[i]),
        });
        let order = by_path.fold(Ordering::Equal, Ordering::then);
        prop_assert_eq!(composite_term(&policy, &x).cmp(&composite_term(&policy, &y)), order);
    }

    #[test]
    fn composite_terms_come_back(orders in orders(), x in triple()) {
        let policy = composite(orders);
        let decoded = policy.composites()[0].decode(&composite_term(&policy, &x)).unwrap();
        let scalars: Vec<_> = decoded.into_iter().map(|value| value.scalar).collect();
        prop_assert_eq!(&scalars[..], &x[..]);
    }

    #[test]
    fn composite_ranges_hold_what_they_select(
        orders in orders(), x in triple(), fixed in 0usize..3, bounds in bounds(), same in any::<bool>(), y in triple(),
    ) {
        let policy = composite(orders);
        let equal = if same { &x[..fixed] } else { &y[..fixed] };
        let found = composite_range(&policy.composites()[0], equal, &bounds);
        let selected = (0..fixed).all(|i| compare(&x[i], &equal[i]).is_eq()) && satisfies(&x[fixed], &bounds);
        for key in keys(&composite_term(&policy, &x)) {
            let inside = found.contains(&key);
            prop_assert!(inside || !selected, "missing");
            prop_assert!(!inside || selected || !found.exact, "too much");
        }
    }
}

#[test]
fn a_composite_index_has_terms_of_its_own() {
    let x = [Scalar::Null, Scalar::Null, Scalar::Null];
    let one = composite_term(&composite(["ascending"; 3]), &x);
    let other = composite_term(&composite(["ascending", "ascending", "descending"]), &x);
    assert_ne!(one[..8], other[..8]);
    let array = composite_term(
        &composite(["ascending"; 3]),
        &[Scalar::Array, Scalar::Object, Scalar::Null],
    );
    assert_eq!(array[8..], [7, 8, 2]);
}
