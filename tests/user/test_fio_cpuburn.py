"""The benchmark programs do what their namesakes do: laws of closed loops, shares, counts."""

import pytest

from tests.user.servers import RAM_DISK, boot, run_for, values_of

DEVICE = RAM_DISK + '[machine.mount."/"]\ntype = "tmpfs"'  # 2 ms a request, one at a time


def fio(**params):
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in params.items()]
    return "\n".join(['[process.fio]\nprogram = "fio"\nfilename = "/dev/sda"', *lines])


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("kind", ["jobs", "queue"])
def test_a_closed_loop_of_reads_has_the_throughput_of_the_device(depth, kind):
    """X = 1 / S and R = n S, whether n processes read or one keeps n reads in flight."""
    how = {"count": depth} if kind == "jobs" else {"ioengine": "libaio", "iodepth": depth}
    machine = run_for(boot(fio(runtime="2 s", **how), machine=DEVICE), 3)
    assert sum(values_of(machine, "fio_done")) == pytest.approx(1000, rel=0.02)
    times = values_of(machine, "fio_ns")
    assert sum(times) / len(times) == pytest.approx(depth * 2e6, rel=0.03)


def test_a_sequential_write_goes_through_the_file_once():
    job = fio(rw="write", block_size="64 KiB", size="1 MiB")
    machine = run_for(boot(job, machine=DEVICE), 1)
    assert values_of(machine, "fio_done") == [16]
    assert machine.devices["sda"].stats.write_sectors == 2048


def test_hogs_share_a_cpu_by_weight():
    hogs = "\n".join(
        f'[process.hog{nice}]\nprogram = "cpuburn"\nnice = {nice}\nruntime = "20 s"'
        for nice in (0, 5, 10)
    )
    machine = run_for(boot(hogs, cpus=1, sets=['machine.kernel="4.19"']), 25)
    used = {record.comm: record.value for record in machine.records if record.name == "cpuburn_ns"}
    total = sum(used.values())
    shares = [used[f"hog{nice}"] / total for nice in (0, 5, 10)]
    weights = [1024, 335, 110]
    assert shares == pytest.approx([w / sum(weights) for w in weights], abs=0.02)
