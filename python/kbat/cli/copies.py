"""New partition directories: which partitions are read, and where each of them is written."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kbat._core.locations import OutputTarget, refuse_inside
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.place import check_partition, is_partition, locate
from kbat.cli.progress import ProgressCallback, progress

T = TypeVar("T")


@dataclass(frozen=True)
class Copy:
    """A partition directory, and the directory in which it is written."""

    source: Location
    target: Location

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of functions of the package that read the one and write the other."""
        return self.target.options | self.source.options


def copies(path: Location, out: Location, **chosen: Any) -> list[Copy]:  # noqa: ANN401 - those of kbat.scan
    """Return what to write: a partition as `out` itself, those of a log directory as directories in `out`.

    Raises:
        ValueError: A target exists, or the path is not a log.
        NothingToReadError: An empty directory.
    """
    segments = locate([path], **chosen).segments
    if is_partition(path, segments):
        check_partition(path)
        found = [Copy(path, out)]
    else:
        directories = dict.fromkeys(path.at(segment.path).parent for segment in segments)
        found = [Copy(one, out.child(one.name)) for one in directories]
    for one in found:
        refuse_existing(one.target)
    refuse_inside(str(path), str(out), **Copy(path, out).options)
    return found


def run_each(what: str, found: Sequence[Copy], work: Callable[[Copy, ProgressCallback | None], T]) -> list[T]:
    """Call a function for each partition, with progress. If it fails, a line shows how many partitions are complete."""
    results: list[T] = []
    for one in found:
        try:
            with progress(f"{what} {one.source.name}") as callback:
                results.append(work(one, callback))
        except BaseException:
            if results:
                complete = f"{len(results)} of {output.count_text(len(found), 'partition')}"
                output.note(f"kbat: {complete} were written completely to {found[0].target.parent}")
            raise
    return results


def refuse_existing(out: Location) -> None:
    """Refuse to write a file that exists, or a directory that is not empty."""
    OutputTarget(str(out), **out.options)


@contextmanager
def staged(out: Location) -> Iterator[Path]:
    """Yield a path to write. What is written becomes the target when the block ends, and is removed if it fails."""
    with OutputTarget(str(out), **out.options) as path:
        yield Path(path)
