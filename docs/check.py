"""`python -m docs check`: what the documents say is what the twin does.

Models: a reader who trusts nothing.
Invariants: every complaint says where, and the command that mends it where there is one. Of every
 stored run the sample that takes least time is simulated again, and must be equal in every figure;
 runs whose cheapest sample takes longer than the limit are left out, and named.
"""

import json
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from docs import laws, picture
from docs.blocks import placed_blocks
from docs.commands import Shell, Typist, read_instead, rendered, wrong_examples
from docs.declared import Block, Exercise, Output, Run
from docs.figures import Book, stale_figures
from docs.make import PICTURE, PICTURE_POINTS, text_of, wanted_runs
from docs.pages import Page, all_pages
from docs.render import MissingRun
from docs.runs import Sample, Store, Tell, simulate
from sim.study.laboratory import Laboratory

LIMIT_S = 2.0  # CPU time of a sample that is simulated again


def stale_blocks(
    pages: Mapping[str, Page], declared: Mapping[str, Block], store: Store
) -> Iterator[str]:
    """Yield blocks that are not what their data renders to, byte for byte."""
    for page in pages.values():
        for block in placed_blocks(page.text, page.name):
            where = f"{page.name}:{block.first}: block '{block.name}'"
            declaration = declared.get(block.name)
            if declaration is None:
                yield f"{where} is not declared in docs/tables.toml"
            elif not isinstance(declaration, Output):
                try:
                    wanted = text_of(declaration, store)
                except MissingRun as error:
                    yield f"{where}: never run: {error}; python -m docs make {block.name}"
                    continue
                if wanted != block.text:
                    yield f"{where} is not what its data says; python -m docs make {block.name}"


def old_runs(
    declared: Mapping[str, Block],
    store: Store,
    laboratory: Laboratory,
    limit_s: float,
    tell: Tell,
) -> Iterator[str]:
    """Yield runs that come out otherwise today."""
    chosen: list[tuple[Run | Exercise, int, float]] = []
    for what in wanted_runs(declared.values()):
        stored = store.get(what)
        if stored is None:
            continue
        number = stored.cheapest
        cpu_s = stored.samples[number].cpu_s
        if cpu_s > limit_s:
            tell(f"left out, {cpu_s:.0f} s of CPU: {what.command}")
        else:
            chosen.append((what, number, cpu_s))
    chosen.sort(key=lambda one: -one[2])  # the longest first, so that none is left at the end
    todo = [(what, number) for what, number, _cost in chosen]
    found = laboratory.map(_again, todo, [what.command for what, _number in todo])
    total_s = 0.0
    for (what, number), again in zip(todo, found, strict=True):
        total_s += again.cpu_s
        stored = store.get(what)
        assert stored is not None
        if not again.is_same(stored.samples[number]):
            names = sorted(name for name, one in declared.items() if what in wanted_runs([one]))
            changed = _changed(stored.samples[number].figures, again.figures)
            yield (
                f"`{what.command}`, sample {number}, gives other figures than docs/runs has "
                f"({changed}); python -m docs make {' '.join(names)}"
            )
    tell(f"{len(chosen)} runs simulated again, {total_s:.0f} s of CPU")


def _again(one: tuple[Run | Exercise, int]) -> Sample:
    return simulate(*one)


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    names = [name for name in before if before[name] != after.get(name)]
    if not names:
        return "the digest alone differs"
    first = names[0]
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{first}: {before[first]} there, {after.get(first)} now{more}"


def old_picture(laboratory: Laboratory) -> Iterator[str]:
    """Yield a complaint if the picture's points come out otherwise today."""
    mend = f"python -m docs make {PICTURE}"
    if not PICTURE_POINTS.is_file() or not picture.PICTURE.is_file():
        yield f"docs/pictures/storm.png: not there; {mend}"
        return
    points = picture.points(laboratory)
    if json.loads(PICTURE_POINTS.read_text(encoding="utf-8")) != json.loads(json.dumps(points)):
        yield f"docs/pictures/storm.png shows another storm than today's; {mend}"


def wrong_commands(
    pages: Mapping[str, Page], declared: Mapping[str, Block], jobs: int, tell: Tell
) -> list[str]:
    """Return commands that fail, or print something else than is shown."""
    instead = read_instead()
    with tempfile.TemporaryDirectory() as folder:
        typist = Typist(Shell(Path(folder)), instead, tell)
        complaints = typist.check_all(pages.values(), jobs)
        complaints += _old_outputs(pages, declared, typist)
        shown = {
            one.command
            for page in pages.values()
            for one in page.commands_and_files()
            if hasattr(one, "command")
        }
    for command in sorted(shown & instead.keys()):
        one = instead[command]
        if one.run != command:
            tell(f"instead of `{command}`: `{one.run}` ({one.why})")
    unused = sorted(instead.keys() - shown)
    complaints += [f"docs/commands.toml: no page shows `{command}`" for command in unused]
    return complaints + wrong_examples()


def _old_outputs(
    pages: Mapping[str, Page], declared: Mapping[str, Block], typist: Typist
) -> list[str]:
    """Return generated outputs that are not what the command prints today."""
    complaints = []
    for page in pages.values():
        for block in placed_blocks(page.text, page.name):
            one = declared.get(block.name)
            if not isinstance(one, Output) or one.command in typist.instead:
                continue
            if rendered(one, typist.run(one.command)) != block.text:
                complaints.append(
                    f"{page.name}:{block.first}: block '{block.name}' is not what"
                    f" `{one.command}` prints; python -m docs make {block.name}"
                )
    return complaints


def check_all(
    declared: Mapping[str, Block],
    laboratory: Laboratory,
    jobs: int,
    tell: Tell,
    *,
    limit_s: float = LIMIT_S,
    parts: Collection[str] = ("text", "age", "commands"),
) -> list[str]:
    """Return everything that is wrong."""
    pages = all_pages()
    store = Store()
    complaints: list[str] = []
    if "text" in parts:
        complaints += stale_blocks(pages, declared, store)
        complaints += stale_figures(pages, Book(declared, store).text_of)
        complaints += laws.typed_results(pages)
        complaints += laws.broken_links(pages)
        complaints += laws.unreachable(pages)
    if "age" in parts:
        placed = {
            block.name for page in pages.values() for block in placed_blocks(page.text, page.name)
        }
        shown = {name: one for name, one in declared.items() if name in placed}
        complaints += old_runs(shown, store, laboratory, limit_s, tell)
        complaints += old_picture(laboratory)
    if "commands" in parts:
        complaints += wrong_commands(pages, declared, jobs, tell)
    return complaints
