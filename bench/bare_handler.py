"""An ASGI handler that only sends fixed responses, on the hub's HTTP server: `python -m bench.bare_handler`.

The first line of standard input is a JSON object of responses by path: pairs of headers, and the body. The program
prints its port and serves until standard input ends.
"""

import asyncio
import json
import socket
import sys

from hubgate.server.http.asgi import ASGIApp, Receive, Scope, Send
from hubgate.server.worker.child import stop_event
from hubgate.server.worker.servers import BACKLOG, serve_with_granian


def fixed_responses(responses: dict[str, tuple[list[list[str]], str]]) -> ASGIApp:
    messages = {
        path: (
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(name.encode(), value.encode()) for name, value in headers],
            },
            {"type": "http.response.body", "body": body.encode()},
        )
        for path, (headers, body) in responses.items()
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                continue
        start, body = messages[scope["path"]]
        await send(start)
        await send(body)

    return app


async def main() -> None:
    app = fixed_responses(json.loads(sys.stdin.buffer.readline()))
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    listener.setblocking(False)
    print(listener.getsockname()[1], flush=True)
    await serve_with_granian(app, listener, stop_event(), on_ready=lambda: None, on_stop=lambda: None)


if __name__ == "__main__":
    asyncio.run(main())
