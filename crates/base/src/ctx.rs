//! The context of one operation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Clock, Meter, Random, SystemClock, Timestamp};

/// When an operation must have ended. Waiting counts against it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// So long from now.
    pub fn after(duration: Duration) -> Deadline {
        Deadline(Some(Instant::now() + duration))
    }

    /// Never: for background work and tests.
    pub const fn never() -> Deadline {
        Deadline(None)
    }

    /// The earlier of two.
    pub fn min(self, other: Deadline) -> Deadline {
        match (self.0, other.0) {
            (Some(own), Some(other)) => Deadline(Some(own.min(other))),
            (own, other) => Deadline(own.or(other)),
        }
    }

    /// Whether the time is over.
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|at| Instant::now() >= at)
    }

    /// The moment itself, if there is one.
    pub fn instant(self) -> Option<Instant> {
        self.0
    }
}

/// Clock, randomness, deadline and meter of one operation. Cheap to make, one per request.
pub struct Ctx {
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    deadline: Deadline,
    meter: Meter,
    wants_receipt: bool,
    is_trial: bool,
    is_part: bool,
}

impl Ctx {
    /// A context on these sources.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<Random>, deadline: Deadline) -> Ctx {
        let meter = Meter::default();
        let (wants_receipt, is_trial, is_part) = (false, false, false);
        Ctx { clock, random, deadline, meter, wants_receipt, is_trial, is_part }
    }

    /// The same, and the price of the operation is to be itemised.
    pub fn with_receipt(self, wants_receipt: bool) -> Ctx {
        Ctx { wants_receipt, ..self }
    }

    /// The same, for work that starts again with another context if it does not end in time: then
    /// nobody pays for it.
    pub fn on_trial(self) -> Ctx {
        Ctx { is_trial: true, ..self }
    }

    /// A context on the machine's clock, without a deadline.
    pub fn background() -> Ctx {
        let random = Arc::new(Random::from_entropy());
        Ctx::new(Arc::new(SystemClock), random, Deadline::never())
    }

    /// The same sources with a fresh meter.
    pub fn fork(&self) -> Ctx {
        Ctx::new(self.clock.clone(), self.random.clone(), self.deadline)
            .with_receipt(self.wants_receipt)
    }

    /// A context for a part of the operation: whoever does the whole of it pays for all.
    pub fn part(&self) -> Ctx {
        Ctx { is_part: true, ..self.fork() }
    }

    /// The current wall-clock time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The source of randomness.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// When this operation must have ended.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Whether the price of the operation is to be itemised.
    pub fn wants_receipt(&self) -> bool {
        self.wants_receipt
    }

    /// Whether the work starts again elsewhere if it does not end in time.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Whether somebody else pays for this operation.
    pub fn is_part(&self) -> bool {
        self.is_part
    }

    /// Where lower layers count their work.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }
}
