"""Finds idioms that the project dropped, so that its prose and its names stay plain English.

`python -m tests.idioms` prints each place as file:line and fails if there is one; `--counts` counts them by folder.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "docs", "bench", "examples")
SUFFIXES = {".py", ".md", ".html", ".txt", ".js", ".css"}

# Each idiom, with what to write instead. A space also matches an underscore, so that names are found too.
IDIOMS = {
    # Not `is None`, which is Python.
    "(?-i:(?<!there )(?<!there_)(is|are) none)": "is not a ..., is rejected",
    "(that|which|what) (is|are|was) no (?!longer|more|less)": "is not a ...",
    "nor (do|does|did|is|are|was|has|have|can|may|will)": "does not ...",
    "who(m|so)?ever": "the caller, the owner",
    "what(so)?ever": "a noun, or: regardless of",
    "meanwhile": "concurrently, since then, by another request",
    "for good": "permanently",
    "mend(s|ed|ing)?": "fix",
    "in the air": "in flight",
    "(took|takes?|taken) back": "revoked, withdrawn",
    "(goe?s?|went|gone) out": "is sent",
    "stands? in (?!for)": "is stored in, is in",
    "(is|are|was|were|be|being) told": "is notified, receives, sees",
    "class _?(?-i:Kept|Asking|Wanted|Told|Made)": "a noun: Stored..., ...Request",
}
_PATTERNS = {re.compile(idiom.replace(" ", "[ _]"), re.IGNORECASE): better for idiom, better in IDIOMS.items()}
_ANY = re.compile(rf"(?<![a-z])({'|'.join(pattern.pattern for pattern in _PATTERNS)})(?![a-z])", re.IGNORECASE)

# Places where the words are data, or belong to another project: the file, and a part of the line.
ALLOWED = (
    ("tests/idioms.py", ""),
    ("src/hubgate/server/oauth/cimd/rules.py", "token_endpoint_auth_method is none"),
)
# Templates test for `is none`, which is Jinja.
_JINJA = re.compile(r"{%.*?%}")


def found() -> Iterator[tuple[str, int, str]]:
    """Each place, as the file's path, the number of the line and the idiom."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    for path in sorted([*files, *ROOT.glob("*.md"), ROOT / "Makefile"]):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text()
        if path.suffix == ".html":
            text = _JINJA.sub("", text)
        for match in _ANY.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            line = text.splitlines()[number - 1]
            if not any(name == file and part in line for file, part in ALLOWED):
                yield name, number, match[0]


def main() -> int:
    places = list(found())
    if "--counts" in sys.argv[1:]:
        for folder, count in sorted(Counter(Path(name).parent.as_posix() for name, _, _ in places).items()):
            print(f"{count:5} {folder}")
        return 0
    for name, number, idiom in places:
        better = next(better for pattern, better in _PATTERNS.items() if pattern.match(idiom))
        print(f'{name}:{number}: "{idiom}": write {better}')
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
