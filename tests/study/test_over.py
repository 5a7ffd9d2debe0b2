"""What --over says: values, ranges, and mistakes told where they stand."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sim.scenario import Scenario, ScenarioError, load
from sim.study.over import (
    RUNS_MAX,
    Listed,
    Range,
    check_once,
    check_runs,
    read_listed,
    read_over,
    read_range,
)

SENDMAIL = load("sendmail")
SENDERS = "process.blast.concurrency"
RATE = "process.normal.rate"
GIB = 2**30


def values(text: str, scenario: Scenario = SENDMAIL) -> tuple[object, ...]:
    return read_listed(text, [scenario]).values


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (f"{SENDERS}=1,2,4", (1, 2, 4)),
        (f"{SENDERS}=1..64*2", (1, 2, 4, 8, 16, 32, 64)),
        (f"{SENDERS}=1..63*2", (1, 2, 4, 8, 16, 32)),
        (f"{SENDERS}=10..50+5", (10, 15, 20, 25, 30, 35, 40, 45, 50)),
        (f"{SENDERS}=10..53+20", (10, 30, 50)),
        (f"{SENDERS}=1..6*1.5", (1, 2, 3, 5)),
        ("machine.memory=1 GiB..16 GiB*2", tuple(GIB * 2**n for n in range(5))),
        ("machine.memory=1..16 GiB*2", tuple(GIB * 2**n for n in range(5))),
        ("machine.memory=1,2 GiB,64 MiB", (GIB, 2 * GIB, GIB // 16)),
        (f"{RATE}=0.1..0.5+0.1 /s", (0.1, 0.2, 0.3, 0.4, 0.5)),
        (f"{RATE}=1..1e3 msg/s*10", (1.0, 10.0, 100.0, 1000.0)),
        ("process.blast.think_time=10 ms..30 ms+10", (10_000_000, 20_000_000, 30_000_000)),
        ("process.syslogd.sync=true,false", (True, False)),
        ("process.blast.arrivals=closed,open", ("closed", "open")),
        ('machine.kernel="2.6.16",2.6.32', ("2.6.16", "2.6.32")),
        ("process.blast.nice=-10..10+10", (-10, 0, 10)),
    ],
)
def test_values(spec: str, expected: tuple[object, ...]) -> None:
    assert values(spec) == expected


def test_a_range_alone_has_its_ends() -> None:
    found = read_range(f"{RATE}=1..100 msg/s", [SENDMAIL])
    assert (found.path, found.low, found.high) == (RATE, 1.0, 100.0)
    assert (found.at(0), found.at(0.5), found.at(1)) == (1.0, 50.5, 100.0)


@given(st.floats(0.5, 200))
def test_a_load_that_is_searched_can_be_typed_and_lies_in_the_range(number: float) -> None:
    found = read_range(f"{RATE}=1.00005..100.0001 msg/s", [SENDMAIL])
    near = found.near(number)
    inside = min(max(number, found.low), found.high)
    assert found.low <= near <= found.high
    assert near == pytest.approx(inside, rel=1e-3)
    assert near in (found.low, found.high) or len(f"{near:.10g}".replace(".", "").lstrip("0")) <= 4


def test_whole_numbers_of_a_range_are_equally_likely() -> None:
    found = read_range(f"{SENDERS}=1..4", [SENDMAIL])
    shares = [(n + 0.5) / 400 for n in range(400)]
    assert {n: [found.at(share) for share in shares].count(n) for n in (1, 2, 3, 4)} == {
        1: 100,
        2: 100,
        3: 100,
        4: 100,
    }
    assert (found.at(1.0), found.near(2.6), found.near(9.0)) == (4, 3, 4)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.fractions(1, 10).filter(lambda f: f > 1))
def test_values_by_a_factor_rise_within_the_range(low: int, more: int, factor: object) -> None:
    step = max(float(factor), 1.001)  # type: ignore[arg-type]
    found = values(f"{SENDERS}={low}..{low + more}*{step!r}")
    assert all(isinstance(one, int) for one in found)
    assert list(found) == sorted(set(found))
    assert found[0] == low
    assert low <= int(str(found[-1])) <= low + more


@given(st.integers(0, 1000), st.integers(1, 1000), st.integers(1, 100))
def test_values_by_a_step_are_an_arithmetic_series(low: int, more: int, step: int) -> None:
    assert values(f"{SENDERS}={low}..{low + more}+{step}") == tuple(
        range(low, low + more + 1, step)
    )


@given(st.floats(1e-3, 1e6), st.integers(1, 40), st.floats(1.01, 2))
def test_the_end_of_a_range_is_hit_in_spite_of_binary_fractions(
    low: float, steps: int, factor: float
) -> None:
    high = low * factor**steps
    assume(high < 1e15)  # sim.units: no rate is larger
    found = values(f"{RATE}={low!r}..{high!r}*{factor!r}")
    assert len(found) == steps + 1
    assert found[-1] == high


@given(st.sampled_from(["process.blast.think_time", "machine.memory", RATE, SENDERS]), st.data())
def test_a_setting_reads_back_as_its_value(path: str, data: st.DataObject) -> None:
    dim = {one.path: one.dim for one in SENDMAIL.parameters}[path]
    number = data.draw(st.floats(0.001, 1e6) if dim == "rate_per_s" else st.integers(1, 10**12))
    one = read_listed(f"{path}=1,2 {'s' if dim == 'time_ns' else ''}".strip(), [SENDMAIL])
    text = one.setting(number)
    assert values(text) == (number,)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (f"{SENDERS}", "not PATH=VALUES"),
        (f"{SENDERS}=", "no values"),
        ("process.blast.concurency=1", "did you mean 'process.blast.concurrency'?"),
        (f"{SENDERS}=1..64", "a range alone has no values"),
        (f"{SENDERS}=64..1*2", "LOW must be below HIGH, got 64 to 1"),
        (f"{SENDERS}=8..8*2", "LOW must be below HIGH"),
        (f"{SENDERS}=1..64*1", "never arrives: FACTOR must be above 1"),
        (f"{SENDERS}=0..64*2", "never arrives: FACTOR must be above 1, and LOW above 0"),
        (f"{SENDERS}=1..64+0", "never arrives: STEP must be above 0"),
        (f"{SENDERS}=1..64+-1", "never arrives: STEP must be above 0"),
        (f"{SENDERS}=1,,2", "nothing between two commas"),
        (f"{SENDERS}=1,2,1", "1 comes twice"),
        (f"{SENDERS}=a..b*2", "not a range"),
        (f"{SENDERS}=1 ms,2", "is a unit of a time"),
        (f"{SENDERS}=1.5", "expected a whole number"),
        (f"{RATE}=1..2*1.0000001", "a parameter takes at most 1,000,000"),
        ("machine.memory=1..2 s*2", "'s' is a unit of a time"),
        ("machine.memory=1..2*2 GiB", "'GiB' is a unit of a size"),
        ("process.blast.think_time=1,2", "a time needs a unit"),
        ("process.syslogd.sync=yes", "expected true or false"),
    ],
)
def test_mistakes_are_told_where_they_stand(spec: str, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_listed(spec, [SENDMAIL], "--over")
    assert str(caught.value).startswith(f"--over {spec}: error: ")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (f"{SENDERS}=1,2", "not a range alone"),
        (f"{SENDERS}=1..64*2", "not a range alone"),
        ("process.blast.arrivals=closed", "not a range alone"),
        (f"{SENDERS}=64..1", "LOW must be below HIGH"),
    ],
)
def test_what_is_no_range_is_refused(spec: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        read_range(spec, [SENDMAIL], "--load")


def test_each_variant_must_have_the_parameter() -> None:
    tmpfs = load("sendmail", what_if="tmpfs")
    only = next(
        one.path
        for one in SENDMAIL.parameters
        if one.path not in {other.path for other in tmpfs.parameters}
    )
    text = f"{only}={dict((p.path, p.value) for p in SENDMAIL.parameters)[only]}"
    with pytest.raises(ScenarioError, match="tmpfs"):
        read_over(text, [SENDMAIL, tmpfs])


def test_a_path_is_varied_once() -> None:
    paths = [
        read_listed(f"{SENDERS}=1,2", [SENDMAIL]),
        read_listed('process."blast".concurrency=4', [SENDMAIL]),
    ]
    with pytest.raises(ScenarioError, match="is given twice"):
        check_once(paths)
    with pytest.raises(ScenarioError, match=r"by --set process\.blast\.concurrency=8, too"):
        check_once(paths[:1], [f"{SENDERS}=8"])
    check_once(paths[:1], [f"{RATE}=8"])


def test_very_many_runs_must_be_meant() -> None:
    check_runs(RUNS_MAX, meant=False)
    check_runs(RUNS_MAX + 1, meant=True)
    with pytest.raises(ScenarioError, match="100,001 runs: error: more than 100,000 need --yes"):
        check_runs(RUNS_MAX + 1, meant=False)


def test_either_kind_is_read_where_both_may_stand() -> None:
    assert isinstance(read_over(f"{SENDERS}=1..64", [SENDMAIL]), Range)
    found = read_over(f"{SENDERS}=1..64*2", [SENDMAIL])
    assert isinstance(found, Listed)
    assert [found.at(share) for share in (0, 0.5, 0.999, 1)] == [1, 8, 64, 64]
