//! Effective partition keys against the answers of the clients themselves.
//!
//! Goal: a key goes where clients expect it. Method: every vector in `data/epk-vectors.json`, which
//! the JavaScript, Python and Rust clients computed. Where they disagree, we answer as the service
//! and the Rust client do, and −0 is folded to 0 because the two are one logical partition.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::container::path::PropertyPath;
use model::epk::{EffectivePartitionKey, EpkRange, ranges};
use model::partition_key::{
    Component, HashVersion, PartitionKey, PartitionKeyDefinition, PartitionKind,
};
use serde_json::Value;

fn definition(json: &Value) -> PartitionKeyDefinition {
    let count = json["pathCount"].as_u64().unwrap();
    PartitionKeyDefinition {
        paths: (0..count).map(|i| PropertyPath::parse(&format!("/p{i}")).unwrap()).collect(),
        kind: match json["kind"].as_str().unwrap() {
            "Hash" => PartitionKind::Hash,
            _ => PartitionKind::MultiHash,
        },
        version: match json["version"].as_u64().unwrap() {
            1 => HashVersion::V1,
            _ => HashVersion::V2,
        },
        system_key: false,
    }
}

fn component(json: &Value) -> Component {
    match json["type"].as_str().unwrap() {
        "undefined" => Component::Undefined,
        "null" => Component::Null,
        "bool" => Component::Bool(json["value"].as_bool().unwrap()),
        "number" => Component::Number(json["value"].as_str().unwrap().parse().unwrap()),
        _ => Component::String(json["value"].as_str().unwrap().to_owned()),
    }
}

fn vectors() -> Vec<Value> {
    serde_json::from_str(include_str!("data/epk-vectors.json")).unwrap()
}

#[test]
fn every_vector_hashes_as_the_service_does() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 135);
    for vector in vectors {
        let def = definition(&vector["definition"]);
        let key =
            PartitionKey(vector["components"].as_array().unwrap().iter().map(component).collect());
        let rust = vector["clientsThatDisagree"]["rust"].as_str();
        let expect = rust.unwrap_or(vector["epk"].as_str().unwrap());
        let epk = EffectivePartitionKey::of(&def, &key);
        assert_eq!(epk.to_string(), expect, "{}", vector["note"]);
        assert_eq!(EffectivePartitionKey::parse(expect), Ok(epk.clone()));
        assert!(EpkRange::all().contains(&epk)); // E2
    }
}

#[test]
fn every_header_is_the_key_it_stands_for() {
    for vector in vectors() {
        let header = vector["partitionKeyHeader"].as_str().unwrap();
        let key =
            PartitionKey(vector["components"].as_array().unwrap().iter().map(component).collect());
        assert_eq!(PartitionKey::parse(header), Ok(key.clone()), "{header}");
        assert_eq!(PartitionKey::parse(&key.to_array()), Ok(key));
    }
}

#[test]
fn prefixes_have_ranges() {
    let mut seen = 0;
    for vector in vectors().iter().filter(|vector| vector.get("prefixRange").is_some()) {
        let def = definition(&vector["definition"]);
        let key = PartitionKey::parse(vector["partitionKeyHeader"].as_str().unwrap()).unwrap();
        let range = EpkRange::of_prefix(&def, &key);
        assert_eq!(range.min.to_string(), vector["prefixRange"]["minInclusive"]);
        assert_eq!(range.max.to_string(), vector["prefixRange"]["maxExclusive"]);
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[test]
fn a_full_key_is_in_the_range_of_its_prefixes() {
    let def = definition(&serde_json::json!({"kind": "MultiHash", "version": 2, "pathCount": 3}));
    let full = PartitionKey::parse(r#"["T","U",1]"#).unwrap();
    let epk = EffectivePartitionKey::of(&def, &full);
    for prefix in [r#"["T"]"#, r#"["T","U"]"#, r#"["T","U",1]"#] {
        let range = EpkRange::of_prefix(&def, &PartitionKey::parse(prefix).unwrap());
        assert!(range.contains(&epk), "{prefix}");
    }
    let other = EpkRange::of_prefix(&def, &PartitionKey::parse(r#"["U"]"#).unwrap());
    assert!(!other.contains(&epk));
}

fn bounds(count: u32) -> Vec<String> {
    ranges(count).iter().map(|range| format!("{}-{}", range.min, range.max)).collect()
}

#[test]
fn ranges_divide_the_hashes_evenly() {
    assert_eq!(bounds(0), ["-FF"]);
    assert_eq!(bounds(1), ["-FF"]);
    let half = "20000000000000000000000000000000";
    assert_eq!(bounds(2), [format!("-{half}"), format!("{half}-FF")]);
    let (third, two) = ("15555555555555555555555555555555", "2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(bounds(3), [format!("-{third}"), format!("{third}-{two}"), format!("{two}-FF")]);
}

#[test]
fn ranges_are_contiguous_and_complete() {
    for count in [1, 2, 3, 5, 7, 10, 64, 100, 1000] {
        let ranges = ranges(count);
        assert_eq!(ranges.len(), count as usize);
        assert_eq!(ranges[0].min, EffectivePartitionKey::min()); // E1
        assert_eq!(ranges[ranges.len() - 1].max, EffectivePartitionKey::max());
        assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min));
        assert!(ranges.iter().all(|range| range.min < range.max));
        assert!(ranges.windows(2).all(|pair| !pair[0].overlaps(&pair[1])));
    }
}

#[test]
fn hex_has_whole_bytes() {
    assert_eq!(EffectivePartitionKey::parse(""), Ok(EffectivePartitionKey::min()));
    assert_eq!(EffectivePartitionKey::parse("0a").unwrap().to_string(), "0A");
    assert!(EffectivePartitionKey::parse("0").is_err());
    assert!(EffectivePartitionKey::parse("0G").is_err());
    assert!(EffectivePartitionKey::parse("é").is_err());
}
