"""Provisioned throughput, enforced: the SDK's own retry policy waits and comes through."""

import time

import pytest
from azure.cosmos import CosmosClient, PartitionKey, exceptions

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


def test_a_refusal_says_why_and_when_to_come_back(strict):
    # The debt of a large item takes longer than this client is willing to wait.
    client = CosmosClient(strict.endpoint, KEY, retry_backoff_max=1)
    container = container_of(client, "hasty")
    container.create_item({"id": "large", "pk": "p", "text": "t" * 1_500_000})
    with pytest.raises(exceptions.CosmosHttpResponseError) as refused:
        container.create_item({"id": "late", "pk": "p"})
    assert (refused.value.status_code, refused.value.sub_status) == (429, 3200)
    wait = float(refused.value.headers["x-ms-retry-after-ms"])
    assert 1000 < wait <= 5000
    container.read()
    time.sleep(wait / 1000 + 0.05)
    container.create_item({"id": "late", "pk": "p"})
    assert sorted(item["id"] for item in container.read_all_items()) == ["large", "late"]
