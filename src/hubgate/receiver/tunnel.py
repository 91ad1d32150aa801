"""The receiver's side of a tunnel: a temporary link on the hub, and a WebSocket that carries its requests here.

Requests are forwarded to the receiver's own address, and only POSTs to /webhooks/. The connection is opened from here,
so no port needs to be reachable; it is opened again, for the same link, whenever it is lost.
"""

import asyncio
import contextlib
import importlib.util
import json
import logging
import random
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hubgate.client.credentials import open_session
from hubgate.client.errors import Forbidden, HubgateError, NotFound, NotSignedIn
from hubgate.client.models import TunnelLink
from hubgate.client.operations import tunnels
from hubgate.client.session import RETRIES, USER_AGENT
from hubgate.client.store import Store
from hubgate.client.transport import Driver

if TYPE_CHECKING:
    import httpx
    from websockets.asyncio.client import ClientConnection

CONNECT_SECONDS = 10.0
# The hub closes a connection on which it has received nothing for a minute.
KEEP_ALIVE_SECONDS = 20.0
FIRST_DELAY, LONGEST_DELAY = 0.5, 10.0
# The hub waits 15 seconds for an answer; a handler may take longer.
HANDLER_SECONDS = 60.0
MAX_MESSAGE = 2 * 1024 * 1024
MAX_ANSWER = 64 * 1024
# Another program uses the link; the token is no longer valid; the link has expired.
FINAL_CODES = frozenset({4000, 4401, 4404})

logger = logging.getLogger("hubgate.receiver")


class _Ended(Exception):
    """The link cannot be used any more. The message says why."""


class Tunnel:
    """A temporary link on the hub of HUBGATE_ENDPOINT or of the last sign-in. The constructor opens the link."""

    def __init__(self) -> None:
        if importlib.util.find_spec("websockets") is None:
            raise ImportError('share=True needs an extra. Run: pip install "hubgate[tunnel]"')
        self._receiver_url = ""
        self._session = open_session(None, None, Store(None), RETRIES)
        self._driver = Driver(CONNECT_SECONDS)
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._link: TunnelLink = self._driver.run(tunnels.open_tunnel(self._session))
        # From now on, `_serve` decides when to try again.
        self._session.retries = 0

    @property
    def expires(self) -> str:
        """When the link expires, in local time."""
        return f"{self._link.expires_at.astimezone():%d %b %H:%M}"

    def start(self, receiver_url: str) -> str:
        """Connect the link to the receiver in a thread, and return the link's address."""
        self._receiver_url = receiver_url
        self._thread = threading.Thread(target=asyncio.run, args=(self._run(),), name="hubgate-tunnel", daemon=True)
        self._thread.start()
        return self._link.url

    def close(self) -> None:
        """Disconnect and close the link. If the hub cannot be reached, the link expires by itself."""
        if self._thread is not None:
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(CONNECT_SECONDS)
        with contextlib.suppress(HubgateError):
            self._driver.run(tunnels.close_tunnel(self._session, self._link.id))
        self._driver.close()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = asyncio.create_task(self._serve())
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        serving.cancel()
        await asyncio.gather(serving, stopping, return_exceptions=True)

    async def _serve(self) -> None:
        """Connect, and connect again after a loss, until the link can no longer be used."""
        import httpx
        from websockets.exceptions import WebSocketException

        delay, is_lost = FIRST_DELAY, False
        # The receiver is on this machine: no proxy of the environment, and no certificates.
        async with httpx.AsyncClient(trust_env=False, timeout=HANDLER_SECONDS, verify=False) as client:  # noqa: S501
            while True:
                try:
                    async with self._connected() as socket:
                        if is_lost:
                            logger.warning("The tunnel is connected again")
                        delay, is_lost = FIRST_DELAY, False
                        await self._forward_all(socket, client)
                except (_Ended, NotFound, NotSignedIn, Forbidden) as end:
                    logger.error("The temporary link no longer reaches this receiver: %s", end)  # noqa: TRY400
                    return
                except (HubgateError, WebSocketException, OSError, TimeoutError) as error:
                    if not is_lost:
                        logger.warning("The tunnel was disconnected and will be connected again: %s", error)
                    is_lost = True
                await asyncio.sleep(delay * (0.5 + random.random()))  # noqa: S311 (spreads load)
                delay = min(2 * delay, LONGEST_DELAY)

    @contextlib.asynccontextmanager
    async def _connected(self) -> "AsyncIterator[ClientConnection]":
        from websockets.asyncio.client import connect

        url, headers = await asyncio.to_thread(self._driver.run, tunnels.socket_of(self._session, self._link.id))
        async with connect(
            url,
            additional_headers=headers,
            user_agent_header=USER_AGENT,
            compression=None,
            open_timeout=CONNECT_SECONDS,
            close_timeout=1,
            max_size=MAX_MESSAGE,
        ) as socket:
            yield socket

    async def _forward_all(self, socket: "ClientConnection", client: "httpx.AsyncClient") -> None:
        running = {asyncio.create_task(_keep_alive(socket))}
        try:
            async for message in socket:
                task = asyncio.create_task(self._forward(socket, client, message))
                running.add(task)
                task.add_done_callback(running.discard)
        finally:
            for task in running:
                task.cancel()
        if socket.close_code in FINAL_CODES:
            raise _Ended(socket.close_reason or "the hub closed it")

    async def _forward(self, socket: "ClientConnection", client: "httpx.AsyncClient", message: str | bytes) -> None:
        import httpx
        from websockets.exceptions import ConnectionClosed

        data = message.encode() if isinstance(message, str) else message
        line, _, body = data.partition(b"\n")
        head = json.loads(line)
        try:
            answer, content = await self._post(client, head, body)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            # The last two are about the request, which anyone with the link can send.
            logger.warning("A webhook could not be forwarded to the receiver: %s", error)
            answer, content = {"status": 502}, b'{"error":"The receiver does not respond."}'
        with contextlib.suppress(ConnectionClosed):
            await socket.send(json.dumps({"id": head["id"], **answer}).encode() + b"\n" + content)

    async def _post(
        self, client: "httpx.AsyncClient", head: dict[str, Any], body: bytes
    ) -> tuple[dict[str, Any], bytes]:
        path: str = head["path"]
        # The HTTP client would resolve dots, and send the request to another path.
        if not path.startswith("/webhooks/") or {".", ".."} & set(unquote(path.partition("?")[0]).split("/")):
            return {"status": 404}, b'{"error":"Only /webhooks/ is forwarded."}'
        # As bytes: values may be outside of ASCII. The answer is passed on as it is, so it must not be compressed.
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
        headers = [pair for pair in headers if pair[0].lower() != b"accept-encoding"]
        headers.append((b"accept-encoding", b"identity"))
        content = bytearray()
        async with client.stream("POST", self._receiver_url + path, headers=headers, content=body) as response:
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > MAX_ANSWER:
                    break
        answer = {"status": response.status_code, "retryAfter": response.headers.get("retry-after")}
        return answer, bytes(content[:MAX_ANSWER])


async def _keep_alive(socket: "ClientConnection") -> None:
    while True:
        await asyncio.sleep(KEEP_ALIVE_SECONDS)
        await socket.send("")
