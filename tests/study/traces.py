"""Reading what the trace writes, for tests: protobuf fields and struct blk_io_trace, by hand."""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

BLK_IO_TRACE = struct.Struct("<IIQQIIIIIHH")  # include/uapi/linux/blktrace_api.h


class Event(NamedTuple):
    """One struct blk_io_trace, with what follows it."""

    magic: int
    sequence: int
    time_ns: int
    sector: int
    bytes: int
    action: int
    pid: int
    device: int
    cpu: int
    error: int
    pdu: bytes

    @property
    def letter(self) -> str:
        """Return the action as blkparse prints it; "n": a note."""
        if self.action >> 16 & 1 << 10:
            return "n"
        return "?QMFGSRDCPUTI"[self.action & 0xFF]


def blktrace(path: Path) -> list[Event]:
    """Return the events of one file."""
    content = path.read_bytes()
    events = []
    at = 0
    while at < len(content):
        *head, pdu_len = BLK_IO_TRACE.unpack_from(content, at)
        at += BLK_IO_TRACE.size
        events.append(Event(*head, content[at : at + pdu_len]))
        at += pdu_len
    assert at == len(content)
    return events


def merged(folder: Path, disk: str) -> list[Event]:
    """Return all of a disk's events in order of time; those of one moment by CPU."""
    cpus = sorted(folder.glob(f"{disk}.blktrace.*"), key=lambda path: int(path.suffix[1:]))
    return sorted((one for path in cpus for one in blktrace(path)), key=lambda one: one.time_ns)


Fields = dict[int, list]


def varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(content: bytes) -> Fields:
    """Return the fields of a message: numbers as int, doubles as float, others as bytes."""
    found: Fields = defaultdict(list)
    at = 0
    while at < len(content):
        key, at = varint(content, at)
        if key & 7 == 0:
            value, at = varint(content, at)
        elif key & 7 == 1:
            [value] = struct.unpack_from("<d", content, at)
            at += 8
        else:
            assert key & 7 == 2, key
            size, at = varint(content, at)
            value = content[at : at + size]
            at += size
        found[key >> 3].append(value)
    assert at == len(content)
    return found


class Slice(NamedTuple):
    """Something drawn on a track."""

    track: str  # "parent/name", or a task's name and pid
    start_ns: int
    end_ns: int | None
    name: str
    depth: int


class Switch(NamedTuple):
    now_ns: int
    cpu: int
    prev_pid: int
    prev_state: int
    next_pid: int


class Blocked(NamedTuple):
    now_ns: int
    pid: int
    where: str
    is_iowait: bool


@dataclass
class PerfettoTrace:
    """What trace_processor would make of a file."""

    slices: list[Slice] = field(default_factory=list)
    switches: list[Switch] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    wakings: list[tuple[int, int]] = field(default_factory=list)  # when, who
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    names: dict[int, str] = field(default_factory=dict)  # of tasks

    def running_ns(self, to_ns: int) -> Counter[int]:
        """Return how long each task runs; who runs at the end runs until then."""
        ran: Counter[int] = Counter()
        since: dict[int, tuple[int, int]] = {}
        for one in self.switches:
            pid, start_ns = since.get(one.cpu, (one.prev_pid, one.now_ns))
            assert pid == one.prev_pid
            ran[pid] += one.now_ns - start_ns
            since[one.cpu] = (one.next_pid, one.now_ns)
        for pid, start_ns in since.values():
            ran[pid] += to_ns - start_ns
        return ran


def perfetto(path: Path) -> PerfettoTrace:
    """Read a file: packets by time, those of one moment in the order of the file."""
    trace = PerfettoTrace()
    interned: dict[tuple[int, int], str] = {}
    tracks: dict[int, str] = {}
    events: list[tuple[int, Fields]] = []
    for content in fields(path.read_bytes())[1]:
        packet = fields(content)
        assert packet[10] == [1]
        for data in packet[12]:
            for number, entries in fields(data).items():
                for entry in map(fields, entries):
                    assert (number, entry[1][0]) not in interned
                    interned[number, entry[1][0]] = entry[2][0].decode()
        for descriptor in map(fields, packet[60]):
            tracks[descriptor[1][0]] = _track_name(descriptor, tracks)
        for tree in map(fields, packet[2]):
            for process in map(fields, tree[1]):
                trace.names[process[1][0]] = process[3][0].decode()
        for bundle in map(fields, packet[1]):
            [cpu] = bundle[1]
            for event in map(fields, bundle[2]):
                _ftrace(trace, cpu, event, interned)
        for event in map(fields, packet[11]):
            events.append((packet[8][0], event))
    trace.switches.sort(key=lambda one: one.now_ns)
    _draw(trace, sorted(events, key=lambda pair: pair[0]), tracks, interned)
    return trace


def _track_name(descriptor: Fields, tracks: dict[int, str]) -> str:
    for thread in map(fields, descriptor[4]):
        return f"{thread[5][0].decode()} {thread[2][0]}"
    name = descriptor[2][0].decode()
    return f"{tracks[descriptor[5][0]]}/{name}" if descriptor[5] else name


def _ftrace(
    trace: PerfettoTrace, cpu: int, event: Fields, interned: dict[tuple[int, int], str]
) -> None:
    [now_ns] = event[1]
    for one in map(fields, event[4]):
        trace.switches.append(Switch(now_ns, cpu, one[2][0], one[4][0], one[6][0]))
    for one in map(fields, event[18]):
        where = interned[26, one[2][0]]
        trace.blocked.append(Blocked(now_ns, one[1][0], where, bool(one[3][0])))
    for one in map(fields, event[20]):
        trace.wakings.append((now_ns, one[2][0]))
    for one in map(fields, event[235]):
        trace.names[one[1][0]] = one[2][0].decode()


def _draw(
    trace: PerfettoTrace,
    events: list[tuple[int, Fields]],
    tracks: dict[int, str],
    interned: dict[tuple[int, int], str],
) -> None:
    opened: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for now_ns, event in events:
        [kind], [track] = event[9], event[11]
        if kind == 4:
            [value] = event[30] or event[44]
            trace.counters[tracks[track]].append((now_ns, value))
        elif kind == 1:
            name = event[23][0].decode() if event[23] else interned[2, event[10][0]]
            opened[track].append((now_ns, name))
        else:
            assert kind == 2
            start_ns, name = opened[track].pop()
            depth = len(opened[track])
            trace.slices.append(Slice(tracks[track], start_ns, now_ns, name, depth))
    for track, left in opened.items():
        for depth, (start_ns, name) in enumerate(left):
            trace.slices.append(Slice(tracks[track], start_ns, None, name, depth))


def of_track(trace: PerfettoTrace, track: str) -> Iterator[Slice]:
    """Yield what is drawn on the tracks of a name."""
    return (one for one in trace.slices if one.track == track)
