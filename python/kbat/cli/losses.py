"""The bytes that a command has skipped, on the standard error."""

import kbat
from kbat.cli import output


def note_losses(*stats: kbat.ScanStats | None) -> None:
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
        output.note(f"kbat: skipped {lost} of an incomplete last batch, which is normal while a broker writes")
