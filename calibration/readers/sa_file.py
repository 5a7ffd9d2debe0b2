"""sar's own binary files (/var/log/sa/sa01), through the system's sadf.

Models: `sadf -j FILE -- -A`, typed by somebody else.
Linux counterpart: sysstat sa.h: SYSSTAT_MAGIC; sadf.c.
Invariants: only a file that begins as sadc's do is given to sadf; sadf gets TIME_MAX_S, and no more
of what it prints is held than of any text.
Left out: reading the format itself, which has changed some ten times: sadf of the same machine
knows its own, and `sadf -c` makes a new file of an old one.
"""

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Final

from calibration.readers.intake import UnreadableRecording, take_stream

_MAGIC: Final = (b"\x96\xd5", b"\xd5\x96")  # sa.h: SYSSTAT_MAGIC 0xd596, of either byte order
TIME_MAX_S: Final = 30.0
# What a twin is made from; the rest of -A is ten times as much. -t: the clock of the server.
ASKED: Final = ("-j", "-t")
TABLES: Final = ("-bBdqrSuWw", "-n", "DEV", "-P", "ALL")
PRESSURE: Final = ("-q", "ALL")  # since sysstat 12.3.3; an older sadf refuses the word


def is_sa(raw: bytes) -> bool:
    """Tell whether bytes are a file of sadc's."""
    return raw.startswith(_MAGIC)


def command(path: Path | str) -> str:
    """Return what to type where sadf cannot be called here."""
    return f"sadf -j {path} -- -A > sar.json"


def text_of(path: Path) -> bytes:
    """Return what sadf makes of a file; UnreadableRecording."""
    source = str(path)
    sadf = shutil.which("sadf")
    if sadf is None:
        why = "it is a file of sar's, and no sadf is installed here (package sysstat): type"
        raise UnreadableRecording(source, f"{why} `{command(path)}` where there is one")
    for tables in ((*TABLES, *PRESSURE), TABLES):
        text, said, is_late = _printed([sadf, *ASKED, os.path.abspath(path), "--", *tables], source)
        if is_late:
            raise UnreadableRecording(source, f"sadf was not done with it after {TIME_MAX_S:g} s")
        if text and not said:
            return text
    first = said.splitlines()[0] if said else "it printed nothing"
    why = f"it is a file of sar's, and this machine's sadf does not read it ({first}): type"
    raise UnreadableRecording(source, f"{why} `{command(path)}` on the server itself")


def _printed(line: list[str], source: str) -> tuple[bytes, str, bool]:
    """Return what a command prints, what it says of errors, and whether it was not done in time."""
    with subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    ) as running:
        late = threading.Timer(TIME_MAX_S, running.kill)
        late.start()
        try:
            assert running.stdout is not None and running.stderr is not None
            text = take_stream(running.stdout, source)
            said = running.stderr.read(400).decode(errors="replace").strip()
        finally:
            running.kill()
            is_late = not late.is_alive()
            late.cancel()
    return text, said, is_late
