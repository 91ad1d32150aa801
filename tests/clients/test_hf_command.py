"""The `hf` command of huggingface_hub: a folder is uploaded and downloaded unchanged, and every command about repos
works.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_token, create_user
from tests.bed.running_hub import run_hub
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared

VERSIONS = ("0.36", "1.28", "2.4")
MIB = 1024 * 1024
CARD = "---\nlicense: mit\ntags:\n- tiny\n---\n# Tiny\n"
NO_XET = {"HF_HUB_DISABLE_XET": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A README, an empty file, a file in a folder and 20 MB of weights."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "README.md").write_text(CARD)
    (folder / "empty.txt").write_text("")
    (folder / "sub").mkdir()
    (folder / "sub/config.json").write_text('{"a": 1}\n')
    (folder / "model.safetensors").write_bytes(os.urandom(MIB) * 20)
    return folder


def hashes(folder: Path) -> dict[str, str]:
    """Hashes of its files, except those that the hub or the client adds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and ".cache" not in path.parts and path.name != ".gitattributes"
    }


@dataclass(frozen=True)
class Command:
    client: Client
    token: str

    def hf(self, *arguments: str, **more: str) -> str:
        """Run in a separate process."""
        done = self.client.run("hf", *arguments, token=self.token, **more)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def fails(self, *arguments: str, **more: str) -> str:
        done = self.client.run("hf", *arguments, token=self.token, **more)
        assert done.returncode == 1, (arguments, done.stdout, done.stderr)
        return done.stderr

    def each(self, *commands: str, **more: str) -> list[str]:
        """Run many in one process; returns their output."""
        given = json.dumps([command.split() for command in commands])
        done = self.client.run("python", str(PROGRAMS / "hf_commands.py"), token=self.token, given=given, **more)
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)
        for command, (status, out, errors) in zip(commands, results, strict=True):
            assert status == 0, (command, status, out, errors)
        return [out + errors for _, out, errors in results]


@pytest.fixture
def command(shared: Shared, tmp_path: Path, version: str) -> Command:
    return Command(Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url), shared.ada)


@pytest.mark.parametrize("xet", ["as installed", "disabled"])
@pytest.mark.parametrize("version", VERSIONS)
def test_folder_is_uploaded_and_downloaded_unchanged(
    command: Command, folder: Path, tmp_path: Path, version: str, xet: str
) -> None:
    variables = NO_XET if xet == "disabled" else {}
    repo = f"ada/folder-{version.replace('.', '-')}-{xet[:2]}"
    create = "repo create" if version == "0.36" else "repos create"
    created, _ = command.each(f"{create} {repo.removeprefix('ada/')}", f"upload {repo} {folder} .", **variables)
    assert repo in created
    command.hf("download", repo, "--local-dir", "down", **variables)
    assert hashes(tmp_path / "down") == hashes(folder)


def name_of(version: str, what: str = "") -> str:
    return f"ada/all{version.replace('.', '')}{what}"


@pytest.mark.parametrize("version", ["1.28", "2.4"])
def test_every_command_works(command: Command, shared: Shared, folder: Path, tmp_path: Path, version: str) -> None:
    repo, moved = name_of(version), name_of(version).replace("ada/", "acme/")
    said = command.each(
        f"repos create {repo} --private",
        f"upload {repo} {folder} . --exclude *.safetensors --commit-message First",
        f"repos settings {repo} --public",
        f"repos settings {repo} --gated auto",
        f"repos settings {repo} --gated false",
        f"repos branch create {repo} dev",
        f"upload {repo} {folder}/sub/config.json config.json --revision dev",
        f"repos tag create {repo} v1 --message first",
        f"repos tag list {repo}",
        f"models info {repo}",
        f"models ls --author ada --search {repo} --format json",
        f"models ls {repo} -R",
        f"download {repo} --include *.json --include *.md --local-dir {tmp_path}/part",
        f"download {repo} config.json --revision dev --local-dir {tmp_path}/dev",
        f"cache verify {repo} --local-dir {tmp_path}/part",
        f"repos delete-files {repo} sub/*",
        f"repos move {repo} {moved}",
        f"download {repo} README.md --local-dir {tmp_path}/old-name",
        f"repos tag delete {moved} v1 -y",
        f"repos branch delete {moved} dev",
        "repos ls --format json",
        "repos ls --namespace acme --format json",
        f"repos delete {moved} -y",
    )
    tags, info, models, files = said[8:12]
    assert "v1" in tags
    assert json.loads(info)["tags"] == ["tiny", "license:mit"]
    assert [found["id"] for found in json.loads(models)] == [repo]
    assert "sub/config.json" in files
    assert set(hashes(tmp_path / "part")) == {"README.md", "sub/config.json"}
    assert (tmp_path / "dev/config.json").read_text() == '{"a": 1}\n'
    assert (tmp_path / "old-name/README.md").read_text() == CARD
    mine, of_acme = (json.loads(text) for text in said[-3:-1])
    assert moved not in [found["id"] for found in mine]
    assert [(found["id"], found["type"], found["visibility"]) for found in of_acme] == [(moved, "model", "public")]
    assert "not found" in command.fails("models", "info", moved)
    refused = command.fails("repos", "create", "nobody/x")
    assert "create repos in the namespace nobody" in refused


@pytest.mark.parametrize("version", VERSIONS)
def test_datasets_are_uploaded(command: Command, folder: Path, tmp_path: Path, version: str) -> None:
    """Also by the command for large folders, which later versions removed."""
    repo = name_of(version, "-rows")
    large = f"upload-large-folder {repo} {tmp_path}/large --repo-type dataset --num-workers 2 --no-report --no-bars"
    plain = f"upload {repo} {tmp_path}/large . --repo-type dataset"
    (tmp_path / "large").mkdir()
    for number in range(60):
        (tmp_path / f"large/{number}.csv").write_text(f"a,b\n{number},2\n")
    command.each(
        large if version == "0.36" else plain,
        f"upload {repo} {folder}/README.md README.md --repo-type dataset",
        f"download {repo} --repo-type dataset --local-dir {tmp_path}/down --exclude README.md",
        *([] if version == "0.36" else [f"datasets info {repo}", f"datasets ls {repo}"]),
    )
    assert hashes(tmp_path / "down") == hashes(tmp_path / "large")


def test_older_command_for_tags_and_files_works(shared: Shared, folder: Path, tmp_path: Path) -> None:
    command = Command(Client("huggingface_hub-0.36", tmp_path, shared.hub.url), shared.ada)
    repo = name_of("0.36")
    said = command.each(
        f"repo create {repo}",
        f"upload {repo} {folder}/sub .",
        f"repo tag create {repo} v1",
        f"repo tag list {repo}",
        f"repo tag delete {repo} v1 -y",
        f"repo-files delete {repo} config.json",
    )
    assert "v1" in said[3]


@pytest.mark.parametrize("xet", ["as installed", "disabled"])
@pytest.mark.parametrize("version", ["1.28", "2.4"])
def test_file_too_large_for_a_commit_is_uploaded(sqlite_template: Path, tmp_path: Path, version: str, xet: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "weights.safetensors").write_bytes(os.urandom(MIB) * 2)
    variables = NO_XET if xet == "disabled" else {}
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, regular_upload_max=str(MIB))) as hub:
        token = create_token(hub, create_user(hub, "ada"))
        command = Command(Client(f"huggingface_hub-{version}", tmp_path / "home", hub.url), token)
        command.hf("upload", "ada/big", str(tmp_path / "weights.safetensors"), **variables)
        command.hf("download", "ada/big", "--local-dir", "down", **variables)
        found = tmp_path / "home/down/weights.safetensors"
        assert found.read_bytes() == (tmp_path / "weights.safetensors").read_bytes()
        assert (tmp_path / "xorbs").exists() == (xet != "disabled")
