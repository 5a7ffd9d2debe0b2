"""NFS: what waits for what, how much is under way, and what the server's disk allows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.nfs.nfs import congestion_bytes
from sim.machine import Machine
from sim.net.sunrpc import SLOTS
from sim.sched.version import in_force, kernel_version
from sim.syscall import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY
from sim.toml.errors import ScenarioError
from tests.user.servers import EXT3, S, boot, run_for, run_program

MIB = 2**20
RATE = 20e6  # bytes a second, of the server's disk
FILER = """
[process.filer]
program = "nfsd"
via = "lan"
rate = "20 MB/s"
"""
MOUNT = '\n[machine.mount."/nfs"]\ntype = "nfs"\nserver = "filer"\n'


def served(*sets: str, mount: str = MOUNT) -> Machine:
    return boot(FILER, machine=EXT3 + mount, sets=list(sets))


def the_fs(machine):
    return machine.vfs.file_system_of("/nfs")


def write_file(sys, path, nbytes, *, fsync=False):
    fd = yield from sys.open(path, O_WRONLY | O_CREAT)
    yield from sys.write(fd, nbytes)
    if fsync:
        yield from sys.fsync(fd)
    return fd


def times_of_a_write(machine, nbytes):
    """Return when (s) write() of that much and close() came back."""
    times = []

    def program(sys):
        fd = yield from write_file(sys, "/nfs/a", nbytes)
        times.append(machine.calendar.now / S)
        yield from sys.close(fd)
        times.append(machine.calendar.now / S)

    run_program(machine, program, seconds=200)
    return times


# -- Laws


def test_a_large_file_takes_what_the_servers_disk_takes():
    [written, closed] = times_of_a_write(served(), 600 * MIB)
    assert closed == pytest.approx(600 * MIB / RATE, rel=0.02)
    assert written < closed


def test_close_waits_for_what_the_servers_memory_holds():
    """A file smaller than the server's memory is there at the link's rate, and durable at r."""
    [written, closed] = times_of_a_write(served('process.filer.memory="100 MiB"'), 50 * MIB)
    assert written < 0.5
    assert closed == pytest.approx(50 * MIB / RATE, rel=0.1)


def test_after_close_nothing_is_dirty_or_unstable():
    machine = served()
    times_of_a_write(machine, 30 * MIB)
    assert machine.vm.nr_reclaimable() == machine.vm.nr_writeback == 0


def test_with_sync_each_write_waits_for_the_disk():
    machine = served('machine.mount."/nfs".sync=true')
    [written, _] = times_of_a_write(machine, 128 * 1024)
    calls = 4  # of 32 KiB
    assert written >= calls * 0.012


def test_what_is_under_way_never_exceeds_the_slots():
    machine = served('machine.kernel="2.6.18"', 'process.filer.memory="1 MiB"')
    rpc = the_fs(machine).rpc
    most = []

    def watch(_):
        most.append(rpc.nr_under_way)
        machine.calendar.post(S // 100, watch, None)

    watch(None)
    times_of_a_write(machine, 20 * MIB)
    assert max(most) == in_force(SLOTS, (2, 6, 18)) == 16


def test_a_long_way_makes_slots_the_limit():
    """16 calls of 32 KiB a round trip of 100 ms: 5.2 MB/s, whatever the link."""
    machine = served(
        'machine.kernel="2.6.18"', 'link.lan.latency="50 ms"', 'process.filer.rate="1 GB/s"'
    )
    [_, closed] = times_of_a_write(machine, 20 * MIB)
    assert 20 * MIB / closed < 16 * 32768 / 0.1


def test_reading_back_comes_from_the_page_cache():
    machine = served()
    seconds = []

    def program(sys):
        fd = yield from write_file(sys, "/nfs/a", 10 * MIB)
        yield from sys.close(fd)
        calls = the_fs(machine).rpc.calls
        fd = yield from sys.open("/nfs/a", O_RDONLY)
        assert (yield from sys.read(fd, 10 * MIB)) == 10 * MIB
        seconds.append(the_fs(machine).rpc.calls - calls)
        yield from sys.close(fd)

    run_program(machine, program, seconds=60)
    assert seconds == [0]


def test_a_file_of_the_server_is_read_by_calls_of_rsize():
    machine = served('machine.mount."/nfs".rsize="16 KiB"', "process.filer.read=0")
    machine.vfs.prepare_file("/nfs/old", MIB)

    def program(sys):
        fd = yield from sys.open("/nfs/old", O_RDONLY)
        assert (yield from sys.read(fd, MIB)) == MIB

    run_program(machine, program)
    assert the_fs(machine).rpc.calls == 64


# -- Throttling, congestion, unstable pages


def test_unstable_pages_count_as_dirty_memory():
    """The server takes all at once, its disk does not: they are unstable here meanwhile."""
    machine = served('machine.kernel="2.6.18"', 'process.filer.memory="1 GiB"')

    def program(sys):
        yield from write_file(sys, "/nfs/a", 200 * MIB)

    machine.kernel.start("test", "test", program)
    run_for(machine, 12)
    vm = machine.vm
    assert vm.nr_unstable > 0
    assert f"NFS_Unstable:{vm.nr_unstable * 4:9d} kB" in machine.proc.read("meminfo")


def test_a_writer_to_a_slow_server_is_held_back_at_the_dirty_limit():
    """1 GiB, 40 % dirty at most (2.6.18): 800 MiB are not written before half are on the server."""
    machine = served('machine.kernel="2.6.18"', 'machine.memory="1 GiB"')
    [written, closed] = times_of_a_write(machine, 800 * MIB)
    assert written > (800 * MIB - 0.4 * 1024 * MIB - 200 * MIB) / RATE
    assert closed == pytest.approx(800 * MIB / RATE, rel=0.03)


def test_from_2_6_24_on_a_server_is_congested_above_nfs_congestion_kb():
    machine = served('machine.kernel="2.6.32"', 'machine.memory="1 GiB"')
    fs = the_fs(machine)
    assert congestion_bytes(machine.vm) == pytest.approx(16 * 512 * 4096, rel=0.01)
    assert not fs.bdi.write_congested()
    fs.bdi.nr_writeback = congestion_bytes(machine.vm) // 4096 + 1
    assert fs.bdi.write_congested()
    fs.bdi.nr_writeback = fs.bdi.nr_writeback * 3 // 4 + 1
    assert fs.bdi.write_congested()
    fs.bdi.nr_writeback //= 2
    assert not fs.bdi.write_congested()


# -- Load average, and servers that go away


@pytest.mark.parametrize(("kernel", "counted"), [("2.6.18", 0), ("2.6.32", 1)])
def test_waiting_for_a_reply_counts_in_the_load_from_2_6_25_on(kernel, counted):
    machine = served(f'machine.kernel="{kernel}"', 'process.filer.stable="100 s"')

    def program(sys):
        yield from sys.mkdir("/nfs/d")

    machine.kernel.start("test", "test", program)
    run_for(machine, 50)
    assert machine.sched.nr_uninterruptible == counted
    assert machine.sched.nr_iowait == 0


def test_a_hard_mount_waits_for_a_server_that_is_away():
    machine = served()
    done = []

    def program(sys):
        yield from sys.mkdir("/nfs/d")
        done.append(machine.calendar.now)

    machine.kernel.start("test", "test", program)
    run_for(machine, 1)
    assert len(done) == 1
    rpc = the_fs(machine).rpc
    rpc.peer().abort()  # The server restarts.
    machine.kernel.start("test", "test", lambda sys: write_then(sys, done, machine))
    run_for(machine, 10)
    assert len(done) == 2
    assert rpc.connects == 2


def write_then(sys, done, machine):
    fd = yield from write_file(sys, "/nfs/d/a", 4096, fsync=True)
    done.append(machine.calendar.now)
    yield from sys.close(fd)


# -- Names


def test_a_server_that_refuses_is_asked_less_and_less_often():
    machine = served()
    rpc = the_fs(machine).rpc

    def program(sys):
        yield from sys.mkdir("/nfs/d")

    machine.run_until(1000)
    machine.network.listener_at("filer", 2049).close()
    machine.kernel.start("test", "test", program)
    run_for(machine, 100)
    assert rpc.connects == 7  # at 0, 0, 3, 9, 21, 45, 93 s


def test_a_file_removed_while_it_is_open_is_renamed_and_removed_at_its_last_close():
    machine = served()

    def program(sys):
        fd = yield from write_file(sys, "/nfs/a", 4096)
        yield from sys.unlink("/nfs/a")
        assert (yield from sys.pwrite(fd, 100, 0)) == 100
        yield from sys.close(fd)

    run_program(machine, program)
    fs = the_fs(machine)
    assert fs.check() == []
    assert len(fs.inodes) == 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "fsync", "unlink", "rename", "truncate", "sleep"]),
        st.integers(0, 3),
        st.integers(0, 40),
    ),
    max_size=20,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=3), st.sampled_from(["2.6.18", "2.6.32", "4.19"]))
def test_whatever_programs_do_it_stays_consistent(programs, kernel):
    machine = served(f'machine.kernel="{kernel}"', 'process.filer.memory="1 MiB"')

    def run(sys, steps):
        for kind, number, pages in steps:
            path = f"/nfs/{number}"
            try:
                if kind in ("write", "fsync"):
                    fd = yield from write_file(sys, path, pages * 4096, fsync=kind == "fsync")
                    yield from sys.close(fd)
                elif kind == "rename":
                    yield from sys.rename(path, "/nfs/0")
                elif kind == "unlink":
                    yield from sys.unlink(path)
                elif kind == "truncate":
                    fd = yield from sys.open(path, O_WRONLY | O_TRUNC)
                    yield from sys.close(fd)
                else:
                    yield from sys.sleep(pages * S // 10)
            except FileNotFoundError:
                continue
        ended.append(1)

    ended = []
    for steps in programs:
        machine.kernel.start("test", "test", lambda sys, steps=steps: run(sys, steps))
    run_for(machine, 300)
    assert len(ended) == len(programs)
    assert the_fs(machine).check() == []
    assert machine.vm.nr_unstable == 0
    assert kernel_version(kernel) == machine.version


# -- Bad input


def test_a_server_that_is_no_process_is_refused_with_the_nearest_name():
    said = r"unknown host outside the server 'filler'.*did you mean 'filer'"
    with pytest.raises(ScenarioError, match=said):
        served('machine.mount."/nfs".server="filler"')
