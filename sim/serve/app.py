"""The web server of `iotwin serve`: the page, what its sliders are, and studies as they go on.

Models: nothing.
Linux counterpart: none.
Invariants: it answers only who calls it by a name of this computer, so that a page from elsewhere
 cannot reach it under a name of its own (DNS rebinding), and starts nothing that a page from
 elsewhere asks for (Fetch Metadata). It loads nothing from elsewhere, and no address names a file:
 the files of the page are a table. What is wrong is told with status 400: what was given, what is
 allowed, the nearest. A study ends with its connection.
Left out: accounts, encryption, other computers: who may run `iotwin` here may do all of this.

    /                 the page; its own address holds the state
    /api/scenarios    names and titles
    /api/controls     ?scenario=&what_if=&set=: the sliders, the what-ifs, the figures
    /api/study        ?scenario=&what_if=&set=&seed=&of=: events, a JSON object a line
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from importlib.resources import files
from typing import Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sim.scenario.load import UnknownScenario
from sim.serve.desk import Desk
from sim.serve.questions import Catalogue, controls_json, mistakes_json, read_query
from sim.serve.study import Event, events
from sim.toml.errors import ScenarioError

HOSTS: Final = ("127.0.0.1", "localhost")
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_API: Final = "/api/"
_OWN: Final = ("same-origin", "none")  # of Sec-Fetch-Site: this page, or who typed the address
# path -> package and file, type
_FILES: Final = {
    "/": ("sim.serve", "static/page.html", "text/html"),
    "/page.css": ("sim.serve", "static/page.css", "text/css"),
    "/parts.js": ("sim.serve", "static/parts.js", "text/javascript"),
    "/page.js": ("sim.serve", "static/page.js", "text/javascript"),
    "/uplot.css": ("sim.report", "static/uPlot.min.css", "text/css"),
    "/uplot.js": ("sim.report", "static/uPlot.iife.min.js", "text/javascript"),
}


def app_of(catalogue: Catalogue, desk: Desk) -> Starlette:
    """Return the server of a catalogue, which does its studies at a desk."""

    async def scenarios(_request: Request) -> Response:
        return JSONResponse({"titles": dict(catalogue.titles())})

    async def controls(request: Request) -> Response:
        own, asked = catalogue.asked(read_query(request.query_params.multi_items()))
        return JSONResponse(controls_json(own, asked))

    async def study(request: Request) -> ASGIApp:
        desk.clear()  # before reading, which takes a while
        _own, asked = catalogue.asked(read_query(request.query_params.multi_items()))
        return Lines(events(asked, desk))

    pages = [Route(path, _page(*where)) for path, where in _FILES.items()]
    return Starlette(
        routes=[
            *pages,
            Route(f"{_API}scenarios", scenarios),
            Route(f"{_API}controls", controls),
            Route(f"{_API}study", study),
        ],
        middleware=[
            Middleware(Guard),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={ScenarioError: _refuse, UnknownScenario: _refuse},
    )


def _page(package: str, name: str, kind: str) -> Any:
    content = files(package).joinpath(name).read_bytes()

    async def page(_request: Request) -> Response:
        return Response(content, media_type=kind)

    return page


async def _refuse(_request: Request, error: Exception) -> Response:
    """Tell what is wrong with a question."""
    return JSONResponse({"mistakes": mistakes_json(error)}, status_code=400)


class Guard:
    """Puts the headers on every answer; keeps pages from elsewhere from starting anything."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(key.encode(), value.encode()) for key, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        site = Request(scope).headers.get("sec-fetch-site", "none")
        answer = self.app
        if scope["path"].startswith(_API) and site not in _OWN:
            answer = PlainTextResponse("asked for by a page from elsewhere", status_code=403)
        await answer(scope, receive, send_guarded)


class Lines:
    """Sends events as lines of JSON, and closes their source when who asked has gone."""

    def __init__(self, source: AsyncGenerator[Event, None]) -> None:
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until there are no more events, or the connection is closed."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with aclosing(self._source) as source:
            async for event in source:
                line = json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n"
                await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    """Wait until the connection is closed."""
    while (await receive())["type"] != "http.disconnect":
        pass
