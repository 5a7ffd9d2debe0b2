"""The commands that pages show: typed once, in order, with the output that is shown."""

from pathlib import Path

import pytest

from docs.commands import Done, Instead, Shell, Typist, is_shown, rendered, wrong_examples
from docs.declared import Output
from docs.pages import Page, Shown, ShownFile

OUTPUT = "load 36.88\nidle 67.40\nport closed\n"


def typist(folder: Path, **instead: Instead) -> tuple[Typist, list[str]]:
    """Return one who types in a folder, and the lines that it tells."""
    told: list[str] = []
    return Typist(Shell(folder), instead, told.append), told


def page(text: str, name: str = "docs/a.md") -> Page:
    return Page(name, text)


def console(text: str) -> Page:
    return page(f"# A\n\n```console\n{text}```\n")


def test_commands_outputs_and_files_are_read_off_a_page() -> None:
    shown = "```toml mine.toml\ntitle = 1\n```\n"
    typed = "```console\n$ cat \\\n>   mine.toml\ntitle\n$ true\n```\n"
    file, first, second = page(f"{shown}\n{typed}").commands_and_files()
    assert isinstance(file, ShownFile)
    assert (file.name, file.content) == ("mine.toml", "title = 1\n")
    assert isinstance(first, Shown) and isinstance(second, Shown)
    assert (first.command, first.output, first.line) == ("cat mine.toml", "title\n", 6)
    assert (second.command, second.output) == ("true", "")


def test_a_command_that_prints_what_is_shown_is_right(tmp_path: Path) -> None:
    one, told = typist(tmp_path)
    assert one.check_page(console("$ printf 'a\\nb\\nc\\n'\na\n...\nc\n")) == []
    assert len(told) == 1


def test_a_wrong_output_is_found(tmp_path: Path) -> None:
    one, _told = typist(tmp_path)
    [complaint] = one.check_page(console("$ echo 36.88\n36.87\n"))
    assert complaint.startswith("docs/a.md:4: `echo 36.88` prints something else than is shown")
    assert "36.88" in complaint.splitlines()[1]


def test_a_command_that_fails_is_found_unless_it_is_to_fail(tmp_path: Path) -> None:
    [complaint] = typist(tmp_path)[0].check_page(console("$ exit 3\n"))
    assert "`exit 3` ended with 3, not 0" in complaint
    to_fail = {"exit 3": Instead(run="exit 3", status=3)}
    other = Typist(Shell(tmp_path / "other"), to_fail, lambda line: None)
    assert other.check_page(console("$ exit 3\n")) == []


def test_a_command_is_typed_once_whatever_shows_it(tmp_path: Path) -> None:
    one, _told = typist(tmp_path)
    again = page("```console\n$ echo x >> count\n```\n", "docs/b.md")
    assert one.check_all([console("$ echo x >> count\n"), again, again], 2) == []
    assert (tmp_path / "count").read_text() == "x\n"


def test_another_command_stands_in_for_a_long_one(tmp_path: Path) -> None:
    one = Typist(
        Shell(tmp_path), {"sleep 1000": Instead(run="echo short > done")}, lambda line: None
    )
    assert one.check_page(console("$ sleep 1000\nawake\n")) == []
    assert (tmp_path / "done").read_text() == "short\n"


def test_a_file_that_a_page_shows_is_there_for_the_next_command(tmp_path: Path) -> None:
    text = "```toml mine.toml\na = 1\n```\n\n```console\n$ cat mine.toml\na = 1\n```\n"
    assert typist(tmp_path)[0].check_page(page(text)) == []


def test_iotwin_is_on_the_path_and_in_the_virtual_environment(tmp_path: Path) -> None:
    one, _told = typist(tmp_path)
    assert one.run("iotwin table").stdout == one.run(".venv/bin/iotwin table").stdout != ""


def test_an_output_is_cut_to_the_lines_that_are_kept() -> None:
    done = Done(command="x", status=0, stdout=OUTPUT, stderr="", wall_s=0.0)
    block = Output(name="x", command="x", shown="make x", keep=("^load", "^port"), width=8)
    text = rendered(block, done)
    assert text == "```console\n$ make x\nload 36. ...\n...\nport clo ...\n```\n"
    assert is_shown("".join(text.splitlines(keepends=True)[2:-1]), done)


@pytest.mark.parametrize("shown", ["load 36.88\n", "load\n...\n", "load 36.89\n...\n"])
def test_what_is_not_printed_is_not_shown(shown: str) -> None:
    assert not is_shown(shown, Done(command="x", status=0, stdout=OUTPUT, stderr="", wall_s=0.0))


def test_the_examples_of_every_help_are_understood() -> None:
    assert wrong_examples() == []
