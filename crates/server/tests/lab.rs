//! Goal: the laboratory measures what an application would see: the same charges twice, copies that
//! are what their sources say, and failures that name what is wrong.
//! Method: the real binary with small workloads; pipelines are interrupted and taken over.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::sync::Arc;

use client::{Container, Key};
use common::{Server, fail, succeed, text};
use lab::pipeline::{LEASES, Runner};
use lab::target::Target;
use lab::{Data, Source};
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The budget that is checked in beside the blog, for the scale of these tests.
const BUDGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/blog/budget.toml");

fn cell<'j>(json: &'j Value, pattern: &str, model: &str) -> &'j Value {
    let cells = json["cells"].as_array().unwrap();
    let found = cells.iter().find(|cell| cell["pattern"] == pattern && cell["model"] == model);
    found.unwrap_or_else(|| panic!("{pattern} {model}"))
}

/// Everything of the cells that does not depend on time.
fn charges(json: &Value) -> Vec<Value> {
    let timeless = |cell: &Value| {
        let mut cell = cell.clone();
        for name in ["p50_ms", "p95_ms", "p99_ms", "propagation_ms"] {
            cell.as_object_mut().unwrap().shift_remove(name);
        }
        cell
    };
    json["cells"].as_array().unwrap().iter().map(timeless).collect()
}

#[test]
fn a_reduced_blog_in_three_models() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (first, second, report) = (path("1.json"), path("2.json"), path("r.html"));
    let reduced = ["lab", "run", "blog", "--scale", "0.00005", "--repeat", "1"];
    let output = ["--json", text(&first), "--report", text(&report)];
    let table = succeed(&[&reduced[..], &output].concat());
    assert!(table.contains("under the mix, RU per day"), "{table}");
    succeed(&[&reduced[..], &["--json", text(&second), "--budget", BUDGET]].concat());
    let (first, second) = (json_of(&first), json_of(&second));
    assert_eq!(charges(&first), charges(&second), "the same seed, the same charges");
    assert_eq!((&first["workload"], &first["seed"]), (&json!("blog"), &json!(2019)));
    assert_eq!(first["cells"].as_array().unwrap().len(), 33);
    for (pattern, ru) in [("C1", 5.71), ("Q1", 1.0), ("C2", 8.76), ("C3", 8.57), ("C4", 7.05)] {
        let cell = cell(&first, pattern, "v1");
        assert_eq!((cell["ru"].as_f64(), cell["requests"].as_u64()), (Some(ru), Some(1)), "{cell}");
    }
    assert_published(&first);
    for cell in first["cells"].as_array().unwrap() {
        let lines = cell["receipt"].as_array().unwrap();
        assert!(!lines.is_empty(), "{cell}");
        assert_eq!(cell.get("propagation_ru").is_some(), cell.get("propagation_receipt").is_some());
    }
    let lines = |pattern| cell(&first, pattern, "v1")["receipt"].as_array().unwrap();
    assert_eq!(lines("Q1")[0], json!({"what": "items read, in read units", "count": 21, "ru": 1}));
    let sum: f64 = lines("C2").iter().map(|line| line["ru"].as_f64().unwrap()).sum();
    assert!((sum - 8.76).abs() < 0.02, "the lines add up to the charge: {sum}");
    let requests = |pattern, model| cell(&first, pattern, model)["requests"].as_f64().unwrap();
    assert_eq!([requests("Q4", "v1"), requests("Q4", "v2")], [21.0, 1.0], "one read per comment");
    assert_eq!([requests("Q5", "v1"), requests("Q5", "v3")], [51.0, 1.0]);
    assert_eq!(cell(&first, "Q3", "v2")["partitions"], 75);
    assert_eq!(cell(&first, "Q3", "v3")["partitions"], 1);
    let renamed = &cell(&first, "R1", "v3")["propagation_ru"];
    assert!(renamed.as_f64().unwrap() > 1000.0, "a name is copied far: {renamed}");
    let html = std::fs::read_to_string(&report).unwrap();
    assert!(html.contains("<h1>A blog platform in three models</h1>"));
    assert!(html.matches("<svg").count() >= 6);
    assert_eq!(html.matches("<table class=\"receipt\"").count(), 33);
}

#[test]
fn the_line_that_grew_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let lowered = directory.path().join("budget.toml");
    let budget = std::fs::read_to_string(BUDGET).unwrap();
    let (before, rest) = budget.split_once("[Q5.v1]\n").unwrap();
    let (of_cell, behind) = rest.split_once("\n\n").unwrap();
    let lower = |line: &str| {
        let (name, ru) = line.split_once(" = ").unwrap();
        let ru: f64 = ru.parse().unwrap();
        match name == "limit" || name == r#"lines."bytes loaded""# {
            true => format!("{name} = {:.2}", ru - 0.25),
            false => line.to_owned(),
        }
    };
    let of_cell: Vec<String> = of_cell.lines().map(lower).collect();
    let text_of = format!("{before}[Q5.v1]\n{}\n\n{behind}", of_cell.join("\n"));
    assert_ne!(text_of, budget);
    std::fs::write(&lowered, text_of).unwrap();
    let reduced = ["lab", "run", "blog", "--scale", "0.00005", "--repeat", "1", "--model", "v1"];
    let said = fail(1, &[&reduced[..], &["--budget", text(&lowered)]].concat());
    let over = said.lines().filter(|line| line.contains("its budget is")).collect::<Vec<_>>();
    let [over] = over[..] else { panic!("{said}") };
    assert!(over.contains("Q5 in v1 costs "), "{said}");
    assert_eq!(over.matches("grew from").count(), 1, "{said}");
    assert!(over.contains(": bytes loaded grew from "), "{said}");
}

/// Cells that lie beyond 2.5 % of the published figures, and why they may.
const BEYOND: [(&str, &str); 6] = [
    // The items have more indexed properties than the published cells, which repeat those of v1.
    ("C1", "v3"),
    ("C2", "v2"),
    ("C2", "v3"),
    // They depend on how many posts there are, or on counts drawn by chance.
    ("Q3", "v1"),
    ("Q6", "v1"),
    ("Q6", "v2"),
];

fn assert_published(json: &Value) {
    for cell in json["cells"].as_array().unwrap() {
        let (pattern, model) = (cell["pattern"].as_str().unwrap(), cell["model"].as_str().unwrap());
        let Some(published) = cell["published_ru"].as_f64() else { continue };
        let error = (cell["ru"].as_f64().unwrap() / published - 1.0).abs();
        let is_close = error <= 0.025;
        assert!(is_close || BEYOND.contains(&(pattern, model)), "{cell}");
    }
}

#[test]
fn budgets_name_what_grew() {
    let directory = tempfile::tempdir().unwrap();
    let budget = directory.path().join("budget.toml");
    let run =
        ["lab", "run", "person", "--scale", "0.02", "--repeat", "1", "--budget", text(&budget)];
    std::fs::write(&budget, "[read]\nembedded = 1.0\n").unwrap();
    succeed(&run);
    std::fs::write(&budget, "[read]\nembedded = 0.5\nreferenced = 100.0\n").unwrap();
    let said = fail(1, &run);
    assert!(
        said.contains("read in embedded costs 1.00 RU, its budget is 0.50 (+100.0 %)"),
        "{said}"
    );
    assert!(!said.contains("referenced"), "{said}");
    std::fs::write(&budget, "[read]\nembeded = 1.0\n").unwrap();
    assert!(fail(2, &run).contains("budget.toml:2: there is no model embeded"));
}

#[test]
fn mistakes_are_usage() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("w.toml");
    std::fs::write(&file, "name = 'w'\n\n[[entities]]\nname = 'a'\ncount = 'many'\n").unwrap();
    let said = fail(2, &["lab", "run", text(&file)]);
    assert!(said.contains("w.toml:5: a number, {min = 1, max = 9}"), "{said}");
    assert!(fail(2, &["lab", "run", "nowhere"]).contains("workloads are"));
    assert!(fail(2, &["lab", "run", "person", "--model", "x"]).contains("there is no model x"));
    assert!(fail(2, &["lab", "run", "person", "--scale", "0"]).contains("--scale"));
    assert!(fail(2, &["lab", "verify", "person"]).contains("has no checks"));
}

#[test]
fn copies_are_proved_behind_all_patterns() {
    let said = succeed(&["lab", "verify", "hybrid", "--scale", "0.1", "--seed", "9"]);
    assert!(said.contains("hybrid: names and thumbnails in books: "), "{said}");
    assert!(said.ends_with("every copy is what its source says\n"), "{said}");
}

#[test]
fn a_copy_that_differs_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let endpoint = format!("http://{}", server.client.address);
    let there = ["publisher", "--scale", "0.2", "--model", "hybrid", "--endpoint", &endpoint];
    succeed(&[&["lab", "run", "--repeat", "1"], &there[..]].concat());
    let said = succeed(&[&["lab", "verify"], &there[..]].concat());
    assert!(said.contains("hybrid: counts of books: ") && said.contains("every copy"), "{said}");
    let said = fail(1, &[&["lab", "run", "--repeat", "1"], &there[..]].concat());
    assert!(said.contains("exists already") && said.contains("--replace"), "{said}");

    let publishers = Container::new("lab-publisher-hybrid", "publishers");
    let rows =
        server.client.send(publishers.query("SELECT TOP 1 * FROM p", &[], 1)).unwrap().json();
    let mut wrong = rows["Documents"][0].clone();
    wrong["countOfBooks"] = json!(100_000);
    let key = PartitionKey::parse(&json!([wrong["id"]]).to_string()).unwrap();
    assert_eq!(server.client.send(publishers.upsert(&key, wrong.to_string())).unwrap().status, 200);
    let said = fail(1, &[&["lab", "verify"], &there[..]].concat());
    assert!(said.contains("has 100000, its source"), "{said}");
    succeed(&[&["lab", "run", "--repeat", "1", "--replace"], &there[..]].concat());
    succeed(&[&["lab", "verify"], &there[..]].concat());
    server.stop();
}

const COPIES: &str = r#"
name = "copies"
[[entities]]
name = "user"
count = 250
fields.id = { kind = "guid" }
fields.name = { kind = "word", length = 9 }
[[models]]
id = "m"
[[models.containers]]
name = "users"
partition_key = "/id"
throughput = 30000
[[models.containers]]
name = "names"
partition_key = "/userId"
[[models.items]]
entity = "user"
container = "users"
item = { id = "${user.id}", name = "${user.name}" }
[[models.pipelines]]
name = "names"
source = "users"
[[models.pipelines.steps]]
upsert = "names"
item = { id = "name", userId = "${change.id}", name = "${change.name}" }
[[models.checks]]
name = "names"
copies = { container = "names", sql = "SELECT n.userId AS k, n.name AS v FROM n" }
sources = { container = "users", sql = "SELECT u.id AS k, u.name AS v FROM u" }
complete = true
[[patterns]]
id = "p"
[[patterns.models.m]]
query = "users"
sql = "SELECT * FROM u"
"#;

async fn put(target: &Target, container: &str, key: &str, item: Value) {
    let key = PartitionKey::parse(&json!([key]).to_string()).unwrap();
    let request = target.container(container).upsert(&key, item.to_string());
    target.client.send(&request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_go_on_where_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let beside = |_: &str| Err("no file".to_owned());
    let source = Source { name: "copies".into(), text: COPIES.into(), beside: Box::new(beside) };
    let data = Arc::new(Data::new(Arc::new(source.read().unwrap()), 1, 1.0));
    let model = &data.workload.models[0];
    let endpoint = format!("http://{}", server.client.address);
    let client = client::Client::new(&endpoint, Key::development()).unwrap();
    let target = Target { client, database: "copies".into() };
    target.create(model, false).await.unwrap();
    lab::load::load(&data, 0, &target, Arc::new(|_| {})).await.unwrap();
    let differences = async || {
        let verdicts = lab::verify::verify(model, &target).await.unwrap();
        verdicts.iter().map(|verdict| verdict.findings.len()).sum::<usize>()
    };
    assert_eq!(differences().await, 250, "no copy yet");

    // From the beginning, everything is copied.
    let mut first = Runner::start(&data, 0, target.clone(), "first").await.unwrap();
    let drained = first.drain().await.unwrap();
    assert_eq!(drained.changes, 250);
    assert!(drained.work.charge > 0 && drained.lag.is_some());
    assert_eq!(differences().await, 0);

    // Nobody else may run it meanwhile.
    let second = Runner::start(&data, 0, target.clone(), "second").await;
    assert!(matches!(second, Err(lab::Error::Leased(name)) if name == "names"));

    // A process that ends without giving back its leases, and one more change.
    drop(first);
    let user = data.instance(0, 7);
    let id = data.get(&user, &[lab::expression::Step::Name("id".into())]).unwrap();
    let id = id.as_str().unwrap();
    put(&target, "users", id, json!({"id": id, "name": "renamed"})).await;
    assert_eq!(differences().await, 1);
    let mut again = Runner::start(&data, 0, target.clone(), "first").await.unwrap();
    assert_eq!(again.drain().await.unwrap().changes, 1, "only what is new");
    assert_eq!(differences().await, 0);
    let idle = again.drain().await.unwrap();
    assert_eq!((idle.changes, idle.work.charge, idle.lag), (0, 0, None));
    assert!(idle.idle.requests >= 3, "one look at each physical partition");

    // Given back, anybody may go on.
    again.stop().await.unwrap();
    let mut second = Runner::start(&data, 0, target.clone(), "second").await.unwrap();
    assert_eq!(second.drain().await.unwrap().changes, 0);
    second.stop().await.unwrap();

    // A crash behind a page and before its position: changes come twice, copies stay right.
    let leases = leases_of(&target).await;
    assert_eq!(leases.len(), 3);
    for lease in leases {
        let id = lease["id"].as_str().unwrap();
        put(&target, LEASES, id, json!({"id": id, "owner": "", "renewed": 0})).await;
    }
    let mut third = Runner::start(&data, 0, target.clone(), "third").await.unwrap();
    assert_eq!(third.drain().await.unwrap().changes, 250);
    assert_eq!(differences().await, 0);

    // Somebody who takes a lease over leaves its former owner without it.
    for lease in leases_of(&target).await {
        let id = lease["id"].as_str().unwrap().to_owned();
        put(&target, LEASES, &id, json!({"id": id, "owner": "", "renewed": 0})).await;
    }
    let mut fourth = Runner::start(&data, 0, target.clone(), "fourth").await.unwrap();
    put(&target, "users", id, json!({"id": id, "name": "again"})).await;
    assert!(matches!(third.drain().await, Err(lab::Error::Leased(_))));
    assert_eq!(fourth.drain().await.unwrap().changes, 250);
    assert_eq!(differences().await, 0);
    server.stop();
}

async fn leases_of(target: &Target) -> Vec<Value> {
    let query = target.container(LEASES).query("SELECT * FROM l", &[], -1);
    target.rows("leases", &query, &mut Default::default()).await.unwrap()
}
