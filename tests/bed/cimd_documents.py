"""Unregistered apps whose client ID metadata document is already in the hub's cache."""

import json

from tests.bed.apps import Client
from tests.bed.running_hub import RunningHub

from hubgate.server.clock import HOUR
from hubgate.server.oauth.cimd import store
from hubgate.server.oauth.cimd.rules import check_document
from hubgate.server.resources import Hub

URL = "https://notes.example/.well-known/oauth-cimd"
REDIRECT_URI = "https://notes.example/callback"


def store_document(hub: RunningHub, url: str = URL, **members: object) -> Client:
    """Store a document for `url`, replacing the cached document."""
    document = {
        "client_id": url,
        "client_name": "Field Notes",
        "redirect_uris": [REDIRECT_URI],
        "token_endpoint_auth_method": "none",
        **members,
    }
    text = json.dumps(document)
    findings, app = check_document(url, text.encode())
    assert app is not None, findings
    store_document_text(hub, url, text)
    return Client(hub, app, None)


def store_document_text(hub: RunningHub, url: str, text: str) -> None:
    """Store a text as the document for `url` without validation."""

    async def work(opened: Hub) -> None:
        now = opened.clock()
        await opened.db.write(lambda tx: store.save(tx, url, text, now, now + 24 * HOUR))

    hub.call(work)
