//! Queries of steps and checks.

use toml::Spanned;

use super::{Checked, Reader};

impl Reader<'_> {
    pub(super) fn sql(&self, text: &Spanned<String>) -> Checked<String> {
        let parsed = sql::parse(text.get_ref()).map(|_| text.get_ref().clone());
        self.at(text.span(), parsed.map_err(|error| format!("the query is wrong: {error}")))
    }
}
