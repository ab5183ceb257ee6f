//! Stored procedures, triggers and UDFs: their resources, and what running them looks like in
//! statuses, headers and bodies. What JavaScript can do is tested where it runs.

use serde_json::{Value, json};

use crate::client::{Client, Reply, Request};
use crate::server::{READ_KEY, Server, container};

const SPROCS: &str = "/dbs/d/colls/c/sprocs";
const TRIGGERS: &str = "/dbs/d/colls/c/triggers";
const UDFS: &str = "/dbs/d/colls/c/udfs";
const ITEMS: &str = "/dbs/d/colls/c/docs";

const FEEDS: [(&str, &str); 3] =
    [(SPROCS, "StoredProcedures"), (TRIGGERS, "Triggers"), (UDFS, "UserDefinedFunctions")];

fn script(id: &str) -> Value {
    json!({
        "id": id, "body": "function (x) { return x; }",
        "triggerType": "Pre", "triggerOperation": "All",
    })
}

/// A server with one procedure `s`.
async fn with_procedure(body: &str) -> (Server, Client) {
    let (server, client) = Server::with_container().await;
    client.post(SPROCS, &json!({"id": "s", "body": body})).await.expect(201);
    (server, client)
}

async fn trigger(client: &Client, id: &str, kind: &str, operation: &str, body: &str) {
    let trigger = json!({
        "id": id, "body": body, "triggerType": kind, "triggerOperation": operation,
    });
    client.post(TRIGGERS, &trigger).await.expect(201);
}

fn execute(client: &Client) -> Request<'_> {
    client.request("POST", "/dbs/d/colls/c/sprocs/s").key("1")
}

fn create<'a>(client: &'a Client, item: &Value) -> Request<'a> {
    client.request("POST", ITEMS).key("1").json(item)
}

/// The text in the document that the message of a script's error is.
#[track_caller]
fn exception(reply: &Reply) -> String {
    let message = reply.message();
    let document = message.strip_prefix("Message: ").expect("a message of a script");
    let (document, activity) = document.split_once("\r\nActivityId: ").unwrap();
    assert_eq!(activity, reply.need("x-ms-activity-id"));
    let document: Value = serde_json::from_str(document).unwrap();
    document["Errors"][0].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn scripts_are_resources() {
    let (_server, client) = Server::with_container().await;
    let rid = client.get("/dbs/d/colls/c").await.json()["_rid"].clone();
    for (feed, array) in FEEDS {
        let listed = client.get(feed).await.expect(200);
        assert_eq!(listed.json(), json!({"_rid": rid, array: [], "_count": 0}));
        let made = client.post(feed, &script("s")).await.expect(201);
        assert_eq!(made.json()["_etag"], made.need("etag"));
        assert_eq!(made.json()["body"], script("s")["body"]);
        assert_eq!(made.need("x-ms-alt-content-path"), "dbs/d/colls/c");
        assert_eq!(made.need("x-ms-content-path"), rid);
        assert_eq!(made.need("x-ms-documentdb-partitionkeyrangeid"), "0");
        client.post(feed, &script("s")).await.expect(409);
        let path = format!("{feed}/s");
        let read = client.get(&path).await.expect(200);
        assert_eq!(read.json(), made.json());
        let known = client.request("GET", &path).header("if-none-match", made.need("etag"));
        known.send().await.expect(304);
        let self_link = format!("/{}", made.json()["_self"].as_str().unwrap());
        let keyword = feed.rsplit('/').next().unwrap();
        assert!(self_link.contains(&format!("/{keyword}/")), "{self_link}");
        let upsert = client.request("POST", feed).header("x-ms-documentdb-is-upsert", "true");
        upsert.json(&script("s")).send().await.expect(200);
        let upsert = client.request("POST", feed).header("x-ms-documentdb-is-upsert", "true");
        upsert.json(&script("t")).send().await.expect(201);
        let text = "SELECT * FROM s WHERE s.id = 't'";
        assert_eq!(client.query(feed, text).send().await.expect(200).rows()[0]["id"], "t");
        let stale = client.request("PUT", &path).header("if-match", "\"stale\"");
        stale.json(&script("s")).send().await.expect(412);
        client.request("PUT", &path).json(&script("u")).send().await.expect(200);
        client.get(&path).await.expect(404);
        let page = client.request("GET", feed).header("x-ms-max-item-count", "1");
        let page = page.send().await.expect(200);
        assert_eq!(page.rows().len(), 1);
        let rest = client.request("GET", feed);
        let rest = rest.header("x-ms-continuation", page.need("x-ms-continuation"));
        assert_eq!(rest.send().await.expect(200).rows().len(), 1);
        client.delete(&format!("{feed}/u")).await.expect(204);
        client.delete(&format!("{feed}/u")).await.expect(404);
    }
}

#[tokio::test]
async fn scripts_without_an_owner_or_a_body() {
    let (_server, client) = Server::with_container().await;
    for (feed, _) in FEEDS {
        client.post(feed, &json!({"id": "s"})).await.expect(400);
        client.post(feed, &json!({"id": "s", "body": 1})).await.expect(400);
        client.post(feed, &json!({"body": "function () {}"})).await.expect(400);
        let absent = feed.replace("/c/", "/absent/");
        client.post(&absent, &script("s")).await.expect_sub(404, "1003");
        client.get(&absent).await.expect_sub(404, "1003");
        let stale = client.request("GET", feed);
        let stale = stale.header("x-ms-cosmos-intended-collection-rid", "AAAAAIAAAAA=");
        stale.send().await.expect_sub(400, "1024");
        client.request("PATCH", &format!("{feed}/s")).send().await.expect(405);
    }
    for path in [TRIGGERS, UDFS] {
        client.post(&format!("{path}/s"), &json!([])).await.expect(405);
    }
    let quota = client.request("GET", "/dbs/d/colls/c");
    client.post(SPROCS, &script("s")).await.expect(201);
    let read = quota.header("x-ms-documentdb-populatequotainfo", "True").send().await.expect(200);
    assert!(read.need("x-ms-resource-usage").contains("storedProcedures=1;triggers=0;"));
    assert!(read.need("x-ms-resource-quota").contains("storedProcedures=100;triggers=25;"));
}

#[tokio::test]
async fn a_script_may_be_as_large_as_a_body() {
    let (_server, client) = Server::with_container().await;
    let limit = 2 * 1024 * 1024;
    let sized = |bytes: usize| {
        let empty = json!({"id": "s", "body": "function () {} // "}).to_string().len();
        let padding = "x".repeat(bytes - empty);
        json!({"id": "s", "body": format!("function () {{}} // {padding}")})
    };
    assert_eq!(sized(limit).to_string().len(), limit);
    let upsert = |body: Value| {
        let client = client.clone();
        async move {
            let request =
                client.request("POST", SPROCS).header("x-ms-documentdb-is-upsert", "true");
            request.json(&body).send().await
        }
    };
    upsert(sized(limit - 1)).await.expect(201);
    upsert(sized(limit)).await.expect(200);
    upsert(sized(limit + 1)).await.expect(413);
}

#[tokio::test]
async fn who_may_manage_and_execute() {
    let (server, client) =
        with_procedure("function () { getContext().getResponse().setBody(1); }").await;
    client.post("/dbs/d/colls", &container("other", &["/pk"])).await.expect(201);
    client.post("/dbs/d/users", &json!({"id": "u"})).await.expect(201);
    let reader = Client::new(server.address, READ_KEY);
    reader.get(SPROCS).await.expect(200);
    reader.post(SPROCS, &script("t")).await.expect(403);
    execute(&reader).send().await.expect(403);
    let holder = |id: &'static str, permission: Value| {
        let client = client.clone();
        async move {
            let mut body = permission;
            body["id"] = json!(id);
            let made = client.post("/dbs/d/users/u/permissions", &body).await.expect(201).json();
            client.with_token(made["_token"].as_str().unwrap())
        }
    };
    let read = holder("r", json!({"permissionMode": "Read", "resource": "dbs/d/colls/c"})).await;
    read.get("/dbs/d/colls/c/sprocs/s").await.expect(200);
    execute(&read).send().await.expect(403);
    let link = "dbs/d/colls/c/sprocs/s";
    let one = holder("o", json!({"permissionMode": "All", "resource": link})).await;
    execute(&one).send().await.expect(200);
    one.get(SPROCS).await.expect(403);
    one.post("/dbs/d/colls/c/sprocs/t", &json!([])).await.expect(403);
    let keyed = json!({
        "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": [1],
    });
    let keyed = holder("k", keyed).await;
    execute(&keyed).send().await.expect(200);
    let other = keyed.request("POST", "/dbs/d/colls/c/sprocs/s").key("2");
    other.send().await.expect(403);
    keyed.post(SPROCS, &script("t")).await.expect(403);
    keyed.get(SPROCS).await.expect(403);
    let elsewhere =
        holder("e", json!({"permissionMode": "All", "resource": "dbs/d/colls/other"})).await;
    execute(&elsewhere).send().await.expect(403);
}

#[tokio::test]
async fn a_syntax_error_is_found_when_a_script_is_made() {
    let (_server, client) = Server::with_container().await;
    for (feed, _) in FEEDS {
        let mut body = script("s");
        body["body"] = json!("function ( {");
        let refused = client.post(feed, &body).await.expect(400);
        assert_eq!(refused.json()["code"], "BadRequest");
        client.post(feed, &script("s")).await.expect(201);
        let replace = client.request("PUT", &format!("{feed}/s")).json(&body).send().await;
        replace.expect(400);
        let kept = client.get(&format!("{feed}/s")).await.expect(200).json();
        assert_eq!(kept["body"], script("s")["body"]);
    }
}

#[tokio::test]
async fn arguments_and_the_answer() {
    let (_server, client) = with_procedure(
        "function () { getContext().getResponse().setBody(Array.prototype.slice.call(arguments)); }",
    )
    .await;
    let none = execute(&client).send().await.expect(200);
    assert_eq!(none.json(), json!([]));
    let sent = json!(["a", 1, null, true, {"b": [2, "é"]}]);
    let reply = execute(&client).json(&sent).send().await.expect(200);
    assert_eq!(reply.json(), sent);
    assert_eq!(reply.need("content-type"), "application/json");
    assert!(reply.header("etag").is_none());
    assert_eq!(reply.need("x-ms-alt-content-path"), "dbs/d/colls/c");
    assert!(reply.need("x-ms-session-token").starts_with("0:"));
    assert!(reply.need("x-ms-request-charge").parse::<f64>().unwrap() > 0.0);
    for body in ["{}", "null", "\"a\"", "1", "[1", "[1] [2]"] {
        execute(&client).bytes(body.as_bytes()).send().await.expect(400);
    }
    execute(&client).header("content-type", "text/plain").send().await.expect(200);
}

#[tokio::test]
async fn a_procedure_without_an_answer_has_an_empty_body() {
    let (_server, client) = with_procedure("function () { return 'ignored'; }").await;
    let reply = execute(&client).json(&json!([])).send().await.expect(200);
    assert!(reply.body.is_empty());
    assert_eq!(reply.need("content-length"), "0");
}

#[tokio::test]
async fn a_procedure_needs_a_whole_partition_key() {
    let (_server, client) =
        with_procedure("function () { getContext().getResponse().setBody('ran'); }").await;
    client.post("/dbs/d/colls/c/sprocs/s", &json!([])).await.expect(400);
    let keyed = |key: &'static str| {
        let request = client.request("POST", "/dbs/d/colls/c/sprocs/s");
        request.header("x-ms-documentdb-partitionkey", key).send()
    };
    for key in ["[{}]", "[null]", "[\"\\u00e9\"]"] {
        assert_eq!(keyed(key).await.expect(200).json(), "ran", "{key}");
    }
    for key in ["p", "[]", "[1,2]"] {
        keyed(key).await.expect(400);
    }
    let absent = client.request("POST", "/dbs/d/colls/c/sprocs/none").key("1").send().await;
    absent.expect(404);
    let owner = client.request("POST", "/dbs/d/colls/none/sprocs/s").key("1").send().await;
    owner.expect_sub(404, "1003");
}

#[tokio::test]
async fn logs_travel_escaped_and_only_on_request() {
    let (_server, client) = with_procedure(
        "function (fails) { console.log('50% é\\n'); console.log('next'); if (fails) throw new Error('x'); }",
    )
    .await;
    let log = "x-ms-documentdb-script-log-results";
    let silent = execute(&client).send().await.expect(200);
    assert!(silent.header(log).is_none());
    let logged = |value| execute(&client).header("x-ms-documentdb-script-enable-logging", value);
    for value in ["true", "True"] {
        let reply = logged(value).send().await.expect(200);
        assert_eq!(reply.need(log), "50%25%20%C3%A9%0Anext");
    }
    assert!(logged("false").send().await.expect(200).header(log).is_none());
    let failed = logged("true").json(&json!([true])).send().await.expect(400);
    assert_eq!(failed.need(log), "50%25%20%C3%A9%0Anext");
}

#[tokio::test]
async fn an_exception_is_400_with_its_number_as_sub_status() {
    let (_server, client) = with_procedure("function (number, text) { throw number === null ? new Error(text) : new Error(number, text); }").await;
    let failed = execute(&client).json(&json!([null, "say \"no\""])).send().await.expect(400);
    assert!(failed.header("x-ms-substatus").is_none());
    assert_eq!(failed.json()["code"], "BadRequest");
    let text = exception(&failed);
    assert!(text.starts_with("Encountered exception while executing function."), "{text}");
    assert!(text.contains("say \"no\""), "{text}");
    assert!(failed.need("x-ms-request-charge").parse::<f64>().unwrap() > 0.0);
    for number in [404, 409, 1234] {
        let failed = execute(&client).json(&json!([number, "text"])).send().await;
        failed.expect_sub(400, &number.to_string());
    }
}

#[tokio::test]
async fn a_failed_write_rolls_back_with_its_number() {
    let (_server, client) = with_procedure(
        "function () { \
            var c = getContext().getCollection(); \
            c.createDocument(c.getSelfLink(), {id: 'new', pk: 1}); \
            c.createDocument(c.getSelfLink(), {id: 'a', pk: 1}); \
        }",
    )
    .await;
    create(&client, &json!({"id": "a", "pk": 1})).send().await.expect(201);
    execute(&client).send().await.expect_sub(400, "409");
    client.request("GET", "/dbs/d/colls/c/docs/new").key("1").send().await.expect(404);
    client.delete("/dbs/d/colls/c/docs/a").await.expect(400);
    client.request("DELETE", "/dbs/d/colls/c/docs/a").key("1").send().await.expect(204);
    let reply = execute(&client).send().await.expect(200);
    assert!(reply.body.is_empty());
    client.request("GET", "/dbs/d/colls/c/docs/new").key("1").send().await.expect(200);
}

#[tokio::test]
async fn a_pre_trigger_changes_what_is_written() {
    let (_server, client) = Server::with_container().await;
    let body = "function () { var r = getContext().getRequest(); var b = r.getBody(); b.seen = r.getOperationType(); r.setBody(b); }";
    trigger(&client, "t", "Pre", "All", body).await;
    fn named(request: Request<'_>) -> Request<'_> {
        request.header("x-ms-documentdb-pre-trigger-include", "t")
    }
    let item = json!({"id": "a", "pk": 1});
    let made = named(create(&client, &item)).send().await.expect(201);
    assert_eq!(made.json()["seen"], "Create");
    assert_eq!(made.json()["_etag"], made.need("etag"));
    let upsert = create(&client, &item).header("x-ms-documentdb-is-upsert", "true");
    assert_eq!(named(upsert).send().await.expect(200).json()["seen"], "Upsert");
    let path = "/dbs/d/colls/c/docs/a";
    let replace = client.request("PUT", path).key("1").json(&item);
    assert_eq!(named(replace).send().await.expect(200).json()["seen"], "Replace");
    let minimal = create(&client, &json!({"id": "b", "pk": 1})).header("prefer", "return=minimal");
    assert!(named(minimal).send().await.expect(201).body.is_empty());
    let plain = create(&client, &json!({"id": "c", "pk": 1})).send().await.expect(201).json();
    assert!(plain.get("seen").is_none(), "a trigger runs only where it is named");
}

#[tokio::test]
async fn a_post_trigger_changes_what_is_answered() {
    let (_server, client) = Server::with_container().await;
    let body = "function () { var r = getContext().getResponse(); var b = r.getBody(); r.setBody({was: b ? b.id : null}); }";
    trigger(&client, "t", "Post", "All", body).await;
    let header = "x-ms-documentdb-post-trigger-include";
    let made = create(&client, &json!({"id": "a", "pk": 1})).header(header, "t").send().await;
    let made = made.expect(201);
    assert_eq!(made.json(), json!({"was": "a"}));
    let path = "/dbs/d/colls/c/docs/a";
    let read = client.request("GET", path).key("1").send().await.expect(200);
    assert_eq!((read.json()["id"].clone(), read.need("etag")), (json!("a"), made.need("etag")));
    let deleted = client.request("DELETE", path).key("1").header(header, "t").send().await;
    assert!(deleted.expect(204).body.is_empty());
}

#[tokio::test]
async fn triggers_that_cannot_run() {
    let (_server, client) = Server::with_container().await;
    trigger(&client, "pre", "Pre", "Create", "function () {}").await;
    trigger(&client, "post", "Post", "All", "function () { throw new Error(403, 'no'); }").await;
    let (before, after) =
        ("x-ms-documentdb-pre-trigger-include", "x-ms-documentdb-post-trigger-include");
    let item = json!({"id": "a", "pk": 1});
    for (header, names) in
        [(before, "absent"), (before, "post"), (after, "pre"), (before, "pre,pre"), (after, "x, y")]
    {
        let reply = create(&client, &item).header(header, names).send().await;
        assert_eq!(reply.status, 400, "{header}: {names}");
    }
    let failed = create(&client, &item).header(after, "post").send().await.expect_sub(400, "403");
    assert!(exception(&failed).contains("no"));
    client.request("GET", "/dbs/d/colls/c/docs/a").key("1").send().await.expect(404);
    create(&client, &item).header(before, "pre").send().await.expect(201);
    let replace = client.request("PUT", "/dbs/d/colls/c/docs/a").key("1").json(&item);
    replace.header(before, "pre").send().await.expect(400);
    let batch = client.request("POST", ITEMS).key("1").header(before, "pre");
    let batch = batch
        .header("x-ms-cosmos-is-batch-request", "true")
        .header("x-ms-cosmos-batch-atomic", "true");
    let operations = json!([{"operationType": "Create", "resourceBody": {"id": "b", "pk": 1}}]);
    batch.json(&operations).send().await.expect(400);
    let none = create(&client, &json!({"id": "b", "pk": 1}));
    none.header(before, "").header(after, " ").send().await.expect(201);
}

#[tokio::test]
async fn udfs_in_queries() {
    let (_server, client) = Server::with_container().await;
    client.post(UDFS, &json!({"id": "twice", "body": "function (n) { return 2 * n; }"})).await;
    let throws = json!({"id": "throws", "body": "function () { throw new Error('no'); }"});
    client.post(UDFS, &throws).await.expect(201);
    for n in 1..=3 {
        let item = json!({"id": n.to_string(), "pk": 1, "n": n});
        create(&client, &item).send().await.expect(201);
    }
    let text = "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 2";
    let rows = client.query(ITEMS, text).key("1").send().await.expect(200).rows();
    assert_eq!(rows, [4, 6]);
    let paged = client.query(ITEMS, text).key("1").header("x-ms-max-item-count", "1");
    let page = paged.send().await.expect(200);
    assert_eq!(page.rows(), [4]);
    let next = client.query(ITEMS, text).key("1");
    let next = next.header("x-ms-continuation", page.need("x-ms-continuation"));
    assert_eq!(next.send().await.expect(200).rows(), [6]);
    for text in ["SELECT VALUE udf.absent(c.n) FROM c", "SELECT VALUE udf.throws() FROM c"] {
        client.query(ITEMS, text).key("1").send().await.expect(400);
    }
}
