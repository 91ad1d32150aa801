"""hf_xet, as existing clients install it: chunks that are stored are not sent again, and downloads use chunks."""

import os
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

MIB = 1024 * 1024
VERSIONS = ["1.28", "2.4"]


def stored_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "xorbs").rglob("*") if file.is_file())


def hf(hub: RunningHub, home: Path, version: str, token: str, *arguments: str) -> None:
    """Run a command in a new home, whose caches are empty."""
    home.mkdir()
    done = Client(f"huggingface_hub-{version}", home, hub.url).run("hf", *arguments, token=token, seconds=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_known_content_is_not_sent_again(sqlite_template: Path, tmp_path: Path, version: str) -> None:
    content = os.urandom(24 * MIB)
    (tmp_path / "weights.bin").write_bytes(content)
    (tmp_path / "edited.bin").write_bytes(content[: 10 * MIB] + b"an edit" + content[10 * MIB :])
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path)) as hub:
        ada, bob = (create_token(hub, create_user(hub, name)) for name in ("ada", "bob"))
        hf(hub, tmp_path / "first", version, ada, "upload", "ada/one", str(tmp_path / "weights.bin"))
        first = stored_bytes(tmp_path)
        assert first > 20 * MIB
        hf(hub, tmp_path / "second", version, ada, "upload", "ada/two", str(tmp_path / "weights.bin"), "other.bin")
        hf(hub, tmp_path / "third", version, ada, "upload", "ada/two", str(tmp_path / "edited.bin"))
        assert stored_bytes(tmp_path) < 1.05 * first
        # A public file is known to everybody.
        hf(hub, tmp_path / "fourth", version, bob, "upload", "bob/copy", str(tmp_path / "weights.bin"))
        assert stored_bytes(tmp_path) < 1.05 * first
        hf(hub, tmp_path / "fifth", version, bob, "download", "ada/two", "--local-dir", "down")
        for name, wanted in (("other.bin", "weights.bin"), ("edited.bin", "edited.bin")):
            assert (tmp_path / "fifth" / "down" / name).read_bytes() == (tmp_path / wanted).read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_private_content_of_others_is_sent(sqlite_template: Path, tmp_path: Path, version: str) -> None:
    (tmp_path / "weights.bin").write_bytes(os.urandom(12 * MIB))
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path)) as hub:
        ada, bob = (create_token(hub, create_user(hub, name)) for name in ("ada", "bob"))
        for number, (token, repo) in enumerate(((ada, "ada/secret"), (bob, "bob/secret")), 1):
            upload = ("upload", repo, str(tmp_path / "weights.bin"), "--private")
            hf(hub, tmp_path / repo.replace("/", "-"), version, token, *upload)
            assert stored_bytes(tmp_path) > number * 11 * MIB
