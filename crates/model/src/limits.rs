//! Every limit of the database, one constant each with its source.
//!
//! "Service" is what the service documents; "ours" is a choice of this project.

/// Largest item, as UTF-8 JSON with its system properties (service: 2 MB).
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Largest request body (service: 2 MB). A batch may be as large, so may an item.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// A response page is cut, not failed, at this size (service: 4 MB).
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Aggregates of a query with GROUP BY over several logical partitions (service).
pub const GROUPED_AGGREGATES_MAX: usize = 21;
/// Longest item id in bytes (service).
pub const ITEM_ID_BYTES_MAX: usize = 1023;
/// Longest database, container, user or permission name in characters (service).
pub const NAME_CHARS_MAX: usize = 255;
/// Most operations of a transactional batch (service).
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Most operations of a patch (service).
pub const PATCH_OPERATIONS_MAX: usize = 10;
/// Items in a page when the client does not say (service).
pub const PAGE_ITEMS_DEFAULT: usize = 100;
/// Items in a page however many the client asks for (ours: bounds the memory of one response).
pub const PAGE_ITEMS_MAX: usize = 10_000;
/// Databases and containers of an account together (service).
pub const RESOURCES_PER_ACCOUNT_MAX: usize = 500;
/// Containers that share the throughput of a database (service).
pub const SHARED_CONTAINERS_MAX: usize = 25;
/// Stored procedures of a container (service).
pub const STORED_PROCEDURES_MAX: usize = 100;
/// User-defined functions of a container (service).
pub const UDFS_MAX: usize = 50;
/// Triggers of a container (service: what its quota header says).
pub const TRIGGERS_MAX: usize = 25;
/// Throughput that one physical partition serves (service).
pub const PARTITION_THROUGHPUT_MAX: u32 = 10_000;
/// Throughput of one physical partition without provisioned throughput (service: serverless).
pub const SERVERLESS_PARTITION_THROUGHPUT: u32 = 5_000;
/// Lowest manual throughput, and its step (service).
pub const THROUGHPUT_MIN: u32 = 400;
/// Step of manual throughput (service).
pub const THROUGHPUT_STEP: u32 = 100;
/// Highest throughput of a container or database (service: 1,000,000 by default).
pub const THROUGHPUT_MAX: u32 = 1_000_000;
/// Lowest autoscale maximum, and its step (service).
pub const AUTOSCALE_MIN: u32 = 1_000;
/// Longest time to live in seconds (service).
pub const TTL_SECONDS_MAX: u32 = i32::MAX as u32;
/// Data of one logical partition (service: 20 GB).
pub const LOGICAL_PARTITION_BYTES_MAX: u64 = 20 * 1024 * 1024 * 1024;
/// How long one operation may take, in seconds (service).
pub const OPERATION_SECONDS_MAX: u64 = 5;
/// Lifetimes of resource tokens in seconds: least, usual, most (service).
pub const TOKEN_SECONDS: (u64, u64, u64) = (600, 3600, 86_400);
/// Accepted distance between a signature's date and our clock, in seconds (service).
pub const CLOCK_SKEW_SECONDS_MAX: u64 = 15 * 60;
/// Largest continuation in bytes (service: clients send it back in a header).
pub const CONTINUATION_BYTES_MAX: usize = 4096;

const _: () = {
    assert!(ITEM_BYTES_MAX <= BODY_BYTES_MAX, "an item arrives in one body");
    assert!(BODY_BYTES_MAX <= PAGE_BYTES_MAX, "a page holds at least one item");
    assert!(SERVERLESS_PARTITION_THROUGHPUT <= PARTITION_THROUGHPUT_MAX);
    assert!(THROUGHPUT_MIN.is_multiple_of(THROUGHPUT_STEP));
    assert!(PAGE_ITEMS_DEFAULT <= PAGE_ITEMS_MAX);
    assert!(TOKEN_SECONDS.0 <= TOKEN_SECONDS.1 && TOKEN_SECONDS.1 <= TOKEN_SECONDS.2);
};
