"""What queries answer, over one physical partition and over three; each is asked in three page sizes."""

import json
import re

import pytest
from azure.cosmos import PartitionKey

from books import BOOKS, Shelves
from support import fails, ids, query, user


@pytest.fixture(scope="module")
def books(database):
    return Shelves(database, BOOKS)


def where(books, text, *expected, **values):
    named = {f"@{name}": value for name, value in values.items()}
    books.answer(f"SELECT VALUE c.id FROM c WHERE {text}", list(expected), where=named)


def test_the_books_lie_on_three_partitions(books):
    shares = [ids(query(books.many, "SELECT * FROM c", feed_range=one)) for one in books.many.read_feed_ranges()]
    assert len(shares) == 3 and all(shares)
    assert sorted(sum(shares, [])) == sorted(ids(BOOKS))


def test_whole_items(books):
    for container in books.both:
        found = query(container, "SELECT * FROM c")
        assert sorted(map(user, found), key=repr) == sorted(BOOKS, key=repr)


def test_aggregates_as_values(books):
    books.answer("SELECT VALUE COUNT(1) FROM c", [12])
    books.answer("SELECT VALUE COUNT(c.stars) FROM c", [10])
    books.answer("SELECT VALUE SUM(c.price) FROM c", [168.5])
    books.answer("SELECT VALUE AVG(c.year) FROM c WHERE c.land = 'dk'", [1939.5])
    books.answer("SELECT VALUE MIN(c.year) FROM c", [1835])
    books.answer("SELECT VALUE MAX(c.id) FROM c", ["winter"])


def test_aggregates_by_name(books):
    books.answer(
        "SELECT COUNT(1) AS n, SUM(c.price) AS sum, AVG(c.price) AS mean, MIN(c.price) AS least, MAX(c.price) AS most"
        " FROM c WHERE c.land = 'se'",
        [{"n": 4, "sum": 52, "mean": 13, "least": 7, "most": 20}],
    )


def test_aggregates_over_nothing_and_over_several_types(books):
    books.answer("SELECT VALUE COUNT(1) FROM c WHERE false", [0])
    books.answer("SELECT VALUE SUM(c.none) FROM c", [0])
    books.answer("SELECT VALUE AVG(c.none) FROM c", [])
    books.answer("SELECT COUNT(c.none) AS n, MAX(c.none) AS most FROM c", [{"n": 0}])
    books.answer("SELECT VALUE SUM(c.stars) FROM c", [])
    books.answer("SELECT VALUE MAX(c.stars) FROM c WHERE IS_PRIMITIVE(c.stars)", ["three"])


def test_groups_with_several_aggregates(books):
    books.answer(
        "SELECT c.land, COUNT(1) AS n, SUM(c.price) AS sum, MIN(c.year) AS first, AVG(c.price) AS mean FROM c GROUP BY c.land",
        [
            {"land": "no", "n": 4, "sum": 44.5, "first": 1867, "mean": 11.125},
            {"land": "se", "n": 4, "sum": 52, "first": 1887, "mean": 13},
            {"land": "dk", "n": 2, "sum": 29, "first": 1937, "mean": 14.5},
            {"land": "fi", "n": 2, "sum": 43, "first": 1835, "mean": 21.5},
        ],
    )


def test_groups_by_two_keys_and_of_missing_values(books):
    books.answer(
        "SELECT c.land, c.author, MAX(c.year) AS last FROM c WHERE c.land IN ('no', 'dk') GROUP BY c.land, c.author",
        [
            {"land": "no", "author": "Hamsun", "last": 1894},
            {"land": "no", "author": "Ibsen", "last": 1881},
            {"land": "dk", "author": "Blixen", "last": 1942},
        ],
    )
    books.answer(
        "SELECT c.stars, COUNT(1) AS n FROM c WHERE IS_NUMBER(c.stars) OR NOT IS_DEFINED(c.stars) GROUP BY c.stars",
        [{"stars": 5, "n": 2}, {"stars": 4, "n": 1}, {"stars": 3, "n": 1}, {"n": 2}],
    )


def test_order_by_one_key(books):
    expected = ["father", "ghosts", "pan", "inferno", "hunger", "winter", "gösta", "peer", "africa", "egyptian", "nils", "kalevala"]
    books.answer_in_order("SELECT VALUE c.id FROM c ORDER BY c.price", expected)
    books.answer_in_order("SELECT VALUE c.id FROM c ORDER BY c.price DESC", expected[::-1])
    books.answer_in_order("SELECT VALUE c.id FROM c WHERE c.land = 'se' ORDER BY c.year", ["father", "gösta", "inferno", "nils"])


def test_order_by_a_key_of_every_type(books):
    missing = "missing"
    expected = [missing, missing, None, False, True, 3, 4, 5, 5, "three", [5], {"of": 5}]
    for container in books.both:
        for size in (None, 1, 3):
            for direction, order in (("ASC", expected), ("DESC", expected[::-1])):
                found = query(container, f"SELECT c.id, c.stars FROM c ORDER BY c.stars {direction}", max_item_count=size)
                assert [row.get("stars", missing) for row in found] == order
                assert len(set(ids(found))) == 12


def test_order_by_two_keys_needs_a_composite_index(books):
    for container in books.both:
        with fails(400) as caught:
            query(container, "SELECT * FROM c ORDER BY c.land, c.price DESC")
        assert "composite index" in caught.value.message


def test_order_by_two_keys_with_a_composite_index(database):
    index = [{"path": "/land", "order": "ascending"}, {"path": "/price", "order": "descending"}]
    policy = {"includedPaths": [{"path": "/*"}], "excludedPaths": [], "compositeIndexes": [index]}
    books = Shelves(database, BOOKS, indexing_policy=policy)
    expected = ["africa", "winter", "kalevala", "egyptian", "peer", "hunger", "pan", "ghosts", "nils", "gösta", "inferno", "father"]
    books.answer_in_order("SELECT VALUE c.id FROM c ORDER BY c.land, c.price DESC", expected)
    books.answer_in_order("SELECT VALUE c.id FROM c ORDER BY c.land DESC, c.price ASC", expected[::-1])
    books.answer_in_order("SELECT TOP 5 VALUE c.id FROM c ORDER BY c.land, c.price DESC", expected[:5])
    with fails(400):
        query(books.many, "SELECT * FROM c ORDER BY c.land, c.price")


def test_distinct(books):
    books.answer("SELECT DISTINCT c.land FROM c", [{"land": land} for land in ("no", "se", "dk", "fi")])
    books.answer("SELECT DISTINCT VALUE c.stars FROM c", [5, 4, None, 3, "three", [5], {"of": 5}, True, False])
    books.answer_in_order("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land", ["dk", "fi", "no", "se"])
    books.answer_in_order("SELECT DISTINCT VALUE c.land FROM c ORDER BY c.land DESC", ["se", "no", "fi", "dk"])
    books.answer("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.author FROM c)", [7])


def test_top_offset_and_limit(books):
    years = sorted(book["year"] for book in BOOKS)
    books.answer_in_order("SELECT TOP 5 VALUE c.year FROM c ORDER BY c.year", years[:5])
    books.answer_in_order("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 4 LIMIT 5", years[4:9])
    books.answer_in_order("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 10 LIMIT 100", years[10:])
    books.answer_in_order("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET 99 LIMIT 1", [])
    for container in books.both:
        for size in (None, 1, 3):
            assert len(set(query(container, "SELECT TOP 7 VALUE c.id FROM c", max_item_count=size))) == 7
            assert len(set(query(container, "SELECT VALUE c.id FROM c OFFSET 9 LIMIT 9", max_item_count=size))) == 3


def test_join(books):
    books.answer("SELECT VALUE e.copies FROM c JOIN e IN c.editions", [300, 500, 100, 40, 80])
    books.answer(
        "SELECT e.lang, tag FROM c JOIN e IN c.editions JOIN tag IN c.tags WHERE c.id = 'hunger'",
        [{"lang": lang, "tag": tag} for lang in ("no", "en") for tag in ("classic", "short")],
    )
    books.answer(
        "SELECT tag, COUNT(1) AS n FROM c JOIN tag IN c.tags WHERE c.land = 'no' GROUP BY tag",
        [{"tag": "classic", "n": 3}, {"tag": "short", "n": 1}, {"tag": "play", "n": 2}],
    )


def test_exists(books):
    where(books, "EXISTS(SELECT VALUE e FROM e IN c.editions WHERE e.copies > @least)", "hunger", "pan", least=90)
    where(books, "NOT EXISTS(SELECT VALUE tag FROM tag IN c.tags)", "inferno", "winter")


def test_array_subquery(books):
    books.answer(
        "SELECT c.id, ARRAY(SELECT VALUE e.lang FROM e IN c.editions) AS langs FROM c WHERE c.author IN ('Hamsun', 'Ibsen')",
        [
            {"id": "hunger", "langs": ["no", "en"]},
            {"id": "pan", "langs": ["no"]},
            {"id": "peer", "langs": []},
            {"id": "ghosts", "langs": []},
        ],
    )


def test_scalar_subquery(books):
    books.answer("SELECT VALUE (SELECT VALUE SUM(e.copies) FROM e IN c.editions) FROM c WHERE c.land = 'no'", [800, 100, 0, 0])
    where(books, "(SELECT VALUE COUNT(1) FROM tag IN c.tags) = 2", "hunger", "peer", "gösta", "africa")
    with fails(400):
        query(books.many, "SELECT VALUE (SELECT VALUE tag FROM tag IN c.tags) FROM c")


@pytest.mark.parametrize(
    "stars, expected",
    [(5, ["hunger", "gösta"]), ("three", ["father"]), (None, ["ghosts"]), (True, ["kalevala"]), ([5], ["nils"]), ({"of": 5}, ["winter"])],
    ids=["number", "string", "null", "boolean", "array", "object"],
)
def test_parameters_of_every_type(books, stars, expected):
    where(books, "c.stars = @stars", *expected, stars=stars)


def test_parameters_in_every_place(books):
    books.answer_in_order("SELECT TOP @n VALUE c.year FROM c ORDER BY c.year", [1835, 1867], where={"@n": 2})
    skip = {"@skip": 1, "@take": 2}
    books.answer_in_order("SELECT VALUE c.year FROM c ORDER BY c.year OFFSET @skip LIMIT @take", [1867, 1881], where=skip)
    named = {"@name": "id", "@i": 1, "@tag": "long"}
    books.answer("SELECT VALUE c[@name] FROM c WHERE c.tags[@i] = @tag", ["gösta", "africa", "kalevala"], where=named)
    where(books, "ARRAY_CONTAINS(@lands, c.land) AND c.year BETWEEN @low AND @high", "africa", lands=["fi", "dk"], low=1900, high=1940)
    where(books, "c.id LIKE @like", "pan", "peer", like="p%")
    where(books, "c.id = @id", id="x' OR '1' = '1")


def test_like_and_regular_expressions(books):
    where(books, "c.id LIKE '%er'", "hunger", "peer", "father", "winter")
    where(books, "c.id LIKE '_a%'", "pan", "father", "kalevala")
    where(books, "c.id LIKE '[e-g]%'", "egyptian", "father", "ghosts", "gösta")
    where(books, "c.id NOT LIKE '%[aeo]%'", "nils")
    where(books, "RegexMatch(c.id, '^[a-h].*n')", "hunger", "egyptian")
    where(books, "RegexMatch(c.author, '^l', 'i') AND RegexMatch(c.id, 's$')", "nils")


def test_functions_of_strings_and_numbers(books):
    where(books, "STARTSWITH(c.author, 'HAM', true)", "hunger", "pan")
    where(books, "CONTAINS(c.id, 'er') AND ENDSWITH(c.id, 'r') AND FLOOR(c.price) = 7", "father")
    books.answer(
        "SELECT UPPER(c.id) AS u, LENGTH(c.author) AS l, SUBSTRING(c.id, 1, 2) AS s, ROUND(c.price / 3) AS r FROM c WHERE c.id = 'gösta'",
        [{"u": "GÖSTA", "l": 8, "s": "ös", "r": 5}],
    )


def test_functions_of_dates(books):
    where(books, "c.printed > '1881-01-01' AND c.printed < '1894-01-01'", "hunger", "ghosts")
    where(books, "DateTimePart('month', c.printed) = 12", "pan", "ghosts")
    books.answer(
        "SELECT DateTimeAdd('day', 20, c.printed) AS later, DateTimeDiff('year', c.printed, '1900-01-01') AS years FROM c WHERE c.id = 'hunger'",
        [{"later": "1890-07-05T12:00:00.0000000Z", "years": 10}],
    )


def test_functions_of_arrays(books):
    where(books, "ARRAY_CONTAINS(c.tags, 'play')", "peer", "ghosts", "father")
    where(books, "ARRAY_CONTAINS(c.editions, {lang: 'no'}, true)", "hunger", "pan")
    where(books, "ARRAY_LENGTH(c.tags) = 3", "kalevala")
    books.answer("SELECT VALUE ARRAY_SLICE(c.tags, 1) FROM c WHERE c.id = 'kalevala'", [["long", "classic"]])


def test_within_a_partition_key(books):
    books.answer_in_order("SELECT VALUE c.id FROM c ORDER BY c.price", ["gösta", "nils"], partition_key="Lagerlöf")
    books.answer("SELECT VALUE COUNT(1) FROM c", [2], partition_key="Ibsen")
    books.answer("SELECT c.land, SUM(c.price) AS sum FROM c GROUP BY c.land", [{"land": "dk", "sum": 29}], partition_key="Blixen")
    books.answer("SELECT VALUE c.id FROM c", [], partition_key="nobody")


def test_prefixes_of_a_hierarchical_key(database):
    key = PartitionKey(path=["/land", "/author", "/id"], kind="MultiHash")
    books = Shelves(database, BOOKS, partition_key=key)
    books.answer("SELECT VALUE c.id FROM c", ["inferno", "father", "gösta", "nils"], partition_key=["se"])
    books.answer("SELECT VALUE c.id FROM c WHERE c.price > 8", ["hunger", "pan"], partition_key=["no", "Hamsun"])
    books.answer("SELECT VALUE c.id FROM c", ["pan"], partition_key=["no", "Hamsun", "pan"])
    books.answer_in_order("SELECT VALUE c.year FROM c ORDER BY c.year DESC", [1894, 1890, 1881, 1867], partition_key=["no"])
    books.answer("SELECT VALUE c.id FROM c", [], partition_key=["xx"])


@pytest.mark.parametrize(
    "text, code, start, message",
    [
        ("SELECT * FORM c", "SC1001", 9, "incorrect syntax near 'FORM'"),
        ("SELECT VALUE c.id\nFROM c\nWHERE c.x = = 1", "SC1001", 37, "incorrect syntax near '='"),
        ("SELECT x.id FROM c", "SC2001", 7, "Identifier 'x' could not be resolved"),
        ("SELECT VALUE nope(c.id) FROM c", "SC2005", 13, "'nope' is not a recognized built-in function name"),
    ],
)
def test_errors_say_where(books, text, code, start, message):
    with fails(400) as caught:
        query(books.one, text)
    body = caught.value.message.replace('\\"', '"')
    found = re.search(r'"location":\{"start":(\d+),"end":\d+\},"code":"(\w+)","message":"([^"]*)"', body)
    assert found, json.dumps(body)
    assert (int(found[1]), found[2]) == (start, code)
    assert message in found[3]


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM c JOIN t IN c.tags", "SELECT c.land, COUNT(1) FROM c", "SELECT * FROM c GROUP BY c.land",
     "SELECT * FROM c ORDER BY LOWER(c.id)", "SELECT * FROM c OFFSET 3", "SELECT * FROM c WHERE c.id = @missing"],
)
def test_what_cannot_be_answered_is_400(books, text):
    for container in books.both:
        with fails(400):
            query(container, text)
