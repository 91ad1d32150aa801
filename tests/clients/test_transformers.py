"""transformers, with only HF_ENDPOINT set: a configuration and a tokenizer are uploaded and read from the hub."""

import json
from pathlib import Path

from tests.bed.clients import Client
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared


def test_configuration_and_tokenizer_are_saved_and_loaded(shared: Shared, tmp_path: Path) -> None:
    client = Client("transformers", tmp_path, shared.hub.url)
    done = client.run("python", str(PROGRAMS / "transformers_repos.py"), shared.bob, token=shared.ada)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["hidden_size"], said["ids"], said["moved"]) == (32, [1, 2], 32)
    for case in ("refused", "missing"):
        assert "is not a local folder and is not a valid model identifier" in said[case], said
