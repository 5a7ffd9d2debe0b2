"""The CPU time of holding a lock: not two CPUs at once, and none of it lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.locking import Holdings, owed_until_ns
from tests.sched.rig import MS, US, Rig

TURNS = 1000


def takers(rig, holdings, count, *, inside_ns, outside_ns, transfer_ns=0):
    """Start tasks that work outside the lock and inside it, by turns; return their turns done."""
    done = []

    def main(task):
        for _ in range(TURNS):
            task.charge_system(outside_ns)
            begun_ns = owed_until_ns(task)
            task.charge_system(inside_ns)
            holdings.add(task, begun_ns, transfer_ns)
            yield
            done.append(rig.calendar.now)

    for number in range(count):
        rig.sched.spawn(f"u{number}", main)
    return done


def turns_per_s(count, cpus, **times):
    rig = Rig(cpus)
    done = takers(rig, Holdings(), count, **times)
    rig.run(1)
    assert len(done) == count * TURNS
    return len(done) / max(done) * 1e9


def test_alone_nothing_is_added():
    rate = turns_per_s(1, 2, inside_ns=6 * US, outside_ns=4 * US, transfer_ns=50 * US)
    assert rate == pytest.approx(1e5, rel=0.01)


@pytest.mark.parametrize("count", [2, 8])
def test_two_cpus_do_no_more_than_the_lock_lets_them(count):
    rate = turns_per_s(count, 2, inside_ns=8 * US, outside_ns=2 * US)
    assert rate == pytest.approx(1 / 8e-6, rel=0.02)


def test_a_lock_held_for_little_costs_little():
    rate = turns_per_s(2, 2, inside_ns=1 * US, outside_ns=99 * US)
    assert rate == pytest.approx(2e4, rel=0.02)


def test_what_the_other_cpu_had_last_has_to_be_fetched():
    rate = turns_per_s(2, 2, inside_ns=8 * US, outside_ns=2 * US, transfer_ns=2 * US)
    assert rate == pytest.approx(1 / 10e-6, rel=0.02)


def test_one_cpu_never_spins():
    rate = turns_per_s(8, 1, inside_ns=8 * US, outside_ns=2 * US, transfer_ns=50 * US)
    assert rate == pytest.approx(1e5, rel=0.01)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(1, 20)), max_size=30))
def test_holdings_of_different_cpus_never_overlap(takes):
    holdings, rig, held = Holdings(), Rig(4), []
    task = rig.sched.spawn("any", lambda task: iter(()))
    for cpu, before_us, inside_us in takes:
        task.cpu, task.system_debt_ns = cpu, before_us * US
        begun_ns = owed_until_ns(task)
        task.charge_system(inside_us * US)
        holdings.add(task, begun_ns, 0)
        end_ns = owed_until_ns(task)
        held.append((cpu, end_ns - inside_us * US, end_ns))
    for number, (cpu, start_ns, end_ns) in enumerate(held):
        for other, begins_ns, ends_ns in held[:number]:
            assert cpu == other or ends_ns <= start_ns or end_ns <= begins_ns
    assert all(end_ns < 1000 * MS for _, _, end_ns in held)
