"""The architecture's rules: direction of imports, size of files, place of SQL."""

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubgate.server import errors
from hubgate.server.settings import OPTIONS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
MAX_LINES = 500

# From the top down. A layer may import those below it; packages of one layer never import one another.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("demo",),
    ("server.doctor", "server.startup"),
    ("server.worker",),
    ("server.app",),
    ("server.web",),
    ("server.resources",),
    ("server.spaces",),
    ("server.oauth", "server.hub", "server.webhooks", "server.gateway"),
    ("server.edge",),
    ("server.access",),
    ("server.accounts",),
    ("server.events", "server.audit", "server.throttle", "server.mail", "server.search"),
    ("server.http",),
    ("server.log_formats",),
    ("server.settings", "server.logs", "server.metrics"),
    ("server.objects",),
    ("server.storage", "server.egress"),
    ("server.jobs",),
    ("server.scopes", "server.secret", "server.paging", "server.ids"),
    ("server.setting_values",),
    ("server.clock", "server.errors", "server.failpoint"),
    # Installed without the server. The receiver uses the client to open a tunnel.
    ("receiver",),
    ("client",),
    ("depth",),
)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def layer_of(module: str) -> tuple[int, str] | None:
    inside = module.removeprefix("hubgate.")
    for level, names in enumerate(LAYERS):
        for name in names:
            if inside == name or inside.startswith(name + "."):
                return level, name
    return None


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_point_down() -> None:
    wrong = [f"{module_of(path)} imports {imported}" for path in FILES for imported in imports_that_point_up(path)]
    assert wrong == []


def imports_that_point_up(path: Path) -> list[str]:
    here = layer_of(module_of(path))
    layers = {name: layer_of(name) for name in imports_of(path) if name.startswith("hubgate.")}
    return [name for name, there in layers.items() if here and there and here[1] != there[1] and here[0] >= there[0]]


def test_every_server_module_has_a_layer() -> None:
    homeless = [module_of(path) for path in FILES if layer_of(module_of(path)) is None]
    assert homeless == ["hubgate", "hubgate.server"]


def test_client_and_receiver_never_import_the_server() -> None:
    for part in ("client", "receiver", "cli/user"):
        for path in (SOURCE / "hubgate" / part).rglob("*.py"):
            assert not any(name.startswith("hubgate.server") for name in imports_of(path)), path


def test_the_server_imports_neither_client_nor_receiver() -> None:
    for path in (SOURCE / "hubgate" / "server").rglob("*.py"):
        assert not any(name.startswith(("hubgate.client", "hubgate.receiver")) for name in imports_of(path)), path


@pytest.mark.parametrize("folder", ["src", "tests", "bench"])
def test_no_file_exceeds_500_lines(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert len(path.read_text().splitlines()) <= MAX_LINES, path


SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE|PRAGMA)\b", re.DOTALL
)


def strings_of(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
                yield token.string


def test_sql_is_only_in_stores() -> None:
    for path in FILES:
        if path.name == "store.py" or path.name.endswith("_store.py") or "storage" in path.parts:
            continue
        for text in strings_of(path):
            assert not SQL.search(text), f"{path}: {text[:60]}"


def test_routes_are_only_in_web() -> None:
    allowed = ("hubgate.server.web.", "hubgate.server.edge.", "hubgate.server.app")
    for path in FILES:
        if "hubgate.server.edge.routes.Route" in imports_of(path):
            assert module_of(path).startswith(allowed), path


def test_tests_do_not_call_asyncio_run() -> None:
    """Playwright runs a loop in the main thread, so `asyncio.run` would fail in later tests."""
    for path in (ROOT / "tests").rglob("*.py"):
        for line in path.read_text().splitlines():
            inside = line.startswith(" ") and "asyncio.run(" in line
            elsewhere = "to_thread" in line or path.parent.name == "apps"
            programs = ("running_hub.py", "dying_hub.py", "test_architecture.py")
            assert not inside or elsewhere or path.name in programs, path


def test_every_package_has_a_docstring() -> None:
    for path in FILES:
        if path.name == "__init__.py" and path.parent.name != "versions":
            assert ast.get_docstring(ast.parse(path.read_text())), path


def test_every_setting_is_documented_with_its_default() -> None:
    lines = {
        line.split("`")[1]: line for line in (ROOT / "docs/settings.md").read_text().splitlines() if line[:3] == "| `"
    }
    assert set(lines) == {f"HUBGATE_{item.name.upper()}" for item in OPTIONS}
    for item in OPTIONS:
        default = item.metadata["default"]
        assert not default or f"| `{default}` |" in lines[f"HUBGATE_{item.name.upper()}"], item.name


def test_every_error_is_in_the_tree() -> None:
    tree = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert name in tree, name
