"""The page in a browser: by keyboard, at a phone's width, in light and dark, without a word."""

import shutil
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.cli.small import SMALL, small_file
from tests.serve.served import Served, served

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright and Chromium")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SENDERS = "process.blast.concurrency"
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
PATIENCE_MS = 60_000

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    text = SMALL.replace('title = "A small storm"', 'title = "<script>alert(1)</script>"')
    with served(small_file(tmp_path_factory.mktemp("served"), text)) as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with sync_api.sync_playwright() as playwright:
        # A container's root may not have Chromium's own sandbox.
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


class Seen:
    """A page that is open, and what it said and asked for."""

    def __init__(self, browser: object, address: str, **options: object) -> None:
        self.page = browser.new_context(**options).new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def until(self, selector: str, text: str) -> None:
        """Wait until a part of the page says something."""
        self.page.locator(selector).filter(has_text=text).first.wait_for()

    def state(self) -> list[tuple[str, str]]:
        """Return what the address says."""
        return parse_qsl(urlsplit(self.page.url).query)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_the_page_runs_by_keyboard_and_says_nothing(
    server: Served, browser: object, viewport: dict[str, int], scheme: str
) -> None:
    seen = Seen(browser, server.address, viewport=viewport, color_scheme=scheme)
    seen.until("#status", "more follow")
    page = seen.page
    # To the slider with the tabulator alone, and one step with an arrow.
    slider = page.locator("label", has_text="concurrency").first.get_attribute("for")
    for _key in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == slider:
            break
    assert page.evaluate("document.activeElement.id") == slider
    page.keyboard.press("ArrowRight")
    assert seen.state() == [("scenario", "small"), ("set", f"{SENDERS}=5")]
    seen.until("#command", f"--set {SENDERS}=5")
    seen.until("#status", "more follow")
    assert page.locator("#charts canvas").count() == 4
    assert page.locator("#figures tbody tr").count() > 5
    # Nothing is wider than the screen, and the colours are those that were asked for.
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    dark = sum(
        map(int, page.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(","))
    )
    assert (dark < 3 * 128) == (scheme == "dark")
    assert seen.said == []
    assert {urlsplit(one).netloc for one in seen.asked} == {f"127.0.0.1:{server.port}"}


def test_a_reload_and_a_colleague_see_the_same(server: Served, browser: object) -> None:
    seen = Seen(browser, f"{server.address}&what_if=slow&set={SENDERS}=6&seed=9", viewport=DESK)
    seen.until("#command", f"--what-if slow --set {SENDERS}=6 --seed 9")
    for page in (seen.page, Seen(browser, seen.page.url, viewport=DESK).page):
        page.reload()
        box = page.get_by_label("A slower disk")
        box.wait_for()
        assert box.is_checked()
        assert page.get_by_label("process blast concurrency, typed").input_value() == "6"
        assert page.locator("#seed").input_value() == "9"


def test_a_what_if_and_back(server: Served, browser: object) -> None:
    seen = Seen(browser, server.address, viewport=DESK)
    box = seen.page.get_by_label("A slower disk")
    box.check()
    seen.until("#command", "--what-if slow")
    assert seen.state() == [("scenario", "small"), ("what_if", "slow")]
    seen.page.get_by_role("button", name="As the scenario has it").click()
    seen.page.locator("#command").filter(has_not_text="--what-if").wait_for()
    assert seen.state() == [("scenario", "small")]
    assert seen.said == []


def test_a_mistake_is_told_on_the_page(server: Served, browser: object) -> None:
    seen = Seen(browser, server.address, viewport=DESK)
    typed = seen.page.get_by_label("process blast concurrency, typed")
    typed.fill("many")
    typed.press("Enter")
    seen.until("#mistakes", "many")
    typed.fill("7")
    typed.press("Enter")
    seen.until("#command", f"--set {SENDERS}=7")
    assert seen.page.locator("#mistakes li").count() == 0


def test_a_title_stays_text(server: Served, browser: object) -> None:
    seen = Seen(browser, server.address, viewport=DESK)
    seen.until("#title", "<script>alert(1)</script>")
    assert seen.said == []
