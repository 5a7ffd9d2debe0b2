"""/proc/cpuinfo: how many CPUs, which, and at what clock rate.

Models: `cat /proc/cpuinfo`.
Linux counterpart: arch/x86/kernel/cpu/proc.c:show_cpuinfo.
Invariants: the number of CPUs is known at the end, when all blocks were seen.
Left out: everything but the model and the clock rate; lines that a terminal wrapped are taken as
the rest of the flags.
"""

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink

KEYS: Final = frozenset(
    {
        "processor",
        "vendor_id",
        "cpu family",
        "model",
        "model name",
        "stepping",
        "microcode",
        "cpu MHz",
        "cache size",
        "physical id",
        "siblings",
        "core id",
        "cpu cores",
        "apicid",
        "initial apicid",
        "fpu",
        "fpu_exception",
        "cpuid level",
        "wp",
        "flags",
        "vmx flags",
        "bugs",
        "bogomips",
        "TLB size",
        "clflush size",
        "cache_alignment",
        "address sizes",
        "power management",
        "fdiv_bug",
        "hlt_bug",
        "f00f_bug",
        "coma_bug",
    }
)
_ENTRY: Final = re.compile(r"(?P<key>[A-Za-z_0-9 ]+?)\s*:\s?(?P<value>.*)")
_FLAGS: Final = re.compile(r"[a-z0-9_]+( [a-z0-9_]+)+")
_MHZ: Final = re.compile(r"\d+\.\d{3}")


@dataclass
class CpuinfoReader:
    """Takes blocks of /proc/cpuinfo."""

    sink: Sink
    format: ClassVar[str] = "cpuinfo"
    cpu: str = ""
    cpus: int = 0
    after_flags: bool = False

    def feed(self, line: Line) -> bool:
        """Take a line with a known key, or the rest of the flags."""
        text = line.text.strip()
        found = _ENTRY.fullmatch(text)
        if found is None or found["key"] not in KEYS:
            return self.after_flags and _FLAGS.fullmatch(text) is not None
        self.after_flags = found["key"] == "flags"
        return self._entry(line, found["key"], found["value"].strip())

    def close(self) -> None:
        """Keep the number of CPUs as a fact."""
        if self.cpus:
            self.sink.learn("cpus", str(self.cpus))

    def _entry(self, line: Line, key: str, value: str) -> bool:
        if key == "processor":
            if not value.isdecimal():
                return False
            self.cpu = value
            self.cpus += 1
        elif not self.cpu:
            return False
        elif key == "model name":
            self.sink.learn("cpu_model", value)
        elif key == "cpu MHz":
            self._clock(line, value)
        return True

    def _clock(self, line: Line, value: str) -> None:
        if not _MHZ.fullmatch(value):
            self.sink.skip(line, "not a clock rate")
            return
        self.sink.learn("cpu_mhz", value)
        self.sink.add(
            line,
            "cpu",
            self.cpu,
            {"clock_mhz": float(value)},
            time_s=None,
            since_boot=False,
            report=0,
        )
