//! The laboratory: what a data model costs, per access pattern, before one is stuck with it.
//!
//! ```text
//! workload file ─ read ─▶ Workload ─ data ─▶ instances
//!                             │                 │
//!                             └────── run ──────┴─▶ client ─▶ server
//!                                      │
//!                                   Results ─▶ table, JSON, report, lessons, budget
//! ```
//!
//! A workload names entities, models that keep them in containers, access patterns, and how often
//! they happen. Everything else follows from the file: no workload is known here by name.
//!
//! LAYOUT     `file`, `read`, `workload` with `expression` (the format); `generate`, `data`
//!            (instances); `target`, `load`, `steps`, `pipeline`, `run` with `measure`, `verify`,
//!            `probe` (requests); `receipt`, `results`, `agreement`, `growth`, `mix`, `lessons`, `table`,
//!            `report` with `chart`, `budget` (numbers); `shelf` (the workloads that come with the
//!            binary).
//!
//! **`lab` speaks REST like any other program: it knows `client`, and nothing of the server.**

pub mod agreement;
pub mod budget;
pub mod data;
pub mod expression;
pub mod file;
pub mod generate;
pub mod growth;
pub mod lessons;
pub mod load;
pub mod mix;
pub mod pipeline;
pub mod probe;
pub mod read;
pub mod receipt;
pub mod report;
pub mod results;
pub mod run;
pub mod shelf;
pub mod steps;
pub mod table;
pub mod target;
pub mod verify;
pub mod workload;

mod chart;
mod error;
mod measure;

pub use data::Data;
pub use error::Error;
pub use read::{Mistake, Source};
pub use results::Results;
pub use run::{Counted, Run, Settle, Watch};
pub use workload::Workload;
