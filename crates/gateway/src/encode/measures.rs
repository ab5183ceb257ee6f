//! What a query did, as the headers that clients show to their users.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use engine::ops::{FeedPage, IndexMention, IndexUse};
use hyper::HeaderMap;
use serde_json::{Value, json};

use super::Reply;
use crate::headers;
use crate::percent::Component;

/// The response to a query with the measures its client asked for.
pub fn with_measures(
    reply: Reply,
    request: &HeaderMap,
    page: &FeedPage,
    elapsed: Duration,
) -> Reply {
    let asks = |name| headers::is_true(request, name);
    let mut reply = reply;
    if asks(&headers::POPULATE_QUERY_METRICS) {
        let metrics = headers::value(query_metrics(page, elapsed));
        reply = reply.with(&headers::QUERY_METRICS, metrics);
    }
    // The two versions differ in how the same document gets into a header.
    if asks(&headers::POPULATE_INDEX_METRICS_V2) {
        let text = index_metrics(page).to_string();
        reply = reply.with(&headers::INDEX_UTILIZATION, headers::value(Component(&text)));
    } else if asks(&headers::POPULATE_INDEX_METRICS) {
        let text = STANDARD.encode(index_metrics(page).to_string());
        reply = reply.with(&headers::INDEX_UTILIZATION, headers::value(text));
    }
    reply
}

/// `name=number` pieces; one client throws on anything else, a last semicolon included. Phases we do
/// not tell apart are zero. The program that runs a query is what is neither its reading nor its plan.
fn query_metrics(page: &FeedPage, elapsed: Duration) -> String {
    let meter = &page.meter;
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let times = page.times.unwrap_or_default();
    let (total, compile, plan) = (ms(elapsed), ms(times.compile), ms(times.plan));
    let (index, items) = (ms(times.index), ms(times.items));
    let run = (total - compile - plan).max(0.0);
    let retrieved = meter.items_read + meter.items_scanned;
    let output_bytes: usize = page.rows.iter().map(|row| row.len()).sum();
    let output = page.rows.len() as u64;
    let ratio = if retrieved == 0 { 1.0 } else { (output as f64 / retrieved as f64).min(1.0) };
    format!(
        "totalExecutionTimeInMs={total:.3};queryCompileTimeInMs={compile:.3};\
         queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs={plan:.3};\
         queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={run:.3};\
         indexLookupTimeInMs={index:.3};instructionCount={};documentLoadTimeInMs={items:.3};\
         systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;\
         retrievedDocumentCount={retrieved};retrievedDocumentSize={};\
         outputDocumentCount={output};outputDocumentSize={output_bytes};\
         writeOutputTimeInMs=0.00;indexUtilizationRatio={ratio:.2}",
        meter.terms_read,
        meter.bytes_read + meter.bytes_scanned,
    )
}

fn index_metrics(page: &FeedPage) -> Value {
    let nothing = IndexUse::default();
    let index_use = page.index_use.as_ref().unwrap_or(&nothing);
    let single = |mentions: &[IndexMention]| -> Vec<Value> {
        mentions.iter().filter(|mention| mention.paths.len() == 1).map(single_index).collect()
    };
    let composite = |mentions: &[IndexMention]| -> Vec<Value> {
        mentions.iter().filter(|mention| mention.paths.len() > 1).map(composite_index).collect()
    };
    json!({
        "UtilizedSingleIndexes": single(&index_use.used),
        "PotentialSingleIndexes": single(&index_use.potential),
        "UtilizedCompositeIndexes": composite(&index_use.used),
        "PotentialCompositeIndexes": composite(&index_use.potential),
    })
}

fn single_index(mention: &IndexMention) -> Value {
    json!({
        "FilterExpression": mention.filter,
        "IndexSpec": mention.paths.first(),
        "FilterPreciseSet": true,
        "IndexPreciseSet": true,
        "IndexImpactScore": "High",
    })
}

fn composite_index(mention: &IndexMention) -> Value {
    json!({
        "FilterExpressions": [mention.filter],
        "IndexSpecs": mention.paths,
        "IndexPreciseSet": true,
        "IndexImpactScore": "High",
    })
}

#[cfg(test)]
mod tests {
    use base::MeterReading;
    use bytes::Bytes;
    use engine::ops::Times;
    use model::{RequestCharge, SessionToken};

    use super::*;

    fn page() -> FeedPage {
        FeedPage {
            rows: vec![Bytes::from_static(b"{}")],
            continuation: None,
            charge: RequestCharge::ONE,
            receipt: None,
            session: SessionToken::default(),
            partition: 0,
            lsn: 1,
            meter: MeterReading { items_read: 2, bytes_read: 300, ..MeterReading::default() },
            is_cut_by_time: false,
            is_reversed: None,
            times: Some(Times {
                compile: Duration::from_micros(10),
                plan: Duration::from_micros(20),
                index: Duration::from_micros(50),
                items: Duration::from_micros(125),
            }),
            index_use: Some(IndexUse {
                used: vec![IndexMention {
                    filter: "/v = 1".to_owned(),
                    paths: vec!["/v/?".to_owned()],
                }],
                potential: vec![IndexMention {
                    filter: String::new(),
                    paths: vec!["/v ASC".to_owned(), "/w DESC".to_owned()],
                }],
            }),
        }
    }

    #[test]
    fn every_piece_is_a_name_and_a_number() {
        let text = query_metrics(&page(), Duration::from_micros(330));
        for piece in text.split(';') {
            let (name, number) = piece.split_once('=').unwrap();
            assert!(!name.is_empty() && number.parse::<f64>().is_ok(), "{piece}");
        }
        assert!(text.starts_with("totalExecutionTimeInMs=0.330;queryCompileTimeInMs=0.010;"));
        for piece in [
            ";queryPhysicalPlanBuildTimeInMs=0.020;",
            ";VMExecutionTimeInMs=0.300;",
            ";indexLookupTimeInMs=0.050;",
            ";documentLoadTimeInMs=0.125;",
        ] {
            assert!(text.contains(piece), "{text}");
        }
        assert!(text.contains(";retrievedDocumentCount=2;retrievedDocumentSize=300;"));
        assert!(text.ends_with(";indexUtilizationRatio=0.50"));
    }

    #[test]
    fn indexes_used() {
        let metrics = index_metrics(&page());
        assert_eq!(metrics["UtilizedSingleIndexes"][0]["IndexSpec"], "/v/?");
        assert_eq!(metrics["UtilizedCompositeIndexes"].as_array().unwrap().len(), 0);
        assert_eq!(metrics["PotentialCompositeIndexes"][0]["IndexSpecs"][1], "/w DESC");
    }
}
