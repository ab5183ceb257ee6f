"""Read feeds, read-many, queries, feed ranges and hierarchical keys."""

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.partition_key import NonePartitionKeyValue

from support import fails, ids, query, user


@pytest.fixture
def filled(make):
    """Thirty items over three physical partitions."""
    container = make(offer_throughput=30_000)
    for n in range(30):
        container.create_item({"id": f"i{n:02}", "pk": f"p{n % 10}", "n": n})
    return container


def test_read_all_items_pages(filled):
    pages = [list(page) for page in filled.read_all_items(max_item_count=7).by_page()]
    assert all(len(page) <= 7 for page in pages) and len(pages) >= 5
    assert sorted(ids(sum(pages, []))) == [f"i{n:02}" for n in range(30)]


def test_read_all_items_resumes(filled):
    first = filled.read_all_items(max_item_count=7).by_page()
    seen = ids(next(first))
    rest = filled.read_all_items(max_item_count=7).by_page(first.continuation_token)
    seen += [item["id"] for page in rest for item in page]
    assert sorted(seen) == [f"i{n:02}" for n in range(30)]


def test_read_all_items_of_nothing(container):
    assert list(container.read_all_items()) == []


def test_query_resumes_across_pages(filled):
    text = "SELECT * FROM c WHERE c.n >= 5"
    options = {"enable_cross_partition_query": True, "max_item_count": 4}
    seen, token = [], None
    while True:
        pager = filled.query_items(text, **options).by_page(token)
        seen += ids(next(pager))
        token = pager.continuation_token
        if not token:
            break
        assert len(seen) <= 30, "the continuation never ended"
    assert sorted(seen) == [f"i{n:02}" for n in range(5, 30)]


def test_read_items_of_many_keys(filled):
    wanted = [(f"i{n:02}", f"p{n % 10}") for n in range(0, 30, 2)]
    found = filled.read_items([*wanted, ("none", "p1")])
    assert sorted(ids(found)) == sorted(identity for identity, _ in wanted)


def test_read_items_of_one_key(filled):
    assert sorted(ids(filled.read_items([("i03", "p3"), ("i13", "p3"), ("i23", "p3")]))) == ["i03", "i13", "i23"]
    assert ids(filled.read_items([("i04", "p4")])) == ["i04"]
    assert list(filled.read_items([])) == []


def test_read_items_whose_key_is_the_id(make):
    container = make(partition_key=PartitionKey(path="/id"))
    for n in range(12):
        container.create_item({"id": f"i{n}"})
    found = container.read_items([(f"i{n}", f"i{n}") for n in range(12)])
    assert sorted(ids(found)) == sorted(f"i{n}" for n in range(12))


def test_read_items_without_a_key(container):
    container.create_item({"id": "a"})
    container.create_item({"id": "b"})
    container.create_item({"id": "c", "pk": "p"})
    wanted = [("a", NonePartitionKeyValue), ("b", NonePartitionKeyValue), ("c", "p")]
    assert sorted(ids(container.read_items(wanted))) == ["a", "b", "c"]


def test_feed_ranges_share_the_items(filled):
    ranges = list(filled.read_feed_ranges())
    assert len(ranges) == 3
    shares = [ids(query(filled, "SELECT * FROM c", feed_range=one)) for one in ranges]
    assert all(shares)
    assert sorted(sum(shares, [])) == [f"i{n:02}" for n in range(30)]


def test_feed_range_of_a_key(filled):
    own = filled.feed_range_from_partition_key("p3")
    assert sorted(ids(query(filled, "SELECT * FROM c", feed_range=own))) == ["i03", "i13", "i23"]
    holders = [one for one in filled.read_feed_ranges() if filled.is_feed_range_subset(one, own)]
    assert len(holders) == 1


def test_filters(filled):
    where = lambda text, **values: sorted(  # noqa: E731
        query(filled, f"SELECT VALUE c.n FROM c WHERE {text}", where={f"@{k}": v for k, v in values.items()})
    )
    assert where("c.n = 3") == [3]
    assert where("c.n > 26 AND c.pk != 'p9'") == [27, 28]
    assert where("c.n IN (1, 2, 99) OR c.n = 4") == [1, 2, 4]
    assert where("NOT (c.n < 28)") == [28, 29]
    assert where("STARTSWITH(c.id, 'i2') AND c.n <= @most", most=21) == [20, 21]
    assert where("c.pk = @pk", pk="p7") == [7, 17, 27]
    assert where("IS_DEFINED(c.none)") == []


def test_order_and_top(filled):
    assert query(filled, "SELECT VALUE c.n FROM c ORDER BY c.n DESC") == list(range(29, -1, -1))
    assert query(filled, "SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n") == [0, 1, 2]
    assert query(filled, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 2") == [10, 11]
    assert query(filled, "SELECT VALUE c.n FROM c ORDER BY c.n", partition_key="p3") == [3, 13, 23]


def test_count(filled):
    assert query(filled, "SELECT VALUE COUNT(1) FROM c") == [30]


def test_projection(filled):
    rows = query(filled, "SELECT c.id, c.n AS number FROM c WHERE c.n = 8")
    assert rows == [{"id": "i08", "number": 8}]


def test_query_metrics(filled):
    options = {"enable_cross_partition_query": True, "populate_query_metrics": True}
    pager = filled.query_items("SELECT * FROM c WHERE c.n > 20", **options)
    assert len(list(pager)) == 9
    metrics = pager.get_response_headers()["x-ms-documentdb-query-metrics"]
    assert all("=" in part for part in metrics.split(";"))


@pytest.mark.parametrize("text", ["SELECT", "SELECT * FORM c", "SELECT * FROM c WHERE c.a =", "SELECT VALUE nope(c.a) FROM c"])
def test_bad_query_is_400(container, text):
    with fails(400) as caught:
        query(container, text)
    assert len(caught.value.message) > 20


@pytest.fixture
def tenants(make):
    key = PartitionKey(path=["/tenant", "/user", "/session"], kind="MultiHash")
    container = make(partition_key=key, offer_throughput=20_000)
    for tenant in ("t1", "t2"):
        for person in ("u1", "u2"):
            for session in (1, 2):
                body = {"tenant": tenant, "user": person, "session": session}
                container.create_item({"id": f"{tenant}-{person}-{session}", **body})
    return container


def test_hierarchical_point_operations(tenants):
    assert tenants.read_item("t1-u1-1", ["t1", "u1", 1])["session"] == 1
    patched = tenants.patch_item("t1-u1-1", ["t1", "u1", 1], [{"op": "set", "path": "/v", "value": 1}])
    assert patched["v"] == 1
    tenants.delete_item("t1-u1-1", ["t1", "u1", 1])
    with fails(404):
        tenants.read_item("t1-u1-1", ["t1", "u1", 1])


def test_hierarchical_prefix_queries(tenants):
    find = lambda key: sorted(ids(query(tenants, "SELECT * FROM c", partition_key=key)))  # noqa: E731
    assert find(["t1"]) == ["t1-u1-1", "t1-u1-2", "t1-u2-1", "t1-u2-2"]
    assert find(["t1", "u2"]) == ["t1-u2-1", "t1-u2-2"]
    assert find(["t1", "u2", 2]) == ["t1-u2-2"]
    assert find(["none"]) == []


def test_hierarchical_read_many(tenants):
    wanted = [(f"{t}-u1-{s}", [t, "u1", s]) for t in ("t1", "t2") for s in (1, 2)]
    assert sorted(ids(tenants.read_items(wanted))) == sorted(identity for identity, _ in wanted)


def test_hierarchical_delete_by_key(tenants):
    tenants.delete_all_items_by_partition_key(["t1", "u1", 1])
    assert len(list(tenants.read_all_items())) == 7


def test_hierarchical_batch(tenants):
    body = {"id": "b", "tenant": "t9", "user": "u9", "session": 9}
    tenants.execute_item_batch([("create", (body,))], partition_key=["t9", "u9", 9])
    assert user(tenants.read_item("b", ["t9", "u9", 9])) == body
