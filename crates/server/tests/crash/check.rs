//! Reads everything back and holds it against what clients know.

use std::collections::HashMap;

use base::Random;
use client::{Changes, Client, Error, Scope};
use serde_json::Value;

use crate::history::{Found, History, Live, Name, Place};
use crate::load::{CONTAINERS, container, filling, partition_key, version_of};

const PAGE: usize = 200;
const POINT_READS: usize = 100;

/// Checks everything and returns what is there.
pub async fn check(client: &Client, history: &mut History, random: &Random) -> Live {
    check_sessions(client, history).await;
    let mut live = Live::new();
    for number in 0..CONTAINERS.len() {
        let found = changes(client, number).await;
        check_read_feed(client, number, &found).await;
        live.extend(found);
    }
    check_points(client, &live, random).await;
    check_groups(&live);
    check_slots(&live);
    history.reconcile(&live);
    live
}

/// D6.
async fn check_sessions(client: &Client, history: &mut History) {
    let seen: Vec<_> =
        history.seen().map(|(partition, lsn, key)| (partition, lsn, key.to_owned())).collect();
    for ((number, partition), lsn, key) in seen {
        let token = format!("{partition}:-1#{lsn}");
        let request = container(number).read(&partition_key(&key), "no such item");
        let reply = match client.send(&request.with_session(&token)).await {
            Err(Error::Refused(reply)) if (reply.status, reply.substatus()) == (404, 0) => reply,
            other => panic!("D6: session {token}: {other:?}"),
        };
        assert_eq!(reply.partition(), Some(partition), "a key stays in its partition");
        let now = reply.lsn().expect("a position");
        assert!(now >= lsn, "D6: {number}/{partition} was at {lsn} and is at {now}");
        history.sees(Place { partition: (number, partition), lsn: now }, &key);
    }
}

/// All items of a container, from the change feed of each of its physical partitions (D4).
async fn changes(client: &Client, number: usize) -> Live {
    let ranges = client.send(&container(number).ranges()).await.unwrap().rows().unwrap();
    let mut live = Live::new();
    for range in ranges {
        let id = range["id"].as_str().expect("a range has an id");
        let partition = (number, id.parse().expect("a range has a number"));
        let mut last = 0;
        for row in change_rows(client, number, id).await {
            let lsn = row["_lsn"].as_u64().expect("a change has an LSN");
            assert!(lsn >= last, "D4: {lsn} comes behind {last}");
            last = lsn;
            let (name, found) = found_in(&row, Place { partition, lsn });
            let before = live.insert(name, found);
            assert!(before.is_none(), "D4: {before:?} comes twice, again as {row}");
        }
    }
    live
}

async fn change_rows(client: &Client, number: usize, range: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut etag: Option<String> = None;
    loop {
        let from = etag.as_deref().map_or(Changes::FromBeginning, Changes::After);
        let request = container(number).changes(&Scope::Range(range), from, PAGE);
        let page = client.send(&request).await.unwrap();
        if page.status == 304 {
            return rows;
        }
        rows.extend(page.rows().unwrap());
        etag = page.etag().map(str::to_owned);
    }
}

/// Takes an item apart, and checks that it is what its write sent (D2).
fn found_in(item: &Value, place: Place) -> (Name, Found) {
    let text = |name: &str| item[name].as_str().unwrap_or_else(|| panic!("{name} in {item}"));
    let version = version_of(item);
    assert_eq!(text("filling"), filling(version.op), "D2: {item} is not what was sent");
    let size = item["size"].as_u64().unwrap_or(0) as usize;
    let found = Found {
        place,
        version,
        worker: match text("id").starts_with("hot") {
            true => usize::MAX,
            false => item["worker"].as_u64().expect("every item has an owner") as usize,
        },
        group: item["group"].as_str().map(|group| (group.to_owned(), size)),
        slot: text("slot").to_owned(),
    };
    let (key, id) = (text("key").to_owned(), text("id").to_owned());
    (Name { container: place.partition.0, key, id }, found)
}

/// D4: the read feed shows the same items in the same versions.
async fn check_read_feed(client: &Client, number: usize, live: &Live) {
    let mut continuation: Option<String> = None;
    let mut count = 0;
    loop {
        let request = container(number).list(continuation.as_deref(), PAGE);
        let page = client.send(&request).await.unwrap();
        for row in page.rows().unwrap() {
            count += 1;
            check_same(live, number, &row);
        }
        continuation = page.continuation().map(str::to_owned);
        if continuation.is_none() {
            break;
        }
    }
    assert_eq!(count, live.len(), "D4: the read feed is complete");
}

fn check_same(live: &Live, container: usize, item: &Value) {
    let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let name = Name { container, key: text("key"), id: text("id") };
    let found = live.get(&name).unwrap_or_else(|| panic!("D4: not in the change feed: {item}"));
    assert_eq!(version_of(item), found.version, "D4: {name:?}");
}

/// D4: point reads show some of the same.
async fn check_points(client: &Client, live: &Live, random: &Random) {
    let names: Vec<&Name> = live.keys().collect();
    for _ in 0..POINT_READS.min(names.len()) {
        let name = names[(random.next() % names.len() as u64) as usize];
        let request = container(name.container).read(&partition_key(&name.key), &name.id);
        let reply =
            client.send(&request).await.unwrap_or_else(|error| panic!("D4: {name:?}: {error}"));
        check_same(live, name.container, &reply.json().unwrap());
    }
}

/// D3.
fn check_groups(live: &Live) {
    let mut groups: HashMap<(usize, &str), Vec<&Found>> = HashMap::new();
    for (name, found) in live {
        if let Some((group, _)) = &found.group {
            groups.entry((name.container, group)).or_default().push(found);
        }
    }
    for (group, members) in groups {
        let first = members[0];
        let size = first.group.as_ref().map_or(0, |(_, size)| *size);
        assert_eq!(members.len(), size, "D3: {group:?} is half there: {members:?}");
        let is_same =
            |other: &&Found| (other.place, other.version.op) == (first.place, first.version.op);
        assert!(members.iter().all(is_same), "D3: {group:?} is of several batches: {members:?}");
    }
}

/// D7.
fn check_slots(live: &Live) {
    let mut slots = HashMap::new();
    for (name, found) in live.iter().filter(|(name, _)| name.container == 0) {
        let before = slots.insert((&name.key, &found.slot), name);
        assert!(before.is_none(), "D7: {} is taken by {before:?} and {name:?}", found.slot);
    }
}
