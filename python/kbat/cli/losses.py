"""The bytes that a command has skipped, on the standard error."""

import kbat.results
from kbat.cli import output


def lost_in(stats: kbat.results.ScanStats | None) -> tuple[int, int]:
    """Return the number of corruptions that a scan has skipped, and their bytes."""
    return (0, 0) if stats is None else (stats.batches_skipped, stats.bytes_lost)


def note_uncounted(lost: tuple[int, int]) -> None:
    """Report the corruption that sums do not include, if any."""
    count, lost_bytes = lost
    if not lost_bytes and not count:
        return
    size = output.size_text(lost_bytes)
    where = f"in {output.count_text(count, 'corrupt range')}" if count else "after the last complete batch"
    output.note(f"kbat: not counted: {size} {where}; 'kbat verify' lists it")


def note_losses(*stats: kbat.results.ScanStats | None) -> None:
    """Report what scans have skipped, if anything."""
    found = [one for one in stats if one is not None]
    bytes_lost = sum(one.bytes_lost for one in found)
    if not bytes_lost:
        return
    lost = output.count_text(bytes_lost, "byte")
    if batches_skipped := sum(one.batches_skipped for one in found):
        ranges = output.count_text(batches_skipped, "corrupt range")
        offsets = output.count_text(sum(one.offsets_lost for one in found), "offset")
        output.note(f"kbat: skipped {ranges}: {lost} and {offsets} lost; 'kbat verify' lists them")
    else:
        output.note(f"kbat: skipped {lost} after the last complete batch, which is normal while a broker writes")
