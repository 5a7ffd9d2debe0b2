"""The key of a trial: every value and every line that simulates is in it, no word about them."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sim.machine import simulate
from sim.observation import Observation
from sim.scenario import Scenario, load, load_text, open_scenario, scenario_files
from sim.study import trial as trials
from sim.study.metrics import metrics_seen
from sim.study.trial import Figures, Keys, Trial, model, trial_of
from tests.cli.small import SMALL

FILE = Path("small.toml")
KEYS = Keys(metrics_seen)


def key(scenario: Scenario, seed: int = 1) -> str:
    """Return the key of a scenario under a seed."""
    return KEYS.of(scenario, trial_of(scenario, seed))


def small(text: str = SMALL, what_if: str | None = None) -> Scenario:
    """Return the small scenario."""
    return load_text(text, FILE, what_if=what_if)


def test_words_about_a_scenario_are_not_in_its_key() -> None:
    words = SMALL.replace("title = ", "# a comment\ntitle = ", 1)
    words = re.sub(r'^title = ".*"', 'title = "another"', words, count=1, flags=re.MULTILINE)
    cpus = re.sub(
        r"^cpus = (\d+)$",
        r'cpus = { value = \1, source = "assumed: nobody asked" }',
        SMALL,
        flags=re.MULTILINE,
    )
    assert words != SMALL
    assert key(small(words)) == key(small())
    assert key(small(cpus)) == key(small())


def test_the_seed_the_variant_and_the_measure_are_in_it() -> None:
    def another(seen: Observation) -> Figures:
        return metrics_seen(seen)

    scenario = small()
    others = {
        key(scenario, 2),
        key(small(what_if="slow")),
        Keys(another).of(scenario, trial_of(scenario, 1)),
    }
    assert len(others | {key(scenario)}) == 4


def changed(value: Any) -> Any:
    """Return another plain value of the kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "another" if value is None or isinstance(value, str) else None


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths of all plain values below records and mappings."""
    if is_dataclass(value) and not isinstance(value, type):
        found = [places(getattr(value, one.name), (*path, one.name)) for one in fields(value)]
        return [place for below in found for place in below]
    if isinstance(value, dict):
        found = [places(below, (*path, name)) for name, below in value.items()]
        return [place for below in found for place in below]
    return [path] if changed(value) is not None else []


def with_change(value: Any, path: tuple[str, ...]) -> Any:
    """Return a copy of records and mappings in which one plain value is another."""
    if not path:
        return changed(value)
    name, *rest = path
    if isinstance(value, dict):
        return {**value, name: with_change(value[name], tuple(rest))}
    values = {one.name: getattr(value, one.name) for one in fields(value)}
    values[name] = with_change(values[name], tuple(rest))
    made = type(value).__new__(type(value))  # unchecked: any value will do here
    for field, one in values.items():
        if field == name and getattr(value, name) is None:
            _set_any(made, name)
        else:
            object.__setattr__(made, field, one)
    return made


def _set_any(made: Any, name: str) -> None:
    """Set a field that is None to something; compiled, it takes what is of its type."""
    for one in (True, 1, "another"):
        with suppress(TypeError):
            object.__setattr__(made, name, one)
            return
    raise AssertionError(f"{name} takes nothing")


SENDMAIL = load("sendmail")
PARTS = {name: getattr(SENDMAIL, name) for name in ("server", "links", "processes", "run")}
PLACES = places({**PARTS, "measure": SENDMAIL.measure})


def test_there_are_many_values() -> None:
    assert len(PLACES) > 250


def test_every_value_is_in_the_key() -> None:
    before = key(SENDMAIL)
    for path in PLACES:
        other = with_change(getattr(SENDMAIL, path[0]), path[1:])
        assert key(replace(SENDMAIL, **{path[0]: other})) != before, path


def test_a_neighbour_is_in_the_key() -> None:
    alone = small()
    beside = replace(alone, neighbours={"other": alone})
    busier = replace(alone, neighbours={"other": small(what_if="slow")})
    assert len({key(alone), key(beside), key(busier)}) == 3


def test_a_program_of_the_scenarios_own_is_in_the_key(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("X = 1\n")
    scenario = replace(small(), uses=(own,))
    before = key(scenario)
    own.write_text("X = 2\n")
    assert key(replace(scenario)) != before != key(small())


@pytest.mark.parametrize("name", sorted(scenario_files()))
def test_the_key_of_every_scenario_can_be_made(name: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", key(load(name)))


def test_a_constant_of_the_kernel_is_in_the_model(tmp_path: Path) -> None:
    def model_of(files: dict[str, str]) -> str:
        for path, text in files.items():
            place = tmp_path / path
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        return trials._hash_of_files(trials._simulating(tmp_path), tmp_path)

    before = model_of({"block/queue.py": "DEPTH = 128\n", "report/table.py": "WIDTH = 80\n"})
    assert model_of({"report/table.py": "WIDTH = 100\n"}) == before
    assert model_of({"block/queue.py": "DEPTH = 256\n"}) != before


def test_without_its_sources_the_model_has_no_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two models whose sources were taken away would be one."""
    (tmp_path / "machine.pyc").write_bytes(b"")
    monkeypatch.setattr(trials, "SIM", tmp_path)
    trials.model.cache_clear()
    with pytest.raises(trials.NoSourcesError, match="the sources are not there"):
        trials.model()
    trials.model.cache_clear()


def test_the_model_covers_all_that_simulates_and_measures() -> None:
    """What a simulation and its figures import is hashed, but for the reading of text."""
    code = (
        "import sys\n"
        "from sim.scenario import load\n"
        "from sim.machine import simulate\n"
        "from sim.study.metrics import compute_metrics\n"
        "from sim.study.block_dump import BlockDump\n"
        "one = load('generic', sets=('run.duration=10 s',))\n"
        "compute_metrics(simulate(one, 1), one.measure)\n"
        "print(*(m.__file__ for n, m in sys.modules.items()\n"
        "        if n.partition('.')[0] == 'sim' and getattr(m, '__file__', None)), sep='\\n')\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout
    top = Path(trials.__file__).parents[1]
    known = {path.relative_to(top).with_suffix("") for path in trials.simulating_files()}
    imported = {
        # A compiled module is NAME.cpython-311-....so beside its source.
        path.relative_to(top).with_name(path.name.partition(".")[0])
        for path in map(Path, told.split())
    }
    others = {path for path in imported - known if path.parts[0] not in ("scenario", "toml")}
    assert len(imported) > 100
    assert others <= {Path("study/__init__")}
    assert re.fullmatch(r"[0-9a-f]{32}", model())


@pytest.mark.parametrize("name", ["generic", "sendmail"])
def test_nothing_that_reads_text_runs_while_one_simulates(name: str) -> None:
    scenario = load(name, sets=("run.duration=200 ms", "measure.interval=100 ms"))
    top = Path(trials.__file__).parents[1]
    reading = tuple(str(top / folder) + os.sep for folder in ("scenario", "toml"))
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        simulate(scenario, 1)
    finally:
        sys.setprofile(None)
    assert called
    assert {path for path in called if path.startswith(reading)} <= {
        str(top / "scenario" / "spec.py")
    }


def test_a_trial_resolves_as_its_command_would() -> None:
    one = Trial("sendmail", "ssd", (("process.blast.messages", "100"),), 3, ("machine.cpus=4",))
    scenario = one.resolve()
    assert scenario.server.cpus == 4
    assert scenario.what_if is not None
    assert scenario.what_if.name == "ssd"
    assert one.command == (
        "iotwin run sendmail --what-if ssd --set process.blast.messages=100"
        " --set machine.cpus=4 --seed 3"
    )


def test_a_trial_may_end_earlier_and_not_later() -> None:
    whole = load("generic").run.duration_ns
    shorter = Trial("generic", None, (), 1, duration_ns=10**9).resolve()
    longer = Trial("generic", None, (), 1, duration_ns=whole * 2).resolve()
    assert shorter.run.duration_ns == 10**9
    command = Trial("generic", None, (), 1, duration_ns=10**9).command
    assert command == "iotwin run generic --set 'run.duration=1000000000 ns' --seed 1"
    assert longer.run.duration_ns == whole


def test_what_ifs_are_laid_over_each_other_from_left_to_right() -> None:
    file = open_scenario("generic")
    base = file.read()
    names = [one.name for one in base.what_ifs][:2]
    first, second = (file.read(name) for name in names)
    both = file.read("+".join(names))
    assert both.what_if is not None
    assert both.what_if.title == f"{first.what_if.title}; {second.what_if.title}"  # type: ignore[union-attr]
    changes = {
        one.path
        for one, before in zip(second.parameters, base.parameters, strict=False)
        if one.layer.name == "WHAT_IF" and before.value != one.value
    }
    values = {one.path: one.value for one in both.parameters}
    assert changes
    assert all(values[one.path] == one.value for one in second.parameters if one.path in changes)
