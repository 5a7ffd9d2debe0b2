"""Where results go: standard output, or files that appear whole or not at all.

A regular file is written beside its place and then renamed, so an error leaves the old file.
Symbolic links, devices and pipes are never replaced. Disks and sockets are refused. There is no
appending.
"""

import contextlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from sim.cli.extras import need

_BESIDE: Final = ".iotwin."
_LINKS_MAX: Final = 40  # include/linux/namei.h: MAXSYMLINKS
# matplotlib 3.8, FigureCanvasBase.filetypes, but pgf, which needs LaTeX.
PICTURES: Final = (
    ".png",
    ".pdf",
    ".svg",
    ".svgz",
    ".eps",
    ".ps",
    ".jpg",
    ".jpeg",
    ".tif",
    ".tiff",
    ".webp",
    ".raw",
    ".rgba",
)
# Nobody means the disk itself by the name of a result; a socket cannot be opened.
_REFUSED: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISSOCK, "a socket"),
)


def write_json(content: dict[str, Any], path: str) -> None:
    """Write JSON to a file, to standard output for "-"."""
    write_to(json.dumps(content, indent=2, ensure_ascii=False) + "\n", path)


def write_picture(path: str | None, module: str, function: str, *shown: object) -> None:
    """Draw what is shown into a file, if one is given, by a function of sim.report.MODULE."""
    if path is not None:
        # By name: matplotlib takes a second, and most commands draw nothing.
        plot = getattr(import_module(f"sim.report.{module}"), function)
        write_file(Path(path), lambda place: plot(*shown, place))
        click.echo(f"plot written to {path}", err=True)


def write_rows(rows: Iterable[dict[str, Any]], path: str) -> None:
    """Write a JSON list, a row on a line, to a file, to standard output for "-"."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    write_to(f"[\n{lines}\n]\n", path)


def write_to(text: str, path: str) -> None:
    """Write a text to a file, to standard output for "-"."""
    if path == "-":
        click.echo(text, nl=False)
    else:
        write_text(text, Path(path))


def write_text(text: str, path: Path) -> None:
    """Write a text to a file, in UTF-8."""
    write_file(path, lambda place: place.write_text(text, encoding="utf-8"))


def write_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` make a file; put it in the place of `path`, or pour it into what stands there.

    Behind a symbolic link it is the file it leads to that is replaced; a character device, a pipe
    and a descriptor (/dev/stdout) stay what they are and are written into.
    """
    _check_kind(path)
    try:
        if _takes_the_place(path):
            _replace(Path(os.path.realpath(path)), fill)
            return
        with tempfile.TemporaryDirectory(prefix="iotwin.") as folder:
            made = Path(folder) / f"output{path.suffix}"
            fill(made)
            _pour(made, path)
    except OSError as error:
        if error.filename is None:  # write(2) knows no name: "No space left on device" of what?
            error.filename = str(path)
        raise


def _replace(path: Path, fill: Callable[[Path], object]) -> None:
    descriptor, name = tempfile.mkstemp(prefix=_BESIDE, suffix=path.suffix, dir=path.parent)
    os.close(descriptor)
    beside = Path(name)
    try:
        fill(beside)
        beside.chmod(_mode(path))
        beside.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):  # it has been put in its place
            os.remove(beside)


def _pour(made: Path, path: Path) -> None:
    """Write a file's bytes into a device, a pipe or an open file."""
    number = _descriptor(path)
    opened = os.open(path, os.O_WRONLY | os.O_NOCTTY) if number is None else os.dup(number)
    with made.open("rb") as source, os.fdopen(opened, "wb") as sink:
        shutil.copyfileobj(source, sink)


def _takes_the_place(path: Path) -> bool:
    """Say whether a file is put where `path` is: nothing is there, or a regular file."""
    try:
        return stat.S_ISREG(path.stat().st_mode) and _descriptor(path) is None
    except FileNotFoundError:
        return True


def _descriptor(path: Path) -> int | None:
    """Return the number of this process's descriptor that a path such as /dev/stdout leads to.

    The file behind it must not be renamed over: the shell that redirected it has it open, and
    what is printed follows at the offset that the two share.
    """
    ours = Path("/proc/self/fd").resolve()
    for _link in range(_LINKS_MAX):
        path = path.parent.resolve() / path.name
        if path.parent == ours and path.name.isdigit():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _mode(path: Path) -> int:
    """Return the permissions of the file to be replaced, those of a new file if there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


class UnwritableError(ValueError):
    """A place named on the command line where no file can be written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}")


def check_json(path: str | None) -> None:
    """Raise UnwritableError now for a place of JSON that could not be written; "-" can be."""
    if path != "-":
        check_writable(path)


def check_writable(*paths: str | None) -> None:
    """Raise UnwritableError now for a file that could not be written after a long run.

    A file is made and removed, since permissions say little: root may do all, yet not in /proc.
    """
    for path in paths:
        if path == "-":
            raise UnwritableError(path, "only --json goes to standard output (a file: ./-)")
        if path == "":
            raise UnwritableError("''", "a file has a name")
        if path is not None:
            _check_kind(Path(path))
            if _takes_the_place(Path(path)):
                _check_folder(path, Path(os.path.realpath(path)).parent)


def check_picture(path: str | None) -> None:
    """Raise UnwritableError for what check_writable refuses, and if no format has that suffix.

    Raise ModuleNotFoundError where nothing is installed that draws.
    """
    check_writable(path)
    if path is not None and Path(path).suffix.lower() not in PICTURES:
        known = ", ".join(suffix.removeprefix(".") for suffix in PICTURES)
        raise UnwritableError(path, f"the suffix names the format of a picture (known: {known})")
    if path is not None:
        need("matplotlib")


def check_replaceable(*paths: str | None) -> None:
    """Raise UnwritableError for what check_writable refuses, and for devices and pipes.

    For results that are read again, or beside which other files are made.
    """
    check_writable(*paths)
    for path in paths:
        if path is not None and not _takes_the_place(Path(path)):
            raise UnwritableError(path, "it is no regular file")


def check_apart(*results: str | None, read: Iterable[str | Path | None] = ()) -> None:
    """Raise UnwritableError for two results in one file, or one in a file that is `read`."""
    # realpath, as resolve() fails at links that lead in a circle: that is told when one is opened.
    taken = {Path(os.path.realpath(path)): "it is read" for path in read if path is not None}
    for path in results:
        if path is None or path == "-":
            continue
        place = Path(os.path.realpath(path))
        if place in taken and _takes_the_place(place):
            raise UnwritableError(path, taken[place])
        taken[place] = "another result goes there"


def _check_kind(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnwritableError(str(path), str(error.strerror)) from None
    for is_kind, name in _REFUSED:
        if is_kind(mode):
            raise UnwritableError(str(path), f"it is {name}")


def _check_folder(path: str, folder: Path) -> None:
    if not folder.is_dir():
        raise UnwritableError(path, f"no folder {folder}")
    try:
        with tempfile.NamedTemporaryFile(prefix=_BESIDE, dir=folder):
            pass
    except OSError as error:
        reason = f"no file can be made in {folder} ({error.strerror})"
        raise UnwritableError(path, reason) from None
