"""Quantities: what people write is read exactly, printed canonically, and never mixed up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.units import DIMS, UnitError, examples, format_quantity, parse_quantity, rough_bytes

WRITTEN = [
    ("5.4 ms", "time_ns", 5_400_000),
    ("5.4ms", "time_ns", 5_400_000),
    ("10 min", "time_ns", 600 * 10**9),
    ("2 µs", "time_ns", 2_000),
    (0, "time_ns", 0),
    ("8 GiB", "bytes", 8 * 2**30),
    ("4k", "bytes", 4096),
    ("64K", "bytes", 65536),
    ("73 GB", "bytes", 73 * 10**9),
    ("1_000 B", "bytes", 1000),
    (4096, "bytes", 4096),
    ("180 IOPS", "rate_per_s", 180.0),
    ("11 /s", "rate_per_s", 11.0),
    ("11/s", "rate_per_s", 11.0),
    ("120 /min", "rate_per_s", 2.0),
    ("100 MB/s", "bytes_per_s", 100e6),
    ("1 Gbit/s", "bytes_per_s", 125e6),
    ("15000 rpm", "rpm", 15000.0),
    ("2.4 GHz", "clock_khz", 2_400_000),
    ("1200MHz", "clock_khz", 1_200_000),
    ("30 %", "percent", 30.0),
    ("30%", "percent", 30.0),
    (30, "percent", 30.0),
    (128, "count", 128),
    ("128", "count", 128),
    (0.5, "number", 0.5),
    ("sas-15k", "text", "sas-15k"),
    (True, "bool", True),
]


@pytest.mark.parametrize(("text", "dim", "value"), WRITTEN)
def test_what_people_write_is_read(text: object, dim: str, value: object) -> None:
    parsed = parse_quantity(text, dim)
    assert parsed == value
    assert type(parsed) is type(value)


REFUSED = [
    ("8 GiB", "time_ns", "'GiB' is a unit of a size"),
    ("5.4 ms", "bytes", "'ms' is a unit of a time"),
    ("15000 rmp", "rpm", "'rmp' is no known unit"),
    (5, "time_ns", "needs a unit"),
    ("5", "time_ns", "needs a unit"),
    (1.5, "count", "whole number"),
    ("1.5 B", "bytes", "whole number of B"),
    (True, "count", "expected a whole number"),
    ("yes", "bool", "true or false"),
    (float("nan"), "number", "finite"),
    (float("inf"), "rate_per_s", "finite"),
    ("", "bytes", "expected a size"),
    ("lots", "bytes", "expected a size"),
    (3, "text", "expected a text"),
    ("a\nb", "text", "expected a line of text"),
    ("\u0663", "count", "expected a whole number"),
    ([1], "number", "expected a number"),
    ("1e999999999 s", "time_ns", "sensible size"),
    ("1e300 s", "time_ns", "expected a time of at most 1000000000 s"),
    ("-1e300 s", "time_ns", "expected a time of at most"),
    (10**30, "count", "a whole number of at most"),
    ("1e300 IOPS", "rate_per_s", "a rate of at most"),
    ("1e-300 /s", "rate_per_s", "expected 0 or at least 1e-08 /s"),
]


@pytest.mark.parametrize(("text", "dim", "problem"), REFUSED)
def test_a_wrong_quantity_is_named_with_what_is_accepted(
    text: object, dim: str, problem: str
) -> None:
    with pytest.raises(UnitError) as caught:
        parse_quantity(text, dim)
    assert problem in str(caught.value)
    assert examples(dim) in str(caught.value)


@pytest.mark.parametrize(
    ("value", "dim", "text"),
    [
        (5_400_000, "time_ns", "5.4 ms"),
        (5 * 10**9, "time_ns", "5 s"),
        (187 * 10**9, "time_ns", "187 s"),
        (7200 * 10**9, "time_ns", "2 h"),
        (999, "time_ns", "999 ns"),
        (8 * 2**30, "bytes", "8 GiB"),
        (73 * 10**9, "bytes", "73 GB"),
        (1536, "bytes", "1.5 KiB"),
        (1_234_567, "bytes", "1234567 B"),
        (180.0, "rate_per_s", "180 /s"),
        (125e6, "bytes_per_s", "125 MB/s"),
        (15000.0, "rpm", "15000 rpm"),
        (12.5, "percent", "12.5 %"),
        (True, "bool", "true"),
        (42, "count", "42"),
    ],
)
def test_the_usual_text_is_printed(value: int, dim: str, text: str) -> None:
    assert format_quantity(value, dim) == text


@given(st.integers(0, 10**18), st.sampled_from(["time_ns", "bytes", "count"]))
def test_whole_quantities_survive_printing_and_reading(value: int, dim: str) -> None:
    assert parse_quantity(format_quantity(value, dim), dim) == value


@given(
    st.just(0.0) | st.floats(1e-8, 1e15, allow_nan=False),
    st.sampled_from(["rate_per_s", "bytes_per_s", "rpm", "percent", "number"]),
)
def test_real_quantities_survive_printing_and_reading(value: float, dim: str) -> None:
    assert parse_quantity(format_quantity(value, dim), dim) == value


@given(st.text(max_size=20), st.sampled_from([dim for dim in DIMS if dim != "text"]))
def test_any_text_is_read_or_refused_with_what_is_accepted(text: str, dim: str) -> None:
    """What is read, is read again as the same once it is printed."""
    try:
        value = parse_quantity(text, dim)
    except UnitError as refused:
        assert examples(dim) in str(refused)
    else:
        assert parse_quantity(format_quantity(value, dim), dim) == value


def test_an_unknown_dimension_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="no dimension"):
        parse_quantity("5", "furlongs")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (71_926_258_176, "71.92 GB"), (10**12, "1 TB"), (1500, "1.5 kB")],
)
def test_a_rough_size_is_short(value: int, text: str) -> None:
    assert rough_bytes(value) == text


@given(st.integers(0, 2**60))
def test_a_rough_size_is_understood_and_never_larger(value: int) -> None:
    assert 0.99 * value <= parse_quantity(rough_bytes(value), "bytes") <= value
