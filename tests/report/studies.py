"""A study of storms that never ran, for tests of what renders it."""

from dataclasses import replace
from pathlib import Path

import scenarios.sendmail.program  # noqa: F401  (registers sendmail, whose figures some are)
from sim.observation import Observation
from sim.scenario import RecordedSpec, WhatIf, load_text
from sim.scenario.cases import data_sets
from sim.study.metrics import compute_metrics
from sim.study.outcome import Replication, Seen, Study, assemble
from sim.study.recorded import load_figures
from tests.scenario.things import EXAMPLE, things
from tests.study.storms import storm

WHAT_IFS = {None: "before", "tmpfs": "after"}


def study(replications: int = 1, *what_ifs: str) -> Study:
    """Return the base storm and variants of it."""
    text = EXAMPLE.replace('["sdb", "dm-6"]', '["sdb"]')
    with things():
        plain = load_text(text, Path("sendmail.toml"))
    families = ("storm", "port", "load", "cpu", "disk")
    measure = replace(plain.measure, families=families, programs=("sendmail",))
    scenarios, runs, recorded = [], [], []
    for name in (None, *what_ifs):
        what_if = WhatIf(name=name, title="The queue on tmpfs", doc="") if name else None
        scenario = replace(plain, title="A mail storm", measure=measure, what_if=what_if, seed=7)
        results = [storm(name, seed) for seed in range(7, 7 + replications)]
        scenarios.append(scenario)
        runs.append(
            [
                Replication(
                    seed=result.seed,
                    metrics=compute_metrics(result, scenario.measure),
                    histograms={},
                    digest=result.digest(),
                    seen=Seen.of(Observation(result, scenario.measure)),
                    result=result,
                )
                for result in results
            ]
        )
        spec = RecordedSpec(figures=WHAT_IFS[name], folder=data_sets()["sendmail"])
        recorded.append((load_figures(spec),))
    return assemble(scenarios, runs, recorded, [()] * len(scenarios))
