"""Lesson 9, clocks, idle states, quotas."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import run

ALWAYS_LOWEST = {
    "machine.cpufreq.driver": "acpi-cpufreq",
    "machine.cpufreq.governor": "powersave",
}
LIGHT_SLEEP = {"machine.cpuidle.max_cstate": 2}
WAKE_UPS = 2 * 140  # of a page: whoever is asked, and whoever asked
CLOCKS = 3.0 / 1.2  # the highest in the lowest
DEEPER_US = 133 - 10  # C6 to C1E


def _page_ms(what_if: str = "bare_metal") -> float:
    return run("web-governor", what_if)["ttfb_ms"]


def _shared_ms(period: str | None = None) -> float:
    return run("web-limits", period)["ttfb_ms"]


QUESTIONS = {
    "9.0": Question(
        asked="The governor performance: how long does a page take?",
        answer=lambda: _page_ms("governor_performance"),
        unit="ms",
        within=0.15,
        hint="Which parts of the bill know a clock, and which clock did they have?",
        is_prediction=True,
    ),
    "9.1": Question(
        asked="The clock never leaves 1.2 GHz: how long does a page take?",
        answer=lambda: run("web-governor", "bare_metal", set=ALWAYS_LOWEST)["ttfb_ms"],
        unit="ms",
        within=0.12,
        hint="Compute the computing at both clocks. The rest of a page stays as it was.",
        traps=(
            Trap(
                value=lambda: CLOCKS * _page_ms("governor_performance"),
                told="That is the ratio of the clocks. Not all of a page is computing.",
            ),
            Trap(
                value=_page_ms,
                told="There the clock climbed while the page was made.",
            ),
        ),
    ),
    "9.2": Question(
        asked="Idle states up to C1E: how long does a page take?",
        answer=lambda: run("web-governor", "bare_metal", set=LIGHT_SLEEP)["ttfb_ms"],
        unit="ms",
        within=0.12,
        hint="How many wake-ups has a page, and how much shorter is each?",
        traps=(
            Trap(
                value=_page_ms,
                told="One wake-up is short. How many are there in a page?",
            ),
            Trap(
                value=lambda: _page_ms() - WAKE_UPS * DEEPER_US / 1000,
                told="The table has the worst case. We took 0.4 of it.",
            ),
        ),
    ),
    "9.3": Question(
        asked="A period of 10 ms with the same share: how long does a page take on average?",
        answer=lambda: _shared_ms("short_period"),
        unit="ms",
        within=0.2,
        hint="Pages that share one CPU: how busy is it, and how long does a page need alone?",
        traps=(
            Trap(
                value=lambda: 20.0,
                told="That is a page alone. Others are there at the same time.",
            ),
            Trap(
                value=_shared_ms,
                told="That is the long period, in which a small crowd runs at full speed.",
            ),
            Trap(
                value=lambda: _shared_ms("no_quota"),
                told="Without a quota two pages have two CPUs. How many have they here?",
            ),
        ),
    ),
}
