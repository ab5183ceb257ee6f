//! Text ⇄ syntax tree of the query language.
//!
//! ```text
//! text ──lex──▶ tokens ──parse──▶ Query ──print──▶ text
//! ```
//!
//! **`sql` never executes and never resolves a name.** It knows the grammar, the words that are
//! reserved, and how large a query may be; what an identifier refers to and what a function does
//! is the business of `query`.
//!
//! INVARIANTS
//! (S1) Printing a tree and parsing the text gives the same tree; only spans differ. The text has
//!      more brackets than people write, so that of a tree near the limits may be over them.
//! (S2) The height of a parsed tree is at most [`limits::HEIGHT_MAX`], so recursion over it is
//!      bounded.
//! (S3) Every error names a place in the text, in the character offsets of the service.

mod error;
mod keywords;
mod lexer;
pub mod limits;
mod parser;
mod print;
mod span;
mod tree;

pub use error::{Code, Error};
pub use keywords::is_plain_name;
pub use parser::{parse, parse_condition};
pub use print::quote;
pub use span::Span;
pub use tree::{
    BinaryOp, Collection, Condition, Count, CountKind, From, Ident, Literal, OffsetLimit, OrderBy,
    OrderItem, Property, Query, Scalar, ScalarKind, Select, SelectItem, Selection, SortDirection,
    Source, SourceKind, Step, SubqueryKind, UnaryOp,
};
