//! The command `query`: rows on standard output, what they cost on standard error.
//!
//! The query runs on an open database in this process, or with `--endpoint` on a server, page by
//! page either way. A plan is only to be had in this process: the protocol has no word for it.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use base::{Deadline, MeterReading};
use bytes::Bytes;
use client::{Client, headers};
use engine::ops::{PageRequest, QueryText, Scope};
use engine::{Container, Engine, Error};
use model::RequestCharge;
use model::partition_key::PartitionKey;
use serde_json::Value;

use crate::cli::{Param, QueryFlags};
use crate::config::{Usage, key_lines};
use crate::database::{Database, is_in_use};
use crate::{mistake, receipt};

/// `cosmolabe query`.
pub fn query(flags: &QueryFlags) -> Result<()> {
    let key = flags.partition_key.as_deref().map(partition_key).transpose()?;
    match &flags.endpoint {
        Some(endpoint) => ask_server(flags, endpoint, key.as_ref()),
        None => ask_directory(flags, key),
    }
}

/// A partition key given as JSON: an array of its levels, or the only one.
fn partition_key(json: &str) -> Result<PartitionKey> {
    let array = match json.trim_start().starts_with('[') {
        true => json.to_owned(),
        false => format!("[{json}]"),
    };
    let refuse = |why: &str| {
        Usage(format!("--partition-key {json}: {why}; a string is written \"like this\"")).into()
    };
    match PartitionKey::parse(&array) {
        Ok(key) if key.0.is_empty() => Err(refuse("it is empty")),
        Ok(key) => Ok(key),
        Err(error) => Err(refuse(&error.to_string())),
    }
}

/// One page of rows.
struct Page {
    rows: Vec<Bytes>,
    continuation: Option<String>,
    charge: RequestCharge,
    meter: MeterReading,
    /// As JSON, if it was asked for.
    receipt: Option<Value>,
}

/// What all pages came to.
#[derive(Default)]
struct Total {
    rows: u64,
    charge: RequestCharge,
    meter: MeterReading,
    receipts: Vec<Value>,
}

impl Total {
    fn add(&mut self, page: &Page) {
        self.rows += page.rows.len() as u64;
        self.charge += page.charge;
        self.meter += page.meter;
        self.receipts.extend(page.receipt.clone());
    }

    /// `2 rows, 3.1 RU, 2 items loaded`
    fn summary(&self) -> String {
        let rows = counted(self.rows, "row");
        let loaded = counted(self.meter.items_read + self.meter.items_scanned, "item");
        format!("{rows}, {} RU, {loaded} loaded", self.charge)
    }

    /// The summary with what only a database in this process tells.
    fn full_summary(&self) -> String {
        let terms = counted(self.meter.terms_read, "term");
        let partitions = counted(self.meter.partitions_visited, "partition");
        format!("{}, {terms} visited, {partitions}", self.summary())
    }

    fn meter_line(&self) -> String {
        let meter = &self.meter;
        format!(
            "meter: terms_read={} items_read={} items_scanned={} bytes_read={} bytes_scanned={} \
             items_returned={} partitions_visited={}",
            meter.terms_read,
            meter.items_read,
            meter.items_scanned,
            meter.bytes_read,
            meter.bytes_scanned,
            meter.items_returned,
            meter.partitions_visited
        )
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Prints page after page, each a line per row. Ends early if nobody reads them any more.
fn print_pages(mut next: impl FnMut(Option<String>) -> Result<Page>) -> Result<Total> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut total = Total::default();
    let mut continuation = None;
    loop {
        let mut page = next(continuation)?;
        total.add(&page);
        match print_rows(&mut out, &page.rows) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(total),
            printed => printed.context("the rows cannot be written")?,
        }
        continuation = page.continuation.take();
        if continuation.is_none() {
            return Ok(total);
        }
    }
}

fn print_rows(out: &mut impl Write, rows: &[Bytes]) -> std::io::Result<()> {
    for row in rows {
        out.write_all(row)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn ask_directory(flags: &QueryFlags, key: Option<PartitionKey>) -> Result<()> {
    let directory = flags.data.directory();
    if is_in_use(&directory) {
        bail!(
            "{} is in use by another process. If it is a server, ask it with --endpoint URL.",
            directory.display()
        );
    }
    let database = Database::existing(&directory)?;
    let asked = run_here(&database.engine, flags, key);
    let closed = database.close();
    asked?;
    closed
}

fn run_here(engine: &Engine, flags: &QueryFlags, key: Option<PartitionKey>) -> Result<()> {
    let container = engine.container(&flags.target.database, &flags.target.container);
    let container = container.with_context(|| flags.target.to_string())?;
    let scope = key.map_or(Scope::Container, Scope::PartitionKey);
    let query = QueryText {
        text: flags.text.clone(),
        parameters: flags.param.iter().map(parameter).collect::<Result<_>>()?,
    };
    if flags.explain {
        explain(engine, &container, &scope, &query)?;
    }
    let total = print_pages(|continuation| {
        let ctx = engine.ctx(Deadline::never()).with_receipt(flags.receipt);
        let request = PageRequest { continuation, is_scan_enabled: true, ..PageRequest::default() };
        let page = engine.query_items(&ctx, &container, &scope, &query, &request);
        let page = page.map_err(|error| described(&query.text, error))?;
        let (rows, continuation) = (page.rows, page.continuation);
        let receipt = page.receipt.map(|receipt| serde_json::from_str(&receipt.to_json()));
        let receipt = receipt.transpose()?;
        Ok(Page { rows, continuation, charge: page.charge, meter: page.meter, receipt })
    })?;
    if flags.explain {
        eprintln!("{}", total.meter_line());
    }
    print_receipt(&total);
    eprintln!("{}", total.full_summary());
    Ok(())
}

fn print_receipt(total: &Total) {
    if !total.receipts.is_empty() {
        eprint!("{}", receipt::table(&total.receipts));
    }
}

fn parameter(param: &Param) -> Result<(String, item::Value)> {
    let value = item::Value::parse(param.value.to_string().as_bytes());
    Ok((param.name.clone(), value.with_context(|| format!("--param {}", param.name))?))
}

fn explain(engine: &Engine, container: &Container, scope: &Scope, query: &QueryText) -> Result<()> {
    let ctx = engine.ctx(Deadline::never());
    let explanation = engine.explain(&ctx, container, scope, query);
    let explanation = explanation.map_err(|error| described(&query.text, error))?;
    eprintln!("{}", explanation.plan.trim_end());
    Ok(())
}

fn described(query: &str, error: Error) -> anyhow::Error {
    if let Error::InvalidQuery(document) = &error {
        return anyhow::Error::msg(mistake::describe(query, document));
    }
    error.into()
}

fn ask_server(flags: &QueryFlags, endpoint: &str, key: Option<&PartitionKey>) -> Result<()> {
    if flags.explain {
        let sentence = "--explain works on a data directory; a server does not tell its plan. \
                        Leave --endpoint out, with the server stopped or on a backup of its data.";
        return Err(Usage(sentence.into()).into());
    }
    let account_key = match &flags.key_file {
        Some(path) => read_key(path)?,
        None => client::Key::development(),
    };
    let client = Client::new(endpoint, account_key);
    let client = client.map_err(|error| Usage(format!("--endpoint: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let total = print_pages(|continuation| {
        runtime.block_on(fetch(&client, flags, key, continuation.as_deref()))
    })?;
    print_receipt(&total);
    eprintln!("{}", total.summary());
    Ok(())
}

/// The first key of a key file.
pub fn read_key(path: &Path) -> Result<client::Key> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("--key-file {} cannot be read", path.display()))?;
    let line = key_lines(&text).next().unwrap_or_default();
    client::Key::parse(line)
        .map_err(|error| Usage(format!("--key-file {}: {error}", path.display())).into())
}

async fn fetch(
    client: &Client,
    flags: &QueryFlags,
    key: Option<&PartitionKey>,
    continuation: Option<&str>,
) -> Result<Page> {
    let parameters: Vec<_> =
        flags.param.iter().map(|param| (param.name.as_str(), param.value.clone())).collect();
    let container = client::Container::new(&flags.target.database, &flags.target.container);
    let mut request = container
        .query(&flags.text, &parameters, -1)
        .with(headers::POPULATE_QUERY_METRICS, "true")
        .with(headers::ENABLE_SCAN, "true")
        // Also for its charge, which the other header rounds.
        .with(headers::RECEIPT, "true");
    if let Some(continuation) = continuation {
        request = request.with(headers::CONTINUATION, continuation);
    }
    if let Some(key) = key {
        request = request.with_key(key);
    }
    let reply = client.send(&request).await.map_err(|error| refusal(&flags.text, error))?;
    let rows = reply.rows()?.iter().map(|row| row.to_string().into()).collect();
    let loaded = reply.query_metric("retrievedDocumentCount").unwrap_or_default();
    let meter = MeterReading { items_read: loaded as u64, ..MeterReading::default() };
    let receipt = reply.header(headers::RECEIPT).map(serde_json::from_str::<Value>);
    let receipt = receipt.transpose().context("the receipt cannot be read")?;
    let units = receipt.as_ref().and_then(|receipt| receipt["units"].as_u64());
    let charge = units.map_or_else(|| charge_of(reply.charge()), RequestCharge::from_raw);
    let receipt = receipt.filter(|_| flags.receipt);
    let continuation = reply.continuation().map(str::to_owned);
    Ok(Page { rows, continuation, charge, meter, receipt })
}

fn charge_of(units: f64) -> RequestCharge {
    RequestCharge::from_raw((units * RequestCharge::ONE.raw() as f64).round() as u64)
}

/// What a server says about a wrong query is a document, above the line with the activity.
fn refusal(query: &str, error: client::Error) -> anyhow::Error {
    if let client::Error::Refused(reply) = &error
        && reply.status == 400
        && let Some(message) = reply.json().ok().as_ref().and_then(|body| body["message"].as_str())
    {
        let document = message.lines().next().unwrap_or_default();
        return anyhow::Error::msg(mistake::describe(query, document));
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_keys() {
        let parse = |json: &str| partition_key(json).ok().map(|key| key.to_array());
        assert_eq!(parse("\"a\"").as_deref(), Some("[\"a\"]"));
        assert_eq!(parse("5").as_deref(), Some("[5]"));
        assert_eq!(parse(" [\"a\", null]").as_deref(), Some("[\"a\",null]"));
        for text in ["a", "", "{\"a\":1}", "[[1]]"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn summaries() {
        let meter = MeterReading { items_read: 2, partitions_visited: 3, ..Default::default() };
        let page = Page {
            rows: vec![Bytes::new()],
            continuation: None,
            charge: RequestCharge::ONE,
            meter,
            receipt: None,
        };
        let mut total = Total::default();
        total.add(&page);
        assert_eq!(total.summary(), "1 row, 1 RU, 2 items loaded");
        total.add(&page);
        let full = "2 rows, 2 RU, 4 items loaded, 0 terms visited, 6 partitions";
        assert_eq!(total.full_summary(), full);
    }
}
