"""Names of refs, compared with the git program's own rules."""

import subprocess

import pytest

from hubgate.server.hub.git.refnames import RefNames, invalid_reason

NAMES = """
    refs/heads/main refs/heads/a/b refs/heads/größe refs/tags/v1.0-rc.1 refs/heads/a.b refs/heads/a-b refs/heads/a@b
    refs/heads/a..b refs/heads/.a refs/heads/a/.b refs/heads/a.lock refs/heads/a.lock/b refs/heads/a//b refs/heads/a/
    refs/heads/a~b refs/heads/a^b refs/heads/a:b refs/heads/a?b refs/heads/a*b refs/heads/[a refs/heads/a\\b
    refs/heads/a@{b refs/heads/a. refs/heads/a./b refs/heads/@ main @ /refs/heads/a refs refs/heads/a.lockx
""".split()  # noqa: SIM905 -- a paragraph reads better than thirty lines


def git_accepts(name: str) -> bool:
    return subprocess.run(["git", "check-ref-format", name], check=False).returncode == 0


@pytest.mark.parametrize("name", [*NAMES, "refs/heads/a b", "refs/heads/a\tb", "refs/heads/a\x7fb", "refs/heads/a\nb"])
def test_valid_names_are_those_of_git(name: str) -> None:
    """Except names that git accepts but that have another meaning here."""
    ours = invalid_reason(name)
    assert ours is None or not git_accepts(name) or ours == "this name is reserved"
    assert ours is not None or git_accepts(name)


def test_name_cannot_be_the_folder_of_another() -> None:
    names = RefNames(["refs/heads/main", "refs/heads/dev/one", "refs/heads/dev/two"])
    assert names.conflicting_ref("refs/heads/dev") in ("refs/heads/dev/one", "refs/heads/dev/two")
    assert names.conflicting_ref("refs/heads/main/x/y") == "refs/heads/main"
    assert names.conflicting_ref("refs/heads/dev/three") is None
    assert names.conflicting_ref("refs/heads/mainly") is None
    names.discard("refs/heads/dev/one")
    assert names.conflicting_ref("refs/heads/dev") == "refs/heads/dev/two"
    names.discard("refs/heads/dev/two")
    assert names.conflicting_ref("refs/heads/dev") is None
    names.add("refs/heads/dev")
    assert names.conflicting_ref("refs/heads/dev/one") == "refs/heads/dev"
    assert names.branch_and_tag_count == 2
    names.add("refs/pr/1")
    assert names.branch_and_tag_count == 2, "pull requests are not the owner's"
