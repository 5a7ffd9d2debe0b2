"""What a replay came to: from the data sheet, and fitted.

Models: the comparison of one drive.
Linux counterpart: none.
Invariants: a fit is scored on requests it was not made from, and those it was made from apart; the
 main figures are those of the rest with a fit, of all requests without.
Left out: several drives at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.drive.fit import Tell, fit
from calibration.drive.replay import replay
from calibration.drive.rules import params_of_sheet
from calibration.drive.score import Score, score, score_kinds
from calibration.drive.sheet import DataSheet
from calibration.drive.trace import Access, kinds
from sim.drivers.hdd import HddParams

DATA_SHEET, FITTED = "data sheet", "fit"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A disk, its name, and its access times (ns) of the whole trace."""

    parameters: str
    params: HddParams
    took_ns: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of the report: whose parameters, which requests, which kind of them, the score."""

    parameters: str
    requests: str
    kind: str
    score: Score


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All that was found about one drive; the fit was made from the first ``fitted`` requests."""

    accesses: Sequence[Access]
    fitted: int
    results: Sequence[Result]  # the last one counts

    @property
    def measured_ns(self) -> list[int]:
        """The measured access times."""
        return [one.measured_ns for one in self.accesses]

    def main(self) -> Score:
        """Return the score of the last disk on the requests that nothing was fitted to."""
        return self._score(self.results[-1], self.fitted, None)

    def lines(self) -> list[Line]:
        """Return every disk on all, first and other requests; then the last one kind by kind."""
        parts: list[tuple[str, int, int | None]] = [("all", 0, None)]
        if self.fitted:
            parts = [(f"first {self.fitted}", 0, self.fitted), ("the rest", self.fitted, None)]
        found = [
            Line(
                parameters=one.parameters,
                requests=name,
                kind="all",
                score=self._score(one, start, stop),
            )
            for one in self.results
            for name, start, stop in parts
        ]
        last = self.results[-1]
        every = kinds(self.accesses)[self.fitted :]
        measured, simulated = self.measured_ns[self.fitted :], last.took_ns[self.fitted :]
        for kind, value in score_kinds(every, measured, simulated).items():
            found.append(
                Line(parameters=last.parameters, requests=parts[-1][0], kind=kind, score=value)
            )
        return found

    def _score(self, result: Result, start: int, stop: int | None) -> Score:
        return score(self.measured_ns[start:stop], result.took_ns[start:stop])


def confront(
    sheet: DataSheet, accesses: Sequence[Access], *, fit_requests: int, seed: int, tell: Tell
) -> Outcome:
    """Replay a trace on the data sheet's disk, and on one fitted to the first requests, if any."""
    disks = {DATA_SHEET: params_of_sheet(sheet)}
    if fit_requests:
        disks[FITTED] = fit(disks[DATA_SHEET], accesses[:fit_requests], seed, tell)
    results = [
        Result(parameters=name, params=params, took_ns=replay(params, accesses, seed))
        for name, params in disks.items()
    ]
    return Outcome(accesses=accesses, fitted=fit_requests, results=results)
