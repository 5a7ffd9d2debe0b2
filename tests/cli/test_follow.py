"""`iotwin follow`: what is typed, and what it says, on a clock that the test turns."""

import io
import json
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from calibration.follow import keeping
from calibration.follow.feeds import (
    Exporter,
    FeedError,
    Local,
    Prometheus,
    Recorded,
    Tree,
    feed_of,
)
from calibration.follow.follower import Follower
from calibration.follow.hand import Hand
from calibration.follow.jobs import Job, Result
from calibration.host import Host, host_of
from calibration.record_text import TextSample, text_of
from sim.cli.following import SCHEMA, Session, Teller, looks_in
from sim.cli.main import cli
from tests.calibration.followed import changed, series
from tests.calibration.recorded_twin import HOST


@dataclass
class Replayed:
    """A feed of samples that are there, one each time it is asked."""

    samples: Sequence[TextSample]
    name: str = "known"
    reading_s: float | None = None
    at: int = 0

    def host(self) -> Host | None:
        return host_of(HOST)

    def poll(self) -> list[TextSample]:
        self.at += 1
        return [self.samples[self.at - 1]]


@dataclass
class Here:
    """A workplace that does a job when it is asked what came of it."""

    hand: Hand
    job: Job | None = None
    done: list[str] = field(default_factory=list)

    @property
    def is_free(self) -> bool:
        return self.job is None

    def begin(self, job: Job) -> None:
        self.job = job

    def poll(self, wait_s: float = 0.0) -> Result | None:
        job, self.job = self.job, None
        if job is None:
            return None
        self.done.append(job.kind)
        return self.hand.do(job)


def session(samples: Sequence[TextSample], place: Path | None = None) -> tuple[Session, Any, Any]:
    out, lines = io.StringIO(), io.StringIO()
    follower = Follower(
        name="known", reading_s=5.0, host=host_of(HOST), with_twin=place is not None
    )
    follower.is_fitted = True  # the sketch alone
    bench = Here(Hand(place)) if place is not None else None
    one = Session(
        Replayed(samples), follower, bench, Teller(out, lines), 10.0, clock=lambda: follower_s(one)
    )
    return one, out, lines


def follower_s(one: Session) -> float:
    return 5.0 * one.feed.at  # type: ignore[attr-defined]


def rows_of(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_a_line_comes_each_interval_with_server_and_twin(tmp_path: Path) -> None:
    samples = series(1, 100)
    one, out, lines = session(samples, tmp_path)
    for _ in samples:
        one.step()
    head, *shown = out.getvalue().splitlines()
    assert head.startswith("server|twin")
    plain = [line for line in shown if " load " in line]
    assert len(plain) == (len(samples) - 1) // 2 + (len(samples) - 1) % 2
    assert "|- reads/s" in plain[0]
    assert "|- reads/s" not in plain[-1]
    rows = rows_of(lines)
    assert {row["schema"] for row in rows} == {SCHEMA}
    assert {row["kind"] for row in rows} == {"reading", "note", "twin"}
    figures = rows[-1]["resources"]["sda"]["r_per_s"]
    assert figures["twin"] == pytest.approx(figures["server"], rel=0.3)


def test_an_alarm_stands_in_the_lines_and_in_the_json() -> None:
    samples = series(1, 230, 150)
    one, out, lines = session(samples)
    for _ in samples:
        one.step()
    [alarm] = [row for row in rows_of(lines) if row["kind"] == "alarm"]
    assert f"ALARM {alarm['text']}" in out.getvalue()
    assert alarm["parted"][0]["resource"] == "sda"


def test_a_question_is_answered_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MEMBERS", 2)
    samples = series(1, 100)
    one, out, _lines = session(samples, tmp_path)
    sketch = tmp_path / "sketch.toml"
    for _ in samples:
        one.step()
    text = sketch.read_text(encoding="utf-8")
    one.follower.standing, one.follower.given = None, (text, None, {})  # all members are the sketch
    one.follower._next_s = 0.0
    one.finish(["load=2"])
    *_before, answer = out.getvalue().splitlines()
    assert "With twice the load, sda is" in answer


def test_what_is_asked_too_early_has_no_answer_and_it_is_told(tmp_path: Path) -> None:
    samples = series(1, 100)[:5]
    one, out, _lines = session(samples, tmp_path)
    for _ in samples:
        one.step()
    one.finish(["load=2"])
    assert "no answer: there is no twin" in out.getvalue()


def test_nothing_is_asked_of_a_server_that_was_not_read() -> None:
    one, out, _lines = session([])
    one.finish(["load=2"])
    assert "nothing can be asked" in out.getvalue()


# -- Feeds


def test_a_recording_is_followed_as_it_grows(tmp_path: Path) -> None:
    samples = series(1, 100)
    text = "=== start 2026-01-01T00:00:00+00:00 interval_s=5\n" + text_of(samples)
    place = tmp_path / "proc.txt"
    place.write_text("", encoding="utf-8")
    feed = Recorded("here", tmp_path)
    found = []
    with place.open("a", encoding="utf-8") as file:
        for begin in range(0, len(text), 3001):
            file.write(text[begin : begin + 3001])
            file.flush()
            found += feed.poll()
    assert [one.texts for one in found] == [one.texts for one in samples]
    assert feed.reading_s == 5.0


@pytest.mark.parametrize(("tasks", "looks"), [(3, 5), (200, 5), (400, 2), (900, 1), (5000, 1)])
def test_the_tasks_of_this_host_are_counted_as_often_as_costs_little(
    tasks: int, looks: int, tmp_path: Path
) -> None:
    """20 us for each task: 200 of them each second are 0.4 % of a CPU."""
    _tree(tmp_path, changed(series(1, 100)[0], "/proc/loadavg", f"0.1 0.1 0.1 1/{tasks} 77\n"))
    assert looks_in(5.0, Local(root=str(tmp_path))) == looks
    assert looks_in(0.5, Local(root=str(tmp_path))) == 1


def test_of_a_recording_the_last_minute_is_the_beginning(tmp_path: Path) -> None:
    samples = series(1, 200)
    (tmp_path / "proc.txt").write_text(text_of(samples), encoding="utf-8")
    feed = feed_of(str(tmp_path), instance=None, history_s=60.0, reading_s=5.0)
    found = feed.poll()
    assert [one.at for one in found] == [one.at for one in samples[-13:]]


def test_a_tree_is_read_once_for_each_of_its_moments(tmp_path: Path) -> None:
    samples = series(1, 100)
    feed = Tree("tree", None, str(_tree(tmp_path, samples[0])))
    [first] = feed.poll()
    assert feed.poll() == []
    _tree(tmp_path, samples[1])
    [second] = feed.poll()
    assert (second.at - first.at).total_seconds() == pytest.approx(5, abs=0.02)


@pytest.mark.parametrize("uptime", ["soon 0.00\n", "1e300 0.00\n", " \n"])
def test_a_tree_that_is_not_as_the_kernels_is_told(tmp_path: Path, uptime: str) -> None:
    sample = series(1, 100)[0]
    sample = replace(sample, texts={**sample.texts, "/proc/uptime": uptime})
    feed = Tree("tree", None, str(_tree(tmp_path, sample)))
    with pytest.raises(FeedError, match="not as the kernel's"):
        feed.poll()


def _tree(top: Path, sample: TextSample) -> Path:
    for name, text in sample.texts.items():
        place = top / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return top


@pytest.fixture(name="server")
def server_() -> Iterator[HTTPServer]:
    """Answer every address with what stands in `answers`, one after the other, the last again."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = self.server.answers  # type: ignore[attr-defined]
            self.server.asked.append(self.path)  # type: ignore[attr-defined]
            body = (answers.pop(0) if len(answers) > 1 else answers[0]).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url_of(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def series_of(at_s: float, reads: int) -> dict[str, float]:
    """Return the series of a scrape: name with labels -> value."""
    disk = dict.fromkeys(
        (
            "reads_merged_total",
            "writes_completed_total",
            "writes_merged_total",
            "written_bytes_total",
            "write_time_seconds_total",
            "io_now",
            "io_time_weighted_seconds_total",
        ),
        0.0,
    ) | {
        "reads_completed_total": reads,
        "read_bytes_total": 4096.0 * reads,
        "read_time_seconds_total": 0.002 * reads,
        "io_time_seconds_total": 0.002 * reads,
    }
    return {
        **{f'node_disk_{name}{{device="sda"}}': value for name, value in disk.items()},
        'node_cpu_seconds_total{cpu="0",mode="idle"}': 0.9 * at_s,
        'node_cpu_seconds_total{cpu="0",mode="user"}': 0.1 * at_s,
        "node_load1": 0.5,
        "node_load5": 0.5,
        "node_load15": 0.5,
        "node_boot_time_seconds": 1_800_000_000.0,
        "node_time_seconds": 1_800_000_000.0 + at_s,
    }


def scrape(at_s: float, reads: int) -> str:
    return "".join(f"{name} {value}\n" for name, value in series_of(at_s, reads).items())


def test_an_exporter_gives_the_figures_of_its_server(server: HTTPServer) -> None:
    server.answers = [scrape(100, 0), scrape(100, 0), scrape(110, 500)]  # type: ignore[attr-defined]
    feed = feed_of(f"{url_of(server)}/metrics", instance=None, history_s=60.0, reading_s=5.0)
    assert isinstance(feed, Exporter)
    one = Follower(name="x", reading_s=5.0, with_twin=False)
    for _ in range(2):
        for sample in feed.poll():
            one.take(sample)
    [reading] = one.last
    assert reading.length_s == 10
    assert reading.interval.devices["sda"]["r_per_s"] == pytest.approx(50)
    assert reading.interval.devices["sda"]["r_await_ms"] == pytest.approx(2)
    assert reading.interval.busy == pytest.approx(0.1)


def matrix(moments: dict[float, dict[str, float]], instance: str = "db:9100") -> str:
    """Return what Prometheus answers to query_range."""
    rows: dict[str, list[list[Any]]] = {}
    for at_s, values in moments.items():
        for name, value in values.items():
            rows.setdefault(name, []).append([at_s, str(value)])
    result = []
    for name, values in rows.items():
        bare, _brace, labels = name.partition("{")
        pairs = [x.split("=") for x in labels.rstrip("}").split(",") if x]
        metric = {"__name__": bare, "instance": instance}
        metric |= {key: value.strip('"') for key, value in pairs}
        result.append({"metric": metric, "values": values})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_prometheus_gives_its_last_minute_at_once(server: HTTPServer) -> None:
    base_s = 1_800_000_000.0
    moments = {base_s + x: series_of(x, round(40 * x)) for x in (100.0, 115.0, 130.0)}
    again = matrix({base_s + 135: series_of(130, 5200)})  # the same scrape, shown again
    server.answers = [matrix(moments), matrix(moments), again]  # type: ignore[attr-defined]
    feed = feed_of(url_of(server), instance="db:9100", history_s=60.0, reading_s=5.0)
    assert isinstance(feed, Prometheus)
    assert "instance%3D%22db%3A9100%22" in server.asked[0]  # type: ignore[attr-defined]
    one = Follower(name="x", reading_s=5.0, with_twin=False)
    for sample in [*feed.poll(), *feed.poll()]:
        one.take(sample)
    assert [x.length_s for x in one.last] == [15, 15]
    assert one.last[-1].interval.devices["sda"]["r_per_s"] == pytest.approx(40)


@pytest.mark.parametrize(
    ("path", "answer", "why"),
    [
        ("/metrics", "go_threads 7\n", "no counters of node_exporter"),
        ("", "<html>", "what answers is no Prometheus"),
        ("", '{"status": "error", "error": "bad_data"}', "Prometheus says: bad_data"),
        ("", "[]", "what answers is no Prometheus"),
        ("", matrix({}), "nothing of node_exporter"),
    ],
)
def test_what_is_no_source_is_refused(server: HTTPServer, path: str, answer: str, why: str) -> None:
    server.answers = [answer]  # type: ignore[attr-defined]
    with pytest.raises(FeedError) as caught:
        feed_of(url_of(server) + path, instance=None, history_s=60.0, reading_s=5.0)
    assert why in str(caught.value)


def test_of_several_hosts_one_must_be_named(server: HTTPServer) -> None:
    base_s = 1_800_000_000.0
    both = [json.loads(matrix({base_s: series_of(9, 9)}, name)) for name in ("a:1", "b:1")]
    both[0]["data"]["result"] += both[1]["data"]["result"]
    server.answers = [json.dumps(both[0])]  # type: ignore[attr-defined]
    with pytest.raises(FeedError, match="2 hosts; name one with --instance: a:1, b:1"):
        feed_of(url_of(server), instance=None, history_s=60.0, reading_s=5.0)


# -- The command


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, ["follow", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "or --here for this host: one of them"),
        (("--here", "x"), "one of them"),
        (("nowhere",), "neither a recording that grows"),
        (("--here", "--interval", "0.1s"), "allowed: 1s or more"),
        (("--here", "--no-twin", "--what-if", "load=2"), "--no-twin leaves nothing"),
        (("--here", "--what-if", "laod=2"), "no what-if 'laod=2' - did you mean 'load'?"),
        (("http://127.0.0.1:9/metrics",), "no answer"),
        (("--here", "--twin", "nothing.toml"), "does not exist"),
        (("--here", "--for", "soon"), "is no time"),
        (("--here", "--for", "1s", "--twin", "damaged.toml"), "damaged.toml"),
        (("--here", "--for", "1s", "--state", "damaged.toml"), "no state of iotwin follow"),
        (
            ("--here", "--for", "1s", "--state", "nowhere/state"),
            "cannot write nowhere/state: no folder",
        ),
        (
            ("--here", "--for", "1s", "--json", "nowhere/lines"),
            "cannot write nowhere/lines: no folder",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("damaged.toml").write_text("title = \n", encoding="utf-8")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert [one.name for one in tmp_path.iterdir()] == ["damaged.toml"]


@pytest.mark.skipif(not os.path.exists("/proc/diskstats"), reason="follows a Linux host")
def test_this_host_is_followed_and_what_was_learned_is_kept(tmp_path: Path) -> None:
    state, lines = str(tmp_path / "state.json"), str(tmp_path / "lines.json")
    common = ("--here", "--no-twin", "--interval", "1s", "--for", "1s", "--state", state)
    code, out, err = run(*common, "--json", lines)
    assert code == 0
    assert "reading it took" in err
    assert out.startswith("server|twin")
    assert {json.loads(x)["schema"] for x in Path(lines).read_text().splitlines()} == {SCHEMA}
    assert sorted(x.name for x in tmp_path.iterdir()) == ["lines.json", "state.json"]
    code, out, _err = run(*common)
    assert code == 0
    assert out.startswith(f"goes on with what {state} knew at ")
