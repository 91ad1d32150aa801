"""The Python interpreters of this machine, and the hub's own package for apps to import."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hubgate

SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.14")
# Where `hubgate` and its dependencies are mounted. The server's dependencies are not.
PACKAGES = "/opt/hubgate"
PROBE_SECONDS = 10

_PROBE = """
import importlib.util, json, pathlib, sys, tarfile
# Without it, `inside.py` cannot unpack files safely: 3.10.12, 3.11.4 and later have it.
tarfile.data_filter
pip = ["-m", "pip"] if importlib.util.find_spec("pip") else None
if pip is None and importlib.util.find_spec("ensurepip"):
    import ensurepip
    wheels = sorted(pathlib.Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    pip = [str(wheels[-1] / "pip")] if wheels else None
print(json.dumps({"version": "%d.%d" % sys.version_info[:2], "prefix": sys.base_prefix, "pip": pip}))
"""


@dataclass(frozen=True)
class Python:
    version: str
    executable: Path
    prefix: Path
    # Arguments of the interpreter that run pip; None without pip.
    pip: tuple[str, ...] | None


@cache
def find_pythons() -> dict[str, Python]:
    """The interpreters on PATH by their version, the hub's own first."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    found: dict[str, Python] = {}
    for version in (own, *SUPPORTED):
        path = _own_executable(own) if version == own else shutil.which(f"python{version}")
        if path is not None and version not in found and (python := _probe(Path(path), version)) is not None:
            found[version] = python
    return found


def _own_executable(version: str) -> str | None:
    # Not the one of a virtual environment, whose packages are the server's.
    path = Path(sys.base_prefix) / "bin" / f"python{version}"
    return str(path) if path.exists() else shutil.which(f"python{version}")


def _probe(executable: Path, version: str) -> Python | None:
    try:
        result = subprocess.run(
            [executable, "-I", "-c", _PROBE], capture_output=True, timeout=PROBE_SECONDS, check=True
        )
        said = json.loads(result.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    if said["version"] != version:
        return None
    prefix = Path(said["prefix"])
    inside = prefix / "bin" / f"python{version}"
    return Python(version, inside if inside.exists() else executable, prefix, said["pip"] and tuple(said["pip"]))


@cache
def package_folders() -> dict[str, Path]:
    """The files and folders of `hubgate` and its dependencies, by their name in PACKAGES."""
    found = {"hubgate": Path(hubgate.__file__).parent}
    for distribution in _with_dependencies("httpx", "uvicorn"):
        for file in distribution.files or []:
            top = file.parts[0]
            place = Path(str(distribution.locate_file(top)))
            if top not in ("..", "__pycache__") and place.exists():
                found[top] = place
    return found


def _with_dependencies(*names: str) -> Iterator[importlib.metadata.Distribution]:
    waiting, seen = list(names), set(names)
    while waiting:
        try:
            distribution = importlib.metadata.distribution(waiting.pop())
        except importlib.metadata.PackageNotFoundError:
            # For another version of Python.
            continue
        yield distribution
        for requirement in distribution.requires or []:
            name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
            if "extra ==" not in requirement and name not in seen:
                seen.add(name)
                waiting.append(name)
