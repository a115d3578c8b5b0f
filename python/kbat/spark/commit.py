"""The commit of a write: moves the segments of the tasks into the partitions.

```
<job>/<task>/orders-0/00…00.log .index .timeindex …   offsets from 0
                      │ sets base offsets and leader epochs in place, and names
                      ▼
<path>/orders-0/00…1250.log .index .timeindex …       offsets after the existing ones
```

The directory of a new partition is moved as a whole. In an existing partition, segments are moved in the order of their
offsets, each with its indexes first and its log last, so that a reader sees a growing log. Before anything moves,
`commit.json` in the job's directory lists the moves. From then on the write is committed: if the driver dies, the next
write to the path completes the moves. Until then, nothing of the write is visible.

A driver holds the lock of `<path>` from reading the existing offsets until the last file is moved, so that concurrent
commits run one after the other. Where locks have no effect, as between machines, existing files are never replaced: the
later write raises an error.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import json
import os
import struct
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import kbat
from kbat.spark.job import remove_job
from kbat.spark.topics import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_HEAD = struct.Struct(">qii")  # base offset, batch length, leader epoch
_LOG_OVERHEAD = 12
_CHECKPOINT = "leader-epoch-checkpoint"
_PLAN = "commit.json"


@dataclass(frozen=True)
class Fragment:
    """The log, from offset 0, that one task wrote for a partition."""

    partition: TopicPartition
    directory: str
    record_count: int


@dataclass(frozen=True)
class CommitOptions:
    """Whether a write replaces or extends its topics' partitions, and the settings of new partitions."""

    overwrite: bool = False
    leader_epoch: int | None = None
    has_metadata: bool = False
    num_partitions: int | None = None


def commit_fragments(path: Path, job: Path, fragments: Sequence[Fragment], options: CommitOptions) -> None:
    """Move fragments into the partitions, in their order, after the segments of earlier writes.

    Raises `FileExistsError` if a concurrent write, which the lock did not prevent, created the same files.
    """
    with _locked(path, fcntl.LOCK_EX):
        _finish_dead(path)
        _write_plan(job, _prepare(path, job, fragments, options))
        _carry_out(path, job)


def _prepare(path: Path, job: Path, fragments: Sequence[Fragment], options: CommitOptions) -> dict[str, list[str]]:
    """Build the new partitions and segments in the job's directory, and return the plan of the moves."""
    by_partition: dict[TopicPartition, list[Fragment]] = {}
    for fragment in fragments:
        by_partition.setdefault(fragment.partition, []).append(fragment)
    for partition in _without_rows(path, by_partition.keys(), options):
        by_partition[partition] = []
    ids = _topic_ids(path, {str(partition.topic) for partition in by_partition}, options)
    there = {} if options.overwrite else {partition: _Existing.of(path / str(partition)) for partition in by_partition}
    for partition, parts in sorted(by_partition.items()):
        existing = there.get(partition) or _Existing()
        epoch = existing.next_epoch(partition, options)
        made = job / "made" / str(partition)
        if parts:
            _assemble(parts, made, existing, epoch)
        else:
            kbat.LogWriter(made).close()
        _write_epochs(made, existing, epoch)
        if ids and not existing.is_there:
            (made / "partition.metadata").write_text(f"version: 0\ntopic_id: {ids[str(partition.topic)]}")
    topics = {partition.topic for partition in by_partition} if options.overwrite else set()
    remove, move = _partitions_of(path, topics), [str(partition) for partition in sorted(by_partition)]
    for name in move:
        if name not in remove:
            _names_taken(job / "made" / name, path / name)
    return {"remove": remove, "move": move}


def finish_commits(path: Path) -> None:
    """Complete the commits of drivers that died during them.

    Does nothing while another driver commits, as that driver did this before it began.
    """
    if any(_plans(path)):
        with contextlib.suppress(BlockingIOError), _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            _finish_dead(path)


def is_committed(job: Path) -> bool:
    """Whether a job's write is committed, although some files may not be moved yet."""
    return (job / _PLAN).exists()


def _write_plan(job: Path, plan: dict[str, list[str]]) -> None:
    new = job / f"{_PLAN}.new"
    with new.open("w") as file:
        json.dump(plan, file)
        file.flush()
        os.fsync(file.fileno())
    new.rename(job / _PLAN)


@contextlib.contextmanager
def _locked(path: Path, operation: int) -> Iterator[None]:
    """Hold the lock of the target directory. The directory itself is locked, so that no lock file remains."""
    held = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(held, operation)
        yield
    finally:
        os.close(held)


def _plans(path: Path) -> Iterator[Path]:
    return path.glob(f".kbat-*/{_PLAN}")


def _finish_dead(path: Path) -> None:
    """Complete all existing plans. The caller holds the lock, so their drivers are dead."""
    for plan in sorted(_plans(path)):
        _carry_out(path, plan.parent)
        remove_job(plan.parent)


def _carry_out(path: Path, job: Path) -> None:
    """Do the remaining moves of a job's plan."""
    try:
        plan = json.loads((job / _PLAN).read_text())
    except FileNotFoundError:
        return  # a concurrent write, which the lock did not prevent, has completed it
    try:
        _carry_out_plan(path, job, plan)
    except OSError as error:
        error.add_note(
            f"kbat: the write is committed; the next write to {path} moves the remaining files, unless you remove {job}"
        )
        raise
    (job / _PLAN).unlink()


def _carry_out_plan(path: Path, job: Path, plan: dict[str, list[str]]) -> None:
    removed = job / "removed"
    removed.mkdir(exist_ok=True)
    for name in plan["remove"]:
        if not (removed / name).exists():
            (path / name).rename(removed / name)
    for name in plan["move"]:
        if (made := job / "made" / name).exists():
            _move(made, path / name)


def _without_rows(path: Path, written: Iterable[TopicPartition], options: CommitOptions) -> list[TopicPartition]:
    """Return the partitions that `numPartitions` requires and that neither exist nor were written.

    A key only goes to the same partition in each write if the number of partitions stays the same.
    """
    topics = {partition.topic for partition in written}
    wanted = [TopicPartition(topic, number) for topic in topics for number in range(options.num_partitions or 0)]
    there = set(written)
    return [
        partition
        for partition in wanted
        if partition not in there and (options.overwrite or not (path / str(partition)).exists())
    ]


@dataclass(frozen=True)
class _Existing:
    """A partition before the write; `producers` is the snapshot of its producers at its end."""

    is_there: bool = False
    end_offset: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    producers: bytes | None = None

    @classmethod
    def of(cls, directory: Path) -> _Existing:
        """Inspect a directory, which no broker and no other writer may have open.

        Raises `kbat.CorruptError` if the last segment is corrupt, as nothing can be appended to it.
        """
        if not directory.exists():
            return cls()
        _check_end(directory)
        with kbat.LogWriter(directory) as log:
            end_offset = log.end_offset
        snapshot = directory / f"{end_offset:020}.snapshot"
        return cls(
            is_there=True,
            end_offset=end_offset,
            epochs=tuple(kbat.PartitionLog(directory).leader_epochs),
            producers=snapshot.read_bytes() if snapshot.exists() else None,
        )

    def next_epoch(self, partition: TopicPartition, options: CommitOptions) -> int:
        """Return the leader epoch of the new segments. Raises `ValueError` if it is below the latest one."""
        latest = self.epochs[-1][0] if self.epochs else 0
        if options.leader_epoch is not None and options.leader_epoch < latest:
            message = f"kbat: option leaderEpoch={options.leader_epoch} is below {latest}, the latest of {partition}"
            raise ValueError(message)
        return latest if options.leader_epoch is None else options.leader_epoch


def _check_end(directory: Path) -> None:
    """Raise if the last segment is corrupt, as a writer would truncate it. It may end with an incomplete batch."""
    try:
        for last in kbat.PartitionLog(directory).segments[-1:]:
            for _ in kbat.scan(last.path, columns=["offset"]).to_batches():
                pass
    except kbat.CorruptError as error:
        error.add_note(
            "kbat: nothing was written, because appending would remove the batches after the corruption; run `kbat "
            f"verify {directory}`, then `kbat salvage` to keep all readable batches, or `kbat recover` to truncate"
        )
        raise


def _assemble(parts: Sequence[Fragment], made: Path, existing: _Existing, epoch: int) -> None:
    """Set the offsets and names of the segments of some fragments, and collect them in one directory.

    The fragments have no producers, so the producers of the partition do not change.
    """
    made.mkdir(parents=True)
    offset = existing.end_offset
    for part in parts:
        for file in sorted(Path(part.directory).iterdir()):
            base, dot, kind = file.name.partition(".")
            if not dot or not base.isdecimal():
                continue
            target = made / f"{int(base) + offset:020}.{kind}"
            if kind == "snapshot" and existing.producers is not None:
                if int(base) + offset > existing.end_offset:
                    target.write_bytes(existing.producers)
                continue
            if kind == "log":
                _renumber(file, offset, epoch)
            file.rename(target)
        offset += part.record_count


def _renumber(log: Path, offset: int, epoch: int) -> None:
    """Add to each batch's base offset, and set its leader epoch; neither is covered by the checksum."""
    with log.open("r+b", buffering=0) as file:
        position, end = 0, os.fstat(file.fileno()).st_size
        while position < end:
            base, batch_len, _ = _HEAD.unpack(os.pread(file.fileno(), _HEAD.size, position))
            os.pwrite(file.fileno(), _HEAD.pack(base + offset, batch_len, epoch), position)
            position += _LOG_OVERHEAD + batch_len
        os.fsync(file.fileno())


def _write_epochs(made: Path, existing: _Existing, epoch: int) -> None:
    epochs = list(existing.epochs)
    if not epochs or epochs[-1][0] < epoch:
        epochs.append((epoch, existing.end_offset))
    lines = ["0", str(len(epochs)), *(f"{number} {start}" for number, start in epochs)]
    (made / _CHECKPOINT).write_text("\n".join(lines) + "\n")


def _partitions_of(path: Path, topics: set[str]) -> list[str]:
    """Return the names of the topics' directories. Raises if another process writes to one."""
    logs = [log for log in kbat.LogDirectory(path).partitions if log.topic in topics]
    for log in logs:
        # corruption does not matter, as the partition will be replaced
        with contextlib.suppress(kbat.CorruptError), kbat.LogWriter(log.directory):
            pass
    return [Path(log.directory).name for log in logs]


def _move(made: Path, directory: Path) -> None:
    if not directory.exists():
        made.rename(directory)  # fails if the directory was created in the meantime
        return
    taken = _names_taken(made, directory)
    names = sorted(file.name for file in made.iterdir())
    for name in sorted(names, key=lambda name: (name != _CHECKPOINT, name.partition(".")[0], name.endswith(".log"))):
        if name in taken:
            (made / name).replace(directory / name)
        else:
            _move_to_new(made / name, directory / name)


def _names_taken(made: Path, directory: Path) -> set[str]:
    """Return the files that replace existing ones: the checkpoint, and those of an empty last segment.

    Raises `FileExistsError` for any other existing file.
    """
    taken = {file.name for file in made.iterdir() if _is_other(directory / file.name, file)}
    for name in sorted(taken - {_CHECKPOINT}):
        log = directory / f"{name.partition('.')[0]}.log"
        if not (log.exists() and log.stat().st_size == 0):
            raise _taken(directory / name)
    return taken


def _move_to_new(file: Path, target: Path) -> None:
    """Move a file to an unused name. Renaming would replace an existing file, so the file is linked if possible."""
    try:
        target.hardlink_to(file)
    except OSError as error:
        if _is_other(target, file):
            raise _taken(target) from error
        if not target.exists():  # the file system does not support links
            file.rename(target)
            return
    file.unlink(missing_ok=True)


def _is_other(target: Path, file: Path) -> bool:
    """Whether a name belongs to another file than `file`, which a driver that died may have linked to it."""
    return target.exists() and not target.samefile(file)


def _taken(target: Path) -> FileExistsError:
    message = "kbat: a concurrent write created this file, and the lock did not prevent it; nothing was replaced"
    return FileExistsError(errno.EEXIST, message, os.fspath(target))


def _topic_ids(path: Path, topics: set[str], options: CommitOptions) -> dict[str, str]:
    """Return the id of each topic for its new partitions, as in its existing ones; empty if ids are not enabled."""
    if not options.has_metadata:
        return {}
    ids = {topic: base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for topic in sorted(topics)}
    if not options.overwrite:
        for log in kbat.LogDirectory(path).partitions:
            if log.topic in ids and (there := kbat.PartitionLog(log.directory).topic_id) is not None:
                ids[log.topic] = there
    return ids
