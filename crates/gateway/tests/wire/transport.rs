//! Sockets: both protocols, TLS, slow and greedy clients, and the end of a server.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Client, Reply};
use crate::server::{Server, container};

const SOON: Duration = Duration::from_secs(5);

/// One GET over HTTP/2 with prior knowledge.
async fn get_http2(client: &Client, stream: TcpStream, path: &str) -> (u16, Bytes) {
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let mut request = hyper::Request::get(format!("http://test.local:80{path}"));
    for (name, value) in client.sign("GET", path) {
        request = request.header(name, value);
    }
    let request = request.header("x-ms-documentdb-partitionkey", "[1]");
    let (response, _) = sender.send_request(request.body(()).unwrap(), true).unwrap();
    let response = response.await.unwrap();
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        bytes.extend_from_slice(&chunk);
    }
    drop(sender);
    driver.abort();
    (status, bytes.into())
}

#[tokio::test]
async fn trap_05_http2_with_prior_knowledge_on_the_plain_port() {
    let (server, client) = Server::with_container().await;
    let item = json!({"id": "a", "pk": 1});
    client.request("POST", "/dbs/d/colls/c/docs").key("1").json(&item).send().await.expect(201);
    let connect = || TcpStream::connect(server.address);
    let (status, body) = get_http2(&client, connect().await.unwrap(), "/").await;
    let account: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status, 200);
    let endpoint = &account["readableLocations"][0]["databaseAccountEndpoint"];
    assert_eq!(endpoint, "http://test.local:80/");
    let (status, body) =
        get_http2(&client, connect().await.unwrap(), "/dbs/d/colls/c/docs/a").await;
    let item: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &item["id"]), (200, &json!("a")));
}

#[tokio::test]
async fn tls_with_a_certificate_made_here() {
    let tls = gateway::Tls::self_signed(&["test.local".to_owned()]).unwrap();
    let pem = tls.certificate_pem().unwrap().to_owned();
    let server = Server::with(|config| config.tls = Some(tls)).await;
    let client = server.client();
    for (protocol, is_http2) in [(&b"http/1.1"[..], false), (b"h2", true)] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let mut stream = handshake(&pem, protocol, stream).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        if !is_http2 {
            stream.write_all(&client.request("GET", "/").to_bytes()).await.unwrap();
            let mut answer = Vec::new();
            // The server may close without the goodbye of TLS; the answer is whole by then.
            let _ = stream.read_to_end(&mut answer).await;
            let account = Reply::parse(&answer).expect(200).json();
            let endpoint = &account["writableLocations"][0]["databaseAccountEndpoint"];
            assert_eq!(endpoint, "https://test.local:80/");
        }
    }
}

async fn handshake(
    pem: &str,
    protocol: &[u8],
    stream: TcpStream,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    use rustls::pki_types::pem::PemObject;
    let certificate = rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    connector.connect("localhost".try_into().unwrap(), stream).await.unwrap()
}

#[tokio::test]
async fn chunked_bodies_and_keep_alive() {
    let (server, client) = Server::with_container().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = |method: &str, path: &str| {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n");
        for (name, value) in client.sign(method, path) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    };
    let path = "/dbs/d/colls/c/docs";
    let mut request = head("POST", path);
    request.push_str("transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 4096];
    let read = timeout(SOON, stream.read(&mut buffer)).await.unwrap().unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 100"));
    stream.write_all(b"8\r\n{\"id\":\"a\r\n9\r\n\",\"pk\":1}\r\n0\r\n\r\n").await.unwrap();
    let read = timeout(SOON, stream.read(&mut buffer)).await.unwrap().unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 201"));
    let mut request = head("GET", "/dbs/d/colls/c/docs/a");
    request.push_str("x-ms-documentdb-partitionkey: [1]\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let read = timeout(SOON, stream.read(&mut buffer)).await.unwrap().unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_that_never_ends_is_dropped() {
    let server =
        Server::with(|config| config.limits.head_timeout = Duration::from_millis(200)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /dbs HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let dripping = async {
        while stream.write_all(b"x-drip: 1\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(SOON, dripping).await.expect("the server closes the connection");
}

#[tokio::test]
async fn idle_connections_stay_until_their_time() {
    let server = Server::with(|config| {
        config.limits.head_timeout = Duration::from_millis(100);
        config.limits.idle_timeout = Duration::from_millis(600);
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let mut byte = [0];
    let early = timeout(Duration::from_millis(300), stream.read(&mut byte)).await;
    assert!(early.is_err(), "it is still open");
    let late = timeout(SOON, stream.read(&mut byte)).await.unwrap();
    assert_eq!(late.unwrap(), 0);
}

#[tokio::test]
async fn a_thousand_idle_connections() {
    let server = Server::start().await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(TcpStream::connect(server.address).await.unwrap());
    }
    timeout(SOON, server.client().get("/")).await.unwrap().expect(200);
}

#[tokio::test]
async fn connections_over_the_cap_wait() {
    let server = Server::with(|config| config.limits.connections_max = 2).await;
    let first = TcpStream::connect(server.address).await.unwrap();
    let _second = TcpStream::connect(server.address).await.unwrap();
    let client = server.client();
    let third = tokio::spawn(async move { client.get("/").await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!third.is_finished());
    drop(first);
    timeout(SOON, third).await.unwrap().unwrap().expect(200);
}

#[tokio::test]
async fn a_body_that_stops_halfway_is_answered_408() {
    let server = Server::with(|config| {
        config.limits.body_pause_timeout = Duration::from_millis(100);
    })
    .await;
    let client = server.client();
    let mut bytes = client.request("POST", "/dbs").bytes(b"{\"id\":\"d\"}").to_bytes();
    bytes.truncate(bytes.len() - 3);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(Reply::parse(&answer).expect(408).json()["code"], "RequestTimeout");
}

#[tokio::test]
async fn a_client_that_stops_reading_is_dropped() {
    let server =
        Server::with(|config| config.limits.write_timeout = Duration::from_millis(200)).await;
    let client = server.client();
    client.post("/dbs", &json!({"id": "d"})).await.expect(201);
    client.post("/dbs/d/colls", &container("c", &["/pk"])).await.expect(201);
    let item = json!({"id": "a", "pk": 1, "text": "x".repeat(1_900_000)});
    client.request("POST", "/dbs/d/colls/c/docs").key("1").json(&item).send().await.expect(201);
    let request = client.request("GET", "/dbs/d/colls/c/docs/a").key("1").to_bytes();
    let request = String::from_utf8(request).unwrap().replace("connection: close\r\n", "");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // Enough answers to fill the buffers of both sides; none is read.
    for _ in 0..20 {
        stream.write_all(request.as_bytes()).await.unwrap();
    }
    let pushing = async {
        while stream.write_all(request.as_bytes()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), pushing).await.expect("the server closes the connection");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_while_it_is_sent() {
    let (server, client) = Server::with_container().await;
    let mut head = String::from("POST /dbs/d/colls/c/docs HTTP/1.1\r\nhost: x\r\n");
    for (name, value) in client.sign("POST", "/dbs/d/colls/c/docs") {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 16, "x".repeat(1 << 16));
    for _ in 0..50 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert_eq!(Reply::parse(&answer).expect(413).json()["code"], "RequestEntityTooLarge");
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_is_open() {
    let mut server = Server::start().await;
    let client = server.client();
    let address = server.address;
    let bytes = client.request("POST", "/dbs").bytes(b"{\"id\":\"d\"}").to_bytes();
    let (head, rest) = bytes.split_at(bytes.len() - 4);
    let mut open = TcpStream::connect(address).await.unwrap();
    let mut idle = TcpStream::connect(address).await.unwrap();
    open.write_all(head).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.signal();
    let mut byte = [0];
    let closed = timeout(SOON, idle.read(&mut byte)).await.expect("idle connections close at once");
    assert_eq!(closed.unwrap_or(0), 0);
    open.write_all(rest).await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, open.read_to_end(&mut answer)).await.unwrap().unwrap();
    Reply::parse(&answer).expect(201);
    let refused = timeout(SOON, TcpStream::connect(address)).await.unwrap();
    assert!(refused.is_err() || server.engine.read_database("d").is_ok());
}

#[tokio::test]
async fn a_server_stops_in_bounded_time() {
    let server = Server::with(|config| {
        config.limits.shutdown_timeout = Duration::from_millis(200);
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = server.client().request("POST", "/dbs").bytes(b"{\"id\":\"d\"}").to_bytes();
    stream.write_all(&bytes[..bytes.len() - 4]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    timeout(SOON, server.stop()).await.expect("half a request does not hold the server");
}

#[tokio::test]
async fn garbage_does_not_hurt() {
    let server = Server::start().await;
    for garbage in
        [&b"\0\0\0\0\0\0"[..], b"GET\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", b"\x16\x03\x01"]
    {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap();
    }
    server.client().get("/").await.expect(200);
}

/// A client that is still sending must see why it was refused, not a reset connection.
#[tokio::test]
async fn a_refused_sender_of_a_large_body_gets_its_answer() {
    let (server, _client) = Server::with_container().await;
    let stranger = Client::new(server.address, "d3Jvbmc=");
    let item = json!({"id": "a", "pk": 1, "text": "x".repeat(1_900_000)});
    for _ in 0..5 {
        let request = stranger.request("POST", "/dbs/d/colls/c/docs").key("1").json(&item);
        request.send().await.expect(401);
    }
}

#[tokio::test]
async fn a_slow_body_does_not_use_up_the_time_of_its_operation() {
    let server = Server::with(|config| {
        config.limits.operation_timeout = Duration::from_millis(300);
    })
    .await;
    let bytes = server.client().request("POST", "/dbs").bytes(b"{\"id\":\"d\"}").to_bytes();
    let (head, rest) = bytes.split_at(bytes.len() - 4);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    stream.write_all(rest).await.unwrap();
    let mut answer = Vec::new();
    timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    Reply::parse(&answer).expect(201);
}
