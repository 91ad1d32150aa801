"""The hub as an OAuth provider, compared with oidc-provider and django-oauth-toolkit: each server on one core."""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import httpx
from tests.bed.processes import HubProcess, children_of

from bench import provider_peers
from bench.cores import on_measured_core, on_other_cores
from bench.exchange import Exchanger, create_exchanger
from bench.harness import Table, run_interleaved, table, warm_up
from bench.http_requests import CONNECTIONS, Contestant, Server, bare_process, medians
from bench.load import ONCE, REPEAT, ROTATE, Request
from bench.oauth import CODES_PER_SECOND, STORED_PAIRS
from bench.operations import POSTGRES, SQLITE, TURN, Engine, Operation, Subject, request_source, run_engine
from bench.provider_peers import DjangoProvider, OidcProvider
from bench.sign_ins import SignIns, create_sign_ins
from bench.workspace import Workspace
from hubgate.server.resources import Hub

ENGINES = (SQLITE, POSTGRES)
# Names that say what a provider does: the hub stores everything durably and audits.
OIDC, DJANGO = "oidc-provider, in memory", "django-oauth-toolkit, durable"

T = TypeVar("T")
Contestants = dict[str, Contestant]


@dataclass(frozen=True)
class Fixtures:
    sign_ins: SignIns
    exchanger: Exchanger


_Prepare = Callable[[Fixtures], Coroutine[Any, Any, list[Request]]]


@dataclass(frozen=True)
class _Servers:
    hubs: Mapping[str, Engine[Fixtures]]
    oidc: OidcProvider
    django: DjangoProvider


def measure(workspace: Workspace) -> Iterator[Table]:
    folder = workspace.subfolder("providers-peers")
    key = provider_peers.new_key()
    tokens = provider_peers.create_django_database(folder)
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        subject = Subject("providers", "OAuth providers", (), partial(_fixtures, workspace))
        hubs = {name: run_engine(workspace, stack, runner, subject, name, pin=on_measured_core) for name in ENGINES}
        oidc = stack.enter_context(provider_peers.oidc_provider_process(folder, key))
        django = DjangoProvider(stack.enter_context(provider_peers.django_process(folder)), tokens)
        tables = _operations(workspace, stack, runner, _Servers(hubs, oidc, django))
        yield from _measure_requests(workspace, tables)
        hub_servers = {f"hub, {name}": engine.server for name, engine in hubs.items()}
        memory = {
            name: _memory(server) for name, server in {**hub_servers, OIDC: oidc.server, DJANGO: django.server}.items()
        }
    starts = {
        f"hub, {name}": partial(_seconds_until_ready, engine.start, _hub_address) for name, engine in hubs.items()
    }
    starts[OIDC] = partial(
        _seconds_until_ready,
        partial(provider_peers.oidc_provider_process, folder, key),
        lambda running: _address(running.server, "/.well-known/openid-configuration"),
    )
    starts[DJANGO] = partial(
        _seconds_until_ready,
        partial(provider_peers.django_process, folder),
        lambda server: _address(server, provider_peers.DJANGO_CONFIGURATION),
    )
    samples = {
        name: [1000 * seconds for seconds in taken]
        for name, taken in run_interleaved(warm_up(starts), workspace.budget.rounds).items()
    }
    yield table("From start to the first response", "ms", OIDC, samples, memory)


async def _fixtures(workspace: Workspace, hub: Hub) -> Fixtures:
    sign_ins = await create_sign_ins(hub, id_token_signed_response_alg="ES256")
    await sign_ins.fill(int(STORED_PAIRS * workspace.budget.scale))
    return Fixtures(sign_ins, await create_exchanger(hub, stored=0))


def _operations(
    workspace: Workspace,
    stack: contextlib.ExitStack,
    runner: asyncio.Runner,
    servers: _Servers,
) -> dict[str, Contestants]:
    """The contestants of each table; the first is the baseline."""
    oidc, django = servers.oidc, servers.django
    codes = int(CODES_PER_SECOND * workspace.budget.seconds(TURN))

    def peer(server: Server, requests: Callable[[], list[Request]], mode: str = REPEAT) -> Contestant:
        # Repeatable requests are created once.
        created = partial(list, requests()) if mode == REPEAT else requests
        return Contestant(server, created, mode, pin=on_other_cores)

    def hub(what: str, operation: Operation[Fixtures]) -> Contestants:
        return {
            f"hub, {what}, {name}": Contestant(
                engine.server, request_source(runner, operation, engine.fixtures), operation.mode, pin=on_other_cores
            )
            for name, engine in servers.hubs.items()
        }

    def operation(name: str, prepare: _Prepare, mode: str = REPEAT) -> Operation[Fixtures]:
        return Operation(name, mode, prepare)

    whoami = hub("who am I", operation("whoami", lambda on: on.sign_ins.whoamis()))
    sample = next(iter(whoami.values()))
    bare = stack.enter_context(bare_process({sample.requests()[0].path: sample.response()}, pin=on_measured_core))
    return {
        "Userinfo, and who am I": {
            f"{OIDC}, userinfo": peer(oidc.server, oidc.userinfos),
            f"{DJANGO}, userinfo": peer(django.server, django.userinfos),
            **hub("userinfo", operation("userinfo", lambda on: on.sign_ins.userinfos())),
            **whoami,
            "bare handler of who am I": replace(sample, server=bare),
        },
        "Introspection": {
            OIDC: peer(oidc.server, oidc.introspections),
            DJANGO: peer(django.server, django.introspections),
            **hub("introspection", operation("introspection", lambda on: on.sign_ins.introspections())),
        },
        "A token without a sign-in": {
            f"{OIDC}, client credentials": peer(oidc.server, oidc.client_credentials),
            f"{DJANGO}, client credentials": peer(django.server, django.client_credentials),
            **hub("exchange for a user, audited", operation("exchange", lambda on: on.exchanger.exchanges())),
        },
        "Device start": {
            OIDC: peer(oidc.server, oidc.device_starts),
            DJANGO: peer(django.server, django.device_starts),
            **hub("device start", operation("device", lambda on: on.exchanger.device_requests())),
        },
        "Code redeemed, ID token with ES256": {
            OIDC: peer(oidc.server, partial(oidc.redemptions, codes), ONCE),
            **hub("code", operation("code", lambda on: on.sign_ins.redemptions(codes), ONCE)),
        },
        "Refresh, ID token with ES256": {
            OIDC: peer(oidc.server, oidc.refreshes, ROTATE),
            **hub("refresh", operation("refresh", lambda on: on.sign_ins.refreshes(), ROTATE)),
        },
    }


def _measure_requests(workspace: Workspace, tables: Mapping[str, Contestants]) -> Iterator[Table]:
    seconds = workspace.budget.seconds(TURN)
    for title, contestants in tables.items():
        loads = {name: partial(contestant.load, seconds) for name, contestant in contestants.items()}
        turns = run_interleaved(warm_up(loads), workspace.budget.rounds)
        rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
        more = {name: medians(taken) for name, taken in turns.items()}
        yield table(f"{title}, {CONNECTIONS} connections", "requests/s", next(iter(contestants)), rates, more)


def _memory(server: Server) -> dict[str, float]:
    """Proportional memory in MiB, after the load: of the process that answers requests, and of all processes."""
    sizes = {pid: _proportional_mib(pid) for pid in (server.pid, *children_of(server.pid))}
    answering = [pid for pid in sizes if Path(f"/proc/{pid}/comm").read_text() == "hubgate-web\n"]
    return {"web MiB": sizes[answering[0]] if answering else max(sizes.values()), "all MiB": sum(sizes.values())}


def _proportional_mib(pid: int) -> float:
    found = re.search(r"^Pss: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _seconds_until_ready(
    start: Callable[[], contextlib.AbstractContextManager[T]], address: Callable[[T], str]
) -> float:
    started = time.perf_counter()
    with start() as running:
        httpx.get(address(running)).raise_for_status()
        return time.perf_counter() - started


def _hub_address(hub: HubProcess) -> str:
    return f"{hub.url}/.well-known/openid-configuration"


def _address(server: Server, path: str) -> str:
    return f"http://127.0.0.1:{server.port}{path}"
