"""Laws of sar's reader: what the tool prints is what is read; nothing is guessed or lost."""

import random
import re
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_text
from sim.tools import sar
from sim.tools.run import GENERATIONS, run_tool
from sim.tools.sar import SarReading, Window
from tests.calibration.mangle import figures, interleavings, noise, read_any
from tests.calibration.sar_texts import TEXTS
from tests.calibration.texts import TEXTS as OTHER_TEXTS
from tests.tools.sar_servers import server

OTHERS = ("vmstat", "uptime", "free 4.0", "swapon")  # whose lines tell by themselves whose they are

KIB, SECTOR = 1024, 512
# Key of the tool's values -> column and what one is, written down apart from the reader.
MEANINGS = {
    "%user": ("user_pct", 1),
    "%nice": ("nice_pct", 1),
    "%system": ("system_pct", 1),
    "%iowait": ("iowait_pct", 1),
    "%steal": ("steal_pct", 1),
    "%idle": ("idle_pct", 1),
    "proc": ("forks_per_s", 1),
    "cswch": ("ctxt_per_s", 1),
    "pswpin": ("swapin_pages_per_s", 1),
    "pswpout": ("swapout_pages_per_s", 1),
    "pgpgin": ("pgin_bytes_per_s", KIB),
    "pgpgout": ("pgout_bytes_per_s", KIB),
    "pgfault": ("pgfault_per_s", 1),
    "pgmajfault": ("pgmajfault_per_s", 1),
    "pgfree": ("pgfree_per_s", 1),
    "pgscank": ("pgscan_kswapd_per_s", 1),
    "pgscand": ("pgscan_direct_per_s", 1),
    "pgsteal": ("pgsteal_per_s", 1),
    "vmeff": ("vmeff_pct", 1),
    "reads": ("all_r_per_s", 1),
    "writes": ("all_w_per_s", 1),
    "discards": ("all_d_per_s", 1),
    "read_sectors": ("all_read_bytes_per_s", SECTOR),
    "write_sectors": ("all_write_bytes_per_s", SECTOR),
    "discard_sectors": ("all_discard_bytes_per_s", SECTOR),
    "running": ("procs_running", 1),
    "tasks": ("procs_total", 1),
    "load1": ("load1", 1),
    "load5": ("load5", 1),
    "load15": ("load15", 1),
    "blocked": ("procs_blocked", 1),
    "MemFree": ("mem_free_bytes", KIB),
    "MemAvailable": ("mem_available_bytes", KIB),
    "used": ("mem_used_bytes", KIB),
    "used_pct": ("mem_used_pct", 1),
    "Buffers": ("mem_buffers_bytes", KIB),
    "Cached": ("mem_cached_bytes", KIB),
    "Committed_AS": ("mem_committed_bytes", KIB),
    "committed_pct": ("mem_committed_pct", 1),
    "Active": ("mem_active_bytes", KIB),
    "Inactive": ("mem_inactive_bytes", KIB),
    "Dirty": ("mem_dirty_bytes", KIB),
    "SwapFree": ("swap_free_bytes", KIB),
    "SwapUsed": ("swap_used_bytes", KIB),
    "swap_used_pct": ("swap_used_pct", 1),
    "SwapCached": ("swap_cached_bytes", KIB),
    "swap_cached_pct": ("swap_cached_pct", 1),
    "rsec": ("read_bytes_per_s", SECTOR),
    "wsec": ("write_bytes_per_s", SECTOR),
    "rkB": ("read_bytes_per_s", KIB),
    "wkB": ("write_bytes_per_s", KIB),
    "dkB": ("discard_bytes_per_s", KIB),
    "avgrq": ("areq_bytes", SECTOR),
    "areq": ("areq_bytes", KIB),
    "avgqu": ("aqu_sz", 1),
    "await": ("await_ms", 1),
    "svctm": ("svctm_ms", 1),
    "util": ("util_pct", 1),
}


GROWTH = {
    "frmpg/s": ("mem_free_pages_per_s", 1),
    "bufpg/s": ("mem_buffers_pages_per_s", 1),
    "campg/s": ("mem_cached_pages_per_s", 1),
}


def meaning(cell, name):
    """Return the column of a cell; tps is of a device or of all, -R has growth of what -r has."""
    if cell.key == "tps":
        return ("io_per_s", 1) if name else ("all_io_per_s", 1)
    return GROWTH.get(cell.title) or MEANINGS[cell.key]


def table_of(options, snapshots):
    """Return what the tool computed: {(second, report, name, column): (value, half a digit)}."""
    readings = [SarReading(snapshot) for snapshot in snapshots]
    rows = {}
    for report, (prev, cur) in enumerate(pairwise(readings)):
        second = (cur.t_ns - readings[0].t_ns) / 10**9
        for table in options.tables:
            for row in table.compute(Window(prev, cur, table.gauges(cur), 1)):
                for cell in table.columns:
                    column, unit = meaning(cell, row.name)
                    half = unit * 0.5001 * 10**-cell.decimals
                    rows[second, report, row.name, column] = (row.values[cell.key] * unit, half)
    return rows


@st.composite
def command_lines(draw):
    """Return a generation of sar and a command line that it takes."""
    layout = draw(st.sampled_from(sorted(GENERATIONS)))
    letters = [letter for letter, _table in GENERATIONS[layout].sar.tables]
    chosen = draw(st.lists(st.sampled_from(letters), min_size=1, unique=True))
    return layout, [f"-{letter}" for letter in chosen]


@given(
    command_lines(),
    st.randoms(use_true_random=False),
    st.integers(2, 5),
    st.sampled_from([1, 5, 600, 3600, 6 * 3600]),
    st.sampled_from(["C", "en_US", "ISO"]),
    st.integers(0, 86399),
)
@settings(max_examples=150, deadline=None)
def test_what_sar_prints_is_read_back_to_the_printed_digit(
    command_line, draw, count, interval_s, locale, start_s
):
    layout, letters = command_line
    snapshots = server(random.Random(draw.random()), [1000 + interval_s * n for n in range(count)])
    arguments = [*letters, str(interval_s)]
    text = "".join(
        run_tool(
            ["sar", *arguments],
            snapshots,
            hostname="vm",
            release="6.1.0",
            layout=layout,
            boot_wallclock=datetime(2026, 11, 21) + timedelta(seconds=start_s),
            locale=locale,
        )
    )
    recording = read_text(text, "x")
    expected = table_of(sar.parse_options(arguments, GENERATIONS[layout].sar), snapshots)
    read = {(s.time_s, s.report, s.name, s.column): s.value for s in recording.samples}
    assert recording.problems == ()
    assert len(read) == len(recording.samples)
    assert read.keys() == expected.keys()
    assert not [key for key, (value, half) in expected.items() if abs(read[key] - value) > half]


@given(st.sampled_from(sorted(TEXTS)), noise() | st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_after_a_table_is_reported_and_never_fails(name, text):
    read_any(TEXTS[name] + text)
    read_any(TEXTS[name].split("Average")[0] + text)


@pytest.mark.parametrize("name", TEXTS)
def test_a_cut_anywhere_makes_no_figure_that_the_whole_text_does_not_hold(name):
    text = TEXTS[name]
    whole = set(figures(read_text(text, "x")))
    assert {end for end in range(len(text)) if set(figures(read_any(text[:end]))) - whole} == set()


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_begins_anywhere_holds_no_other_values(name):
    text = TEXTS[name]
    starts = [found.start() for found in re.finditer("^", text, re.MULTILINE)]
    whole = {row[:4] for row in figures(read_text(text, "x"))}
    for start in starts:
        assert {row[:4] for row in figures(read_any(text[start:]))} <= whole


@pytest.mark.parametrize("name", TEXTS)
def test_line_ends_trailing_and_squeezed_blanks_change_nothing(name):
    text = TEXTS[name]
    plain = figures(read_text(text, "x"))
    assert figures(read_text(text.replace("\n", "\r\n"), "x")) == plain
    assert figures(read_text(text.replace("\n", "  \n"), "x")) == plain
    assert figures(read_text(re.sub(r"[ \t]+", " ", text), "x")) == plain


@given(st.data(), st.sampled_from(sorted(TEXTS)), st.sampled_from(OTHERS))
@settings(max_examples=100, deadline=None)
def test_sar_mixed_line_by_line_with_another_tool_says_what_each_says(data, name, other):
    texts = TEXTS[name], OTHER_TEXTS[other]
    mixed = read_text(data.draw(interleavings(*texts)), "x")
    assert mixed.problems == ()
    assert untimed(figures(mixed)) == sorted(
        row for text in texts for row in untimed(figures(read_text(text, "x")))
    )


def untimed(rows):
    return sorted(row[:-1] for row in rows)
