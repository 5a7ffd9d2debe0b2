"""JSON: the shape that scripts rely on."""

import json

from sim.report.study_json import study_json, variant_json
from tests.report.studies import study


def test_one_variant_has_exactly_the_agreed_keys() -> None:
    found = study()
    content = variant_json(found.variants[0], found.version)
    agreed = ["scenario", "what_if", "seed", "replications", "version", "kind", "metrics"]
    assert list(content) == [*agreed, "digests"]
    assert content["digests"] == [run.digest for run in found.variants[0].replications]
    assert content["kind"] == "reproduction"
    assert (content["scenario"], content["what_if"], content["seed"]) == ("sendmail", None, 7)
    assert content["metrics"]["load1_peak"] == {
        "median": 37.0,
        "lo": 37.0,
        "hi": 37.0,
        "unit": "tasks",
        "n": 1,
        "mean": 37.0,
        "mean_lo": None,
        "mean_hi": None,
        "median_lo": None,
        "median_hi": None,
        "min": 37.0,
        "max": 37.0,
        "recorded": 37,
    }
    assert "recorded" not in content["metrics"]["cpu.idle_pct"]


def test_the_agreed_names_are_there() -> None:
    names = {
        "messages_accepted",
        "duration_s",
        "throughput_per_s",
        "load1_peak",
        "cpu_idle_pct_min",
        "port_refused_s",
        "disk.sdb.w_per_s",
        "disk.sdb.wrqm_per_s",
        "disk.sdb.avgrq_sectors",
        "disk.sdb.await_ms",
        "disk.sdb.svctm_ms",
        "disk.sdb.util_pct",
        "cpu.user_pct",
        "cpu.system_pct",
        "cpu.iowait_pct",
    }
    found = study()
    assert names <= set(variant_json(found.variants[0], found.version)["metrics"])


def test_several_runs_have_intervals() -> None:
    found = study(5, "tmpfs")
    base, tmpfs = study_json(found)["variants"]
    duration = base["metrics"]["duration_s"]
    order = [duration[key] for key in ("min", "median_lo", "median", "median_hi", "max")]
    assert order == sorted(order)
    assert duration["mean_lo"] < duration["mean"] < duration["mean_hi"]
    assert duration["n"] == 5
    assert tmpfs["change"]["duration_s"]["named"] is True
    assert tmpfs["change"]["cpu.system_pct"]["named"] is False


def test_a_study_has_its_variants_and_their_change_and_survives_json() -> None:
    content = study_json(study(2, "tmpfs"))
    base, tmpfs = content["variants"]
    assert "change" not in base
    assert tmpfs["change"]["port_refused_s"]["median"] == -60.0
    assert json.loads(json.dumps(content)) == content
