//! The change feed in both modes.

use std::time::Duration;

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ChangeFeedPageIterator, ContinuationToken, FeedScope};
use azure_data_cosmos::models::{
    ChangeFeedItem, ChangeFeedOperationType, ChangeFeedPolicy, ContainerProperties,
};
use azure_data_cosmos::options::{ChangeFeedMode, ChangeFeedOptions, ChangeFeedStartFrom};
use cosmolabe_conformance::{Lab, failure};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::case;

type Feed = ChangeFeedPageIterator<ChangeFeedItem<Value>>;

async fn feed(
    container: &ContainerClient,
    scope: FeedScope,
    start: ChangeFeedStartFrom,
    token: Option<ContinuationToken>,
) -> azure_data_cosmos::Result<Feed> {
    let mut options = ChangeFeedOptions::default();
    if let Some(token) = token {
        options = options.with_continuation_token(token);
    }
    container.query_change_feed(scope, start, Some(options)).await
}

/// Reads until several pages in a row are empty: with many ranges one empty page is not the end.
async fn drain(feed: &mut Feed) -> azure_data_cosmos::Result<Vec<ChangeFeedItem<Value>>> {
    let (mut found, mut empty) = (Vec::new(), 0);
    while empty < 5 {
        let page = feed.next().await.expect("the feed has no end")?;
        empty = if page.items().is_empty() { empty + 1 } else { 0 };
        found.extend(page.into_items());
    }
    Ok(found)
}

fn ids(changes: &[ChangeFeedItem<Value>]) -> Vec<&str> {
    changes.iter().map(|one| one.current().unwrap()["id"].as_str().unwrap()).collect()
}

async fn create(container: &ContainerClient, key: &str, id: &str) -> azure_data_cosmos::Result<()> {
    let item = json!({"id": id, "pk": key});
    container.create_item(key.to_owned(), id, item, None).await.map(|_| ())
}

case!(from_the_beginning_in_order_of_change, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    for id in ["a", "b", "c"] {
        create(&container, "p", id).await?;
    }
    container.upsert_item("p", "a", json!({"id": "a", "pk": "p", "v": 2}), None).await?;
    container.delete_item("p", "b", None).await?;
    let start = ChangeFeedStartFrom::Beginning;
    let mut feed = feed(&container, FeedScope::full_container(), start, None).await?;
    let found = drain(&mut feed).await?;
    assert_eq!(ids(&found), ["c", "a"]);
    assert_eq!(found[1].current().unwrap()["v"], 2);
    let lsns: Vec<i64> =
        found.iter().map(|one| one.metadata().unwrap().lsn().unwrap().value()).collect();
    assert!(lsns.is_sorted());
    Ok(())
});

case!(over_all_partitions_and_by_key, async {
    let lab = Lab::start().await;
    let container = lab.partitioned(3).await;
    for n in 0..30 {
        create(&container, &format!("p{}", n % 10), &format!("i{n:02}")).await?;
    }
    let start = || ChangeFeedStartFrom::Beginning;
    let mut whole = feed(&container, FeedScope::full_container(), start(), None).await?;
    let found = drain(&mut whole).await?;
    let mut names = ids(&found);
    names.sort_unstable();
    assert_eq!(names, (0..30).map(|n| format!("i{n:02}")).collect::<Vec<_>>());
    let mut own = feed(&container, FeedScope::partition("p3"), start(), None).await?;
    assert_eq!(ids(&drain(&mut own).await?), ["i03", "i13", "i23"]);
    let mut shares = 0;
    for range in container.read_feed_ranges(None).await? {
        let mut share = feed(&container, FeedScope::range(range), start(), None).await?;
        shares += drain(&mut share).await?.len();
    }
    assert_eq!(shares, 30);
    Ok(())
});

case!(from_now_and_by_token, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    create(&container, "p", "before").await?;
    let scope = FeedScope::full_container;
    let mut now = feed(&container, scope(), ChangeFeedStartFrom::Now, None).await?;
    assert!(drain(&mut now).await?.is_empty());
    create(&container, "p", "after").await?;
    assert_eq!(ids(&drain(&mut now).await?), ["after"]);
    let token = now.to_continuation_token()?;
    create(&container, "p", "later").await?;
    let mut resumed = feed(&container, scope(), ChangeFeedStartFrom::Now, Some(token)).await?;
    assert_eq!(ids(&drain(&mut resumed).await?), ["later"]);
    Ok(())
});

case!(all_versions_and_deletes, async {
    let lab = Lab::start().await;
    let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
    let properties = ContainerProperties::new("c", "/pk".into()).with_change_feed_policy(policy);
    let container = lab.make(properties, None).await;
    let options = ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
    let mut feed = container
        .query_change_feed::<Value>(
            FeedScope::full_container(),
            ChangeFeedStartFrom::Now,
            Some(options),
        )
        .await?;
    assert!(drain(&mut feed).await?.is_empty());
    create(&container, "p", "a").await?;
    container.replace_item("p", "a", json!({"id": "a", "pk": "p", "v": 2}), None).await?;
    container.delete_item("p", "a", None).await?;
    let found = drain(&mut feed).await?;
    let kinds: Vec<_> = found.iter().filter_map(|change| change.operation_type()).collect();
    use ChangeFeedOperationType::{Create, Delete, Replace};
    assert_eq!(kinds, [Create, Replace, Delete]);
    let deleted = found[2].metadata().expect("a delete has metadata");
    assert_eq!(deleted.id(), Some("a"));
    assert_eq!(deleted.partition_key(), Some(&json!({"pk": "p"})));
    assert_eq!(found[2].previous().expect("the image is kept")["v"], 2);
    Ok(())
});

case!(all_versions_need_retention, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let options = ChangeFeedOptions::default().with_mode(ChangeFeedMode::AllVersionsAndDeletes);
    let start = ChangeFeedStartFrom::Now;
    let scope = FeedScope::full_container();
    let page = match container.query_change_feed::<Value>(scope, start, Some(options)).await {
        Ok(mut feed) => feed.next().await.expect("the feed answers").map(|_| ()),
        Err(error) => Err(error),
    };
    assert_eq!(failure(page), 400);
    Ok(())
});
