"""The curl commands for devices, on `/docs/sign-in` and in docs/device.md, work."""

import re

import pytest
from tests.bed import devices
from tests.bed.apps import SCOPES, create_app
from tests.bed.people import browser_of, code_on_page, create_user
from tests.bed.processes import ROOT
from tests.bed.running_hub import RunningHub
from tests.protocol.test_docs_tokens import curl

pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize("confidential", [True, False])
def test_curl_on_the_page_works(hub: RunningHub, confidential: bool) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada, confidential=confidential)
    with browser_of(hub, ada) as browser:
        page = browser.get(f"/docs/sign-in?app={client.id}").text
    text = code_on_page(page, "device-curl")
    start, poll = re.split(r"(?m)^#.*\n", text)
    secret = {"CLIENT_SECRET": client.secret or ""}
    started = curl(start, **secret).json()
    assert curl(poll, **secret, DEVICE_CODE=started["device_code"]).json()["error"] == "authorization_pending"
    devices.approve(hub, ada, started["user_code"], " ".join(SCOPES))
    assert "access_token" in curl(poll, **secret, DEVICE_CODE=started["device_code"]).json()


def test_commands_in_the_documentation_work(hub: RunningHub) -> None:
    """Each command, in order, with the answers it shows."""
    ada, client = create_user(hub, "ada"), create_app(hub)
    text = (ROOT / "docs/device.md").read_text().replace("your-client-id", client.id)
    start, poll = re.findall(r"(?ms)^(curl .*?)\n```", text)
    known = {"hub": hub.url, "CLIENT_SECRET": client.secret or ""}
    started = curl(start, **known).json()
    (shown,) = re.findall(r"(?ms)^```json\n(.*?)```", text)
    for name in started:
        assert f'"{name}": ' in shown
    assert curl(poll, **known, DEVICE_CODE=started["device_code"]).json()["error"] == "authorization_pending"
    devices.approve(hub, ada, started["user_code"], " ".join(SCOPES))
    assert "access_token" in curl(poll, **known, DEVICE_CODE=started["device_code"]).json()
