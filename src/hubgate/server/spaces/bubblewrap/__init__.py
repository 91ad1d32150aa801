"""Runs Spaces in sandboxes of bubblewrap, on Linux.

A sandbox has its own user, pid, ipc, uts, mount, cgroup and network namespaces, no capabilities, a seccomp filter and a
read-only system. Its work folder is a file system in memory with a fixed size, and its network has only the loopback
interface. `cgroups` limits processor, memory and processes.

Two of the files are programs: `launch.py` joins the cgroups, changes to the Space's own user id if the hub runs as
root, and becomes bubblewrap; `inside.py` is the first process inside, which forwards connections between sockets of the
hub and the app. Both use the standard library only.
"""
