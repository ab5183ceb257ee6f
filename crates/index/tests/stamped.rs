//! Goal: a draft and the item made from it have the same terms (X4), so that a replacement, which
//! compares the stored item with a draft, sees only what the client changed.

use index::Policy;
use item::{Draft, Stamp};
use model::container::IndexingPolicy;

#[test]
fn stamping_does_not_change_the_terms() {
    let body = br#"{"id":"1","a":{"b":[1,2,{"c":"x"}]},"ttl":5}"#;
    let policy = Policy::compile(&IndexingPolicy::default());
    let draft = Draft::parse(body).expect("valid");
    let before = policy.terms(draft.root());
    let item = draft.stamp(&Stamp {
        rid: "AAAAAAAAAAAAAAAAAAAAAAAA",
        self_link: "dbs/AAAAAAAA/colls/AAAAAAAAAAAA/docs/AAAAAAAAAAAAAAAAAAAAAAAA/",
        etag: "00000000-0000-0000-0000-000000000000",
        ts: 1_700_000_000,
        lsn: 1,
        position: 0,
        ordinal: 1,
        is_indexed: true,
    });
    assert!(item.root().get("_ts").is_some());
    assert_eq!(policy.terms(item.root()), before);
}
