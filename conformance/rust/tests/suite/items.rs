//! Items, conditions, patches, batches, sessions, hierarchical keys.

use azure_data_cosmos::PartitionKey;
use azure_data_cosmos::TransactionalBatch;
use azure_data_cosmos::models::{
    CosmosNumber, PatchInstructions, PatchOperation, TransactionalBatchOperationResult,
};
use azure_data_cosmos::options::{
    BatchOptions, BatchReplaceOptions, ContentResponseOnWrite, ItemReadOptions, OperationOptions,
    PatchItemOptions, PatchStrategy, Precondition,
};
use cosmolabe_conformance::{Lab, answered, code, failure, if_match, read};
use serde_json::{Value, json};

use crate::case;

case!(item_is_created_read_replaced_and_deleted, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let created =
        container.create_item("p", "a", json!({"id": "a", "pk": "p", "v": 1}), None).await?;
    assert_eq!(code(created.status()).0, 201);
    assert!(created.headers().request_charge().is_some_and(|charge| charge.value() > 0.0));
    assert!(created.headers().session_token().is_some());
    assert_eq!(read(&container, "p", "a").await?["v"], 1);
    let replaced =
        container.replace_item("p", "a", json!({"id": "a", "pk": "p", "v": 2}), None).await?;
    assert_eq!(code(replaced.status()).0, 200);
    assert_eq!(read(&container, "p", "a").await?["v"], 2);
    assert_eq!(code(container.delete_item("p", "a", None).await?.status()).0, 204);
    assert_eq!(failure(container.read_item("p", "a", None).await), 404);
    Ok(())
});

case!(upsert_creates_then_replaces, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let first =
        container.upsert_item("p", "a", json!({"id": "a", "pk": "p", "w": 1}), None).await?;
    assert_eq!(code(first.status()).0, 201);
    let second =
        container.upsert_item("p", "a", json!({"id": "a", "pk": "p", "v": 1}), None).await?;
    assert_eq!(code(second.status()).0, 200);
    assert!(read(&container, "p", "a").await?.get("w").is_none());
    Ok(())
});

case!(bodies_come_back_only_when_asked_for, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let item = json!({"id": "a", "pk": "p"});
    let silent = container.create_item("p", "a", item.clone(), None).await?;
    assert!(silent.headers().etag().is_some());
    assert!(silent.into_model::<Value>().is_err(), "there is no body");
    let spoken: Value =
        container.replace_item("p", "a", item, Some(answered())).await?.into_model()?;
    assert_eq!(spoken["id"], "a");
    assert!(spoken["_etag"].is_string());
    Ok(())
});

case!(binary_bodies_survive, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let item = json!({
        "id": "a", "pk": "p",
        "integers": [0, 1, 31, 32, 255, 256, -1, -5, 65536, 4294967296_u64, 9007199254740991_i64],
        "numbers": [1.5, -0.25, 1e300, 1e-7, 0.1],
        "strings": ["", "short", "x".repeat(63), "y".repeat(64), "z".repeat(300), "w".repeat(70_000)],
        "unicode": "é😀\u{2028}\"\\\n\t",
        "nothing": null, "yes": true, "no": false,
        "empty": {"array": [], "object": {}},
        "one": [["nested"], {"k": "v"}],
        "wide": (0..300).collect::<Vec<_>>(),
        "deep": {"a": {"b": {"c": {"d": [1, [2, [3]]]}}}},
    });
    container.create_item("p", "a", item.clone(), None).await?;
    let found = read(&container, "p", "a").await?;
    for (name, value) in item.as_object().expect("is an object") {
        assert_eq!(&found[name], value, "{name}");
    }
    Ok(())
});

case!(failures_have_their_status, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let item = json!({"id": "a", "pk": "p"});
    container.create_item("p", "a", item.clone(), None).await?;
    assert_eq!(failure(container.create_item("p", "a", item.clone(), None).await), 409);
    let missing = json!({"id": "none", "pk": "p"});
    assert_eq!(failure(container.replace_item("p", "none", missing, None).await), 404);
    assert_eq!(failure(container.delete_item("p", "none", None).await), 404);
    assert_eq!(failure(container.read_item("q", "a", None).await), 404);
    let wrong = container.create_item("q", "b", json!({"id": "b", "pk": "p"}), None).await;
    assert_eq!(wrong.map(|_| ()).map_err(|error| code(error.status())), Err((400, 1001)));
    let large = json!({"id": "l", "pk": "p", "text": "x".repeat(2 * 1024 * 1024)});
    assert_eq!(failure(container.create_item("p", "l", large, None).await), 413);
    Ok(())
});

case!(etag_guards_writes, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let item = json!({"id": "a", "pk": "p"});
    let created = container.create_item("p", "a", item.clone(), None).await?;
    let etag = created.headers().etag().expect("has an etag").to_string();
    container.replace_item("p", "a", item.clone(), Some(if_match(&etag))).await?;
    let stale = || Some(if_match(&etag));
    assert_eq!(failure(container.replace_item("p", "a", item.clone(), stale()).await), 412);
    assert_eq!(failure(container.upsert_item("p", "a", item.clone(), stale()).await), 412);
    assert_eq!(failure(container.delete_item("p", "a", stale()).await), 412);
    Ok(())
});

case!(unmodified_read_is_304, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let item = json!({"id": "a", "pk": "p"});
    let created = container.create_item("p", "a", item, None).await?;
    let etag = created.headers().etag().expect("has an etag").to_string();
    let condition = ItemReadOptions::default().with_precondition(Precondition::if_none_match(etag));
    let response = container.read_item("p", "a", Some(condition)).await?;
    assert_eq!(code(response.status()).0, 304);
    Ok(())
});

case!(keys_of_every_type, async {
    let lab = Lab::start().await;
    let container = lab.partitioned(2).await;
    let keys: Vec<(PartitionKey, Value)> = vec![
        ("text".into(), json!("text")),
        ("é😀".into(), json!("é😀")),
        (7.into(), json!(7)),
        (PartitionKey::try_from(-1.5)?, json!(-1.5)),
        (true.into(), json!(true)),
        (PartitionKey::NULL.into(), json!(null)),
    ];
    for (key, value) in keys {
        container.create_item(key.clone(), "a", json!({"id": "a", "pk": value}), None).await?;
        assert_eq!(read(&container, key, "a").await?["pk"], value);
    }
    let missing = PartitionKey::from(PartitionKey::UNDEFINED);
    container.create_item(missing.clone(), "a", json!({"id": "a", "mark": 1}), None).await?;
    assert_eq!(read(&container, missing, "a").await?["mark"], 1);
    Ok(())
});

case!(patch_runs_on_the_server, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let item = json!({"id": "a", "pk": "p", "n": 1, "list": [1], "old": true, "o": {"x": 1}});
    container.create_item("p", "a", item, None).await?;
    let patch = PatchInstructions::new()
        .with_operation(PatchOperation::set("/set", json!({"deep": 1})))
        .with_operation(PatchOperation::add("/list/-", json!(2)))
        .with_operation(PatchOperation::replace("/o/x", json!(2)))
        .with_operation(PatchOperation::remove("/old"))
        .with_operation(PatchOperation::increment("/n", CosmosNumber::from(4_i64)))
        .with_operation(PatchOperation::move_value("/o/x", "/moved"));
    let options = PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide);
    let response = container.patch_item("p", "a", patch, Some(options)).await?;
    assert_eq!(code(response.status()).0, 200);
    let found = read(&container, "p", "a").await?;
    assert_eq!(found["set"], json!({"deep": 1}));
    assert_eq!(found["list"], json!([1, 2]));
    assert_eq!((&found["n"], &found["moved"], &found["o"]), (&json!(5), &json!(2), &json!({})));
    assert!(found.get("old").is_none());
    Ok(())
});

case!(patch_failures_have_their_status, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    container.create_item("p", "a", json!({"id": "a", "pk": "p"}), None).await?;
    let server = || Some(PatchItemOptions::default().with_strategy(PatchStrategy::ServerSide));
    let patch = |operation| PatchInstructions::new().with_operation(operation);
    let absent = patch(PatchOperation::replace("/none", json!(1)));
    assert_eq!(failure(container.patch_item("p", "a", absent, server()).await), 400);
    let key = patch(PatchOperation::set("/pk", json!("q")));
    assert_eq!(failure(container.patch_item("p", "a", key, server()).await), 400);
    let missing = patch(PatchOperation::set("/v", json!(1)));
    assert_eq!(failure(container.patch_item("p", "none", missing, server()).await), 404);
    let many = (0..11).fold(PatchInstructions::new(), |patch, n| {
        patch.with_operation(PatchOperation::set(format!("/p{n}"), json!(n)))
    });
    assert_eq!(failure(container.patch_item("p", "a", many, server()).await), 400);
    Ok(())
});

case!(patch_on_the_client_meets_preconditions, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    container.create_item("p", "a", json!({"id": "a", "pk": "p", "n": 0}), None).await?;
    let increments = (0..8).map(|_| {
        let patch = PatchInstructions::new()
            .with_operation(PatchOperation::increment("/n", CosmosNumber::from(1_i64)));
        let attempts = std::num::NonZeroU8::new(50).expect("is not zero");
        let options = PatchItemOptions::default()
            .with_strategy(PatchStrategy::ClientSide)
            .with_max_attempts(attempts);
        container.patch_item("p", "a", patch, Some(options))
    });
    futures::future::try_join_all(increments).await?;
    assert_eq!(read(&container, "p", "a").await?["n"], 8);
    Ok(())
});

fn statuses(results: &[TransactionalBatchOperationResult]) -> Vec<u16> {
    results.iter().map(|result| result.status_code()).collect()
}

case!(batch_runs_all_operations, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let created = container.create_item("p", "old", json!({"id": "old", "pk": "p"}), None).await?;
    let etag = created.headers().etag().expect("has an etag").to_string();
    container.create_item("p", "doomed", json!({"id": "doomed", "pk": "p"}), None).await?;
    let guarded = BatchReplaceOptions::default().with_precondition(Precondition::if_match(etag));
    let batch = TransactionalBatch::new("p")
        .create_item(json!({"id": "new", "pk": "p", "v": 1}))?
        .upsert_item(json!({"id": "up", "pk": "p"}), None)?
        .replace_item("old", json!({"id": "old", "pk": "p", "v": 2}), Some(guarded))?
        .read_item("new", None)
        .delete_item("doomed", None);
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    let options = BatchOptions::default().with_operation_options(operation);
    let response = container.execute_transactional_batch(batch, Some(options)).await?;
    assert_eq!(code(response.status()).0, 200);
    let model = response.into_model()?;
    assert_eq!(statuses(model.results()), [201, 201, 200, 200, 204]);
    let read_back: Value = model.results()[3].into_model()?.expect("a read has a body");
    assert_eq!(read_back["v"], 1);
    assert_eq!(failure(container.read_item("p", "doomed", None).await), 404);
    Ok(())
});

case!(batch_is_all_or_nothing, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    container.create_item("p", "taken", json!({"id": "taken", "pk": "p"}), None).await?;
    let batch = TransactionalBatch::new("p")
        .create_item(json!({"id": "first", "pk": "p"}))?
        .create_item(json!({"id": "taken", "pk": "p"}))?
        .create_item(json!({"id": "last", "pk": "p"}))?;
    let response = container.execute_transactional_batch(batch, None).await?;
    assert_eq!(code(response.status()).0, 207);
    assert_eq!(statuses(response.into_model()?.results()), [424, 409, 424]);
    for id in ["first", "last"] {
        assert_eq!(failure(container.read_item("p", id, None).await), 404, "{id}");
    }
    Ok(())
});

case!(batch_has_at_most_a_hundred_operations, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let batch = |count: usize| {
        (0..count).try_fold(TransactionalBatch::new("p"), |batch, n| {
            batch.create_item(json!({"id": format!("{count}-{n}"), "pk": "p"}))
        })
    };
    let response = container.execute_transactional_batch(batch(100)?, None).await?;
    assert_eq!(response.into_model()?.results().len(), 100);
    assert_eq!(failure(container.execute_transactional_batch(batch(101)?, None).await), 400);
    Ok(())
});

case!(session_token_guards_a_read, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let created = container.create_item("p", "a", json!({"id": "a", "pk": "p"}), None).await?;
    let token = created.headers().session_token().expect("has a token").clone();
    let options = ItemReadOptions::default().with_session_token(token);
    assert_eq!(code(container.read_item("p", "a", Some(options)).await?.status()).0, 200);
    let future = ItemReadOptions::default().with_session_token("0:-1#999999999999");
    let refused = container.read_item("p", "a", Some(future)).await;
    // The client tries a few times and then says in its own words that the session is not available.
    assert_eq!(refused.map(|_| ()).map_err(|error| code(error.status())), Err((503, 20310)));
    Ok(())
});

case!(hierarchical_keys_work_for_points_and_batches, async {
    let lab = Lab::start().await;
    let container = lab.hierarchical(("/t", "/u", "/s")).await;
    let key = || PartitionKey::from(("t1", "u1", 1));
    let item = json!({"id": "a", "t": "t1", "u": "u1", "s": 1});
    container.create_item(key(), "a", item, None).await?;
    assert_eq!(read(&container, key(), "a").await?["s"], 1);
    let batch = TransactionalBatch::new(key())
        .create_item(json!({"id": "b", "t": "t1", "u": "u1", "s": 1}))?;
    let response = container.execute_transactional_batch(batch, None).await?;
    assert_eq!(statuses(response.into_model()?.results()), [201]);
    assert_eq!(failure(container.read_item(("t1", "u1", 2), "a", None).await), 404);
    container.delete_item(key(), "a", None).await?;
    Ok(())
});

case!(ids_of_every_kind, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    for id in ["with space", "x y%é+&=", "100%", "日本語😀", "a.b:c;d,e"] {
        container.create_item("p", id, json!({"id": id, "pk": "p"}), None).await?;
        assert_eq!(read(&container, "p", id).await?["id"], id);
    }
    Ok(())
});
