"""What every study is asked with, and where its answer goes: options, picture, JSON.

Used by sweep, capacity, optimise, forecast and sensitivity: an option means the same in each. What
makes pictures is imported when one is drawn: `--help` does without.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

import sim
from sim.cli import options
from sim.cli.laboratory import Where, laboratory_options
from sim.cli.output import check_apart, check_json, check_picture, write_json, write_picture
from sim.report.study_file import study_file
from sim.report.study_tables import scenario_heading
from sim.scenario import Scenario, open_scenario
from sim.study.outcome import Shortfall
from sim.study.points import Measured, Variants


@dataclass(frozen=True)
class StudyOptions:
    """What was typed for a study, whatever its kind."""

    seed: int | None
    sets: tuple[str, ...]
    fit_path: str | None
    where: Where
    yes: bool
    json_path: str | None
    plot_path: str | None

    @property
    def prints(self) -> bool:
        """Whether standard output is for people: the JSON does not go there."""
        return self.json_path != "-"

    def variants(self, scenario_name: str) -> Variants:
        """Return what lies under all points of the study; raise FitError, ScenarioError."""
        fit = options.fit_of(self.fit_path, scenario_name)
        file = open_scenario(scenario_name)
        return Variants(file=file, sets=self.sets, seed=self.seed, fit=fit)

    def check_files(self, variants: Variants) -> None:
        """Refuse, before anything runs, files that cannot be written or that are read."""
        check_json(self.json_path)
        check_picture(self.plot_path)
        check_apart(self.json_path, self.plot_path, read=(variants.file.path, self.fit_path))

    def head(self, base: Scenario, *conditions: str, is_one_of_many: bool = False) -> None:
        """Print what is asked of which scenario, and of which what-if if it is a single one."""
        told = ", ".join([f"seed {base.seed}", *conditions, f"iotwin {sim.__version__}"])
        shown = replace(base, what_if=None) if is_one_of_many else base
        click.echo(scenario_heading(shown, told, options.command_line()))

    def draw(self, module: str, function: str, *shown: object) -> None:
        """Draw what is shown into --plot, if it was given, by a function of sim.report.MODULE."""
        write_picture(self.plot_path, module, function, *shown)

    def write(
        self,
        kind: str,
        base: Scenario,
        points: Sequence[Measured],
        result: dict[str, Any],
        unfinished: Shortfall | None,
    ) -> None:
        """Write the study into --json, if it was given."""
        if self.json_path is not None:
            content = study_file(
                kind,
                command=options.command_line(),
                version=sim.__version__,
                base=base,
                points=points,
                result=result,
                unfinished=unfinished,
            )
            write_json(content, self.json_path)


def study_options(plot_help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of every study; it is called with `given`, a StudyOptions."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @options.seed_option
        @options.set_option
        @options.fit_option
        @laboratory_options
        @click.option("--yes", is_flag=True, help="More than 100,000 runs are meant.")
        @options.json_option
        @click.option("--plot", "plot_path", metavar="FILE.png", help=plot_help)
        @functools.wraps(command)
        def with_given(
            *args: Any,
            seed: int | None,
            sets: tuple[str, ...],
            fit_path: str | None,
            where: Where,
            yes: bool,
            json_path: str | None,
            plot_path: str | None,
            **more: Any,
        ) -> Any:
            given = StudyOptions(seed, sets, fit_path, where, yes, json_path, plot_path)
            return command(*args, given=given, **more)

        return with_given

    return decorate


def budget_option(default: int, text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return --budget of a search, of which `text` says what it is spent on."""
    return click.option(
        "--budget", type=click.IntRange(10), default=default, show_default=True, help=text
    )


def precision_option(
    default: float, text: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return --precision of a search, a share, of which `text` says what must be known so well."""
    return click.option(
        "--precision",
        metavar="PERCENT",
        default=f"{100 * default:g}%",
        show_default=True,
        help=text,
    )
