//! PostgreSQL on loopback, with its data beside ours: a table of items with a GIN index.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls, Statement};

use crate::creates::SPREAD;
use crate::load::Outcome;
use crate::machine::{cpu_seconds_with_children, output};
use crate::process::own_cpu_seconds;
use crate::slices::{Side, Slice};

/// Durable, and with enough memory that it need not read what it indexes.
const SETTINGS: [(&str, &str); 9] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "1GB"),
    ("max_wal_size", "8GB"),
    ("checkpoint_timeout", "15min"),
    ("max_connections", "100"),
    ("listen_addresses", "127.0.0.1"),
    ("unix_socket_directories", ""),
];
const TABLE: &str =
    "CREATE TABLE items (pk text, id text, body jsonb NOT NULL, PRIMARY KEY (pk, id))";
const INDEX: &str = "CREATE INDEX items_body ON items USING gin (body) WITH (fastupdate = off)";
const INSERT: &str = "INSERT INTO items (pk, id, body) VALUES ($1, $2, $3::text::jsonb)";
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server of its own, gone with the value.
pub struct Postgres {
    child: Child,
    port: u16,
    version: String,
    next: Arc<AtomicU64>,
}

impl Postgres {
    /// Makes a cluster below the directory and starts a server on it.
    pub async fn start(directory: &Path) -> Result<Postgres> {
        let programs = programs().context("PostgreSQL is not installed (package postgresql)")?;
        let data = directory.join("postgres");
        let owner = Owner::find();
        make_cluster(&programs, &data, owner)?;
        let port = free_port()?;
        let log = File::create(directory.join("postgres.log"))?;
        let mut command = owner.command(&programs.join("postgres"));
        command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
        for (name, value) in SETTINGS {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let version = output(Command::new(programs.join("postgres")).arg("--version"));
        let postgres = Postgres { child, port, version, next: Arc::default() };
        let client = postgres.connect_patiently().await?;
        for statement in [TABLE, INDEX] {
            client.batch_execute(statement).await?;
        }
        Ok(postgres)
    }

    /// What it is.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How it is set up, for the report.
    pub fn settings(&self) -> Value {
        json!({"server": SETTINGS.map(|(name, value)| format!("{name}={value}")),
               "table": TABLE, "index": INDEX, "statement": INSERT})
    }

    /// Connections that insert, one insert per transaction, by prepared statements.
    pub async fn inserts(&self, connections: usize) -> Result<Inserts> {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = self.connect().await?;
            let statement = client.prepare(INSERT).await?;
            clients.push(Arc::new((client, statement)));
        }
        Ok(Inserts { clients, process: self.child.id(), next: self.next.clone() })
    }

    async fn connect_patiently(&self) -> Result<Client> {
        let started = Instant::now();
        loop {
            match self.connect().await {
                Ok(client) => return Ok(client),
                Err(error) if started.elapsed() > START_TIMEOUT => {
                    return Err(error).context("PostgreSQL does not start; see its log");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn connect(&self) -> Result<Client> {
        let settings = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
        // It ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Postgres {
    /// Its processes share memory: killed like this one they would not clean up after each other,
    /// so it is told to stop at once.
    fn drop(&mut self) {
        let stop = Command::new("kill").arg("-QUIT").arg(self.child.id().to_string()).status();
        if stop.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Open connections and what they insert.
pub struct Inserts {
    clients: Vec<Arc<(Client, Statement)>>,
    process: u32,
    next: Arc<AtomicU64>,
}

impl Inserts {
    /// How many there are.
    pub fn connections(&self) -> usize {
        self.clients.len()
    }
}

impl Side for Inserts {
    async fn slice(&self, time: Duration) -> Result<Slice> {
        let before = (cpu_seconds_with_children(self.process), own_cpu_seconds());
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for client in &self.clients {
            tasks.spawn(insert_until(client.clone(), self.next.clone(), started, time));
        }
        let mut latencies: Vec<u32> = Vec::new();
        while let Some(ended) = tasks.join_next().await {
            latencies.extend(ended??);
        }
        let seconds = started.elapsed().as_secs_f64();
        let after = (cpu_seconds_with_children(self.process), own_cpu_seconds());
        latencies.sort_unstable();
        let outcome = Outcome { requests: latencies.len() as u64, seconds, latencies };
        Ok(Slice { outcome, server_cpu: after.0 - before.0, load_cpu: after.1 - before.1 })
    }
}

async fn insert_until(
    client: Arc<(Client, Statement)>,
    next: Arc<AtomicU64>,
    started: Instant,
    time: Duration,
) -> Result<Vec<u32>> {
    let mut latencies = Vec::new();
    while started.elapsed() < time {
        let number = next.fetch_add(1, Relaxed);
        let (key, id, body) = (SPREAD.key_text(number), SPREAD.id(number), SPREAD.body(number));
        let sent = Instant::now();
        client.0.execute(&client.1, &[&key, &id, &body]).await?;
        latencies.push(sent.elapsed().as_micros() as u32);
    }
    Ok(latencies)
}

/// Where the programs of the newest installed version are.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = versions.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).collect::<Vec<_>>();
    let has_both = |bin: &PathBuf| bin.join("initdb").exists() && bin.join("postgres").exists();
    packaged.filter(has_both).max().or_else(|| others.into_iter().find(has_both))
}

/// Who runs PostgreSQL: it refuses to be root.
#[derive(Clone, Copy)]
struct Owner {
    ids: Option<(u32, u32)>,
}

impl Owner {
    fn find() -> Owner {
        let id =
            |flag: &str, user: &str| output(Command::new("id").args([flag, user])).parse().ok();
        let is_root = output(Command::new("id").arg("-u")) == "0";
        let user = ["postgres", "nobody"]
            .into_iter()
            .find_map(|user| Some((id("-u", user)?, id("-g", user)?)));
        Owner { ids: user.filter(|_| is_root) }
    }

    fn command(self, program: &Path) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        if let Some((user, group)) = self.ids {
            command.uid(user).gid(group);
        }
        // It may not be allowed to be where we are.
        command.current_dir("/");
        command
    }
}

fn make_cluster(programs: &Path, data: &Path, owner: Owner) -> Result<()> {
    std::fs::create_dir(data)?;
    if let Some((user, group)) = owner.ids {
        std::os::unix::fs::chown(data, Some(user), Some(group))?;
    }
    let mut command = owner.command(&programs.join("initdb"));
    command.arg("-D").arg(data);
    command.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale"]);
    let output = command.output().context("initdb cannot be started")?;
    match output.status.success() {
        true => Ok(()),
        false => bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
