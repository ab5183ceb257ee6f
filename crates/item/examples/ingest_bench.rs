//! Prints what the item format costs, next to serde_json in the same run.
//!
//! `cargo run --release -p item --example ingest_bench`

use std::hint::black_box;
use std::time::Instant;

use item::{Draft, Item, Stamp, Value};

const BODY: &str = r#"{"id":"7d3c1f0a-52b1-4b7e-9d0f-1f6a0e2a9c11","customerId":"customer-00042","type":"order","status":"shipped","createdAt":"2024-05-17T09:26:53.1234567Z","total":1249.95,"currency":"NOK","priority":3,"gift":false,"note":null,"shipping":{"name":"Ingrid Solberg","street":"Storgata 14B","city":"Oslo","postalCode":"0155","country":"NO","location":{"type":"Point","coordinates":[10.7522,59.9139]}},"lines":[{"sku":"BK-0001","title":"A Pattern Language","quantity":1,"price":549.5,"tags":["architecture","classic"]},{"sku":"BK-0417","title":"The Timeless Way of Building","quantity":2,"price":299.95,"tags":["architecture"]},{"sku":"ST-2210","title":"Notebook, dotted, A5","quantity":1,"price":100.55,"tags":[]}],"history":[{"at":1715937000,"event":"created"},{"at":1715941200,"event":"paid"},{"at":1716012345,"event":"shipped"}],"description":"Deliver to the back door; the bell does not work. Call ahead, please, and leave the parcel with the neighbour if nobody answers.","ttl":-1}"#;

const STAMP: Stamp<'static> = Stamp {
    rid: "AAAAAIAAAAABAAAAAAAAAA==",
    self_link: "dbs/AAAAAA==/colls/AAAAAIAAAAA=/docs/AAAAAIAAAAABAAAAAAAAAA==/",
    etag: "0000d826-0000-0700-0000-60a2b6f10000",
    ts: 1_700_000_000,
    lsn: 42,
    position: 0,
    ordinal: 7,
    is_indexed: true,
};

fn main() {
    let body = BODY.as_bytes();
    let item = ingest(body);
    let bytes = item.as_bytes();
    println!("body {} bytes, text {}, stored {}", body.len(), item.text_len(), bytes.len());

    measure("ingest: parse", || Draft::parse(body).is_ok());
    measure("ingest: parse and stamp", || ingest(body));
    measure("to draft and stamp again", || item.to_draft().stamp(&STAMP));
    measure("from stored bytes", || Item::from_bytes(bytes.clone()).is_ok());
    measure("read /customerId", || read(&item, &["customerId"]).is_some());
    measure("read /shipping/city", || read(&item, &["shipping", "city"]).is_some());
    measure("read /total as number", || item.root().get("total").and_then(|node| node.as_f64()));
    measure("read 3 paths", || {
        let number = item.root().get("priority").and_then(|node| node.as_f64());
        (
            read(&item, &["customerId"]).is_some(),
            read(&item, &["shipping", "city"]).is_some(),
            number,
        )
    });
    measure("to wire", || item.text());
    measure("to value", || item.root().to_value());
    measure("value: parse", || Value::parse(body).is_ok());

    let value: serde_json::Value = serde_json::from_slice(body).expect("the body is JSON");
    measure("serde_json: parse", || serde_json::from_slice::<serde_json::Value>(body).is_ok());
    measure("serde_json: print", || serde_json::to_vec(&value).is_ok());
}

fn ingest(body: &[u8]) -> Item {
    Draft::parse(body).expect("the body is an item").stamp(&STAMP)
}

fn read<'a>(item: &'a Item, path: &[&str]) -> Option<std::borrow::Cow<'a, str>> {
    item.root().path(path.iter().copied())?.as_str()
}

/// The best of many short rounds: what the code costs, not what the machine was doing.
fn measure<T>(what: &str, mut run: impl FnMut() -> T) {
    const ROUNDS: usize = 1_000;
    const RUNS: u32 = 200;
    let mut round = || {
        let start = Instant::now();
        (0..RUNS).for_each(|_| drop(black_box(run())));
        start.elapsed().as_nanos() as f64 / f64::from(RUNS)
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    println!("{what:<28} {best:>9.1} ns");
}
