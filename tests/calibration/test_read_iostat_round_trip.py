"""Any table that the twin's iostat prints is read back to the digits that it printed."""

from dataclasses import fields
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.readers import read_text
from sim.tools.iostat import (
    CPU_COLUMNS,
    SYSSTAT_7,
    SYSSTAT_9,
    SYSSTAT_12,
    TIME_FORMATS,
    UNITS,
    DeviceReport,
    IostatReport,
    cpu_percents,
    render_cpu,
    render_devices,
    render_time,
    render_title,
)
from sim.tools.parse import CpuTicks

LAYOUTS = (SYSSTAT_7, SYSSTAT_9, SYSSTAT_12)
# column -> (field of the report, its unit), for what is printed as it is
PLAIN = {
    "r_per_s": "r_per_s",
    "w_per_s": "w_per_s",
    "d_per_s": "d_per_s",
    "f_per_s": "f_per_s",
    "rrqm_per_s": "rrqm_per_s",
    "wrqm_per_s": "wrqm_per_s",
    "drqm_per_s": "drqm_per_s",
    "rrqm_pct": "rrqm_pct",
    "wrqm_pct": "wrqm_pct",
    "drqm_pct": "drqm_pct",
    "await_ms": "await_ms",
    "r_await_ms": "r_await_ms",
    "w_await_ms": "w_await_ms",
    "d_await_ms": "d_await_ms",
    "f_await_ms": "f_await_ms",
    "svctm_ms": "svctm_ms",
    "aqu_sz": "avgqu_sz",
    "util_pct": "util_pct",
    "io_per_s": "tps",
}
AMOUNTS = {
    "read_bytes_per_s": "rsec_per_s",
    "write_bytes_per_s": "wsec_per_s",
    "discard_bytes_per_s": "dsec_per_s",
}
TOTALS = {
    "read_bytes": "read_sectors",
    "write_bytes": "written_sectors",
    "discard_bytes": "discarded_sectors",
}
SIZES = {
    "areq_bytes": ("avgrq_sectors", 1),
    "rareq_bytes": ("rareq_sectors", 2),
    "wareq_bytes": ("wareq_sectors", 2),
    "dareq_bytes": ("dareq_sectors", 2),
}

figures = st.floats(0, 1e9).map(lambda value: round(value, 4))
KINDS = {"float": figures, "int": st.integers(0, 2**45), "bool": st.just(False)}
names = st.from_regex(r"\A[a-z][a-z0-9/!_-]{0,24}\Z").filter(lambda name: not name.endswith(":"))


@st.composite
def devices(draw):
    found = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    return [
        DeviceReport(
            name=name,
            disk="",
            **{
                f.name: draw(KINDS[str(f.type)])
                for f in fields(DeviceReport)
                if f.name not in ("name", "disk")
            },
        )
        for name in found
    ]


ticks = st.builds(CpuTicks, **{f.name: st.integers(0, 10**6) for f in fields(CpuTicks)})


def sectors_of(unit):
    return UNITS[unit].sectors


def expected(device, column, unit):
    """Return the value of a column and how far rounding may have moved it."""
    sectors = sectors_of(unit)
    if column in PLAIN:
        return getattr(device, PLAIN[column]), 0.005
    if column in AMOUNTS:
        return getattr(device, AMOUNTS[column]) * 512, 0.005 * sectors * 512
    if column in TOTALS:
        return getattr(device, TOTALS[column]) // sectors * sectors * 512, 0
    field, printed_sectors = SIZES[column]
    return getattr(device, field) * 512, 0.005 * printed_sectors * 512


@settings(max_examples=120, deadline=None)
@given(
    layout=st.sampled_from(LAYOUTS),
    is_extended=st.booleans(),
    unit=st.sampled_from(sorted(UNITS)),
    times=st.sampled_from(sorted(TIME_FORMATS)),
    start=st.datetimes(datetime(2003, 1, 1), datetime(2037, 12, 31)),
    reports=st.lists(st.tuples(ticks, devices()), min_size=1, max_size=4),
)
def test_a_table_is_the_same_after_print_and_reading(
    layout, is_extended, unit, times, start, reports
):
    wall = start.replace(microsecond=0)
    columns = layout.extended if is_extended else layout.basic
    text = render_title(
        layout,
        release="2.6.32",
        hostname="mx1",
        machine="x86_64",
        cpus=4,
        wall=wall,
        times=TIME_FORMATS[times],
    )
    for number, (cpu, rows) in enumerate(reports):
        report = IostatReport(t_ns=0, interval_s=5, cpu_ticks=cpu, cpu=None, devices=())
        at = wall + timedelta(seconds=5 * number)
        text += render_time(layout, at, TIME_FORMATS[times])
        text += render_cpu(report, layout)
        text += render_devices(rows, layout, columns, UNITS[unit]) + layout.after_report
    recording = read_text(text, "round trip")

    assert recording.problems == ()
    assert {(s.report, s.time_s, s.since_boot) for s in recording.samples} == {
        (number, 5.0 * number, number == 0) for number in range(len(reports))
    }
    for number, (cpu, rows) in enumerate(reports):
        found = {(s.name, s.column): s.value for s in recording.samples if s.report == number}
        for device in rows:
            for column in {c for name, c in found if name == device.name}:
                value, error = expected(device, column, unit)
                assert found[device.name, column] == pytest.approx(
                    value, abs=1.000001 * error + 1e-6
                )
        assert len(found) == len(rows) * len(columns) + len(layout.cpu_columns)
        percents = cpu_percents(cpu, layout.cpu_columns)
        read = [v for (name, _), v in found.items() if name == "all"]
        assert read == pytest.approx(percents, abs=0.005 + 1e-9)


def test_the_columns_of_the_cpu_are_those_that_the_layouts_have():
    assert [title for title, _ in CPU_COLUMNS] == [title for title, _ in SYSSTAT_7.cpu_columns]
