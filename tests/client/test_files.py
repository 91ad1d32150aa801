"""Uploads and downloads against a running hub."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.bed.people import create_token, create_user
from tests.bed.processes import environment
from tests.bed.running_hub import RunningHub

from hubgate import AsyncHub, Hub
from hubgate.client import errors

Make = Callable[..., Hub]
BINARY = bytes(range(256)) * 5_000


def test_files_can_be_uploaded_and_downloaded(as_user: Make, tmp_path: Path) -> None:
    ada = as_user("ada")
    ada.create_repo("tiny")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.bin").write_bytes(BINARY)
    heard: list[tuple[str, int, int]] = []
    files: dict[str, Path | bytes] = {
        "config.json": tmp_path / "config.json",
        "deep/er/ü %?#.txt": b"odd name",
        "empty": b"",
        "model.bin": tmp_path / "model.bin",
        "same.bin": BINARY,
    }
    done = ada.upload("ada/tiny", files, message="First", progress=lambda *told: heard.append(told))
    assert done.commit is not None
    assert sorted(done.sent) == sorted(files)
    assert ("model.bin", len(BINARY), len(BINARY)) in heard or ("same.bin", len(BINARY), len(BINARY)) in heard
    entries = {entry.path: entry for entry in ada.list_files("ada/tiny") if entry.type == "file"}
    assert set(entries) == {*files, ".gitattributes"}
    large = entries["model.bin"].lfs
    assert large is not None
    assert large.oid == hashlib.sha256(BINARY).hexdigest()

    again = ada.upload("ada/tiny", files)
    assert (again.commit, sorted(again.unchanged)) == (None, sorted(files))

    place = ada.download_all("ada/tiny", tmp_path / "copy", revision=done.commit.commit_oid)
    for path, content in files.items():
        given = content if isinstance(content, bytes) else content.read_bytes()
        assert (place / path).read_bytes() == given
    assert not list(place.rglob("*.part"))


async def test_files_can_be_uploaded_and_downloaded_in_an_event_loop(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    token = create_token(sqlite_hub, create_user(sqlite_hub, "ada"))
    async with AsyncHub(sqlite_hub.url, token) as hub:
        await hub.create_repo("rows", type="dataset")
        (tmp_path / "a.parquet").write_bytes(BINARY)
        await hub.upload("ada/rows", {"a.parquet": tmp_path / "a.parquet", "b.txt": b"text"}, type="dataset")
        place = await hub.download("ada/rows", "a.parquet", tmp_path / "b", type="dataset")
        assert place.read_bytes() == BINARY
        await hub.delete_files("ada/rows", ["b.txt"], type="dataset")
        with pytest.raises(errors.EntryNotFound):
            await hub.download("ada/rows", "b.txt", tmp_path / "c", type="dataset")
    assert not (tmp_path / "c").exists()


@pytest.mark.limits(part_bytes=300_000, multipart_threshold=600_000)
def test_large_file_is_uploaded_in_parts(as_user: Make, tmp_path: Path) -> None:
    ada = as_user("ada")
    ada.create_repo("tiny")
    heard: list[int] = []
    (tmp_path / "m.bin").write_bytes(BINARY)
    ada.upload("ada/tiny", {"m.bin": tmp_path / "m.bin"}, progress=lambda _, done, __: heard.append(done))
    assert heard == [300_000, 600_000, 900_000, 1_200_000, len(BINARY)]
    assert ada.download("ada/tiny", "m.bin", tmp_path / "back").read_bytes() == BINARY


def test_interrupted_download_is_resumed(as_user: Make, sqlite_hub: RunningHub, tmp_path: Path) -> None:
    ada = as_user("ada")
    ada.create_repo("tiny")
    ada.upload("ada/tiny", {"m.bin": BINARY})
    name = hashlib.sha256(BINARY).hexdigest()
    part = tmp_path / f".{name[:40]}.part"
    part.write_bytes(BINARY[:1_000_000])
    heard: list[int] = []
    ada.download("ada/tiny", "m.bin", tmp_path / "m.bin", progress=lambda _, done, __: heard.append(done))
    assert (tmp_path / "m.bin").read_bytes() == BINARY
    assert heard[0] > 1_000_000
    assert not part.exists()
    # What is whole is not fetched again.
    before = (tmp_path / "m.bin").stat().st_mtime_ns
    ada.download("ada/tiny", "m.bin", tmp_path / "m.bin")
    assert (tmp_path / "m.bin").stat().st_mtime_ns == before


def test_partial_file_with_wrong_content_is_deleted(as_user: Make, tmp_path: Path) -> None:
    ada = as_user("ada")
    ada.create_repo("tiny")
    ada.upload("ada/tiny", {"m.bin": BINARY})
    part = tmp_path / f".{hashlib.sha256(BINARY).hexdigest()[:40]}.part"
    part.write_bytes(b"x" * 500_000)
    with pytest.raises(errors.WrongHash):
        ada.download("ada/tiny", "m.bin", tmp_path / "m.bin")
    assert list(tmp_path.glob("*m.bin")) == []
    assert not part.exists()
    assert ada.download("ada/tiny", "m.bin", tmp_path / "m.bin").read_bytes() == BINARY


def test_upload_on_stale_parent_is_rejected(as_user: Make) -> None:
    ada = as_user("ada")
    ada.create_repo("tiny")
    old = ada.repo_info("ada/tiny").sha
    ada.upload("ada/tiny", {"a": b"1"})
    with pytest.raises(errors.Stale):
        ada.upload("ada/tiny", {"a": b"2"}, parent=old)


def test_upload_can_create_a_pull_request(as_user: Make) -> None:
    ada, bob = as_user("ada"), as_user("bob")
    ada.create_repo("tiny")
    done = bob.upload("ada/tiny", {"a": b"1"}, create_pr=True)
    assert done.commit is not None
    assert (done.commit.pull_request_url or "").endswith("/ada/tiny/discussions/1")
    with pytest.raises(errors.Forbidden):
        bob.upload("ada/tiny", {"a": b"1"})


@pytest.mark.parametrize("path", ["../up", "/absolute", "a//b", "a/./b", ""])
def test_path_outside_the_repo_is_not_sent(path: str, as_user: Make) -> None:
    with pytest.raises(ValueError, match="not a path inside"):
        as_user("ada").upload("ada/tiny", {path: b"x"})


def test_upload_fails_if_the_file_changes(as_user: Make, tmp_path: Path) -> None:
    ada = as_user("ada")
    ada.create_repo("tiny")
    file = tmp_path / "log.txt"
    file.write_bytes(b"x" * 3_000_000)

    def shorten(_: str, done: int, __: int) -> None:
        os.truncate(file, done)

    with pytest.raises(errors.FileChanged, match="shorter"):
        ada.upload("ada/tiny", {"log.txt": file}, progress=shorten)
    assert [entry.path for entry in ada.list_files("ada/tiny")] == [".gitattributes"]


SCRIPT = """
import resource, sys
from pathlib import Path
from hubgate import Hub

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

folder = Path(sys.argv[3])
with Hub(sys.argv[1], sys.argv[2]) as hub:
    hub.create_repo("big")
    hub.upload("ada/big", {"small.bin": b"x", "small.txt": b"y"})
    before = peak()
    hub.upload("ada/big", {"a.bin": folder / "big", "a.txt": folder / "text"})
    hub.download_all("ada/big", folder / "copy")
print(peak() - before)
"""


def test_files_are_streamed_not_loaded_into_memory(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    size = 64 << 20
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)
    (tmp_path / "text").write_bytes(b"line\n" * 1_800_000)
    token = create_token(sqlite_hub, create_user(sqlite_hub, "ada"))
    command = [sys.executable, "-c", SCRIPT, sqlite_hub.url, token, str(tmp_path)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 16 << 20
    assert (tmp_path / "copy" / "a.bin").stat().st_size == size
