"""Starting and stopping with the server around us, where it says so; an app shown as `ui` hears it too."""

from collections.abc import Awaitable, Callable

from hubgate.receiver.asgi import App, Message, Receive, Scope, Send

Step = Callable[[], Awaitable[None]]


async def alone(receive: Receive, send: Send, start: Step, stop: Step) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await start()
            except OSError as error:
                # Said so, a server shows this line and no traceback.
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        else:
            await stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


class _NotStarted(Exception):
    """Through the app around which we are: the server knows already."""


async def around(app: App, scope: Scope, receive: Receive, send: Send, start: Step, stop: Step) -> None:
    """We are up before it is, and down before it is."""
    heard = answered = False

    async def hearing() -> Message:
        nonlocal heard
        message = await receive()
        heard = True
        if message["type"] == "lifespan.startup":
            try:
                await start()
            except OSError as error:
                await answering({"type": "lifespan.startup.failed", "message": str(error)})
                raise _NotStarted from error
        else:
            await stop()
        return message

    async def answering(message: Message) -> None:
        nonlocal answered
        answered = True
        await send(message)

    try:
        await app(scope, hearing, answering)
    except _NotStarted:
        return
    except Exception:
        # An app without a lifespan raises at the sight of it.
        if heard:
            raise
    if not answered and not heard:
        await alone(receive, send, start, stop)
