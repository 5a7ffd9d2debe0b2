"""What a power cut leaves of a file system, once it has been recovered.

Models: a look at the files after the next boot: journal replayed, fsck content.
Linux counterpart: fs/jbd/recovery.c and what its callers promise (fsync(2), open(2) O_SYNC).
Invariants: looking changes nothing; a file is complete if all of its recorded size would be read
back as it was written last.
Left out: torn writes: a request that had not ended counts as not begun; what a stale block holds.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class RemainingFile:
    """A file under its name after recovery."""

    size_bytes: int
    is_complete: bool


@dataclass(frozen=True, kw_only=True)
class Remains:
    """What is there after recovery, paths from the file system's root on ("/a/b")."""

    kind: str  # such as "ext3, data=ordered"
    files: dict[str, RemainingFile] = field(default_factory=dict)
    lost_changes: int = 0  # changes of names and sizes in transactions that are not on the medium
    last_durable: int = 0  # the newest transaction that is, where there are transactions
    damage: tuple[str, ...] = ()  # what recovery cannot mend

    def has(self, path: str, size_bytes: int) -> bool:
        """Return whether the file is there with at least that size, and complete."""
        found = self.files.get(path)
        return found is not None and found.is_complete and found.size_bytes >= size_bytes
