//! What must hold of any bytes whatsoever.

use bytes::Bytes;
use item::patch;
use item::{Draft, Item, Json, Node, Stamp, Value};

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

/// Takes the bytes for everything they could be.
pub fn run(data: &[u8]) {
    if let Ok(json) = Json::parse(data) {
        check_json(&json, data);
    }
    for draft in [Draft::parse(data), Draft::parse_binary(data)].into_iter().flatten() {
        check_draft(draft);
    }
    if let Ok(item) = Item::from_bytes(Bytes::copy_from_slice(data)) {
        check_item(&item);
    }
}

/// Canonical text is a fixed point, and values agree with nodes.
fn check_json(json: &Json, data: &[u8]) {
    let text = json.root().raw();
    let again = Json::parse(text.as_bytes()).expect("canonical text is JSON");
    assert_eq!(again.root().raw(), text);
    let value = Value::parse(data).expect("what is JSON is a value");
    assert_eq!(value.to_json(), text);
    if let Ok(patch) = patch::parse(&value) {
        let item = Draft::parse(br#"{"id":"1","a":[1,{"b":2}],"c":{}}"#).expect("JSON");
        let _ = patch::apply(&patch, item.root(), &[]);
    }
}

/// An item's text is its draft's and the system properties; taking them off gives the draft.
fn check_draft(draft: Draft) {
    let user = draft.root().raw().to_owned();
    let text_len = draft.text_len();
    let value = draft.root().to_value();
    let rebuilt = Draft::from_value(&value).expect("an item's value is an item");
    assert_eq!(rebuilt.root().raw(), user);
    let item = draft.stamp(&STAMP);
    assert_eq!(item.text_len(), text_len);
    assert_eq!(item.to_draft().root().raw(), user);
    let stored = Item::from_bytes(item.as_bytes().clone()).expect("what was stamped can be stored");
    assert_eq!(Draft::parse(&stored.text()).expect("wire text is JSON").root().raw(), user);
    check_item(&stored);
}

fn check_item(item: &Item) {
    let _ = (item.rid(), item.etag(), item.id(), item.ttl(), item.text());
    walk(item.root());
    let _ = item.root().to_value();
    walk(item.to_draft().stamp(&STAMP).root());
}

fn walk(node: Node<'_>) {
    let _ = (node.kind(), node.as_bool(), node.as_f64(), node.as_str(), node.raw(), node.len());
    node.elements().for_each(walk);
    node.members().for_each(|(_, member)| walk(member));
}
