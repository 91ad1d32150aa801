"""O80 to O83: resource servers that try to use what was granted to others, and apps that try to get more than that."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import Client, approve, code_for, create_app, redirect_parameters, tokens_for
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.resource_servers import ADMIN, IDENTIFIER, TOOLS, Api, register
from tests.bed.running_hub import RunningHub, run_hub
from tests.egress.farend import Names, certificate_for, read_request, serving

from hubgate.server.accounts.model import User
from hubgate.server.egress.client import Egress

OTHER, PATH = "https://rogue.example/mcp", "/api/settings/resources"
SCOPE = "openid mcp:tools"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def mallory(hub: RunningHub) -> User:
    return create_user(hub, "mallory")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, None, refresh_tokens=True)


@pytest.fixture
def tools(hub: RunningHub) -> Api:
    return register(hub, create_user(hub, "olga"))


@pytest.fixture
def rogue(hub: RunningHub, mallory: User) -> Api:
    return register(hub, mallory, OTHER, (TOOLS, ADMIN), name="Rogue")


def refresh(client: Client, token: str, **more: str) -> httpx.Response:
    return client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more})


def delete(hub: RunningHub, owner: User, server: Api) -> None:
    with api(hub, create_token(hub, owner)) as script:
        assert script.delete(f"{PATH}/{server.server.id}").status_code == 204


@pytest.mark.one_engine
def test_o80_token_for_one_server_is_inactive_at_another(
    hub: RunningHub, client: Client, ada: User, tools: Api, rogue: Api
) -> None:
    """The rogue server forwards tokens that it received, or asks about tokens that it saw elsewhere."""
    for token in (
        tokens_for(client, ada, resource=OTHER, scope=SCOPE),
        tokens_for(client, ada, resource=f"{IDENTIFIER}/", scope="openid"),
        tokens_for(client, ada, resource="https://mcp.example/", scope="openid"),
        tokens_for(client, ada),
    ):
        assert not tools.accepts(token["access_token"])
    mine = tokens_for(client, ada, resource=IDENTIFIER, scope=SCOPE)
    assert tools.accepts(mine["access_token"])
    for stolen in (mine["access_token"], mine["refresh_token"], tokens_for(client, ada)["access_token"]):
        assert rogue.introspect(stolen) == {"active": False}
    as_app = {"token": mine["access_token"], "client_id": rogue.server.id, "client_secret": rogue.secret}
    with hub.client() as http:
        for path in ("/oauth/revoke", "/oauth/token", "/oauth/device"):
            assert http.post(path, data={**as_app, "grant_type": "refresh_token"}).status_code == 401, path
    assert tools.accepts(mine["access_token"])


@pytest.mark.one_engine
def test_o80_consent_for_one_server_gives_nothing_back_on_another(
    hub: RunningHub, client: Client, ada: User, tools: Api, rogue: Api
) -> None:
    """A permission that was revoked on one server stays revoked when another server with the same scope gets it."""
    there = tokens_for(client, ada, resource=OTHER, scope=SCOPE)
    connected = f"/api/settings/connected-apps/{client.id}"
    with api(hub, create_token(hub, ada)) as script:
        script.patch(connected, json={"scopesByResource": {OTHER: ["openid"]}})
        assert rogue.introspect(there["access_token"])["scope"] == "openid"
        here = tokens_for(client, ada, resource=IDENTIFIER, scope=SCOPE)
        assert rogue.introspect(there["access_token"])["scope"] == "openid"
        assert refresh(client, there["refresh_token"]).json()["scope"] == "openid"
        silent = client.address(resource=OTHER, scope=SCOPE, prompt="none")
        with browser_of(hub, ada) as browser:
            assert redirect_parameters(browser.get(silent))["error"] == "consent_required"
            # Unticked on one server's page, still allowed on the other.
            approve(browser, client.address(resource=OTHER, scope=SCOPE, prompt="consent"), scopes=["openid"])
        assert tools.introspect(here["access_token"])["scope"] == SCOPE


@pytest.mark.one_engine
def test_o80_grants_end_with_the_registration(
    hub: RunningHub, client: Client, ada: User, mallory: User, rogue: Api
) -> None:
    """The next owner of the address has to be approved anew: the page names the owner."""
    token, code = tokens_for(client, ada, resource=OTHER, scope=SCOPE), code_for(client, ada, resource=OTHER)
    delete(hub, mallory, rogue)
    later = register(hub, create_user(hub, "nina"), OTHER)
    assert not later.accepts(token["access_token"])
    assert refresh(client, token["refresh_token"]).json()["error"] == "invalid_grant"
    assert client.redeem(code).json()["error"] == "invalid_grant"
    with browser_of(hub, ada) as browser:
        assert "@nina" in browser.get(client.address(resource=OTHER, scope=SCOPE)).text


@pytest.mark.one_engine
def test_o80_token_for_several_servers_is_inactive_at_a_registered_one(
    hub: RunningHub, client: Client, ada: User
) -> None:
    """Each of the servers has the token, and could use it at the others. None was registered when it was requested."""
    address = client.address(scope="openid profile") + f"&resource={IDENTIFIER}&resource={OTHER}"
    with browser_of(hub, ada) as browser:
        both = client.redeem(redirect_parameters(approve(browser, address))["code"]).json()
    tools = register(hub, create_user(hub, "olga"))
    assert not tools.accepts(both["access_token"])
    assert not tools.accepts(refresh(client, both["refresh_token"]).json()["access_token"])
    one = refresh(client, both["refresh_token"], resource=IDENTIFIER).json()
    assert tools.introspect(one["access_token"])["scope"] == "openid profile"


@pytest.mark.one_engine
@pytest.mark.parametrize("tokens", ["opaque", "jwt"])
def test_o80_token_is_inactive_once_all_its_permissions_are_revoked(
    hub: RunningHub, client: Client, ada: User, mallory: User, tokens: str
) -> None:
    """A server without scopes of its own has nothing else to check."""
    server = register(hub, mallory, OTHER, (), tokens, name="Rogue")
    found = tokens_for(client, ada, resource=OTHER, scope="openid profile")
    with api(hub, create_token(hub, ada)) as script:
        connected = f"/api/settings/connected-apps/{client.id}"
        script.patch(connected, json={"scopesByResource": {OTHER: ["openid"]}})
        assert server.introspect(found["access_token"])["scope"] == "openid"
        script.patch(connected, json={"scopesByResource": {OTHER: []}})
    assert server.introspect(found["access_token"]) == {"active": False}
    assert refresh(client, found["refresh_token"]).json()["error"] == "invalid_grant"


@dataclass
class Origin:
    """The origin of an identifier: what it serves can be changed at any time."""

    answer: bytes = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
    seen: list[bytes] = field(default_factory=list)

    def serve(self, text: str, status: str = "200 OK", more: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n{more}\r\n"
        self.answer = (head + text).encode()

    def behave(self, peer: socket.socket) -> None:
        while request := read_request(peer):
            self.seen.append(request.split(b"\r\n")[0])
            peer.sendall(self.answer)


@dataclass
class Proving:
    """A hub that can reach the origin of `identifier`."""

    hub: RunningHub
    origin: Origin
    identifier: str

    def register(self, script: httpx.Client) -> dict[str, Any]:
        created = script.post(PATH, json={"identifier": self.identifier, "name": "Toolbox", "scopes": []})
        assert created.status_code == 201, created.text
        found: dict[str, Any] = created.json()
        return found


@contextmanager
def proving(engine: Engine, folder: Path) -> Iterator[Proving]:
    for_server, for_client = certificate_for("mcp.example", folder)
    origin = Origin()
    names = Names({"mcp.example": [["127.0.0.1"]]})
    egress = Egress([ip_network("127.0.0.0/8")], resolve=names, tls=for_client)
    with (
        serving(origin.behave, tls=for_server) as server,
        run_hub(settings_for(engine.fresh_url(), folder), egress) as hub,
    ):
        yield Proving(hub, origin, f"https://mcp.example:{server.port}/mcp")


@pytest.mark.one_engine
def test_o81_identifier_belongs_to_who_controls_its_origin(engine: Engine, tmp_path: Path) -> None:
    with proving(engine, tmp_path) as at, ExitStack() as stack:
        hub, origin = at.hub, at.origin
        mallory, olga, ada = (create_user(hub, name) for name in ("mallory", "olga", "ada"))
        thief = stack.enter_context(api(hub, create_token(hub, mallory)))
        owner = stack.enter_context(api(hub, create_token(hub, olga)))
        stolen, own = at.register(thief), at.register(owner)
        assert own["active"] is stolen["active"] is False, "a registration reserves nothing"
        client = create_app(hub, None)
        with browser_of(hub, ada) as browser:
            assert "On <bdi>" not in browser.get(client.address(resource=at.identifier)).text
        token = tokens_for(client, ada, resource=at.identifier, scope="openid profile")["access_token"]
        with hub.client(auth=(stolen["id"], stolen["secret"])) as rogue:
            assert rogue.post("/oauth/introspect", data={"token": token}).status_code == 401
        challenge = own["challenge"]["content"]
        for text, status, more in (
            ("", "404 Not Found", ""),
            ("", "200 OK", ""),
            (challenge, "302 Found", f"Location: {at.identifier}\r\n"),
            (challenge, "500 Broken", ""),
            (challenge + "x", "200 OK", ""),
            (stolen["id"], "200 OK", ""),
        ):
            origin.serve(text, status, more)
            refused = owner.post(f"{PATH}/{own['id']}/verify")
            assert refused.status_code == 409, (text, status)
        assert set(origin.seen) == {b"GET /.well-known/hubgate-challenge HTTP/1.1"}
        # Others' challenges may be there too, and the last line needs no end.
        origin.serve(f"another\n{challenge}")
        assert thief.post(f"{PATH}/{stolen['id']}/verify").status_code == 409
        assert thief.post(f"{PATH}/{own['id']}/verify").status_code == 404
        proved = owner.post(f"{PATH}/{own['id']}/verify")
        assert (proved.status_code, proved.json()["active"], proved.json()["challenge"]) == (200, True, None)
        origin.serve(stolen["challenge"]["content"])
        refused = thief.post(f"{PATH}/{stolen['id']}/verify")
        assert (refused.status_code, "Another owner" in refused.json()["error"]) == (409, True)
        with hub.client(auth=(own["id"], own["secret"])) as server:
            said = server.post("/oauth/introspect", data={"token": token}).json()
        assert (said["active"], said["aud"], said["scope"]) == (True, at.identifier, "openid profile")
        with browser_of(hub, ada) as browser:
            assert "@olga" in browser.get(client.address(resource=at.identifier, prompt="consent")).text


def test_o81_only_one_of_concurrent_proofs_succeeds(engine: Engine, tmp_path: Path) -> None:
    """An origin that serves everyone's challenge, such as a shared host."""
    with proving(engine, tmp_path) as at, ExitStack() as stack:
        scripts = [
            stack.enter_context(api(at.hub, create_token(at.hub, create_user(at.hub, f"u{n}")))) for n in range(4)
        ]
        registered = [at.register(script) for script in scripts]
        at.origin.serve("\n".join(each["challenge"]["content"] for each in registered))
        pairs = zip(scripts, registered, strict=True)
        answers = run_concurrently([partial(script.post, f"{PATH}/{each['id']}/verify") for script, each in pairs])
        assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]


@pytest.mark.one_engine
def test_o81_private_addresses_are_never_asked_for_a_challenge(engine: Engine, tmp_path: Path) -> None:
    origin = Origin()
    names = Names({"mcp.example": [["127.0.0.1"]]})
    with (
        serving(origin.behave) as server,
        run_hub(settings_for(engine.fresh_url(), tmp_path), Egress(resolve=names)) as hub,
    ):
        at = Proving(hub, origin, f"https://mcp.example:{server.port}/mcp")
        with api(hub, create_token(hub, create_user(hub, "ada"))) as script:
            own = at.register(script)
            for _ in range(10):
                assert script.post(f"{PATH}/{own['id']}/verify").status_code == 409
            assert script.post(f"{PATH}/{own['id']}/verify").status_code == 429, "the host is asked 10 times a minute"
        assert server.connections == 0


@pytest.mark.one_engine
def test_o81_strangers_checks_do_not_block_the_owners(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path, trusted_proxies="127.0.0.1/32")
    with run_hub(settings, Egress(resolve=Names({"mcp.example": [["127.0.0.1"]]}))) as hub:
        at = Proving(hub, Origin(), "https://mcp.example/mcp")

        def check(user: User, times: int) -> list[int]:
            address = {"x-forwarded-for": f"203.0.113.{user.name.removeprefix('u')}"}
            with api(hub, create_token(hub, user)) as script:
                own = at.register(script)
                return [script.post(f"{PATH}/{own['id']}/verify", headers=address).status_code for _ in range(times)]

        users = [create_user(hub, f"u{number}") for number in range(1, 12)]
        assert check(users[0], 11) == [409] * 10 + [429]
        assert check(users[1], 1) == [409]
        for user in users[2:10]:
            assert check(user, 10) == [409] * 10
        assert check(users[10], 10) == [409] * 9 + [429], "the host is asked 100 times a minute"


@pytest.mark.one_engine
def test_o82_refresh_does_not_widen(
    hub: RunningHub, client: Client, ada: User, mallory: User, tools: Api, rogue: Api
) -> None:
    wide = tokens_for(client, ada)
    found = tokens_for(client, ada, resource=OTHER, scope=SCOPE)
    tokens_for(client, ada, resource=IDENTIFIER, scope="openid mcp:tools mcp:admin")
    for asked, error in (
        ({"scope": "openid mcp:admin"}, "invalid_scope"),
        ({"scope": "openid read-repos"}, "invalid_scope"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"resource": IDENTIFIER}, "invalid_target"),
        ({"resource": hub.url}, "invalid_target"),
        ({"resource": f"{OTHER}#{tools.server.id}"}, "invalid_target"),
        ({"resource": f"{OTHER}/"}, "invalid_target"),
    ):
        refused = refresh(client, found["refresh_token"], **asked)
        assert (refused.status_code, refused.json()["error"]) == (400, error), asked
    for asked in ({"resource": OTHER}, {"resource": OTHER, "scope": "mcp:tools"}):
        assert refresh(client, wide["refresh_token"], **asked).status_code == 400
    # A scope that the server defines later is not part of what was approved.
    with api(hub, create_token(hub, mallory)) as script:
        more = [{"name": name, "text": name} for name in ("mcp:tools", "mcp:admin", "mcp:new")]
        assert script.patch(f"{PATH}/{rogue.server.id}", json={"scopes": more}).status_code == 200
    assert refresh(client, found["refresh_token"], scope="mcp:new").json()["error"] == "invalid_scope"
    renewed = refresh(client, found["refresh_token"]).json()
    assert (renewed["scope"], rogue.introspect(renewed["access_token"])["scope"]) == (SCOPE, SCOPE)


@pytest.mark.one_engine
@pytest.mark.usefixtures("rogue")
def test_o83_scopes_of_a_server_need_the_server(hub: RunningHub, client: Client, ada: User, tools: Api) -> None:
    with browser_of(hub, ada) as browser:
        for resource in (None, hub.url, "https://unknown.example/", "https://mcp.example/other"):
            refused = redirect_parameters(browser.get(client.address(scope="mcp:tools", resource=resource)))
            assert refused["error"] == "invalid_scope", resource
            started = client.post(
                "/oauth/device", {"scope": "mcp:tools", **({"resource": resource} if resource else {})}
            )
            assert started.json()["error"] == "invalid_scope", resource
        # Forged form fields add nothing.
        address = client.address(scope="openid", resource="https://unknown.example/")
        code = redirect_parameters(approve(browser, address, scopes=["openid", "mcp:tools", "read-repos"]))["code"]
    found = client.redeem(code).json()
    assert (found["scope"], tools.accepts(found["access_token"])) == ("openid", False)
    plain = tokens_for(client, ada)
    for token in (plain, found):
        assert refresh(client, token["refresh_token"], scope="mcp:tools").json()["error"] == "invalid_scope"
    # An app that registers the name as its own scope is refused, too.
    with api(hub, create_token(hub, ada)) as script:
        asked = {"name": "Notebook", "scopes": ["openid", "mcp:tools"]}
        assert script.post("/api/settings/applications", json=asked).status_code == 422
    started = devices.start(client, resource=IDENTIFIER, scope=SCOPE)
    with browser_of(hub, ada) as browser:
        page = devices.enter(browser, started["user_code"])
        devices.decide(browser, page, "approve", scopes=["openid", "mcp:tools", "mcp:admin", "read-repos"])
    assert devices.poll(client, started["device_code"]).json()["scope"] == SCOPE


@pytest.mark.one_engine
@pytest.mark.parametrize("prompt", ["none", "consent"])
def test_o83_scopes_of_a_server_on_the_users_computer_are_not_revealed(
    hub: RunningHub, client: Client, ada: User, prompt: str
) -> None:
    """An app that the user never approved sends her browser here and reads the error."""
    local = "http://127.0.0.1:9000/mcp"
    register(hub, ada, local)
    address = client.address(resource=local, scope="unknown", prompt=prompt)
    with browser_of(hub, ada) as hers, browser_of(hub, create_user(hub, "bob")) as his:
        refused = redirect_parameters(hers.get(address))
        assert refused["error"] == "invalid_scope"
        assert refused["error_description"] == redirect_parameters(his.get(address))["error_description"]


@pytest.mark.one_engine
def test_o83_silent_request_does_not_reveal_a_server_on_the_users_computer(
    hub: RunningHub, client: Client, ada: User
) -> None:
    """An app that the user never approved for the server guesses its address and scopes."""
    local, other = "http://127.0.0.1:9000/mcp", "http://127.0.0.1:9001/mcp"
    register(hub, ada, local)
    register(hub, ada, other)
    bob = create_user(hub, "bob")

    def silent(browser: httpx.Client, scope: str | None, *resources: str) -> dict[str, str]:
        named = "".join(f"&resource={uri}" for uri in resources)
        answer = redirect_parameters(browser.get(client.address(scope=scope, prompt="none") + named))
        return {name: value for name, value in answer.items() if name not in ("error_uri", "state", "code")}

    requests = [
        (scope, *resources)
        for scope in ("mcp:tools", SCOPE, "openid", "unknown", None)
        for resources in ((local,), (local, other))
    ]
    with browser_of(hub, ada) as hers, browser_of(hub, bob) as his:
        for asked in requests:
            assert silent(hers, *asked) == silent(his, *asked), asked
        for user in (ada, bob):
            tokens_for(client, user, scope="openid")
        for asked in requests:
            assert silent(hers, *asked) == silent(his, *asked), asked
    tokens_for(client, ada, resource=local, scope=SCOPE)
    with browser_of(hub, ada) as hers:
        assert "code" in redirect_parameters(hers.get(client.address(scope=SCOPE, resource=local, prompt="none")))
