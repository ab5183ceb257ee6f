//! A client as small as the protocol allows: one request per connection, signed by hand.

use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::now_secs;

/// Sends requests to one server with one credential.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    credential: Credential,
}

#[derive(Clone)]
enum Credential {
    Key(String),
    Token(String),
}

/// A request to be sent.
pub struct Request<'a> {
    client: &'a Client,
    method: &'a str,
    path: &'a str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr, key: &str) -> Client {
        Client { address, credential: Credential::Key(key.to_owned()) }
    }

    pub fn with_token(&self, token: &str) -> Client {
        Client { address: self.address, credential: Credential::Token(token.to_owned()) }
    }

    pub fn request<'a>(&'a self, method: &'a str, path: &'a str) -> Request<'a> {
        Request { client: self, method, path, headers: Vec::new(), body: Vec::new() }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.request("GET", path).send().await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.request("POST", path).json(body).send().await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.request("DELETE", path).send().await
    }

    /// A query of a feed.
    pub fn query<'a>(&'a self, path: &'a str, text: &str) -> Request<'a> {
        self.request("POST", path)
            .header("x-ms-documentdb-isquery", "True")
            .header("content-type", "application/query+json")
            .json(&serde_json::json!({"query": text}))
    }

    /// The headers that say who sends a request.
    pub fn sign(&self, method: &str, path: &str) -> Vec<(String, String)> {
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now_secs()));
        let authorization = match &self.credential {
            Credential::Token(token) => escape(token),
            Credential::Key(key) => {
                let (kind, link) = signed(path);
                let method = method.to_lowercase();
                let text = format!("{method}\n{kind}\n{link}\n{}\n\n", date.to_lowercase());
                let mut mac =
                    Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
                mac.update(text.as_bytes());
                let signature = STANDARD.encode(mac.finalize().into_bytes());
                escape(&format!("type=master&ver=1.0&sig={signature}"))
            }
        };
        vec![
            ("authorization".to_owned(), authorization),
            ("x-ms-date".to_owned(), date),
            ("x-ms-version".to_owned(), "2020-07-15".to_owned()),
        ]
    }
}

impl Request<'_> {
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The partition key, as the JSON of its only component.
    pub fn key(self, component: &str) -> Self {
        self.header("x-ms-documentdb-partitionkey", &format!("[{component}]"))
    }

    pub fn json(self, body: &Value) -> Self {
        self.bytes(body.to_string().as_bytes())
    }

    pub fn bytes(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    /// The request as it goes over the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: test.local:80\r\n", self.method, self.path);
        for (name, value) in self.client.sign(self.method, self.path).iter().chain(&self.headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("connection: close\r\ncontent-length: {}\r\n\r\n", self.body.len()));
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    pub async fn send(self) -> Reply {
        exchange(self.client.address, &self.to_bytes()).await
    }
}

/// Sends bytes and reads the answer until the server closes.
pub async fn exchange(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    Reply::parse(&answer)
}

impl Reply {
    /// Takes an answer apart.
    pub fn parse(bytes: &[u8]) -> Reply {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or((line, ""));
            (name.to_owned(), value.to_owned())
        });
        Reply { status, headers: headers.collect(), body: bytes[end + 4..].to_vec() }
    }

    /// Fails the test unless the status is this one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Reply {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    /// Fails the test unless status and sub-status are these.
    #[track_caller]
    pub fn expect_sub(self, status: u16, sub: &str) -> Reply {
        let reply = self.expect(status);
        assert_eq!(reply.header("x-ms-substatus"), Some(sub));
        reply
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// A header that must be there.
    #[track_caller]
    pub fn need(&self, name: &str) -> &str {
        self.header(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers))
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The message of an error.
    #[track_caller]
    pub fn message(&self) -> String {
        self.json()["message"].as_str().unwrap().to_owned()
    }

    /// The rows of a feed.
    #[track_caller]
    pub fn rows(&self) -> Vec<Value> {
        let body = self.json();
        let array = body.as_object().unwrap().values().find(|value| value.is_array());
        array.unwrap().as_array().unwrap().clone()
    }
}

/// The type and link of a path, by the rule of the protocol.
fn signed(path: &str) -> (String, String) {
    let bare = path.trim_matches('/');
    if bare.is_empty() {
        return (String::new(), String::new());
    }
    let segments: Vec<String> = bare.split('/').map(unescape).collect();
    let at = segments.len();
    match &segments[..] {
        [offers, rid] if offers == "offers" => (offers.clone(), rid.to_lowercase()),
        [.., operations, _] if operations == "operations" => {
            ("colls".to_owned(), segments[..at - 2].join("/"))
        }
        _ if at.is_multiple_of(2) => (segments[at - 2].clone(), segments.join("/")),
        _ => (segments[at - 1].clone(), segments[..at - 1].join("/")),
    }
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let hex = std::str::from_utf8(&tail[..2]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Escapes as `encodeURIComponent` does.
pub fn escape(text: &str) -> String {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte);
    text.bytes()
        .map(|byte| if stays(byte) { (byte as char).to_string() } else { format!("%{byte:02x}") })
        .collect()
}
