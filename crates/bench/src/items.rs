//! The data: items of one kilobyte with a dozen indexed values, each made from its number.

use std::sync::LazyLock;

use base::Random;
use client::{Container, Key, date_now};
use memchr::memmem;
use model::partition_key::{Component, PartitionKey};

/// Bytes of an item as it is sent.
pub const ITEM_BYTES: usize = 1024;
/// Items in a logical partition, on average.
const ITEMS_PER_KEY: u64 = 20;

const CITIES: [&str; 8] =
    ["Oslo", "Bergen", "Lagos", "Quito", "Osaka", "Perth", "Turin", "Halifax"];

/// The database of all benchmarks.
pub const DATABASE: &str = "bench";

/// A create with everything but key and body filled in: the signature covers neither. Load
/// generators make requests from it by copying.
pub struct CreateTemplate {
    bytes: Vec<u8>,
    key_at: usize,
    body_at: usize,
}

/// A key as long as all keys are.
const SOME_KEY: &str = "key-00000000";

impl CreateTemplate {
    /// A template of creates in a container, signed now.
    pub fn new(name: &str) -> CreateTemplate {
        let body = body("", SOME_KEY, 0);
        let request = container(name).create(&key(SOME_KEY), body);
        let bytes = request.to_bytes(&Key::development(), "localhost", &date_now());
        let key_at = memmem::find(&bytes, SOME_KEY.as_bytes()).expect("the header has the key");
        CreateTemplate { key_at, body_at: bytes.len() - ITEM_BYTES, bytes }
    }

    /// Writes the request that creates an item.
    pub fn write(&self, key: &str, body: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.body_at]);
        out[self.key_at..self.key_at + SOME_KEY.len()].copy_from_slice(key.as_bytes());
        out.extend_from_slice(body.as_bytes());
    }
}

/// A container of that database.
pub fn container(name: &str) -> Container {
    Container::new(DATABASE, name)
}

/// Items with numbers from 0, each made from its number.
pub trait Data: Send + Sync {
    /// How many there are.
    fn count(&self) -> u64;
    /// The id of an item.
    fn id(&self, number: u64) -> String;
    /// The partition key of an item, a string.
    fn key_text(&self, number: u64) -> String;
    /// The item as JSON text.
    fn body(&self, number: u64) -> String;
}

/// The items of the point benchmarks.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// How many there are; it decides how many logical partitions they are in.
    pub count: u64,
}

impl Items {
    /// The partition key of an item.
    pub fn key(&self, number: u64) -> PartitionKey {
        key(&self.key_text(number))
    }
}

impl Data for Items {
    fn count(&self) -> u64 {
        self.count
    }

    fn id(&self, number: u64) -> String {
        format!("item-{number:010}")
    }

    /// Without regularity in its number.
    fn key_text(&self, number: u64) -> String {
        let keys = (self.count / ITEMS_PER_KEY).max(1);
        format!("key-{:08}", Random::from_seed(number).next() % keys)
    }

    fn body(&self, number: u64) -> String {
        body(&self.id(number), &self.key_text(number), number)
    }
}

/// A partition key of one string.
pub fn key(text: &str) -> PartitionKey {
    PartitionKey(vec![Component::String(text.to_owned())])
}

/// An item of [`ITEM_BYTES`].
pub fn body(id: &str, key: &str, number: u64) -> String {
    let random = Random::from_seed(!number);
    let any = |below: u64| random.next() % below;
    let city = CITIES[any(8) as usize];
    let mut body = format!(
        "{{\"id\":\"{id}\",\"pk\":\"{key}\",\"name\":\"{:x}\",\"email\":\"{:x}@example.com\",\
         \"city\":\"{city}\",\"age\":{},\"score\":{}.5,\"active\":{},\"created\":{},\
         \"tags\":[\"tag-{}\",\"tag-{}\"],\"text\":\"",
        any(1 << 40),
        any(1 << 40),
        any(100),
        any(100_000),
        any(2) == 0,
        1_700_000_000 + any(100_000_000),
        any(50),
        50 + any(50),
    );
    let missing = ITEM_BYTES - 2 - body.len();
    body.push_str(prose(random.next(), missing));
    body.push_str("\"}");
    body
}

/// Some bytes of text; which is decided by a number.
pub fn prose(number: u64, bytes: usize) -> &'static str {
    let from = (number % (PROSE_BYTES - bytes) as u64) as usize;
    &PROSE[from..from + bytes]
}

/// What items are filled up with: each takes a piece from somewhere. Making it anew for every item
/// would cost the load generator more than sending it.
static PROSE: LazyLock<String> = LazyLock::new(|| {
    let random = Random::from_seed(1);
    let words = (0..PROSE_BYTES / 8).map(|_| format!("{:07x} ", random.next() >> 36));
    words.collect()
});
const PROSE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_makes_requests() {
        let items = Items { count: 1000 };
        let (key, body) = (items.key_text(5), items.body(5));
        let mut bytes = Vec::new();
        CreateTemplate::new("c").write(&key, &body, &mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(&format!(": [\"{key}\"]\r\n")), "{text}");
        assert!(text.ends_with(&format!("content-length: {ITEM_BYTES}\r\n\r\n{body}")), "{text}");
    }

    #[test]
    fn items_are_json_of_one_size() {
        let items = Items { count: 1000 };
        for number in 0..100 {
            let body = items.body(number);
            assert_eq!(body.len(), ITEM_BYTES);
            let value: serde_json::Value = serde_json::from_str(&body).unwrap();
            assert_eq!(value["id"], items.id(number));
            assert_eq!(value["pk"], items.key_text(number));
        }
        assert_eq!(items.body(7), items.body(7));
        assert_ne!(items.body(7), items.body(8));
        assert_eq!(PROSE.len(), PROSE_BYTES);
    }
}
