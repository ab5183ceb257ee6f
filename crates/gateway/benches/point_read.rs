//! Point reads through the whole gateway against the least a server could do.
//!
//! The bare server is hyper with the same settings; it checks the same signature and returns the
//! same bytes and headers, and does nothing else. The quotient of the two rates is what our own
//! code costs. Client and server share the machine; compare the figures with each other only.
//!
//! `cargo bench -p gateway`

#![allow(clippy::unwrap_used)] // A benchmark fails by panicking.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, UNIX_EPOCH};

use base::{Clock, SystemClock};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::{Engine, Options};
use gateway::{Config, Gateway, Key, Keys};
use hmac::{Hmac, Mac};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use sha2::Sha256;
use store_memory::MemoryStore;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const PATH: &str = "/dbs/d/colls/c/docs/item-1";
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(4);

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let ours = runtime.block_on(start_gateway());
    let request = request();
    let answer = exchange(&mut connect(ours), &request);
    let bare = runtime.block_on(start_bare(&answer));
    assert_eq!(exchange(&mut connect(bare), &request).len(), answer.len());
    for round in 1..=ROUNDS {
        let (bare, ours) = (rate(bare, &request), rate(ours, &request));
        println!("{round}: bare {bare:.0}/s, gateway {ours:.0}/s, {:.0} %", 100.0 * ours / bare);
    }
}

async fn start_gateway() -> SocketAddr {
    let engine = Engine::open(Arc::new(MemoryStore::new()), Options::new(64 << 20)).unwrap();
    let engine = Arc::new(engine);
    let ctx = engine.ctx(base::Deadline::never());
    engine.create_database(&ctx, &serde_json::json!({"id": "d"}), None).unwrap();
    let key = serde_json::json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let container = serde_json::json!({"id": "c", "partitionKey": key});
    engine.create_container(&ctx, "d", &container, None).unwrap();
    let container = engine.container("d", "c").unwrap();
    let text = serde_json::json!({"id": "item-1", "pk": "p1", "text": "x".repeat(700)}).to_string();
    let draft = item::Draft::parse(text.as_bytes()).unwrap();
    let key = engine.partition_key_of(&container, None, &draft).unwrap();
    let guard = engine.lock(&container, &key).await;
    let write = engine::ops::WriteItem {
        kind: engine::ops::WriteKind::Create(draft),
        if_match: engine::ops::EtagCondition::None,
        if_none_match: engine::ops::EtagCondition::None,
        is_indexed: true,
    };
    engine.write(&ctx, guard, write).wait().unwrap();
    let config = Config::new(Keys::single(Key::parse(KEY).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = Gateway::new(engine, config);
    tokio::spawn(gateway::serve(gateway, listener, std::future::pending()));
    address
}

async fn start_bare(answer: &[u8]) -> SocketAddr {
    let (headers, body) = parse(answer);
    let mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    let shared = Arc::new((headers, body, mac));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let shared = shared.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(answer_bare(&shared, &request)) }
            });
            tokio::spawn(async move {
                let builder = Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

fn answer_bare(
    (headers, body, mac): &(HeaderMap, Bytes, Hmac<Sha256>),
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let sent = request.headers();
    let date = sent["x-ms-date"].to_str().unwrap().to_ascii_lowercase();
    let signature = sent["authorization"].to_str().unwrap().rsplit("%3d").next().unwrap();
    let signature = signature.replace("%2b", "+").replace("%2f", "/");
    let mut mac = mac.clone();
    mac.update(b"get\ndocs\n");
    mac.update(&request.uri().path().as_bytes()[1..]);
    mac.update(b"\n");
    mac.update(date.as_bytes());
    mac.update(b"\n\n");
    let expect = mac.finalize().into_bytes();
    let signature = STANDARD_NO_PAD.decode(signature).unwrap();
    assert!(bool::from(expect.as_slice().ct_eq(&signature)));
    let mut response = Response::new(Full::new(body.clone()));
    *response.headers_mut() = headers.clone();
    response
}

use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The headers and body of an answer.
fn parse(answer: &[u8]) -> (HeaderMap, Bytes) {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let headers = head.split("\r\n").skip(1).map(|line| line.split_once(": ").unwrap());
    let headers = headers.filter(|(name, _)| *name != "date" && *name != "content-length").map(
        |(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        },
    );
    (headers.collect(), Bytes::copy_from_slice(&answer[end + 4..]))
}

/// A signed read as an SDK sends it.
fn request() -> Vec<u8> {
    let now = Duration::from_secs(SystemClock.now().as_secs());
    let date = httpdate::fmt_http_date(UNIX_EPOCH + now);
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    let text = format!("get\ndocs\n{}\n{}\n\n", &PATH[1..], date.to_lowercase());
    mac.update(text.as_bytes());
    let signature = STANDARD_NO_PAD.encode(mac.finalize().into_bytes());
    let signature = signature.replace('+', "%2b").replace('/', "%2f");
    format!(
        "GET {PATH} HTTP/1.1\r\nhost: 127.0.0.1:8081\r\naccept: application/json\r\n\
         authorization: type%3dmaster%26ver%3d1.0%26sig%3d{signature}\r\nx-ms-date: {date}\r\n\
         x-ms-version: 2020-07-15\r\nx-ms-documentdb-partitionkey: [\"p1\"]\r\n\
         cache-control: no-cache\r\nuser-agent: bench\r\n\
         x-ms-activity-id: 5a8a3c2e-0000-4000-8000-1234567890ab\r\n\
         x-ms-consistency-level: Session\r\nx-ms-session-token: 0:-1#1\r\n\r\n"
    )
    .into_bytes()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends a request and reads one whole answer.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the server closed the connection");
        answer.extend_from_slice(&buffer[..read]);
        if let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{head}");
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if answer.len() == end + 4 + length {
                return answer;
            }
        }
    }
}

/// Requests per second over all connections.
fn rate(address: SocketAddr, request: &[u8]) -> f64 {
    let length = exchange(&mut connect(address), request).len();
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut stream = connect(address);
                let mut answer = vec![0; length];
                while !stop.load(Relaxed) {
                    stream.write_all(request).unwrap();
                    stream.read_exact(&mut answer).unwrap();
                    count.fetch_add(1, Relaxed);
                }
            });
        }
        std::thread::sleep(ROUND);
        stop.store(true, Relaxed);
    });
    count.load(Relaxed) as f64 / started.elapsed().as_secs_f64()
}
