"""Every numbered attack has a test that carries its number, and docs/threats.md names every file of attack tests."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

NAMES = re.compile(r"^(?:async )?def test_((?:[ow]\d+_(?:to_|and_)?)+)", re.MULTILINE)


def numbers_in(name: str) -> set[str]:
    """The numbers in names like `o1_`, `w19_w20_` and `w1_to_w7_`."""
    found: set[str] = set()
    for first, last in re.findall(r"([ow]\d+)_(?:to_([ow]\d+))?", name):
        found |= {f"{first[0]}{number}" for number in range(int(first[1:]), int((last or first)[1:]) + 1)}
    return found


def test_every_attack_has_a_test() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("test_*.py")]
    covered = {number for text in texts for name in NAMES.findall(text) for number in numbers_in(name)}
    wanted = {f"o{number}" for number in range(1, 64)} | {f"w{number}" for number in range(1, 38)}
    wanted |= {f"o{number}" for number in range(64, 78)} | {"w39", "w40", "w41"}
    wanted |= {f"o{number}" for number in range(80, 86)}
    assert wanted - covered == set()


def test_threats_page_names_every_attack_file_and_only_existing_files() -> None:
    page = (ROOT / "docs" / "threats.md").read_text()
    named = set(re.findall(r"`((?:tests/access/)?test_\w+\.py)`", page))
    missing = [name for name in named if not (ROOT / ("" if "/" in name else "tests/attacks") / name).is_file()]
    assert (missing, len(named) > 40) == ([], True)
    unnamed = {path.name for path in Path(__file__).parent.glob("test_[ow]*.py")} - named
    assert unnamed == set(), "each of these keeps a promise"
