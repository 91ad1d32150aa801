"""The real git program, run as on a user's machine."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.bed.running_hub import RunningHub

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    # Commits and fetches would each start another git, which asks whether there is anything to clean up.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
    # glibc would return memory to the system after each object: most of the time of `git fast-import`.
    "MALLOC_TOP_PAD_": "1048576",
}


def run_git(
    folder: Path, *arguments: str, given: bytes = b"", seconds: int = 120, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run git to completion without checking its exit status."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**_ENVIRONMENT, **variables},
        input=given,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    )


def repo_url(hub_url: str, repo: str, token: str | None = None, user: str = "hf_user") -> str:
    """The URL of a repo, with the token as the password."""
    scheme, _, rest = hub_url.partition("://")
    return f"{scheme}://{user}:{token}@{rest}/{repo}" if token else f"{hub_url}/{repo}"


@dataclass(frozen=True)
class WorkingCopy:
    """A working copy."""

    folder: Path

    def git(self, *arguments: str, **more: str) -> str:
        """Run git, which must succeed; the output."""
        done = run_git(self.folder, *arguments, **more)  # type: ignore[arg-type]
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout.strip()

    def fails(self, *arguments: str) -> str:
        """Run git, which must fail; the error output."""
        done = run_git(self.folder, *arguments)
        assert done.returncode != 0, (arguments, done.stdout, done.stderr)
        return done.stderr + done.stdout

    def write(self, path: str, content: str | bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, path: str = "file.txt", content: str | bytes = "text\n", message: str = "a change") -> str:
        """Commit a file; the commit's id."""
        self.write(path, content)
        self.git("add", "--", path)
        self.git("commit", "-q", "-m", message)
        return self.head()

    def commit_nothing(self, times: int) -> None:
        """Add this many empty commits to the main branch, in one run of git."""
        start = b"from refs/heads/main^0\n"
        parts = [
            b"commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata 2\nx\n" % (1_600_000_000 + number)
            + (start if number == 0 else b"")
            for number in range(times)
        ]
        done = run_git(self.folder, "fast-import", "--quiet", given=b"".join(parts))
        assert done.returncode == 0, done.stderr

    def head(self, ref: str = "HEAD") -> str:
        return self.git("rev-parse", ref)


def clone_repo(hub: RunningHub, repo: str, folder: Path, token: str | None = None, *options: str) -> WorkingCopy:
    done = run_git(folder.parent, "clone", "-q", *options, repo_url(hub.url, repo, token), str(folder))
    assert done.returncode == 0, done.stderr
    return WorkingCopy(folder)


def linear_history(commits: int, files: int = 0) -> bytes:
    """A linear history for `git fast-import`: each commit writes one of ten files, and the first commit also adds
    `files` files that no other commit changes.
    """
    parts = []
    for number in range(commits):
        message = b"commit %d\n" % number
        stamp = b"committer Ada <ada@example.org> %d +0000\n" % (1_600_000_000 + number * 60)
        parts.append(b"commit refs/heads/main\n" + stamp + b"data %d\n%s" % (len(message), message))
        parts.append(b"M 100644 inline file-%d.txt\ndata 6\n%06d\n" % (number % 10, number % 1000))
        if number == 0:
            names = (f"many/{index % 100}/{index}.txt".encode() for index in range(files))
            parts += [b"M 100644 inline %s\ndata 6\n%06d\n" % (name, index) for index, name in enumerate(names)]
    return b"".join(parts)


def push_import(folder: Path, stream: bytes, url: str) -> None:
    """Import `stream` and force-push its main branch to a repo."""
    for arguments, given in ((("init", "-q", "--bare", "."), b""), (("fast-import", "--quiet"), stream)):
        done = run_git(folder, *arguments, given=given)
        assert done.returncode == 0, done.stderr
    done = run_git(folder, "push", "-q", "-f", url, "main:main", seconds=600)
    assert done.returncode == 0, done.stderr
