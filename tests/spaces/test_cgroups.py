"""Where control groups are created, for the layouts that machines have; and the files of version 2."""

from pathlib import Path

import pytest

from hubgate.server.spaces.bubblewrap.cgroups import Group, NoGroups, find_hierarchy
from hubgate.server.spaces.runner import MIB, Limits, Use

FIRST = "30 25 0:26 / {root}/memory rw - cgroup cgroup rw,memory\n31 25 0:27 / {root}/pids rw - cgroup cgroup rw,pids\n"
SECOND = "32 25 0:28 / {root} rw - cgroup2 cgroup2 rw\n"


def folder(root: Path, path: str, controllers: str | None = None) -> Path:
    made = root / path
    made.mkdir(parents=True)
    if controllers is not None:
        (made / "cgroup.controllers").write_text(controllers)
    return made


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    memory, pids = folder(tmp_path, "memory/hub"), folder(tmp_path, "pids")
    found = find_hierarchy(FIRST.format(root=tmp_path), "4:memory:/hub\n8:pids:/\n0::/\n")
    assert (found.version, found.folders) == (1, {"memory": memory, "pids": pids})


def test_version_1_in_a_container_begins_at_its_mount(tmp_path: Path) -> None:
    memory, pids = folder(tmp_path, "memory"), folder(tmp_path, "pids")
    mounts = FIRST.format(root=tmp_path).replace("0:26 / ", "0:26 /docker/x ").replace("0:27 / ", "0:27 /docker/x ")
    found = find_hierarchy(mounts, "4:memory:/docker/x\n8:pids:/docker/x\n")
    assert found.folders == {"memory": memory, "pids": pids}


@pytest.mark.parametrize("own", ["/system.slice/hub.service", "/system.slice/hub.service/hubgate-own"])
def test_version_2_uses_the_group_of_the_service(tmp_path: Path, own: str) -> None:
    service = folder(tmp_path, "system.slice/hub.service", "cpu memory pids io")
    found = find_hierarchy(SECOND.format(root=tmp_path), f"0::{own}\n")
    assert (found.version, found.folders) == (2, {"memory": service, "pids": service, "cpu": service})


def test_group_without_controllers_is_a_problem(tmp_path: Path) -> None:
    folder(tmp_path, "user.slice", "pids")
    with pytest.raises(NoGroups, match=r"cannot limit memory\. With systemd, add Delegate=yes"):
        find_hierarchy(SECOND.format(root=tmp_path), "0::/user.slice\n")


def test_machine_without_groups_is_a_problem() -> None:
    with pytest.raises(NoGroups, match="no control groups"):
        find_hierarchy("25 1 0:22 / / rw - ext4 /dev/vda rw\n", "0::/\n")


def test_version_2_limits_and_counts(tmp_path: Path) -> None:
    group = Group(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path))
    for name in ("memory.swap.max", "memory.oom.group", "cpu.max"):
        (tmp_path / name).touch()
    group.limit(Limits(cpu=0.5, memory=64 * MIB, processes=9))
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {
        "memory.max": str(64 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "9",
        "cpu.max": "50000 100000",
    }
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("4096\n")
    (tmp_path / "pids.current").write_text("3\n")
    (tmp_path / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    (tmp_path / "pids.events").write_text("max 7\n")
    assert group.use() == Use(1.5, 4096, 3)
    assert (group.memory_kills(), group.refused_forks()) == (1, 7)
