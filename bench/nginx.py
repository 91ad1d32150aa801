"""Runs nginx with a separate port and folder, to compare the hub with a plain file server on the same machine.

nginx runs as one process, like the hub's web process, and without an access log, which favours nginx.
"""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
from tests.bed.processes import until

from bench.http_requests import Server

_CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 100000000;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 0;
    server {{ listen 127.0.0.1:{port}; root {root}; dav_methods PUT; }}
}}
"""


def version() -> str:
    done = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True)
    return done.stderr.strip().rpartition("/")[2]


@contextlib.contextmanager
def run_nginx(root: Path, folder: Path) -> Iterator[Server]:
    """Serve the files below `root`; `folder` is for the configuration and temporary files."""
    port = _free_port()
    config = folder / "nginx.conf"
    config.write_text(_CONFIG.format(folder=folder, port=port, root=root))
    process = subprocess.Popen(["nginx", "-p", folder, "-c", config, "-e", folder / "error.log"])
    with process:
        try:
            until(lambda: _is_listening(port) or process.poll() is not None)
            assert process.poll() is None, (folder / "error.log").read_text()
            yield Server(port, process.pid)
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _is_listening(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/")
    except httpx.TransportError:
        return False
    return True
