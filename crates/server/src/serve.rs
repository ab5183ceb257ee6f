//! `cosmolabe serve`: from checked settings to a server that stops in an orderly way.
//!
//! ```text
//!   reserve the port ─▶ open the data ─▶ load ─▶ listen ─▶ ready line
//!   signal ─▶ answer open requests ─▶ stop background work ─▶ flush, leave clean ─▶ exit 0
//! ```

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use gateway::{Config, Gateway, Tls};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

use crate::config::{Place, ServeConfig};
use crate::database::Database;
use crate::requests::Watcher;
use crate::signals::Signals;
use crate::transfer;

const BACKLOG: u32 = 1024;
/// How long threads that run queries may go on after the last connection has ended.
const THREADS_PATIENCE: Duration = Duration::from_secs(2);
/// Exists while `--load` has begun and not ended.
const LOADING: &str = "LOADING";
/// Where clients find the certificate made at start.
const CERTIFICATE: &str = "certificate.pem";

/// Serves until a signal; returns when everything is on disk.
pub fn serve(config: ServeConfig) -> Result<()> {
    let runtime = runtime()?;
    let entered = runtime.enter();
    let socket = reserve(&config.listen)?;
    let database = Database::open(&config)?;
    let served = run(&runtime, &config, socket, &database);
    drop(entered);
    runtime.shutdown_timeout(THREADS_PATIENCE);
    let closed = database.close();
    served?;
    closed?;
    tracing::info!("stopped");
    Ok(())
}

fn run(
    runtime: &Runtime,
    config: &ServeConfig,
    socket: TcpSocket,
    database: &Database,
) -> Result<()> {
    if let Some(path) = &config.load {
        load_once(path, &config.place, database)?;
    }
    if let (Some(tls), Place::Directory(directory)) = (&config.tls, &config.place) {
        publish_certificate(tls, directory)?;
    }
    let gateway = Gateway::new(database.engine.clone(), gateway_config(config));
    let stop = stop_signal()?;
    let listener = socket.listen(BACKLOG).context("the port was taken in the meantime")?;
    let watcher = match &config.place {
        Place::Directory(directory) => {
            Some(Watcher::start(directory, database.engine.store().clone()))
        }
        Place::Memory => None,
    };
    announce(config, &listener)?;
    let served = runtime.block_on(gateway::serve(gateway, listener, stop));
    watcher.into_iter().for_each(Watcher::stop);
    served.context("the server failed")
}

fn runtime() -> Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("serve").enable_all();
    // A single thread would have nobody beside it while a script is at work.
    if threads > 1 {
        builder.thread_stack_size(script::Limits::default().thread_stack_bytes());
        builder.on_thread_start(script::lend_thread).on_thread_park(script::tidy_thread);
    }
    builder.build().context("no threads can be started")
}

/// Takes the port before anything slow happens, without accepting connections yet.
fn reserve(addresses: &[SocketAddr]) -> Result<TcpSocket> {
    let mut failed = None;
    for &address in addresses {
        match bind(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = Some((address, error)),
        }
    }
    match failed {
        Some((address, error)) => bail!(
            "Cannot listen on {address}: {error}. Is another server running? Choose another \
             address with --listen."
        ),
        None => bail!("there is no address to listen on"),
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = match address.is_ipv4() {
        true => TcpSocket::new_v4()?,
        false => TcpSocket::new_v6()?,
    };
    // A restarted server takes its port again at once.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn gateway_config(config: &ServeConfig) -> Config {
    Config {
        tls: config.tls.clone(),
        trust_forwarded: config.trust_forwarded,
        ..Config::new(config.keys.clone())
    }
}

/// Loads while there is no database yet, or an earlier loading was interrupted.
fn load_once(path: &Path, place: &Place, database: &Database) -> Result<()> {
    let mark = match place {
        Place::Directory(directory) => Some(directory.join(LOADING)),
        Place::Memory => None,
    };
    let was_interrupted = mark.as_ref().is_some_and(|mark| mark.exists());
    if !was_interrupted && !database.engine.list_databases().is_empty() {
        tracing::info!(path = %path.display(), "not loaded: there is data already");
        return Ok(());
    }
    let set_mark = |mark: &PathBuf| std::fs::write(mark, "");
    mark.iter().try_for_each(set_mark).context("the data directory cannot be written")?;
    transfer::load(&database.engine, path)?;
    mark.iter().try_for_each(std::fs::remove_file).context("the data directory cannot be written")
}

/// Leaves the certificate where clients can be told to trust it.
fn publish_certificate(tls: &Tls, directory: &Path) -> Result<()> {
    let Some(pem) = tls.certificate_pem() else { return Ok(()) };
    let path = directory.join(CERTIFICATE);
    std::fs::write(&path, pem).with_context(|| format!("{} cannot be written", path.display()))?;
    tracing::info!(path = %path.display(), "made a certificate; have clients trust it");
    Ok(())
}

/// The one line on standard output, and the same for the log.
fn announce(config: &ServeConfig, listener: &TcpListener) -> Result<()> {
    let address = listener.local_addr()?;
    let line = ready_line(address, config.tls.is_some(), &config.place);
    // Nobody has to read it.
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    tracing::info!(
        %address,
        data = %config.place,
        durability = ?config.durability,
        is_development_key = config.is_development_key,
        "ready"
    );
    Ok(())
}

fn ready_line(address: SocketAddr, is_tls: bool, place: &Place) -> String {
    let scheme = if is_tls { "https" } else { "http" };
    let version = env!("CARGO_PKG_VERSION");
    format!("cosmolabe {version} ready on {scheme}://{address}  (data in {place})")
}

/// Ready when the process is asked to stop. Being asked twice ends it at once.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    let mut signals = Signals::new()?;
    Ok(async move {
        let name = signals.next().await;
        tracing::info!(signal = name, "stopping; open requests are answered first");
        tokio::spawn(async move {
            signals.next().await;
            tracing::warn!("stopped at once: asked twice");
            std::process::exit(1);
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line() {
        let directory = Place::Directory("./cosmolabe-data".into());
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            ready_line("127.0.0.1:8081".parse().unwrap(), false, &directory),
            format!(
                "cosmolabe {version} ready on http://127.0.0.1:8081  (data in ./cosmolabe-data)"
            )
        );
        assert_eq!(
            ready_line("[::1]:9".parse().unwrap(), true, &Place::Memory),
            format!("cosmolabe {version} ready on https://[::1]:9  (data in memory)")
        );
    }
}
