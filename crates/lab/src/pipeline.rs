//! Pipelines: for every change of a container, requests that keep copies of it elsewhere.
//!
//! ```text
//! change feed of a physical partition ─▶ page ─▶ steps for each change ─▶ position into the lease
//! ```
//!
//! Where a pipeline has come is kept in a container of leases beside the data: one item for each
//! pipeline and physical partition, taken and written under its etag. Whoever has the lease reads
//! that partition. A lease is renewed while it is held, however long a page takes; one that was not
//! renewed for a while may be taken over. A process that comes back under the name it had before
//! need not wait for that.
//!
//! INVARIANTS
//! (P1) A position is written behind the page it covers: a change is handled at least once, and
//!      after a restart perhaps again. Steps must be idempotent.
//! (P2) A lease is written only under the etag it was read with: two processes cannot both have it.
//! (P3) Work on changes is counted, looking for changes and finding none is counted apart.

use std::time::{Duration, Instant};

use client::{Changes, Scope};
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

use crate::Error;
use crate::data::{Binding, Data, Environment};
use crate::expression::is_true;
use crate::steps;
use crate::target::{Tally, Target, Written, key_of};
use crate::workload::{Model, Pipeline};

const _: () = assert!(RENEWAL.as_secs() * 2 < EXPIRY.as_secs());

/// The container of leases.
pub const LEASES: &str = "lab-leases";
/// Changes of one page.
const PAGE: usize = 100;
/// When a lease that is not renewed may be taken over.
const EXPIRY: Duration = Duration::from_secs(30);
/// When a lease that is held is renewed.
const RENEWAL: Duration = Duration::from_secs(10);
/// Rounds until pipelines are taken to be endless.
const ROUNDS_MAX: usize = 1_000;

/// The pipelines of a model, run by one process.
pub struct Runner<'d> {
    data: &'d Data,
    model: &'d Model,
    target: Target,
    owner: String,
    leases: Vec<Lease>,
}

/// What a process holds of a lease.
struct Lease {
    pipeline: usize,
    /// The physical partition.
    range: String,
    /// Where the feed goes on.
    continuation: Option<String>,
    etag: String,
    /// When it was last written.
    renewed: Instant,
    /// The time that the last request to write it has sent.
    sent_ms: u64,
}

/// What a run until nothing was left came to.
#[derive(Clone, Debug, Default)]
pub struct Drained {
    /// Handling changes (P3).
    pub work: Tally,
    /// Looking for changes where there were none, and renewing leases.
    pub idle: Tally,
    /// Changes that were handled.
    pub changes: u64,
    /// From the beginning until the last change was handled.
    pub lag: Option<Duration>,
}

impl<'d> Runner<'d> {
    /// Takes the leases of all pipelines; those that do not exist yet are made.
    pub async fn start(
        data: &'d Data,
        model: usize,
        target: Target,
        owner: &str,
    ) -> Result<Runner<'d>, Error> {
        let model = &data.workload.models[model];
        let mut runner =
            Runner { data, model, target, owner: owner.to_owned(), leases: Vec::new() };
        if model.pipelines.is_empty() {
            return Ok(runner);
        }
        runner.ensure_container().await?;
        for at in 0..model.pipelines.len() {
            for range in runner.ranges(&model.pipelines[at]).await? {
                let lease = runner.take(at, range).await?;
                runner.leases.push(lease);
            }
        }
        Ok(runner)
    }

    /// How many leases it has: one for each pipeline and physical partition.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// Whether there is anything to run.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Runs until no pipeline finds a change, wherever it may be.
    pub async fn drain(&mut self) -> Result<Drained, Error> {
        let begun = Instant::now();
        let mut drained = Drained::default();
        for _ in 0..ROUNDS_MAX {
            if !self.round(begun, None, &mut drained).await? {
                return Ok(drained);
            }
        }
        Err(Error::Endless(self.model.id.clone()))
    }

    /// Runs until what somebody wrote, and what pipelines write because of it, is copied. Only
    /// partitions that were written to are looked at. The work is counted as the tally says.
    pub async fn drain_after(
        &mut self,
        mut written: Written,
        work: Tally,
    ) -> Result<Drained, Error> {
        let begun = Instant::now();
        let mut drained = Drained { work, ..Drained::default() };
        for _ in 0..ROUNDS_MAX {
            if written.is_empty() {
                return Ok(drained);
            }
            self.round(begun, Some(&written), &mut drained).await?;
            written = std::mem::take(&mut drained.work.written);
        }
        Err(Error::Endless(self.model.id.clone()))
    }

    /// Looks once at all partitions, or those that were written to. Whether there were changes.
    async fn round(
        &mut self,
        begun: Instant,
        written: Option<&Written>,
        drained: &mut Drained,
    ) -> Result<bool, Error> {
        let mut changes = 0;
        self.renew(&mut drained.idle).await?;
        for at in 0..self.leases.len() {
            if written.is_none_or(|written| self.is_among(at, written)) {
                changes += self.follow(at, drained).await?;
            }
        }
        if changes > 0 {
            drained.changes += changes;
            drained.lag = Some(begun.elapsed());
        }
        Ok(changes > 0)
    }

    /// Whether the partition of a lease was written to.
    fn is_among(&self, at: usize, written: &Written) -> bool {
        let lease = &self.leases[at];
        let source = self.model.pipelines[lease.pipeline].source;
        let range = lease.range.parse().ok();
        range.is_none() || [range, None].iter().any(|range| written.contains(&(source, *range)))
    }

    /// Gives the leases back, so that the next process need not wait for them to expire. A lease
    /// that somebody else has taken over is an error, and the others are given back all the same.
    pub async fn stop(mut self) -> Result<(), Error> {
        let owner = std::mem::take(&mut self.owner);
        let mut done = Ok(());
        for at in 0..self.leases.len() {
            done = done.and(self.give_back(at, &owner).await);
        }
        done
    }

    /// Work that was cut off may have left a request on its way that writes the lease, whose etag
    /// then is another than the one known here (P2). The lease tells whose request it was: owner and
    /// time are those that were sent.
    async fn give_back(&mut self, at: usize, owner: &str) -> Result<(), Error> {
        let sent_ms = self.leases[at].sent_ms;
        let given = self.write_lease(at, &mut Tally::default()).await;
        if !matches!(given, Err(Error::Leased(_))) {
            return given;
        }
        let (id, key) = self.lease_key(&self.leases[at])?;
        let request = self.target.container(LEASES).read(&key, &id);
        let reply =
            self.target.exchange(&request, &mut Tally::default()).await.map_err(lease_unread)?;
        let lease = reply.json().unwrap_or_default();
        if lease["owner"] != *owner || lease["renewed"] != sent_ms {
            return given;
        }
        // There was one such request, so this is the last time.
        self.leases[at].etag = reply.etag().unwrap_or_default().to_owned();
        self.write_lease(at, &mut Tally::default()).await
    }

    /// Renews the leases that would otherwise expire, at the positions they have (P1).
    async fn renew(&mut self, tally: &mut Tally) -> Result<(), Error> {
        for at in 0..self.leases.len() {
            if self.leases[at].renewed.elapsed() >= RENEWAL {
                self.write_lease(at, tally).await?;
            }
        }
        Ok(())
    }

    async fn ensure_container(&self) -> Result<(), Error> {
        // Without terms a lease costs the same whatever has changed in it.
        let definition = json!({
            "id": LEASES,
            "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
            "indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}]},
        });
        let request = self.target.container(LEASES).create_with(&definition, None);
        match self.target.client.send(&request).await {
            Ok(_) => Ok(()),
            Err(error) if error.status() == Some(409) => Ok(()),
            Err(source) => Err(Error::Request { what: "create the leases".to_owned(), source }),
        }
    }

    async fn ranges(&self, pipeline: &Pipeline) -> Result<Vec<String>, Error> {
        let source = self.target.container(&self.model.containers[pipeline.source].name);
        let (request, mut tally) = (source.ranges(), Tally::default());
        let rows = self.target.rows("read partitions", &request, &mut tally).await?;
        Ok(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect())
    }

    async fn take(&self, pipeline: usize, range: String) -> Result<Lease, Error> {
        let mut lease = Lease {
            pipeline,
            range,
            continuation: None,
            etag: String::new(),
            renewed: Instant::now(),
            sent_ms: now_ms(),
        };
        let (id, key) = self.lease_key(&lease)?;
        let leases = self.target.container(LEASES);
        match self.target.exchange(&leases.read(&key, &id), &mut Tally::default()).await {
            Ok(reply) => {
                let body = reply.json().unwrap_or_default();
                if !self.may_take(&body) {
                    return Err(Error::Leased(self.model.pipelines[pipeline].name.clone()));
                }
                lease.continuation = body["continuation"].as_str().map(str::to_owned);
                lease.etag = reply.etag().unwrap_or_default().to_owned();
                let request = leases.replace(&key, &id, self.lease_body(&lease).to_string());
                let request = request.if_match(&lease.etag); // P2
                let reply = self.target.exchange(&request, &mut Tally::default()).await;
                lease.etag = self.etag_of(pipeline, reply)?;
            }
            Err(error) if error.status() == Some(404) => {
                if !self.model.pipelines[pipeline].from_beginning {
                    lease.continuation = self.position_now(&lease).await?;
                }
                let request = leases.create(&key, self.lease_body(&lease).to_string());
                let reply = self.target.exchange(&request, &mut Tally::default()).await;
                lease.etag = self.etag_of(pipeline, reply)?;
            }
            Err(source) => return Err(lease_unread(source)),
        }
        Ok(lease)
    }

    fn etag_of(
        &self,
        pipeline: usize,
        reply: Result<client::Reply, client::Error>,
    ) -> Result<String, Error> {
        match reply {
            Ok(reply) => Ok(reply.etag().unwrap_or_default().to_owned()),
            Err(error) if matches!(error.status(), Some(409 | 412)) => {
                Err(Error::Leased(self.model.pipelines[pipeline].name.clone()))
            }
            Err(source) => Err(Error::Request { what: "write a lease".to_owned(), source }),
        }
    }

    fn may_take(&self, lease: &Value) -> bool {
        let owner = lease["owner"].as_str().unwrap_or_default();
        let renewed = lease["renewed"].as_u64().unwrap_or(0);
        let is_expired = now_ms().saturating_sub(renewed) > EXPIRY.as_millis() as u64;
        owner.is_empty() || owner == self.owner || is_expired
    }

    /// Where a feed is that begins with the next change.
    async fn position_now(&self, lease: &Lease) -> Result<Option<String>, Error> {
        let source = &self.model.containers[self.model.pipelines[lease.pipeline].source].name;
        let request = self.target.container(source).changes(
            &Scope::Range(&lease.range),
            Changes::FromNow,
            PAGE,
        );
        let mut tally = Tally::default();
        let reply = self.target.send("find the end of a feed", &request, &mut tally).await?;
        Ok(reply.etag().map(str::to_owned))
    }

    /// Reads one partition until nothing is new; how many changes there were.
    async fn follow(&mut self, at: usize, drained: &mut Drained) -> Result<u64, Error> {
        let mut changes = 0;
        loop {
            let (page, position) = self.page(at, drained).await?;
            if page.is_empty() {
                return Ok(changes);
            }
            for change in &page {
                self.handle(self.leases[at].pipeline, change, &mut drained.work).await?;
                self.renew(&mut drained.idle).await?;
            }
            self.leases[at].continuation = position;
            self.write_lease(at, &mut drained.work).await?; // P1
            changes += page.len() as u64;
        }
    }

    async fn page(
        &self,
        at: usize,
        drained: &mut Drained,
    ) -> Result<(Vec<Value>, Option<String>), Error> {
        let lease = &self.leases[at];
        let pipeline = &self.model.pipelines[lease.pipeline];
        let source = self.target.container(&self.model.containers[pipeline.source].name);
        let from = match &lease.continuation {
            Some(etag) => Changes::After(etag),
            None => Changes::FromBeginning,
        };
        let request = source.changes(&Scope::Range(&lease.range), from, PAGE);
        let what = format!("pipeline {}", pipeline.name);
        let mut tally = drained.work.fresh();
        let reply = self.target.send(&what, &request, &mut tally).await?;
        let rows = reply.rows().map_err(|source| Error::Request { what, source })?;
        match rows.is_empty() {
            true => drained.idle.add(&tally), // P3
            false => drained.work.add(&tally),
        }
        Ok((rows, reply.etag().map(str::to_owned)))
    }

    async fn handle(
        &self,
        pipeline: usize,
        change: &Value,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        let of = &self.model.pipelines[pipeline];
        let mut names = Environment::new(self.data);
        names.bind("change", Binding::Value(change.clone()));
        if let Some(when) = &of.when {
            let value = when.evaluate(&names);
            if !is_true(&value.map_err(|message| self.wrong(pipeline, message))?) {
                return Ok(());
            }
        }
        steps::run(self.model, &self.target, &of.steps, &mut names, tally).await
    }

    async fn write_lease(&mut self, at: usize, tally: &mut Tally) -> Result<(), Error> {
        self.leases[at].sent_ms = now_ms();
        let lease = &self.leases[at];
        let (id, key) = self.lease_key(lease)?;
        let body = self.lease_body(lease).to_string();
        let request = self.target.container(LEASES).replace(&key, &id, body).if_match(&lease.etag);
        let request = tally.asks(request);
        let reply = self.target.exchange(&request, tally).await;
        if let Ok(reply) = &reply {
            tally.count(reply);
        }
        let etag = self.etag_of(lease.pipeline, reply)?;
        (self.leases[at].etag, self.leases[at].renewed) = (etag, Instant::now());
        Ok(())
    }

    fn lease_id(&self, lease: &Lease) -> String {
        format!("{}.{}", self.model.pipelines[lease.pipeline].name, lease.range)
    }

    fn lease_key(&self, lease: &Lease) -> Result<(String, PartitionKey), Error> {
        let id = self.lease_id(lease);
        let key = key_of(&json!(id)).map_err(|message| self.wrong(lease.pipeline, message))?;
        Ok((id, key))
    }

    fn lease_body(&self, lease: &Lease) -> Value {
        json!({
            "id": self.lease_id(lease),
            "owner": self.owner,
            "renewed": lease.sent_ms,
            "continuation": lease.continuation,
        })
    }

    fn wrong(&self, pipeline: usize, message: String) -> Error {
        let what = format!("pipeline {}", self.model.pipelines[pipeline].name);
        Error::Step { what, message }
    }
}

fn lease_unread(source: client::Error) -> Error {
    Error::Request { what: "read a lease".to_owned(), source }
}

/// Processes on different machines compare their times: only the clock of the day will do.
#[allow(clippy::disallowed_methods)]
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
