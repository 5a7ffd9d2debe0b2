"""The web server: who may ask, what it answers, and that no address names a file."""

from collections.abc import Iterator

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from sim.serve.app import app_of
from sim.serve.desk import Desk
from sim.serve.questions import Catalogue

PAGES = ("/", "/page.css", "/page.js", "/uplot.css", "/uplot.js")


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with Desk() as desk:
        yield TestClient(app_of(Catalogue(), desk), base_url="http://127.0.0.1:8765")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", ""]
)
@pytest.mark.parametrize("path", ["/", "/api/scenarios", "/api/study?scenario=generic"])
def test_a_foreign_host_is_refused(client: TestClient, host: str, path: str) -> None:
    assert client.get(path, headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost:8765"])
def test_this_computer_s_own_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


def test_a_page_from_elsewhere_starts_nothing(client: TestClient) -> None:
    for site in ("cross-site", "same-site"):
        answer = client.get("/api/study?scenario=generic", headers={"sec-fetch-site": site})
        assert answer.status_code == 403
    # A link that a colleague sent is followed from elsewhere, and leads to the page.
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("path", [*PAGES, "/api/scenarios", "/nothing"])
def test_every_answer_says_that_nothing_is_loaded_from_elsewhere(
    client: TestClient, path: str
) -> None:
    policy = client.get(path).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy


@pytest.mark.parametrize("path", PAGES)
def test_the_files_of_the_page_are_there(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert len(answer.text) > 500


@pytest.mark.parametrize(
    "path",
    ["/../setup.cfg", "/%2e%2e/setup.cfg", "//etc/passwd", "/static/page.js", "/page.js/../app.py"],
)
def test_no_path_leads_to_another_file(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_controls_are_those_of_the_address(client: TestClient) -> None:
    query = {"scenario": "generic", "what_if": "ssd", "set": "process.server.rate=60 /s"}
    found = client.get("/api/controls", params=query).json()
    assert found["scenario"] == "generic"
    assert "ssd" in [one["name"] for one in found["what_ifs"]]
    [rate] = [one for one in found["controls"] if one["path"] == "process.server.rate"]
    assert rate["positions"][rate["now"]] == "60 /s"
    assert found["figure"] in found["figures"]


@pytest.mark.parametrize("what", ["controls", "study"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "no scenario is named"),
        ("scenario=generik", "did you mean 'generic'?"),
        ("scenario=/etc/passwd", "no scenario '/etc/passwd'"),
        ("scenario=..%2Fsetup", "no scenario '../setup'"),
        ("scenario=generic&what_if=sdd", "did you mean 'ssd'?"),
        ("scenario=generic&set=machine.cpus=0", "must be at least 1"),
        ("scenario=generic&set=machine.kernel=6.1", "unknown number 'machine.kernel'"),
        ("scenario=generic&seed=x", "not a seed"),
        ("scenario=generic&file=x", "unknown part of the address 'file'"),
    ],
)
def test_what_is_wrong_is_told(client: TestClient, what: str, query: str, expected: str) -> None:
    answer = client.get(f"/api/{what}?{query}")
    assert answer.status_code == 400
    [mistake] = answer.json()["mistakes"]
    assert expected in mistake["message"]


def test_a_mistake_names_what_is_allowed_and_the_nearest(client: TestClient) -> None:
    answer = client.get("/api/study?scenario=generic&set=process.server.rat=1")
    [mistake] = answer.json()["mistakes"]
    assert mistake["nearest"] == "process.server.rate"
    assert "process.server.rate" in mistake["allowed"]


def test_only_reading_is_offered(client: TestClient) -> None:
    for path in ("/", "/api/study?scenario=generic"):
        assert client.post(path).status_code == 405
