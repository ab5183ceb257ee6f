//! The names of the headers that clients send and read.

/// What the signature of a request covers as its date.
pub const DATE: &str = "x-ms-date";
/// The protocol version.
pub const VERSION: &str = "x-ms-version";
/// The partition key of a request, as a JSON array.
pub const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";
/// Whether a create may also replace.
pub const IS_UPSERT: &str = "x-ms-documentdb-is-upsert";
/// Whether the body is a list of operations.
pub const IS_BATCH: &str = "x-ms-cosmos-is-batch-request";
/// Whether the operations of a batch happen together or not at all.
pub const BATCH_ATOMIC: &str = "x-ms-cosmos-batch-atomic";
/// Whether a bulk request goes on behind an operation that failed.
pub const CONTINUE_ON_ERROR: &str = "x-ms-cosmos-batch-continue-on-error";
/// Whether the body is a query.
pub const IS_QUERY: &str = "x-ms-documentdb-isquery";
/// Asks how to run a query rather than for its rows.
pub const IS_QUERY_PLAN: &str = "x-ms-cosmos-is-query-plan-request";
/// What a client can merge by itself, separated by commas.
pub const QUERY_FEATURES: &str = "x-ms-cosmos-supported-query-features";
/// Whether a query may go over all physical partitions.
pub const CROSS_PARTITION: &str = "x-ms-documentdb-query-enablecrosspartition";
/// Whether a query may be answered by a scan where there is no index.
pub const ENABLE_SCAN: &str = "x-ms-documentdb-query-enable-scan";
/// Asks for what a query took.
pub const POPULATE_QUERY_METRICS: &str = "x-ms-documentdb-populatequerymetrics";
/// What a query took: `name=number` pieces with semicolons between them.
pub const QUERY_METRICS: &str = "x-ms-documentdb-query-metrics";
/// The throughput of a new container or database.
pub const OFFER_THROUGHPUT: &str = "x-ms-offer-throughput";
/// The size of a page.
pub const MAX_ITEM_COUNT: &str = "x-ms-max-item-count";
/// Where a feed goes on.
pub const CONTINUATION: &str = "x-ms-continuation";
/// The physical partition that is asked, or has answered.
pub const RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
/// What a client has seen of each physical partition.
pub const SESSION_TOKEN: &str = "x-ms-session-token";
/// The position of the physical partition that has answered.
pub const LSN: &str = "lsn";
/// Asks what a price is made of, and answers it.
pub const RECEIPT: &str = "x-cosmolabe-receipt";
/// The price of a request.
pub const REQUEST_CHARGE: &str = "x-ms-request-charge";
/// What a status means in particular.
pub const SUBSTATUS: &str = "x-ms-substatus";
/// What the body is.
pub const CONTENT_TYPE: &str = "content-type";
/// Asks for a change feed.
pub const A_IM: &str = "a-im";
/// The version a write is meant for.
pub const IF_MATCH: &str = "if-match";
/// The version a client already has, or where a change feed goes on.
pub const IF_NONE_MATCH: &str = "if-none-match";
/// Asks for an answer without the body the client knows already.
pub const PREFER: &str = "prefer";
/// The trigger that runs before a write.
pub const PRE_TRIGGER: &str = "x-ms-documentdb-pre-trigger-include";
/// The trigger that runs behind a write, within it.
pub const POST_TRIGGER: &str = "x-ms-documentdb-post-trigger-include";
/// How many milliseconds to wait before asking again.
pub const RETRY_AFTER: &str = "x-ms-retry-after-ms";
