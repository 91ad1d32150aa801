"""Signing in on a device without a browser (RFC 8628)."""

import re
from pathlib import Path

import pytest
from tests.bed import devices
from tests.bed.apps import SCOPES, Client, create_app
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub, run_hub

ALL = " ".join(SCOPES)


@pytest.mark.one_engine
@pytest.mark.parametrize("confidential", [True, False])
def test_device_gets_a_token_after_approval(hub: RunningHub, confidential: bool) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, create_user(hub, "olga"), confidential=confidential, refresh_tokens=True)
    started = devices.start(client)
    assert re.fullmatch("[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}", started["user_code"])
    assert (started["expires_in"], started["interval"]) == (900, 5)
    page = f"{hub.settings.base_url}/oauth/device"
    assert started["verification_uri"] == page
    assert started["verification_uri_complete"] == f"{page}?user_code={started['user_code']}"
    waiting = devices.poll(client, started["device_code"])
    assert (waiting.status_code, waiting.json()["error"]) == (400, "authorization_pending")
    devices.approve(hub, ada, started["user_code"].lower().replace("-", ""), ALL)
    answer = devices.poll(client, started["device_code"]).json()
    assert (answer["token_type"], answer["expires_in"], set(answer["scope"].split())) == ("bearer", 28800, set(SCOPES))
    assert {"refresh_token", "id_token"} <= answer.keys()
    with api(hub, answer["access_token"]) as program:
        assert program.get("/api/whoami-v2").json()["name"] == "ada"
    again = devices.poll(client, started["device_code"])
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


@pytest.mark.one_engine
def test_denied_device_gets_no_token(hub: RunningHub) -> None:
    client, ada = create_app(hub, create_user(hub, "olga")), create_user(hub, "ada")
    started = devices.start(client)
    with browser_of(hub, ada) as browser:
        answer = devices.decide(browser, devices.enter(browser, started["user_code"]), "deny")
        assert "Denied. Nothing was shared." in browser.get(answer.headers["location"]).text
        assert (
            "This code is unknown or has expired. Start again on the device."
            in devices.enter(browser, started["user_code"]).text
        )
    refused = devices.poll(client, started["device_code"])
    assert (refused.status_code, refused.json()["error"]) == (400, "access_denied")


def test_polling_too_often_slows_the_device_down_permanently(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    code = devices.start(client)["device_code"]

    def poll_error() -> str:
        text: str = devices.poll(client, code).json()["error"]
        return text

    assert [poll_error(), poll_error()] == ["authorization_pending", "slow_down"]
    hub.clock.advance(seconds=6)
    assert poll_error() == "slow_down", "the interval has become 10 seconds"
    hub.clock.advance(seconds=15)
    assert poll_error() == "authorization_pending"
    hub.clock.advance(seconds=900)
    assert poll_error() == "expired_token"


@pytest.mark.one_engine
def test_token_has_the_ticked_scopes(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"))
    acme = create_organization(hub, "acme", ada)
    started = devices.start(client, scope="openid profile read-repos")
    devices.approve(hub, ada, started["user_code"], "openid", orgs=[acme.id])
    answer = devices.poll(client, started["device_code"]).json()
    assert set(answer["scope"].split()) == {"openid", "profile"}, "profile cannot be left out, read-repos can"


@pytest.mark.one_engine
def test_page_asks_for_confirmation_even_with_the_code_in_its_url(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"), name="Notebook")
    code = devices.start(client)["user_code"]
    with hub.client() as stranger:
        sent = stranger.get(f"/oauth/device?user_code={code}")
        assert sent.headers["location"] == f"/login?next=%2Foauth%2Fdevice%3Fuser_code%3D{code}"
    with browser_of(hub, ada) as browser:
        assert f'value="{code}"' in browser.get(f"/oauth/device?user_code={code}").text
        page = devices.enter(browser, code).text
    for text in (code, "Notebook", "Requested less than a minute ago from", "127.0.0.1", "Yes, my device shows this"):
        assert text in page
    assert "not the address you are using now" not in page


@pytest.mark.one_engine
def test_known_cli_needs_no_registration(hub: RunningHub) -> None:
    """The CLI of an existing client sends no scope and gets all of them, for 30 days, with refresh."""
    ada = create_user(hub, "ada")
    with hub.client() as device:
        known = {"client_id": "26be6b09-91c5-47da-9861-d2d2bb7a7e36"}
        started = device.post("/oauth/device", data=known).json()
        with browser_of(hub, ada) as browser:
            asked = devices.enter(browser, started["user_code"])
            devices.decide(browser, asked, "approve", scopes=["manage-repos"])
        form = {**known, "grant_type": devices.GRANT, "device_code": started["device_code"]}
        answer = device.post("/oauth/token", data=form).json()
    assert answer["expires_in"] == 30 * 24 * 3600
    assert "refresh_token" in answer
    assert "manage-repos" in answer["scope"].split()


@pytest.mark.one_engine
def test_each_known_command_line_has_its_own_name(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with hub.client() as device, browser_of(hub, ada) as browser:
        for client_id in ("hubgate-cli", "26be6b09-91c5-47da-9861-d2d2bb7a7e36"):
            started = device.post("/oauth/device", data={"client_id": client_id}).json()
            devices.decide(browser, devices.enter(browser, started["user_code"]), "approve", scopes=["read-repos"])
        names = re.findall("<td><a [^>]+><bdi>(.*?)</bdi>", browser.get("/settings/connected").text)
    assert sorted(names) == ["hf CLI", "hubgate CLI"]


def test_command_line_asks_only_for_scopes_of_configured_services(sqlite_template: Path, tmp_path: Path) -> None:
    services = {"inference-api": "inference_upstream", "jobs": "jobs_upstream"}
    for configured in ((), ("jobs",), ("inference-api", "jobs")):
        url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
        given = {services[scope]: "http://127.0.0.1:9" for scope in configured}
        with (
            run_hub(settings_for(url, tmp_path, **given)) as hub,
            hub.client() as device,
            browser_of(hub, create_user(hub, "ada")) as browser,
        ):
            for more in ({}, {"scope": "read-repos inference-api jobs"}):
                started = device.post("/oauth/device", data={"client_id": "hubgate-cli", **more}).json()
                page = devices.enter(browser, started["user_code"]).text
                offered = re.findall('name="scopes" value="([^"]+)"', page)
                assert "read-repos" in offered
                assert {*services} & {*offered} == {*configured}


def test_operator_configures_the_known_clis(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, cli_client_ids="house-cli")) as hub, hub.client() as device:
        started = device.post("/oauth/device", data={"client_id": "house-cli"}).json()
        devices.approve(hub, create_user(hub, "ada"), started["user_code"], "read-repos")
        form = {"client_id": "house-cli", "grant_type": devices.GRANT, "device_code": started["device_code"]}
        answer = device.post("/oauth/token", data=form).json()
        assert (answer["expires_in"], "refresh_token" in answer) == (30 * 24 * 3600, True)
        for other in ("hubgate-cli", "26be6b09-91c5-47da-9861-d2d2bb7a7e36"):
            assert device.post("/oauth/device", data={"client_id": other}).json()["error"] == "invalid_client"


@pytest.mark.one_engine
def test_invalid_device_requests_are_rejected(hub: RunningHub) -> None:
    client: Client = create_app(hub, create_user(hub, "olga"))
    for form, status, error in (
        ({"client_id": "nobody"}, 401, "invalid_client"),
        ({}, 400, "invalid_request"),
        ({"client_id": client.id, "scope": "fly"}, 400, "invalid_scope"),
    ):
        with hub.client() as device:
            auth = client.basic if form.get("client_id") == client.id else None
            answer = device.post("/oauth/device", data=form, **({"auth": auth} if auth else {}))
        assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text


@pytest.mark.one_engine
@pytest.mark.parametrize("first", ["approve", "deny"])
def test_repeated_decision_shows_the_outcome(hub: RunningHub, first: str) -> None:
    """It does not say that the code is unknown, and does not count as a guess."""
    client, ada, bob = create_app(hub), create_user(hub, "ada"), create_user(hub, "bob")
    started = devices.start(client)
    with browser_of(hub, ada) as hers, browser_of(hub, bob) as his:
        asked, asked_too = devices.enter(hers, started["user_code"]), devices.enter(his, started["user_code"])
        went = {devices.decide(hers, asked, first).headers["location"]}
        for _ in range(12):
            went |= {devices.decide(hers, asked, decision).headers["location"] for decision in ("approve", "deny")}
        assert went == {"/oauth/device/done" if first == "approve" else "/oauth/device/done?denied"}
        assert devices.decide(his, asked_too, "approve").status_code == 404, "it was not he who decided"
        assert devices.enter(hers, started["user_code"]).status_code == 404
    assert devices.poll(client, started["device_code"]).status_code == (200 if first == "approve" else 400)
