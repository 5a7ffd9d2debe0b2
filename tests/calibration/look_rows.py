"""Exact rows of a device: what iostat would say of a queue with known rates and times."""

from dataclasses import replace

from hypothesis import strategies as st

from calibration.look.intervals import Interval


def device_row(
    *,
    r_per_s: float,
    w_per_s: float,
    utilisation: float,
    stretch: float,
    skew: float,
    size_bytes: float,
    merges_per_s: float = 0.0,
) -> dict[str, float]:
    """Return a row that obeys every law: S = U / X, R = stretch S, N = X R.

    Reads answer in `skew` times the mean response time, writes in what makes the mean right.
    """
    rate = r_per_s + w_per_s
    service_ms = 1000 * utilisation / rate
    await_ms = stretch * service_ms
    r_await_ms = skew * await_ms if r_per_s and w_per_s else await_ms * (r_per_s > 0)
    w_await_ms = (await_ms * rate - r_per_s * r_await_ms) / w_per_s if w_per_s else 0.0
    return {
        "r_per_s": r_per_s,
        "w_per_s": w_per_s,
        "rrqm_per_s": 0.0,
        "wrqm_per_s": merges_per_s,
        "read_bytes_per_s": r_per_s * size_bytes,
        "write_bytes_per_s": w_per_s * size_bytes,
        "areq_bytes": size_bytes,
        "aqu_sz": rate * await_ms / 1000,
        "await_ms": await_ms,
        "r_await_ms": r_await_ms,
        "w_await_ms": w_await_ms,
        "svctm_ms": service_ms,
        "util_pct": 100 * utilisation,
    }


def printed(row: dict[str, float]) -> dict[str, float]:
    """Return a row as iostat -m prints it: two decimals, rates in MB, sizes in sectors."""
    units = {"read_bytes_per_s": 2.0**20, "write_bytes_per_s": 2.0**20, "areq_bytes": 512.0}
    return {
        name: round(value / units.get(name, 1), 2) * units.get(name, 1)
        for name, value in row.items()
    }


def cpu_row(busy: float, iowait: float) -> dict[str, float]:
    """Return shares of CPU time that add up."""
    return {
        "user_pct": 60 * busy,
        "nice_pct": 0.0,
        "system_pct": 40 * busy,
        "iowait_pct": 100 * iowait,
        "steal_pct": 0.0,
        "idle_pct": 100 * (1 - busy - iowait),
    }


def interval(row: dict[str, float], cpu: dict[str, float], number: int = 0) -> Interval:
    """Return an interval of 5 s with one device."""
    return Interval(end_s=5.0 * number, length_s=5.0, cpu=cpu, devices={"sda": row})


def with_row(one: Interval, **changes: float) -> Interval:
    """Return an interval with columns of its device changed."""
    return replace(one, devices={"sda": {**one.devices["sda"], **changes}})


# An M/M/1 queue answers in S / (1 - U); any stretch of 1 or more is possible.
mm1_rows = st.builds(
    lambda reads, writes, utilisation, skew, sectors: device_row(
        r_per_s=reads,
        w_per_s=writes,
        utilisation=utilisation,
        stretch=1 / (1 - utilisation),
        skew=skew,
        size_bytes=512.0 * sectors,
    ),
    st.floats(5, 2000),
    st.floats(5, 2000),
    st.floats(0.01, 0.95),
    st.floats(0.5, 1.0),
    st.integers(1, 1024),
)
intervals = st.builds(
    lambda row, busy, part: interval(row, cpu_row(busy, part * (1 - busy))),
    mm1_rows,
    st.floats(0, 1),
    st.floats(0, 1),
)
