"""Time to live: expired items are absent at once."""

import pytest
from azure.cosmos.exceptions import CosmosResourceNotFoundError

from support import fails, ids, query, until


def gone(container, identity):
    try:
        container.read_item(identity, "p")
    except CosmosResourceNotFoundError:
        return True
    return False


def test_default_and_own_ttl(make):
    container = make(default_ttl=1)
    container.create_item({"id": "default", "pk": "p"})
    container.create_item({"id": "longer", "pk": "p", "ttl": 1000})
    container.create_item({"id": "never", "pk": "p", "ttl": -1})
    until("expiry", lambda: gone(container, "default"))
    assert sorted(ids(container.read_all_items())) == ["longer", "never"]
    assert query(container, "SELECT VALUE COUNT(1) FROM c") == [2]


def test_expired_item_makes_room(make):
    container = make(default_ttl=-1, unique_key_policy={"uniqueKeys": [{"paths": ["/u"]}]})
    container.create_item({"id": "a", "pk": "p", "u": 1, "ttl": 1})
    until("expiry", lambda: gone(container, "a"))
    with fails(404):
        container.replace_item("a", {"id": "a", "pk": "p"})
    container.create_item({"id": "a", "pk": "p", "u": 1})


def test_ttl_is_plain_data_without_a_default(container):
    container.create_item({"id": "a", "pk": "p", "ttl": 1})
    container.create_item({"id": "b", "pk": "p", "ttl": "text"})
    ts = container.read_item("a", "p")["_ts"]
    until("two seconds", lambda: container.upsert_item({"id": "clock", "pk": "p"})["_ts"] >= ts + 2)
    assert container.read_item("a", "p")["ttl"] == 1


@pytest.mark.parametrize("ttl", [0, -2, 1.5, "10", None, 2**31])
def test_impossible_ttl_is_refused(make, ttl):
    container = make(default_ttl=-1)
    with fails(400):
        container.create_item({"id": "a", "pk": "p", "ttl": ttl})
