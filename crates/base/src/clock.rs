//! Wall-clock time, as a value somebody hands in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Milliseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// A timestamp of so many milliseconds since 1970.
    pub const fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since 1970: the granularity of `_ts`.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// The time `duration` later.
    pub fn plus(self, duration: Duration) -> Timestamp {
        Timestamp(self.0 + duration.as_millis() as u64)
    }
}

/// A source of wall-clock time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // The one place that asks the machine.
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |d| d.as_millis() as u64))
    }
}

/// A clock that moves only when told to.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock standing at `start`.
    pub fn new(start: Timestamp) -> ManualClock {
        ManualClock(AtomicU64::new(start.0))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
