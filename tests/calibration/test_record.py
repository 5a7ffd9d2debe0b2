"""The recorder: what it writes is what the kernel said, and what it loses when it is killed."""

import ast
import fcntl
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from calibration import record as recorder
from calibration.host import read_costs
from calibration.readers import UnreadableRecording, read_text
from calibration.record import RecordError, held, parse_seconds, record, resume
from calibration.record_text import text_samples

STAT = """cpu  {user} 0 0 {idle} {iowait} 0 0 0 0 0
cpu0 {user} 0 0 {idle} {iowait} 0 0 0 0 0
intr 0
ctxt 0
btime 0
processes 1
procs_running 2
procs_blocked 1
"""
DISKS = """   8       0 sda {reads} 0 {sectors} {read_ms} 0 0 0 0 0 {busy_ms} {read_ms}
   8       1 sda1 {reads} 0 {sectors} {read_ms} 0 0 0 0 0 {busy_ms} {read_ms}
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
"""


def host(root: Path, second: int = 0) -> Path:
    """Make /proc of a host that reads 50 times a second, 8 sectors in 4 ms each."""
    done = 1000 + 50 * second
    write(root / "proc/uptime", f"{100 + second}.00 50.00\n")
    write(
        root / "proc/stat",
        STAT.format(user=100 + 10 * second, idle=500 + 70 * second, iowait=20 * second),
    )
    write(
        root / "proc/diskstats",
        DISKS.format(reads=done, sectors=8 * done, read_ms=4 * done, busy_ms=2 * done),
    )
    write(root / "proc/loadavg", "1.50 1.20 0.90 2/2 4321\n")
    write(root / "proc/77/stat", "77 (a) b) D 1 77\n")
    write(root / "proc/78/stat", "78 (sleeper) S 1 78\n")
    write(root / "proc/sys/kernel/osrelease", "2.6.16\n")
    write(root / "sys/block/sda/size", "2048\n")
    write(root / "sys/block/sda/queue/scheduler", "noop [cfq]")
    (root / "sys/block/dm-0/slaves/sda1").mkdir(parents=True, exist_ok=True)
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sample_text(root: Path, second: int) -> str:
    """Return what the recorder writes at one second of the made host."""
    made = recorder.changing(str(host(root, second)))
    return b"".join(recorder._sample(made)).decode()


def _recorded() -> str:
    """Return a short recording with fixed times, for the properties."""
    files = "==> /proc/uptime <==\n{up}.00 1.00\n==> /proc/stat <==\n{stat}"
    text = "=== start 2026-01-02T10:00:00.000+0000 interval_s=1\n"
    for second in range(3):
        stat = STAT.format(user=10 * second, idle=90 * second, iowait=0)
        disks = DISKS.format(reads=second + 1, sectors=8, read_ms=4, busy_ms=2)
        text += f"=== 2026-01-02T10:00:0{second}.000+0000\n"
        text += files.format(up=100 + second, stat=stat) + "==> /proc/diskstats <==\n" + disks
        text += "==> /proc/loadavg <==\n1.50 1.20 0.90 2/100 4321\n"
        text += "=== end\n"
    return text


FIRST = "2026-01-02 23:59:58"  # of the fixture below
RECORDED = _recorded()
RECORDED_LOAD = (RECORDED.index("1.50") + 0.5) / len(RECORDED)


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A recording of three samples, a second apart, with its start and stop lines."""
    texts = [sample_text(tmp_path / "root", second) for second in range(3)]
    for second, text in enumerate(texts):
        first, rest = text.split("\n", 1)
        texts[second] = f"=== 2026-01-02T23:59:{58 + second % 2:02d}.000+0000\n{rest}"
        if second == 2:
            texts[second] = f"=== 2026-01-03T00:00:00.000+0000\n{rest}"
        assert first.startswith("=== 20")
    stop = "=== stop 2026-01-03T00:00:00.100+0000 samples=3 cpu_s=0.010 elapsed_s=2.000\n"
    return "=== start 2026-01-02T23:59:58.000+0000 interval_s=1\n" + "".join(texts) + stop


def test_the_text_of_every_file_is_kept_word_for_word(tmp_path: Path) -> None:
    root = host(tmp_path / "root")
    record(str(tmp_path / "out"), 0.1, 0.1, root=str(root))
    samples = text_samples((tmp_path / "out/proc.txt").read_text().splitlines())
    assert len(samples) == 2
    for name in ("uptime", "stat", "diskstats", "loadavg"):
        assert samples[1].texts[f"/proc/{name}"] == (root / "proc" / name).read_text()
    facts = text_samples((tmp_path / "out/host.txt").read_text().splitlines())[0].texts
    assert facts["/sys/block/sda/queue/scheduler"] == "noop [cfq]\n"
    assert facts["/sys/block/dm-0/slaves"] == "sda1\n"


def test_only_tasks_that_run_or_wait_uninterruptibly_are_kept(tmp_path: Path) -> None:
    """Of a process of several threads each is a task of its own, the sleeping first one too."""
    root = host(tmp_path)
    several = "{tid} (fio) {state} 1 79 79 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 100\n"
    for tid, state in ((79, "S"), (80, "D"), (81, "R")):
        write(root / f"proc/79/task/{tid}/stat", several.format(tid=tid, state=state))
    write(root / "proc/79/stat", several.format(tid=79, state="S"))
    texts = dict(recorder.changing(str(root)))
    assert sorted(texts["/proc/PID/task/TID/stat"].splitlines()) == [
        b"77 (a) b) D 1 77",
        several.format(tid=80, state="D").encode().rstrip(),
        several.format(tid=81, state="R").encode().rstrip(),
    ]


@pytest.mark.parametrize("tasks", [3, 5000])
def test_where_tasks_are_hidden_or_too_many_processes_stand_for_them(
    tmp_path: Path, tasks: int
) -> None:
    """Two of three are seen, as with hidepid; or a scan would take a tenth of a second."""
    root = host(tmp_path)
    write(root / "proc/loadavg", f"1.50 1.20 0.90 2/{tasks} 4321\n")
    if tasks > recorder.TASKS_MAX:
        many = f"79 (java) S 1 79 79 0 -1 0 0 0 0 0 0 0 0 0 20 0 {tasks - 2} 0 100\n"
        write(root / "proc/79/stat", many)
    texts = dict(recorder.changing(str(root)))
    assert texts["/proc/PID/stat"] == b"77 (a) b) D 1 77\n"
    assert "/proc/PID/task/TID/stat" not in texts


def test_a_tree_that_has_just_gone_is_an_empty_sample(tmp_path: Path) -> None:
    assert dict(recorder.changing(str(tmp_path / "gone"))) == {}


def test_rates_are_those_that_iostat_would_print(recording: str) -> None:
    read = read_text(recording, "x")
    last = {s.column: s.value for s in read.samples if s.report == 2 and s.name == "sda"}
    expected = {"r_per_s": 50, "areq_bytes": 4096, "await_ms": 4, "util_pct": 10, "aqu_sz": 0.2}
    assert {name: last[name] for name in expected} == pytest.approx(expected)
    cpu = {s.column: s.value for s in read.samples if s.report == 2 and s.name == "all"}
    assert (cpu["user_pct"], cpu["iowait_pct"], cpu["idle_pct"]) == (10, 20, 70)
    system = {s.column: s.value for s in read.samples if s.report == 2 and s.kind == "system"}
    assert (system["load1"], system["tasks_uninterruptible"]) == (1.5, 1)
    assert last["in_flight"] == 0
    before = read_text(recording.replace("/proc/PID/task/TID/stat", "/proc/PID/stat"), "x")
    assert before.select("procs_uninterruptible")[2].value == 1
    assert not before.select("tasks_uninterruptible")


def test_the_first_report_is_since_boot_and_midnight_passes(recording: str) -> None:
    read = read_text(recording, "x")
    rows = [(s.time_s, s.since_boot) for s in read.select("util_pct")]
    assert [(s.time_s, s.since_boot) for s in read.samples if s.column == "util_pct"] == [
        (0.0, True),
        *rows,
    ]
    assert rows == [(1.0, False), (2.0, False)]
    assert read.names("device") == ["sda"]
    assert read.facts["cpus"] == "1"


@given(part=st.floats(0, 1, exclude_max=True))
def test_a_cut_recording_gives_its_whole_samples_and_reports_the_cut(part: float) -> None:
    text = RECORDED
    end = int(part * len(text))
    whole = text[:end].splitlines().count("=== end")
    if whole == 0:
        with pytest.raises(UnreadableRecording):
            read_text(text[:end], "x")
        return
    read = read_text(text[:end], "x")
    full = read_text(text, "x")
    assert list(read.samples) == [s for s in full.samples if s.report < whole]
    assert len(read.problems) <= 1


@given(
    begin=st.floats(0, 1, exclude_max=True),
    length=st.integers(0, 40),
    put=st.one_of(st.text(max_size=20), st.text("0123456789 .-\n=<>einfa/", max_size=40)),
)
@example(begin=RECORDED_LOAD, length=4, put="nan ")
def test_a_damaged_recording_is_read_as_far_as_it_is_sound(
    begin: float, length: int, put: str
) -> None:
    at = int(begin * len(RECORDED))
    text = RECORDED[:at] + put + RECORDED[at + length :]
    try:
        read = read_text(text, "x")
    except UnreadableRecording:
        return
    assert all(sample.value >= 0 for sample in read.samples if sample.column != "util_pct")


def test_a_gap_is_not_averaged_over(recording: str) -> None:
    again = recording.replace("2026-01-02", "2026-01-12").replace("2026-01-03", "2026-01-13")
    read = read_text(recording + again, "x")
    flags = [s.since_boot for s in read.samples if s.column == "util_pct"]
    assert flags == [True, False, False, True, False, False]


def test_a_recording_that_was_killed_goes_on_on_a_line_of_its_own(tmp_path: Path) -> None:
    root, out = str(host(tmp_path / "root")), tmp_path / "out"
    record(str(out), 0.1, 0.1, root=root)
    text = (out / "proc.txt").read_text()
    (out / "proc.txt").write_text(text[: len(text) * 3 // 4])
    resume(str(out), 0.1, 0.1, root=root)
    samples = text_samples((out / "proc.txt").read_text().splitlines())
    assert [sample.begins for sample in samples] == [True, True, False]


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    root, out = str(host(tmp_path / "root")), str(tmp_path / "out")
    with pytest.raises(RecordError, match="no recording to go on with"):
        resume(out, 1, 0, root=root)
    record(out, 1, 0, root=root)
    with pytest.raises(RecordError, match="--resume"):
        record(out, 1, 0, root=root)


def test_a_folder_that_holds_a_recording_is_told_with_when_and_how_long(
    recording: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    write(out / "proc.txt", recording)
    told = f"3 samples from {FIRST} to 2026-01-03 00:00:00 (2 s)"
    with pytest.raises(RecordError) as caught:
        record(str(out), 1, 0, root=str(host(tmp_path / "root")))
    assert str(caught.value) == (
        f"{out} holds a recording, {told}; go on with it (--resume) or name another"
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text[: text.rindex("=== end")], f"2 samples from {FIRST} to 23:59:59 (1 s)"),
        (
            lambda text: text[: text.index("=== end") + 8],
            f"1 sample from {FIRST} to 23:59:58 (0 s)",
        ),
        (lambda text: text.replace("2026-01-02", "2026-13-32"), "3 samples"),
        (lambda text: "", "0 samples"),
    ],
)
def test_whole_samples_alone_count_and_a_time_that_is_none_is_left_out(
    recording: str, tmp_path: Path, change: Callable[[str], str], told: str
) -> None:
    write(tmp_path / "out/proc.txt", change(recording))
    assert str(held(str(tmp_path / "out"))) == told


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert held(str(tmp_path / "nowhere")).samples == 0


def test_two_recorders_do_not_share_a_folder(tmp_path: Path) -> None:
    root, out = str(host(tmp_path / "root")), tmp_path / "out"
    record(str(out), 1, 0, root=root)
    with (out / "proc.txt").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RecordError, match="another process"):
            resume(str(out), 1, 0, root=root)


def test_no_linux_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="only a Linux host"):
        record(str(tmp_path / "out"), 1, 1, root=str(tmp_path))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5), ("5s", 5), ("10m", 600), ("10 min", 600), ("1.5h", 5400)]
)
def test_times_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "-5", "s", "1 2"])
def test_a_time_that_is_none_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="accepted"):
        parse_seconds(text)


needs_linux = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc/stat")


def start(out: Path) -> subprocess.Popen[str]:
    """Start the recorder as a program of its own; wait for its second sample."""
    process = subprocess.Popen(
        [sys.executable, recorder.__file__, str(out), "--interval", "0.2"],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(3000):
        time.sleep(0.1)
        if (out / "proc.txt").exists() and (out / "proc.txt").read_text().count("=== end") >= 2:
            return process
    raise AssertionError("no samples")


@needs_linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_ends_a_recording_cleanly(tmp_path: Path, number: int) -> None:
    process = start(tmp_path / "out")
    process.send_signal(number)
    told, _nothing = process.communicate(timeout=600)
    assert process.returncode == 0
    assert "% of one core" in told
    last = (tmp_path / "out/proc.txt").read_text().splitlines()[-1]
    assert last.startswith("=== stop ")


@needs_linux
def test_a_killed_recorder_leaves_whole_samples(tmp_path: Path) -> None:
    process = start(tmp_path / "out")
    process.kill()
    process.wait()
    read = read_text((tmp_path / "out/proc.txt").read_text(), "x")
    assert len({s.report for s in read.samples}) >= 2


@needs_linux
def test_recording_this_host_takes_less_than_a_hundredth_of_a_core(tmp_path: Path) -> None:
    # Once a second: five times as often as by default.
    assert record(str(tmp_path / "out"), 1, 3).core_pct < 1.0


@needs_linux
def test_what_calls_cost_on_this_host_is_measured_and_read_back(tmp_path: Path) -> None:
    """Names are those that the recorder's docstring explains; a fork is dearer than a call."""
    folder = tmp_path / "out"
    record(str(folder), 1, 0, root=str(host(tmp_path)), costs=recorder.host_costs)
    costs = read_costs(folder)
    assert costs["fork_ns"] > costs["syscall_ns"] > 0
    assert costs["page_copy_cold_ns"] > 0
    explained = recorder.__doc__ or ""
    assert all(f"    {name} " in explained for name in costs)


def test_a_recording_without_costs_has_none(tmp_path: Path) -> None:
    record(str(tmp_path / "out"), 1, 0, root=str(host(tmp_path)))
    assert not (tmp_path / "out/costs.txt").exists()
    assert read_costs(tmp_path / "out") == {}


@given(st.dictionaries(st.sampled_from(["syscall_ns", "fork_ns"]), st.integers(0, 10**9)))
def test_costs_are_read_back_as_they_were_written(costs: dict[str, int]) -> None:
    with TemporaryDirectory() as folder:
        text = recorder.costs_text({name: float(value) for name, value in costs.items()})
        (Path(folder) / "costs.txt").write_text(text + "half a li", encoding="utf-8")
        assert read_costs(Path(folder)) == costs


def test_what_the_host_does_not_let_be_measured_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(recorder.os, "fork", refused)
    assert set(recorder.host_costs()) == {
        "syscall_ns",
        "page_copy_hot_ns",
        "page_copy_cold_ns",
        "page_add_ns",
    }


def test_the_recorder_needs_python_3_7_and_its_library_alone() -> None:
    text = Path(recorder.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 7))
    names = [
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert "sim" not in names
    assert set(names) <= set(sys.stdlib_module_names)
