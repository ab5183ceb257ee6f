//! A gateway on a port of its own, gone with the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, SystemClock};
use engine::{Engine, Options};
use gateway::{Config, Gateway, Key, Keys};
use serde_json::json;
use store_memory::MemoryStore;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Client;

/// The well-known key of development servers.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
/// A key that only reads.
pub const READ_KEY: &str = "cmVhZC1vbmx5";

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub engine: Arc<Engine>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    /// Starts one with the usual settings.
    pub async fn start() -> Server {
        Server::with(|_| {}).await
    }

    /// Starts one with changed settings.
    pub async fn with(change: impl FnOnce(&mut Config)) -> Server {
        Server::on(Options::new(1 << 20), change).await
    }

    /// Starts one on an engine with options.
    pub async fn on(options: Options, change: impl FnOnce(&mut Config)) -> Server {
        let mut keys = Keys::single(Key::parse(KEY).unwrap());
        keys.primary_read_only = Some(Key::parse(READ_KEY).unwrap());
        let mut config = Config::new(keys);
        config.limits.shutdown_timeout = Duration::from_millis(500);
        change(&mut config);
        let engine = Engine::open(Arc::new(MemoryStore::new()), options).unwrap();
        let engine = Arc::new(engine);
        let gateway = Gateway::new(engine.clone(), config);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            let _ = stopped.await;
        };
        let task = tokio::spawn(gateway::serve(gateway, listener, shutdown));
        Server { address, engine, stop: Some(stop), task }
    }

    /// A client with the account key.
    pub fn client(&self) -> Client {
        Client::new(self.address, KEY)
    }

    /// A server with database `d` and container `c` keyed by `/pk`, and a client of it.
    pub async fn with_container() -> (Server, Client) {
        let server = Server::start().await;
        let client = server.client();
        client.post("/dbs", &json!({"id": "d"})).await.expect(201);
        client.post("/dbs/d/colls", &container("c", &["/pk"])).await.expect(201);
        (server, client)
    }

    /// Tells it to stop and waits until it has.
    pub async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.task.await.unwrap().unwrap();
    }

    /// Tells it to stop without waiting.
    pub fn signal(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }
}

/// The definition of a container under hash version 2.
pub fn container(id: &str, paths: &[&str]) -> serde_json::Value {
    let kind = if paths.len() == 1 { "Hash" } else { "MultiHash" };
    json!({"id": id, "partitionKey": {"paths": paths, "kind": kind, "version": 2}})
}

/// Seconds since 1970.
pub fn now_secs() -> u64 {
    SystemClock.now().as_secs()
}
