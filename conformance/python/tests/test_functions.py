"""User-defined functions in queries over one partition and several."""

import pytest

from books import BOOKS, Shelves
from scripting import define
from support import fails, query


@pytest.fixture(scope="module")
def shelves(database):
    shelves = Shelves(database, BOOKS)
    for container in shelves.both:
        define(container, "tax", "function (n) { return n < 10 ? n * 0.5 : n * 2; }")
        define(container, "isOld", "function (year) { return year < 1890; }")
        define(container, "even", "function (n) { if (n % 2 === 0) return n; }")
        define(container, "first", "function (list) { return {of: list.length, head: list[0]}; }")
        define(container, "fails", "function () { throw new Error('always'); }")
        define(container, "outside", "function () { return typeof getContext + typeof __; }")
    return shelves


def test_select(shelves):
    expected = [{"id": b["id"], "tax": b["price"] * (0.5 if b["price"] < 10 else 2)} for b in BOOKS]
    shelves.answer("SELECT c.id, udf.tax(c.price) AS tax FROM c", expected)


def test_where(shelves):
    shelves.answer("SELECT VALUE c.id FROM c WHERE udf.isOld(c.year)", [b["id"] for b in BOOKS if b["year"] < 1890])


def test_order(shelves):
    rows = [b["price"] * (0.5 if b["price"] < 10 else 2) for b in sorted(BOOKS, key=lambda b: b["year"])]
    shelves.answer_in_order("SELECT VALUE udf.tax(c.price) FROM c ORDER BY c.year", rows)


def test_aggregate(shelves):
    for container in shelves.both:
        assert query(container, "SELECT VALUE MAX(udf.tax(c.price)) FROM c") == [50]
        assert query(container, "SELECT VALUE COUNT(1) FROM c WHERE udf.isOld(c.year)") == [4]


def test_parameters_and_structures(shelves):
    shelves.answer("SELECT VALUE udf.tax(@n) FROM c WHERE c.id = 'pan'", [84], where={"@n": 42})
    shelves.answer("SELECT VALUE udf.first(c.tags) FROM c WHERE c.id = 'hunger'", [{"of": 2, "head": "classic"}])


def test_undefined(shelves):
    shelves.answer("SELECT VALUE udf.even(c.year) FROM c", [b["year"] for b in BOOKS if b["year"] % 2 == 0])
    shelves.answer("SELECT VALUE udf.tax(c.none) FROM c", [])


def test_failures(shelves):
    for container in shelves.both:
        with fails(400) as caught:
            query(container, "SELECT VALUE udf.fails() FROM c")
        assert "always" in str(caught.value)
        with fails(400):
            query(container, "SELECT VALUE udf.none() FROM c")


def test_nothing_outside(shelves):
    shelves.answer("SELECT VALUE udf.outside() FROM c WHERE c.id = 'pan'", ["undefinedundefined"])
