"""A report's page in a browser: silent, closed, drawn, by keyboard, narrow, dark, printed.

It takes Debian's chromium and the extra `browser`; where one of them lacks, these are skipped.
"""

import shutil
from collections.abc import Iterator

import pytest

from sim.report.html_report import report_html
from tests.report.studies import study
from tests.report.test_html import HEAD, findings

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or ""
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium is installed")

DESK = {"viewport": {"width": 1200, "height": 850}}
PHONE = {"viewport": {"width": 320, "height": 640}}
FIRST = ".chart .plot >> nth=0"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_html(findings(study(3, "tmpfs")), HEAD), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with sync_api.sync_playwright() as playwright:
        # Tests may run as root, for whom Chromium has no sandbox; the page is ours.
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Visit:
    """A page that was opened, and all that it said and asked for."""

    def __init__(self, browser, place: str, **how: object) -> None:
        self.heard: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_context(**how).new_page()
        self.page.on("console", lambda message: self.heard.append(message.text))
        self.page.on("pageerror", lambda error: self.heard.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.heard.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(place)

    def is_shown(self, selector: str) -> bool:
        return self.page.locator(selector).first.is_visible()


@pytest.mark.parametrize(
    "how",
    [DESK, PHONE, DESK | {"color_scheme": "dark"}, DESK | {"java_script_enabled": False}],
    ids=["desk", "phone", "dark", "no-scripts"],
)
def test_it_says_nothing_and_asks_for_nothing_but_itself(browser, place, how) -> None:
    visit = Visit(browser, place, **how)
    visit.page.wait_for_load_state("networkidle")
    assert visit.heard == []
    assert visit.asked == [place]


def test_every_chart_is_drawn_and_without_scripts_there_is_the_picture(browser, place) -> None:
    visit = Visit(browser, place, **DESK)
    assert visit.page.locator(".chart canvas").count() == visit.page.locator(".chart").count() == 8
    assert not visit.is_shown(".chart svg")
    plain = Visit(browser, place, **DESK, java_script_enabled=False)
    assert plain.is_shown(".chart svg") and plain.page.locator(".chart canvas").count() == 0


def test_paper_has_the_pictures_on_white(browser, place) -> None:
    visit = Visit(browser, place, **DESK, color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert visit.page.evaluate(colour) != "rgb(255, 255, 255)"
    visit.page.emulate_media(media="print")
    assert visit.page.evaluate(colour) == "rgb(255, 255, 255)"
    assert visit.is_shown(".chart svg") and not visit.is_shown(".chart .uplot")


def test_a_phone_scrolls_down_only(browser, place) -> None:
    visit = Visit(browser, place, **PHONE)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_answer_is_on_the_first_screen(browser, place) -> None:
    visit = Visit(browser, place, **DESK)
    box = visit.page.locator("#answer .lead").first.bounding_box()
    assert box["y"] + box["height"] < 850


def test_keys_lead_to_the_answer_and_through_the_moments_of_a_chart(browser, place) -> None:
    visit = Visit(browser, place, **DESK)
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.getAttribute('href')") == "#answer"
    chart, legend = visit.page.locator(FIRST), visit.page.locator(".u-legend").first
    chart.focus()
    seen = []
    for key in ("Home", "ArrowRight", "PageDown", "End"):
        visit.page.keyboard.press(key)
        visit.page.wait_for_timeout(50)
        seen.append(legend.inner_text())
    assert "0.0 s" in seen[0] and "5.0 s" in seen[1] and "280.0 s" in seen[3]
    assert len(set(seen)) == 4
    assert visit.heard == []


def test_a_part_can_be_enlarged_and_escape_shows_all_again(browser, place) -> None:
    visit = Visit(browser, place, **DESK)
    over = visit.page.locator(".u-over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    middle = box["y"] + box["height"] / 2
    whole = over.screenshot()
    visit.page.mouse.move(box["x"] + 50, middle)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 150, middle, steps=5)
    visit.page.mouse.up()
    visit.page.mouse.move(0, 0)
    visit.page.wait_for_timeout(100)
    assert over.screenshot() != whole
    visit.page.locator(FIRST).focus()
    visit.page.keyboard.press("Escape")
    visit.page.evaluate("document.activeElement.blur()")
    visit.page.wait_for_timeout(100)
    assert over.screenshot() == whole
