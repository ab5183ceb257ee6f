"""Small helpers of the cases: names, expected failures, deadlines, requests by hand."""

import base64
import hashlib
import hmac
import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from contextlib import contextmanager
from email.utils import formatdate

import pytest
from azure.cosmos.exceptions import CosmosHttpResponseError

from server import KEY

SYSTEM = {"_rid", "_self", "_etag", "_ts", "_attachments", "_lsn"}


def unique(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@contextmanager
def fails(status, sub_status=None):
    """Expects a failure of the service with this status and, if given, sub-status."""
    with pytest.raises(CosmosHttpResponseError) as caught:
        yield caught
    assert caught.value.status_code == status, str(caught.value)
    if sub_status is not None:
        assert (caught.value.sub_status or 0) == sub_status, str(caught.value)


def until(what, ask, within=10.0, every=0.05):
    """Asks until the answer satisfies, and fails loudly when it never does."""
    deadline = time.monotonic() + within
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(every)
    return answer


def user(item):
    """The user's own properties of an item."""
    return {name: value for name, value in item.items() if name not in SYSTEM}


def ids(items):
    return [item["id"] for item in items]


def query(container, text, **options):
    """All rows of a query over every partition, or over the key or range that is given."""
    parameters = [{"name": name, "value": value} for name, value in options.pop("where", {}).items()]
    if not {"partition_key", "feed_range"} & options.keys():
        options["enable_cross_partition_query"] = True
    return list(container.query_items(query=text, parameters=parameters, **options))


def last_headers(container):
    return container.client_connection.last_response_headers


def raw(endpoint, method, path, body=None, headers=None, key=KEY):
    """One signed request, for what the SDK refuses to send. Answers status, headers and JSON."""
    segments = [urllib.parse.unquote(part) for part in path.split("/") if part]
    feed = len(segments) % 2 == 1
    kind = (segments[-1] if feed else segments[-2]) if segments else ""
    link = "/".join(segments[:-1] if feed else segments)
    date = formatdate(usegmt=True)
    text = f"{method.lower()}\n{kind}\n{link}\n{date.lower()}\n\n"
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    token = f"type=master&ver=1.0&sig={base64.b64encode(digest).decode()}"
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(endpoint + path, data=data, method=method)
    request.add_header("authorization", urllib.parse.quote(token, safe=""))
    request.add_header("x-ms-date", date)
    request.add_header("x-ms-version", "2020-07-15")
    request.add_header("content-type", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, _json(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.headers, _json(error.read())


def _json(data):
    return json.loads(data) if data else None
