"""NFS version 3 as it is on the wire: which calls there are, and how long they are.

Models: a call and its reply as sizes, with the file and the bytes it is about.
Counterpart: RFC 1813; include/linux/nfs3.h; headers of RPC with AUTH_SYS (RFC 5531).
Invariants: a call that carries data is that much longer, one that asks for data has a reply that
 much longer.
Left out: attributes and names themselves, versions 2 and 4, the mount protocol and portmap.
"""

from dataclasses import dataclass
from typing import Final

NFS_PORT: Final = 2049

# What a call or a reply without data takes: RPC header with AUTH_SYS and a record mark 72, a file
# handle 36, names and attributes; replies with attributes before and after.
CALL_BYTES: Final = 140
REPLY_BYTES: Final = 230

LOOKUP: Final = "LOOKUP"
CREATE: Final = "CREATE"
MKDIR: Final = "MKDIR"
REMOVE: Final = "REMOVE"
RMDIR: Final = "RMDIR"
RENAME: Final = "RENAME"
LINK: Final = "LINK"
SETATTR: Final = "SETATTR"
READ: Final = "READ"
WRITE: Final = "WRITE"  # UNSTABLE: the server may answer before it is on a disk,
WRITE_STABLE: Final = "WRITE FILE_SYNC"  # or not.
COMMIT: Final = "COMMIT"

CARRIES_DATA: Final = frozenset({WRITE, WRITE_STABLE})
BRINGS_DATA: Final = frozenset({READ})


@dataclass(frozen=True, slots=True)
class NfsCall:
    """One call: what is asked, and of how many bytes."""

    procedure: str
    nbytes: int = 0

    @property
    def call_bytes(self) -> int:
        """Return its length on the wire."""
        return CALL_BYTES + (self.nbytes if self.procedure in CARRIES_DATA else 0)

    @property
    def reply_bytes(self) -> int:
        """Return the length of its reply."""
        return REPLY_BYTES + (self.nbytes if self.procedure in BRINGS_DATA else 0)
