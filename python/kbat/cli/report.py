"""`kbat report`: one web page about a log, which works offline."""

import importlib.util
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any

import typer

import kbat.results
from kbat.cli import output
from kbat.cli.grouping import nothing_counted
from kbat.cli.guard import FailedError
from kbat.cli.location import Location
from kbat.cli.options import (
    Json,
    LeavePageCache,
    Partitions,
    PathsArgument,
    Replicas,
    ReplicasOption,
    Topics,
    choice_option,
    number_option,
    selection,
    target,
)
from kbat.cli.place import locate, word
from kbat.cli.progress import progress
from kbat.cli.stores import opens_logs
from kbat.cli.verify import message_of, next_commands

if TYPE_CHECKING:
    from kbat.report import Check, Report

# Bytes up to which everything is verified by default.
_VERIFIED_LEN = 4 << 30
# Findings up to which the page shows the commands that help.
_MAX_FINDINGS = 200
_MAX_SECONDS = 3600


class Verify(StrEnum):
    """When a report verifies every byte."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@opens_logs
def report(  # noqa: PLR0913 - options
    paths: PathsArgument,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", parser=target, help="File to write. It replaces only another report."
        ),
    ] = Path("report.html"),
    topic: Topics = None,
    partition: Partitions = None,
    replicas: ReplicasOption = Replicas.ERROR,
    verify: Annotated[
        Verify,
        choice_option(
            Verify,
            "--verify",
            help="Verify every byte, as `kbat verify` does, or read only headers. auto verifies logs of up to 4 GiB.",
        ),
    ] = Verify.AUTO,
    seconds: Annotated[
        int,
        number_option(1, "--seconds", largest=_MAX_SECONDS, help="About how long to measure codecs for the advice."),
    ] = 5,
    leave_page_cache: LeavePageCache = False,
    json: Json = False,
) -> None:
    """Write a web page about a log: sizes over time, codecs, batches, producers, lag, compaction, findings, advice.

    The page is one file of about 5 MiB. It needs no network, and loads nothing. Its plots show figures when you point
    at them, and its tables can be sorted and searched. It contains names of topics, producer ids and paths, but no keys
    or values. Reads the headers of all batches, and a sample of the records for the advice of `kbat advise`.

    Needs Plotly: `pip install 'kbat[report]'`

    Examples: `kbat report /var/lib/kafka/data -o report.html`, `kbat report data --topic 'orders*' --verify always`

    JSON: `path` (null for several paths), `paths`, `out`, `out_bytes`, `bytes`, `topics`, `partitions`, `segments`,
    `batches`, `batch_bytes` (less than `bytes` if segments are preallocated), `records` (of batches with a record
    count), `is_verified`, `errors`, `warnings`, `bytes_after` (of the batches, with the advice), `seconds`.

    Exit codes: 0, also if the page shows errors; 1 if no batch can be read, for files that can't be read or written,
    and for an empty directory; 2 for wrong arguments, for a PATH that is not a log, and if Plotly is missing.
    """
    if importlib.util.find_spec("plotly") is None:
        message = "the report needs Plotly: pip install 'kbat[report]'"
        raise ValueError(message)
    chosen = selection(topic, partition, replicas)
    segments, _ = locate(paths, **chosen)
    from kbat.report import Check, collect, page, writer  # noqa: PLC0415 - imports PyArrow

    file = writer(out, [path.text for path in paths if path.is_local])
    size = sum(segment.size for segment in segments)
    is_verified = verify is Verify.ALWAYS or (verify is Verify.AUTO and size <= _VERIFIED_LEN)
    names = [str(path) for path in paths]
    found = collect(
        names,
        segments,
        _verified(paths, selection(topic, partition)) if is_verified else Check(),
        seconds=seconds,
        leave_page_cache=leave_page_cache,
        show=progress,
        **paths[0].options,
    )
    if found.headers.batches_skipped and not found.headers.partitions:
        raise FailedError(nothing_counted(paths, segments))
    written = {"out": str(out), "out_bytes": file(page(found))}
    summary = _summary(names, written, found, is_verified=is_verified)
    if json:
        output.write_json(summary)
    else:
        _show(summary)


def _summary(names: list[str], written: dict[str, Any], found: "Report", *, is_verified: bool) -> dict[str, Any]:
    """Return the figures for JSON."""
    severities = [one.severity for one in found.check.findings]
    return {
        "path": names[0] if len(names) == 1 else None,
        "paths": names,
        **written,
        "bytes": found.size,
        "topics": len(found.topics),
        "partitions": found.total.partitions,
        "segments": found.total.segments,
        "batches": found.total.sums.batches,
        "batch_bytes": found.total.sums.bytes,
        "records": found.total.sums.records,
        "is_verified": is_verified,
        "errors": severities.count("error"),
        "warnings": severities.count("warning"),
        "bytes_after": found.advice.bytes_after,
        "seconds": round(found.seconds, 3),
    }


def _verified(paths: Sequence[Location], chosen: dict[str, Any]) -> "Check":
    from kbat.report import Check, Finding  # noqa: PLC0415 - imports PyArrow

    check = Check(is_complete=True)
    # paths may overlap: a finding of an earlier path is not counted again
    earlier: set[tuple[object, ...]] = set()
    for index, path in enumerate(paths):
        with progress("verifying") as callback:
            found = kbat.verify(str(path), progress=callback, **chosen, **path.options)
        keys = [(one.severity, one.kind, _real(one.path), one.position, one.offset) for one in found.findings]
        check.omitted += 0 if _is_covered(index, paths) else found.omitted_count
        check.commands.update(_commands(path, found))
        check.findings += [
            Finding(one.severity, one.kind, one.path, one.position, one.offset, message_of(one, path, found))
            for key, one in zip(keys, found.findings, strict=True)
            if key not in earlier
        ]
        earlier.update(keys)
    return check


def _real(path: str) -> str:
    """Return the path of a file without links, so that it is the same however the file was named."""
    return path if Location(path).is_url else os.path.realpath(path)


def _is_covered(index: int, paths: Sequence[Location]) -> bool:
    """Return whether a path is inside another one, or the same as an earlier one."""
    reals = [PurePath(_real(str(path))) for path in paths]
    mine = reals[index]
    return mine in reals[:index] or any(mine.is_relative_to(other) for other in reals if other != mine)


def _commands(path: Location, found: kbat.results.Report) -> dict[str, str]:
    if len(found.findings) > _MAX_FINDINGS:
        return {f"kbat verify {word(path)}{path.again}": "the commands that help"}
    return next_commands(path, found)


def _show(summary: dict[str, Any]) -> None:
    parts = (
        output.count_text(summary["topics"], "topic"),
        output.count_text(summary["partitions"], "partition"),
        output.count_text(summary["batches"], "batch", "batches"),
        output.size_text(summary["bytes"]),
    )
    checked = "verified" if summary["is_verified"] else "headers only"
    findings = f"{output.count_text(summary['errors'], 'error')}, {output.count_text(summary['warnings'], 'warning')}"
    output.write_line(f"{', '.join(parts)}; {checked}: {findings}")
    output.write_line(f"{output.text(summary['out'])}: {output.size_text(summary['out_bytes'])}; open it in a browser")
