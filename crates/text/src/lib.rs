//! Prose as a search sees it: words without case, without endings, without those that say nothing.
//!
//! ```text
//! "The red bicycles, parked near Bob's barn"
//!
//!  1 red   2 bicycl   3 park   4 near   5 bob   6 barn
//! ```
//!
//! A token keeps the position of its word, stop words counted, so that a phrase can ask for
//! neighbors. An index and a query that read the same language make the same tokens of the same
//! text: both come here.
//!
//! **`text` knows neither items nor queries: strings go in, tokens come out.**

mod language;
mod phrase;
mod tokens;

pub use language::Language;
pub use phrase::{DISTANCE_MAX, Phrase};
pub use tokens::{TOKEN_BYTES_MAX, Token, tokens};
