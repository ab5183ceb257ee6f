//! Queries over HTTP: one execution whose rows are looked at, and load whose rows are only read.
//!
//! An execution is over when the last page has come: a server that answers in pages pays for each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base::Random;
use client::{Client, Container, Key, Reply, date_now, headers};
use serde_json::Value;

use crate::items::{container, key};
use crate::load::{Connection, Outcome};
use crate::machine::cpu_seconds;
use crate::process::{Server, own_cpu_seconds};
use crate::queries::{Draw, Query, Sizes};
use crate::slices::{Side, Slice};

/// As many rows on a page as the server likes.
const ROWS_MAX: i64 = -1;

/// Rows of a query by what tells them apart, sorted.
pub async fn rows(client: &Client, query: &Query, draw: &Draw) -> Result<Vec<String>> {
    let container = container(query.set.name());
    let mut rows = Vec::new();
    let mut continuation = None;
    loop {
        let reply = page(client, &container, query, draw, continuation.as_deref()).await?;
        rows.extend(reply.rows()?.iter().map(|row| tell_apart(row, query.columns)));
        match reply.continuation() {
            Some(token) => continuation = Some(token.to_owned()),
            None => break,
        }
    }
    rows.sort_unstable();
    Ok(rows)
}

async fn page(
    client: &Client,
    container: &Container,
    query: &Query,
    draw: &Draw,
    continuation: Option<&str>,
) -> Result<Reply> {
    let names = query.parameters.iter().copied();
    let values = draw.values.iter().map(|value| Value::from(value.as_str()));
    let parameters: Vec<(&str, Value)> = names.zip(values).collect();
    let mut request = container.query(query.text, &parameters, ROWS_MAX);
    if let Some(text) = &draw.key {
        request = request.with_key(&key(text));
    }
    if let Some(token) = continuation {
        request = request.with(headers::CONTINUATION, token);
    }
    let reply = client.send(&request).await?;
    match reply.status {
        200 => Ok(reply),
        _ => bail!("{reply}"),
    }
}

fn tell_apart(row: &Value, columns: &[&str]) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match columns {
        [] => plain(row),
        _ => columns.iter().map(|name| plain(&row[*name])).collect::<Vec<_>>().join(" "),
    }
}

/// Load on one server: a query with ever new parameters.
pub struct Asking {
    address: SocketAddr,
    process: u32,
    /// How many connections ask at once.
    pub connections: usize,
    query: &'static Query,
    sizes: Sizes,
}

impl Asking {
    /// Load on this server.
    pub fn of(server: &Server, query: &'static Query, sizes: Sizes, connections: usize) -> Asking {
        Asking { address: server.address, process: server.id(), connections, query, sizes }
    }
}

impl Side for Asking {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let template = Arc::new(Template::new(self.query, self.sizes));
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(self.address).await?);
        }
        let before = (cpu_seconds(self.process), own_cpu_seconds());
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for connection in connections {
            tasks.spawn(ask_until(connection, template.clone(), started, time));
        }
        let mut latencies: Vec<u32> = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            latencies.extend(ended?.context(self.query.name)?);
        }
        let seconds = started.elapsed().as_secs_f64();
        let after = (cpu_seconds(self.process), own_cpu_seconds());
        latencies.sort_unstable();
        let outcome = Outcome { requests: latencies.len() as u64, seconds, latencies };
        Ok(Slice { outcome, server_cpu: after.0 - before.0, load_cpu: after.1 - before.1 })
    }
}

async fn ask_until(
    mut connection: Connection,
    template: Arc<Template>,
    started: Instant,
    time: Duration,
) -> Result<Vec<u32>> {
    let random = Random::from_entropy();
    let (mut latencies, mut request) = (Vec::new(), Vec::new());
    while started.elapsed() < time {
        let draw = (template.query.draw)(&template.sizes, &random);
        let sent = Instant::now();
        let mut continuation: Option<String> = None;
        loop {
            template.write(&draw, continuation.as_deref(), &mut request);
            let answer = connection.exchange(&request).await?;
            if answer.status != 200 {
                let body = &connection.bytes()[answer.head..answer.head + answer.body];
                bail!("{} {}", answer.status, String::from_utf8_lossy(body));
            }
            continuation = connection.header(&answer, headers::CONTINUATION).map(str::to_owned);
            if continuation.is_none() {
                break;
            }
        }
        latencies.push(sent.elapsed().as_micros() as u32);
    }
    Ok(latencies)
}

/// A query with everything but key, continuation and parameters filled in: the signature covers
/// none of them.
struct Template {
    query: &'static Query,
    sizes: Sizes,
    head: Vec<u8>,
    text: String,
}

/// How a request without a body ends.
const NO_BODY: &[u8] = b"content-length: 0\r\n\r\n";

impl Template {
    fn new(query: &'static Query, sizes: Sizes) -> Template {
        let request = container(query.set.name()).query("", &[], ROWS_MAX).with_body("");
        let mut head = request.to_bytes(&Key::development(), "localhost", &date_now());
        assert!(head.ends_with(NO_BODY), "the head ends with the length of the body");
        head.truncate(head.len() - NO_BODY.len());
        Template { query, sizes, head, text: Value::from(query.text).to_string() }
    }

    /// Writes the request for a page. Keys and values are plain text, as in all our data.
    fn write(&self, draw: &Draw, continuation: Option<&str>, out: &mut Vec<u8>) {
        let pairs = self.query.parameters.iter().zip(&draw.values);
        let parameters: Vec<String> = pairs
            .map(|(name, value)| format!(r#"{{"name":"{name}","value":"{value}"}}"#))
            .collect();
        let body = format!(r#"{{"query":{},"parameters":[{}]}}"#, self.text, parameters.join(","));
        out.clear();
        out.extend_from_slice(&self.head);
        if let Some(key) = &draw.key {
            let line = format!("{}: [\"{key}\"]\r\n", headers::PARTITION_KEY);
            out.extend_from_slice(line.as_bytes());
        }
        if let Some(token) = continuation {
            out.extend_from_slice(format!("{}: {token}\r\n", headers::CONTINUATION).as_bytes());
        }
        out.extend_from_slice(format!("content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blog::{Activity, Blog};
    use crate::queries::Name;

    #[test]
    fn requests_from_a_template() {
        let sizes = Sizes { blog: Blog { posts: 200 }, activity: Activity { users: 2, each: 100 } };
        let query = Name::Comments.query();
        let draw = (query.draw)(&sizes, &Random::from_seed(1));
        let mut bytes = Vec::new();
        Template::new(query, sizes).write(&draw, Some("token"), &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        assert!(head.contains(&format!(": [\"{}\"]\r\n", draw.values[0])), "{head}");
        assert!(head.contains(&format!("{}: token\r\n", headers::CONTINUATION)), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["parameters"], json!([{"name": "@post", "value": draw.values[0]}]));
    }

    #[test]
    fn rows_are_told_apart() {
        let row = json!({"id": "a", "n": 3, "other": true});
        assert_eq!(tell_apart(&row, &["id"]), "a");
        assert_eq!(tell_apart(&row, &["id", "n"]), "a 3");
        assert_eq!(tell_apart(&json!(7), &[]), "7");
    }
}
