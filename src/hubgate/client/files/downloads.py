"""Downloads files from a repo: resumes interrupted downloads, and moves only verified files into place."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hubgate.client.addresses import checked_name, file_path, local_path, page_path, path_segment
from hubgate.client.errors import ConnectionLost, HubFailure, HubgateError, RateLimited, UnexpectedResponse, Unreachable
from hubgate.client.files.partial_files import PartialFile, has_content, hash_from
from hubgate.client.files.sources import Progress
from hubgate.client.files.uploads import Target
from hubgate.client.operations import repos
from hubgate.client.responses import refusal
from hubgate.client.retry_policy import retry_delay
from hubgate.client.session import Call, Session
from hubgate.client.wire import Flow, Response, sleep, work


def download(
    session: Session,
    repo: str,
    path: str,
    to: Path | None = None,
    *,
    type: str | None = None,  # noqa: A002
    revision: str = "main",
    progress: Progress | None = None,
) -> Flow[Path]:
    """Download a file to `to`, or into the working folder.

    An interrupted download is resumed. The file appears only when it is complete and its hash has been verified.
    """
    destination = Path(local_path(checked_name(path).rsplit("/", 1)[-1], windows=os.name == "nt")) if to is None else to
    yield from _fetch(session, Target(repo, type, revision), path, destination, progress)
    return destination


def download_all(
    session: Session,
    repo: str,
    to: Path,
    *,
    type: str | None = None,  # noqa: A002
    revision: str = "main",
    progress: Progress | None = None,
) -> Flow[Path]:
    """Download all files of a commit into the folder `to`."""
    sha = (yield from repos.repo_info(session, repo, type=type, revision=revision)).sha
    if not sha:
        return to
    entries = yield from repos.list_files(session, repo, type=type, revision=sha)
    # Check all file names before the first download: if one is unsafe, nothing is written.
    destinations = {
        entry.path: to / local_path(entry.path, windows=os.name == "nt") for entry in entries if entry.type == "file"
    }
    for path, destination in destinations.items():
        yield from _fetch(session, Target(repo, type, sha), path, destination, progress)
    return to


def _fetch(session: Session, target: Target, path: str, destination: Path, progress: Progress | None) -> Flow[None]:
    address = f"{page_path(target.repo, target.type)}/resolve/{path_segment(target.revision)}/{file_path(path)}"
    head = yield from session.response(Call("HEAD", address, return_redirect=True))
    expected_hash, size = _expected_content(session, head)
    if (yield from work(lambda: has_content(destination, expected_hash, size))):
        if progress is not None:
            progress(path, size, size)
        return
    report: Callable[[int], object] | None = None
    if progress is not None:
        report = lambda done: progress(path, done, size)  # noqa: E731
    part = yield from work(lambda: PartialFile(destination, expected_hash, size, report))
    try:
        if not part.is_complete:
            # From the commit in the HEAD response: a branch may move between the two requests.
            commit = head.headers.get("x-repo-commit", target.revision)
            address = f"{page_path(target.repo, target.type)}/resolve/{path_segment(commit)}/{file_path(path)}"
            yield from _receive(session, address, part)
        yield from work(part.finish)
    finally:
        part.close()


def _receive(session: Session, address: str, part: PartialFile) -> Flow[None]:
    """Download the rest of a file, resuming after failures. The retry count restarts after any progress."""
    # Each attempt needs another range; the session's retries would repeat the first range.
    without_retries, tries = replace(session, retries=0), 0
    while not part.is_complete:
        before = part.done
        headers = {"Range": f"bytes={before}-"} if before else {}
        failed: HubgateError = ConnectionLost("The connection was lost before the download was complete.")
        retry_after = None
        try:
            yield from without_retries.call(
                Call("GET", address, headers=headers, sink=part, follow_to_other_origin=True)
            )
        except (ConnectionLost, Unreachable) as error:
            failed = error
        except (RateLimited, HubFailure) as error:
            failed, retry_after = error, error.retry_after
        if part.is_complete:
            return
        tries = 1 if part.done > before else tries + 1
        pause = retry_delay(tries, retry_after, session.jitter)
        if tries > session.retries or pause is None:
            raise failed
        yield from sleep(pause)


def _expected_content(session: Session, head: Response) -> tuple[str, int]:
    """The expected hash and size of a file. For a file on another host, they are in the X-Linked-… headers of the hub's
    redirect.
    """
    if not 200 <= head.status < 300 and not (300 <= head.status < 400 and "x-linked-etag" in head.headers):
        raise refusal(head, session.clock())
    etag = head.headers.get("x-linked-etag") or head.headers.get("etag", "")
    text = head.headers.get("x-linked-size") or head.headers.get("content-length", "")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UnexpectedResponse("The hub did not send the file's size, so the file was not downloaded.")
    return hash_from(etag), int(text)
