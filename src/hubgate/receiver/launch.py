"""Serves a standalone receiver with uvicorn."""

import asyncio
import contextlib
import os
import socket
import sys
import threading

from hubgate.receiver.asgi import App

# How long running handlers may continue after Ctrl-C.
STOP_SECONDS = 10


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket before anything starts, so that a port conflict is reported clearly."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With IPPROTO_TCP: otherwise asyncio does not disable Nagle's algorithm, and every response takes 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # On Windows this option would let two processes share the port.
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        # Accept connections now, so that the printed address works immediately.
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"Cannot listen on {host}:{port}: {error.strerror}. Try: launch(port=...)") from None
    return bound


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    # A wildcard address is also reachable on loopback.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def hosted_url() -> str:
    """The public address of a receiver that the hub runs as a Space; otherwise ""."""
    scheme, _, _ = os.environ.get("HUBGATE_ENDPOINT", "").partition("://")
    host = os.environ.get("SPACE_HOST", "")
    return f"{scheme}://{host}" if scheme and host else ""


class Server:
    def __init__(self, app: App, bound: socket.socket) -> None:
        import uvicorn

        self._bound = bound
        config = uvicorn.Config(
            app,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            # The landing page needs the real peer address; forwarding headers can be forged.
            proxy_headers=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until Ctrl-C or SIGTERM."""
        try:
            with contextlib.suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._bound])
        finally:
            self._bound.close()

    def run_in_thread(self) -> None:
        """Serve in a thread; returns once the server is ready."""
        self._thread = threading.Thread(target=self._run_quietly, name="hubgate-receiver", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.01)
        if not self._server.started:
            raise RuntimeError("The receiver did not start; the log says why.")

    def _run_quietly(self) -> None:
        # uvicorn raises SystemExit if the app did not start, after logging the reason.
        with contextlib.suppress(SystemExit):
            self.run()

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS + 5)


def in_notebook() -> bool:
    """Whether an event loop runs in this thread and the session is interactive.

    Raises RuntimeError if a loop runs and the session is not interactive.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    if hasattr(sys, "ps1"):
        return True
    # For example `uvicorn app:app`, if app.py calls launch() without `if __name__ == "__main__":`.
    raise RuntimeError(
        "An event loop is already running. Serve the receiver on it, or call launch(prevent_thread_lock=True)."
    )


def print_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
