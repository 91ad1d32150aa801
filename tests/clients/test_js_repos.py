"""@huggingface/hub and repos: created, filled, read, listed, changed and deleted (apps/repos.mjs has the checks)."""

import json
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.bed.node import CLIENTS, NODE
from tests.bed.sites import PROGRAMS, Site
from tests.clients.conftest import Shared


def test_every_check_passes_in_node(shared: Shared, tmp_path: Path) -> None:
    assert CLIENTS.exists(), f"{CLIENTS} is missing: run make setup"
    variables = {"HUB": shared.hub.url, "TOKEN": shared.ada, "OTHERS_TOKEN": shared.bob}
    # As text, because a module is resolved relative to its file.
    program = (PROGRAMS / "repos.mjs").read_text()
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", program],
        cwd=CLIENTS,
        env={**variables, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])
    assert not failed, "\n".join(failed.values())


@pytest.mark.browser
def test_every_check_passes_in_a_page(shared: Shared, its_site: Site, page: Page) -> None:
    """Cross-origin, including large files."""
    its_site.run_node("pages.mjs", HUB=shared.hub.url, CLIENT_ID="", SCOPES="", PAGES=str(PROGRAMS))
    page.goto(f"{its_site.url}/huggingface_repos.html#{shared.ada}")
    expect(page.locator("output")).not_to_be_empty()
    said = json.loads(page.locator("output").text_content() or "")
    assert said == {
        "size": 3_000_000,
        "part": [number % 251 for number in range(1_000_000, 1_000_004)],
        "text": "from a page",
        "missing": None,
        "files": 3,
        "commits": 2,
    }
