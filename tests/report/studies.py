"""A study of storms that never ran, for tests of what renders it."""

from dataclasses import replace
from pathlib import Path

from sim.scenario import RecordedSpec, WhatIf, load_text
from sim.study.metrics import compute_metrics
from sim.study.outcome import Replication, Study, assemble
from sim.study.recorded import load_figures
from tests.scenario.things import EXAMPLE, things
from tests.study.storms import storm

WHAT_IFS = {None: "before", "tmpfs": "after"}


def study(replications: int = 1, *what_ifs: str) -> Study:
    """Return the base storm and variants of it."""
    text = EXAMPLE.replace('["load", "disk"]', '["storm", "port", "load", "cpu", "disk"]')
    with things():
        plain = load_text(text.replace('["sdb", "dm-6"]', '["sdb"]'), Path("sendmail.toml"))
    scenarios, runs, recorded = [], [], []
    for name in (None, *what_ifs):
        what_if = WhatIf(name=name, title="The queue on tmpfs", doc="") if name else None
        scenario = replace(plain, title="A mail storm", what_if=what_if, seed=7)
        results = [storm(name, seed) for seed in range(7, 7 + replications)]
        scenarios.append(scenario)
        runs.append(
            [
                Replication(
                    seed=result.seed,
                    metrics=compute_metrics(result, scenario.measure),
                    digest=result.digest(),
                    result=result,
                )
                for result in results
            ]
        )
        spec = RecordedSpec(figures=WHAT_IFS[name], data_set="sendmail")
        recorded.append((load_figures(spec),))
    return assemble(scenarios, runs, recorded)
