//! How a gateway is set up. Everything here is already checked; reading files is the caller's.

use std::time::Duration;

use model::limits::BODY_BYTES_MAX;

use crate::auth::Keys;
use crate::tls::Tls;

/// The settings of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The keys of the account.
    pub keys: Keys,
    /// Serve TLS; plain HTTP if absent.
    pub tls: Option<Tls>,
    /// Refuse signatures whose date is more than 15 minutes from our clock.
    pub checks_clock_skew: bool,
    /// Believe `x-forwarded-proto` and `x-forwarded-host`: only behind a proxy that sets them.
    pub trust_forwarded: bool,
    /// How much a client may take.
    pub limits: Limits,
}

impl Config {
    /// Plain HTTP with these keys and the usual limits.
    pub fn new(keys: Keys) -> Config {
        Config {
            keys,
            tls: None,
            checks_clock_skew: true,
            trust_forwarded: false,
            limits: Limits::default(),
        }
    }
}

/// Bounds on what clients may take of the server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest request body; the item limit is enforced exactly by the engine, so this has slack.
    pub body_bytes_max: usize,
    /// Largest request head; session tokens and continuations travel in headers.
    pub head_bytes_max: usize,
    /// Open connections; further ones wait to be accepted.
    pub connections_max: usize,
    /// Concurrent requests of one HTTP/2 connection.
    pub streams_max: u32,
    /// How long a request head may take to arrive, and a TLS handshake.
    pub head_timeout: Duration,
    /// How long a body may pause.
    pub body_pause_timeout: Duration,
    /// How long a body may take in all.
    pub body_timeout: Duration,
    /// How long a client may leave a response unread.
    pub write_timeout: Duration,
    /// How long a connection may be without requests.
    pub idle_timeout: Duration,
    /// How long open requests may take once the server stops.
    pub shutdown_timeout: Duration,
    /// Queries, feeds and resource changes running at the same time.
    pub blocking_max: usize,
    /// How long one operation may take, waiting included.
    pub operation_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes_max: BODY_BYTES_MAX + 64 * 1024,
            head_bytes_max: 128 * 1024,
            connections_max: 10_000,
            streams_max: 256,
            head_timeout: Duration::from_secs(30),
            body_pause_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(600),
            shutdown_timeout: Duration::from_secs(10),
            blocking_max: 64,
            operation_timeout: Duration::from_secs(model::limits::OPERATION_SECONDS_MAX),
        }
    }
}
