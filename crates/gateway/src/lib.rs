//! REST over the engine: dispatch, signatures, headers, wire JSON, and the only status table.
//!
//! ```text
//! socket ─▶ server ─▶ Gateway::handle
//!                       path ─▶ routes (what, where) ─▶ auth (who) ─▶ access (may they)
//!                         ─▶ decode ─▶ engine ─▶ encode, or status_of(error)
//! ```
//!
//! **HTTP stops here.** Below this crate nobody knows a verb, a header or a status code; above the
//! engine nobody but this crate does.
//!
//! Async stops here too. Point reads and writes call the engine inline: they take microseconds. A
//! write first waits for the lock of its logical partition, and last for the disk, both without a
//! thread. Queries, feeds and changes of resources run on a bounded pool of threads.
//!
//! INVARIANTS
//! (G1) Nothing of a body is read before its sender is known and allowed to send it.
//! (G2) Every response has a request charge and an activity id, and every failure a JSON body.

mod access;
mod account;
mod auth;
mod batch;
mod body;
mod call;
mod config;
mod connection;
mod decode;
mod encode;
mod error;
mod headers;
mod labels;
mod metrics;
mod path;
mod percent;
mod probe;
mod routes;
mod server;
mod settled;
mod status;
mod tls;
mod token;
mod trials;

pub use auth::{Key, KeyError, Keys};
pub use config::{Config, Limits};
pub use server::{Origin, serve};
pub use tls::{Tls, TlsError};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use base::{Deadline, Random};
use bytes::Bytes;
use engine::Engine;
use http_body_util::Full;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, Response};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::auth::{Authenticator, Claim};
use crate::call::Call;
use crate::encode::Reply;
use crate::error::{Result, not_supported};
use crate::metrics::{Metrics, Sample};
use crate::path::Path;
use crate::probe::Probe;
use crate::routes::{Action, Kind, Target};
use crate::token::Tokens;
use crate::trials::Trials;

/// For clients that ask where replicas are, as those of .NET and Java do unless they are told not to.
const DIRECT_MODE: &str = "This server has no replicas to connect to directly. Set the connection \
                           mode of the client to gateway.";

/// The REST surface of one engine. Shared by all connections.
pub struct Gateway {
    engine: Arc<Engine>,
    authenticator: Authenticator,
    acceptor: Option<TlsAcceptor>,
    trust_forwarded: bool,
    limits: Limits,
    blocking: Arc<Semaphore>,
    trials: Trials,
    metrics: Arc<Metrics>,
    random: Random,
    is_stopping: AtomicBool,
}

impl Gateway {
    /// A gateway to an engine.
    pub fn new(engine: Arc<Engine>, config: Config) -> Arc<Gateway> {
        let tokens = Tokens::new(engine.seal_key());
        Arc::new(Gateway {
            authenticator: Authenticator::new(config.keys, tokens, config.checks_clock_skew),
            acceptor: config.tls.as_ref().map(Tls::acceptor),
            trust_forwarded: config.trust_forwarded,
            blocking: Arc::new(Semaphore::new(config.limits.blocking_max)),
            trials: Trials::default(),
            limits: config.limits,
            metrics: Arc::default(),
            random: Random::from_entropy(),
            is_stopping: AtomicBool::new(false),
            engine,
        })
    }

    /// Answers one request. Never fails: what goes wrong is an answer too.
    pub async fn handle<B>(&self, request: Request<B>, origin: Origin) -> Response<Full<Bytes>>
    where
        B: Body<Data = Bytes> + Unpin + Send,
    {
        let started = Instant::now();
        let (parts, mut body) = request.into_parts();
        if let Some(probe) = Probe::of(&parts) {
            return probe.answer(self);
        }
        let activity = self.activity_id(&parts.headers);
        let mut operation = None;
        let reply = match self.answer(&parts, &mut body, origin, &mut operation).await {
            Ok(reply) => reply,
            Err(failure) => {
                if !failure.is_timeout() {
                    body::drain(&parts.headers, &mut body).await;
                }
                encode::failure(&failure, &activity)
            }
        };
        self.metrics.record(&Sample {
            operation,
            status: reply.status.as_u16(),
            charge: reply.charge,
            latency: started.elapsed(),
        });
        match headers::is_true(&parts.headers, &headers::RECEIPT) {
            true => reply.itemised().finish(activity),
            false => reply.finish(activity),
        }
    }

    async fn answer<B>(
        &self,
        parts: &Parts,
        body: &mut B,
        origin: Origin,
        operation: &mut Option<(Kind, Action)>,
    ) -> Result<Reply>
    where
        B: Body<Data = Bytes> + Unpin + Send,
    {
        let path = Path::parse(&parts.uri)?;
        if path.segment(0) == "addresses" {
            return Err(not_supported(DIRECT_MODE));
        }
        let target = Target::of(&path).ok_or(engine::Error::NotFound)?;
        let action = target.action(&parts.method, &parts.headers)?;
        *operation = Some((target.kind, action));
        let access = self.authenticator.authenticate(&Claim {
            method: &parts.method,
            headers: &parts.headers,
            signed: path.signed(),
            now_secs: self.engine.clock().now().as_secs(),
        })?;
        access.check(&self.engine, &path, target, action)?;
        routes::refuse_unsupported(target, action, &parts.headers)?;
        let call = Call {
            gateway: self,
            path: &path,
            headers: &parts.headers,
            access: &access,
            action,
            deadline: Deadline::after(self.limits.operation_timeout),
        };
        if target.kind == Kind::Item && action == Action::Read {
            return routes::items::read(&call);
        }
        if target.kind == Kind::Account {
            return Ok(self.account(parts, origin));
        }
        // Everything else is larger and rarer; boxed, it does not weigh on the path above.
        Box::pin(routes::dispatch(&call, target, body)).await
    }

    fn account(&self, parts: &Parts, origin: Origin) -> Reply {
        let endpoint = account::endpoint(parts, origin, self.trust_forwarded);
        let document = account::document(self.engine.account_id(), &endpoint);
        Reply::json(hyper::StatusCode::OK, engine::charge::METADATA, document.to_string())
    }

    /// The client's activity id, or a new one.
    fn activity_id(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(&headers::ACTIVITY_ID) {
            Some(value) if !value.is_empty() && value.to_str().is_ok() => value.clone(),
            _ => headers::value(self.random.guid()),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(crate) fn acceptor(&self) -> Option<&TlsAcceptor> {
        self.acceptor.as_ref()
    }

    /// From now on the server is not ready for more.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}
