"""The landing page, with registered webhooks, instructions and recent deliveries, and the app that may replace it.

Recent deliveries are shown only to a browser on this machine that requested a loopback host. This excludes visitors
behind a proxy, and websites whose name resolves to 127.0.0.1 (DNS rebinding).
"""

import importlib
import ipaddress
import json
import shlex
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, cast

from hubgate.receiver.asgi import App, Receive, Scope, Send, header_values, path_of, respond, respond_error
from hubgate.receiver.recent import Entry, RecentDeliveries
from hubgate.receiver.request import Headers
from hubgate.receiver.routes import EVENTS, Endpoint, Routes
from hubgate.receiver.verification import Verifier

STYLE = "/landing.css"
_STYLE_FILE = Path(__file__).with_name("landing.css")
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_LOGO = (
    '<svg viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.5"'
    ' stroke-linecap="round" stroke-linejoin="round"><path d="M4 21V11a8 8 0 0 1 16 0V21M12 14V21"/>'
    '<circle cx="12" cy="12" r="2.5" fill="currentColor" stroke="none"/></svg>'
)
_CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAMPLE = {"event": {"action": "update", "scope": "repo.content"}, "repo": {"type": "model", "name": "ada/tiny"}}


async def respond_with_page(
    scope: Scope, send: Send, routes: Routes, recent: RecentDeliveries, verifier: Verifier
) -> None:
    path = path_of(scope)
    if path not in ("/", STYLE):
        await respond_error(send, 404, "Page not found.")
    elif scope["method"] not in ("GET", "HEAD"):
        await respond_error(
            send, 405, "This is a page. Send webhooks to their own addresses.", (b"allow", b"GET, HEAD")
        )
    elif path == STYLE:
        await respond(send, 200, _STYLE_FILE.read_bytes(), "text/css; charset=utf-8", (b"cache-control", b"no-cache"))
    else:
        shown = recent.newest_first() if is_local(scope) else None
        body = page(_base(scope), list(routes.endpoints.values()), shown, verifier)
        await respond(
            send,
            200,
            body.encode("utf-8", "replace"),
            "text/html; charset=utf-8",
            (b"content-security-policy", _CONTENT_SECURITY_POLICY),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        )


def is_local(scope: Scope) -> bool:
    client = scope.get("client")
    headers = Headers(scope["headers"])
    hosts = header_values(scope["headers"], b"host")
    # No browser uses HTTP/1.0, but proxies that add no headers do.
    if (
        not client
        or len(hosts) != 1
        or scope.get("http_version") == "1.0"
        or any(name in headers for name in _FORWARDED)
    ):
        return False
    return _is_loopback(str(client[0])) and _names_this_machine(hosts[0].decode("latin-1"))


def _names_this_machine(host: str) -> bool:
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    return name.lower() == "localhost" or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def _base(scope: Scope) -> str:
    """The base URL of the receiver. The Host header is not trusted, but only its sender sees the result."""
    host = Headers(scope["headers"]).get("host", "127.0.0.1:7860")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '').rstrip('/')}"


def page(base: str, endpoints: list[Endpoint], recent: list[Entry] | None, verifier: Verifier) -> str:
    """The landing page as HTML. `recent` is None if the visitor may not see deliveries."""
    badge = ("warn", "■ Open to everybody") if verifier.accepts_all else ("ok", "● Authenticated")
    root = "/" + base.split("/", 3)[3] if base.count("/") > 2 else ""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        '<link rel="icon" href="data:,">',
        f'<title>Webhook receiver</title><link rel="stylesheet" href="{escape(root + STYLE)}"></head><body>',
        f'<header>{_LOGO}<h1>Webhook receiver</h1><span class="badge {badge[0]}">{badge[1]}</span></header><main>',
        *(
            ["<p>Set <code>WEBHOOK_SECRET</code> for this receiver, and the same secret on the webhook.</p>"]
            if verifier.accepts_all
            else []
        ),
        "<h2>Addresses</h2>",
        _addresses(base, endpoints),
        *(_instructions(base, endpoints[0], verifier) if endpoints else []),
        "<h2>Recent deliveries</h2>",
        _deliveries(recent),
        "</main></body></html>",
    ]
    return "\n".join(parts)


def _addresses(base: str, endpoints: list[Endpoint]) -> str:
    if not endpoints:
        return (
            '<div class="card"><p class="empty">No webhook is registered. '
            "Put <code>@app.add_webhook</code> above a function.</p></div>"
        )
    rows = [
        f'<tr><td class="primary"><code>{escape(base + endpoint.path)}</code></td>'
        f'<td class="repo">{_describe_handlers(endpoint)}</td></tr>'
        for endpoint in endpoints
    ]
    return _table("Addresses", ["POST to", "calls"], rows)


def _describe_handlers(endpoint: Endpoint) -> str:
    if endpoint.catch_all is not None:
        handler = endpoint.catch_all.handler
        first = (handler.__doc__ or "").strip().partition("\n")[0]
        name = f"<code>{escape(getattr(handler, '__name__', type(handler).__name__))}</code>"
        return f"{name} {escape(first)}"
    kinds = (
        f"<code>{escape(kind)}</code>{f' ({escape(repo_type)})' if repo_type else ''}"
        for kind, repo_type in endpoint.by_kind
    )
    return ", ".join(kinds)


def _instructions(base: str, endpoint: Endpoint, verifier: Verifier) -> list[str]:
    address = shlex.quote(base + endpoint.path)
    create = f"hubgate webhooks create --url {address} --watch user:NAME"
    header = ""
    if verifier.secrets:
        create = f"printenv WEBHOOK_SECRET | {create} --secret-stdin"
        header = '  -H "X-Webhook-Secret: $WEBHOOK_SECRET" \\\n'
    curl = f"curl {address} \\\n  -H 'Content-Type: application/json' \\\n{header}  -d '{json.dumps(_SAMPLE)}'"
    # If only a public key is configured, only the hub can sign.
    can_send_manually = bool(verifier.secrets) or verifier.accepts_all
    secret_note = (
        ["<p>In a terminal that has the receiver's <code>WEBHOOK_SECRET</code>:</p>"] if verifier.secrets else []
    )
    shared = " All kinds registered with <code>@app.on</code> share one address." if endpoint.path == EVENTS else ""
    how = "Create the webhook on the hub, under Settings, Webhooks, or with this command."
    return [
        "<h2>Send a webhook here</h2>",
        f"<p>{how} The hub must be able to reach the address.{shared}</p>",
        *secret_note,
        f"<pre tabindex=0>{escape(create)}</pre>",
        "<h2>Try it</h2>",
        f"<p>Have the hub send a test{', or send one yourself' if can_send_manually else ''}:</p>",
        "<pre tabindex=0>hubgate webhooks test ID</pre>",
        *([f"<pre tabindex=0>{escape(curl)}</pre>"] if can_send_manually else []),
    ]


def _deliveries(recent: list[Entry] | None) -> str:
    if recent is None:
        return '<div class="card"><p class="empty">Shown only to browsers on the receiver\'s own machine.</p></div>'
    if not recent:
        return '<div class="card"><p class="empty">No deliveries yet. They appear here.</p></div>'
    heads = ["when", "outcome", "event", "repo", "delivery"]
    return _table("Recent deliveries", heads, [_row(entry) for entry in recent])


def _row(entry: Entry) -> str:
    at = datetime.fromtimestamp(entry.at, UTC)
    outcome = entry.outcome
    took = f" in {entry.seconds * 1000:.0f} ms" if entry.seconds is not None else ""
    return (
        f'<tr><td class="nowrap"><time datetime="{at.isoformat(timespec="seconds")}">{at:%H:%M:%S} UTC</time></td>'
        f'<td class="nowrap"><span class="badge {outcome.tone}">{outcome.mark} {outcome.word}</span> '
        f'<span class="muted">{entry.status or ""}{took}</span></td>'
        f'<td class="primary">{_bdi(entry.event or "not parsed")}<br>'
        f'<span class="muted">{escape(entry.path)}</span></td>'
        f'<td class="repo">{_bdi(entry.repo) if entry.repo else ""}</td>'
        f'<td class="minor"><code>{escape(entry.delivery_id)}</code></td></tr>'
    )


def _table(label: str, heads: list[str], rows: list[str]) -> str:
    cells = "".join(
        f'<th scope="col"{" class=minor" if head == "delivery" else ""}>{head.capitalize()}</th>' for head in heads
    )
    return (
        f'<div class="card" role="region" tabindex="0" aria-label="{label}"><table><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _bdi(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>"


def check_ui(ui: Any) -> None:
    """Raise TypeError if the value cannot be used as `ui`."""
    if ui is not None and not isinstance(ui, str) and not callable(ui):
        raise TypeError("ui takes a string of HTML, an ASGI app or gradio Blocks.")


def ui_app(ui: Any) -> App:
    """The ASGI app for `ui`, which is a string of HTML, an ASGI app or gradio Blocks."""
    if isinstance(ui, str):
        return _html_app(ui)
    # Blocks are callable too, but not as an ASGI app.
    if _is_blocks(ui):
        return _gradio_app(ui)
    return cast("App", ui)


def _html_app(html: str) -> App:
    body = html.encode("utf-8", "replace")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        if scope["type"] == "lifespan":
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif path_of(scope) != "/":
            await respond_error(send, 404, "Page not found.")
        elif scope["method"] not in ("GET", "HEAD"):
            await respond_error(send, 405, "This is a page. Use GET.", (b"allow", b"GET, HEAD"))
        else:
            await respond(send, 200, body, "text/html; charset=utf-8")

    return app


def _is_blocks(ui: object) -> bool:
    return any(kind.__name__ == "Blocks" and kind.__module__.startswith("gradio") for kind in type(ui).__mro__)


def _gradio_app(blocks: object) -> App:
    gradio = importlib.import_module("gradio")
    host = importlib.import_module("fastapi").FastAPI()
    return cast("App", gradio.mount_gradio_app(host, blocks, path="/"))
