"""Databases and containers: create, read, list, query, replace, delete, policies."""

import base64

import pytest
from azure.cosmos import PartitionKey

from support import fails, ids, unique


def decoded(rid):
    return base64.b64decode(rid.replace("-", "/"))


def test_database_has_system_properties(client):
    properties = client.create_database(unique("db")).read()
    assert len(decoded(properties["_rid"])) == 4
    assert properties["_self"] == f"dbs/{properties['_rid']}/"
    assert properties["_etag"].startswith('"') and properties["_etag"].endswith('"')
    assert properties["_colls"] == "colls/" and properties["_users"] == "users/"


def test_database_is_created_once(client):
    name = unique("db")
    client.create_database(name)
    with fails(409):
        client.create_database(name)
    assert client.create_database_if_not_exists(name).read()["id"] == name


def test_database_deletion_takes_containers_along(client):
    database = client.create_database(unique("db"))
    database.create_container("c", PartitionKey(path="/pk"))
    client.delete_database(database)
    with fails(404):
        database.read()
    with fails(404):
        client.delete_database(database)
    with fails(404):
        database.get_container_client("c").read()


def test_databases_are_listed_and_queried(client):
    names = sorted(client.create_database(unique("list")).id for _ in range(3))
    listed = ids(client.list_databases(max_item_count=2))
    assert set(names) <= set(listed) and len(listed) == len(set(listed))
    found = client.query_databases(
        "SELECT * FROM root r WHERE r.id = @id", parameters=[{"name": "@id", "value": names[0]}]
    )
    assert ids(found) == names[:1]


@pytest.mark.parametrize("name", ["with space", "Ünï-日本", "colls", "a+b&c=d"])
def test_names_of_every_kind(client, name):
    database = client.create_database(name)
    container = database.create_container(name, PartitionKey(path="/pk"))
    container.create_item({"id": "a", "pk": "p"})
    assert container.read_item("a", "p")["id"] == "a"
    client.delete_database(name)


def test_container_definition_has_defaults(database):
    properties = database.create_container(unique("c"), PartitionKey(path="/pk")).read()
    assert properties["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert properties["indexingPolicy"]["includedPaths"] == [{"path": "/*"}]
    assert properties["conflictResolutionPolicy"]["mode"] == "LastWriterWins"
    assert properties["geospatialConfig"] == {"type": "Geography"}
    assert len(decoded(properties["_rid"])) == 8


def test_container_returns_every_policy(database):
    policies = {
        "indexing_policy": {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/notes/*"}, {"path": '/"_etag"/?'}],
            "compositeIndexes": [
                [{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]
            ],
        },
        "default_ttl": 1000,
        "unique_key_policy": {"uniqueKeys": [{"paths": ["/email"]}]},
        "conflict_resolution_policy": {
            "mode": "LastWriterWins",
            "conflictResolutionPath": "/version",
            "conflictResolutionProcedure": "",
        },
        "computed_properties": [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
        "change_feed_policy": {"retentionDuration": 10},
    }
    properties = database.create_container(unique("c"), PartitionKey(path="/pk"), **policies).read()
    for part, value in policies["indexing_policy"].items():
        assert properties["indexingPolicy"][part] == value, part
    assert properties["defaultTtl"] == 1000
    assert properties["uniqueKeyPolicy"] == policies["unique_key_policy"]
    assert properties["conflictResolutionPolicy"] == policies["conflict_resolution_policy"]
    assert properties["computedProperties"] == policies["computed_properties"]
    assert properties["changeFeedPolicy"] == policies["change_feed_policy"]


def test_container_is_created_once(database):
    name = unique("c")
    database.create_container(name, PartitionKey(path="/pk"))
    with fails(409):
        database.create_container(name, PartitionKey(path="/pk"))
    container = database.create_container_if_not_exists(name, PartitionKey(path="/pk"))
    assert container.read()["id"] == name


def test_container_needs_its_database(client):
    with fails(404, 1003):
        client.get_database_client(unique("none")).create_container("c", PartitionKey(path="/pk"))


def test_container_replace_changes_policies(database, container):
    before = container.read()
    database.replace_container(
        container,
        PartitionKey(path="/pk"),
        default_ttl=-1,
        indexing_policy={"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/x/*"}]},
    )
    after = container.read()
    assert after["defaultTtl"] == -1
    assert {"path": "/x/*"} in after["indexingPolicy"]["excludedPaths"]
    assert after["_rid"] == before["_rid"] and after["_etag"] != before["_etag"]


def test_container_key_is_fixed_for_life(database, container):
    with fails(400):
        database.replace_container(container, PartitionKey(path="/other"))


def test_containers_are_listed_and_queried(client):
    database = client.create_database(unique("db"))
    for name in "abc":
        database.create_container(name, PartitionKey(path="/pk"))
    assert sorted(ids(database.list_containers())) == ["a", "b", "c"]
    found = database.query_containers(
        "SELECT * FROM c WHERE c.id = @id", parameters=[{"name": "@id", "value": "b"}]
    )
    assert ids(found) == ["b"]


def test_container_reports_quota_and_statistics(container):
    container.create_item({"id": "a", "pk": "p"})
    seen = {}
    container.read(populate_quota_info=True, response_hook=lambda headers, _: seen.update(headers))
    assert seen["x-ms-documentdb-collection-index-transformation-progress"] == "100"
    properties = container.read(populate_partition_key_range_statistics=True)
    assert [one["id"] for one in properties["statistics"]] == ["0"]
    assert properties["statistics"][0]["documentCount"] == 1


def test_recreated_container_is_found_by_an_old_client(connect, database, make):
    old = make()
    client = connect()
    stale = client.get_database_client(database.id).get_container_client(old.id)
    stale.create_item({"id": "a", "pk": "p"})
    database.delete_container(old.id)
    make(id=old.id)
    assert stale.create_item({"id": "b", "pk": "p"})["id"] == "b"
    assert ids(stale.read_all_items()) == ["b"]


def test_conflicts_are_empty(container):
    assert list(container.list_conflicts()) == []
    assert list(container.query_conflicts("SELECT * FROM c", enable_cross_partition_query=True)) == []


@pytest.mark.parametrize(
    "part",
    [
        {"partition_key": PartitionKey(path=["/a", "/b", "/c", "/d"], kind="MultiHash")},
        {"default_ttl": 0},
        {"indexing_policy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/*"}]}},
        {"unique_key_policy": {"uniqueKeys": [{"paths": ["/a"]}] * 11}},
    ],
    ids=["four key levels", "ttl of zero", "root in both lists", "eleven unique keys"],
)
def test_contradictory_definitions_are_refused(make, part):
    with fails(400):
        make(**part)
