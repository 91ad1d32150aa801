"""Responses with the content of a large file: from disk, by a redirect to the object store, or from the store through
the hub.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct

from hubgate.server.access.caller import share_key_of
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.hub.context import Repos
from hubgate.server.hub.lfs.contents import StoredContent
from hubgate.server.hub.lfs.signed_urls import DOWNLOAD_VALIDITY_SECONDS
from hubgate.server.web.files.responses import FileSender, Span, range_or_whole

# The store has its own entity tags and times, so conditions of the client would fail there, or hold by accident: the
# new content of a file may have been stored long ago.
_CONDITIONS = ("if-match", "if-range", "if-modified-since", "if-unmodified-since")
# These describe the content, not a response that leads to it.
OF_CONTENT = ("content-type", "content-disposition", "etag")


class ContentSender(Struct, frozen=True):
    sender: FileSender
    repos: Repos

    async def send(self, request: HubRequest, content: StoredContent, headers: dict[str, str]) -> ASGIApp:
        """Send a stored file. A HEAD is answered here: clients want the headers, and a link is for GET only. A file
        that is stored as chunks is composed here: no link leads to it.
        """
        if content.chunked is None:
            if path := await self.repos.large_files.local_file(content.oid):
                return self.sender.file(request, path, content.size, headers)
            # An empty file is sent by the hub: a store rejects a range of it, which an existing client asks for.
            may_redirect = request.method == "GET" and content.size > 0 and not _is_for_page(request)
            if may_redirect and not any(name in request.headers for name in _CONDITIONS):
                link = await self.repos.large_files.link(content.oid, DOWNLOAD_VALIDITY_SECONDS, headers)
                if link is not None:
                    return _redirect(link, content.size, headers)

        def answer(part: Span, status: int, headers: dict[str, str]) -> ASGIApp:
            parts = in_turn(self.repos, request, content.read(self.repos, part.start, part.end))
            return StreamedResponse(parts, headers, status, self.sender.longest_stall)

        return range_or_whole(request, content.size, headers, answer)


async def in_turn(repos: Repos, request: HubRequest, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The parts of content that is read from the store, once there is a slot, which is occupied until the last one."""
    async with aclosing(parts), repos.store_downloads.acquire(share_key_of(request)):
        async for part in parts:
            yield part


def _is_for_page(request: HubRequest) -> bool:
    """Whether a page shows the file as an image. Our pages load images only from their own origin, after redirects too
    (`http/headers.py`).
    """
    return request.headers.get("accept", "").startswith("image/")


def _redirect(link: str, size: int, headers: dict[str, str]) -> Response:
    """Redirect to the store. Clients take hash and size from the headers `X-Linked-…`."""
    about = {"location": link, "x-linked-etag": headers["etag"], "x-linked-size": str(size)}
    others = {name: value for name, value in headers.items() if name not in OF_CONTENT}
    # The link expires, and anyone who has it can read the file.
    return Response(status_code=302, headers={**others, **about, "cache-control": "no-store", "content-length": "0"})
