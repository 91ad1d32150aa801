"""One hub for all modules: each module has a user and an app of its own."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.apps import create_app
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.conformance.provider import AFTER_LOGOUT, CALLBACK, Provider

_numbers = itertools.count()


@pytest.fixture(scope="package")
def certified_hub(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    folder = tmp_path_factory.mktemp("conformance")
    with run_hub(settings_for(SqliteEngine(sqlite_template, folder).fresh_url(), folder)) as hub:
        yield hub


@pytest.fixture
def op(request: pytest.FixtureRequest, certified_hub: RunningHub) -> Provider:
    """The OpenID provider, with the response mode of the test's parameter."""
    hub, number = certified_hub, next(_numbers)
    owner, user = create_user(hub, f"owner-{number}"), create_user(hub, f"user-{number}")
    given = {"scopes": ("openid", "profile", "email"), "refresh_tokens": True, "redirect_uris": (CALLBACK,)}
    client = create_app(hub, owner, **given, post_logout_redirect_uris=(AFTER_LOGOUT,))
    return Provider(hub, client, user, getattr(request, "param", "query"))
