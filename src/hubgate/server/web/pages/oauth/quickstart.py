"""Ready code for an app: its own ID, redirect URI and scopes in it, and nothing secret.

What is put into the code is safe between double quotes: client IDs, redirect URIs and scopes of registered apps hold
neither double quotes nor backslashes (apps/fields.py, redirects.py), and the hub's own address comes from its settings.
A shell is more particular.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from hubgate.server.oauth.apps.model import App
from hubgate.server.scopes import join_scopes

# Shown where no app was chosen, or where it has none of them.
EXAMPLE_ID = "your-client-id"
EXAMPLE_REDIRECT = "https://app.example/callback"
EXAMPLE = App(
    client_id=EXAMPLE_ID,
    name="Example",
    redirect_uris=(EXAMPLE_REDIRECT,),
    scopes=("openid", "profile"),
    confidential=True,
)
_FOLDER = Path(__file__).parents[2] / "templates/quickstart"


@dataclass(frozen=True)
class Snippet:
    id: str
    title: str
    text: str
    note: str = ""


def snippets(base_url: str, app: App) -> list[Snippet]:
    values = _values(base_url, app)
    kind = "secret" if app.confidential else "public"
    browser = "" if not app.confidential else "This library signs people in to apps without a secret."
    return [
        Snippet("curl", "curl", _filled(f"curl-{kind}.txt", values)),
        Snippet("python", "Python with Authlib", _filled(f"authlib-{kind}.txt", values)),
        Snippet("openid-client", "JavaScript with openid-client", _filled(f"openid-client-{kind}.txt", values)),
        Snippet("browser", "JavaScript with @huggingface/hub", _filled("huggingface-hub.txt", values), browser),
    ]


def _values(base_url: str, app: App) -> Mapping[str, str]:
    redirect = app.redirect_uris[0] if app.redirect_uris else EXAMPLE_REDIRECT
    scope = join_scopes(app.scopes) or "openid profile"
    asked = {"response_type": "code", "client_id": app.client_id, "redirect_uri": redirect, "scope": scope}
    # openid-client wants to be told that a hub without TLS is meant.
    insecure = ["{ execute: [client.allowInsecureRequests] }"] if base_url.startswith("http:") else []
    if app.confidential and insecure:
        insecure.insert(0, "undefined")
    return {
        "base_url": base_url,
        "client_id": app.client_id,
        "redirect_uri": redirect,
        "redirect_argument": shlex.quote(f"redirect_uri={redirect}"),
        "path": urlsplit(redirect).path or "/",
        "scope": scope,
        "query": urlencode(asked),
        "insecure": "".join(f"\n  {argument}," for argument in insecure),
    }


def _filled(name: str, values: Mapping[str, str]) -> str:
    """`@{name}` stands for a value."""
    return re.sub(r"@\{([a-z_]+)\}", lambda found: values[found.group(1)], _code(name))


@cache
def _code(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8").rstrip("\n")
