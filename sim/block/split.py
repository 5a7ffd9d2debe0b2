"""Bios longer than a request may be.

Models: such a bio, or a discard longer than the device's, goes down in pieces, each a bio of its
own, and ends with the last of them.
Linux counterpart: blk_queue_split and bio_chain, block/blk-merge.c (4.3). Before 4.3 nobody could
make one: bio_add_page stopped at the queue's limit, so that the submitter sent the same pieces.
Invariants: the pieces cover the bio; it ends once, after all of them, never before it is submitted.
Left out: splitting for segments alone.
"""

from typing import TYPE_CHECKING

from sim.block.bio import DISCARD, Bio

if TYPE_CHECKING:
    from sim.block.queue import Disk


def longest(disk: "Disk", op: int) -> int:
    """Return how many sectors a bio may have and go down in one piece."""
    return disk.max_discard_sectors if op == DISCARD else disk.max_sectors


def submit_pieces(disk: "Disk", bio: Bio, max_sectors: int) -> bool:
    """Take over a single long bio; False when its next piece (``bio.clone``) needs a slot."""
    assert bio.count == 1
    end = bio.sector + bio.nr_sectors
    piece = bio.clone
    if piece is None:
        piece = _piece(bio, bio.sector, max_sectors, end)
    while disk.submit_bio(piece):
        if piece.sector + piece.nr_sectors == end:
            bio.clone = None
            bio.submitted = 1
            bio.pending -= 1  # It was 1 for being submitted; the pieces count on their own.
            return True
        piece = _piece(bio, piece.sector + piece.nr_sectors, max_sectors, end)
    bio.clone = piece
    return False


def _piece(bio: Bio, sector: int, max_sectors: int, end: int) -> Bio:
    sectors = min(max_sectors, end - sector)
    piece = Bio(bio.op, sector, sectors, _end_piece, bio, 1, bio.flags, bio.task_id)
    piece.plug = bio.plug
    piece.partition = bio.partition
    bio.pending += 1
    return piece


def _end_piece(piece: Bio) -> None:
    bio = piece.private
    assert isinstance(bio, Bio)
    bio.pending -= 1
    if bio.pending == 0:
        if bio.end_part is not None:
            bio.end_part(bio, bio.sector, 1)
        bio.end_io(bio)
