"""How long tasks were held up (/proc/pressure), as a recorder and sysstat 12.6.1 tell it."""

import json
from dataclasses import replace

import pytest

from calibration.look.brief import brief
from calibration.look.summary import System
from calibration.readers import read_text
from calibration.samples import Recording
from tests.calibration.sar_texts import PSI
from tests.calibration.test_twin_draft import seen_of, text
from tests.calibration.test_twin_writes import row

SADF_D = """\
# hostname;interval;timestamp;%scpu-10;%scpu-60;%scpu-300;%scpu
vm;1;2026-11-30 11:44:02 UTC;1.28;0.94;2.88;1.71
# hostname;interval;timestamp;%sio-10;%sio-60;%sio-300;%sio;%fio-10;%fio-60;%fio-300;%fio
vm;1;2026-11-30 11:44:02 UTC;78.40;87.54;77.65;77.30;74.85;84.82;75.34;74.19
# hostname;interval;timestamp;%smem-10;%smem-60;%smem-300;%smem;%fmem-10;%fmem-60;%fmem-300;%fmem
vm;1;2026-11-30 11:44:02 UTC;0.00;0.00;0.00;0.00;0.00;0.00;0.00;0.00
"""
SADF_J = json.dumps(
    {
        "sysstat": {
            "hosts": [
                {
                    "nodename": "vm",
                    "file-date": "2026-11-30",
                    "statistics": [
                        {
                            "timestamp": {
                                "date": "2026-11-30",
                                "time": "11:44:02",
                                "utc": 1,
                                "interval": 1,
                            },
                            "psi": {
                                "psi-cpu": {"some_avg10": 1.28, "some_avg": 1.71},
                                "psi-io": {
                                    "some_avg10": 78.4,
                                    "some_avg": 77.3,
                                    "full_avg10": 74.85,
                                    "full_avg": 74.19,
                                },
                                "psi-mem": {"some_avg": 0.0, "full_avg": 0.0},
                            },
                        }
                    ],
                }
            ]
        }
    }
)
TOLD = {
    "pressure_cpu_some_pct": 1.71,
    "pressure_io_some_pct": 77.3,
    "pressure_io_full_pct": 74.19,
    "pressure_memory_some_pct": 0.0,
    "pressure_memory_full_pct": 0.0,
}


@pytest.mark.parametrize("told", [PSI, SADF_D, SADF_J], ids=["sar", "sadf -d", "sadf -j"])
def test_each_text_of_sysstat_tells_the_pressure_of_its_interval(told: str) -> None:
    """The averages of 10 s and more beside it reach back beyond the interval."""
    recording = read_text(told, "x")
    assert {one.column: one.value for one in recording.samples} == TOLD
    assert not recording.problems


def recorded(*files: str, name: str = "io") -> Recording:
    """Return a recording with such files of pressure, one a second."""
    told = "=== start 2024-03-01T10:00:00.000+0000 interval_s=1\n"
    for second, content in enumerate(files):
        told += (
            f"=== 2024-03-01T10:00:0{second}.000+0000\n==> /proc/uptime <==\n{100 + second}.00"
            f" 100.00\n==> /proc/stat <==\ncpu 1 0 1 {100 * second} 0 0 0 0 0 0\nintr 1\nctxt 1\n"
            "btime 1\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n==> /proc/diskstats <==\n"
            f"==> /proc/pressure/{name} <==\n{content}=== end\n"
        )
    return read_text(told, "proc.txt")


def pressure(some: int, full: int | None = None) -> str:
    """Return a file of /proc/pressure with such totals, us."""
    told = f"some avg10=0.00 avg60=0.05 avg300=0.39 total={some}\n"
    return told + (f"full avg10=0.00 avg60=0.01 avg300=0.24 total={full}\n" if full else "")


def shares(recording: Recording) -> dict[str, list[float]]:
    """Return what was read of the pressure, %."""
    found: dict[str, list[float]] = {}
    for one in recording.samples:
        if one.column.startswith("pressure"):
            found.setdefault(one.column, []).append(one.value)
    return found


def test_of_a_recorder_s_samples_it_is_the_growth_of_the_totals() -> None:
    """By hand: 0.25 s of a second, then none; a little more than a second of one is all of it."""
    found = shares(recorded(*(pressure(us, 5) for us in (1000, 251_000, 251_000, 1_301_000))))
    assert found["pressure_io_some_pct"] == pytest.approx([25.0, 0.0, 100.0])
    assert found["pressure_io_full_pct"] == [0.0, 0.0, 0.0]
    assert list(shares(recorded(pressure(1), pressure(2), name="cpu"))) == ["pressure_cpu_some_pct"]


@pytest.mark.parametrize(
    "told",
    ["", "some avg10=0.00\n", "some\n", "full avg10=x total=-3\n", "some avg10=0 total=1.5\n"],
)
def test_what_is_no_pressure_is_reported_and_tells_nothing(told: str) -> None:
    recording = recorded(told, told)
    assert not shares(recording)
    why = "/proc/pressure/io is not as the kernel's"
    assert [one.why for one in recording.problems] == [why, why]
    assert any(one.kind == "cpu" and not one.since_boot for one in recording.samples)


@pytest.mark.parametrize(("us", "grew"), [(100, -900), (10**12, 10**12 - 1000)])
def test_a_total_that_falls_or_jumps_is_reported_and_costs_nothing_else(us: int, grew: int) -> None:
    recording = recorded(pressure(1000), pressure(us), pressure(us + 500_000))
    assert shares(recording) == {"pressure_io_some_pct": [50.0]}
    [problem] = recording.problems
    assert problem.why == f"/proc/pressure/io: some grew by {grew} us in 1000000 us"
    assert sum(one.kind == "cpu" and not one.since_boot for one in recording.samples) > 0


def test_a_look_says_for_how_long_tasks_waited() -> None:
    seen = seen_of(text(row(w=50, size_kib=8, flushes=20, w_await=4, util=20)))
    assert not seen.system.pressure
    held_up = {"io_some": 99.7, "io_full": 13.3, "cpu_some": 0.5, "memory_some": 2.0}
    system: System = replace(seen.system, pressure_pct=held_up)
    said = (
        "Pressure: some task waits for I/O 100 % of the time (13 %: all that are not idle),"
        " for memory 2.0 % of the time."
    )
    assert system.pressure == said
    assert any(line.endswith(said) for line in brief(replace(seen, system=system)))
