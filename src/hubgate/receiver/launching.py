"""Serving a receiver alone, on uvicorn."""

import contextlib
import os
import socket
import sys
import threading

from hubgate.receiver.asgi import App

# Running handlers get that long after Ctrl-C.
STOP_SECONDS = 10


def listening(host: str, port: int) -> socket.socket:
    """Bound before anything starts, so that a taken port is one clear error."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        # On Windows this option would let two processes share the port.
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        # From here on nobody is turned away: who reads the address we print may use it at once.
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"Cannot listen on {host}:{port}: {error.strerror}. Try: launch(port=...)") from None
    return bound


def address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    # What listens everywhere is reached here too.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Serving:
    def __init__(self, app: App, bound: socket.socket) -> None:
        import uvicorn

        self._bound = bound
        config = uvicorn.Config(
            app,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            # The landing page looks at the true peer; a forwarded one anybody can claim.
            proxy_headers=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Until Ctrl-C or SIGTERM."""
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._bound])
        finally:
            self._bound.close()

    def run_beside(self) -> None:
        """In a thread; returns once it answers."""
        self._thread = threading.Thread(target=self.run, name="hubgate-receiver", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS + 5)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
