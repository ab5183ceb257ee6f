//! One model in one database: where requests go, and what they cost.
//!
//! INVARIANTS
//! (T1) Charges are whole hundredths, as the server prints them, so that sums do not depend on the
//!      order of requests.
//! (T2) What the server refuses for now, for lack of throughput or because others were first, is
//!      repeated when it says so. Refusals are neither charges nor requests, and waiting for them is
//!      no time that an execution takes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use client::{Client, OperationResult, Reply, Request, headers};
use model::RequestCharge;
use model::partition_key::PartitionKey;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::receipt::{Receipt, exact, hundredths, printed};
use crate::workload::{Container, Model};

/// How long requests are repeated that are refused for now.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// When to come back if the server does not say.
const PAUSE: Duration = Duration::from_millis(5);

/// One model in one database.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub client: Client,
    /// The database that holds the model.
    pub database: String,
}

/// What requests came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// What they cost (T1).
    pub charge: RequestCharge,
    /// Requests.
    pub requests: u64,
    /// The most physical partitions one of them visited.
    pub partitions: usize,
    /// What the charge is made of, if that is wanted: then each request asks for its receipt.
    pub receipt: Option<Receipt>,
    /// What steps have written to.
    pub written: Written,
    /// From when until when a refused request waited to be repeated (T2).
    pub waits: Vec<(Instant, Instant)>,
}

/// Containers of a model, by position, and their physical partitions; none: any of them.
pub type Written = BTreeSet<(usize, Option<u32>)>;

impl Tally {
    /// An empty tally that wants receipts.
    pub fn itemised() -> Tally {
        Tally { receipt: Some(Receipt::default()), ..Tally::default() }
    }

    /// An empty tally that wants receipts if this one does.
    pub fn fresh(&self) -> Tally {
        Tally { receipt: self.receipt.as_ref().map(|_| Receipt::default()), ..Tally::default() }
    }

    /// The request as it is sent to be counted here.
    pub fn asks(&self, request: Request) -> Request {
        match self.receipt {
            Some(_) => request.with(headers::RECEIPT, "true"),
            None => request,
        }
    }

    /// Adds an answer.
    pub fn count(&mut self, reply: &Reply) {
        self.charge += printed(reply);
        self.requests += 1;
        self.partitions = self.partitions.max(reply.partitions());
        if let Some(receipt) = &mut self.receipt {
            receipt.count(reply);
        }
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.charge += other.charge;
        self.requests += other.requests;
        self.partitions = self.partitions.max(other.partitions);
        if let (Some(own), Some(other)) = (&mut self.receipt, &other.receipt) {
            own.add(other);
        }
        self.written.extend(&other.written);
        self.waits.extend(&other.waits);
    }

    /// The milliseconds since a moment without those of refusals (T2), which are forgotten.
    pub fn time_since(&mut self, begun: Instant) -> f64 {
        let time = begun.elapsed().saturating_sub(self.waited());
        self.waits.clear();
        time.as_secs_f64() * 1000.0
    }

    /// Takes off what refused operations of a bulk request were charged (T2).
    pub fn forget<'r>(&mut self, refused: impl Iterator<Item = &'r OperationResult>) {
        let charge: u64 = refused.map(|result| hundredths(result.charge).raw()).sum();
        self.charge = RequestCharge::from_raw(self.charge.raw().saturating_sub(charge));
    }

    /// How long anything was refused. Requests under way together may have waited together.
    pub fn waited(&self) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort();
        let mut sum = Duration::ZERO;
        let mut last: Option<Instant> = None;
        for (begin, end) in waits {
            let begin = last.map_or(begin, |last| begin.max(last));
            sum += end.saturating_duration_since(begin);
            last = last.max(Some(end));
        }
        sum
    }

    /// What the charge is made of; nothing if that was not wanted.
    pub fn itemisation(&self) -> Receipt {
        self.receipt.clone().unwrap_or_default().settled(self.charge)
    }

    /// The charge in RU.
    pub fn ru(&self) -> f64 {
        exact(self.charge)
    }
}

impl Target {
    /// A container of the database.
    pub fn container(&self, name: &str) -> client::Container {
        client::Container::new(&self.database, name)
    }

    /// Sends a request and counts its answer.
    pub async fn send(
        &self,
        what: &str,
        request: &Request,
        tally: &mut Tally,
    ) -> Result<Reply, Error> {
        let request = tally.asks(request.clone());
        match self.exchange(&request, tally).await {
            Ok(reply) => {
                tally.count(&reply);
                Ok(reply)
            }
            Err(source) => {
                Err(Error::Request { what: format!("{what} in {}", self.database), source })
            }
        }
    }

    /// Sends a request, and again while it is refused for now. Only the waiting is counted (T2).
    pub(crate) async fn exchange(
        &self,
        request: &Request,
        tally: &mut Tally,
    ) -> Result<Reply, client::Error> {
        let begun = Instant::now();
        loop {
            let sent = Instant::now();
            match self.client.send(request).await {
                Err(client::Error::Refused(reply))
                    if is_for_now(reply.status) && begun.elapsed() < PATIENCE =>
                {
                    pause(sent, reply.retry_after(), tally).await;
                }
                done => return done,
            }
        }
    }

    /// Sends a query, page after page, and collects its rows.
    pub async fn rows(
        &self,
        what: &str,
        query: &Request,
        tally: &mut Tally,
    ) -> Result<Vec<Value>, Error> {
        let mut rows = Vec::new();
        let mut continuation: Option<String> = None;
        loop {
            let reply = match &continuation {
                None => self.send(what, query, tally).await?,
                Some(text) => self.send(what, &query.clone().after(text), tally).await?,
            };
            let page = reply.rows();
            rows.extend(page.map_err(|source| Error::Request { what: what.to_owned(), source })?);
            continuation = reply.continuation().map(str::to_owned);
            if continuation.is_none() {
                return Ok(rows);
            }
        }
    }

    /// Creates the database with the containers and scripts of a model.
    pub async fn create(&self, model: &Model, replaces: bool) -> Result<(), Error> {
        let mut tally = Tally::default();
        let created = self.client.send(&Request::create_database(&self.database)).await;
        match created {
            Ok(_) => {}
            Err(error) if error.status() == Some(409) && replaces => {
                let what = "delete the database";
                self.send(what, &Request::delete_database(&self.database), &mut tally).await?;
                let request = Request::create_database(&self.database);
                self.send("create the database", &request, &mut tally).await?;
            }
            Err(error) if error.status() == Some(409) => {
                return Err(Error::Exists(self.database.clone()));
            }
            Err(source) => {
                return Err(Error::Request { what: "create the database".to_owned(), source });
            }
        }
        for container in &model.containers {
            self.create_container(container, &mut tally).await?;
        }
        Ok(())
    }

    async fn create_container(
        &self,
        container: &Container,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let what = format!("create container {}", container.name);
        let here = self.container(&container.name);
        let request = here.create_with(&definition(container), container.throughput);
        self.send(&what, &request, tally).await?;
        for script in &container.procedures {
            let what = format!("create procedure {}", script.name);
            self.send(&what, &here.create_procedure(&script.name, &script.body), tally).await?;
        }
        for script in &container.triggers {
            let what = format!("create trigger {}", script.name);
            let when =
                client::Trigger { is_before: script.is_before, operation: &script.operation };
            self.send(&what, &here.create_trigger(&script.name, &script.body, when), tally).await?;
        }
        Ok(())
    }
}

/// Whether a status says to come back later.
pub(crate) fn is_for_now(status: u16) -> bool {
    matches!(status, 429 | 449)
}

/// Waits until what was sent and refused may be sent again.
pub(crate) async fn pause(sent: Instant, retry_after: Option<Duration>, tally: &mut Tally) {
    tokio::time::sleep(retry_after.unwrap_or(PAUSE)).await;
    tally.waits.push((sent, Instant::now()));
}

/// How a container is created.
pub(crate) fn definition(container: &Container) -> Value {
    let kind = if container.partition_key.len() > 1 { "MultiHash" } else { "Hash" };
    let mut definition = Map::new();
    definition.insert("id".to_owned(), json!(container.name));
    let key = json!({"paths": container.partition_key, "kind": kind, "version": 2});
    definition.insert("partitionKey".to_owned(), key);
    if let Some(policy) = &container.indexing {
        definition.insert("indexingPolicy".to_owned(), policy.clone());
    }
    if let Some(policy) = &container.unique_keys {
        definition.insert("uniqueKeyPolicy".to_owned(), policy.clone());
    }
    Value::Object(definition)
}

/// The partition key of an item.
pub fn key_of_item(container: &Container, item: &Value) -> Result<PartitionKey, String> {
    let at = |path: &String| item.pointer(path).cloned().unwrap_or_else(|| json!({}));
    key_of(&Value::Array(container.partition_key.iter().map(at).collect()))
}

/// A partition key given as JSON: an array of its levels, or the only one.
pub fn key_of(value: &Value) -> Result<PartitionKey, String> {
    let array = match value {
        Value::Array(_) => value.to_string(),
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("[{value}]"),
        Value::String(_) | Value::Object(_) => format!("[{value}]"),
    };
    PartitionKey::parse(&array).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(paths: &[&str]) -> Container {
        Container {
            name: "c".to_owned(),
            partition_key: paths.iter().map(|path| (*path).to_owned()).collect(),
            throughput: None,
            indexing: Some(json!({"indexingMode": "none"})),
            unique_keys: None,
            procedures: Vec::new(),
            triggers: Vec::new(),
        }
    }

    #[test]
    fn keys() {
        let item = json!({"a": {"b": "x"}, "n": 1});
        let key = |paths: &[&str]| key_of_item(&container(paths), &item).map(|key| key.to_array());
        assert_eq!(key(&["/a/b"]).unwrap(), r#"["x"]"#);
        assert_eq!(key(&["/n", "/none"]).unwrap(), "[1,{}]");
        assert!(key(&["/a"]).is_err());
        assert_eq!(key_of(&json!("x")).unwrap(), key_of(&json!(["x"])).unwrap());
    }

    #[test]
    fn definitions() {
        let two = definition(&container(&["/a", "/b"]));
        assert_eq!(two["partitionKey"]["kind"], "MultiHash");
        assert_eq!(two["indexingPolicy"]["indexingMode"], "none");
        assert!(two.get("uniqueKeyPolicy").is_none());
    }

    #[test]
    fn tallies() {
        let tally = |charge: u64, requests, partitions, written: &[(usize, Option<u32>)]| {
            let written = written.iter().copied().collect();
            let charge = RequestCharge::from_raw(21_000 * charge);
            Tally { charge, requests, partitions, written, ..Tally::default() }
        };
        let mut sum = tally(571, 1, 75, &[(0, Some(1))]);
        sum.add(&tally(100, 2, 1, &[(0, Some(1)), (1, None)]));
        assert_eq!(sum, tally(671, 3, 75, &[(0, Some(1)), (1, None)]));
        assert_eq!(sum.ru(), 6.71);
    }

    #[test]
    fn waits_that_overlap_are_one() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let waited = |waits: &[(u64, u64)]| {
            let waits = waits.iter().map(|(begin, end)| (at(*begin), at(*end))).collect();
            Tally { waits, ..Tally::default() }.waited().as_millis()
        };
        assert_eq!(waited(&[]), 0);
        assert_eq!(waited(&[(10, 20), (30, 35)]), 15);
        assert_eq!(waited(&[(10, 20), (12, 18), (15, 25)]), 15);
    }
}
