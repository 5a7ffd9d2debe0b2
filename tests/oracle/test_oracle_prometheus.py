"""Prometheus takes a run as blocks, and answers every expression of the Grafana dashboard on it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sim.report.grafana import LABELS, WINDOW, dashboard
from tests.cli.small import small_file
from tests.cli.test_proc import invoke

pytestmark = pytest.mark.oracle
BEGIN_S = 1_160_543_460  # when the server's clock begins
SECONDS = 12


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Run Prometheus on blocks; give its address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    (folder / "none.yml").write_text("{}\n")
    words = [f"--config.file={folder}/none.yml", f"--storage.tsdb.path={folder}/data"]
    words += ["--storage.tsdb.retention.time=100y", f"--web.listen-address={address}"]
    process = subprocess.Popen(["prometheus", *words], stderr=subprocess.DEVNULL)
    try:
        yield f"http://{address}/api/v1"
    finally:
        process.terminate()
        process.wait()


def answer(api: str, expression: str) -> list[dict[str, Any]]:
    """Return the series of an expression over the run, once it answers."""
    asked = {"query": expression, "start": BEGIN_S, "end": BEGIN_S + SECONDS, "step": 1}
    for _attempt in range(100):
        try:
            with urllib.request.urlopen(
                f"{api}/query_range?{urllib.parse.urlencode(asked)}", timeout=10
            ) as reply:
                content = json.load(reply)
                assert content["status"] == "success"
                series: list[dict[str, Any]] = content["data"]["result"]
                return series
        except urllib.error.HTTPError as error:
            if error.code != 503:  # it is not ready
                raise
        except OSError:
            pass
        time.sleep(0.1)
    raise TimeoutError(api)


def of_all_runs(expression: str) -> str:
    """Return the expression with what Grafana puts in the place of its variables."""
    for name in LABELS:
        expression = expression.replace(f"${name}", ".*")
    return expression.replace(WINDOW, "4s")


def test_each_expression_of_the_dashboard_is_answered(tmp_path: Path) -> None:
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            pytest.skip(f"oracle: {program} is not installed")
    run = tmp_path / "small.om"
    invoke("export", small_file(tmp_path), "--out", str(run))
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(run), f"{tmp_path}/data"]
    subprocess.run(made, check=True, capture_output=True)
    content = dashboard(title="x", begin_ms=0, end_ms=1, interval_s=1)
    expressions = [target["expr"] for one in content["panels"] for target in one["targets"]]
    with prometheus(tmp_path) as api:
        for expression in expressions:
            found = answer(api, of_all_runs(expression))
            assert found, expression
            assert found[0]["metric"]["scenario"] == "small"
        [of_cpus] = [one for one in expressions if "cpu_seconds" in one]
        shares = answer(api, of_all_runs(of_cpus))
    sums: dict[str, float] = {}
    for one in shares:
        for at, value in one["values"]:
            sums[at] = sums.get(at, 0.0) + float(value)
    assert list(sums.values()) == pytest.approx([1.0] * len(sums))
