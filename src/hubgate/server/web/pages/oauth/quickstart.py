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
from urllib.parse import quote, urlencode, urlsplit

from markupsafe import Markup

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.redirects import is_loopback
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
# Not the hub's own.
OTHER_PORT = 3000
_HERE = "By that very name: cookies of localhost do not reach 127.0.0.1."
_ELSEWHERE = "A proxy with TLS passes that on to the port."
_FOLDER = Path(__file__).parents[2] / "templates/quickstart"


@dataclass(frozen=True)
class Snippet:
    id: str
    title: str
    # What only stands for a value of the app's own is marked.
    text: Markup


def device_curl(base_url: str, app: App) -> str:
    """From the start to the token, in a shell; the waiting is the reader's."""
    client = f"client_id={app.client_id}"
    proof = f' -u "{app.client_id}:$CLIENT_SECRET"' if app.confidential else ""
    return (
        f"curl {base_url}/oauth/device{proof} -d {shlex.quote(client)}\n"
        "# Show user_code and verification_uri. Then, every few seconds, with the device_code of the answer:\n"
        f"curl {base_url}/oauth/token{proof} -d {shlex.quote(client)} \\\n"
        "  -d grant_type=urn:ietf:params:oauth:grant-type:device_code \\\n"
        '  -d device_code="$DEVICE_CODE"'
    )


def snippets(base_url: str, app: App) -> list[Snippet]:
    values = _values(base_url, app)
    kind = "secret" if app.confidential else "public"
    samples = [
        ("curl", "curl", f"curl-{kind}.txt"),
        ("python", "Python with Authlib", f"authlib-{kind}.txt"),
        ("openid-client", "JavaScript with openid-client", f"openid-client-{kind}.txt"),
    ]
    if not app.confidential:
        # This library knows no secrets.
        samples.append(("browser", "JavaScript with @huggingface/hub", "huggingface-hub.txt"))
    stand_in = "" if app.redirect_uris else EXAMPLE_REDIRECT
    return [Snippet(name, title, _marked(_filled(file, values), stand_in)) for name, title, file in samples]


def _values(base_url: str, app: App) -> Mapping[str, str]:
    redirect = _with_port(app.redirect_uris[0] if app.redirect_uris else EXAMPLE_REDIRECT)
    scope = join_scopes(app.scopes) or "openid profile"
    came = urlsplit(redirect)
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
        "path": came.path or "/",
        "port": str(came.port or OTHER_PORT),
        "begin": f"{came.scheme}://{came.netloc}/login" if came.netloc else "its /login",
        "host_note": _HERE if is_loopback(redirect) else _ELSEWHERE,
        "scope": scope,
        "query": urlencode(asked),
        "insecure": "".join(f"\n  {argument}," for argument in insecure),
    }


def _with_port(redirect: str) -> str:
    """On this computer any port will do (RFC 8252), but the code needs one to listen on."""
    parts = urlsplit(redirect)
    if not is_loopback(redirect) or parts.port is not None:
        return redirect
    return redirect.replace(parts.netloc, f"{parts.netloc}:{OTHER_PORT}", 1)


def _filled(name: str, values: Mapping[str, str]) -> str:
    """`@{name}` stands for a value."""
    return re.sub(r"@\{([a-z_]+)\}", lambda found: values[found.group(1)], _code(name))


def _marked(text: str, stand_in: str) -> Markup:
    """As it is, and as it stands in a query."""
    if not stand_in:
        return Markup.escape(text)
    pieces = re.split(f"({re.escape(stand_in)}|{re.escape(quote(stand_in, safe=''))})", text)
    return Markup("").join(Markup("<mark>{}</mark>").format(each) if at % 2 else each for at, each in enumerate(pieces))


@cache
def _code(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8").rstrip("\n")
