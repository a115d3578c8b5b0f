"""Files of records: Parquet, Arrow, CSV and JSON lines."""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import kbat.results
from kbat._core.text import write_records
from kbat.cli.place import quiet
from kbat.cli.progress import ProgressCallback

# Bytes of a log that a thread formats at once. The text is in memory until it is written, and may be much longer.
_PART_LEN = 4 << 20

Segments = Sequence[kbat.results.SegmentFile]
Part = tuple[str, int, int]


class Settings(NamedTuple):
    """How records are read and written: `scan` has the bounds of `kbat.scan`, `store` how it opens a location."""

    output_format: str
    scan: dict[str, Any]
    store: dict[str, Any]
    compression: str | None
    threads: int


class Written(NamedTuple):
    """A file that was written."""

    path: Path
    records: int


class RecordFiles:
    """Writes files of records.

    Args:
        settings: How records are read and written.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.output_format = settings.output_format
        #: What the scans have read and lost.
        self.stats: list[kbat.results.ScanStats] = []

    def write(self, path: Path, segments: Segments, callback: ProgressCallback | None) -> list[Written]:
        """Write the records of some segments to one file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            if self.output_format == "parquet":
                return self.write_parquet(path, segments, [], callback)
            if self.output_format == "arrow":
                return [self._write_arrow(path, segments, callback)]
            return [self._write_text(path, segments, callback)]
        except OSError as error:
            # an error of reading names its file, and one of a store has no number
            if error.filename is None and error.errno is not None:
                error.filename = os.fspath(path)
            raise

    def write_parquet(
        self, path: Path, segments: Segments, partition_by: Sequence[str], callback: ProgressCallback | None
    ) -> list[Written]:
        """Write a Parquet file, or a directory with a file for each value of some columns."""
        scan = self._scan(segments)
        files = kbat.write_parquet(
            scan,
            path,
            partition_by=partition_by,
            compression=self._settings.compression or "snappy",
            threads=self._settings.threads,
            progress=callback,
        )
        if partition_by:
            path.mkdir(exist_ok=True)  # without rows there is no directory
        self._count(scan)
        return [Written(Path(one.path), one.row_count) for one in files]

    def _write_arrow(self, path: Path, segments: Segments, callback: ProgressCallback | None) -> Written:
        import pyarrow as pa  # noqa: PLC0415 - slow

        scan = self._scan(segments)
        codec: Any = self._settings.compression
        options = pa.ipc.IpcWriteOptions(compression=None if codec == "none" else codec)
        records = 0
        with pa.ipc.new_file(str(path), scan.schema, options=options) as writer:
            for batch in scan.to_batches(threads=self._settings.threads, progress=callback):
                writer.write_batch(batch)
                records += batch.num_rows
        self._count(scan)
        return Written(path, records)

    def _write_text(self, path: Path, segments: Segments, callback: ProgressCallback | None) -> Written:
        with path.open("wb") as file:
            # each part would look for the transactions of the whole log
            if self._settings.threads == 1 or self._settings.scan["isolation"] == "read_committed":
                scan = self._scan(segments)
                form = self.output_format
                records, _ = write_records(scan, file.write, output_format=form, progress=callback)
                self._count(scan)
                return Written(path, records)
            parts = kbat.split(list(segments), _PART_LEN, **self._settings.store)
            total = sum(end - start for _, start, end in parts)
            done = records = 0
            for (_, start, end), (text, count) in zip(parts, self._formatted(parts), strict=True):
                file.writelines(text)
                records += count
                done += end - start
                if callback is not None:
                    callback(done, total)
        return Written(path, records)

    def _formatted(self, parts: Sequence[Part]) -> Iterator[tuple[list[bytes], int]]:
        """Yield the text of parts of files in their order, and the number of records, while threads format others."""
        threads = self._settings.threads
        running: deque[Future[tuple[list[bytes], int]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for index, part in enumerate(parts):
                    running.append(pool.submit(self._format, part, is_first=index == 0))
                    if len(running) > threads:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()
            finally:
                for one in running:
                    one.cancel()

    def _format(self, part: Part, *, is_first: bool) -> tuple[list[bytes], int]:
        text: list[bytes] = []
        scan = self._scan([part])
        form = self.output_format
        records, _ = write_records(scan, text.append, output_format=form, header=is_first)
        self._count(scan)
        return text, records

    def _scan(self, sources: Sequence[kbat.results.SegmentFile | Part]) -> kbat.Scan:
        with quiet():
            return kbat.scan(list(sources), **self._settings.scan, **self._settings.store)

    def _count(self, scan: kbat.Scan) -> None:
        if scan.stats is not None and (scan.stats.bytes_lost or not self.stats):
            self.stats.append(scan.stats)
