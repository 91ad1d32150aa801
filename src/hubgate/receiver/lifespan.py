"""The ASGI lifespan of a receiver: starts and stops it with the server, together with the app in `ui`."""

from collections.abc import Awaitable, Callable

from hubgate.receiver.asgi import App, Message, Receive, Scope, Send

Step = Callable[[], Awaitable[None]]


async def run(receive: Receive, send: Send, start: Step, stop: Step) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await start()
            except OSError as error:
                # The server then logs this line without a traceback.
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        else:
            await stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


class _NotStarted(Exception):
    """Aborts the wrapped app after a failed start, which the server already knows about."""


async def run_with_app(app: App, scope: Scope, receive: Receive, send: Send, start: Step, stop: Step) -> None:
    """Run the lifespan of `app`. The receiver starts before the app and stops before it."""
    was_received = was_answered = False

    async def receive_message() -> Message:
        nonlocal was_received
        message = await receive()
        was_received = True
        if message["type"] == "lifespan.startup":
            try:
                await start()
            except OSError as error:
                await send_message({"type": "lifespan.startup.failed", "message": str(error)})
                raise _NotStarted from error
        else:
            await stop()
        return message

    async def send_message(message: Message) -> None:
        nonlocal was_answered
        was_answered = True
        await send(message)

    try:
        await app(scope, receive_message, send_message)
    except _NotStarted:
        return
    except Exception:
        # An app without lifespan support raises on a lifespan scope.
        if was_received:
            raise
    if not was_answered and not was_received:
        await run(receive, send, start, stop)
