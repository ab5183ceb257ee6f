//! Partition keys as clients send them, as items have them, and as bytes.

use super::*;

fn text(text: &str) -> Component {
    Component::String(text.to_owned())
}

fn definition(paths: &[&str], version: HashVersion) -> PartitionKeyDefinition {
    PartitionKeyDefinition {
        paths: paths.iter().map(|path| PropertyPath::parse(path).unwrap()).collect(),
        kind: if paths.len() == 1 { PartitionKind::Hash } else { PartitionKind::MultiHash },
        version,
        system_key: false,
    }
}

#[test]
fn headers_are_arrays_of_scalars() {
    let check = |header: &str, expect: &[Component]| {
        assert_eq!(PartitionKey::parse(header), Ok(PartitionKey(expect.to_vec())), "{header}");
    };
    check("[]", &[]);
    check(" [ ] ", &[]);
    check(
        r#"["T",{},null,1.5]"#,
        &[text("T"), Component::Undefined, Component::Null, Component::Number(1.5)],
    );
    check(
        r#" [ true , { } , false ] "#,
        &[Component::Bool(true), Component::Undefined, Component::Bool(false)],
    );
    check(r#"["\u00e9\ud83d\ude00"]"#, &[text("é😀")]);
    check(r#"["a\"],[\\"]"#, &[text("a\"],[\\")]);
    check("[\"é\"]", &[text("é")]);
    check("[1.2345678901234567e19]", &[Component::Number(1.2345678901234567e19)]);
    check("[9007199254740993]", &[Component::Number(9007199254740992.0)]);
    check("[-0]", &[Component::Number(0.0)]);
}

#[test]
fn other_headers_are_refused() {
    for header in ["", "1", "\"a\"", "{}", "[1", "[1]]", "[1] x", "[1 2]"] {
        assert_eq!(PartitionKey::parse(header), Err(KeyError::NotAnArray), "{header}");
    }
    for header in [
        "[,]",
        "[1,]",
        "[[1]]",
        "[{\"a\":1}]",
        "[01]",
        "[1e999]",
        "[\"a]",
        "[nul]",
        "[\"\\ud83d\"]",
    ] {
        let index = usize::from(header == "[1,]");
        assert_eq!(PartitionKey::parse(header), Err(KeyError::BadComponent { index }), "{header}");
    }
}

#[test]
fn numbers_are_equal_by_value() {
    assert_eq!(Component::Number(-0.0), Component::Number(0.0));
    assert_eq!(PartitionKey::parse("[1]"), PartitionKey::parse("[1.0]"));
    assert_ne!(Component::Number(1.0), text("1"));
    assert_ne!(Component::Undefined, Component::Null);
}

/// In their order.
fn samples() -> Vec<Component> {
    let mut samples =
        vec![Component::Undefined, Component::Null, Component::Bool(false), Component::Bool(true)];
    let numbers = [f64::MIN, -1.5, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e300, f64::MAX];
    samples.extend(numbers.map(Component::Number));
    samples.extend(
        ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0b", "ab", "b", "é", "😀"].map(text),
    );
    samples
}

#[test]
fn bytes_order_like_keys() {
    let samples = samples();
    for (i, a) in samples.iter().enumerate() {
        for (j, b) in samples.iter().enumerate() {
            let (a, b) = (PartitionKey(vec![a.clone()]), PartitionKey(vec![b.clone()]));
            assert_eq!(a.cmp(&b), i.cmp(&j), "{a:?} {b:?}");
            assert_eq!(a.to_bytes().cmp(&b.to_bytes()), i.cmp(&j), "{a:?} {b:?}"); // K1, K4
        }
    }
}

#[test]
fn no_key_of_the_same_length_is_a_prefix_of_another() {
    let samples = samples();
    let pairs = samples.iter().flat_map(|a| samples.iter().map(move |b| [a.clone(), b.clone()]));
    let keys: Vec<Vec<u8>> = pairs.map(|pair| PartitionKey(pair.to_vec()).to_bytes()).collect();
    for (i, a) in keys.iter().enumerate() {
        for (j, b) in keys.iter().enumerate() {
            assert!(i == j || !b.starts_with(a)); // K2
        }
    }
}

#[test]
fn a_prefix_of_a_key_is_a_prefix_of_its_bytes() {
    let key = PartitionKey(vec![text("T"), Component::Number(1.0), Component::Null]);
    for levels in 0..=3 {
        let prefix = PartitionKey(key.0[..levels].to_vec());
        assert!(key.to_bytes().starts_with(&prefix.to_bytes())); // K3
    }
}

#[test]
fn keys_have_as_many_components_as_paths() {
    let def = definition(&["/t", "/u"], HashVersion::V2);
    let key = |header| PartitionKey::parse(header).unwrap();
    let wrong = |actual| Err(KeyError::WrongCount { expected: 2, actual });
    assert_eq!(def.complete(key("[1,2]")), Ok(key("[1,2]")));
    assert_eq!(def.complete(key("[1]")), wrong(1));
    assert_eq!(def.complete(key("[1,2,3]")), wrong(3));
    assert_eq!(def.complete(key("[]")), wrong(0));
    assert_eq!(def.complete_prefix(key("[1]")), Ok(key("[1]")));
    assert_eq!(def.complete_prefix(key("[1,2]")), Ok(key("[1,2]")));
    assert_eq!(def.complete_prefix(key("[1,2,3]")), wrong(3));
    assert!(def.is_complete(&key("[1,2]")) && !def.is_complete(&key("[1]")));
}

#[test]
fn a_system_key_may_be_left_out() {
    let mut def = definition(&["/_partitionKey"], HashVersion::V1);
    let none = PartitionKey::default();
    assert_eq!(def.complete(none.clone()), Err(KeyError::WrongCount { expected: 1, actual: 0 }));
    def.system_key = true;
    assert_eq!(def.complete(none), Ok(PartitionKey(vec![Component::Undefined])));
}

#[test]
fn keys_are_limited_in_size() {
    let check = |bytes: usize, version, fits: bool| {
        let def = definition(&["/a"], version);
        let key = PartitionKey(vec![Component::String("x".repeat(bytes))]);
        assert_eq!(def.complete(key.clone()).is_ok(), fits, "{bytes} {version:?}");
        let extracted = PartitionKey::extract(&def, |_| Ok(key.0[0].clone()));
        assert_eq!(extracted.is_ok(), fits);
    };
    check(PARTITION_KEY_BYTES_MAX - 1, HashVersion::V2, true);
    check(PARTITION_KEY_BYTES_MAX, HashVersion::V2, true);
    check(PARTITION_KEY_BYTES_MAX + 1, HashVersion::V2, false);
    check(PARTITION_KEY_BYTES_MAX + 1, HashVersion::V1, true);
}

#[test]
fn extraction_asks_for_each_path() {
    let def = definition(&["/a/b", "/c", "/d"], HashVersion::V2);
    let read = |segments: &[String]| match segments.join(".").as_str() {
        "a.b" => Ok(text("x")),
        "c" => Ok(Component::Null),
        _ => Ok(Component::Undefined),
    };
    let expect = PartitionKey(vec![text("x"), Component::Null, Component::Undefined]);
    assert_eq!(PartitionKey::extract(&def, read), Ok(expect));
    let refused = PartitionKey::extract(&def, |_| Err(NotScalar));
    assert_eq!(refused, Err(KeyError::NotScalar { path: "/a/b".into() }));
}

#[test]
fn keys_are_shown_as_the_properties_they_come_from() {
    let def = definition(&["/t", "/a/b", "/a/c"], HashVersion::V2);
    let check = |header: &str, expect: &str| {
        assert_eq!(PartitionKey::parse(header).unwrap().to_json(&def), expect);
    };
    check(r#"["T",1,null]"#, r#"{"t":"T","a":{"b":1,"c":null}}"#);
    check(r#"[1.5,{},true]"#, r#"{"t":1.5,"a":{"c":true}}"#);
    check(r#"["T"]"#, r#"{"t":"T"}"#);
}
