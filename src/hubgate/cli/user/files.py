"""`upload` and `download`."""

import argparse
import os
from pathlib import Path, PurePosixPath

from hubgate.cli.user import common
from hubgate.cli.user.progress import Bar
from hubgate.client import EntryNotFound, Hub, HubgateError
from hubgate.client.addresses import local_path
from hubgate.client.codec import encode
from hubgate.client.responses import sanitized


def configure_upload(parser: argparse.ArgumentParser) -> None:
    examples = """
  hubgate upload acme/vision model.bin
  hubgate upload acme/vision ./results --to runs/7/ --message "Run 7"
  hubgate upload acme/rows train.parquet --type dataset --revision next"""
    common.configure(parser, _upload, examples)
    parser.add_argument("repo", metavar="REPO", help="namespace/name, or a name in your own namespace")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a file, or a folder with all files in it")
    common.add_type(parser)
    parser.add_argument("--to", metavar="PATH", default="", help="where in the repo; a folder if it ends with /")
    parser.add_argument("--revision", metavar="R", default="main", help="the branch (default main)")
    parser.add_argument("--message", metavar="M", help="the commit's message")


def configure_download(parser: argparse.ArgumentParser) -> None:
    examples = """
  hubgate download acme/vision
  hubgate download acme/vision weights/model.bin --to models
  hubgate download acme/rows --type dataset --revision v1"""
    common.configure(parser, _download, examples)
    parser.add_argument("repo", metavar="REPO", help="namespace/name, or a name in your own namespace")
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default="", help="a file or folder in the repo (default: everything)"
    )
    common.add_type(parser)
    parser.add_argument("--revision", metavar="R", default="main", help="a branch, tag or commit (default main)")
    parser.add_argument(
        "--to", metavar="DIR", type=Path, help="the local folder (default: . with PATH, else the repo's name)"
    )


run = common.perform


def _upload(options: argparse.Namespace, hub: Hub) -> int:
    files = upload_plan(options.files, options.to)
    repo = common.named_repo(hub, options.repo)
    with Bar() as bar:
        done = hub.upload(
            repo,
            files,
            type=options.type,
            revision=options.revision,
            message=options.message,
            progress=bar.report,
        )
    if done.commit is None:
        return common.print_result(options, done, "✓ Nothing to do: the repo already has these files.")
    count = f"{len(done.sent)} file{'s' if len(done.sent) > 1 else ''}"
    return common.print_result(options, done, f"✓ {count} in {sanitized(done.commit.commit_url)}")


def upload_plan(given: list[Path], to: str) -> dict[str, Path | bytes]:
    """Map paths in the repo to local files."""
    folder = to if to.endswith("/") or not to else to + "/"
    found: dict[str, Path | bytes] = {}
    for path in given:
        if path.is_dir():
            files = {file.relative_to(path): file for file in sorted(path.rglob("*")) if file.is_file()}
            found |= {folder + name.as_posix(): file for name, file in files.items() if ".git" not in name.parts}
        elif not path.exists():
            raise HubgateError(f"file {str(path)!r} not found.")
        elif to and not to.endswith("/") and len(given) == 1:
            found[to] = path
        else:
            found[folder + path.name] = path
    if not found:
        raise HubgateError("there are no files to upload.")
    return found


def _download(options: argparse.Namespace, hub: Hub) -> int:
    repo = common.named_repo(hub, options.repo)
    path = str(PurePosixPath(options.path)) if options.path else ""
    repo_options = {"type": options.type, "revision": options.revision}
    with Bar() as bar:
        if not path:
            local = hub.download_all(
                repo, options.to or Path(repo.partition("/")[2]), progress=bar.report, **repo_options
            )
        else:
            folder = options.to or Path()
            local = folder / local_path(path, windows=os.name == "nt")
            try:
                hub.download(repo, path, local, progress=bar.report, **repo_options)
            except EntryNotFound:
                entries = hub.list_files(repo, path=path, **repo_options)
                for entry in entries:
                    if entry.type == "file":
                        target = folder / local_path(entry.path, windows=os.name == "nt")
                        hub.download(repo, entry.path, target, progress=bar.report, **repo_options)
    return common.print_result(options, encode({"path": str(local)}), f"✓ {local}")
