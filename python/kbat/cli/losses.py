"""The bytes that a command has skipped, on the standard error."""

import kbat
from kbat.cli import output


def note_losses(stats: kbat.ScanStats | None) -> None:
    """Report what a scan has skipped, if anything."""
    if stats is None or not stats.bytes_lost:
        return
    lost = output.count_text(stats.bytes_lost, "byte")
    if stats.batches_skipped:
        ranges = output.count_text(stats.batches_skipped, "corrupt range")
        offsets = output.count_text(stats.offsets_lost, "offset")
        output.note(f"kbat: skipped {ranges}: {lost} and {offsets} lost; 'kbat verify' lists them")
    else:
        output.note(f"kbat: skipped {lost} of an incomplete last batch, which is normal while a broker writes")
