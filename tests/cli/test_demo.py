"""`hubgate demo`: its tour, whose links are opened and whose commands run; stopping, continuing and starting anew."""

import json
import re
import signal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import approve
from tests.bed.demo import RunningDemo, started
from tests.bed.people import submit
from tests.bed.processes import hubgate, until

# The least that a command of the tour prints.
PRINTED = (
    "acme: admin",
    "cloned",
    "✓ 1 file in ",
    "repo.content update",
    "✓ 3 replayed",
    "403",
    '"access_token":"hf_oauth_',
    "database: responds",
)


def test_tour_works_and_the_next_start_continues(tmp_path: Path) -> None:
    with started(tmp_path) as demo:
        demo.wait_for("Ctrl-C stops all")
        assert '"message":"request"' not in demo.errors, "requests that fill the hub"
        with httpx.Client(base_url=demo.hub, verify=False) as browser:
            answer = submit(browser, "/login", username="ada", password=demo.password("ada"))
            assert answer.status_code == 303
            links_work(demo, browser)
            shows_a_month(browser.get(demo.links[6]).text)
            signs_in_to_the_app(demo, browser)
        assert len(re.findall(r"^\d\. ", demo.printed, re.MULTILINE)) == 8
        printed = [demo.run(command) for command in demo.commands]
        assert [text for text, least in zip(printed, PRINTED, strict=True) if least not in text] == []
        assert all(text.endswith("\n") for text in printed), "the prompt of the terminal begins a line"
        until(partial(was_trained, demo.hub))
        until(lambda: "receiver: acme/reviews is now at" in demo.printed)
        assert '"level":"error"' not in demo.errors
        password, old_links = demo.password("lin"), demo.links
        demo.stop()
    with started(tmp_path) as again:
        again.wait_for("Ctrl-C stops all")
        assert "Creating" not in again.printed
        assert again.password("lin") == password
        assert was_trained(again.hub)
        # Ports are others, so webhooks are sent to the receiver's new one.
        assert again.links != old_links
        urls = json.loads(again.run(f"(. {tmp_path}/var/demo/ada.env; hubgate webhooks list --json)"))
        assert [webhook["url"] for webhook in urls] == [f"{again.named('receiver')}/webhooks/chat"]
        again.stop(signal.SIGINT)
    with started(tmp_path, "--reset") as anew:
        anew.wait_for("Creating")
        anew.stop()
    state = json.loads((tmp_path / "var/demo/demo.json").read_text())
    assert (state["complete"], state["passwords"]["lin"] == password) == (False, False)


def links_work(demo: RunningDemo, browser: httpx.Client) -> None:
    for link in demo.links:
        # The sign-in page redirects a user who is signed in.
        assert browser.get(link).status_code == (303 if link.endswith("/login") else 200), link


def shows_a_month(activity: str) -> None:
    numbers = re.search(r"Deliveries in the last 30 days: (\d+),.* Delivered (\d+), failed (\d+)", activity)
    assert numbers, activity
    total, delivered, failed = map(int, numbers.groups())
    assert total > 80
    assert failed > 0
    assert delivered > failed
    assert "tries" in activity


def signs_in_to_the_app(demo: RunningDemo, browser: httpx.Client) -> None:
    with httpx.Client(base_url=demo.named("example app"), verify=False) as app:
        assert "Sign in with hubgate" in app.get("/").text
        address = app.get("/login").headers["location"]
        assert app.get(approve(browser, address).headers["location"]).headers["location"] == "/"
        home = app.get("/").text
        assert "Hello <strong>Ada Okafor</strong>" in home
        assert "ada/notes (private)" in home
        # A code that this browser did not ask for.
        assert app.get("/callback?code=stolen&state=other").status_code == 400
        (connected,) = re.findall(r'href="(/settings/connected/[^"]+/revoke)"', browser.get("/settings/connected").text)
        assert submit(browser, connected).status_code == 303
        assert "You revoked" in app.get("/").text


def was_trained(hub: str) -> bool:
    commits: Any = httpx.get(f"{hub}/api/models/acme/sentiment/commits/main", verify=False).json()
    return bool(re.match(r"Trained on acme/reviews [0-9a-f]{8}$", commits[0]["title"]))


def test_only_a_demo_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "var/demo").mkdir(parents=True)
    (tmp_path / "var/demo/thesis.tex").write_text("years of work")
    done = hubgate("demo", "--reset", "--port", "0", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "var/demo/thesis.tex").read_text()) == (1, "years of work")
    assert "is not empty, and not a demo's folder" in done.stderr


@pytest.mark.parametrize("value", ["0", "65536", "http"])
def test_invalid_port_is_a_usage_error(tmp_path: Path, value: str) -> None:
    done = hubgate("demo", "--app-port", value, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
