//! Throttling as clients see it.

use std::sync::Arc;
use std::time::Duration;

use base::{Clock, ManualClock, SystemClock};
use engine::Options;
use serde_json::json;

use crate::client::Client;
use crate::server::{Server, container};

const ITEMS: &str = "/dbs/d/colls/c/docs";

/// A server that enforces throughput, on a clock that stands still.
async fn enforcing() -> (Server, Client, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let options = Options {
        clock: clock.clone(),
        enforces_throughput: true,
        is_background: false,
        ..Options::new(1 << 20)
    };
    let server = Server::on(options, |_| {}).await;
    let client = server.client();
    client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    client.post("/dbs/d/colls", &container("c", &["/pk"])).await.expect(201);
    (server, client, clock)
}

/// Spends a second of 400 RU/s in one request.
async fn spend(client: &Client) {
    let big = json!({"id": "big", "pk": 1, "text": "x".repeat(1 << 20)});
    client.request("POST", ITEMS).key("1").json(&big).send().await.expect(201);
}

#[tokio::test]
async fn a_throttled_request_says_when_to_come_back() {
    let (_server, client, clock) = enforcing().await;
    spend(&client).await;
    let read = || client.request("GET", "/dbs/d/colls/c/docs/big").key("1");
    let refused = read().send().await.expect(429);
    assert_eq!(refused.need("x-ms-substatus"), "3200");
    assert_eq!(refused.need("x-ms-request-charge"), "0.38");
    assert!(refused.message().contains("rate is large"), "{}", refused.message());
    let ms: u64 = refused.need("x-ms-retry-after-ms").parse().unwrap();
    assert!((500..700).contains(&ms), "some 240 RU are owed: {ms}");

    let query = client.query(ITEMS, "SELECT * FROM c").key("1").send().await.expect(429);
    assert_eq!(query.need("x-ms-substatus"), "3200");
    for path in ["/", "/dbs/d", "/dbs/d/colls/c", "/dbs/d/colls/c/pkranges", "/offers"] {
        client.get(path).await.expect(200);
    }
    clock.advance(Duration::from_millis(ms));
    read().send().await.expect(200);
}

#[tokio::test]
async fn in_a_bulk_request_each_operation_is_throttled_for_itself() {
    let (_server, client, _clock) = enforcing().await;
    let create = |id: &str, bytes: usize| {
        let body = json!({"id": id, "pk": 1, "text": "x".repeat(bytes)});
        json!({"operationType": "Create", "partitionKey": "[1]", "resourceBody": body})
    };
    let reply = client
        .request("POST", ITEMS)
        .header("x-ms-cosmos-is-batch-request", "true")
        .header("x-ms-cosmos-batch-atomic", "false")
        .header("x-ms-documentdb-partitionkeyrangeid", "0")
        .json(&json!([create("a", 1 << 20), create("b", 1)]))
        .send()
        .await
        .expect(207);
    let results = reply.json();
    assert_eq!((&results[0]["statusCode"], &results[1]["statusCode"]), (&json!(201), &json!(429)));
    assert_eq!(results[1]["subStatusCode"], 3200);
    assert!(results[1]["retryAfterMilliseconds"].as_u64().unwrap() > 100);
}

#[tokio::test]
async fn metrics_tell_who_spends() {
    let (server, client, _clock) = enforcing().await;
    spend(&client).await;
    client.request("GET", "/dbs/d/colls/c/docs/big").key("1").send().await.expect(429);
    let metrics = client.get("/_cosmolabe/metrics").await.expect(200);
    let text = String::from_utf8(metrics.body).unwrap();
    let value = |start: &str| -> f64 {
        let line =
            text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let labels = "database=\"d\",container=\"c\"";
    let spent =
        value(&format!("cosmolabe_partition_request_units_total{{{labels},partition=\"0\"}}"));
    assert!(spent > 600.0);
    let refused =
        value(&format!("cosmolabe_partition_throttled_total{{{labels},partition=\"0\"}}"));
    assert_eq!(refused, 1.0);
    let hot = value(&format!("cosmolabe_hot_partition_key_request_units{{{labels},key=\"[1]\"}}"));
    assert_eq!(hot, spent);
    server.stop().await;
}
