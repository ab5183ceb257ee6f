//! The index, as pure functions: which terms an item has, and which terms a predicate looks for.
//!
//! A term is the bytes of a path followed by the bytes of a value; bytes order like values, so a
//! range of values is a range of keys. Storage appends the ordinal of the item.
//!
//! ```text
//! {"city": "Oslo", "tags": ["a", "b"]}
//!
//! /city     "Oslo"       /tags     array
//! /tags/[]  "a"          /tags/[]  "b"
//! ```
//!
//! **`index` reads items and definitions and returns bytes; it cannot tell where they are stored.**
//!
//! INVARIANTS
//! (X1) Byte order is value order: undefined < null < false < true < number < string < array <
//!      object. Arrays and objects are not ordered among themselves.
//! (X2) Paths and values end where their bytes say so; different paths have different bytes.
//! (X3) A string over the limit is cut and marked. Nothing else loses information, except paths
//!      over their limit, which end in a hash. Readers check both against the item.
//! (X4) The terms of an item depend on its own properties only, not on what a write stamps on it:
//!      a draft and the item made from it have the same terms.

mod charge;
pub mod composite;
mod counted;
pub mod encode;
mod full_text;
pub mod geometry;
mod ordinal;
pub mod path;
mod policy;
mod range;
pub mod spatial;
pub mod sphere;
mod terms;
mod walk;

pub use charge::{changed_terms, charge_difference, charge_terms, leaf_count};
pub use composite::{Composite, composite_range};
pub use counted::path_changes;
pub use encode::Scalar;
pub use full_text::{FullText, full_text_range};
pub use ordinal::{LOCALITY_BITS, Ordinal, SEQUENCE_BITS, hash128, locality};
pub use path::Path;
pub use policy::Policy;
pub use range::{Bounds, TermRange, range, term};
pub use spatial::{Region, spatial_ranges};
pub use terms::{TermChange, Terms, diff};
pub use walk::ts_term;
