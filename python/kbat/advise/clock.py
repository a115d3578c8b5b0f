"""How long a stage of the measurement may take, and an order of visits that is spread over a log at every moment."""

import math
import time
from collections.abc import Iterator

# The golden section: multiples of it, without their whole part, are spread more evenly than those of any other number.
_STEP = (math.sqrt(5) - 1) / 2


class Deadline:
    """A moment at which a stage ends. Its stages share the time that is left."""

    def __init__(self, seconds: float) -> None:
        """Set the moment, from now."""
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the moment, 0 after it."""
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether the moment has passed."""
        return self.left == 0

    def part(self, share: float) -> "Deadline":
        """Return an earlier deadline, after a share (0 to 1) of the time that is left."""
        return Deadline(self.left * share)


def spread(count: int) -> Iterator[int]:
    """Return the numbers below a count, each once. The first of them, however many, are spread over the range."""
    seen = bytearray(count)
    for step in range(count):
        place = int(((step + 0.5) * _STEP % 1) * count)
        if not seen[place]:
            seen[place] = 1
            yield place
    yield from (place for place in range(count) if not seen[place])


def points(total: int) -> Iterator[int]:
    """Return numbers below a total without end. The first of them, however many, are spread over the range."""
    step = 0
    while total > 0:
        yield int(((step + 0.5) * _STEP % 1) * total)
        step += 1
