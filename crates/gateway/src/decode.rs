//! From headers and bodies to what the engine takes. Nothing is guessed: what a client sends and
//! we do not understand is refused with a sentence that says what was expected.

use std::marker::PhantomData;
use std::sync::Arc;

use engine::ops::{
    ChangeFeedMode, ChangeFeedRequest, ChangeFeedStart, EtagCondition, PageRequest, QueryText,
    Scope, Throughput, Triggers,
};
use engine::{Container, Error, OfferMigration};
use hyper::HeaderMap;
use hyper::header::{HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use item::{Draft, IngestError, Value};
use model::SessionToken;
use model::epk::{EffectivePartitionKey, EpkRange};
use model::partition_key::PartitionKey;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Result, invalid, not_supported};
use crate::headers::{self, text};

/// The first byte of binary JSON, and that of a HybridRow batch.
const BINARY_JSON: u8 = 0x80;
const HYBRID_ROW: u8 = 0x81;

/// The partition key header, not yet completed.
pub fn partition_key(headers: &HeaderMap) -> Result<Option<PartitionKey>> {
    let Some(value) = headers.get(&headers::PARTITION_KEY) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| invalid("The partition key header is not UTF-8."))?;
    parse_key(text).map(Some)
}

/// A partition key from its JSON array.
pub fn parse_key(text: &str) -> Result<PartitionKey> {
    PartitionKey::parse(text)
        .map_err(|error| invalid(format!("The partition key '{text}' is invalid: {error}.")))
}

/// The partition key of a point operation: every level of it.
pub fn point_key(headers: &HeaderMap, container: &Container) -> Result<PartitionKey> {
    match partition_key(headers)? {
        Some(sent) => complete_key(container, sent),
        None if container.definition().partition_key.system_key => {
            complete_key(container, PartitionKey::default())
        }
        None => Err(Error::PartitionKeyMissing.into()),
    }
}

/// A key with every level, as the container defines them.
pub fn complete_key(container: &Container, key: PartitionKey) -> Result<PartitionKey> {
    let key = container.definition().partition_key.complete(key);
    key.map_err(|error| invalid(format!("The partition key is invalid: {error}.")))
}

/// The part of a container a feed or query is limited to.
pub fn scope(headers: &HeaderMap) -> Result<Scope> {
    let partition = text(headers, &headers::RANGE_ID).map(str::to_owned);
    let epk = epk_range(headers)?;
    Ok(match (partition_key(headers)?, partition, epk) {
        (Some(key), Some(partition), _) => Scope::KeyInRange { key, partition },
        (Some(key), None, _) => Scope::PartitionKey(key),
        (None, None, None) => Scope::Container,
        (None, partition, epk) => Scope::Range { partition, epk },
    })
}

fn epk_range(headers: &HeaderMap) -> Result<Option<EpkRange>> {
    let (start, end) = (text(headers, &headers::START_EPK), text(headers, &headers::END_EPK));
    if start.is_none() && end.is_none() {
        return Ok(None);
    }
    match text(headers, &headers::READ_KEY_TYPE) {
        None => {}
        Some(kind) if kind.eq_ignore_ascii_case("EffectivePartitionKeyRange") => {}
        Some(kind) => {
            return Err(not_supported(format!(
                "The read key type '{kind}' is not supported; EffectivePartitionKeyRange is."
            )));
        }
    }
    let parse = |text: Option<&str>, or: fn() -> EffectivePartitionKey| match text {
        None => Ok(or()),
        Some(text) => EffectivePartitionKey::parse(text)
            .map_err(|error| invalid(format!("The bound '{text}' is invalid: {error}."))),
    };
    let min = parse(start, EffectivePartitionKey::min)?;
    let max = parse(end, EffectivePartitionKey::max)?;
    match min <= max {
        true => Ok(Some(EpkRange { min, max })),
        false => Err(invalid("x-ms-start-epk lies behind x-ms-end-epk.")),
    }
}

/// What the client has seen.
pub fn session(headers: &HeaderMap) -> Result<Option<SessionToken>> {
    match headers.get(&headers::SESSION_TOKEN) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) => SessionToken::parse(&String::from_utf8_lossy(value.as_bytes()))
            .map(Some)
            .map_err(|error| invalid(error.to_string())),
    }
}

/// Refuses a consistency level above the account's, which is Session, and unknown ones.
pub fn check_consistency(headers: &HeaderMap) -> Result<()> {
    let Some(level) = headers.get(&headers::CONSISTENCY_LEVEL) else { return Ok(()) };
    let is = |name: &str| level.as_bytes().eq_ignore_ascii_case(name.as_bytes());
    if level.is_empty() || ["Session", "ConsistentPrefix", "Eventual"].into_iter().any(is) {
        return Ok(());
    }
    let level = String::from_utf8_lossy(level.as_bytes());
    match ["Strong", "BoundedStaleness"].into_iter().any(is) {
        true => Err(invalid(format!(
            "ConsistencyLevel {level} specified in the request is invalid when service is \
             configured with consistency level Session. Ensure the request consistency level is \
             not stronger than the service consistency level."
        ))),
        false => Err(invalid(format!("The consistency level '{level}' does not exist."))),
    }
}

/// The etag a write must find.
pub fn if_match(headers: &HeaderMap) -> Result<EtagCondition> {
    condition(headers, &IF_MATCH)
}

/// The etag the client has already.
pub fn if_none_match(headers: &HeaderMap) -> Result<EtagCondition> {
    condition(headers, &IF_NONE_MATCH)
}

fn condition(headers: &HeaderMap, name: &HeaderName) -> Result<EtagCondition> {
    match headers.get(name) {
        None => Ok(EtagCondition::None),
        Some(value) => match value.to_str() {
            Ok(text) => Ok(EtagCondition::parse(text)),
            Err(_) => Err(invalid(format!("The header {name} is not ASCII."))),
        },
    }
}

/// The page size a client wants; -1 leaves it to us, and so does 0, which Java sends with TOP 0.
pub fn items_max(headers: &HeaderMap) -> Result<Option<usize>> {
    let Some(text) = text(headers, &headers::MAX_ITEM_COUNT) else { return Ok(None) };
    match text.trim().parse::<i64>() {
        Ok(-1 | 0) => Ok(None),
        Ok(count) if count > 0 => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
        _ => Err(invalid(format!("x-ms-max-item-count is -1, 0 or a page size, not '{text}'."))),
    }
}

/// Where the previous page ended.
pub fn continuation(headers: &HeaderMap) -> Option<&str> {
    text(headers, &headers::CONTINUATION).filter(|text| !text.is_empty())
}

/// How much of a feed or query to return.
pub fn page(headers: &HeaderMap) -> Result<PageRequest> {
    check_consistency(headers)?;
    Ok(PageRequest {
        items_max: items_max(headers)?,
        continuation: continuation(headers).map(str::to_owned),
        session: session(headers)?,
        is_scan_enabled: headers::is_true(headers, &headers::ENABLE_SCAN),
        wants_index_use: headers::is_true(headers, &headers::POPULATE_INDEX_METRICS)
            || headers::is_true(headers, &headers::POPULATE_INDEX_METRICS_V2),
        wants_times: headers::is_true(headers, &headers::POPULATE_QUERY_METRICS),
    })
}

/// Whether queries shall find the item that is written.
pub fn is_indexed(headers: &HeaderMap) -> Result<bool> {
    match text(headers, &headers::INDEXING_DIRECTIVE) {
        None => Ok(true),
        Some(text) => indexing_directive(text),
    }
}

/// Reads an indexing directive, of a header or of a batch operation. The Python SDK numbers them:
/// default 0, exclude 1, include 2.
pub fn indexing_directive(text: &str) -> Result<bool> {
    match text {
        "0" | "2" => Ok(true),
        "1" => Ok(false),
        _ if text.eq_ignore_ascii_case("exclude") => Ok(false),
        _ if text.eq_ignore_ascii_case("include") => Ok(true),
        _ if text.eq_ignore_ascii_case("default") || text.is_empty() => Ok(true),
        _ => Err(invalid(format!(
            "The indexing directive is Include, Exclude or Default, not '{text}'."
        ))),
    }
}

/// Whether the client wants its own body back.
pub fn is_minimal(headers: &HeaderMap) -> bool {
    text(headers, &headers::PREFER).is_some_and(|prefer| {
        prefer.split(',').any(|part| part.trim().eq_ignore_ascii_case("return=minimal"))
    })
}

/// The throughput a new database or container shall have.
pub fn throughput(headers: &HeaderMap) -> Result<Option<Throughput>> {
    let manual = text(headers, &headers::OFFER_THROUGHPUT);
    let autoscale = text(headers, &headers::AUTOPILOT_SETTINGS);
    match (manual, autoscale) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(invalid(
            "Manual throughput and autoscale settings were both given; a resource has only one.",
        )),
        (Some(text), None) => {
            text.trim().parse().map(|ru| Some(Throughput::Manual(ru))).map_err(|_| {
                invalid(format!("x-ms-offer-throughput is a whole number, not '{text}'."))
            })
        }
        (None, Some(text)) => autoscale_max(text).map(|ru| Some(Throughput::Autoscale(ru))),
    }
}

fn autoscale_max(text: &str) -> Result<u32> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        max_throughput: u32,
    }
    let settings: Settings = serde_json::from_str(text).map_err(|_| {
        invalid(format!("Autoscale settings are {{\"maxThroughput\": n}}, not '{text}'."))
    })?;
    Ok(settings.max_throughput)
}

/// Whether an offer shall change between manual and autoscale.
pub fn migration(headers: &HeaderMap) -> Result<Option<OfferMigration>> {
    let to_autoscale = headers::is_true(headers, &headers::MIGRATE_TO_AUTOPILOT);
    let to_manual = headers::is_true(headers, &headers::MIGRATE_TO_MANUAL);
    match (to_autoscale, to_manual) {
        (true, true) => Err(invalid("An offer cannot migrate both ways at once.")),
        (true, false) => Ok(Some(OfferMigration::ToAutoscale)),
        (false, true) => Ok(Some(OfferMigration::ToManual)),
        (false, false) => Ok(None),
    }
}

/// The lifetime of a resource token in seconds.
pub fn token_seconds(headers: &HeaderMap) -> Result<u64> {
    let (least, usual, most) = model::limits::TOKEN_SECONDS;
    let Some(text) = text(headers, &headers::EXPIRY_SECONDS) else { return Ok(usual) };
    match text.trim().parse() {
        Ok(seconds) if (least..=most).contains(&seconds) => Ok(seconds),
        _ => Err(invalid(format!(
            "x-ms-documentdb-expiry-seconds is between {least} and {most}, not '{text}'."
        ))),
    }
}

/// Which changes a change feed shall show, and from where.
pub fn change_feed(headers: &HeaderMap) -> Result<ChangeFeedRequest> {
    check_consistency(headers)?;
    let mode = match text(headers, &headers::A_IM).unwrap_or_default() {
        kind if kind.eq_ignore_ascii_case("incremental feed") => ChangeFeedMode::LatestVersion,
        kind if kind.eq_ignore_ascii_case("full-fidelity feed") => {
            ChangeFeedMode::AllVersionsAndDeletes
        }
        kind => {
            return Err(invalid(format!(
                "A-IM is 'Incremental Feed' or 'Full-Fidelity Feed', not '{kind}'."
            )));
        }
    };
    let is_enveloped = mode == ChangeFeedMode::AllVersionsAndDeletes
        || headers.contains_key(&headers::WIRE_FORMAT_VERSION);
    Ok(ChangeFeedRequest {
        mode,
        start: change_feed_start(headers)?,
        is_enveloped,
        items_max: items_max(headers)?,
        session: session(headers)?,
    })
}

/// An etag wins over a time: clients keep sending the time they started from.
fn change_feed_start(headers: &HeaderMap) -> Result<ChangeFeedStart> {
    match if_none_match(headers)? {
        EtagCondition::Any => Ok(ChangeFeedStart::Now),
        EtagCondition::Is(etag) => Ok(ChangeFeedStart::Etag(etag)),
        EtagCondition::None => match text(headers, &IF_MODIFIED_SINCE) {
            None => Ok(ChangeFeedStart::Beginning),
            Some(text) => http_date(text).map(ChangeFeedStart::Time).ok_or_else(|| {
                invalid(format!("If-Modified-Since is an RFC 1123 date, not '{text}'."))
            }),
        },
    }
}

/// The Go SDK names the zone UTC.
fn http_date(text: &str) -> Option<u64> {
    let text = text.strip_suffix("UTC").map_or(text.to_owned(), |date| format!("{date}GMT"));
    let time = httpdate::parse_http_date(&text).ok()?;
    Some(time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// A JSON object that is not an item: a definition of some resource.
pub fn object(body: &[u8]) -> Result<serde_json::Value> {
    match serde_json::from_slice(body) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(value),
        Ok(_) => Err(invalid("The request body must be a JSON object.")),
        Err(error) => Err(malformed(error)),
    }
}

/// The body of an item: text or binary JSON, told apart by the first byte.
pub fn draft(body: &[u8]) -> Result<Draft> {
    let draft = match body.first() {
        Some(&BINARY_JSON) => Draft::parse_binary(body),
        _ => {
            refuse_hybrid_row(body)?;
            Draft::parse(body)
        }
    };
    draft.map_err(not_ingested)
}

/// The body of a patch.
pub fn patch(body: &[u8]) -> Result<item::patch::Patch> {
    let value = Value::parse(body).map_err(not_ingested)?;
    item::patch::parse(&value).map_err(|error| invalid(format!("The patch is invalid: {error}.")))
}

/// Batches of one SDK come in a binary row format that we do not read.
pub fn refuse_hybrid_row(body: &[u8]) -> Result<()> {
    match body.first() {
        Some(&HYBRID_ROW) => Err(not_supported(
            "The request body is in the HybridRow format, which is not supported. Send JSON; with \
             the .NET SDK, use single operations instead of batches and bulk mode.",
        )),
        _ => Ok(()),
    }
}

/// Why a body is no item.
pub fn not_ingested(error: IngestError) -> crate::error::Failure {
    match matches!(error, IngestError::TooLarge { .. }) {
        true => Error::TooLarge(format!("Request size is too large: {error}.")).into(),
        false => invalid(format!("The request content is invalid: {error}.")),
    }
}

/// The sentence about a body that is not JSON.
pub fn malformed(error: serde_json::Error) -> crate::error::Failure {
    invalid(format!("The request content is not the JSON that is expected here: {error}."))
}

/// The arguments of a stored procedure. Some clients send nothing for none.
pub fn arguments(body: &[u8]) -> Result<Vec<Value>> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    let Value::Array(arguments) = Value::parse(body).map_err(not_ingested)? else {
        return Err(invalid("The arguments of a stored procedure must be a JSON array."));
    };
    Ok(Arc::unwrap_or_clone(arguments))
}

/// The triggers a write names. Nothing runs that is not included, so the headers that exclude
/// triggers mean nothing.
pub fn triggers(headers: &HeaderMap) -> Result<Triggers> {
    Ok(Triggers {
        pre: trigger(headers, &headers::PRE_TRIGGER_INCLUDE)?,
        post: trigger(headers, &headers::POST_TRIGGER_INCLUDE)?,
    })
}

/// Whether a request names triggers.
pub fn names_triggers(headers: &HeaderMap) -> bool {
    let names = [&headers::PRE_TRIGGER_INCLUDE, &headers::POST_TRIGGER_INCLUDE];
    names.iter().any(|name| headers.get(*name).is_some_and(|value| !value.is_empty()))
}

/// The one trigger of a list separated by commas.
fn trigger(headers: &HeaderMap, header: &HeaderName) -> Result<Option<String>> {
    let Some(value) = headers.get(header) else { return Ok(None) };
    let list = std::str::from_utf8(value.as_bytes());
    let list = list.map_err(|_| invalid(format!("The header {header} is not UTF-8.")))?;
    let mut names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    match (names.next(), names.next()) {
        (name, None) => Ok(name.map(str::to_owned)),
        (_, Some(_)) => Err(invalid(format!(
            "A write runs at most one trigger before it and one after it; {header} names '{list}'."
        ))),
    }
}

/// A query with its parameters.
pub fn query(body: &[u8]) -> Result<QueryText> {
    let spec: QuerySpec<'_> = serde_json::from_slice(body).map_err(malformed)?;
    let parameters = spec.parameters.unwrap_or_default().into_iter().map(|parameter| {
        let value = Value::parse(parameter.value.get().as_bytes()).map_err(not_ingested)?;
        Ok((parameter.name, value))
    });
    let parameters = parameters.collect::<Result<_>>()?;
    Ok(QueryText { text: spec.query, parameters })
}

/// Of a name that comes twice the last counts: the Java SDK, where several of its threads send one
/// query, now and then writes `parameters` twice.
struct QuerySpec<'b> {
    query: String,
    parameters: Option<Vec<Parameter<'b>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum QueryField {
    Query,
    Parameters,
    #[serde(other)]
    Other,
}

impl<'de: 'b, 'b> Deserialize<'de> for QuerySpec<'b> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Fields<'b>(PhantomData<&'b ()>);

        impl<'de: 'b, 'b> Visitor<'de> for Fields<'b> {
            type Value = QuerySpec<'b>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object with a query")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<QuerySpec<'b>, A::Error> {
                let (mut query, mut parameters) = (None, None);
                while let Some(field) = map.next_key()? {
                    match field {
                        QueryField::Query => query = Some(map.next_value()?),
                        QueryField::Parameters => parameters = map.next_value()?,
                        QueryField::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                let query = query.ok_or_else(|| A::Error::missing_field("query"))?;
                Ok(QuerySpec { query, parameters })
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
}

#[derive(Deserialize)]
struct Parameter<'b> {
    name: String,
    #[serde(borrow)]
    value: &'b RawValue,
}

#[cfg(test)]
mod tests;
