"""Files appear whole or not at all."""

import errno
import json
import os
import pty
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sim.cli.diagnose import EXIT_FAILED, EXIT_USAGE, diagnose
from sim.cli.output import (
    PICTURES,
    UnwritableError,
    check_json,
    check_picture,
    check_replaceable,
    check_writable,
    write_file,
    write_json,
    write_text,
)
from sim.mm.page_alloc import OutOfMemory

LISTED = ("-m", "sim", "list", "--json")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    write_json({"a": "µ"}, str(path))
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "µ"}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_text("old")

    def fail(place: Path) -> None:
        place.write_text("half")
        raise RuntimeError("out of paint")

    with pytest.raises(RuntimeError):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x.png"]


def test_a_place_that_cannot_be_written_is_found_early(tmp_path: Path) -> None:
    check_json("-")
    check_writable(None, str(tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnwritableError, match="no folder"):
        check_writable(str(tmp_path / "no" / "x"))
    with pytest.raises(UnwritableError, match="directory"):
        check_writable(str(tmp_path))


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_a_folder_that_takes_no_files_is_found_early_even_by_root() -> None:
    with pytest.raises(UnwritableError, match=r"^cannot write /proc/x\.json: "):
        check_writable("/proc/x.json")


def test_a_wrong_place_is_the_users_mistake_a_full_disk_is_not() -> None:
    assert diagnose(UnwritableError("/proc/x.json", "no")) == EXIT_USAGE
    assert diagnose(OSError(errno.ENOSPC, "No space left on device")) == EXIT_FAILED


def test_standard_output_is_for_json_alone() -> None:
    with pytest.raises(UnwritableError, match="only --json goes to standard output"):
        check_writable("-")
    check_writable("./-")


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")
    path.chmod(0o600)
    write_text("new", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("is_there", [True, False])
def test_behind_a_symbolic_link_its_target_is_written(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "results").mkdir()
    target, link = tmp_path / "results" / "x.json", tmp_path / "latest"
    if is_there:
        target.write_text("old")
    link.symlink_to("results/x.json")
    check_writable(str(link))
    write_text("new", link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert [p.name for p in target.parent.iterdir()] == ["x.json"]


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(UnwritableError, match="symbolic links"):
        check_writable(str(tmp_path / "a"))


def test_a_pipe_stays_a_pipe_and_is_written_into(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (tmp_path / "link").symlink_to(path)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(path.read_text()))
    reader.start()
    check_writable(str(tmp_path / "link"))
    write_text("all of it", tmp_path / "link")
    reader.join(10)
    assert got == ["all of it"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.fixture
def terminal() -> Iterator[tuple[int, Path]]:
    """Return a terminal's other end and its device file: a device that takes no harm."""
    other, own = pty.openpty()
    yield other, Path(os.ttyname(own))
    os.close(own)
    os.close(other)


def test_a_device_stays_a_device_and_is_written_into(terminal: tuple[int, Path]) -> None:
    other, device = terminal
    check_writable(str(device))
    write_text("all of it", device)
    assert os.read(other, 100) == b"all of it"
    assert stat.S_ISCHR(device.stat().st_mode)


def test_what_is_read_again_is_not_written_into_a_device(terminal: tuple[int, Path]) -> None:
    with pytest.raises(UnwritableError, match="no regular file"):
        check_replaceable(str(terminal[1]))


def test_a_socket_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with closing(socket.socket(socket.AF_UNIX)) as one:
        one.bind(str(path))
        with pytest.raises(UnwritableError, match="a socket"):
            check_writable(str(path))


def test_a_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.stat_result((stat.S_IFBLK | 0o660, *[0] * 9))
    monkeypatch.setattr(Path, "stat", lambda self: disk)
    with pytest.raises(UnwritableError, match="a block device"):
        check_writable(str(tmp_path / "sda"))
    with pytest.raises(UnwritableError, match="a block device"):
        write_text("x", tmp_path / "sda")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc")
def test_dev_stdout_is_what_the_shell_redirected(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("w") as out:
        out.write("before\n")
        out.flush()
        subprocess.run([sys.executable, *LISTED, "/dev/stdout"], stdout=out, check=True)
    text = path.read_text()
    assert text.startswith("before\n")
    assert "\nscenario " in text
    assert '{\n  "scenarios": [\n' in text


def test_the_suffix_of_a_picture_is_looked_at_before_the_run(tmp_path: Path) -> None:
    check_picture(str(tmp_path / "x.PNG"))
    check_picture(None)
    for name in ("x", "x.txt"):
        with pytest.raises(UnwritableError, match="the suffix names the format of a picture"):
            check_picture(str(tmp_path / name))


def test_every_picture_that_is_offered_can_be_drawn() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    known = figure.Figure().canvas.get_supported_filetypes()
    assert {suffix.removeprefix(".") for suffix in PICTURES} <= set(known)


def test_what_the_twin_s_server_ran_out_of_is_neither_the_host_s_nor_a_mistake(
    capsys: pytest.CaptureFixture[str],
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "inode 7 of the server's /spool")
    full.add_note("in task dd[3] at 1.0 s")
    assert diagnose(full) == EXIT_FAILED
    assert capsys.readouterr().err == (
        "iotwin: error: on the simulated server: No space left on device:"
        " inode 7 of the server's /spool, in task dd[3] at 1.0 s\n"
    )
    assert diagnose(OutOfMemory("at 5 ns: no program to kill")) == EXIT_FAILED
    assert capsys.readouterr().err == (
        "iotwin: error: the simulated server ran out of memory: at 5 ns: no program to kill\n"
    )


def test_a_full_disk_is_told_with_the_file_that_was_to_be_written(tmp_path):
    def fill(_place):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "out.json"
    with pytest.raises(OSError, match=r"No space left on device: '.*out\.json'"):
        write_file(path, fill)
    assert not path.exists()
