"""Flash with places: reads behind programs, suspend, SLC cache, flushes, writes through."""

from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import BIO_FUA, FLUSH, READ, WRITE, Request
from sim.drivers.nvme import Nvme, NvmeParams
from sim.drivers.ssd import Ssd, SsdParams
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.report.fio_report import fio_json
from sim.scenario import load
from sim.scenario.fio_file import read_fio_file
from sim.study.fio_run import load_machine, run_fio
from sim.toml.errors import ScenarioError
from tests.drivers.drives import drive
from tests.drivers.loads import bytes_per_s, closed_loop

US = 1000
MS = 1_000_000
KIB = 2  # sectors
PLAIN = {
    "capacity_bytes": 1 << 30,
    "used_percent": 0.0,
    "dies": 1,
    "channels": 1,
    "channel_rate_bytes_per_s": 1e15,
    "read_page_ns": 100 * US,
    "read_spread_percent": 0.0,
    "program_ns": 1 * MS,
    "program_spread_percent": 0.0,
    "erase_ns": 0,
    "command_ns": 0,
    "read_overhead_ns": 0,
    "write_overhead_ns": 0,
    "flush_overhead_ns": 0,
    "buffer_protected": False,
    "read_lanes_bytes_per_s": 1e15,
    "write_lanes_bytes_per_s": 1e15,
}


class Alone:
    """A drive without a queue above it, and how long each request took."""

    def __init__(self, device):
        self.calendar = Calendar()
        self.took_ns = {}
        device.attach("sdb", self.calendar, Streams(1), self._end)
        self.device = device

    def _end(self, request):
        self.took_ns[request] = self.calendar.now - request.start_ns

    def submit(self, op, page=0, sectors=8, flags=0):
        request = Request(op, page * 32, sectors, self.calendar.now, flags=flags)
        request.task_id = 0
        self.device.submit(request)
        return request

    def at(self, when_ns, *args):
        """Submit at a time; return what will hold the request."""
        found = []
        self.calendar.post_at(when_ns, lambda _: found.append(self.submit(*args)), None)
        return found

    def run(self):
        self.calendar.run()
        return self


def plain(**changes):
    """Return a drive whose dies are all that takes time: 0.1 ms a read, 1 ms a program."""
    return Nvme(NvmeParams(**(PLAIN | changes)))


def percentile(values, share):
    return sorted(values)[int(share * len(values))]


# -- A read and the program on its die


def read_during_a_program(at_us, **changes):
    """Return how long (us) a read takes that comes during a program of 1 ms on the only die."""
    alone = Alone(plain(**changes))
    alone.submit(WRITE, 0, 32)  # a whole page: programmed at once
    read = alone.at(at_us * US, READ, 5)
    alone.run()
    return round(alone.took_ns[read[0]] / US)


def test_a_read_waits_for_the_program_on_its_die():
    assert [read_during_a_program(at_us) for at_us in (10, 500, 999)] == [1090, 600, 101]


def test_a_read_on_another_die_does_not_wait():
    alone = Alone(plain(dies=2))
    alone.submit(WRITE, 0, 32)  # on the first die
    reads = [alone.at(10 * US, READ, page) for page in (6, 7)]
    alone.run()
    assert sorted(round(alone.took_ns[read[0]] / US) for read in reads) == [100, 1090]


def test_a_suspend_makes_the_read_wait_for_its_latency_only():
    assert [read_during_a_program(at, suspend_ns=30 * US) for at in (10, 500, 990)] == [
        130,
        130,
        110,
    ]


def test_a_suspended_program_ends_later_by_what_the_reads_took():
    """Two reads of 0.1 ms and one suspend of 30 us: the flush waits 0.23 ms longer."""
    alone = Alone(plain(suspend_ns=30 * US, flush_programs=0))
    alone.submit(WRITE, 0, 32)
    flush = alone.submit(FLUSH, 0, 0)
    alone.at(10 * US, READ, 5)
    alone.at(20 * US, READ, 6)
    alone.run()
    assert round(alone.took_ns[flush] / US) == 1000 + 230


def test_reads_hold_a_program_up_for_at_most_its_own_time():
    """Reads all the time: the program of 1 ms has its die back after 1 ms of them."""
    alone = Alone(plain(suspend_ns=30 * US, flush_programs=0))
    alone.submit(WRITE, 0, 32)
    flush = alone.submit(FLUSH, 0, 0)
    for number in range(60):
        alone.at((10 + 100 * number) * US, READ, 5 + number)
    alone.run()
    assert 1.8 * MS < alone.took_ns[flush] <= 2 * MS


def test_a_die_erases_when_it_has_filled_a_block():
    """Blocks of four pages: beside every fourth program an erase of 5 ms, which a read meets."""
    alone = Alone(plain(erase_ns=5 * MS, block_pages=4))
    for number in range(4):
        alone.submit(WRITE, number, 32)
    read = alone.at(4500 * US, READ, 9)
    alone.run()
    assert round(alone.took_ns[read[0]] / US) == 9000 - 4500 + 100


def test_planes_read_apart_and_program_together():
    alone = Alone(plain(planes=4))
    pages = [alone.submit(READ, page) for page in range(5)]
    alone.run()
    assert [round(alone.took_ns[page] / US) for page in pages] == [100, 100, 100, 100, 200]
    alone = Alone(plain(planes=4, flush_programs=0))
    alone.submit(WRITE, 0, 128)
    flush = alone.submit(FLUSH, 0, 0)
    alone.run()
    assert round(alone.took_ns[flush] / US) == 1000


def test_upper_pages_take_longer_than_lower_ones():
    """Three kinds as often: 80, 100 and 120 us."""
    alone = Alone(plain(cell_bits=3, read_spread_percent=20.0))
    took = []
    for page in range(3000):
        read = alone.submit(READ, page)
        alone.calendar.run()
        took.append(round(alone.took_ns[read] / US))
    assert set(took) == {80, 100, 120}
    assert mean(took) == pytest.approx(100, rel=0.01)


def test_pages_of_a_cell_are_programmed_in_turn_or_in_one_shot():
    def flushed(**changes):
        alone = Alone(plain(flush_programs=0, **changes))
        took = []
        for number in range(4):
            alone.submit(WRITE, number)
            flush = alone.submit(FLUSH, 0, 0)
            alone.calendar.run()
            took.append(round(alone.took_ns[flush] / US))
        return took

    assert flushed(program_spread_percent=60.0) == [400, 1600, 400, 1600]
    assert flushed(program_spread_percent=60.0, one_shot=True) == [1000] * 4


@pytest.mark.parametrize("pages", [1, 16, 32, 64, 512, 4096])
def test_no_stride_keeps_meeting_the_same_few_dies(pages):
    """32 dies of 0.1 ms, 64 in flight: 64 / 95 of them are busy, whatever the stride."""
    device = plain(dies=32, channels=8, capacity_bytes=1 << 40)
    alone = Alone(device)
    for number in range(64):
        alone.submit(READ, number * pages)
    ends = sorted(alone.run().took_ns.values())
    # Two on each die take 0.2 ms; at random some die has five or six.
    assert ends[-1] <= 8 * 100 * US
    assert mean(ends) < 250 * US


# -- The buffer


def test_what_is_in_the_buffer_is_read_from_it():
    alone = Alone(plain())
    alone.submit(WRITE, 3)
    hit, miss = alone.submit(READ, 3), alone.submit(READ, 4)
    alone.run()
    assert alone.took_ns[hit] <= 2
    assert round(alone.took_ns[miss] / US) == 100


@pytest.mark.parametrize("sectors", [32, 2048])
def test_what_is_being_programmed_is_read_from_the_buffer_until_it_is_in_flash(sectors):
    alone = Alone(plain(dies=64))
    alone.submit(WRITE, 0, sectors)
    during, later = alone.at(500 * US, READ, 0), alone.at(5000 * US, READ, 0)
    alone.run()
    assert alone.took_ns[during[0]] <= 2
    assert round(alone.took_ns[later[0]] / US) == 100


def test_what_the_buffer_knows_of_pages_is_bounded():
    """A buffer of 1 MiB has 256 pages, a drive with capacitors of 20 GiB written knows few more."""
    device = drive("ssd-nvme", buffer_bytes=1 << 20)
    closed_loop(device, WRITE, in_flight=64, count=20_000)
    assert len(device.flash._held) <= 1024 + 2 * 256 + 256


# -- Flush and write through


def test_a_flush_is_what_is_unwritten_and_a_record():
    alone = Alone(plain(flush_programs=1))
    alone.submit(WRITE, 0)
    flush = alone.submit(FLUSH, 0, 0)
    alone.calendar.run()
    again = alone.submit(FLUSH, 0, 0)  # nothing new
    alone.submit(WRITE, 1, 32)
    written = alone.at(alone.calendar.now + 5 * MS, FLUSH, 0, 0)  # programmed, but not recorded
    alone.run()
    assert round(alone.took_ns[flush] / US) == 2000
    assert alone.took_ns[again] == 0
    assert round(alone.took_ns[written[0]] / US) == 1000


def test_a_write_through_is_its_data_a_page_of_the_mapping_and_the_directory():
    alone = Alone(plain(fua_programs=2))
    through = alone.submit(WRITE, 0, 16, BIO_FUA)
    alone.run()
    assert round(alone.took_ns[through] / US) == 3000
    assert alone.device.unsafe_runs() == []


def test_capacitors_make_a_write_through_a_write():
    alone = Alone(plain(buffer_protected=True))
    through = alone.submit(WRITE, 0, 16, BIO_FUA)
    alone.run()
    assert alone.took_ns[through] <= 2


def test_when_a_write_through_ends_what_was_written_before_is_in_flash_too():
    alone = Alone(plain())
    alone.submit(WRITE, 7)
    through = alone.submit(WRITE, 9, 8, BIO_FUA)
    alone.run()
    assert alone.took_ns[through] == pytest.approx(3 * MS, abs=5)
    assert alone.device.unsafe_runs() == []


def test_linux_uses_fua_where_an_nvme_drive_has_a_volatile_cache():
    assert plain().fua
    assert not plain(buffer_protected=True).fua
    assert not plain(fua=False).fua
    assert not Ssd(SsdParams()).fua


# -- SLC cache


SLC = {"slc_cache_bytes": 4 << 20, "slc_program_ns": 200 * US, "cell_bits": 3, "one_shot": True}


def test_writes_go_at_the_rate_of_slc_until_its_cache_is_full_and_at_that_of_folding_then():
    """One die: 16 KiB in 0.2 ms; past the cache 48 KiB in 1 ms and as much folded in 1.3 ms."""
    device = plain(**SLC, buffer_bytes=1 << 18)
    quick = closed_loop(device, WRITE, 4, 48, sectors=64 * KIB, in_order=True)
    assert bytes_per_s(quick) == pytest.approx(16384 / 0.2e-3, rel=0.15)
    device = plain(**SLC, buffer_bytes=1 << 18)
    long = closed_loop(device, WRITE, 4, 2000, sectors=64 * KIB, in_order=True)
    # What is folded makes room for as much: half goes to the cache, half past it.
    slowly = 2 * 3 * 16384 / (1.0e-3 + 1.0e-3 + 3 * 0.1e-3 + 3 * 0.2e-3)
    assert bytes_per_s(long) == pytest.approx(slowly, rel=0.15)


def test_an_idle_drive_folds_its_cache():
    """4 MiB in pieces of 48 KiB and 1.3 ms: 0.11 s."""
    device = plain(**SLC)
    slc = device.flash._slc
    assert slc.take(0, 8192)
    slc.busy_until(0)
    assert not slc.take(1, 8192)
    assert not slc.take(100 * MS, 8192)
    assert slc.take(115 * MS, 8192)


# -- Laws

STEPS = st.lists(
    st.tuples(
        st.integers(0, 900),  # us after the step before
        st.sampled_from(["read", "read", "write", "through", "flush"]),
        st.integers(0, 60),  # page
        st.sampled_from([8, 24, 32, 200]),  # sectors
    ),
    min_size=1,
    max_size=40,
)
DRIVES = st.fixed_dictionaries(
    {
        "dies": st.sampled_from([1, 3, 8]),
        "planes": st.sampled_from([1, 2]),
        "suspend_ns": st.sampled_from([0, 30 * US]),
        "erase_ns": st.sampled_from([0, 3 * MS]),
        "block_pages": st.just(6),
        "cell_bits": st.sampled_from([1, 3]),
        "one_shot": st.booleans(),
        "slc_cache_bytes": st.sampled_from([0, 1 << 18]),
        "programming_dies": st.sampled_from([0, 2]),
        "program_spread_percent": st.sampled_from([0.0, 60.0]),
        "buffer_bytes": st.sampled_from([1 << 16, 1 << 20]),
        "channel_rate_bytes_per_s": st.sampled_from([1e9, 1e15]),
    }
)


@settings(max_examples=150, deadline=None)
@given(STEPS, DRIVES)
def test_what_was_flushed_or_written_through_is_in_flash_whatever_the_drive(steps, changes):
    """Every request ends once. Sectors are counted in the order in which the buffer empties."""
    alone = Alone(plain(**changes))
    flash = alone.device.flash
    promised = {}  # request -> sectors that are in flash when it ends
    late = []

    def ended(request):
        assert request not in alone.took_ns
        alone.took_ns[request] = alone.calendar.now - request.start_ns
        unsafe = sum(end - start for start, end in alone.device.unsafe_runs())
        assert unsafe == flash._taken - flash._programmed
        if flash._programmed < promised.get(request, 0):
            late.append(request)

    def submit(step):
        _, what, page, sectors = step
        written = flash._taken
        if what == "flush":
            promised[alone.submit(FLUSH, 0, 0)] = written
        elif what == "through":
            promised[alone.submit(WRITE, page, sectors, BIO_FUA)] = written + sectors
        else:
            promised[alone.submit(WRITE if what == "write" else READ, page, sectors)] = 0

    alone.device._complete = ended
    now_ns = 0
    for step in steps:
        now_ns += step[0] * US
        alone.calendar.post_at(now_ns, submit, step)
    alone.run()
    assert set(alone.took_ns) == set(promised)
    assert not late
    assert flash._dirty < flash._unsent + 1  # what is over waits for a whole program or a flush


# -- What cannot be

NVME = """
title = "one"
[machine]
kernel = "6.8"
memory = "1 GiB"
[machine.disk.nvme0n1]
profile = "samsung-990pro"
{key} = {value}
[machine.mount."/"]
type = "xfs"
device = "nvme0n1"
"""


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("buffer", '"3 TB"', "larger than the drive, got 3 TB (accepted: up to 2 TB)"),
        ("slc_cache", '"3 TB"', "larger than the drive, got 3 TB (accepted: up to 2 TB)"),
        ("fua", "true\nbuffer_protected = true", "got true (accepted: false"),
    ],
)
def test_what_no_drive_can_be_is_refused_where_it_is_said(tmp_path: Path, key, value, told):
    file = tmp_path / "one.toml"
    file.write_text(NVME.format(key=key, value=value))
    with pytest.raises(ScenarioError) as caught:
        load(str(file))
    assert told in str(caught.value)
    assert "one.toml:8" in str(caught.value)


# -- Whole drives


def reads_beside(writes_per_s, reads_per_s=20_000, ms=300, **changes):
    """Return the times (us) of random reads of a P3700 beside random writes."""
    device = drive("ssd-nvme", **changes)
    alone = Alone(device)
    pages = device.capacity_sectors // 32
    draw = Streams(7).stream("places")
    reads = []
    for number in range(reads_per_s * ms // 1000):
        reads.append(alone.at(number * 10**9 // reads_per_s, READ, draw.randrange(pages)))
    for number in range(writes_per_s * ms // 1000):
        alone.at(number * 10**9 // writes_per_s + 100, WRITE, draw.randrange(pages))
    alone.run()
    return [alone.took_ns[read[0]] / US for read in reads]


def test_one_read_in_nine_meets_a_die_that_programs():
    """20,000 writes/s of 4 KiB, 2.8 programs of 16 KiB for four of them: 14,000 programs/s.

    Each takes 1.16 ms (Intel DC P3700, 2 TB), on 144 dies: 11 % of the time of a die. Without
    writes no read takes long. Programs take 0.46 or 1.86 ms in turn: who meets one waits for half
    of the mean square over the mean, 0.79 ms.
    """
    idle, busy = reads_beside(0), reads_beside(20_000)
    lone = mean(idle)
    assert percentile(idle, 0.99) < 1.3 * lone
    amplification = drive("ssd-nvme").flash.ftl.amplification
    met = 20_000 * 4096 / 16384 * amplification * 1.16e-3 / 144
    assert met == pytest.approx(0.11, abs=0.01)
    late = [took for took in busy if took > max(idle)]
    assert len(late) / len(busy) == pytest.approx(met, rel=0.25)
    assert mean(late) - lone == pytest.approx(790, rel=0.25)
    assert percentile(busy, 0.99) > 10 * percentile(idle, 0.99)


def test_reads_feel_the_cleaner_of_a_full_drive():
    """Beside the same writes a new drive, which moves nothing, holds up a third of the reads."""
    longest = max(reads_beside(0, ms=50))
    full, new = (
        sum(took > longest for took in reads_beside(20_000, used_percent=used))
        for used in (100.0, 0.0)
    )
    amplification = drive("ssd-nvme").flash.ftl.amplification
    assert full / new == pytest.approx(amplification, rel=0.25)


# -- Syncs of a consumer's drive

FSYNC = """
title = "consumer NVMe"
[machine]
kernel = "6.8"
cpus = 8
memory = "4 GiB"
[machine.disk.nvme0n1]
profile = "samsung-990pro"
[machine.disk.sda]
profile = "sata-7200"
[machine.mount."/"]
type = "ext4"
device = "sda"
[machine.mount."/data"]
type = "xfs"
device = "nvme0n1"
"""
JOBS = """
[global]
filename=/data/wal
rw=randrw
rwmixread=2
norandommap
bs=8k
size=16m
time_based
runtime=60ms
ioengine=psync
direct=1
[open_datasync]
sync=dsync
[fdatasync]
stonewall
fdatasync=1
[fsync]
stonewall
fsync=1
"""
# pg_test_fsync, one 8 KiB write, of a Samsung 990 PRO, 2 TB, with XFS: T. Poder, May 2025.
PUBLISHED = {"open_datasync": 249.6, "fdatasync": 608.6, "fsync": 177.4}


def writes_per_s(tmp_path, machine, jobs):
    """Return how many writes a second each job of a file did."""
    (tmp_path / "one.toml").write_text(machine)
    (tmp_path / "one.fio").write_text(jobs)
    scenario = load_machine(str(tmp_path / "one.toml"), seed=1, sets=())
    result = run_fio(scenario, read_fio_file(tmp_path / "one.fio"))
    return {job["jobname"]: job["write"]["iops"] for job in fio_json(result, "fio")["jobs"]}


def test_syncs_of_a_consumers_drive_take_what_its_programs_take(tmp_path):
    """By hand: a flush 0.3 + 1.17 ms; a write with FUA 3 * 1.17 ms; fsync both, for its log.

    192 KiB are programmed in 1.07 ms and moved to the die in 0.1 ms. A few reads make fio lay the
    file out before, as pg_test_fsync does.

    No parameter of the profile was fitted to the published figures: they are from the data sheet
    and from papers on its NAND.
    """
    found = writes_per_s(tmp_path, FSYNC, JOBS)
    assert found["open_datasync"] == pytest.approx(1 / (3 * 1.17e-3), rel=0.1)
    for name, published in PUBLISHED.items():
        assert published / 1.5 < found[name] < published * 1.5
    assert found["fdatasync"] == pytest.approx(1 / (0.3e-3 + 1.17e-3), rel=0.1)
    assert found["fsync"] == pytest.approx(1 / (0.3e-3 + 4 * 1.17e-3), rel=0.1)


@pytest.mark.parametrize("engine", ["psync", "libaio", "io_uring"])
def test_an_asynchronous_write_with_o_dsync_is_as_durable_and_as_slow_as_another(tmp_path, engine):
    """Whoever submits it, a write with FUA is one: 3 * 1.17 ms (dio_complete, IOMAP_DIO_WRITE_FUA).

    A kernel model that ignores O_DSYNC of io_submit() does 44,000 a second here.
    """
    jobs = JOBS.split("[fdatasync]")[0].replace("ioengine=psync", f"ioengine={engine}")
    [found] = writes_per_s(tmp_path, FSYNC, jobs).values()
    assert found == pytest.approx(1 / (3 * 1.17e-3), rel=0.1)
    assert found < 1.5 * PUBLISHED["open_datasync"]


def test_a_write_through_takes_longer_than_a_write_and_a_flush():
    """The other way round than one would think, as the published figures have it."""
    alone = Alone(drive("samsung-990pro"))
    through = alone.submit(WRITE, 0, 16, BIO_FUA)
    alone.calendar.run()
    alone.submit(WRITE, 99, 16)
    flush = alone.submit(FLUSH, 0, 0)
    alone.run()
    assert alone.took_ns[through] > 2 * alone.took_ns[flush]
    found = 1e9 / alone.took_ns[through]
    assert PUBLISHED["open_datasync"] / 1.5 < found < PUBLISHED["open_datasync"] * 1.5
