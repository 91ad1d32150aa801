"""Two common OAuth providers: oidc-provider on Node, in memory, and django-oauth-toolkit on SQLite."""

import contextlib
import hashlib
import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.bed.apps import pkce_pair
from tests.bed.node import BENCH as NODE_MODULES
from tests.bed.node import NODE
from tests.bed.processes import ROOT, free_port, until

from bench.cores import on_measured_core
from bench.http_requests import Server, bearer_get, post_form
from bench.load import Request
from bench.sign_ins import REDIRECT, USERS

_DJANGO = ROOT / ".venv/bench/providers"
_PROGRAMS = ROOT / "bench/peers"
DJANGO_CONFIGURATION = "/o/.well-known/openid-configuration"
_SCOPE = "openid profile email"
_SECRET = secrets.token_hex(20)
_NAMES = [f"user-{number}" for number in range(USERS)]


def new_key() -> str:
    """A private key for ES256, as PEM."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


_DJANGO_KEY = _pem(rsa.generate_private_key(65537, 2048))


def missing() -> str | None:
    """An error message that says how to install the providers, or None."""
    absent = not (_DJANGO / "bin/granian").exists() or not (NODE_MODULES / "node_modules/oidc-provider").exists()
    return "oidc-provider and django-oauth-toolkit are missing: make .venv/bench.stamp" if absent else None


def facts() -> dict[str, str]:
    locked = json.loads((NODE_MODULES / "package.json").read_text())["dependencies"]
    node = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    names = ("django_oauth_toolkit", "django", "granian")
    found = {name: next(_DJANGO.glob(f"lib/*/site-packages/{name}-*.dist-info")).stem for name in names}
    django = ", ".join(name.replace("_", "-") + " " + stem.rpartition("-")[2] for name, stem in found.items())
    return {"providers": f"oidc-provider {locked['oidc-provider']} on Node {node.removeprefix('v')}, {django}"}


@dataclass(frozen=True)
class OidcProvider:
    """A running oidc-provider, which creates codes and tokens on request."""

    server: Server
    process: "subprocess.Popen[bytes]"
    verifier: str

    def redemptions(self, count: int) -> list[Request]:
        fields = {"grant_type": "authorization_code", "redirect_uri": REDIRECT, "code_verifier": self.verifier}
        return [_form("/token", "app", **fields, code=code) for code in self._create("codes", count)]

    def refreshes(self) -> list[Request]:
        tokens = self._create("tokens", USERS)
        # The token is last, because the load replaces it.
        return [_form("/token", "app", grant_type="refresh_token", refresh_token=each["refresh"]) for each in tokens]

    def userinfos(self) -> list[Request]:
        return [bearer_get("/me", each["access"]) for each in self._create("tokens", USERS)]

    def introspections(self) -> list[Request]:
        tokens = self._create("tokens", USERS)
        return [_form("/token/introspection", "app", token=each["access"]) for each in tokens]

    def client_credentials(self) -> list[Request]:
        return [_form("/token", "app", grant_type="client_credentials", scope="read-repos")]

    def device_starts(self) -> list[Request]:
        return [_form("/device/auth", "app", client_id="app", scope=_SCOPE)]

    def _create(self, kind: str, count: int) -> list[Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kind} {count}\n".encode())
        self.process.stdin.flush()
        created: list[Any] = json.loads(self.process.stdout.readline())
        return created


@contextlib.contextmanager
def oidc_provider_process(folder: Path, key: str) -> Iterator[OidcProvider]:
    """Run oidc-provider with an app whose ID tokens are signed with this key, as PEM."""
    verifier, challenge = pkce_pair()
    plan = {
        "users": _NAMES,
        "clientId": "app",
        "clientSecret": _SECRET,
        "redirectUri": REDIRECT,
        "codeChallenge": challenge,
        "key": key,
    }
    program = (_PROGRAMS / "oidc_provider.mjs").read_text()
    with (folder / "oidc-provider.log").open("ab") as log:
        process = subprocess.Popen(
            on_measured_core([str(NODE), "--input-type=module", "--eval", program]),
            cwd=NODE_MODULES,
            env={"PLAN": json.dumps(plan), "PATH": "/usr/bin:/bin", "NODE_ENV": "production"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    with process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline()
            assert port, (folder / "oidc-provider.log").read_text()
            yield OidcProvider(Server(int(port), process.pid), process, verifier)
        finally:
            process.kill()


@dataclass(frozen=True)
class DjangoProvider:
    """A running django-oauth-toolkit. Each of its apps has a single grant type."""

    server: Server
    tokens: Sequence[str]

    def userinfos(self) -> list[Request]:
        return [bearer_get("/o/userinfo/", token) for token in self.tokens]

    def introspections(self) -> list[Request]:
        return [_form("/o/introspect/", "app", token=token) for token in self.tokens]

    def client_credentials(self) -> list[Request]:
        return [_form("/o/token/", "machine", grant_type="client_credentials", scope="read-repos")]

    def device_starts(self) -> list[Request]:
        return [_form("/o/device-authorization/", "device", client_id="device", scope=_SCOPE)]


def create_django_database(folder: Path) -> list[str]:
    """Create the tables, users and apps, and a token for each user; return the tokens.

    The secrets are stored as they are. By default they are hashed, and each check takes a large part of a second.
    """
    tokens = [secrets.token_urlsafe(30) for _ in _NAMES]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    created = {"created": tomorrow, "updated": tomorrow}
    rows: list[tuple[str, int, Mapping[str, object]]] = []
    grants = (
        ("app", "authorization-code"),
        ("machine", "client-credentials"),
        ("device", "urn:ietf:params:oauth:grant-type:device_code"),
    )
    for key, (client_id, grant) in enumerate(grants, 1):
        app = {"client_id": client_id, "client_secret": _SECRET, "hash_client_secret": False, "redirect_uris": REDIRECT}
        app |= {"client_type": "confidential", "authorization_grant_type": grant, "algorithm": "RS256"}
        rows.append(("oauth2_provider.application", key, {**app, **created}))
    for key, (name, token) in enumerate(zip(_NAMES, tokens, strict=True), 1):
        user = {"username": name, "email": f"{name}@example.org", "first_name": "Ada", "last_name": "Lovelace"}
        checksum = hashlib.sha256(token.encode()).hexdigest()
        access = {
            "user": key,
            "token": token,
            "token_checksum": checksum,
            "application": 1,
            "expires": tomorrow,
            "scope": _SCOPE,
            **created,
        }
        rows += [("auth.user", key, user), ("oauth2_provider.accesstoken", key, access)]
    data = json.dumps([{"model": model, "pk": key, "fields": fields} for model, key, fields in rows])
    for command, given in ((["migrate"], ""), (["loaddata", "--format=json", "-"], data)):
        done = subprocess.run(
            [_DJANGO / "bin/django-admin", *command, "--verbosity=0"],
            cwd=_PROGRAMS,
            env=_django_environment(folder),
            input=given,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return tokens


@contextlib.contextmanager
def django_process(folder: Path) -> Iterator[Server]:
    """Serve django-oauth-toolkit with one process and one thread on granian, the hub's HTTP server."""
    port = free_port()
    flags = ("--interface=wsgi", "--factory", "--workers=1", "--blocking-threads=1", "--no-log", f"--port={port}")
    command = [str(_DJANGO / "bin/granian"), *flags, "django.core.wsgi:get_wsgi_application"]
    with (folder / "django.log").open("ab") as log:
        process = subprocess.Popen(
            on_measured_core(command), cwd=_PROGRAMS, env=_django_environment(folder), stdout=log, stderr=log
        )
    with process:
        server = Server(port, process.pid)
        try:
            until(lambda: _is_answering(server) or process.poll() is not None)
            assert process.poll() is None, (folder / "django.log").read_text()
            yield server
        finally:
            process.terminate()


def _is_answering(server: Server) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{server.port}{DJANGO_CONFIGURATION}").is_success
    except httpx.TransportError:
        return False


def _django_environment(folder: Path) -> dict[str, str]:
    return {
        "DATABASE": str(folder / "django.sqlite"),
        "DJANGO_SETTINGS_MODULE": "django_settings",
        "KEY": _DJANGO_KEY,
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(_PROGRAMS),
    }


def _form(path: str, app: str, /, **fields: str) -> Request:
    return post_form(path, app, _SECRET, **fields)
