"""What mean-value analysis says on the back of an envelope, to be set beside a prediction.

Models: take the recorded bottleneck away, and let the next resource be the limit.
Linux counterpart: none.
Invariants: demands are those that `iotwin look` finds in the recording; nothing of the fit enters.
Left out: the exact recursion: with more customers than CPUs, none of whom pauses, it is the bound.

Theory. Of closed customers who never pause, N of them, X <= min(N / sum(D), 1 / D_max) (Denning and
Buzen 1978). By hand, the mail storm: 37 jobs, a message takes 89.96 ms of the disk and 40.98 / 4 ms
of the CPUs: 11.1 /s; without the disk 1 / 10.2 ms = 97.6 /s.
"""

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from calibration.dataset import open_source
from calibration.fit.predict import Prediction
from calibration.look import look
from calibration.look.summary import NothingToLookAt
from sim.report.tables import figure

THROUGHPUT: Final = "throughput_per_s"
IDLE_PCT: Final = 1.0  # a device that is less busy in the what-if has been taken away


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """The resource that fills up first, the next one, and the throughput that fills that."""

    gone: str
    gone_ms: float
    left: str
    left_ms: float
    bound_per_s: float


def envelope_of(recording: Path) -> Envelope | None:
    """Return what a recording's demands say without its bottleneck; None if they do not tell."""
    try:
        demands = look(open_source([str(recording)])).demands
    except NothingToLookAt:
        return None  # Words and single figures were recorded, no intervals.
    rows = [one for one in demands.rows if isfinite(one.busiest_bound_per_s)] if demands else []
    if len(rows) < 2:
        return None
    first, second = sorted(rows, key=lambda one: one.busiest_bound_per_s)[:2]
    return Envelope(
        gone=first.resource,
        gone_ms=first.busiest_ms,
        left=second.resource,
        left_ms=second.busiest_ms,
        bound_per_s=second.busiest_bound_per_s,
    )


def envelope_beside(prediction: Prediction, recording: Path) -> Envelope | None:
    """Return it for a what-if that takes the recorded bottleneck away; None for others."""
    if prediction.scenario.what_if is None or THROUGHPUT not in prediction.metrics:
        return None
    found = envelope_of(recording)
    busy = prediction.metrics.get(f"disk.{found.gone}.util_pct") if found is not None else None
    return found if busy is not None and busy.hi < IDLE_PCT else None


def holds(prediction: Prediction, envelope: Envelope) -> bool:
    """Return whether the prediction's interval holds the bound."""
    seen = prediction.metrics[THROUGHPUT]
    return seen.lo <= envelope.bound_per_s <= seen.hi


def envelope_text(prediction: Prediction, envelope: Envelope) -> str:
    """Return both beside each other, why they differ, and what widens the interval, in words."""
    shares = prediction.shares.get(THROUGHPUT, {})
    widest = max(shares, key=lambda name: shares[name], default=None)
    because = f"; {widest} widens it most ({100 * shares[widest]:.0f} %)" if widest else ""
    verdict = "holds that too" if holds(prediction, envelope) else "excludes that"
    return (
        f"Mean-value analysis of the recording without {envelope.gone}"
        f" ({figure(envelope.gone_ms)} ms a transaction): {envelope.left} is left,"
        f" {figure(envelope.left_ms)} ms,\nand fills up at {figure(envelope.bound_per_s)} /s."
        f" The interval of {THROUGHPUT} {verdict}{because}.\n"
        "What it cannot know: customers pause between transactions, which the disk hid;\n"
        "and jobs that only waited for the disk are gone with it, where it keeps all of them busy."
    )


def envelope_json(prediction: Prediction, envelope: Envelope) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "without": envelope.gone,
        "left": envelope.left,
        "left_ms": envelope.left_ms,
        THROUGHPUT: envelope.bound_per_s,
        "inside": holds(prediction, envelope),
    }
