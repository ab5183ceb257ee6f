//! The checklist of traps: what makes clients hang, loop or fail. The number is that of the list.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Server, container};

const ITEMS: &str = "/dbs/d/colls/c/docs";

#[tokio::test]
async fn trap_01_pkranges_answers_304() {
    let (_server, client) = Server::with_container().await;
    let path = "/dbs/d/colls/c/pkranges";
    let first = client.get(path).await.expect(200);
    let etag = first.need("etag").to_owned();
    let ranges = first.rows();
    assert_eq!(ranges[0]["minInclusive"], "");
    assert_eq!(ranges[ranges.len() - 1]["maxExclusive"], "FF");
    let again = client
        .request("GET", path)
        .header("a-im", "Incremental Feed")
        .header("x-ms-max-item-count", "-1")
        .header("if-none-match", &etag)
        .send()
        .await
        .expect(304);
    assert_eq!(again.need("etag"), etag);
    assert!(again.body.is_empty());
    client.request("GET", path).header("if-none-match", "\"other\"").send().await.expect(200);
    client.request("GET", path).header("if-none-match", "*").send().await.expect(200);
}

#[tokio::test]
async fn trap_02_a_feed_without_news_is_304_with_an_etag() {
    let (_server, client) = Server::with_container().await;
    let feed = |etag: Option<String>| {
        let client = client.clone();
        async move {
            let request = client.request("GET", ITEMS).header("a-im", "Incremental Feed");
            match etag {
                Some(etag) => request.header("if-none-match", &etag).send().await,
                None => request.send().await,
            }
        }
    };
    let empty = feed(None).await.expect(304);
    let etag = empty.need("etag").to_owned();
    client.request("POST", ITEMS).key("1").json(&json!({"id": "a", "pk": 1})).send().await;
    let news = feed(Some(etag)).await.expect(200);
    assert_eq!(news.rows().len(), 1);
    assert!(news.rows()[0]["_lsn"].is_number());
    let etag = news.need("etag").to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'));
    let quiet = feed(Some(etag)).await.expect(304);
    assert!(quiet.body.is_empty() && quiet.header("etag").is_some());
}

#[tokio::test]
async fn trap_06_continuations_make_progress() {
    let (_server, client) = Server::with_container().await;
    for number in 0..7 {
        let item = json!({"id": number.to_string(), "pk": number});
        client.request("POST", ITEMS).key(&number.to_string()).json(&item).send().await.expect(201);
    }
    let (mut seen, mut tokens, mut next) = (0, Vec::new(), None::<String>);
    loop {
        let request = client.query(ITEMS, "SELECT * FROM c").header("x-ms-max-item-count", "2");
        let page = match &next {
            Some(token) => request.header("x-ms-continuation", token).send().await,
            None => request.send().await,
        };
        let page = page.expect(200);
        seen += page.rows().len();
        let Some(token) = page.header("x-ms-continuation") else { break };
        assert!(!token.is_empty() && token.len() <= 4096);
        assert!(!tokens.contains(&token.to_owned()), "a token came back");
        tokens.push(token.to_owned());
        next = Some(token.to_owned());
    }
    assert_eq!(seen, 7);
}

#[tokio::test]
async fn trap_08_the_account_is_not_named_localhost() {
    let server = Server::start().await;
    let account = server.client().get("/").await.expect(200).json();
    assert_ne!(account["id"], "localhost");
    let endpoint = &account["writableLocations"][0]["databaseAccountEndpoint"];
    assert_eq!(endpoint, "http://test.local:80/");
}

#[tokio::test]
async fn trap_11_every_item_answer_names_its_range() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": "x"});
    let path = "/dbs/d/colls/c/docs/a";
    let replies = [
        client.request("POST", ITEMS).key("\"x\"").json(&item).send().await.expect(201),
        client.request("POST", ITEMS).key("\"x\"").json(&item).send().await.expect(409),
        client.request("GET", path).key("\"x\"").send().await.expect(200),
        client.request("GET", "/dbs/d/colls/c/docs/b").key("\"x\"").send().await.expect(404),
        client.query(ITEMS, "SELECT * FROM c").send().await.expect(200),
        client.request("GET", ITEMS).send().await.expect(200),
        client.request("DELETE", path).key("\"x\"").send().await.expect(204),
    ];
    for reply in replies {
        assert_eq!(reply.need("x-ms-documentdb-partitionkeyrangeid"), "0");
        assert_eq!(reply.need("x-ms-alt-content-path"), "dbs/d/colls/c");
        assert_eq!(reply.need("x-ms-content-path").len(), 12);
        reply.need("lsn");
    }
}

#[tokio::test]
async fn trap_12_trailing_slashes_route() {
    let (_server, client) = Server::with_container().await;
    client.get("/dbs/").await.expect(200);
    client.get("/dbs/d/colls/c/").await.expect(200);
    let item = json!({"id": "a", "pk": 1});
    client.request("POST", "/dbs/d/colls/c/docs/").key("1").json(&item).send().await.expect(201);
    client.request("GET", "//dbs/d/colls/c/docs/a/").key("1").send().await.expect(200);
}

#[tokio::test]
async fn trap_13_a_patch_needs_no_content_type() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1, "n": 1});
    client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let array = json!([{"op": "incr", "path": "/n", "value": 2}]);
    let object = json!({"condition": "from c where c.n = 3", "operations": array});
    for (body, n) in [(array.clone(), 3), (object, 5)] {
        let patched = client.request("PATCH", "/dbs/d/colls/c/docs/a").key("1").json(&body);
        assert_eq!(patched.send().await.expect(200).json()["n"], n);
    }
    let unmet = json!({"condition": "from c where c.n = 3", "operations": array});
    let path = "/dbs/d/colls/c/docs/a";
    client.request("PATCH", path).key("1").json(&unmet).send().await.expect_sub(412, "1110");
}

#[tokio::test]
async fn trap_14_binary_bodies_decode() {
    let (_server, client) = Server::with_container().await;
    let binary = b"\x80\xED\x0E\x03\x82id\x81b\x82pk\x82p2\x81v\x01";
    let made = client
        .request("POST", ITEMS)
        .header("content-type", "application/json")
        .header("prefer", "return=minimal")
        .header("x-ms-cosmos-supported-serialization-formats", "CosmosBinary")
        .key("\"p2\"")
        .bytes(binary)
        .send()
        .await
        .expect(201);
    assert!(made.body.is_empty() && made.header("etag").is_some());
    let read = client.request("GET", "/dbs/d/colls/c/docs/b").key("\"p2\"").send().await;
    assert_eq!(read.expect(200).json()["v"], 1);
}

fn plan<'a>(client: &'a crate::client::Client, text: &str) -> crate::client::Request<'a> {
    client
        .request("POST", ITEMS)
        .header("x-ms-cosmos-is-query-plan-request", "True")
        .header("content-type", "application/json")
        .header("x-ms-continuation", "{\"rid\":\"what this client made up\"}")
        .json(&json!({"query": text}))
}

#[tokio::test]
async fn trap_16_plans_have_every_field() {
    let (_server, client) = Server::with_container().await;
    let plan = plan(&client, "SELECT VALUE c.x FROM c ORDER BY c.a").send().await.expect(200);
    let plan = plan.json();
    let info = &plan["queryInfo"];
    assert_eq!(info["distinctType"], "None");
    assert_eq!(info["hasSelectValue"], true);
    for name in ["orderBy", "orderByExpressions", "groupByExpressions", "aggregates"] {
        assert!(info[name].is_array(), "{name}: {info}");
    }
    assert!(info["rewrittenQuery"].is_string());
    assert!(plan["queryRanges"].is_array());
}

#[tokio::test]
async fn a_client_that_merges_an_order_is_told_how_equal_rows_come() {
    let (_server, client) = Server::with_container().await;
    let text = "SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c ORDER BY c.n";
    let info = "x-ms-cosmos-query-execution-info";
    for (direction, is_reversed) in [("ASC", false), ("DESC", true)] {
        let merged = client.query(ITEMS, &format!("{text} {direction}")).send().await.expect(200);
        let expect = format!(r#"{{"reverseRidEnabled":false,"reverseIndexScan":{is_reversed}}}"#);
        assert_eq!(merged.need(info), expect);
    }
    let plain = client.query(ITEMS, "SELECT * FROM c ORDER BY c.n").send().await.expect(200);
    assert!(plain.header(info).is_none());
}

#[tokio::test]
async fn direct_mode_is_refused_with_a_sentence() {
    let (_server, client) = Server::with_container().await;
    let refused = client.get("/addresses").await.expect(400);
    assert!(refused.json()["message"].as_str().unwrap().contains("gateway"));
}

#[tokio::test]
async fn trap_17_min_and_max_have_both_items() {
    let (_server, client) = Server::with_container().await;
    for n in [1, 5] {
        let item = json!({"id": n.to_string(), "pk": 1, "x": n});
        client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    }
    let text = r#"SELECT VALUE [{"item": MIN(c.x), "item2": {"min": MIN(c.x), "count": COUNT(c.x)}}] FROM c"#;
    let pinned = client
        .query(ITEMS, text)
        .header("x-ms-documentdb-partitionkeyrangeid", "0")
        .send()
        .await
        .expect(200);
    assert_eq!(pinned.rows(), [json!([{"item": 1, "item2": {"min": 1, "count": 2}}])]);
}

#[tokio::test]
async fn trap_18_locally_rewritten_queries_run() {
    let (_server, client) = Server::with_container().await;
    for n in [2, 1] {
        let item = json!({"id": n.to_string(), "pk": 1, "v": n});
        client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    }
    for text in [
        r#"SELECT VALUE {"_rid": c._rid, "orderByItems": [{"item": c.v}], "payload": c} FROM c WHERE true ORDER BY c.v"#,
        r#"SELECT r._rid, [{"item": r.v}] AS orderByItems, r AS payload FROM Root AS r WHERE (true) ORDER BY r.v"#,
    ] {
        let pinned = client.query(ITEMS, text).header("x-ms-documentdb-partitionkeyrangeid", "0");
        let rows = pinned.send().await.expect(200).rows();
        let values: Vec<&Value> = rows.iter().map(|row| &row["orderByItems"][0]["item"]).collect();
        assert_eq!(values, [1, 2], "{text}");
        assert!(rows[0]["_rid"].is_string() && rows[0]["payload"]["id"] == "1");
    }
}

#[tokio::test]
async fn trap_19_session_tokens_are_numeric_and_never_empty() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let made = client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let token = made.need("x-ms-session-token").to_owned();
    let lsn: u64 = token.strip_prefix("0:-1#").unwrap().parse().unwrap();
    let read = |token: String| {
        let client = client.clone();
        async move {
            let request = client.request("GET", "/dbs/d/colls/c/docs/a").key("1");
            request.header("x-ms-session-token", &token).send().await
        }
    };
    read(token).await.expect(200);
    read(format!("0:-1#{}", lsn + 1000)).await.expect_sub(404, "1002");
    read("7:-1#99".to_owned()).await.expect(200);
    read("junk".to_owned()).await.expect(400);
    assert_eq!(client.get("/dbs/d").await.header("x-ms-session-token"), None);
    assert_eq!(client.get("/").await.header("x-ms-session-token"), None);
}

#[tokio::test]
async fn trap_20_containers_say_kind_and_version() {
    let server = Server::start().await;
    let client = server.client();
    client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    let js = json!({"id": "js", "partitionKey": {"paths": ["/pk"]}});
    let made = client.post("/dbs/d/colls", &js).await.expect(201).json();
    assert_eq!(made["partitionKey"]["kind"], "Hash");
    assert_eq!(made["partitionKey"]["version"], 1);
    assert_eq!(client.get("/dbs/d/colls/js").await.json()["partitionKey"], made["partitionKey"]);
}

#[tokio::test]
async fn trap_21_hierarchical_keys_have_version_2() {
    let server = Server::start().await;
    let client = server.client();
    client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    let body = json!({"id": "h", "partitionKey": {"paths": ["/t", "/u"], "kind": "MultiHash"}});
    let made = client.post("/dbs/d/colls", &body).await;
    match made.status {
        201 => assert_eq!(made.json()["partitionKey"]["version"], 2),
        status => assert_eq!(status, 400),
    }
    let made = client.post("/dbs/d/colls", &container("h2", &["/t", "/u"])).await.expect(201);
    assert_eq!(made.json()["partitionKey"]["version"], 2);
}

#[tokio::test]
async fn trap_22_another_container_under_the_same_name() {
    let (_server, client) = Server::with_container().await;
    let rid = client.get("/dbs/d/colls/c").await.json()["_rid"].as_str().unwrap().to_owned();
    let read = |rid: String| {
        let client = client.clone();
        async move {
            let request = client.request("GET", "/dbs/d/colls/c/docs/a").key("1");
            request.header("x-ms-cosmos-intended-collection-rid", &rid).send().await
        }
    };
    read(rid.clone()).await.expect(404);
    client.delete("/dbs/d/colls/c").await.expect(204);
    client.post("/dbs/d/colls", &container("c", &["/pk"])).await.expect(201);
    read(rid.clone()).await.expect_sub(400, "1024");
    let dbs = client.request("GET", "/dbs/d").header("x-ms-cosmos-intended-collection-rid", &rid);
    dbs.send().await.expect(200);
}

#[tokio::test]
async fn trap_23_rids_have_their_lengths() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let made = client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201).json();
    let database = client.get("/dbs/d").await.json()["_rid"].as_str().unwrap().to_owned();
    let container = client.get("/dbs/d/colls/c").await.json()["_rid"].as_str().unwrap().to_owned();
    let own = made["_rid"].as_str().unwrap();
    assert_eq!((database.len(), container.len(), own.len()), (8, 12, 24));
    for rid in [&database, &container, own] {
        assert!(!rid.contains('/'));
    }
    assert_eq!(made["_self"], format!("dbs/{database}/colls/{container}/docs/{own}/"));
    let by_rid = format!("/dbs/{database}/colls/{container}");
    client.get(&by_rid).await.expect(200);
    client.get(&format!("{by_rid}/pkranges")).await.expect(200);
}

#[tokio::test]
async fn trap_24_an_offer_points_at_the_self_link() {
    let server = Server::start().await;
    let client = server.client();
    client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    let made = client
        .request("POST", "/dbs/d/colls")
        .header("x-ms-offer-throughput", "500")
        .json(&container("c", &["/pk"]))
        .send()
        .await
        .expect(201)
        .json();
    let link = made["_self"].as_str().unwrap();
    assert!(link.ends_with('/'));
    let text = format!("SELECT * from root where root.resource = \"{link}\"");
    let offers = client.query("/offers", &text).send().await.expect(200).rows();
    assert_eq!(offers.len(), 1);
    assert_eq!(offers[0]["content"]["offerThroughput"], 500);
    assert_eq!(offers[0]["offerResourceId"], made["_rid"]);
}

#[tokio::test]
async fn trap_25_a_failed_batch_answers_for_every_operation() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let body = json!([
        {"operationType": "Create", "resourceBody": {"id": "b", "pk": 1}},
        {"operationType": "Create", "resourceBody": item},
        {"operationType": "Read", "id": "a"},
    ]);
    let failed = client
        .request("POST", ITEMS)
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", "True")
        .key("1")
        .json(&body)
        .send()
        .await
        .expect(207)
        .json();
    let statuses: Vec<&Value> =
        failed.as_array().unwrap().iter().map(|result| &result["statusCode"]).collect();
    assert_eq!(statuses, [424, 409, 424]);
    client.request("GET", "/dbs/d/colls/c/docs/b").key("1").send().await.expect(404);
}

#[tokio::test]
async fn batches_that_read_look_at_session_tokens_and_versions() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let made = client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let etag = made.json()["_etag"].clone();
    let send = |is_atomic: &'static str, session: &'static str, operation: Value| {
        client
            .request("POST", ITEMS)
            .header("x-ms-cosmos-is-batch-request", "True")
            .header("x-ms-cosmos-batch-atomic", is_atomic)
            .header("x-ms-session-token", session)
            .key("1")
            .json(&json!([operation]))
            .send()
    };
    let (now, later) = ("0:-1#1", "0:-1#999999");
    let read = json!({"operationType": "Read", "id": "a"});
    send("True", now, read.clone()).await.expect(200);
    send("True", later, read).await.expect_sub(404, "1002");
    let write = json!({"operationType": "Upsert", "resourceBody": item});
    send("True", later, write).await.expect(200);
    let item = client.request("GET", "/dbs/d/colls/c/docs/a").key("1").send().await.expect(200);
    assert_ne!(item.json()["_etag"], etag);
    for name in ["ifMatch", "ifNoneMatch"] {
        for (version, status) in [(&item.json()["_etag"], 304), (&etag, 200)] {
            let mut read = json!({"operationType": "Read", "id": "a", "partitionKey": "[1]"});
            read[name] = version.clone();
            let found = send("False", now, read).await.expect(200).json();
            assert_eq!(found[0]["statusCode"], status, "{name}");
        }
    }
}

#[tokio::test]
async fn trap_28_offers_and_partition_deletes_are_signed_their_own_way() {
    let (_server, client) = Server::with_container().await;
    let offers = client.get("/offers").await.expect(200).rows();
    for offer in offers {
        let path = format!("/offers/{}", offer["_rid"].as_str().unwrap());
        client.get(&path).await.expect(200);
    }
    let item = json!({"id": "a", "pk": 1});
    client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let path = "/dbs/d/colls/c/operations/partitionkeydelete";
    client.request("POST", path).key("1").send().await.expect(200);
    client.request("GET", "/dbs/d/colls/c/docs/a").key("1").send().await.expect(404);
}

#[tokio::test]
async fn trap_29_ids_with_a_question_mark() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "x y?%é", "pk": 1});
    client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let read = client.request("GET", "/dbs/d/colls/c/docs/x%20y?%25%C3%A9").key("1").send().await;
    assert_eq!(read.expect(200).json()["id"], "x y?%é");
    let escaped = "/dbs/d/colls/c/docs/x%20y%3F%25%C3%A9/";
    client.request("DELETE", escaped).key("1").send().await.expect(204);
}

#[tokio::test]
async fn trap_30_missing_null_and_empty_keys_differ() {
    let (_server, client) = Server::with_container().await;
    let create = |key: &'static str, body: Value| {
        let client = client.clone();
        async move { client.request("POST", ITEMS).key(key).json(&body).send().await }
    };
    create("{}", json!({"id": "a"})).await.expect(201);
    create("null", json!({"id": "a", "pk": null})).await.expect(201);
    create("null", json!({"id": "b"})).await.expect_sub(400, "1001");
    create("", json!({"id": "b"})).await.expect(400);
    create(r#""\u00e9\ud83d\ude00""#, json!({"id": "a", "pk": "é😀"})).await.expect(201);
    let path = "/dbs/d/colls/c/docs/a";
    let missing = client.request("GET", path).key("{}").send().await.expect(200).json();
    assert!(missing.get("pk").is_none());
    let null = client.request("GET", path).key("null").send().await.expect(200).json();
    assert_eq!(null["pk"], Value::Null);
    client.request("GET", path).send().await.expect(400);
}

#[tokio::test]
async fn trap_32_header_and_body_agree_about_the_etag() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let made = client.request("POST", ITEMS).key("1").json(&item).send().await.expect(201);
    let etag = made.need("etag").to_owned();
    assert!(etag.starts_with('"') && etag.ends_with('"'));
    assert_eq!(made.json()["_etag"], etag);
    let path = "/dbs/d/colls/c/docs/a";
    let read = client.request("GET", path).key("1").header("if-none-match", &etag).send().await;
    let read = read.expect(304);
    assert!(read.body.is_empty());
    assert_eq!(read.need("etag"), etag);
    let unquoted = etag.trim_matches('"').to_owned();
    for etag in [unquoted, etag] {
        let request = client.request("PUT", path).key("1").header("if-match", &etag).json(&item);
        let status = request.send().await.status;
        assert!(status == 200 || status == 412);
    }
    let stale = client.request("PUT", path).key("1").header("if-match", "\"stale\"").json(&item);
    stale.send().await.expect(412).need("x-ms-session-token");
}

#[tokio::test]
async fn trap_33_a_star_has_three_meanings() {
    let (_server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    let upsert = || {
        let client = client.clone();
        let item = item.clone();
        async move {
            client
                .request("POST", ITEMS)
                .header("x-ms-documentdb-is-upsert", "true")
                .header("if-none-match", "*")
                .key("1")
                .json(&item)
                .send()
                .await
        }
    };
    upsert().await.expect(201);
    upsert().await.expect(412);
    let feed = client.request("GET", ITEMS).header("a-im", "Incremental feed");
    feed.header("if-none-match", "*").send().await.expect(304).need("etag");
    let ranges = client.request("GET", "/dbs/d/colls/c/pkranges").header("if-none-match", "*");
    ranges.send().await.expect(200);
}

#[tokio::test]
async fn trap_36_large_request_headers() {
    let server = Server::start().await;
    let client = server.client();
    for (bytes, status) in [(32 * 1024, 200), (64 * 1024, 200)] {
        let padding = "p".repeat(bytes);
        let request = client.request("GET", "/dbs").header("x-padding", &padding);
        request.send().await.expect(status);
    }
}

#[tokio::test]
async fn trap_37_the_account_answers_at_once() {
    let server = Server::start().await;
    let started = Instant::now();
    server.client().get("/").await.expect(200);
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn trap_38_an_absent_item_has_a_session_token_and_no_sub_status() {
    let (_server, client) = Server::with_container().await;
    let absent = client.request("GET", "/dbs/d/colls/c/docs/a").key("1").send().await.expect(404);
    assert!(absent.need("x-ms-session-token").starts_with("0:-1#"));
    assert_eq!(absent.header("x-ms-substatus"), None);
    let owner = client.request("GET", "/dbs/d/colls/gone/docs/a").key("1").send().await;
    owner.expect_sub(404, "1003");
}

#[tokio::test]
async fn trap_39_hash_version_1_has_one_range() {
    let server = Server::start().await;
    let client = server.client();
    client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    let create = |id: &'static str, version: u32| {
        let client = client.clone();
        async move {
            let key = json!({"paths": ["/pk"], "kind": "Hash", "version": version});
            client
                .request("POST", "/dbs/d/colls")
                .header("x-ms-offer-throughput", "30000")
                .json(&json!({"id": id, "partitionKey": key}))
                .send()
                .await
                .expect(201);
            let path = format!("/dbs/d/colls/{id}/pkranges");
            client.get(&path).await.expect(200).rows().len()
        }
    };
    assert_eq!(create("one", 1).await, 1);
    assert_eq!(create("three", 2).await, 3);
}

#[tokio::test]
async fn trap_40_minus_one_is_a_page_size_everywhere() {
    let (_server, client) = Server::with_container().await;
    for path in ["/dbs", "/dbs/d/colls", "/offers", ITEMS, "/dbs/d/colls/c/pkranges"] {
        client.request("GET", path).header("x-ms-max-item-count", "-1").send().await.expect(200);
    }
    let query = client.query(ITEMS, "SELECT * FROM c").header("x-ms-max-item-count", "-1");
    query.send().await.expect(200);
}
