"""Session tokens and consistency levels."""

from support import fails, ids, query


def test_reads_see_own_writes(container):
    for v in range(10):
        container.upsert_item({"id": "a", "pk": "p", "v": v})
        assert container.read_item("a", "p")["v"] == v
    assert query(container, "SELECT VALUE c.v FROM c") == [9]


def test_token_carries_between_clients(connect, database, container):
    written = container.create_item({"id": "a", "pk": "p"})
    token = written.get_response_headers()["x-ms-session-token"]
    other = connect().get_database_client(database.id).get_container_client(container.id)
    assert other.read_item("a", "p", session_token=token)["id"] == "a"


def test_token_of_the_future_is_404(container):
    container.create_item({"id": "a", "pk": "p"})
    with fails(404, 1002):
        container.read_item("a", "p", session_token="0:-1#999999999999")


def test_consistency_may_be_weakened_only(connect, database, container):
    container.create_item({"id": "a", "pk": "p"})

    def at(level):
        client = connect(consistency_level=level)
        return client.get_database_client(database.id).get_container_client(container.id)

    assert at("Eventual").read_item("a", "p")["id"] == "a"
    assert at("Session").read_item("a", "p")["id"] == "a"
    with fails(400):
        at("Strong").read_item("a", "p")


def test_newest_token_of_a_range(make):
    container = make(offer_throughput=20_000)
    pairs = []
    for n in range(10):
        item = container.create_item({"id": "a", "pk": f"p{n}"})
        token = item.get_response_headers()["x-ms-session-token"]
        pairs.append((container.feed_range_from_partition_key(f"p{n}"), token))
    for one in container.read_feed_ranges():
        token = container.get_latest_session_token(pairs, one)
        assert ids(query(container, "SELECT * FROM c", feed_range=one, session_token=token))
