"""Pages of queries: every row once whatever their size, continuations that outlive the client and the
server but not the query, and what headers tell about a page."""

import asyncio

import pytest
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.aio import CosmosClient as AsyncCosmosClient

from books import Shelves
from server import KEY, Server
from support import fails

NUMBERS = list(range(40))
ITEMS = [
    {"id": f"i{n}", "pk": f"p{n % 11}", "n": n, "tie": n % 4, "word": f"w{n % 7}", "list": [n, -n]} for n in NUMBERS
]
WORDS = [f"w{n}" for n in range(7)]


@pytest.fixture(scope="module")
def numbers(database):
    return Shelves(database, ITEMS, partition_key=PartitionKey(path="/pk"))


def page(container, text, token=None, size=3, **options):
    """One page and the continuation after it, which may lead to nothing more."""
    if "partition_key" not in options:
        options["enable_cross_partition_query"] = True
    pager = container.query_items(text, max_item_count=size, **options).by_page(token)
    found = next(pager, None)
    return ([], None) if found is None else (list(found), pager.continuation_token)


def pages(container, text, size, token=None, **options):
    """All rows, each page through a query of its own."""
    rows = []
    for _ in range(200):
        found, token = page(container, text, token, size, **options)
        assert len(found) <= size
        rows += found
        if not token:
            return rows
    pytest.fail("the continuation never ended")


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT VALUE c.n FROM c ORDER BY c.n", NUMBERS),
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", NUMBERS[::-1]),
        ("SELECT TOP 11 VALUE c.n FROM c ORDER BY c.n", NUMBERS[:11]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 7 LIMIT 10", NUMBERS[7:17]),
        ("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word", WORDS),
        ("SELECT VALUE v FROM c JOIN v IN c.list WHERE v > 35 ORDER BY c.n", [36, 37, 38, 39]),
    ],
)
def test_pages_in_order(numbers, text, expected, size):
    for container in numbers.both:
        assert pages(container, text, size) == expected


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "text, expected",
    [
        ("SELECT VALUE c.n FROM c", NUMBERS),
        ("SELECT VALUE c.n FROM c WHERE c.tie = 2", NUMBERS[2::4]),
        ("SELECT DISTINCT VALUE c.word FROM c", WORDS),
        ("SELECT VALUE v FROM c JOIN v IN c.list WHERE v != 0", [*range(-39, 0), *range(1, 40)]),
    ],
)
def test_pages_in_any_order(numbers, text, expected, size):
    for container in numbers.both:
        assert sorted(pages(container, text, size)) == expected


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_pages_among_equal_keys(numbers, direction):
    for container in numbers.both:
        rows = pages(container, f"SELECT c.n, c.tie FROM c ORDER BY c.tie {direction}", 3)
        ties = [n // 10 for n in NUMBERS]
        assert [row["tie"] for row in rows] == (ties if direction == "ASC" else ties[::-1])
        assert sorted(row["n"] for row in rows) == NUMBERS


def test_pages_of_groups(numbers):
    text = "SELECT c.tie, COUNT(1) AS n, SUM(c.n) AS sum FROM c GROUP BY c.tie"
    for container in numbers.both:
        rows = sorted(pages(container, text, 1), key=lambda row: row["tie"])
        assert rows == [{"tie": tie, "n": 10, "sum": 180 + 10 * tie} for tie in range(4)]


def test_pages_within_a_key(numbers):
    for container in numbers.both:
        rows = pages(container, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", 1, partition_key="p3")
        assert rows == [36, 25, 14, 3]


def test_a_continuation_serves_another_client(numbers, connect, database):
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    _, token = page(numbers.many, text, size=5)
    other = connect().get_database_client(database.id).get_container_client(numbers.many.id)
    for container in (other, numbers.many, other):
        assert page(container, text, token, size=5)[0] == [5, 6, 7, 8, 9]


def test_a_continuation_of_another_query_is_400(numbers):
    for container in numbers.both:
        _, token = page(container, "SELECT VALUE c.n FROM c ORDER BY c.n")
        for text in ("SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n DESC"):
            with fails(400):
                page(container, text, token)


def test_a_continuation_with_other_parameters_is_400(numbers):
    text = "SELECT VALUE c.n FROM c WHERE c.n >= @least"
    _, token = page(numbers.many, text, parameters=[{"name": "@least", "value": 5}])
    with fails(400):
        page(numbers.many, text, token, parameters=[{"name": "@least", "value": 6}])


def test_a_continuation_of_another_container_is_400(numbers):
    _, token = page(numbers.one, "SELECT VALUE c.n FROM c")
    with fails(400):
        page(numbers.many, "SELECT VALUE c.n FROM c", token)


@pytest.mark.parametrize("forge", [lambda token: "junk", lambda token: "{}", lambda token: token[:-4], lambda token: token + "x"])
def test_a_forged_continuation_is_400(numbers, forge):
    text = "SELECT VALUE c.n FROM c ORDER BY c.n"
    _, token = page(numbers.many, text)
    with fails(400):
        page(numbers.many, text, forge(token))


def test_continuations_go_on_after_the_server_was_killed(tmp_path):
    server = Server(data_dir=tmp_path / "data")
    wanted = [
        ("SELECT VALUE c.n FROM c ORDER BY c.n DESC", NUMBERS[::-1]),
        ("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 5 LIMIT 20", NUMBERS[5:25]),
        ("SELECT TOP 9 VALUE c.n FROM c ORDER BY c.n", NUMBERS[:9]),
        ("SELECT DISTINCT VALUE c.word FROM c ORDER BY c.word", WORDS),
    ]
    try:
        with CosmosClient(server.endpoint, credential=KEY) as client:
            container = client.create_database("d").create_container("c", PartitionKey(path="/pk"), offer_throughput=30_000)
            for item in ITEMS:
                container.create_item(dict(item))
            begun = [page(container, text) for text, _ in wanted]
            server.kill()
            server = Server(data_dir=tmp_path / "data", port=server.port)
            for (rows, token), (text, expected) in zip(begun, wanted):
                assert rows + pages(container, text, 3, token) == expected, text
        assert server.complaints() == []
    finally:
        server.kill()


def test_query_metrics_are_numbers_by_name(numbers):
    for container in numbers.both:
        options = {"enable_cross_partition_query": True, "populate_query_metrics": True}
        pager = container.query_items("SELECT VALUE c.n FROM c WHERE c.n < 10", **options)
        assert sorted(pager) == NUMBERS[:10]
        text = pager.get_response_headers()["x-ms-documentdb-query-metrics"]
        metrics = {name: float(value) for name, value in (part.split("=") for part in text.split(";"))}
        assert metrics["outputDocumentCount"] == 10
        assert 10 <= metrics["retrievedDocumentCount"] <= 40
        total, run = metrics["totalExecutionTimeInMs"], metrics["VMExecutionTimeInMs"]
        phases = ["queryCompileTimeInMs", "queryPhysicalPlanBuildTimeInMs", "indexLookupTimeInMs", "documentLoadTimeInMs"]
        compiled, planned, index, items = (metrics[name] for name in phases)
        assert min(compiled, planned, index, items) > 0, text
        assert compiled + planned + run <= total + 0.003, text


def test_index_metrics_name_the_paths_that_were_used(numbers):
    for container in numbers.both:
        options = {"enable_cross_partition_query": True, "populate_index_metrics": True}
        pager = container.query_items("SELECT VALUE c.n FROM c WHERE c.n = 7", **options)
        assert list(pager) == [7]
        metrics = pager.get_response_headers()["x-ms-cosmos-index-utilization"]
        assert [index["IndexSpec"] for index in metrics["UtilizedSingleIndexes"]] == ["/n/?"]


def test_the_asynchronous_client_pages_alike(server, numbers, database):
    async def case():
        async with AsyncCosmosClient(server.endpoint, credential=KEY) as client:
            held = client.get_database_client(database.id)
            for container in numbers.both:
                items = held.get_container_client(container.id)
                ordered = items.query_items("SELECT VALUE c.n FROM c ORDER BY c.n DESC", max_item_count=3)
                assert [row async for row in ordered] == NUMBERS[::-1]
                groups = items.query_items("SELECT c.tie, COUNT(1) AS n FROM c GROUP BY c.tie", max_item_count=1)
                assert sorted([row["tie"] async for row in groups]) == [0, 1, 2, 3]

    asyncio.run(case())
