"""A report as JSON: the study's points, and in `result` what its page says of them.

Models: the machine-readable form of a report.
Linux counterpart: none.
Invariants: the file is what study.schema.json beside this module says; the sentences are those of
 the page.
Left out: what `iotwin params` has.
"""

from typing import Any

from sim.report.answer_text import answer
from sim.report.explain_text import explanation_json
from sim.report.html_report import Head
from sim.report.study_file import point_of_variant, study_file
from sim.report.study_json import changes_json
from sim.study.explain import Explanation
from sim.study.findings import Findings
from sim.study.outcome import VariantOutcome
from sim.study.validity import Validity


def findings_json(findings: Findings, head: Head) -> dict[str, Any]:
    """Return all variants as points, and the answer with its reasons."""
    study = findings.study
    base = study.variants[0]
    fit = findings.fit or findings.shipped
    return study_file(
        "report",
        command=head.command,
        version=study.version,
        base=base.scenario,
        points=[point_of_variant(outcome) for outcome in study.variants],
        result={
            "answer": answer(study, head.figures),
            "variants": [_variant(findings, outcome) for outcome in study.variants],
            "unidentified": None if fit is None else list(fit.unidentified),
        },
        unfinished=findings.unfinished,
    )


def _variant(findings: Findings, outcome: VariantOutcome) -> dict[str, Any]:
    explained = findings.explained.get(outcome.name)
    return {
        "variant": outcome.name,
        "kind": outcome.kind,
        "change": changes_json(outcome),
        "explanation": explanation_json(explained) if isinstance(explained, Explanation) else None,
        "validity": _validity_json(findings.validity[outcome.name]),
        "digests": [run.digest for run in outcome.replications],
    }


def _validity_json(validity: Validity) -> dict[str, Any]:
    return {
        "priors": validity.priors,
        "outside": [
            {"path": one.path, "value": one.value, "low": one.low, "high": one.high}
            for one in validity.outside
        ],
        "unfitted": [one.path for one in validity.unfitted],
    }
