//! Stored procedures, triggers, UDFs: kept like any resource, and procedures executed. And conflicts.
//!
//! A procedure waits for the lock of its logical partition without a thread, like any write; the
//! engine runs it on threads of its own.

use std::sync::Arc;

use bytes::Bytes;
use engine::ops::{Execution, ResourceKind, ScriptAnswer};
use engine::{Container, Scripted};
use model::limits::BODY_BYTES_MAX;
use model::partition_key::PartitionKey;

use crate::call::Call;
use crate::decode;
use crate::encode::{self, Reply};
use crate::error::{Failure, Result, not_allowed};
use crate::headers;
use crate::routes::{Action, resources};

/// Serves `…/sprocs`, `…/triggers` and `…/udfs`.
pub async fn serve(call: &Call<'_>, body: Bytes) -> Result<Reply> {
    let container = call.container()?;
    check_size(&body).map_err(|failure| failure.within(&container, 0))?;
    match (call.action, kind_of(call)) {
        (Action::Execute, ResourceKind::StoredProcedure) => execute(call, &container, &body).await,
        (Action::Execute, _) => not_allowed(),
        (_, kind) => manage(call, &container, kind, body).await,
    }
}

fn kind_of(call: &Call<'_>) -> ResourceKind {
    match call.path.segment(4) {
        "sprocs" => ResourceKind::StoredProcedure,
        "triggers" => ResourceKind::Trigger,
        _ => ResourceKind::Udf,
    }
}

/// The text of a script has no slack, unlike that of an item, which is stored in another form.
fn check_size(body: &[u8]) -> Result<()> {
    match body.len() > BODY_BYTES_MAX {
        false => Ok(()),
        true => {
            let message =
                format!("Request size is too large: the limit is {BODY_BYTES_MAX} bytes.");
            Err(engine::Error::TooLarge(message).into())
        }
    }
}

/// Scripts belong to the whole container, so a token for one partition key does not reach them.
async fn manage(
    call: &Call<'_>,
    container: &Arc<Container>,
    kind: ResourceKind,
    body: Bytes,
) -> Result<Reply> {
    call.access.check_key(None)?;
    let reply = resources::serve(call, kind, body).await;
    let reply = reply.map_err(|failure| failure.within(container, 0))?;
    Ok(reply.in_container(container).at(0, container.session(0)))
}

async fn execute(call: &Call<'_>, container: &Arc<Container>, body: &[u8]) -> Result<Reply> {
    decode::check_consistency(call.headers)?;
    decode::session(call.headers)?;
    let key = decode::point_key(call.headers, container)
        .map_err(|failure| failure.within(container, 0))?;
    call.access.check_key(Some(&key))?;
    let execution = Execution {
        procedure: call.third().to_owned(),
        arguments: decode::arguments(body)?,
        is_logging: headers::is_true(call.headers, &headers::ENABLE_SCRIPT_LOGGING),
    };
    let answer = start(call, container, &key, execution).await?.await;
    let answer =
        answer.map_err(|error| Failure::at(error, container, container.partition_of(&key)))?;
    Ok(encode::script(container, answer))
}

/// Starts a procedure under the lock of its partition.
async fn start(
    call: &Call<'_>,
    container: &Arc<Container>,
    key: &PartitionKey,
    execution: Execution,
) -> Result<Scripted<ScriptAnswer>> {
    let guard = call.lock(container, key).await?;
    Ok(call.engine().execute(&call.ctx(), guard, execution))
}

/// Serves `…/conflicts`: one region has none.
pub fn conflicts(call: &Call<'_>) -> Result<Reply> {
    let container = call.container()?;
    match matches!(call.action, Action::List | Action::Query) {
        false => Err(engine::Error::NotFound.into()),
        true => {
            let reply = encode::resources(container.rid(), "Conflicts", &[], None);
            Ok(reply.in_container(&container).at(0, container.session(0)))
        }
    }
}
