"""Does the jobs of a follower, one after the other, with the twin that it keeps.

Models: the colleague's right hand.
Linux counterpart: none.
Invariants: what goes wrong in a job is an answer too; the twin that was there stays.
Left out: where it is done (`bench.py`).
"""

from dataclasses import dataclass
from pathlib import Path

from calibration.follow import keeping
from calibration.follow.jobs import Job, NoTwin, Result
from calibration.follow.keeping import Kept
from sim.study.laboratory import Progress


@dataclass
class Hand:
    """Does the jobs, with a folder for the twin's files."""

    folder: Path
    rest: Progress | None = None
    _kept: Kept | None = None

    def do(self, job: Job) -> Result:
        """Do a job."""
        try:
            return self._do(job)
        except NoTwin as error:
            return Result(kind=job.kind, epoch=job.epoch, refusal=str(error))
        except Exception as error:
            # The parent tells its user, and goes on without this twin.
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            return Result(kind=job.kind, epoch=job.epoch, refusal=why)

    def _do(self, job: Job) -> Result:
        if job.kind == "ask":
            answer = self._there().ask(job.question, job.minute)
            return Result(kind=job.kind, epoch=job.epoch, answer=answer)
        if job.kind == "renew":
            standing = self._there().renew(job.minute)
            return Result(kind=job.kind, epoch=job.epoch, standing=standing)
        if job.kind == "sketch":
            kept = keeping.first(job.minute, self.folder, self.rest)
        elif job.kind == "fit":
            if self._kept is not None:
                self._kept.be_its_own_ensemble()  # unless the fit takes its place
            kept = keeping.fitted(job.minute, self.folder, self.rest)
        else:
            kept = keeping.given(
                job.minute, job.text, job.fit_text, job.values, self.folder, self.rest
            )
        standing = kept.renew(job.minute)
        self._kept = kept
        fit_place = kept.place.with_suffix(".fit.toml")
        return Result(
            kind=job.kind,
            epoch=job.epoch,
            standing=standing,
            doubts=tuple(kept.doubts(job.later)),
            text=kept.text,
            fit_text=fit_place.read_text(encoding="utf-8") if fit_place.is_file() else None,
        )

    def _there(self) -> Kept:
        if self._kept is None:
            raise NoTwin("there is no twin yet")
        return self._kept
