"""Stored procedures, triggers and user-defined functions as resources of a container."""

import pytest
from azure.cosmos.documents import TriggerOperation, TriggerType

from support import fails, ids, raw, user

BODY = "function (x) { return x; }"


class Kind:
    """The calls of one kind of script: the three differ in names only."""

    def __init__(self, name, plural, keyword, most, **more):
        self.name, self.plural, self.keyword, self.most, self.more = name, plural, keyword, most, more

    def __call__(self, container):
        return Calls(container.scripts, self)


class Calls:
    def __init__(self, scripts, kind):
        self.create = getattr(scripts, f"create_{kind.name}")
        self.get = getattr(scripts, f"get_{kind.name}")
        self.replace = getattr(scripts, f"replace_{kind.name}")
        self.delete = getattr(scripts, f"delete_{kind.name}")
        self.list = getattr(scripts, f"list_{kind.plural}")
        self.query = getattr(scripts, f"query_{kind.plural}")


KINDS = [
    Kind("stored_procedure", "stored_procedures", "sprocs", 100),
    Kind("trigger", "triggers", "triggers", 25, triggerType=TriggerType.Pre, triggerOperation=TriggerOperation.All),
    Kind("user_defined_function", "user_defined_functions", "udfs", 50),
]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.keyword)


@every_kind
def test_create_read_delete(container, kind):
    calls = kind(container)
    created = calls.create({"id": "s", "body": BODY, **kind.more})
    assert user(created) == {"id": "s", "body": BODY, **kind.more}
    assert f"/{kind.keyword}/" in created["_self"]
    assert calls.get("s") == created
    assert calls.get(created) == created, "by its self link"
    with fails(409):
        calls.create({"id": "s", "body": BODY, **kind.more})
    calls.delete("s")
    with fails(404):
        calls.get("s")
    with fails(404):
        calls.delete("s")


@every_kind
def test_replace(container, kind):
    calls = kind(container)
    created = calls.create({"id": "s", "body": BODY, **kind.more})
    replaced = calls.replace("s", {**created, "body": "function () { return 2; }"})
    assert replaced["body"] == "function () { return 2; }"
    assert replaced["_rid"] == created["_rid"] and replaced["_etag"] != created["_etag"]
    calls.replace(replaced, {"id": "renamed", "body": BODY, **kind.more})
    assert ids(calls.list()) == ["renamed"]
    with fails(404):
        calls.replace("none", {"id": "none", "body": BODY, **kind.more})


@every_kind
def test_list_and_query(container, kind):
    calls = kind(container)
    assert list(calls.list()) == []
    for id in ("a", "b", "c"):
        calls.create({"id": id, "body": BODY, **kind.more})
    assert sorted(ids(calls.list())) == ["a", "b", "c"]
    assert sorted(ids(calls.list(max_item_count=2))) == ["a", "b", "c"]
    found = calls.query("SELECT * FROM s WHERE s.id = @id", parameters=[{"name": "@id", "value": "b"}])
    assert ids(found) == ["b"]


@every_kind
@pytest.mark.parametrize("body", ["function ( {", "function () { return }; }", "   "], ids=["open", "closed", "blank"])
def test_broken_text(container, kind, body):
    calls = kind(container)
    with fails(400):
        calls.create({"id": "s", "body": body, **kind.more})
    calls.create({"id": "s", "body": BODY, **kind.more})
    with fails(400):
        calls.replace("s", {"id": "s", "body": body, **kind.more})
    assert calls.get("s")["body"] == BODY


@every_kind
def test_most(container, kind):
    calls = kind(container)
    for n in range(kind.most):
        calls.create({"id": f"s{n}", "body": BODY, **kind.more})
    with fails(403):
        calls.create({"id": "more", "body": BODY, **kind.more})
    calls.delete("s0")
    calls.create({"id": "more", "body": BODY, **kind.more})


@every_kind
def test_upsert_over_the_wire(server, database, container, kind):
    path = f"/dbs/{database.id}/colls/{container.id}/{kind.keyword}"
    upsert = {"x-ms-documentdb-is-upsert": "True"}
    for expected in (201, 200):
        status, _, body = raw(server.endpoint, "POST", path, {"id": "s", "body": BODY, **kind.more}, upsert)
        assert (status, body["id"]) == (expected, "s")
    for bad in ({"id": "t"}, {"id": "t", "body": 1}, {"body": BODY}):
        status, _, body = raw(server.endpoint, "POST", path, {**bad, **kind.more}, upsert)
        assert status == 400 and body["message"]


def test_scripts_go_with_their_container(database, make):
    container = make()
    container.scripts.create_stored_procedure({"id": "s", "body": BODY})
    database.delete_container(container)
    again = make(id=container.id)
    assert list(again.scripts.list_stored_procedures()) == []


def test_when_a_trigger_runs(container):
    for kind in (TriggerType.Pre, TriggerType.Post, "Pre", "Post"):
        for operation in (TriggerOperation.All, TriggerOperation.Update, "Create", "Replace", "Delete", "Upsert"):
            body = {"id": "t", "body": BODY, "triggerType": kind, "triggerOperation": operation}
            assert user(container.scripts.create_trigger(body)) == body
            container.scripts.delete_trigger("t")
    for more in ({"triggerType": "During", "triggerOperation": "All"}, {"triggerType": "Pre", "triggerOperation": "Read"}):
        with fails(400):
            container.scripts.create_trigger({"id": "t", "body": BODY, **more})
