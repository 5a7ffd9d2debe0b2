"""The page in Chromium: Python starts there, every preset runs, and nothing is asked of others."""

import shutil
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright and Chromium")

from docs.page.make import make  # noqa: E402
from docs.page.pyodide import NoPyodideError  # noqa: E402
from sim.scenario import load  # noqa: E402
from sim.serve.browser import PRESETS  # noqa: E402
from sim.study.laboratory import run_once  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
READY_S = 20.0
SECOND_S = 5.0
PATIENCE_MS = 60_000
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page")
    try:
        assert make(path) == "", "it is compiled"
    except NoPyodideError as error:
        pytest.skip(str(error))
    return path


@pytest.fixture(scope="module")
def host(folder: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with sync_api.sync_playwright() as playwright:
        # A container's root may not have Chromium's own sandbox.
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


class Seen:
    """A page that is open, and what it said and asked for."""

    def __init__(self, browser: object, address: str, script: str = "", **options: object) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.context.on("request", lambda request: self.asked.append(request.url))
        if script:
            self.page.add_init_script(script)
        self.page.goto(address)

    def until(self, selector: str, text: str) -> None:
        """Wait until a part of the page says something."""
        self.page.locator(selector).filter(has_text=text).first.wait_for()

    def digest(self, which: str) -> str:
        """Return the digest of the base or of what is changed."""
        return str(self.page.locator(f"#{which} .digest").text_content())


def test_every_preset_runs_as_here_and_soon(host: str, browser: object) -> None:
    began_s = time.monotonic()
    seen = Seen(browser, f"http://{host}/", viewport=DESK, color_scheme="dark")
    seen.page.locator("#began:not([disabled])").wait_for()
    assert time.monotonic() - began_s < READY_S
    for preset in PRESETS:
        seen.page.locator("#began").select_option(f"preset={preset.name}")
        seen.until("#base .command", f"iotwin run {preset.scenario}")
        seen.until("#status", "Done after")
        scenario = load(preset.scenario, sets=preset.sets)
        began_s, computed_s = time.monotonic(), time.process_time()
        assert seen.digest("base") == run_once(scenario, scenario.seed).digest
        # On a machine with other work everything takes so many times as long.
        crowd = (time.monotonic() - began_s) / (time.process_time() - computed_s)
        name = scenario.what_ifs[0].name
        began_s = time.monotonic()
        seen.page.locator(f"#what-if-{name}").check()
        seen.until("#changed .command", f"--what-if {name}")
        assert time.monotonic() - began_s < SECOND_S * max(1, crowd), preset.name
        assert seen.digest("changed") != seen.digest("base")
        assert seen.page.locator("#figures tbody tr").count() > 5
    assert seen.said == []
    assert {urlsplit(one).netloc for one in seen.asked} == {host}
    seen.context.close()


def test_stop_ends_a_run_and_the_next_begins_at_once(host: str, browser: object) -> None:
    address = f"http://{host}/?preset=storm&set=process.blast.messages=1000"
    seen = Seen(browser, address, viewport=PHONE, color_scheme="light")
    seen.until("#status", "The changed server runs:")
    seen.page.get_by_role("button", name="Stop").click()
    seen.until("#status", "Stopped.")
    # Nothing is wider than the screen.
    assert seen.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    began_s = time.monotonic()
    seen.page.get_by_role("button", name="Change nothing").click()
    seen.until("#status", "Done after")
    assert time.monotonic() - began_s < READY_S
    assert seen.said == []
    seen.context.close()


# Keep what each chart is given to draw: times, lines of the changed server, lines of the base.
KEEP_DRAWN = """
let real;
const construct = (chart, given) => {
  const plot = new chart(...given), { setData } = plot;
  plot.setData = (data, ...more) => { plot.root.drawn = data; return setData(data, ...more); };
  return plot;
};
Object.defineProperty(window, "uPlot", {
  get: () => real,
  set: made => { real = new Proxy(made, { construct }); },
});"""
DRAWN = "document.querySelector('#charts .uplot').drawn"  # the load average's chart is the first


def test_a_base_that_was_asked_for_twice_is_drawn_whole(host: str, browser: object) -> None:
    seen = Seen(browser, f"http://{host}/", KEEP_DRAWN, viewport=DESK)
    seen.page.locator("#began:not([disabled])").wait_for()
    # The first preset runs already, and no other worker is there yet: its run goes on.
    seen.page.locator("#began").select_option(f"preset={PRESETS[0].name}")
    seen.until("#status", "Done after")
    seen.page.locator("#what-if-tmpfs").check()
    seen.until("#changed .command", "--what-if tmpfs")
    seen.until("#status", "Done after")
    seen.page.evaluate("new Promise(requestAnimationFrame)")
    times, changed, base = seen.page.evaluate(DRAWN)
    assert None not in base
    # The storm is over sooner on tmpfs.
    assert len(times) == len(base) > sum(one is not None for one in changed) > 60
    assert seen.said == []
    seen.context.close()


def test_a_lab_is_checked_by_keyboard(host: str, browser: object) -> None:
    seen = Seen(browser, f"http://{host}/?lab=iostat&seed=7", viewport=DESK)
    seen.until("#status", "Done after")
    seen.page.locator("#task-await").focus()
    for words in ("1 ms", "1", "1 ms"):
        seen.page.keyboard.type(words)
        seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")  # the button after the blanks
    seen.until("#score", "Score: 0 of 4.")
    assert "FAIL" in str(seen.page.locator("#task-await-mark").text_content())
    seen.page.get_by_role("button", name="Show what is right").click()
    seen.until("#task-lighter-mark", "Right: ")
    assert seen.page.locator("#task-lighter").get_attribute("readonly") is not None
    assert seen.said == []
    seen.context.close()


# A worker that does not start.
BROKEN = """window.Worker = class extends EventTarget {
  constructor() { super(); setTimeout(() => this.dispatchEvent(new Event("error"))); }
}"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("delete window.WebAssembly", "no WebAssembly"),
        ("delete window.Worker", "no workers"),
        (BROKEN, "did not start"),
    ],
)
def test_a_browser_that_cannot_is_told_in_one_sentence(
    host: str, browser: object, script: str, expected: str
) -> None:
    seen = Seen(browser, f"http://{host}/", script)
    seen.until("#unfit", expected)
    told = str(seen.page.locator("#unfit").text_content())
    assert told.endswith(".") and "Firefox" in told
    seen.context.close()


def test_a_page_that_is_opened_as_a_file_says_how_to_serve_it(
    folder: Path, browser: object
) -> None:
    seen = Seen(browser, (folder / "index.html").as_uri())
    seen.until("#unfit", "python3 -m http.server")
    seen.context.close()
