"""A real program that sees a tree as its /proc and /sys, without any privilege.

Models: a private user, mount and UTS namespace: within it the user is root, takes the twin's host
name, binds two folders over /proc and /sys, and becomes the program. Nobody outside sees the
mounts; they go with the last process. /proc/self of the tree leads to the real one where a program
asks about itself (its descriptors). ps, pgrep and pidof look for their own number in /proc and end
without it: a folder at the head of PATH has one of each, which lists the real one there meanwhile.
Linux counterpart: unshare(1), mount(8), setpriv(1) of util-linux; user_namespaces(7).
Invariants: files are read through the mounts, so they must be rewritten in place. The program ends
 when the command that started it does (PR_SET_PDEATHSIG).
Left out: ps that a script calls by its path; what a program asks the kernel and not its files:
 sysinfo(2), getloadavg of some C libraries, netlink, statfs; a pid namespace.
"""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SELF: Final = "proc/self"
HOST: Final = "host"  # where the real /proc is seen, below the tree's top
# What a program looks up about itself. "mounts" is the twin's.
OWN: Final = (
    "cwd",
    "environ",
    "exe",
    "fd",
    "fdinfo",
    "maps",
    "ns",
    "root",
    "stat",
    "status",
    "task",
)
COMMANDS: Final = "bin"
# Programs that stop if they find no /proc/PID of their own.
FIND_THEMSELVES: Final = ("ps", "pgrep", "pidof")
_LISTED: Final = """\
#!/bin/sh
sh -c '[ -e "/proc/$$" ] || ln -s "$0/$$" "/proc/$$"; exec "$@"' {host} {program} "$@"
code=$?
for own in /proc/[0-9]*; do [ -L "$own" ] && rm -f "$own"; done
exit $code
"""
_REFUSED: Final = "refused"  # a file, if the system forbids a mount
_FLAGS: Final = ("--user", "--map-root-user", "--mount", "--uts")
_SCRIPT: Final = f"""
top=$1; shift
PATH="$top/{COMMANDS}:$PATH"; export PATH
hostname -F "$top/proc/sys/kernel/hostname" 2>/dev/null
mount --rbind /proc "$top/{HOST}" && mount --bind "$top/sys" /sys \\
    && mount --bind "$top/proc" /proc || {{ : >"$top/{_REFUSED}"; exit 1; }}
if command -v setpriv >/dev/null; then exec setpriv --pdeathsig TERM -- "$@"; fi
exec "$@"
"""
# Settings that forbid user namespaces: the file, what it says then, and what would allow them.
_SETTINGS: Final = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)


class NamespaceError(RuntimeError):
    """This computer does not let a program have a /proc of its own."""


def prepare(top: Path) -> None:
    """Add to a tree what a program that sees it as its /proc needs."""
    (top / HOST).mkdir()
    (top / COMMANDS).mkdir()
    for name in FIND_THEMSELVES:
        program = shutil.which(name)
        if program is not None:
            script = top / COMMANDS / name
            words = {"host": shlex.quote(str(top / HOST)), "program": shlex.quote(program)}
            script.write_text(_LISTED.format(**words), encoding="utf-8")
            script.chmod(0o755)
    numbers = top / "sys/dev/block"  # where sar -d looks up a name
    numbers.mkdir(parents=True)
    for pattern in ("*/dev", "*/*/dev"):  # disks, and their partitions
        for file in (top / "sys/block").glob(pattern):
            link = file.parent.relative_to(top / "sys")
            (numbers / file.read_text(encoding="ascii").strip()).symlink_to(Path("../..") / link)
    for name in OWN:
        (top / SELF / name).symlink_to(top / HOST / "self" / name)


def check_namespace() -> None:
    """Raise NamespaceError with the reason and the remedy where no namespace can be made."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        raise NamespaceError("unshare and mount are not installed (util-linux has them)")
    probe = ["unshare", *_FLAGS, "mount", "--bind", "/proc/uptime", "/proc/loadavg"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    said = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    settings = [remedy for path, value, remedy in _SETTINGS if _says(Path(path), value)]
    remedy = f"an administrator may allow them: sysctl -w {' '.join(settings)}" if settings else ""
    raise NamespaceError(
        "this computer gives no user and mount namespace to who is not root: "
        f"{said}{'; ' if remedy else ' (in a container its runtime decides)'}{remedy}"
    )


def start(top: Path, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a program that sees the tree; its streams are ours."""
    name = Path(argv[0]).name
    program = name if name in FIND_THEMSELVES else argv[0]
    command = ["unshare", *_FLAGS, "sh", "-c", _SCRIPT, "sh", str(top), program, *argv[1:]]
    return subprocess.Popen(command)


def was_refused(top: Path) -> bool:
    """Return whether the system forbade the mounts, so that the program never ran."""
    return (top / _REFUSED).exists()


def _says(path: Path, value: str) -> bool:
    try:
        return path.read_text(encoding="ascii").strip() == value
    except OSError:
        return False
