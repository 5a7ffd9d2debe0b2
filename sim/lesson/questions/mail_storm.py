"""Lesson 1, the mail storm."""

from sim.lesson.marking import Question, Trap
from sim.lesson.runs import run

QUESTIONS = {
    "1.0": Question(
        asked="How many messages a second does the server accept with its queue on tmpfs?",
        answer=lambda: run("sendmail", "tmpfs")["throughput_per_s"],
        unit="/s",
        within=0.2,
        hint="There are two bounds: what the CPUs can do, and what the senders offer.",
        is_prediction=True,
    ),
    "1.1": Question(
        asked="The same storm on eight CPUs: what does iostat show as %iowait?",
        answer=lambda: run("sendmail", set={"machine.cpus": 8})["cpu.iowait_pct"],
        unit="%",
        within=0.25,
        hint="One task waits inside the I/O. Which share of all CPUs can be idle because of it?",
        traps=(
            Trap(
                value=lambda: run("sendmail")["cpu.iowait_pct"],
                told="That is the figure of four CPUs. %iowait is a share of all CPUs.",
            ),
            Trap(
                value=lambda: 2 * run("sendmail")["cpu.iowait_pct"],
                told="More CPUs do not bring more tasks that wait inside the I/O.",
            ),
        ),
    ),
    "1.2": Question(
        asked="Half as many senders: how long does the storm on the disk last?",
        answer=lambda: run("sendmail", "half_the_senders")["duration_s"],
        unit="s",
        within=0.1,
        hint="What limits the rate of messages? Does that change with the number who wait for it?",
        traps=(
            Trap(
                value=lambda: 2 * run("sendmail")["duration_s"],
                told="That would be so if the senders were the limit. Who is it?",
            ),
            Trap(
                value=lambda: run("sendmail")["duration_s"] / 2,
                told="Fewer who wait shorten the wait of each, but not the work to be done.",
            ),
        ),
    ),
    "1.3": Question(
        asked="The queue on tmpfs and twice as many senders, 44: how many messages a second?",
        answer=lambda: run("sendmail", "tmpfs", set={"process.blast.concurrency": 44})[
            "throughput_per_s"
        ],
        unit="/s",
        within=0.2,
        hint="Take both bounds again, with 44 senders. Which is the lower one now?",
        traps=(
            Trap(
                value=lambda: 2 * run("sendmail", "tmpfs")["throughput_per_s"],
                told="The senders offer that much, but who does the work?",
            ),
            Trap(
                value=lambda: run("sendmail", "tmpfs")["throughput_per_s"],
                told="The senders were the limit before. Now there are twice as many.",
            ),
        ),
    ),
}
