"""What somebody claims of recorded runs beyond their descriptions, each with its evidence.

Models: circumstances of a recording that its description does not tell and its results betray.
Linux counterpart: none.
Invariants: a condition is applied only to the runs for which somebody asks for it by name; nothing
 in a description turns one on. Its evidence is a result of the same runs, so a figure with it is no
 prediction, and the headline of the report is without it.
Left out: conditions nobody can put into a scenario, as other people's work on the machine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from calibration.validate.describe import Description


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A value of a scenario, and why somebody believes that it held in these runs."""

    name: str
    kind: str  # of workload that has the value
    table: str  # of the scenario
    key: str
    value: str  # as TOML
    evidence: str

    def lines(self) -> Iterator[str]:
        """Yield it as a what-if of the scenario."""
        yield f'[what_if.{self.name}]\ntitle = "{self.evidence}"'
        yield f"[what_if.{self.name}.{self.table}]"
        yield f"{self.key} = {self.value}"

    def concerns(self, description: Description) -> bool:
        """Whether the run's workload has the value at all."""
        return description.kind == self.kind


CONDITIONS: Final[Mapping[str, Condition]] = {
    one.name: one
    for one in (
        Condition(
            name="mailer-fails",
            kind="mta",
            table="process.sendmail",
            key="program",
            value='"failing_sendmail"',
            evidence="in the six runs d_mta/sendmail-*-s20-m?000-hdd7200.r? all 9000 messages were"
            " left in the queue, after a fork for each; in the family's six others 101 were",
        ),
    )
}
