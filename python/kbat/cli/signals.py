"""Signals that end a process, such as those of systemd, `timeout` and a closed terminal."""

import signal
from types import FrameType


class Stopped(KeyboardInterrupt):
    """The process has to end because of a signal other than that of Ctrl-C."""

    def __init__(self, number: int) -> None:
        """Store the number of the signal."""
        super().__init__(number)
        self.number = number


def stop_at_signals() -> None:
    """Raise `Stopped` at such a signal, so that incomplete files are removed as after Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _stop)


def _stop(number: int, _: FrameType | None) -> None:
    raise Stopped(number)
