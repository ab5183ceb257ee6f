"""Helpers of the cases about server-side scripts."""

import json
import re
from urllib.parse import unquote

from azure.cosmos.documents import TriggerOperation, TriggerType

from support import last_headers, unique

LOG = "x-ms-documentdb-script-log-results"


def procedure(container, body, id=None):
    """Registers a procedure and answers how to execute it."""
    id = id or unique("procedure")
    container.scripts.create_stored_procedure({"id": id, "body": body})

    def execute(*params, key="p", **options):
        return container.scripts.execute_stored_procedure(id, partition_key=key, params=list(params), **options)

    return execute


def before(container, body, operation=TriggerOperation.All):
    """Registers a pre-trigger and answers its id."""
    return _trigger(container, TriggerType.Pre, operation, body)


def after(container, body, operation=TriggerOperation.All):
    """Registers a post-trigger and answers its id."""
    return _trigger(container, TriggerType.Post, operation, body)


def _trigger(container, kind, operation, body):
    id = unique("trigger")
    container.scripts.create_trigger({"id": id, "body": body, "triggerType": kind, "triggerOperation": operation})
    return id


def define(container, id, body):
    """Registers a user-defined function."""
    container.scripts.create_user_defined_function({"id": id, "body": body})


def said(caught):
    """What a failed script said: the text in the document that its message is."""
    document = re.search(r'Message: (\{"Errors":.*?\]\})\r\nActivityId', caught.value.message, re.DOTALL)
    assert document, caught.value.message
    return json.loads(document.group(1))["Errors"][0]


def log(container):
    """What the last procedure logged."""
    text = last_headers(container).get(LOG)
    return None if text is None else unquote(text)
