"""Shell commands that download or upload a repo's files, with the address of this hub."""

from dataclasses import dataclass
from shlex import quote

from hubgate.server.hub.repos.model import Repo, RepoType


@dataclass(frozen=True)
class Commands:
    download: str
    upload: str
    clone: str
    push: str


def commands(base_url: str, repo: Repo) -> Commands:
    kind = "" if repo.kind is RepoType.MODEL else f" --repo-type {repo.type}"
    endpoint, url = f"export HF_ENDPOINT={quote(base_url)}\n", base_url + repo.path
    return Commands(
        download=f"{endpoint}hf download {repo.full_name}{kind}",
        upload=f"{endpoint}hf auth login\nhf upload {repo.full_name} .{kind}",
        clone=f"git clone {url}",
        push=(
            f"git lfs install\ngit clone {url}\ncd {repo.name}\n"
            '# put your files here\ngit add .\ngit commit -m "First files"\ngit push'
        ),
    )
