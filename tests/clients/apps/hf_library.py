"""Uses of huggingface_hub in Python, check by check: `hf_library.py WORK_FOLDER NAME OTHERS_TOKEN`.

Runs in that client's own environment against HF_ENDPOINT. Prints a JSON object of failures, which should be empty.
"""

import hashlib
import io
import json
import os
import struct
import sys
import traceback
from pathlib import Path

import huggingface_hub
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    HfFileSystem,
    ModelCard,
    RepoCard,
    hf_hub_download,
    metadata_update,
    snapshot_download,
)
from huggingface_hub.utils import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

VERSION = tuple(map(int, huggingface_hub.__version__.split(".")[:2]))
WORK, NAME, OTHERS_TOKEN = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
REPO, MOVED, HIDDEN, SHOWN, TAKEN = f"ada/{NAME}", f"acme/{NAME}", f"ada/{NAME}-d", f"ada/{NAME}-s", f"ada/{NAME}-t"
NEWEST_FIRST = "lastModified" if VERSION < (1, 0) else "last_modified"
LARGE = 12 * 1024 * 1024
api, other, anyone = HfApi(), HfApi(token=OTHERS_TOKEN), HfApi(token=False)


def raises(error, call, *arguments, **named):
    """Exactly that error: the error for a gate is also one for a missing repo, and the error for a file missing in
    a cache also one for a missing file.
    """
    try:
        call(*arguments, **named)
    except error as raised:
        found = raised
    else:
        raise AssertionError(f"{error.__name__} was not raised")
    name = type(found).__name__.removeprefix("Remote")
    assert error in (HfHubHTTPError, ValueError, FileNotFoundError) or name == error.__name__, found
    return found


def safetensors(count):
    head = json.dumps(
        {"__metadata__": {"format": "pt"}, "w": {"dtype": "U8", "shape": [count], "data_offsets": [0, count]}}
    )
    padded = head.encode() + b" " * (-len(head) % 8)
    return struct.pack("<Q", len(padded)) + padded + os.urandom(1024) * (count // 1024)


WEIGHTS = safetensors(LARGE)


def a_folder():
    folder = WORK / "folder"
    (folder / "sub/deep").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: mit\ntags:\n- tiny\n---\n# Kit\n")
    (folder / "empty.txt").write_text("")
    (folder / "sub/config.json").write_text('{"a": 1}\n')
    (folder / "sub/deep/ünï 100%?.txt").write_text("odd name\n")
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    return folder


def check_upload_and_snapshot():
    folder = a_folder()
    made = api.create_repo(REPO)
    assert (made.repo_id, made.namespace) == (REPO, "ada"), made
    assert api.create_repo(REPO, exist_ok=True).repo_id == REPO
    assert raises(HfHubHTTPError, api.create_repo, REPO).response.status_code == 409
    done = api.upload_folder(repo_id=REPO, folder_path=folder, commit_message="All of it", ignore_patterns=["*.tmp"])
    assert done.oid == api.model_info(REPO).sha
    again = api.upload_folder(repo_id=REPO, folder_path=folder)
    assert again.oid == done.oid, "nothing has changed, so nothing is sent"
    got = Path(snapshot_download(REPO))
    files = sorted(
        path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts
    )
    assert len(files) == 5
    for path in files:
        wanted, found = ((root / path).read_bytes() for root in (folder, got))
        assert hashlib.sha256(wanted).digest() == hashlib.sha256(found).digest(), path
    part = Path(snapshot_download(REPO, allow_patterns="*.json", local_dir=WORK / "part"))
    assert [path.name for path in part.rglob("*") if path.is_file() and ".cache" not in path.parts] == ["config.json"]


def check_cache():
    first = Path(hf_hub_download(REPO, "model.safetensors", cache_dir=WORK / "cache"))
    # Only the first link: the newest clients share files that were received as chunks between repos.
    blob = first.parent / first.readlink()
    assert blob.name == hashlib.sha256(WEIGHTS).hexdigest(), "the ETag names the file in the cache"
    os.utime(blob, (1, 1))
    assert hf_hub_download(REPO, "model.safetensors", cache_dir=WORK / "cache") == str(first)
    assert blob.stat().st_mtime == 1, "not downloaded again"
    small = Path(hf_hub_download(REPO, "sub/config.json", cache_dir=WORK / "cache", revision="main"))
    assert len(small.resolve().name) == 40
    info = huggingface_hub.get_hf_file_metadata(huggingface_hub.hf_hub_url(REPO, "model.safetensors"))
    assert (info.size, info.etag) == (len(WEIGHTS), blob.name)
    assert info.commit_hash == api.model_info(REPO).sha


def check_listing():
    files = ["README.md", "empty.txt", "model.safetensors", "sub/config.json", "sub/deep/ünï 100%?.txt"]
    assert api.list_repo_files(REPO) == [".gitattributes", *files]
    tree = {entry.path: entry for entry in api.list_repo_tree(REPO, recursive=True, expand=True)}
    assert sorted(tree) == sorted([".gitattributes", *files, "sub", "sub/deep"])
    assert tree["model.safetensors"].lfs.sha256 == hashlib.sha256(WEIGHTS).hexdigest()
    assert tree["model.safetensors"].last_commit.title == "All of it"
    assert [entry.path for entry in api.list_repo_tree(REPO, "sub")] == ["sub/config.json", "sub/deep"]
    asked = ["README.md", "sub", "nowhere", "sub/deep/ünï 100%?.txt"]
    assert {entry.path for entry in api.get_paths_info(REPO, asked)} == set(asked) - {"nowhere"}
    info = api.model_info(REPO, files_metadata=True)
    sizes = {file.rfilename: file.size for file in info.siblings}
    assert (sizes["empty.txt"], sizes["model.safetensors"]) == (0, len(WEIGHTS))
    assert (info.id, info.author, info.private, info.card_data["license"]) == (REPO, "ada", False, "mit")
    assert "tiny" in info.tags
    expanded = api.model_info(REPO, expand=["lastModified", "siblings"])
    assert expanded.last_modified is not None
    assert len(expanded.siblings) == 6
    assert REPO in [model.id for model in api.list_models(author="ada", search=NAME, limit=5)]
    assert REPO in [model.id for model in api.list_models(filter="tiny", sort=NEWEST_FIRST)]
    assert list(api.list_models(author="nobody")) == []
    assert api.file_exists(REPO, "README.md")
    assert not api.file_exists(REPO, "nowhere")
    assert not api.file_exists("ada/nowhere", "README.md")
    assert api.repo_exists(REPO)
    assert not api.repo_exists("ada/nowhere")
    assert not anyone.repo_exists("ada/nowhere")
    assert api.revision_exists(REPO, "main")
    assert not api.revision_exists(REPO, "nowhere")


def check_commits():
    before = api.model_info(REPO).sha
    operations = [
        CommitOperationAdd("notes/a.txt", b"a\n"),
        CommitOperationAdd("notes/b.txt", io.BytesIO(b"b\n")),
        CommitOperationCopy("model.safetensors", "copies/model.safetensors"),
        CommitOperationCopy("sub/config.json", "copies/config.json"),
        CommitOperationDelete("sub/deep/", is_folder=True),
        CommitOperationDelete("empty.txt"),
    ]
    done = api.create_commit(
        REPO, operations, commit_message="Many things", commit_description="At once.", parent_commit=before
    )
    assert done.commit_url.endswith(f"/{REPO}/commit/{done.oid}")
    names = set(api.list_repo_files(REPO))
    assert names >= {"notes/a.txt", "notes/b.txt", "copies/model.safetensors", "copies/config.json"}
    assert not names & {"empty.txt", "sub/deep/ünï 100%?.txt"}
    assert Path(hf_hub_download(REPO, "copies/model.safetensors")).read_bytes() == WEIGHTS
    stale = raises(
        HfHubHTTPError,
        api.create_commit,
        REPO,
        [CommitOperationAdd("c", b"c")],
        commit_message="c",
        parent_commit=before,
    )
    assert stale.response.status_code == 412
    missing = [CommitOperationDelete("nowhere.txt")]
    assert "A file with this name doesn't exist" in str(
        raises(EntryNotFoundError, api.create_commit, REPO, missing, commit_message="-")
    )
    api.delete_folder("notes", REPO, commit_message="Notes go")
    api.delete_file("copies/config.json", REPO)
    api.delete_files(REPO, ["copies/*"]) if hasattr(api, "delete_files") else api.delete_file(
        "copies/model.safetensors", REPO
    )
    titles = [commit.title for commit in api.list_repo_commits(REPO, formatted=True)]
    assert titles[3:] == ["Many things", "All of it", "initial commit"], titles
    (newest, *_) = api.list_repo_commits(REPO)
    assert newest.authors == ["ada"], newest
    api.upload_file(path_or_fileobj=b"one", path_in_repo="one.txt", repo_id=REPO, revision="main")
    api.upload_file(path_or_fileobj=io.BytesIO(WEIGHTS[:-1]), path_in_repo="other.safetensors", repo_id=REPO)
    assert Path(hf_hub_download(REPO, "other.safetensors")).read_bytes() == WEIGHTS[:-1]


def check_refs():
    api.create_branch(REPO, branch="feature/x")
    assert raises(HfHubHTTPError, api.create_branch, REPO, branch="feature/x").response.status_code == 409
    api.create_branch(REPO, branch="feature/x", exist_ok=True)
    api.create_tag(REPO, tag="v1.0", tag_message="The first")
    api.create_tag(REPO, tag="v1.0", exist_ok=True)
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x.txt", repo_id=REPO, revision="feature/x")
    assert api.file_exists(REPO, "x.txt", revision="feature/x")
    assert not api.file_exists(REPO, "x.txt")
    assert Path(hf_hub_download(REPO, "x.txt", revision="feature/x")).read_text() == "x"
    refs = api.list_repo_refs(REPO)
    assert ([ref.name for ref in refs.branches], [ref.name for ref in refs.tags]) == (["feature/x", "main"], ["v1.0"])
    tagged = refs.tags[0].target_commit
    assert api.model_info(REPO, revision="v1.0").sha == tagged == api.model_info(REPO, revision=tagged[:8]).sha
    api.delete_tag(REPO, tag="v1.0")
    raises(RevisionNotFoundError, api.delete_tag, REPO, tag="v1.0")
    api.delete_branch(REPO, branch="feature/x")
    assert raises(HfHubHTTPError, api.delete_branch, REPO, branch="main").response.status_code in (400, 403)
    api.create_branch(REPO, branch="squashed")
    api.super_squash_history(REPO, branch="squashed", commit_message="All in one")
    assert [commit.title for commit in api.list_repo_commits(REPO, revision="squashed")] == ["All in one"]
    assert len(api.list_repo_commits(REPO)) > 3


def check_pull_requests():
    def adding(name):
        return [CommitOperationAdd(f"{name}.txt", f"an {name}".encode())]

    opened = other.create_commit(REPO, adding("idea"), commit_message="An idea", create_pr=True)
    assert (opened.pr_num, opened.pr_revision) == (1, "refs/pr/1"), opened
    assert opened.pr_url.endswith(f"/{REPO}/discussions/1")
    assert Path(hf_hub_download(REPO, "idea.txt", revision="refs/pr/1")).read_text() == "an idea"
    other.create_commit(REPO, adding("answer"), commit_message="More", revision="refs/pr/1")
    assert [ref.ref for ref in api.list_repo_refs(REPO, include_pull_requests=True).pull_requests] == ["refs/pr/1"]
    # A large file is uploaded before the commit that opens its pull request.
    weights = [CommitOperationAdd("weights.bin", io.BytesIO(b"w" * 100_000))]
    brought = other.create_commit(REPO, weights, commit_message="Weights", create_pr=True)
    assert Path(hf_hub_download(REPO, "weights.bin", revision=brought.pr_revision)).stat().st_size == 100_000
    assert api.change_discussion_status(REPO, brought.pr_num, "closed").new_status == "closed"
    assert [(one.num, one.status) for one in api.get_repo_discussions(REPO)] == [(2, "closed"), (1, "open")]
    refused = raises(HfHubHTTPError, other.create_commit, REPO, adding("attempt"), commit_message="No")
    assert refused.response.status_code == 403
    nowhere = {"revision": "nowhere", "create_pr": True}
    raises(RevisionNotFoundError, api.create_commit, REPO, adding("attempt"), commit_message="No", **nowhere)


def check_cards():
    card = ModelCard.load(REPO)
    assert card.data.license == "mit"
    card.data.language = "en"
    if VERSION < (2, 0):
        # These ask huggingface.co whether a card is valid before they push it, no matter what HF_ENDPOINT says.
        api.upload_file(path_or_fileobj=str(card).encode(), path_in_repo="README.md", repo_id=REPO)
    else:
        card.push_to_hub(REPO)
        metadata_update(REPO, {"pipeline_tag": "text-classification"})
        assert api.model_info(REPO).pipeline_tag == "text-classification"
        assert "text-classification" in ModelCard.load(REPO).content
        wrong = RepoCard("---\nmodel-index: foo\n---\n# Wrong\n", ignore_metadata_errors=True)
        raises(ValueError, wrong.validate, repo_type="model")
    assert api.model_info(REPO).card_data["language"] == "en"
    wrong = b"---\nmodel-index: foo\n---\n# Wrong\n"
    refused = raises(ValueError, api.upload_file, path_or_fileobj=wrong, path_in_repo="README.md", repo_id=REPO)
    assert "model-index" in str(refused), refused


def check_file_system():
    fs = HfFileSystem(skip_instance_cache=True)
    assert {entry["name"] for entry in fs.ls(REPO)} >= {f"{REPO}/README.md", f"{REPO}/sub"}
    assert fs.glob(f"{REPO}/**/*.json") == [f"{REPO}/sub/config.json"]
    assert sorted(fs.find(f"{REPO}/sub")) == [f"{REPO}/sub/config.json"]
    with fs.open(f"{REPO}/model.safetensors", "rb", block_size=2**20) as file:
        file.seek(5_000_000)
        assert file.read(1000) == WEIGHTS[5_000_000:5_001_000]
        file.seek(-10, 2)
        assert file.read() == WEIGHTS[-10:]
    with fs.open(f"{REPO}/written.txt", "w") as file:
        file.write("by the file system\n")
    fs.invalidate_cache()
    assert fs.read_text(f"{REPO}/written.txt") == "by the file system\n"
    assert fs.cat_file(f"{REPO}/written.txt", start=3, end=6) == b"the"
    assert fs.info(f"{REPO}/model.safetensors")["size"] == len(WEIGHTS)
    assert fs.exists(f"{REPO}@main/README.md")
    assert not fs.exists(f"{REPO}/nowhere")
    raises(FileNotFoundError, fs.ls, f"{REPO}/nowhere")
    fs.cp_file(f"{REPO}/written.txt", f"{REPO}/copied.txt")
    fs.mv(f"{REPO}/copied.txt", f"{REPO}/moved.txt")
    fs.invalidate_cache()
    assert fs.read_text(f"{REPO}/moved.txt") == "by the file system\n"
    fs.rm(f"{REPO}/moved.txt")
    fs.invalidate_cache()
    assert not fs.exists(f"{REPO}/moved.txt")
    fs.get_file(f"{REPO}/model.safetensors", str(WORK / "got"))
    assert (WORK / "got").read_bytes() == WEIGHTS
    assert fs.url(f"{REPO}/README.md").endswith(f"/{REPO}/resolve/main/README.md")


def check_safetensors():
    found = api.get_safetensors_metadata(REPO)
    assert (found.sharded, found.parameter_count) == (False, {"U8": LARGE})
    assert api.parse_safetensors_file_metadata(REPO, "model.safetensors").metadata == {"format": "pt"}


def check_errors():
    raises(RepositoryNotFoundError, api.model_info, "ada/nowhere")
    raises(RepositoryNotFoundError, anyone.model_info, "ada/nowhere")
    raises(RepositoryNotFoundError, hf_hub_download, "ada/nowhere", "README.md")
    raises(RepositoryNotFoundError, hf_hub_download, "ada/nowhere", "README.md", token=False)
    # There is also no repo without a namespace.
    raises(RepositoryNotFoundError, hf_hub_download, "gpt2", "config.json")
    raises(RepositoryNotFoundError, hf_hub_download, "gpt2", "config.json", token=False)
    assert not api.file_exists("gpt2", "config.json")
    assert not anyone.revision_exists("squad", "main", repo_type="dataset")
    raises(RevisionNotFoundError, hf_hub_download, REPO, "README.md", revision="nowhere")
    raises(RevisionNotFoundError, api.model_info, REPO, revision="nowhere")
    raises(EntryNotFoundError, hf_hub_download, REPO, "nowhere.txt")
    raises(EntryNotFoundError, lambda: list(api.list_repo_tree(REPO, "nowhere")))
    raises(LocalEntryNotFoundError, hf_hub_download, REPO, "README.md", local_files_only=True, cache_dir=WORK / "none")
    raises(RepositoryNotFoundError, api.delete_repo, "ada/nowhere")
    api.delete_repo("ada/nowhere", missing_ok=True)
    assert raises(HfHubHTTPError, other.delete_repo, REPO).response.status_code == 403
    assert raises(HfHubHTTPError, api.model_info, REPO, token="hf_wrong").response.status_code == 401


def check_private_and_gated():
    api.create_repo(HIDDEN, private=True, repo_type="dataset")
    raises(RepositoryNotFoundError, other.dataset_info, HIDDEN)
    raises(RepositoryNotFoundError, anyone.dataset_info, HIDDEN)
    assert HIDDEN in [found.id for found in api.list_datasets(author="ada")]
    assert HIDDEN not in [found.id for found in other.list_datasets(author="ada")]
    api.upload_file(path_or_fileobj=b"a,b\n1,2\n", path_in_repo="data.csv", repo_id=HIDDEN, repo_type="dataset")
    change = api.update_repo_settings if hasattr(api, "update_repo_settings") else None
    if change is None:
        return
    change(HIDDEN, repo_type="dataset", private=False, gated="manual")
    assert other.dataset_info(HIDDEN).gated == "manual"
    for user in (other, anyone):
        download = user.hf_hub_download
        raises(GatedRepoError, download, HIDDEN, "data.csv", repo_type="dataset", cache_dir=WORK / "gated")
        raises(GatedRepoError, user.auth_check, HIDDEN, repo_type="dataset")
    api.auth_check(HIDDEN, repo_type="dataset")
    assert api.hf_hub_download(HIDDEN, "data.csv", repo_type="dataset")
    change(HIDDEN, repo_type="dataset", gated=False)
    assert other.hf_hub_download(HIDDEN, "data.csv", repo_type="dataset", cache_dir=WORK / "gated")
    made = api.create_repo(SHOWN, repo_type="space", space_sdk="static")
    assert made.repo_type == "space"
    assert api.space_info(SHOWN).sdk == "static"


def check_moving_and_deleting():
    api.move_repo(REPO, MOVED)
    assert Path(hf_hub_download(REPO, "sub/config.json", cache_dir=WORK / "moved")).read_text() == '{"a": 1}\n'
    assert api.model_info(REPO).id == MOVED
    assert Path(snapshot_download(REPO, allow_patterns="*.md", cache_dir=WORK / "moved"))
    api.upload_file(path_or_fileobj=b"late", path_in_repo="late.txt", repo_id=REPO)
    assert "late.txt" in api.list_repo_files(MOVED)
    api.create_repo(TAKEN)
    assert "already exists" in str(raises(HfHubHTTPError, api.move_repo, MOVED, TAKEN))
    api.delete_repo(MOVED)
    assert not api.repo_exists(MOVED)
    assert not api.repo_exists(REPO)


failed = {}
for name, check in list(globals().items()):
    if name.startswith("check_"):
        try:
            check()
        except Exception:
            failed[name] = traceback.format_exc()
print(json.dumps(failed))
