//! Goal: every kind of operation costs what the price list says, the same on every store, and its
//! receipt says why.
//! Method: operations on small items, each with its whole receipt; queries of the blog platform on
//! a small copy of it, with the work they must have been charged for.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::*;
use engine::ops::*;
use engine::{Container, Engine, Line, Options, Profile, Receipt};
use model::partition_key::PartitionKey;
use serde_json::json;

/// A receipt as people read it.
fn table(charge: RequestCharge, receipt: Option<Box<Receipt>>) -> String {
    fn write(lines: &[Line], depth: usize, out: &mut Vec<String>) {
        for line in lines {
            let indent = "  ".repeat(depth);
            out.push(format!("{indent}{} × {} = {}", line.count, line.what, line.charge));
            write(&line.lines, depth + 1, out);
        }
    }
    let receipt = receipt.unwrap();
    assert_eq!(receipt.total(), charge);
    let mut lines = vec![charge.to_string()];
    write(&receipt.lines, 0, &mut lines);
    lines.join("\n")
}

struct Shop<'a> {
    db: &'a Db,
    c: Arc<Container>,
}

impl Shop<'_> {
    fn ctx(&self) -> base::Ctx {
        self.db.ctx().with_receipt(true)
    }

    fn write(&self, kind: WriteKind) -> String {
        let guard = now(self.db.engine.lock(&self.c, &PartitionKey::parse("[\"p\"]").unwrap()));
        let answer = self.db.engine.write(&self.ctx(), guard, plain(kind)).wait().unwrap();
        table(answer.charge, answer.receipt)
    }

    fn read(&self, id: &str, known: EtagCondition) -> String {
        let key = PartitionKey::parse("[\"p\"]").unwrap();
        let answer =
            self.db.engine.read_item(&self.ctx(), &self.c, &key, id, &known, None).unwrap();
        table(answer.charge, answer.receipt)
    }

    fn batch(&self, operations: Vec<BatchOperation>) -> String {
        let guard = now(self.db.engine.lock(&self.c, &PartitionKey::parse("[\"p\"]").unwrap()));
        let answer = self.db.engine.batch(&self.ctx(), guard, operations).wait().unwrap();
        table(answer.charge, answer.receipt)
    }
}

/// What was asked and what it cost, as in the golden file.
#[derive(Default)]
struct Script(String);

impl Script {
    fn note(&mut self, what: &str, table: String) {
        self.0 += &format!("# {what}\n{table}\n\n");
    }

    /// `UPDATE_GOLDEN=1` writes the file anew; the difference is for a person to judge.
    fn check(&self, name: &str) {
        let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &self.0).unwrap();
        }
        let expect = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(self.0 == expect, "{name} changed; look at the difference after UPDATE_GOLDEN=1");
    }
}

#[test]
fn receipts_of_point_operations() {
    on_every_store(|db| {
        let unique = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}});
        let shop = Shop { db, c: db.container(unique) };
        let mut script = Script::default();
        let item = json!({"id": "a", "pk": "p", "mail": "m", "tags": ["x", "x", "y"]});
        let text = "x".repeat(1500);
        let moved = json!({"id": "a", "pk": "p", "mail": "n", "tags": ["x"], "text": text});
        let created = shop.write(WriteKind::Create(draft(&item)));
        script.note("create: five different leaves, the key and the unique key", created);
        script.note("read", shop.read("a", EtagCondition::None));
        let replaced = shop.write(WriteKind::Replace(item_id("a"), draft(&moved)));
        script.note("replace: another mail, a tag less, a text more; the unique key", replaced);
        script.note("upsert of the same", shop.write(WriteKind::Upsert(draft(&moved))));
        let patch = item::Value::parse(br#"[{"op":"set","path":"/a","value":1}]"#).unwrap();
        let patch = item::patch::parse(&patch).unwrap();
        script.note("patch", shop.write(WriteKind::Patch(item_id("a"), patch)));
        let etag = db.read(&shop.c, "[\"p\"]", "a").unwrap()["_etag"].as_str().unwrap().to_owned();
        script.note("read what is known", shop.read("a", EtagCondition::parse(&etag)));
        let other = |id: &str| create(json!({"id": id, "pk": "p", "mail": id}));
        let reads = BatchOperation::Read(item_id("b"), EtagCondition::None);
        script.note("batch", shop.batch(vec![other("b"), reads]));
        script.note("batch that is undone", shop.batch(vec![other("c"), other("b"), other("d")]));
        script.note("delete", shop.write(WriteKind::Delete(item_id("a"))));
        let (ctx, page) = (shop.ctx(), PageRequest::default());
        let feed = db.engine.read_feed(&ctx, &shop.c, &Scope::Container, &page).unwrap();
        script.note("read feed", table(feed.charge, feed.receipt));
        let mut changes = ChangeFeedRequest {
            mode: ChangeFeedMode::LatestVersion,
            start: ChangeFeedStart::Beginning,
            is_enveloped: false,
            items_max: None,
            session: None,
        };
        let page = db.engine.change_feed(&ctx, &shop.c, &Scope::Container, &changes).unwrap();
        script.note("change feed", table(page.charge, page.receipt));
        changes.start = ChangeFeedStart::Etag(page.etag);
        let page = db.engine.change_feed(&ctx, &shop.c, &Scope::Container, &changes).unwrap();
        script.note("change feed without changes", table(page.charge, page.receipt));
        script.check("receipts.golden");
    });
}

/// Users with posts, comments and likes in one container of three physical partitions.
fn blog(db: &Db) -> Arc<Container> {
    let indexing = json!({
        "excludedPaths": [{"path": "/text/?"}],
        "includedPaths": [{"path": "/*"}],
    });
    let definition = json!({"indexingPolicy": indexing});
    let c = db.container_with(definition, Some(Throughput::Manual(30_000)));
    for n in 0..600 {
        let kind = ["post", "comment", "like", "like"][n % 4];
        let date = format!("2019-{:05}", (n * 7919) % 600);
        let body = json!({
            "id": format!("i{n:03}"),
            "pk": format!("k{}", n % 40),
            "type": kind,
            "user": format!("u{}", n % 12),
            "date": date,
            "size": n % 50,
            "text": "t".repeat(n % 97),
        });
        db.create(&c, body).unwrap();
    }
    c
}

const QUERIES: [(&str, &str); 23] = [
    ("a point", "SELECT * FROM c WHERE c.id = 'i004' AND c.pk = 'k4'"),
    ("a logical partition", "SELECT * FROM c WHERE c.pk = 'k4'"),
    ("one kind of a logical partition", "SELECT * FROM c WHERE c.pk = 'k4' AND c.type = 'post'"),
    (
        "in the order of a logical partition",
        "SELECT TOP 3 * FROM c WHERE c.pk = 'k4' ORDER BY c.date",
    ),
    ("a range of a logical partition", "SELECT * FROM c WHERE c.pk = 'k4' AND c.size < 10"),
    ("two seeks in every partition", "SELECT * FROM c WHERE c.type = 'post' AND c.user = 'u4'"),
    ("a seek and a range", "SELECT * FROM c WHERE c.type = 'post' AND c.size > 40"),
    ("a range", "SELECT VALUE c.id FROM c WHERE c.size >= 48"),
    (
        "five seeks",
        "SELECT * FROM c WHERE c.type = 'post' AND c.user = 'u4' AND c.size = 4 AND \
      c.id = 'i004' AND c.date = 'x'",
    ),
    ("the newest posts", "SELECT TOP 10 * FROM c WHERE c.type = 'post' ORDER BY c.date DESC"),
    ("all values of a path are asked", "SELECT * FROM c WHERE CONTAINS(c.user, '1')"),
    (
        "all values of a path in a logical partition are asked",
        "SELECT * FROM c WHERE c.pk = 'k4' AND c.date LIKE '%1%'",
    ),
    ("values that are not one", "SELECT VALUE c.id FROM c WHERE c.user != 'u4'"),
    ("whatever has a value", "SELECT TOP 5 VALUE c.id FROM c WHERE IS_DEFINED(c.size)"),
    ("changed before it is compared", "SELECT * FROM c WHERE UPPER(c.user) = 'U4'"),
    ("parts of items", "SELECT c.id, s FROM c JOIN s IN ObjectToArray(c) WHERE c.pk = 'k4'"),
    ("how many are asked", "SELECT VALUE COUNT(1) FROM c WHERE ENDSWITH(c.user, '4')"),
    ("without an index", "SELECT * FROM c WHERE c.text = 'ttt'"),
    ("how many", "SELECT VALUE COUNT(1) FROM c"),
    ("how many of a logical partition", "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'k4'"),
    ("how many posts", "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'post'"),
    ("which kinds", "SELECT DISTINCT VALUE c.type FROM c"),
    ("how large", "SELECT VALUE SUM(c.size) FROM c WHERE c.type = 'post'"),
];

fn engine_of(db: &Db, profile: Profile, cache_bytes: u64) -> Engine {
    let options = Options {
        clock: db.clock.clone(),
        is_background: false,
        profile,
        ..Options::new(cache_bytes)
    };
    Engine::open(db.store.clone(), options).unwrap()
}

#[test]
fn receipts_of_queries() {
    let profiles =
        [(Profile::Of2019, "queries-2019.golden"), (Profile::Modern, "queries-modern.golden")];
    on_every_store(|db| {
        blog(db);
        for (profile, name) in profiles {
            // Whether items are in memory makes no difference, nor does having asked before.
            for cache_bytes in [0, 64 << 20] {
                let engine = engine_of(db, profile, cache_bytes);
                let mut script = Script::default();
                for _ in 0..2 {
                    script = Script::default();
                    for (what, text) in QUERIES {
                        let page = ask(&engine, text, None, 100);
                        let text = format!("{what}\n# {text}");
                        let count = format!("{} rows, ", page.rows.len());
                        script.note(&text, count + &table(page.charge, page.receipt));
                    }
                }
                script.check(name);
            }
        }
    });
}

fn ask(engine: &Engine, text: &str, continuation: Option<String>, items_max: usize) -> FeedPage {
    let c = engine.container("d", "c").unwrap();
    let ctx = engine.ctx(base::Deadline::never()).with_receipt(true);
    let query = QueryText { text: text.into(), parameters: Vec::new() };
    let items_max = Some(items_max);
    let page =
        PageRequest { is_scan_enabled: true, continuation, items_max, ..PageRequest::default() };
    engine.query_items(&ctx, &c, &Scope::Container, &query, &page).unwrap()
}

/// Under 2019 each partition walks its order until its first page of posts has come together.
#[test]
fn an_ordered_fan_out_does_what_the_price_list_counts() {
    let db = Db::memory();
    let c = blog(&db);
    let mut items: Vec<Vec<(String, bool, u64)>> = vec![Vec::new(); 3];
    let all = ask(&db.engine, "SELECT * FROM c", None, 1000).rows;
    assert_eq!(all.len(), 600);
    for row in &all {
        let item: serde_json::Value = serde_json::from_slice(row).unwrap();
        let key = PartitionKey::parse(&json!([item["pk"]]).to_string()).unwrap();
        let date = item["date"].as_str().unwrap().to_owned();
        items[c.partition_of(&key) as usize].push((date, item["type"] == "post", row.len() as u64));
    }
    let text = "SELECT TOP 6 * FROM c WHERE c.type = 'post' ORDER BY c.date DESC";
    let meter = ask(&db.engine, text, None, 100).meter;
    let (mut entries, mut loaded, mut bytes) = (0, 0, 0);
    for partition in &mut items {
        partition.sort_by(|a, b| b.0.cmp(&a.0));
        // Six rows of three partitions: two each, five times that and at most six are asked for.
        let mut posts = 0;
        let needed = partition.iter().take_while(|(_, is_post, _)| {
            let is_open = posts < 6;
            posts += u64::from(*is_post);
            is_open
        });
        for (_, is_post, length) in needed {
            entries += 1;
            loaded += u64::from(*is_post);
            bytes += if *is_post { *length } else { 0 };
        }
    }
    assert_eq!((meter.terms_read, meter.items_read, meter.bytes_read), (entries, loaded, bytes));
    assert_eq!((meter.partitions_visited, meter.pages_resumed, loaded), (3, 0, 18));
}

/// Pages of a query that streams cost together what it costs at once, but for going on.
#[test]
fn pages_add_up() {
    let db = Db::memory();
    blog(&db);
    let text = "SELECT * FROM c WHERE c.type = 'post' AND c.size < 30";
    let whole = ask(&db.engine, text, None, 1000);
    for items_max in [1, 3, 7, 50] {
        let (mut sum, mut continuation) = (base::MeterReading::default(), None);
        loop {
            let page = ask(&db.engine, text, continuation, items_max);
            sum += page.meter;
            continuation = page.continuation;
            if continuation.is_none() {
                break;
            }
        }
        let resumed = std::mem::take(&mut sum.pages_resumed);
        assert_eq!(sum, whole.meter, "in pages of {items_max}");
        assert!(resumed > 0 && whole.meter.pages_resumed == 0);
    }
}

/// A post of 1,810 bytes as it is stored, and a comment on it of 1,899.
fn post_and_comment() -> (serde_json::Value, serde_json::Value) {
    // What a stored version has besides its own text: 205 bytes of system properties, about.
    let mut post = json!({
        "id": "post", "pk": "p", "type": "post", "userId": "u", "userUsername": "name",
        "title": "t", "content": "", "commentCount": 0, "likeCount": 0, "creationDate": "d",
    });
    let mut comment = json!({
        "id": "comment", "pk": "p", "type": "comment", "userId": "u", "userUsername": "name",
        "content": "", "creationDate": "d",
    });
    let fill = |item: &mut serde_json::Value, bytes: usize| {
        let missing = bytes - draft(item).text_len();
        item["content"] = "x".repeat(missing).into();
        assert_eq!(draft(item).text_len(), bytes);
    };
    fill(&mut post, 1810);
    fill(&mut comment, 1899);
    (post, comment)
}

/// The script of the blog platform costs what its table was calibrated to, operation by operation.
#[test]
fn a_script_that_adds_a_comment() {
    on_every_store(|db| {
        let c = db.container(json!({}));
        let (post, comment) = post_and_comment();
        db.create(&c, post).unwrap();
        let procedure = json!({"id": "createComment", "body": "function (postId, comment) {
            var collection = getContext().getCollection();
            var link = collection.getAltLink() + '/docs/' + postId;
            collection.readDocument(link, function (error, post) {
                if (error) throw error;
                post.commentCount++;
                collection.replaceDocument(post._self, post, function (error) {
                    if (error) throw error;
                    collection.createDocument(collection.getSelfLink(), comment);
                });
            });
        }"});
        let owner = engine::Owner::container("d", "c");
        db.engine
            .create_resource(&db.ctx(), ResourceKind::StoredProcedure, owner, &procedure, false)
            .unwrap();
        let run = || {
            let guard = now(db.engine.lock(&c, &PartitionKey::parse("[\"p\"]").unwrap()));
            let arguments = [json!("post"), comment.clone()];
            let parse =
                |json: &serde_json::Value| item::Value::parse(json.to_string().as_bytes()).unwrap();
            let execution = Execution {
                procedure: "createComment".into(),
                arguments: arguments.iter().map(parse).collect(),
                is_logging: false,
            };
            db.engine.execute(&db.ctx().with_receipt(true), guard, execution).wait()
        };
        let answer = run().unwrap();
        assert_eq!(answer.charge.to_string(), "15.51");
        let mut script = Script::default();
        let table = table(answer.charge, answer.receipt);
        script.note("a script that reads, replaces and creates", without_steps(&table));
        script.check("script.golden");

        // The comment exists now: what was done until then is paid for.
        let Err(engine::Error::Script(error)) = run() else { panic!("the id is taken") };
        assert_eq!(error.receipt.unwrap().total(), error.charge);
        assert!(error.charge > RequestCharge::ONE * 10, "{}", error.charge);
        let spent = db.engine.usage()[0].hottest[0].1;
        let created = db.engine.usage()[0].partitions[0].spent;
        assert_eq!(spent, created, "everything was of one key");
        assert_eq!(spent.to_string(), "35.65", "the post, the script, and as far as it came again");
    });
}

/// Lines without steps: how many a script takes is the interpreter's business, and they cost little.
fn without_steps(table: &str) -> String {
    table.lines().filter(|line| !line.contains("script steps")).collect::<Vec<_>>().join("\n")
}

/// Triggers work in the transaction of their write, functions for their query; who is refused pays
/// for what was done until then.
#[test]
fn receipts_of_triggers_functions_and_refusals() {
    on_every_store(|db| {
        let shop = Shop { db, c: db.container(json!({})) };
        let owner = || engine::Owner::container("d", "c");
        let upload = |kind, body: serde_json::Value| {
            db.engine.create_resource(&db.ctx(), kind, owner(), &body, false).unwrap();
        };
        let script = "function () {
            __.queryDocuments(__.getSelfLink(), 'SELECT * FROM c WHERE c.n = 1', function () {});
        }";
        for (id, kind) in [("before", "Pre"), ("after", "Post")] {
            let body =
                json!({"id": id, "body": script, "triggerType": kind, "triggerOperation": "All"});
            upload(ResourceKind::Trigger, body);
        }
        upload(ResourceKind::Udf, json!({"id": "twice", "body": "function (n) { return 2 * n; }"}));
        let write = |kind: WriteKind, triggers: Triggers| {
            let guard = now(db.engine.lock(&shop.c, &PartitionKey::parse("[\"p\"]").unwrap()));
            let write = db.engine.write_with_triggers(&shop.ctx(), guard, plain(kind), &triggers);
            match write.wait() {
                Ok(done) => table(done.answer.charge, done.answer.receipt),
                Err(engine::Error::AfterTriggers(refused)) => {
                    table(refused.charge, refused.receipt) + &format!("\n{}", refused.error)
                }
                Err(error) => panic!("{error}"),
            }
        };
        let item = |id: &str| WriteKind::Create(draft(&json!({"id": id, "pk": "p", "n": 1})));
        let both = || Triggers { pre: Some("before".into()), post: Some("after".into()) };
        let mut golden = Script::default();
        golden.note("create with two triggers", without_steps(&write(item("a"), both())));
        golden.note("the same again", without_steps(&write(item("a"), both())));
        let query = QueryText {
            text: "SELECT VALUE udf.twice(c.n) FROM c WHERE udf.twice(c.n) > 1".into(),
            parameters: Vec::new(),
        };
        let page = PageRequest::default();
        let run =
            db.engine.query_with_functions(&shop.ctx(), &shop.c, Scope::Container, &query, page);
        let page = run.wait().unwrap();
        golden
            .note("query that calls a function", without_steps(&table(page.charge, page.receipt)));
        golden.check("triggers.golden");

        let spent = db.engine.usage()[0].partitions[0].spent;
        let refusals = [
            (WriteKind::Create(draft(&json!({"id": "a", "pk": "p"}))), "1.24"),
            (WriteKind::Replace(item_id("b"), draft(&json!({"id": "b", "pk": "p"}))), "1"),
        ];
        for (kind, price) in refusals {
            let guard = now(db.engine.lock(&shop.c, &PartitionKey::parse("[\"p\"]").unwrap()));
            let error = db.engine.write(&shop.ctx(), guard, plain(kind)).wait().unwrap_err();
            assert_eq!(engine::charge::of_failure(&error).to_string(), price, "{error}");
        }
        let paid = db.engine.usage()[0].partitions[0].spent;
        assert!(paid > spent, "who looks at data pays, also for a refusal");
    });
}

/// A vector is one term and one more per KB, a geometry one for each cell that covers it, a text
/// one for each of its words.
#[test]
fn terms_of_other_indexes() {
    let db = Db::memory();
    let paths = |path: &str| json!([{"path": path}]);
    let c = db.container(json!({
        "indexingPolicy": {
            "includedPaths": [{"path": "/n/?"}],
            "excludedPaths": [{"path": "/*"}],
            "vectorIndexes": [{"path": "/vector", "type": "flat"}],
            "spatialIndexes": [{"path": "/place/*", "types": ["Point"]}],
            "fullTextIndexes": paths("/text"),
        },
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [{
            "path": "/vector", "dataType": "float32", "dimensions": 300,
            "distanceFunction": "cosine",
        }]},
        "fullTextPolicy": {"fullTextPaths": [{"path": "/text", "language": "en-US"}]},
    }));
    let terms = |answer: ItemAnswer| answer.charge.raw() / 400_000 - 26;
    let made = |id: &str, name: &str, value: serde_json::Value| {
        let mut body = json!({"id": id, "pk": "p", "n": 1});
        body[name] = value;
        terms(db.create(&c, body).unwrap())
    };
    let plain = made("a", "other", json!(1));
    assert_eq!(plain, 2 * 2 + 1, "id, n and the key");
    let vector = json!(vec![0; 300]);
    // 1,200 bytes are two KB, begun.
    assert_eq!(made("b", "vector", vector.clone()), plain + 1 + 2);
    assert_eq!(made("c", "vector", json!("none")), plain);
    assert_eq!(made("d", "text", json!("red fox and red hen")), plain + 3);
    let point = json!({"type": "Point", "coordinates": [10.75, 59.91]});
    let cells = made("e", "place", point) - plain;
    assert!((1..=8).contains(&cells), "{cells}");

    let replaced = |value: serde_json::Value| {
        let body = json!({"id": "b", "pk": "p", "n": 1, "vector": value});
        terms(db.replace(&c, "b", body).unwrap()) - 26
    };
    assert_eq!(replaced(vector), 0, "nothing changed");
    assert_eq!(replaced(json!(vec![1; 300])), 3 + 3, "removed and added");
    assert_eq!(replaced(json!(null)), 3, "removed");
}
