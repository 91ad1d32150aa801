"""Deliveries to forbidden or misbehaving addresses, with scripted name resolution and short deadlines."""

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import create_webhook, deliver_due
from tests.egress.farend import Names

from hubgate.server.egress.client import Egress
from hubgate.server.resources import Hub

LOOPBACK = ("127.0.0.0/8",)
# An attempt that fails takes this long.
DEADLINE = 0.5
# For attempts that succeed.
LONG = 60.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(frozen=True)
class EgressHub:
    """A hub with one user, ada. Each repo she creates is delivered to all of her webhooks."""

    hub: RunningHub
    names: Names
    ada: httpx.Client

    def watch(self, *urls: str, **more: Any) -> list[dict[str, Any]]:
        return [create_webhook(self.ada, url, "user:ada", **more) for url in urls]

    def change(self, name: str = "tiny") -> None:
        create_repo(self.ada, name)

    def last_delivery(self, webhook: dict[str, Any]) -> dict[str, Any]:
        """The last delivery of a webhook, in full."""
        logs = f"/api/settings/webhooks/{webhook['id']}/logs"
        last = self.ada.get(logs).json()[0]
        found: dict[str, Any] = self.ada.get(f"{logs}/{last['id']}").json()
        return found


@contextmanager
def run_egress_hub(
    template: Path,
    folder: Path,
    names: dict[str, list[Sequence[str]]] | None = None,
    allowed: Sequence[str] = LOOPBACK,
    tls: ssl.SSLContext | None = None,
    **settings: str,
) -> Iterator[EgressHub]:
    """Run a hub with these egress rules, on SQLite because the rules do not depend on the engine. Without `names` the
    system resolver is used.
    """
    resolve = Names(names or {})
    networks = [ip_network(text) for text in allowed]
    # Every delivery resolves its name again, also when a connection could be reused.
    egress = Egress(networks, resolve=None if names is None else resolve, tls=tls, reuse_seconds=0)
    url = SqliteEngine(template, folder).fresh_url()
    with run_hub(settings_for(url, folder, webhooks_per_owner="500", **settings), egress) as hub:
        headers = {"authorization": f"Bearer {create_token(hub, create_user(hub, 'ada'))}"}
        with hub.client(headers=headers, trust_env=False) as ada:
            yield EgressHub(hub, resolve, ada)


def deliver(hub: RunningHub, seconds: float = DEADLINE) -> int:
    """Fan out and send all due deliveries with a deadline of `seconds`; the number of attempts."""

    async def work(opened: Hub) -> int:
        webhooks = replace(opened.webhooks, pace=replace(opened.webhooks.pace, deadline_seconds=seconds))
        return await deliver_due(webhooks, silence_seconds=None)

    return hub.call(work)
