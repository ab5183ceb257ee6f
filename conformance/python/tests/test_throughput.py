"""Provisioned throughput, enforced: the SDK's own retry policy waits and comes through."""

import time

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from server import KEY, Server

TEXT = "t" * 20_000


@pytest.fixture(scope="module")
def strict():
    server = Server("--enforce-throughput", "true")
    yield server
    server.kill()


def container_of(client, name):
    database = client.create_database_if_not_exists("d")
    return database.create_container_if_not_exists(name, PartitionKey("/pk"), offer_throughput=400)


def test_the_sdk_waits_and_comes_through(strict):
    client = CosmosClient(strict.endpoint, KEY, retry_total=100, retry_backoff_max=60)
    container = container_of(client, "patient")
    begun = time.monotonic()
    for n in range(60):
        container.create_item({"id": f"i{n}", "pk": "p", "text": TEXT})
    assert time.monotonic() - begun > 0.5, "nobody had to wait"
    assert list(container.query_items("SELECT VALUE COUNT(1) FROM c", partition_key="p")) == [60]


def test_a_debt_is_waited_for(strict):
    client = CosmosClient(strict.endpoint, KEY, retry_total=100, retry_backoff_max=60)
    container = container_of(client, "debt")
    container.create_item({"id": "large", "pk": "p", "text": "t" * 2_000_000})
    begun = time.monotonic()
    container.create_item({"id": "late", "pk": "p"})
    assert time.monotonic() - begun > 1, "1,200 RU at 400 a second are paid at once"
    assert sorted(item["id"] for item in container.read_all_items()) == ["large", "late"]
