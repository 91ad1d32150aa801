"""The forms for a webhook and its secret report all errors at once, at their fields, and merge concurrent edits."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import Page, api, browser_of, create_token, create_user, fill_form, submit
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


def text_of(response: httpx.Response) -> str:
    """The text of <main>, with single spaces."""
    main = response.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", main)).split())


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
        "dataset:acme/rows. model:tiny: A name of type model looks like ada/tiny. user:a/b: A name of type user "
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


def test_concurrent_edits_are_merged_and_conflicts_reported(browser: httpx.Client, program: httpx.Client) -> None:
    """Fields that one did not change stay as the other set them; the second user sees which fields both changed."""
    webhook = create_webhook(program, str(FIELDS["url"]), "user:ada")
    page, one = f"{ROOT}/{webhook['id']}/settings", f"{API}/{webhook['id']}"
    as_shown = {"url": FIELDS["url"], "domains": ["repo", "discussion"], "watched": "user:ada"}
    second = fill_form(browser, page, page, **{**as_shown, "watched": "user:ada\r\norg:acme", "ordered": "on"})
    third = fill_form(browser, page, page, **{**as_shown, "url": "https://third.example/", "domains": ["discussion"]})
    first = {**as_shown, "url": "https://first.example/", "domains": ["repo"]}
    assert submit(browser, page, page, **first).status_code == 303

    assert second().status_code == 303
    now = program.get(one).json()["webhook"]
    assert (now["url"], now["domains"], now["ordered"]) == ("https://first.example/", ["repo"], True)
    assert [watch["name"] for watch in now["watched"]] == ["ada", "acme"]

    told = third()
    assert told.status_code == 422
    assert "Someone else changed this to https://first.example/. Save again to" in text_of(told)
    assert "Someone else changed this to repo. Save again to" in text_of(told)
    assert "Someone else changed this to user:ada" not in text_of(told), "what is not touched is not asked about"
    assert 'value="https://third.example/"' in told.text, "what was typed is still there"
    assert program.get(one).json()["webhook"] == now
    assert "\nuser:ada\norg:acme</textarea>" in told.text, "and what was not is as it is by now"
    kept = {"url": "https://third.example/", "domains": ["discussion"], "watched": "user:ada\r\norg:acme"}
    assert browser.post(page, data={**Page(told).hidden(page), **kept, "ordered": "on"}).status_code == 303
    saved = program.get(one).json()["webhook"]
    assert (saved["url"], saved["watched"]) == ("https://third.example/", now["watched"])
    forged = browser.post(page, data={**Page(told).hidden(page), **kept, "original": "a b c d e", "ordered": "off"})
    assert (forged.status_code, "Someone else changed this to on." in text_of(forged)) == (422, True)


def test_of_two_simultaneous_conflicting_saves_one_is_rejected(browser: httpx.Client, program: httpx.Client) -> None:
    webhook = create_webhook(program, str(FIELDS["url"]), "user:ada")
    page = f"{ROOT}/{webhook['id']}/settings"
    for number in range(8):
        fields = {"domains": ["repo", "discussion"], "watched": "user:ada"}
        saves = [fill_form(browser, page, page, **fields, url=f"https://{who}.example/{number}") for who in ("a", "b")]
        assert sorted(answer.status_code for answer in run_concurrently(saves)) == [303, 422]
