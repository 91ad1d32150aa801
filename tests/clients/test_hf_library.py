"""huggingface_hub in Python, old and new versions: everything it does with repos (apps/hf_library.py has the
checks).
"""

import json
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared

EARLY = """
import os
from huggingface_hub import CommitOperationAdd, HfApi
api = HfApi(library_name="datasets", library_version="5.2.0")
api.create_repo("ada/early", repo_type="dataset")
with open("rows.parquet", "wb") as file:
    file.write(b"rows" * 1000)
add = CommitOperationAdd("rows.parquet", "rows.parquet")
api.preupload_lfs_files("ada/early", [add], repo_type="dataset")
os.remove("rows.parquet")
api.create_commit("ada/early", [add], commit_message="Rows", repo_type="dataset")
with open(api.hf_hub_download("ada/early", "rows.parquet", repo_type="dataset"), "rb") as file:
    assert file.read() == b"rows" * 1000
"""


@pytest.mark.parametrize("version", ["0.26", "0.36", "1.28", "2.4"])
def test_every_check_passes(shared: Shared, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url)
    name = "kit-" + version.replace(".", "-")
    program = str(PROGRAMS / "hf_library.py")
    done = client.run("python", program, str(tmp_path / "work"), name, shared.bob, token=shared.ada)
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])
    assert not failed, "\n".join(failed.values())


@pytest.mark.parametrize("xet", ["as installed", "disabled"])
def test_library_that_deletes_files_before_the_commit_works(shared: Shared, tmp_path: Path, xet: str) -> None:
    """The datasets library pushes like this."""
    client = Client("huggingface_hub-2.4", tmp_path, shared.hub.url)
    program = EARLY.replace("early", f"early-{xet[:2]}")
    variables = {"HF_HUB_DISABLE_XET": "1"} if xet == "disabled" else {}
    done = client.run("python", "-c", program, token=shared.ada, **variables)
    assert done.returncode == 0, done.stderr
