//! What every store checks before it applies a commit.

use bytes::Bytes;

use crate::{Commit, Error, Limits, LogId, Precondition, Result, Space};

impl Limits {
    /// Refuses a commit that the store could not hold.
    pub fn check(&self, commit: &Commit) -> Result<()> {
        for write in &commit.writes {
            self.check_key(write.key())?;
            let value = write.value().map_or(0, |value| value.len());
            at_most("value", value, self.value_bytes_max)?;
        }
        for merge in &commit.merges {
            self.check_key(merge.key())?;
        }
        if let Some(mark) = commit.marks.iter().find(|mark| mark.log >= LogId::END) {
            return Err(Error::Fault(format!("log {} is out of range", mark.log.0)));
        }
        at_most("commit", commit.bytes(), self.commit_bytes_max)
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        if key.is_empty() {
            return Err(Error::Fault("a key has at least one byte".to_owned()));
        }
        at_most("key", key.len(), self.key_bytes_max)
    }
}

fn at_most(what: &'static str, bytes: usize, bytes_max: usize) -> Result<()> {
    if bytes > bytes_max { Err(Error::TooLarge { what, bytes, bytes_max }) } else { Ok(()) }
}

/// Refuses a commit if one of its preconditions does not hold in the state that `get` reads.
pub fn check_preconditions(
    preconditions: &[Precondition],
    mut get: impl FnMut(Space, &Bytes) -> Result<Option<Bytes>>,
) -> Result<()> {
    for (index, precondition) in preconditions.iter().enumerate() {
        let value = get(precondition.space(), precondition.key())?;
        if !precondition.holds(value.as_deref()) {
            return Err(Error::PreconditionFailed { index });
        }
    }
    Ok(())
}
