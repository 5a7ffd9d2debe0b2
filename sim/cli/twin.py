"""`iotwin twin`: a scenario fitted to a recording of a server of which nothing else is known."""

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

import sim
from calibration.dataset import open_source
from calibration.fit.chain import SIMULATIONS_MIN
from calibration.look import Look, look
from calibration.look.summary import NothingToLookAt
from calibration.twin.demands import NothingToTwin
from calibration.twin.draft import Draft
from calibration.twin.fitting import SIMULATIONS, Twin, draw_draft, ensemble_text, fit_draft
from calibration.twin.report import twin_text
from sim.cli import options
from sim.cli.output import check_writable, write_file
from sim.cli.progress import Progress
from sim.scenario.load import SEED_MAX
from sim.scenario.recordings import RECORDINGS
from sim.study.replicate import processes


@click.command("twin", short_help="Make a twin of a server from its recording alone.")
@click.argument("paths", metavar="DIR|DATASET|FILE...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="TWIN.toml",
              help="Where the scenario goes (default: NAME.twin.toml here).")  # fmt: skip
@click.option("--simulations", type=click.IntRange(SIMULATIONS_MIN, 100_000), default=SIMULATIONS,
              show_default=True, help="Points at which the twin is simulated.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, SEED_MAX), default=1, show_default=True,
              help="Seed of the fit and of the scenario.")  # fmt: skip
@options.jobs_option
def command(
    paths: tuple[str, ...], output: str | None, simulations: int, seed: int, jobs: int | None
) -> None:
    """Make a twin of a server from its recording alone.

    Reads a folder of `iotwin record`, a data set, or recorded text of iostat or sar. The machine
    is described as far as it was recorded; the load of each busy device becomes classes of
    transactions whose demands are fitted, by simulation, to the recorded columns of CPUs and
    devices. The scenario that is written can be run, compared, and asked its what-ifs; beside it
    TWIN.fit.toml has the ensemble, for `iotwin predict`.

    \b
    Examples:
      iotwin record here --interval 2 --duration 1m && iotwin twin here
      iotwin twin here -o web.toml && iotwin compare web.toml ssd double_load
      iotwin predict web.toml ssd --fit web.fit.toml
      iotwin twin iostat.txt --simulations 96 --seed 3
    """
    try:
        seen = look(open_source(paths))
        draft = draw_draft(seen, seed)
    except (NothingToLookAt, NothingToTwin) as error:
        raise click.UsageError(str(error)) from None
    place = Path(output or f"{Path(seen.source.name.split()[0]).stem}.twin.toml")
    fit_place = place.with_suffix(".fit.toml")
    check_writable(str(place), str(fit_place))
    made_by = f"iotwin twin --simulations {simulations} --seed {seed} {shlex.join(paths)}"
    comment = _comment(seen, made_by)
    twin = _fit(draft, seen, comment, simulations, seed, jobs)
    fit_text = ensemble_text(twin, place, made_by, recorded_files(paths))
    write_file(place, lambda path: path.write_text(twin.text, encoding="utf-8"))
    write_file(fit_place, lambda path: path.write_text(fit_text, encoding="utf-8"))
    click.echo(f"{comment}\n{twin_text(twin, seen)}")
    names = " ".join(one.name for one in draft.sheet.what_ifs)
    click.echo(f"what-ifs: {names}\n\n  iotwin compare {place} double_load")
    click.echo(f"  iotwin predict {place} {draft.sheet.what_ifs[0].name} --fit {fit_place}")
    click.echo(f"twin written to {place}, its ensemble to {fit_place}", err=True)


def recorded_files(paths: Sequence[str]) -> list[Path]:
    """Return the files of a recording: those named, or those of the folder or data set named."""
    places = [Path(path) if Path(path).exists() else RECORDINGS / path for path in paths]
    return [
        file
        for place in places
        for file in (sorted(place.iterdir()) if place.is_dir() else [place])
        if file.is_file()
    ]


def _comment(seen: Look, made_by: str) -> str:
    """Return what stands at the head of the file and of the report."""
    return (
        f"Twin of {seen.source.name}, made from its recording alone by iotwin {sim.__version__}:\n"
        f"  {made_by}\n"
        "Nothing is known of its application: reads and writes are classes of their own.\n"
    )


def _fit(
    draft: Draft, seen: Look, comment: str, simulations: int, seed: int, jobs: int | None
) -> Twin:
    """Fit in a folder that vanishes: nothing half made is left if it is interrupted."""
    with (
        tempfile.TemporaryDirectory(prefix="iotwin.") as folder,
        Progress(f"fitting {seen.source.name}") as progress,
        processes(options.jobs_of(jobs, simulations)) as executor,
    ):
        return fit_draft(
            draft, seen, Path(folder) / "twin.toml", comment=comment, seed=seed,
            simulations=simulations, executor=executor, progress=progress,
        )  # fmt: skip
