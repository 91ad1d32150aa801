"""O39: a device code is valid for the app it was issued to, once, until it expires, with the scopes that were
approved.
"""

from functools import partial
from typing import Any

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import SCOPES, create_app
from tests.bed.cimd_documents import store_document, store_document_text
from tests.bed.concurrency import run_concurrently
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

ALL = " ".join(SCOPES)
CLI = "26be6b09-91c5-47da-9861-d2d2bb7a7e36"


def status_and_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "a token")


PENDING, SLOW, UNKNOWN = (400, "authorization_pending"), (400, "slow_down"), (400, "invalid_grant")


@pytest.mark.one_engine
@pytest.mark.parametrize("confidential", [True, False])
def test_o39_device_code_of_another_app_is_rejected(hub: RunningHub, confidential: bool) -> None:
    """Before and after the decision; the right app is neither slowed down nor loses its token."""
    ada = create_user(hub, "ada")
    client, thief = create_app(hub, confidential=confidential), create_app(hub, confidential=confidential)
    started = devices.start(client)
    code = started["device_code"]
    assert [status_and_error(devices.poll(thief, code)) for _ in range(3)] == [UNKNOWN] * 3
    with hub.client() as cli:
        form = {"grant_type": devices.GRANT, "client_id": CLI, "device_code": code}
        assert status_and_error(cli.post("/oauth/token", data=form)) == UNKNOWN
    assert status_and_error(devices.poll(client, code)) == PENDING
    devices.approve(hub, ada, started["user_code"], ALL)
    assert status_and_error(devices.poll(thief, code)) == UNKNOWN
    assert devices.poll(client, code).status_code == 200


@pytest.mark.one_engine
def test_o39_stolen_device_code_without_the_secret_is_rejected(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    started = devices.start(client)
    devices.approve(hub, ada, started["user_code"], ALL)
    form = {"grant_type": devices.GRANT, "client_id": client.id, "device_code": started["device_code"]}
    with hub.client() as thief:
        for proof in ({}, {"client_secret": "hfcs_guessed"}, {"client_secret": ""}):
            assert status_and_error(thief.post("/oauth/token", data={**form, **proof})) == (401, "invalid_client")
        assert status_and_error(thief.post("/oauth/token", data=form, auth=(client.id, "hfcs_guessed"))) == (
            401,
            "invalid_client",
        )
    assert devices.poll(client, started["device_code"]).status_code == 200


@pytest.mark.one_engine
@pytest.mark.parametrize(
    "code",
    [
        "x",
        "hf_device_",
        "hf_device_abc",
        "hf_oauth_AAAAAAAAAAAAAAAAAAAA",
        "BCDF-GHJK",
        "é",
        "hf_device_" + "A" * 50_000,
    ],
)
def test_o39_unknown_device_code_is_rejected(hub: RunningHub, code: str) -> None:
    assert status_and_error(devices.poll(create_app(hub), code)) == UNKNOWN


@pytest.mark.one_engine
def test_o39_user_code_and_device_code_are_not_interchangeable(hub: RunningHub) -> None:
    """The user code does not fetch a token, and the device code does not open the page."""
    client, ada = create_app(hub), create_user(hub, "ada")
    started = devices.start(client)
    assert status_and_error(devices.poll(client, started["user_code"])) == UNKNOWN
    with browser_of(hub, ada) as browser:
        assert devices.enter(browser, started["device_code"]).status_code == 404
    for header in (f"Bearer {started['device_code']}", f"Bearer {started['user_code']}"):
        with hub.client(headers={"authorization": header}) as program:
            assert program.get("/api/whoami-v2").status_code == 401


@pytest.mark.one_engine
def test_o39_missing_or_repeated_parameters_are_rejected(hub: RunningHub) -> None:
    client = create_app(hub)
    code = devices.start(client)["device_code"]
    form: dict[str, Any] = {"grant_type": devices.GRANT, "client_id": client.id}
    refused = (400, "invalid_request")
    with hub.client(auth=client.basic) as device:
        for fields in ({}, {"device_code": ""}, {"device_code": [code, code]}):
            assert status_and_error(device.post("/oauth/token", data={**form, **fields})) == refused
        assert status_and_error(device.post("/oauth/token", json={**form, "device_code": [code, code]})) == refused
        other = {**form, "client_id": "other", "device_code": code}
        assert status_and_error(device.post("/oauth/token", data=other)) == refused
        for doubled in ("client_id", "scope"):
            twice = {"client_id": client.id, doubled: [client.id, client.id]}
            assert status_and_error(device.post("/oauth/device", data=twice)) == refused
        assert status_and_error(device.post("/oauth/token", json={**form, "device_code": code})) == PENDING
        begun = device.post("/oauth/device", json={"client_id": client.id, "scope": "openid"})
        assert begun.status_code == 200
    for answer in (begun, devices.poll(client, code)):
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.one_engine
def test_o39_app_with_a_metadata_document_cannot_use_the_device_flow(hub: RunningHub) -> None:
    """An invalid document fails client authentication first."""
    client = store_document(hub)
    assert status_and_error(client.post("/oauth/device", {"client_id": client.id})) == (400, "unauthorized_client")
    assert status_and_error(devices.poll(client, devices.start(create_app(hub))["device_code"])) == UNKNOWN
    store_document_text(hub, client.id, "{}")
    assert status_and_error(client.post("/oauth/device", {"client_id": client.id})) == (401, "invalid_client")


@pytest.mark.one_engine
def test_o39_device_code_expires_after_15_minutes(hub: RunningHub) -> None:
    client, ada = create_app(hub), create_user(hub, "ada")
    waiting, approved = devices.start(client), devices.start(client)
    devices.approve(hub, ada, approved["user_code"], ALL)
    hub.clock.advance(899)
    assert status_and_error(devices.poll(client, waiting["device_code"])) == PENDING
    hub.clock.advance(1)
    late = (400, "expired_token")
    assert status_and_error(devices.poll(client, waiting["device_code"])) == late
    assert status_and_error(devices.poll(client, approved["device_code"])) == late, "approved in time, fetched too late"
    with browser_of(hub, ada) as browser:
        assert devices.enter(browser, waiting["user_code"]).status_code == 404


@pytest.mark.one_engine
def test_o39_approval_after_expiry_is_rejected(hub: RunningHub) -> None:
    client, ada = create_app(hub), create_user(hub, "ada")
    started = devices.start(client)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        hub.clock.advance(901)
        assert devices.decide(browser, asked, "approve", scopes=SCOPES).status_code == 404
        assert browser.get("/settings/connected").text.count(client.id) == 0, "nothing was allowed by that"


@pytest.mark.one_engine
def test_o39_interval_is_measured_between_polls(hub: RunningHub) -> None:
    """RFC 8628, section 3.5: slow_down adds five seconds to the interval, each time."""
    client = create_app(hub)
    code = devices.start(client)["device_code"]

    def after(seconds: float) -> tuple[int, str]:
        hub.clock.advance(seconds)
        return status_and_error(devices.poll(client, code))

    assert [after(0), after(5), after(5), after(4.6)] == [PENDING] * 4, "half a second is the network's"
    assert after(4.4) == SLOW, "10 from now on"
    assert [after(10), after(10)] == [PENDING, PENDING]
    assert [after(9), after(14)] == [SLOW, SLOW], "15, then 20"
    assert [after(20), after(19)] == [PENDING, SLOW]
    assert after(25) == PENDING


def test_o39_twenty_concurrent_polls_of_an_approved_code_issue_one_token(hub: RunningHub) -> None:
    client, ada = create_app(hub, refresh_tokens=True), create_user(hub, "ada")
    started = devices.start(client)
    devices.approve(hub, ada, started["user_code"], ALL)
    answers = run_concurrently([partial(devices.poll, client, started["device_code"])] * 20)
    assert sorted(status_and_error(answer) for answer in answers) == [(200, "a token")] + [UNKNOWN] * 19
