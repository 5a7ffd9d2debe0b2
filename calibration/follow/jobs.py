"""What a follower and its twin say to each other: jobs there, results back.

Models: slips of paper between two desks.
Linux counterpart: none.
Invariants: plain texts and numbers, which go from process to process.
Left out: the work itself (`keeping.py`), which needs libraries that a follower does without.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from calibration.host import Host

Kind = Literal["sketch", "fit", "given", "renew", "ask"]


class NoTwin(ValueError):
    """A minute that no twin can be made of, or a question that cannot be asked; says why."""


@dataclass(frozen=True, kw_only=True)
class Minute:
    """What was recorded in a minute, as `iotwin record` would have written it, and the host."""

    name: str
    text: str
    host: Host | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How server and twin stood in a minute: both under the names of iotwin's answers."""

    server: Mapping[str, float]
    twin: Mapping[str, float]
    load: float  # where the twin's load average settles
    values: Mapping[str, float]  # that differ from the twin's file, by path
    is_fitted: bool


@dataclass(frozen=True, kw_only=True)
class Told:
    """An answer: a sentence, and its figures with intervals."""

    question: str
    sentence: str
    metrics: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the twin is to do with a minute; `epoch` counts the changes of the load before it."""

    kind: Kind
    minute: Minute
    epoch: int
    question: str = ""
    later: tuple[str, ...] = ()  # questions that will be asked, to be checked
    text: str = ""
    fit_text: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What came of a job: how server and twin stand, an answer, or why there is none.

    `text` and `fit_text` are the twin's file and its ensemble, where they are new.
    """

    kind: Kind
    epoch: int
    standing: Standing | None = None
    answer: Told | None = None
    refusal: str = ""
    doubts: tuple[str, ...] = ()  # questions that cannot be asked, and why
    text: str = ""
    fit_text: str | None = None
