"""The files in deploy/: their settings exist and are valid, and they agree with the hub and with each other."""

import os
import re
from pathlib import Path

import pytest
import yaml
from tests.bed.processes import ROOT

from hubgate.cli.commands import COMMANDS
from hubgate.server import settings

DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def load(given: dict[str, str]) -> settings.Settings:
    """With no other settings: not those of the developer's hubgate.toml."""
    return settings.load({}, given, Path(os.devnull))


def example_settings(text: str) -> dict[str, str]:
    """All settings of an environment file, those in comments too."""
    return dict(re.findall(r"^#?(HUBGATE_\w+)=(.*)$", text, re.MULTILINE))


def test_environment_file_has_valid_settings() -> None:
    text = (DEPLOY / "hubgate.env.example").read_text()
    given = example_settings(text)
    given["HUBGATE_SECRET_KEY"] = "k" * 48
    assert len(given) > 10
    loaded = load(given)
    assert loaded.base_url == "https://hub.example"
    active = dict(line.split("=", 1) for line in text.splitlines() if line.startswith("HUBGATE_"))
    assert load(active).signup == "invite"


def test_containers_have_valid_settings() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    hub = compose["services"]["hub"]
    # ${NAME:?message} and ${NAME:-default}
    given = {
        name: re.sub(r"\$\{\w+:\?.*\}", "https://hub.example", re.sub(r"\$\{\w+:-(.*?)\}", r"\1", value))
        for name, value in hub["environment"].items()
    }
    image = dict(re.findall(r"(HUBGATE_\w+)=(\S+)", (DEPLOY / "Containerfile").read_text()))
    loaded = load({**image, **given})
    assert (str(loaded.data_dir), loaded.base_url, loaded.workers) == ("/data", "https://hub.example", 2)
    network = compose["networks"]["hub"]["ipam"]["config"][0]
    assert given["HUBGATE_TRUSTED_PROXIES"] == f"{network['gateway']}/32"
    assert hub["read_only"] is True
    assert {secret["file"] for secret in compose["secrets"].values()} == set(written_secrets())


def written_secrets() -> list[str]:
    """The files that the commands in the documentation write."""
    page = (ROOT / "docs/deployment.md").read_text()
    return [f"./{name}" for name in re.findall(r"> (secrets/\S+)", page)]


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml"])
def test_health_checks_use_the_probe(name: str) -> None:
    found = re.findall(r"urlopen\('http://127\.0\.0\.1:(\d+)(/\w+)'", (DEPLOY / name).read_text())
    assert found == [(str(load({}).port), "/readyz")]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_run_commands_that_exist(unit: Path) -> None:
    (command,) = re.findall(r"^ExecStart=/opt/hubgate/bin/hubgate (\w+)$", unit.read_text(), re.MULTILINE)
    assert command in {known.name for known in COMMANDS}


def test_units_have_the_same_restrictions() -> None:
    def restrictions(unit: Path) -> set[str]:
        lines = unit.read_text().partition("\nCapabilityBoundingSet=")[2].splitlines()
        return {line for line in lines if "=" in line}

    hub, deliver = (restrictions(DEPLOY / f"{name}.service") for name in ("hubgate", "hubgate-deliver"))
    assert len(hub) > 20
    assert hub == deliver
