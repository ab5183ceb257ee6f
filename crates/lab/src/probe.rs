//! Which price list a server has: it does not say, but what it charges for does.
//!
//! A count that the index can answer loads the items it counts under `2019`; under `modern` it visits
//! their entries and no more. One item in a container of its own is enough to see that.

use client::{Container, Request};
use serde_json::json;

use crate::Error;
use crate::receipt::Receipt;
use crate::target::{Tally, Target, key_of};

/// Lines of the receipt, and the price list they are a sign of; the first that is there.
const SIGNS: [(&str, &str); 2] = [("items loaded", "2019"), ("index entries visited", "modern")];

/// The price list of a server; nothing if it gives no receipts. Leaves nothing behind.
pub async fn price_list(client: &client::Client) -> Result<Option<&'static str>, Error> {
    let database = format!("lab-probe-{}", std::process::id());
    let target = Target { client: client.clone(), database };
    let mut tally = Tally::default();
    let request = Request::create_database(&target.database);
    target.send("ask for prices", &request, &mut tally).await?;
    let receipt = ask(&target).await;
    let request = Request::delete_database(&target.database);
    target.send("ask for prices", &request, &mut tally).await?;
    Ok(named(&receipt?))
}

/// What one count is charged for.
async fn ask(target: &Target) -> Result<Receipt, Error> {
    let container = Container::new(&target.database, "probe");
    let wrong = |message| Error::Step { what: "ask for prices".to_owned(), message };
    let key = key_of(&json!("1")).map_err(wrong)?;
    let mut tally = Tally::default();
    for request in [
        container.create_keyed_by("/id", None),
        container.create(&key, json!({"id": "1", "n": 1}).to_string()),
    ] {
        target.send("ask for prices", &request, &mut tally).await?;
    }
    let mut tally = Tally::itemised();
    let count = container.query("SELECT VALUE COUNT(1) FROM c WHERE c.n = 1", &[], -1);
    target.rows("ask for prices", &count, &mut tally).await?;
    Ok(tally.itemisation())
}

fn named(receipt: &Receipt) -> Option<&'static str> {
    let is_charged = |sign: &&(&str, &str)| receipt.lines.iter().any(|line| line.what == sign.0);
    SIGNS.iter().find(is_charged).map(|sign| sign.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::Line;

    #[test]
    fn signs() {
        let charge = model::RequestCharge::ONE;
        let line = |what: &str| Line { what: what.into(), count: 1, charge };
        let check = |lines: &[&str], expect| {
            let lines = lines.iter().map(|what| line(what)).collect();
            assert_eq!(named(&Receipt { lines }), expect);
        };
        check(
            &["physical partitions sought", "index entries visited", "items loaded"],
            Some("2019"),
        );
        check(&["physical partitions sought", "index entries visited"], Some("modern"));
        check(&["not itemised"], None);
    }
}
