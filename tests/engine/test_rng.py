"""Streams depend on seed and name, and on nothing else."""

import os
import subprocess
import sys

from sim.engine.rng import Streams


def draws(streams: Streams, name: str) -> list[float]:
    stream = streams.stream(name)
    return [stream.random() for _ in range(3)]


def test_a_stream_is_that_of_its_seed_and_name() -> None:
    assert draws(Streams(7), "sdb.rotation") == draws(Streams(7), "sdb.rotation")
    assert draws(Streams(7), "sdb.rotation") != draws(Streams(8), "sdb.rotation")
    assert draws(Streams(7), "sdb.rotation") != draws(Streams(7), "sda.rotation")


def test_other_streams_do_not_disturb_a_stream() -> None:
    streams = Streams(7)
    first = streams.stream("a").random()
    draws(streams, "b")
    assert [first, *draws(streams, "a")][:3] == draws(Streams(7), "a")


def test_a_name_is_one_stream() -> None:
    streams = Streams(7)
    assert streams.stream("a") is streams.stream("a")
    assert streams.names() == ["a"]


def test_hash_randomisation_changes_nothing() -> None:
    program = "from sim.engine.rng import Streams; print(Streams(7).stream('a').random())"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
