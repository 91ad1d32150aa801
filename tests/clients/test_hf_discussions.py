"""huggingface_hub in Python and its `hf` command: discussions and pull requests (apps/hf_discussions.py has the
checks).
"""

import json
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared

VERSIONS = ("1.28", "2.4")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_check_passes(shared: Shared, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url)
    name = "talk-" + version.replace(".", "-")
    done = client.run("python", str(PROGRAMS / "hf_discussions.py"), name, shared.bob, token=shared.ada)
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])
    assert not failed, "\n".join(failed.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_command_works(shared: Shared, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url)
    repo = "ada/said-" + version.replace(".", "-")
    (tmp_path / "idea").mkdir()
    (tmp_path / "idea/idea.txt").write_text("an idea\n")
    commands = [
        ["repos", "create", repo],
        ["discussions", "create", repo, "--title", "A question", "--body", "Which data?"],
        ["discussions", "comment", repo, "1", "--body", "The first one."],
        ["discussions", "rename", repo, "1", "Answered"],
        ["discussions", "close", repo, "1", "--comment", "Done", "--yes"],
        ["discussions", "reopen", repo, "1", "--yes"],
        ["upload", repo, str(tmp_path / "idea"), ".", "--create-pr"],
        ["discussions", "diff", repo, "2"],
        # `hf upload --create-pr` leaves a draft.
        ["discussions", "reopen", repo, "2", "--yes"],
        ["discussions", "merge", repo, "2", "--yes"],
        ["discussions", "info", repo, "1"],
        ["discussions", "list", repo, "--status", "all", "--kind", "all", "--format", "json"],
    ]
    program = str(PROGRAMS / "hf_commands.py")
    done = client.run("python", program, token=shared.ada, given=json.dumps(commands))
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    for command, (status, out, errors) in zip(commands, results, strict=True):
        assert status == 0, (command, status, out, errors)
    assert "+an idea" in results[7][1]
    listed = json.loads(results[11][1])
    assert [(one["num"], one["title"], one["status"]) for one in listed][1] == (1, "Answered", "open")
    assert (listed[0]["num"], listed[0]["status"]) == (2, "merged")
