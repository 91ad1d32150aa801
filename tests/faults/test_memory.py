"""Large files pass through the hub without being loaded into memory: gigabytes with the full counts, otherwise less."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine
from tests.bed.git import repo_url, run_git
from tests.bed.git_lfs import with_git_lfs
from tests.bed.memory import watch_memory
from tests.bed.people import PASSWORD, Page, submit
from tests.bed.plugin import SMALL_FAULT_COUNT
from tests.bed.processes import HubProcess, hub_process
from tests.faults.conftest import create_store
from tests.faults.pushes import create_repo

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
MAX_MEMORY = 200 * MIB
# A single copy of the file in memory would exceed the limit.
SMALL, FULL = 160 * MIB, 2048 * MIB
SMALL_AS_CHUNKS, FULL_AS_CHUNKS = 300 * MIB, 5120 * MIB


@pytest.fixture
def size(fault_count: int) -> int:
    return SMALL if fault_count <= SMALL_FAULT_COUNT else FULL


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[HubProcess, str]]:
    """A hub, and a token of the owner of ada/tiny. The folder is deleted: pytest would retain those of recent runs."""
    (tmp_path / "hub").mkdir()
    store = create_store(SqliteEngine(sqlite_template, tmp_path / "hub").fresh_url(), tmp_path / "hub")
    token = create_repo(store).token
    with hub_process(store.folder, *store.flags, new=True) as process:
        yield process, token
    shutil.rmtree(tmp_path)


def write_file(path: Path, size: int) -> str:
    """Write a file of this size; its SHA-256."""
    block, digest = os.urandom(MIB), hashlib.sha256()
    with path.open("wb") as file:
        for number in range(size // MIB):
            part = number.to_bytes(8, "big") + block[8:]
            file.write(part)
            digest.update(part)
    return digest.hexdigest()


def write_random_file(path: Path, size: int) -> str:
    """Write a file without repetitions; its SHA-256."""
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for _ in range(size // MIB):
            part = os.urandom(MIB)
            file.write(part)
            digest.update(part)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_upload_by_huggingface_hub_stays_out_of_memory(hub: tuple[HubProcess, str], tmp_path: Path, size: int) -> None:
    process, token = hub
    expected = write_file(tmp_path / "large.bin", size)
    client = Client("huggingface_hub-2.4", tmp_path, process.url)
    with watch_memory(process.process.pid) as peaks:
        for arguments in (("upload", "ada/tiny", "large.bin"), ("download", "ada/tiny", "--local-dir", "down")):
            done = client.run("hf", *arguments, token=token, seconds=600, HF_HUB_DISABLE_XET="1")
            assert done.returncode == 0, done.stderr
    assert sha256(tmp_path / "down/large.bin") == expected
    print(peaks)
    assert peaks.highest < MAX_MEMORY, peaks


def test_upload_of_chunks_stays_out_of_memory(hub: tuple[HubProcess, str], tmp_path: Path, size: int) -> None:
    """Chunks are sent by the client's default, and read again by it and by a plain HTTP client."""
    process, token = hub
    expected = write_random_file(tmp_path / "large.bin", SMALL_AS_CHUNKS if size == SMALL else FULL_AS_CHUNKS)
    client = Client("huggingface_hub-2.4", tmp_path, process.url)
    with watch_memory(process.process.pid) as peaks:
        done = client.run("hf", "upload", "ada/tiny", "large.bin", token=token, seconds=900)
        assert done.returncode == 0, done.stderr
        # Room for the next copy.
        (tmp_path / "large.bin").unlink()
        done = client.run("hf", "download", "ada/tiny", "--local-dir", "down", token=token, seconds=900)
        assert done.returncode == 0, done.stderr
        assert sha256(tmp_path / "down/large.bin") == expected
        digest = hashlib.sha256()
        with process.client() as anyone, anyone.stream("GET", "/ada/tiny/resolve/main/large.bin") as response:
            for part in response.iter_bytes():
                digest.update(part)
    assert digest.hexdigest() == expected
    assert any((tmp_path / "hub/data/xorbs").rglob("*"))
    print(peaks)
    assert peaks.highest < MAX_MEMORY, peaks


def test_large_file_inside_a_commit_stays_out_of_memory(hub: tuple[HubProcess, str], tmp_path: Path) -> None:
    """The newest clients send a file that is small enough as base64 inside JSON."""
    process, token = hub
    expected = {"one.bin": write_file(tmp_path / "one.bin", 95 * MIB)}
    client = Client("huggingface_hub-2.4", tmp_path, process.url)
    with watch_memory(process.process.pid) as peaks:
        for name in expected:
            done = client.run("hf", "upload", "ada/tiny", name, token=token, seconds=600)
            assert done.returncode == 0, done.stderr
        done = client.run("hf", "download", "ada/tiny", "--local-dir", "down", token=token, seconds=600)
        assert done.returncode == 0, done.stderr
    assert {name: sha256(tmp_path / "down" / name) for name in expected} == expected
    print(peaks)
    assert peaks.highest < MAX_MEMORY, peaks


def test_upload_in_a_form_stays_out_of_memory(hub: tuple[HubProcess, str], tmp_path: Path) -> None:
    process, _ = hub
    names = ("one.bin", "two.bin")
    expected = {name: write_file(tmp_path / name, 95 * MIB) for name in names}
    address = "/ada/tiny/upload/main"
    with process.client() as browser, ExitStack() as stack, watch_memory(process.process.pid) as peaks:
        signed_in = submit(browser, "/login", username="ada", password=PASSWORD)
        assert signed_in.status_code == 303, signed_in.text
        hidden = Page(browser.get(address)).hidden(address)
        files = [("files", (name, stack.enter_context((tmp_path / name).open("rb")))) for name in names]
        sent = browser.post(address, data=hidden, files=files, timeout=120)
        assert sent.status_code == 303, sent.text
        for name in names:
            digest = hashlib.sha256()
            with browser.stream("GET", f"/ada/tiny/resolve/main/{name}", follow_redirects=True) as response:
                for part in response.iter_bytes():
                    digest.update(part)
            assert digest.hexdigest() == expected[name]
    print(peaks)
    assert peaks.highest < 130 * MIB, peaks


def test_upload_by_git_lfs_stays_out_of_memory(hub: tuple[HubProcess, str], tmp_path: Path, size: int) -> None:
    process, token = hub
    variables = with_git_lfs(tmp_path)
    url = repo_url(process.url, "ada/tiny", token)

    def git(*arguments: str) -> None:
        done = run_git(tmp_path, *arguments, seconds=600, **variables)
        assert done.returncode == 0, (arguments, done.stderr)

    with watch_memory(process.process.pid) as peaks:
        git("clone", "-q", url, "up")
        expected = write_file(tmp_path / "up/large.bin", size)
        git("-C", "up", "add", "large.bin")
        git("-C", "up", "commit", "-q", "-m", "A large file")
        git("-C", "up", "push", "-q", "origin", "main")
        git("clone", "-q", url, "down")
    assert sha256(tmp_path / "down/large.bin") == expected
    print(peaks)
    assert peaks.highest < MAX_MEMORY, peaks


def test_large_push_stays_out_of_memory(hub: tuple[HubProcess, str], tmp_path: Path) -> None:
    """Large files are stored in git itself; the hub never has more than a part of them in memory."""
    process, token = hub
    url = repo_url(process.url, "ada/tiny", token)

    def git(*arguments: str) -> None:
        done = run_git(tmp_path, *arguments, seconds=600)
        assert done.returncode == 0, (arguments, done.stderr)

    with watch_memory(process.process.pid) as peaks:
        git("clone", "-q", url, "up")
        expected = {name: write_file(tmp_path / "up" / name, 60 * MIB) for name in ("one.dat", "two.dat")}
        quick = ("-C", "up", "-c", "core.compression=0")
        git(*quick, "add", ".")
        git(*quick, "commit", "-q", "-m", "Two large files")
        git(*quick, "push", "-q", "origin", "main")
        git("clone", "-q", url, "down")
    assert {name: sha256(tmp_path / "down" / name) for name in expected} == expected
    print(peaks)
    assert peaks.highest < 110 * MIB, peaks
