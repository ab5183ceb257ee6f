//! PostgreSQL on loopback, with its data beside ours.
//!
//! ELSEWHERE  The table that creates go to: `inserts`. The tables that are queried: `tables`.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio_postgres::{Client, NoTls, Statement};

use crate::load::Outcome;
use crate::machine::{cpu_seconds_with_children, output};
use crate::process::own_cpu_seconds;
use crate::slices::Slice;

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
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server of its own, gone with the value.
pub struct Postgres {
    child: Child,
    port: u16,
    version: String,
    settings: Vec<String>,
}

impl Postgres {
    /// Starts a server on the cluster below the directory, which is made if there is none.
    /// `settings` come on top of those it always has.
    pub async fn start(directory: &Path, settings: &[(&str, &str)]) -> Result<Postgres> {
        let programs = programs().context("PostgreSQL is not installed (package postgresql)")?;
        let data = directory.join("postgres");
        let owner = Owner::find();
        if !data.join("PG_VERSION").exists() {
            make_cluster(&programs, &data, owner)?;
        }
        let port = free_port()?;
        let log = File::create(directory.join("postgres.log"))?;
        let pairs = SETTINGS.iter().chain(settings).map(|(name, value)| format!("{name}={value}"));
        let settings: Vec<String> = pairs.collect();
        let mut command = owner.command(&programs.join("postgres"));
        command.arg("-D").arg(&data).arg("-p").arg(port.to_string());
        for setting in &settings {
            command.arg("-c").arg(setting);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let version = output(Command::new(programs.join("postgres")).arg("--version"));
        let postgres = Postgres { child, port, version, settings };
        postgres.connect_patiently().await?;
        Ok(postgres)
    }

    /// What it is.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How it is set up, for the report.
    pub fn settings(&self) -> &[String] {
        &self.settings
    }

    /// Connections with a prepared statement.
    pub async fn sessions(&self, statement: &str, connections: usize) -> Result<Sessions> {
        let mut clients = Vec::new();
        for _ in 0..connections {
            let client = self.connect().await?;
            let statement = client.prepare(statement).await?;
            clients.push(Arc::new((client, statement)));
        }
        Ok(Sessions { clients, process: self.child.id() })
    }

    /// Stops it in good order, so that what it holds can be used again.
    pub fn stop(mut self) -> Result<()> {
        Command::new("kill").arg("-INT").arg(self.child.id().to_string()).status()?;
        self.child.wait()?;
        Ok(())
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

    /// Connects.
    pub async fn connect(&self) -> Result<Client> {
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
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let stop = Command::new("kill").arg("-QUIT").arg(self.child.id().to_string()).status();
        if stop.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Open connections, each with a prepared statement.
pub struct Sessions {
    clients: Vec<Arc<Session>>,
    process: u32,
}

/// One of them.
pub type Session = (Client, Statement);

impl Sessions {
    /// How many there are.
    pub fn connections(&self) -> usize {
        self.clients.len()
    }

    /// One of them.
    pub fn first(&self) -> &Session {
        &self.clients[0]
    }

    /// Lets all of them do one thing after the other until the time is over. Doing it returns how
    /// long it took.
    pub async fn slice<F, D>(&self, time: Duration, once: F) -> Result<Slice>
    where
        F: Fn(Arc<Session>) -> D + Clone + Send + 'static,
        D: Future<Output = Result<Duration>> + Send,
    {
        let before = (cpu_seconds_with_children(self.process), own_cpu_seconds());
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for client in &self.clients {
            let (client, once) = (client.clone(), once.clone());
            tasks.spawn(async move {
                let mut latencies = Vec::new();
                while started.elapsed() < time {
                    latencies.push(once(client.clone()).await?.as_micros() as u32);
                }
                anyhow::Ok(latencies)
            });
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
