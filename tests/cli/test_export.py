"""`iotwin export`: each format is read back by who knows it, and has the figures of /proc."""

import csv
import io
import json
from itertools import groupby
from pathlib import Path

import pytest

from calibration.readers import read_bytes
from sim.report.node_metrics import metrics, prometheus_text
from sim.tools.snapshot import Snapshot
from tests.cli.small import SMALL, small_file
from tests.cli.test_proc import invoke
from tests.cli.test_usage import refused


def export(folder: Path, *words: str, text: str = SMALL) -> str:
    """Return what the command writes of the small scenario."""
    return invoke("export", small_file(folder, text), *words).stdout


def points(text: str) -> dict[str, str]:
    """Return the lines of a text of metrics by name and labels."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return dict(line.rsplit(" ", 1) for line in lines)


def test_prometheus_has_the_figures_of_the_tree_of_that_moment(tmp_path: Path) -> None:
    found = points(export(tmp_path, "--format", "prometheus", "--at", "10 s"))
    tree = tmp_path / "tree"
    invoke("proc", small_file(tmp_path), "--at", "10 s", "--out", str(tree))
    assert found["node_load1"] == (tree / "proc/loadavg").read_text().split()[0]
    row = (tree / "proc/diskstats").read_text().split()
    assert found['node_disk_writes_completed_total{device="sda"}'] == row[7]
    assert found['node_disk_written_bytes_total{device="sda"}'] == str(512 * int(row[9]))
    assert float(found['node_disk_io_time_seconds_total{device="sda"}']) == int(row[12]) / 1000
    assert "node_disk_discards_completed_total" not in "".join(found), "2.6.16 has none"


def test_openmetrics_has_each_metric_once_with_its_points_in_order(tmp_path: Path) -> None:
    text = export(tmp_path)
    assert text.endswith("\n# EOF\n")
    assert text.count("# TYPE node_cpu_seconds counter\n") == 1
    mine = [line.split() for line in text.splitlines() if line.startswith("node_load1{")]
    labels = '{job="iotwin",instance="small",scenario="small",seed="5"}'
    assert {words[0] for words in mine} == {f"node_load1{labels}"}
    times = [float(words[2]) for words in mine]
    assert times == [times[0] + second for second in range(len(mine))]
    heads = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(heads) == len(set(heads))


def test_openmetrics_keeps_the_points_of_one_metric_together(tmp_path: Path) -> None:
    """Points of one name and labels must not be among others' (OpenMetrics 1.0, "Metric")."""
    points = [line for line in export(tmp_path).splitlines() if not line.startswith("#")]
    runs = [name for name, _group in groupby(line.split()[0] for line in points)]
    assert len(runs) == len(set(runs)) < len(points)


def test_lines_and_rows_have_the_same_figures(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in export(tmp_path, "--format", "jsonl").splitlines()]
    rows = list(csv.DictReader(io.StringIO(export(tmp_path, "--format", "csv"))))
    iowait = [line["metrics"]['node_cpu_seconds_total{cpu="1",mode="iowait"}'] for line in lines]
    column = [
        float(row["value"])
        for row in rows
        if (row["metric"], row["cpu"], row["mode"]) == ("node_cpu_seconds_total", "1", "iowait")
    ]
    assert iowait == column
    assert iowait[-1] > 0
    assert len(rows) == sum(len(line["metrics"]) for line in lines)
    assert lines[3]["t_s"] == 3.0
    assert lines[3]["clock"] == "2006-10-11T05:11:03+00:00"


def test_sadf_is_read_as_sadf_and_has_the_figures_of_sar(tmp_path: Path) -> None:
    text = export(tmp_path, "--format", "sadf")
    [host] = json.loads(text)["sysstat"]["hosts"]
    words = ("exec", small_file(tmp_path), "--tools", "sysstat-12", "--", "sar", "-u", "-d", "1")
    printed = [line.split() for line in invoke(*words).stdout.splitlines()]
    of_cpu = [words[3:] for words in printed if words[2:3] == ["all"] and words[0] != "Average:"]
    assert [
        [f"{row['cpu-load'][0][name]:.2f}" for name in ("user", "nice", "system", "iowait")]
        for row in host["statistics"]
    ] == [row[:4] for row in of_cpu]
    of_disk = [words[3:] for words in printed if words[2:3] == ["sda"] and words[0] != "Average:"]
    names = ("tps", "rkB", "wkB", "dkB", "areq-sz", "aqu-sz", "await", "util-percent")
    disks = [row["disk"][0] for row in host["statistics"] if row["disk"]]
    assert [[f"{disk[name]:.2f}" for name in names] for disk in disks] == of_disk
    recording = read_bytes(text.encode(), "small", None, ())
    assert recording.facts["tool"] == "sadf"
    assert not recording.problems


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "xml"), "'xml' is not one of 'prometheus', 'openmetrics'"),
        (("--at", "3 s"), "--at is of prometheus: openmetrics has the whole run"),
        (("--format", "prometheus", "--at", "1 h"), "3600 s is not within the run: 0 to 60 s"),
        (("--out", "no/where.om"), "cannot write no/where.om: no folder /"),
    ],
)
def test_a_mistake_is_told_before_the_run(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in " ".join(refused("export", small_file(tmp_path), *words).split())


def test_a_label_is_escaped_and_a_number_has_all_of_its_digits() -> None:
    files = {
        "loadavg": "0.10 12345678.25 3.00 1/2 3\n",
        "stat": "cpu 1 0 0 0\ncpu0 1 0 0 0\nintr 1\nctxt 123456789012\nbtime 5\nprocesses 1\n"
        "procs_running 1\nprocs_blocked 0\n",
        "diskstats": '8 0 s"d\\a 1 2 3 1001 5 6 7 8 9 10 11\n',
        "meminfo": "MemFree: 7 kB\nActive(anon): 1 kB\nHugePages_Free: 3\n",
        "vmstat": "pgpgin 4\nnr_dirty 9\n",
    }
    reading = Snapshot(0, files)
    found = {(one.name, one.labels): one.value for one in metrics(reading)}
    assert 'node_disk_reads_completed_total{device="s\\"d\\\\a"} 1\n' in prometheus_text(reading)
    device = (("device", 's"d\\a'),)
    assert found["node_disk_read_time_seconds_total", device] == 1.001
    assert found["node_load5", ()] == 12345678.25
    assert found["node_context_switches_total", ()] == 123456789012
    assert found["node_memory_Active_anon_bytes", ()] == 1024
    assert found["node_memory_HugePages_Free", ()] == 3
    assert found["node_vmstat_pgpgin", ()] == 4
    assert ("node_vmstat_nr_dirty", ()) not in found


def test_parquet_has_the_rows_of_csv_with_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    place = tmp_path / "small.parquet"
    export(tmp_path, "--format", "parquet", "--out", str(place))
    table = parquet.read_table(place)
    rows = list(csv.DictReader(io.StringIO(export(tmp_path, "--format", "csv"))))
    assert [str(value) for value in table["metric"].to_pylist()] == [row["metric"] for row in rows]
    assert table["value"].to_pylist() == [float(row["value"]) for row in rows]
    assert table["device"].to_pylist() == [row["device"] or None for row in rows]
    last = table["clock"].to_pylist()[-1] - table["clock"].to_pylist()[0]
    assert last.total_seconds() == table["t_s"].to_pylist()[-1]
    assert table.schema.metadata[b"iotwin.scenario"] == b"small"


def test_parquet_wants_a_file(tmp_path: Path) -> None:
    words = ("export", small_file(tmp_path), "--format", "parquet")
    assert "parquet is no text: give it a file, --out FILE" in refused(*words)
    at = (*words, "--out", str(tmp_path / "x"), "--at", "1 s")
    assert "parquet has the whole run" in refused(*at) or "pyarrow is missing" in refused(*at)
