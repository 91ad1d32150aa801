"""Paths, ports and environment variables inside a sandbox."""

from hubgate.server.spaces.bubblewrap.pythons import PACKAGES, Python
from hubgate.server.spaces.runner import App

PORT = 7860
PROXY_PORT = 61080
PROXY = "/opt/hubgate-proxy.sock"
WORK, INSTALLED = "/app", "/env"


def app_environment(app: App, python: Python) -> dict[str, str]:
    """The environment of an app. Its own variables may change where it listens, but not how the sandbox works."""
    return {
        "HOST": "127.0.0.1",
        "GRADIO_SERVER_NAME": "127.0.0.1",
        **app.environment,
        "PORT": str(PORT),
        "GRADIO_SERVER_PORT": str(PORT),
        "PYTHONPATH": f"{WORK}:{INSTALLED}:{PACKAGES}",
        **sandbox_environment(app, python),
    }


def sandbox_environment(app: App, python: Python) -> dict[str, str]:
    own = [f"localhost:{PORT}", f"127.0.0.1:{PORT}"]
    local = [host for host in ("localhost", "127.0.0.1", "::1") if host != app.hub_host]
    proxy, direct = f"http://127.0.0.1:{PROXY_PORT}", ",".join(own + local)
    return {
        "HOME": WORK,
        "PATH": f"{INSTALLED}/bin:{python.prefix}/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy),
        **dict.fromkeys(("no_proxy", "NO_PROXY"), direct),
    }


def forwarding() -> dict[str, object]:
    """What `inside.py` needs to forward connections."""
    return {"port": PORT, "proxy": PROXY, "proxy_port": PROXY_PORT}
