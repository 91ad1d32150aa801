"""Collections with huggingface_hub, the `hf` command and @huggingface/hub."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.node import CLIENTS, NODE
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared


@pytest.mark.parametrize("version", ["0.36", "1.28", "2.4"])
def test_every_call_of_the_python_library_works(shared: Shared, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url)
    program, name = str(PROGRAMS / "hf_collections.py"), "c" + version.replace(".", "")
    done = client.run("python", program, name, shared.bob, token=shared.ada)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


def test_commands_create_fill_and_list_a_collection(shared: Shared, tmp_path: Path) -> None:
    client = Client("huggingface_hub-2.4", tmp_path, shared.hub.url)

    def run(*arguments: str) -> str:
        done = client.run("hf", *arguments, token=shared.ada)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("repos", "create", "ada/by-command")
    run("collections", "create", "By command", "--namespace", "acme", "--description", "Listed")
    (found,) = json.loads(run("collections", "ls", "--owner", "acme", "--format", "json"))
    slug = found["slug"]
    run("collections", "add-item", slug, "ada/by-command", "model", "--note", "Useful")
    run("collections", "update", slug, "--theme", "green")
    shown = json.loads(run("collections", "info", slug, "--format", "json"))
    assert (shown["theme"], shown["items"][0]["note"]) == ("green", "Useful")
    run("collections", "delete", slug)
    assert json.loads(run("collections", "ls", "--owner", "acme", "--format", "json")) == []


def test_calls_of_the_javascript_client_work(shared: Shared, tmp_path: Path) -> None:
    assert CLIENTS.exists(), f"{CLIENTS} is missing: run make setup"
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", (PROGRAMS / "collections.mjs").read_text()],
        cwd=CLIENTS,
        env={
            "HUB": shared.hub.url,
            "TOKEN": shared.ada,
            "OTHERS_TOKEN": shared.bob,
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"
