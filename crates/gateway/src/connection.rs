//! What a connection does with its socket, watched so that nobody holds one for nothing.
//!
//! ```text
//! head arriving     too slowly          closed     (a slow-loris)
//! response unread   too long            closed     (a client that stopped reading)
//! no request        for a long time     said goodbye to
//! ```
//!
//! Counting is cheap and unconditional: the socket bumps counters, and a watchdog compares them a
//! few times per timeout. No timer is armed per request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Interval, MissedTickBehavior};

use crate::config::Limits;

/// Counters of one connection.
#[derive(Debug, Default)]
pub struct Activity {
    bytes_read: AtomicU64,
    writes: AtomicU64,
    is_blocked: AtomicBool,
    is_http2: AtomicBool,
    requests: AtomicU64,
    open: AtomicU64,
    /// `bytes_read` when the last request ended: what comes behind belongs to the next one.
    bytes_mark: AtomicU64,
}

impl Activity {
    /// Counts a request until the guard is dropped.
    pub fn begin(self: &Arc<Activity>) -> OpenRequest {
        self.requests.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        OpenRequest(self.clone())
    }
}

/// A request that has not been answered.
pub struct OpenRequest(Arc<Activity>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
        self.0.bytes_mark.store(self.0.bytes_read.load(Relaxed), Relaxed);
    }
}

/// What the watchdog makes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may go on.
    Fine,
    /// It has had no request for long; close it politely.
    Idle,
    /// It makes no progress; drop it.
    Stalled,
}

/// Compares the counters of a connection from time to time.
pub struct Watchdog {
    activity: Arc<Activity>,
    ticks: Interval,
    limits: Timeouts,
    last: (u64, u64),
    blocked: Duration,
    partial: Duration,
    idle: Duration,
}

#[derive(Clone, Copy)]
struct Timeouts {
    head: Duration,
    write: Duration,
    idle: Duration,
}

impl Watchdog {
    /// Watches a connection.
    pub fn new(activity: Arc<Activity>, limits: &Limits) -> Watchdog {
        let timeouts = Timeouts {
            head: limits.head_timeout,
            write: limits.write_timeout,
            idle: limits.idle_timeout,
        };
        let shortest = timeouts.head.min(timeouts.write).min(timeouts.idle);
        let period = (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(5));
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let zero = Duration::ZERO;
        Watchdog {
            activity,
            ticks,
            limits: timeouts,
            last: (0, 0),
            blocked: zero,
            partial: zero,
            idle: zero,
        }
    }

    /// Waits for the next comparison and says what it showed.
    pub async fn tick(&mut self) -> Verdict {
        self.ticks.tick().await;
        self.compare(self.ticks.period())
    }

    fn compare(&mut self, period: Duration) -> Verdict {
        let now = &self.activity;
        let (writes, requests) = (now.writes.load(Relaxed), now.requests.load(Relaxed));
        let is_blocked = now.is_blocked.load(Relaxed) && writes == self.last.0;
        let is_quiet = now.open.load(Relaxed) == 0 && requests == self.last.1;
        let has_part = now.bytes_read.load(Relaxed) > now.bytes_mark.load(Relaxed);
        let is_partial = is_quiet && has_part && !now.is_http2.load(Relaxed);
        self.last = (writes, requests);
        let longer = |so_far, goes_on| if goes_on { so_far + period } else { Duration::ZERO };
        self.blocked = longer(self.blocked, is_blocked);
        self.partial = longer(self.partial, is_partial);
        self.idle = longer(self.idle, is_quiet);
        match () {
            () if self.blocked >= self.limits.write => Verdict::Stalled,
            () if self.partial >= self.limits.head => Verdict::Stalled,
            () if self.idle >= self.limits.idle => Verdict::Idle,
            () => Verdict::Fine,
        }
    }
}

/// A socket that counts.
pub struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    /// Counts what goes through a stream.
    pub fn new(stream: S, activity: Arc<Activity>) -> Watched<S> {
        Watched { stream, activity }
    }

    fn wrote<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let is_blocked = result.is_pending();
        if !is_blocked {
            self.activity.writes.fetch_add(1, Relaxed);
        }
        self.activity.is_blocked.store(is_blocked, Relaxed);
        result
    }

    fn has_read(&self, bytes: &[u8]) {
        let before = self.activity.bytes_read.fetch_add(bytes.len() as u64, Relaxed);
        // The preface of HTTP/2 begins like no request of HTTP/1.1.
        if before == 0 && bytes.starts_with(b"PRI") {
            self.activity.is_http2.store(true, Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if result.is_ready() {
            self.has_read(&buffer.filled()[before..]);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        if result.is_pending() {
            self.activity.is_blocked.store(true, Relaxed);
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(1);

    fn watchdog() -> Watchdog {
        let limits = Limits {
            head_timeout: 2 * STEP,
            write_timeout: 3 * STEP,
            idle_timeout: 5 * STEP,
            ..Limits::default()
        };
        Watchdog::new(Arc::default(), &limits)
    }

    fn verdicts(watchdog: &mut Watchdog, count: usize) -> Vec<Verdict> {
        (0..count).map(|_| watchdog.compare(STEP)).collect()
    }

    #[tokio::test]
    async fn an_idle_connection_is_said_goodbye_to() {
        let mut watchdog = watchdog();
        assert_eq!(verdicts(&mut watchdog, 4), [Verdict::Fine; 4]);
        assert_eq!(watchdog.compare(STEP), Verdict::Idle);
        drop(watchdog.activity.begin());
        assert_eq!(watchdog.compare(STEP), Verdict::Fine);
    }

    #[tokio::test]
    async fn a_head_that_trickles_in_is_stalled() {
        let mut watchdog = watchdog();
        watchdog.activity.bytes_read.store(5, Relaxed);
        assert_eq!(watchdog.compare(STEP), Verdict::Fine);
        watchdog.activity.bytes_read.store(6, Relaxed);
        assert_eq!(watchdog.compare(STEP), Verdict::Stalled);
        drop(watchdog.activity.begin());
        assert_eq!(verdicts(&mut watchdog, 4), [Verdict::Fine; 4]);
    }

    #[tokio::test]
    async fn a_long_request_is_not_idle() {
        let mut watchdog = watchdog();
        let open = watchdog.activity.begin();
        assert_eq!(verdicts(&mut watchdog, 10), [Verdict::Fine; 10]);
        drop(open);
        assert_eq!(verdicts(&mut watchdog, 5)[4], Verdict::Idle);
    }

    #[tokio::test]
    async fn an_unread_response_is_stalled() {
        let mut watchdog = watchdog();
        let _open = watchdog.activity.begin();
        watchdog.activity.is_blocked.store(true, Relaxed);
        assert_eq!(verdicts(&mut watchdog, 2), [Verdict::Fine; 2]);
        watchdog.activity.writes.fetch_add(1, Relaxed);
        assert_eq!(verdicts(&mut watchdog, 3), [Verdict::Fine; 3]);
        assert_eq!(watchdog.compare(STEP), Verdict::Stalled);
    }

    #[tokio::test]
    async fn http2_is_known_by_its_preface() {
        let activity: Arc<Activity> = Arc::default();
        let watched = Watched::new((), activity.clone());
        watched.has_read(b"PRI * HTTP/2.0\r\n");
        assert!(activity.is_http2.load(Relaxed));
        assert_eq!(activity.bytes_read.load(Relaxed), 16);
    }
}
