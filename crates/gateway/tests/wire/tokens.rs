//! Who may do what: keys, read-only keys, resource tokens, and nobody.

use serde_json::{Value, json};

use crate::client::{Client, exchange};
use crate::server::{READ_KEY, Server, container};

const ITEMS: &str = "/dbs/d/colls/c/docs";
const ITEM: &str = "/dbs/d/colls/c/docs/a";

async fn with_item() -> (Server, Client) {
    let (server, client) = Server::with_container().await;
    client.post("/dbs/d/colls", &container("other", &["/pk"])).await.expect(201);
    client.post("/dbs/d/users", &json!({"id": "u"})).await.expect(201);
    for (id, pk) in [("a", 1), ("b", 2)] {
        let item = json!({"id": id, "pk": pk});
        client.request("POST", ITEMS).key(&pk.to_string()).json(&item).send().await.expect(201);
    }
    (server, client)
}

async fn token(client: &Client, id: &str, permission: Value) -> String {
    let mut body = permission;
    body["id"] = json!(id);
    let made = client.post("/dbs/d/users/u/permissions", &body).await.expect(201).json();
    let token = made["_token"].as_str().unwrap();
    assert!(token.starts_with("type=resource&ver=1&sig="));
    token.to_owned()
}

#[tokio::test]
async fn nobody() {
    let (server, _client) = with_item().await;
    let tail = "HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    for credential in ["", "authorization: type%3Dmaster%26ver%3D1.0%26sig%3DAAAA\r\n"] {
        let text = format!("GET {ITEM} {tail}{credential}\r\n");
        let reply = exchange(server.address, text.as_bytes()).await.expect(401);
        assert_eq!(reply.json()["code"], "Unauthorized");
    }
    let wrong = Client::new(server.address, "d3Jvbmc=");
    wrong.get("/").await.expect(401);
    wrong.get("/dbs/d").await.expect(401);
    let aad = format!("GET / {tail}authorization: type%3Daad%26ver%3D1.0%26sig%3Dx.y.z\r\n\r\n");
    let reply = exchange(server.address, aad.as_bytes()).await.expect(401);
    assert!(reply.message().contains("not supported"));
}

#[tokio::test]
async fn a_read_only_key_reads_and_queries() {
    let (server, _client) = with_item().await;
    let reader = Client::new(server.address, READ_KEY);
    reader.request("GET", ITEM).key("1").send().await.expect(200);
    reader.query(ITEMS, "SELECT * FROM c").send().await.expect(200);
    reader.request("GET", ITEMS).header("a-im", "Incremental Feed").send().await.expect(200);
    let plan = reader.request("POST", ITEMS).header("x-ms-cosmos-is-query-plan-request", "True");
    plan.json(&json!({"query": "SELECT * FROM c"})).send().await.expect(200);
    let item = json!({"id": "x", "pk": 1});
    reader.request("POST", ITEMS).key("1").json(&item).send().await.expect(403);
    reader.request("DELETE", ITEM).key("1").send().await.expect(403);
    let batch = reader.request("POST", ITEMS).header("x-ms-cosmos-is-batch-request", "true");
    batch.key("1").json(&json!([{"operationType": "Read", "id": "a"}])).send().await.expect(403);
    reader.post("/dbs", &json!({"id": "x"})).await.expect(403);
}

#[tokio::test]
async fn trap_31_a_token_reads_the_account() {
    let (_server, client) = with_item().await;
    let read = json!({"permissionMode": "Read", "resource": "dbs/d/colls/c"});
    let holder = client.with_token(&token(&client, "p", read).await);
    holder.get("/").await.expect(200);
    holder.get("/dbs/d/colls/c").await.expect(200);
    holder.get("/dbs/d/colls/c/pkranges").await.expect(200);
    holder.request("GET", ITEM).key("1").send().await.expect(200);
    holder.query(ITEMS, "SELECT * FROM c").send().await.expect(200);
    let item = json!({"id": "x", "pk": 1});
    holder.request("POST", ITEMS).key("1").json(&item).send().await.expect(403);
    holder.delete("/dbs/d/colls/c").await.expect(403);
    for path in ["/dbs/d/colls/other", "/dbs/d/colls/other/docs", "/dbs/d", "/dbs", "/offers"] {
        assert_eq!(holder.get(path).await.status, 403, "{path}");
    }
    holder.get("/dbs/d/users/u/permissions").await.expect(403);
}

#[tokio::test]
async fn a_token_that_writes() {
    let (_server, client) = with_item().await;
    let link = client.get("/dbs/d/colls/c").await.json()["_self"].clone();
    let all = json!({"permissionMode": "All", "resource": link});
    let holder = client.with_token(&token(&client, "p", all).await);
    let item = json!({"id": "x", "pk": 1});
    holder.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let changed = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}});
    holder.request("PUT", "/dbs/d/colls/c").json(&changed).send().await.expect(403);
}

#[tokio::test]
async fn a_token_for_one_item() {
    let (_server, client) = with_item().await;
    let one = json!({"permissionMode": "Read", "resource": "dbs/d/colls/c/docs/a"});
    let holder = client.with_token(&token(&client, "p", one).await);
    holder.request("GET", ITEM).key("1").send().await.expect(200);
    holder.get("/dbs/d/colls/c").await.expect(200);
    holder.request("GET", "/dbs/d/colls/c/docs/b").key("2").send().await.expect(403);
    holder.query(ITEMS, "SELECT * FROM c").send().await.expect(403);
}

#[tokio::test]
async fn a_token_for_one_partition_key() {
    let (_server, client) = with_item().await;
    let keyed = json!({
        "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": [1],
    });
    let holder = client.with_token(&token(&client, "p", keyed).await);
    holder.request("GET", ITEM).key("1").send().await.expect(200);
    holder.request("GET", "/dbs/d/colls/c/docs/b").key("2").send().await.expect(403);
    let rows = holder.query(ITEMS, "SELECT * FROM c").key("1").send().await.expect(200).rows();
    assert_eq!(rows.len(), 1);
    holder.query(ITEMS, "SELECT * FROM c").send().await.expect(403);
    holder.query(ITEMS, "SELECT * FROM c").key("2").send().await.expect(403);
    let range = holder.query(ITEMS, "SELECT * FROM c");
    range.header("x-ms-documentdb-partitionkeyrangeid", "0").send().await.expect(403);
    holder.request("GET", ITEMS).header("a-im", "Incremental Feed").send().await.expect(403);
    let item = json!({"id": "x", "pk": 2});
    holder.request("POST", ITEMS).json(&item).send().await.expect(403);
    holder.request("POST", ITEMS).json(&json!({"id": "x", "pk": 1})).send().await.expect(201);
    let bulk = holder.request("POST", ITEMS).header("x-ms-cosmos-is-batch-request", "true");
    let body = json!([{"operationType": "Delete", "id": "b", "partitionKey": "[2]"}]);
    let results = bulk.json(&body).send().await.expect(207).json();
    assert_eq!(results[0]["statusCode"], 403);
    let path = "/dbs/d/colls/c/operations/partitionkeydelete";
    holder.request("POST", path).key("2").send().await.expect(403);
}

#[tokio::test]
async fn a_token_does_not_reach_a_recreated_container() {
    let (_server, client) = with_item().await;
    let read = json!({"permissionMode": "Read", "resource": "dbs/d/colls/c"});
    let holder = client.with_token(&token(&client, "p", read).await);
    client.delete("/dbs/d/colls/c").await.expect(204);
    client.post("/dbs/d/colls", &container("c", &["/pk"])).await.expect(201);
    holder.get("/dbs/d/colls/c").await.expect(403);
}

#[tokio::test]
async fn permissions_and_their_tokens() {
    let (_server, client) = with_item().await;
    let path = "/dbs/d/users/u/permissions";
    let body = json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
    client.post(path, &body).await.expect(201);
    let same = json!({"id": "q", "permissionMode": "All", "resource": "dbs/d/colls/c"});
    client.post(path, &same).await.expect(409);
    let read = client.get(&format!("{path}/p")).await.expect(200).json();
    assert!(read["_token"].is_string());
    let listed = client.get(path).await.expect(200).json();
    assert!(listed["Permissions"][0]["_token"].is_string());
    let query = client.query(path, "SELECT * FROM p WHERE p.id = 'p'").send().await.expect(200);
    assert_eq!(query.rows().len(), 1);
    let replaced = client.request("PUT", &format!("{path}/p")).json(&read).send().await;
    replaced.expect(200);
    for (seconds, status) in [("600", 200), ("86400", 200), ("0", 400), ("86401", 400)] {
        let request = client.request("GET", "/dbs/d/users/u/permissions/p");
        let request = request.header("x-ms-documentdb-expiry-seconds", seconds);
        assert_eq!(request.send().await.status, status, "{seconds}");
    }
    let wrong = json!({"id": "r", "permissionMode": "Read", "resource": "dbs/d"});
    client.post(path, &wrong).await.expect(400);
    client.delete(&format!("{path}/p")).await.expect(204);
}
