"""A report's page: well-formed, closed to the outside, all parts there, and text stays text."""

import json
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.origin import Origin
from sim.report import html_report
from sim.report.html_charts import HEIGHT, POINTS, WIDTH, chart_svg, charts, thinned, ticks
from sim.report.html_page import element, html_table
from sim.report.html_report import Head, TooLargeError, report_html
from sim.report.tables import Column, Table
from sim.report.time_lines import Line, Lines
from sim.scenario import Layer, Parameter
from sim.study.explain import Explanation, Kind, Load, Part, Resource
from sim.study.findings import Findings
from sim.study.outcome import Shortfall, Study
from sim.study.validity import Change, Outside, Validity
from tests.report.pages import Page, hash_of
from tests.report.studies import study

EVIL = "</script><script>alert('x')</script><img src=x onerror=alert(1)>&amp;\x00"
SHOWN = EVIL.replace("\x00", "\ufffd")
SECTIONS = (
    "question",
    "answer",
    "levels",
    "figures",
    "lines",
    "time",
    "parameters",
    "validity",
    "reproduce",
)


def explanation(of: Study) -> Explanation:
    parts = (Part(("mutex_lock", EVIL), 80.0), Part(("CPU, user",), 20.0))
    return Explanation(
        scenario=of.variants[0].scenario,
        version="1",
        start_ns=0,
        end_ns=10**9,
        kinds=(Kind(EVIL, 5, 5, 100.0, parts),),
        resources=(Resource("disk sdb", 97.0),),
        load=Load(on_cpu=1.0, run_queue=0.5, blocked=((EVIL, 2.0),), journal=0.0),
    )


def findings(of: Study, unfinished: Shortfall | None = None) -> Findings:
    """Return findings whose every text that a user can write is hostile."""
    parameter = Parameter(
        path=EVIL,
        value=EVIL,
        dim="text",
        source=EVIL,
        origin=Origin.ASSUMED,
        layer=Layer.SET,
        doc="",
    )
    variants = []
    for number, one in enumerate(of.variants):
        what_if = one.scenario.what_if
        if what_if is not None:
            what_if = replace(what_if, name=f"{EVIL}{number}", title=EVIL, doc=EVIL)
        scenario = replace(
            one.scenario,
            title=EVIL,
            doc=EVIL,
            what_if=what_if,
            parameters=(parameter,),
            omissions=(EVIL,),
        )
        variants.append(replace(one, scenario=scenario))
    found = replace(of, variants=tuple(variants), unfinished=unfinished)
    validity = Validity(
        priors=1,
        changes=(Change(EVIL, EVIL, EVIL),),
        outside=(Outside(EVIL, EVIL, EVIL, EVIL, EVIL),),
        unfitted=(Change(EVIL, EVIL, EVIL),),
    )
    return Findings(
        study=found,
        explained={one.name: explanation(of) for one in variants},
        unfinished=unfinished,
        validity={one.name: validity for one in variants},
        fit=None,
        shipped=None,
        commands={one.name: EVIL for one in variants},
    )


HEAD = Head(command=EVIL, figures=("duration_s",))


@pytest.fixture(scope="module", params=[1, 2, 5], ids=["alone", "what-if", "many"])
def page(request: pytest.FixtureRequest) -> str:
    return report_html(findings(study(3, *["tmpfs"] * (request.param - 1))), HEAD)


def test_the_page_is_well_formed_and_its_links_lead_somewhere(page: str) -> None:
    read = Page(page)
    assert read.wrong == []
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert len(set(read.ids())) == len(read.ids())
    links = [one["href"] for tag, one in read.elements if tag == "a"]
    assert links and {link.removeprefix("#") for link in links} <= set(read.ids())


def test_every_part_is_there_the_answer_before_what_explains_it(page: str) -> None:
    read = Page(page)
    assert [name for name in read.ids() if name in SECTIONS] == list(SECTIONS)
    assert len(page.encode()) < html_report.SIZE_MAX


def test_nothing_is_asked_for_outside(page: str) -> None:
    assert set(Page(page).addresses()) - {"data:,"} == {
        address for address in Page(page).addresses() if address.startswith("#")
    }


def test_the_policy_names_the_hash_of_each_script_and_style_and_nothing_else(page: str) -> None:
    read = Page(page)
    policy = read.policy
    assert policy["default-src"] == ["'none'"]
    run = [text for tag, how, text in read.raw if tag == "script" and "type" not in how]
    assert policy["script-src"] == [hash_of(text) for text in run]
    assert policy["style-src"] == [hash_of(text) for tag, _how, text in read.raw if tag == "style"]
    names = [tag for tag, _attributes in read.elements]
    metas = [at for at, one in enumerate(read.elements) if "http-equiv" in one[1]]
    assert metas[0] < names.index("style") < names.index("script")


def test_nothing_has_a_style_or_a_handler_of_its_own(page: str) -> None:
    names = {name for _tag, attributes in Page(page).elements for name in attributes}
    assert not {name for name in names if name == "style" or name.startswith("on")}


def test_what_a_scenario_says_stays_text(page: str) -> None:
    read = Page(page)
    assert [tag for tag, _attributes in read.elements].count("script") == 3
    assert "img" not in {tag for tag, _attributes in read.elements}
    seen = " ".join(SHOWN.split())
    assert read.text.count(seen) > 10
    assert "\x00" not in page


def test_the_data_of_the_charts_are_those_of_the_pictures(page: str) -> None:
    read = Page(page)
    [data] = [text for _tag, how, text in read.raw if how.get("id") == "data"]
    drawn = json.loads(data)["charts"]
    assert len(drawn) == [tag for tag, _attributes in read.elements].count("svg") >= 4
    assert "<" not in data


def test_uplot_comes_with_its_licence(page: str) -> None:
    assert "The MIT License (MIT)\n\nCopyright (c) 2022 Leon Sorokin" in page


def test_an_unfinished_study_says_so_before_the_answer() -> None:
    told = findings(study(3, "tmpfs"), Shortfall("interrupted after 4 of 6 runs", 130))
    text = Page(report_html(told, HEAD)).text
    assert text.index("interrupted after 4 of 6 runs") < text.index("duration_s is")


def test_a_page_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_report, "SIZE_MAX", 50_000)
    with pytest.raises(TooLargeError, match="name fewer what-ifs"):
        report_html(findings(study(1)), HEAD)


def test_a_table_s_first_cells_are_the_headings_of_its_rows() -> None:
    table = Table((Column("a"), Column("b", is_number=True)), (("x", "1"), ("", ""), ("y", "2")))
    made = html_table(table, "what")
    assert [one.text for one in made.iter("th")] == ["a", "b", "x", "y"]
    assert [one.text for one in made.iter("td")] == ["1", "2"]


def test_what_is_no_text_is_replaced_so_that_the_page_can_be_written() -> None:
    made = element("p", "a\x07b\udc80c\td", title="\x1b")
    assert (made.text, made.get("title")) == ("a\ufffdb\ufffdc\td", "\ufffd")
    ElementTree.tostring(made, encoding="utf-8", method="html")


def test_texts_and_elements_keep_their_order() -> None:
    made = element("p", "a", element("b", "c"), "d", None, "e", class_="f", aria_label="g")
    assert (made.text, made[0].text, made[0].tail) == ("a", "c", "de")
    assert made.attrib == {"class": "f", "aria-label": "g"}


# -- Charts


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=400),
    st.integers(2, 60),
)
def test_a_thinned_line_keeps_its_extremes_and_its_order(values: list[float], most: int) -> None:
    times = tuple(float(t) for t in range(len(values)))
    found = thinned(Lines(times_s=times, lines=(Line("a", "", tuple(values)),)), most)
    [line] = found.lines
    assert len(found.times_s) == len(line.values) <= max(most, 2)
    assert list(found.times_s) == sorted(found.times_s)
    assert (min(line.values), max(line.values)) == (min(values), max(values))
    assert (found.times_s[0], found.times_s[-1]) == (times[0], times[-1])


@given(st.integers(2, 300), st.integers(2, 60))
def test_thinned_shares_never_add_up_to_more_than_all(number: int, most: int) -> None:
    share = tuple(float(n % 101) for n in range(number))
    rest = tuple(100 - one for one in share)
    lines = (Line("a", "%", share), Line("b", "%", rest))
    shown = Lines(times_s=tuple(map(float, range(number))), lines=lines, is_stacked=True)
    first, second = thinned(shown, most).lines
    sums = [a + b for a, b in zip(first.values, second.values, strict=True)]
    assert sums == pytest.approx([100] * len(sums))


@given(st.floats(1e-6, 1e12))
def test_ticks_are_few_even_and_inside(top: float) -> None:
    found = ticks(top)
    assert 3 <= len(found) <= 6
    assert found[0] == 0 and found[-1] <= top * (1 + 1e-6)
    steps = [high - low for low, high in pairwise(found)]
    assert steps == pytest.approx([steps[0]] * len(steps))


def test_pictures_stay_inside_their_frame_and_share_their_scales() -> None:
    for _title, row in charts(study(1, "tmpfs")):
        assert len({(chart.last_s, chart.tops) for chart in row}) == 1
        for chart in row:
            for line in chart_svg(chart).iter():
                pairs = [pair.split(",") for pair in line.get("points", "").split()]
                assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in pairs)


def test_the_points_of_a_page_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.report.html_charts.POINTS", 200)
    shown = [chart.shown for _title, row in charts(study(1, "tmpfs")) for chart in row]
    assert sum(len(one.times_s) * len(one.lines) for one in shown) <= 200 < POINTS
