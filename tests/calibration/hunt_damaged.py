"""Hunt for texts that break a reader: `python -m tests.calibration.hunt_damaged [NUMBER [SEED]]`.

Models: recordings on their way through mail, terminals, editors and full disks.
Linux counterpart: none.
Invariants: a damaged text ends in a recording or in UnreadableRecording, within TIME_MAX_S; all
else is printed with the seed that makes it again, and the exit code is 1.
Left out: whether what is read is right (test_read_mangled.py).
"""

import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Final

from calibration.readers import UnreadableRecording, read_bytes
from tests.calibration.iostat_texts import TEXTS as IOSTATS
from tests.calibration.more_texts import MORE
from tests.calibration.sar_texts import TEXTS as SARS
from tests.calibration.test_read_sadf import DOCUMENT
from tests.calibration.test_record import RECORDED
from tests.calibration.texts import IOSTAT, TEXTS

TIME_MAX_S: Final = 5.0  # CPU time; texts have some thousand characters
_SIGNS: Final = "0123456789.,:;%/-+()[]{}\"'\\ \t\n\r\0\x1b#$=_kMGTeEnaif\u00e9\u65f6"
Damage = Callable[[random.Random, str], str]


def cut(chance: random.Random, text: str) -> str:
    """Leave out the end, or the beginning."""
    at = chance.randrange(len(text) + 1)
    return text[:at] if chance.random() < 0.7 else text[at:]


def flip(chance: random.Random, text: str) -> str:
    """Put other characters in the place of some."""
    letters = list(text)
    for _time in range(chance.randint(1, 30)):
        if letters:
            letters[chance.randrange(len(letters))] = chance.choice(_SIGNS)
    return "".join(letters)


def drop_lines(chance: random.Random, text: str) -> str:
    """Leave out lines."""
    return "".join(line for line in text.splitlines(keepends=True) if chance.random() < 0.8)


def shuffle_lines(chance: random.Random, text: str) -> str:
    """Change the order of lines."""
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(lines)


def repeat(chance: random.Random, text: str) -> str:
    """Say a part again and again."""
    begin = chance.randrange(len(text) + 1)
    end = min(begin + chance.randint(1, 60), len(text))
    return text[:begin] + text[begin:end] * chance.randint(2, 60) + text[end:]


def wrap(chance: random.Random, text: str) -> str:
    """Break lines, as a narrow terminal or a mail does."""
    width = chance.randint(20, 100)
    return "\n".join(
        line[at : at + width]
        for line in text.splitlines()
        for at in range(0, len(line) or 1, width)
    )


def numbers(chance: random.Random, text: str) -> str:
    """Put numbers that no counter has in the place of some."""
    odd = [
        "-1",
        "1e308",
        "nan",
        "inf",
        "9" * 25,
        "9" * 400,
        "9" * 5000,
        "0x1f",
        "1.2.3",
        "",
        "null",
    ]
    words = text.split(" ")
    for at, word in enumerate(words):
        if word[:1].isdigit() and chance.random() < 0.05:
            words[at] = chance.choice(odd)
    return " ".join(words)


def mix(chance: random.Random, text: str) -> str:
    """Put lines of another tool between."""
    lines = text.splitlines(keepends=True)
    for line in _ALL[chance.choice(sorted(_ALL))].splitlines(keepends=True):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return "".join(lines)


DAMAGES: Final[tuple[Damage, ...]] = (
    cut,
    flip,
    drop_lines,
    shuffle_lines,
    repeat,
    wrap,
    numbers,
    mix,
)
_ALL: Final = {
    **TEXTS,
    **MORE,
    **SARS,
    **IOSTATS,
    "iostat": IOSTAT,
    "sadf -j": json.dumps(DOCUMENT, indent=1),
    "iotwin record": RECORDED,
}


def damaged(seed: int) -> bytes:
    """Return the damaged text of a seed."""
    chance = random.Random(seed)
    text = _ALL[chance.choice(sorted(_ALL))]
    for _time in range(chance.randint(1, 3)):
        text = chance.choice(DAMAGES)(chance, text)
    raw = text.encode(chance.choice(("utf-8",) * 9 + ("utf-16",)), errors="replace")
    if chance.random() < 0.2:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.randbytes(chance.randint(1, 8)) + raw[at:]
    return raw


def outcome(raw: bytes) -> str:
    """Return what became of a text: read, read in part, or refused."""
    try:
        recording = read_bytes(raw, "x")
    except UnreadableRecording:
        return "refused"
    return "read in part" if recording.problems else "read"


def hunt(number: int, first_seed: int) -> tuple[Counter[str], list[str]]:
    """Return how many texts became what, and what broke a reader."""
    counts: Counter[str] = Counter()
    broken = []
    for seed in range(first_seed, first_seed + number):
        begin = time.process_time()
        try:
            became = outcome(damaged(seed))
        except Exception:
            became = "broken"
            broken.append(f"seed {seed}:\n{traceback.format_exc()}")
        if time.process_time() - begin > TIME_MAX_S:
            broken.append(f"seed {seed}: {time.process_time() - begin:.1f} s")
        counts[became] += 1
    return counts, broken


def main(words: list[str]) -> int:
    """Hunt, and tell."""
    number, seed = ([int(word) for word in words] + [10_000, 1][len(words) :])[:2]
    counts, broken = hunt(number, seed)
    print(f"{number} damaged texts: {dict(sorted(counts.items()))}")
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
