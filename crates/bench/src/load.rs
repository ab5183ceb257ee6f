//! The load generator: keep-alive connections that send ready-made bytes and read just enough of
//! the answers.
//!
//! It shares its cores with what it measures, so it is as lean as it can be: no HTTP library, one
//! write and usually one read per request, no allocation. Its own share is measured and reported.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base::Random;
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Writes the next request of a connection into a buffer.
pub type Fill = Arc<dyn Fn(&Random, &mut Vec<u8>) + Send + Sync>;

/// What to send, to whom, and for how long.
#[derive(Clone)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// How many connections send at once.
    pub connections: usize,
    /// For how long.
    pub time: Duration,
    /// The status every answer must have.
    pub status: u16,
    /// The requests.
    pub fill: Fill,
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Answers.
    pub requests: u64,
    /// How long it took.
    pub seconds: f64,
    /// How long each answer took, in microseconds, ascending.
    pub latencies: Vec<u32>,
}

impl Outcome {
    /// Answers per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds.max(1e-9)
    }

    /// A percentile of the latency, in microseconds.
    pub fn percentile(&self, percent: f64) -> u32 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * percent / 100.0).round() as usize;
        self.latencies.get(at).copied().unwrap_or(0)
    }
}

impl Load {
    /// Sends until the time is over.
    pub async fn run(&self) -> Result<Outcome> {
        let mut tasks = tokio::task::JoinSet::new();
        let random = Random::from_entropy();
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            connections.push(Connection::open(self.address).await?);
        }
        let started = Instant::now();
        for mut connection in connections {
            let (load, random) = (self.clone(), Random::from_seed(random.next()));
            tasks.spawn(async move { connection.send_until(&load, started, &random).await });
        }
        let mut latencies: Vec<u32> = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            latencies.extend(ended??);
        }
        let seconds = started.elapsed().as_secs_f64();
        latencies.sort_unstable();
        Ok(Outcome { requests: latencies.len() as u64, seconds, latencies })
    }
}

/// One keep-alive connection.
pub struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// Where the parts of an answer are.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Bytes of the head, with the empty line.
    pub head: usize,
    /// Bytes of the body.
    pub body: usize,
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await.context("the server does not listen")?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, request: Vec::new(), answer: vec![0; 64 * 1024] })
    }

    async fn send_until(
        &mut self,
        load: &Load,
        started: Instant,
        random: &Random,
    ) -> Result<Vec<u32>> {
        let mut latencies = Vec::with_capacity(1 << 16);
        let mut request = std::mem::take(&mut self.request);
        while started.elapsed() < load.time {
            request.clear();
            (load.fill)(random, &mut request);
            let sent = Instant::now();
            let answer = self.exchange(&request).await?;
            latencies.push(sent.elapsed().as_micros() as u32);
            if answer.status != load.status {
                let text = String::from_utf8_lossy(&self.answer[..answer.head + answer.body]);
                bail!("expected {}, got {text}", load.status);
            }
        }
        self.request = request;
        Ok(latencies)
    }

    /// Sends a request and reads its answer whole.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request).await?;
        let mut filled = 0;
        loop {
            if filled == self.answer.len() {
                self.answer.resize(filled * 2, 0);
            }
            let read = self.stream.read(&mut self.answer[filled..]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            match parse(&self.answer[..filled]) {
                Some(answer) if filled == answer.head + answer.body => return Ok(answer),
                Some(answer) if filled > answer.head + answer.body => {
                    return Err(io::Error::other("the answer is longer than it says"));
                }
                Some(_) | None => {}
            }
        }
    }

    /// The value of a header of the last answer, whose name is in lower case.
    pub fn header(&self, answer: &Answer, name: &str) -> Option<&str> {
        let head = std::str::from_utf8(&self.answer[..answer.head]).ok()?;
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The bytes of the last answer.
    pub fn bytes(&self) -> &[u8] {
        &self.answer
    }
}

/// Finds the parts of an answer; `None` while its head is not complete.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let head = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let status = std::str::from_utf8(bytes.get(9..12)?).ok()?.parse().ok()?;
    // Our servers write header names in lower case, Node.js writes its own like this.
    let length = memmem::find(&bytes[..head], b"\r\ncontent-length: ")
        .or_else(|| memmem::find(&bytes[..head], b"\r\nContent-Length: "));
    let body = length.map_or(0, |at| {
        let digits = bytes[at + 18..head].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
    });
    Some(Answer { status, head, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let check = |text: &str, expect: Option<(u16, usize)>| {
            let answer = parse(text.as_bytes());
            assert_eq!(answer.map(|answer| (answer.status, answer.body)), expect, "{text}");
        };
        check("HTTP/1.1 200 OK\r\ncontent-length: 12\r\netag: 1\r\n\r\n", Some((200, 12)));
        check("HTTP/1.1 200 OK\r\netag: 1\r\nContent-Length: 12\r\n\r\n", Some((200, 12)));
        check("HTTP/1.1 204 No Content\r\netag: 1\r\n\r\n", Some((204, 0)));
        check("HTTP/1.1 200 OK\r\ncontent-length: 12\r\n", None);
        check("", None);
    }

    #[test]
    fn percentiles() {
        let outcome = Outcome { latencies: (1..=101).collect(), ..Outcome::default() };
        assert_eq!((outcome.percentile(0.0), outcome.percentile(50.0)), (1, 51));
        assert_eq!((outcome.percentile(99.0), outcome.percentile(100.0)), (100, 101));
        assert_eq!(Outcome::default().percentile(50.0), 0);
    }
}
