"""Ranges of offsets and times."""


def check_ranges(
    start_offset: int | None, end_offset: int | None, start_time: int | None, end_time: int | None
) -> None:
    """Refuse a range that ends before it starts. One without records is accepted.

    Raises:
        ValueError: Its end is before its start.
    """
    for name, start, end in (("offset", start_offset, end_offset), ("time", start_time, end_time)):
        if start is not None and end is not None and start > end:
            message = f"--start-{name} is after --end-{name}, so no record is between them: swap the two values"
            raise ValueError(message)
