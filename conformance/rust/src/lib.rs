//! What the cases share: a server process per case, a client for it, and short ways to say what is
//! expected.
//!
//! A server in memory is ready in milliseconds, so no case shares one. The client gets a runtime
//! of its own as well: the SDK's default one is global and would outlive the case that made it.
//! COSMOLABE_BIN names the binary.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use azure_data_cosmos::clients::{ContainerClient, CosmosClient, DatabaseClient};
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::models::{
    ContainerProperties, PartitionKeyDefinition, ThroughputProperties,
};
use azure_data_cosmos::options::{
    ContentResponseOnWrite, CreateContainerOptions, ItemWriteOptions, OperationOptions,
    Precondition, QueryOptions,
};
use azure_data_cosmos::{
    AccountReference, CosmosError, CosmosRuntime, CosmosStatus, PartitionKey, Query,
    RoutingStrategy,
};
use futures::TryStreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The public development key that the server uses when no key file is given.
pub const KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// What a case returns: any failure is its end.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// One `cosmolabe serve` process, in memory unless it has a directory, ended with its case.
pub struct Server {
    child: Child,
    complaints: Option<JoinHandle<Vec<String>>>,
    /// Where it listens.
    pub endpoint: String,
}

impl Server {
    /// Starts a server in memory and waits for its ready line.
    pub fn start() -> Server {
        Server::launch(&["--in-memory".as_ref()])
    }

    /// Starts a server that keeps its data in a directory.
    pub fn stored(directory: &Path) -> Server {
        Server::launch(&["--data-dir".as_ref(), directory.as_os_str()])
    }

    fn launch(place: &[&OsStr]) -> Server {
        let mut child = Command::new(binary())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(place)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; set COSMOLABE_BIN", binary().display()));
        let output = child.stdout.take().expect("standard output is piped");
        let endpoint = BufReader::new(output).lines().map_while(Result::ok).find_map(ready);
        let endpoint = endpoint.expect("the server says that it is ready");
        let log = BufReader::new(child.stderr.take().expect("standard error is piped"));
        let complaints =
            std::thread::spawn(|| log.lines().map_while(Result::ok).filter(loud).collect());
        Server { child, complaints: Some(complaints), endpoint }
    }

    /// A client with a key.
    pub async fn connect(&self, key: &'static str) -> azure_data_cosmos::Result<CosmosClient> {
        let endpoint = self.endpoint.parse().expect("the ready line holds a URL");
        let account = AccountReference::with_authentication_key(endpoint, key);
        let strategy = RoutingStrategy::ProximityTo("South Central US".into());
        let runtime = CosmosRuntime::builder().build().await?;
        CosmosClient::builder().with_runtime(runtime).build(account, strategy).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().expect("the server is ours to end");
        self.child.wait().expect("an ended process can be waited for");
        let complaints = self.complaints.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            let complaints = complaints.expect("is taken here").expect("reading does not panic");
            assert!(complaints.is_empty(), "the server logged {complaints:#?}");
        }
    }
}

// What a healthy run does not log.
fn loud(line: &String) -> bool {
    let warned = line.contains("\"level\":\"WARN\"") || line.contains("\"level\":\"ERROR\"");
    warned || line.contains("panicked at")
}

fn binary() -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/cosmolabe");
    std::env::var_os("COSMOLABE_BIN").map_or_else(|| default.into(), PathBuf::from)
}

fn ready(line: String) -> Option<String> {
    let (_, rest) = line.split_once(" ready on ")?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// A server with one database, and a client for it.
pub struct Lab {
    /// Ended when the case ends.
    pub server: Server,
    /// A client with the development key.
    pub client: CosmosClient,
    /// A database of this case.
    pub database: DatabaseClient,
}

impl Lab {
    /// Starts a server and makes a database.
    pub async fn start() -> Lab {
        let server = Server::start();
        let client = server.connect(KEY).await.expect("the server accepts the client");
        client.create_database("d", None).await.expect("a database can be created");
        let database = client.database_client("d");
        Lab { server, client, database }
    }

    /// A container keyed by `/pk` on one physical partition.
    pub async fn container(&self) -> ContainerClient {
        self.make(ContainerProperties::new("c", "/pk".into()), None).await
    }

    /// A container keyed by `/pk` on this many physical partitions.
    pub async fn partitioned(&self, partitions: u64) -> ContainerClient {
        self.make(ContainerProperties::new("c", "/pk".into()), Some(partitions * 10_000)).await
    }

    /// A container with a hierarchical key.
    pub async fn hierarchical(&self, key: impl Into<PartitionKeyDefinition>) -> ContainerClient {
        self.make(ContainerProperties::new("c", key.into()), Some(20_000)).await
    }

    /// A container by its definition and throughput.
    pub async fn make(&self, properties: ContainerProperties, ru: Option<u64>) -> ContainerClient {
        let name = properties.id.to_string();
        let options = ru.map(|ru| {
            CreateContainerOptions::default().with_throughput(ThroughputProperties::manual(ru))
        });
        let created = self.database.create_container(properties, options).await;
        created.expect("a container can be created");
        self.database.container_client(name, None).await.expect("it can be opened")
    }
}

/// Options that ask for the body of a write.
pub fn answered() -> ItemWriteOptions {
    let mut operation = OperationOptions::default();
    operation.content_response_on_write = Some(ContentResponseOnWrite::Enabled);
    ItemWriteOptions::default().with_operation_options(operation)
}

/// Options that make a write depend on an etag.
pub fn if_match(etag: &str) -> ItemWriteOptions {
    ItemWriteOptions::default().with_precondition(Precondition::if_match(etag))
}

/// Status and sub-status as numbers.
pub fn code(status: CosmosStatus) -> (u16, u16) {
    (status.status_code().into(), status.sub_status().map_or(0, |sub| sub.value()))
}

/// The status that a failed call ended with.
pub fn failure<T>(result: Result<T, CosmosError>) -> u16 {
    match result {
        Ok(_) => panic!("the call succeeded"),
        Err(error) => code(error.status()).0,
    }
}

/// Reads an item as JSON.
pub async fn read(
    container: &ContainerClient,
    key: impl Into<PartitionKey>,
    id: &str,
) -> azure_data_cosmos::Result<Value> {
    container.read_item(key, id, None).await?.into_model()
}

/// All rows of a query.
pub async fn rows<T: DeserializeOwned + Send + 'static>(
    container: &ContainerClient,
    query: impl Into<Query>,
    scope: FeedScope,
) -> azure_data_cosmos::Result<Vec<T>> {
    container.query_items(query, scope, None::<QueryOptions>).await?.try_collect().await
}

/// All rows of a query over every partition.
pub async fn everywhere<T: DeserializeOwned + Send + 'static>(
    container: &ContainerClient,
    query: impl Into<Query>,
) -> azure_data_cosmos::Result<Vec<T>> {
    rows(container, query, FeedScope::full_container()).await
}

/// Whether skips.toml turns a case off; says why.
pub fn skipped(name: &str) -> bool {
    let skips = include_str!("../skips.toml");
    let line = skips.lines().find(|line| line.starts_with(&format!("\"{name}\"")));
    line.inspect(|line| eprintln!("skipped: {line}")).is_some()
}
