"""Standalone receivers: `launch()`, and `@webhook_endpoint` at the end of a script."""

import logging
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.processes import environment, until
from tests.bed.receiver_library import RANDOM_PORT, SECRET, post, run_script, serve_receiver

from hubgate.receiver import WebhooksServer
from hubgate.receiver.launch import listen
from hubgate.receiver.testing import signed_delivery

ENDPOINTS = """
from hubgate.receiver import webhook_endpoint, WebhookPayload

@webhook_endpoint
async def trigger_training(payload: WebhookPayload) -> None:
    import asyncio
    await asyncio.to_thread(print, "trained on", payload.repo.name, flush=True)

@webhook_endpoint("/say_hello")
def hello(payload: WebhookPayload):
    return {"message": "hello"}

print("the script is over", flush=True)
"""


def launch(app: WebhooksServer, **options: Any) -> None:
    """Launch a receiver in a new thread: in the main thread, the event loop of Playwright may already run."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(app.launch, **options).result()


def run(text: str, folder: Path, *flags: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    quiet = {"HUBGATE_NO_EXPERIMENTAL_WARNING": "1", **variables}
    command = [sys.executable, *flags, "-c", text]
    return subprocess.run(
        command, cwd=folder, env=environment(**quiet), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_shared_receiver_starts_when_the_script_ends(tmp_path: Path, how: signal.Signals) -> None:
    """Threads and pools still work then, in handlers of both kinds."""
    with run_script(tmp_path / "app.py", ENDPOINTS, addresses=2, WEBHOOK_SECRET=SECRET) as running:
        assert [one.partition("/webhooks/")[2] for one in running.addresses] == ["trigger_training", "say_hello"]
        delivery = signed_delivery("repo.content.update", secret=SECRET)
        first = httpx.post(running.addresses[0], headers=delivery.headers, content=delivery.body)
        assert (first.status_code, first.json()) == (200, None)
        second = httpx.post(running.addresses[1], headers=delivery.headers, content=delivery.body)
        assert second.json() == {"message": "hello"}
        assert httpx.post(running.addresses[0], content=delivery.body).status_code == 401
        status = running.stop(how)
        assert status in (0, -how)
    refused = "Rejected a delivery to /webhooks/trigger_training with 401: X-Webhook-Secret is missing.\n"
    assert running.errors == refused


def test_launched_receiver_does_not_start_again_at_exit(tmp_path: Path) -> None:
    text = ENDPOINTS.replace('print("the script is over", flush=True)', "hello.launch()\nprint('really over')")
    with run_script(tmp_path / "app.py", text, addresses=2, WEBHOOK_SECRET=SECRET) as running:
        assert httpx.get(running.url).status_code == 200
        running.process.send_signal(signal.SIGINT)
        assert running.process.stdout is not None
        assert running.process.stdout.read() == "really over\n"
        running.process.stdout.close()
        assert running.process.wait(60) == 0


@pytest.mark.parametrize(
    "end",
    [
        "raise RuntimeError('broken script')",
        "import hubgate.receiver.testing",
        "pass",
        "import sys; sys.ps1 = '>>> '",
    ],
    ids=["error", "test", "test first", "prompt"],
)
def test_no_receiver_starts_after_errors_or_in_interactive_sessions(tmp_path: Path, end: str) -> None:
    # Imports come in any order.
    first = "import hubgate.receiver.testing" if end == "pass" else "pass"
    done = run(f"{first}\n{ENDPOINTS}\n{end}", tmp_path, WEBHOOK_SECRET=SECRET)
    assert "Receiving" not in done.stdout
    assert done.stdout == "the script is over\n"


def test_no_receiver_starts_in_child_processes(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        ENDPOINTS
        + """
import multiprocessing
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    child = multiprocessing.Process(target=print, args=("child",))
    child.start()
    child.join(60)
    print("ended with", child.exitcode)
    import hubgate.receiver.testing
"""
    )
    command = [sys.executable, "app.py"]
    variables = environment(HUBGATE_NO_EXPERIMENTAL_WARNING="1", WEBHOOK_SECRET=SECRET)
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert "ended with 0" in done.stdout, done.stderr
    assert "Receiving" not in done.stdout


def test_missing_secret_is_logged(tmp_path: Path) -> None:
    with run_script(tmp_path / "app.py", ENDPOINTS, addresses=2) as running:
        assert running.errors.startswith("No webhook secret is set")
        assert httpx.post(running.addresses[1], json={}).status_code == 422


def test_importing_warns_once_that_it_is_experimental(tmp_path: Path) -> None:
    text = "import hubgate.receiver; import hubgate.receiver.testing; from hubgate.receiver import WebhookPayload"
    said = run(text, tmp_path, HUBGATE_NO_EXPERIMENTAL_WARNING="0", PYTHONWARNINGS="default").stderr
    assert said.count("ExperimentalWarning: hubgate.receiver is experimental") == 1
    assert "pin the version" in said
    assert run(text, tmp_path, PYTHONWARNINGS="default").stderr == ""


def test_the_client_does_not_load_the_receiver(tmp_path: Path) -> None:
    done = run("import hubgate, sys; print([name for name in sys.modules if 'receiver' in name])", tmp_path)
    assert done.stdout == "[]\n"


def test_port_in_use_is_one_clear_error() -> None:
    app = WebhooksServer(webhook_secret=SECRET)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"Cannot listen on 127\.0\.0\.1:{port}.*launch\(port="):
            launch(app, port=port)


def test_port_in_use_at_the_end_of_a_script_is_one_clear_error(tmp_path: Path) -> None:
    """The parent, such as systemd, sees the failure; threads of the script end with it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        first = RANDOM_PORT.replace('", 0,', f'", {port},')
        ends = "import atexit\natexit.register(print, 'ended', end='')\n"
        kept = "log = open('log', 'w')\nlog.write('kept')\n"
        done = run(kept + ends + first + ENDPOINTS + ends, tmp_path, WEBHOOK_SECRET=SECRET)
    assert (done.returncode, done.stdout) == (1, "the script is over\nendedended")
    assert (tmp_path / "log").read_text() == "kept"
    taken_by = f"Cannot listen on 127.0.0.1:{port}: Address already in use."
    assert done.stderr == f"{taken_by} Try: launch(port=...) on a decorated function.\n"


def test_launch_returns_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook already runs an event loop, and `launch` must not block its next cells."""
    app = WebhooksServer(webhook_secret=SECRET)

    async def cell() -> None:
        app.launch(port=0)

    with pytest.raises(RuntimeError, match="An event loop is already running"):
        run_blocking(cell())
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    run_blocking(cell())
    try:
        assert httpx.get(str(app.url)).status_code == 200
        with pytest.raises(RuntimeError, match="already running at http"):
            app.launch(port=0)
    finally:
        app.close()


def test_failed_start_raises_an_error() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        raise RuntimeError("no database")

    app = WebhooksServer(ui=broken, webhook_secret=SECRET)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="did not start"):
            app.launch(port=0, prevent_thread_lock=True)


def test_share_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "websockets", None)
    with pytest.raises(ImportError, match=r'share=True needs an extra. Run: pip install "hubgate\[tunnel\]"'):
        launch(WebhooksServer(webhook_secret=SECRET), port=0, share=True)


def test_responses_are_not_delayed_by_nagle() -> None:
    """asyncio turns Nagle's algorithm off only on sockets that say what they are; else each takes 40 ms."""
    with listen("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP


def test_receiver_can_be_launched_again() -> None:
    app = WebhooksServer(webhook_secret=SECRET)
    app.add_webhook("x")(lambda: "x")
    for _ in range(2):
        with serve_receiver(app) as client:
            assert post(client, "/webhooks/x", signed_delivery("repo.create", secret=SECRET)).json() == "x"
        with pytest.raises(httpx.ConnectError):
            httpx.get(str(client.base_url))


def test_receiver_listens_on_ipv6() -> None:
    app = WebhooksServer(webhook_secret=SECRET)
    app.launch(host="::1", port=0, prevent_thread_lock=True)
    assert app.url
    assert app.url.startswith("http://[::1]:")
    assert httpx.get(app.url).status_code == 200
    app.close()


def test_invalid_ack_is_rejected() -> None:
    with pytest.raises(ValueError, match="after"):
        WebhooksServer(webhook_secret=SECRET, ack="never")  # type: ignore[arg-type]


def test_public_key_without_the_extra_names_the_extra(tmp_path: Path) -> None:
    text = (
        "import sys; sys.modules['cryptography.exceptions'] = None\n"
        "from hubgate.receiver import WebhooksServer\nWebhooksServer(public_key='whpk_x')"
    )
    assert 'pip install "hubgate[ed25519]"' in run(text, tmp_path).stderr


def test_sender_that_disconnects_early_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[int] = []
    app = WebhooksServer(webhook_secret=SECRET)
    app.add_webhook("x")(lambda: ran.append(1))
    with serve_receiver(app) as client:
        with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as half:
            half.sendall(
                b"POST /webhooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
                b"X-Webhook-Secret: correct horse battery\r\n\r\n{"
            )
        assert post(client, "/webhooks/x", signed_delivery("repo.create", secret=SECRET)).status_code == 200
        until(lambda: ran == [1])
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []
