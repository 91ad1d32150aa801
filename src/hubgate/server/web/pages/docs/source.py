"""Where the Markdown files are: in a package they are in `text` beside this module (pyproject.toml puts them there), in
a checkout in `docs/`.
"""

from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_CANDIDATES = (_HERE / "text", _HERE.parents[5] / "docs")
# Folder names of the files and in the addresses of their pages. "guides" are the files that are in no folder.
GUIDES, DECISIONS, REFERENCE = "guides", "decisions", "reference"
# Files that are downloaded, at their own names.
DOWNLOADS = ("grafana-dashboard.json",)
_FOLDERS = {GUIDES: ".", DECISIONS: "decisions", REFERENCE: "reference"}


@cache
def folder() -> Path:
    """The folder with the files. Without it, a page is not found."""
    return next((candidate for candidate in _CANDIDATES if (candidate / "inside.md").is_file()), _CANDIDATES[0])


@cache
def names() -> dict[tuple[str, str], Path]:
    """The files by the folder and the name in the address of their page."""
    return {
        (group, path.stem): path
        for group, inside in _FOLDERS.items()
        for path in sorted((folder() / inside).glob("*.md"))
    }


@cache
def read(group: str, name: str) -> str:
    return names()[group, name].read_text("utf-8")


@cache
def read_file(file: str) -> str:
    """A drawing or a download. The name comes from the documentation itself, never from a request."""
    return (folder() / file).read_text("utf-8")
