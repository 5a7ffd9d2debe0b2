"""Scenarios: what a TOML file may say, read into frozen records with every value's origin.

Models: the description of an experiment: server, surroundings, programs, run, figures, what-ifs.
Linux counterpart: none.
Invariants: a Scenario that exists is complete and consistent; a file that is not gives one
 ScenarioError with all its mistakes.
Left out: expressions, includes. Behaviour is Python (sim.user).

Reading order: `load` (find, overlay, read) - `layers` (texts laid over each other) - `reading`
(tables into declared parameters) - `server`, `devices`, `workload` (what the tables mean) - `spec`
(the result).
"""

from sim.scenario.errors import Place, Problem, ScenarioError
from sim.scenario.layers import Layer
from sim.scenario.load import UnknownScenario, find, load, load_text, scenario_files
from sim.scenario.snapshot_spec import SnapshotSpec
from sim.scenario.spec import (
    ArraySpec,
    CgroupSpec,
    DiskSpec,
    LinkSpec,
    LoopSpec,
    MeasureSpec,
    MountSpec,
    Parameter,
    PartitionSpec,
    ProcessSpec,
    RecordedSpec,
    RunSpec,
    Scenario,
    ServerSpec,
    SwapSpec,
    VolumeSpec,
    WhatIf,
)

__all__ = [
    "ArraySpec",
    "CgroupSpec",
    "DiskSpec",
    "Layer",
    "LinkSpec",
    "MeasureSpec",
    "MountSpec",
    "Parameter",
    "PartitionSpec",
    "Place",
    "Problem",
    "ProcessSpec",
    "RecordedSpec",
    "RunSpec",
    "Scenario",
    "ScenarioError",
    "ServerSpec",
    "SnapshotSpec",
    "LoopSpec",
    "SwapSpec",
    "UnknownScenario",
    "VolumeSpec",
    "WhatIf",
    "find",
    "load",
    "load_text",
    "scenario_files",
]
