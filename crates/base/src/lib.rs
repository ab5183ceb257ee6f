//! What every operation carries with it: time, randomness, a deadline and a meter.
//!
//! `Ctx` is the first argument of everything that waits or spends. Time and randomness come only
//! from it, so a test owns both and a seed replays a run.
//!
//! **`base` knows nothing of the database.** It has no dependency at all.

mod cache;
mod clock;
mod ctx;
mod meter;
mod random;
pub mod worker;

pub use cache::{Cache, CacheUsage};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use ctx::{Ctx, Deadline};
pub use meter::{Meter, MeterReading, PartitionMeter};
pub use random::Random;
