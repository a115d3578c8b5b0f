"""The states of remote segments: `remote_log_metadata=`, and the topic `__remote_log_metadata` beside a partition."""

from __future__ import annotations

import base64
import os
import shutil
import struct
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from remote_logs import BASES, LOGS, METADATA, REMOTE, TAIL, offsets_of, warned
from test_tiered import remote_directory, topic_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3_server import S3Server


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Fail on warnings, except where a test expects them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def values() -> list[bytes]:
    """The values of the records that the broker wrote."""
    found: list[Any] = kbat.scan(METADATA).to_pyarrow()["value"].to_pylist()
    return found


def metadata_of(found: list[bytes], directory: Path) -> Path:
    """Write the topic with these records."""
    with kbat.LogWriter(directory / "__remote_log_metadata-0") as writer:
        for value in found:
            writer.append(None, value, timestamp=1)
    return directory


def segment_id(base: int) -> bytes:
    """The id of a remote segment, from its name."""
    [path] = remote_directory().glob(f"{base:020}-*.log")
    return base64.urlsafe_b64decode(path.stem[21:] + "==")


def with_state(value: bytes, state: int) -> bytes:
    """Change the state in an update, which ends with the state and no tagged fields."""
    return value[:-2] + bytes([state, 0])


def test_the_states_that_the_broker_wrote_are_those_of_the_objects() -> None:
    assert len(values()) == 16
    for metadata in (LOGS, METADATA, METADATA / "00000000000000000000.log"):
        assert offsets_of(REMOTE, remote_log_metadata=metadata) == offsets_of(REMOTE)
        assert offsets_of(TAIL, remote=REMOTE, remote_log_metadata=metadata) == offsets_of(TAIL, remote=REMOTE)


@pytest.mark.parametrize(
    ("state", "reason"),
    [(None, "its copy was not finished"), (2, "its deletion was started"), (3, "it was deleted")],
)
def test_segments_that_are_not_finished_are_omitted(state: int | None, reason: str, tmp_path: Path) -> None:
    base = BASES[1]
    changed = []
    for value in values():
        is_update = value[1] == 1 and segment_id(base) in value
        if not is_update or state is not None:
            changed.append(value)
        if is_update and state == 3:
            changed.append(with_state(value, 2))
        if is_update and state is not None:
            changed.append(with_state(value, state))
    metadata = metadata_of(changed, tmp_path)
    options: dict[str, Any] = {"remote": REMOTE, "remote_log_metadata": metadata}
    text = warned(lambda: offsets_of(TAIL, **options))
    assert any(f"{base:020}-" in line and reason in line for line in text.splitlines()), text
    assert f"no segment contains offsets {base} to {BASES[2] - 1}" in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        offsets = offsets_of(TAIL, **options)
    assert not set(offsets) & set(range(base, BASES[2]))
    report = kbat.verify(TAIL, **options)
    assert any(one.kind == "omitted_segment" and reason in one.message for one in report.findings)


def test_the_topic_beside_the_partition_is_used(tmp_path: Path) -> None:
    shutil.copytree(TAIL, tmp_path / "orders-0")
    changed = [value for value in values() if not (value[1] == 1 and segment_id(BASES[1]) in value)]
    metadata_of(changed, tmp_path)
    for local in (tmp_path, tmp_path / "orders-0"):
        text = warned(partial(offsets_of, local, topics="orders", remote=REMOTE))
        assert "its copy was not finished" in text, local


def test_an_orphan_without_a_record_is_omitted(tmp_path: Path) -> None:
    remote = shutil.copytree(remote_directory(), tmp_path / remote_directory().name)
    for path in remote.glob(f"{BASES[1]:020}-*"):
        shutil.copyfile(path, path.with_name(path.name[:21] + "A" * 22 + path.name[43:]))
    text = warned(lambda: offsets_of(remote, remote_log_metadata=LOGS))
    assert f"{'A' * 22}.log is not read: __remote_log_metadata has no record of it" in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert offsets_of(remote, remote_log_metadata=LOGS) == offsets_of(remote_directory())


def test_objects_that_are_missing_are_named(tmp_path: Path) -> None:
    remote = shutil.copytree(remote_directory(), tmp_path / remote_directory().name)
    for path in remote.glob(f"{BASES[1]:020}-*"):
        path.unlink()
    text = warned(lambda: offsets_of(remote, remote_log_metadata=LOGS))
    assert "offsets 2218 to 2360, are missing, but __remote_log_metadata has it as finished" in text


def test_corruption_of_the_topic_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "remote.log"
    content = bytearray((METADATA / "00000000000000000000.log").read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(kbat.CrcError, match=r"remote\.log"):
        kbat.scan(REMOTE, remote_log_metadata=path).count()
    metadata = metadata_of([b"\x01\x00\x00\x07orders"], tmp_path)
    with pytest.raises(kbat.CorruptError, match="record at offset 0"):
        kbat.scan(REMOTE, remote_log_metadata=metadata).count()


def uvarint(number: int) -> bytes:
    """Encode an unsigned varint."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def compact(data: bytes) -> bytes:
    """Encode bytes or a string of a flexible message."""
    return uvarint(len(data) + 1) + data


def aiven_record(topic_id: bytes, name: str, end: int, custom: bytes) -> bytes:
    """The record of a finished copy of a segment of partition txn-lz4-0."""
    id_ = base64.urlsafe_b64decode(name[21:43] + "==")
    partition = compact(b"txn-lz4") + topic_id + struct.pack(">ib", 0, 0)
    times = struct.pack(">qqiqq", int(name[:20]), end, 1, 0, 0)
    return b"".join(
        [b"\x01\x00\x00", partition, id_, b"\0", times, b"\x01", struct.pack(">i", 1), compact(custom), b"\x01\0"]
    )


@pytest.mark.parametrize("stored", [False, True], ids=["files", "objects"])
def test_the_prefix_in_custom_metadata_is_honored(stored: bool, tmp_path: Path, s3_server: S3Server) -> None:  # noqa: FBT001 - a parameter
    source = topic_directory("zstd", "txn-lz4")
    bucket = tmp_path / "custom"
    new = shutil.copytree(source, bucket / "pre" / "fix" / source.name) / "0"
    old = bucket / "earlier" / source.name / "0"
    old.mkdir(parents=True)
    names = sorted(path.stem for path in new.glob("*.log"))
    for path in new.glob(f"{names[1]}.*"):
        path.rename(old / path.name)
    topic_id = base64.urlsafe_b64decode(source.name[-22:] + "==")
    found = []
    for number, name in enumerate(names):
        prefix = b"earlier/" if number == 1 else b"pre/fix/"
        key = f"{source.name}/0/{name}".encode()
        fields = b"\x01" + uvarint(len(compact(prefix))) + compact(prefix)
        fields += b"\x02" + uvarint(len(compact(key))) + compact(key)
        end = 365 if number + 1 == len(names) else int(names[number + 1][:20]) - 1
        found.append(aiven_record(topic_id, name, end, b"\x02" + fields))
    options: dict[str, Any] = {"remote_log_metadata": metadata_of(found, tmp_path / "logs")}
    location: str = os.fspath(bucket / "pre" / "fix")
    if stored:
        location = f"{s3_server.upload(bucket, 'custom', [p for p in bucket.rglob('*') if p.is_file()])}/pre/fix"
        options["storage_options"] = s3_server.options
    assert kbat.scan(location, include_control=True, **options).count() == 366
    # without the topic, a part of the log is missing
    del options["remote_log_metadata"]
    assert "no segment contains offsets" in warned(lambda: kbat.scan(location, **options).count())
