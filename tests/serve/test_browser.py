"""What the page in a browser asks: the runs that its commands do, and the labs' marks."""

import json
import shlex
from typing import Any

import pytest

from sim.lab.labs import lab_files, open_lab
from sim.lab.task import ANSWER
from sim.scenario import load
from sim.serve.browser import PRESETS, Preset, answer
from sim.study.laboratory import run_once

FAST = "tunnel"
LAB = "iostat"


def ask(what: str, events: list[Any] | None = None, **asked: object) -> dict[str, Any]:
    """Return an answer; what happened meanwhile goes into `events`."""
    told: list[str] = []
    found: dict[str, Any] = json.loads(answer(what, json.dumps(asked), told.append))
    if events is not None:
        events += map(json.loads, told)
    return found


def typed(command: str) -> dict[str, Any]:
    """Return what a command `iotwin run` says, as load() takes it."""
    _iotwin, _run, name, *words = shlex.split(command)
    options = list(zip(words[::2], words[1::2], strict=True))
    return {
        "name": name,
        "what_if": dict(options).get("--what-if"),
        "sets": [value for key, value in options if key == "--set"],
        "seed": int(dict(options)["--seed"]),
    }


def test_the_page_is_told_of_every_preset_and_lab() -> None:
    found = ask("presets")
    assert [one["name"] for one in found["presets"]] == [one.name for one in PRESETS]
    alone = [name for name in lab_files() if not open_lab(name).servers]
    assert [one["name"] for one in found["labs"]] == alone


@pytest.mark.parametrize("name", [one.name for one in PRESETS])
def test_a_preset_is_a_scenario_with_sliders_within_their_bounds(name: str) -> None:
    found = ask("controls", address=f"preset={name}")
    assert found["what_ifs"] and found["controls"]
    scenario = load(**typed(found["command"]))
    known = {one.path: one for one in scenario.parameters}
    for one in found["controls"]:
        assert one["now"] == one["own"], "nothing is moved yet"
        assert known[one["path"]].value is not None


@pytest.mark.parametrize("preset", PRESETS, ids=lambda one: one.name)
def test_no_preset_sets_what_a_what_if_is_to_change(preset: Preset) -> None:
    paths = {text.partition("=")[0] for text in preset.sets}

    def values(what_if: str | None) -> dict[str, object]:
        parameters = load(preset.scenario, what_if=what_if).parameters
        return {one.path: one.value for one in parameters if one.path in paths}

    base = values(None)
    assert set(base) == paths
    for one in load(preset.scenario).what_ifs:
        assert values(one.name) == base, one.name


def test_a_run_is_that_of_its_command_with_the_same_digest() -> None:
    events: list[Any] = []
    address = f"preset={FAST}&what_if=four_streams&seed=3"
    found = ask("run", events, address=address)
    scenario = load(**typed(found["command"]))
    assert (scenario.what_if and scenario.what_if.name, scenario.seed) == ("four_streams", 3)
    done = run_once(scenario, 3)
    assert found["digest"] == done.digest
    assert found["values"] == done.metrics
    assert [one["event"] for one in events] == ["begin", *["reading"] * (len(events) - 1)]
    shares = [one["share"] for one in events[1:]]
    assert shares == sorted(shares) and shares[-1] == 1
    # Each reading of the chart is a report of iostat, after the one since boot.
    assert found["iostat"].startswith("$ iostat -t -c -x 1\n")
    assert found["iostat"].count("avg-cpu") == len(shares) + 1


def test_a_slider_takes_the_place_of_what_the_preset_says() -> None:
    found = ask("controls", address="preset=storm&set=process.blast.messages=50")
    [messages] = [one for one in found["controls"] if one["path"] == "process.blast.messages"]
    assert messages["positions"][messages["now"]] == "50"
    assert messages["positions"][messages["own"]] == "100"
    assert found["command"] == (
        "iotwin run sendmail --set 'measure.interval=1 s' --set process.blast.messages=50 --seed 7"
    )


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("", "one preset or one lab must be named"),
        ("preset=storm&lab=iostat", "one preset or one lab must be named"),
        ("preset=strom", "unknown preset 'strom'"),
        ("preset=tunnel&what_if=none", "has no what-if 'none'"),
        ("preset=tunnel&set=run.duration=1 s", "unknown number 'run.duration'"),
        ("preset=tunnel&seed=-1", "not a seed"),
        ("lab=iostat&seed=x", "not a lab's seed"),
        ("lab=iostta&seed=1", "no lab 'iostta'"),
    ],
)
def test_what_is_wrong_with_an_address_is_an_answer(address: str, expected: str) -> None:
    for what in ("controls", "run"):
        [mistake] = ask(what, address=address)["mistakes"]
        assert expected in mistake["message"]


def test_the_server_of_a_lab_is_that_of_its_seed() -> None:
    found = ask("controls", address=f"lab={LAB}&seed=4711")
    scenario = load(**typed(found["command"]))
    drawn = open_lab(LAB).drawn(4711)
    assert scenario.seed == 4711
    # Figures are read from the run that the lab marks by.
    assert run_once(scenario, 4711).digest == run_once(drawn.read(4711), 4711).digest


@pytest.mark.parametrize("name", list(lab_files()))
def test_a_lab_asks_all_but_its_designs(name: str) -> None:
    found = ask("lab", name=name, seed="7")
    lab = open_lab(name)
    assert [one["name"] for one in found["tasks"]] == [
        one.name for one in lab.tasks if one.section == ANSWER
    ]
    assert found["designs"] + len(found["tasks"]) == len(lab.tasks)
    assert all("{" not in one["question"] for one in found["tasks"])
    assert f'lab = "{name}"' in found["text"]


def test_answers_are_marked_and_predictions_count_as_they_were_when_shown() -> None:
    sheet = ask("lab", name=LAB, seed="7")["text"]
    run = ask("run", address=f"lab={LAB}&seed=7")["values"]
    lab = open_lab(LAB)
    [predicted] = [one.name for one in lab.tasks if one.is_kept]
    read = {"await": f"{run['disk.sda.await_ms']} ms", "queue": "a lot"}
    [mistake] = ask("check", text=sheet, answers=read, shows=False)["mistakes"]
    assert "a lot" in mistake["given"]
    read["queue"] = str(run["disk.sda.avgqu_sz"])
    found = ask("check", text=sheet, answers=read, shows=False)
    assert {one["name"]: one["status"] for one in found["marks"]} == {
        "await": "OK",
        "queue": "OK",
        predicted: "FAIL",
    }
    assert not any(one["answer"] for one in found["marks"])
    assert found["told"] == ""
    [mistake] = ask("check", text=sheet, answers=read, shows=True)["mistakes"]
    assert mistake["message"] == f"predict {predicted} first"

    shown = ask("check", text=sheet, answers={**read, predicted: "1000 ms"}, shows=True)
    [mark] = [one for one in shown["marks"] if one["name"] == predicted]
    assert mark["answer"] and shown["told"] == lab.drawn(7).told
    right = {**read, predicted: mark["answer"].partition(",")[0]}
    again = ask("check", text=shown["text"], answers=right, shows=True)
    assert again["score"] == shown["score"], "what was predicted before counts"
