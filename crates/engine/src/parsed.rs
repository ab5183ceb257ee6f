//! Queries that were parsed before: applications send few texts, and those often.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use query::Printed;

/// Texts remembered; one more makes all forgotten, which costs less than keeping track.
const TEXTS_MAX: usize = 512;
/// Longer texts are not worth their memory.
const TEXT_BYTES_MAX: usize = 4096;

/// Parsed queries by their text.
#[derive(Default)]
pub(crate) struct Parsed {
    by_text: RwLock<HashMap<Box<str>, Arc<ParsedQuery>>>,
}

/// All that a text says by itself.
pub(crate) struct ParsedQuery {
    pub query: sql::Query,
    pub printed: Arc<Printed>,
}

impl Parsed {
    /// The query of a text.
    pub fn get(&self, text: &str) -> Result<Arc<ParsedQuery>, sql::Error> {
        if let Some(query) = self.by_text.read().get(text) {
            return Ok(query.clone());
        }
        let query = sql::parse(text)?;
        let printed = Arc::new(Printed::of(&query));
        let query = Arc::new(ParsedQuery { query, printed });
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
