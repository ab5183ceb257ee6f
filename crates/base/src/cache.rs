//! Caches that share memory with others.

/// A cache whose size can be changed while it is used.
pub trait Cache: Send + Sync {
    /// How it is doing.
    fn usage(&self) -> CacheUsage;

    /// Lets it hold so many bytes from now on; what is more goes at once.
    fn resize(&self, bytes_max: u64);
}

/// What a [`Cache`] says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheUsage {
    /// Bytes it holds, about.
    pub bytes: u64,
    /// Bytes it may hold.
    pub bytes_max: u64,
    /// How often it had what was asked for.
    pub hits: u64,
}
