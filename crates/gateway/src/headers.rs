//! The names of every header we read or write, and the values that never change.
//!
//! Names are statics: looking one up or inserting one neither parses nor allocates. Values that
//! vary are made here too, so that nothing else has to know which bytes a header may hold.

use std::fmt::{Display, Write};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub static $name: HeaderName = HeaderName::from_static($text);)*
    };
}

names! {
    // Read.
    A_IM = "a-im";
    RECEIPT = "x-cosmolabe-receipt";
    AUTOPILOT_SETTINGS = "x-ms-cosmos-offer-autopilot-settings";
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    CONSISTENCY_LEVEL = "x-ms-consistency-level";
    ENABLE_SCAN = "x-ms-documentdb-query-enable-scan";
    ENABLE_SCRIPT_LOGGING = "x-ms-documentdb-script-enable-logging";
    END_EPK = "x-ms-end-epk";
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";
    INDEXING_DIRECTIVE = "x-ms-indexing-directive";
    INTENDED_CONTAINER_RID = "x-ms-cosmos-intended-collection-rid";
    IS_BATCH = "x-ms-cosmos-is-batch-request";
    IS_QUERY = "x-ms-documentdb-isquery";
    IS_QUERY_PLAN = "x-ms-cosmos-is-query-plan-request";
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    MIGRATE_TO_AUTOPILOT = "x-ms-cosmos-migrate-offer-to-autopilot";
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    OFFER_THROUGHPUT = "x-ms-offer-throughput";
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    POPULATE_PARTITION_STATISTICS = "x-ms-documentdb-populatepartitionstatistics";
    POPULATE_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics";
    POPULATE_QUOTA_INFO = "x-ms-documentdb-populatequotainfo";
    POST_TRIGGER_INCLUDE = "x-ms-documentdb-post-trigger-include";
    PREFER = "prefer";
    PRE_TRIGGER_INCLUDE = "x-ms-documentdb-pre-trigger-include";
    READ_KEY_TYPE = "x-ms-read-key-type";
    SUPPORTED_QUERY_FEATURES = "x-ms-cosmos-supported-query-features";
    START_EPK = "x-ms-start-epk";
    WIRE_FORMAT_VERSION = "x-ms-cosmos-changefeed-wire-format-version";
    X_FORWARDED_HOST = "x-forwarded-host";
    X_FORWARDED_PROTO = "x-forwarded-proto";
    X_MS_DATE = "x-ms-date";

    // Read and written.
    ACTIVITY_ID = "x-ms-activity-id";
    CONTINUATION = "x-ms-continuation";
    RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    SESSION_TOKEN = "x-ms-session-token";
    VERSION = "x-ms-version";

    // Written.
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    CONTENT_PATH = "x-ms-content-path";
    GATEWAY_VERSION = "x-ms-gatewayversion";
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    ITEM_COUNT = "x-ms-item-count";
    LLSN = "x-ms-cosmos-llsn";
    LSN = "lsn";
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
    QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    REQUEST_CHARGE = "x-ms-request-charge";
    RESOURCE_QUOTA = "x-ms-resource-quota";
    RESOURCE_USAGE = "x-ms-resource-usage";
    RETRY_AFTER_MS = "x-ms-retry-after-ms";
    SCHEMA_VERSION = "x-ms-schemaversion";
    SCRIPT_LOG = "x-ms-documentdb-script-log-results";
    SERVICE_VERSION = "x-ms-serviceversion";
    SUBSTATUS = "x-ms-substatus";
    TRANSFORMATION_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
}

/// The protocol version of every response.
pub static VERSION_VALUE: HeaderValue = HeaderValue::from_static("2020-07-15");
/// The gateway version clients log.
pub static GATEWAY_VERSION_VALUE: HeaderValue = HeaderValue::from_static("version=2.14.0");
/// The service version clients log.
pub static SERVICE_VERSION_VALUE: HeaderValue = HeaderValue::from_static("version=2.14.0.0");
/// The schema version clients log.
pub static SCHEMA_VERSION_VALUE: HeaderValue = HeaderValue::from_static("1.19");
/// The content type of every body but the metrics.
pub static JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The text of a header; `None` if absent or not visible ASCII.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Whether a boolean header says yes. Clients capitalize booleans differently.
pub fn is_true(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The header value of a short text. Bytes that no header may hold become `?`; callers escape
/// what has to survive.
pub fn value(text: impl Display) -> HeaderValue {
    let mut short = Short { bytes: [0; 64], length: 0 };
    let value = match write!(short, "{text}") {
        Ok(()) => HeaderValue::from_bytes(&short.bytes[..short.length]),
        Err(_) => HeaderValue::from_maybe_shared(Bytes::from(text.to_string())),
    };
    value.unwrap_or(HeaderValue::from_static("?"))
}

/// A few bytes on the stack: most values are short, and then need one allocation of their size.
struct Short {
    bytes: [u8; 64],
    length: usize,
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        let free = self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?;
        free.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// An etag with the quotes it has on the wire.
pub fn etag(etag: &str) -> HeaderValue {
    value(format_args!("\"{etag}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_35_booleans_in_any_case() {
        let mut headers = HeaderMap::new();
        for (text, expect) in [("true", true), ("True", true), ("false", false), ("False", false)] {
            headers.insert(&IS_QUERY, HeaderValue::from_static(text));
            assert_eq!(is_true(&headers, &IS_QUERY), expect, "{text}");
        }
        assert!(!is_true(&headers, &IS_UPSERT));
    }

    #[test]
    fn trap_32_etags_keep_their_quotes() {
        assert_eq!(etag("0-1"), HeaderValue::from_static("\"0-1\""));
    }

    #[test]
    fn values_cannot_break_a_header() {
        let long = "x".repeat(65);
        assert_eq!(value(&long), long.as_str());
        assert_eq!(value("a\r\nb"), HeaderValue::from_static("?"));
        assert_eq!(value(12), HeaderValue::from_static("12"));
    }
}
