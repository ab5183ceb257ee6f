//! Provisioned throughput: who may spend how much, and who has.
//!
//! The RU/s of a container are divided evenly over its physical partitions. Each has a bucket that
//! holds at most one second of its share:
//!
//! ```text
//!   share ┤██████████                    a request is admitted while there is anything left,
//!         │          ███  █████          pays its true price afterwards, and may so leave a
//!       0 ┼─────────────██─────────      debt: those who come next wait until it is paid
//!         │             ▀▀ debt
//! ```
//!
//! Containers that share the throughput of their database share its buckets. Without provisioned
//! throughput every physical partition has what the service gives to serverless ones. Autoscale
//! is at its maximum at once; what it scaled to is told, not enforced.
//!
//! What is spent is counted whether it is limited or not, for each physical partition and for the
//! logical partitions that spend the most. Background work (expired items, deleted partition keys,
//! changed indexes) is counted apart and takes what requests leave: it makes no debt.
//!
//! INVARIANTS
//! (B1) A bucket never holds more than one second of its share.
//! (B2) Nothing is deducted for a request that was refused, nor for metadata.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use base::{Ctx, Timestamp};
use model::partition_key::PartitionKey;
use model::{Rid, limits};
use parking_lot::{Mutex, RwLock};
use storage::shape::LogicalKey;

use crate::ops::{RequestCharge, Throughput};
use crate::{Container, Core, Error, Result};

/// Logical partitions of a container that are watched.
const WATCHED: usize = 32;
/// Of those the ones that are told.
const HOTTEST: usize = 5;
const HOUR_SECS: u64 = 3600;

/// What a container has spent since the server started.
#[derive(Clone, Debug)]
pub struct ContainerUsage {
    /// The name of its database.
    pub database: String,
    /// Its name.
    pub container: String,
    /// Its physical partitions, in order.
    pub partitions: Vec<PartitionUsage>,
    /// The logical partitions that spent the most, as JSON arrays, the first one most of all. Of
    /// those that come and go it is an upper bound.
    pub hottest: Vec<(String, RequestCharge)>,
    /// The RU/s that autoscale came to in this hour; `None` without autoscale or limits.
    pub scaled: Option<u32>,
}

/// What a physical partition has spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionUsage {
    /// Its id.
    pub id: u32,
    /// What its requests cost.
    pub spent: RequestCharge,
    /// What work in the background cost.
    pub background: RequestCharge,
    /// Requests refused for lack of throughput.
    pub refused: u64,
}

/// The counters of a container.
pub(crate) struct Usage {
    partitions: Vec<PartitionCounters>,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct PartitionCounters {
    spent_raw: AtomicU64,
    background_raw: AtomicU64,
    refused: AtomicU64,
}

impl Usage {
    pub fn new(partitions: usize) -> Usage {
        let partitions = (0..partitions).map(|_| PartitionCounters::default()).collect();
        Usage { partitions, watched: Mutex::default() }
    }

    fn spend(&self, partition: u16, key: Option<&LogicalKey>, charge: RequestCharge) {
        let counters = &self.partitions[usize::from(partition)];
        counters.spent_raw.fetch_add(charge.raw(), Relaxed);
        // Who has to wait here is not worth it: the hottest come again.
        if let (Some(key), Some(mut watched)) = (key, self.watched.try_lock()) {
            watched.spend(key, charge);
        }
    }
}

/// The logical partitions that spent the most, approximately: whoever is not among them takes the
/// place of the least, and inherits what that had spent. Nobody who spent more than the least of
/// them is missing.
#[derive(Default)]
struct Watched {
    keys: Vec<(Vec<u8>, PartitionKey, RequestCharge)>,
}

impl Watched {
    fn spend(&mut self, key: &LogicalKey, charge: RequestCharge) {
        if let Some((.., spent)) = self.keys.iter_mut().find(|(own, ..)| own[..] == key.bytes[..]) {
            *spent += charge;
            return;
        }
        let newcomer = (key.bytes.clone(), key.key.clone(), charge);
        if self.keys.len() < WATCHED {
            self.keys.push(newcomer);
        } else if let Some(least) = self.keys.iter_mut().min_by_key(|(.., spent)| *spent) {
            let inherited = least.2;
            *least = newcomer;
            least.2 += inherited;
        }
    }

    fn hottest(&self) -> Vec<(String, RequestCharge)> {
        let mut keys: Vec<_> =
            self.keys.iter().map(|(_, key, spent)| (key.to_array(), *spent)).collect();
        keys.sort_by(|(a, a_spent), (b, b_spent)| b_spent.cmp(a_spent).then(a.cmp(b)));
        keys.truncate(HOTTEST);
        keys
    }
}

/// The buckets of everything that has throughput of its own.
#[derive(Default)]
pub(crate) struct Buckets {
    by_container: RwLock<HashMap<u32, Arc<Allowance>>>,
    by_owner: RwLock<HashMap<Rid, Arc<Allowance>>>,
}

impl Buckets {
    /// Throughputs have changed; what was spent stays spent.
    pub fn forget_rates(&self) {
        // Whoever looks up a rate holds this, so that none from before is kept.
        let _owners = self.by_owner.write();
        self.by_container.write().clear();
    }
}

/// The throughput of a container or database, and the buckets of its physical partitions.
struct Allowance {
    /// What a partition may spend in a second.
    share_raw: AtomicU64,
    /// The maximum of autoscale, 0 without.
    autoscale: AtomicU64,
    partitions: Vec<Mutex<Bucket>>,
    peak: Mutex<Peak>,
}

impl Allowance {
    fn new(partitions: usize) -> Allowance {
        Allowance {
            share_raw: AtomicU64::new(0),
            autoscale: AtomicU64::new(0),
            partitions: (0..partitions.max(1)).map(|_| Mutex::default()).collect(),
            peak: Mutex::default(),
        }
    }

    fn set(&self, throughput: Option<Throughput>) {
        let partitions = self.partitions.len() as u64;
        let (share, autoscale) = match throughput {
            None => (u64::from(limits::SERVERLESS_PARTITION_THROUGHPUT), 0),
            Some(Throughput::Manual(value)) => (u64::from(value) / partitions, 0),
            Some(Throughput::Autoscale(max)) => (u64::from(max) / partitions, u64::from(max)),
        };
        let share = share.clamp(1, u64::from(limits::PARTITION_THROUGHPUT_MAX));
        self.share_raw.store(share * RequestCharge::ONE.raw(), Relaxed);
        self.autoscale.store(autoscale, Relaxed);
    }

    /// The bucket of a partition. Containers that share it may have been made with more of them.
    fn bucket(&self, partition: u16) -> &Mutex<Bucket> {
        &self.partitions[usize::from(partition) % self.partitions.len()]
    }

    fn admit(&self, partition: u16, now: Timestamp) -> Result<()> {
        let share = self.share_raw.load(Relaxed);
        match self.bucket(partition).lock().wait(now, share) {
            Duration::ZERO => Ok(()),
            retry_after => Err(Error::Throttled { retry_after }),
        }
    }

    /// What is left, in raw units; negative if something is owed.
    fn left(&self, partition: u16, now: Timestamp) -> i64 {
        self.bucket(partition).lock().refill(now, self.share_raw.load(Relaxed))
    }

    fn spend(&self, partition: u16, now: Timestamp, charge: RequestCharge) {
        let share = self.share_raw.load(Relaxed);
        let in_second = self.bucket(partition).lock().spend(now, share, charge);
        if self.autoscale.load(Relaxed) > 0 {
            self.peak.lock().note(now, in_second);
        }
    }

    /// Pays with what is left.
    fn spend_rest(&self, partition: u16, now: Timestamp, charge: RequestCharge) {
        let left = u64::try_from(self.left(partition, now)).unwrap_or(0);
        self.spend(partition, now, charge.min(RequestCharge::from_raw(left)));
    }

    /// What autoscale came to: the busiest second of the busiest partition, for all of them.
    fn scaled(&self, now: Timestamp) -> Option<u32> {
        let max = self.autoscale.load(Relaxed);
        let used = self.peak.lock().in_hour(now) * self.partitions.len() as u64;
        let scaled = used.div_ceil(RequestCharge::ONE.raw()).clamp(max / 10, max);
        (max > 0).then_some(scaled as u32)
    }
}

/// What a physical partition may spend now.
#[derive(Debug, Default)]
struct Bucket {
    /// What is left, or owed; `None` before the first request.
    level: Option<(i64, Timestamp)>,
    /// The second of the last request, and what was spent in it.
    second: (u64, u64),
}

impl Bucket {
    /// What is left at a time, with a share for each second since the last look (B1).
    fn refill(&mut self, now: Timestamp, share: u64) -> i64 {
        let (level, then) = self.level.unwrap_or((share as i64, now));
        let passed = now.as_millis().saturating_sub(then.as_millis()).min(1_000_000);
        let level = level.saturating_add((share * passed / 1000) as i64).min(share as i64);
        self.level = Some((level, now.max(then)));
        level
    }

    /// How long until there is anything left.
    fn wait(&mut self, now: Timestamp, share: u64) -> Duration {
        match self.refill(now, share) {
            level if level > 0 => Duration::ZERO,
            level => {
                let owed = level.unsigned_abs() + 1;
                Duration::from_millis((owed * 1000).div_ceil(share))
            }
        }
    }

    /// Pays, and tells what was spent in this second.
    fn spend(&mut self, now: Timestamp, share: u64, charge: RequestCharge) -> u64 {
        let level = self.refill(now, share).saturating_sub_unsigned(charge.raw());
        self.level = self.level.map(|(_, then)| (level, then));
        if self.second.0 != now.as_secs() {
            self.second = (now.as_secs(), 0);
        }
        self.second.1 += charge.raw();
        self.second.1
    }
}

/// The most that was spent in a second of the current hour.
#[derive(Debug, Default)]
struct Peak {
    hour: u64,
    raw: u64,
}

impl Peak {
    fn note(&mut self, now: Timestamp, raw: u64) {
        let raw = raw.max(self.in_hour(now));
        *self = Peak { hour: now.as_secs() / HOUR_SECS, raw };
    }

    fn in_hour(&self, now: Timestamp) -> u64 {
        if self.hour == now.as_secs() / HOUR_SECS { self.raw } else { 0 }
    }
}

impl Core {
    /// Lets a request to some physical partitions through, or says when to come back.
    pub(crate) fn admit(&self, ctx: &Ctx, container: &Container, partitions: &[u16]) -> Result<()> {
        if !self.enforces_throughput || ctx.is_part() {
            return Ok(());
        }
        let (allowance, now) = (self.allowance(container), ctx.now());
        for &partition in partitions {
            if let Err(error) = allowance.admit(partition, now) {
                container.usage.partitions[usize::from(partition)].refused.fetch_add(1, Relaxed);
                return Err(error);
            }
        }
        Ok(())
    }

    /// What a physical partition may spend in this moment; `None` if nothing limits it.
    pub(crate) fn left(
        &self,
        ctx: &Ctx,
        container: &Container,
        partition: u16,
    ) -> Option<RequestCharge> {
        let left = || self.allowance(container).left(partition, ctx.now());
        let left = self.enforces_throughput.then(left)?;
        Some(RequestCharge::from_raw(u64::try_from(left).unwrap_or(0)))
    }

    /// Takes the price of a request from a physical partition, and notes who spent it.
    pub(crate) fn spend(
        &self,
        ctx: &Ctx,
        container: &Container,
        partition: u16,
        key: Option<&LogicalKey>,
        charge: RequestCharge,
    ) {
        if ctx.is_part() {
            return;
        }
        container.usage.spend(partition, key, charge);
        if self.enforces_throughput {
            self.allowance(container).spend(partition, ctx.now(), charge);
        }
    }

    /// Takes the price of work in the background from what requests leave.
    pub(crate) fn spend_in_background(
        &self,
        container: &Container,
        partition: u16,
        charge: RequestCharge,
    ) {
        let counters = &container.usage.partitions[usize::from(partition)];
        counters.background_raw.fetch_add(charge.raw(), Relaxed);
        if self.enforces_throughput {
            self.allowance(container).spend_rest(partition, self.clock.now(), charge);
        }
    }

    /// What limits a container: its own throughput, or that of its database.
    fn allowance(&self, container: &Container) -> Arc<Allowance> {
        let number = container.layout.container;
        if let Some(allowance) = self.buckets.by_container.read().get(&number) {
            return allowance.clone();
        }
        let mut owners = self.buckets.by_owner.write();
        let (owner, throughput) = self.catalog.throughput(container);
        let partitions = container.layout.partitions.len();
        let allowance = owners.entry(owner).or_insert_with(|| Arc::new(Allowance::new(partitions)));
        allowance.set(throughput);
        self.buckets.by_container.write().insert(number, allowance.clone());
        allowance.clone()
    }

    /// What every container has spent.
    pub(crate) fn usage(&self, now: Timestamp) -> Vec<ContainerUsage> {
        self.catalog.containers().iter().map(|container| self.usage_of(container, now)).collect()
    }

    fn usage_of(&self, container: &Container, now: Timestamp) -> ContainerUsage {
        let numbers = container.layout.partitions.iter().map(|partition| partition.number);
        let partition = |(number, counters): (u16, &PartitionCounters)| PartitionUsage {
            id: u32::from(number),
            spent: RequestCharge::from_raw(counters.spent_raw.load(Relaxed)),
            background: RequestCharge::from_raw(counters.background_raw.load(Relaxed)),
            refused: counters.refused.load(Relaxed),
        };
        ContainerUsage {
            database: container.database_name().to_owned(),
            container: container.name().to_owned(),
            partitions: numbers.zip(&container.usage.partitions).map(partition).collect(),
            hottest: container.usage.watched.lock().hottest(),
            scaled: match self.enforces_throughput {
                true => self.allowance(container).scaled(now),
                false => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: u64 = 400 * RequestCharge::ONE.raw();

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + millis)
    }

    fn units(count: u64) -> RequestCharge {
        RequestCharge::ONE * count
    }

    #[test]
    fn a_debt_is_waited_for() {
        let mut bucket = Bucket::default();
        assert_eq!(bucket.wait(at(0), SHARE), Duration::ZERO);
        bucket.spend(at(0), SHARE, units(399));
        assert_eq!(bucket.wait(at(0), SHARE), Duration::ZERO, "one unit is left");
        bucket.spend(at(0), SHARE, units(201));
        // 200 are owed, at 400 a second.
        assert_eq!(bucket.wait(at(0), SHARE), Duration::from_millis(501));
        assert_eq!(bucket.wait(at(499), SHARE), Duration::from_millis(2));
        assert_eq!(bucket.wait(at(500), SHARE), Duration::from_millis(1));
        assert_eq!(bucket.wait(at(501), SHARE), Duration::ZERO);
    }

    #[test]
    fn nothing_is_saved_beyond_a_second() {
        let mut bucket = Bucket::default();
        bucket.spend(at(0), SHARE, units(400));
        assert_ne!(bucket.wait(at(0), SHARE), Duration::ZERO);
        assert_eq!(bucket.refill(at(3_600_000), SHARE), SHARE as i64);
        assert_eq!(bucket.refill(at(3_600_000), SHARE / 2), SHARE as i64 / 2, "scaled down");
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::default();
        bucket.spend(at(5000), SHARE, units(600));
        assert_eq!(bucket.wait(at(0), SHARE), Duration::from_millis(501));
        assert_eq!(bucket.wait(at(5000), SHARE), Duration::from_millis(501));
    }

    #[test]
    fn a_partition_has_its_share() {
        let share = |partitions, throughput| {
            let allowance = Allowance::new(partitions);
            allowance.set(throughput);
            allowance.share_raw.load(Relaxed) / RequestCharge::ONE.raw()
        };
        assert_eq!(share(3, Some(Throughput::Manual(30_000))), 10_000);
        assert_eq!(share(3, Some(Throughput::Manual(1000))), 333);
        assert_eq!(share(2, Some(Throughput::Autoscale(4000))), 2000);
        assert_eq!(share(1, Some(Throughput::Manual(50_000))), 10_000, "what a partition can do");
        assert_eq!(share(7, None), 5000, "serverless");
    }

    #[test]
    fn the_background_has_the_rest() {
        let allowance = Allowance::new(1);
        allowance.set(Some(Throughput::Manual(400)));
        allowance.spend(0, at(0), units(390));
        allowance.spend_rest(0, at(0), units(50));
        assert_eq!(allowance.left(0, at(0)), 0, "no debt");
        assert_eq!(allowance.left(0, at(1)), SHARE as i64 / 1000);
        allowance.spend(0, at(1), units(100));
        let debt = allowance.left(0, at(1));
        allowance.spend_rest(0, at(1), units(50));
        assert_eq!(allowance.left(0, at(1)), debt);
    }

    #[test]
    fn autoscale_is_told_by_the_busiest_second_of_the_hour() {
        let allowance = Allowance::new(2);
        allowance.set(Some(Throughput::Autoscale(4000)));
        assert_eq!(allowance.scaled(at(0)), Some(400), "a tenth at rest");
        allowance.spend(0, at(0), units(300));
        allowance.spend(0, at(900), units(200));
        allowance.spend(1, at(1000), units(400));
        assert_eq!(allowance.scaled(at(1000)), Some(1000));
        allowance.spend(0, at(2000), units(9000));
        assert_eq!(allowance.scaled(at(2000)), Some(4000), "never beyond the maximum");
        assert_eq!(allowance.scaled(at(3_600_000)), Some(400), "another hour");
        allowance.set(Some(Throughput::Manual(4000)));
        assert_eq!(allowance.scaled(at(2000)), None);
    }
}
