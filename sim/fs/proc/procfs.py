"""The /proc file system: a name in, the kernel's text out.

Models: files that parts of the kernel create, each with the function that writes its text; reading
a whole file; each read sees the counters of its moment. Trees of files are those of /sys, and of
the processes.
Linux counterpart: fs/proc/generic.c (proc_create), fs/sysfs/.
Invariants: rendering changes nothing that a program could see (disks integrate up to now).
Left out: partial reads, directories, writing; single files of a tree, which are read together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

SNAPSHOT_FILES = ("stat", "diskstats", "loadavg", "uptime", "meminfo", "vmstat")


class ProcFs:
    """/proc of one machine, and what tools read of its /sys."""

    def __init__(self) -> None:
        self._files: dict[str, Callable[[], str]] = {}
        self._trees: list[tuple[str, Callable[[], Mapping[str, str]]]] = []
        self._more: tuple[str, ...] = ()

    def create(self, name: str, render: Callable[[], str]) -> None:
        """Have a file, whose text `render` returns (proc_create)."""
        assert name not in self._files, f"/proc/{name} is there already"
        self._files[name] = render

    def create_tree(self, render: Callable[[], Mapping[str, str]], name: str = "") -> None:
        """Have files, whose texts `render` returns by path; only for who asks, if it has a name."""
        self._trees.append((name, render))

    def read(self, path: str) -> str:
        """Return the text of `path` ("loadavg" or "/proc/loadavg"); FileNotFoundError if none."""
        name = path.removeprefix("/proc/")
        render = self._files.get(name)
        if render is None:
            raise FileNotFoundError(f"/proc/{name}: not modelled; there are {self.files()}")
        return render()

    def tree(self, name: str) -> Mapping[str, str]:
        """Return the texts by path of the tree of that name."""
        [render] = [render for tree, render in self._trees if tree == name]
        return render()

    def files(self) -> tuple[str, ...]:
        """Return the names of the files."""
        return tuple(sorted(self._files))

    def snapshot_also(self, names: Iterable[str]) -> None:
        """Put more files and trees into what snapshot() returns."""
        self._more = tuple(names)

    def snapshot(self) -> dict[str, str]:
        """Return the texts that the tools read, all of this moment, by name."""
        trees = {name for name, _ in self._trees}
        own = [name for name in self._more if name not in trees]
        texts = {name: self._files[name]() for name in dict.fromkeys((*SNAPSHOT_FILES, *own))}
        for name, render in self._trees:
            if not name or name in self._more:
                texts |= render()
        return texts
