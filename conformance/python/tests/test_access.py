"""Users, permissions, resource tokens, keys, TLS and throughput."""

import base64

import pytest
from azure.cosmos import PartitionKey, ThroughputProperties
from azure.cosmos.exceptions import CosmosHttpResponseError

from server import KEY, Server
from support import fails, ids, query, unique


def link(database, container):
    return f"dbs/{database.id}/colls/{container.id}"


@pytest.fixture
def grant(database):
    def grant(resource, mode, **more):
        body = {"id": unique("permission"), "permissionMode": mode, "resource": resource, **more}
        return database.create_user({"id": unique("user")}).create_permission(body)

    return grant


@pytest.fixture
def holding(connect, database):
    """A container as the holder of a token sees it."""

    def holding(container, permission):
        token = permission.properties["_token"]
        client = connect({link(database, container): token})
        return client.get_database_client(database.id).get_container_client(container.id)

    return holding


def test_users(client):
    database = client.create_database(unique("db"))
    database.create_user({"id": "ada"})
    with fails(409):
        database.create_user({"id": "ada"})
    database.upsert_user({"id": "bob"})
    assert sorted(ids(database.list_users())) == ["ada", "bob"]
    found = database.query_users("SELECT * FROM u WHERE u.id = @id", parameters=[{"name": "@id", "value": "bob"}])
    assert ids(found) == ["bob"]
    database.replace_user("ada", {"id": "grace"})
    assert database.get_user_client("grace").read()["id"] == "grace"
    database.delete_user("grace")
    with fails(404):
        database.get_user_client("grace").read()


def test_permissions(database, container):
    person = database.create_user({"id": unique("user")})
    body = {"id": "p", "permissionMode": "Read", "resource": link(database, container)}
    created = person.create_permission(body)
    assert created.properties["_token"].startswith("type=resource&ver=1")
    with fails(409):
        person.create_permission({**body, "id": "second"})
    assert person.get_permission("p").permission_mode == "Read"
    assert person.replace_permission("p", {**body, "permissionMode": "All"}).permission_mode == "All"
    assert person.upsert_permission(body).permission_mode == "Read"
    assert ids(person.list_permissions()) == ["p"]
    person.delete_permission("p")
    with fails(404):
        person.get_permission("p")


def test_read_token(database, container, grant, holding):
    container.create_item({"id": "a", "pk": "p"})
    held = holding(container, grant(link(database, container), "Read"))
    assert held.read_item("a", "p")["id"] == "a"
    assert ids(query(held, "SELECT * FROM c")) == ["a"]
    for write in (
        lambda: held.create_item({"id": "b", "pk": "p"}),
        lambda: held.upsert_item({"id": "a", "pk": "p"}),
        lambda: held.patch_item("a", "p", [{"op": "set", "path": "/v", "value": 1}]),
        lambda: held.delete_item("a", "p"),
    ):
        with fails(403):
            write()


def test_token_for_everything(database, make, grant, holding):
    container, other = make(), make()
    permission = grant(link(database, container), "All")
    held = holding(container, permission)
    held.create_item({"id": "a", "pk": "p"})
    held.delete_item("a", "p")
    with pytest.raises(CosmosHttpResponseError) as caught:
        holding(other, permission).read_item("a", "p")
    assert caught.value.status_code in (401, 403)


def test_token_for_one_key(database, container, grant, holding):
    container.create_item({"id": "a", "pk": "mine"})
    container.create_item({"id": "b", "pk": "theirs"})
    held = holding(container, grant(link(database, container), "Read", resourcePartitionKey=["mine"]))
    assert held.read_item("a", "mine")["id"] == "a"
    assert ids(query(held, "SELECT * FROM c", partition_key="mine")) == ["a"]
    with fails(403):
        held.read_item("b", "theirs")
    with fails(403):
        query(held, "SELECT * FROM c")


def test_wrong_key(connect):
    with pytest.raises(CosmosHttpResponseError) as caught:
        connect("d3Jvbmc=").get_database_client("d").read()
    assert caught.value.status_code == 401


def test_own_keys(connect, tmp_path):
    keys = {
        name: base64.b64encode(bytes([n + 1]) * 64).decode()
        for n, name in enumerate(["primary", "secondary", "primary_read_only", "secondary_read_only"])
    }
    file = tmp_path / "keys"
    file.write_text("".join(f"{key}\n" for key in keys.values()))
    file.chmod(0o600)
    server = Server("--key-file", str(file))
    try:
        writer = connect(keys["primary"], server.endpoint)
        container = writer.create_database("d").create_container("c", PartitionKey(path="/pk"))
        container.create_item({"id": "a", "pk": "p"})
        reader = connect(keys["primary_read_only"], server.endpoint)
        held = reader.get_database_client("d").get_container_client("c")
        assert held.read_item("a", "p")["id"] == "a"
        assert ids(query(held, "SELECT * FROM c")) == ["a"]
        with fails(403):
            held.create_item({"id": "b", "pk": "p"})
        with fails(403):
            reader.create_database("e")
        with fails(401):
            connect(KEY, server.endpoint).get_database_client("d").read()
    finally:
        server.kill()


def test_self_signed_tls(connect):
    server = Server("--tls", "self-signed")
    try:
        assert server.endpoint.startswith("https://")
        client = connect(endpoint=server.endpoint, connection_verify=False)
        container = client.create_database("d").create_container("c", PartitionKey(path="/pk"))
        container.create_item({"id": "a", "pk": "p"})
        assert container.read_item("a", "p")["id"] == "a"
        local = connect(endpoint=f"https://localhost:{server.port}")
        assert ids(local.list_databases()) == ["d"]
    finally:
        server.kill()


def test_manual_throughput(make):
    container = make(offer_throughput=500)
    assert container.get_throughput().offer_throughput == 500
    assert container.replace_throughput(900).offer_throughput == 900
    assert container.get_throughput().offer_throughput == 900
    with fails(400):
        container.replace_throughput(950 - 1)


def test_autoscale_throughput(make):
    container = make(offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000))
    assert container.get_throughput().auto_scale_max_throughput == 4000
    container.replace_throughput(ThroughputProperties(auto_scale_max_throughput=6000))
    assert container.get_throughput().auto_scale_max_throughput == 6000


def test_database_throughput(client):
    database = client.create_database(unique("db"), offer_throughput=600)
    assert database.get_throughput().offer_throughput == 600
    own = database.create_container("c", PartitionKey(path="/pk"), offer_throughput=400)
    assert own.get_throughput().offer_throughput == 400
    database.replace_throughput(700)
    assert database.get_throughput().offer_throughput == 700


@pytest.mark.parametrize("throughput", [399, 450, ThroughputProperties(auto_scale_max_throughput=1500)])
def test_impossible_throughput(make, throughput):
    with fails(400):
        make(offer_throughput=throughput)
