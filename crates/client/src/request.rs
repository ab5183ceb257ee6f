//! What to ask of a server, as values.

use bytes::Bytes;
use model::partition_key::PartitionKey;
use serde_json::{Value, json};

use crate::batch::Operation;
use crate::headers;
use crate::link::Link;
use crate::sign::Key;

/// The protocol version this client speaks.
const VERSION: &str = "2020-07-15";

/// The verbs of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Get,
    /// Creates, queries, batches.
    Post,
    /// Replaces.
    Put,
    /// Changes parts.
    Patch,
    /// Deletes.
    Delete,
}

impl Verb {
    /// As it stands in a request line.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
        }
    }

    /// As it is signed.
    pub fn signed(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Post => "post",
            Verb::Put => "put",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
        }
    }
}

/// One request, without where it goes and who sends it.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) verb: Verb,
    pub(crate) link: Link,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Request {
    /// Creates a database.
    pub fn create_database(name: &str) -> Request {
        let body = json!({"id": name}).to_string();
        Request::new(Verb::Post, Link::databases()).with_body(body)
    }

    /// Deletes a database and everything in it.
    pub fn delete_database(name: &str) -> Request {
        Request::new(Verb::Delete, Link::database(name))
    }

    /// Any request.
    pub fn new(verb: Verb, link: Link) -> Request {
        let headers = vec![(headers::VERSION, VERSION.to_owned())];
        Request { verb, link, headers, body: Bytes::new() }
    }

    /// The request with one more header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    /// The request with a body.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Request {
        self.body = body.into();
        self
    }

    /// The request for a logical partition.
    pub fn with_key(self, key: &PartitionKey) -> Request {
        self.with(headers::PARTITION_KEY, ascii(&key.to_array()))
    }

    /// The request on behalf of a client that has seen this much.
    pub fn with_session(self, token: impl Into<String>) -> Request {
        self.with(headers::SESSION_TOKEN, token)
    }

    /// The request whose answer has no body the client knows already.
    pub fn minimal(self) -> Request {
        self.with(headers::PREFER, "return=minimal")
    }

    /// The request with a trigger that runs before the write.
    pub fn with_pre_trigger(self, name: &str) -> Request {
        self.with(headers::PRE_TRIGGER, name)
    }

    /// The request with a trigger that runs behind the write, within it.
    pub fn with_post_trigger(self, name: &str) -> Request {
        self.with(headers::POST_TRIGGER, name)
    }

    /// The request for the version with this etag only.
    pub fn if_match(self, etag: &str) -> Request {
        self.with(headers::IF_MATCH, etag)
    }

    /// The request for the next page of a feed or query.
    pub fn after(self, continuation: &str) -> Request {
        self.with(headers::CONTINUATION, continuation)
    }

    /// The path it goes to.
    pub fn path(&self) -> &str {
        self.link.path()
    }

    /// The request as it goes over an HTTP/1.1 connection, signed.
    pub fn to_bytes(&self, key: &Key, host: &str, date: &str) -> Vec<u8> {
        let (verb, path) = (self.verb.as_str(), self.link.path());
        let authorization = key.sign(self.verb, &self.link, date);
        let mut head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {host}\r\n{}: {date}\r\n\
             authorization: {authorization}\r\n",
            headers::DATE
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.verb != Verb::Get {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }
}

/// A header holds ASCII only; JSON can say everything in it.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c.is_ascii() {
            true => out.push(c),
            false => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out
}

/// A container by its names, and what can be asked of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Container {
    database: String,
    name: String,
}

/// Which part of a container a feed covers.
#[derive(Clone, Debug)]
pub enum Scope<'a> {
    /// All of it.
    Whole,
    /// One physical partition, by its id.
    Range(&'a str),
    /// One logical partition.
    Key(&'a PartitionKey),
}

/// Where a change feed begins.
#[derive(Clone, Copy, Debug)]
pub enum Changes<'a> {
    /// With the oldest change of what is still there.
    FromBeginning,
    /// With the next change.
    FromNow,
    /// Behind the page that had this etag.
    After(&'a str),
}

/// When a trigger runs.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// Before the write rather than behind it.
    pub is_before: bool,
    /// The writes it may run with: `All`, `Create`, `Replace`, `Upsert` or `Delete`.
    pub operation: &'a str,
}

impl Container {
    /// A container of a database.
    pub fn new(database: &str, name: &str) -> Container {
        Container { database: database.to_owned(), name: name.to_owned() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Creates the container with everything as usual but its partition key.
    pub fn create_keyed_by(&self, path: &str, throughput: Option<u32>) -> Request {
        let key = json!({"paths": [path], "kind": "Hash", "version": 2});
        self.create_with(&json!({"id": self.name, "partitionKey": key}), throughput)
    }

    /// Creates the container with a definition, whose `id` should be its name.
    pub fn create_with(&self, definition: &Value, throughput: Option<u32>) -> Request {
        let request = Request::new(Verb::Post, Link::containers(&self.database))
            .with_body(definition.to_string());
        match throughput {
            Some(throughput) => request.with(headers::OFFER_THROUGHPUT, throughput.to_string()),
            None => request,
        }
    }

    /// The physical partitions.
    pub fn ranges(&self) -> Request {
        Request::new(Verb::Get, Link::ranges(&self.database, &self.name))
    }

    /// A new trigger: one JavaScript function that runs with writes that name it.
    pub fn create_trigger(&self, name: &str, body: &str, when: Trigger<'_>) -> Request {
        let body = json!({
            "id": name,
            "body": body,
            "triggerType": if when.is_before { "Pre" } else { "Post" },
            "triggerOperation": when.operation,
        });
        Request::new(Verb::Post, Link::triggers(&self.database, &self.name))
            .with_body(body.to_string())
    }

    /// A new item.
    pub fn create(&self, key: &PartitionKey, body: impl Into<Bytes>) -> Request {
        Request::new(Verb::Post, self.items()).with_key(key).with_body(body)
    }

    /// A new item, or a new version of the one that is there.
    pub fn upsert(&self, key: &PartitionKey, body: impl Into<Bytes>) -> Request {
        self.create(key, body).with(headers::IS_UPSERT, "true")
    }

    /// A point read.
    pub fn read(&self, key: &PartitionKey, id: &str) -> Request {
        Request::new(Verb::Get, self.item(id)).with_key(key)
    }

    /// A new version of an item.
    pub fn replace(&self, key: &PartitionKey, id: &str, body: impl Into<Bytes>) -> Request {
        Request::new(Verb::Put, self.item(id)).with_key(key).with_body(body)
    }

    /// Changes in parts of an item: a JSON object with the `operations`.
    pub fn patch(&self, key: &PartitionKey, id: &str, changes: impl Into<Bytes>) -> Request {
        Request::new(Verb::Patch, self.item(id)).with_key(key).with_body(changes)
    }

    /// No item any more.
    pub fn delete(&self, key: &PartitionKey, id: &str) -> Request {
        Request::new(Verb::Delete, self.item(id)).with_key(key)
    }

    /// Several writes in one logical partition, all or nothing.
    pub fn batch(&self, key: &PartitionKey, operations: &[Operation<'_>]) -> Request {
        let body = array(operations.iter().map(|operation| (operation, None)));
        self.operations("true", body).with_key(key)
    }

    /// Independent writes in one request, each with its partition key as a JSON array.
    pub fn bulk(&self, operations: &[(String, Operation<'_>)]) -> Request {
        let body = array(operations.iter().map(|(key, operation)| (operation, Some(&key[..]))));
        self.operations("false", body).with(headers::CONTINUE_ON_ERROR, "true")
    }

    /// A page of items, in the order they are stored.
    pub fn list(&self, continuation: Option<&str>, items_max: usize) -> Request {
        let request = self.page(items_max);
        match continuation {
            Some(continuation) => request.with(headers::CONTINUATION, continuation),
            None => request,
        }
    }

    /// A page of a query over the whole container, unless a key is given with it. Parameters have
    /// their names with the `@`; -1 items are as many as the server likes.
    pub fn query(&self, text: &str, parameters: &[(&str, Value)], items_max: i64) -> Request {
        let parameters =
            parameters.iter().map(|(name, value)| json!({"name": name, "value": value}));
        let parameters = parameters.collect::<Vec<Value>>();
        Request::new(Verb::Post, self.items())
            .with(headers::IS_QUERY, "true")
            .with(headers::CROSS_PARTITION, "true")
            .with(headers::CONTENT_TYPE, "application/query+json")
            .with(headers::MAX_ITEM_COUNT, items_max.to_string())
            .with_body(json!({"query": text, "parameters": parameters}).to_string())
    }

    /// A page of the change feed; the reply has status 304 if nothing is new.
    pub fn changes(&self, scope: &Scope<'_>, from: Changes<'_>, items_max: usize) -> Request {
        let request = self.page(items_max).with(headers::A_IM, "Incremental Feed");
        let request = match scope {
            Scope::Whole => request,
            Scope::Range(id) => request.with(headers::RANGE_ID, *id),
            Scope::Key(key) => request.with_key(key),
        };
        match from {
            Changes::FromBeginning => request,
            Changes::FromNow => request.with(headers::IF_NONE_MATCH, "*"),
            Changes::After(etag) => request.with(headers::IF_NONE_MATCH, etag),
        }
    }

    /// A new stored procedure: the text of one JavaScript function.
    pub fn create_procedure(&self, id: &str, text: &str) -> Request {
        Request::new(Verb::Post, Link::procedures(&self.database, &self.name))
            .with_body(json!({"id": id, "body": text}).to_string())
    }

    /// A new user-defined function: the text of one JavaScript function.
    pub fn create_function(&self, id: &str, text: &str) -> Request {
        Request::new(Verb::Post, Link::functions(&self.database, &self.name))
            .with_body(json!({"id": id, "body": text}).to_string())
    }

    /// Runs a stored procedure in a logical partition; the arguments are a JSON array.
    pub fn execute(&self, id: &str, key: &PartitionKey, arguments: impl Into<Bytes>) -> Request {
        Request::new(Verb::Post, Link::procedure(&self.database, &self.name, id))
            .with_key(key)
            .with_body(arguments)
    }

    fn operations(&self, is_atomic: &str, body: String) -> Request {
        Request::new(Verb::Post, self.items())
            .with(headers::IS_BATCH, "true")
            .with(headers::BATCH_ATOMIC, is_atomic)
            .with_body(body)
    }

    fn page(&self, items_max: usize) -> Request {
        Request::new(Verb::Get, self.items()).with(headers::MAX_ITEM_COUNT, items_max.to_string())
    }

    fn items(&self) -> Link {
        Link::items(&self.database, &self.name)
    }

    fn item(&self, id: &str) -> Link {
        Link::item(&self.database, &self.name, id)
    }
}

fn array<'o>(operations: impl Iterator<Item = (&'o Operation<'o>, Option<&'o str>)>) -> String {
    let mut body = String::from("[");
    for (at, (operation, key)) in operations.enumerate() {
        if at > 0 {
            body.push(',');
        }
        operation.write(&mut body, key);
    }
    body.push(']');
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> PartitionKey {
        PartitionKey::parse(text).unwrap()
    }

    #[test]
    fn keys_travel_in_ascii() {
        let request = Container::new("d", "c").read(&key(r#"["é😀",1]"#), "a");
        let sent = request.headers.iter().find(|(name, _)| *name == headers::PARTITION_KEY);
        assert_eq!(sent.unwrap().1, r#"["\u00e9\ud83d\ude00",1]"#);
    }

    #[test]
    fn a_request_as_bytes() {
        let request = Container::new("d", "c").create(&key("[1]"), "{}");
        let bytes = request.to_bytes(&Key::development(), "localhost:1", "now");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("POST /dbs/d/colls/c/docs HTTP/1.1\r\nhost: localhost:1\r\n"));
        assert!(text.contains("\r\nauthorization: type%3Dmaster%26ver%3D1.0%26sig%3D"));
        assert!(text.ends_with("\r\ncontent-length: 2\r\n\r\n{}"));
    }

    #[test]
    fn an_execution_as_bytes() {
        let request = Container::new("d", "c").execute("p", &key(r#"["k"]"#), r#"["k",1]"#);
        let bytes = request.to_bytes(&Key::development(), "localhost:1", "now");
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("POST /dbs/d/colls/c/sprocs/p HTTP/1.1\r\n"), "{text}");
        assert!(text.contains(&format!("\r\n{}: [\"k\"]\r\n", headers::PARTITION_KEY)), "{text}");
        assert!(text.ends_with("\r\ncontent-length: 7\r\n\r\n[\"k\",1]"), "{text}");
    }

    #[test]
    fn a_query_as_bytes() {
        let text = "SELECT * FROM c WHERE c.a = @a";
        let request = Container::new("d", "c").query(text, &[("@a", json!("x"))], -1);
        let body = json!({"query": text, "parameters": [{"name": "@a", "value": "x"}]});
        assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), body);
        assert_eq!(request.path(), "/dbs/d/colls/c/docs");
    }

    #[test]
    fn triggers_on_the_wire() {
        let container = Container::new("d", "c");
        let after = Trigger { is_before: false, operation: "Create" };
        let request = container.create_trigger("t", "function () {}", after);
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(
            (&body["triggerType"], &body["triggerOperation"]),
            (&json!("Post"), &json!("Create"))
        );
        assert_eq!(request.path(), "/dbs/d/colls/c/triggers");
    }

    #[test]
    fn bulk_operations_carry_their_keys() {
        let operations = ["[1]", "[2]"].map(|key| (key.to_owned(), Operation::Create("{}")));
        let request = Container::new("d", "c").bulk(&operations);
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body.as_array().unwrap().len(), 2);
        assert_eq!(body[1]["partitionKey"], "[2]");
    }
}
