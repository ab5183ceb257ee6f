//! Queries that were parsed before: applications send few texts, and those often.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

/// Texts remembered; one more makes all forgotten, which costs less than keeping track.
const TEXTS_MAX: usize = 512;
/// Longer texts are not worth their memory.
const TEXT_BYTES_MAX: usize = 4096;

/// Parsed queries by their text.
#[derive(Default)]
pub(crate) struct Parsed {
    by_text: RwLock<HashMap<Box<str>, Arc<sql::Query>>>,
}

impl Parsed {
    /// The query of a text.
    pub fn get(&self, text: &str) -> Result<Arc<sql::Query>, sql::Error> {
        if let Some(query) = self.by_text.read().get(text) {
            return Ok(query.clone());
        }
        let query = Arc::new(sql::parse(text)?);
        if text.len() <= TEXT_BYTES_MAX {
            let mut by_text = self.by_text.write();
            if by_text.len() >= TEXTS_MAX {
                by_text.clear();
            }
            by_text.insert(text.into(), query.clone());
        }
        Ok(query)
    }
}
