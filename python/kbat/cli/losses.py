"""The bytes that a command has skipped, on the standard error."""

from typing import NamedTuple

import kbat.results
from kbat.cli import output


class Lost(NamedTuple):
    """What scans have skipped: the number of corrupt ranges, and bytes and offsets, incomplete batches included."""

    ranges: int = 0
    bytes: int = 0
    offsets: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the counts as members of a JSON object."""
        return {"batches_skipped": self.ranges, "bytes_lost": self.bytes, "offsets_lost": self.offsets}


def lost_in(*stats: kbat.results.ScanStats | None) -> Lost:
    """Return what scans have skipped."""
    found = [one for one in stats if one is not None]
    return Lost(
        sum(one.batches_skipped for one in found),
        sum(one.bytes_lost for one in found),
        sum(one.offsets_lost for one in found),
    )


def note_uncounted(lost: Lost) -> None:
    """Report the corruption that sums do not include, if any."""
    if not lost.bytes and not lost.ranges:
        return
    size = output.size_text(lost.bytes)
    where = f"in {output.count_text(lost.ranges, 'corrupt range')}" if lost.ranges else "after the last complete batch"
    output.note(f"kbat: not counted: {size} {where}; 'kbat verify' lists it")


def note_losses(*stats: kbat.results.ScanStats | None) -> None:
    """Report what scans have skipped or returned twice, if anything."""
    if any(one is not None and one.segments_overlapping for one in stats):
        output.note("kbat: records may be repeated: a segment contains offsets of the next one; 'kbat verify' names it")
    found = lost_in(*stats)
    if not found.bytes:
        return
    lost = output.count_text(found.bytes, "byte")
    if found.ranges:
        ranges = output.count_text(found.ranges, "corrupt range")
        # those after the last intact batch are unknown
        offsets = f" and {output.count_text(found.offsets, 'offset')}" if found.offsets else ""
        output.note(f"kbat: skipped {ranges}: {lost}{offsets} lost; 'kbat verify' lists them")
    else:
        output.note(f"kbat: skipped {lost} after the last complete batch, which is normal while a broker writes")
