//! One request on its way to the engine, and the ways to get there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::{Ctx, Deadline};
use engine::{Container, Engine, PartitionGuard};
use hyper::HeaderMap;
use model::partition_key::PartitionKey;
use tokio::time::{Instant, timeout_at};

use crate::Gateway;
use crate::access::Access;
use crate::error::{Failure, Result};
use crate::headers;
use crate::labels::Labels;
use crate::path::Path;
use crate::routes::Action;
use crate::trials::{remember, was_slow};

/// How long work may take where it keeps other requests waiting.
const QUICK: Duration = Duration::from_millis(2);

/// A request that is known to be allowed, without its body.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Who serves it.
    pub gateway: &'a Gateway,
    /// Where.
    pub path: &'a Path<'a>,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// What its sender may do.
    pub access: &'a Access,
    /// What it does.
    pub action: Action,
    /// When it must have been answered.
    pub deadline: Deadline,
}

impl<'a> Call<'a> {
    /// The engine.
    pub fn engine(&self) -> &'a Arc<Engine> {
        &self.gateway.engine
    }

    /// The name in the path of the database.
    pub fn database(&self) -> &'a str {
        self.path.segment(1)
    }

    /// The name in the path one level deeper: a container, user or key.
    pub fn second(&self) -> &'a str {
        self.path.segment(3)
    }

    /// The name in the path at the deepest level: an item, script or permission.
    pub fn third(&self) -> &'a str {
        self.path.segment(5)
    }

    /// The context of one engine operation.
    pub fn ctx(&self) -> Ctx {
        self.engine().ctx(self.deadline).with_receipt(self.wants_receipt())
    }

    /// Whether the answer is to say what its price is made of.
    pub fn wants_receipt(&self) -> bool {
        headers::is_true(self.headers, &headers::RECEIPT)
    }

    /// The container in the path, if it is still the one the client means.
    pub fn container(&self) -> Result<Arc<Container>> {
        let container = self.engine().container(self.database(), self.second())?;
        match self.headers.get(&headers::INTENDED_CONTAINER_RID) {
            // The Java SDK sends none in this way if it has an address by resource ids.
            Some(sent) if !sent.is_empty() && *sent != Labels::of(&container).rid => {
                let sent = String::from_utf8_lossy(sent.as_bytes()).into_owned();
                Err(Failure::at(engine::Error::ContainerRecreated { sent }, &container, 0))
            }
            _ => Ok(container),
        }
    }

    /// Waits for the lock of a logical partition, at most until the deadline.
    pub async fn lock(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> Result<PartitionGuard> {
        let guard = self.engine().lock(container, key);
        let guard = self.until_deadline(guard).await;
        guard.ok_or_else(|| {
            Failure::at(engine::Error::Timeout, container, container.partition_of(key))
        })
    }

    /// Runs something that takes its time on the pool. The pool is bounded; waiting for it counts
    /// against the deadline, and whoever gets no place in time may try again.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Engine>, &Ctx) -> engine::Result<T> + Send + 'static,
    ) -> Result<T> {
        let place = self.until_deadline(self.gateway.blocking.clone().acquire_owned()).await;
        let place = place.and_then(|place| place.ok()).ok_or(engine::Error::Unavailable)?;
        let (engine, deadline) = (self.engine().clone(), self.deadline);
        let wants_receipt = self.wants_receipt();
        let task = tokio::task::spawn_blocking(move || {
            let _place = place;
            work(&engine, &engine.ctx(deadline).with_receipt(wants_receipt))
        });
        let result = task.await.map_err(|error| engine::Error::Fault(error.to_string()))?;
        Ok(result?)
    }

    /// Runs something that is mostly over at once right here, for it is not worth a change of
    /// threads; if it is not done after [`QUICK`], or was not the last time, it runs on the pool.
    pub async fn quickly<T: Send + 'static>(
        &self,
        trial: &AtomicBool,
        work: impl Fn(&Arc<Engine>, &Ctx) -> engine::Result<T> + Send + 'static,
        is_done: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        if was_slow(trial) {
            let started = Instant::now();
            let result = self.blocking(work).await;
            remember(trial, started.elapsed() > QUICK);
            return result;
        }
        let ctx = self.engine().ctx(self.deadline.min(Deadline::after(QUICK)));
        let ctx = ctx.with_receipt(self.wants_receipt()).on_trial();
        let attempt = catch_unwind(AssertUnwindSafe(|| work(self.engine(), &ctx)));
        match attempt.unwrap_or(Err(engine::Error::Fault("the query panicked".to_owned()))) {
            Ok(result) if is_done(&result) => Ok(result),
            Ok(_) | Err(engine::Error::Timeout) => {
                remember(trial, true);
                self.blocking(work).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn until_deadline<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.deadline.instant() {
            Some(at) => timeout_at(Instant::from_std(at), work).await.ok(),
            None => Some(work.await),
        }
    }
}
