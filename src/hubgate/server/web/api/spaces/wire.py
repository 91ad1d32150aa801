"""The state of a Space as JSON, and routes about one Space."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.clock import iso
from hubgate.server.edge.routes import Handler, Route
from hubgate.server.egress.hosted_links import hosted_url
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.spaces.model import HARDWARE, SERVING, Setting, Space, Stage
from hubgate.server.web.repo_routes import COMMON_ANSWERS, repo_endpoint


class Hardware(msgspec.Struct, frozen=True):
    # None while nothing runs.
    current: str | None
    requested: str | None


class Runtime(msgspec.Struct, frozen=True, rename="camel"):
    stage: str
    hardware: Hardware
    # Seconds without a request after which it sleeps; null: never.
    gc_timeout: int | None = None
    storage: str | None = None
    dev_mode: bool = False
    # Why it is in this stage.
    error_message: str | UnsetType = UNSET
    # The commit that runs.
    sha: str | UnsetType = UNSET


class SpaceSecret(msgspec.Struct, frozen=True, rename="camel"):
    description: str | UnsetType
    updated_at: str


class SpaceVariable(msgspec.Struct, frozen=True, rename="camel"):
    value: str
    description: str | UnsetType
    updated_at: str


STORED = Runtime(
    Stage.STOPPED.value,
    Hardware(None, HARDWARE),
    error_message="This Space is stored, not run. Hubs that run Spaces run those whose card says sdk: python or "
    "sdk: gradio.",
)


def runtime_of(space: Space | None) -> Runtime:
    """The state of a Space; None stands for one that is stored and not run."""
    if space is None:
        return STORED
    current = HARDWARE if Stage(space.stage) in SERVING else None
    return Runtime(
        stage=space.stage,
        hardware=Hardware(current, HARDWARE),
        gc_timeout=space.sleep_seconds,
        error_message=space.message or UNSET,
        sha=space.running_sha or UNSET,
    )


def info_fields(repo: Repo, space: Space | None, base_url: str) -> dict[str, Any]:
    """The fields of a Space's info about its app."""
    subdomain = re.sub(r"[^a-z0-9]+", "-", f"{repo.owner_name}-{repo.name}".lower()).strip("-")
    return {"runtime": runtime_of(space), "host": hosted_url(base_url, repo.full_name), "subdomain": subdomain}


def secrets_of(settings: Iterable[Setting]) -> dict[str, SpaceSecret]:
    return {each.key: SpaceSecret(each.description or UNSET, iso(each.updated_at)) for each in settings}


def variables_of(settings: Iterable[Setting]) -> dict[str, SpaceVariable]:
    return {
        each.key: SpaceVariable(each.value or "", each.description or UNSET, iso(each.updated_at)) for each in settings
    }


def space_route(
    repos: Repos,
    method: str,
    tail: str,
    action: Action,
    handler: Handler[Repo],
    summary: str,
    answers: Mapping[int, tuple[str, Any]],
    **more: Any,
) -> Route:
    path = f"/api/spaces/{{namespace}}/{{repo}}{tail}"
    endpoint = repo_endpoint(repos, action, handler)(RepoType.SPACE, path)
    return Route(method, path, endpoint, Surface.API, summary, answers={**COMMON_ANSWERS, **answers}, **more)
