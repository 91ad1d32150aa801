"""docs/conformance.md lists exactly the modules that have a test, and those that are not offered."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"


def test_page_lists_every_module_once() -> None:
    rows = re.findall(r"^\| `(oidcc-[a-z0-9-]+)` \| (passes|not offered)", PAGE.read_text(), re.MULTILINE)
    sources = [path.read_text() for path in HERE.glob("test_*.py")]
    tested = [name for text in sources for name in re.findall(r"^def test_(oidcc_\w+)\(", text, re.MULTILINE)]
    assert [name for name, result in rows if result == "not offered"] == ["oidcc-idtoken-unsigned"]
    passing = [name.replace("-", "_") for name, result in rows if result == "passes"]
    assert (sorted(passing), len(set(passing))) == (sorted(tested), len(tested))
