//! A host for tests: items in a map, and a few forms of queries.
//!
//! It refuses as the engine does (404, 409, 412, 304), numbers its writes, and keeps what it was asked.
//! Queries see the items as they were at the start, reads see the writes of the script.

#![allow(dead_code, clippy::unwrap_used)] // Not every test uses everything; a test that cannot go on fails there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use item::{Draft, Item, Stamp, Value};
use parking_lot::Mutex;
use script::{
    Call, Collection, Failure, Host, HostError, ItemLink, Limits, Operation, Outcome, Page, Pool,
    PoolOptions, Program, Reply, Role, Session, Stop,
};

pub const SELF_LINK: &str = "dbs/AAAAAA==/colls/AAAAAIAAAAA=/";
pub const ALT_LINK: &str = "dbs/blog/colls/posts";

/// What is committed, shared by all executions of a test.
#[derive(Clone, Default)]
pub struct Shelf {
    items: Arc<Mutex<BTreeMap<String, Item>>>,
    pub asked: Arc<Mutex<Vec<String>>>,
    /// Hosts that are alive; a lock would be held as long.
    pub alive: Arc<()>,
    /// Operations after which no more are accepted.
    pub accepts_max: Option<usize>,
}

impl Shelf {
    pub fn with(bodies: &[&str]) -> Shelf {
        let shelf = Shelf::default();
        let mut host = shelf.open();
        for body in bodies {
            host.create(&Value::parse(body.as_bytes()).unwrap()).unwrap();
        }
        host.commit();
        shelf
    }

    pub fn open(&self) -> Desk {
        let snapshot = self.items.lock().clone();
        Desk {
            staged: snapshot.clone(),
            snapshot,
            shelf: self.clone(),
            asked: 0,
            alive: self.alive.clone(),
        }
    }

    pub fn hosts_alive(&self) -> usize {
        // The shelf itself holds one, and each of its clones.
        Arc::strong_count(&self.alive)
    }

    /// Texts without system properties.
    pub fn texts(&self) -> Vec<String> {
        self.items.lock().values().map(|item| item.to_draft().root().raw().to_owned()).collect()
    }

    pub fn len(&self) -> usize {
        self.items.lock().len()
    }
}

/// One transaction on a shelf.
pub struct Desk {
    shelf: Shelf,
    snapshot: BTreeMap<String, Item>,
    staged: BTreeMap<String, Item>,
    asked: usize,
    alive: Arc<()>,
}

impl Desk {
    pub fn commit(self) {
        *self.shelf.items.lock() = self.staged;
    }

    pub fn item(&self, id: &str) -> Option<Item> {
        self.staged.get(id).cloned()
    }

    pub fn create(&mut self, body: &Value) -> Result<Item, HostError> {
        let id = self.id_of(body)?;
        if self.staged.contains_key(&id) {
            return Err(refused(409, "Resource with specified id or name already exists."));
        }
        Ok(self.put(&id, body))
    }

    fn id_of(&self, body: &Value) -> Result<String, HostError> {
        let id = body.get("id").as_str().map(str::to_owned);
        id.filter(|id| !id.is_empty()).ok_or_else(|| refused(400, "The item has no id."))
    }

    fn put(&mut self, id: &str, body: &Value) -> Item {
        let ordinal = self.staged.get(id).map_or(self.staged.len() as u64 + 1, Item::ordinal);
        let lsn = self.staged.values().map(Item::lsn).max().unwrap_or_default() + 1;
        let rid = format!("AAAAAIAAAAA{ordinal:011}==");
        let stamp = Stamp {
            rid: &rid,
            self_link: &format!("{SELF_LINK}docs/{rid}/"),
            etag: &format!("00000000-0000-0000-0000-{lsn:012}"),
            ts: 1_700_000_000,
            lsn,
            position: 0,
            ordinal,
            is_indexed: true,
        };
        let item = Draft::from_value(body).unwrap().stamp(&stamp);
        self.staged.insert(id.to_owned(), item.clone());
        item
    }

    fn find(&self, link: &ItemLink) -> Result<Item, HostError> {
        let found = match link {
            ItemLink::Id(id) => self.staged.get(id),
            ItemLink::Rid(rid) => self.staged.values().find(|item| item.rid() == rid),
        };
        found.cloned().ok_or_else(|| {
            refused(404, "Entity with the specified id does not exist in the system.")
        })
    }

    fn check(&self, item: &Item, etag: Option<&String>) -> Result<(), HostError> {
        match etag {
            Some(etag) if etag.trim_matches('"') != item.etag() => {
                Err(refused(412, "One of the specified pre-condition is not met."))
            }
            _ => Ok(()),
        }
    }

    fn query(&self, text: &str, page: &Page) -> Result<Reply, HostError> {
        let mut items: Vec<&Item> = self.snapshot.values().collect();
        if text.contains("SELECT VALUE COUNT(1)") {
            let rows = vec![Bytes::from(items.len().to_string())];
            return Ok(Reply::Page { rows, continuation: None });
        }
        if text.contains("broken") {
            return Err(refused(400, "Syntax error, incorrect syntax near 'broken'."));
        }
        if let Some((_, user)) = text.split_once("p.userId = '") {
            let user = user.trim_end_matches('\'');
            items.retain(|item| item.root().to_value().get("userId").as_str() == Some(user));
        }
        if let Some((_, order)) = text.split_once("ORDER BY ") {
            let name = order.trim_start_matches("f.").trim_start_matches("c[\"");
            let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
            let key = |item: &Item| item.root().to_value().get(&name).to_json();
            items.sort_by_key(|item| key(item));
            if order.ends_with("DESC") {
                items.reverse();
            }
        }
        if let Some((_, top)) = text.split_once("TOP ") {
            let top = top.split(' ').next().unwrap_or_default().trim_matches(['(', ')']);
            items.truncate(top.parse().unwrap());
        }
        Ok(paged(&items, page))
    }

    fn answer(&mut self, operation: &Operation) -> Result<Reply, HostError> {
        match operation {
            Operation::Read { item, if_none_match } => {
                let item = self.find(item)?;
                let is_current =
                    if_none_match.as_ref().map(|etag| etag.trim_matches('"')) == Some(item.etag());
                Ok(if is_current { Reply::NotModified } else { Reply::Item(item) })
            }
            Operation::ReadFeed { page } => {
                Ok(paged(&self.snapshot.values().collect::<Vec<_>>(), page))
            }
            Operation::Query { text, page, .. } => self.query(text, page),
            Operation::Create { body, .. } => self.create(body).map(Reply::Created),
            Operation::Upsert { body, etag, .. } => {
                let id = self.id_of(body)?;
                match self.staged.get(&id).cloned() {
                    Some(old) => {
                        self.check(&old, etag.as_ref())?;
                        Ok(Reply::Item(self.put(&id, body)))
                    }
                    None => Ok(Reply::Created(self.put(&id, body))),
                }
            }
            Operation::Replace { item, body, etag, .. } => {
                let old = self.find(item)?;
                self.check(&old, etag.as_ref())?;
                self.id_of(body)?;
                let id = old.id().unwrap().into_owned();
                Ok(Reply::Item(self.put(&id, body)))
            }
            Operation::Delete { item, etag } => {
                let old = self.find(item)?;
                self.check(&old, etag.as_ref())?;
                self.staged.remove(&*old.id().unwrap());
                Ok(Reply::Deleted)
            }
        }
    }
}

fn paged(items: &[&Item], page: &Page) -> Reply {
    let from: usize = page.continuation.as_ref().map_or(0, |token| token.parse().unwrap());
    let rows = items.iter().skip(from).take(page.items_max).map(|item| item.text()).collect();
    let end = from + page.items_max;
    Reply::Page { rows, continuation: (end < items.len()).then(|| end.to_string()) }
}

fn refused(number: u16, message: &str) -> HostError {
    HostError::Refused { number, message: message.to_owned() }
}

impl Host for Desk {
    fn accepts(&mut self) -> bool {
        self.shelf.accepts_max.is_none_or(|max| self.asked < max)
    }

    fn run(&mut self, operation: Operation) -> Result<Reply, HostError> {
        self.asked += 1;
        self.shelf.asked.lock().push(shown(&operation));
        if let Operation::Query { text, .. } = &operation {
            match text.as_str() {
                "panic" => panic!("the host panicked"),
                "fatal" => return Err(HostError::Fatal),
                _ => {}
            }
        }
        self.answer(&operation)
    }

    fn evaluate(
        &mut self,
        expression: &str,
        parameters: Vec<(String, Value)>,
    ) -> Result<Value, HostError> {
        let shown: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.shelf.asked.lock().push(format!("evaluate {expression} {}", shown.join(" ")));
        if parameters.iter().any(|(_, value)| value.get("type").is_undefined()) {
            return Err(refused(400, "Not a geometry."));
        }
        Ok(Value::Number(42.0))
    }
}

/// An operation as golden files show it.
fn shown(operation: &Operation) -> String {
    let link = |link: &ItemLink| match link {
        ItemLink::Id(id) => format!("id {id}"),
        ItemLink::Rid(rid) => format!("rid {rid}"),
    };
    let with = |name: &str, value: &Option<String>| {
        value.as_ref().map_or(String::new(), |value| format!(" {name}={value}"))
    };
    let indexed =
        |value: &Option<bool>| value.map_or("", |is| if is { " indexed" } else { " unindexed" });
    let page = |page: &Page| format!("max={}{}", page.items_max, with("from", &page.continuation));
    match operation {
        Operation::Read { item, if_none_match } => {
            format!("read {}{}", link(item), with("unless", if_none_match))
        }
        Operation::ReadFeed { page: which } => format!("feed {}", page(which)),
        Operation::Query { text, parameters, page: which, is_scan_enabled } => {
            let parameters: String =
                parameters.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let scan = if *is_scan_enabled { " scan" } else { "" };
            format!("query {text}{parameters} {}{scan}", page(which))
        }
        Operation::Create { body, is_indexed } => {
            format!("create {}{}", without_guid(body), indexed(is_indexed))
        }
        Operation::Upsert { body, etag, is_indexed } => {
            format!("upsert {}{}{}", without_guid(body), with("etag", etag), indexed(is_indexed))
        }
        Operation::Replace { item, body, etag, is_indexed } => {
            format!("replace {} {body}{}{}", link(item), with("etag", etag), indexed(is_indexed))
        }
        Operation::Delete { item, etag } => format!("delete {}{}", link(item), with("etag", etag)),
    }
}

/// Texts with what is random replaced.
pub fn without_guid(value: &Value) -> String {
    let Some(object) = value.as_object() else { return value.to_json() };
    let mut object = object.clone();
    if let Some(Value::String(id)) = object.get_mut("id").cloned()
        && id.len() == 36
    {
        object.insert("id", Value::from("<guid>"));
    }
    Value::object(object).to_json()
}

pub fn collection() -> Collection {
    Collection {
        self_link: SELF_LINK.to_owned(),
        alt_link: ALT_LINK.to_owned(),
        size_mb: 2.0,
        size_mb_max: 1024.0,
    }
}

pub fn call(source: &str, role: Role) -> Call {
    let program = Arc::new(Program::compile("script", source).unwrap());
    Call { program, role, collection: collection(), is_logging: true }
}

pub fn procedure(arguments: &[Value]) -> Role {
    Role::Procedure { arguments: arguments.to_vec() }
}

/// Short times, so that a test of a limit takes no longer than it has to.
pub fn short_limits() -> Limits {
    Limits {
        run: Duration::from_millis(300),
        accept: Duration::from_millis(240),
        ..Limits::default()
    }
}

pub fn pool(limits: Limits) -> Pool {
    Pool::new(PoolOptions { threads: 2, limits })
}

/// Submits work and waits for its answer.
pub fn wait<H: Send + 'static, T: Send + 'static>(
    pool: &Pool,
    host: H,
    work: impl FnOnce(&mut Session<'_, H>) -> T + Send + 'static,
) -> Result<T, Stop> {
    let (sender, receiver) = mpsc::channel();
    let running = pool.submit(host, None, work, move |answer| drop(sender.send(answer)));
    let answer = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    drop(running);
    answer
}

/// Runs a script and commits what it did, unless it fails.
pub fn execute(pool: &Pool, shelf: &Shelf, call: Call) -> Result<Outcome, Failure> {
    wait(pool, shelf.open(), move |session| {
        let outcome = session.execute(&call)?;
        session.take_host().map_err(|_| Failure::Revoked)?.commit();
        Ok(outcome)
    })
    .unwrap()
}

/// Waits for something that another thread does; fails after a minute.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::yield_now();
    }
}
