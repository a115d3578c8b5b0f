"""The bytes of the batches of a log: without the zeros at the end of preallocated segments, which cost nothing."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

import kbat.results
from kbat._core.locations import StoredFile
from kbat.advise.clock import Deadline
from kbat.advise.headers import Survey
from kbat.advise.sample import Stratum
from kbat.cli.location import of_file

# Bytes of the header of a batch, which is never only zeros.
_HEADER_LEN = 61
_ERRORS = (kbat.KbatError, OSError, ValueError)


def batch_bytes(
    parts: Sequence[Stratum],
    found: Survey,
    deadline: Deadline,
    **options: Any,  # noqa: ANN401 - how kbat.scan opens a store
) -> list[int]:
    """Return the bytes of the batches of each stratum.

    If all headers were read, they are exact. Otherwise they are the sizes of the files without the zeros at their ends,
    as far as these are found before the deadline.
    """
    if found.is_complete:
        return [sum(found.topic_bytes[topic] for topic in one.topics) for one in parts]
    return [one.size - sum(_zeros(segment, deadline, options) for segment in _last(one)) for one in parts]


def _last(stratum: Stratum) -> list[kbat.results.SegmentFile]:
    """Return the last segment of each partition: brokers preallocate no other ones."""
    last: dict[str, kbat.results.SegmentFile] = {}
    for one in stratum.segments:
        key = one.path if one.base_offset is None else os.fspath(PurePath(one.path).parent)
        if key not in last or (one.base_offset or 0) >= (last[key].base_offset or 0):
            last[key] = one
    return list(last.values())


def _zeros(segment: kbat.results.SegmentFile, deadline: Deadline, options: dict[str, Any]) -> int:
    """Return the number of zeros after the last batch of a segment; 0 if it ends in something else, or is too late."""
    if deadline.is_over:
        return 0
    # remote segments are complete, and are not files at these paths
    with suppress(*_ERRORS):
        file = StoredFile(segment.path, **of_file(options))
        if any(file.read_at(max(0, segment.size - _HEADER_LEN), _HEADER_LEN)):
            return 0
        log = kbat.Segment(segment)
        if log.incomplete_bytes:
            return 0
        place = log.find_offset(log.end_offset - 1) if log.end_offset > log.base_offset else None
        return segment.size - (0 if place is None else place.position + place.size)
    return 0
