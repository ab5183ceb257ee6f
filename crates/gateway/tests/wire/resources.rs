//! Databases, containers, users, permissions, keys, offers; and what we do not offer.

use serde_json::json;

use crate::server::{Server, container};

#[tokio::test]
async fn databases() {
    let server = Server::start().await;
    let client = server.client();
    let made = client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    assert_eq!(made.json()["_colls"], "colls/");
    assert_eq!(made.json()["_etag"], made.need("etag"));
    client.post("/dbs", &json!({"id": "d"})).await.expect(409);
    client.post("/dbs", &json!({"id": "a/b"})).await.expect(400);
    client.post("/dbs", &json!({})).await.expect(400);
    client.get("/dbs/d").await.expect(200);
    let known = client.request("GET", "/dbs/d").header("if-none-match", made.need("etag"));
    known.send().await.expect(304);
    client.get("/dbs/e").await.expect(404);
    let query = client.query("/dbs", "SELECT * FROM r WHERE r.id = 'd'").send().await.expect(200);
    assert_eq!(query.rows().len(), 1);
    assert_eq!(query.json()["_rid"], "");
    client.delete("/dbs/d").await.expect(204);
    client.delete("/dbs/d").await.expect(404);
}

#[tokio::test]
async fn lists_in_pages() {
    let server = Server::start().await;
    let client = server.client();
    for n in 0..5 {
        client.post("/dbs", &json!({"id": format!("d{n}")})).await.expect(201);
    }
    let mut names = Vec::new();
    let mut next = None::<String>;
    loop {
        let request = client.request("GET", "/dbs").header("x-ms-max-item-count", "2");
        let page = match &next {
            Some(token) => request.header("x-ms-continuation", token).send().await.expect(200),
            None => request.send().await.expect(200),
        };
        names.extend(page.rows().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        match page.header("x-ms-continuation") {
            Some(token) => next = Some(token.to_owned()),
            None => break,
        }
    }
    assert_eq!(names, ["d0", "d1", "d2", "d3", "d4"]);
    let query = client.query("/dbs", "SELECT * FROM r").header("x-ms-max-item-count", "4");
    let page = query.send().await.expect(200);
    assert_eq!((page.rows().len(), page.need("x-ms-continuation")), (4, "4"));
}

#[tokio::test]
async fn containers() {
    let (_server, client) = Server::with_container().await;
    client.post("/dbs/d/colls", &container("c", &["/pk"])).await.expect(409);
    client.post("/dbs/x/colls", &container("c", &["/pk"])).await.expect_sub(404, "1003");
    client.get("/dbs/x/colls").await.expect(404);
    let read = client.get("/dbs/d/colls/c").await.expect(200);
    assert_eq!(read.need("x-ms-alt-content-path"), "dbs/d");
    assert_eq!(read.need("x-ms-content-path").len(), 8);
    let body = read.json();
    assert_eq!(body["indexingPolicy"]["indexingMode"], "consistent");
    let listed = client.get("/dbs/d/colls").await.expect(200);
    assert_eq!(listed.json()["DocumentCollections"][0]["id"], "c");
    let mut changed = body.clone();
    changed["defaultTtl"] = json!(100);
    let replaced = client.request("PUT", "/dbs/d/colls/c").json(&changed).send().await.expect(200);
    assert_eq!(replaced.json()["defaultTtl"], 100);
    changed["partitionKey"]["paths"] = json!(["/other"]);
    client.request("PUT", "/dbs/d/colls/c").json(&changed).send().await.expect(400);
    client.delete("/dbs/d/colls/c").await.expect(204);
    client.get("/dbs/d/colls/c").await.expect(404);
}

#[tokio::test]
async fn quota_and_statistics_on_request() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let path = "/dbs/d/colls/c/docs";
    client.request("POST", path).key("1").json(&item).send().await.expect(201);
    let read = client
        .request("GET", "/dbs/d/colls/c")
        .header("x-ms-documentdb-populatequotainfo", "True")
        .header("x-ms-documentdb-populatepartitionstatistics", "True")
        .send()
        .await
        .expect(200);
    assert!(read.need("x-ms-resource-usage").contains("documentsCount=1;"));
    assert!(read.need("x-ms-resource-quota").contains("collectionSize="));
    let progress = "x-ms-documentdb-collection-index-transformation-progress";
    assert_eq!(read.need(progress), "100");
    assert_eq!(read.json()["statistics"][0]["documentCount"], 1);
}

#[tokio::test]
async fn throughput() {
    let server = Server::start().await;
    let client = server.client();
    let create = |name: &'static str, value: &'static str, id: &'static str| {
        let client = client.clone();
        async move {
            client.request("POST", "/dbs").header(name, value).json(&json!({"id": id})).send().await
        }
    };
    create("x-ms-offer-throughput", "400", "manual").await.expect(201);
    create("x-ms-offer-throughput", "399", "low").await.expect(400);
    create("x-ms-offer-throughput", "lots", "bad").await.expect(400);
    let settings = "{\"maxThroughput\": 4000}";
    create("x-ms-cosmos-offer-autopilot-settings", settings, "auto").await.expect(201);
    let both = client
        .request("POST", "/dbs")
        .header("x-ms-offer-throughput", "400")
        .header("x-ms-cosmos-offer-autopilot-settings", settings)
        .json(&json!({"id": "both"}));
    both.send().await.expect(400);
    let offers = client.get("/offers").await.expect(200).rows();
    assert_eq!(offers.len(), 2);
    let mut offer = offers[0].clone();
    let path = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    let read = client.get(&path).await.expect(200);
    assert_eq!(read.need("x-ms-offer-replace-pending"), "false");
    assert_eq!(read.need("x-ms-cosmos-min-throughput"), "400");
    let auto = format!("/offers/{}", offers[1]["_rid"].as_str().unwrap());
    assert_eq!(client.get(&auto).await.expect(200).need("x-ms-cosmos-min-throughput"), "1000");
    offer["content"]["offerThroughput"] = json!(600);
    let replaced = client.request("PUT", &path).json(&offer).send().await.expect(200).json();
    assert_eq!(replaced["content"]["offerThroughput"], 600);
    client.get("/offers/AAAA").await.expect(404);
}

#[tokio::test]
async fn users_and_encryption_keys() {
    let (_server, client) = Server::with_container().await;
    client.post("/dbs/d/users", &json!({"id": "u"})).await.expect(201);
    client.post("/dbs/d/users", &json!({"id": "u"})).await.expect(409);
    let upsert = client.request("POST", "/dbs/d/users").header("x-ms-documentdb-is-upsert", "true");
    upsert.json(&json!({"id": "u"})).send().await.expect(200);
    assert_eq!(client.get("/dbs/d/users").await.expect(200).json()["Users"][0]["id"], "u");
    let query = client.query("/dbs/d/users", "SELECT * FROM u").send().await.expect(200);
    assert_eq!(query.rows().len(), 1);
    client.request("PUT", "/dbs/d/users/u").json(&json!({"id": "v"})).send().await.expect(200);
    client.delete("/dbs/d/users/v").await.expect(204);
    client.get("/dbs/d/users/v").await.expect(404);
    client.get("/dbs/x/users").await.expect(404);
    let key = json!({
        "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256",
        "wrappedDataEncryptionKey": "AAAA",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    });
    client.post("/dbs/d/clientencryptionkeys", &key).await.expect(201);
    let read = client.get("/dbs/d/clientencryptionkeys/k").await.expect(200).json();
    assert_eq!(read["keyWrapMetadata"], key["keyWrapMetadata"]);
    let all = client.get("/dbs/d/clientencryptionkeys").await.expect(200).json();
    assert_eq!(all["ClientEncryptionKeys"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn there_are_no_conflicts() {
    let (_server, client) = Server::with_container().await;
    let conflicts = client.get("/dbs/d/colls/c/conflicts").await.expect(200);
    assert_eq!(conflicts.json()["Conflicts"], json!([]));
    client.get("/dbs/d/colls/c/conflicts/x").await.expect(404);
}

#[tokio::test]
async fn addresses_and_verbs_we_do_not_have() {
    let (_server, client) = Server::with_container().await;
    for path in [
        "/dbs/d/colls/c/docs/a/attachments",
        "/media/x",
        "/dbs/d/colls/c/schemas",
        "/topology",
        "/_explorer",
    ] {
        assert_eq!(client.get(path).await.expect(404).json()["code"], "NotFound", "{path}");
    }
    for (method, path) in [("PUT", "/dbs"), ("PATCH", "/dbs/d"), ("BREW", "/dbs/d/colls/c/docs/a")]
    {
        let reply = client.request(method, path).send().await.expect(405);
        assert_eq!(reply.json()["code"], "MethodNotAllowed");
    }
}

#[tokio::test]
async fn probes_need_no_key() {
    let (server, client) = Server::with_container().await;
    let probe = |text: &'static str| async move {
        crate::client::exchange(server.address, text.as_bytes()).await
    };
    let tail = "HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    for path in ["health", "ready", "metrics"] {
        let text = format!("GET /_cosmolabe/{path} {tail}");
        probe(text.leak()).await.expect(200);
    }
    let head = probe(format!("HEAD / {tail}").leak()).await.expect(200);
    assert!(head.body.is_empty());
    client.request("GET", "/dbs/d/colls/c/docs/a").key("1").send().await.expect(404);
    let metrics = probe(format!("GET /_cosmolabe/metrics {tail}").leak()).await;
    let text = String::from_utf8(metrics.body).unwrap();
    let line = r#"cosmolabe_requests_total{resource="item",operation="read",status="4xx"} 1"#;
    assert!(text.contains(line), "{text}");
}
