"""The laboratory: order, no trial done twice, workers that die, and Ctrl-C."""

import multiprocessing
import os
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sim.observation import Observation
from sim.scenario import Scenario, load_text
from sim.study import laboratory as laboratories
from sim.study.executors import Place, place_of
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.store import Store
from sim.study.trial import Figures, Trial, trial_of
from tests.cli.small import SMALL, small_file

FILE = Path("small.toml")
SHORT = SMALL.replace("messages = 60", "messages = 4")
posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def trials(*seeds: int) -> list[Trial]:
    """Return trials of one scenario."""
    scenario = load_text(SHORT, FILE)
    return [trial_of(scenario, seed) for seed in seeds]


def square(number: int) -> int:
    """Return a number's square."""
    return number * number


def own_number(_item: int) -> int:
    """Return the number of this worker."""
    return os.getpid()


def deadly(place: str) -> str:
    """Kill this worker as often as a file says, then return the file's name."""
    path = Path(place)
    left = int(path.read_text())
    if left:
        path.write_text(str(left - 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def seed_alone(seen: Observation) -> Figures:
    """Measure one thing."""
    return {"seed": float(seen.result.seed)}


@pytest.mark.parametrize("place", ["here", "local:2"])
def test_what_comes_out_is_in_the_order_of_what_went_in(place: str) -> None:
    lab = Laboratory(place_of(place))
    items = [5, 3, 9, 1, 1]
    assert lab.map(square, items, [str(one) for one in items]) == [25, 9, 81, 1, 1]
    assert [one.seed for one in lab.run(trials(7, 3, 5))] == [7, 3, 5]


def test_each_value_is_told_with_its_number_before_the_next_is_done() -> None:
    told: list[tuple[int, int]] = []
    done: list[list[tuple[int, int]]] = []

    def remember(item: int) -> int:
        done.append(list(told))
        return square(item)

    items = [5, 3, 9]
    Laboratory().map(remember, items, ["", "", ""], each=lambda *one: told.append(one))
    assert told == [(0, 25), (1, 9), (2, 81)]
    assert done == [told[:0], told[:1], told[:2]]


def test_inside_a_laboratory_workers_stay_and_outside_none_is_left() -> None:
    place = place_of("local:2")
    with Laboratory(place) as lab:
        first, second = (set(lab.map(own_number, range(6), "abcdef")) for _call in range(2))
        assert len(first | second) <= 2
        assert set(multiprocessing.active_children()) != set()
    assert not multiprocessing.active_children()
    alone = Laboratory(place)
    one, other = (set(alone.map(own_number, range(6), "abcdef")) for _call in range(2))
    assert not one & other
    assert not multiprocessing.active_children()


def test_a_laboratory_whose_worker_died_has_others_for_the_next_call(tmp_path: Path) -> None:
    path = tmp_path / "once"
    path.write_text("1")
    with Laboratory(place_of("local:2")) as lab:
        assert lab.map(deadly, [str(path), str(path)], ["", ""]) == ["once", "once"]
        assert lab.map(square, [1, 2, 3], ["", "", ""]) == [1, 4, 9]
    assert not multiprocessing.active_children()


def test_a_scenario_of_another_laboratory_is_read_anew(tmp_path: Path) -> None:
    """What somebody changes between two studies counts, also in one process."""
    trial = Trial(small_file(tmp_path, SHORT), None, (), 1)
    [before] = Laboratory().figures([trial])
    small_file(tmp_path, SHORT.replace("messages = 4", "messages = 6"))
    [after] = Laboratory().figures([trial])
    assert (before["messages_accepted"], after["messages_accepted"]) == (4, 6)


def test_a_trial_that_is_asked_for_twice_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[int] = Counter()
    once = laboratories.run_once

    def count(scenario: Scenario, seed: int, *more: object, **named: object) -> object:
        done[seed] += 1
        return once(scenario, seed, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(laboratories, "run_once", count)
    found = Laboratory().run(trials(1, 2, 1, 1))
    assert [one.seed for one in found] == [1, 2, 1, 1]
    assert done == {1: 1, 2: 1}


def test_what_is_stored_is_not_done_again(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        first = Laboratory(store=store)
        some = first.run(trials(1, 2))
        more = Laboratory(store=store)
        all_of_them = more.run(trials(1, 2, 3))
        assert (first.known, more.known, more.done) == (0, 2, 3)
        assert all_of_them[:2] == some
        assert [one.seed for one in all_of_them] == [1, 2, 3]


def test_readings_that_are_wanted_are_simulated(tmp_path: Path) -> None:
    scenario = load_text(SHORT, FILE)
    with Store(tmp_path / "s") as store:
        Laboratory(store=store).run(trials(1))
        [kept] = Laboratory(store=store).run([trial_of(scenario, 1, keep=True)])
    assert kept.result is not None
    assert kept.result.digest() == kept.digest


def test_another_measure_has_figures_of_its_own(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        [usual] = Laboratory(store=store).figures(trials(4))
        [own] = Laboratory(store=store, measure=seed_alone).figures(trials(4))
    assert own == {"seed": 4.0}
    assert usual != own


@posix
def test_a_worker_that_dies_is_replaced_and_its_work_done_again(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abcdef"]
    for number, file in enumerate(files):
        file.write_text("2" if number == 3 else "1" if number == 4 else "0")
    lab = Laboratory(Place(2, place_of("local:2").start))
    assert lab.map(deadly, [str(one) for one in files], [one.name for one in files]) == list(
        "abcdef"
    )


@posix
def test_work_that_kills_every_worker_is_named_and_the_rest_is_done(tmp_path: Path) -> None:
    files = [tmp_path / name for name in "abcdef"]
    for file in files:
        file.write_text("99" if file.name in "be" else "0")
    lab = Laboratory(place_of("local:2"))
    with pytest.raises(
        UnfinishedError, match=r"(?s)died at each of 3 tries.*work b.*work e"
    ) as told:
        lab.map(deadly, [str(one) for one in files], [f"work {one.name}" for one in files])
    assert told.value.done == ["a", None, "c", "d", None, "f"]
    assert told.value.shortfall.exit_code == 1
    # Both were done again twice; one may not have been begun when the other broke the pool.
    assert {int(file.read_text()) for file in files if file.name in "be"} <= {96, 97}


def test_an_error_of_the_work_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Laboratory(place_of("local:2")).map(square, ["a", "b"], ["a", "b"])


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    done = threading.Semaphore(0)

    def stop(number: int) -> int:
        if number == 3:
            raise KeyboardInterrupt
        done.release()
        return number

    lab = Laboratory()
    lab.planned = 1000
    with pytest.raises(UnfinishedError, match="interrupted after 3 of 1000 runs") as told:
        lab.map(stop, range(6), [str(one) for one in range(6)])
    assert told.value.done == [0, 1, 2, None, None, None]
    assert told.value.shortfall.exit_code == 130


def test_no_more_is_under_way_than_there_are_workers_and_one() -> None:
    under_way, most = 0, 0
    lock = threading.Lock()

    class Counting(ThreadPoolExecutor):
        def submit(self, *given: object, **more: object) -> object:  # type: ignore[override]
            nonlocal under_way, most
            with lock:
                under_way += 1
                most = max(most, under_way)
            future = super().submit(*given, **more)  # type: ignore[arg-type]
            future.add_done_callback(lambda _future: gone())
            return future

    def gone() -> None:
        nonlocal under_way
        with lock:
            under_way -= 1

    lab = Laboratory(Place(3, Counting))
    assert lab.map(square, range(200), [""] * 200)[-1] == 199**2
    assert most <= 4
