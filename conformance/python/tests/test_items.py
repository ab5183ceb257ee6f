"""Items: create, read, replace, upsert, patch, delete, conditions, minimal answers, keys, ids."""

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.documents import IndexingDirective
from azure.cosmos.partition_key import NonePartitionKeyValue, NullPartitionKeyValue

from support import fails, ids, last_headers, query, raw, unique, user


def test_create_and_read(container):
    created = container.create_item({"id": "a", "pk": "p", "name": "first"})
    assert user(created) == {"id": "a", "pk": "p", "name": "first"}
    headers = created.get_response_headers()
    assert headers["etag"] == created["_etag"]
    assert float(headers["x-ms-request-charge"]) > 0
    assert headers["x-ms-session-token"].startswith("0:-1#")
    assert container.read_item("a", "p") == created
    assert created["_self"].startswith(container.read()["_self"])


def test_missing_item_is_404(container):
    with fails(404, 0) as caught:
        container.read_item("none", "p")
    assert caught.value.headers["x-ms-session-token"]
    with fails(404):
        container.replace_item("none", {"id": "none", "pk": "p"})
    with fails(404):
        container.delete_item("none", "p")
    with fails(404):
        container.patch_item("none", "p", [{"op": "set", "path": "/a", "value": 1}])


def test_id_is_unique_within_its_key(container):
    container.create_item({"id": "a", "pk": "p"})
    with fails(409):
        container.create_item({"id": "a", "pk": "p"})
    container.create_item({"id": "a", "pk": "q"})


def test_id_is_required_unless_generated(container):
    with fails(400):
        container.create_item({"pk": "p"})
    assert container.create_item({"pk": "p"}, enable_automatic_id_generation=True)["id"]


def test_replace_and_upsert(container):
    created = container.upsert_item({"id": "a", "pk": "p", "v": 1, "w": 1})
    replaced = container.replace_item("a", {"id": "a", "pk": "p", "v": 2})
    assert user(replaced) == {"id": "a", "pk": "p", "v": 2}
    assert replaced["_rid"] == created["_rid"] and replaced["_etag"] != created["_etag"]
    upserted = container.upsert_item({"id": "a", "pk": "p", "v": 3})
    assert user(upserted) == {"id": "a", "pk": "p", "v": 3}
    assert user(container.read_item("a", "p")) == {"id": "a", "pk": "p", "v": 3}


def test_replace_may_change_the_id_but_not_the_key(server, database, container):
    container.create_item({"id": "old", "pk": "p"})
    container.replace_item("old", {"id": "new", "pk": "p"})
    assert container.read_item("new", "p")["id"] == "new"
    with fails(404):
        container.read_item("old", "p")
    status, headers, _ = raw(
        server.endpoint,
        "PUT",
        f"/dbs/{database.id}/colls/{container.id}/docs/new",
        {"id": "new", "pk": "q"},
        {"x-ms-documentdb-partitionkey": '["p"]'},
    )
    assert (status, headers["x-ms-substatus"]) == (400, "1001")


def test_delete(container):
    container.create_item({"id": "a", "pk": "p"})
    assert container.delete_item("a", "p") is None
    with fails(404):
        container.read_item("a", "p")


def test_bodies_survive(container):
    body = {
        "id": "a",
        "pk": "p",
        "z": [1, 2.5, -3, 1e100, 0.1, None, True, {"deep": [{"er": "x"}]}],
        "text": "é 😀 \" \\ \n \u2028",
        "": "empty name",
        "big": 2**53,
    }
    container.create_item(body)
    read = container.read_item("a", "p")
    assert user(read) == body
    assert [name for name in read if name in body] == list(body)


@pytest.mark.parametrize("directive, found", [(IndexingDirective.Exclude, []), (IndexingDirective.Include, ["a"])])
def test_indexing_directive(container, directive, found):
    container.create_item({"id": "a", "pk": "p", "v": 1}, indexing_directive=directive)
    assert container.read_item("a", "p")["v"] == 1
    assert ids(query(container, "SELECT * FROM c WHERE c.v = 1")) == found


def test_etag_guards_replace(container):
    item = container.create_item({"id": "a", "pk": "p", "v": 1})
    guard = {"etag": item["_etag"], "match_condition": MatchConditions.IfNotModified}
    container.replace_item("a", {"id": "a", "pk": "p", "v": 2}, **guard)
    with fails(412):
        container.replace_item("a", {"id": "a", "pk": "p", "v": 3}, **guard)
    assert container.read_item("a", "p")["v"] == 2


def test_etag_guards_upsert_patch_and_delete(container):
    item = container.create_item({"id": "a", "pk": "p", "v": 1})
    stale = {"etag": item["_etag"], "match_condition": MatchConditions.IfNotModified}
    current = container.upsert_item({"id": "a", "pk": "p", "v": 2}, **stale)
    with fails(412):
        container.upsert_item({"id": "a", "pk": "p", "v": 3}, **stale)
    with fails(412):
        container.patch_item("a", "p", [{"op": "incr", "path": "/v", "value": 1}], **stale)
    with fails(412):
        container.delete_item("a", "p", **stale)
    fresh = {"etag": current["_etag"], "match_condition": MatchConditions.IfNotModified}
    container.delete_item("a", "p", **fresh)


def test_read_of_an_unmodified_item_is_empty(container):
    item = container.create_item({"id": "a", "pk": "p"})
    options = {"etag": item["_etag"], "match_condition": MatchConditions.IfModified}
    unmodified = container.read_item("a", "p", **options)
    assert unmodified == {}
    container.upsert_item({"id": "a", "pk": "p", "v": 2})
    assert container.read_item("a", "p", **options)["v"] == 2


def test_must_exist(container):
    container.create_item({"id": "a", "pk": "p"})
    present = {"match_condition": MatchConditions.IfPresent}
    assert container.replace_item("a", {"id": "a", "pk": "p", "v": 1}, **present)["v"] == 1


def test_minimal_answers(container):
    created = container.create_item({"id": "a", "pk": "p", "v": 1}, no_response=True)
    assert created == {} and created.get_response_headers()["etag"]
    assert container.upsert_item({"id": "a", "pk": "p", "v": 2}, no_response=True) == {}
    assert container.replace_item("a", {"id": "a", "pk": "p", "v": 3}, no_response=True) == {}
    operations = [{"op": "incr", "path": "/v", "value": 1}]
    assert container.patch_item("a", "p", operations, no_response=True) == {}
    item = container.read_item("a", "p")
    assert item["v"] == 4
    assert item["_etag"] == last_headers(container)["etag"]


def test_client_without_answers_to_writes(connect, database, container):
    quiet = connect(no_response_on_write=True)
    held = quiet.get_database_client(database.id).get_container_client(container.id)
    assert held.create_item({"id": "a", "pk": "p"}) == {}
    assert held.create_item({"id": "b", "pk": "p"}, no_response=False)["id"] == "b"


def test_patch_operations(container):
    container.create_item({"id": "a", "pk": "p", "n": 1, "list": [1, 3], "o": {"x": 1}, "old": 1})
    patched = container.patch_item(
        "a",
        "p",
        [
            {"op": "add", "path": "/list/1", "value": 2},
            {"op": "add", "path": "/list/-", "value": 4},
            {"op": "set", "path": "/set", "value": {"deep": True}},
            {"op": "replace", "path": "/o/x", "value": 2},
            {"op": "remove", "path": "/old"},
            {"op": "incr", "path": "/n", "value": -3},
            {"op": "move", "from": "/o/x", "path": "/moved"},
        ],
    )
    assert user(patched) == {
        "id": "a", "pk": "p", "n": -2, "list": [1, 2, 3, 4], "o": {}, "set": {"deep": True}, "moved": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "remove", "path": "/none"},
        {"op": "incr", "path": "/text", "value": 1},
        {"op": "move", "from": "/none", "path": "/x"},
        {"op": "add", "path": "/none/x", "value": 1},
        {"op": "set", "path": "/id", "value": "b"},
        {"op": "set", "path": "/pk", "value": "q"},
        {"op": "set", "path": "/_ts", "value": 1},
        {"op": "copy", "from": "/text", "path": "/x"},
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_patch_refusals_change_nothing(container, operation):
    before = container.create_item({"id": "a", "pk": "p", "text": "t"})
    with fails(400):
        container.patch_item("a", "p", [{"op": "set", "path": "/v", "value": 1}, operation])
    assert container.read_item("a", "p") == before


def test_patch_takes_ten_operations(container):
    container.create_item({"id": "a", "pk": "p"})
    operations = [{"op": "set", "path": f"/p{n}", "value": n} for n in range(11)]
    container.patch_item("a", "p", operations[:10])
    with fails(400):
        container.patch_item("a", "p", operations)


def test_patch_condition(container):
    container.create_item({"id": "a", "pk": "p", "v": 1})
    operations = [{"op": "incr", "path": "/v", "value": 1}]
    container.patch_item("a", "p", operations, filter_predicate="from c where c.v = 1")
    with fails(412):
        container.patch_item("a", "p", operations, filter_predicate="from c where c.v = 1")
    assert container.read_item("a", "p")["v"] == 2


@pytest.mark.parametrize("key", ["s", "", "é😀", 1, -1.5, 0, True, False], ids=repr)
def test_keys_of_every_type(container, key):
    container.create_item({"id": "a", "pk": key})
    assert container.read_item("a", key)["pk"] == key
    assert ids(query(container, "SELECT * FROM c", partition_key=key)) == ["a"]
    container.delete_item("a", key)


def test_missing_key_is_not_null_key(container):
    container.create_item({"id": "a", "mark": "missing"})
    container.create_item({"id": "a", "pk": None, "mark": "null"})
    assert container.read_item("a", NonePartitionKeyValue)["mark"] == "missing"
    assert container.read_item("a", NullPartitionKeyValue)["mark"] == "null"
    assert container.read_item("a", None)["mark"] == "null"
    assert query(container, "SELECT VALUE c.mark FROM c WHERE c.pk = null") == ["null"]
    assert query(container, "SELECT VALUE c.mark FROM c WHERE NOT IS_DEFINED(c.pk)") == ["missing"]
    assert query(container, "SELECT VALUE c.mark FROM c", partition_key=NonePartitionKeyValue) == ["missing"]


@pytest.mark.parametrize("identity", ["with space", "x y%é+&=", "100%", "%41", "日本語😀", "quote\"'", "a.b:c;d,e@f"])
def test_ids_of_every_kind(container, identity):
    container.create_item({"id": identity, "pk": "p"})
    assert container.read_item(identity, "p")["id"] == identity
    container.replace_item(identity, {"id": identity, "pk": "p", "v": 1})
    container.delete_item(identity, "p")


@pytest.mark.parametrize("identity", ["", "a/b", "a\\b", "a ", 7, None])
def test_unusable_ids_are_refused(server, database, container, identity):
    path = f"/dbs/{database.id}/colls/{container.id}/docs/"
    status, _, body = raw(server.endpoint, "POST", path, {"id": identity, "pk": "p"})
    assert status == 400 and body["message"]


def test_limits_of_size_and_id(container):
    container.create_item({"id": "x" * 1023, "pk": "p"})
    with fails(400):
        container.create_item({"id": "x" * 1024, "pk": "p"})
    container.create_item({"id": "below", "pk": "p", "text": "x" * 2_000_000})
    with fails(413):
        container.create_item({"id": "above", "pk": "p", "text": "x" * (2 * 1024 * 1024)})


def test_delete_by_partition_key(container):
    for n in range(4):
        container.create_item({"id": f"i{n}", "pk": "gone"})
        container.create_item({"id": f"i{n}", "pk": "stays"})
    container.delete_all_items_by_partition_key("gone")
    assert query(container, "SELECT * FROM c", partition_key="gone") == []
    assert len(list(container.read_all_items())) == 4
    container.create_item({"id": "i0", "pk": "gone"})
    assert container.read_item("i0", "gone")["id"] == "i0"


def test_unique_keys(make):
    container = make(unique_key_policy={"uniqueKeys": [{"paths": ["/email"]}]})
    container.create_item({"id": "a", "pk": "p", "email": "x"})
    with fails(409):
        container.create_item({"id": "b", "pk": "p", "email": "x"})
    container.create_item({"id": "b", "pk": "q", "email": "x"})
    container.create_item({"id": "c", "pk": "p"})
    with fails(409):
        container.create_item({"id": "d", "pk": "p", "email": None})
    with fails(409):
        container.patch_item("c", "p", [{"op": "set", "path": "/email", "value": "x"}])


def test_nested_key_path(make):
    container = make(partition_key=PartitionKey(path="/a/b"))
    container.create_item({"id": "x", "a": {"b": "k"}})
    assert container.read_item("x", "k")["a"] == {"b": "k"}


def test_missing_container_is_404(database):
    with fails(404):
        database.get_container_client(unique("none")).read_item("a", "p")
