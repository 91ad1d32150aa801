"""The forms for a webhook and its secret report all errors at once, at their fields."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user, submit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import create_webhook, secret_of

from hubgate.server.accounts.model import User

ROOT = "/settings/webhooks"
API = "/api/settings/webhooks"
FIELDS: dict[str, str | list[str]] = {"url": "https://ci.example/hook", "watched": "user:ada", "domains": ["repo"]}
NOT_CHOSEN = "“Use this one” was not chosen. Choose it and type the secret again, or leave its field empty."


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def program(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, ada)) as client:
        yield client


@pytest.fixture
def browser(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with browser_of(hub, ada) as client:
        yield client


def complaints(refused: httpx.Response) -> dict[str, str]:
    """The error summary, by field. Each error is also shown at its field."""
    assert refused.status_code == 422, refused.text
    found = dict(re.findall(r'<li><a href="#(\w+)">(.*?)</a></li>', refused.text))
    for name, sentence in found.items():
        assert f'id="{name}-error"><span aria-hidden="true">✕</span>{sentence}</span>' in refused.text
    return {name: unescape(sentence) for name, sentence in found.items()}


def chosen(page: httpx.Response) -> list[str]:
    return re.findall(r'name="secretKind" value="(\w+)" autocomplete="off" checked', page.text)


@pytest.mark.parametrize("kind", ["make", "none"])
def test_typed_secret_is_not_discarded(browser: httpx.Client, program: httpx.Client, kind: str) -> None:
    refused = submit(browser, f"{ROOT}/new", ROOT, **FIELDS, secretKind=kind, secret="mine")
    assert complaints(refused) == {"secret": NOT_CHOSEN}
    assert chosen(refused) == [kind]
    assert program.get(API).json() == []


def test_typing_a_secret_selects_it_with_script(browser: httpx.Client) -> None:
    """The elements that the script uses exist; the script is tested in a browser."""
    page = browser.get(f"{ROOT}/new").text
    (chosen_by_it,) = re.findall(r'id="secret" name="secret" data-chooses="([\w-]+)"', page)
    assert f'id="{chosen_by_it}" name="secretKind" value="own"' in page


def test_replacing_a_secret_does_not_discard_the_typed_one(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client
) -> None:
    webhook = create_webhook(program, "https://ci.example/hook", "user:ada", secret="first")
    page = f"{ROOT}/{webhook['id']}/secret"
    refused = submit(browser, page, page, secretKind="make", secret="second", overlapSeconds="3600")
    assert complaints(refused) == {"secret": NOT_CHOSEN}
    assert chosen(refused) == ["make"]
    assert '<option value="3600" selected>' in refused.text
    assert secret_of(hub, webhook["id"]) == "first"


def test_all_errors_are_reported_at_once(browser: httpx.Client) -> None:
    bad = {"url": "", "watched": "user:ada\r\nada\r\nmodel:tiny\r\nx:y\r\nuser:a/b", "secretKind": "own", "secret": "é"}
    said = complaints(submit(browser, f"{ROOT}/new", ROOT, **bad))
    assert said == {
        "url": "Enter the address of the receiver.",
        "watched": "ada, x:y: Enter one per line, such as user:ada, org:acme, model:acme/tiny or "
        "dataset:acme/rows. model:tiny: The name of a model looks like ada/tiny. user:a/b: The name of a user "
        "looks like ada.",
        "domains": "Choose one or both of repo and discussion.",
        "secret": "A secret is 1 to 256 printable ASCII characters, no space at either end.",
    }
    many = "\n".join(f"bad{number}" for number in range(7))
    said = complaints(submit(browser, f"{ROOT}/new", ROOT, **{**FIELDS, "watched": many}))
    assert said["watched"].startswith("bad0, bad1, bad2 and 4 more: Enter one per line")
    long = "\n".join(f"user:u{number}" for number in range(101))
    said = complaints(submit(browser, f"{ROOT}/new", ROOT, **{**FIELDS, "watched": long}))
    assert said == {"watched": "At most 100 names can be watched."}


def test_error_of_the_choices_is_associated_with_them(browser: httpx.Client) -> None:
    refused = submit(browser, f"{ROOT}/new", ROOT, **{**FIELDS, "domains": []}).text
    assert '<fieldset id="domains" aria-describedby="domains-error">' in refused
    assert len(re.findall(r'<input type="checkbox" name="domains"[^>]* aria-invalid="true">', refused)) == 2
    begun = browser.get(f"{ROOT}/new").text
    assert '<fieldset id="domains">' in begun
    assert "aria-invalid" not in begun
