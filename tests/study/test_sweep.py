"""Sweeps on the twin: exact mean-value analysis, bounds, knees; what is not done is told."""

from pathlib import Path

import pytest

from sim.study.bounds import CLOSED, OPEN, Bounds, Load, bounds_of, load_of, throughput_of
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.outcome import Shortfall
from sim.study.over import Listed, read_listed, read_over
from sim.study.points import NOT_REACHED, PRECISE, Precision, Variants, measure, point_of
from sim.study.summary import Summary, summarise
from sim.study.sweep import GRID, LHS, SOBOL, Design, Sweep, assemble_sweep, grid, sampled
from sim.study.trial import trial_of
from tests.study.readers import DEMAND_S, readers
from tests.test_laws import mva

CONCURRENCY = "process.readers.concurrency"
CALL_S = 0.000_02  # of a CPU, for a direct read: tests/test_laws.py


def sweep_of(
    folder: Path, *overs: str, runs: int | Precision = 1, what_if: str | None = None
) -> Sweep:
    """Return the sweep over a grid."""
    variants = Variants(file=readers(folder))
    base = variants.read(what_if)
    paths = [read_listed(text, [base]) for text in overs]
    points = [point_of(variants, what_if, paths, values) for values in grid(paths)]
    done, unfinished = measure(points, runs, Laboratory())
    return assemble_sweep(base, paths, Design(GRID), done, unfinished)


def test_readers_of_a_constant_disk_are_within_2_percent_of_mean_value_analysis(
    tmp_path: Path,
) -> None:
    """With next to no time outside the disk its distribution does not matter, and MVA is exact."""
    sweep = sweep_of(tmp_path, f"{CONCURRENCY}=1..64*2")
    for one in sweep.points:
        [customers] = one.point.values
        assert isinstance(customers, int)
        rate, _numbers = mva(customers, [DEMAND_S, CALL_S], 0.0)
        assert one.metrics["transactions_per_s"].mean == pytest.approx(rate, rel=0.02)
        response_ms = 1000 * customers / rate
        assert one.metrics["transaction_ms"].mean == pytest.approx(response_ms, rel=0.02)


def test_the_bounds_of_thinking_readers_hold_and_the_knee_is_where_they_cross(
    tmp_path: Path,
) -> None:
    """D = 5 ms, Z = 20 ms: they cross at 5 readers, and 200 reads a second are the most."""
    times = ("process.readers.think_time=20 ms", "run.duration=21 s")
    overs = (f"{CONCURRENCY}=1,2,3,4,5,6,8,12,16", *times)
    [series] = sweep_of(tmp_path, *overs).series
    bounds = series.bounds
    assert bounds is not None
    assert bounds.load.kind == CLOSED
    assert bounds.busiest == "disk sda"
    assert bounds.saturation_per_s == pytest.approx(1 / DEMAND_S, rel=0.05)
    for one in series.points:
        load = float(one.point.values[0])
        found = one.metrics["transactions_per_s"].mean
        assert found <= 1.08 * bounds.throughput_max(load)  # of 800 pauses: 3 %
        response_ms = one.metrics["transaction_ms"].mean
        # The pause and each reader's demand are known to 3 %.
        unknown_ms = 30 * (0.020 + load * DEMAND_S)
        assert response_ms >= 1000 * bounds.response_s_min(load) - unknown_ms
    assert isinstance(series.knee, int)
    assert 4 <= series.knee <= 9


def test_a_point_is_what_run_does_with_its_settings(tmp_path: Path) -> None:
    variants = Variants(file=readers(tmp_path))
    base = variants.read(None)
    path = read_listed(f"{CONCURRENCY}=4", [base])
    point = point_of(variants, None, [path], [4])
    assert point.settings == (f"{CONCURRENCY}=4",)
    [done], _ = measure([point], 1, Laboratory())
    alone = readers(tmp_path).read(sets=point.settings)
    again = Laboratory().run([trial_of(alone, alone.seed)])
    assert done.replications[0].digest == again[0].digest


def test_points_share_their_seeds(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, f"{CONCURRENCY}=1,2", runs=2)
    assert [[run.seed for run in one.replications] for one in sweep.points] == [[3, 4], [3, 4]]


def test_a_grid_has_a_line_for_each_value_of_the_others(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path, "machine.cpus=1,2", f"{CONCURRENCY}=1,2")
    assert [one.point.values for one in sweep.points] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert sweep.along is not None
    assert sweep.along.path == "machine.cpus"
    assert [one.others for one in sweep.series] == [(f"{CONCURRENCY}=1",), (f"{CONCURRENCY}=2",)]


def test_runs_stop_where_the_mean_is_known(tmp_path: Path) -> None:
    """A disk of constant time brings the same each time; a stream does not, to 0.01 %."""
    wanted = Precision(figure="transactions_per_s", share=0.05, runs_max=160)
    [constant] = sweep_of(tmp_path, f"{CONCURRENCY}=4", runs=wanted).points
    assert (len(constant.replications), constant.stopped) == (10, PRECISE)
    never = Precision(figure="transactions_per_s", share=0.0001, runs_max=4)
    [stream] = sweep_of(tmp_path, f"{CONCURRENCY}=4", runs=never, what_if="open").points
    assert (len(stream.replications), stream.stopped) == (4, NOT_REACHED)


class Interrupted(Laboratory):
    """Does the first three trials, and is then interrupted."""

    def run(self, trials):
        done = super().run(trials[:3])
        told = Shortfall(f"interrupted after 3 of {len(trials)} runs", 130)
        raise UnfinishedError([*done, *[None] * (len(trials) - 3)], told)


def test_what_is_done_of_an_interrupted_sweep_is_kept(tmp_path: Path) -> None:
    variants = Variants(file=readers(tmp_path))
    path = read_listed(f"{CONCURRENCY}=1,2,4", [variants.read(None)])
    points = [point_of(variants, None, [path], values) for values in grid([path])]
    done, unfinished = measure(points, 2, Interrupted())
    assert unfinished is not None
    assert unfinished.message == "interrupted after 3 of 6 runs"
    assert [len(one.replications) for one in done] == [2, 1]


# -- Loads and bounds


def test_which_parameters_are_loads(tmp_path: Path) -> None:
    base, stream = readers(tmp_path).read(None), readers(tmp_path).read("open")
    closed = load_of(base, CONCURRENCY)
    assert closed is not None
    assert (closed.kind, closed.throughput) == (CLOSED, "transactions_per_s")
    assert closed.responses == {"transaction_ms": 1000.0}
    rate = load_of(stream, "process.readers.rate")
    assert rate is not None
    assert rate.kind == OPEN
    for scenario, path in (
        (stream, CONCURRENCY),
        (base, "process.readers.rate"),
        (base, "process.readers.reads"),
        (base, "machine.cpus"),
    ):
        assert load_of(scenario, path) is None


def figures(**means: float) -> dict[str, Summary]:
    return {name.replace("__", "."): summarise([mean], "") for name, mean in means.items()}


def test_demands_by_the_utilisation_law() -> None:
    """40 a second keep a disk 22 % busy and 2 CPUs 10 %: 5.5 ms and 5 ms."""
    load = Load(kind=CLOSED, think_s=0.020, throughput="x", responses={})
    seen = figures(x=40, cpu__user_pct=8, cpu__system_pct=2, disk__sda__util_pct=22)
    found = bounds_of(load, 2, seen, cpus=2)
    assert found is not None
    assert found.busiest == "disk sda"
    assert found.demand_s_max == pytest.approx(0.0055)
    assert found.demand_s == pytest.approx(0.0105)
    assert found.crossing == pytest.approx((0.0105 + 0.020) / 0.0055)
    assert found.throughput_max(1) == pytest.approx(1 / 0.0305)
    assert found.throughput_max(100) == pytest.approx(1 / 0.0055)
    assert found.response_s_min(1) == pytest.approx(0.0105)
    assert found.response_s_min(100) == pytest.approx(100 * 0.0055 - 0.020)


def test_what_one_customer_waits_for_is_demand() -> None:
    """One that brings 20 a second and thinks 20 ms is 30 ms under way, whatever is busy."""
    load = Load(kind=CLOSED, think_s=0.020, throughput="x", responses={})
    found = bounds_of(load, 1, figures(x=20, disk__sda__util_pct=10), cpus=1)
    assert found is not None
    assert found.demand_s == pytest.approx(0.030)


def test_what_others_bring_is_added_to_the_bound() -> None:
    """5 a second of one customer who thinks 370 ms: with 30 ms each, 1 / 0.4 = 2.5."""
    load = Load(kind=CLOSED, think_s=0.370, throughput="x", responses={})
    found = bounds_of(load, 1, figures(x=5, disk__sda__util_pct=15), cpus=1)
    assert found is not None
    assert found.beside_per_s == pytest.approx(2.5)
    assert found.throughput_max(1) == pytest.approx(5)
    assert found.throughput_max(found.crossing) == pytest.approx(1 / 0.030)


def test_an_open_stream_is_bound_by_its_rate_and_by_what_is_full_first() -> None:
    load = Load(kind=OPEN, think_s=0.0, throughput="x", responses={})
    found: Bounds | None = bounds_of(load, 10, figures(x=10, disk__sda__util_pct=20), cpus=1)
    assert found is not None
    assert (found.throughput_max(30), found.throughput_max(90)) == (30, pytest.approx(50))


@pytest.mark.parametrize("seen", [{}, {"x": 0.0, "disk__sda__util_pct": 3.0}, {"x": 4.0}])
def test_no_bounds_of_nothing(seen: dict[str, float]) -> None:
    load = Load(kind=OPEN, think_s=0.0, throughput="x", responses={})
    assert bounds_of(load, 10, figures(**seen), cpus=1) is None


def test_a_scenario_without_a_throughput_has_none(tmp_path: Path) -> None:
    base = readers(tmp_path).read(sets=['measure.families=["cpu"]'])
    assert throughput_of(base) is None


# -- Designs


@pytest.mark.parametrize("kind", [SOBOL, LHS])
def test_a_design_covers_every_quarter_of_a_range(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("scipy")
    base = readers(tmp_path).read(None)
    overs = [read_over(f"{CONCURRENCY}=1..64", [base]), read_over("machine.cpus=1,2", [base])]
    found = list(sampled(overs, Design(kind, 16), seed=3))
    assert len(found) == 16
    assert [sum(low <= float(n) < low + 16 for n, _ in found) for low in (1, 17, 33, 49)] == [4] * 4
    assert [cpus for _, cpus in found].count(1) == 8
    assert list(sampled(overs, Design(kind, 16), seed=3)) == found
    assert isinstance(overs[1], Listed)
