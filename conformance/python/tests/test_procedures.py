"""Stored procedures: arguments and answers, transactions, partitions, and the scripts of a blog."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.partition_key import NonePartitionKeyValue

from scripting import log, procedure, said
from support import fails, ids, last_headers, query, raw, user

ECHO = "function () { getContext().getResponse().setBody(Array.prototype.slice.call(arguments)); }"
SET = "function (value) { getContext().getResponse().setBody(value); }"


def test_arguments(container):
    execute = procedure(container, ECHO)
    sent = ["a", 1.5, None, True, {"b": [2, "é"]}, []]
    assert execute(*sent) == sent
    assert execute() == []


def test_no_parameters_at_all(container):
    container.scripts.create_stored_procedure({"id": "s", "body": ECHO})
    assert container.scripts.execute_stored_procedure("s", partition_key="p") == []
    assert container.scripts.execute_stored_procedure("s", partition_key="p", params=[["list"]]) == [["list"]]


def test_by_resource(container):
    created = container.scripts.create_stored_procedure({"id": "s", "body": SET})
    assert container.scripts.execute_stored_procedure(created, partition_key="p", params=["by link"]) == "by link"


@pytest.mark.parametrize("value", ["text", "", 0, -1.5, True, False, [], {}, {"a": {"b": [None]}}, "é😀"])
def test_answers(container, value):
    assert procedure(container, SET)(value) == value


def test_no_answer(container):
    assert not procedure(container, "function () { return 'ignored'; }")()


def test_headers(container):
    procedure(container, "function () { __.createDocument(__.getSelfLink(), {id: 'a', pk: 'p'}); }")()
    headers = last_headers(container)
    assert 4 < float(headers["x-ms-request-charge"]) < 4.2  # Writes of scripts are rebated.
    assert headers["x-ms-session-token"].startswith("0:")
    assert "etag" not in headers
    assert container.read_item("a", "p")["id"] == "a"


def test_logging(container):
    execute = procedure(container, "function () { console.log('100% é\\n'); console.log('%s of %s', 1, 'two'); }")
    execute(enable_script_logging=True)
    assert log(container) == "100% é\n1 of two"
    execute()
    assert log(container) is None
    execute(enable_script_logging=False)
    assert log(container) is None


def test_exception(container):
    execute = procedure(container, "function () { throw new Error('no \"luck\"'); }")
    with fails(400, 0) as caught:
        execute()
    assert said(caught).startswith('Encountered exception while executing function. Exception = Error: no "luck"')


@pytest.mark.parametrize("number", [404, 409, 4242])
def test_numbers_of_errors(container, number):
    with fails(400, number) as caught:
        procedure(container, "function (n) { throw new Error(n, 'numbered'); }")(number)
    assert "numbered" in said(caught)


@pytest.mark.parametrize("thrown", ["just text", 42, {"a": 1}])
def test_anything_can_be_thrown(container, thrown):
    with fails(400):
        procedure(container, "function (x) { throw x; }")(thrown)


def test_missing_procedure(container):
    with fails(404):
        container.scripts.execute_stored_procedure("none", partition_key="p")


def test_key_is_needed(server, database, container):
    procedure(container, ECHO, "s")
    with fails(400):
        container.scripts.execute_stored_procedure("s")
    path = f"/dbs/{database.id}/colls/{container.id}/sprocs/s"
    status, _, body = raw(server.endpoint, "POST", path, [])
    assert status == 400 and "PartitionKey" in body["message"]
    status, _, body = raw(server.endpoint, "POST", path, {"no": "list"}, {"x-ms-documentdb-partitionkey": '["p"]'})
    assert status == 400 and body["message"]


IDS = """function () {
    __.queryDocuments(__.getSelfLink(), "SELECT VALUE c.id FROM c", function (err, rows) {
        if (err) throw err;
        __.response.setBody(rows);
    });
}"""


def test_partitions_are_apart(make):
    container = make(offer_throughput=30_000)
    for key in ("p", "q", 7):
        container.create_item({"id": f"in-{key}", "pk": key})
    container.create_item({"id": "keyless"})
    execute = procedure(container, IDS)
    assert execute(key="p") == ["in-p"]
    assert execute(key=7) == ["in-7"]
    assert execute(key=NonePartitionKeyValue) == ["keyless"]
    assert execute(key="none") == []


def test_foreign_items(container):
    container.create_item({"id": "theirs", "pk": "q"})
    body = """function () {
        __.readDocument(__.getAltLink() + "/docs/theirs", function (err) {
            const missing = err.number;
            __.createDocument(__.getSelfLink(), {id: "foreign", pk: "q"}, function (err) {
                __.response.setBody([missing, err.number]);
            });
        });
    }"""
    assert procedure(container, body)() == [404, 400]
    assert ids(container.read_all_items()) == ["theirs"]


def test_hierarchical_key(make):
    container = make(partition_key=PartitionKey(path=["/tenant", "/user"], kind="MultiHash"))
    container.create_item({"id": "a", "tenant": "t", "user": "u"})
    container.create_item({"id": "b", "tenant": "t", "user": "v"})
    execute = procedure(container, IDS)
    assert execute(key=["t", "u"]) == ["a"]
    with fails(400):
        execute(key=["t"])


WRITES = """function (where) {
    const collection = getContext().getCollection();
    collection.createDocument(collection.getSelfLink(), {id: "new", pk: "p"});
    collection.upsertDocument(collection.getSelfLink(), {id: "old", pk: "p", n: 2}, function (err) {
        if (err) throw err;
        if (where === "callback") throw new Error("late");
        if (where === "abort") getContext().abort(new Error("aborted"));
    });
    if (where === "body") throw new Error("early");
}"""


@pytest.mark.parametrize("where", ["body", "callback", "abort"])
def test_rollback(container, where):
    container.create_item({"id": "old", "pk": "p", "n": 1})
    execute = procedure(container, WRITES)
    with fails(400):
        execute(where)
    assert [user(item) for item in container.read_all_items()] == [{"id": "old", "pk": "p", "n": 1}]
    execute("nowhere")
    assert sorted(ids(container.read_all_items())) == ["new", "old"]


def test_failed_call_without_callback(container):
    container.create_item({"id": "taken", "pk": "p"})
    body = """function () {
        __.createDocument(__.getSelfLink(), {id: "new", pk: "p"});
        __.createDocument(__.getSelfLink(), {id: "taken", pk: "p"});
    }"""
    with fails(400, 409):
        procedure(container, body)()
    assert ids(container.read_all_items()) == ["taken"]


def test_swallowed_failure(container):
    container.create_item({"id": "taken", "pk": "p"})
    body = """function () {
        __.createDocument(__.getSelfLink(), {id: "new", pk: "p"});
        __.createDocument(__.getSelfLink(), {id: "taken", pk: "p"}, function (err) { __.response.setBody(err.number); });
    }"""
    assert procedure(container, body)() == 409
    assert sorted(ids(container.read_all_items())) == ["new", "taken"]


def test_own_writes_are_read_and_not_queried(container):
    body = """function () {
        __.createDocument(__.getSelfLink(), {id: "new", pk: "p"});
        __.readDocument(__.getAltLink() + "/docs/new", function (err, made) {
            if (err) throw err;
            __.queryDocuments(__.getSelfLink(), "SELECT * FROM c", function (err, rows) {
                if (err) throw err;
                __.response.setBody([made.id, rows.length]);
            });
        });
    }"""
    assert procedure(container, body)() == ["new", 0]


def test_async_function(container):
    body = """async function (count) {
        const create = (item) => new Promise((done, failed) => {
            __.createDocument(__.getSelfLink(), item, (err, made) => err ? failed(err) : done(made.id));
        });
        try {
            const made = [];
            for (let n = 0; n < count; n++) made.push(await create({id: `i${n}`, pk: "p"}));
            __.response.setBody(made);
        } catch (err) {
            getContext().abort(err);
        }
    }"""
    execute = procedure(container, body)
    assert execute(3) == ["i0", "i1", "i2"]
    with fails(400, 409):
        execute(4)
    assert len(list(container.read_all_items())) == 3


def test_bulk_import_and_delete(container):
    load = procedure(container, """function (items) {
        const collection = getContext().getCollection();
        let count = 0;
        (function next() {
            if (count === items.length) return getContext().getResponse().setBody(count);
            const accepted = collection.createDocument(collection.getSelfLink(), items[count], function (err) {
                if (err) throw err;
                count++;
                next();
            });
            if (!accepted) getContext().getResponse().setBody(count);
        })();
    }""")
    items = [{"id": f"i{n}", "pk": "p", "n": n} for n in range(250)]
    done = 0
    while done < len(items):
        step = load(items[done:])
        assert step > 0
        done += step
    clear = procedure(container, """function (least) {
        const collection = getContext().getCollection();
        const query = {query: "SELECT * FROM c WHERE c.n >= @n", parameters: [{name: "@n", value: least}]};
        const answer = {deleted: 0, more: true};
        page();
        function page(continuation) {
            const options = {continuation: continuation, pageSize: 40};
            const ok = collection.queryDocuments(collection.getSelfLink(), query, options, function (err, found, info) {
                if (err) throw err;
                remove(found, info.continuation);
            });
            if (!ok) getContext().getResponse().setBody(answer);
        }
        function remove(found, continuation) {
            if (found.length === 0) {
                if (continuation) return page(continuation);
                answer.more = false;
                return getContext().getResponse().setBody(answer);
            }
            const ok = collection.deleteDocument(found.pop()._self, function (err) {
                if (err) throw err;
                answer.deleted++;
                remove(found, continuation);
            });
            if (!ok) getContext().getResponse().setBody(answer);
        }
    }""")
    deleted, more = 0, True
    while more:
        answer = clear(100)
        deleted, more = deleted + answer["deleted"], answer["more"]
        assert answer["deleted"] or not more
    assert deleted == 150
    assert query(container, "SELECT VALUE COUNT(1) FROM c") == [100]


CREATE_COMMENT = """function createComment(postId, comment) {
    const collection = getContext().getCollection();
    collection.readDocument(`${collection.getAltLink()}/docs/${postId}`, function (err, post) {
        if (err) throw err;
        post.commentCount++;
        collection.replaceDocument(post._self, post, function (err) {
            if (err) throw err;
            comment.postId = postId;
            collection.createDocument(collection.getSelfLink(), comment);
        });
    });
}"""


@pytest.fixture
def posts(make):
    container = make(partition_key=PartitionKey(path="/postId"))
    container.create_item({"id": "p1", "postId": "p1", "type": "post", "userId": "u1", "commentCount": 0})
    return container


def test_create_comment(posts):
    execute = procedure(posts, CREATE_COMMENT)
    assert not execute("p1", {"id": "c1", "type": "comment", "userId": "u2"}, key="p1")
    execute("p1", {"type": "comment", "userId": "u2"}, key="p1")
    with fails(400, 409):
        execute("p1", {"id": "c1", "type": "comment"}, key="p1")
    with fails(400, 404):
        execute("p2", {"id": "c3", "type": "comment"}, key="p1")
    assert posts.read_item("p1", "p1")["commentCount"] == 2
    assert query(posts, "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'comment'") == [2]


def test_many_comments_at_once(posts):
    execute = procedure(posts, CREATE_COMMENT)

    def comment(n):
        execute("p1", {"id": f"c{n}", "type": "comment"}, key="p1")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(comment, range(48)))
    assert posts.read_item("p1", "p1")["commentCount"] == 48


def test_update_usernames(posts):
    posts.create_item({"id": "c1", "postId": "p1", "type": "comment", "userId": "u1"})
    posts.create_item({"id": "c2", "postId": "p1", "type": "comment", "userId": "u2"})
    posts.create_item({"id": "p2", "postId": "p2", "type": "post", "userId": "u1"})
    execute = procedure(posts, """function updateUsernames(userId, username) {
        const collection = getContext().getCollection();
        const query = `SELECT * FROM p WHERE p.userId = '${userId}'`;
        collection.queryDocuments(collection.getSelfLink(), query, function (err, found) {
            if (err) throw err;
            found.forEach(function (item) {
                item.userUsername = username;
                collection.upsertDocument(collection.getSelfLink(), item);
            });
        });
    }""")
    execute("u1", "ada", key="p1")
    assert sorted(query(posts, "SELECT VALUE c.id FROM c WHERE c.userUsername = 'ada'")) == ["c1", "p1"]
    for key in query(posts, "SELECT DISTINCT VALUE c.postId FROM c WHERE c.userId = 'u1'"):
        execute("u1", "ada", key=key)
    assert sorted(query(posts, "SELECT VALUE c.id FROM c WHERE c.userUsername = 'ada'")) == ["c1", "p1", "p2"]
