//! Goal: `query` gives the same rows and the same charge from a directory and from a server, and
//! shows where a query is wrong.
//! Method: the real binary on imported items.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::Output;

use common::{Server, fail, run, stderr, succeed, text, write_items};

/// A data directory with 250 items in `db/c`, half of them under each of two partition keys.
fn data() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let file = write_items(&directory.path().join("in.ndjson"), 250);
    let data = directory.path().join("data");
    let target = ["--partition-key", "/pk", "--data-dir", text(&data)];
    succeed(&[&["import", "db/c", text(&file)], &target[..]].concat());
    directory
}

fn ask(directory: &Path, arguments: &[&str]) -> Output {
    let data = directory.join("data");
    let output = run(&[&["query", "db/c", "--data-dir", text(&data)], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    output
}

fn rows(output: &Output) -> Vec<String> {
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn rows_and_their_cost() {
    let directory = data();
    let output = ask(directory.path(), &["SELECT c.id, c.n FROM c WHERE c.n >= 248 ORDER BY c.n"]);
    assert_eq!(rows(&output), [r#"{"id":"248","n":248}"#, r#"{"id":"249","n":249}"#]);
    let said = stderr(&output);
    assert!(said.starts_with("2 rows, ") && said.contains(" RU, 2 items loaded, "), "{said}");
    assert!(said.ends_with("visited, 1 partition\n"), "{said}");
    let output = ask(directory.path(), &["SELECT VALUE c.n FROM c", "--partition-key", "\"b\""]);
    assert_eq!(rows(&output).len(), 125, "more than one page");
    let parameters = ["--param", "who=\"b\"", "--param", "@least=247"];
    let query = "SELECT VALUE c.id FROM c WHERE c.pk = @who AND c.n >= @least";
    let output = ask(directory.path(), &[&[query], &parameters[..]].concat());
    assert_eq!(rows(&output), ["\"247\"", "\"249\""]);
}

#[test]
fn a_plan_and_its_meter() {
    let directory = data();
    let output = ask(directory.path(), &["SELECT VALUE c.id FROM c WHERE c.n = 7", "--explain"]);
    assert_eq!(rows(&output), ["\"7\""]);
    let said = stderr(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("Project: "), "{said}");
    assert!(said.contains("└─ "), "{said}");
    assert!(lines[lines.len() - 2].starts_with("meter: terms_read="), "{said}");
    assert!(lines[lines.len() - 1].starts_with("1 row, "), "{said}");
}

#[test]
fn a_server_answers_alike() {
    let directory = data();
    let queries = [
        &["SELECT * FROM c WHERE c.n > 100"][..],
        &["SELECT VALUE COUNT(1) FROM c", "--partition-key", "[\"a\"]"],
        &["SELECT VALUE c.tags FROM c WHERE c.n = @n", "--param", "n=7"],
    ];
    let here: Vec<Output> = queries.iter().map(|query| ask(directory.path(), query)).collect();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    let endpoint = format!("http://{}", server.client.address);
    for (query, here) in queries.iter().zip(here) {
        let there = run(&[&["query", "db/c", "--endpoint", &endpoint], *query].concat());
        assert!(there.status.success(), "{query:?}: {}", stderr(&there));
        assert_eq!(rows(&there), rows(&here), "{query:?}");
        let summary = stderr(&there);
        assert!(stderr(&here).starts_with(summary.trim_end()), "{summary} {}", stderr(&here));
    }
    let query = ["query", "db/c", "SELECT * FROM c"];
    let said = fail(1, &[&query[..], &["--data-dir", text(&data)]].concat());
    assert!(said.contains("--endpoint"), "{said}");
    let said = fail(2, &[&query[..], &["--endpoint", &endpoint, "--explain"]].concat());
    assert!(said.contains("--explain works on a data directory"), "{said}");
    let said = fail(2, &[&query[..], &["--endpoint", "https://localhost"]].concat());
    assert!(said.contains("is no endpoint"), "{said}");
    let key_file = directory.path().join("key");
    std::fs::write(&key_file, "# another\nc2VjcmV0\n").unwrap();
    let key = ["--endpoint", &endpoint, "--key-file", text(&key_file)];
    let said = fail(1, &[&query[..], &key].concat());
    assert!(said.contains("401"), "{said}");
    let said = fail(1, &["query", "db/c", "SELECT * FORM c", "--endpoint", &endpoint]);
    assert!(said.contains("\n  SELECT * FORM c\n           ^"), "{said}");
    server.stop();
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let directory = data();
    let data = directory.path().join("data");
    let data_dir = ["--data-dir", text(&data)];
    let wrong = |query: &str, expect: &str| {
        for more in [&[][..], &["--explain"]] {
            let said = fail(1, &[&["query", "db/c", query], &data_dir[..], more].concat());
            assert!(said.starts_with("cosmolabe: SC") && said.ends_with(expect), "{said}");
        }
    };
    wrong("SELECT * FORM c", "\n  SELECT * FORM c\n           ^^^^\n");
    wrong("SELECT *\nFROM c\nWHERE x.a = 1", "\n  WHERE x.a = 1\n        ^\n");
    let usage = |arguments: &[&str], expect: &str| {
        let said = fail(2, &[&["query"], arguments, &data_dir[..]].concat());
        assert!(said.contains(expect), "{said}");
    };
    usage(&["db/c", "SELECT 1", "--param", "city=Oslo"], "is not JSON");
    usage(&["db/c", "SELECT 1", "--partition-key", "ada"], "--partition-key ada");
    usage(&["db", "SELECT 1"], "DB/CONTAINER");
    let said = fail(1, &[&["query", "db/none", "SELECT 1"], &data_dir[..]].concat());
    assert!(said.contains("db/none"), "{said}");
    let said = fail(1, &["query", "db/c", "SELECT 1", "--data-dir", "/nowhere"]);
    assert!(said.contains("holds no database"), "{said}");
}

#[test]
fn a_receipt_adds_up_here_and_there() {
    let directory = data();
    let query = ["SELECT VALUE COUNT(1) FROM c WHERE c.n > 200", "--receipt"];
    let here = ask(directory.path(), &query);
    let said = stderr(&here);
    let lines: Vec<&str> = said.lines().collect();
    let cell = |line: &str| line.split_whitespace().last().unwrap().parse::<f64>().unwrap();
    let (total, parts) = lines[1..lines.len() - 1].split_last().unwrap();
    assert!(lines[0].trim_start().starts_with("count"), "{said}");
    assert!(parts[0].starts_with("physical partitions sought"), "{said}");
    assert!(total.starts_with("total"), "{said}");
    // Each line is rounded by itself.
    let sum: f64 = parts.iter().map(|line| cell(line)).sum();
    assert!((cell(total) - sum).abs() < 0.03, "{said}");
    let charge = format!("1 row, {} RU, ", cell(total));
    assert!(lines[lines.len() - 1].starts_with(&charge), "{said}");

    let server = Server::start(&directory.path().join("data"));
    let endpoint = format!("http://{}", server.client.address);
    let there = run(&[&["query", "db/c", "--endpoint", &endpoint], &query[..]].concat());
    let told = stderr(&there);
    assert_eq!(told.lines().collect::<Vec<_>>()[..lines.len() - 1], lines[..lines.len() - 1]);
    server.stop();

    let data = directory.path().join("data");
    let flags = ["--ru-profile", "modern", "--enforce-throughput", "true"];
    let server = Server::with(&[&["--data-dir", text(&data)], &flags[..]].concat());
    let endpoint = format!("http://{}", server.client.address);
    let modern = run(&[&["query", "db/c", "--endpoint", &endpoint], &query[..]].concat());
    assert_eq!(rows(&modern), rows(&here));
    assert!(stderr(&modern).contains("1 row, 2.74 RU, "), "49 entries: {}", stderr(&modern));
    server.stop();
}
