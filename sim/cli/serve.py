"""`iotwin serve`: a page on this computer with sliders, whose runs are drawn while they go on."""

import asyncio
import errno
import socket
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlencode

import click

from sim.cli import options
from sim.cli.extras import need

ADDRESS: Final = "127.0.0.1"  # this computer alone
PORT: Final = 8765
PORT_MAX: Final = 65535
_TICK_S: Final = 0.05


@click.command("serve", short_help="Open a page with sliders, drawn while it runs.")
@click.argument("scenario_name", metavar="[SCENARIO]", required=False)
@click.option(
    "--port",
    type=click.IntRange(0, PORT_MAX),
    default=PORT,
    show_default=True,
    help="Port of the page's address; 0: any that is free.",
)
@options.seed_option
@options.set_option
def command(scenario_name: str | None, port: int, seed: int | None, sets: tuple[str, ...]) -> None:
    """Serve a page on this computer: move a slider, and see what the server does.

    Sliders are the numbers that a scenario gives; readings are drawn while the run goes on, and
    more seeds follow until the 90 % interval of a figure's mean is within 5 % of it. To move on
    ends the run. The page's address holds all that was chosen. Only this computer reaches it.
    Ctrl-C ends it, and all that it started.

    \b
    Examples:
      iotwin serve
      iotwin serve sendmail
      iotwin serve ./my-server.toml --port 9000 --set machine.cpus=8
    """
    if scenario_name is None and (sets or seed is not None):
        raise click.UsageError("--set and --seed go with a SCENARIO")
    need("starlette")
    need("uvicorn")
    # By name: a plain install has neither, and `--help` does without.
    questions = import_module("sim.serve.questions")
    catalogue = questions.Catalogue(scenario_name)
    state = ""
    if catalogue.first is not None:
        number = None if seed is None else str(seed)
        question = questions.Question(scenario=catalogue.first, sets=sets, seed=number)
        _own, asked = catalogue.asked(question)
        options.tell_omissions(asked.scenario)
        state = f"?{urlencode(question.query())}"
    with _listener(port) as listener:
        place = f"http://{ADDRESS}:{listener.getsockname()[1]}/{state}"
        with import_module("sim.serve.desk").Desk() as desk:
            app = import_module("sim.serve.app").app_of(catalogue, desk)
            click.echo(f"{place}\n(this computer alone reaches it; Ctrl-C ends it)")
            asyncio.run(_serve(app, desk, listener))


async def _serve(app: Any, desk: Any, listener: socket.socket) -> None:
    """Answer requests until Ctrl-C; studies end first, since who waits for them holds the end."""
    uvicorn = import_module("uvicorn")
    config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False)
    server = uvicorn.Server(config)

    async def clear_at_the_end() -> None:
        while not server.should_exit:
            await asyncio.sleep(_TICK_S)
        desk.clear()

    clearing = asyncio.create_task(clear_at_the_end())
    await server.serve(sockets=[listener])
    await clearing


def _listener(port: int) -> socket.socket:
    """Return a socket on a port of this computer; raise click.BadParameter if it is in use."""
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is in use" if error.errno == errno.EADDRINUSE else "needs a privilege"
    message = f"port {port} {why} (accepted: a free port; the nearest: {_nearest_free(port)})"
    raise click.BadParameter(message, param_hint="--port")


def _nearest_free(port: int) -> int:
    """Return the free port nearest to one that is not."""
    for distance in range(1, PORT_MAX):
        for other in (port + distance, port - distance):
            if 0 < other <= PORT_MAX:
                try:
                    socket.create_server((ADDRESS, other)).close()
                except OSError:
                    continue
                return other
    raise click.UsageError("no port of this computer is free")
