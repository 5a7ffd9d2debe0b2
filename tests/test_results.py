"""Results: plain, complete, and the same after a trip through a file."""

import json
from dataclasses import replace

import pytest

from sim.results import ProcSample, Record, RunResult

RESULT = RunResult(
    scenario="s",
    title="t",
    what_if=None,
    seed=7,
    version="1",
    samples=(ProcSample(0, {"loadavg": "0.00 0.00 0.00 1/2 3\n"}),),
    records=(
        Record(5, "storm_begin", "blast", 1),
        Record(6, "message_accepted", "sendmail", 0.5),
        Record(7, "message_accepted", "sendmail", "x"),
    ),
)


def test_a_result_survives_a_file() -> None:
    assert RunResult.from_json(json.loads(RESULT.to_text())) == RESULT


def test_the_digest_sees_everything_simulated_and_nothing_else() -> None:
    for words in ({"version": "2"}, {"title": "x"}, {"scenario": "x"}, {"what_if": "tmpfs"}):
        assert replace(RESULT, **words).digest() == RESULT.digest()
    changed = [
        replace(RESULT, seed=8),
        replace(RESULT, records=RESULT.records[:1]),
        replace(RESULT, samples=(ProcSample(0, {"loadavg": "0.01 0.00 0.00 1/2 3\n"}),)),
    ]
    assert len({RESULT.digest(), *(result.digest() for result in changed)}) == 4


def test_records_are_found_by_name_in_order() -> None:
    assert [record.t_ns for record in RESULT.marks("message_accepted")] == [6, 7]
    assert RESULT.first_ns("storm_begin") == 5
    assert RESULT.first_ns("storm_end") is None


def test_a_file_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 99"):
        RunResult.from_json(RESULT.to_json() | {"format": 99})
