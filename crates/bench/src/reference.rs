//! The reference for point reads: the same HTTP stack, the same signature check, the same bytes and
//! headers in every answer, and nothing else. The items are in memory, by path.
//!
//! It copies the answers of a running server when it starts, so the two cannot differ in what they
//! send; only `date` and `content-length` are hyper's in both.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use client::{Key, date_now, headers};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};

use crate::items::{Data, Items, container};
use crate::load::Connection;

/// The head limit of the real server.
const HEAD_BYTES_MAX: usize = 128 * 1024;
const COPIERS: u64 = 16;

/// Flags of `reference`.
#[derive(Debug, Args)]
pub struct Flags {
    /// Address of the server to copy the answers of
    #[arg(long)]
    copy_from: SocketAddr,
    /// The container the items are in
    #[arg(long)]
    container: String,
    /// How many there are
    #[arg(long)]
    items: u64,
}

/// An answer.
#[derive(Debug)]
struct Entry {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

struct Reference {
    key: Key,
    entries: HashMap<String, Entry>,
}

/// Copies the answers, then serves them until the process is ended.
pub async fn run(flags: Flags) -> Result<()> {
    let entries = copy(&flags).await?;
    let reference = Arc::new(Reference { key: Key::development(), entries });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("reference ready on http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(reference.clone(), stream));
    }
}

async fn serve(reference: Arc<Reference>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let reference = reference.clone();
        async move { Ok::<_, Infallible>(reference.answer(&request)) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX);
    // A client that goes away is no error of ours.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

impl Reference {
    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !self.is_signed(request) {
            return status(StatusCode::UNAUTHORIZED);
        }
        let Some(entry) = self.entries.get(request.uri().path()) else {
            return status(StatusCode::NOT_FOUND);
        };
        let mut response = Response::new(Full::new(entry.body.clone()));
        let mut headers = HeaderMap::with_capacity(24);
        for (name, value) in &entry.headers {
            headers.insert(name, value.clone());
        }
        *response.headers_mut() = headers;
        response
    }

    fn is_signed(&self, request: &Request<Incoming>) -> bool {
        let path = request.uri().path().trim_start_matches('/');
        let kind = path.rsplit('/').nth(1).unwrap_or_default();
        let date = request.headers().get(headers::DATE).and_then(|date| date.to_str().ok());
        let authorization = request.headers().get(AUTHORIZATION);
        let (Some(date), Some(authorization)) = (date, authorization) else { return false };
        self.key.has_signed(("get", kind, path), date, authorization.as_bytes())
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

async fn copy(flags: &Flags) -> Result<HashMap<String, Entry>> {
    let items = Items { count: flags.items };
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..COPIERS {
        let (address, name) = (flags.copy_from, flags.container.clone());
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut entries = Vec::new();
            for number in (first..items.count).step_by(COPIERS as usize) {
                entries.push(copy_one(&mut connection, &name, items, number).await?);
            }
            anyhow::Ok(entries)
        });
    }
    let mut entries = HashMap::new();
    while let Some(copied) = tasks.join_next().await {
        entries.extend(copied??);
    }
    Ok(entries)
}

async fn copy_one(
    connection: &mut Connection,
    name: &str,
    items: Items,
    number: u64,
) -> Result<(String, Entry)> {
    let request = container(name).read(&items.key(number), &items.id(number));
    let bytes = request.to_bytes(&Key::development(), "localhost", &date_now());
    let answer = connection.exchange(&bytes).await?;
    let (head, body) = connection.bytes()[..answer.head + answer.body].split_at(answer.head);
    if answer.status != 200 {
        bail!("{}{}", String::from_utf8_lossy(head), String::from_utf8_lossy(body));
    }
    let headers = headers_of(std::str::from_utf8(head)?)?;
    Ok((request.path().to_owned(), Entry { headers, body: Bytes::copy_from_slice(body) }))
}

/// The headers of an answer but those that hyper writes itself.
fn headers_of(head: &str) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let lines = head.lines().skip(1).filter(|line| !line.is_empty());
    let pairs = lines.map(|line| line.split_once(": ").context("a header has a name and a value"));
    let pairs = pairs.collect::<Result<Vec<(&str, &str)>>>()?;
    pairs
        .into_iter()
        .filter(|(name, _)| !["date", "content-length"].contains(name))
        .map(|(name, value)| Ok((name.parse()?, value.parse()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_copied_but_for_two() {
        let head =
            "HTTP/1.1 200 OK\r\ndate: now\r\netag: \"1\"\r\ncontent-length: 3\r\na: b\r\n\r\n";
        let headers = headers_of(head).unwrap();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["etag", "a"]);
        assert!(headers_of("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n").is_err());
    }
}
