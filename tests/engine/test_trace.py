"""What a tracer keeps, and how it prints."""

from sim.engine.calendar import Calendar
from sim.engine.trace import Record, Tracer, format_record


def emit_all(tracer: Tracer, names: list[str]) -> None:
    for name in names:
        tracer.emit(name, "sdb")


def test_nothing_is_kept_until_started_and_after_stopping() -> None:
    tracer = Tracer(Calendar())
    assert not tracer.enabled
    tracer.trace_marker("before")
    tracer.start()
    tracer.trace_marker("during")
    tracer.stop()
    tracer.trace_marker("after")
    assert [record.args for record in tracer.records()] == [("during",)]


def test_patterns_choose_names() -> None:
    tracer = Tracer(Calendar())
    tracer.start("block_rq_*", "jbd_start_commit")
    emit_all(tracer, ["block_rq_issue", "sched_switch", "jbd_start_commit", "block_rq_complete"])
    assert tracer.names() == ["block_rq_issue", "jbd_start_commit", "block_rq_complete"]


def test_a_ring_keeps_the_newest_and_counts_the_others() -> None:
    tracer = Tracer(Calendar())
    tracer.start(size=2)
    emit_all(tracer, ["a", "b", "c"])
    assert (tracer.names(), tracer.dropped) == (["b", "c"], 1)
    tracer.clear()
    assert (tracer.names(), tracer.dropped) == ([], 0)


def test_records_carry_simulated_time() -> None:
    calendar = Calendar()
    tracer = Tracer(calendar)
    tracer.start()
    calendar.run_until(42)
    tracer.emit("a", 1)
    assert tracer.records() == [Record(42, "a", (1,))]


def test_a_record_prints_like_the_kernels() -> None:
    record = Record(12_004_211_987, "block_rq_issue", ("sdb", "W", 63, 8))
    line = "   12.004211: block_rq_issue: dev=sdb rwbs=W sector=63 nr_sector=8"
    assert format_record(record) == line
    assert format_record(Record(0, "own_name", (1, "two"))) == "    0.000000: own_name: 1 two"
