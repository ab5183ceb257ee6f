//! The example of the README, line by line.

use azure_data_cosmos::clients::CosmosClient;
use azure_data_cosmos::models::ContainerProperties;
use azure_data_cosmos::{AccountReference, RoutingStrategy};
use cosmolabe_conformance::{KEY, Server};
use serde_json::json;

use crate::case;

case!(the_example_of_the_readme, async {
    let server = Server::start();
    let account = AccountReference::with_authentication_key(server.endpoint.parse()?, KEY);
    let strategy = RoutingStrategy::ProximityTo("South Central US".into());
    let client = CosmosClient::builder().build(account, strategy).await?;
    client.create_database("shop", None).await?;
    let database = client.database_client("shop");
    let properties = ContainerProperties::new("orders", "/customer".into());
    database.create_container(properties, None).await?;
    let container = database.container_client("orders", None).await?;
    let order = json!({"id": "1", "customer": "ada", "total": 42});
    container.upsert_item("ada", "1", order, None).await?;
    let order: serde_json::Value = container.read_item("ada", "1", None).await?.into_model()?;
    assert_eq!(order["total"], 42);
    Ok(())
});
