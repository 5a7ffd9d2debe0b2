"""The work of `iotwin mine`: record, look, draft, fit, ask, answer.

What is asked is read before anything is simulated. The options are in sim/cli/mine.py, which --help
reads and which must not load numpy.
"""

import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click

import sim
from calibration import record as recorder
from calibration.dataset import open_source
from calibration.look import look
from calibration.look.brief import brief
from calibration.look.summary import Look
from calibration.twin.anchored import ask
from calibration.twin.answers import (
    Answer,
    Answers,
    answers_table,
    figures_table,
    metrics_json,
    outside_limits,
    sentence,
    server_figures,
    steal_words,
    width_words,
)
from calibration.twin.demands import NothingToTwin
from calibration.twin.draft import Draft
from calibration.twin.fitting import Twin, draw_drafts
from calibration.twin.questions import (
    Question,
    QuestionError,
    offered,
    read_question,
)
from calibration.twin.report import writers_told
from calibration.twin.verdict import Verdict
from sim.cli.laboratory import Where
from sim.cli.main import EXIT_INTERRUPTED
from sim.cli.options import check_questions, tell_left_aside
from sim.cli.output import check_apart, check_json, check_replaceable, write_json
from sim.cli.progress import Progress
from sim.cli.twin_making import Making, making_of
from sim.report.tables import print_table
from sim.scenario.fitted import read_fit
from sim.study.recorded import DatasetError

FOLDER: Final = "here"
INTERVAL_S: Final = 1.0  # as often as tasks are counted
SCHEMA: Final = "iotwin.mine/1"


def check_asked(asked: Sequence[str], *, output: str | None, json_path: str | None) -> None:
    """Refuse what no recording could make right: questions and places; click.UsageError."""
    check_questions(asked)
    check_json(json_path)
    check_replaceable(output)
    check_apart(output, json_path)


def record_here(paths: Sequence[str], duration_s: float) -> str:
    """Record this host for so long, or what lacks of it; return the folder."""
    folder = paths[0] if paths else FOLDER
    wanted = int(duration_s / INTERVAL_S) + 1
    held = recorder.held(folder)
    have = held.samples
    if have >= wanted:
        click.echo(
            f"iotwin: {folder} is recorded, {held}; a longer --for goes on with it, another folder"
            " is recorded anew",
            err=True,
        )
        return folder
    click.echo(f"iotwin: recording into {folder} for {duration_s:g} s", err=True)
    left_s = (wanted - have - 1) * INTERVAL_S
    try:
        with Progress("recording") as progress:

            def tell(samples: int, total: int | None) -> None:
                progress(samples, total or samples)

            if have:
                done = recorder.resume(folder, INTERVAL_S, left_s, tell=tell)
            else:
                costs = recorder.host_costs
                done = recorder.record(folder, INTERVAL_S, left_s, tell=tell, costs=costs)
    except recorder.RecordError as error:
        raise click.UsageError(str(error)) from None
    if have + done.samples < wanted:
        click.echo(
            f"iotwin: interrupted: {have + done.samples} of {wanted} samples are in {folder}; the"
            " same command goes on",
            err=True,
        )
        sys.exit(EXIT_INTERRUPTED)
    return folder


def mine(
    paths: tuple[str, ...],
    asked: Sequence[str],
    *,
    output: str | None,
    simulations: int,
    members: int,
    seed: int,
    tells_all: bool,
    json_path: str | None,
    where: Where,
    is_kept: bool,
) -> None:
    """Say what the server does, make its twin, answer.

    `is_kept` says that the recording was made for this: then what is refused is told with that it
    is there. Raise click.UsageError of a question, DatasetError or UnreadableRecording of a
    recording.
    """
    kept = f"; what was recorded is kept: iotwin mine {shlex.join(paths)}" if is_kept else ""
    try:
        source = open_source(paths)
        tell_left_aside(source.left_aside)
        seen = look(source)
        drafts = draw_drafts(seen, seed)
        for one in asked:
            _check(one, drafts)
    except NothingToTwin as error:
        raise DatasetError(f"{error}{kept}") from None
    except QuestionError as error:
        raise click.UsageError(f"{error}{kept}") from None
    made_by = f"iotwin mine --simulations {simulations} --seed {seed} {shlex.join(paths)}"
    making = making_of(paths, seen, drafts, output, made_by)
    check_json(json_path)
    check_apart(str(making.place), str(making.fit_place), json_path, read=paths)
    speaks = json_path != "-"
    if speaks:
        click.echo("\n".join(brief(seen)) + "\n")
    twin = making.fit(simulations, seed, where)
    draft = twin.draft
    questions = _questions(dict.fromkeys(asked) or offered(draft, cpu_busy=seen.cpu.busy), draft)
    if speaks:
        click.echo(_made(twin, making))
    fit = read_fit(making.fit_place)
    label = f"asking {making.place.name}"
    with where.laboratory(label, server_figures) as laboratory:
        number = min(members, len(fit.members))
        place = str(making.place)
        answers = ask(questions, draft, seen, fit, place, laboratory, members=number, seed=seed)
    if json_path is not None:
        write_json(_json(answers, twin, making, number), json_path)
    if speaks:
        if not twin.verdict.is_rough:
            click.echo(warning_about(twin.verdict))
        _tell(answers, seen, draft, number, tells_all)
    click.echo(f"twin in {making.place}, its ensemble in {making.fit_place}", err=True)


def _check(text: str, drafts: Sequence[Draft]) -> None:
    """Raise QuestionError if a question makes sense for none of the drafts."""
    *others, last = drafts
    for one in others:
        try:
            read_question(text, one)
        except QuestionError:
            continue
        return
    read_question(text, last)


def _questions(asked: Iterable[str], draft: Draft) -> list[Question]:
    """Return the questions that make sense for this draft; tell of the others."""
    found = []
    for one in asked:
        try:
            found.append(read_question(one, draft))
        except QuestionError as error:
            click.echo(f"iotwin: not asked of this twin: {error}", err=True)
    return found


def _made(twin: Twin, making: Making) -> str:
    """Return who is taken to write, how near the twin comes, and where more is told."""
    more = f"`iotwin twin {shlex.join(making.paths)}` tells every column and parameter."
    advice = f" {twin.verdict.advice}" if twin.verdict.advice else ""
    writers = "".join(f"{one}\n" for one in writers_told(twin.draft))
    return f"{writers}The twin: {twin.verdict.text}.{advice}\n{more}\n"


def warning_about(verdict: Verdict) -> str:
    """Say of what is not a twin which of its answers are not to be used."""
    if len(verdict.missed) == 1:
        return f"Not to plan by where they tell of {verdict.missed[0].metric}:"
    return "Not to plan by: these are the answers of what is not a twin."


def _tell(answers: Answers, seen: Look, draft: Draft, members: int, tells_all: bool) -> None:
    for one in answers.asked:
        click.echo(f"- {sentence(one, answers.today, seen, draft)}")
    click.echo(
        f"\nPredictions: what was recorded, changed as {members} members of the fit change; in"
        f" brackets the interval that holds 90 %.{outside_limits(answers.asked, draft)}"
        f"{steal_words(seen)}{width_words(answers, seen)}\n"
    )
    print_table(answers_table(answers, seen), sys.stdout)
    if tells_all:
        for one in answers.asked:
            assert one.question is not None
            click.echo(f"\n{one.question.name}")
            print_table(figures_table(one, answers.today), sys.stdout)


def _json(answers: Answers, twin: Twin, making: Making, members: int) -> dict[str, Any]:
    """Return everything; of one question the figures stand at the top as well."""
    seen, draft = making.seen, twin.draft

    def told(one: Answer) -> dict[str, Any]:
        text = sentence(one, answers.today, seen, draft)
        return {"sentence": text, "metrics": metrics_json(one)}

    found = {one.question.name: told(one) for one in answers.asked if one.question is not None}
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "version": sim.__version__,
        "recording": seen.source.name,
        "server": brief(seen),
        "twin": str(making.place),
        "fit": str(making.fit_place),
        "verdict": twin.verdict.text,
        "fair": twin.verdict.is_fair,
        "kind": "prediction",
        "seed": twin.fit.plan.seed,
        "members": members,
        "today": {"metrics": metrics_json(answers.today)},
        "what_ifs": found,
    }
    if len(found) == 1:
        content |= next(iter(found.values()))
    return content
