"""The change feed of a busy container while its server is killed and started again.

Writers own their partition keys and number their items 1, 2, 3 … within each; a number is only given
out when the one before it was acknowledged. A reader that meets number n of a key must have met n - 1:
nothing is missing and nothing is out of order. It may meet n again only if the server was started anew
in between, because a writer repeats a write whose answer a kill has swallowed.

COSMOLABE_SEED repeats the times of the kills, COSMOLABE_LONG=1 takes a minute.
"""

import os
import random
import threading
import time

import pytest
from azure.core.exceptions import AzureError
from azure.cosmos import CosmosClient, PartitionKey
from azure.cosmos.exceptions import CosmosHttpResponseError

from server import KEY, Server
from support import until

DURATION_S = 60 if os.environ.get("COSMOLABE_LONG") == "1" else 20
SEED = int(os.environ.get("COSMOLABE_SEED", time.time_ns() % 1_000_000))
WRITERS = 3
KEYS_PER_WRITER = 3


class World:
    """What the writers, the readers and the one who kills know of each other."""

    def __init__(self):
        self.starts = 1
        self.begun = {}
        self.written = {}
        self.faults = []
        self.end = time.monotonic() + DURATION_S

    def running(self):
        return time.monotonic() < self.end and not self.faults

    def guard(self, work):
        """A thread whose failure ends the test."""

        def guarded():
            try:
                work()
            except BaseException as fault:  # handed over to the main thread
                self.faults.append(fault)

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    @staticmethod
    def tolerate(error):
        """Only a broken connection is part of the game; an answer with an error is not.

        The client reports refused connections as 503 of its own making, without a response.
        """
        answered = isinstance(error, CosmosHttpResponseError) and error.response is not None
        assert not answered, f"the server answered {error}"


class Reader:
    """Follows one mode of the feed and checks what every change may be, given those before it."""

    def __init__(self, container, world, **start):
        self.container, self.world, self.next = container, world, start
        self.versions = start.get("mode") == "AllVersionsAndDeletes"
        self.last = {}
        self.repeats = 0

    def step(self):
        """Reads what is there; answers how much, or None when the server is away."""
        pager = self.container.query_items_change_feed(max_item_count=50, **self.next).by_page()
        count = 0
        try:
            for page in pager:
                changes = list(page)
                self.next = {"continuation": pager.continuation_token}
                for change in changes:
                    self.check(change)
                count += len(changes)
        except AzureError as error:
            self.world.tolerate(error)
            return None
        self.next = {"continuation": self.container.client_connection.last_response_headers["etag"]}
        return count

    def check(self, change):
        body = change["current"] if self.versions else change
        lsn = change["metadata"]["lsn"] if self.versions else change["_lsn"]
        key, n = body["pk"], body["n"]
        last, last_lsn = self.last.get(key, (0, 0))
        where = f"key {key}: {n} after {last} (lsn {lsn} after {last_lsn}, versions={self.versions})"
        assert lsn > last_lsn, f"positions only grow: {where}"
        if n == last:
            assert self.world.starts > self.world.begun[key, n], f"a repeat without a restart: {where}"
            self.repeats += 1
        else:
            assert n == last + 1, f"missing or out of order: {where}"
        self.last[key] = (n, lsn)

    def follow(self):
        while self.world.running():
            if not self.step():
                time.sleep(0.02)


def connect(endpoint):
    """A client that leaves retrying to the test and does not sleep over a refused connection."""
    return CosmosClient(endpoint, credential=KEY, retry_total=0, retry_connect=0, retry_read=0)


def write(world, container, writer):
    turn = 0
    while world.running():
        key = f"w{writer}-{turn % KEYS_PER_WRITER}"
        n = world.written.get(key, 0) + 1
        world.begun[key, n] = world.starts
        while True:
            try:
                container.upsert_item({"id": f"{key}-{n}", "pk": key, "n": n})
                break
            except AzureError as error:
                world.tolerate(error)
                time.sleep(0.02)
        world.written[key] = n
        turn += 1


@pytest.mark.slow
def test_nothing_is_lost_swapped_or_repeated_by_kills(tmp_path):
    print(f"COSMOLABE_SEED={SEED}")
    chance = random.Random(SEED)
    server = Server(data_dir=tmp_path / "data")
    endpoint, port = server.endpoint, server.port
    setup = connect(endpoint)
    setup.create_database("d").create_container(
        "c", PartitionKey(path="/pk"), offer_throughput=20_000, change_feed_policy={"retentionDuration": 60}
    )

    def container():
        return connect(endpoint).get_database_client("d").get_container_client("c")

    world = World()
    readers = [
        Reader(container(), world, start_time="Now"),
        Reader(container(), world, mode="AllVersionsAndDeletes"),
    ]
    for reader in readers:
        assert reader.step() == 0
    world.end = time.monotonic() + DURATION_S
    threads = [world.guard(reader.follow) for reader in readers]
    for writer in range(WRITERS):
        held = container()
        threads.append(world.guard(lambda held=held, writer=writer: write(world, held, writer)))
    kills = 0
    try:
        while world.running():
            time.sleep(1 + 3 * chance.random())
            if not world.running():
                break
            server.kill()
            time.sleep(0.3 * chance.random())
            world.starts += 1
            server = Server(data_dir=tmp_path / "data", port=port)
            kills += 1
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive(), "a thread hangs"
        if world.faults:
            raise world.faults[0]
        for reader in readers:
            until("the reader to arrive", lambda reader=reader: reader.step() == 0, every=0)
            assert {key: n for key, (n, _) in reader.last.items()} == world.written
        assert kills >= 3
        assert sum(world.written.values()) > 100
        print(f"{sum(world.written.values())} writes, {kills} kills, {[r.repeats for r in readers]} repeats")
    finally:
        server.kill()
