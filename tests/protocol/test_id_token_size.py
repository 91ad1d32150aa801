"""An ID token stays small, because some apps store it in a cookie together with its claims."""

import base64
import json
from typing import Any

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.people import api, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import field_checks, own_account

pytestmark = pytest.mark.one_engine

FULLNAME = "😀" * field_checks.LONGEST_FULLNAME
WEBSITE = "https://ada.example/".ljust(field_checks.LONGEST_WEBSITE, "x")


def claims_for(hub: RunningHub, fullname: str, website: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Claims of the ID token, and of userinfo."""
    ada = create_user(hub, "ada")
    hub.call(lambda opened: own_account.set_profile(opened.accounts, ada, fullname, website))
    body = tokens_for(create_app(hub), ada)
    with api(hub, body["access_token"]) as app:
        userinfo = app.get("/oauth/userinfo").json()
    return json.loads(base64.urlsafe_b64decode(body["id_token"].split(".")[1] + "==")), userinfo


def test_usual_profile_is_in_both(hub: RunningHub) -> None:
    for claims in claims_for(hub, "Ada Lovelace", "https://ada.example"):
        assert (claims["name"], claims["website"]) == ("Ada Lovelace", "https://ada.example")


def test_long_claims_are_in_userinfo_only(hub: RunningHub) -> None:
    claims, userinfo = claims_for(hub, FULLNAME, WEBSITE)
    assert (claims["name"], claims["preferred_username"], claims["email"]) == ("ada", "ada", "ada@example.org")
    assert "website" not in claims
    assert (userinfo["name"], userinfo["website"]) == (FULLNAME, WEBSITE)


def test_long_website_does_not_displace_the_name(hub: RunningHub) -> None:
    claims, _ = claims_for(hub, "é" * 60, WEBSITE)
    assert claims["name"] == "é" * 60
    assert "website" not in claims
