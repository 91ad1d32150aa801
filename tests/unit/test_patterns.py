"""Patterns of .gitattributes and .gitignore, compared with git itself."""

from pathlib import Path

import pytest
from tests.bed.git import run_git

from hubgate.server.hub.commits.attributes import Attributes, ignore_rules, line_for

PATHS = (
    "a", "a.bin", "b.bin", "d/a.bin", "d/e/a.bin", "data/x", "data/y/z.txt", "x/data/y", "a b.txt", "a[1].txt",
    "a1.txt",
    "ab", "abc", "a/b", "a/b/c", "a/x/b", "a/x/y/b", "A.BIN", ".hidden", "d/.hidden", "é.txt", "a\\b", "foo.TXT",
    "d/foo", "foo/d", "#x", "!x", "a-b", "a]b", "z9", "zq", "a\tb",
)  # fmt: skip
PATTERNS = (
    "*.bin", "a.bin", "/a.bin", "d/*.bin", "d/**/a.bin", "**/a.bin", "d/**", "**/data", "data", "data/*", "a?", "a??",
    "[ab].bin", "[!a].bin", "[^a].bin", "a[1]*", "a\\[1\\].txt", "a/**/b", "a/*/b", "**", "*", "?", "[[:digit:]]*",
    "z[[:alpha:]]", "z[[:digit:]]", "z[0-9]", "a[[:space:]]b.txt", ".*", "*.[tT][xX][tT]", "é.txt", "a\\\\b", "\\#x",
    "\\!x",
    "d/foo", "/d/foo", "foo", "a-b", "a[a-]b", "a[]]b", "[", "a[", "a**", "**b", "/**", "**/", "*/b", "a/b/", "x/**/y",
    "*.b*n", "a*b*c", "[a-c].bin", "[z-a].bin", "[[:bogus:]]*",
)  # fmt: skip


def _repo(folder: Path) -> Path:
    assert run_git(folder, "init", "-q").returncode == 0
    return folder


@pytest.mark.parametrize("chunk", range(0, len(PATTERNS), 9))
def test_attributes_match_like_git(tmp_path: Path, chunk: int) -> None:
    repo = _repo(tmp_path)
    for pattern in PATTERNS[chunk : chunk + 9]:
        text = f"{pattern} filter=lfs\n"
        (repo / ".gitattributes").write_text(text)
        given = b"".join(path.encode() + b"\0" for path in PATHS)
        out = run_git(repo, "check-attr", "-z", "--stdin", "filter", given=given).stdout.split("\0")
        by_git = {out[at]: out[at + 2] == "lfs" for at in range(0, len(out) - 1, 3)}
        rules = Attributes([("", text)])
        assert {path: rules.is_large(path) for path in PATHS} == by_git, pattern


@pytest.mark.parametrize("chunk", range(0, len(PATTERNS), 9))
def test_ignore_rules_match_like_git(tmp_path: Path, chunk: int) -> None:
    repo = _repo(tmp_path)
    for pattern in PATTERNS[chunk : chunk + 9]:
        text = f"{pattern}\n"
        (repo / ".gitignore").write_text(text)
        given = b"".join(path.encode() + b"\0" for path in PATHS)
        out = run_git(repo, "check-ignore", "-z", "--no-index", "--stdin", given=given).stdout
        ignored = ignore_rules(text)
        assert {path for path in PATHS if ignored.is_ignored(path)} == set(out.split("\0")) - {""}, pattern


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [("a/b**", {"a/b"}), ("a/b**/c", {"a/b/c"}), ("a/x**/b", {"a/x/b"}), ("a/**b", {"a/b"})],
)
def test_two_stars_match_a_slash_only_beside_slashes(pattern: str, matching: set[str]) -> None:
    """As gitattributes(5) says. Versions of git differ here, so git is not asked."""
    attributes, ignored = Attributes([("", f"{pattern} filter=lfs\n")]), ignore_rules(f"{pattern}\n")
    assert {path for path in PATHS if attributes.is_large(path)} == matching
    # An ignored folder ignores all files in it.
    assert {path for path in PATHS if ignored.is_ignored(path)} >= matching


def test_negated_rules_apply_and_comments_are_ignored() -> None:
    rules = ignore_rules("*.log\n!keep.log\n\n# *.txt\nbuild/\n!build/x\ntrailing.txt   \n")
    found = {
        path for path in ("a.log", "keep.log", "a.txt", "build/x", "build", "trailing.txt") if rules.is_ignored(path)
    }
    assert found == {"a.log", "build/x", "trailing.txt"}, "files in an ignored folder cannot be included again"
    attributes = Attributes(
        [("", '*.bin filter=lfs\n"q \\"x\\".txt" filter=lfs\nc.bin -filter\n# *.x filter=lfs\n!y filter=lfs\n')]
    )
    large = {path for path in ("a.bin", "c.bin", 'q "x".txt', "a.x", "y", "!y") if attributes.is_large(path)}
    assert large == {"a.bin", 'q "x".txt'}


@pytest.mark.parametrize("path", [*PATHS, "a  b", '"', '"a"', "tab\there", "*?[]!#\\", "deep/ x /y"])
def test_line_matches_exactly_one_path(tmp_path: Path, path: str) -> None:
    line = line_for(path) + "\n"
    assert [other for other in {*PATHS, path} if Attributes([("", line)]).is_large(other)] == [path]
    repo = _repo(tmp_path)
    (repo / ".gitattributes").write_text(line)
    shown = run_git(repo, "check-attr", "-z", "--stdin", "filter", given=path.encode() + b"\0").stdout
    assert shown.split("\0")[2] == "lfs"
