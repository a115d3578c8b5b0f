"""Kafka's verdict on 1556 buffers, most of them damaged, against kbat's on the same bytes, through the Python API.

The one exception, zeros up to the end, is in docs/differences.md.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache

import pytest

import kbat
from data import DATA, Line, decoded, from_base64, json_lines, plain

BUFFERS = 1556
# Buffers that Kafka refuses, and those of them that end in zeros: a broken size to Kafka, a preallocated tail to kbat.
REFUSED, ZERO_TAILS = 957, 19


@cache
def verdicts() -> list[Line]:
    lines = json_lines(DATA / "corpus/verdicts/verdicts.jsonl")
    assert len(lines) == BUFFERS
    return lines


def consume(data: bytes) -> tuple[list[Line], list[kbat.ControlRecord | str | None], kbat.KbatError | None]:
    """Read as a program does, up to the first error."""
    records: list[Line] = []
    controls: list[kbat.ControlRecord | str | None] = []
    try:
        for batch in kbat.read_batches(data):
            for record in batch:
                records.append(plain(record))
                controls.append(control_of(record))
    except kbat.KbatError as error:
        return records, controls, error
    return records, controls, None


def control_of(record: kbat.Record) -> kbat.ControlRecord | str | None:
    try:
        return record.control
    except kbat.CorruptError as error:
        return str(error)


def to_base64(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()


def canonical(record: Line) -> str:
    """One record in the form that the answers hash."""
    headers = ",".join(f"{to_base64(key.encode())}:{to_base64(value)}" for key, value in record["headers"])
    fields = (record["offset"], record["timestamp"], to_base64(record["key"]), to_base64(record["value"]), headers)
    return "\t".join(map(str, (*fields, record["sequence"]))) + "\n"


def assert_control(found: kbat.ControlRecord | str | None, line: Line) -> None:
    if "controlError" in line:
        assert isinstance(found, str)
    if line.get("coordinatorEpoch") is not None:
        assert isinstance(found, kbat.ControlRecord)
        assert found.coordinator_epoch == line["coordinatorEpoch"]
    if "controlType" in line and isinstance(found, kbat.ControlRecord):
        name = "UNKNOWN" if found.type.startswith("UNKNOWN(") else found.type
        assert name == line["controlType"]


def assert_verdict(line: Line) -> None:
    data = from_base64(line["bytes"])
    assert data is not None
    records, controls, error = consume(data)
    assert (error is not None) == (line["outcome"] == "error"), f"Kafka: {line.get('message')}, kbat: {error}"
    assert len(records) == line["count"], f"Kafka: {line.get('message')}, kbat: {error}"
    if "sha256" in line:
        assert hashlib.sha256("".join(map(canonical, records)).encode()).hexdigest() == line["sha256"]
        return
    assert records == [decoded(record) for record in line["records"]]
    for found, expected in zip(controls, line["records"], strict=True):
        assert_control(found, expected)


def ends_in_zeros(line: Line) -> bool:
    return bool(
        line["mutation"].startswith("zeros after the set")
        and line.get("message") == "Record size 0 is less than the minimum record overhead (14)"
    )


@pytest.mark.parametrize("part", range(8))
def test_verdicts_are_those_of_kafka(part: int) -> None:
    """Every eighth buffer: outcome, count and records, in the order of the answers."""
    for line in verdicts()[part::8]:
        if not ends_in_zeros(line):
            try:
                assert_verdict(line)
            except AssertionError as error:
                error.add_note(f"{line['name']}: {line['mutation']}")
                raise


def test_verdicts_zero_tails_are_a_clean_end() -> None:
    """Edge case 11."""
    zero_tails = [line for line in verdicts() if ends_in_zeros(line)]
    assert len(zero_tails) == ZERO_TAILS
    for line in zero_tails:
        data = from_base64(line["bytes"])
        assert data is not None
        records, _, error = consume(data)
        assert error is None
        assert len(records) == line["count"]
        walk = kbat.read_batches(data)
        assert sum(1 for batch in walk for _ in batch) == line["count"]
        assert len(walk.remainder) >= 16
        assert not walk.remainder.strip(b"\0")


def test_verdicts_as_many_are_refused_as_by_kafka() -> None:
    outcomes = [consume(from_base64(line["bytes"]) or b"")[2] is not None for line in verdicts()]
    assert sum(outcomes) == REFUSED - ZERO_TAILS


def test_verdicts_errors_say_where() -> None:
    """Each error has a kind, a position inside the buffer, and a message with the position."""
    for line in verdicts():
        data = from_base64(line["bytes"]) or b""
        error = consume(data)[2]
        if error is None:
            continue
        assert error.kind is not None
        assert error.position is not None
        assert 0 <= error.position <= len(data)
        assert f"byte {error.position}" in str(error)
        assert error.path is None


def test_verdicts_scan_gives_the_same_outcome() -> None:
    for line in verdicts():
        data = from_base64(line["bytes"]) or b""
        records, _, error = consume(data)
        scan = kbat.scan(data, include_control=True)
        if error is None:
            offsets = scan.to_pyarrow()["offset"].to_pylist()
            assert offsets == [record["offset"] for record in records]
            continue
        with pytest.raises(kbat.KbatError) as raised:
            scan.to_pyarrow()
        # columns are filled one after the other, so a scan may detect the second of two errors in a batch first
        assert raised.value.base_offset == error.base_offset
