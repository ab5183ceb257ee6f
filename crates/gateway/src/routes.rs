//! The URL tree, and what each verb does on it.
//!
//! ```text
//! /                                       account
//! /offers[/{rid}]                         throughput
//! /dbs[/{db}]
//!    /users[/{user}]
//!       /permissions[/{permission}]
//!    /clientencryptionkeys[/{key}]
//!    /colls[/{container}]
//!       /docs[/{item}]
//!       /sprocs | /triggers | /udfs | /conflicts [/{id}]
//!       /pkranges
//!       /operations/partitionkeydelete
//! ```
//!
//! A path is read by position, never by searching for a keyword: a database may be named `colls`.
//! What a POST on a feed means is said by headers; the order in which they are asked is part of the
//! contract, since a plan request may or may not also call itself a query.
//!
//! ELSEWHERE  The handlers: `routes::*`, one file per branch of the tree.

pub mod containers;
pub mod databases;
pub mod feeds;
pub mod items;
pub mod offers;
mod pages;
pub mod resources;
pub mod scripts;

use base::Deadline;
use bytes::Bytes;
use engine::ops::ResourceKind;
use hyper::body::Body;
use hyper::{HeaderMap, Method};

use crate::body;
use crate::call::Call;
use crate::decode;
use crate::encode::Reply;
use crate::error::{Error, Result, not_allowed, not_supported};
use crate::headers;
use crate::path::Path;

/// What stands at a place of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The account.
    Account,
    /// A database.
    Database,
    /// A container.
    Container,
    /// An item.
    Item,
    /// A stored procedure, trigger or UDF.
    Script,
    /// A conflict between regions.
    Conflict,
    /// A physical partition.
    Range,
    /// The deletion of a logical partition.
    PartitionDelete,
    /// A user.
    User,
    /// A permission.
    Permission,
    /// A client encryption key.
    ClientEncryptionKey,
    /// Provisioned throughput.
    Offer,
}

/// What is to be done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Action {
    /// Make a new one.
    Create,
    /// Make or replace one.
    Upsert,
    /// Read one.
    Read,
    /// Replace one.
    Replace,
    /// Change some properties.
    Patch,
    /// Remove one.
    Delete,
    /// Read a page of all.
    List,
    /// Read a page of those that match.
    Query,
    /// Explain to a client how to merge the answers of several ranges.
    Plan,
    /// Read a page of changes.
    ChangeFeed,
    /// Several writes, all or nothing.
    Batch,
    /// Several writes, each for itself.
    Bulk,
    /// Run a script.
    Execute,
}

impl Action {
    /// Whether read-only credentials are not enough.
    pub fn is_write(self) -> bool {
        match self {
            Action::Create | Action::Upsert | Action::Replace | Action::Patch => true,
            Action::Delete | Action::Batch | Action::Bulk | Action::Execute => true,
            Action::Read | Action::List | Action::Query | Action::Plan => false,
            Action::ChangeFeed => false,
        }
    }
}

/// A place of the tree: one resource, or the feed of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// What stands there.
    pub kind: Kind,
    /// The feed, not one of them.
    pub is_feed: bool,
}

impl Target {
    /// Finds a path in the tree; `None` if nothing of ours is there.
    pub fn of(path: &Path<'_>) -> Option<Target> {
        let kind = match (path.len(), path.segment(0), path.segment(2), path.segment(4)) {
            (0, ..) => Kind::Account,
            (1 | 2, "dbs", ..) => Kind::Database,
            (1 | 2, "offers", ..) => Kind::Offer,
            (3 | 4, "dbs", "colls", _) => Kind::Container,
            (3 | 4, "dbs", "users", _) => Kind::User,
            (3 | 4, "dbs", "clientencryptionkeys", _) => Kind::ClientEncryptionKey,
            (5 | 6, "dbs", "users", "permissions") => Kind::Permission,
            (5 | 6, "dbs", "colls", "docs") => Kind::Item,
            (5 | 6, "dbs", "colls", "sprocs" | "triggers" | "udfs") => Kind::Script,
            (5 | 6, "dbs", "colls", "conflicts") => Kind::Conflict,
            (5, "dbs", "colls", "pkranges") => Kind::Range,
            (6, "dbs", "colls", "operations") if path.segment(5) == "partitionkeydelete" => {
                Kind::PartitionDelete
            }
            _ => return None,
        };
        Some(Target { kind, is_feed: path.len() % 2 == 1 })
    }

    /// What a request does here.
    pub fn action(self, method: &Method, headers: &HeaderMap) -> Result<Action> {
        let action = match (self.kind, self.is_feed) {
            (Kind::PartitionDelete, _) => on_operation(method),
            (Kind::Account, _) => only_read(method, Action::Read),
            (Kind::Range, _) => only_read(method, Action::List),
            (Kind::Item, true) => on_items(method, headers),
            (_, true) => on_feed(method, headers),
            (Kind::Script, false) if method == Method::POST => Some(Action::Execute),
            (_, false) => on_resource(method),
        };
        let action = action.ok_or(Error::MethodNotAllowed)?;
        if self.allows(action) { Ok(action) } else { Err(Error::MethodNotAllowed.into()) }
    }

    /// Whether a write here runs the triggers it names.
    fn fires(self, action: Action) -> bool {
        self.kind == Kind::Item && !matches!(action, Action::Batch | Action::Bulk)
    }

    /// Some resources cannot be made, replaced or patched by clients.
    fn allows(self, action: Action) -> bool {
        match (self.kind, action) {
            (Kind::Item | Kind::Script, _) => true,
            (_, Action::Patch) => false,
            (Kind::Database, Action::Replace | Action::Upsert) => false,
            (Kind::Container, Action::Upsert) => false,
            (Kind::Offer, Action::Create | Action::Upsert | Action::Delete) => false,
            (Kind::Conflict, Action::Create | Action::Upsert | Action::Replace) => false,
            (Kind::ClientEncryptionKey, Action::Upsert) => false,
            _ => true,
        }
    }
}

fn only_read(method: &Method, action: Action) -> Option<Action> {
    (method == Method::GET).then_some(action)
}

fn on_operation(method: &Method) -> Option<Action> {
    (method == Method::POST).then_some(Action::Delete)
}

fn on_resource(method: &Method) -> Option<Action> {
    match *method {
        Method::GET => Some(Action::Read),
        Method::PUT => Some(Action::Replace),
        Method::PATCH => Some(Action::Patch),
        Method::DELETE => Some(Action::Delete),
        _ => None,
    }
}

fn on_feed(method: &Method, headers: &HeaderMap) -> Option<Action> {
    let says = |name| headers::is_true(headers, name);
    match *method {
        Method::GET => Some(Action::List),
        Method::POST if is_query(headers) => Some(Action::Query),
        Method::POST if says(&headers::IS_UPSERT) => Some(Action::Upsert),
        Method::POST => Some(Action::Create),
        _ => None,
    }
}

fn on_items(method: &Method, headers: &HeaderMap) -> Option<Action> {
    let says = |name| headers::is_true(headers, name);
    match *method {
        Method::GET if headers.contains_key(&headers::A_IM) => Some(Action::ChangeFeed),
        Method::POST if says(&headers::IS_QUERY_PLAN) => Some(Action::Plan),
        Method::POST if says(&headers::IS_BATCH) && says(&headers::BATCH_ATOMIC) => {
            Some(Action::Batch)
        }
        Method::POST if says(&headers::IS_BATCH) => Some(Action::Bulk),
        _ => on_feed(method, headers),
    }
}

/// Old clients mark a query by its content type alone.
fn is_query(headers: &HeaderMap) -> bool {
    headers::is_true(headers, &headers::IS_QUERY)
        || headers::text(headers, &hyper::header::CONTENT_TYPE)
            .is_some_and(|kind| kind.starts_with("application/query+json"))
}

/// Serves what is not a point read. The body is read here: its sender is known by now.
pub async fn dispatch<B>(call: &Call<'_>, target: Target, body: B) -> Result<Reply>
where
    B: Body<Data = Bytes> + Unpin,
{
    let limits = call.gateway.limits();
    let body = body::read(call.headers, body, limits).await?;
    // A body has its own time to arrive; that of the operation begins now.
    let call = &Call { deadline: Deadline::after(limits.operation_timeout), ..*call };
    match target.kind {
        Kind::Item => on_container_items(call, &body).await,
        Kind::PartitionDelete => feeds::delete_partition(call).await,
        Kind::Range => containers::ranges(call),
        Kind::Script => scripts::serve(call, body).await,
        Kind::Conflict => scripts::conflicts(call),
        Kind::Database => databases::serve(call, body).await,
        Kind::Container => containers::serve(call, body).await,
        Kind::Offer => offers::serve(call, body).await,
        Kind::User => resources::serve(call, ResourceKind::User, body).await,
        Kind::Permission => resources::serve(call, ResourceKind::Permission, body).await,
        Kind::ClientEncryptionKey => {
            resources::serve(call, ResourceKind::ClientEncryptionKey, body).await
        }
        Kind::Account => not_allowed(),
    }
}

async fn on_container_items(call: &Call<'_>, body: &[u8]) -> Result<Reply> {
    match call.action {
        Action::Read => items::read(call),
        Action::Create | Action::Upsert | Action::Replace | Action::Patch | Action::Delete => {
            items::write(call, body).await
        }
        Action::Batch => items::batch(call, body).await,
        Action::Bulk => items::bulk(call, body).await,
        Action::List => feeds::list(call).await,
        Action::Query => feeds::query(call, body).await,
        Action::Plan => feeds::plan(call, body).await,
        Action::ChangeFeed => feeds::changes(call).await,
        Action::Execute => not_allowed(),
    }
}

/// Refuses options that exist in the protocol and not here; nothing is silently ignored.
pub fn refuse_unsupported(target: Target, action: Action, headers: &HeaderMap) -> Result<()> {
    if action.is_write() && !target.fires(action) && decode::names_triggers(headers) {
        return Err(not_supported(
            "Triggers run on writes of single items only, neither in batches nor on other \
             resources.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyper::Uri;
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn target(path: &str) -> Option<Target> {
        let uri: Uri = path.parse().unwrap();
        Target::of(&Path::parse(&uri).unwrap())
    }

    fn action(
        method: &str,
        path: &str,
        headers: &[(&'static str, &'static str)],
    ) -> Option<Action> {
        let headers = headers
            .iter()
            .map(|(name, text)| (HeaderName::from_static(name), HeaderValue::from_static(text)))
            .collect();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        target(path).unwrap().action(&method, &headers).ok()
    }

    #[test]
    fn every_branch_of_the_tree() {
        let cases = [
            ("/", Kind::Account),
            ("/dbs/d", Kind::Database),
            ("/offers/x", Kind::Offer),
            ("/dbs/d/colls/c", Kind::Container),
            ("/dbs/d/users/u", Kind::User),
            ("/dbs/d/users/u/permissions/p", Kind::Permission),
            ("/dbs/d/clientencryptionkeys/k", Kind::ClientEncryptionKey),
            ("/dbs/d/colls/c/docs/i", Kind::Item),
            ("/dbs/d/colls/c/sprocs/s", Kind::Script),
            ("/dbs/d/colls/c/triggers/s", Kind::Script),
            ("/dbs/d/colls/c/udfs/s", Kind::Script),
            ("/dbs/d/colls/c/conflicts/x", Kind::Conflict),
            ("/dbs/d/colls/c/operations/partitionkeydelete", Kind::PartitionDelete),
            ("/dbs/colls/colls/docs/docs/users", Kind::Item),
        ];
        for (path, kind) in cases {
            assert_eq!(target(path), Some(Target { kind, is_feed: false }), "{path}");
        }
        let feeds = [
            ("/dbs", Kind::Database),
            ("/offers", Kind::Offer),
            ("/dbs/d/colls/c/pkranges", Kind::Range),
            ("/dbs/d/colls/c/docs/", Kind::Item),
        ];
        for (path, kind) in feeds {
            assert_eq!(target(path), Some(Target { kind, is_feed: true }), "{path}");
        }
    }

    #[test]
    fn nothing_is_there() {
        for path in [
            "/media",
            "/topology",
            "/docs",
            "/dbs/d/docs",
            "/dbs/d/colls/c/schemas",
            "/dbs/d/colls/c/docs/i/attachments",
            "/dbs/d/colls/c/docs/i/attachments/a",
            "/dbs/d/colls/c/operations/other",
            "/dbs/d/colls/c/pkranges/0",
            "/_explorer",
        ] {
            assert_eq!(target(path), None, "{path}");
        }
    }

    #[test]
    fn trap_15_a_plan_is_recognized_before_a_query() {
        let path = "/dbs/d/colls/c/docs";
        let plan = ("x-ms-cosmos-is-query-plan-request", "True");
        let query = ("x-ms-documentdb-isquery", "True");
        assert_eq!(action("POST", path, &[plan]), Some(Action::Plan));
        assert_eq!(action("POST", path, &[plan, query]), Some(Action::Plan));
        assert_eq!(action("POST", path, &[query]), Some(Action::Query));
        let typed = ("content-type", "application/query+json");
        assert_eq!(action("POST", path, &[typed]), Some(Action::Query));
    }

    #[test]
    fn trap_34_headers_that_some_clients_always_send() {
        let always = [
            ("x-ms-documentdb-query-enablecrosspartition", "true"),
            ("x-ms-cosmos-allow-tentative-writes", "true"),
        ];
        assert_eq!(action("POST", "/dbs/d/colls/c/docs", &always), Some(Action::Create));
        assert_eq!(action("GET", "/dbs/d/colls/c/docs/i", &always), Some(Action::Read));
    }

    #[test]
    fn what_a_post_on_items_means() {
        let path = "/dbs/d/colls/c/docs";
        let batch = ("x-ms-cosmos-is-batch-request", "true");
        let atomic = ("x-ms-cosmos-batch-atomic", "true");
        assert_eq!(action("POST", path, &[]), Some(Action::Create));
        assert_eq!(
            action("POST", path, &[("x-ms-documentdb-is-upsert", "True")]),
            Some(Action::Upsert)
        );
        assert_eq!(action("POST", path, &[batch, atomic]), Some(Action::Batch));
        assert_eq!(action("POST", path, &[batch]), Some(Action::Bulk));
        assert_eq!(action("GET", path, &[("a-im", "Incremental feed")]), Some(Action::ChangeFeed));
        assert_eq!(action("GET", path, &[]), Some(Action::List));
    }

    #[test]
    fn verbs_that_are_not_allowed() {
        for (method, path) in [
            ("PUT", "/"),
            ("TRACE", "/dbs"),
            ("PATCH", "/dbs/d"),
            ("PUT", "/dbs/d"),
            ("POST", "/dbs/d/colls/c"),
            ("PUT", "/dbs/d/colls/c/docs"),
            ("POST", "/dbs/d/colls/c/pkranges"),
            ("GET", "/dbs/d/colls/c/operations/partitionkeydelete"),
            ("POST", "/offers"),
            ("DELETE", "/offers/x"),
            ("BREW", "/dbs/d/colls/c/docs/i"),
        ] {
            assert_eq!(action(method, path, &[]), None, "{method} {path}");
        }
    }

    #[test]
    fn unsupported_options_are_refused() {
        let items = target("/dbs/d/colls/c/docs").unwrap();
        let scripts = target("/dbs/d/colls/c/sprocs/s").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(&headers::PRE_TRIGGER_INCLUDE, HeaderValue::from_static("t1"));
        assert!(refuse_unsupported(items, Action::Create, &headers).is_ok());
        assert!(refuse_unsupported(items, Action::Batch, &headers).is_err());
        assert!(refuse_unsupported(items, Action::Bulk, &headers).is_err());
        assert!(refuse_unsupported(items, Action::Query, &headers).is_ok());
        assert!(refuse_unsupported(scripts, Action::Execute, &headers).is_err());
        headers.insert(&headers::PRE_TRIGGER_INCLUDE, HeaderValue::from_static(""));
        assert!(refuse_unsupported(scripts, Action::Execute, &headers).is_ok());
    }
}
