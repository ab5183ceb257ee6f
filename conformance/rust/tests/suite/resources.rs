//! Databases, containers, throughput, keys.

use std::time::Duration;

use azure_data_cosmos::models::{
    ChangeFeedPolicy, ContainerProperties, ThroughputProperties, TimeToLive, UniqueKey,
    UniqueKeyPolicy,
};
use azure_data_cosmos::options::CreateContainerOptions;
use cosmolabe_conformance::{Lab, code, failure};
use futures::TryStreamExt;
use serde_json::json;

use crate::case;

case!(database_is_created_read_and_deleted, async {
    let lab = Lab::start().await;
    let response = lab.client.create_database("one", None).await?;
    assert_eq!(code(response.status()).0, 201);
    assert_eq!(response.into_model()?.id.as_deref(), Some("one"));
    let database = lab.client.database_client("one");
    assert_eq!(database.read(None).await?.into_model()?.id.as_deref(), Some("one"));
    assert_eq!(failure(lab.client.create_database("one", None).await), 409);
    assert_eq!(code(database.delete(None).await?.status()).0, 204);
    assert_eq!(failure(database.read(None).await), 404);
    Ok(())
});

case!(databases_are_queried, async {
    let lab = Lab::start().await;
    for name in ["a", "b"] {
        lab.client.create_database(name, None).await?;
    }
    let found: Vec<_> =
        lab.client.query_databases("SELECT * FROM r", None).await?.try_collect().await?;
    let mut names: Vec<_> = found.into_iter().filter_map(|database| database.id).collect();
    names.sort();
    assert_eq!(names, ["a", "b", "d"]);
    Ok(())
});

case!(container_returns_its_definition, async {
    let lab = Lab::start().await;
    let unique = UniqueKeyPolicy::default().with_unique_key(UniqueKey::default().with_path("/u"));
    let policy = ChangeFeedPolicy::default().with_retention_duration(Duration::from_secs(600));
    let properties = ContainerProperties::new("c", "/pk".into())
        .with_unique_key_policy(unique)
        .with_change_feed_policy(policy)
        .with_default_ttl(3600_u32);
    let container = lab.make(properties, None).await;
    let read = container.read(None).await?.into_model()?;
    assert_eq!(read.id, "c");
    assert_eq!(read.partition_key.paths(), ["/pk"]);
    assert_eq!(read.unique_key_policy.expect("is returned").unique_keys[0].paths, ["/u"]);
    assert_eq!(read.default_ttl, TimeToLive::from(3600));
    let retention = read.change_feed_policy.expect("is returned").retention_duration();
    assert_eq!(retention, Some(Duration::from_secs(600)));
    assert!(read.indexing_policy.is_some());
    Ok(())
});

case!(container_is_replaced_and_deleted, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    let changed = container.read(None).await?.into_model()?.with_default_ttl(TimeToLive::Forever);
    container.replace(changed, None).await?;
    assert!(container.read(None).await?.into_model()?.default_ttl.is_forever());
    let again = ContainerProperties::new("c", "/pk".into());
    assert_eq!(failure(lab.database.create_container(again, None).await), 409);
    assert_eq!(code(container.delete(None).await?.status()).0, 204);
    assert_eq!(failure(container.read(None).await), 404);
    Ok(())
});

case!(containers_are_queried, async {
    let lab = Lab::start().await;
    for name in ["a", "b"] {
        lab.make(ContainerProperties::new(name, "/pk".into()), None).await;
    }
    let query = azure_data_cosmos::Query::from("SELECT * FROM c WHERE c.id = @id");
    let found: Vec<ContainerProperties> = lab
        .database
        .query_containers(query.with_parameter("@id", "b")?, None)
        .await?
        .try_collect()
        .await?;
    assert_eq!(found.iter().map(|one| one.id.as_ref()).collect::<Vec<_>>(), ["b"]);
    Ok(())
});

case!(recreated_container_is_a_new_one, async {
    let lab = Lab::start().await;
    let container = lab.container().await;
    container.create_item("p", "a", json!({"id": "a", "pk": "p"}), None).await?;
    container.delete(None).await?;
    let recreated = lab.container().await;
    assert_eq!(failure(recreated.read_item("p", "a", None).await), 404);
    recreated.create_item("p", "a", json!({"id": "a", "pk": "p"}), None).await?;
    Ok(())
});

case!(manual_throughput_is_read_and_replaced, async {
    let lab = Lab::start().await;
    let container = lab.make(ContainerProperties::new("c", "/pk".into()), Some(500)).await;
    let read = container.read_throughput(None).await?.expect("has an offer");
    assert_eq!(read.throughput(), Some(500));
    let replaced = container
        .begin_replace_throughput(ThroughputProperties::manual(900), None)
        .await?
        .await?
        .into_model()?;
    assert_eq!(replaced.throughput(), Some(900));
    let read = container.read_throughput(None).await?.expect("has an offer");
    assert_eq!(read.throughput(), Some(900));
    Ok(())
});

case!(autoscale_throughput_is_read_and_replaced, async {
    let lab = Lab::start().await;
    let properties = ContainerProperties::new("c", "/pk".into());
    let options = CreateContainerOptions::default()
        .with_throughput(ThroughputProperties::autoscale(4000, None));
    lab.database.create_container(properties, Some(options)).await?;
    let container = lab.database.container_client("c", None).await?;
    let read = container.read_throughput(None).await?.expect("has an offer");
    assert_eq!(read.autoscale_maximum(), Some(4000));
    container
        .begin_replace_throughput(ThroughputProperties::autoscale(6000, None), None)
        .await?
        .await?;
    let read = container.read_throughput(None).await?.expect("has an offer");
    assert_eq!(read.autoscale_maximum(), Some(6000));
    Ok(())
});

case!(impossible_throughput_is_refused, async {
    let lab = Lab::start().await;
    for throughput in
        [ThroughputProperties::manual(450), ThroughputProperties::autoscale(1500, None)]
    {
        let properties = ContainerProperties::new("c", "/pk".into());
        let options = CreateContainerOptions::default().with_throughput(throughput);
        assert_eq!(failure(lab.database.create_container(properties, Some(options)).await), 400);
    }
    Ok(())
});

case!(missing_container_cannot_be_opened, async {
    let lab = Lab::start().await;
    assert_eq!(failure(lab.database.container_client("none", None).await), 404);
    Ok(())
});

case!(wrong_key_is_refused, async {
    let lab = Lab::start().await;
    let refused = lab.server.connect("d3Jvbmc=").await;
    let status = match refused {
        Err(error) => code(error.status()).0,
        Ok(client) => failure(client.database_client("d").read(None).await),
    };
    assert_eq!(status, 401);
    Ok(())
});
