//! Scripts made ready: compiled once per version, and remembered if they misbehave.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Scripts remembered; one more makes all forgotten, which costs less than keeping track.
const SCRIPTS_MAX: usize = 4096;

/// One version of a script.
pub(crate) struct Prepared {
    pub program: Arc<Program>,
    id: String,
    etag: String,
    timeouts: Mutex<Vec<Timestamp>>,
    /// Whether it was over soon the last time.
    is_quick: AtomicBool,
}

impl Prepared {
    /// Whether it is worth no change of threads. A script that has never run is not trusted.
    pub fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    /// Notes whether it was over soon.
    pub fn set_quick(&self, is_quick: bool) {
        if self.is_quick() != is_quick {
            self.is_quick.store(is_quick, Ordering::Relaxed);
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
            is_quick: AtomicBool::new(false),
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
