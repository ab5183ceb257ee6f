//! How large a query may be. Each number comes from the service's published limits or, where it
//! publishes none, from the stack a recursive walk may use.

/// Bytes of query text (published: 512 KB).
pub const TEXT_BYTES_MAX: usize = 512 * 1024;
/// JOINs in one query, subqueries included (published: 10).
pub const JOINS_MAX: usize = 10;
/// Calls of user-defined functions in one query (published: 10).
pub const UDF_CALLS_MAX: usize = 10;
/// `AND` operators in one query (published until 2019: 2000).
pub const ANDS_MAX: usize = 2000;
/// `OR` operators in one query (published until 2019: 2000).
pub const ORS_MAX: usize = 2000;
/// Values in one `IN` list (published until 2019: 6000).
pub const IN_ITEMS_MAX: usize = 6000;
/// Brackets, calls and subqueries inside one another (ours).
pub const NESTING_MAX: usize = 100;
/// How many levels of nesting a subquery counts for.
pub const SUBQUERY_NESTING: usize = 5;
/// Nodes on the longest path from the root of a tree to a leaf (ours). A chain of binary
/// operators is as high as it is long; chains of `AND` and `OR` are one node.
pub const HEIGHT_MAX: u32 = 256;
/// The largest count of `TOP`, `OFFSET` and `LIMIT` (32 bits unsigned).
pub const COUNT_MAX: f64 = u32::MAX as f64;

const _: () = assert!(NESTING_MAX < HEIGHT_MAX as usize);
