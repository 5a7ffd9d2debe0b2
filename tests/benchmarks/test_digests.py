"""The digests of scenarios tell whether a result changed."""

from pathlib import Path

import pytest

from benchmarks.digests import main

QUICK = ["tunnel", "--seconds", "1", "--jobs", "1"]


def test_the_same_code_has_the_same_digests_and_another_line_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(QUICK) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("tunnel base ")
    before = tmp_path / "before.txt"
    before.write_text(printed)
    assert main([*QUICK, "--against", str(before)]) == 0
    assert capsys.readouterr().out == ""
    before.write_text(printed.replace("tunnel base ", "tunnel base 0"))
    assert main([*QUICK, "--against", str(before)]) == 1
    assert capsys.readouterr().out == printed.splitlines(keepends=True)[0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["tunel"], "no scenario tunel; known: "), (["--against", "nothing"], "no file nothing")],
)
def test_a_mistake_is_told(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
