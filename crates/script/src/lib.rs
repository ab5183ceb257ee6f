//! Stored procedures, triggers and user-defined functions in a bounded JavaScript runtime.
//!
//! ```text
//! Pool ── thread ── Session ─┬─ execute(Call) ─▶ Stage: runtime as new + API prelude ─▶ Outcome
//!   │                        └─ functions(…)  ─▶ Functions: one runtime per query
//!   └── watchdog                    │
//!                                 Host: the port through which scripts reach items
//! ```
//!
//! LAYOUT     `operation` (the port), `call` (one run), `program` (source to bytecode), `machine` (one
//!            runtime and its limits), `memory` (putting it back to how it was), `convert` (values in and out), `errors` (what escaped),
//!            `natives` and `prelude/*.js` (the server-side API), `translate` (predicates as SQL),
//!            `run` (procedures and triggers), `functions` (user-defined functions), `pool`.
//!
//! INVARIANTS
//! (S1) JavaScript values stop here: what crosses the API is items, values and JSON texts.
//! (S2) No script sees what another left, in memory or in prototypes.
//! (S3) No script keeps its host longer than its time, whatever it does.
//! (S4) No script ends the process.
//!
//! ELSEWHERE  Transactions, charges, who may run what: `engine`.

mod call;
mod convert;
mod errors;
mod functions;
mod machine;
mod memory;
mod natives;
mod operation;
mod pool;
mod port;
mod program;
mod run;
mod translate;

pub use call::{Call, Collection, Failure, Limits, Outcome, Role, TriggerOperation};
pub use functions::{Argument, Functions};
pub use operation::{Host, HostError, ItemLink, Operation, Page, Reply};
pub use pool::{
    Place, Pool, PoolOptions, Revoked, Running, Session, Stop, lend_thread, tidy_thread,
};
pub use program::{Program, SyntaxError};
