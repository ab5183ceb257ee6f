"""Fixtures: one server for the suite, one database, and containers that are made per case."""

import tomllib
from pathlib import Path

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from server import KEY, Server
from support import unique


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server
    complaints = server.complaints()
    server.kill()
    assert complaints == [], "the server logged warnings or errors"


@pytest.fixture(scope="session")
def client(server):
    with CosmosClient(server.endpoint, credential=KEY) as client:
        yield client


@pytest.fixture(scope="session")
def database(client):
    return client.create_database(unique("db"))


@pytest.fixture
def make(database):
    """Makes containers, keyed by `/pk` unless the case says otherwise."""

    def make(**options):
        options.setdefault("id", unique("c"))
        options.setdefault("partition_key", PartitionKey(path="/pk"))
        return database.create_container(**options)

    return make


@pytest.fixture
def container(make):
    return make()


@pytest.fixture
def connect(server):
    """Makes clients of their own, for cases about keys, tokens or sessions."""
    clients = []

    def connect(credential=KEY, endpoint=None, **options):
        clients.append(CosmosClient(endpoint or server.endpoint, credential=credential, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def pytest_collection_modifyitems(items):
    skips = tomllib.loads((Path(__file__).parent / "skips.toml").read_text())
    for item in items:
        name = f"{item.path.name}::{item.originalname}"
        if name in skips:
            item.add_marker(pytest.mark.skip(reason=skips[name]))
