"""Receiving commits: as one JSON document, cut off, or so slowly that permissions changed before the end."""

import base64
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_large
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM

HEADER = b'{"key": "header", "value": {"summary": "x"}}\n'


def _line(key: str, **value: Any) -> bytes:
    return json.dumps({"key": key, "value": value}).encode()


@pytest.mark.one_engine
def test_commit_may_be_one_json_document(hub: RunningHub) -> None:
    """As older clients send it."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sha = create_commit(ada, "ada/tiny", {"gone": b"", "dir/x": b"", "entry": b""})
        oid = send_large(ada, "ada/tiny", b"\0large")
        content = base64.b64encode(b"x" * 100_000).decode()
        body = {
            "summary": "Old",
            "description": "way",
            "parentCommit": sha,
            "files": [{"path": "f", "content": content, "encoding": "base64"}],
            "lfsFiles": [{"path": "w.bin", "algo": "sha256", "oid": oid, "size": 6}],
            "deletedFiles": [{"path": "gone"}],
            "deletedFolders": [{"path": "dir/"}],
            "deletedEntries": [{"path": "entry"}],
        }
        address = "/api/models/ada/tiny/commit/main"
        assert ada.post(address, json=body).json()["success"] is True
        assert paths_in(ada, "ada/tiny") == {"f", "w.bin"}
        assert ada.post(address, json=body).status_code == 412
        for bad, status in (
            (b"", 400), (b"{}", 422), (b'{"summary": 1}', 422), (b'{"summary": "x", "files": 1}', 422),
            (b'{"summary": "x", "files": [{"path": ' + b"[" * 100_000, 400),
            (b'{"summary": "x", "files": [{}]}', 422), (b'{"summary": ""}', 422), (b'{"summary": "\\ud800"}', 400),
        ):  # fmt: skip
            answer = ada.post(address, content=bad, headers={"content-type": "application/json"})
            assert answer.status_code == status, bad[:40]
        large = b'{"summary": "x", "description": "' + b"x" * (33 * 1024 * 1024) + b'"}'
        assert ada.post(address, content=large, headers={"content-type": "application/json"}).status_code == 413


def test_client_that_disconnects_commits_nothing(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    token = create_token(hub, create_user(hub, "ada"))
    incoming = hub.settings.data_dir / "lfs/incoming"
    with api(hub, token) as ada:
        create_repo(ada, "tiny")
        sha = head_of(ada, "ada/tiny")
        body = HEADER + _line("file", path="a", content="A" * 200_000)
        for cut in (len(HEADER) + 10, 100_000, len(body) - 1):
            with socket.create_connection(hub.address) as connection:
                head = f"POST /api/models/ada/tiny/commit/main HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:cut])
                if cut > len(HEADER) + 70_000:
                    until(lambda: any(incoming.glob("*")))
            until(lambda: not any(incoming.glob("*")))
        assert head_of(ada, "ada/tiny") == sha
        assert len(ada.get("/api/models/ada/tiny/events").json()) == 1


@pytest.mark.one_engine
def test_permission_lost_during_the_upload_rejects_the_commit(hub: RunningHub) -> None:
    """A body may take hours to be received: permissions are checked at its end (as for a push)."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    incoming = hub.settings.data_dir / "lfs/incoming"
    with api(hub, create_token(hub, ada)) as admin, api(hub, create_token(hub, bob)) as writer:
        create_repo(admin, "acme/core")
        create_repo(admin, "acme/gone")

        def slowly(interrupt: Callable[[], object]) -> Iterator[bytes]:
            line = _line("file", path="a", content="A" * 200_000)
            yield HEADER + line[:150_000]
            # The body is being read, so the sender was authorized.
            until(lambda: any(incoming.glob("*")))
            interrupt()
            yield line[150_000:]

        def demote() -> object:
            return hub.call(lambda opened: members.change_role(opened.accounts, acme, bob, Role.READ, SYSTEM))

        def delete() -> object:
            return admin.request("DELETE", "/api/repos/delete", json={"name": "gone", "organization": "acme"})

        for repo, interrupt, status in (("gone", delete, 404), ("core", demote, 403)):
            address = f"/api/models/acme/{repo}/commit/main"
            answer = writer.post(address, content=slowly(interrupt), headers={"content-type": "application/x-ndjson"})
            assert answer.status_code == status, answer.text
        assert paths_in(admin, "acme/core") == set()
        assert list(incoming.glob("*")) == []
