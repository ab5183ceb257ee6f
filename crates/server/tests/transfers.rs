//! Goal: what goes in through `import` comes out through `export`, and every bad line is named.
//! Method: the real binary on files of its own.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use common::{Server, cosmolabe, fail, run, stderr, succeed, text, write_items};
use serde_json::{Value, json};

fn items(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut items: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    items.sort_by_key(|item| item["id"].as_str().unwrap().parse::<u64>().unwrap_or(0));
    items
}

#[test]
fn what_goes_in_comes_out() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = write_items(&directory.path().join("in.ndjson"), 3_000);
    let out = directory.path().join("out.ndjson");
    let data_dir = ["--data-dir", text(&data)];
    let import = ["import", "db/c", text(&file), "--partition-key", "/pk"];
    let said = succeed(&[&import[..], &data_dir].concat());
    assert_eq!(said, "imported 3000 items into db/c\n");
    // Again, by name of the container alone: nothing is there twice.
    succeed(&[&import[..3], &data_dir].concat());
    let said = succeed(&[&["export", "db/c", "--out", text(&out)], &data_dir[..]].concat());
    assert!(said.starts_with("exported 3000 items"), "{said}");
    assert_eq!(items(&out), items(&file));
    let said = succeed(&[&["verify"], &data_dir[..]].concat());
    assert!(said.contains("verified 3000 items") && said.contains("nothing is wrong"), "{said}");
    let server = Server::start(&data);
    assert_eq!(server.client.read("2998").unwrap().json()["n"], 2998);
    server.stop();
}

#[test]
fn definitions_go_along() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&directory.path().join(name)).to_owned();
    let definition = json!({
        "partitionKey": {"paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]},
        "throughput": 20_000,
    });
    std::fs::write(path("in.json"), definition.to_string()).unwrap();
    std::fs::write(path("in.ndjson"), "{\"id\":\"1\",\"tenant\":\"t\",\"user\":\"u\"}\n").unwrap();
    let data = path("data");
    let definition = ["--definition", &path("in.json")];
    succeed(
        &[&["import", "db/c", &path("in.ndjson"), "--data-dir", &data], &definition[..]].concat(),
    );
    let definition = ["--definition", &path("out.json"), "--system-properties"];
    let said = succeed(&[&["export", "db/c", "--data-dir", &data], &definition[..]].concat());
    let item: Value = serde_json::from_str(&said).unwrap();
    assert!(item["_etag"].is_string() && item["_ts"].is_number(), "{said}");
    let out: Value =
        serde_json::from_str(&std::fs::read_to_string(path("out.json")).unwrap()).unwrap();
    assert_eq!(out["partitionKey"]["paths"], json!(["/tenant", "/user"]));
    assert_eq!(out["uniqueKeyPolicy"]["uniqueKeys"][0]["paths"], json!(["/mail"]));
    assert_eq!(out.get("throughput"), None);
}

#[test]
fn of_two_lines_with_the_same_id_the_later_wins() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("in.ndjson");
    let line = |n: usize| format!("{{\"id\":\"{}\",\"pk\":\"{}\",\"n\":{n}}}\n", n % 50, n % 50);
    std::fs::write(&file, (0..2_000).map(line).collect::<String>()).unwrap();
    let data = directory.path().join("data");
    let data_dir = ["--data-dir", text(&data)];
    let import = ["import", "db/c", text(&file), "--partition-key", "/pk"];
    succeed(&[&import[..], &data_dir].concat());
    let out = directory.path().join("out.ndjson");
    succeed(&[&["export", "db/c", "--out", text(&out)], &data_dir[..]].concat());
    let newest: Vec<u64> = items(&out).iter().map(|item| item["n"].as_u64().unwrap()).collect();
    assert_eq!(newest, (1_950..2_000).collect::<Vec<u64>>());
}

#[test]
fn bad_lines_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("in.ndjson");
    let good = |id: &str| format!("{{\"id\":\"{id}\",\"pk\":\"a\"}}");
    let lines = [
        good("1"),
        String::new(),
        "{\"id\": \"2\", ".into(),
        "[1, 2]".into(),
        "{\"pk\": \"a\"}".into(),
        good("a/b"),
        "{\"id\": \"7\", \"pk\": {\"deep\": 1}}".into(),
        good("8"),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let data = directory.path().join("data");
    let flags = ["--partition-key", "/pk", "--data-dir", text(&data)];
    let import = [&["import", "db/c", text(&file)], &flags[..]].concat();
    let said = fail(1, &import);
    assert!(said.contains("in.ndjson:3: "), "{said}");
    assert!(said.contains("stopped after 1 items"), "{said}");
    let output = run(&[&import[..], &["--skip-bad"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let out = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(out, "imported 2 items into db/c, skipped 5 bad lines\n");
    for number in 3..=7 {
        assert!(stderr(&output).contains(&format!("in.ndjson:{number}: ")), "{number}");
    }
}

#[test]
fn an_import_says_what_it_needs() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let file = write_items(&directory.path().join("in.ndjson"), 2);
    let flags = [text(&file), "--data-dir", text(&data)];
    let import = |target: &'static str, more: &[&'static str]| {
        [&["import", target], &flags[..], more].concat()
    };
    let said = fail(2, &import("db/c", &[]));
    assert!(said.contains("--partition-key"), "{said}");
    let said = fail(1, &import("db/c", &["--partition-key", "pk"]));
    assert!(said.contains("db/c"), "{said}");
    let said = fail(1, &["export", "db/c", "--data-dir", text(&data)]);
    assert!(said.contains("db/c"), "a wrong definition leaves nothing behind: {said}");
    succeed(&import("db/c", &["--partition-key", "/pk"]));
    let said = fail(1, &import("db/c", &["--partition-key", "/other"]));
    assert!(said.contains("/pk"), "{said}");
    let said = fail(1, &["import", "db/c", "nowhere.ndjson", "--data-dir", text(&data)]);
    assert!(said.contains("nowhere.ndjson"), "{said}");
    fail(2, &import("db", &[]));
}

#[test]
fn standard_input_and_output() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut child = cosmolabe()
        .args(["import", "db/c", "-", "--partition-key", "/pk", "--data-dir", text(&data)])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"id\":\"1\",\"pk\":\"a\",\"x\":1.50}\n").unwrap();
    assert!(child.wait().unwrap().success());
    let said = succeed(&["export", "db/c", "--data-dir", text(&data)]);
    assert_eq!(said, "{\"id\":\"1\",\"pk\":\"a\",\"x\":1.5}\n");
}

#[test]
fn commands_do_not_make_databases_of_empty_directories() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let out = directory.path().join("out");
    for command in [&["export", "db/c"][..], &["verify"], &["backup", "--out", text(&out)]] {
        let said = fail(1, &[command, &["--data-dir", text(&data)]].concat());
        assert!(said.contains("holds no database"), "{command:?}: {said}");
        assert!(!data.exists(), "{command:?}");
    }
}

#[test]
fn help_version_and_completions() {
    let help = succeed(&["--help"]);
    for command in ["serve", "import", "export", "backup", "restore", "verify", "completions"] {
        assert!(help.contains(command), "{command}");
        assert!(succeed(&[command, "--help"]).contains("Examples:"), "{command}");
    }
    assert_eq!(succeed(&["--version"]), format!("cosmolabe {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(succeed(&["completions", shell]).contains("data-dir"), "{shell}");
    }
    fail(2, &["nonsense"]);
}
