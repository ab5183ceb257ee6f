//! Plan and execute queries over a [`Source`].
//!
//! ```text
//! sql::Query ──bind──▶ BoundQuery ──plan──▶ Plan ──execute──▶ Page, State
//!                        │                            ▲
//!                     routing                    Source, Udf
//! ```
//!
//! [`bind`] resolves names, functions and parameters; every error that does not depend on data is
//! found there. [`routing`] reads off the filter which logical partitions can matter, so that the
//! engine opens no others. [`plan`] chooses how to read items, [`execute`] runs one page of it.
//!
//! **`query` cannot tell which engine stores the items.** It counts what it uses and never prices
//! it.
//!
//! INVARIANTS
//! (E1) The result of a query does not depend on the access path, on the number of partitions, or
//!      on the size of pages. The filter is evaluated on every item, whatever the index promised.
//! (E2) Pages that follow each other over an unchanged source repeat no row and lose none.
//! (E3) The meter shows the entries and items a page needed, whatever was read ahead: an item is
//!      loaded if it passes every condition that the index can tell, whichever of them led to it.
//! (E4) What is not executed yet is an error that says so, never a guess.

mod aggregate;
mod bind;
mod constraints;
mod datum;
mod error;
mod eval;
mod exec;
mod expr;
mod full_text;
mod functions;
mod key;
mod matches;
mod over;
mod page;
mod parameters;
mod path;
mod plan;
mod plan_info;
mod ranking;
mod routing;
mod schema;
mod source;
mod spatial;
mod state;
pub mod testing;
mod timed;
mod udf;
mod vectors;

pub use bind::{BoundQuery, Printed, bind, bind_printed, bind_with, check_computed};
pub use error::Error;
pub use exec::{execute, execute_with};
pub use matches::matches;
pub use over::rows_over;
pub use page::{Page, PageEnd, PageLimits};
pub use parameters::Parameters;
pub use path::{Path, Segment};
pub use plan::{IndexMention, IndexUse, Plan, Strategy, plan, plan_by};
pub use plan_info::{
    DistinctType, FILTER_PLACEHOLDER, PlanInfo, QueryRange, plan_info, plan_info_with,
};
pub use routing::{Pin, Routing, routing};
pub use schema::{Computed, FullTextPath, Schema, VectorPath};
pub use source::{
    Batch, Bound, Bounds, Direction, KEY_BYTES_MAX, Ordinals, Point, Position, Sizes, Source,
    SourceError, Span,
};
pub use state::{STATE_BYTES_MAX, State};
pub use timed::{Timed, Times};
pub use udf::{Argument, NoFunctions, Udf, UdfError};
pub use vectors::Metric;
