"""A look at recordings of real servers: what their administrators concluded comes out."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from calibration.dataset import open_source
from calibration.look import Look, look
from calibration.look.demand import Demand
from calibration.look.summary import NothingToLookAt, Throughput
from sim.cli.main import cli
from sim.report.tables import figure
from sim.scenario.cases import data_sets

GOLDENS = Path(__file__).parent / "goldens"
GROUND_TRUTH = Path(os.environ.get("IOTWIN_SHARED", "../shared")) / "groundtruth"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["look", *arguments], prog_name="iotwin")


def refused(*arguments: str) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize("name", ["sendmail", "factomd", "exim-io"])
def test_the_page_is_as_it_was_approved(name: str) -> None:
    """Print it again with `iotwin look NAME` when a change is meant."""
    result = invoke(name)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (GOLDENS / f"look-{name}.txt").read_text()


@pytest.fixture(scope="module")
def sendmail() -> Look:
    return look(open_source(["sendmail"]))


def demand(seen: Look, resource: str) -> Demand:
    assert seen.demands is not None
    return next(row for row in seen.demands.rows if row.resource == resource)


def test_the_storm_has_one_waiter_on_four_cpus(sendmail: Look) -> None:
    assert sendmail.cpu.cpus == 4
    assert sendmail.cpu.source == "implied by iowait against util: one waiter"
    assert sendmail.cpu.waiters == pytest.approx(1, abs=0.05)
    assert sendmail.system.load == 37


def test_a_message_of_the_storm_takes_16_requests_and_41_ms_of_cpu(sendmail: Look) -> None:
    disk = demand(sendmail, "sdb")
    assert disk.visits == pytest.approx(16, abs=0.5)
    assert disk.busiest_visits == pytest.approx(16, abs=0.5)
    assert disk.busiest_ms == pytest.approx(89.9, abs=0.1)
    assert disk.busiest_bound_per_s == pytest.approx(11.1, abs=0.1)
    assert demand(sendmail, "CPU").busiest_ms == pytest.approx(41, abs=0.1)


def test_without_the_disk_the_cpus_would_bound_the_storm_at_97_messages(sendmail: Look) -> None:
    # The figure that mean-value analysis gives; tmpfs gave 59: it is a bound and no prediction.
    assert demand(sendmail, "CPU").busiest_bound_per_s == pytest.approx(97.6, abs=0.1)


def test_the_storms_volume_is_found_on_its_disk(sendmail: Look) -> None:
    stack = next(one for one in sendmail.stacks if one.disk == "sdb")
    assert (stack.volumes, stack.is_known) == (("dm-6",), False)
    assert abs(stack.unexplained) < 0.01
    disk = next(one for one in sendmail.devices if one.name == "sdb")
    assert disk.merge_ratio == pytest.approx(5.4, abs=0.1)


def test_the_storms_disk_is_the_bottleneck(sendmail: Look) -> None:
    assert sendmail.verdict.resource == "sdb"
    disk = next(one for one in sendmail.devices if one.name == "sdb")
    assert disk.guess == "disk, like 15000 rpm"


def test_factomd_lacks_memory() -> None:
    seen = look(open_source(["factomd"]))
    assert (seen.cpu.cpus, seen.since_boot, len(seen.used)) == (1, 1, 3)
    assert seen.cpu.shares_pct["iowait_pct"] == pytest.approx(82.1, abs=0.1)
    assert seen.system.swap_used_bytes == (945552 * 1024, 1003088 * 1024)
    assert seen.verdict.resource == "memory"
    assert {note.check for note in seen.findings} == {"together", "iowait"}


def test_steps_of_idle_time_tell_that_io_has_two_cpus() -> None:
    seen = look(open_source([str(data_sets()["exim-io"] / "sar.txt")]))
    assert (seen.cpu.cpus, seen.cpu.source) == (2, "implied by steps of idle time of 50 %")
    assert seen.verdict.resource == "I/O"


needs_ground_truth = pytest.mark.skipif(
    not GROUND_TRUTH.is_dir(), reason=f"no {GROUND_TRUTH}: set IOTWIN_SHARED"
)


@needs_ground_truth
@pytest.mark.parametrize("run", ["a_randread/randread-jobs1-hdd7200", "c_mailq/ext3-p1-hdd7200"])
def test_one_task_on_a_real_disk_tells_the_cpus_of_the_machine(tmp_path: Path, run: str) -> None:
    """What is known of the CPUs is taken out of the text before."""
    recorded = open_source([str(GROUND_TRUTH / f"{run}.r1" / "iostat.txt.gz")])
    assert recorded.facts["cpus"] == "2"
    facts = {k: v for k, v in recorded.recordings[0].facts.items() if k != "cpus"}
    (one,) = recorded.recordings
    hidden = type(one)(source=one.source, formats=one.formats, samples=one.samples, facts=facts)
    seen = look(type(recorded)(name="hidden", recordings=(hidden,)))
    assert seen.cpu.cpus == 2


@needs_ground_truth
@pytest.mark.parametrize("family", ["a_randread", "c_mailq", "u_a_randread", "u_c_mailq"])
def test_real_recordings_contradict_no_law(family: str) -> None:
    paths = sorted((GROUND_TRUTH / family).glob("*.r1/iostat.txt.gz"))
    assert paths
    for path in paths:
        found = look(open_source([str(path)])).findings
        assert [one for one in found if one.severity == "wrong"] == [], path


# -- The command.


def test_the_json_holds_what_the_page_says() -> None:
    content = json.loads(invoke("sendmail", "--json", "-").stdout)
    assert content["bottleneck"]["resource"] == "sdb"
    assert content["cpu"]["cpus"] == 4
    page = invoke("sendmail").stdout.partition("\nDevices\n")[2].splitlines()
    for device in content["devices"]:
        row = next(line for line in page if line.startswith(f"{device['name']} "))
        values = [device["util_pct"], device["rate_per_s"], device["merge_ratio"]]
        assert {figure(value) for value in values} <= set(row.split())
    for one in content["demands"]["rows"]:
        start = rf"{one['resource']} +{re.escape(figure(one['demand_ms']))} "
        row = next(line for line in page if re.match(start, line))
        assert {figure(one["bound_per_s"]), figure(one["busiest_ms"])} <= set(row.split())


def test_a_throughput_gives_the_demand_of_a_transaction() -> None:
    raw = str(data_sets()["sendmail"] / "iostat.txt")
    assert "Demand of a transaction" not in invoke(raw).stdout
    told = invoke(raw, "--throughput", "11 /s", "--customers", "16", "--think", "270 ms").stdout
    assert "Throughput 11 /s (--throughput)." in told
    assert "So many customers reach 39.7" in told


def test_since_boot_alone_is_nothing_to_look_at(tmp_path: Path) -> None:
    text = (data_sets()["factomd"] / "iostat.txt").read_text()
    (tmp_path / "a.txt").write_text(text[: text.index("avg-cpu", text.index("xvdk"))])
    assert "only figures since boot; record two reports or more" in refused(str(tmp_path / "a.txt"))


FREE = """\
               total        used        free      shared  buff/cache   available
Mem:           24105        1470       21155         352        2127       22635
Swap:              0           0           0
"""


def beside_free(tmp_path: Path, name: str, text: str) -> tuple[str, str]:
    """Write what `free -m` prints, without its command line, and another text; return the paths."""
    paths = tmp_path / "free.txt", tmp_path / name
    for path, content in zip(paths, (FREE * 2, text), strict=True):
        path.write_text(content, encoding="utf-8")
    return str(paths[0]), str(paths[1])


def test_a_known_text_without_a_figure_is_left_aside_and_its_neighbours_are_used(
    tmp_path: Path,
) -> None:
    iostat = (data_sets()["factomd"] / "iostat.txt").read_text()
    free, beside = beside_free(tmp_path, "iostat.txt", iostat)
    found = invoke(free, beside)
    assert (found.exit_code, found.stderr.count("\n")) == (0, 1)
    reason = "it is understood (free), and gives no figures; line 2: unit not known: put the"
    assert found.stderr.startswith(f"iotwin: left aside: {free}: {reason} command line above it")
    assert found.stdout.splitlines()[1:] == invoke(beside).stdout.splitlines()[1:]
    [told] = json.loads(invoke(free, beside, "--json", "-").stdout)["left_aside"]
    assert told.startswith(f"{free}: {reason}")
    assert reason in refused(free)
    assert reason in refused(free, free)


def test_an_empty_text_is_left_aside_where_others_have_figures(tmp_path: Path) -> None:
    """Its program was not on the server: `vmstat 1 > vmstat.txt` makes the file all the same."""
    iostat = data_sets()["factomd"] / "iostat.txt"
    empty = tmp_path / "vmstat.txt.gz"
    empty.write_bytes(gzip.compress(b"\n"))
    found = invoke(str(empty), str(iostat))
    told = f"iotwin: left aside: {empty}: it is empty\n"
    assert (found.exit_code, found.stderr) == (0, told)
    assert found.stdout.splitlines()[1:] == invoke(str(iostat)).stdout.splitlines()[1:]
    assert f"{empty}: it is empty" in refused(str(empty))
    assert f"{empty}: it is empty" in refused(str(empty), str(empty))


def test_a_text_that_broke_off_before_its_first_byte_is_no_empty_one(tmp_path: Path) -> None:
    iostat = data_sets()["factomd"] / "iostat.txt"
    cut = tmp_path / "vmstat.txt.gz"
    cut.write_bytes(gzip.compress(b"procs -----------memory----------\n")[:10])
    assert str(cut) in refused(str(cut), str(iostat))


def test_a_text_whose_unit_another_file_tells_is_read(tmp_path: Path) -> None:
    free, beside = beside_free(tmp_path, "meminfo", "MemTotal:       24684092 kB\n")
    source = open_source([free, beside])
    assert source.left_aside == ()
    totals = source.recordings[0].select("mem_total_bytes")
    assert [one.value for one in totals] == [24105 << 20] * 2


def test_a_text_of_no_known_format_is_refused_beside_others(tmp_path: Path) -> None:
    _, notes = beside_free(tmp_path, "notes.txt", "the disk was slow all day\n")
    text = refused(notes, str(data_sets()["factomd"] / "iostat.txt"))
    assert "nothing in it is understood" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sendmial"], "no file, folder or data set 'sendmial' - did you mean 'sendmail'?"),
        (["sendmail", "--throughput", "11 s"], "expected a rate"),
        (["sendmail", "--throughput", "0"], "a rate is more than 0"),
        (["exim-io", "--customers", "3"], "--customers needs a throughput"),
        (["sendmail", "--json", "/nope/x.json"], "cannot write /nope/x.json: no folder /nope"),
    ],
)
def test_mistakes_of_the_command_line_are_told(arguments: list[str], message: str) -> None:
    assert message in refused(*arguments)


def test_a_throughput_of_ones_own_wins() -> None:
    seen = look(open_source(["sendmail"]), throughput=Throughput(per_s=22, source="me"))
    assert seen.demands is not None
    assert (seen.demands.throughput_per_s, seen.demands.source) == (22, "me")


@pytest.mark.skipif(not Path("/proc/diskstats").exists(), reason="no /proc/diskstats")
def test_this_host_is_recorded_looked_at_and_imported(tmp_path: Path) -> None:
    runner, folder = CliRunner(), str(tmp_path / "here")
    asked = ["record", folder, "--interval", "0.3", "--duration", "1s", "--json", "-"]
    assert json.loads(runner.invoke(cli, asked).stdout)["samples"] == 4
    result = invoke(folder)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Does the recording agree with itself?" in result.stdout
    made = runner.invoke(cli, ["import", folder, "-o", str(tmp_path), "--name", "there"])
    assert made.exit_code == 0
    assert invoke(str(tmp_path / "there")).exit_code == 0


def test_nothing_to_look_at_says_why(tmp_path: Path) -> None:
    (tmp_path / "uptime.txt").write_text(
        " 05:11:56 up 3 days, 4:05,  1 user,  load average: 1.55, 1.73, 1.67\n"
    )
    with pytest.raises(NothingToLookAt, match="none of CPUs or devices over an interval"):
        look(open_source([str(tmp_path / "uptime.txt")]))
