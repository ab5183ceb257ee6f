//! Goal: `serve` is safe by default, durable, and stops in an orderly way.
//! Method: the real binary, real sockets, real signals.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use client::Key;
use common::{Client, Server, answer, cosmolabe, fail, text, upsert, write_items};
use serde_json::{Value, json};

#[test]
fn the_ready_line_names_address_and_data() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    let expect = format!(
        "cosmolabe {} ready on http://{}  (data in {})\n",
        env!("CARGO_PKG_VERSION"),
        server.client.address,
        data.display()
    );
    assert_eq!(server.ready, expect);
    assert_ne!(server.client.address.port(), 0);
    for probe in ["/_cosmolabe/health", "/_cosmolabe/ready"] {
        assert_eq!(server.client.probe(probe).unwrap().status, 200, "{probe}");
    }
    server.stop();
}

#[test]
fn without_a_command_the_database_is_started() {
    let mut command = cosmolabe();
    command.args(["--in-memory", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command);
    assert!(server.ready.ends_with("(data in memory)\n"), "{}", server.ready);
    server.client.create_db_c();
    server.stop();
}

#[test]
fn flags_come_from_the_environment_and_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("cosmolabe.toml");
    std::fs::write(&config, "listen = '127.0.0.1:0'\ndata-dir = '/nonexistent/data'\n").unwrap();
    let data = directory.path().join("data");
    let mut command = cosmolabe();
    command.env("COSMOLABE_CONFIG", &config).env("COSMOLABE_DATA_DIR", &data);
    let server = Server::spawn(command);
    assert!(server.ready.contains(text(&data)), "{}", server.ready);
    server.stop();
    std::fs::write(&config, "lisen = '127.0.0.1:0'\n").unwrap();
    let said = fail(2, &["serve", "--config", text(&config)]);
    assert!(said.contains("lisen"), "{said}");
    // The command line wins, also where two flags say the same thing.
    let mut command = cosmolabe();
    command.env("COSMOLABE_DATA_DIR", &data).args(["--in-memory", "--listen", "127.0.0.1:0"]);
    let server = Server::spawn(command);
    assert!(server.ready.ends_with("(data in memory)\n"), "{}", server.ready);
    server.stop();
}

#[test]
fn data_survives_an_orderly_stop() {
    for signal in ["-TERM", "-INT"] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let server = Server::start(&data);
        server.client.create_db_c();
        let created = server.client.upsert(&json!({"id": "1", "pk": "a"})).unwrap();
        assert_eq!(created.status, 201, "{}", created.body);
        server.signal(signal);
        let (status, said) = server.wait();
        assert_eq!(status.code(), Some(0), "{said}");
        assert_eq!(std::fs::read_to_string(data.join("STATE")).unwrap(), "clean\n");
        let server = Server::start(&data);
        assert_eq!(server.client.read("1").unwrap().status, 200);
        server.stop();
    }
}

#[test]
fn an_acknowledged_write_survives_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    for round in 0..3 {
        let server = Server::start(&data);
        if round == 0 {
            server.client.create_db_c();
        }
        for earlier in 0..round * 20 {
            let found = server.client.read(&earlier.to_string()).unwrap();
            assert_eq!(found.status, 200, "round {round}, item {earlier}");
        }
        for n in round * 20..(round + 1) * 20 {
            let item = json!({"id": n.to_string(), "pk": "a"});
            assert_eq!(server.client.upsert(&item).unwrap().status, 201);
        }
        server.kill();
    }
    let said = common::succeed(&["verify", "--data-dir", text(&data)]);
    assert!(said.contains("verified 60 items"), "{said}");
}

#[test]
fn open_requests_are_answered_before_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    server.client.create_db_c();
    let request = server.client.bytes(upsert(&json!({"id": "late", "pk": "a"})));
    let (most, rest) = request.split_at(request.len() - 5);
    let mut stream = TcpStream::connect(server.client.address).unwrap();
    stream.write_all(most).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("-TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(TcpStream::connect(server.client.address).is_err(), "no new connections");
    stream.write_all(rest).unwrap();
    assert_eq!(answer(stream).unwrap().status, 201);
    assert_eq!(server.wait().0.code(), Some(0));
    let server = Server::start(&directory.path().join("data"));
    assert_eq!(server.client.read("late").unwrap().status, 200);
    server.stop();
}

#[test]
fn being_asked_twice_ends_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("data"));
    let mut stream = TcpStream::connect(server.client.address).unwrap();
    let request = server.client.bytes(upsert(&json!({"id": "1", "pk": "a"})));
    stream.write_all(&request[..request.len() - 1]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("-TERM");
    std::thread::sleep(Duration::from_millis(300));
    server.signal("-TERM");
    assert_eq!(server.wait().0.code(), Some(1));
}

#[test]
fn a_second_process_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    let data = text(&data);
    let listen = ["--listen", "127.0.0.1:0"];
    let said = fail(1, &[&["serve", "--data-dir", data], &listen[..]].concat());
    assert!(said.contains("in use by another process"), "{said}");
    for command in [&["verify"][..], &["export", "db/c"]] {
        let said = fail(1, &[command, &["--data-dir", data]].concat());
        assert!(said.contains("in use by another process"), "{command:?}: {said}");
    }
    server.stop();
}

#[test]
fn a_newer_format_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    Server::start(&data).stop();
    std::fs::write(data.join("FORMAT"), "cosmolabe 99\n").unwrap();
    let said = fail(1, &["serve", "--listen", "127.0.0.1:0", "--data-dir", text(&data)]);
    assert!(said.contains("newer version"), "{said}");
    let said = fail(1, &["verify", "--data-dir", text(&data)]);
    assert!(said.contains("newer version"), "{said}");
}

#[test]
fn a_foreign_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("thesis.tex"), "").unwrap();
    let data = text(directory.path());
    let said = fail(1, &["serve", "--listen", "127.0.0.1:0", "--data-dir", data]);
    assert!(said.contains("thesis.tex"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_refused_before_data_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = directory.path().join("data");
    let said = fail(1, &["serve", "--listen", &address, "--data-dir", text(&data)]);
    assert!(said.contains("Cannot listen"), "{said}");
    assert!(!data.exists());
}

#[test]
fn what_is_not_safe_or_not_there_is_refused() {
    let refused: [&[&str]; 4] = [
        &["--listen", "0.0.0.0:0"],
        &["--store", "postgres://localhost/db"],
        &["--in-memory", "--data-dir", "data"],
        &["--tls-cert", "cert.pem"],
    ];
    for flags in refused {
        let said = fail(2, &[&["serve"], flags].concat());
        assert!(said.starts_with("cosmolabe: "), "{flags:?}: {said}");
    }
    let wrong: [&[&str]; 3] =
        [&["--durability", "maybe"], &["--cache-size", "big"], &["--nothing"]];
    for flags in wrong {
        let said = fail(2, &[&["serve"], flags].concat());
        assert!(said.starts_with("error: "), "{flags:?}: {said}");
    }
}

#[test]
fn the_development_key_is_served_to_others_only_on_request() {
    let mut command = cosmolabe();
    command.args(["--in-memory", "--listen", "0.0.0.0:0", "--insecure-development-key"]);
    Server::spawn(command).stop();
}

#[test]
fn keys_come_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys");
    // base64 of "primary", "secondary" and "reader".
    std::fs::write(&keys, "cHJpbWFyeQ==\nc2Vjb25kYXJ5\n# read only\ncmVhZGVy\n").unwrap();
    let mut command = cosmolabe();
    command.args(["--in-memory", "--listen", "0.0.0.0:0", "--key-file", text(&keys)]);
    let server = Server::spawn(command);
    let client = |key: &str| {
        let port = server.client.address.port();
        Client { address: ([127, 0, 0, 1], port).into(), key: Key::parse(key).unwrap() }
    };
    assert_eq!(server.client.create_database("no"), 401, "the development key");
    assert_eq!(client("cHJpbWFyeQ==").create_database("one"), 201);
    assert_eq!(client("c2Vjb25kYXJ5").create_database("two"), 201);
    assert_eq!(client("cmVhZGVy").create_database("three"), 403);
    server.stop();
}

#[test]
fn tls_is_served_with_a_certificate_made_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::with(&["--tls", "self-signed", "--data-dir", text(&data)]);
    assert!(server.ready.contains("https://127.0.0.1:"), "{}", server.ready);
    let pem = std::fs::read_to_string(data.join("certificate.pem")).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"));
    assert!(server.client.probe("/_cosmolabe/health").is_err(), "no plain HTTP");
    server.stop();
}

#[test]
fn logs_are_json_lines_on_standard_error() {
    let server = Server::with(&["--in-memory"]);
    let said = server.stop();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let messages: Vec<&str> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert!(messages.contains(&"ready") && messages.contains(&"stopped"), "{messages:?}");
    let server = Server::with(&["--in-memory", "--log", "off"]);
    assert_eq!(server.stop(), "");
}

#[test]
fn seeds_are_loaded_on_first_start_only() {
    let directory = tempfile::tempdir().unwrap();
    let (seed, data) = (directory.path().join("seed"), directory.path().join("data"));
    std::fs::create_dir_all(seed.join("db")).unwrap();
    write_items(&seed.join("db/c.ndjson"), 10);
    std::fs::write(seed.join("db/c.json"), r#"{"partitionKey": {"paths": ["/pk"]}}"#).unwrap();
    let flags = ["--data-dir", text(&data), "--load", text(&seed)];
    let server = Server::with(&flags);
    let item = server.client.read("2").unwrap();
    assert_eq!((item.status, &item.json()["n"]), (200, &json!(2)));
    let changed = json!({"id": "2", "pk": "a", "n": "changed"});
    assert_eq!(server.client.upsert(&changed).unwrap().status, 200);
    server.stop();
    let server = Server::with(&flags);
    assert_eq!(server.client.read("2").unwrap().json()["n"], "changed");
    server.stop();
    // An interrupted loading is done again.
    std::fs::write(data.join("LOADING"), "").unwrap();
    let server = Server::with(&flags);
    assert_eq!(server.client.read("2").unwrap().json()["n"], json!(2));
    assert!(!data.join("LOADING").exists());
    server.stop();
}

#[test]
fn a_seed_that_is_wrong_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let seed = directory.path().join("seed");
    std::fs::create_dir_all(seed.join("db")).unwrap();
    std::fs::write(seed.join("db/c.ndjson"), "{\"id\": \"1\"}\n{\"id\": }\n").unwrap();
    let flags = ["serve", "--in-memory", "--listen", "127.0.0.1:0", "--load"];
    let said = fail(1, &[&flags[..], &[text(&seed)]].concat());
    assert!(said.contains("c.ndjson:2: "), "{said}");
    let said = fail(1, &[&flags[..], &[text(&seed.join("db"))]].concat());
    assert!(said.contains("<database>/<container>.ndjson"), "{said}");
}
