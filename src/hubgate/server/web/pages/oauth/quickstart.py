"""Sample code for an app, with its client ID, redirect URI and scopes, and without secrets.

Inserted values are safe between double quotes: client IDs, redirect URIs and scopes of registered apps contain neither
double quotes nor backslashes (apps/fields.py, redirects.py), and the hub's address comes from its settings. Shell
commands need more quoting.
"""

import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from markupsafe import Markup
from msgspec import Struct

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.redirects import is_loopback
from hubgate.server.scopes import join_scopes
from hubgate.server.web.pages.docs.highlight import highlight

# Shown if no app was chosen, or if the app lacks the value.
EXAMPLE_ID = "your-client-id"
EXAMPLE_REDIRECT = "https://app.example/callback"
EXAMPLE = App(
    client_id=EXAMPLE_ID,
    name="Example",
    redirect_uris=(EXAMPLE_REDIRECT,),
    scopes=("openid", "profile"),
    confidential=True,
)
# A port that the hub itself does not use.
OTHER_PORT = 3000
_LOOPBACK_NOTE = "Use exactly this host name: cookies of localhost are not sent to 127.0.0.1."
_PROXY_NOTE = "A TLS proxy must forward this address to the port."
_FOLDER = Path(__file__).parents[2] / "templates"


class Snippet(Struct, frozen=True):
    id: str
    title: str
    # Highlighted HTML, with placeholders marked.
    text: Markup


def device_curl(base_url: str, app: App) -> str:
    """Shell commands for the device flow; the reader repeats the second one until it returns a token."""
    client = f"client_id={app.client_id}"
    credentials = f' -u "{app.client_id}:$CLIENT_SECRET"' if app.confidential else ""
    return (
        f"curl {base_url}/oauth/device{credentials} -d {shlex.quote(client)}\n"
        "# Show user_code and verification_uri. Then, every few seconds, with the device_code of the response:\n"
        f"curl {base_url}/oauth/token{credentials} -d {shlex.quote(client)} \\\n"
        "  -d grant_type=urn:ietf:params:oauth:grant-type:device_code \\\n"
        '  -d device_code="$DEVICE_CODE"'
    )


def snippets(base_url: str, app: App) -> list[Snippet]:
    values = _values(base_url, app)
    kind = "secret" if app.confidential else "public"
    samples = [
        ("curl", "curl", f"quickstart/curl-{kind}.txt", "sh"),
        ("python", "Python with Authlib", f"quickstart/authlib-{kind}.txt", "python"),
        ("openid-client", "JavaScript with openid-client", f"quickstart/openid-client-{kind}.txt", "javascript"),
    ]
    if not app.confidential:
        # This library does not support client secrets.
        samples.append(("browser", "JavaScript with @huggingface/hub", "quickstart/huggingface-hub.txt", "javascript"))
    placeholder = "" if app.redirect_uris else EXAMPLE_REDIRECT
    return [
        Snippet(name, title, _mark(sample(file, values, language), placeholder))
        for name, title, file, language in samples
    ]


def _values(base_url: str, app: App) -> Mapping[str, str]:
    redirect = _with_port(app.redirect_uris[0] if app.redirect_uris else EXAMPLE_REDIRECT)
    scope = join_scopes(app.scopes) or "openid profile"
    parts = urlsplit(redirect)
    parameters = {"response_type": "code", "client_id": app.client_id, "redirect_uri": redirect, "scope": scope}
    # openid-client requires explicit permission for a hub without TLS.
    insecure = ["{ execute: [client.allowInsecureRequests] }"] if base_url.startswith("http:") else []
    if app.confidential and insecure:
        insecure.insert(0, "undefined")
    return {
        "base_url": base_url,
        "client_id": app.client_id,
        "redirect_uri": redirect,
        "redirect_argument": shlex.quote(f"redirect_uri={redirect}"),
        "path": parts.path or "/",
        "port": str(parts.port or OTHER_PORT),
        "begin": f"{parts.scheme}://{parts.netloc}/login" if parts.netloc else "the app's /login",
        "host_note": _LOOPBACK_NOTE if is_loopback(redirect) else _PROXY_NOTE,
        "scope": scope,
        "query": urlencode(parameters),
        "insecure": "".join(f"\n  {argument}," for argument in insecure),
    }


def _with_port(redirect: str) -> str:
    """Add a port for the code to listen on: loopback redirects match any port (RFC 8252)."""
    parts = urlsplit(redirect)
    if not is_loopback(redirect) or parts.port is not None:
        return redirect
    return redirect.replace(parts.netloc, f"{parts.netloc}:{OTHER_PORT}", 1)


def sample(file: str, values: Mapping[str, str], language: str) -> Markup:
    """Highlighted sample code from a file under templates, with values for its placeholders."""
    return highlight(_fill(file, values), language)


def _fill(name: str, values: Mapping[str, str]) -> str:
    """Replace each `@{name}` with its value."""
    return re.sub(r"@\{([a-z_]+)\}", lambda found: values[found.group(1)], _code(name))


def _mark(code: Markup, placeholder: str) -> Markup:
    """Mark the placeholder, both literal and percent-encoded. It has no characters that HTML escapes."""
    if not placeholder:
        return code
    found = f"{re.escape(placeholder)}|{re.escape(quote(placeholder, safe=''))}"
    return Markup(re.sub(found, lambda match: f"<mark>{match[0]}</mark>", code))  # noqa: S704 -- highlighted, so escaped


@cache
def _code(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8").rstrip("\n")
