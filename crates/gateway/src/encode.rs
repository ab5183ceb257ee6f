//! From answers to responses: status, headers and the bytes of a body.
//!
//! An item's text goes out as the bytes it is stored in. Lists are joined once, into a buffer of
//! the right size.

pub mod measures;

use bytes::{BufMut, Bytes, BytesMut};
use engine::ops::{FeedPage, ItemAnswer, ItemStatus, Resource, ScriptAnswer, TriggeredAnswer};
use engine::{Container, Receipt, Work};
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use model::{Lsn, RequestCharge, Rid};

use crate::error::{Error, Failure};
use crate::headers;
use crate::labels::{self, Labels, Position};
use crate::percent::{Component, HeaderSafe};
use crate::status::status_of;

/// How long a client waits before it repeats a write that lost to another one.
const RETRY_WITH_MS: u64 = 10;
/// Longest receipt that lists every operation by itself: clients limit all headers to 16 KB.
const RECEIPT_BYTES_MAX: usize = 8 << 10;

/// A response in the making.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The price.
    pub charge: RequestCharge,
    receipt: Option<Box<Receipt>>,
    headers: HeaderMap,
    body: Bytes,
}

impl Reply {
    /// A response without a body.
    pub fn empty(status: StatusCode, charge: RequestCharge) -> Reply {
        let headers = HeaderMap::with_capacity(24);
        Reply { status, charge, receipt: None, headers, body: Bytes::new() }
    }

    /// A response with a JSON body.
    pub fn json(status: StatusCode, charge: RequestCharge, body: impl Into<Bytes>) -> Reply {
        Reply::empty(status, charge).with_body(body.into())
    }

    fn with_body(mut self, body: Bytes) -> Reply {
        self.headers.insert(CONTENT_TYPE, headers::JSON.clone());
        self.body = body;
        self
    }

    /// The response with what its price is made of, if that was asked for.
    pub fn with_receipt(self, receipt: Option<Box<Receipt>>) -> Reply {
        debug_assert!(receipt.as_ref().is_none_or(|receipt| receipt.total() == self.charge));
        Reply { receipt, ..self }
    }

    /// The response with its receipt in a header. What is not made of parts has one line.
    pub fn itemised(mut self) -> Reply {
        let receipt = self.receipt.take().unwrap_or_else(|| {
            let is_refused = self.status.is_client_error() || self.status.is_server_error();
            let what = if is_refused { Work::Refused } else { Work::Metadata };
            Box::new(Receipt::of(what, self.charge))
        });
        let json = Some(receipt.to_json()).filter(|json| json.len() <= RECEIPT_BYTES_MAX);
        let json = json.unwrap_or_else(|| receipt.condensed().to_json());
        self.with(&headers::RECEIPT, headers::value(json))
    }

    /// The response with one more header.
    pub fn with(mut self, name: &'static HeaderName, value: HeaderValue) -> Reply {
        self.set(name, value);
        self
    }

    fn set(&mut self, name: &'static HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
    }

    /// The response with an etag.
    pub fn with_etag(mut self, etag: &str) -> Reply {
        self.headers.insert(ETAG, headers::etag(etag));
        self
    }

    /// The response with a continuation, if there is one; never an empty one.
    pub fn with_continuation(self, continuation: Option<&str>) -> Reply {
        match continuation.filter(|text| !text.is_empty()) {
            Some(text) => self.with(&headers::CONTINUATION, headers::value(text)),
            None => self,
        }
    }

    /// The response with what a script logged, escaped as `encodeURIComponent` does.
    fn with_log(self, log: &str) -> Reply {
        match log.is_empty() {
            true => self,
            false => self.with(&headers::SCRIPT_LOG, headers::value(Component(log))),
        }
    }

    /// The response to something inside a container: clients key their sessions on its paths.
    pub fn in_container(mut self, container: &Container) -> Reply {
        let labels = Labels::of(container);
        self.set(&headers::ALT_CONTENT_PATH, labels.path);
        self.set(&headers::CONTENT_PATH, labels.rid);
        self
    }

    /// The response to something inside a database.
    pub fn in_database(self, name: &str, rid: Rid) -> Reply {
        let path = headers::value(format_args!("dbs/{}", HeaderSafe(name)));
        self.with(&headers::ALT_CONTENT_PATH, path)
            .with(&headers::CONTENT_PATH, headers::value(rid))
    }

    /// The response of one physical partition at a position.
    pub fn at(mut self, partition: u32, lsn: u64) -> Reply {
        let position = Position::of(partition, lsn);
        self.set(&headers::SESSION_TOKEN, position.token);
        self.set(&headers::RANGE_ID, position.partition);
        self.set(&headers::GLOBAL_COMMITTED_LSN, position.lsn.clone());
        self.set(&headers::LLSN, position.lsn.clone());
        self.set(&headers::LSN, position.lsn);
        self
    }

    /// The response with the token of a page that is of several partitions; that of one is there.
    fn with_session(self, page: &FeedPage) -> Reply {
        match page.session.is_of(page.partition, Lsn(page.lsn)) {
            true => self,
            false => self.with(&headers::SESSION_TOKEN, headers::value(&page.session)),
        }
    }

    /// The response to a client that merges an order, with how rows come that are equal to it.
    fn with_direction(self, is_reversed: Option<bool>) -> Reply {
        let Some(is_reversed) = is_reversed else { return self };
        let info =
            format_args!(r#"{{"reverseRidEnabled":false,"reverseIndexScan":{is_reversed}}}"#);
        self.with(&headers::QUERY_EXECUTION_INFO, headers::value(info))
    }

    /// The response itself (G2).
    pub fn finish(mut self, activity: HeaderValue) -> Response<Full<Bytes>> {
        let headers = &mut self.headers;
        headers.insert(&headers::REQUEST_CHARGE, labels::charge(self.charge));
        headers.insert(&headers::ACTIVITY_ID, activity);
        headers.insert(&headers::VERSION, headers::VERSION_VALUE.clone());
        headers.insert(&headers::GATEWAY_VERSION, headers::GATEWAY_VERSION_VALUE.clone());
        headers.insert(&headers::SERVICE_VERSION, headers::SERVICE_VERSION_VALUE.clone());
        headers.insert(&headers::SCHEMA_VERSION, headers::SCHEMA_VERSION_VALUE.clone());
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// The status of a successful item operation.
pub fn status_of_item(status: ItemStatus) -> StatusCode {
    match status {
        ItemStatus::Created => StatusCode::CREATED,
        ItemStatus::Ok => StatusCode::OK,
        ItemStatus::Deleted => StatusCode::NO_CONTENT,
        ItemStatus::NotModified => StatusCode::NOT_MODIFIED,
    }
}

/// The response to an item operation. `is_minimal` leaves out the body the client knows already.
pub fn item(container: &Container, answer: &ItemAnswer, is_minimal: bool) -> Reply {
    let status = status_of_item(answer.status);
    let reply = Reply::empty(status, answer.charge)
        .with_receipt(answer.receipt.clone())
        .in_container(container)
        .at(answer.partition, answer.lsn);
    let Some(item) = &answer.item else { return reply };
    let reply = reply.with_etag(item.etag());
    let has_body = matches!(answer.status, ItemStatus::Created | ItemStatus::Ok);
    if has_body && !is_minimal { reply.with_body(item.text()) } else { reply }
}

/// The response to a write with triggers: a trigger may have put something else into the body.
pub fn triggered_item(
    container: &Container,
    triggered: TriggeredAnswer,
    is_minimal: bool,
) -> Reply {
    let reply = item(container, &triggered.answer, is_minimal);
    let has_body = !is_minimal && reply.status != StatusCode::NO_CONTENT;
    match triggered.body.filter(|_| has_body) {
        Some(body) => reply.with_body(body),
        None => reply,
    }
}

/// The response of a stored procedure.
pub fn script(container: &Container, answer: ScriptAnswer) -> Reply {
    let reply = Reply::empty(StatusCode::OK, answer.charge)
        .with_receipt(answer.receipt)
        .in_container(container)
        .at(answer.partition, answer.lsn)
        .with_log(answer.log.as_deref().unwrap_or_default());
    match answer.body {
        Some(body) => reply.with_body(body),
        None => reply,
    }
}

/// The body of a feed: `{"_rid":…,"{array}":[…],"_count":…}`.
pub fn feed_body<'r>(
    owner: impl std::fmt::Display,
    array: &str,
    rows: impl ExactSizeIterator<Item = &'r [u8]> + Clone,
) -> Bytes {
    let bytes: usize = rows.clone().map(|row| row.len() + 1).sum();
    let mut body = BytesMut::with_capacity(bytes + array.len() + 64);
    let count = rows.len();
    body.put_slice(format!("{{\"_rid\":\"{owner}\",\"{array}\":[").as_bytes());
    for (at, row) in rows.enumerate() {
        if at > 0 {
            body.put_u8(b',');
        }
        body.put_slice(row);
    }
    body.put_slice(format!("],\"_count\":{count}}}").as_bytes());
    body.freeze()
}

/// The response with a page of items or query rows.
pub fn items(container: &Container, page: &FeedPage) -> Reply {
    let rows = page.rows.iter().map(|row| &row[..]);
    let body = feed_body(container.rid(), "Documents", rows);
    Reply::json(StatusCode::OK, page.charge, body)
        .with_receipt(page.receipt.clone())
        .in_container(container)
        .at(page.partition, page.lsn)
        .with_session(page)
        .with_direction(page.is_reversed)
        .with(&headers::ITEM_COUNT, HeaderValue::from(page.rows.len()))
        .with_continuation(page.continuation.as_deref())
}

/// The response with a page of resources as JSON texts.
pub fn resources(
    owner: impl std::fmt::Display,
    array: &str,
    rows: &[Bytes],
    continuation: Option<&str>,
) -> Reply {
    let body = feed_body(owner, array, rows.iter().map(|row| &row[..]));
    Reply::json(StatusCode::OK, engine::charge::METADATA, body)
        .with(&headers::ITEM_COUNT, HeaderValue::from(rows.len()))
        .with_continuation(continuation)
}

/// The response with one resource.
pub fn resource(status: StatusCode, resource: &Resource) -> Reply {
    Reply::json(status, engine::charge::METADATA, resource.body.to_string())
        .with_etag(&resource.etag)
}

/// The response to what did not happen. The one place where faults are logged.
pub fn failure(failure: &Failure, activity: &HeaderValue) -> Reply {
    let activity = activity.to_str().unwrap_or_default();
    let status = status_of(&failure.error);
    let reply = Reply::json(
        status.http(),
        charge_of(&failure.error),
        error_body(status.word(), &message(&failure.error, activity), activity),
    );
    let reply = match &failure.error {
        Error::Engine(engine::Error::Script(error)) => reply.with_receipt(error.receipt.clone()),
        Error::Engine(engine::Error::AfterTriggers(refused)) => {
            reply.with_receipt(refused.receipt.clone())
        }
        Error::Engine(_) | Error::Unauthorized(_) | Error::MethodNotAllowed => reply,
    };
    let reply = match status.sub {
        0 => reply,
        sub => reply.with(&headers::SUBSTATUS, HeaderValue::from(sub)),
    };
    let reply = match &failure.error {
        Error::Engine(engine::Error::Script(error)) => reply.with_log(&error.log),
        Error::Engine(error) => with_retry_after(reply, error),
        Error::Unauthorized(_) | Error::MethodNotAllowed => reply,
    };
    match &failure.place {
        None => reply,
        Some(place) => reply
            .in_container(&place.container)
            .at(place.partition, place.container.session(place.partition)),
    }
}

fn with_retry_after(reply: Reply, error: &engine::Error) -> Reply {
    match retry_after_ms(error) {
        None => reply,
        Some(ms) => reply.with(&headers::RETRY_AFTER_MS, HeaderValue::from(ms)),
    }
}

/// What the client is told about an error.
fn message(error: &Error, activity: &str) -> String {
    match error {
        Error::Engine(error) => sentence(error, activity),
        Error::Unauthorized(_) | Error::MethodNotAllowed => error.to_string(),
    }
}

/// What the client is told about an error of the engine. What broke inside is for the log.
pub fn sentence(error: &engine::Error, activity: &str) -> String {
    if let engine::Error::AfterTriggers(refused) = error {
        return sentence(&refused.error, activity);
    }
    if let engine::Error::Fault(detail) = error {
        tracing::error!(activity, detail, "a request failed");
        return "The request failed inside the server; its log says why.".to_owned();
    }
    if let engine::Error::InvalidQuery(document) = error {
        return format!("Message: {document}");
    }
    if let engine::Error::Script(error) = error {
        let text = serde_json::Value::from(error.message.as_str());
        return format!("Message: {{\"Errors\":[{text}]}}");
    }
    error.to_string()
}

fn error_body(code: &str, message: &str, activity: &str) -> String {
    let message = serde_json::Value::String(format!("{message}\r\nActivityId: {activity}"));
    format!("{{\"code\":\"{code}\",\"message\":{message}}}")
}

fn charge_of(error: &Error) -> RequestCharge {
    match error {
        Error::Engine(error) => engine::charge::of_failure(error),
        Error::Unauthorized(_) | Error::MethodNotAllowed => RequestCharge::ONE,
    }
}

/// When to come back, for the two errors that invite it.
pub fn retry_after_ms(error: &engine::Error) -> Option<u64> {
    if let engine::Error::AfterTriggers(refused) = error {
        return retry_after_ms(&refused.error);
    }
    if let engine::Error::Throttled { retry_after } = error {
        return Some((retry_after.as_micros() as u64).div_ceil(1000));
    }
    matches!(error, engine::Error::RetryWith).then_some(RETRY_WITH_MS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fail(error: impl Into<Error>) -> Reply {
        failure(&Failure::from(error.into()), &HeaderValue::from_static("a-1"))
    }

    #[test]
    fn trap_07_every_error_has_a_json_body() {
        let error = engine::Error::Invalid("say \"what\"".to_owned());
        for reply in [fail(error), fail(Error::MethodNotAllowed), fail(engine::Error::NotFound)] {
            let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
            assert!(!body["code"].as_str().unwrap().is_empty());
            assert!(body["message"].as_str().unwrap().ends_with("\r\nActivityId: a-1"));
        }
    }

    #[test]
    fn errors_that_invite_a_retry() {
        let throttled = engine::Error::Throttled { retry_after: Duration::from_micros(1500) };
        let reply = fail(throttled);
        assert_eq!(reply.headers[&headers::RETRY_AFTER_MS], "2");
        assert_eq!(reply.headers[&headers::SUBSTATUS], "3200");
        assert!(fail(engine::Error::RetryWith).headers.contains_key(&headers::RETRY_AFTER_MS));
        let reply = fail(engine::Error::NotFound);
        assert!(!reply.headers.contains_key(&headers::RETRY_AFTER_MS));
        assert!(!reply.headers.contains_key(&headers::SUBSTATUS));
    }

    #[test]
    fn an_exception_of_a_script() {
        let error = |number, log: &str| {
            engine::Error::Script(Box::new(engine::ScriptError {
                number,
                message: "Exception = Error: \"no\"\r\nStack trace: at f".to_owned(),
                log: log.to_owned(),
                charge: RequestCharge::ONE,
                receipt: None,
            }))
        };
        let reply = fail(error(409, "50%\n"));
        assert_eq!(reply.status, StatusCode::BAD_REQUEST);
        assert_eq!(reply.headers[&headers::SUBSTATUS], "409");
        assert_eq!(reply.headers[&headers::SCRIPT_LOG], "50%25%0A");
        let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(body["code"], "BadRequest");
        let message = body["message"].as_str().unwrap();
        let document = message.strip_prefix("Message: ").unwrap();
        let document = document.strip_suffix("\r\nActivityId: a-1").unwrap();
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        let text = document["Errors"][0].as_str().unwrap();
        assert_eq!(text, "Exception = Error: \"no\"\r\nStack trace: at f");
        let plain = fail(error(0, ""));
        assert!(!plain.headers.contains_key(&headers::SUBSTATUS));
        assert!(!plain.headers.contains_key(&headers::SCRIPT_LOG));
    }

    #[test]
    fn faults_are_not_shown() {
        let reply = fail(engine::Error::Fault("sector 7".to_owned()));
        assert_eq!(reply.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!std::str::from_utf8(&reply.body).unwrap().contains("sector"));
    }

    #[test]
    fn feeds_are_whole_even_when_empty() {
        let rows: [&[u8]; 2] = [b"1", b"{}"];
        let body = feed_body("r", "Documents", rows.into_iter());
        assert_eq!(body, r#"{"_rid":"r","Documents":[1,{}],"_count":2}"#);
        let body = feed_body("", "Offers", [].into_iter());
        assert_eq!(body, r#"{"_rid":"","Offers":[],"_count":0}"#);
    }

    #[test]
    fn continuations_are_never_empty() {
        let reply = resources("", "Databases", &[], Some(""));
        assert!(!reply.headers.contains_key(&headers::CONTINUATION));
    }
}
