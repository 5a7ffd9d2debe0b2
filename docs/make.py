"""`python -m docs make`: simulate what tables need, draw the picture, fill blocks and figures.

Models: the last evening before a report is handed in.
Invariants: what is stored of the present sources is not simulated again, so that an interrupted
 make goes on where it stopped; a page is written only if it changes.
"""

import json
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from docs import picture
from docs.blocks import filled, placed_blocks
from docs.commands import Shell, Typist, read_instead, rendered
from docs.declared import (
    TOP,
    Block,
    DeclarationError,
    Exercise,
    Output,
    Reference,
    Run,
    Table,
)
from docs.figures import MAKE as FIGURES
from docs.figures import Book, write_figures
from docs.pages import ShownFile, all_pages
from docs.reference import reference_text
from docs.render import exercise_table, figures_table
from docs.runs import Store, Tell, make
from sim.registry import did_you_mean
from sim.study.laboratory import Laboratory

PICTURE_POINTS: Final = TOP / "docs" / "runs" / "pictures" / "storm.json"
PICTURE: Final = "picture"


def wanted_runs(blocks: Collection[Block]) -> dict[Run | Exercise, int]:
    """Return the runs that blocks are made of, and how many samples of each."""
    found: dict[Run | Exercise, int] = {}
    for block in blocks:
        if isinstance(block, Exercise):
            found[block] = 1
        elif isinstance(block, Table):
            for one in block.variants:
                found[one.run] = max(one.samples, found.get(one.run, 0))
    return found


def chosen(names: Collection[str], declared: Mapping[str, Block]) -> dict[str, Block]:
    """Return the blocks of these names, all if there is none; raise DeclarationError."""
    for name in names:
        if name not in declared and name not in (PICTURE, FIGURES):
            hint = did_you_mean(name, [*declared, PICTURE, FIGURES])
            raise DeclarationError(f"no block '{name}'{hint} (known: {', '.join(declared)})")
    return {name: one for name, one in declared.items() if not names or name in names}


def make_all(
    names: Collection[str], declared: Mapping[str, Block], laboratory: Laboratory, tell: Tell
) -> None:
    """Make the blocks of these names, or all; then write the figures of all pages."""
    blocks = chosen(names, declared)
    placed = _places(declared)
    store = Store()
    shown = {name: one for name, one in blocks.items() if name in placed}
    make(wanted_runs(shown.values()), store, laboratory, tell)
    if not names:
        store.keep_only({one.command for one in wanted_runs(declared.values())})
    if not names or PICTURE in names:
        make_picture(laboratory)
        tell("docs/pictures/storm.png drawn")
    texts = {
        name: text_of(one, store) for name, one in shown.items() if not isinstance(one, Output)
    }
    texts |= _outputs([one for one in shown.values() if isinstance(one, Output)], tell)
    fill_pages(texts, tell)
    for name in write_figures(all_pages(), Book(declared, store)):
        tell(f"{name}: figures written")
    for name in sorted(set(blocks) - set(placed)):
        tell(f"note: '{name}' of docs/tables.toml stands in no page")


def _places(declared: Mapping[str, Block]) -> dict[str, list[str]]:
    """Return the pages that each block stands in; raise DeclarationError for an unknown one."""
    found: dict[str, list[str]] = {}
    for page in all_pages().values():
        for block in placed_blocks(page.text, page.name):
            if block.name not in declared:
                hint = did_you_mean(block.name, declared)
                raise DeclarationError(
                    f"{page.name}:{block.first}: no block '{block.name}' in docs/tables.toml{hint}"
                )
            found.setdefault(block.name, []).append(page.name)
    return found


def text_of(block: Block, store: Store) -> str:
    """Return what a block's data renders to; raise MissingRun."""
    if isinstance(block, Table):
        return figures_table(block, store)
    if isinstance(block, Exercise):
        return exercise_table(block, store)
    assert isinstance(block, Reference)
    return reference_text(block)


def _outputs(blocks: Collection[Output], tell: Tell) -> dict[str, str]:
    """Run the commands whose output is shown, each in the folder of the ones before."""
    texts = {}
    if blocks:
        with tempfile.TemporaryDirectory() as folder:
            for page in all_pages().values():
                if page.changes_project:
                    continue
                for shown in page.commands_and_files():
                    if isinstance(shown, ShownFile):
                        (Path(folder) / shown.name).write_text(shown.content, encoding="utf-8")
            typist = Typist(Shell(Path(folder)), read_instead(), tell)
            for one in blocks:
                done = typist.run(one.command)
                if done.status:
                    raise DeclarationError(
                        f"output.{one.name}: `{one.command}` ended with {done.status}: "
                        f"{done.stderr.strip()}"
                    )
                texts[one.name] = rendered(one, done)
    return texts


def fill_pages(texts: Mapping[str, str], tell: Tell, top: Path = TOP) -> None:
    """Write the blocks into the pages; leave those of which there is no text."""
    for page in all_pages(top).values():
        now = {block.name: block.text for block in placed_blocks(page.text, page.name)}
        text = filled(page.text, page.name, lambda name, now=now: texts.get(name, now[name]))  # type: ignore[misc]
        if text != page.text:
            (top / page.name).write_text(text, encoding="utf-8")
            tell(f"{page.name} written")


def make_picture(laboratory: Laboratory) -> None:
    """Simulate what the picture shows, keep its points, draw it."""
    points = picture.points(laboratory)
    PICTURE_POINTS.parent.mkdir(parents=True, exist_ok=True)
    PICTURE_POINTS.write_text(json.dumps(points) + "\n", encoding="utf-8")
    picture.draw(points)
