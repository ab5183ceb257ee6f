//! Servers as processes of their own: started, awaited, asked to stop.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use client::{Client, Key, Operation, Request};

use crate::items::{DATABASE, Data, container, key};
use crate::machine;

const READY_TIMEOUT: Duration = Duration::from_secs(300);
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// A server that prints a line with its address when it is ready.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    /// From its start to its line.
    pub ready: Duration,
}

impl Server {
    /// Starts a command; its log goes to a file.
    pub async fn start(command: &mut Command, log: &Path) -> Result<Server> {
        let log = File::options().create(true).append(true).open(log)?;
        let started = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut server = Server {
            child: child.with_context(|| format!("cannot start {command:?}"))?,
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            ready: Duration::ZERO,
        };
        let out = server.child.stdout.take().context("standard output is piped")?;
        // A thread, not a task: it goes on reading, so that the server never finds a closed pipe.
        let (sender, receiver) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            use std::io::BufRead;
            let mut lines = std::io::BufReader::new(out).lines();
            let _ = sender.send(lines.next().and_then(Result::ok));
            lines.for_each(drop);
        });
        let line = tokio::time::timeout(READY_TIMEOUT, receiver).await??;
        server.ready = started.elapsed();
        let line = line.context("the server ended before it was ready; see its log")?;
        let endpoint = line.split_whitespace().find_map(|word| word.strip_prefix("http://"));
        server.address = endpoint.and_then(|text| text.parse().ok()).context(line)?;
        Ok(server)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `http://…`
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client of it.
    pub fn client(&self) -> Result<Client> {
        Ok(Client::new(&self.endpoint(), Key::development())?)
    }

    /// Asks it to stop and waits until it has; returns how long that took.
    pub fn stop(mut self) -> Result<Duration> {
        let started = Instant::now();
        Command::new("kill").arg("-TERM").arg(self.id().to_string()).status()?;
        while started.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return match status.success() {
                    true => Ok(started.elapsed()),
                    false => bail!("the server ended with {status}; see its log"),
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the server does not stop")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server under test: its binary and how it is started.
#[derive(Clone, Debug)]
pub struct Cosmolabe {
    /// The release binary.
    pub binary: PathBuf,
    /// Where data directories and logs go.
    pub directory: PathBuf,
}

impl Cosmolabe {
    /// Starts it, durable and with the default cache, on a directory of this name.
    pub async fn serve(&self, name: &str) -> Result<Server> {
        self.serve_with(name, "sync").await
    }

    /// Starts it with so much memory for caches, and it runs queries with the least work rather than
    /// with the work that the price list of 2019 counts.
    pub async fn serve_queries(&self, name: &str, cache: &str) -> Result<Server> {
        let flags = ["--durability", "sync", "--ru-profile", "modern", "--cache-size", cache];
        self.serve_as(name, &flags).await
    }

    /// Starts it with a kind of durability.
    pub async fn serve_with(&self, name: &str, durability: &str) -> Result<Server> {
        self.serve_as(name, &["--durability", durability]).await
    }

    /// Starts it with flags.
    pub async fn serve_as(&self, name: &str, flags: &[&str]) -> Result<Server> {
        let mut command = Command::new(&self.binary);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("COSMOLABE_")) {
            command.env_remove(name);
        }
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(flags)
            .arg("--data-dir")
            .arg(self.directory.join(name));
        Server::start(&mut command, &self.directory.join(format!("{name}.log"))).await
    }
}

/// What a server does by itself counts as nothing below this share of a core.
const QUIET_SHARE: f64 = 0.05;
const QUIET_INTERVAL: Duration = Duration::from_millis(500);
const QUIET_TIMEOUT: Duration = Duration::from_secs(60);

impl Server {
    /// Waits until it does nothing by itself: caches are filled, tables are merged.
    pub async fn settle(&self) {
        let started = Instant::now();
        let mut before = machine::cpu_seconds(self.id());
        while started.elapsed() < QUIET_TIMEOUT {
            tokio::time::sleep(QUIET_INTERVAL).await;
            let now = machine::cpu_seconds(self.id());
            if now - before < QUIET_SHARE * QUIET_INTERVAL.as_secs_f64() {
                return;
            }
            before = now;
        }
    }
}

/// Creates the database.
pub async fn create_database(client: &Client) -> Result<()> {
    client.send(&Request::create_database(DATABASE)).await?;
    Ok(())
}

/// Creates a container keyed by `/pk`.
pub async fn create_container(client: &Client, name: &str) -> Result<()> {
    client.send(&container(name).create_keyed_by("/pk", None)).await?;
    Ok(())
}

/// Operations of one bulk request, and how many requests are under way.
const BULK: u64 = 100;
const LOADERS: u64 = 8;

/// Fills a container with items by bulk requests. Returns items per second.
pub async fn fill(
    server: &Server,
    name: &'static str,
    data: impl Data + Copy + 'static,
) -> Result<f64> {
    let (started, count) = (Instant::now(), data.count());
    let mut tasks = tokio::task::JoinSet::new();
    for loader in 0..LOADERS {
        let client = server.client()?;
        tasks.spawn(async move {
            let mut first = loader * BULK;
            while first < count {
                fill_some(&client, name, &data, first..count.min(first + BULK)).await?;
                first += LOADERS * BULK;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

async fn fill_some(
    client: &Client,
    name: &str,
    data: &dyn Data,
    numbers: std::ops::Range<u64>,
) -> Result<()> {
    let bodies: Vec<(String, String)> =
        numbers.map(|number| (key(&data.key_text(number)).to_array(), data.body(number))).collect();
    let operations: Vec<(String, Operation<'_>)> =
        bodies.iter().map(|(key, body)| (key.clone(), Operation::Create(body))).collect();
    let reply = client.send(&container(name).bulk(&operations).minimal()).await?;
    match reply.status {
        200 => Ok(()),
        status => bail!("loading: {status} {}", String::from_utf8_lossy(&reply.body)),
    }
}

/// CPU seconds of the load generator: this process.
pub fn own_cpu_seconds() -> f64 {
    machine::cpu_seconds(std::process::id())
}
