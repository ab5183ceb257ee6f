//! Goal: every rule about container definitions, at its limit, one below and one above.
//! Method: bodies as clients send them, parsed, echoed and parsed again.

use super::*;

fn body(extra: Value) -> Value {
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}});
    let extra = extra.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(extra);
    body
}

fn parse(extra: Value) -> Result<ContainerDefinition, DefinitionError> {
    ContainerDefinition::parse(&body(extra))
}

/// Accepts the body, and the echo of the body as the same definition (D1).
fn accept(extra: Value) -> ContainerDefinition {
    let definition = parse(extra).unwrap();
    assert_eq!(ContainerDefinition::parse(&definition.to_json()).as_ref(), Ok(&definition));
    definition
}

/// Refuses the body with a sentence that contains `words`.
fn refuse(extra: Value, words: &str) {
    let error = parse(extra.clone()).expect_err(&extra.to_string()).to_string();
    assert!(error.contains(words), "{extra}: {error}");
}

fn indexing(policy: Value) -> Value {
    json!({ "indexingPolicy": policy })
}

/// `count` entries made by `entry`.
fn many(count: usize, entry: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..count).map(entry).collect()
}

#[test]
fn a_minimal_body_gets_all_defaults_in_the_order_of_the_service() {
    let definition = ContainerDefinition::parse(&json!({
        "partitionKey": {"paths": ["/pk"]},
        "id": "c",
    }));
    let expect = concat!(
        r#"{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"#,
        r#""includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},"#,
        r#""partitionKey":{"paths":["/pk"],"kind":"Hash","version":1},"#,
        r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","#,
        r#""conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"}}"#,
    );
    assert_eq!(definition.unwrap().to_json().to_string(), expect);
}

#[test]
fn unknown_properties_are_echoed_and_resource_properties_are_not() {
    let definition = accept(json!({
        "someNewPolicy": {"a": [1]}, "defaultTtl": null, "analyticalStorageTtl": -1,
        "_rid": "x", "_ts": 1, "_self": "s", "_etag": "e", "_docs": "docs/",
    }));
    let echo = definition.to_json();
    assert_eq!(echo["someNewPolicy"], json!({"a": [1]}));
    assert_eq!(echo["analyticalStorageTtl"], json!(-1));
    for absent in ["_rid", "_ts", "_self", "_etag", "_docs", "defaultTtl"] {
        assert_eq!(echo.get(absent), None, "{absent}");
    }
}

#[test]
fn everything_at_once_survives_the_round_trip() {
    let definition = accept(json!({
        "indexingPolicy": {
            "indexingMode": "Consistent",
            "includedPaths": [{"path": "/a/?", "indexes": [{"kind": "Range", "dataType": "String", "precision": -1}]}],
            "excludedPaths": [{"path": "/*"}],
            "compositeIndexes": [[{"path": "/a", "order": "descending"}, {"path": "/b/c"}]],
            "spatialIndexes": [{"path": "/loc/*", "types": ["Point"]}],
            "vectorIndexes": [{"path": "/v", "type": "diskANN", "quantizationByteSize": 8}],
            "fullTextIndexes": [{"path": "/t"}],
        },
        "defaultTtl": 60,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/x", "/y/z"]}]},
        "computedProperties": [{"name": "low", "query": "SELECT VALUE LOWER(c.n) FROM c"}],
        "conflictResolutionPolicy": {"mode": "Custom", "conflictResolutionProcedure": "p"},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 1536, "distanceFunction": "cosine"},
        ]},
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/t", "language": "en-US"}]},
        "changeFeedPolicy": {"retentionDuration": 10},
        "clientEncryptionPolicy": {"includedPaths": [], "policyFormatVersion": 1},
    }));
    assert_eq!(definition.default_ttl, DefaultTtl::Seconds(60));
    assert_eq!(definition.retention_minutes, 10);
    assert_eq!(definition.unique_keys[0].paths.len(), 2);
    assert_eq!(definition.embeddings[0].dimensions, 1536);
    let policy = definition.indexing.to_json();
    assert_eq!(policy["includedPaths"][0]["indexes"][0]["kind"], "Range");
    assert_eq!(policy["compositeIndexes"][0][1], json!({"path": "/b/c", "order": "ascending"}));
    let orders = definition.indexing.composite[0].paths.iter().map(|(_, order)| *order);
    assert_eq!(orders.collect::<Vec<_>>(), [Order::Descending, Order::Ascending]);
}

#[test]
fn ids_follow_the_rules_for_names() {
    accept(json!({"id": "n".repeat(254)}));
    accept(json!({"id": "ñ".repeat(255)}));
    refuse(json!({"id": "n".repeat(256)}), "too long");
    refuse(json!({"id": ""}), "empty");
    refuse(json!({"id": "a/b"}), "invalid");
    refuse(json!({"id": "a "}), "space");
    refuse(json!({"id": 1}), "'id' must be a string");
    refuse(json!({"id": null}), "'id' is required");
    assert!(ContainerDefinition::parse(&json!([])).is_err());
}

#[test]
fn partition_keys_have_a_kind_and_a_version() {
    let check = |key: Value, kind, version| {
        let key = accept(json!({ "partitionKey": key })).partition_key;
        assert_eq!((key.kind, key.version), (kind, version));
    };
    use crate::partition_key::{HashVersion::*, PartitionKind::*};
    check(json!({"paths": ["/a"]}), Hash, V1);
    check(json!({"paths": ["/a"], "kind": "Hash"}), Hash, V1);
    check(json!({"paths": ["/a"], "kind": "Hash", "version": 1}), Hash, V1);
    check(json!({"paths": ["/a/\"b c\""], "version": 2}), Hash, V2);
    check(json!({"paths": ["/a"], "version": "V1"}), Hash, V1);
    check(json!({"paths": ["/a"], "version": "V2"}), Hash, V2);
    check(json!({"paths": ["/a", "/b"]}), MultiHash, V2);
    check(json!({"paths": ["/a", "/b", "/id"], "kind": "MultiHash", "version": 2}), MultiHash, V2);
    check(json!({"paths": ["/_partitionKey"], "systemKey": true}), Hash, V1);

    let refuse = |key: Value, words| refuse(json!({ "partitionKey": key }), words);
    refuse(json!(null), "'partitionKey' is required");
    refuse(json!({}), "'partitionKey.paths' is required");
    refuse(json!({"paths": []}), "1 to 3");
    refuse(json!({"paths": ["/a", "/b", "/c", "/d"]}), "1 to 3");
    refuse(json!({"paths": ["/a", "/'a'"]}), "listed twice");
    refuse(json!({"paths": ["/a/*"]}), "wildcards");
    refuse(json!({"paths": ["/a/[]/b"]}), "array elements");
    refuse(json!({"paths": ["a"]}), "starts with '/'");
    refuse(json!({"paths": ["/_ts"]}), "system property");
    refuse(json!({"paths": ["/a", "/b"], "kind": "Hash"}), "Hash has 1 path");
    refuse(json!({"paths": ["/a"], "kind": "MultiHash", "version": 2}), "MultiHash has 2 or 3");
    refuse(json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 1}), "requires version 2");
    refuse(json!({"paths": ["/a"], "kind": "Range"}), "'Hash' or 'MultiHash'");
    refuse(json!({"paths": ["/a"], "version": 3}), "between 1 and 2");
    refuse(json!({"paths": ["/a"], "version": "V3"}), "integer");
}

#[test]
fn empty_lists_of_paths_mean_the_default() {
    let default = IndexingPolicy::default();
    for policy in [
        json!({}),
        json!({"automatic": true}),
        json!({"includedPaths": [], "excludedPaths": []}),
        json!({"includedPaths": [{"path": "/*"}]}),
    ] {
        assert_eq!(accept(indexing(policy)).indexing, default);
    }
}

#[test]
fn the_etag_is_excluded_unless_listed() {
    let excluded = |policy: Value| {
        let policy = accept(indexing(policy)).indexing;
        policy.excluded.iter().map(|path| path.text().to_owned()).collect::<Vec<_>>()
    };
    let all = json!([{"path": "/*"}]);
    let etag = "/\"_etag\"/?";
    assert_eq!(
        excluded(json!({"includedPaths": all, "excludedPaths": [{"path": "/a/*"}]})),
        ["/a/*", etag]
    );
    assert_eq!(
        excluded(json!({"includedPaths": all, "excludedPaths": [{"path": "/_etag/?"}]})),
        ["/_etag/?"]
    );
    assert_eq!(excluded(json!({"includedPaths": [{"path": "/*"}, {"path": "/_etag/?"}]})), [""; 0]);
    assert_eq!(excluded(json!({"excludedPaths": all})), ["/*"]);
}

#[test]
fn the_root_path_is_in_exactly_one_list() {
    let policy = |included: &[&str], excluded: &[&str]| {
        let list = |paths: &[&str]| {
            json!(paths.iter().map(|path| json!({"path": path})).collect::<Vec<_>>())
        };
        indexing(json!({"includedPaths": list(included), "excludedPaths": list(excluded)}))
    };
    accept(policy(&["/*"], &["/a/*"]));
    accept(policy(&["/a/?"], &["/*"]));
    accept(policy(&["/"], &[]));
    refuse(policy(&["/a/?"], &[]), "'/*' must be in");
    refuse(policy(&[], &["/a/?"]), "'/*' must be in");
    refuse(policy(&["/*"], &["/*"]), "both included and excluded");
    refuse(policy(&["/*", "/a/?"], &["/\"a\"/?"]), "both included and excluded");
    accept(policy(&["/*", "/a/?"], &["/a/*"]));
    accept(policy(&["/*", "/e/[]/{a, b}/?"], &[]));
    refuse(policy(&["/*"], &["/e/[]/{a, b}/?"]), "only be included");
    refuse(policy(&["/*", "/a"], &[]), "ends in '/?' or '/*'");
    refuse(indexing(json!({"includedPaths": [{}]})), "is required");
    refuse(indexing(json!({"includedPaths": ["/*"]})), "must be an object");
}

#[test]
fn lists_of_paths_are_limited() {
    let policy = |included: usize, excluded: usize| {
        let path = |kind: &str, i: usize| json!({"path": format!("/{kind}{i}/?")});
        let mut included = many(included - 1, |i| path("in", i));
        included.push(json!({"path": "/*"}));
        let excluded = many(excluded, |i| path("ex", i));
        indexing(json!({"includedPaths": included, "excludedPaths": excluded}))
    };
    for count in [INDEX_PATHS_MAX - 1, INDEX_PATHS_MAX] {
        accept(policy(count, 0));
        accept(policy(1, count));
    }
    refuse(policy(INDEX_PATHS_MAX + 1, 0), "0 to 1500");
    refuse(policy(1, INDEX_PATHS_MAX + 1), "0 to 1500");
}

#[test]
fn mode_none_means_no_index() {
    let none = accept(indexing(json!({"indexingMode": "none"}))).indexing;
    let expect = json!({
        "indexingMode": "none", "automatic": false, "includedPaths": [], "excludedPaths": [],
    });
    assert_eq!((none.mode, none.to_json()), (IndexingMode::None, expect));
    accept(indexing(json!({"indexingMode": "None", "automatic": false, "includedPaths": []})));
    let refuse = |policy: Value, words| refuse(indexing(policy), words);
    refuse(json!({"indexingMode": "none", "automatic": true}), "'automatic' must be false");
    refuse(
        json!({"indexingMode": "none", "includedPaths": [{"path": "/*"}]}),
        "'includedPaths' must be empty",
    );
    refuse(
        json!({"indexingMode": "none", "excludedPaths": [{"path": "/*"}]}),
        "'excludedPaths' must be empty",
    );
    refuse(json!({"indexingMode": "lazy"}), "'lazy' is not supported");
    refuse(json!({"indexingMode": "eager"}), "'consistent' or 'none'");
    refuse(json!({"automatic": "yes"}), "must be a boolean");
}

#[test]
fn time_to_live_is_positive_or_minus_one_and_needs_an_index() {
    let ttl = |value: Value| accept(json!({ "defaultTtl": value })).default_ttl;
    assert_eq!(accept(json!({})).default_ttl, DefaultTtl::Off);
    assert_eq!(ttl(json!(null)), DefaultTtl::Off);
    assert_eq!(ttl(json!(-1)), DefaultTtl::Never);
    assert_eq!(ttl(json!(1)), DefaultTtl::Seconds(1));
    assert_eq!(ttl(json!(2_147_483_646)), DefaultTtl::Seconds(2_147_483_646));
    assert_eq!(ttl(json!(2_147_483_647)), DefaultTtl::Seconds(2_147_483_647));
    refuse(json!({"defaultTtl": 2_147_483_648_u64}), "between -1 and 2147483647");
    refuse(json!({"defaultTtl": -2}), "between -1");
    refuse(json!({"defaultTtl": 0}), "positive");
    refuse(json!({"defaultTtl": 1.5}), "an integer");
    refuse(json!({"defaultTtl": "1"}), "an integer");
    refuse(json!({"analyticalStorageTtl": -2}), "between -1");
    let mut both = indexing(json!({"indexingMode": "none"}));
    both["defaultTtl"] = json!(-1);
    refuse(both, "requires indexing mode 'consistent'");
}

#[test]
fn unique_keys_are_limited_and_have_no_arrays() {
    let keys = |count, paths| {
        let key = |k: usize| json!({"paths": many(paths, |p| json!(format!("/k{k}/p{p}")))});
        json!({"uniqueKeyPolicy": {"uniqueKeys": many(count, key)}})
    };
    for (count, paths) in [(0, 0), (9, 1), (10, 16), (10, 15)] {
        assert_eq!(accept(keys(count, paths)).unique_keys.len(), count);
    }
    refuse(keys(11, 1), "0 to 10");
    refuse(keys(1, 17), "1 to 16");
    refuse(keys(1, 0), "1 to 16");
    let key = |paths: Value| json!({"uniqueKeyPolicy": {"uniqueKeys": [{ "paths": paths }]}});
    refuse(key(json!(["/a/[]/b"])), "array elements");
    refuse(key(json!(["/a/?"])), "wildcards");
    refuse(key(json!(["/a", "/a"])), "listed twice");
}

#[test]
fn composite_indexes_are_limited() {
    let indexes = |counts: &[usize]| {
        let index = |count: &usize| many(*count, |i| json!({"path": format!("/p{i}")}));
        let indexes: Vec<Vec<Value>> = counts.iter().map(index).collect();
        indexing(json!({ "compositeIndexes": indexes }))
    };
    for counts in [&[2][..], &[7], &[8], &[8; 12], &[8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4]] {
        assert_eq!(accept(indexes(counts)).indexing.composite.len(), counts.len());
    }
    refuse(indexes(&[1]), "2 to 8");
    refuse(indexes(&[9]), "2 to 8");
    refuse(indexes(&[8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 5]), "0 to 100");
    let index = |a: Value, b: Value| indexing(json!({"compositeIndexes": [[a, b]]}));
    refuse(index(json!({"path": "/a"}), json!({"path": "/b/?"})), "wildcards");
    refuse(index(json!({"path": "/a"}), json!({"path": "/[]/b"})), "array elements");
    refuse(index(json!({"path": "/a"}), json!({"path": "/a"})), "listed twice");
    refuse(index(json!({"path": "/a"}), json!({"path": "/b", "order": "up"})), "'ascending'");
}

#[test]
fn computed_properties_have_names_of_their_own() {
    let computed = |names: &[&str]| {
        let property = |name: &&str| json!({"name": name, "query": "SELECT VALUE 1 FROM c"});
        json!({"computedProperties": names.iter().map(property).collect::<Vec<_>>()})
    };
    let names: Vec<String> = (0..21).map(|i| format!("p{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for count in [0, 1, 19, 20] {
        assert_eq!(accept(computed(&names[..count])).computed.len(), count);
    }
    refuse(computed(&names), "0 to 20");
    refuse(computed(&["a", "a"]), "listed twice");
    for name in ["", "id", "_ts", "_rid", "_etag", "_self", "_attachments", "a/b"] {
        refuse(computed(&[name]), "cannot be the name");
    }
    refuse(
        json!({"computedProperties": [{"name": "a"}]}),
        "'computedProperties.query' is required",
    );
}

#[test]
fn queries_of_computed_properties_are_checked_by_others() {
    let definition = accept(json!({"computedProperties": [{"name": "a", "query": "nonsense"}]}));
    assert_eq!(definition.check_computed(&|_, _| Ok(())), Ok(()));
    let error = definition.check_computed(&|query, _| Err(format!("{query}?"))).unwrap_err();
    assert_eq!(error.to_string(), "the query of computed property 'a' is not valid: nonsense?");
}

#[test]
fn vector_indexes_need_an_embedding_and_have_limits() {
    let with = |dimensions: i64, index: Value| {
        json!({
            "indexingPolicy": {"vectorIndexes": [index]},
            "vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dimensions": dimensions}]},
        })
    };
    let flat = || json!({"path": "/v", "type": "flat"});
    let disk = || json!({"path": "/v", "type": "diskANN"});
    accept(with(504, flat()));
    accept(with(505, flat()));
    refuse(with(506, flat()), "between 1 and 505");
    accept(with(1, disk()));
    accept(with(4095, disk()));
    accept(with(4096, json!({"path": "/v", "type": "quantizedFlat"})));
    refuse(with(4097, disk()), "between 1 and 4096");
    refuse(with(0, disk()), "between 1 and 4096");
    refuse(with(10, json!({"path": "/w", "type": "flat"})), "not in 'vectorEmbeddingPolicy'");
    refuse(with(10, json!({"path": "/v", "type": "tree"})), "'flat', 'quantizedFlat'");
    for (name, min, max) in [("quantizationByteSize", 1, 512), ("indexingSearchListSize", 10, 500)]
    {
        for (value, fits) in [(min - 1, false), (min, true), (max, true), (max + 1, false)] {
            let mut index = disk();
            index[name] = json!(value);
            assert_eq!(parse(with(10, index)).is_ok(), fits, "{name} {value}");
        }
    }
}

#[test]
fn full_text_indexes_need_a_policy() {
    let index = json!({"fullTextIndexes": [{"path": "/t"}]});
    let policy = json!({"fullTextPaths": [{"path": "/t", "language": "en-US"}]});
    accept(json!({"indexingPolicy": index, "fullTextPolicy": policy}));
    refuse(json!({ "indexingPolicy": index }), "not in 'fullTextPolicy'");
}

#[test]
fn spatial_indexes_over_a_plane_need_its_extent() {
    let with = |kind: &str, index: Value| json!({"geospatialConfig": {"type": kind}, "indexingPolicy": {"spatialIndexes": [index]}});
    let plain = json!({"path": "/loc/?"});
    let bounds = json!({"xmin": 0, "ymin": 0, "xmax": 9, "ymax": 9});
    let bounded = json!({"path": "/loc/?", "types": ["Polygon"], "boundingBox": bounds});
    assert_eq!(accept(with("Geography", plain.clone())).indexing.spatial[0].types.len(), 4);
    accept(with("Geometry", bounded));
    refuse(with("Geometry", plain), "boundingBox");
    refuse(with("Geography", json!({"path": "/l/?", "types": ["Circle"]})), "'Point'");
    refuse(json!({"geospatialConfig": {"type": "Sphere"}}), "'Geography' or 'Geometry'");
}

#[test]
fn the_remaining_policies_have_a_shape() {
    refuse(json!({"conflictResolutionPolicy": {"mode": "First"}}), "'LastWriterWins' or 'Custom'");
    refuse(json!({"changeFeedPolicy": {"retentionDuration": -1}}), "between 0");
    refuse(json!({"clientEncryptionPolicy": []}), "must be an object");
    refuse(json!({"materializedViewDefinition": {}}), "not supported");
    let lww = json!({"mode": "LastWriterWins", "conflictResolutionPath": "/n"});
    let policy = accept(json!({ "conflictResolutionPolicy": lww })).conflicts;
    assert_eq!(policy, ConflictResolution::LastWriterWins { path: "/n".into() });
}

#[test]
fn a_replacement_keeps_what_is_fixed() {
    let vector = |kind: &str, dimensions: i64| {
        json!({
            "indexingPolicy": {"vectorIndexes": [{"path": "/v", "type": kind}]},
            "vectorEmbeddingPolicy": {"vectorEmbeddings": [{"path": "/v", "dimensions": dimensions}]},
        })
    };
    let unique = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}});
    let key = |key: Value| json!({ "partitionKey": key });
    let check = |old: Value, new: Value, changed: Option<&str>| {
        let error = ContainerDefinition::check_replacement(&accept(old), &accept(new)).err();
        let expect = changed.map(|name| format!("'{name}' cannot be changed"));
        let error = error.map(|error| error.to_string());
        assert_eq!(error.is_some(), expect.is_some(), "{error:?}");
        assert!(error.is_none_or(|error| error.starts_with(&expect.unwrap())));
    };
    check(
        json!({}),
        json!({"defaultTtl": 5, "indexingPolicy": {"indexingMode": "consistent"}}),
        None,
    );
    check(json!({}), json!({"id": "d"}), Some("id"));
    check(json!({}), key(json!({"paths": ["/other"], "version": 2})), Some("partitionKey"));
    check(json!({}), key(json!({"paths": ["/pk"], "version": 1})), Some("partitionKey"));
    check(json!({}), key(json!({"paths": ["/'pk'"], "version": 2})), None);
    check(unique.clone(), json!({}), Some("uniqueKeyPolicy"));
    check(unique.clone(), unique, None);
    check(vector("flat", 10), vector("flat", 11), Some("vectorEmbeddingPolicy"));
    check(vector("flat", 10), vector("diskANN", 10), Some("indexingPolicy.vectorIndexes"));
    check(vector("flat", 10), json!({}), None);
    check(json!({}), vector("flat", 10), None);
    let custom = json!({"conflictResolutionPolicy": {"mode": "Custom"}});
    check(json!({}), custom.clone(), Some("conflictResolutionPolicy"));
    check(custom.clone(), custom.clone(), None);
    check(custom, json!({}), None);
}
