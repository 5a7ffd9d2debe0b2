"""iostat's readers against recordings: counts and sums found another way, jc, the real tool.

The recordings are not part of the project: the tests are skipped, visibly, where they are absent.
"""

import gzip
import json
import math
import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from calibration.readers import read_file, read_text

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
TEXTS = [
    *(SHARED / "cases").glob("*/iostat.txt"),
    *sorted((SHARED / "groundtruth").glob("*/*/iostat.txt.gz")),
]
needs_shared = pytest.mark.skipif(not TEXTS, reason=f"no {SHARED}: set IOTWIN_SHARED")
needs_iostat = pytest.mark.skipif(shutil.which("iostat") is None, reason="no iostat here")

# title -> (column, what one printed unit is), written down apart from the reader
COLUMNS = {
    "r/s": ("r_per_s", 1),
    "w/s": ("w_per_s", 1),
    "d/s": ("d_per_s", 1),
    "f/s": ("f_per_s", 1),
    "rMB/s": ("read_bytes_per_s", 1048576),
    "wMB/s": ("write_bytes_per_s", 1048576),
    "dMB/s": ("discard_bytes_per_s", 1048576),
    "rsec/s": ("read_bytes_per_s", 512),
    "wsec/s": ("write_bytes_per_s", 512),
    "rrqm/s": ("rrqm_per_s", 1),
    "wrqm/s": ("wrqm_per_s", 1),
    "drqm/s": ("drqm_per_s", 1),
    "%rrqm": ("rrqm_pct", 1),
    "%wrqm": ("wrqm_pct", 1),
    "%drqm": ("drqm_pct", 1),
    "r_await": ("r_await_ms", 1),
    "w_await": ("w_await_ms", 1),
    "d_await": ("d_await_ms", 1),
    "f_await": ("f_await_ms", 1),
    "await": ("await_ms", 1),
    "svctm": ("svctm_ms", 1),
    "rareq-sz": ("rareq_bytes", 1024),
    "wareq-sz": ("wareq_bytes", 1024),
    "dareq-sz": ("dareq_bytes", 1024),
    "avgrq-sz": ("areq_bytes", 512),
    "avgqu-sz": ("aqu_sz", 1),
    "aqu-sz": ("aqu_sz", 1),
    "%util": ("util_pct", 1),
    "%user": ("user_pct", 1),
    "%nice": ("nice_pct", 1),
    "%system": ("system_pct", 1),
    "%iowait": ("iowait_pct", 1),
    "%steal": ("steal_pct", 1),
    "%idle": ("idle_pct", 1),
}


def text_of(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()


def sums_of_text(text):
    """Return {title: [number of values, their sum]}, as awk would count them."""
    sums = defaultdict(lambda: [0, 0.0])
    titles = []
    for line in text.splitlines():
        fields = line.split()
        if fields and fields[0] in ("avg-cpu:", "Device", "Device:"):
            titles = fields[1:]
        elif not fields:
            titles = []
        elif titles:
            for title, cell in zip(titles, fields[-len(titles) :], strict=True):
                sums[title][0] += 1
                sums[title][1] += float(cell)
    return sums


def sums_of_json(content):
    """Return the same from a document of iostat."""
    sums = defaultdict(lambda: [0, 0.0])
    for host in content["sysstat"]["hosts"]:
        for report in host["statistics"]:
            for row in (report.get("avg-cpu", {}), *report.get("disk", ())):
                for key, value in row.items():
                    title = key if key in COLUMNS else f"%{key}"
                    if key != "disk_device":
                        sums[title][0] += 1
                        sums[title][1] += value
    return sums


def check_sums(recording, sums):
    assert recording.problems == ()
    found = defaultdict(list)
    for sample in recording.samples:
        found[sample.column].append(sample.value)
    assert sorted(found) == sorted(COLUMNS[title][0] for title in sums)
    for title, (count, total) in sums.items():
        column, unit = COLUMNS[title]
        assert len(found[column]) == count, title
        assert math.fsum(found[column]) == pytest.approx(total * unit, rel=1e-9), title


@needs_shared
def test_every_recorded_text_is_read_without_loss():
    for path in TEXTS:
        check_sums(read_file(path), sums_of_text(text_of(path)))


@needs_shared
def test_every_recorded_document_is_read_without_loss():
    for path in sorted((SHARED / "groundtruth").glob("*/*/iostat.json.gz")):
        check_sums(read_file(path), sums_of_json(json.loads(text_of(path))))


def as_text(content):
    """Return a document as the text that iostat prints for it (print order as in the document)."""
    host = content["sysstat"]["hosts"][0]
    lines = [f"Linux {host['release']} ({host['nodename']}) {host['date']}", ""]
    for report in host["statistics"]:
        lines += [report["timestamp"]]
        for name, rows in (("avg-cpu:", [report["avg-cpu"]]), ("Device", report.get("disk", []))):
            bare = [key for key in rows[0] if key != "disk_device"] if rows else ["r/s"]
            lines.append(" ".join([name, *(k if k in COLUMNS else f"%{k}" for k in bare)]))
            lines += [
                " ".join([row.get("disk_device", ""), *(f"{row[key]:.2f}" for key in bare)])
                for row in rows
            ]
            lines.append("")
    return "\n".join(lines) + "\n"


@needs_shared
def test_a_document_and_its_text_give_the_same_table():
    for path in sorted((SHARED / "groundtruth").glob("*/*/iostat.json.gz")):
        of_text = read_text(as_text(json.loads(text_of(path))), "as text")
        of_json = read_file(path)
        assert [s.to_json() for s in of_text.samples] == [s.to_json() for s in of_json.samples]


@needs_shared
def test_text_and_document_of_a_run_are_one_recording_within_the_moment_they_were_taken():
    """Two processes of iostat, some ms apart: equal in most values, not in all."""
    equal = compared = 0
    for path in sorted((SHARED / "groundtruth").glob("*/*/iostat.txt.gz")):
        text, document = (
            {(s.time_s, s.name, s.column): s.value for s in read_file(one).samples}
            for one in (path, path.with_name("iostat.json.gz"))
        )
        both = set(text) & set(document)
        compared += len(both)
        equal += sum(text[key] == document[key] for key in both)
    assert equal > 0.85 * compared


@needs_shared
def test_the_storm_is_read_as_the_case_tells_it():
    recording = read_file(SHARED / "cases/sendmail/iostat.txt")
    assert [s.value for s in recording.select("util_pct", "sdb")] == [98.96, 90.16, 48.32]
    assert [s.time_s for s in recording.select("util_pct", "sdb")] == [0, 5, 10]
    assert len(recording.names("device")) == 11


@needs_shared
def test_jc_reads_the_same():
    jc = pytest.importorskip("jc")
    paths = [SHARED / "cases/sendmail/iostat.txt", SHARED / "cases/factomd/iostat.txt", TEXTS[-1]]
    for path in paths:
        recording = read_file(path)
        expected = []
        lines = text_of(path).replace("\xa0", " ").splitlines()
        known = "\n".join(line for line in lines if not line.startswith("Time:"))  # jc: a device
        for row in jc.parse("iostat", known, quiet=True):
            name = row.get("device", "all")
            for title, (column, unit) in COLUMNS.items():
                key = title.replace("%", "percent_").replace("/", "_").replace("-", "_").lower()
                if row.get(key) is not None:
                    expected.append((name, column, float(row[key]) * unit))
        found = [(s.name, s.column, s.value) for s in recording.samples]
        assert sorted(found) == sorted(expected)


@needs_iostat
@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        "",
        "-c",
        "-d",
        "-k",
        "-m",
        "-t",
        "-N",
        "-y",
        "-z",
        "-p",
        "-h",
        "-s",
        "-x",
        "-x -h",
        "-x -s",
        "-x --pretty",
        "-x --human -t",
        "-x -m -z -p",
        "-x --dec=0",
        "-g all -x",
        "-g all -H -h",
        "-x -s --pretty -t",
        "-o JSON",
        "-o JSON -x -t",
        "-o JSON -s -x -g all",
        "-x -k -c -d -N -t -p ALL",
        "-y 1 1",
        "-t -y -x -h 1 1",
    ],
)
def test_what_the_installed_iostat_prints_is_understood(options):
    shown = subprocess.run(
        ["iostat", *options.split()],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "S_COLORS": "always", "LC_ALL": "C"},
    ).stdout
    recording = read_text(shown, "iostat")
    assert recording.problems == ()
    assert recording.facts["hostname"] == os.uname().nodename
    assert all(s.since_boot != ("-y" in options and "1 1" in options) for s in recording.samples)
