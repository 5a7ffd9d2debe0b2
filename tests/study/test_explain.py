"""Where the time goes: the parts of a response time add up, and are what the mechanism says."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.engine.trace import Record
from sim.machine import simulate
from sim.observation import Observation
from sim.scenario import Scenario, load
from sim.study.critical_path import follow
from sim.study.explain import Explanation, NothingToExplainError, explain, spread
from sim.study.metrics import metrics_seen
from sim.study.timeline import PATTERNS, Timeline
from sim.study.waits import WORKER
from tests.cli.small import small_file
from tests.user.exim import FULL, day, exim_scenario

READERS = """\
title = "Readers of a disk"
[machine]
kernel = "2.6.16"
cpus = 2
memory = "1 GiB"
disk.sdb = { profile = "sas-15k", scheduler = "noop" }
mount."/" = { type = "ext3", device = "sdb" }
[process.reader]
program = "random_reader"
count = COUNT
path = "/data"
file_size = "8 GiB"
[run]
duration = "5 s"
[measure]
interval = "1 s"
devices = ["sdb"]
"""


OPEN = """\
title = "A stream of work for two workers"
[machine]
kernel = "6.1"
cpus = 4
memory = "1 GiB"
disk.sda = { device = "multiserver", capacity = "20 GiB", servers = 1, read = "8 ms" }
mount."/" = { type = "ext4", device = "sda" }
[process.stream]
program = "transactions"
arrivals = "open"
rate = "100 /s"
concurrency = 2
reads = 1
direct = true
user = "1 ms"
[process.beside]
program = "transactions"
concurrency = 1
user = "5 ms"
counted = false
[run]
duration = "20 s"
[measure]
interval = "1 s"
families = ["transactions"]
"""


def readers(folder: Path, count: int) -> Scenario:
    path = folder / "readers.toml"
    path.write_text(READERS.replace("COUNT", str(count)), encoding="utf-8")
    return load(str(path))


def share(found: Explanation, kind: str, chosen: Callable[[tuple[str, ...]], bool]) -> float:
    """Return the share of a kind's time whose path is so."""
    [one] = [one for one in found.kinds if one.name == kind]
    return sum(p.mean_ms for p in one.parts if chosen(p.path)) / one.sampled_ms


# -- The timeline and the chains, on traces written by hand.


def traced(*records: tuple[int, str, tuple[object, ...]], end_ns: int = 1000) -> Timeline:
    timeline = Timeline()
    for when_ns, name, args in records:
        timeline.take(Record(when_ns, name, args))
    timeline.finish(end_ns)
    return timeline


def on(when_ns: int, pid: int, cpu: int = 0) -> tuple[int, str, tuple[object, ...]]:
    return when_ns, "sched_switch", (cpu, "swapper", 0, "R", f"t{pid}", pid, "", 0, 0)


def off(
    when_ns: int, pid: int, letter: str, wchan: str, cpu_ns: int
) -> tuple[int, str, tuple[object, ...]]:
    return when_ns, "sched_switch", (0, f"t{pid}", pid, letter, "swapper", 0, wchan, cpu_ns, 0)


def woken(when_ns: int, pid: int, by: int) -> tuple[int, str, tuple[object, ...]]:
    return when_ns, "sched_wakeup", (f"t{pid}", pid, 0, by)


def parts(timeline: Timeline, pid: int, start_ns: int, end_ns: int) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()

    def add(path: tuple[str, ...], ns: int) -> None:
        found[path] += ns

    follow(timeline, pid, start_ns, end_ns, add)
    return found


def test_a_wait_for_a_lock_is_followed_to_what_its_holder_waited_for():
    timeline = traced(
        on(0, 1),
        off(100, 1, "D", "mutex_lock", 100),
        on(0, 2, cpu=1),
        off(50, 2, "D", "sync_buffer", 50),
        (60, "block_rq_issue", ("sdb", 0, 8, 8, 55)),
        (60, "disk_access", ("sdb", 8, 5, 100, 200, 15)),
        (380, "block_rq_complete", ("sdb", 0, 8, 8, 55)),
        woken(380, 2, 0),
        on(390, 2),
        woken(400, 1, 2),
        off(410, 2, "S", "", 70),
        on(410, 1),
        off(500, 1, "S", "", 190),
    )
    disk = ("mutex_lock", "t2", "sync_buffer", "sdb")
    assert parts(timeline, 1, 0, 500) == {
        ("CPU, user",): 190,
        (*disk, "seek"): 65,  # 65 to 165, but the wait begins at 100
        (*disk, "rotation"): 200,
        (*disk, "transfer"): 15,
        ("mutex_lock", "t2", "run queue"): 10,
        ("mutex_lock", "t2", "CPU, user"): 10,
        ("run queue",): 10,
    }


def test_a_lock_handed_on_twice_is_in_a_path_once():
    timeline = traced(
        on(0, 1),
        off(10, 1, "D", "mutex_lock", 10),
        on(0, 2, cpu=1),
        off(10, 2, "D", "mutex_lock", 10),
        on(0, 3, cpu=2),
        woken(200, 2, 3),
        on(200, 2),
        off(210, 3, "S", "", 210),
        woken(300, 1, 2),
        on(300, 1),
        off(310, 2, "S", "", 120),
        off(400, 1, "S", "", 110),
    )
    assert parts(timeline, 1, 10, 300) == {
        ("mutex_lock", "t3", "CPU, user"): 190,
        ("mutex_lock", "t2", "CPU, user"): 100,
    }


def test_an_answer_is_waited_for_at_its_sender_and_then_on_its_way():
    """The asker sends at 100 and sleeps; the answer leaves at 400 and arrives at 420."""
    timeline = traced(
        on(0, 1),
        on(0, 2, cpu=1),
        off(50, 2, "S", "sk_wait_data", 50),
        off(100, 1, "S", "sk_wait_data", 100),
        woken(120, 2, 0),
        on(120, 2, cpu=1),
        (121, "sock_rcv", ("t2", 2, 1, 100)),
        off(400, 2, "S", "sk_wait_data", 330),
        woken(420, 1, 0),
        on(430, 1),
        (431, "sock_rcv", ("t1", 1, 2, 400)),
        off(500, 1, "S", "", 170),
    )
    assert parts(timeline, 1, 100, 500) == {
        ("sk_wait_data",): 20 + 20,  # the question's way and the answer's
        ("sk_wait_data", "t2", "CPU, user"): 280,
        ("run queue",): 10,
        ("CPU, user",): 70,
    }


def test_what_another_host_sends_is_waited_for_on_the_network():
    timeline = traced(
        on(0, 1),
        off(100, 1, "S", "sk_wait_data", 100),
        woken(300, 1, 0),
        on(300, 1),
        (300, "sock_rcv", ("t1", 1, 0, 0)),
        off(400, 1, "S", "", 200),
    )
    assert parts(timeline, 1, 100, 300) == {("sk_wait_data",): 200}


# -- Whole runs.


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return load(small_file(tmp_path_factory.mktemp("small")))


def test_watching_changes_nothing_that_is_simulated(small: Scenario):
    timeline = Timeline()
    watched = simulate(
        small, 5, None, lambda machine: machine.tracer.start(*PATTERNS, sink=timeline.take)
    )
    assert watched.digest() == simulate(small, 5).digest()
    assert timeline.transactions == [] and timeline.tasks  # finish() makes the transactions


@settings(max_examples=8)
@given(seed=st.integers(0, 1000), latency_ms=st.integers(0, 20))
def test_the_parts_of_every_transaction_add_up_to_its_response_time(small, seed, latency_ms):
    scenario = load(str(small.path), sets=(f"machine.disk.sda.latency={latency_ms} ms",), seed=seed)
    timeline = Timeline()
    machines = []

    def watch(machine):
        machines.append(machine)
        machine.tracer.start(*PATTERNS, sink=timeline.take)

    simulate(scenario, seed, None, watch)
    timeline.finish(machines[0].calendar.now)
    kinds = Counter(one.kind for one in timeline.transactions)
    assert kinds["receive"] == 60
    for one in timeline.transactions:
        found = parts(timeline, one.pid, one.start_ns, one.end_ns)
        assert sum(found.values()) == one.end_ns - one.start_ns
        assert min(found.values()) > 0


def test_every_task_does_one_thing_at_a_time(small: Scenario):
    timeline = Timeline()
    simulate(small, 5, None, lambda machine: machine.tracer.start(*PATTERNS, sink=timeline.take))
    timeline.finish(10**12)
    for task in timeline.tasks.values():
        ends = [span.end_ns for span in task.spans]
        assert all(end <= start for end, start in zip(ends, task.starts_ns[1:], strict=False))


def test_one_readers_time_is_the_disks_and_little_else(tmp_path):
    found = explain(readers(tmp_path, 1), ["pread64()"])
    [kind] = found.kinds
    assert kind.count > 100
    in_disk = share(found, "pread64()", lambda path: path[0] == "dio_await_one")
    assert in_disk > 0.97
    rotation = share(found, "pread64()", lambda path: path[-1] == "rotation")
    assert rotation * kind.sampled_ms == pytest.approx(2.0, rel=0.15)  # half of 4 ms
    assert found.resources[0].name == "disk sdb" and found.resources[0].busy_pct > 95


def test_with_eight_readers_a_reads_time_is_mostly_the_queue(tmp_path):
    found = explain(readers(tmp_path, 8), ["pread64()"])
    queued = share(found, "pread64()", lambda path: path[-1] in ("block queue", "drive's queue"))
    assert queued == pytest.approx(7 / 8, abs=0.05)
    assert found.load.mean == pytest.approx(8, abs=0.2)
    assert found.load.journal == 0


def test_the_wait_for_a_worker_is_told_and_is_the_disks(tmp_path):
    """Two workers share a disk that is 80 % busy: what comes waits longer than it is served.

    The mean is the figure that run and compare report, and background work is no part of it.
    """
    path = tmp_path / "open.toml"
    path.write_text(OPEN, encoding="utf-8")
    scenario = load(str(path))
    found = explain(scenario)
    [kind] = found.kinds
    seen = Observation(simulate(scenario, scenario.seed), scenario.measure)
    assert kind.mean_ms == pytest.approx(metrics_seen(seen)["transaction_ms"], rel=1e-6)
    assert kind.sampled_ms == pytest.approx(kind.mean_ms, rel=0.15)
    waited = [one for one in kind.parts if one.waits_for == WORKER]
    assert sum(one.mean_ms for one in waited) > kind.sampled_ms / 4
    assert sum(one.mean_ms for one in waited if one.ends_in == "device") > 0.8 * sum(
        one.mean_ms for one in waited
    )


def test_mail_on_a_journal_waits_for_the_journal_and_the_load_says_so(small: Scenario):
    found = explain(small)
    assert [kind.name for kind in found.kinds] == ["receive", "deliver"]
    receive, _ = found.kinds
    assert receive.journal_share > 0.5
    waiting = dict(found.load.blocked)["log_wait_commit"]
    assert waiting <= found.load.journal + 0.02 and found.load.journal < 2 * waiting
    assert [one.name for one in found.resources] == ["disk sda", "journal of sda", "CPUs (2)"]


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.39", "4.19"])
def test_mail_on_xfs_waits_for_its_log_and_the_load_says_so(small: Scenario, kernel: str):
    sets = ('machine.mount."/".type="xfs"', f'machine.kernel="{kernel}"')
    found = explain(load(str(small.path), sets=sets))
    receive, _ = found.kinds
    assert receive.journal_share > 0.25
    in_log = sum(number for wchan, number in found.load.blocked if wchan.startswith("xlog_"))
    assert 0 < in_log <= found.load.journal + 0.02
    assert {one.name for one in found.resources[:2]} == {"disk sda", "journal of sda"}


def test_a_kind_that_nobody_has_names_those_there_are(small: Scenario):
    with pytest.raises(NothingToExplainError, match=r"'send' was seen \(seen: .*receive"):
        explain(small, ["send"])


def test_who_asks_a_data_base_waits_for_what_it_waits_for():
    """dspam's time is mysqld's, and underneath that the disk's: not the network's."""
    found = explain(exim_scenario(day(accepted_per_day=100_000), **FULL), ["dspam"])
    [dspam] = found.kinds
    ways = {part.path[:2]: part.waits_for for part in dspam.parts}
    assert ways["sk_wait_data", "mysqld"] == "server"
    assert sum(part.mean_ms for part in dspam.parts) == pytest.approx(dspam.sampled_ms)


@given(st.integers(1, 20_000), st.integers(2, 7), st.integers(0, 6))
def test_what_is_followed_is_spread_over_all_and_over_what_comes_in_turn(count, turn, which):
    followed = list(spread(count, 200))
    assert followed == sorted(set(followed))
    assert followed[0] >= 0
    assert followed[-1] < count
    assert min(count, 140) <= len(followed) <= 200
    share = sum(number % turn == which % turn for number in followed) / len(followed)
    if count >= 100:
        assert abs(share - 1 / turn) < 0.15
