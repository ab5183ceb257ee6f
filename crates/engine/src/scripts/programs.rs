//! Scripts made ready: compiled once per version, and remembered if they misbehave.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::Timestamp;
use model::Rid;
use parking_lot::Mutex;
use script::Program;
use serde_json::Value;

use crate::ops::Resource;
use crate::{Error, Result};

/// A script that runs out of time so often ...
const TIMEOUTS_MAX: usize = 5;
/// ... within so many seconds is not run any more until it is replaced.
const TIMEOUTS_SECONDS: u64 = 5 * 60;

/// How often a script has to be over soon, at most, before it is trusted again.
const TRUST_MAX: u32 = 1 << 10;
/// How many times its time a script may take that is ever trusted again.
const OVERRUN_MAX: u32 = 25;

/// Scripts remembered; one more makes all forgotten, which costs less than keeping track.
const SCRIPTS_MAX: usize = 4096;

/// One version of a script.
pub(crate) struct Prepared {
    pub program: Arc<Program>,
    id: String,
    etag: String,
    timeouts: Mutex<Vec<Timestamp>>,
    trust: Mutex<Trust>,
}

/// Whether a script is known to be over soon.
struct Trust {
    /// So many times more it has to be, until it is trusted.
    due: u32,
    /// So many times the next time that it was trusted in vain; none: never again.
    next: Option<u32>,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust { due: 1, next: Some(2) }
    }
}

impl Prepared {
    /// Whether it is worth no change of threads. A script that has never run is not trusted.
    pub fn is_quick(&self) -> bool {
        self.trust.lock().due == 0
    }

    /// Notes that it was over, soon or not.
    pub fn was_quick(&self, is_quick: bool) {
        let mut trust = self.trust.lock();
        trust.due = match (is_quick, trust.next) {
            (true, Some(_)) => trust.due.saturating_sub(1),
            (true, None) => trust.due,
            (false, _) => trust.due.max(1),
        };
    }

    /// Notes that it was trusted in vain. One that depends on its arguments would otherwise be done
    /// twice again and again; one that went far beyond its time is not to do so a second time.
    pub fn was_trusted_in_vain(&self, took: Duration, time: Duration) {
        let mut trust = self.trust.lock();
        trust.due = trust.next.unwrap_or(u32::MAX);
        trust.next = trust.next.map(|next| next.saturating_mul(2).min(TRUST_MAX));
        if took > time * OVERRUN_MAX {
            *trust = Trust { due: u32::MAX, next: None };
        }
    }

    /// Notes that it ran out of time.
    pub fn timed_out(&self, now: Timestamp) {
        let mut timeouts = self.timeouts.lock();
        timeouts.retain(|then| now.as_secs().saturating_sub(then.as_secs()) < TIMEOUTS_SECONDS);
        timeouts.push(now);
    }

    fn check(&self) -> Result<()> {
        match self.timeouts.lock().len() >= TIMEOUTS_MAX {
            true => Err(Error::Forbidden(format!(
                "The script '{}' is blocked for execution because it has violated its allowed \
                 resource limit several times. Replace it to run it again.",
                self.id
            ))),
            false => Ok(()),
        }
    }
}

/// The scripts that have run, by their resource ids.
#[derive(Default)]
pub(crate) struct Programs {
    by_rid: Mutex<HashMap<Rid, Arc<Prepared>>>,
}

impl Programs {
    /// The script of a resource, unless it is blocked.
    pub fn get(&self, resource: &Resource) -> Result<Arc<Prepared>> {
        let known = self.by_rid.lock().get(&resource.rid).cloned();
        if let Some(prepared) = known.filter(|known| known.etag == resource.etag) {
            prepared.check()?;
            return Ok(prepared);
        }
        let text = |name: &str| resource.body.get(name).and_then(Value::as_str).unwrap_or_default();
        let program = compile(text("id"), text("body"))?;
        let prepared = Arc::new(Prepared {
            program: Arc::new(program),
            id: text("id").to_owned(),
            etag: resource.etag.clone(),
            timeouts: Mutex::default(),
            trust: Mutex::default(),
        });
        let mut by_rid = self.by_rid.lock();
        if by_rid.len() >= SCRIPTS_MAX {
            by_rid.clear();
        }
        by_rid.insert(resource.rid, prepared.clone());
        Ok(prepared)
    }
}

/// Compiles a script; a wrong one is refused with its place.
pub(crate) fn compile(id: &str, body: &str) -> Result<Program> {
    Program::compile(id, body).map_err(|error| {
        Error::Invalid(format!(
            "Encountered exception while compiling Javascript. Exception = SyntaxError: {} \
             (line {}, column {}).",
            error.message, error.line, error.column
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_millis(2);

    fn prepared() -> Prepared {
        Prepared {
            program: Arc::new(compile("p", "function () {}").expect("it is a function")),
            id: "p".to_owned(),
            etag: String::new(),
            timeouts: Mutex::default(),
            trust: Mutex::default(),
        }
    }

    /// How often it has to be over soon until it is trusted.
    fn due(script: &Prepared) -> usize {
        let quick = || script.was_quick(true);
        (0..5_000).take_while(|_| !script.is_quick()).map(|_| quick()).count()
    }

    #[test]
    fn trust_is_earned_once_and_then_harder() {
        let script = prepared();
        assert_eq!(due(&script), 1);
        script.was_quick(false);
        assert_eq!(due(&script), 1);
        for expected in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024] {
            script.was_trusted_in_vain(TIME * 2, TIME);
            assert_eq!(due(&script), expected);
        }
    }

    #[test]
    fn who_overruns_far_is_never_trusted_again() {
        let script = prepared();
        script.was_trusted_in_vain(TIME * OVERRUN_MAX, TIME);
        assert_eq!(due(&script), 2);
        script.was_trusted_in_vain(TIME * OVERRUN_MAX + Duration::from_nanos(1), TIME);
        assert_eq!(due(&script), 5_000);
    }
}
