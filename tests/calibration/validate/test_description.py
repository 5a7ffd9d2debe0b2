"""`python -m calibration validate`: what it may look at, what it says, and how it fails."""

import json
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from statistics import median

import pytest
from click.testing import CliRunner

from calibration.__main__ import main
from calibration.validate import compare
from calibration.validate.compare import Row, relative, validate, validate_run
from calibration.validate.conditions import CONDITIONS
from calibration.validate.describe import DESCRIPTION, BadRun, Unsupported, describe
from calibration.validate.machine import build
from calibration.validate.measure import CHANCES, SEED_STEP, predict, simulate
from calibration.validate.measured import measured
from calibration.validate.parts import rig_parts
from calibration.validate.report import family_table
from sim.machine import Machine
from sim.study.executors import Here, Place
from sim.study.laboratory import Laboratory, UnfinishedError

KERNEL = {"release": "6.18.44", "hz": 250, "ncpu": 2, "mem_total_kb": 1 << 21, "vm": {}}
QUEUE = {"nr_requests": "128", "max_sectors_kb": "1280"}
HDD = {
    "model": "hdd",
    "size_mb": 1024,
    "rpm": 7200,
    "seek_min_ms": 0.8,
    "seek_max_ms": 16,
    "seek_exp": 0.5,
    "rate_mbs": 80,
    "overhead_us": 100,
    "seq_gap_us": 500,
    "queue": "fifo",
    "wcache": 0,
    "flush_us": 50,
    "seed": 1,
}
READS = {"rw": "randread", "bs": "4k", "direct": 1, "mode": "jobs", "n": 2, "runtime_s": 2}

TOUCHES = {
    "ws_mib": 12,
    "procs": 2,
    "seconds": 1,
    "touches_per_transaction": 8,
    "write_share": 0.3,
    "cpu_us": 1000,
    "memcg_limit_mib": 10,
    "swap": "hdd",
}


def run(**changes):
    """Return the description of a small run, some keys changed."""
    return {
        "id": "a/reads.r1",
        "family": "a",
        "name": "reads",
        "workload": {"type": "fio", "params": READS},
        "disk": {"params": HDD, "queue": QUEUE},
        "kernel": KERNEL,
        **changes,
    }


@pytest.fixture(autouse=True)
def parts():
    """Have the rigs' parts in the registry."""
    with rig_parts():
        yield


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
        "result",
        "await_ms",
        "await_all_ms",
        "wps",
        "wareq_sz",
        "aqu_sz",
        "util",
        "si",
        "so",
        "iowait",
        "own_load",
        "load",
        "own_D",
    }
    assert row.predicted["result"]["ops/s"] == pytest.approx(2 / 26.5e-3, rel=0.1)
    assert row.predicted["own_load"] == 2
    assert row.measured is None and row.error() is None


@pytest.mark.parametrize(("family", "entry_ns"), [("a", 100), ("i_fio", 722), ("p_pgbench", 722)])
def test_a_run_is_simulated_at_what_calls_cost_on_its_machine(directory, family, entry_ns):
    """hostcost.json: getppid takes 722 ns on the machine of the families of today."""
    built = build(describe(directory(run(family=family))), seed=1)
    assert built.server.core["syscall"].entry_ns == entry_ns


def test_what_was_measured_cannot_change_a_prediction(directory):
    plain = validate_run(directory(run()), seed=1)
    told = run(
        result={"iops": 1.0, "lat_mean_ms": 2.0},
        summary={"r_await": 1.0, "w_await": 0, "util": 50.0, "iowait": 1.0},
        emulator_stats={"busy_s": 3},
        wall_s=1,
        iostat="lies",
        split="held back",
    )
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
        compare,
        "predict",
        lambda told, seed, claimed: simulated.append(told.id) or predict(told, seed, claimed),
    )
    rows = validate(directories, 1, Laboratory())
    assert sorted(simulated) == ["a/deeper.r1", "a/reads.r1"]
    assert [row.id for row in rows] == ["a/reads.r1", "a/reads.r2", "a/deeper.r1", "a/reads.r3"]
    assert rows[0].predicted == rows[1].predicted == rows[3].predicted != rows[2].predicted


def test_a_run_whose_worker_dies_is_named_and_the_others_have_their_rows(tmp_path):
    directories = []
    for name, depth in (("one", 1), ("dies", 2), ("three", 3)):
        directories.append(tmp_path / name)
        directories[-1].mkdir()
        workload = {"type": "fio", "params": {**READS, "n": depth}}
        content = json.dumps(run(id=f"a/{name}.r1", workload=workload))
        (directories[-1] / "run.json").write_text(content, encoding="utf-8")

    class Killed(Here):
        def submit(self, fn, *arguments):
            if (directories[1],) not in arguments:
                return super().submit(fn, *arguments)
            future = Future()
            future.set_exception(BrokenExecutor())
            return future

    with pytest.raises(UnfinishedError) as caught:
        validate(directories, 1, Laboratory(Place(2, lambda _jobs: Killed())))
    assert [row.id for row in caught.value.done] == ["a/one.r1", "a/three.r1"]
    assert f"calibration validate {directories[1]}" in str(caught.value)
    assert caught.value.shortfall.exit_code == 1


def test_a_closed_storm_is_one_of_smtp_source_and_a_mailer_that_takes_everything(directory):
    params = {"sessions": 20, "messages": 10, "size": 5000}
    mta = {"type": "mta", "mta": "sendmail 8.17", "params": params, "options": []}
    scenario = build(describe(directory(run(workload=mta))), seed=1)
    assert scenario.processes["sendmail"].program == "sendmail"
    assert scenario.processes["sendmail"].nice == -15
    assert scenario.processes["client"].params.connecting_max == 1


def storm(**changes):
    """Return the description of a small storm on ext3, some keys of its workload changed."""
    params = {"sessions": 2, "messages": 4, "size": 5000}
    disk = {"params": HDD, "queue": QUEUE, "fs": {"type": "ext3", "proc_mounts": "D /m ext3 rw"}}
    mta = {"type": "mta", "mta": "sendmail 8.17", "params": params, "options": [], **changes}
    return run(id="d/storm.r1", workload=mta, disk=disk)


def test_a_condition_holds_where_somebody_asks_for_it_and_nowhere_else(directory):
    """Not by the time of the run, nor by anything else that it says of itself."""
    described = describe(directory(storm() | {"started_utc": "2026-11-21T03:24:32"}))
    plain = build(described, 1).processes["sendmail"]
    claimed = build(described, 1, CONDITIONS["mailer-fails"]).processes["sendmail"]
    assert (plain.program, claimed.program) == ("sendmail", "failing_sendmail")
    assert plain.params == claimed.params


def test_rows_with_a_condition_say_so_and_fail_to_deliver(directory, tmp_path):
    path, found = str(directory(storm())), tmp_path / "rows.json"
    options = ["--jobs", "1", "--with-condition", "mailer-fails", "--json", str(found)]
    assert CliRunner().invoke(main, ["validate", path, *options]).exit_code == 0
    [row] = json.loads(found.read_text())
    assert row["condition"] == "mailer-fails"
    assert row["predicted"] != validate_run(Path(path), seed=1).predicted


def test_a_condition_about_another_workload_is_a_usage_mistake(directory):
    options = ["--with-condition", "mailer-fails"]
    result = CliRunner().invoke(main, ["validate", str(directory(run())), *options])
    assert result.exit_code == 2
    assert "'mailer-fails' is about workload mta, and the run's is fio" in result.stderr


@pytest.mark.parametrize("guest", [None, "uml"])
def test_the_queue_is_as_the_description_says(directory, guest):
    queue = QUEUE | {"rotational": "0", "wbt_lat_usec": "2000"}
    content = run(disk={"params": HDD, "queue": queue}, kernel={**KERNEL, "guest": guest})
    machine = Machine(build(describe(directory(content)), 1), 1)
    disk = machine.devices["ubda" if guest else "loop0"]
    assert not disk.rotational
    assert disk.wbt is not None and disk.params.wbt_lat_ns == 2_000_000


def test_a_queue_of_which_nothing_is_said_is_the_devices(directory):
    machine = Machine(build(describe(directory(run())), 1), 1)
    assert machine.devices["loop0"].rotational


def test_the_loop_rig_s_kernel_is_not_preemptible(directory):
    machine = Machine(build(describe(directory(run())), seed=1), 1)
    assert machine.sched.params.preemption == "none"


@pytest.mark.parametrize("content", [storm(), run()], ids=["storm", "reads"])
def test_what_is_predicted_is_the_simulation_with_the_middle_throughput(directory, content):
    described = describe(directory(content))
    found = [simulate(described, 3 + SEED_STEP * n) for n in range(CHANCES)]
    rates = [next(iter(one.result.values())) for one in found]
    assert len(set(rates)) > 1
    assert predict(described, 3) == found[rates.index(median(rates))]


def test_programs_beyond_a_limit_have_a_group_and_swap_on_the_disk(directory):
    described = describe(directory(run(workload={"type": "memtouch", "params": TOUCHES})))
    server = build(described, seed=1).server
    assert server.all("swap")["swap"].device == "loop0"
    assert server.all("cgroup")["work"].memory_bytes == 10 * 2**20 - 1360 * 1024
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
    assert "off by more than" not in result.stdout  # Nothing was measured.


@pytest.mark.parametrize(
    ("iops", "told"),
    [
        (75.0, "no figure of a program and no await is off by more than 40 %"),
        (40.0, "off by more than 40 %, of what a program reports and of await:"),
    ],
)
def test_a_figure_that_is_far_off_is_listed_with_its_run(directory, iops, told):
    summary = {"r_await": 26.5, "w_await": 0.0, "rps": iops, "util": 99.0, "load_n_mean": 2.0}
    result = {"iops": iops, "lat_mean_ms": 26.5}
    path = str(directory(run(result=result, summary=summary)))
    printed = CliRunner().invoke(main, ["validate", path, "--jobs", "1"]).stdout
    head, found, listed = printed.partition(told)
    assert found and "family" in head
    lines = [line.split() for line in listed.splitlines()[2:]]
    assert [line[:3] for line in lines] == ([["a/reads.r1", "ops/s", "40"]] if iops < 75 else [])


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
        id="e/run.r1",
        family="e",
        predicted={"result": {"killed": predicted}},
        measured={"result": {"killed": recorded}},
        why_not="",
    )


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
    assert build(describe(directory(content)), 1).server.all("disk")["loop0"].scheduler == built


def test_an_elevator_that_the_kernel_has_not_is_not_supported(directory):
    content = run(disk={"params": HDD, "queue": QUEUE | {"scheduler": "[cfq] noop"}})
    with pytest.raises(Unsupported, match="the elevator cfq"):
        build(describe(directory(content)), 1)


@pytest.mark.parametrize("said, built", [("uniform", "uniform"), ("half", "half"), (0, "half")])
def test_an_arms_parameters_are_the_emulators(directory, said, built):
    params = HDD | {"rot": said, "full_span": 0.5}
    content = run(disk={"params": params, "queue": QUEUE})
    found = build(describe(directory(content)), 1).server.all("disk")["loop0"].params
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
    # What is waited for at the end, 1.5 windows of 5 MiB, is 2 % of it: fio says that it reads in
    # sequence, which makes windows twice as long.
    params = {"rw": "read", "bs": "128k", "size_mb": 400, **reads}
    queue = QUEUE | {"read_ahead_kb": "2560"}
    content = run(workload={"type": "fio", "params": params}, disk={"params": HDD, "queue": queue})
    row = validate_run(directory(content), seed=1)
    assert row.predicted["result"]["MB/s"] == pytest.approx(rate_mb, rel=0.03)
    assert row.predicted["await_ms"]["w"] == 0
