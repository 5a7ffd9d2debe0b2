"""Scenarios: what a TOML file may say, read into frozen records with every value's origin.

Models: the description of an experiment: server, surroundings, programs, run, figures, what-ifs.
Linux counterpart: none.
Invariants: a Scenario that exists is complete and consistent; a file that is not gives one
 ScenarioError with all its mistakes.
Left out: expressions, includes. Behaviour is Python (sim.user).

Reading order: `load` (find, overlay, read) - `sim.toml` (texts laid over each other, tables read
into declared parameters) - `server` (the kernel's core, and the components, each by its own file) -
`workload` (programs, run, figures) - `spec` (the result).
"""

from sim.observation import MeasureSpec
from sim.scenario.cases import scenario_files
from sim.scenario.load import (
    ScenarioFile,
    UnknownScenario,
    find,
    load,
    load_text,
    open_scenario,
)
from sim.scenario.spec import (
    LinkSpec,
    ProcessSpec,
    RecordedSpec,
    RunSpec,
    Scenario,
    ServerSpec,
    WhatIf,
)
from sim.toml.errors import Place, Problem, ScenarioError
from sim.toml.layers import Layer
from sim.toml.reading import Parameter

__all__ = [
    "Layer",
    "LinkSpec",
    "MeasureSpec",
    "Parameter",
    "Place",
    "Problem",
    "ProcessSpec",
    "RecordedSpec",
    "RunSpec",
    "Scenario",
    "ScenarioError",
    "ScenarioFile",
    "ServerSpec",
    "UnknownScenario",
    "WhatIf",
    "find",
    "load",
    "load_text",
    "open_scenario",
    "scenario_files",
]
