"""Try `iotwin mine` on this host: python -m benchmarks.own_server TRIAL.

For each load: record it, then the same with twice as many programs and with half as many; make a
twin of the first recording alone, ask it about both, and count how many of the columns that came
lie inside the answered 90 % intervals (`python -m calibration afterwards`). The same is done from
texts alone (`iostat -xz 1`, `vmstat 1`), if these tools are installed; what came then is read from
the whole recording, which has the load average as well. The loads are those of
benchmarks/loads.py; --load adds one of your own (pgbench, fio).

It takes some ten minutes a load, of which seven are the recordings. The disk is the one that TRIAL
is on. What else the host does in these minutes belongs to the recordings: let it do nothing. What
is there already is not recorded again.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any, Final

from benchmarks.loads import KINDS
from calibration.twin.afterwards import width_of

RATES: Final[Mapping[str, float]] = {"mail": 15.0, "log": 30.0, "reads": 150.0}
PROGRAMS: Final = 4
TIMES: Final[Mapping[str, float]] = {"today": 1, "doubled": 2, "halved": 0.5}
SETTLE_S: Final = 10
AFTER_S: Final = 10  # for what a recording takes beside its length
TOOLS: Final[Mapping[str, Sequence[str]]] = {
    "iostat": ("iostat", "-xz", "1"),
    "vmstat": ("vmstat", "1"),
}
WIDTH_MAX: Final = 2.0


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.own_server",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trial", metavar="TRIAL", type=Path, help="folder for what is recorded")
    parser.add_argument("loads", metavar="LOAD", nargs="*", help=f"of {', '.join(KINDS)}")
    parser.add_argument(
        "--load",
        metavar="NAME=COMMAND",
        action="append",
        default=[],
        help="a shell command with {programs}, {seconds} and, if it likes, {folder} in it",
    )
    parser.add_argument("--today", metavar="S", type=int, default=120, help="first recording")
    parser.add_argument("--later", metavar="S", type=int, default=120, help="the two others")
    parser.add_argument(
        "--settle",
        metavar="S",
        type=int,
        default=SETTLE_S,
        help="how long a load runs before it is recorded: a database's checkpoint, and more",
    )
    parser.add_argument("--device", metavar="NAME", help="count only this device, and the load")
    options = parser.parse_args()
    if unknown := sorted(set(options.loads) - set(KINDS)):
        parser.error(f"no load {', '.join(unknown)}; known: {', '.join(KINDS)}")
    if any("=" not in one for one in options.load):
        parser.error("--load is NAME=COMMAND")
    return options


def commands_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the shell command of each load."""
    own = dict(one.split("=", 1) for one in options.load)
    names = options.loads or ([] if own else list(KINDS))
    kept = {
        name: f"exec {shlex.quote(sys.executable)} -m benchmarks.loads {name} {{folder}}"
        f" --programs {{programs}} --rate {RATES[name]} --seconds {{seconds}}"
        for name in names
    }
    return kept | own


def record(command: str, place: Path, what: str, seconds: int, settle_s: int) -> None:
    """Record the host while so many programs of a load run, as a folder and as texts."""
    target = place / what
    if target.exists():
        return
    programs = round(PROGRAMS * TIMES[what])
    prepare = shell_line(command, place, programs, 1)  # lays files, and fills what it reads from
    if subprocess.run(["bash", "-c", prepare], stdout=sys.stderr).returncode:
        sys.exit(f"{place.name}: the load fails: {prepare}")
    print(f"{place.name}: {what}, {programs} programs, {seconds} s", file=sys.stderr, flush=True)
    filled = shell_line(command, place, programs, seconds + settle_s + AFTER_S)
    with subprocess.Popen(["bash", "-c", filled], stdout=sys.stderr) as load:
        time.sleep(settle_s)
        if load.poll() is not None:
            sys.exit(f"{place.name}: the load ended before it was recorded: {filled}")
        unfinished = target.with_suffix(".part")
        with ExitStack() as tools:
            for tool, text in texts_of(place, what).items():
                written = tools.enter_context(text.open("w"))
                line = [*TOOLS[tool], str(seconds + 1)]  # the first is since boot
                tools.enter_context(subprocess.Popen(line, stdout=written))
            told = [*iotwin(), "record", str(unfinished), "--duration", f"{seconds}s"]
            told += ["--interval", "1s"]  # as `iotwin mine --here`
            subprocess.run(told, check=True)
    unfinished.rename(target)


def shell_line(command: str, place: Path, programs: int, seconds: int) -> str:
    """Return what the shell is given for a load of so many programs."""
    folder = shlex.quote(f"{place}/files")
    return command.format(programs=programs, seconds=seconds, folder=folder)


def texts_of(place: Path, what: str) -> dict[str, Path]:
    """Return where each tool's text of a recording is; nothing if a tool is not installed."""
    if any(which(tool) is None for tool in TOOLS):
        return {}
    return {tool: place / f"{what}.{tool}" for tool in TOOLS}


def iotwin() -> list[str]:
    """Return how the twin is called: as it is installed in this Python, compiled if it is."""
    return [sys.executable, "-P", "-m", "sim"]


def answer(place: Path, source: str) -> None:
    """Make the twin of the first recording, and ask it about the other two."""
    asked = ["--what-if", "load=2", "--what-if", "load=0.5"]
    stem = f"{place}/{source}"
    made = ["-o", f"{stem}.toml", "--json", f"{stem}.json", "--store", "none"]
    with (place / f"{source}.txt").open("w") as told:
        command = [*iotwin(), "mine", *sources_of(place, "today")[source], *asked, *made]
        subprocess.run(command, check=True, stdout=told)


def sources_of(place: Path, what: str) -> dict[str, list[str]]:
    """Return the files of each way to record: ours, and the texts of the usual tools."""
    texts = [str(text) for text in texts_of(place, what).values()]
    return {"record": [f"{place}/{what}"]} | ({"texts": texts} if texts else {})


def afterwards(place: Path, source: str, what: str, device: str | None) -> dict[str, Any]:
    """Return what `python -m calibration afterwards` says of one answer."""
    command = [sys.executable, "-P", "-m", "calibration", "afterwards", f"{place}/{source}.json"]
    command += [f"{place}/{what}", "--what-if", f"load={TIMES[what]:g}"]
    command += ["--json", "-", *(["--device", device] if device else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def count(places: Sequence[Path], source: str, device: str | None) -> None:
    """Print what was answered of each load, beside what came."""
    print(f"from {source}:")
    print(f"{'load':<10} {'asked':<8} {'inside':>8} {'width':>6}  {'twin':<12} outside")
    inside = columns = 0
    widths = []
    for place in places:
        if not (place / f"{source}.json").exists():
            answer(place, source)
        for what in ("doubled", "halved"):
            told = afterwards(place, source, what, device)
            outside = [key for key, one in told["outcomes"].items() if not one["inside"]]
            inside, columns = inside + told["inside"], columns + told["columns"]
            widths += [width_of(one["lo"], one["hi"]) for one in told["outcomes"].values()]
            counted, width = f"{told['inside']}/{told['columns']}", told["width_median"]
            verdict = told["verdict"].partition(":")[0]
            print(
                f"{place.name:<10} {what:<8} {counted:>8} {width or 0:>6.2f}  {verdict:<12}"
                f" {', '.join(outside)}",
                flush=True,
            )
    narrow = sum(one <= WIDTH_MAX for one in widths)
    print(
        f"inside: {inside} of {columns} columns; no wider than a factor of {WIDTH_MAX:g}:"
        f" {narrow} of {len(widths)}; width {median(widths):.2f} in the median"
    )


def main() -> None:
    """Record all loads, then ask, then count."""
    options = parse_options()
    places = []
    for name, command in commands_of(options).items():
        places.append(options.trial / name)
        places[-1].mkdir(parents=True, exist_ok=True)
        for what in TIMES:
            seconds = options.today if what == "today" else options.later
            record(command, places[-1], what, seconds, options.settle)
    for source in sources_of(places[0], "today"):
        count(places, source, options.device)


if __name__ == "__main__":
    main()
