"""The kinds of task, one file each.

Models: ways to ask.
Linux counterpart: none.
Invariants: whoever marks, writes or shows a sheet asks a task for what it does, and never for its
 kind. So a new kind is one file here, and its line below.
Left out: kinds outside the package.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sim.lab.kinds.design import Design
from sim.lab.kinds.name import Name
from sim.lab.kinds.predict import Predict
from sim.lab.kinds.read import Read
from sim.lab.task import Task

KINDS: Final[Mapping[str, type[Task]]] = MappingProxyType(
    {one.kind: one for one in (Read, Predict, Design, Name)}
)
