"""Pages that explain a webhook, without JavaScript: charts, filters, dry run in the form, unknown names, why not."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, logs, settle
from tests.protocol.test_webhook_charts import roll_up
from tests.protocol.test_webhook_pages import text_after, text_of

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.one_engine

ROOT = "/settings/webhooks"
WHY = "Why wasn't this delivered?"
FIELDS: dict[str, str | list[str]] = {
    "url": "https://ci.example/hook",
    "domains": ["repo"],
    "secretKind": "none",
    "secret": "",
}


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def dry_run(browser: httpx.Client, page: str, form: str, at: str, **fields: str | list[str]) -> httpx.Response:
    """Press "See last 7 days" in the form."""
    return browser.post(f"{at}/dry-run", data={**Page(browser.get(page)).hidden(form), **fields})


def _text(cell: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", cell).split())


def test_charts_are_drawn_from_the_roll_up(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    assert "<svg" not in browser.get(at).text.partition("<main")[2]
    create_repo(ada, "tiny")
    settle(hub)
    assert "No deliveries in the last 24 hours." in text_of(browser.get(at)), "the background job has not run yet"
    receiver.status = 500
    hub.clock.advance(3600)
    create_commit(ada, "ada/tiny", {"a.txt": b"a"})
    settle(hub)
    roll_up(hub)
    shown = browser.get(at)
    assert shown.text.count('role="img"') == 3
    assert shown.text.count("<rect") == 2
    assert "Success rate 50%" in text_of(shown)
    table = shown.text.partition('aria-label="Deliveries over time"')[2].partition("</table>")[0]
    rows = [[_text(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in table.split("<tr>")[2:]]
    assert [row[:5] for row in rows] == [["1", "0", "0 1 retrying", "0", "0%"], ["1", "1", "0", "0", "100%"]]
    assert all(re.fullmatch(r"\d+ ms 95% \d+ ms", row[5]) for row in rows), "times to answer"
    for span, label in (("week", "7 days"), ("month", "30 days"), ("odd", "24 hours")):
        page = browser.get(f"{at}?range={span}").text
        assert re.search(rf'aria-current="true">{label}</a>', page)
    listed = browser.get(ROOT)
    assert 'aria-label="2 deliveries in the last 24 hours"' in listed.text


def test_deliveries_are_found_by_part_of_a_repo_and_by_answer(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    for name, status in (("tiny", 200), ("tiny_b", 404), ("large", 503)):
        receiver.status = status
        create_repo(ada, name)
        settle(hub)

    def found(query: str) -> list[str]:
        ids = re.findall(rf'href="{at}/deliveries/(\w+)"', browser.get(f"{at}?{query}").text)
        names = {log["id"]: log["repo"]["name"] for log in logs(ada, webhook)}
        return [names[each] for each in ids]

    assert found("repo=TINY") == ["ada/tiny_b", "ada/tiny"]
    assert found("repo=tiny_b") == found("status=4xx") == found("status=404") == ["ada/tiny_b"]
    assert found("status=5xx&repo=lar") == ["ada/large"]
    assert found("status=none") == found("repo=%25") == []
    refused = browser.get(f"{at}?status=odd")
    assert (refused.status_code, "Give a status code" in text_of(refused)) == (422, True)
    chip = browser.get(f"{at}?status=none&repo=ada").text
    assert f'<a class="chip" href="{at}?repo=ada"><span class="unseen">Remove </span><bdi>no answer</bdi>' in chip
    # The rows for the script are filtered in the same way.
    rows = browser.get(f"{at}/rows?status=4xx")
    assert re.findall(r'<tr data-seq="(\d+)" data-version="(\w+ \d+)">', rows.text) == [("2", "retrying 1")]
    assert f'data-rows="{at}/rows?status=4xx"' in browser.get(f"{at}?status=4xx").text
    assert "data-rows" not in browser.get(f"{at}?cursor=WyJvbGRlciIsM10").text, "only the first page is live"


def test_list_of_fifty_rows_is_within_the_budget(hub: RunningHub, ada: httpx.Client, browser: httpx.Client) -> None:
    webhook = ada.post(f"/api{ROOT}", json={"pull": True, "watched": [{"type": "user", "name": "ada"}]}).json()
    create_repo(ada, "tiny")
    for number in range(52):
        ada.put("/api/models/ada/tiny/settings", json={"private": number % 2 == 0})
        hub.clock.advance(1201)
    settle(hub)
    roll_up(hub)
    shown = browser.get(f"{ROOT}/{webhook['webhook']['id']}")
    assert shown.text.count("<tr data-seq") == 50
    assert len(gzip.compress(shown.content)) < 25_000


def test_form_shows_a_dry_run_and_unknown_names(hub: RunningHub, ada: httpx.Client, browser: httpx.Client) -> None:
    create_repo(ada, "tiny")
    with api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        create_repo(eve, "hidden", private=True)
    watched = "user:ada\nmodel:eve/hidden\nmodel:eve/absent\norg:soon"
    fields = {**FIELDS, "watched": watched, "secretKind": "own", "secret": "hush"}
    shown = dry_run(browser, f"{ROOT}/new", ROOT, ROOT, **fields)
    text = text_of(shown)
    assert shown.status_code == 200
    assert "The webhook would have received 1 event. Nothing was sent." in text
    assert "repo create" in text
    assert "Not found: model:eve/hidden, model:eve/absent, org:soon. Check the spelling." in text
    assert "the webhook will watch the first user, organization or repo that gets the name" in text
    assert "Enter your secret again" in text
    assert "hush" not in shown.text
    assert f"\n{watched}</textarea>" in shown.text
    assert '<button class="button button-primary">Save</button>' in shown.text
    assert ada.get(f"/api{ROOT}").json() == []
    refused = dry_run(browser, f"{ROOT}/new", ROOT, ROOT, **{**fields, "url": "ftp://x", "watched": "ada"})
    assert (refused.status_code, 'href="#url"' in refused.text, 'href="#watched"' in refused.text) == (422, True, True)

    saved = submit(browser, f"{ROOT}/new", ROOT, **{**fields, "secretKind": "make", "secret": ""})
    assert "Not found: model:eve/hidden, model:eve/absent, org:soon." in text_of(saved)
    flash = text_after(browser, submit(browser, f"{ROOT}/new", ROOT, **fields))
    assert "Some watched names were not found: see Events." in flash
    (first, _) = ada.get(f"/api{ROOT}").json()
    at = f"{ROOT}/{first['id']}"
    events = text_of(browser.get(f"{at}/events"))
    assert "eve/hidden not found" in events
    assert "eve/absent not found" in events
    assert "org soon does not exist yet" in events

    settings = f"{at}/settings"
    changed = dry_run(browser, settings, settings, at, **{**FIELDS, "watched": "model:ada/tiny", "domains": []})
    assert (changed.status_code, 'href="#domains"' in changed.text) == (422, True)
    changed = dry_run(browser, settings, settings, at, **{**FIELDS, "watched": "model:ada/typo"})
    assert "The webhook would have received no events. Nothing was sent." in text_of(changed)
    assert "Not found: model:ada/typo." in text_of(changed)
    assert len(ada.get(f"/api{ROOT}").json()[0]["watched"]) == 4, "nothing is stored"


def test_names_are_suggested(hub: RunningHub, user: User, ada: httpx.Client, browser: httpx.Client) -> None:
    create_organization(hub, "acme", user)
    create_organization(hub, "adamant", create_user(hub, "eve"))
    with api(hub, create_token(hub, create_user(hub, "adam"))) as adam:
        create_repo(adam, "hidden", private=True)
        create_repo(adam, "open")
    create_repo(ada, "adder", private=True)
    create_repo(ada, "acme/rows", "dataset")

    def suggested(text: str) -> Any:
        return browser.get(f"{ROOT}/suggestions", params={"q": text}).json()

    assert sorted(suggested("ad")) == ["model:ada/adder", "org:adamant", "user:ada", "user:adam"]
    assert suggested("user:AD") == ["user:ada", "user:adam"]
    assert suggested("adam/") == suggested("model:adam/") == suggested("adam/op") == ["model:adam/open"]
    assert suggested("datasets/acme/r") == suggested("dataset:ro") == ["dataset:acme/rows"]
    assert suggested("dataset:ad") == suggested("") == suggested("%") == suggested("adam/hid") == []
    with browser_of(hub) as visitor:
        assert visitor.get(f"{ROOT}/suggestions?q=ad").status_code == 303


def test_delivery_links_to_repo_change_and_event(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    create_repo(ada, "rows", "dataset")
    create_commit(ada, "ada/rows", {"a.txt": b"a"}, repo_type="dataset")
    ada.post("/api/datasets/ada/rows/discussions", json={"title": "Why?", "description": "Because."})
    settle(hub)
    for log, change in zip(logs(ada, webhook), ("Discussion #1", "Commit ", None), strict=True):
        page = browser.get(f"{at}/deliveries/{log['id']}")
        assert '<a href="/datasets/ada/rows"><bdi>ada/rows</bdi></a>' in page.text
        assert f'<a href="{at}/why-not?event={log["event"]["id"]}">' in page.text
        assert WHY not in text_of(page), "it was"
        links = re.findall(r'<a href="(/datasets/ada/rows/[^"]+)">([^<]+)</a>', page.text)
        assert [text.startswith(change or "-") for _, text in links] == ([True] if change else [])
        assert all(browser.get(link).status_code == 200 for link, _ in links)


def test_page_says_why_an_event_was_not_delivered(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada", domains=["discussion"])
    at = f"{ROOT}/{webhook['id']}"
    assert f'<a href="{at}/why-not">' in browser.get(at).text
    assert "No events in the last seven days." in text_of(browser.get(f"{at}/why-not"))
    create_repo(ada, "tiny")
    settle(hub)
    (address,) = re.findall(rf'href="({at}/why-not\?event=\w+)"', browser.get(f"{at}/why-not").text)
    shown = text_of(browser.get(address))
    assert "Not sent domain The webhook does not send events about repos." in shown
    ada.post("/api/models/ada/tiny/discussions", json={"title": "Why?", "description": "Because."})
    receiver.status = 500
    settle(hub)
    (log,) = logs(ada, webhook)
    delivery = browser.get(f"{at}/deliveries/{log['id']}")
    assert WHY in text_of(delivery)
    why = browser.get(f"{at}/why-not?event={log['event']['id']}")
    assert "The receiver answered 500. Next try:" in text_of(why)
    assert f'href="{at}/deliveries/{log["id"]}">See the delivery</a>' in why.text
    unknown = browser.get(f"{at}/why-not?event={'0' * 24}")
    assert (unknown.status_code, text_of(unknown).count("Event not found.")) == (404, 2)
