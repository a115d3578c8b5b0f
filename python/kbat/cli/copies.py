"""New partition directories: which partitions are read, and where each of them is written."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kbat._core.locations import StoreTarget
from kbat.cli import output
from kbat.cli.location import Location
from kbat.cli.place import check_partition, is_partition, locate
from kbat.cli.progress import ProgressCallback, progress

T = TypeVar("T")

# The directory that a new file system contains.
_LOST_AND_FOUND = "lost+found"
# Largest length of a name to which a suffix is added, in bytes.
_MAX_STEM_LEN = 200


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
    if out.is_url:
        StoreTarget(str(out), **out.options)
        return
    target = Path(str(out))
    if target.is_dir() and all(entry.name == _LOST_AND_FOUND for entry in target.iterdir()):
        return
    if target.exists() or target.is_symlink():
        what = "is not empty" if target.is_dir() else "exists"
        message = f"{target} {what}, and nothing is overwritten: name a path that does not exist yet"
        raise ValueError(message)


def _shortened(name: str) -> str:
    """Make room for a suffix: file systems allow names of 255 bytes."""
    return os.fsencode(name)[:_MAX_STEM_LEN].decode(errors="ignore") if len(os.fsencode(name)) > _MAX_STEM_LEN else name


def _move_up(path: Path, target: Path) -> None:
    """Move everything in a directory to the one above it, each log after its indexes."""
    for entry in sorted(path.iterdir(), key=lambda entry: (entry.suffix == ".log", entry.name)):
        entry.replace(target / entry.name)
    path.rmdir()


@contextmanager
def staged(out: Location) -> Iterator[Path]:
    """Yield a path to write. What is written becomes the target when the block ends, and is removed if it fails.

    It is beside the target, or a temporary one that is uploaded.
    """
    if out.is_url:
        with StoreTarget(str(out), **out.options) as temporary:
            yield Path(temporary)
        return
    refuse_existing(out)
    target = Path(str(out))
    if target.is_symlink():
        target = target.resolve()
    is_new_parent = not target.parent.exists()
    target.parent.mkdir(parents=True, exist_ok=True)
    # beside the target, so that renaming it is one step, unless a file system is mounted there; readers and brokers
    # ignore a partition that is about to be deleted
    is_mount = target.is_mount()
    beside = target / "kbat-0" if is_mount else target.with_name(_shortened(target.name))
    path = beside.with_name(f"{beside.name}.kbat-writing-{os.getpid()}-delete")
    try:
        yield path
        if is_mount:
            _move_up(path, target)
        else:
            path.replace(target)
    except BaseException:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        if is_new_parent:
            with suppress(OSError):
                target.parent.rmdir()
        raise
