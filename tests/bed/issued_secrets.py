"""All secrets that a hub issues, collected by using each page, mail and endpoint that issues one."""

import re

import httpx
from tests.bed import devices
from tests.bed.apps import code_for, create_app, pkce_pair, tokens_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import PASSWORD, create_organization, create_user, link_in, mails_to, setup_link, submit
from tests.bed.resource_servers import register
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import invitations
from hubgate.server.oauth.registration import clients, initial_tokens
from hubgate.server.oauth.registration.model import ClientMetadata
from hubgate.server.resources import Hub

PASSWORDS = ("the first passphrase", "the second passphrase", "a passphrase that is wrong")


def collect_issued_secrets(hub: RunningHub) -> dict[str, str]:
    """The issued secrets by description. For each kind of link, one is used and another stays unused."""
    first, second, wrong = PASSWORDS
    given = dict(zip(("password", "new password", "wrong password"), PASSWORDS, strict=True))
    with hub.client() as client:
        setup = setup_link(hub)
        submit(client, setup, username="boss", email="boss@example.org", password=first)
        given |= {"set-up link": _last_segment(setup), "operator's session": client.cookies["token"]}
        given["open confirmation"] = _mailed(hub, "boss@example.org", "Confirm")
        created = submit(client, "/settings/tokens", "/settings/tokens", name="laptop", role="write")
        given["token"] = re.findall(r"hf_\w+", created.text)[0]
        submit(client, "/settings/profile", "/settings/email", email="moved@example.org", password=first)
        given["open change of address"] = _mailed(hub, "moved@example.org", "Confirm")
        submit(client, "/", "/logout")
    with hub.client() as client:
        submit(client, "/join", username="ada", email="ada@example.org", password=first)
        given["used confirmation"] = _mailed(hub, "ada@example.org", "Confirm")
        confirmed = submit(client, f"/verify/{given['used confirmation']}", password=first)
        assert confirmed.status_code == 303
        assert submit(client, "/login", username="ada", password=wrong).status_code == 422
        submit(client, "/reset", email="ada@example.org")
        given["used reset"] = _mailed(hub, "ada@example.org", "Reset")
        submit(client, f"/reset/{given['used reset']}", password=second)
        hub.clock.advance(1)
        submit(client, "/login", username="ada", password=second)
        given |= {"session": client.cookies["token"], "csrf cookie": client.cookies["csrf"]}
        given |= _invitations(hub, client)
    with hub.client() as client:
        submit(client, "/reset", email="boss@example.org")
        given["open reset"] = _mailed(hub, "boss@example.org", "Reset")
        with_token = client.get("/api/whoami-v2", headers={"authorization": f"Bearer {given['token']}"})
        assert with_token.status_code == 200
    return given | _app_secrets(hub) | _device_secrets(hub) | _registration_secrets(hub)


def _registration_secrets(hub: RunningHub) -> dict[str, str]:
    initial, _ = hub.call(lambda opened: initial_tokens.create(opened.oauth))
    metadata = ClientMetadata(redirect_uris=["https://app.example/"])
    _, token = hub.call(lambda opened: clients.register(opened.oauth, metadata, "", "192.0.2.1"))
    return {"registration token": initial, "registration access token": token}


def _app_secrets(hub: RunningHub) -> dict[str, str]:
    dora = create_user(hub, "dora")
    client = create_app(hub, dora, refresh_tokens=True)
    verifier, challenge = pkce_pair()
    used = code_for(client, dora, code_challenge=challenge, code_challenge_method="S256")
    tokens = client.redeem(used, code_verifier=verifier).json()
    refreshed = client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]})
    assert client.secret is not None
    tools = register(hub, dora, tokens="jwt")
    signed = tokens_for(client, dora, resource=tools.identifier, scope="openid mcp:tools")["access_token"]
    assert tools.accepts(signed)
    return {
        "client secret": client.secret,
        "verifier": verifier,
        "used code": used,
        "open code": code_for(client, dora),
        "access token": tokens["access_token"],
        "used refresh token": tokens["refresh_token"],
        "refresh token": refreshed.json()["refresh_token"],
        "signature of an ID token": tokens["id_token"].rpartition(".")[2],
        "secret of a resource server": tools.secret,
        "signature of an access token": signed.rpartition(".")[2],
    }


def _device_secrets(hub: RunningHub) -> dict[str, str]:
    fritz = create_user(hub, "fritz")
    client = create_exchange_app(hub, create_organization(hub, "devices", fritz), refresh_tokens=True)
    used, waiting = devices.start(client), devices.start(client)
    devices.approve(hub, fritz, used["user_code"], "openid profile")
    tokens = devices.poll(client, used["device_code"]).json()
    return {
        "used device code": used["device_code"],
        "used user code": used["user_code"],
        "open device code": waiting["device_code"],
        "open user code": waiting["user_code"],
        "access token of a device": tokens["access_token"],
        "refresh token of a device": tokens["refresh_token"],
        "exchanged token": exchange_token(client, "fritz@example.org")["access_token"],
        "secret of the exchanger": client.secret or "",
    }


def _invitations(hub: RunningHub, client: httpx.Client) -> dict[str, str]:
    create_organization(hub, "acme", create_user(hub, "carol"))

    async def to_hub(opened: Hub) -> str:
        return await invitations.invite_to_hub(opened.accounts, "guest@example.org")

    hub_link = hub.call(to_hub)
    with hub.client() as admin:
        submit(admin, "/login", username="carol", password=PASSWORD)
        for invitee in ("ada", "new@example.org"):
            page = "/organizations/acme/settings/members"
            submit(admin, page, page, invitee=invitee, role="read")
    used, open_one = (_mailed(hub, address, "Join") for address in ("ada@example.org", "new@example.org"))
    assert submit(client, f"/invitations/{used}", decision="accept").status_code == 303
    return {"invitation to the hub": _last_segment(hub_link), "used invitation": used, "open invitation": open_one}


def _mailed(hub: RunningHub, address: str, subject: str) -> str:
    """The secret in the link of the last mail to an address with this subject."""
    found = [mail for mail in mails_to(hub, address) if mail["Subject"].startswith(subject)]
    return _last_segment(link_in(found[-1]))


def _last_segment(address: str) -> str:
    return address.rpartition("/")[2]
