"""Triggers before and after writes."""

import asyncio

import pytest
from azure.core import MatchConditions
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient
from azure.cosmos.documents import TriggerOperation

from scripting import LOG, after, before, said
from server import KEY
from support import fails, ids, unique, user

STAMP = """function () {
    const request = getContext().getRequest();
    const item = request.getBody();
    item.stamp = request.getOperationType();
    request.setBody(item);
}"""

JOURNAL = """function () {
    const collection = getContext().getCollection();
    const written = getContext().getResponse().getBody();
    const entry = {id: "journal-" + (written ? written.id : "deleted"), pk: "p"};
    collection.upsertDocument(collection.getSelfLink(), entry, function (err) { if (err) throw err; });
}"""

THROW = "function () { throw new Error(422, 'refused'); }"


def test_pre_trigger_changes_the_item(container):
    stamp = before(container, STAMP)
    assert container.create_item({"id": "a", "pk": "p"}, pre_trigger_include=stamp)["stamp"] == "Create"
    assert container.replace_item("a", {"id": "a", "pk": "p"}, pre_trigger_include=stamp)["stamp"] == "Replace"
    assert container.upsert_item({"id": "a", "pk": "p"}, pre_trigger_include=stamp)["stamp"] == "Upsert"
    assert user(container.read_item("a", "p")) == {"id": "a", "pk": "p", "stamp": "Upsert"}


def test_triggers_run_only_where_they_are_named(container):
    before(container, THROW)
    after(container, THROW)
    assert user(container.create_item({"id": "a", "pk": "p"})) == {"id": "a", "pk": "p"}


def test_unknown_trigger(container):
    for name in ("pre_trigger_include", "post_trigger_include"):
        with fails(400):
            container.create_item({"id": "a", "pk": "p"}, **{name: "none"})
    assert list(container.read_all_items()) == []


def test_wrong_side(container):
    with fails(400):
        container.create_item({"id": "a", "pk": "p"}, pre_trigger_include=after(container, JOURNAL))
    with fails(400):
        container.create_item({"id": "a", "pk": "p"}, post_trigger_include=before(container, STAMP))


@pytest.mark.parametrize(
    "operation, runs",
    [
        (TriggerOperation.Create, {"create"}),
        (TriggerOperation.Replace, {"replace"}),
        (TriggerOperation.Update, {"replace"}),
        (TriggerOperation.Delete, {"delete"}),
        (TriggerOperation.All, {"create", "replace", "delete"}),
    ],
)
def test_operation(container, operation, runs):
    container.create_item({"id": "old", "pk": "p"})
    trigger = before(container, "function () {}", operation)
    writes = {
        "create": lambda: container.create_item({"id": "new", "pk": "p"}, pre_trigger_include=trigger),
        "replace": lambda: container.replace_item("old", {"id": "old", "pk": "p"}, pre_trigger_include=trigger),
        "delete": lambda: container.delete_item("old", "p", pre_trigger_include=trigger),
    }
    for name, write in writes.items():
        if name in runs:
            write()
        else:
            with fails(400):
                write()


@pytest.mark.parametrize("side", [before, after])
def test_a_throwing_trigger_prevents_or_undoes(container, side):
    container.create_item({"id": "old", "pk": "p", "n": 1})
    option = "pre_trigger_include" if side is before else "post_trigger_include"
    named = {option: side(container, THROW)}
    for write in (
        lambda: container.create_item({"id": "new", "pk": "p"}, **named),
        lambda: container.replace_item("old", {"id": "old", "pk": "p", "n": 2}, **named),
        lambda: container.upsert_item({"id": "old", "pk": "p", "n": 2}, **named),
        lambda: container.delete_item("old", "p", **named),
    ):
        with fails(400, 422) as caught:
            write()
        assert "refused" in said(caught)
    assert [user(item) for item in container.read_all_items()] == [{"id": "old", "pk": "p", "n": 1}]


def test_post_trigger_writes(container):
    journal = after(container, JOURNAL)
    container.create_item({"id": "a", "pk": "p"}, post_trigger_include=journal)
    assert sorted(ids(container.read_all_items())) == ["a", "journal-a"]
    container.delete_item("a", "p", post_trigger_include=journal)
    assert sorted(ids(container.read_all_items())) == ["journal-a", "journal-deleted"]
    with fails(409):
        container.create_item({"id": "journal-a", "pk": "p"}, post_trigger_include=journal)
    guard = {"etag": '"stale"', "match_condition": MatchConditions.IfNotModified}
    with fails(412):
        container.replace_item("journal-a", {"id": "journal-a", "pk": "p"}, post_trigger_include=journal, **guard)
    assert len(list(container.read_all_items())) == 2


def test_post_trigger_changes_the_answer(container):
    body = """function () {
        const response = getContext().getResponse();
        response.setBody({only: response.getBody().id});
    }"""
    assert container.create_item({"id": "a", "pk": "p"}, post_trigger_include=after(container, body)) == {"only": "a"}
    assert user(container.read_item("a", "p")) == {"id": "a", "pk": "p"}


def test_both_and_too_many(container):
    stamp, journal = before(container, STAMP), after(container, JOURNAL)
    container.create_item({"id": "a", "pk": "p"}, pre_trigger_include=stamp, post_trigger_include=journal)
    assert sorted(ids(container.read_all_items())) == ["a", "journal-a"]
    with fails(400):
        container.create_item({"id": "b", "pk": "p"}, pre_trigger_include=f"{stamp},{stamp}")


def test_patches_have_no_triggers(container):
    container.create_item({"id": "a", "pk": "p"})
    operations = [{"op": "set", "path": "/n", "value": 1}]
    with fails(400):
        container.patch_item("a", "p", operations, pre_trigger_include=before(container, STAMP))
    assert user(container.read_item("a", "p")) == {"id": "a", "pk": "p"}


def test_key_cannot_change(container):
    body = """function () {
        const request = getContext().getRequest();
        request.setBody({...request.getBody(), pk: "q"});
    }"""
    with fails(400):
        container.create_item({"id": "a", "pk": "p"}, pre_trigger_include=before(container, body))
    assert list(container.read_all_items()) == []


TRUNCATE = """function truncateFeed() {
    const most = 3;
    const collection = getContext().getCollection();
    collection.queryDocuments(collection.getSelfLink(), "SELECT VALUE COUNT(1) FROM f", function (err, counts) {
        if (err) throw err;
        const excess = counts[0] + 1 - most;
        if (excess <= 0) return;
        const query = `SELECT TOP ${excess} * FROM f ORDER BY f.creationDate`;
        collection.queryDocuments(collection.getSelfLink(), query, function (err, oldest) {
            if (err) throw err;
            (function next() {
                if (oldest.length === 0) return;
                collection.deleteDocument(oldest.shift()._self, function (err) {
                    if (err) throw err;
                    next();
                });
            })();
        });
    });
}"""


def test_truncate_feed(make):
    feed = make(partition_key=PartitionKey(path="/type"))
    trigger = after(feed, TRUNCATE)

    def write(n):
        feed.upsert_item({"id": f"p{n}", "type": "post", "creationDate": n}, post_trigger_include=trigger)

    for n in (1, 2, 3, 4, 5):
        write(n)
    assert sorted(ids(feed.read_all_items())) == ["p3", "p4", "p5"]
    write(0)
    assert sorted(ids(feed.read_all_items())) == ["p0", "p4", "p5"], "its own item is invisible to the trigger"
    write(5)
    assert sorted(ids(feed.read_all_items())) == ["p4", "p5"], "an update counts itself"


UNIQUE = """function () {
    const collection = getContext().getCollection();
    const item = getContext().getRequest().getBody();
    const query = {query: "SELECT * FROM c WHERE c.name = @name", parameters: [{name: "@name", value: item.name}]};
    collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
        if (err) throw err;
        if (found.length > 0) throw new Error(409, "taken");
    });
}"""


def test_unique_by_trigger(container):
    trigger = before(container, UNIQUE, TriggerOperation.Create)
    container.create_item({"id": "a", "pk": "p", "name": "Ada"}, pre_trigger_include=trigger)
    with fails(400, 409):
        container.create_item({"id": "b", "pk": "p", "name": "Ada"}, pre_trigger_include=trigger)
    container.create_item({"id": "b", "pk": "q", "name": "Ada"}, pre_trigger_include=trigger)


METADATA = """function () {
    const collection = getContext().getCollection();
    collection.readDocument(collection.getAltLink() + "/docs/_metadata", function (err, metadata) {
        if (err) throw err;
        metadata.count += 1;
        collection.replaceDocument(metadata._self, metadata, {etag: metadata._etag}, function (err) { if (err) throw err; });
    });
}"""


def test_metadata_by_trigger(container):
    trigger = after(container, METADATA, TriggerOperation.Create)
    with fails(400, 404):
        container.create_item({"id": "early", "pk": "p"}, post_trigger_include=trigger)
    container.create_item({"id": "_metadata", "pk": "p", "count": 0})
    for n in range(3):
        container.create_item({"id": f"i{n}", "pk": "p"}, post_trigger_include=trigger)
    assert container.read_item("_metadata", "p")["count"] == 3
    assert len(list(container.read_all_items())) == 4


def test_asynchronous_client(server):
    async def case():
        async with CosmosClient(server.endpoint, credential=KEY) as client:
            database = await client.create_database(unique("db"))
            container = await database.create_container("c", PartitionKey(path="/pk"))
            scripts = container.scripts
            await scripts.create_trigger({"id": "t", "body": STAMP, "triggerType": "Pre", "triggerOperation": "All"})
            await scripts.create_user_defined_function({"id": "f", "body": "function (x) { return x + '!'; }"})
            body = "function (n) { __.createDocument(__.getSelfLink(), {id: 'by-script', pk: 'p'}); __.response.setBody(n); }"
            await scripts.create_stored_procedure({"id": "s", "body": body})
            created = await container.create_item({"id": "a", "pk": "p"}, pre_trigger_include="t")
            assert created["stamp"] == "Create"
            assert await scripts.execute_stored_procedure("s", partition_key="p", parameters=[5]) == 5
            rows = container.query_items("SELECT VALUE udf.f(c.id) FROM c", partition_key="p")
            assert sorted([row async for row in rows]) == ["a!", "by-script!"]
            with fails(400, 409):
                await scripts.execute_stored_procedure("s", partition_key="p", parameters=[5])
            await scripts.create_stored_procedure({"id": "log", "body": "function (n) { console.log('x'.repeat(n)); }"})
            options = {"partition_key": "p", "enable_script_logging": True}
            await scripts.execute_stored_procedure("log", parameters=[8000], **options)
            assert container.client_connection.last_response_headers[LOG] == "x" * 8000

    asyncio.run(case())
