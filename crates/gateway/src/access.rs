//! What the sender of a request may do.
//!
//! | credential | may |
//! |---|---|
//! | account key | everything |
//! | read-only key | everything that does not write |
//! | resource token | read the account; read its container and ranges; work on what it names |
//!
//! A token names a container, one child of a container, or one partition key of a container. The
//! partition key is known only after a request has been decoded, so it is checked there, by
//! [`Access::check_key`]; everything else is checked before the body is read.

use engine::Engine;
use model::partition_key::PartitionKey;

use crate::error::{Result, forbidden};
use crate::path::Path;
use crate::routes::{Action, Kind, Target};
use crate::token::Grant;

/// What a credential allows in general.
#[derive(Clone, Debug)]
pub enum Access {
    /// Everything.
    Full,
    /// Everything that does not write.
    ReadOnly,
    /// What a resource token says.
    Granted(Box<Grant>),
}

impl Access {
    /// Whether this may be done there. Refused requests learn nothing about what exists.
    pub fn check(
        &self,
        engine: &Engine,
        path: &Path<'_>,
        target: Target,
        action: Action,
    ) -> Result<()> {
        match self {
            Access::Full => Ok(()),
            Access::ReadOnly if action.is_write() => {
                Err(forbidden("A read-only key cannot write. Use a read-write key."))
            }
            Access::ReadOnly => Ok(()),
            Access::Granted(grant) => check_grant(grant, engine, path, target, action),
        }
    }

    /// Whether a request may touch this partition key; `None` is all of them. A token for a
    /// prefix of a hierarchical key allows every key below.
    pub fn check_key(&self, key: Option<&PartitionKey>) -> Result<()> {
        let Access::Granted(grant) = self else { return Ok(()) };
        let Some(allowed) = &grant.partition_key else { return Ok(()) };
        let is_within = |own: &PartitionKey| {
            PartitionKey::parse(allowed).is_ok_and(|allowed| own.0.starts_with(&allowed.0))
        };
        match key.is_some_and(is_within) {
            true => Ok(()),
            false => Err(forbidden(
                "The resource token is limited to one partition key; send that key with the \
                 request.",
            )),
        }
    }
}

fn check_grant(
    grant: &Grant,
    engine: &Engine,
    path: &Path<'_>,
    target: Target,
    action: Action,
) -> Result<()> {
    if target.kind == Kind::Account {
        return Ok(());
    }
    let refused = || forbidden("The resource token does not allow this operation.");
    if action.is_write() && !grant.is_writable {
        return Err(refused());
    }
    match is_in_container(grant, engine, path) && reaches(grant, path, target, action) {
        true => Ok(()),
        false => Err(refused()),
    }
}

fn is_in_container(grant: &Grant, engine: &Engine, path: &Path<'_>) -> bool {
    path.segment(2) == "colls"
        && path.len() > 3
        && engine
            .container(path.segment(1), path.segment(3))
            .is_ok_and(|container| container.rid().to_string() == grant.container)
}

/// Whether a grant reaches a place within its container.
fn reaches(grant: &Grant, path: &Path<'_>, target: Target, action: Action) -> bool {
    match (target.kind, &grant.child) {
        (Kind::Container, _) => action == Action::Read,
        (Kind::Range, _) => true,
        (Kind::Item | Kind::Script | Kind::Conflict, None) => true,
        (Kind::PartitionDelete, None) => true,
        (Kind::Item | Kind::Script, Some((keyword, id))) => {
            !target.is_feed && path.segment(4) == keyword && path.segment(5) == id
        }
        _ => false,
    }
}
