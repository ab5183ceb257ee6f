"""Transactional batches."""

import pytest
from azure.cosmos.exceptions import CosmosBatchOperationError

from support import fails, ids, user


def test_all_operations(container):
    old = container.create_item({"id": "old", "pk": "p", "v": 1})
    container.create_item({"id": "doomed", "pk": "p"})
    results = container.execute_item_batch(
        [
            ("create", ({"id": "new", "pk": "p", "v": 1},)),
            ("upsert", ({"id": "up", "pk": "p", "v": 1},)),
            ("upsert", ({"id": "up", "pk": "p", "v": 2},)),
            ("replace", ("old", {"id": "old", "pk": "p", "v": 2}), {"if_match_etag": old["_etag"]}),
            ("patch", ("new", [{"op": "incr", "path": "/v", "value": 5}])),
            ("patch", ("new", [{"op": "incr", "path": "/v", "value": 1}]), {"filter_predicate": "from c where c.v = 6"}),
            ("read", ("new",)),
            ("delete", ("doomed",)),
        ],
        partition_key="p",
    )
    assert [one["statusCode"] for one in results] == [201, 201, 200, 200, 200, 200, 200, 204]
    assert results[6]["resourceBody"]["v"] == 7
    assert results[0]["eTag"] == results[0]["resourceBody"]["_etag"]
    assert sorted(ids(container.read_all_items())) == ["new", "old", "up"]


@pytest.mark.parametrize(
    "operation, status",
    [
        (("create", ({"id": "taken", "pk": "p"},)), 409),
        (("read", ("none",)), 404),
        (("delete", ("none",)), 404),
        (("replace", ("taken", {"id": "taken", "pk": "p"}), {"if_match_etag": '"stale"'}), 412),
        (("patch", ("taken", [{"op": "remove", "path": "/none"}])), 400),
        (("patch", ("taken", [{"op": "set", "path": "/v", "value": 2}]), {"filter_predicate": "from c where c.v = 9"}), 412),
        (("create", ({"id": "x", "pk": "other"},)), 400),
    ],
    ids=["conflict", "read", "delete", "etag", "patch", "condition", "key"],
)
def test_one_failure_undoes_everything(container, operation, status):
    before = container.create_item({"id": "taken", "pk": "p", "v": 1})
    operations = [
        ("create", ({"id": "first", "pk": "p"},)),
        ("patch", ("taken", [{"op": "set", "path": "/v", "value": 1}])),
        operation,
        ("create", ({"id": "last", "pk": "p"},)),
    ]
    with pytest.raises(CosmosBatchOperationError) as caught:
        container.execute_item_batch(operations, partition_key="p")
    assert caught.value.error_index == 2
    assert caught.value.status_code == status
    assert [one["statusCode"] for one in caught.value.operation_responses] == [424, 424, status, 424]
    assert list(container.read_all_items()) == [before]


def test_hundred_operations_and_one_more(container):
    operations = [("create", ({"id": f"i{n}", "pk": "p"},)) for n in range(100)]
    assert len(container.execute_item_batch(operations, partition_key="p")) == 100
    more = [("upsert", ({"id": f"i{n}", "pk": "p", "v": 1},)) for n in range(101)]
    with fails(400):
        container.execute_item_batch(more, partition_key="p")
    assert user(container.read_item("i0", "p")) == {"id": "i0", "pk": "p"}


def test_unmodified_read_in_a_batch(container):
    item = container.create_item({"id": "a", "pk": "p"})
    results = container.execute_item_batch(
        [("create", ({"id": "b", "pk": "p"},))], partition_key="p"
    )
    assert results[0]["statusCode"] == 201
    with pytest.raises(CosmosBatchOperationError) as caught:
        container.execute_item_batch(
            [("upsert", ({"id": "a", "pk": "p"},), {"if_match_etag": "stale"})], partition_key="p"
        )
    assert caught.value.status_code == 412
    assert container.read_item("a", "p")["_etag"] == item["_etag"]
