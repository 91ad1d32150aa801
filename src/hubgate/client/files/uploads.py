"""Uploads files to a repo: queries the upload mode of each file, sends large files first, then creates one commit."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hubgate.client.addresses import api_path, checked_url, file_path, page_path, path_segment
from hubgate.client.codec import decode, member
from hubgate.client.errors import BadRequest, UnexpectedResponse
from hubgate.client.files.sources import PIECE_SIZE, Progress, Source, source_for
from hubgate.client.models import Commit, UploadResult
from hubgate.client.operations.repos import COMMIT_SECONDS, NDJSON
from hubgate.client.session import Call, Session, json_call
from hubgate.client.wire import Flow, Upload, work

_BATCH_SIZE = 200
_LFS = "application/vnd.git-lfs+json"
# The hub hashes a large file before it responds.
_SEND_SECONDS = 600.0
_MAX_PARTS = 100_000


@dataclass(frozen=True)
class Target:
    repo: str
    type: str | None
    revision: str


def upload(
    session: Session,
    repo: str,
    files: Mapping[str, Path | bytes],
    *,
    type: str | None = None,  # noqa: A002
    revision: str = "main",
    message: str | None = None,
    description: str | None = None,
    parent: str | None = None,
    create_pr: bool = False,
    progress: Progress | None = None,
) -> Flow[UploadResult]:
    """Upload files to a repo in one commit. `files` maps paths in the repo to local files or contents.

    `progress` receives the path, the bytes sent and the total bytes. `AsyncHub` calls it from a worker thread.
    """
    target = Target(repo, type, revision)
    if not files:
        raise ValueError("files is empty: name at least one file.")
    sources = yield from work(lambda: [_checked_source(path, content) for path, content in files.items()])
    modes = yield from _upload_modes(session, target, sources, create_pr=create_pr)
    regular: list[Source] = []
    large: list[tuple[Source, str]] = []
    unchanged: list[str] = []
    ignored = [file.path for file in sources if modes[file.path].get("shouldIgnore") is True]
    for file in sources:
        mode = modes[file.path]
        if file.path in ignored:
            continue
        is_large = mode.get("uploadMode") == "lfs" and file.size > 0
        # Regular files are hashed only if the hub has a file at that path; large files need their hash anyway.
        oid = None
        if is_large:
            oid = yield from work(file.sha256)
        elif "oid" in mode:
            oid = yield from work(file.git_id)
        if oid is not None and oid == mode.get("oid"):
            unchanged.append(file.path)
        elif is_large and oid is not None:
            large.append((file, oid))
        else:
            regular.append(file)
    if not regular and not large:
        return UploadResult(None, [], unchanged, ignored)
    yield from _send_large(session, target, large, progress)
    sent = [file.path for file in regular] + [file.path for file, _ in large]
    summary = message or f"Upload {sent[0] if len(sent) == 1 else f'{len(sent)} files'}"
    header = {"summary": summary, "description": description or "", "parentCommit": parent}
    call = Call(
        "POST",
        f"{api_path(target.repo, target.type)}/commit/{path_segment(target.revision)}",
        query={"create_pr": 1 if create_pr else None},
        headers=NDJSON,
        body=_commit_body(header, regular, large, progress),
        read_timeout=COMMIT_SECONDS,
    )
    return UploadResult(decode(Commit, (yield from session.json(call))), sent, unchanged, ignored)


def _checked_source(path: str, content: Path | bytes) -> Source:
    # Only to raise ValueError for an invalid path.
    file_path(path)
    return source_for(path, content)


def _upload_modes(
    session: Session, target: Target, sources: Sequence[Source], *, create_pr: bool
) -> Flow[dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(sources), _BATCH_SIZE):
        batch = sources[start : start + _BATCH_SIZE]
        files = yield from work(partial(_preupload_entries, batch))
        call = json_call(
            "POST",
            f"{api_path(target.repo, target.type)}/preupload/{path_segment(target.revision)}",
            {"files": files},
            query={"create_pr": 1 if create_pr else None},
            repeatable=True,
        )
        value = member((yield from session.json(call)), "files")
        for item in value if isinstance(value, list) else []:
            if isinstance(item, dict) and isinstance(item.get("path"), str):
                found[item["path"]] = item
    if missing := [file.path for file in sources if file.path not in found]:
        raise UnexpectedResponse(f"The hub did not say how to upload {missing[0]!r}.")
    return found


def _preupload_entries(sources: Sequence[Source]) -> list[dict[str, Any]]:
    return [
        {"path": file.path, "size": file.size, "sample": base64.b64encode(file.sample()).decode()} for file in sources
    ]


def _send_large(
    session: Session, target: Target, large: Sequence[tuple[Source, str]], progress: Progress | None
) -> Flow[None]:
    path = f"{page_path(target.repo, target.type)}.git/info/lfs/objects/batch"
    for start in range(0, len(large), _BATCH_SIZE):
        # Files with the same content share an object.
        by_oid = {oid: file for file, oid in large[start : start + _BATCH_SIZE]}
        content = {
            "operation": "upload",
            "transfers": ["basic", "multipart"],
            "hash_algo": "sha256",
            "objects": [{"oid": oid, "size": file.size} for oid, file in by_oid.items()],
        }
        call = json_call("POST", path, content, headers={"Content-Type": _LFS, "Accept": _LFS}, repeatable=True)
        objects = member((yield from session.json(call)), "objects")
        described = {item.get("oid"): item for item in objects if isinstance(item, dict)}
        for oid, file in by_oid.items():
            if oid not in described:
                raise UnexpectedResponse(f"The hub did not say where to upload {file.path!r}.")
            yield from _send_one(session, file, oid, described[oid], progress)


def _send_one(
    session: Session, file: Source, oid: str, described: dict[str, Any], progress: Progress | None
) -> Flow[None]:
    if isinstance(error := described.get("error"), dict):
        raise BadRequest(f"The hub rejected {file.path}: {str(error.get('message', ''))[:200]}", status=422)
    actions = described.get("actions")
    if not isinstance(actions, dict) or "upload" not in actions:
        # The hub already has the content.
        if progress is not None:
            progress(file.path, file.size, file.size)
        return
    address, header = _action(actions["upload"])
    if "chunk_size" in header:
        yield from _send_parts(session, file, oid, address, header, progress)
    else:
        body = file.upload(0, file.size, _reporter(file, progress))
        call = Call("PUT", url=address, headers=header, body=body, send_token=False, read_timeout=_SEND_SECONDS)
        yield from session.call(call)
    if "verify" in actions:
        address, more = _action(actions["verify"])
        headers = {**more, "Content-Type": _LFS, "Accept": _LFS}
        # `session` sends the token only if this is the hub's own origin.
        content = {"oid": oid, "size": file.size}
        yield from session.call(json_call("POST", "", content, url=address, headers=headers, repeatable=True))


def _send_parts(
    session: Session, file: Source, oid: str, completion_url: str, header: dict[str, str], progress: Progress | None
) -> Flow[None]:
    text = header["chunk_size"]
    length = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    count = -(-file.size // length) if length else 0
    if not 0 < count <= _MAX_PARTS:
        raise UnexpectedResponse("The hub asked for parts of an invalid size.")
    parts = []
    for number in range(1, count + 1):
        start = (number - 1) * length
        # Part numbers have five digits, but a hub may omit leading zeros.
        address = checked_url(header.get(f"{number:05d}") or header.get(str(number)))
        body = file.upload(start, min(length, file.size - start), _reporter(file, progress))
        call = Call("PUT", url=address, body=body, send_token=False, read_timeout=_SEND_SECONDS)
        response = yield from session.call(call)
        if "etag" not in response.headers:
            raise UnexpectedResponse("The hub accepted a part of a file without sending its ETag.")
        parts.append({"partNumber": number, "etag": response.headers["etag"]})
    content = {"oid": oid, "parts": parts}
    headers = {"Accept": _LFS}
    call = json_call("POST", "", content, url=completion_url, headers=headers, send_token=False, repeatable=True)
    yield from session.call(replace(call, read_timeout=_SEND_SECONDS))


def _action(value: object) -> tuple[str, dict[str, str]]:
    header = value.get("header") if isinstance(value, dict) else None
    known = header if isinstance(header, dict) else {}
    plain = {str(name): str(value) for name, value in known.items() if str(name).isascii() and str(value).isprintable()}
    return checked_url(member(value, "href")), plain


def _reporter(file: Source, progress: Progress | None) -> Any:
    return None if progress is None else lambda done: progress(file.path, done, file.size)


def _commit_body(
    header: dict[str, Any], regular: Sequence[Source], large: Sequence[tuple[Source, str]], progress: Progress | None
) -> Upload:
    """The commit request: one JSON line per file. Contents are encoded while they are read."""
    before = [json.dumps({"key": "header", "value": header}).encode() + b"\n"]
    for file, oid in large:
        value = {"path": file.path, "algo": "sha256", "oid": oid, "size": file.size}
        before.append(json.dumps({"key": "lfsFile", "value": value}).encode() + b"\n")
    head = b"".join(before)
    prefixes = [
        b'{"key":"file","value":{"encoding":"base64","path":' + json.dumps(file.path).encode() + b',"content":"'
        for file in regular
    ]
    suffix = b'"}}\n'

    def pieces() -> Iterator[bytes]:
        yield head
        for file, prefix in zip(regular, prefixes, strict=True):
            yield prefix
            done = 0
            # Multiples of three bytes, so that the base64 pieces join without padding.
            for piece in file.pieces(step=PIECE_SIZE * 3 // 4 // 3 * 3):
                yield base64.b64encode(piece)
                done += len(piece)
                if progress is not None:
                    progress(file.path, done, file.size)
            yield suffix

    contents = sum(len(prefix) + -(-file.size // 3) * 4 for file, prefix in zip(regular, prefixes, strict=True))
    return Upload(len(head) + contents + len(suffix) * len(regular), pieces)
