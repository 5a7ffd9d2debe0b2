"""Recorded runs of pg_test_fsync: what is simulated, and under which names it is told."""

import json

from calibration.validate.compare import validate_run
from calibration.validate.pg_test_fsync import SECTIONS, measured_result
from sim.user.pg_test_fsync import ONE_WRITE, TESTS, TWO_WRITES
from tests.calibration.validate.test_description import HDD, QUEUE, run

EXT4 = {"type": "ext4", "proc_mounts": "DEV /mnt/rig/fs ext4 rw,relatime 0 0"}
REMARK = SECTIONS[TWO_WRITES]


def lines(per_s):
    """Return the recorder's lines of all tests."""
    return [
        {"section": SECTIONS[test.section], "test": test.name, "ops_per_s": rate, "us": 1}
        for test, rate in zip(TESTS, per_s, strict=True)
    ]


def test_the_names_are_those_of_the_index_and_of_two_alike_the_last_stands_there() -> None:
    found = measured_result(lines(range(16)))
    assert found[f"{REMARK}: fdatasync /s"] == 5
    assert found[f"{ONE_WRITE}: fdatasync /s"] == 1
    assert found["open_sync sizes.): 16 *  1kB open_sync writes /s"] == 12
    assert found["descriptor.): write, close, fsync /s"] == 14
    assert found["Non-sync'ed 8kB writes: write /s"] == 15
    assert len(found) == 16


def test_a_test_that_was_not_available_leaves_the_others_under_their_names() -> None:
    rows = [row for row in lines(range(16)) if row["test"] != "open_datasync"]
    found = measured_result(rows)
    assert found[f"{REMARK}: fdatasync /s"] == 5
    assert f"{REMARK}: open_datasync /s" not in found


def predicted(tmp_path, disk):
    """Return what is predicted of a run on that disk."""
    content = run(
        workload={"type": "pg_test_fsync", "params": {"seconds": 1}},
        disk={"params": disk, "queue": QUEUE, "fs": EXT4},
    )
    (tmp_path / "run.json").write_text(json.dumps(content), encoding="utf-8")
    return validate_run(tmp_path, seed=1).predicted


def test_a_run_is_predicted_under_the_names_of_what_was_measured(tmp_path) -> None:
    found = predicted(tmp_path, HDD)
    assert set(found["result"]) == set(measured_result(lines(range(16))))
    # Without a write cache each write waits for its place: a revolution or a seek at most.
    assert 40 < found["result"][f"{ONE_WRITE}: fdatasync /s"] < 240


def test_the_time_in_queue_is_that_of_flushes_too(tmp_path) -> None:
    """5.5 and later (diskstats_show): here a flush waits for the platter, and a write does not."""
    flushed = predicted(tmp_path, HDD | {"wcache": 1})
    assert flushed["aqu_sz"] > 1.5 * flushed["await_ms"]["w"] * flushed["wps"] / 1000
