"""What people have besides iostat: scrapes, answers of services, sar's other forms."""

import json
import shutil
import subprocess

import pytest

from calibration.dataset import open_source
from calibration.look import look
from calibration.readers import UnreadableRecording, read_file, read_text
from calibration.twin.demands import NothingToTwin, loads_of
from sim.study.recorded import DatasetError
from tests.calibration.more_texts import (
    CLOUDWATCH,
    IOTOP,
    MPSTAT,
    MPSTAT_JSON,
    NODE_EXPORTER,
    PIDSTAT,
    PIDSTAT_D,
    PROMETHEUS,
    SADF_D,
    TELEGRAF,
    TELEGRAF_CSV,
)
from tests.calibration.test_read_sadf import DOCUMENT
from tests.calibration.texts import VMSTAT, values


def scrape(at_s, reads, read_s, busy_s, idle_s):
    """Return a scrape whose rates can be worked out by hand."""
    disk = {
        "reads_completed_total": reads,
        "reads_merged_total": 0,
        "read_bytes_total": reads * 4096,
        "read_time_seconds_total": read_s,
        "writes_completed_total": 0,
        "writes_merged_total": 0,
        "written_bytes_total": 0,
        "write_time_seconds_total": 0,
        "io_now": 1,
        "io_time_seconds_total": busy_s,
        "io_time_weighted_seconds_total": read_s,
    }
    lines = [f'node_disk_{name}{{device="sda"}} {value}' for name, value in disk.items()]
    lines += [
        f'node_cpu_seconds_total{{cpu="0",mode="idle"}} {idle_s}',
        f'node_cpu_seconds_total{{cpu="0",mode="user"}} {at_s - idle_s}',
        f"node_time_seconds {at_s}",
    ]
    return "\n".join(lines) + "\n"


SCRAPES = scrape(1.7e9, 1000, 2.0, 1.0, 1e9) + scrape(1.7e9 + 10, 3000, 6.0, 2.0, 1e9 + 7.5)


def test_two_scrapes_are_an_interval_of_iostat():
    """2000 reads in 10 s, 4 s of them waiting in all, the disk 1 s busy, a CPU 75 % idle."""
    recording = read_text(SCRAPES, "x")
    assert recording.formats == ("node_exporter",)
    assert values(recording, "r_per_s") == pytest.approx([200.0])
    assert values(recording, "r_await_ms") == pytest.approx([2.0])
    assert values(recording, "util_pct") == pytest.approx([10.0])
    assert values(recording, "read_bytes_per_s") == pytest.approx([200 * 4096])
    assert [s.value for s in recording.select("idle_pct", "all")] == pytest.approx([75.0])


def test_one_scrape_says_what_to_do():
    problems = read_text(scrape(1.7e9, 1000, 2.0, 1.0, 1e9), "x").problems
    assert "only totals since boot; take two" in problems[0].why


def answer(text, kind="matrix"):
    """Return the scrapes of a text as Prometheus would answer about them."""
    series = {}
    at_s = 1.7e9
    for line in text.splitlines():
        name, value = line.rsplit(" ", 1)
        if name == "node_time_seconds":
            at_s += 10
            continue
        series.setdefault(name, []).append([at_s, value])
    result = []
    for name, points in series.items():
        labels = {"__name__": name.split("{")[0], "instance": "mail1:9100"}
        for label in name.partition("{")[2].rstrip("}").split(","):
            if label:
                labels[label.split("=")[0]] = label.split("=")[1].strip('"')
        result.append({"metric": labels, "values": points})
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def test_prometheus_says_what_its_scrapes_say():
    recording = read_text(json.dumps(answer(SCRAPES)), "x")
    scraped = read_text(SCRAPES, "x")
    for column in ("r_per_s", "r_await_ms", "util_pct", "idle_pct"):
        assert values(recording, column) == pytest.approx(values(scraped, column))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda one: one["data"].update(resultType="vector"), "about one moment"),
        (lambda one: one["data"].update(result=[]), "without series"),
        (lambda one: [s["metric"].pop("__name__") for s in one["data"]["result"]], "without names"),
        (
            lambda one: one["data"]["result"][0]["metric"].update(instance="db2:9100"),
            "series of 2 hosts",
        ),
    ],
)
def test_prometheus_answers_that_cannot_be_taken_say_what_to_ask(change, why):
    content = answer(SCRAPES)
    change(content)
    with pytest.raises(UnreadableRecording, match=f"{why}.*ask query_range"):
        read_text(json.dumps(content), "x")


def test_steps_finer_than_scrapes_add_no_idle_intervals():
    content = answer(SCRAPES)
    for one in content["data"]["result"]:
        (first_s, first), (last_s, last) = one["values"]
        one["values"] = [[first_s, first], [first_s + 5, first], [last_s, last]]
    assert values(read_text(json.dumps(content), "x"), "r_per_s") == pytest.approx([200.0])


def test_recorded_scrapes_and_answers_are_read():
    for text in (NODE_EXPORTER, PROMETHEUS):
        recording = read_text(text, "x")
        assert recording.problems == ()
        assert all(0 <= util <= 100 for util in values(recording, "util_pct"))
        assert values(recording, "load1")


def test_cloudwatch_sums_become_rates():
    """Of a minute: 600, 3000 and 6000 reads in 1.2, 3 and 6 s; 59, 57 and 54 s idle."""
    recording = read_text(CLOUDWATCH, "x")
    assert values(recording, "r_per_s") == pytest.approx([10, 50, 100])
    assert values(recording, "r_await_ms") == pytest.approx([2, 1, 1])
    assert values(recording, "util_pct") == pytest.approx([100 / 60, 5, 10])
    assert recording.names("device") == ["vol-0ab1"]


def test_cloudwatch_statistics_without_sums_say_what_to_ask():
    points = [{"Timestamp": f"2024-05-01T10:0{n}:00Z", "Average": 1.0} for n in range(3)]
    text = json.dumps({"Label": "VolumeReadOps", "Datapoints": points})
    with pytest.raises(UnreadableRecording, match="--statistics Sum"):
        read_text(text, "x")


def test_mpstat_has_its_own_name():
    text, document = read_text(MPSTAT, "x"), read_text(MPSTAT_JSON, "x")
    assert text.formats == ("mpstat",)
    assert document.formats == ("mpstat -o JSON",)
    assert values(document, "user_pct")[0] == 37.16
    assert [s.value for s in text.select("user_pct", "all")] == [22.31, 22.50]


def test_pidstat_says_what_each_process_did():
    recording = read_text(PIDSTAT, "x")
    assert recording.names("process")[-1] == "python[23071]"
    assert values(recording, "process_cpu_pct") == [0.5, 0.5, 0.5, 91.58]
    assert recording.problems == ()
    assert recording.names("system") == [], "no figure of a process is the server's"


def test_pidstat_counts_bytes_and_takes_all_of_a_command_for_its_name():
    recording = read_text(PIDSTAT_D, "x")
    assert recording.names("process") == ["a b c[44]", "postgres: writer[50]"]
    reads = recording.select("process_read_bytes_per_s", "postgres: writer[50]")
    assert [(s.time_s, s.value) for s in reads] == [(2.0, 2.0**20), (4.0, 2.0**19)]
    assert recording.problems == (), "averages are no samples"


def test_forms_of_pidstat_that_are_not_taken_say_what_to_type():
    one_line = PIDSTAT.replace("20:39:15  ", "# Time    ")
    with pytest.raises(UnreadableRecording, match=r"pidstat -h.*pidstat -u -d -r -w 5"):
        read_text(one_line, "x")
    threads = PIDSTAT.replace("      PID", "     TGID       TID")
    with pytest.raises(UnreadableRecording, match="pidstat -t: threads"):
        read_text(threads, "x")
    assert read_text(one_line + MPSTAT, "x").formats == ("pidstat", "mpstat")


@pytest.mark.parametrize("text", [TELEGRAF, TELEGRAF_CSV])
def test_telegraf_counts_as_diskstats_do(text: str):
    recording = read_text(text, "x")
    assert recording.formats == ("Telegraf",)
    assert values(recording, "r_per_s") == [100.0, 100.0]
    assert values(recording, "read_bytes_per_s") == [409600.0, 409600.0]
    assert values(recording, "r_await_ms") == [8.0, 8.0]
    assert values(recording, "util_pct") == [50.0, 50.0]
    assert recording.problems == ()


def test_telegraf_s_cpus_and_load():
    recording = read_text(TELEGRAF, "x")
    assert [s.value for s in recording.select("user_pct", "0")] == [25.0, 25.0]
    assert values(recording, "load1")[:2] == [1.5, 1.5]
    assert recording.facts["hostname"] == "vm"


def test_telegraf_that_cannot_be_read_says_what_to_set():
    with pytest.raises(UnreadableRecording, match="csv_header = true"):
        read_text(TELEGRAF_CSV.partition("\n")[2], "x")
    mixed = read_text(TELEGRAF_CSV + "1700000030,cpu,cpu0,vm,1,2\n", "x")
    assert "a file of its own" in str(mixed.problems[0])
    other = TELEGRAF.replace("host=vm", "host=other")
    assert "another host (other)" in str(read_text(TELEGRAF + other, "x").problems[0])


def test_iotop_says_what_the_disks_moved():
    recording = read_text(IOTOP, "x")
    assert values(recording, "all_read_bytes_per_s") == [332.55 * 1024, 413.13 * 1024]
    assert recording.problems == ()


def test_sadf_d_says_what_sar_says():
    recording = read_text(SADF_D, "x")
    assert values(recording, "io_per_s")[:2] == [0.0, 1135.5]
    assert [s.value for s in recording.select("user_pct", "all")] == [22.31, 22.44]
    assert recording.facts["hostname"] == "vm"


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ('<?xml version="1.0"?>\n<!DOCTYPE sysstat PUBLIC "x">\n<sysstat\n', "sadf -j"),
        ("vm\t2\t2026-11-26 20:39:17 UTC\tsda\ttps\t0.00\n", "sadf -j"),
        ("epoch,read,write\n1764189000.1,2,3\n", "iostat -xz 5"),
        ("  PID TTY STAT TIME\nUID        PID  PPID CMD\n", "iostat -xz 5"),
    ],
)
def test_what_is_not_read_says_what_to_type(text, instead):
    with pytest.raises(UnreadableRecording, match=instead):
        read_text(text, "x")


def test_a_file_of_sar_goes_through_sadf(tmp_path, monkeypatch):
    path = tmp_path / "sa26"
    path.write_bytes(b"\x96\xd5\x75\x21" + bytes(100))
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(UnreadableRecording, match=f"no sadf is installed.*sadf -j {path}"):
        read_file(path)
    sadf = tools / "sadf"
    sadf.write_text(f"#!{shutil.which('sh', path='/bin:/usr/bin')}\necho 'Invalid file' >&2\n")
    sadf.chmod(0o755)
    with pytest.raises(UnreadableRecording, match=r"does not read it \(Invalid file\)"):
        read_file(path)


def test_of_an_older_sadf_no_pressure_is_asked(tmp_path, monkeypatch):
    """Before sysstat 12.3.3 -q takes no word: then the same is asked without it."""
    path = tmp_path / "sa26"
    path.write_bytes(b"\x96\xd5\x75\x21" + bytes(100))
    (tmp_path / "out.json").write_text(json.dumps(DOCUMENT) + "\n")
    sadf = tmp_path / "sadf"
    sadf.write_text(
        f"#!{shutil.which('sh', path='/bin:/usr/bin')}\n"
        'case "$*" in *"-q ALL"*) echo "Usage: sadf" >&2; exit 1;; esac\n'
        f'read -r line < {tmp_path}/out.json; echo "$line"\n'
    )
    sadf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_file(path).formats == ("sadf -j",)


@pytest.mark.skipif(shutil.which("sadc", path="/usr/lib/sysstat") is None, reason="no sysstat")
def test_a_file_of_the_systems_own_sar_is_read(tmp_path):
    path = tmp_path / "sa"
    subprocess.run(["/usr/lib/sysstat/sadc", "1", "3", str(path)], check=True, timeout=30)
    recording = read_file(path)
    assert recording.formats == ("sadf -j",)
    assert values(recording, "idle_pct")


LOAD = "{at} up 1 day,  load average: 1.00, 2.00, 3.00\n"
IOSTAT = """\
Linux 6.1.0 ({host}) \t2026-11-26 \t_x86_64_\t(2 CPU)

2026-11-26 {hour}:00:00
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    0.00    1.00    0.00    0.00   98.00

2026-11-26 {hour}:00:05
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           2.00    0.00    1.00    0.00    0.00   97.00

2026-11-26 {hour}:00:10
avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           2.00    0.00    1.00    0.00    0.00   97.00

"""


def _files(folder, **texts):
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [str(folder / name) for name in texts]


def test_files_of_two_servers_are_refused(tmp_path):
    texts = {host: IOSTAT.format(host=host, hour=10) for host in ("mail1", "db2")}
    with pytest.raises(DatasetError, match=r"files of 2 servers: .*mail1 of mail1, .*db2 of db2"):
        look(open_source(_files(tmp_path, **texts)))


def test_files_of_different_hours_are_told(tmp_path):
    texts = {f"at{hour}": IOSTAT.format(host="mail1", hour=hour) for hour in (10, 12)}
    found = look(open_source(_files(tmp_path, **texts))).findings
    assert [one.check for one in found if "do not overlap" in one.text] == ["times"]


def test_files_of_the_same_minutes_are_put_together(tmp_path):
    load = "2026-11-26 10:00:05\n" + LOAD.format(at="10:00:05")
    paths = _files(tmp_path, iostat=IOSTAT.format(host="mail1", hour=10), uptime=load)
    seen = look(open_source(paths))
    assert not [one for one in seen.findings if one.check in ("times", "gaps", "restart")]
    assert seen.system.load == 1.0
    assert len(seen.used) == 2


def test_a_gap_and_a_restart_are_told(tmp_path):
    iostat = IOSTAT.format(host="mail1", hour=10)
    later = iostat.split("\n", 2)[2].replace("10:00", "10:20")
    up = LOAD.format(at="10:00:05") + LOAD.format(at="10:00:10").replace("1 day", "3 min")
    seen = look(open_source(_files(tmp_path, iostat=iostat + later, uptime=up)))
    told = {one.check: one.text for one in seen.findings}
    assert "1190 s" in told["gaps"]
    assert "started again" in told["restart"]


def test_free_without_a_unit_is_read_beside_a_file_that_tells_the_memory(tmp_path):
    free = "       total   used   free\nMem:    1000    400    600\n"
    meminfo = "MemTotal:        1024000 kB\nMemFree:          600000 kB\n"
    (path,) = _files(tmp_path, free=free)
    with pytest.raises(UnreadableRecording, match="unit not known"):
        open_source([path])
    paths = [path, *_files(tmp_path, meminfo=meminfo)]
    assert values(open_source(paths).recordings[0], "mem_used_bytes") == [400 << 20]


def test_a_text_without_devices_makes_no_twin_and_says_what_to_record(tmp_path):
    with pytest.raises(NothingToTwin, match=r"\(vmstat\) names no device; record `iostat -xz 5`"):
        loads_of(look(open_source(_files(tmp_path, vmstat=VMSTAT))))


SAR = """\
Linux 6.1.0 (mail1) \t2026-11-26 \t_x86_64_\t(2 CPU)

{hour}:00:00        CPU     %user     %nice   %system   %iowait    %steal     %idle
{hour}:00:05        all      2.00      0.00      1.00      0.00      0.00     97.00
{hour}:00:10        all      2.00      0.00      1.00      0.00      0.00     97.00

{hour}:00:00   DEV     tps   rkB/s   wkB/s   dkB/s   areq-sz   aqu-sz   await   %util
{hour}:00:05   sda   10.00    40.00     0.00     0.00      4.00     0.01    1.00    1.00
{hour}:00:10   sda   10.00    40.00     0.00     0.00      4.00     0.01    1.00    1.00
"""


def test_minutes_that_two_files_tell_of_are_counted_once(tmp_path):
    """The same two intervals twice are two; of other hours, or of a device more, they are four."""
    sda = SAR.format(hour=10)
    more = sda.replace("  sda ", "  sdb ")
    for other, number in ((sda, 2), (SAR.format(hour=12), 4), (more, 4)):
        seen = look(open_source(_files(tmp_path, one=sda, other=other)))
        assert len(seen.used) == number
