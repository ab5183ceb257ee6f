//! What scripts cost: `cargo run --release -p script --example costs`.
//!
//! Prints microseconds per operation, the best of several rounds: a fresh runtime, an empty procedure
//! through the pool, one that reads and replaces an item, and calls of user-defined functions.
//!
//! With a number behind it, it only runs that many empty procedures, or with a further word those that
//! read and replace, for tools that count instructions: the difference of two such runs is what the
//! executions cost.

#![allow(clippy::unwrap_used)] // A measurement that cannot go on fails there.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use item::{Draft, Item, Stamp, Value};
use script::{
    Argument, Call, Collection, Functions, Host, HostError, Limits, Operation, Pool, PoolOptions,
    Program, Reply, Role,
};

/// A host with one item.
struct One(Item);

impl Host for One {
    fn accepts(&mut self) -> bool {
        true
    }

    fn run(&mut self, operation: Operation) -> Result<Reply, HostError> {
        black_box(operation);
        Ok(Reply::Item(self.0.clone()))
    }

    fn evaluate(&mut self, _: &str, _: Vec<(String, Value)>) -> Result<Value, HostError> {
        Err(HostError::Fatal)
    }
}

const INCREMENT: &str = "function () { var c = getContext().getCollection(); \
    c.readDocument(c.getAltLink() + '/docs/a', function (e, d) { d.n++; c.replaceDocument(d._self, d); }); }";

fn main() {
    let item = kilobyte();
    if let Some(calls) = std::env::args().nth(1) {
        let calls: usize = calls.parse().unwrap();
        let source = if std::env::args().nth(2).is_some() { INCREMENT } else { "function () {}" };
        let mut once = executor(source, &item);
        return (0..calls).for_each(|_| {
            once();
        });
    }
    println!("item of {} bytes", item.text_len());
    fresh_runtime();
    procedure("empty procedure", "function () {}", &item);
    procedure("read and replace", INCREMENT, &item);
    let number = Value::Number(3.0);
    function("scalar function", "function (x) { return x * 2; }", Argument::Value(&number));
    function(
        "scalar function, read a property",
        "function (d) { return d; }",
        Argument::Node(item.root().get("n").unwrap()),
    );
    function("whole item", "function (d) { return d.n; }", Argument::Node(item.root()));
    function("whole item in and out", "function (d) { return d; }", Argument::Node(item.root()));
    compile(INCREMENT);
}

/// The best of several rounds, in microseconds per call.
fn measure(name: &str, calls: u32, mut call: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let started = Instant::now();
        (0..calls).for_each(|_| call());
        best = best.min(started.elapsed().as_secs_f64() * 1e6 / f64::from(calls));
    }
    println!("{name:<36} {best:>9.3} µs");
}

fn fresh_runtime() {
    let limits = Limits::default();
    let until = Instant::now() + Duration::from_secs(3600);
    measure("fresh runtime, made and freed", 300, || {
        black_box(Functions::new(&[], &limits, until).unwrap());
    });
}

/// Runs a procedure and waits for its answer; returns the time inside.
fn executor(source: &str, item: &Item) -> impl FnMut() -> Duration {
    let pool = Pool::new(PoolOptions { threads: 1, limits: Limits::default() });
    let program = Arc::new(Program::compile("bench", source).unwrap());
    let call = Call {
        program,
        role: Role::Procedure { arguments: Vec::new() },
        collection: Collection {
            self_link: "dbs/AAAAAA==/colls/AAAAAIAAAAA=/".to_owned(),
            alt_link: "dbs/blog/colls/posts".to_owned(),
            size_mb: 1.0,
            size_mb_max: 1.0,
        },
        is_logging: false,
    };
    let item = item.clone();
    move || {
        let (sender, receiver) = mpsc::channel();
        let (call, host) = (call.clone(), One(item.clone()));
        let running = pool.submit(
            host,
            None,
            move |session| {
                let started = Instant::now();
                session.execute(&call).unwrap();
                started.elapsed()
            },
            move |answer| sender.send(answer.unwrap()).unwrap(),
        );
        let inside = receiver.recv().unwrap();
        running.detach();
        inside
    }
}

fn procedure(name: &str, source: &str, item: &Item) {
    let mut once = executor(source, item);
    measure(&format!("{name}, back to back"), 300, || {
        once();
    });
    let mut inside: Vec<Duration> = (0..300)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            once()
        })
        .collect();
    inside.sort();
    println!(
        "{:<36} {:>9.3} µs",
        format!("{name}, prepared thread"),
        inside[150].as_secs_f64() * 1e6
    );
}

fn function(name: &str, source: &str, argument: Argument<'_>) {
    let program = Arc::new(Program::compile("bench", source).unwrap());
    let until = Instant::now() + Duration::from_secs(3600);
    let functions = Functions::new(&[program], &Limits::default(), until).unwrap();
    measure(name, 20_000, || {
        black_box(functions.call(0, &[argument]).unwrap());
    });
}

fn compile(source: &str) {
    measure("compile", 100, || {
        black_box(Program::compile("bench", source).unwrap());
    });
}

/// A post of a blog, about a kilobyte.
fn kilobyte() -> Item {
    let tags: Vec<String> = (0..8).map(|n| format!("\"tag{n}\"")).collect();
    let body = format!(
        r#"{{"id":"a","n":1,"type":"post","postId":"p-1","userId":"u-17","userUsername":"somebody","title":"{}","content":"{}","commentCount":12,"likeCount":5,"creationDate":"2019-01-07T10:11:12Z","tags":[{}],"place":{{"type":"Point","coordinates":[10.75,59.91]}},"flags":{{"isPublic":true,"isPinned":false,"editedAt":null}}}}"#,
        "a title of a post ".repeat(3),
        "content ".repeat(40),
        tags.join(",")
    );
    let stamp = Stamp {
        rid: "AAAAAIAAAAABAAAAAAAAAA==",
        self_link: "dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/AAAAAIAAAAABAAAAAAAAAA==/",
        etag: "0000d826-0000-0700-0000-60a2b6f10000",
        ts: 1_700_000_000,
        lsn: 1,
        position: 0,
        ordinal: 1,
        is_indexed: true,
    };
    Draft::parse(body.as_bytes()).unwrap().stamp(&stamp)
}
