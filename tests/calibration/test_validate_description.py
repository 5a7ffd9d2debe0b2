"""`python -m calibration validate`: what it may look at, what it says, and how it fails."""

import json
from statistics import median

import pytest
from click.testing import CliRunner

from calibration.__main__ import main
from calibration.validate import compare
from calibration.validate.compare import Row, relative, validate, validate_run
from calibration.validate.describe import DESCRIPTION, BadRun, Unsupported, describe
from calibration.validate.machine import build
from calibration.validate.measure import CHANCES, SEED_STEP, predict, simulate
from calibration.validate.measured import measured
from calibration.validate.report import family_table
from sim.machine import Machine

KERNEL = {"release": "6.18.44", "hz": 250, "ncpu": 2, "mem_total_kb": 1 << 21, "vm": {}}
QUEUE = {"nr_requests": "128", "max_sectors_kb": "1280"}
HDD = {
    "model": "hdd", "size_mb": 1024, "rpm": 7200, "seek_min_ms": 0.8, "seek_max_ms": 16,
    "seek_exp": 0.5, "rate_mbs": 80, "overhead_us": 100, "seq_gap_us": 500, "queue": "fifo",
    "wcache": 0, "flush_us": 50, "seed": 1,
}  # fmt: skip
READS = {"rw": "randread", "bs": "4k", "direct": 1, "mode": "jobs", "n": 2, "runtime_s": 2}

TOUCHES = {
    "ws_mib": 12, "procs": 2, "seconds": 1, "touches_per_transaction": 8, "write_share": 0.3,
    "cpu_us": 1000, "memcg_limit_mib": 10, "swap": "hdd",
}  # fmt: skip


def run(**changes):
    """Return the description of a small run, some keys changed."""
    return {
        "id": "a/reads.r1", "family": "a", "name": "reads",
        "workload": {"type": "fio", "params": READS},
        "disk": {"params": HDD, "queue": QUEUE}, "kernel": KERNEL, **changes,
    }  # fmt: skip


@pytest.fixture
def directory(tmp_path):
    """Return a function that writes a run and returns its directory."""

    def write(content):
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "run.json").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def test_a_prediction_has_the_figures_of_the_index(directory):
    row = validate_run(directory(run()), seed=1)
    assert set(row.predicted) == {
        "result", "await_ms", "await_all_ms", "wps", "wareq_sz", "aqu_sz", "util", "si", "so",
        "iowait", "own_load", "load", "own_D",
    }  # fmt: skip
    assert row.predicted["result"]["ops/s"] == pytest.approx(2 / 26.5e-3, rel=0.1)
    assert row.predicted["own_load"] == 2
    assert row.measured is None and row.error() is None


def test_what_was_measured_cannot_change_a_prediction(directory):
    plain = validate_run(directory(run()), seed=1)
    told = run(
        result={"iops": 1.0, "lat_mean_ms": 2.0},
        summary={"r_await": 1.0, "w_await": 0, "util": 50.0, "iowait": 1.0},
        emulator_stats={"busy_s": 3}, wall_s=1, iostat="lies", split="held back",
    )  # fmt: skip
    row = validate_run(directory(told), seed=1)
    assert row.predicted == plain.predicted
    assert row.measured["result"] == {"ops/s": 1.0, "lat ms": 2.0}
    assert row.error()["util"] == pytest.approx(row.predicted["util"] / 50 - 1)


def test_only_the_description_is_kept_of_a_run(directory):
    description = describe(directory(run(result={"secret": 12345}, summary={"secret": 12345})))
    assert "12345" not in repr(description)
    assert {"result", "summary", "emulator_stats", "sampler"}.isdisjoint(DESCRIPTION)


def test_the_same_seed_predicts_the_same(directory):
    first, second = (validate_run(directory(run()), seed=3).predicted for _ in range(2))
    assert first == second != validate_run(directory(run()), seed=4).predicted


def test_repeats_are_simulated_once_and_each_run_has_its_row(tmp_path, monkeypatch):
    """Runs that differ in id, seeds and results alone; a fourth reads at another depth."""
    deeper = run(id="a/deeper.r1", workload={"type": "fio", "params": {**READS, "n": 3}})
    again = run(id="a/reads.r2", disk={"params": {**HDD, "seed": 2}, "queue": QUEUE})
    third = run(id="a/reads.r3", result={"iops": 5.0, "lat_mean_ms": 2.0})
    directories = []
    for content in (run(), again, deeper, third):
        directories.append(tmp_path / content["id"].replace("/", "-"))
        directories[-1].mkdir()
        (directories[-1] / "run.json").write_text(json.dumps(content), encoding="utf-8")
    simulated = []
    predict = compare.predict
    monkeypatch.setattr(
        compare, "predict", lambda told, seed: simulated.append(told.id) or predict(told, seed)
    )
    rows = validate(directories, 1, None, lambda done, of: None)
    assert sorted(simulated) == ["a/deeper.r1", "a/reads.r1"]
    assert [row.id for row in rows] == ["a/reads.r1", "a/reads.r2", "a/deeper.r1", "a/reads.r3"]
    assert rows[0].predicted == rows[1].predicted == rows[3].predicted != rows[2].predicted


def test_a_closed_storm_is_one_of_smtp_source_and_a_mailer_that_takes_everything(directory):
    params = {"sessions": 20, "messages": 10, "size": 5000}
    mta = {"type": "mta", "mta": "sendmail 8.17", "params": params, "options": []}
    scenario = build(describe(directory(run(workload=mta))), seed=1)
    assert scenario.processes["sendmail"].params.mailer_status == "ok"
    assert scenario.processes["sendmail"].nice == -15
    assert scenario.processes["client"].params.connecting_max == 1


@pytest.mark.parametrize(
    ("started", "guest", "status"),
    [
        ("2026-11-21T03:12:09", False, "ok"),
        ("2026-11-21T03:24:32", False, "tempfail"),
        ("2026-11-21T03:40:00", True, "ok"),
        (None, False, "ok"),
    ],
)
def test_the_loop_rig_s_mailer_fails_from_one_moment_on(directory, started, guest, status):
    params = {"sessions": 20, "messages": 10, "size": 5000}
    mta = {"type": "mta", "mta": "sendmail 8.17", "params": params, "options": []}
    content = run(workload=mta, started_utc=started)
    content["kernel"] = {**content["kernel"], "guest": "uml" if guest else None}
    scenario = build(describe(directory(content)), seed=1)
    assert scenario.processes["sendmail"].params.mailer_status == status


def test_runs_alike_before_and_after_the_mailer_failed_are_two(tmp_path):
    params = {"sessions": 2, "messages": 4, "size": 5000}
    mta = {"type": "mta", "mta": "sendmail 8.17", "params": params, "options": []}
    texts = []
    for started in ("2026-11-21T03:12:09", "2026-11-21T03:13:00", "2026-11-21T03:30:00"):
        folder = tmp_path / started.replace(":", "-")
        folder.mkdir()
        content = run(workload=mta, started_utc=started)
        (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")
        texts.append(compare._what_is_simulated(folder))
    assert texts[0] == texts[1] != texts[2]


def test_the_loop_rig_s_kernel_is_not_preemptible(directory):
    machine = Machine(build(describe(directory(run())), seed=1), 1)
    assert machine.sched.params.preemption == "none"


def test_of_a_storm_the_middle_of_several_chances_is_predicted(directory):
    params = {"sessions": 2, "messages": 4, "size": 5000}
    mta = {"type": "mta", "mta": "sendmail 8.17", "params": params, "options": []}
    disk = {"params": HDD, "queue": QUEUE, "fs": {"type": "ext3", "proc_mounts": "D /m ext3 rw"}}
    described = describe(directory(run(workload=mta, disk=disk)))
    awaits = [simulate(described, 3 + SEED_STEP * n).await_ms["w"] for n in range(CHANCES["mta"])]
    assert len(set(awaits)) > 1
    assert predict(described, 3).await_ms["w"] == median(awaits)


def test_programs_beyond_a_limit_have_a_group_and_swap_on_the_disk(directory):
    described = describe(directory(run(workload={"type": "memtouch", "params": TOUCHES})))
    server = build(described, seed=1).server
    assert server.swaps["swap"].device == "loop0"
    assert server.cgroups["work"].memory_bytes == 10 * 2**20 - 1360 * 1024
    figures = predict(described, 1)
    assert figures.result["killed"] == 0
    assert figures.result["major faults"] > 0
    assert figures.util > 50
    # Nothing else is on the disk, and a page is 4 KiB.
    assert figures.so == pytest.approx(figures.wps * figures.wareq_sz / 4, rel=0.02)
    assert figures.si > 0


def test_programs_beyond_a_limit_without_swap_are_killed(directory):
    params = {**TOUCHES, "swap": "none", "procs": 4, "ws_mib": 11}
    described = describe(directory(run(workload={"type": "memtouch", "params": params}, disk=None)))
    assert predict(described, 1).result["killed"] == 1


@pytest.mark.parametrize(
    "change, reason",
    [
        (
            {"workload": {"type": "memtouch", "params": TOUCHES}, "disk": None},
            "swap in a run without",
        ),
        ({"workload": {"type": "dhrystone", "params": {}}}, "known: fio, mailq, cpuburn, mta"),
        ({"disk": {"params": {**HDD, "model": "tape"}, "queue": QUEUE}}, "'tape'"),
        ({"disk": {"params": {**HDD, "wobble": 3}, "queue": QUEUE}}, "'wobble'"),
        ({"disk": {"params": HDD, "queue": QUEUE, "fs": {"type": "jfs"}}}, "jfs"),
    ],
)
def test_what_is_not_modelled_is_named(directory, change, reason):
    with pytest.raises(Unsupported, match=reason):
        build(describe(directory(run(**change))), seed=1)


@pytest.mark.parametrize(
    "content, problem",
    [
        ("{", "run.json:1: not JSON"),
        ("[]", "expected an object with the keys id"),
        ({"workload": {"type": "fio", "params": {}}}, "lacks 'kernel'"),
        (run(workload="fio"), "'workload' must be an object"),
        (run(kernel={**KERNEL, "hz": "fast"}), "'kernel.hz' must be a whole number"),
        (run(disk={"params": HDD}), "lacks 'disk.queue'"),
        (run(workload={"type": "fio", "params": {"rw": "randread"}}), "lacks 'workload.direct'"),
        (run(workload={"type": "mailq", "params": {"procs": 2}}), "lacks 'workload.seconds'"),
        (run(kernel={**KERNEL, "release": "banana"}), "describes no machine"),
    ],
)
def test_a_bad_directory_is_a_usage_mistake_with_its_place(directory, content, problem):
    path = directory(content)
    with pytest.raises(BadRun, match=problem):
        validate_run(path, seed=1)
    result = CliRunner().invoke(main, ["validate", str(path), "--json", "-"])
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split()) and not result.stdout


def test_a_directory_that_is_not_there_is_a_usage_mistake(tmp_path):
    result = CliRunner().invoke(main, ["validate", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "run.json" in result.stderr and "Traceback" not in result.stderr


def test_json_is_a_list_of_rows(directory):
    path = directory(run(workload={"type": "dhrystone", "params": {}}))
    result = CliRunner().invoke(main, ["validate", str(path), "--jobs", "1", "--json", "-"])
    [row] = json.loads(result.stdout)
    assert row["id"] == "a/reads.r1" and row["predicted"] is None
    assert row["error"].startswith("not supported yet: workload 'dhrystone'")


def test_tables_show_runs_and_families(directory):
    result = CliRunner().invoke(main, ["validate", str(directory(run())), "--jobs", "1"])
    assert result.exit_code == 0
    assert "ops/s" in result.stdout and "family" in result.stdout


def test_pages_swapped_are_those_of_the_whole_run_a_second(directory):
    summary = {"r_await": 1, "w_await": 1, "T_s": 20.0, "pswpin": 3000, "pswpout": 500}
    workload = {"type": "memtouch", "params": TOUCHES}
    found = measured(directory(run(workload=workload, result={}, summary=summary)))
    assert (found["si"], found["so"]) == (150, 25)
    del summary["T_s"]
    found = measured(directory(run(workload=workload, result={}, summary=summary)))
    assert "si" not in found and "so" not in found


def row(predicted, recorded):
    return Row(
        id="e/run.r1", family="e", predicted={"result": {"killed": predicted}},
        measured={"result": {"killed": recorded}}, why_not="",
    )  # fmt: skip


def test_runs_are_counted_in_which_somebody_is_killed_in_one_of_both_alone():
    rows = [row(1, 0), row(0, 1), row(0, 0), row(1, 2)]
    table = family_table(rows)
    place = [column.heading for column in table.columns].index("killed wrong")
    assert table.rows[0][place] == "2"
    assert family_table([row(None, 1)]).rows[0][place] == "-"


@pytest.mark.parametrize(
    "predicted, measured, error",
    [(11.0, 10.0, 0.1), (9.0, 10.0, -0.1), (0.0, 0.0, 0.0), (1.0, 0.0, None), (None, 1.0, None)],
)
def test_errors_are_relative_and_signed(predicted, measured, error):
    assert relative(predicted, measured) == (error if error is None else pytest.approx(error))


@pytest.mark.parametrize(
    "said, built", [("[none] mq-deadline", "none"), ("none [bfq]", "bfq"), ("kyber", "kyber")]
)
def test_the_queues_elevator_is_the_described_one(directory, said, built):
    content = run(disk={"params": HDD, "queue": QUEUE | {"scheduler": said}})
    assert build(describe(directory(content)), 1).server.disks["loop0"].scheduler == built


def test_an_elevator_that_the_kernel_has_not_is_not_supported(directory):
    content = run(disk={"params": HDD, "queue": QUEUE | {"scheduler": "[cfq] noop"}})
    with pytest.raises(Unsupported, match="the elevator cfq"):
        build(describe(directory(content)), 1)


@pytest.mark.parametrize("said, built", [("uniform", "uniform"), ("half", "half"), (0, "half")])
def test_an_arms_parameters_are_the_emulators(directory, said, built):
    params = HDD | {"rot": said, "full_span": 0.5}
    content = run(disk={"params": params, "queue": QUEUE})
    found = build(describe(directory(content)), 1).server.disks["loop0"].params
    assert (found.rotation, found.stroke_share) == (built, 0.5)


@pytest.mark.parametrize(
    "reads, rate_mb",
    [
        # 128 KiB: overhead and transfer 1.738 ms, and 0.07 ms from one reply to the next request.
        ({"direct": 1}, 131.072 / (1.738 + 0.07)),
        # Read ahead in pieces of 1.25 MiB: 0.1 ms of overhead each 16.4 ms.
        ({"direct": 0}, 80 * 16.384 / 16.484),
    ],
    ids=["direct", "buffered"],
)
def test_sequential_reads_go_at_the_disks_rate(directory, reads, rate_mb):
    params = {"rw": "read", "bs": "128k", "size_mb": 200, **reads}
    queue = QUEUE | {"read_ahead_kb": "2560"}
    content = run(workload={"type": "fio", "params": params}, disk={"params": HDD, "queue": queue})
    row = validate_run(directory(content), seed=1)
    assert row.predicted["result"]["MB/s"] == pytest.approx(rate_mb, rel=0.03)
    assert row.predicted["await_ms"]["w"] == 0
