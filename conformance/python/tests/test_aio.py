"""The asynchronous client: one case per kind of operation."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from azure.cosmos.exceptions import CosmosBatchOperationError

from server import KEY
from support import fails, ids, unique


@pytest.fixture
def run(server):
    """Runs a coroutine over a fresh container of a client of its own."""

    @asynccontextmanager
    async def connected(options):
        async with CosmosClient(server.endpoint, credential=KEY) as client:
            database = await client.create_database(unique("db"))
            options.setdefault("partition_key", PartitionKey(path="/pk"))
            yield await database.create_container("c", **options)

    def run(case, **options):
        async def main():
            async with connected(options) as container:
                await case(container)

        asyncio.run(main())

    return run


async def collect(pager):
    return [item async for item in pager]


def test_items(run):
    async def case(container):
        created = await container.create_item({"id": "a", "pk": "p", "v": 1})
        assert await container.read_item("a", "p") == created
        guard = {"etag": created["_etag"], "match_condition": MatchConditions.IfNotModified}
        await container.replace_item("a", {"id": "a", "pk": "p", "v": 2}, **guard)
        with fails(412):
            await container.replace_item("a", {"id": "a", "pk": "p", "v": 3}, **guard)
        patched = await container.patch_item("a", "p", [{"op": "incr", "path": "/v", "value": 1}])
        assert patched["v"] == 3
        await container.delete_item("a", "p")
        with fails(404):
            await container.read_item("a", "p")

    run(case)


def test_concurrent_writes(run):
    async def case(container):
        bodies = [{"id": f"i{n}", "pk": f"p{n % 5}", "n": n} for n in range(100)]
        await asyncio.gather(*(container.create_item(body) for body in bodies))
        rows = await collect(container.query_items("SELECT VALUE c.n FROM c"))
        assert sorted(rows) == list(range(100))

    run(case, offer_throughput=20_000)


def test_queries_and_feeds(run):
    async def case(container):
        for n in range(10):
            await container.create_item({"id": f"i{n}", "pk": "p", "n": n})
        ordered = container.query_items("SELECT VALUE c.n FROM c ORDER BY c.n DESC", partition_key="p")
        assert await collect(ordered) == list(range(9, -1, -1))
        assert len(await collect(container.read_all_items(max_item_count=3))) == 10
        found = await container.read_items([(f"i{n}", "p") for n in range(0, 10, 3)])
        assert sorted(ids(found)) == ["i0", "i3", "i6", "i9"]

    run(case)


def test_change_feed(run):
    async def case(container):
        for name in "abc":
            await container.create_item({"id": name, "pk": "p"})
        pager = container.query_items_change_feed(start_time="Beginning")
        assert ids(await collect(pager)) == ["a", "b", "c"]
        token = container.client_connection.last_response_headers["etag"]
        await container.upsert_item({"id": "a", "pk": "p", "v": 2})
        later = container.query_items_change_feed(continuation=token)
        assert ids(await collect(later)) == ["a"]

    run(case)


def test_batch(run):
    async def case(container):
        operations = [("create", ({"id": name, "pk": "p"},)) for name in "ab"]
        results = await container.execute_item_batch(operations, partition_key="p")
        assert [one["statusCode"] for one in results] == [201, 201]
        with pytest.raises(CosmosBatchOperationError) as caught:
            await container.execute_item_batch([("create", ({"id": "c", "pk": "p"},)), *operations], "p")
        assert [one["statusCode"] for one in caught.value.operation_responses] == [424, 409, 424]

    run(case)


def test_throughput(run):
    async def case(container):
        assert (await container.get_throughput()).offer_throughput == 400
        await container.replace_throughput(500)
        assert (await container.get_throughput()).offer_throughput == 500

    run(case, offer_throughput=400)
