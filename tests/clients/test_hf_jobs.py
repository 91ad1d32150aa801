"""The `hf jobs` commands and the library's job functions, through the gateway to a small service."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.running_hub import run_hub
from tests.bed.sites import PROGRAMS
from tests.bed.upstream import run_upstream
from tests.clients.jobs_service import JobsService

FIRST, SECOND = f"{1:024x}", f"{2:024x}"


@dataclass
class HfJobs:
    """The `hf jobs` command as Ada uses it."""

    client: Client
    token: str
    service: JobsService = field(default_factory=JobsService)

    def run(self, *commands: str) -> list[str]:
        """Run commands, given without `hf jobs`, in one process. Returns their output."""
        given = json.dumps([["jobs", *command.split()] for command in commands])
        done = self.client.run("python", str(PROGRAMS / "hf_commands.py"), token=self.token, given=given)
        assert done.returncode == 0, done.stderr
        ran = json.loads(done.stdout.splitlines()[-1])
        for command, (status, out, errors) in zip(commands, ran, strict=True):
            assert status == 0, (command, status, out, errors)
        return [out for _, out, _ in ran]


@pytest.fixture
def hf(sqlite_template: Path, tmp_path: Path) -> Iterator[HfJobs]:
    url, service = SqliteEngine(sqlite_template, tmp_path).fresh_url(), JobsService()
    with (
        run_upstream(service.answer) as upstream,
        run_hub(settings_for(url, tmp_path, jobs_upstream=upstream.url)) as hub,
    ):
        ada = create_user(hub, "ada")
        create_organization(hub, "acme", ada)
        service.hub_url = hub.url
        yield HfJobs(Client("huggingface_hub-2.4", tmp_path, hub.url), create_token(hub, ada), service)


@pytest.mark.parametrize("namespace", ["ada", "acme"])
def test_jobs_run_from_the_command_line(hf: HfJobs, namespace: str) -> None:
    where = f"--namespace {namespace}"
    hardware, started, again, logs, listed, shown, labelled, *_ = hf.run(
        "hardware",
        f"run --detach {where} --name hello python:3.12 echo hello",
        f"rerun --detach {where} {FIRST}",
        f"logs {where} {FIRST}",
        f"ps -a -q {where}",
        f"inspect {where} {FIRST}",
        f"labels {where} {FIRST} --label team=blue",
        f"cancel {where} {FIRST}",
    )
    assert "cpu-basic" in hardware
    assert (FIRST in started, SECOND in again) == (True, True)
    assert ("hello" in logs, "world" in logs) == (True, True)
    assert FIRST in listed, "the first page"
    assert SECOND in listed, "the second page, by a link with the hub's address"
    assert "python:3.12" in shown
    assert FIRST in labelled
    job = hf.service.jobs[FIRST]
    assert (job["owner"]["name"], job["initiator"]["name"]) == (namespace, "ada")
    assert (job["status"]["stage"], job["labels"]["team"]) == ("CANCELED", "blue")


def test_scheduled_jobs_are_managed_from_the_command_line(hf: HfJobs) -> None:
    hf.run(
        "scheduled run @daily python:3.12 echo hello",
        "scheduled ps -a",
        f"scheduled inspect {FIRST}",
        f"scheduled suspend {FIRST}",
        f"scheduled reschedule {FIRST} @hourly",
        f"scheduled trigger {FIRST}",
        "scheduled run @weekly python:3.12 echo bye",
        f"scheduled delete {SECOND}",
    )
    assert [*hf.service.schedules] == [FIRST]
    schedule = hf.service.schedules[FIRST]
    assert (schedule["suspend"], schedule["schedule"], schedule["owner"]["type"]) == (True, "@hourly", "user")
    assert hf.service.jobs[FIRST]["dockerImage"] == "python:3.12"


def test_library_reports_a_missing_job(hf: HfJobs) -> None:
    program = (
        "from huggingface_hub import HfApi\nfrom huggingface_hub.errors import JobNotFoundError\n"
        "try:\n    HfApi().inspect_job(job_id='65f0')\nexcept JobNotFoundError as error:\n    print('missing')\n"
    )
    done = hf.client.run("python", "-c", program, token=hf.token)
    assert done.stdout.splitlines()[-1:] == ["missing"], done.stderr
