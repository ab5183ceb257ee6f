//! A small REST client: for the command line, the benchmarks and the end-to-end tests.
//!
//! ```text
//! Container::create(…) ─▶ Request ─┬─▶ Client::send ─▶ Reply, or Error::Refused
//!                                  └─▶ Request::to_bytes     for load generators
//! ```
//!
//! A request is a value that says what to ask of the server and nothing about how to reach it, so
//! the same one can be sent, sent again, or written out once and replayed. Only plain HTTP is
//! spoken; connections are kept alive and shared.
//!
//! ```no_run
//! # async fn example() -> Result<(), client::Error> {
//! use client::{Client, Container, Key, Request};
//! use model::partition_key::PartitionKey;
//!
//! let client = Client::new("http://127.0.0.1:8081", Key::development())?;
//! client.send(&Request::create_database("blog")).await?;
//! let posts = Container::new("blog", "posts");
//! client.send(&posts.create_keyed_by("/author", None)).await?;
//! let key = PartitionKey::parse(r#"["ada"]"#).expect("a key");
//! let reply = client.send(&posts.create(&key, r#"{"id":"1","author":"ada"}"#)).await?;
//! println!("{} RU, etag {:?}", reply.charge(), reply.etag());
//! # Ok(())
//! # }
//! ```
//!
//! **`client` knows the wire and the vocabulary, and nothing of the server behind them.**

pub mod headers;

mod batch;
mod error;
mod http;
mod link;
mod reply;
mod request;
mod sign;

pub use batch::{Operation, OperationResult};
pub use error::Error;
pub use http::Client;
pub use link::Link;
pub use reply::Reply;
pub use request::{Changes, Container, Request, Scope, Trigger, Verb};
pub use sign::{Key, date_now};
