//! Items: every operation with its status, headers and refusals; batch and bulk.

use serde_json::{Value, json};

use crate::client::Reply;
use crate::server::{Server, container};

const ITEMS: &str = "/dbs/d/colls/c/docs";
const ITEM: &str = "/dbs/d/colls/c/docs/a";

#[tokio::test]
async fn the_life_of_an_item() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1, "z": [1.0, {"y": "é"}], "a": null});
    let made = client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    assert_eq!(made.need("content-type"), "application/json");
    assert!(made.need("x-ms-request-charge").parse::<f64>().unwrap() > 1.0);
    let body = String::from_utf8(made.body.clone()).unwrap();
    assert!(body.starts_with(r#"{"id":"a","pk":1,"z":[1,{"y":"é"}],"a":null,"_rid":""#), "{body}");
    client.request("POST", ITEMS).key("1").json(&item).send().await.expect(409);
    let read = client.request("GET", ITEM).key("1").send().await.expect(200);
    assert_eq!(read.body, made.body);
    assert_eq!(read.need("x-ms-request-charge"), "1");
    let renamed = json!({"id": "b", "pk": 1});
    client.request("PUT", ITEM).key("1").json(&renamed).send().await.expect(200);
    client.request("GET", ITEM).key("1").send().await.expect(404);
    client.request("DELETE", "/dbs/d/colls/c/docs/b").key("1").send().await.expect(204);
    client.request("DELETE", "/dbs/d/colls/c/docs/b").key("1").send().await.expect(404);
    client.request("PUT", ITEM).key("1").json(&item).send().await.expect(404);
}

#[tokio::test]
async fn upserts_create_and_replace() {
    let (_server, client) = Server::with_container().await;
    let upsert = |body: Value| {
        let client = client.clone();
        async move {
            let request = client.request("POST", ITEMS).header("x-ms-documentdb-is-upsert", "True");
            request.key("1").json(&body).send().await
        }
    };
    upsert(json!({"id": "a", "pk": 1, "x": 1})).await.expect(201);
    let replaced = upsert(json!({"id": "a", "pk": 1, "y": 2})).await.expect(200).json();
    assert!(replaced.get("x").is_none());
}

#[tokio::test]
async fn the_key_of_the_body_counts_when_none_is_sent() {
    let (_server, client) = Server::with_container().await;
    client.request("POST", ITEMS).json(&json!({"id": "a", "pk": 7})).send().await.expect(201);
    client.request("GET", ITEM).key("7").send().await.expect(200);
    let other = client.request("POST", ITEMS).key("8").json(&json!({"id": "b", "pk": 7}));
    other.send().await.expect_sub(400, "1001");
}

#[tokio::test]
async fn answers_without_a_body_on_request() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    for (method, path, status) in [("POST", ITEMS, 201), ("PUT", ITEM, 200)] {
        let request = client.request(method, path).header("prefer", "return=minimal").key("1");
        let reply = request.json(&item).send().await.expect(status);
        assert!(reply.body.is_empty());
        assert_eq!(reply.need("content-length"), "0");
        reply.need("etag");
    }
}

#[tokio::test]
async fn refused_bodies() {
    let (_server, client) = Server::with_container().await;
    for body in ["", "{", "[]", "{\"id\":1,\"pk\":1}", "{\"pk\":1}", "{\"id\":\"a/b\",\"pk\":1}"] {
        let reply = client.request("POST", ITEMS).key("1").bytes(body.as_bytes()).send().await;
        let reply = reply.expect(400);
        assert!(reply.message().contains("\r\nActivityId: "), "{body}");
        assert!(reply.header("x-ms-request-charge").is_some());
    }
    let hybrid = client.request("POST", ITEMS).key("1").bytes(b"\x81\xF0\xD8").send().await;
    assert!(hybrid.expect(400).message().contains("HybridRow"));
}

#[tokio::test]
async fn items_at_the_size_limit() {
    let (_server, client) = Server::with_container().await;
    let create = |id: &str, bytes: usize| {
        let client = client.clone();
        let item = json!({"id": id, "pk": 1, "text": "x".repeat(bytes)});
        async move { client.request("POST", ITEMS).key("1").json(&item).send().await }
    };
    let limit = 2 * 1024 * 1024;
    create("a", limit - 1000).await.expect(201);
    create("b", limit).await.expect(413);
    create("c", limit + 100_000).await.expect(413);
    create("d", 2 * limit).await.expect(413);
}

#[tokio::test]
async fn refused_options() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    for (name, value) in [
        ("x-ms-consistency-level", "Strong"),
        ("x-ms-consistency-level", "Whatever"),
        ("x-ms-documentdb-pre-trigger-include", "t"),
        ("x-ms-documentdb-post-trigger-include", "t"),
        ("x-ms-indexing-directive", "Perhaps"),
        ("x-ms-session-token", "junk"),
        ("x-ms-documentdb-partitionkey", "nonsense"),
    ] {
        let request = client.request("POST", ITEMS).header(name, value).json(&item);
        assert_eq!(request.send().await.status, 400, "{name}: {value}");
    }
    for level in ["Session", "Eventual", "ConsistentPrefix"] {
        let request = client.request("GET", ITEM).key("1").header("x-ms-consistency-level", level);
        request.send().await.expect(404);
    }
}

#[tokio::test]
async fn activity_ids_are_echoed_or_made() {
    let (_server, client) = Server::with_container().await;
    let id = "5a8a3c2e-0000-4000-8000-1234567890ab";
    let reply = client.request("GET", ITEM).key("1").header("x-ms-activity-id", id).send().await;
    assert_eq!(reply.need("x-ms-activity-id"), id);
    assert!(reply.message().ends_with(&format!("\r\nActivityId: {id}")));
    let made = client.get("/").await;
    assert_eq!(made.need("x-ms-activity-id").len(), 36);
    assert_eq!(made.need("x-ms-version"), "2020-07-15");
}

#[tokio::test]
async fn names_outside_ascii_are_escaped_in_headers() {
    let (_server, client) = Server::with_container().await;
    client.post("/dbs/d/colls", &container("é", &["/pk"])).await.expect(201);
    let path = "/dbs/d/colls/%C3%A9/docs/a";
    let reply = client.request("GET", path).key("1").send().await.expect(404);
    assert_eq!(reply.need("x-ms-alt-content-path"), "dbs/d/colls/%C3%A9");
}

fn batch<'a>(client: &'a crate::client::Client, body: &Value) -> crate::client::Request<'a> {
    client
        .request("POST", ITEMS)
        .header("x-ms-cosmos-is-batch-request", "true")
        .header("x-ms-cosmos-batch-atomic", "true")
        .header("x-ms-cosmos-batch-continue-on-error", "false")
        .json(body)
}

#[tokio::test]
async fn a_batch_of_everything() {
    let (_server, client) = Server::with_container().await;
    let body = json!([
        {"operationType": "Create", "resourceBody": {"id": "a", "pk": 1, "n": 1}},
        {"operationType": "Upsert", "resourceBody": {"id": "b", "pk": 1}},
        {"operationType": "Replace", "id": "b", "resourceBody": {"id": "b", "pk": 1, "x": 2}},
        {"operationType": "Patch", "id": "a",
         "resourceBody": {"operations": [{"op": "incr", "path": "/n", "value": 1}]}},
        {"operationType": "Read", "id": "a"},
        {"operationType": "Delete", "id": "b"},
    ]);
    let done = batch(&client, &body).key("1").send().await.expect(200);
    done.need("x-ms-session-token");
    let results = done.json();
    let statuses: Vec<u64> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["statusCode"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 201, 200, 200, 200, 204]);
    assert_eq!(results[4]["resourceBody"]["n"], 2);
    assert!(results[5].get("resourceBody").is_none());
    assert!(results[0]["requestCharge"].as_f64().unwrap() > 0.0);
    assert_eq!(results[4]["eTag"], results[4]["resourceBody"]["_etag"]);
}

#[tokio::test]
async fn minimal_batches_return_only_what_was_read() {
    let (_server, client) = Server::with_container().await;
    let body = json!([
        {"operationType": "Create", "resourceBody": {"id": "a", "pk": 1}},
        {"operationType": "Read", "id": "a"},
    ]);
    let request = batch(&client, &body).key("1").header("prefer", "return=minimal");
    let results = request.send().await.expect(200).json();
    assert!(results[0].get("resourceBody").is_none() && results[0].get("eTag").is_some());
    assert_eq!(results[1]["resourceBody"]["id"], "a");
}

#[tokio::test]
async fn refused_batches() {
    let (_server, client) = Server::with_container().await;
    let one = json!({"operationType": "Create", "resourceBody": {"id": "a", "pk": 1}});
    batch(&client, &json!([one])).send().await.expect(400);
    batch(&client, &json!([])).key("1").send().await.expect(400);
    batch(&client, &json!(vec![&one; 101])).key("1").send().await.expect(400);
    batch(&client, &json!({})).key("1").send().await.expect(400);
    let other = json!([one, {"operationType": "Create", "resourceBody": {"id": "b", "pk": 2}}]);
    let refused = batch(&client, &other).key("1").send().await.expect(207).json();
    assert_eq!(refused[0]["statusCode"], 424);
    assert_eq!(
        (&refused[1]["statusCode"], &refused[1]["subStatusCode"]),
        (&json!(400), &json!(1001))
    );
    client.request("GET", ITEM).key("1").send().await.expect(404);
    let hybrid = batch(&client, &json!([])).key("1").bytes(b"\x81\xF0\xD8\xFF\x7F").send().await;
    assert!(hybrid.expect(400).message().contains("HybridRow"));
}

fn bulk<'a>(client: &'a crate::client::Client, body: &Value) -> crate::client::Request<'a> {
    client
        .request("POST", ITEMS)
        .header("x-ms-cosmos-is-batch-request", "true")
        .header("x-ms-cosmos-batch-atomic", "false")
        .header("x-ms-cosmos-batch-continue-on-error", "true")
        .json(body)
}

#[tokio::test]
async fn trap_26_bulk_operations_are_independent() {
    let (_server, client) = Server::with_container().await;
    let body = json!([
        {"operationType": "Create", "partitionKey": "[\"p1\"]", "resourceBody": {"id": "a", "pk": "p1"}},
        {"operationType": "Create", "partitionKey": "[\"p1\"]", "resourceBody": {"id": "a", "pk": "p1"}},
        {"operationType": "Create", "partitionKey": "[\"p2\"]", "resourceBody": {"id": "a", "pk": "p2"}},
        {"operationType": "Read", "partitionKey": "[\"p2\"]", "id": "a"},
        {"operationType": "Delete", "partitionKey": "[\"p3\"]", "id": "a"},
        {"operationType": "Create", "partitionKey": "[\"p1\"]", "resourceBody": {"id": "x", "pk": "p2"}},
        {"operationType": "Delete", "id": "a"},
    ]);
    let request = bulk(&client, &body).header("x-ms-documentdb-partitionkeyrangeid", "0");
    let results = request.send().await.expect(207).json();
    let statuses: Vec<u64> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["statusCode"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 409, 201, 200, 404, 400, 400]);
    let fine = json!([{"operationType": "Read", "partitionKey": "[\"p2\"]", "id": "a"}]);
    bulk(&client, &fine).send().await.expect(200);
    let gone = bulk(&client, &fine).header("x-ms-documentdb-partitionkeyrangeid", "9");
    gone.send().await.expect_sub(410, "1002");
}

#[tokio::test]
async fn concurrent_writers_of_one_key_all_succeed() {
    let (_server, client) = Server::with_container().await;
    client.request("POST", ITEMS).key("1").json(&json!({"id": "a", "pk": 1, "n": 0})).send().await;
    let writers = (0..20).map(|_| {
        let client = client.clone();
        tokio::spawn(async move {
            let patch = json!([{"op": "incr", "path": "/n", "value": 1}]);
            client.request("PATCH", ITEM).key("1").json(&patch).send().await.expect(200);
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let read = client.request("GET", ITEM).key("1").send().await.expect(200);
    assert_eq!(read.json()["n"], 20);
}

/// The receipt of a response, whose lines add up to its charge.
fn receipt_of(reply: &Reply) -> serde_json::Value {
    let receipt: serde_json::Value =
        serde_json::from_str(reply.need("x-cosmolabe-receipt")).unwrap();
    let lines = receipt["lines"].as_array().unwrap();
    let sum: u64 = lines.iter().map(|line| line["units"].as_u64().unwrap()).sum();
    assert_eq!(receipt["units"], sum, "{receipt}");
    let charge: f64 = reply.need("x-ms-request-charge").parse().unwrap();
    assert_eq!(receipt["ru"], charge, "{receipt}");
    receipt
}

#[tokio::test]
async fn every_response_has_a_receipt_if_asked() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let ask = |method: &'static str, path: &'static str| {
        client.request(method, path).header("x-cosmolabe-receipt", "true")
    };
    let created = ask("POST", ITEMS).json(&item).send().await.expect(201);
    let lines = receipt_of(&created)["lines"].clone();
    assert_eq!(lines[0]["count"], 26, "{lines}");
    assert_eq!((&lines[1]["what"], &lines[1]["count"]), (&json!("index terms changed"), &json!(5)));

    let read = ask("GET", ITEM).key("1").send().await.expect(200);
    let expect = r#"{"ru":1.0,"units":2100000,"lines":[{"what":"item of "#;
    assert!(read.need("x-cosmolabe-receipt").starts_with(expect), "{read:?}");
    let conflict = ask("POST", ITEMS).json(&item).send().await.expect(409);
    assert_eq!(receipt_of(&conflict)["lines"][0]["what"], "refused request");
    let container = ask("GET", "/dbs/d/colls/c").send().await.expect(200);
    assert_eq!(receipt_of(&container)["lines"][0]["what"], "metadata request");
    receipt_of(&ask("GET", ITEMS).send().await.expect(200));
    let query = client.query(ITEMS, "SELECT * FROM c").header("x-cosmolabe-receipt", "True");
    let query = query.header("x-ms-documentdb-query-enablecrosspartition", "true");
    let query = receipt_of(&query.send().await.expect(200));
    assert_eq!(query["lines"][0]["what"], "physical partitions sought");
    receipt_of(&ask("GET", "/dbs/d/colls/nothing").send().await.expect(404));

    let silent = client.request("GET", ITEM).key("1").header("x-cosmolabe-receipt", "false");
    assert!(silent.send().await.expect(200).header("x-cosmolabe-receipt").is_none());
}

#[tokio::test]
async fn the_receipt_of_a_long_batch_fits_a_header() {
    let (_server, client) = Server::with_container().await;
    let operations = |count: usize| -> serde_json::Value {
        let one =
            |n| json!({"operationType": "Create", "resourceBody": {"id": format!("{n}"), "pk": 1}});
        (0..count).map(one).collect()
    };
    let send = |count| {
        client
            .request("POST", ITEMS)
            .key("1")
            .header("x-ms-cosmos-is-batch-request", "true")
            .header("x-ms-cosmos-batch-atomic", "true")
            .header("x-cosmolabe-receipt", "true")
            .json(&operations(count))
    };
    let long = send(100).send().await.expect(200);
    assert!(long.need("x-cosmolabe-receipt").len() < 1024);
    assert_eq!(receipt_of(&long)["lines"][0]["count"], 2600);
    let short = receipt_of(&send(2).send().await.expect(207));
    assert_eq!(short["lines"][0]["what"], "operation 1");
    assert_eq!(short["lines"][0]["lines"][0]["what"], "refused request");
}
