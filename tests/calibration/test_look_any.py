"""Whatever the numbers, a look is a page and JSON, or says that there is nothing to look at."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.dataset import Source
from calibration.look import look
from calibration.look.demand import Customers
from calibration.look.report import to_json, to_text
from calibration.look.summary import NothingToLookAt, Throughput
from calibration.samples import COLUMNS, Recording, Sample

NAMES = {
    "device": ("sda", "sdb1", "dm-0", "nvme0n1", "xvdj", "md0"),
    "cpu": ("all", "0", "1"),
}


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    kind = COLUMNS[column].kind
    report = draw(st.integers(0, 4))
    return Sample(
        time_s=draw(st.sampled_from((None, 5.0 * report))),
        kind=kind,
        name=draw(st.sampled_from(NAMES.get(kind, ("",)))),
        column=column,
        value=draw(st.one_of(st.just(0.0), st.floats(0, 100), st.floats(0, 1e9))),
        since_boot=draw(st.integers(0, 9)) == 0,
        report=report,
        line=1,
    )


@settings(max_examples=200)
@given(
    values=st.lists(samples(), max_size=60),
    facts=st.fixed_dictionaries({}, optional={"cpus": st.just("4"), "kernel": st.just("6.1.0")}),
    asked=st.booleans(),
)
def test_any_samples_give_a_page_and_json(
    values: list[Sample], facts: dict[str, str], asked: bool
) -> None:
    recording = Recording(source="x", formats=("any",), samples=tuple(values), facts=facts)
    try:
        seen = look(
            Source(name="x", recordings=(recording,)),
            throughput=Throughput(per_s=11, source="a test") if asked else None,
            customers=Customers(number=3) if asked else None,
        )
    except NothingToLookAt as error:
        assert str(error).startswith("x: ")
        return
    assert "Does the recording agree with itself?" in to_text(seen)
    assert json.loads(json.dumps(to_json(seen), allow_nan=False))["source"] == "x"
