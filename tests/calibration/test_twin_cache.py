"""What a recording says of a larger page cache, and that it says nothing where it cannot."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look import Look
from calibration.readers.proc_report import vm_counters
from calibration.samples import Sample
from calibration.twin.cache import ACTIVATED, REFAULTS, cache_of, unknown
from calibration.twin.demands import loads_of
from calibration.twin.draft import Draft
from calibration.twin.fitting import draw_draft
from calibration.twin.questions import QuestionError, read_question
from calibration.twin.what_ifs import what_ifs_of
from sim.scenario.load import load_text
from tests.calibration.test_twin_draft import NEW, draft_of, new_row, old_row, seen_of, text

ROW = old_row("sda", r=400, w=0, size_kib=4, await_ms=0.3, util=12)


def seen_with(refaults: float, activated: float) -> Look:
    """Return the look at 400 pages read a second, so many of them refaults."""
    seen = seen_of(text(ROW))
    [recording] = seen.source.recordings
    more = tuple(
        Sample(
            report=1,
            time_s=1.0,
            line=1,
            kind="system",
            name="",
            column=column,
            value=value,
            since_boot=False,
        )
        for column, value in ((REFAULTS, refaults), (ACTIVATED, activated))
    )
    told = replace(recording, samples=(*recording.samples, *more))
    return replace(seen, source=replace(seen.source, recordings=(told,)))


def what_ifs(draft: Draft) -> dict[str, str]:
    return {one.name: one.doc for one in what_ifs_of(draft)}


@pytest.mark.parametrize("asked", ["memory=32 GiB", "double_memory", "half_memory"])
def test_memory_is_refused_where_nothing_tells_what_it_would_save(asked: str) -> None:
    draft = draft_of(text(ROW))
    with pytest.raises(QuestionError, match="not known from this recording: how many of the 400"):
        read_question(asked, draft)
    assert not {"double_memory", "half_memory"} & set(what_ifs(draft))
    assert any(note.startswith("other memory: not known") for note in draft.notes)


def test_refaults_tell_what_twice_the_cache_would_save() -> None:
    """By hand: 400 pages read, 300 of them refaults, 100 activated: from 25 % to 75 %."""
    seen = seen_with(300, 100)
    loads = loads_of(seen)
    cache = cache_of(seen, loads)
    assert cache is not None
    assert (cache.least, cache.most) == (pytest.approx(0.25), pytest.approx(0.75))
    assert unknown(seen, loads) == ""
    draft = draw_draft(seen, 1)
    assert "takes 25 % of the reads, and 75 % at most" in what_ifs(draft)["double_memory"]
    assert "half_memory" not in what_ifs(draft)
    assert "process.sda-reads.load_scale=0.75" in read_question("memory=16 GiB", draft).sets
    with pytest.raises(QuestionError, match="nothing of less"):
        read_question("memory=9 GiB", draft)
    draft.sheet.what_ifs += what_ifs_of(draft)
    names = [one.name for one in load_text(draft.sheet.text("x"), Path("twin.toml")).what_ifs]
    assert "double_memory" in names


@given(refaults=st.floats(0, 1e5), activated=st.floats(0, 1e5))
def test_a_cache_never_saves_more_than_all_reads(refaults: float, activated: float) -> None:
    seen = seen_with(refaults, activated)
    cache = cache_of(seen, loads_of(seen))
    assert cache is not None
    assert 0 <= cache.least <= cache.most <= 1


def test_a_server_that_only_writes_can_be_asked() -> None:
    draft = draft_of(text(new_row("sda", w=50, size_kib=16, flushes=0), heading=NEW))
    assert {"double_memory", "half_memory"} <= set(what_ifs(draft))
    assert read_question("memory=32 GiB", draft).sets == ("machine.memory=32 GiB",)


def test_the_kernels_counters_are_read() -> None:
    found = vm_counters("pgpgin 4\nworkingset_refault_file 7\nworkingset_activate_file 2\n")
    assert (found["refault"], found["reactivated"]) == (7, 2)
