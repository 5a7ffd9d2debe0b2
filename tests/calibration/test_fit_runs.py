"""The journal: whatever was done before an interrupt is not done again, and changes nothing."""

from pathlib import Path

from calibration.fit.runs import Figures, Journal, Laboratory, Trial

TRIALS = [Trial("s", None, (("a", str(i)),), seed=i) for i in range(6)]


class Simulator:
    """Counts what it simulates; stops with an interrupt after a number of trials."""

    def __init__(self, stop_after: int = 10**9) -> None:
        self.seen: list[int] = []
        self.stop_after = stop_after

    def __call__(self, trial: Trial) -> Figures:
        if len(self.seen) == self.stop_after:
            raise KeyboardInterrupt
        self.seen.append(trial.seed)
        return {"x": trial.seed / 3}


def run(path: Path | None, simulator: Simulator, *, resume: bool = False) -> list[Figures]:
    journal = Journal(path)
    if resume:
        journal.resume()
    return Laboratory("text", journal, None, None, simulator).figures(TRIALS)


def interrupted(path: Path, after: int) -> None:
    try:
        run(path, Simulator(after))
    except KeyboardInterrupt:
        return
    raise AssertionError("was not interrupted")


def test_an_interrupted_fit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "j"
    interrupted(path, 4)
    rest = Simulator()
    assert run(path, rest, resume=True) == run(None, Simulator())
    assert rest.seen == [4, 5]


def test_a_line_that_was_cut_off_is_simulated_again(tmp_path: Path) -> None:
    path = tmp_path / "j"
    interrupted(path, 4)
    path.write_text(path.read_text()[:-20])
    rest = Simulator()
    assert run(path, rest, resume=True) == run(None, Simulator())
    assert rest.seen == [3, 4, 5]
    last = Simulator()
    run(path, last, resume=True)
    assert last.seen == []


def test_a_trial_that_occurs_twice_is_simulated_once() -> None:
    simulator = Simulator()
    lab = Laboratory("text", Journal(None), None, None, simulator)
    assert lab.figures([TRIALS[0], TRIALS[1], TRIALS[0]]) == [{"x": 0.0}, {"x": 1 / 3}, {"x": 0.0}]
    assert simulator.seen == [0, 1]


def test_another_seed_value_variant_or_scenario_is_another_simulation() -> None:
    base = Trial("s", None, (("a", "1"),), seed=1)
    others = [
        Trial("s", None, (("a", "1"),), seed=2),
        Trial("s", None, (("a", "2"),), seed=1),
        Trial("s", "tmpfs", (("a", "1"),), seed=1),
        Trial("s", None, (("a", "1"),), seed=1, sets=("machine.cpus=2",)),
        Trial("s", None, (("a", "1"),), seed=1, duration_ns=5),
    ]
    keys = {base.key("text"), base.key("other text"), *(one.key("text") for one in others)}
    assert len(keys) == 2 + len(others)


def test_progress_counts_what_was_found_as_done() -> None:
    told: list[tuple[int, int]] = []
    lab = Laboratory("text", Journal(None), None, lambda *pair: told.append(pair), Simulator())
    lab.planned = 12
    lab.figures(TRIALS)
    lab.figures(TRIALS)
    assert told[-1] == (12, 12)
