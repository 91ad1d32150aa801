"""The set-up link that `hubgate serve` prints until an operator exists."""

import re

import httpx
import pytest
from tests.bed.operator import Operator
from tests.bed.people import submit
from tests.bed.processes import HubProcess, hub_process

LINK = re.compile(r"  set up        (\S+)   \(creates the operator; works once\)")


def announced(hub: HubProcess) -> str:
    """What is printed after the first line."""
    assert hub.process.stdout is not None
    lines = []
    while not lines or not lines[-1].startswith("  stop "):
        lines.append(hub.process.stdout.readline().decode())
        assert lines[-1], lines
    return "".join(lines)


def link_of(hub: HubProcess) -> str | None:
    found = LINK.search(announced(hub))
    return found.group(1) if found else None


@pytest.mark.one_engine
def test_serve_prints_what_to_try_next(operator: Operator) -> None:
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        said = announced(hub)
        assert f"\n  docs          {hub.url}/docs\n" in said
        assert f"\n  build apps    {hub.url}/docs/sign-in\n" in said
        assert "large files" not in said


@pytest.mark.one_engine
def test_serve_prints_the_store_of_large_files(operator: Operator) -> None:
    store = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    flags = ("--deliver", "off", "--objects-url", "s3://bucket/hub")
    with hub_process(operator.folder, *flags, **operator.variables, **store) as hub:
        assert "\n  large files   are stored in s3://bucket/hub\n" in announced(hub)


def test_setup_link_works_and_survives_a_restart(operator: Operator) -> None:
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        link = link_of(hub)
        assert link is not None
        assert link.startswith(f"{hub.url}/setup/")
        assert hub.stop() == 0
    with hub_process(
        operator.folder, "--deliver", "off", port=int(hub.url.rpartition(":")[2]), **operator.variables
    ) as hub:
        assert link_of(hub) == link
        path = link.removeprefix(hub.url)
        assert httpx.get(link[:-1] + ("A" if link[-1] != "A" else "B")).status_code == 404
        with hub.client() as client:
            given = {"username": "ada", "email": "ada@example.org", "password": "correct horse battery"}
            assert submit(client, path, **given).status_code == 303
            assert client.get(path).status_code == 404, "once"
        assert hub.stop() == 0
    (ada,) = operator.json("admin", "user", "list")
    assert (ada["name"], ada["operator"]) == ("ada", True)
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        assert link_of(hub) is None
        assert hub.stop() == 0


def test_creating_an_operator_by_command_disables_the_setup_link(operator: Operator) -> None:
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        link = link_of(hub)
        assert link is not None
        operator.json("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified")
        assert httpx.get(link).status_code == 200, "ada operates nothing"
        operator.json("admin", "user", "create", "bob", "--email", "bob@example.org", "--verified", "--operator")
        assert httpx.get(link).status_code == 404
        assert hub.stop() == 0
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        assert link_of(hub) is None
        assert hub.stop() == 0


@pytest.mark.one_engine
def test_setup_link_uses_the_base_url(operator: Operator) -> None:
    with hub_process(
        operator.folder, "--deliver", "off", "--base-url", "https://hub.example", **operator.variables
    ) as hub:
        assert (link_of(hub) or "").startswith("https://hub.example/setup/")
        assert hub.stop() == 0
