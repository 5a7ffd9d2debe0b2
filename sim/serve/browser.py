"""What the page in a browser asks of the twin that runs there: answer() is all that it calls.

Models: `iotwin run`, `iotwin exec NAME -- iostat`, `iotwin lab`, where nothing is installed.
Linux counterpart: none.
Invariants: question and answer are texts of JSON. A run here is the run that its command does, with
 the same digest. What is wrong with a question is an answer, `mistakes`. Everything is done in the
 one thread that there is, so nothing of the next question is looked at meanwhile.
Left out: several seeds of a variant, for which a browser is too slow; designs of labs, and labs
 about several servers.

    presets                                 what there is to begin with, and the labs
    controls   address                      the sliders and what-ifs, before anything runs
    run        address                      one run: figures, digest, the text of iostat
    lab        name, seed                   a sheet with its blanks
    check      text, answers, shows         marks of the sheet, and its text as it is now

An address is that of `iotwin serve` (sim/serve/questions.py) with preset=NAME, or lab=NAME&seed=N,
in the place of scenario=NAME. The presets are short: a browser takes up to twice the time of the
interpreted twin, and a second look is to come within 5 s. None of them sets what a what-if of its
scenario sets, since settings lie over what-ifs.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import sim
from sim.lab.kinds.predict import RUNS
from sim.lab.labs import UnknownLab, lab_files, open_lab
from sim.lab.marking import blank_predictions, mark, score
from sim.lab.sheet import commands_of, sheet_of, sheet_text, with_answers, with_predictions
from sim.lab.task import ANSWER, Mark
from sim.scenario.load import SEED_MAX, UnknownScenario
from sim.scenario.spec import Scenario
from sim.serve.questions import (
    SCENARIO,
    SEED,
    Catalogue,
    controls_json,
    mistakes_json,
    read_query,
)
from sim.serve.study import Asked, begin_event, figures_event, reading_event
from sim.serve.worker import Reader, Reading
from sim.study.laboratory import Laboratory, run_once
from sim.study.prompt import generation_of, typed
from sim.study.store import Store
from sim.toml.errors import Place, Problem, ScenarioError, unknown
from sim.units import NS_PER_S

Json = Mapping[str, Any]
Tell = Callable[[str], object]

PRESET: Final = "preset"
LAB: Final = "lab"
IOSTAT: Final = ("iostat", "-t", "-c", "-x")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A server to begin with: a scenario under settings that make its run short."""

    name: str
    title: str
    scenario: str
    sets: tuple[str, ...] = ()
    doc: str


PRESETS: Final = (
    Preset(
        name="storm",
        title="A mail storm of 100",
        scenario="sendmail",
        # On tmpfs the storm lasts 4 s, in which iostat has reports only if they are short.
        sets=("process.blast.messages=100", "measure.interval=1 s"),
        doc="An application mails 100 users at once. What waits for what, while the CPUs are idle?",
    ),
    Preset(
        name="generic",
        title="A database on one disk",
        scenario="generic",
        sets=("run.duration=20 s", "measure.interval=1 s"),
        doc="Requests read pages at random and commit. How long do they wait for the disk?",
    ),
    Preset(
        name="web-limits",
        title="A web server with a limit of CPU time",
        scenario="web-limits",
        sets=("run.duration=15 s",),
        doc="The machine is mostly idle, and pages are slow: a quota stops the server.",
    ),
    Preset(
        name="elevators",
        title="Readers beside a copy",
        scenario="elevators",
        sets=("run.duration=5 s", "measure.interval=1 s"),
        doc="Small reads meet a large copy on one disk. Which elevator lets them through?",
    ),
    Preset(
        name="tunnel",
        title="A file through a tunnel",
        scenario="tunnel",
        doc="A copy over a long way. What bounds it: the line, the window, or a CPU?",
    ),
    Preset(
        name="lvm-snapshot",
        title="A volume under a snapshot",
        scenario="lvm-snapshot",
        # A quarter of what was recorded, of the memory as of what dd writes.
        sets=("process.dd.blocks=512", "machine.memory=768 MiB", "measure.interval=1 s"),
        doc="dd writes 512 MiB to a volume of LVM. What if there is a snapshot of it?",
    ),
)


def answer(what: str, asked: str, tell: Tell) -> str:
    """Return the answer to a question; `tell` gets what happens meanwhile, as texts of JSON."""
    try:
        found = _ANSWERS[what](json.loads(asked), lambda event: tell(_text(event)))
    except (ScenarioError, UnknownScenario, UnknownLab) as error:
        found = {"mistakes": mistakes_json(error)}
    return _text(found)


def _text(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _presets(_asked: Json, _tell: Callable[[Json], object]) -> Json:
    found = map(open_lab, lab_files())
    # Of several servers a terminal is needed, to look at each.
    labs = [{"name": one.name, "title": one.title} for one in found if not one.servers]
    return {
        "presets": [asdict(one) for one in PRESETS],
        "labs": labs,
        "version": sim.__version__,
        "seed_max": SEED_MAX - RUNS,
    }


# -- Runs


@cache
def _catalogue() -> Catalogue:
    return Catalogue()


def _variant(address: str) -> tuple[Scenario, Asked]:
    """Return what an address asks for, without the settings of the sliders and with them."""
    items = parse_qsl(address, keep_blank_values=True)
    began = [(key, text) for key, text in items if key in (PRESET, LAB)]
    if len(began) != 1:
        raise ScenarioError([Problem(_place(address), "one preset or one lab must be named")])
    [(kind, name)] = began
    if kind == LAB:
        scenario, beneath = _server_of(name, next((text for key, text in items if key == SEED), ""))
    else:
        known = {one.name: one for one in PRESETS}
        if name not in known:
            raise ScenarioError([unknown(_place(address), PRESET, name, known)])
        scenario, beneath = known[name].scenario, known[name].sets
    others = [item for item in items if item[0] not in (PRESET, LAB)]
    return _catalogue().asked(read_query([(SCENARIO, scenario), *others]), beneath)


def _server_of(lab: str, seed: str) -> tuple[str, Sequence[str]]:
    """Return the scenario of a lab, and the settings that its seed has drawn."""
    drawn = open_lab(lab).drawn(_seed(seed))
    return drawn.scenario, drawn.settings


def _seed(text: str) -> int:
    most = SEED_MAX - RUNS
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise ScenarioError([Problem(_place(SEED), "not a lab's seed", text, f"0 to {most}")])
    return int(text)


def _place(where: str) -> Place:
    return Place(where, 0, 1, 1, "")


def _controls(asked: Json, _tell: Callable[[Json], object]) -> Json:
    return controls_json(*_variant(asked["address"]))


def _run(asked: Json, tell: Callable[[Json], object]) -> Json:
    _own, variant = _variant(asked["address"])
    scenario = variant.scenario
    devices = scenario.measure.devices
    begin = begin_event(variant)
    tell(begin)

    def read(reading: Reading) -> None:
        tell(reading_event(reading, devices))

    reader = Reader(read)
    done = run_once(
        scenario, scenario.seed, keep=True, progress=reader.progress, watch=reader.watch
    )
    assert done.result is not None
    interval_s = max(1, scenario.measure.interval_ns // NS_PER_S)
    command = (*IOSTAT, str(interval_s))
    layout = generation_of(scenario.server.kernel)
    _result, _samples, shown = typed(scenario, command, layout, None, done=done.result)
    return {
        **begin,
        **figures_event(variant, [done], None),
        "event": "end",
        "values": done.metrics,
        "digest": done.digest,
        "iostat": f"$ {' '.join(command)}\n{shown}",
    }


# -- Labs


def _lab(asked: Json, _tell: Callable[[Json], object]) -> Json:
    name = asked["name"]
    seed = _seed(asked["seed"])
    lab = open_lab(name).drawn(seed)
    return {
        "name": name,
        "title": lab.title,
        "question": lab.question,
        "commands": list(commands_of(lab, seed)),
        "tasks": [
            {"name": one.name, "kind": one.kind, "points": one.points, "question": one.question}
            for one in lab.tasks
            if one.section == ANSWER
        ],
        "designs": sum(one.section != ANSWER for one in lab.tasks),
        "text": sheet_text(name, seed),
    }


def _check(asked: Json, tell: Callable[[Json], object]) -> Json:
    """Return the marks; where answers are shown first, the predictions are kept in the text."""
    text, shows = with_answers(asked["text"], asked["answers"]), asked["shows"]
    sheet = sheet_of(text, Path("sheet.toml"))
    is_first_look = shows and sheet.predicted is None
    if is_first_look and (blank := blank_predictions(sheet)):
        message = f"predict {', '.join(blank)} first"
        raise ScenarioError([Problem(_place("sheet.toml"), message)])

    def progress(done: int, total: int) -> None:
        tell({"event": "share", "share": done / total})

    with Store(_kept()) as store:
        marked = mark(sheet, Laboratory(store=store, progress=progress), answers=shows)
    marks = [one for one in marked if one.task.section == ANSWER]
    if is_first_look:
        text = with_predictions(text, sheet)
    got, most = score(marks)
    return {
        "text": text,
        "marks": [_mark(one, shows=shows) for one in marks],
        "score": got,
        "most": most,
        "told": sheet.lab.told if shows or got == most else "",
    }


@cache
def _kept() -> Path:
    """Return where the runs of labs are kept, for as long as the page is open."""
    return Path(tempfile.mkdtemp(prefix="iotwin-")) / "runs.sqlite"


def _mark(one: Mark, *, shows: bool) -> Json:
    return {
        "name": one.task.name,
        "status": one.status,
        "points": one.points,
        "most": one.task.points,
        "told": one.told,
        "answer": one.answer if shows else "",
    }


_ANSWERS: Final[Mapping[str, Callable[[Json, Callable[[Json], object]], Json]]] = {
    "presets": _presets,
    "controls": _controls,
    "run": _run,
    "lab": _lab,
    "check": _check,
}
