//! Starting the real binary, and talking to it like any client.

#![allow(dead_code, clippy::unwrap_used)] // Each test binary uses a part of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use client::{Container, Key, Request};
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary, in an environment without our variables.
pub fn cosmolabe() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosmolabe"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COSMOLABE_")) {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG");
    command
}

/// Runs a command to its end.
pub fn run(arguments: &[&str]) -> Output {
    cosmolabe().args(arguments).stdin(Stdio::null()).output().expect("the binary starts")
}

/// Runs a command that must succeed; what it printed.
pub fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with this exit code; what it said.
pub fn fail(code: i32, arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    stderr(&output)
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("test paths are text")
}

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    pub ready: String,
    pub client: Client,
}

impl Server {
    /// Starts on a free port with its data in a directory.
    pub fn start(directory: &Path) -> Server {
        Server::with(&["--data-dir", text(directory)])
    }

    /// Starts on a free port with these flags.
    pub fn with(arguments: &[&str]) -> Server {
        let mut command = cosmolabe();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        Server::spawn(command)
    }

    /// Starts a command and waits for its ready line.
    pub fn spawn(mut command: Command) -> Server {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (sender, receiver) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(line);
        });
        let ready = receiver.recv_timeout(PATIENCE).expect("a line on standard output");
        let Some((_, rest)) = ready.split_once("://") else {
            let mut said = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut said);
            panic!("not ready: {ready:?} {said}");
        };
        let address = rest.split_whitespace().next().unwrap().parse().unwrap();
        let client = Client { address, key: Key::development() };
        Server { child, ready, client }
    }

    /// Sends a signal, such as `-TERM`.
    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits for the end; the status and everything on standard error.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut said = String::new();
                let _ = self.child.stderr.take().unwrap().read_to_string(&mut said);
                return (status, said);
            }
            assert!(started.elapsed() < PATIENCE, "the server does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it in an orderly way; what it logged.
    pub fn stop(self) -> String {
        self.signal("-TERM");
        let (status, said) = self.wait();
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    /// Kills it like a power loss would, as far as a process can feel one.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of one server, with a connection for each request.
#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub key: Key,
}

/// What a request was answered with.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Client {
    /// Sends a request and reads the whole answer.
    pub fn send(&self, request: Request) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(&self.bytes(request))?;
        answer(stream)
    }

    /// A request as it goes over the wire.
    pub fn bytes(&self, request: Request) -> Vec<u8> {
        let request = request.with("connection", "close");
        request.to_bytes(&self.key, &self.address.to_string(), &client::date_now())
    }

    /// Asks a probe.
    pub fn probe(&self, path: &str) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(self.address)?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            self.address
        )?;
        answer(stream)
    }

    pub fn create_database(&self, database: &str) -> u16 {
        self.send(Request::create_database(database)).unwrap().status
    }

    /// Creates `db/c` with the partition key `/pk`.
    pub fn create_db_c(&self) {
        assert_eq!(self.create_database("db"), 201);
        let created = self.send(container().create_keyed_by("/pk", None)).unwrap();
        assert_eq!(created.status, 201, "{}", created.body);
    }

    /// Upserts an item with the partition key `"a"` into `db/c`.
    pub fn upsert(&self, item: &Value) -> std::io::Result<Answer> {
        self.send(upsert(item))
    }

    /// Reads an item of `db/c` with the partition key `"a"`.
    pub fn read(&self, id: &str) -> std::io::Result<Answer> {
        self.send(container().read(&key(), id))
    }
}

fn container() -> Container {
    Container::new("db", "c")
}

fn key() -> PartitionKey {
    PartitionKey::parse("[\"a\"]").unwrap()
}

/// An upsert into `db/c` of an item with the partition key `"a"`.
pub fn upsert(item: &Value) -> Request {
    container().upsert(&key(), item.to_string())
}

/// Reads an answer to its end.
pub fn answer(mut stream: TcpStream) -> std::io::Result<Answer> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let (head, body) = text.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(Answer { status, body: body.to_owned() })
}

/// Writes a file of so many items with the partition keys `a` and `b`.
pub fn write_items(path: &Path, count: usize) -> PathBuf {
    let line = |n: usize| {
        let pk = if n.is_multiple_of(2) { "a" } else { "b" };
        format!("{}\n", json!({"id": n.to_string(), "pk": pk, "n": n, "tags": ["x", n % 7]}))
    };
    std::fs::write(path, (0..count).map(line).collect::<String>()).unwrap();
    path.to_owned()
}
