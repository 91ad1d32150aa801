"""The receiver itself: a plain ASGI app, alone or mounted in another."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from hubgate.receiver import landing, launching, lifespan
from hubgate.receiver.asgi import App, Receive, Scope, Send, path_of, refuse
from hubgate.receiver.calling import Handler
from hubgate.receiver.intake import Intake
from hubgate.receiver.routes import Routes, check_kind
from hubgate.receiver.ui import as_app, check
from hubgate.receiver.verification import verifier

F = TypeVar("F", bound=Handler)

OPEN = (
    "No webhook secret is set: anybody who can reach this receiver can call its handlers. "
    "Set WEBHOOK_SECRET, or pass webhook_secret or public_key."
)

logger = logging.getLogger("hubgate.receiver")


class WebhooksServer:
    """Takes deliveries, checks where they come from, and calls the functions registered for them.

    ui: what to show instead of the landing page: a string of HTML, an ASGI app or gradio Blocks.
    webhook_secret: one, or several while you change it; without it WEBHOOK_SECRET of the environment.
    public_key: the key of a webhook without a secret (`whpk_...`), one or several. Needs `hubgate[ed25519]`.
    ack: "after" answers with what the handler returned; "before" writes the delivery to `inbox`, answers 202 and works
        on it later, at least once, whatever happens to the process.
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
            raise ValueError('ack is "after" or "before".')
        if webhook_secret is None:
            webhook_secret = os.environ.get("WEBHOOK_SECRET", "").strip() or None
        check(ui)
        self._ui = ui
        self._ui_app: App | None = None
        self._routes = Routes()
        checks = verifier(_several(webhook_secret, "webhook_secret"), _several(public_key, "public_key"))
        self._intake = Intake(checks, self._routes)
        if ack == "before":
            # Seen from where the program started, wherever it goes from there.
            self._intake.keep_in(Path(inbox).absolute())
        self._serving: launching.Serving | None = None
        self.url: str | None = None
        if checks.open:
            logger.warning(OPEN)

    @property
    def registered_webhooks(self) -> dict[str, Handler]:
        """Address -> handler, for those with an address of their own."""
        return {path: one.always.handler for path, one in self._routes.endpoints.items() if one.always is not None}

    @property
    def addresses(self) -> list[str]:
        """Every path that takes deliveries."""
        return list(self._routes.endpoints)

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._intake.verifier.secrets

    @overload
    def add_webhook(self, path: F) -> F: ...
    @overload
    def add_webhook(self, path: str | None = None) -> Callable[[F], F]: ...
    def add_webhook(self, path: Any = None) -> Any:
        """A decorator: deliveries to `/webhooks/{its name, or path}` call the function, which stays as it is."""
        if callable(path):
            self._routes.add(path, None)
            return path

        def register(handler: F) -> F:
            self._routes.add(handler, path)
            return handler

        return register

    def on(self, kind: str, *, type: str | None = None) -> Callable[[F], F]:  # noqa: A002
        """A decorator: the function is called for deliveries to `/webhooks/events` of this kind.

        `kind` is a scope with or without its action (`repo.content`, `repo.content.update`), or `*`; `type` is the
        repo's. The narrowest that fits is called, and only that.
        """
        check_kind(kind, type)

        def register(handler: F) -> F:
            self._routes.on(handler, kind, type)
            return handler

        return register

    def launch(
        self, host: str = "127.0.0.1", port: int = 7860, share: bool = False, prevent_thread_lock: bool = False
    ) -> None:
        """Serve until Ctrl-C; with `prevent_thread_lock`, and in notebooks, in a thread until `close()`.

        `url` then says where.
        """
        if share:
            raise NotImplementedError(
                "share=True needs the tunnel, which this version does not have yet. "
                "A hub on this machine reaches the receiver if it runs with HUBGATE_EGRESS_ALLOW=127.0.0.0/8."
            )
        if self._serving is not None:
            raise RuntimeError(f"It is running already, at {self.url}. Call close() first.")
        beside = prevent_thread_lock or launching.in_a_notebook()
        if self._intake.inbox is not None:
            self._intake.inbox.check()
        bound = launching.listening(host, port)
        self.url = launching.address(bound)
        self._serving = launching.Serving(self, bound)
        launching.say(f"Receiving webhooks at {self.url} (Ctrl-C stops)")
        for path in self._routes.endpoints:
            launching.say(f"  POST {self.url}{path}")
        with contextlib.ExitStack() as ending:
            ending.callback(self.close)
            if beside:
                self._serving.run_beside()
                ending.pop_all()
            else:
                self._serving.run()

    def close(self) -> None:
        """Stop what `launch` started, and let go of threads and the inbox's file."""
        if self._serving is not None:
            self._serving.stop()
            self._serving = None
        self._intake.runner.close()
        if self._intake.inbox is not None:
            self._intake.inbox.close()

    async def settle(self) -> None:
        """With `ack="before"`: until nothing runs and nothing that is due waits."""
        if self._intake.inbox is not None:
            await self._intake.inbox.settle()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:  # noqa: ARG002
        """For an app that mounts this one: `FastAPI(lifespan=receiver.lifespan)`.

        Without it the inbox is worked through from the first request on.
        """
        await self._begin()
        try:
            yield
        finally:
            await self._stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        await self._start()
        endpoint = self._routes.endpoints.get(path_of(scope)) if scope["type"] == "http" else None
        if endpoint is None:
            await self._show(scope, receive, send)
        elif scope["method"] != "POST":
            await refuse(send, 405, "Webhooks are sent with POST.", (b"allow", b"POST"))
        else:
            await self._intake.take(endpoint, scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._shown()
        if app is None:
            await lifespan.alone(receive, send, self._begin, self._stop)
        else:
            await lifespan.around(app, scope, receive, send, self._begin, self._stop)

    async def _begin(self) -> None:
        """Where a server waits for us: a file that cannot be is better told now than to every sender."""
        if self._intake.inbox is not None:
            await asyncio.to_thread(self._intake.inbox.check)
        await self._start()

    async def _start(self) -> None:
        if self._intake.inbox is not None:
            self._intake.inbox.start()

    async def _stop(self) -> None:
        if self._intake.inbox is not None:
            await self._intake.inbox.stop()

    async def _show(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._shown()
        if app is not None:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        else:
            await landing.answer(scope, send, self._routes, self._intake.recent, self._intake.verifier)

    def _shown(self) -> App | None:
        if self._ui is not None and self._ui_app is None:
            self._ui_app = as_app(self._ui)
        return self._ui_app


def _several(given: str | Sequence[str] | None, name: str) -> list[str]:
    if given is None:
        return []
    several = [given] if isinstance(given, str | bytes) else list(given)
    if not all(isinstance(one, str) for one in several):
        raise TypeError(f"{name} takes a string or a list of strings.")
    # A file in which a secret came often ends in a newline; a header cannot.
    several = [one.strip() for one in several]
    # None at all where some were meant would open the door.
    if not several or not all(several):
        raise ValueError(f"{name} is empty.")
    return several
