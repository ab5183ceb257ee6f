"""Change feed: starts, scopes, resuming, and all versions and deletes."""

from datetime import datetime, timezone

import pytest
from azure.cosmos import PartitionKey

from support import fails, ids, last_headers, until


def read(container, **options):
    """What the feed has now, and the token to go on from."""
    items = list(container.query_items_change_feed(**options))
    return items, last_headers(container)["etag"]


def create(container, key, *names):
    for name in names:
        container.create_item({"id": name, "pk": key})


def test_from_the_beginning(container):
    create(container, "p", "a", "b", "c", "d")
    container.upsert_item({"id": "b", "pk": "p", "v": 2})
    container.delete_item("c", "p")
    items, _ = read(container, start_time="Beginning")
    assert ids(items) == ["a", "d", "b"]
    assert items[2]["v"] == 2
    assert [item["_lsn"] for item in items] == sorted(item["_lsn"] for item in items)


def test_from_now_and_on(container):
    create(container, "p", "before")
    items, token = read(container, start_time="Now")
    assert items == []
    create(container, "p", "after")
    items, token = read(container, continuation=token)
    assert ids(items) == ["after"]
    assert read(container, continuation=token)[0] == []


def test_from_a_time(container):
    early = container.create_item({"id": "early", "pk": "p"})

    def write_later():
        item = container.upsert_item({"id": "late", "pk": "p"})
        return item if item["_ts"] >= early["_ts"] + 2 else None

    late = until("a later second", write_later)
    start = datetime.fromtimestamp(late["_ts"], timezone.utc)
    assert ids(read(container, start_time=start)[0]) == ["late"]
    past = datetime.fromtimestamp(early["_ts"] - 60, timezone.utc)
    assert sorted(ids(read(container, start_time=past)[0])) == ["early", "late"]


def test_pages(container):
    create(container, "p", *"abcde")
    pager = container.query_items_change_feed(start_time="Beginning", max_item_count=2).by_page()
    assert ids(next(pager)) == ["a", "b"]
    rest, _ = read(container, continuation=pager.continuation_token)
    assert ids(rest) == ["c", "d", "e"]


def test_by_partition_key(make):
    container = make(offer_throughput=20_000)
    create(container, "p", "a", "b")
    create(container, "q", "c")
    items, token = read(container, partition_key="p", start_time="Beginning")
    assert ids(items) == ["a", "b"]
    create(container, "q", "d")
    create(container, "p", "e")
    assert ids(read(container, continuation=token)[0]) == ["e"]


def test_by_feed_range(make):
    container = make(offer_throughput=30_000)
    names = [f"i{n}" for n in range(30)]
    for name in names:
        create(container, name, name)
    shares = [
        ids(read(container, feed_range=one, start_time="Beginning")[0])
        for one in container.read_feed_ranges()
    ]
    assert len(shares) == 3 and all(shares)
    assert sorted(sum(shares, [])) == sorted(names)


def test_over_all_ranges(make):
    container = make(offer_throughput=30_000)
    for n in range(40):
        container.create_item({"id": f"i{n:02}", "pk": f"p{n % 8}", "n": n})
    items, token = read(container, start_time="Beginning", max_item_count=3)
    assert len({item["id"] for item in items}) == len(items) == 40
    for key in range(8):
        own = [item["n"] for item in items if item["pk"] == f"p{key}"]
        assert own == sorted(own)
    create(container, "p3", "later")
    assert ids(read(container, continuation=token)[0]) == ["later"]


def test_by_range_id_of_old(container):
    create(container, "p", "a", "b")
    items = container.query_items_change_feed(partition_key_range_id="0", is_start_from_beginning=True)
    assert ids(items) == ["a", "b"]


def test_by_prefix_of_a_hierarchical_key(make):
    container = make(partition_key=PartitionKey(path=["/t", "/u"], kind="MultiHash"), offer_throughput=20_000)
    for tenant in ("t1", "t2"):
        for n in range(3):
            container.create_item({"id": f"{tenant}-{n}", "t": tenant, "u": n})
    items, _ = read(container, partition_key=["t1", 1], start_time="Beginning")
    assert ids(items) == ["t1-1"]
    items, _ = read(container, partition_key=["t1"], start_time="Beginning")
    assert sorted(ids(items)) == ["t1-0", "t1-1", "t1-2"]


def test_batches_stay_whole(container):
    operations = [("create", ({"id": name, "pk": "p"},)) for name in "abcd"]
    container.execute_item_batch(operations, partition_key="p")
    page = next(container.query_items_change_feed(start_time="Beginning", max_item_count=1).by_page())
    assert sorted(ids(page)) == ["a", "b", "c", "d"]


@pytest.fixture
def retained(make):
    return make(change_feed_policy={"retentionDuration": 10}, default_ttl=-1)


def versions(container, token=None):
    if token:
        return read(container, continuation=token)
    return read(container, mode="AllVersionsAndDeletes")


def test_all_versions_and_deletes(retained):
    items, token = versions(retained)
    assert items == []
    retained.create_item({"id": "a", "pk": "p", "v": 1})
    retained.upsert_item({"id": "a", "pk": "p", "v": 2})
    retained.patch_item("a", "p", [{"op": "incr", "path": "/v", "value": 1}])
    retained.delete_item("a", "p")
    changes, token = versions(retained, token)
    kinds = [change["metadata"]["operationType"] for change in changes]
    assert kinds == ["create", "replace", "replace", "delete"]
    assert [change["current"]["v"] for change in changes[:3]] == [1, 2, 3]
    deleted = changes[3]
    assert not deleted.get("current")
    assert deleted["metadata"]["id"] == "a" and deleted["metadata"]["partitionKey"] == {"pk": "p"}
    assert deleted["previous"]["v"] == 3
    assert versions(retained, token)[0] == []


def test_expiry_among_all_versions(retained):
    _, token = versions(retained)
    retained.create_item({"id": "a", "pk": "p", "ttl": 1})
    seen = []

    def deleted():
        nonlocal token
        changes, token = versions(retained, token)
        seen.extend(changes)
        return any(change["metadata"]["operationType"] == "delete" for change in seen)

    until("the expiry in the feed", deleted, within=20, every=0.2)
    assert seen[-1]["metadata"]["timeToLiveExpired"] is True


def test_all_versions_have_no_beginning_and_need_retention(container, retained):
    with pytest.raises(ValueError):
        read(retained, mode="AllVersionsAndDeletes", start_time="Beginning")
    with fails(400):
        read(container, mode="AllVersionsAndDeletes")
