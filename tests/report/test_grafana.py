"""The dashboard asks for metrics that a run exports, and its panels lie side by side."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from sim.report.grafana import GRID_WIDTH, LABELS, dashboard
from tests.cli.small import SMALL, small_file
from tests.cli.test_proc import invoke

EMPTY = dashboard(title="x", begin_ms=0, end_ms=1000, interval_s=5)


def expressions(content: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in content["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("kernel", ["2.6.16", "4.18"])
def test_each_metric_is_one_that_a_run_exports(tmp_path: Path, kernel: str) -> None:
    small = small_file(tmp_path, SMALL.replace("2.6.16", kernel))
    text = invoke("export", small, "--format", "prometheus").stdout
    exported = set(re.findall(r"^(node_\w+)", text, re.MULTILINE))
    asked = {name for one in expressions(EMPTY) for name in re.findall(r"node_\w+", one)}
    assert len(asked) > 20
    assert asked - exported == set()


def test_each_expression_chooses_the_run() -> None:
    for expression in expressions(EMPTY):
        for chosen in re.findall(r"node_\w+\{([^}]*)\}", expression):
            assert re.findall(r'(\w+)=~"\$(\w+)"', chosen) == [(name, name) for name in LABELS]


def test_panels_do_not_overlap_and_have_one_name_for_each_curve() -> None:
    panels = EMPTY["panels"]
    for one in panels:
        place = one["gridPos"]
        assert 0 <= place["x"] <= GRID_WIDTH - place["w"]
        assert len({target["refId"] for target in one["targets"]}) == len(one["targets"])
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_time_is_that_of_the_run(tmp_path: Path) -> None:
    content = json.loads(invoke("export", small_file(tmp_path), "--format", "grafana").stdout)
    assert content["title"] == "iotwin: small"
    # The server's clock begins on 2006-10-11 at 05:11:00.
    begin_ms, end_ms = int(content["time"]["from"]), int(content["time"]["to"])
    assert begin_ms == 1_160_543_460_000
    assert 5_000 < end_ms - begin_ms <= 60_000
    assert content["panels"][0]["interval"] == "1s"
