//! The listener and its connections: HTTP/1.1 and HTTP/2 on one port, plain or under TLS.
//!
//! ```text
//! accept ─▶ slot ─▶ (TLS) ─▶ watched socket ─▶ HTTP by preface ─▶ `Gateway::handle`
//! ```
//!
//! INVARIANTS
//! (S1) A connection holds one slot from accept to close, so slots bound sockets and memory.
//! (S2) After the shutdown signal no connection is accepted, requests that are open are answered,
//! ```text
//!  and no connection outlives the shutdown timeout.
//! ```
//!
//! ELSEWHERE  Slow and silent clients: `connection`. Slow bodies: `body`.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::Gateway;
use crate::config::Limits;
use crate::connection::{Activity, Verdict, Watchdog, Watched};
use crate::settled::Settled;

/// hyper wants no less.
const HEAD_BYTES_LEAST: usize = 8192;

/// How a client reached us, as far as the socket knows.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Whether under TLS.
    pub is_tls: bool,
    /// The address it connected to.
    pub local: SocketAddr,
}

/// Serves connections until `shutdown` is ready and those open then have ended, or have had their
/// time. Errors of single connections are not errors of the server.
pub async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let connections_max = gateway.limits().connections_max.min(Semaphore::MAX_PERMITS);
    let slots = Arc::new(Semaphore::new(connections_max));
    let (stop, stopped) = watch::channel(false);
    let local = listener.local_addr()?;
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, slot) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let connection = Connection { gateway: gateway.clone(), stopped: stopped.clone(), local };
        tokio::spawn(connection.run(stream, slot));
    }
    drop(listener);
    gateway.stop();
    // Nobody may be listening: then there is no connection to stop.
    let _ = stop.send(true);
    let all = u32::try_from(connections_max).unwrap_or(u32::MAX);
    let patience = gateway.limits().shutdown_timeout + Duration::from_millis(500);
    if timeout(patience, slots.acquire_many(all)).await.is_err() {
        tracing::warn!("connections were still open when the shutdown timeout passed");
    }
    Ok(())
}

/// The next connection with its slot (S1). Running out of sockets is waited out.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let slot = slots.clone().acquire_owned().await.expect("the slots are never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, slot),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// One connection before its protocol is known.
struct Connection {
    gateway: Arc<Gateway>,
    stopped: watch::Receiver<bool>,
    local: SocketAddr,
}

impl Connection {
    async fn run(self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        // Answers are written whole; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let local = stream.local_addr().unwrap_or(self.local);
        let gateway = self.gateway.clone();
        let _counted = gateway.metrics().connection();
        match gateway.acceptor() {
            None => self.serve(stream, Origin { is_tls: false, local }).await,
            Some(acceptor) => {
                let handshake = timeout(gateway.limits().head_timeout, acceptor.accept(stream));
                if let Ok(Ok(stream)) = handshake.await {
                    self.serve(stream, Origin { is_tls: true, local }).await;
                }
            }
        }
        drop(slot);
    }

    async fn serve<S>(mut self, stream: S, origin: Origin)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let activity: Arc<Activity> = Arc::default();
        let mut watchdog = Watchdog::new(activity.clone(), self.gateway.limits());
        let builder = builder(self.gateway.limits());
        let gateway = self.gateway.clone();
        let io = TokioIo::new(Watched::new(stream, activity.clone()));
        let service = service_fn(move |request: Request<Incoming>| {
            let (gateway, open) = (gateway.clone(), activity.begin());
            async move {
                let response = gateway.handle(request, origin).await;
                drop(open);
                Ok::<_, Infallible>(response)
            }
        });
        let connection = pin!(builder.serve_connection(io, service));
        let mut connection = Settled::new(connection);
        let mut closing: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                _ = &mut connection => return,
                _ = self.stopped.wait_for(|&is_stopped| is_stopped), if closing.is_none() => {
                    connection.as_mut().as_mut().graceful_shutdown();
                    closing = Some(Instant::now() + self.gateway.limits().shutdown_timeout);
                }
                verdict = watchdog.tick() => match verdict {
                    Verdict::Fine => {}
                    Verdict::Stalled => return,
                    Verdict::Idle if closing.is_some() => {}
                    Verdict::Idle => {
                        connection.as_mut().as_mut().graceful_shutdown();
                        closing = Some(Instant::now() + self.gateway.limits().shutdown_timeout);
                    }
                },
                () = sleep_until(closing.unwrap_or_else(Instant::now)), if closing.is_some() => {
                    return;
                }
            }
        }
    }
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // The watchdog tells a slow head from an idle connection; hyper's timer cannot.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes_max.max(HEAD_BYTES_LEAST));
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(60))
        .keep_alive_timeout(limits.write_timeout)
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX));
    builder
}
