"""What data sheets say of the SSDs that have profiles, and what the profiles' drives do.

`python -m tests.drivers.sheets` prints the table of docs/reference/flash-drives.md.
"""

from dataclasses import dataclass
from functools import cache

from sim.block.bio import READ, WRITE
from tests.drivers.drives import drive
from tests.drivers.latencies import closed_loop_us
from tests.drivers.loads import bytes_per_s, closed_loop, per_s

KIB = 2  # sectors
COUNT = 20_000  # of requests behind a percentile


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """4 KiB reads and writes a second, MB/s in order; us of a lone request; its quality of service.

    None: the sheet does not say, or of another state of the drive, such as new.
    """

    rates: tuple[float, float, float, float]
    read_us: float | None = None
    write_us: float | None = None
    quality: tuple[float, float, float] | None = None  # share, us of a read, us of a write


SHEETS = {
    "ssd-sata": Sheet(rates=(75_000, 32_000, 500, 365), write_us=65, quality=(0.999, 500, 500)),
    "intel-s4500": Sheet(
        rates=(72_000, 33_000, 500, 490), read_us=110, write_us=52, quality=(0.999, 300, 800)
    ),
    "ssd-sas": Sheet(rates=(56_000, 24_000, 495, 385)),
    "ssd-nvme": Sheet(rates=(460_000, 175_000, 2800, 2000), write_us=20),
    "intel-p5600": Sheet(rates=(1_000_000, 260_000, 7000, 4300)),
    "samsung-pm9a3": Sheet(rates=(900_000, 200_000, 6500, 3500)),
    "samsung-990pro": Sheet(rates=(1_400_000, 1_550_000, 7450, 6900), read_us=45.5, write_us=12.5),
    "crucial-t500": Sheet(rates=(1_180_000, 1_440_000, 7400, 7000)),
    "intel-670p": Sheet(rates=(310_000, 340_000, 3500, 2700), write_us=18.5),
}
DEEP = {"ssd-sata": 32, "intel-s4500": 32, "ssd-sas": 32}  # others: 256


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a drive does: rates as in its sheet, the times of many requests (us)."""

    rates: tuple[float, float, float, float]
    reads_us: list[float]
    deep_reads_us: list[float]  # 128 at a time
    writes_us: list[float]


@cache
def measure(name):
    """Return what the drive of a profile does."""
    return Measured(
        rates=rates(name),
        reads_us=closed_loop_us(drive(name), READ, 1, COUNT),
        deep_reads_us=closed_loop_us(drive(name), READ, 128, COUNT),
        writes_us=closed_loop_us(drive(name), WRITE, 1, COUNT),
    )


def rates(name):
    """Return reads and writes a second, MB/s read and written in order."""
    deep = DEEP.get(name, 256)
    reads = closed_loop(drive(name), READ, deep, 20_000)
    writes = closed_loop(drive(name, buffer_bytes=4 << 20), WRITE, min(deep, 64), 30_000)
    reading = closed_loop(drive(name), READ, 32, 4000, sectors=128 * KIB, in_order=True)
    as_new = drive(name, buffer_bytes=16 << 20, used_percent=0.0)
    writing = closed_loop(as_new, WRITE, 32, 3000, sectors=512 * KIB, in_order=True)
    return (
        per_s(reads),
        per_s(writes),
        bytes_per_s(reading) / 1e6,
        bytes_per_s(writing) / 1e6,
    )


def percentile(times, share):
    return sorted(times)[int(share * len(times))]


def _rate(measured, told):
    return f"{measured:,.0f} ({told:,})"


def _latency(times, told):
    mean = f"{sum(times) / len(times):.0f}"
    return mean if told is None else f"{mean} ({told:g})"


def _tail(times, quality=None, at=0):
    tail = " / ".join(f"{percentile(times, share):.0f}" for share in (0.99, 0.999, 0.9999))
    return f"{tail} (99.9 %: {quality[at]})" if quality else tail


def rows():
    """Yield the lines of both tables: rates, then times."""
    yield "| profile | 4 KiB reads/s | 4 KiB writes/s | MB/s read | MB/s written |"
    yield "|---|---|---|---|---|"
    for name, sheet in SHEETS.items():
        each = (_rate(*pair) for pair in zip(measure(name).rates, sheet.rates, strict=True))
        yield f"| `{name}` | {' | '.join(each)} |"
    yield ""
    yield (
        "| profile | a read | 99 / 99.9 / 99.99 % | of 128 at a time | a write |"
        " 99 / 99.9 / 99.99 % |"
    )
    yield "|---|---|---|---|---|---|"
    for name, sheet in SHEETS.items():
        found = measure(name)
        cells = (
            _latency(found.reads_us, sheet.read_us),
            _tail(found.reads_us, sheet.quality, 1),
            _tail(found.deep_reads_us),
            _latency(found.writes_us, sheet.write_us),
            _tail(found.writes_us, sheet.quality, 2),
        )
        yield f"| `{name}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    print(*rows(), sep="\n")
