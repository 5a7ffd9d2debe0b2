"""The work of `iotwin twin`: look, draft, fit, write, report; all but the report for `iotwin mine`.

Nothing is written before everything is known. Both files appear whole or not at all. The options
are in sim/cli/twin.py, which --help reads and which must not load numpy.
"""

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

import sim
from calibration.dataset import open_source, recorded_files
from calibration.look import Look, look
from calibration.twin.columns import columns_of_run
from calibration.twin.demands import NothingToTwin
from calibration.twin.draft import Draft
from calibration.twin.fitting import Twin, draw_drafts, ensemble_text, fit_best
from calibration.twin.held_out import (
    TooShort,
    held_out_json,
    held_out_text,
    predict_rest,
    split,
)
from calibration.twin.report import twin_json, twin_text
from sim.cli.laboratory import Where
from sim.cli.options import tell_left_aside
from sim.cli.output import check_apart, check_json, check_replaceable, write_json, write_text
from sim.scenario.fitted import twin_fit
from sim.study.recorded import DatasetError


@dataclass(frozen=True, kw_only=True)
class Making:
    """A twin to be made: the recording, its draft, and where the twin and its ensemble go."""

    paths: tuple[str, ...]
    seen: Look
    drafts: Sequence[Draft]  # two, where nothing tells who writes
    place: Path
    made_by: str

    @property
    def fit_place(self) -> Path:
        """Return where the ensemble goes."""
        return twin_fit(self.place)

    @property
    def comment(self) -> str:
        """Return what stands at the head of the file and of the report."""
        return (
            f"Twin of {self.seen.source.name}, made from its recording alone by"
            f" iotwin {sim.__version__}:\n  {self.made_by}\n"
            "Nothing is known of its application: reads and writes are classes of their own.\n"
        )

    def fit(self, simulations: int, seed: int, where: Where) -> Twin:
        """Fit and write both files; until then all is in a folder that vanishes."""
        with (
            tempfile.TemporaryDirectory(prefix="iotwin.") as folder,
            where.laboratory(f"fitting {self.seen.source.name}", columns_of_run) as laboratory,
        ):
            twin = fit_best(
                self.drafts,
                self.seen,
                Path(folder),
                comment=self.comment,
                seed=seed,
                simulations=simulations,
                laboratory=laboratory,
            )
        fit_text = ensemble_text(twin, self.place, self.made_by, recorded_files(self.paths))
        write_text(twin.text, self.place)
        write_text(fit_text, self.fit_place)
        return twin


def making_of(
    paths: tuple[str, ...], seen: Look, drafts: Sequence[Draft], output: str | None, made_by: str
) -> Making:
    """Return the twin to be made; refuse a place where it cannot be written."""
    name = output or f"{Path(seen.source.name.split()[0]).stem}.twin.toml"
    making = Making(paths=paths, seen=seen, drafts=drafts, place=Path(name), made_by=made_by)
    check_replaceable(name, str(making.fit_place))
    return making


def make(
    paths: tuple[str, ...],
    output: str | None,
    simulations: int,
    seed: int,
    hold_out_percent: int | None,
    json_path: str | None,
    where: Where,
) -> None:
    """Make a twin of the recording at `paths`; raise DatasetError if there is none in it."""
    try:
        seen, rest = _parts(paths, hold_out_percent)
        drafts = draw_drafts(seen, seed)
    except NothingToTwin as error:
        raise DatasetError(str(error)) from None
    except TooShort as error:
        raise click.UsageError(str(error)) from None
    held_out = f" --hold-out {hold_out_percent}" if hold_out_percent else ""
    made_by = f"iotwin twin --simulations {simulations} --seed {seed}{held_out} {shlex.join(paths)}"
    making = making_of(paths, seen, drafts, output, made_by)
    place, fit_place = making.place, making.fit_place
    check_json(json_path)
    check_apart(str(place), str(fit_place), json_path, read=paths)
    twin = making.fit(simulations, seed, where)
    held = predict_rest(twin, seen, rest) if rest is not None else None
    if json_path is not None:
        told = {} if held is None else {"held_out": held_out_json(held)}
        write_json(twin_json(twin, place.stem, sim.__version__) | told, json_path)
    if json_path != "-":
        click.echo(f"{making.comment}\n{twin_text(twin, seen)}")
        if held is not None:
            click.echo(held_out_text(held))
        what_ifs = twin.draft.sheet.what_ifs
        names = " ".join(one.name for one in what_ifs)
        click.echo(f"what-ifs: {names}\n\n  iotwin compare {place} double_load")
        click.echo(f"  iotwin predict {place} {what_ifs[0].name} --fit {fit_place}")
    click.echo(f"twin written to {place}, its ensemble to {fit_place}", err=True)


def _parts(paths: Sequence[str], hold_out_percent: int | None) -> tuple[Look, Look | None]:
    """Return what is fitted to, and what is held out; NothingToLookAt, TooShort."""
    source = open_source(paths)
    tell_left_aside(source.left_aside)
    if hold_out_percent is None:
        return look(source), None
    first, rest = split(source, hold_out_percent / 100)
    return look(first), look(rest)
