"""Queries that a definition of the container makes possible: spatial, full-text and vector indexes,
computed properties. Over one physical partition and over three."""

import pytest
from azure.cosmos import PartitionKey

from books import BOOKS, Shelves
from support import fails, query, unique

BY_ID = {"partition_key": PartitionKey(path="/id")}


def policy(**indexes):
    return {"includedPaths": [{"path": "/*"}], "excludedPaths": [], **indexes}


@pytest.fixture(scope="module")
def computed(database):
    properties = [
        {"name": "decade", "query": "SELECT VALUE FLOOR(c.year / 10) * 10 FROM c"},
        {"name": "lower", "query": "SELECT VALUE LOWER(c.author) FROM c"},
    ]
    indexing_policy = policy(includedPaths=[{"path": "/*"}, {"path": "/lower/?"}])
    return Shelves(database, BOOKS, computed_properties=properties, indexing_policy=indexing_policy)


def test_computed_properties_read_like_stored_ones(computed):
    assert [each["name"] for each in computed.one.read()["computedProperties"]] == ["decade", "lower"]
    computed.answer("SELECT VALUE c.id FROM c WHERE c.decade = 1890", ["hunger", "pan", "inferno", "gösta"])
    computed.answer("SELECT c.decade, c.lower FROM c WHERE c.id = 'nils'", [{"decade": 1900, "lower": "lagerlöf"}])
    computed.answer(
        "SELECT c.decade, COUNT(1) AS n FROM c WHERE c.land = 'no' GROUP BY c.decade",
        [{"decade": 1860, "n": 1}, {"decade": 1880, "n": 1}, {"decade": 1890, "n": 2}],
    )


def test_order_by_a_computed_property(computed):
    authors = ["blixen", "hamsun", "ibsen", "lagerlöf", "lönnrot", "strindberg", "waltari"]
    computed.answer_in_order("SELECT DISTINCT VALUE c.lower FROM c ORDER BY c.lower", authors)
    computed.answer_in_order("SELECT DISTINCT VALUE c.lower FROM c ORDER BY c.lower DESC", authors[::-1])


def test_computed_properties_are_no_part_of_the_item(computed):
    for container in computed.both:
        assert query(container, "SELECT * FROM c WHERE c.id = 'pan'") == [container.read_item("pan", "Hamsun")]


def test_a_computed_property_that_cannot_be_read_is_400(database):
    with fails(400):
        properties = [{"name": "x", "query": "nonsense"}]
        database.create_container(unique("c"), PartitionKey(path="/pk"), computed_properties=properties)


def point(longitude, latitude):
    return {"type": "Point", "coordinates": [longitude, latitude]}


@pytest.fixture(scope="module")
def places(database):
    items = [
        {"id": "oslo", "at": point(10.7522, 59.9139)},
        {"id": "drammen", "at": point(10.2045, 59.744)},
        {"id": "bergen", "at": point(5.3221, 60.3913)},
        {"id": "tromsø", "at": point(18.9553, 69.6492)},
        {"id": "nowhere"},
    ]
    indexing_policy = policy(spatialIndexes=[{"path": "/at/*", "types": ["Point"]}])
    return Shelves(database, items, indexing_policy=indexing_policy, **BY_ID)


@pytest.mark.parametrize(
    "metres, expected",
    [(1_000, ["oslo"]), (50_000, ["oslo", "drammen"]), (350_000, ["oslo", "drammen", "bergen"]),
     (3_000_000, ["oslo", "drammen", "bergen", "tromsø"])],
)
def test_what_is_near(places, metres, expected):
    named = {"@here": point(10.75, 59.91), "@metres": metres}
    places.answer("SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @here) < @metres", expected, where=named)


def test_what_is_within(places):
    ring = [[9, 59], [12, 59], [12, 61], [9, 61], [9, 59]]
    area = {"@area": {"type": "Polygon", "coordinates": [ring]}}
    places.answer("SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, @area)", ["oslo", "drammen"], where=area)


@pytest.fixture(scope="module")
def texts(database):
    items = [
        {"id": "a", "text": "The red bicycle is parked near the red barn"},
        {"id": "b", "text": "A blue bicycle and a red scooter, both old, stand in the rain by the river"},
        {"id": "c", "text": "A green tractor in the barn"},
        {"id": "d", "text": "Mountains and rivers without end"},
        {"id": "e"},
    ]
    full_text = {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]}
    indexing_policy = policy(fullTextIndexes=[{"path": "/text"}])
    return Shelves(database, items, full_text_policy=full_text, indexing_policy=indexing_policy, **BY_ID)


@pytest.mark.parametrize(
    "filter, expected",
    [
        ("FullTextContains(c.text, 'bicycle')", ["a", "b"]),
        ("FullTextContains(c.text, 'red bicycle')", ["a"]),
        ("FullTextContainsAll(c.text, 'red', 'barn')", ["a"]),
        ("FullTextContainsAny(c.text, 'scooter', 'tractor')", ["b", "c"]),
        ("FullTextContains(c.text, 'bike')", []),
    ],
)
def test_words_of_texts(texts, filter, expected):
    texts.answer(f"SELECT VALUE c.id FROM c WHERE {filter}", expected)


def test_rank_of_texts(texts):
    rank = "ORDER BY RANK FullTextScore"
    assert query(texts.one, f"SELECT TOP 2 VALUE c.id FROM c {rank}(c.text, 'red')") == ["a", "b"]
    assert query(texts.one, f"SELECT TOP 1 VALUE c.id FROM c {rank}(c.text, 'green', 'tractor')") == ["c"]


@pytest.fixture(scope="module")
def vectors(database):
    items = [
        {"id": "east", "v": [1, 0, 0]},
        {"id": "north", "v": [0, 1, 0]},
        {"id": "up", "v": [0, 0, 1]},
        {"id": "northeast", "v": [1, 1, 0]},
        {"id": "far", "v": [9, 9, 9]},
    ]
    embedding = {"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": "euclidean"}
    indexing_policy = policy(excludedPaths=[{"path": "/v/*"}], vectorIndexes=[{"path": "/v", "type": "flat"}])
    vector_policy = {"vectorEmbeddings": [embedding]}
    return Shelves(database, items, vector_embedding_policy=vector_policy, indexing_policy=indexing_policy, **BY_ID)


@pytest.mark.parametrize("to, expected", [([1, 0.2, 0], ["east", "northeast", "north"]), ([8, 8, 8], ["far"]), ([0, 0, 2], ["up"])])
def test_the_nearest_vectors(vectors, to, expected):
    text = f"SELECT TOP {len(expected)} VALUE c.id FROM c ORDER BY VectorDistance(c.v, @to)"
    vectors.answer_in_order(text, expected, where={"@to": to})


def test_the_distance_of_a_vector(vectors):
    vectors.answer("SELECT VALUE VectorDistance(c.v, [2, 0, 0]) FROM c WHERE c.id = 'east'", [1])
