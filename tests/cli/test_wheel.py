"""The built wheel: its contents, its command, and a hub that runs from it."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.bed.processes import ROOT, environment, hub_process

import hubgate

SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel alone. The server's dependencies are those of the tests."""
    folder = tmp_path_factory.mktemp("installed") / "packages"
    uv = Path(sys.executable).parent / "uv"
    command = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--target", folder, wheel]
    subprocess.run(command, check=True, timeout=60)
    return folder


def test_wheel_contains_every_file_of_the_package(wheel: Path) -> None:
    """Templates, static files and migrations too."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not re.match(r"[^/]+\.dist-info/", name)}
    files = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "hubgate").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files - names == set()
    assert {name.partition("/")[0] for name in names} == {"hubgate"}
    assert {Path(name).suffix for name in names} >= {".html", ".css", ".js", ".svg", ".mako"}


def test_command_prints_the_version_of_the_wheel(wheel: Path, installed: Path, tmp_path: Path) -> None:
    variables = environment(PYTHONPATH=str(installed))
    command = [installed / "bin/hubgate", "--version"]
    said = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == f"hubgate {hubgate.__version__}\n"
    assert wheel.name.startswith(f"hubgate-{hubgate.__version__}-")


def test_hub_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Its first start runs the migrations; its pages need templates and static files."""
    command = [str(installed / "bin/hubgate"), "serve"]
    with hub_process(tmp_path, "--deliver", "off", program=command, new=True, PYTHONPATH=str(installed)) as hub:
        with hub.client() as client:
            assert client.get("/readyz").status_code == 200
            page = client.get("/login").text
            styles = re.findall(r'href="(/static/[^"]+\.css)"', page)
            assert styles
            assert [client.get(style).status_code for style in styles] == [200] * len(styles)
        assert hub.stop() == 0
    # Processes that start later need not compile the templates of this page.
    assert len(list((installed / "hubgate/server/web/templates/__pycache__").iterdir())) > 1


def test_pages_work_if_compiled_templates_cannot_be_stored(installed: Path, tmp_path: Path) -> None:
    """As in an installation that belongs to another user."""
    folder = installed / "hubgate/server/web/templates/__pycache__"
    shutil.rmtree(folder, ignore_errors=True)
    folder.symlink_to(tmp_path / "nowhere")
    command = [str(installed / "bin/hubgate"), "serve"]
    with hub_process(tmp_path, "--deliver", "off", program=command, new=True, PYTHONPATH=str(installed)) as hub:
        with hub.client() as client:
            assert client.get("/login").status_code == 200
        assert hub.stop() == 0
    folder.unlink()
