//! Headers and bodies as the SDKs send them, and as nobody should.

use hyper::header::HeaderValue;
use model::partition_key::Component;

use super::*;
use crate::error;

fn with(headers: &[(&'static str, &str)]) -> HeaderMap {
    headers
        .iter()
        .map(|(name, text)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(text.as_bytes()).unwrap())
        })
        .collect()
}

fn is_invalid<T>(result: Result<T>) -> bool {
    matches!(result, Err(error::Failure { error: error::Error::Engine(Error::Invalid(_)), .. }))
}

fn key(text: &str) -> Vec<Component> {
    let headers = with(&[("x-ms-documentdb-partitionkey", text)]);
    partition_key(&headers).unwrap().unwrap().0
}

#[test]
fn trap_30_keys_are_ascii_json_and_nothing_is_not_null() {
    assert_eq!(key(r#"["\u00e9\ud83d\ude00"]"#), key(r#"["é😀"]"#));
    assert_ne!(key("[{}]"), key("[null]"));
    assert_ne!(key("[null]"), key("[]"));
    assert_ne!(key("[{}]"), key("[]"));
    assert!(is_invalid(partition_key(&with(&[("x-ms-documentdb-partitionkey", "p1")]))));
}

#[test]
fn trap_40_minus_one_items() {
    let count = |text| items_max(&with(&[("x-ms-max-item-count", text)]));
    assert_eq!(count("-1").unwrap(), None);
    assert_eq!(count("0").unwrap(), None);
    assert_eq!(count("1").unwrap(), Some(1));
    assert_eq!(count("10").unwrap(), Some(10));
    assert_eq!(items_max(&HeaderMap::new()).unwrap(), None);
    for bad in ["-2", "1.5", "ten", ""] {
        assert!(is_invalid(count(bad)), "{bad}");
    }
}

#[test]
fn scopes() {
    assert_eq!(scope(&HeaderMap::new()).unwrap(), Scope::Container);
    let range = with(&[("x-ms-documentdb-partitionkeyrangeid", "3")]);
    let expect = Scope::Range { partition: Some("3".to_owned()), epk: None };
    assert_eq!(scope(&range).unwrap(), expect);
    let epk = [
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-start-epk", "0A940C"),
        ("x-ms-end-epk", "0A940D"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
    ];
    let Scope::Range { epk: Some(range), .. } = scope(&with(&epk)).unwrap() else {
        panic!("a range of effective partition keys")
    };
    assert_eq!((range.min.to_string(), range.max.to_string()), ("0A940C".into(), "0A940D".into()));
    let other = [("x-ms-start-epk", "00"), ("x-ms-read-key-type", "ResourceId")];
    assert!(scope(&with(&other)).is_err());
    assert!(is_invalid(scope(&with(&[("x-ms-start-epk", "0")]))));
    let reversed = [("x-ms-start-epk", "02"), ("x-ms-end-epk", "01")];
    assert!(is_invalid(scope(&with(&reversed))));
}

#[test]
fn consistency_levels() {
    let check = |level| check_consistency(&with(&[("x-ms-consistency-level", level)]));
    for level in ["Session", "Eventual", "ConsistentPrefix"] {
        assert!(check(level).is_ok(), "{level}");
    }
    for level in ["Strong", "BoundedStaleness", "Linearizable"] {
        assert!(is_invalid(check(level)), "{level}");
    }
}

#[test]
fn trap_19_malformed_session_tokens_are_refused() {
    let token = |text| session(&with(&[("x-ms-session-token", text)]));
    assert!(token("0:-1#113").unwrap().is_some());
    assert!(token("").unwrap().is_none());
    assert!(is_invalid(token("junk")));
}

#[test]
fn trap_33_a_star_means_now_only_in_a_change_feed() {
    let feed = ("a-im", "Incremental feed");
    let start = |extra: &[(&'static str, &str)]| {
        let mut all = vec![feed];
        all.extend_from_slice(extra);
        change_feed(&with(&all)).unwrap().start
    };
    assert_eq!(start(&[]), ChangeFeedStart::Beginning);
    assert_eq!(start(&[("if-none-match", "*")]), ChangeFeedStart::Now);
    assert_eq!(start(&[("if-none-match", "\"7\"")]), ChangeFeedStart::Etag("7".to_owned()));
    let time = ("if-modified-since", "Sun, 15 Nov 2026 17:57:23 GMT");
    assert_eq!(start(&[time]), ChangeFeedStart::Time(1_794_765_443));
    assert_eq!(start(&[time, ("if-none-match", "7")]), ChangeFeedStart::Etag("7".to_owned()));
    let utc = ("if-modified-since", "Sun, 15 Nov 2026 17:57:23 UTC");
    assert_eq!(start(&[utc]), start(&[time]), "as Go has it");
    assert!(is_invalid(change_feed(&with(&[feed, ("if-modified-since", "yesterday")]))));
    assert!(is_invalid(change_feed(&with(&[("a-im", "Everything")]))));
}

#[test]
fn change_feed_envelopes() {
    let latest = change_feed(&with(&[("a-im", "Incremental Feed")])).unwrap();
    assert!(!latest.is_enveloped);
    let rust = [
        ("a-im", "Incremental Feed"),
        ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15"),
    ];
    assert!(change_feed(&with(&rust)).unwrap().is_enveloped);
    let full = change_feed(&with(&[("a-im", "Full-Fidelity Feed")])).unwrap();
    assert_eq!((full.mode, full.is_enveloped), (ChangeFeedMode::AllVersionsAndDeletes, true));
}

#[test]
fn throughput_headers() {
    let read = |headers: &[(&'static str, &str)]| throughput(&with(headers));
    let manual = ("x-ms-offer-throughput", "400");
    let autoscale = (
        "x-ms-cosmos-offer-autopilot-settings",
        r#"{"maxThroughput": 4000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 0}}}"#,
    );
    assert_eq!(read(&[]).unwrap(), None);
    assert_eq!(read(&[manual]).unwrap(), Some(Throughput::Manual(400)));
    assert_eq!(read(&[autoscale]).unwrap(), Some(Throughput::Autoscale(4000)));
    assert!(is_invalid(read(&[manual, autoscale])));
    assert!(is_invalid(read(&[("x-ms-offer-throughput", "lots")])));
    assert!(is_invalid(read(&[("x-ms-cosmos-offer-autopilot-settings", "{}")])));
}

#[test]
fn minimal_answers() {
    for (text, expect) in [("return=minimal", true), ("wait=5, Return=Minimal", true), ("x", false)]
    {
        assert_eq!(is_minimal(&with(&[("prefer", text)])), expect, "{text}");
    }
}

#[test]
fn trap_14_binary_json_bodies() {
    let binary = b"\x80\xED\x0E\x03\x82id\x81b\x82pk\x82p2\x81v\x01";
    let draft = super::draft(binary).unwrap();
    assert_eq!(draft.root().get("pk").unwrap().as_str().unwrap(), "p2");
    assert!(super::draft(b"\x80\xED\x0E").is_err());
}

#[test]
fn trap_27_hybrid_row_is_refused_with_a_sentence() {
    let failure = draft(b"\x81\xF0\xD8\xFF\x7F").unwrap_err();
    assert!(failure.error.to_string().contains("HybridRow"));
}

#[test]
fn malformed_bodies() {
    for body in [&b""[..], b"{", b"[]", b"3", b"{\"a\":1}x", b"\xff"] {
        assert!(is_invalid(draft(body)), "{body:?}");
        assert!(is_invalid(object(body)), "{body:?}");
        assert!(is_invalid(query(body)), "{body:?}");
    }
}

#[test]
fn queries_with_and_without_parameters() {
    let plain = query(br#"{"query":"SELECT 1"}"#).unwrap();
    assert_eq!((plain.text.as_str(), plain.parameters.len()), ("SELECT 1", 0));
    let body = br#"{"parameters":[{"name":"@v","value":{"a":[1e2]}}],"query":"SELECT @v"}"#;
    let spec = query(body).unwrap();
    assert_eq!(spec.parameters[0].0, "@v");
    assert_eq!(spec.parameters[0].1.to_json(), r#"{"a":[100]}"#);
    let body = br#"{"query":"SELECT 1","parameters":[{"name":"@v","value":1}],"more":[{}],
        "parameters":[{"name":"@w","value":2}]}"#;
    assert_eq!(query(body).unwrap().parameters[0].0, "@w", "the last of two counts");
    assert!(query(br#"{"query":"SELECT 1","parameters":null}"#).unwrap().parameters.is_empty());
    for wrong in ["{}", r#"{"parameters":[]}"#, "[]", r#"{"query":1}"#, r#"{"query":"SELECT 1""#] {
        assert!(is_invalid(query(wrong.as_bytes())), "{wrong}");
    }
}

#[test]
fn trap_13_a_patch_is_an_array_or_an_object() {
    let array = br#"[{"op":"add","path":"/x","value":1}]"#;
    let object = br#"{"condition":"from c","operations":[{"op":"add","path":"/x","value":1}]}"#;
    assert_eq!(patch(array).unwrap().operations, patch(object).unwrap().operations);
    assert!(is_invalid(patch(b"{}")));
}

#[test]
fn arguments_of_a_procedure() {
    assert!(arguments(b"").unwrap().is_empty());
    assert!(arguments(b"[]").unwrap().is_empty());
    let sent = arguments(br#"["a", 1, null, {"b": [2]}]"#).unwrap();
    let texts: Vec<String> = sent.iter().map(Value::to_json).collect();
    assert_eq!(texts, ["\"a\"", "1", "null", "{\"b\":[2]}"]);
    for body in [&b"{}"[..], b"null", b"\"a\"", b"[", b"[1] 2", b"\xff"] {
        assert!(is_invalid(arguments(body)), "{body:?}");
    }
}

#[test]
fn at_most_one_trigger_before_and_one_after() {
    let (pre, post) =
        ("x-ms-documentdb-pre-trigger-include", "x-ms-documentdb-post-trigger-include");
    let read = |pairs: &[(&'static str, &str)]| triggers(&with(pairs));
    assert_eq!(read(&[]).unwrap(), Triggers::default());
    let both = read(&[(pre, "t"), (post, " u ,")]).unwrap();
    assert_eq!((both.pre.as_deref(), both.post.as_deref()), (Some("t"), Some("u")));
    for empty in ["", ",", " , "] {
        assert!(read(&[(pre, empty)]).unwrap().is_empty(), "{empty:?}");
    }
    assert!(is_invalid(read(&[(pre, "t,u")])));
    assert!(is_invalid(read(&[(post, "t, t")])));
    let excluded = read(&[("x-ms-documentdb-pre-trigger-exclude", "t")]).unwrap();
    assert!(excluded.is_empty());
}
