"""`WebhooksServer`: an ASGI app that receives webhooks, standalone or mounted in another app."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from hubgate.receiver import landing, launch, lifespan
from hubgate.receiver.asgi import App, Receive, Scope, Send, path_of, respond_error
from hubgate.receiver.handlers import Handler
from hubgate.receiver.intake import Intake
from hubgate.receiver.routes import Routes, check_kind
from hubgate.receiver.tunnel import Tunnel
from hubgate.receiver.verification import create_verifier

F = TypeVar("F", bound=Handler)

OPEN_WARNING = (
    "No webhook secret is set: anybody who can reach this receiver can call its handlers. "
    "Set WEBHOOK_SECRET, or pass webhook_secret or public_key."
)

logger = logging.getLogger("hubgate.receiver")


class WebhooksServer:
    """An ASGI app that receives deliveries, authenticates them and calls the registered functions.

    ui: replaces the landing page: a string of HTML, an ASGI app or gradio Blocks.
    webhook_secret: a secret, or several during a rotation. Default: the environment variable WEBHOOK_SECRET.
    public_key: the public key of a webhook without a secret (`whpk_...`), or several. Needs `hubgate[ed25519]`.
    ack: "after" runs the handler first and responds with its result. "before" stores the delivery in `inbox`, responds
        with 202 and runs the handler later, at least once, even if the process crashes.
    inbox: the SQLite file for `ack="before"`.
    """

    def __init__(
        self,
        ui: Any = None,
        webhook_secret: str | Sequence[str] | None = None,
        *,
        public_key: str | Sequence[str] | None = None,
        ack: Literal["after", "before"] = "after",
        inbox: str | os.PathLike[str] = "hubgate-inbox.db",
    ) -> None:
        if ack not in ("after", "before"):
            raise ValueError('ack must be "after" or "before".')
        if webhook_secret is None:
            webhook_secret = os.environ.get("WEBHOOK_SECRET", "").strip() or None
        landing.check_ui(ui)
        self._ui = ui
        self._ui_app: App | None = None
        self._routes = Routes()
        verifier = create_verifier(_as_list(webhook_secret, "webhook_secret"), _as_list(public_key, "public_key"))
        self._intake = Intake(verifier, self._routes)
        if ack == "before":
            # Absolute, in case the program changes its working folder.
            self._intake.use_inbox(Path(inbox).absolute())
        self._serving: launch.Server | None = None
        self._tunnel: Tunnel | None = None
        self.url: str | None = None
        self.share_url: str | None = None
        if verifier.accepts_all:
            logger.warning(OPEN_WARNING)

    @property
    def registered_webhooks(self) -> dict[str, Handler]:
        """The handlers that have their own address, by address."""
        endpoints = self._routes.endpoints.items()
        return {path: endpoint.catch_all.handler for path, endpoint in endpoints if endpoint.catch_all is not None}

    @property
    def addresses(self) -> list[str]:
        """All paths that accept deliveries."""
        return list(self._routes.endpoints)

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._intake.verifier.secrets

    @overload
    def add_webhook(self, path: F) -> F: ...
    @overload
    def add_webhook(self, path: str | None = None) -> Callable[[F], F]: ...
    def add_webhook(self, path: Any = None) -> Any:
        """Decorator: call the function for deliveries to `/webhooks/{path}`, by default the function's name."""
        if callable(path):
            self._routes.add(path, None)
            return path

        def register(handler: F) -> F:
            self._routes.add(handler, path)
            return handler

        return register

    def on(self, kind: str, *, type: str | None = None) -> Callable[[F], F]:  # noqa: A002
        """Decorator: call the function for deliveries of this kind to `/webhooks/events`.

        `kind` is a scope with or without an action (`repo.content`, `repo.content.update`), or `*`. `type` is the type
        of the repo. Only the most specific matching function is called.
        """
        check_kind(kind, type)

        def register(handler: F) -> F:
            self._routes.on(handler, kind, type)
            return handler

        return register

    def launch(
        self, host: str = "127.0.0.1", port: int = 7860, share: bool = False, prevent_thread_lock: bool = False
    ) -> None:
        """Serve until Ctrl-C. With `prevent_thread_lock`, and in notebooks, serve in a thread until `close()`.

        With `share`, the hub forwards webhooks from a temporary link to this receiver, for 72 hours. Needs
        `hubgate[tunnel]` and a sign-in or token with the scope webhooks. The attributes `url` and `share_url` are set
        to the receiver's address and to the link.
        """
        if self._serving is not None:
            raise RuntimeError(f"The receiver is already running at {self.url}. Call close() first.")
        in_thread = prevent_thread_lock or launch.in_notebook()
        if self._intake.inbox is not None:
            self._intake.inbox.check()
        with contextlib.ExitStack() as ending:
            ending.callback(self.close)
            self._tunnel = Tunnel() if share else None
            bound = launch.listen(host, port)
            self.url = launch.url_of(bound)
            self._serving = launch.Server(self, bound)
            hosted = launch.hosted_url()
            launch.print_line(f"Receiving webhooks at {hosted or f'{self.url} (Ctrl-C stops)'}")
            self._print_addresses(f"{hosted or self.url}/")
            if self._tunnel is not None:
                self.share_url = self._tunnel.start(self.url)
                launch.print_line(f"Temporary link, until {self._tunnel.expires}: {self.share_url}")
                self._print_addresses(self.share_url)
            if in_thread:
                self._serving.run_in_thread()
                ending.pop_all()
            else:
                self._serving.run()

    def close(self) -> None:
        """Stop the server that `launch` started, and release threads and the inbox file."""
        if self._tunnel is not None:
            self._tunnel.close()
            self._tunnel = self.share_url = None
        if self._serving is not None:
            self._serving.stop()
            self._serving = None
        self._intake.runner.close()
        if self._intake.inbox is not None:
            self._intake.inbox.close()

    def _print_addresses(self, root: str) -> None:
        for path in self._routes.endpoints:
            launch.print_line(f"  POST {root}{path.removeprefix('/')}")

    async def settle(self) -> None:
        """With `ack="before"`: wait until no delivery is running or due."""
        if self._intake.inbox is not None:
            await self._intake.inbox.settle()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:  # noqa: ARG002
        """The lifespan for an app that mounts this receiver: `FastAPI(lifespan=receiver.lifespan)`.

        Without it, processing of the inbox starts only with the first request.
        """
        await self._check_and_start()
        try:
            yield
        finally:
            await self._stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(scope, receive, send)
            return
        await self._start()
        endpoint = self._routes.endpoints.get(path_of(scope)) if scope["type"] == "http" else None
        if endpoint is None:
            await self._respond_with_ui(scope, receive, send)
        elif scope["method"] != "POST":
            await respond_error(send, 405, "Webhooks are sent with POST.", (b"allow", b"POST"))
        else:
            await self._intake.handle(endpoint, scope, receive, send)

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._ui_as_app()
        if app is None:
            await lifespan.run(receive, send, self._check_and_start, self._stop)
        else:
            await lifespan.run_with_app(app, scope, receive, send, self._check_and_start, self._stop)

    async def _check_and_start(self) -> None:
        """Start with the server. An unusable inbox fails the start instead of every delivery."""
        if self._intake.inbox is not None:
            await asyncio.to_thread(self._intake.inbox.check)
        await self._start()

    async def _start(self) -> None:
        if self._intake.inbox is not None:
            self._intake.inbox.start()

    async def _stop(self) -> None:
        if self._intake.inbox is not None:
            await self._intake.inbox.stop()

    async def _respond_with_ui(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._ui_as_app()
        if app is not None:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        else:
            await landing.respond_with_page(scope, send, self._routes, self._intake.recent, self._intake.verifier)

    def _ui_as_app(self) -> App | None:
        if self._ui is not None and self._ui_app is None:
            self._ui_app = landing.ui_app(self._ui)
        return self._ui_app


def _as_list(value: str | Sequence[str] | None, name: str) -> list[str]:
    if value is None:
        return []
    values = [value] if isinstance(value, str | bytes) else list(value)
    if not all(isinstance(item, str) for item in values):
        raise TypeError(f"{name} takes a string or a list of strings.")
    # A secret read from a file often ends in a newline, which a header cannot contain.
    values = [item.strip() for item in values]
    # An empty list would accept all deliveries.
    if not values or not all(values):
        raise ValueError(f"{name} is empty.")
    return values
