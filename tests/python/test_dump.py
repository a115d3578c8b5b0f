"""`kbat dump` is `kafka-dump-log`, line for line: the judges are the texts that Kafka 4.3.1 wrote for the corpora."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import CORPUS, LOG, run
from data import DATA, read_text
from kbat._core.dump import dump

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = sorted(
    path.with_name("kafka-dump-log.txt")
    for folder in ("corpus", "corpus-legacy")
    for path in (DATA / folder).rglob("kafka-dump-log.txt*")
)
DECODERS = ("offsets", "transaction_log", "cluster_metadata", "share_group_state", "remote_log_metadata")
FLAGS = {"--print-data-log": {"contents": True}} | {
    f"--{name.replace('_', '-')}-decoder": {"contents": True, "decoder": name} for name in DECODERS
}
SUFFIXES = {".log", ".checkpoint", ".index", ".timeindex", ".snapshot", ".txnindex"}


def dumped(*paths: Path | str, **options: Any) -> tuple[str, str, Exception | None]:  # noqa: ANN401 - those of dump
    """Return output, notes and the exception of a dump."""
    out, notes = bytearray(), bytearray()
    error = None
    try:
        dump([str(path) for path in paths], out.extend, notes.extend, **options)
    except (kbat.KbatError, OSError, ValueError) as raised:
        error = raised
    return out.decode(), notes.decode(), error


def without_current_directory(text: str) -> str:
    """The texts were made with `./` before each path, which was then removed, also from values."""
    return text.replace("./", "")


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.parent.relative_to(DATA)))
def test_dump_is_that_of_kafka(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = DATA / text.relative_to(DATA).parts[0]
    monkeypatch.chdir(root)
    content = read_text(text)
    blocks = re.split(r"^(?=\$ kafka-dump-log )", content, flags=re.MULTILINE)[1:]
    assert blocks
    for block in blocks:
        command, _, expected = block.partition("\n")
        _, _, _, name, flag = command.split(" ")
        out, notes, error = dumped(text.parent.relative_to(root) / name, **FLAGS[flag])
        expected_out, _, expected_notes = expected.partition("[stderr]\n")
        notes = notes.replace(f"{root}{os.sep}", "")
        expected_notes, *exceptions = re.split(r"^EXCEPTION .*\n", expected_notes, flags=re.MULTILINE)
        assert without_current_directory(out).splitlines() == without_current_directory(expected_out).splitlines()
        assert notes == expected_notes
        assert (error is not None) == bool(exceptions), error


def files_of(*cases: str) -> list[Path]:
    return sorted(path for case in cases for path in (CORPUS / case).iterdir() if path.suffix in SUFFIXES)


def test_several_files_are_dumped_one_after_the_other() -> None:
    paths = files_of("compacted", "idempotent")
    together, notes, error = dumped(*paths, contents=True)
    assert error is None
    assert together == "".join(dumped(path, contents=True)[0] for path in paths)
    assert notes.count("Non-consecutive offsets in ") == len(set(re.findall(r"offsets in (.*)", notes))) > 1


def test_headers_only_and_skipped_metadata_are_parts_of_the_whole() -> None:
    path = CORPUS / "codec-zstd" / LOG
    whole = dumped(path, contents=True)[0].splitlines()
    headers = dumped(path)[0].splitlines()
    records = dumped(path, deep=True)[0].splitlines()
    assert headers == [line for line in records if not line.startswith("| offset: ")]
    starts = [line.partition(" key: ")[0].partition(" payload: ")[0] for line in whole if line.startswith("| offset")]
    assert [line for line in records if line.startswith("| offset")] == starts
    contents = dumped(path, contents=True, skip_record_metadata=True)[0].splitlines()
    assert not any(line.startswith("| offset: ") for line in contents)
    assert sum(line.startswith(("| key: ", "| payload: ")) for line in contents) > 200


def test_max_bytes_ends_the_log_without_a_remark() -> None:
    path = CORPUS / "crash-torn" / "00000000000000000124.log"
    assert "invalid bytes at the end" in dumped(path)[0]
    lines = dumped(path, max_bytes=3000)[0].splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("baseOffset: 124 ")


def test_indexes_can_be_verified_without_their_entries() -> None:
    paths = [path for path in files_of("segments-dense-index") if path.suffix in {".index", ".timeindex"}]
    out, notes, error = dumped(*paths, verify_index_only=True)
    assert (notes, error) == ("", None)
    assert {line.split()[0] for line in out.splitlines()} == {"Dumping"} | {
        line.split()[0] for line in out.splitlines() if line.endswith(" is empty.")
    }
    out, _, error = dumped(*paths, index_sanity_check=True)
    assert error is None
    assert out.count("passed sanity check.") + out.count("is empty.") == len(paths)


def test_wrong_indexes_are_reported(tmp_path: Path) -> None:
    for path in files_of("segments-dense-index"):
        shutil.copy(path, tmp_path)
    index = min(tmp_path.glob("*.index"))
    data = bytearray(index.read_bytes())
    data[3] += 1
    index.write_bytes(data)
    out, notes, error = dumped(index)
    assert error is None
    first = out.splitlines()[1].split()
    assert notes.startswith(f"Mismatches in :{index}\n  Index offset: {first[1]}, log offset: ")
    data[4:8] = b"\x7f\xff\xff\xff"
    index.write_bytes(data)
    assert "points to position 2147483647" in str(dumped(index)[2])


def test_dump_of_a_renamed_log(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "txn-simple" / "00000000000000000003.log", tmp_path / "copy.log")
    out, _, error = dumped(tmp_path / "copy.log")
    assert error is None
    assert out.splitlines()[1].startswith("baseOffset: 3 ")


def test_dump_of_a_time_index_without_an_index_creates_nothing(tmp_path: Path) -> None:
    for suffix in (".log", ".timeindex"):
        shutil.copy(CORPUS / "codec-lz4" / f"{LOG.removesuffix('.log')}{suffix}", tmp_path)
    (time_index,) = tmp_path.glob("*.timeindex")
    out, _, error = dumped(time_index)
    assert error is None
    assert out.splitlines()[1:] == dumped(CORPUS / "codec-lz4" / time_index.name)[0].splitlines()[1:]
    assert len(list(tmp_path.iterdir())) == 2


def test_unknown_files_are_ignored(tmp_path: Path) -> None:
    out, notes, error = dumped(tmp_path / "x.txt", tmp_path / "README")
    assert error is None
    assert out == f"Dumping {tmp_path}/x.txt\nDumping {tmp_path}/README\n"
    assert notes == f"Ignoring unknown file {tmp_path}/x.txt\nIgnoring unknown file {tmp_path}/README\n"


def _log(path: Path, *records: tuple[bytes | None, bytes | None]) -> Path:
    builder = kbat.BatchBuilder()
    for key, value in records:
        builder.append(key, value, timestamp=1)
    log = path / LOG
    log.write_bytes(bytes(builder.finish()))
    return log


def _records(out: str) -> list[str]:
    return [line.partition("headerKeys: [] ")[2] for line in out.splitlines() if line.startswith("| ")]


def test_unknown_and_corrupt_internal_records_are_lines(tmp_path: Path) -> None:
    log = _log(
        tmp_path,
        (b"\0\x63", b"\0\0"),
        (b"\0\x02\0\x01g", b"\0\x63"),
        (b"\0\x02\0\x09g", b"\0\0"),
        (b"\0", b"\0\0"),
        (b"\0\x02\0\x01g", None),
    )
    out, _, error = dumped(log, contents=True, decoder="offsets")
    assert error is None
    too_short = "buffer due to: Error reading byte array of 9 byte(s): only 1 byte(s) available"
    assert _records(out) == [
        "key: Unknown record type 99 at offset 0, skipping.",
        "key: Error at offset 1, skipping. Found an unknown record version 99 for 2 type",
        f"key: Error at offset 2, skipping. Could not read record with version 2 from key's {too_short}.",
        "key: Error at offset 3, skipping. Could not read version from key's buffer.",
        'key: {"type":"2","data":{"group":"g"}} payload: <DELETE>',
    ]


def test_corrupt_cluster_metadata_is_a_line(tmp_path: Path) -> None:
    log = _log(tmp_path, (None, b"\x01\x7f\0"), (None, b"\0"), (None, None), (None, b"\x01\x14\0\0\x05"))
    out, _, error = dumped(log, contents=True, decoder="cluster_metadata")
    assert error is None
    unknown = "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 127"
    assert _records(out)[0] == f"payload: Error at 0, skipping. {unknown}"
    assert _records(out)[1].startswith(
        "payload: Error at 1, skipping. Could not deserialize metadata record with frame"
    )
    assert _records(out)[2:] == [
        "payload: Error at 2, skipping. Error while reading frame version",
        "payload: Error at 3, skipping. Found 1 byte(s) of garbage after 20",
    ]


def test_remote_log_metadata_is_that_of_java(tmp_path: Path) -> None:
    # a RemoteLogSegmentMetadataUpdateRecord
    topic = b"\x07orders" + b"\x10" * 16 + bytes(4) + b"\0"
    segment = topic + b"\x20" * 16 + b"\0"
    update = b"\x01\x01\0" + segment + bytes([0, 0, 0, 1]) + bytes(7) + b"\x05" + b"\0" + b"\x01" + b"\0"
    out, _, error = dumped(_log(tmp_path, (None, update)), contents=True, decoder="remote_log_metadata")
    assert error is None
    segment_id = "RemoteLogSegmentId{topicIdPartition=EBAQEBAQEBAQEBAQEBAQEA:orders-0, id=ICAgICAgICAgICAgICAgIA}"
    state = "customMetadata=Optional.empty, state=COPY_SEGMENT_FINISHED, eventTimestampMs=5, brokerId=1"
    expected = f"payload: RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={segment_id}, {state}}}"
    assert _records(out) == [expected]


def test_records_without_a_key_end_a_coordinator_dump(tmp_path: Path) -> None:
    _, _, error = dumped(_log(tmp_path, (None, b"x")), contents=True, decoder="offsets")
    assert isinstance(error, kbat.KbatError)
    assert "has no key" in str(error)


CASES = (
    ("consumer-offsets", "offsets"),
    ("transaction-state", "transaction_log"),
    ("cluster-metadata", "cluster_metadata"),
    ("share-group-state", "share_group_state"),
    ("compacted-txn", "text"),
    ("mixed-codecs", "text"),
)


@pytest.mark.parametrize(("case", "decoder"), CASES)
@pytest.mark.parametrize("output_format", ["kafka", "jsonl", "table"])
def test_damaged_copies_end_with_an_error_at_most(tmp_path: Path, case: str, decoder: Any, output_format: Any) -> None:  # noqa: ANN401 - literals
    chance = random.Random(case)  # noqa: S311 - not for secrets
    for source in files_of(case):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    for source in files_of(case)[:8]:
        data = source.read_bytes()
        copy = tmp_path / source.name
        for _ in range(20):
            damaged = bytearray(data[: chance.randrange(len(data) + 1)])
            if chance.random() < 0.7:
                damaged = bytearray(data)
                for _ in range(chance.randrange(1, 4)):
                    if damaged:
                        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            copy.write_bytes(damaged)
            dumped(copy, contents=True, decoder=decoder, output_format=output_format)
        copy.write_bytes(data)


def test_arbitrary_bytes_are_no_crash(tmp_path: Path) -> None:
    for suffix in sorted(SUFFIXES):
        for data in (b"", bytes(1 << 16), b"\xff" * 4096, b"hello\n" * 100):
            for name in (LOG.removesuffix(".log"), "bootstrap"):
                for other in (".log", ".index"):
                    (tmp_path / f"{name}{other}").write_bytes(data)
                path = tmp_path / f"{name}{suffix}"
                path.write_bytes(data)
                dumped(path, contents=True)


@pytest.mark.parametrize("case", ["txn-simple", "consumer-offsets", "cluster-metadata", "crash-flip"])
def test_json_lines_are_objects(case: str) -> None:
    decoder: Any = dict(CASES).get(case, "text")
    for path in files_of(case):
        out, _, _ = dumped(path, contents=True, decoder=decoder, output_format="jsonl")
        rows = [json.loads(line) for line in out.splitlines()]
        assert rows[0] == {"type": "file", "path": str(path)}
        batches = [row for row in rows if row["type"] == "batch"]
        records = [row for row in rows if row["type"] == "record"]
        if path.suffix == ".log" and case != "crash-flip":
            expected = list(kbat.read_batches(path))
            assert [row["position"] for row in batches] == [batch.position for batch in expected]
            assert [row["offset"] for row in records] == [record.offset for batch in expected for record in batch]


def test_a_table_has_at_most_80_columns() -> None:
    for options in ({}, {"deep": True}, {"contents": True}):
        out, _, error = dumped(CORPUS / "mixed-codecs" / LOG, output_format="table", **options)
        assert error is None
        _, names, *rows = out.splitlines()
        assert max(map(len, [names, *rows])) <= 80
        assert names.split()[0] == ("offset" if options else "position")
        # numbers end below the end of their names
        assert all(row[: len(names)].split()[0] == row[: 11 if options else 10].strip() for row in rows)


def test_a_table_shows_what_the_decoder_returns(tmp_path: Path) -> None:
    out, _, _ = dumped(CORPUS / "consumer-offsets" / LOG, output_format="table", contents=True, decoder="offsets")
    rows = [row for row in out.splitlines() if '{"type":"1"' in row]
    assert rows
    assert all('"offset":' in row or row.endswith("<DELETE>") for row in rows)
    path = _log(tmp_path, (b"k", b"\xff" * 24), (b"k", b"\xff" * 25), (b"k", "\u20ac".encode() * 25))
    out, _, _ = dumped(path, output_format="table", contents=True)
    values = [row.split()[-1] for row in out.splitlines()[2:]]
    assert values == ["\ufffd" * 24, "\ufffd" * 23 + "\u2026", "\u20ac" * 23 + "\u2026"]


def test_a_batch_over_the_limit_is_an_error(tmp_path: Path) -> None:
    path = _log(tmp_path, (b"k", bytes(5_000)))
    assert dumped(path, limits=kbat.Limits(batch_len=6_000))[2] is None
    error = dumped(path, limits=kbat.Limits(batch_len=1_000))[2]
    assert "limit batch_len of 1000" in str(error)


def test_output_that_fails_ends_the_dump() -> None:
    def full(_: bytes) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        dump([str(CORPUS / "big-batch" / LOG)], full, full, contents=True)


def test_command_has_the_options_of_kafka() -> None:
    index, log = CORPUS / "txn-simple" / "00000000000000000003.index", CORPUS / "consumer-offsets" / LOG
    done = run("dump", f"--files={index},{log}", "--offsets-decoder")
    assert done.exit_code == 0
    assert done.stdout == dumped(index, log, contents=True, decoder="offsets")[0]
    assert run("dump", log, index, "--deep-iteration").stdout == dumped(log, index, deep=True)[0]
    done = run("dump", "--files", log, "--print-data-log", "--max-bytes", 500)
    assert done.stdout == dumped(log, contents=True, max_bytes=500)[0]
    assert run("dump", CORPUS / "txn-simple" / "00000000000000000003.log", "--deep-iteration").stderr.startswith(
        "Non-consecutive offsets in "
    )


def test_command_without_files_is_a_wrong_use() -> None:
    done = run("dump")
    assert (done.exit_code, "name at least one file" in done.stderr) == (2, True)


def test_command_fails_at_bytes_that_cannot_be_decoded() -> None:
    done = run("dump", CORPUS / "crash-flip" / LOG, "--print-data-log")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1].startswith("baseOffset: 99 ")
    assert done.stderr.startswith("kbat: ")


def test_decoder_classes_are_refused_by_name() -> None:
    log = CORPUS / "codec-none" / LOG
    done = run("dump", log, "--value-decoder-class", "com.example.AvroDecoder")
    assert done.exit_code == 2
    assert "com.example.AvroDecoder" in done.stderr.replace("\n", "")
    done = run("dump", log, "--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder")
    assert done.stdout == dumped(log, contents=True)[0]


def test_missing_files_are_named() -> None:
    done = run("dump", "/nowhere/00000000000000000000.log")
    assert (done.exit_code, done.stderr) == (2, "kbat: path '/nowhere/00000000000000000000.log' does not exist\n")
