"""iotwin run --block-dump: the kernel's lines in a file, counted by process on the terminal."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.main import cli
from tests.cli.small import SMALL, small_file

SHORT = SMALL.replace("messages = 60", "messages = 3")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["run", *arguments], prog_name="iotwin")


def test_the_file_has_the_lines_and_the_terminal_their_number_by_process(tmp_path: Path) -> None:
    path = tmp_path / "blocks.txt"
    result = run(small_file(tmp_path, SHORT), "--block-dump", str(path))
    assert result.exit_code == 0, result.output
    lines = path.read_text().splitlines()
    counted = [row.split(": ") for row in result.stdout.splitlines()]
    assert sum(int(number) for _, number in counted) == len(lines)
    for who, number in counted:
        assert sum(line.startswith(f"{who}: ") for line in lines) == int(number)
    assert counted[0][0].startswith("kjournald(")


def test_a_kernel_that_has_no_block_dump_is_refused_and_no_file_is_made(tmp_path: Path) -> None:
    path = tmp_path / "blocks.txt"
    newer = SHORT.replace('kernel = "2.6.16"', 'kernel = "6.1"').replace('"noop"', '"none"')
    result = run(small_file(tmp_path, newer), "--block-dump", str(path))
    assert result.exit_code == 2
    assert "--block-dump" in result.stderr and "kernels to 5.13" in result.stderr
    assert not path.exists()


@pytest.mark.parametrize("other", [("--replications", "2"), ("--json", "-"), ("--save", "x")])
def test_it_is_the_text_of_one_run_and_nothing_else(tmp_path: Path, other: tuple[str, ...]) -> None:
    result = run(small_file(tmp_path, SHORT), "--block-dump", str(tmp_path / "b"), *other)
    assert result.exit_code == 2
    assert "--block-dump" in result.stderr


def test_a_place_that_cannot_be_written_is_found_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "blocks.txt"
    result = run(small_file(tmp_path, SHORT), "--block-dump", str(path))
    assert result.exit_code == 2
    assert "missing" in result.stderr
