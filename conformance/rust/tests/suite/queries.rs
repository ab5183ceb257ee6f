//! Queries, planned by the client: within a key, over all partitions, ordered, paged, by feed range.

use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::FeedScope;
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions, QueryPlanMode};
use azure_data_cosmos::{PartitionKey, Query};
use cosmolabe_conformance::{Lab, everywhere, failure, rows};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::case;

/// Thirty items under ten keys on three physical partitions.
async fn filled(lab: &Lab) -> azure_data_cosmos::Result<ContainerClient> {
    let container = lab.partitioned(3).await;
    for n in 0..30 {
        let (id, key) = (format!("i{n:02}"), format!("p{}", n % 10));
        let item = json!({"id": id, "pk": key, "n": n, "tie": n % 3});
        container.create_item(key, &id, item, None).await?;
    }
    Ok(container)
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

case!(query_within_a_key, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let scope = FeedScope::partition("p3");
    let found: Vec<u64> =
        rows(&container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", scope).await?;
    assert_eq!(found, [23, 13, 3]);
    Ok(())
});

case!(query_over_all_partitions, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let all: Vec<Value> = everywhere(&container, "SELECT * FROM c").await?;
    assert_eq!(all.len(), 30);
    let found = everywhere(&container, "SELECT VALUE c.n FROM c WHERE c.n > 26 OR c.n IN (1, 2)");
    assert_eq!(sorted(found.await?), [1, 2, 27, 28, 29]);
    Ok(())
});

case!(query_with_parameters, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let query = Query::from("SELECT VALUE c.n FROM c WHERE c.pk = @pk AND c.n < @most")
        .with_parameter("@pk", "p7")?
        .with_parameter("@most", 20)?;
    assert_eq!(sorted(everywhere(&container, query).await?), [7, 17]);
    Ok(())
});

case!(order_is_merged_by_the_client, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let up: Vec<u64> = everywhere(&container, "SELECT VALUE c.n FROM c ORDER BY c.n").await?;
    assert_eq!(up, (0..30).collect::<Vec<_>>());
    let down: Vec<Value> = everywhere(&container, "SELECT * FROM c ORDER BY c.n DESC").await?;
    assert_eq!(
        down.iter().map(|item| item["n"].as_u64().unwrap()).collect::<Vec<_>>(),
        (0..30).rev().collect::<Vec<_>>()
    );
    let ties: Vec<Value> =
        everywhere(&container, "SELECT c.n, c.tie FROM c ORDER BY c.tie").await?;
    let order: Vec<u64> = ties.iter().map(|row| row["tie"].as_u64().unwrap()).collect();
    assert_eq!(order, (0..30).map(|n| n / 10).collect::<Vec<_>>());
    Ok(())
});

case!(top_offset_and_distinct, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let top: Vec<u64> =
        everywhere(&container, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC").await?;
    assert_eq!(top, [29, 28, 27]);
    let page: Vec<u64> =
        everywhere(&container, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 2").await?;
    assert_eq!(page, [10, 11]);
    let ties = everywhere(&container, "SELECT DISTINCT TOP 9 VALUE c.tie FROM c").await?;
    assert_eq!(sorted(ties), [0, 1, 2]);
    Ok(())
});

case!(plan_comes_from_the_server_when_asked_for, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let options = QueryOptions::default().with_query_plan_mode(QueryPlanMode::GatewayOnly);
    let pages = container
        .query_items::<u64>(
            "SELECT VALUE c.n FROM c ORDER BY c.n",
            FeedScope::full_container(),
            Some(options),
        )
        .await?;
    let found: Vec<u64> = futures::TryStreamExt::try_collect(pages).await?;
    assert_eq!(found, (0..30).collect::<Vec<_>>());
    Ok(())
});

case!(count_on_one_partition, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    for n in 0..5 {
        let id = n.to_string();
        container.create_item("p", &id, json!({"id": id, "pk": "p"}), None).await?;
    }
    let within: Vec<u64> =
        rows(&container, "SELECT VALUE COUNT(1) FROM c", FeedScope::partition("p")).await?;
    assert_eq!(within, [5]);
    let across: Vec<u64> = everywhere(&container, "SELECT VALUE COUNT(1) FROM c").await?;
    assert_eq!(across, [5]);
    Ok(())
});

case!(pages_resume_by_token, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    for text in ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n"] {
        let (mut seen, mut token) = (Vec::new(), None);
        loop {
            let limit = MaxItemCountHint::Limit(4.try_into()?);
            let mut options = QueryOptions::default().with_max_item_count(limit);
            if let Some(token) = token.take() {
                options = options.with_continuation_token(token);
            }
            let scope = FeedScope::full_container();
            let query = container.query_items::<u64>(text, scope, Some(options)).await?;
            let mut pages = query.into_pages();
            let Some(page) = pages.next().await else { break };
            seen.extend(page?.into_items());
            assert!(seen.len() <= 30, "{text}: a page came twice");
            token = Some(pages.to_continuation_token()?);
        }
        assert_eq!(sorted(seen), (0..30).collect::<Vec<_>>(), "{text}");
    }
    Ok(())
});

case!(feed_ranges_share_the_items, async {
    let lab = Lab::start().await;
    let container = filled(&lab).await?;
    let ranges = container.read_feed_ranges(None).await?;
    assert_eq!(ranges.len(), 3);
    let mut seen = Vec::new();
    for range in ranges {
        let share: Vec<u64> =
            rows(&container, "SELECT VALUE c.n FROM c", FeedScope::range(range)).await?;
        assert!(!share.is_empty());
        seen.extend(share);
    }
    assert_eq!(sorted(seen), (0..30).collect::<Vec<_>>());
    let own = container.feed_range_from_partition_key("p3", None).await?;
    assert_eq!(own.len(), 1);
    Ok(())
});

case!(prefixes_of_a_hierarchical_key, async {
    let lab = Lab::start().await;
    let container = lab.hierarchical(("/t", "/u", "/s")).await;
    for (n, (t, u, s)) in
        [("a", "x", 1), ("a", "x", 2), ("a", "y", 1), ("b", "x", 1)].into_iter().enumerate()
    {
        let id = n.to_string();
        let item = json!({"id": id, "n": n, "t": t, "u": u, "s": s});
        container.create_item((t, u, s), &id, item, None).await?;
    }
    let find = async |key: PartitionKey| -> azure_data_cosmos::Result<Vec<u64>> {
        rows(&container, "SELECT VALUE c.n FROM c", FeedScope::partition(key)).await.map(sorted)
    };
    assert_eq!(find("a".into()).await?, [0, 1, 2]);
    assert_eq!(find(("a", "x").into()).await?, [0, 1]);
    assert_eq!(find(("a", "x", 2).into()).await?, [1]);
    assert_eq!(find("none".into()).await?, [] as [u64; 0]);
    Ok(())
});

case!(bad_query_is_400, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    for text in ["SELECT", "SELECT * FORM c", "SELECT * FROM c WHERE c.a ="] {
        let found: Result<Vec<Value>, _> = rows(&container, text, FeedScope::partition("p")).await;
        assert_eq!(failure(found), 400, "{text}");
    }
    Ok(())
});
