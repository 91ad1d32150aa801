"""An unusable git program is reported before the hub starts."""

from pathlib import Path

import pytest
from tests.bed.processes import hubgate


@pytest.mark.parametrize("said", [None, "git version 2.30.2", "gut version 3", ""])
def test_serve_and_doctor_require_git(tmp_path: Path, said: str | None) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if said is not None:
        (programs / "git").write_text(f"#!/bin/sh\necho {said}\n")
        (programs / "git").chmod(0o755)
    done = hubgate("serve", "--port", "0", cwd=tmp_path, PATH=f"{programs}")
    assert (done.returncode, "needs git 2.39 or newer" in done.stderr) == (1, True), done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "needs git 2.39 or newer" in hubgate("doctor", cwd=tmp_path, PATH=f"{programs}").stdout
