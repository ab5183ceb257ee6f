//! Bodies of batch and bulk requests: an array of operations in, an array of results out.
//!
//! ```text
//! [{"operationType":"Create","resourceBody":{…}}, …]
//! [{"statusCode":201,"eTag":"…","requestCharge":5.5,"resourceBody":{…}}, …]
//! ```
//!
//! Item bodies are not parsed twice: an operation keeps the text it arrived in.
//!
//! INVARIANTS
//! (B1) There is one result per operation, in the same order, also when nothing happened.

use bytes::{BufMut, Bytes, BytesMut};
use engine::ops::{BatchOperation, EtagCondition, ItemAnswer, WriteItem, WriteKind};
use model::ItemId;
use model::limits::{BATCH_OPERATIONS_MAX, BODY_BYTES_MAX};
use model::partition_key::PartitionKey;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::decode;
use crate::encode::{retry_after_ms, sentence, status_of_item};
use crate::error::{Result, invalid};
use crate::status::{FAILED_DEPENDENCY, status_of_engine};

/// One operation, checked.
#[derive(Debug)]
pub struct Operation {
    /// What to do.
    pub operation: BatchOperation,
    /// The partition key it names itself; bulk operations have to.
    pub key: Option<PartitionKey>,
    /// Whether the client does not want the item back.
    pub is_minimal: bool,
}

/// One result: an answer, an error, or undone because of another.
pub type Outcome = Option<engine::Result<ItemAnswer>>;

/// Reads the body of a batch or bulk request.
pub fn parse(body: &[u8]) -> Result<Vec<Operation>> {
    decode::refuse_hybrid_row(body)?;
    if body.len() > BODY_BYTES_MAX {
        let message = format!("Batch request is too large: the limit is {BODY_BYTES_MAX} bytes.");
        return Err(engine::Error::TooLarge(message).into());
    }
    let raw: Vec<RawOperation<'_>> = serde_json::from_slice(body).map_err(decode::malformed)?;
    if raw.is_empty() || raw.len() > BATCH_OPERATIONS_MAX {
        return Err(invalid(format!(
            "A batch has 1 to {BATCH_OPERATIONS_MAX} operations, this one {}.",
            raw.len()
        )));
    }
    raw.iter().enumerate().map(|(at, raw)| raw.check(at)).collect()
}

/// An operation as the client wrote it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawOperation<'b> {
    operation_type: String,
    id: Option<String>,
    #[serde(borrow)]
    partition_key: Option<&'b RawValue>,
    #[serde(borrow)]
    resource_body: Option<&'b RawValue>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    indexing_directive: Option<String>,
    #[serde(default)]
    minimal_return_preference: bool,
}

impl RawOperation<'_> {
    fn check(&self, at: usize) -> Result<Operation> {
        let condition = |text: Option<&String>| {
            text.map_or(EtagCondition::None, |text| EtagCondition::parse(text))
        };
        let (if_match, if_none_match) = (self.if_match.as_ref(), self.if_none_match.as_ref());
        let operation = match self.kind(at)? {
            // Whichever way a read names a version, the client has it: so does the service see it.
            Kind::Read(id) => BatchOperation::Read(id, condition(if_none_match.or(if_match))),
            Kind::Write(kind) => BatchOperation::Write(WriteItem {
                kind,
                if_match: condition(if_match),
                if_none_match: condition(if_none_match),
                is_indexed: decode::indexing_directive(
                    self.indexing_directive.as_deref().unwrap_or_default(),
                )?,
            }),
        };
        let is_minimal = self.minimal_return_preference;
        Ok(Operation { operation, key: self.key(at)?, is_minimal })
    }

    fn kind(&self, at: usize) -> Result<Kind> {
        let kind = match self.operation_type.as_str() {
            "Create" => WriteKind::Create(decode::draft(self.body(at)?)?),
            "Upsert" => WriteKind::Upsert(decode::draft(self.body(at)?)?),
            "Replace" => WriteKind::Replace(self.id(at)?, decode::draft(self.body(at)?)?),
            "Patch" => WriteKind::Patch(self.id(at)?, decode::patch(self.body(at)?)?),
            "Delete" => WriteKind::Delete(self.id(at)?),
            "Read" => return Ok(Kind::Read(self.id(at)?)),
            other => {
                return Err(invalid(format!(
                    "Operation {at}: 'operationType' is Create, Upsert, Replace, Patch, Read or \
                     Delete, not '{other}'."
                )));
            }
        };
        Ok(Kind::Write(kind))
    }

    fn body(&self, at: usize) -> Result<&[u8]> {
        let body = self.resource_body.map(|raw| raw.get().as_bytes());
        body.ok_or_else(|| invalid(format!("Operation {at}: 'resourceBody' is missing.")))
    }

    fn id(&self, at: usize) -> Result<ItemId> {
        let id = self.id.as_deref();
        let id = id.ok_or_else(|| invalid(format!("Operation {at}: 'id' is missing.")))?;
        ItemId::new(id).map_err(|error| invalid(format!("Operation {at}: {error}")))
    }

    /// The key is a JSON array, or a string that holds one.
    fn key(&self, at: usize) -> Result<Option<PartitionKey>> {
        let Some(raw) = self.partition_key else { return Ok(None) };
        if raw.get().starts_with('[') {
            return decode::parse_key(raw.get()).map(Some);
        }
        match serde_json::from_str::<Option<String>>(raw.get()) {
            Ok(text) => text.as_deref().map(decode::parse_key).transpose(),
            Err(_) => Err(invalid(format!(
                "Operation {at}: 'partitionKey' is a string with a JSON array in it."
            ))),
        }
    }
}

enum Kind {
    Read(ItemId),
    Write(WriteKind),
}

/// The body of a response (B1). `is_minimal[i]` leaves out the item of a write.
pub fn results(outcomes: &[Outcome], is_minimal: &[bool], is_read: &[bool]) -> Bytes {
    let mut out = BytesMut::with_capacity(64 + 256 * outcomes.len());
    out.put_u8(b'[');
    for (at, outcome) in outcomes.iter().enumerate() {
        if at > 0 {
            out.put_u8(b',');
        }
        match outcome {
            None => write_undone(&mut out),
            Some(Ok(answer)) => write_answer(&mut out, answer, is_minimal[at] && !is_read[at]),
            Some(Err(error)) => write_error(&mut out, error),
        }
    }
    out.put_u8(b']');
    out.freeze()
}

fn write_undone(out: &mut BytesMut) {
    let status = FAILED_DEPENDENCY.code;
    put(out, format_args!("{{\"statusCode\":{status},\"subStatusCode\":0,\"requestCharge\":0}}"));
}

fn write_answer(out: &mut BytesMut, answer: &ItemAnswer, is_minimal: bool) {
    let status = status_of_item(answer.status);
    let charge = answer.charge;
    put(
        out,
        format_args!(
            "{{\"statusCode\":{},\"subStatusCode\":0,\"requestCharge\":{charge}",
            status.as_u16()
        ),
    );
    if let Some(item) = &answer.item {
        put(out, format_args!(",\"eTag\":\"\\\"{}\\\"\"", item.etag()));
        if status.is_success() && !is_minimal {
            out.put_slice(b",\"resourceBody\":");
            out.put_slice(&item.text());
        }
    }
    out.put_u8(b'}');
}

fn write_error(out: &mut BytesMut, error: &engine::Error) {
    let status = status_of_engine(error);
    let charge = engine::charge::of_failure(error);
    let message = serde_json::Value::String(sentence(error, ""));
    put(
        out,
        format_args!(
            "{{\"statusCode\":{},\"subStatusCode\":{},\"requestCharge\":{charge},\
             \"message\":{message}",
            status.code, status.sub
        ),
    );
    if let Some(ms) = retry_after_ms(error) {
        put(out, format_args!(",\"retryAfterMilliseconds\":{ms}"));
    }
    out.put_u8(b'}');
}

fn put(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    use std::fmt::Write;
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fails(body: &str) -> bool {
        parse(body.as_bytes()).is_err()
    }

    #[test]
    fn every_operation() {
        let body = br#"[
            {"operationType":"Create","resourceBody":{"id":"a"}},
            {"operationType":"Upsert","resourceBody":{"id":"b"},"ifMatch":"\"e\""},
            {"operationType":"Replace","id":"b","resourceBody":{"id":"b"},"ifMatch":"e"},
            {"operationType":"Read","id":"b","ifNoneMatch":"*"},
            {"operationType":"Patch","id":"b","resourceBody":{"operations":[{"op":"remove","path":"/x"}]}},
            {"operationType":"Delete","id":"b","minimalReturnPreference":true}]"#;
        let operations = parse(body).unwrap();
        assert_eq!(operations.len(), 6);
        for at in [1, 2] {
            let BatchOperation::Write(write) = &operations[at].operation else { panic!("a write") };
            assert_eq!(write.if_match, EtagCondition::Is("e".to_owned()));
        }
        assert!(matches!(&operations[3].operation, BatchOperation::Read(_, EtagCondition::Any)));
        assert!(operations[5].is_minimal);
    }

    #[test]
    fn trap_26_a_bulk_key_is_a_string_with_json_in_it() {
        let key = |text: &str| {
            let body = format!(r#"[{{"operationType":"Delete","id":"a","partitionKey":{text}}}]"#);
            parse(body.as_bytes()).map(|mut operations| operations.remove(0).key)
        };
        let expect = decode::parse_key(r#"["p1"]"#).unwrap();
        assert_eq!(key(r#""[\"p1\"]""#).unwrap(), Some(expect.clone()));
        assert_eq!(key(r#"["p1"]"#).unwrap(), Some(expect));
        assert_eq!(key("null").unwrap(), None);
        assert!(key("7").is_err());
        assert!(key(r#""p1""#).is_err());
    }

    #[test]
    fn batches_at_their_limit() {
        let body = |count: usize| {
            let one = r#"{"operationType":"Delete","id":"a"}"#;
            format!("[{}]", vec![one; count].join(","))
        };
        assert!(fails(&body(0)));
        assert_eq!(parse(body(99).as_bytes()).unwrap().len(), 99);
        assert_eq!(parse(body(100).as_bytes()).unwrap().len(), 100);
        assert!(fails(&body(101)));
    }

    #[test]
    fn malformed_operations() {
        for body in [
            "",
            "{}",
            "[1]",
            r#"[{"operationType":"Move","id":"a"}]"#,
            r#"[{"operationType":"Delete"}]"#,
            r#"[{"operationType":"Delete","id":"a/b"}]"#,
            r#"[{"operationType":"Create"}]"#,
            r#"[{"operationType":"Create","resourceBody":[]}]"#,
            r#"[{"operationType":"Patch","id":"a","resourceBody":{}}]"#,
            r#"[{"operationType":"Create","resourceBody":{},"indexingDirective":"Maybe"}]"#,
        ] {
            assert!(fails(body), "{body}");
        }
        assert!(parse(b"\x81\xF0").is_err());
    }

    #[test]
    fn trap_25_one_result_per_operation_also_on_failure() {
        let outcomes = [
            None,
            Some(Err(engine::Error::Conflict)),
            Some(Err(engine::Error::Throttled { retry_after: Duration::from_millis(7) })),
        ];
        let body = results(&outcomes, &[false; 3], &[false; 3]);
        let results: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(results.as_array().unwrap().len(), 3);
        assert_eq!(results[0]["statusCode"], 424);
        assert_eq!(results[1]["statusCode"], 409);
        assert_eq!(results[2]["statusCode"], 429);
        assert_eq!(results[2]["retryAfterMilliseconds"], 7);
    }
}
