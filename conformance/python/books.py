"""Twelve books by seven authors: what the cases about queries ask for.

`stars` has a value of every type and is missing twice; everything else has one type.
"""

from azure.cosmos import PartitionKey

from support import query, unique

BOOKS = [
    {"id": "hunger", "author": "Hamsun", "land": "no", "year": 1890, "price": 12, "stars": 5,
     "tags": ["classic", "short"], "printed": "1890-06-15T12:00:00.0000000Z",
     "editions": [{"lang": "no", "copies": 300}, {"lang": "en", "copies": 500}]},
    {"id": "pan", "author": "Hamsun", "land": "no", "year": 1894, "price": 9.5, "stars": 4,
     "tags": ["classic"], "printed": "1894-12-01T08:30:00.0000000Z", "editions": [{"lang": "no", "copies": 100}]},
    {"id": "peer", "author": "Ibsen", "land": "no", "year": 1867, "price": 15,
     "tags": ["play", "classic"], "printed": "1867-11-14T00:00:00.0000000Z", "editions": []},
    {"id": "ghosts", "author": "Ibsen", "land": "no", "year": 1881, "price": 8, "stars": None,
     "tags": ["play"], "printed": "1881-12-13T00:00:00.0000000Z"},
    {"id": "inferno", "author": "Strindberg", "land": "se", "year": 1897, "price": 11, "stars": 3,
     "tags": [], "editions": [{"lang": "fr", "copies": 40}, {"lang": "sv", "copies": 80}]},
    {"id": "father", "author": "Strindberg", "land": "se", "year": 1887, "price": 7, "stars": "three", "tags": ["play"]},
    {"id": "gösta", "author": "Lagerlöf", "land": "se", "year": 1891, "price": 14, "stars": 5, "tags": ["classic", "long"]},
    {"id": "nils", "author": "Lagerlöf", "land": "se", "year": 1906, "price": 20, "stars": [5], "tags": ["children"]},
    {"id": "winter", "author": "Blixen", "land": "dk", "year": 1942, "price": 13, "stars": {"of": 5}},
    {"id": "africa", "author": "Blixen", "land": "dk", "year": 1937, "price": 16, "tags": ["memoir", "long"]},
    {"id": "kalevala", "author": "Lönnrot", "land": "fi", "year": 1835, "price": 25, "stars": True,
     "tags": ["epic", "long", "classic"]},
    {"id": "egyptian", "author": "Waltari", "land": "fi", "year": 1945, "price": 18, "stars": False, "tags": ["long"]},
]


class Shelves:
    """The same items in a container with one physical partition and in one with three."""

    def __init__(self, database, items, **definition):
        definition.setdefault("partition_key", PartitionKey(path="/author"))
        self.one = database.create_container(unique("c"), **definition)
        self.many = database.create_container(unique("c"), offer_throughput=30_000, **definition)
        self.both = (self.one, self.many)
        for container in self.both:
            for item in items:
                container.create_item(dict(item))

    def answer(self, text, expected, **options):
        """Expects the rows in any order, in pages of the server's choice, of one row and of three."""
        self._expect(text, expected, lambda rows: sorted(rows, key=repr), options)

    def answer_in_order(self, text, expected, **options):
        self._expect(text, expected, list, options)

    def _expect(self, text, expected, order, options):
        for container in self.both:
            for size in (None, 1, 3):
                found = query(container, text, max_item_count=size, **options)
                assert order(found) == order(expected), f"{text} in pages of {size}"
