//! Queries, plans, read feeds and change feeds over the wire.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::{Server, container};

const ITEMS: &str = "/dbs/d/colls/c/docs";

async fn with_items(count: u32) -> (Server, Client) {
    let (server, client) = Server::with_container().await;
    for n in 0..count {
        let item = json!({"id": n.to_string(), "pk": n % 2, "n": n});
        let key = (n % 2).to_string();
        client.request("POST", ITEMS).key(&key).json(&item).send().await.expect(201);
    }
    (server, client)
}

#[tokio::test]
async fn a_query_with_parameters() {
    let (_server, client) = with_items(6).await;
    let body = json!({
        "query": "SELECT VALUE c.n FROM c WHERE c.n > @n",
        "parameters": [{"name": "@n", "value": 3}]
    });
    let reply = client
        .request("POST", ITEMS)
        .header("x-ms-documentdb-isquery", "true")
        .header("x-ms-documentdb-query-enablecrosspartition", "true")
        .json(&body)
        .send()
        .await
        .expect(200);
    let body = reply.json();
    assert_eq!(body["_count"], 2);
    assert_eq!(reply.need("x-ms-item-count"), "2");
    let mut values: Vec<u64> = reply.rows().iter().map(|row| row.as_u64().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, [4, 5]);
    reply.need("x-ms-session-token");
}

#[tokio::test]
async fn scopes_of_a_query() {
    let (_server, client) = with_items(6).await;
    let count = |name: &'static str, value: &'static str| {
        let client = client.clone();
        async move { client.query(ITEMS, "SELECT * FROM c").header(name, value).send().await }
    };
    let key = "x-ms-documentdb-partitionkey";
    assert_eq!(count(key, "[1]").await.expect(200).rows().len(), 3);
    let range = "x-ms-documentdb-partitionkeyrangeid";
    assert_eq!(count(range, "0").await.expect(200).rows().len(), 6);
    count(range, "5").await.expect_sub(410, "1002");
    let narrow = client
        .query(ITEMS, "SELECT * FROM c")
        .header(range, "0")
        .header("x-ms-start-epk", "")
        .header("x-ms-end-epk", "00")
        .header("x-ms-read-key-type", "EffectivePartitionKeyRange");
    assert!(narrow.send().await.expect(200).rows().is_empty());
    let wrong = client.query(ITEMS, "SELECT * FROM c").header("x-ms-start-epk", "00");
    wrong.header("x-ms-read-key-type", "ResourceId").send().await.expect(400);
}

#[tokio::test]
async fn a_prefix_of_a_hierarchical_key() {
    let (_server, client) = Server::with_container().await;
    client.post("/dbs/d/colls", &container("h", &["/t", "/u"])).await.expect(201);
    let path = "/dbs/d/colls/h/docs";
    for (id, t, u) in [("1", "T", "a"), ("2", "T", "b"), ("3", "S", "a")] {
        let item = json!({"id": id, "t": t, "u": u});
        let key = format!("\"{t}\",\"{u}\"");
        client.request("POST", path).key(&key).json(&item).send().await.expect(201);
    }
    let query = client.query(path, "SELECT * FROM c").key("\"T\"");
    assert_eq!(query.send().await.expect(200).rows().len(), 2);
    client.request("GET", "/dbs/d/colls/h/docs/1").key("\"T\"").send().await.expect(400);
    client.request("GET", "/dbs/d/colls/h/docs/1").key("\"T\",\"a\"").send().await.expect(200);
}

#[tokio::test]
async fn what_is_wrong_with_a_query() {
    let (_server, client) = with_items(1).await;
    let reply = client.query(ITEMS, "SELECT * FORM c").send().await.expect(400);
    let message = reply.message();
    let document = message.split("\r\n").next().unwrap().strip_prefix("Message: ").unwrap();
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["errors"][0]["severity"], "Error");
    assert!(document["errors"][0]["location"]["start"].is_number());
    let bodies: [&[u8]; 3] = [b"", b"[]", br#"{"query":1}"#];
    for body in bodies {
        let request = client.request("POST", ITEMS).header("x-ms-documentdb-isquery", "true");
        request.bytes(body).send().await.expect(400);
    }
}

#[tokio::test]
async fn measures_on_request() {
    let (_server, client) = with_items(4).await;
    let text = "SELECT * FROM c WHERE c.n = 1";
    let plain = client.query(ITEMS, text).send().await.expect(200);
    assert_eq!(plain.header("x-ms-documentdb-query-metrics"), None);
    let measured = client
        .query(ITEMS, text)
        .header("x-ms-documentdb-populatequerymetrics", "True")
        .header("x-ms-cosmos-populateindexmetrics", "True")
        .send()
        .await
        .expect(200);
    let metrics = measured.need("x-ms-documentdb-query-metrics");
    for piece in metrics.split(';') {
        assert!(piece.split_once('=').unwrap().1.parse::<f64>().is_ok(), "{piece}");
    }
    assert!(metrics.contains("outputDocumentCount=1;"));
    use base64::Engine;
    let engine = base64::engine::general_purpose::STANDARD;
    let index = engine.decode(measured.need("x-ms-cosmos-index-utilization")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    assert!(index["UtilizedSingleIndexes"].is_array());
    let second = client.query(ITEMS, text).header("x-ms-cosmos-populateindexmetrics-v2", "true");
    let second = second.send().await.expect(200);
    assert!(second.need("x-ms-cosmos-index-utilization").starts_with("%7B%22"));
}

#[tokio::test]
async fn a_read_feed_in_pages() {
    let (_server, client) = with_items(5).await;
    let first = client.request("GET", ITEMS).header("x-ms-max-item-count", "3").send().await;
    let first = first.expect(200);
    assert_eq!(first.rows().len(), 3);
    assert_eq!(first.json()["_rid"].as_str().unwrap().len(), 12);
    let next = first.need("x-ms-continuation");
    let second = client.request("GET", ITEMS).header("x-ms-continuation", next).send().await;
    let second = second.expect(200);
    assert_eq!(second.rows().len(), 2);
    assert_eq!(second.header("x-ms-continuation"), None);
    let junk = client.request("GET", ITEMS).header("x-ms-continuation", "junk").send().await;
    junk.expect(400);
}

#[tokio::test]
async fn changes_of_a_range_and_of_a_key() {
    let (_server, client) = with_items(4).await;
    let feed = |name: &'static str, value: &'static str| {
        let client = client.clone();
        async move {
            let request = client.request("GET", ITEMS).header("a-im", "Incremental Feed");
            request.header(name, value).send().await
        }
    };
    let range = "x-ms-documentdb-partitionkeyrangeid";
    assert_eq!(feed(range, "0").await.expect(200).rows().len(), 4);
    feed(range, "4").await.expect_sub(410, "1002");
    assert_eq!(feed("x-ms-documentdb-partitionkey", "[0]").await.expect(200).rows().len(), 2);
    let enveloped = feed("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15").await;
    let row = &enveloped.expect(200).rows()[0];
    assert!(row["current"]["id"].is_string() && row["metadata"]["lsn"].is_number());
    feed("if-modified-since", "not a date").await.expect(400);
}

#[tokio::test]
async fn all_versions_need_a_retention() {
    let (_server, client) = with_items(1).await;
    let request = client.request("GET", ITEMS).header("a-im", "Full-Fidelity Feed");
    request.header("if-none-match", "*").send().await.expect(400);
    let mut kept = container("kept", &["/pk"]);
    kept["changeFeedPolicy"] = json!({"retentionDuration": 10});
    client.post("/dbs/d/colls", &kept).await.expect(201);
    let path = "/dbs/d/colls/kept/docs";
    let full = |etag: Option<String>| {
        let client = client.clone();
        async move {
            let request = client.request("GET", path).header("a-im", "Full-Fidelity Feed");
            let request =
                request.header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
            match etag {
                Some(etag) => request.header("if-none-match", &etag).send().await,
                None => request.send().await,
            }
        }
    };
    full(None).await.expect(400);
    let now = full(Some("*".to_owned())).await.expect(304).need("etag").to_owned();
    let item = json!({"id": "a", "pk": 1});
    client.request("POST", path).key("1").json(&item).send().await.expect(201);
    client.request("DELETE", &format!("{path}/a")).key("1").send().await.expect(204);
    let rows = full(Some(now)).await.expect(200).rows();
    let types: Vec<&Value> = rows.iter().map(|row| &row["metadata"]["operationType"]).collect();
    assert_eq!(types, ["create", "delete"]);
}
