"""Claims of manifests and `__remote_log_metadata` about segments: checked by keys and batches, in little memory."""

from __future__ import annotations

import json
import os
import shutil
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from reliability_logs import run
from remote_logs import BASES, METADATA, REMOTE, TAIL, offsets_of, warned
from test_remote_states import metadata_of, segment_id, values
from test_tiered import copied, object_of, topic_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from s3_server import S3Server

TOPIC = "segments-default-interval"
FIRST_OFFSETS = (0, 147, 310, 421, 562, 710, 868)
"""Of the segments of that topic."""
END_OFFSET = 1018
MEMBER = "remoteLogSegmentMetadata"
OTHER_ID = "A" * 21 + "Q"


def manifest_of(partition: Path, base: int) -> Path:
    """Return the manifest of a segment."""
    [found] = partition.glob(f"{base:020}-*.rsm-manifest")
    return found


@contextmanager
def edited(manifest: Path) -> Iterator[dict[str, Any]]:
    """Parse a manifest, and write it with the changes."""
    content = json.loads(manifest.read_text())
    yield content
    manifest.write_text(json.dumps(content))


def sources(root: Path, stored: bool, s3_server: S3Server) -> tuple[Any, dict[str, Any]]:  # noqa: FBT001 - a parameter
    """Return a directory or its copy in a bucket, and the options to read it."""
    if not stored:
        return root, {}
    url = s3_server.upload(root, f"tiered-claims/{root.name}", [path for path in root.rglob("*") if path.is_file()])
    return url, {"storage_options": s3_server.options}


# --- last offsets


@pytest.mark.parametrize("stored", [False, True], ids=["files", "objects"])
@pytest.mark.parametrize(("base", "claimed"), [(310, 421), (310, 4420), (0, 2**63 - 1)])
def test_a_manifest_that_claims_too_many_offsets_hides_no_segment(
    base: int,
    claimed: int,
    stored: bool,  # noqa: FBT001 - a parameter
    tmp_path: Path,
    s3_server: S3Server,
) -> None:
    manifest = manifest_of(copied("plain", TOPIC, tmp_path), base)
    with edited(manifest) as content:
        last = content[MEMBER]["endOffset"]
        content[MEMBER]["endOffset"] = claimed
    place, options = sources(tmp_path, stored, s3_server)
    with pytest.warns(UserWarning, match="kbat") as caught:
        assert offsets_of(place, **options) == list(range(END_OFFSET))
    [text] = [str(warning.message) for warning in caught]
    assert f"{manifest.stem}.log ends at offset {last}, and not at {claimed}" in text


def test_all_manifests_may_claim_too_many_offsets(tmp_path: Path) -> None:
    partition = copied("plain", TOPIC, tmp_path)
    for base in FIRST_OFFSETS:
        with edited(manifest_of(partition, base)) as content:
            content[MEMBER]["endOffset"] = 5000
    lines = warned(lambda: offsets_of(tmp_path)).splitlines()
    found = [int(line.partition("ends at offset ")[2].partition(",")[0]) for line in lines]
    # nothing follows the last segment
    assert found == [base - 1 for base in FIRST_OFFSETS[1:]]


def test_a_restore_has_the_segments_after_a_claim(tmp_path: Path) -> None:
    with edited(manifest_of(copied("plain", TOPIC, tmp_path / "in"), 310)) as content:
        content[MEMBER]["endOffset"] = 4420
    with pytest.warns(UserWarning, match="ends at offset 420"):
        [partition] = kbat.restore(str(tmp_path / "in"), tmp_path / "out").partitions
    assert (partition.start_offset, partition.end_offset, partition.gaps) == (0, END_OFFSET, [])
    assert offsets_of(tmp_path / "out") == list(range(END_OFFSET))


def test_a_report_has_the_claim(tmp_path: Path) -> None:
    with edited(manifest_of(copied("plain", TOPIC, tmp_path), 310)) as content:
        content[MEMBER]["endOffset"] = 4420
    [finding] = [one for one in kbat.verify(tmp_path).findings if one.severity != "info"]
    assert "ends at offset 420, and not at 4420" in finding.message


@pytest.mark.parametrize("claimed", [400, 309, -5])
def test_a_manifest_that_claims_too_few_offsets_hides_none(claimed: int, tmp_path: Path) -> None:
    with edited(manifest_of(copied("plain", TOPIC, tmp_path), 310)) as content:
        content[MEMBER]["endOffset"] = claimed
    with pytest.warns(UserWarning, match=f"ends at offset 420, and not at {claimed}") as caught:
        assert offsets_of(tmp_path) == list(range(END_OFFSET))
    assert len(caught) == 1


def test_a_metadata_record_that_claims_too_many_offsets_hides_no_segment(tmp_path: Path) -> None:
    first, last = BASES[1], BASES[2] - 1
    claims = [(struct.pack(">qq", first, last), struct.pack(">qq", first, end)) for end in (last + 1, 8000)]
    for number, (right, wrong) in enumerate(claims):
        changed = [value.replace(right, wrong) for value in values()]
        assert sum(one != other for one, other in zip(changed, values(), strict=True)) == 1
        options: dict[str, Any] = {"remote_log_metadata": metadata_of(changed, tmp_path / str(number))}
        with pytest.warns(UserWarning, match=f"ends at offset {last}, and not at"):
            assert offsets_of(REMOTE, **options) == offsets_of(REMOTE)


# --- keys


@pytest.mark.parametrize("suffixes", [(".rsm-manifest",), (".log", ".indexes", ".rsm-manifest")])
def test_exchanged_objects_are_an_error(suffixes: tuple[str, ...], tmp_path: Path) -> None:
    partition = copied("plain", TOPIC, tmp_path / "in")
    one, other = manifest_of(partition, 147), manifest_of(partition, 310)
    for suffix in suffixes:
        one.with_suffix(suffix).rename(tmp_path / "kept")
        other.with_suffix(suffix).rename(one.with_suffix(suffix))
        (tmp_path / "kept").rename(other.with_suffix(suffix))
    message = f"the manifest is of another segment than its name says: {partition.parent.name}/0/{other.stem}"
    with pytest.raises(kbat.CorruptError, match=message) as raised:
        kbat.scan(tmp_path / "in").count()
    assert raised.value.path == os.fspath(one)
    with pytest.raises(kbat.CorruptError, match=message):
        kbat.restore(str(tmp_path / "in"), tmp_path / "out")
    for place in (tmp_path / "in", partition):
        assert any(message in finding.message for finding in kbat.verify(place).findings), place


@pytest.mark.parametrize("name", [f"{TOPIC}-{OTHER_ID}/0", f"{TOPIC}-%s/7"], ids=["topic id", "partition"])
def test_a_directory_with_another_name_is_an_error(name: str, tmp_path: Path) -> None:
    source = topic_directory("plain", TOPIC)
    shutil.copytree(source / "0", tmp_path / name.replace("%s", source.name[-22:]))
    with pytest.raises(kbat.CorruptError, match=f"another segment than its name says: {source.name}/0/"):
        kbat.scan(tmp_path).count()


@pytest.mark.parametrize("name", [f"{147:020}-{OTHER_ID}", f"{148:020}-%s"], ids=["segment id", "start offset"])
def test_objects_with_another_name_are_an_error(name: str, tmp_path: Path) -> None:
    manifest = manifest_of(copied("plain", TOPIC, tmp_path), 147)
    for path in manifest.parent.glob(f"{manifest.stem}.*"):
        new = name.replace("%s", manifest.stem[21:])
        path.rename(path.with_name(f"{new}{path.suffix}"))
    with pytest.raises(kbat.CorruptError, match=f"another segment than its name says: .*/0/{manifest.stem}"):
        kbat.scan(tmp_path).count()


# --- records of newer versions


@pytest.mark.parametrize("joined", [False, True], ids=["remote", "joined"])
@pytest.mark.parametrize(("old", "new"), [(b"\0\0", b"\0\1"), (b"\1\0", b"\1\1"), (b"\1\0", b"\x09\0")])
def test_states_are_not_used_if_a_record_has_a_newer_type_or_version(
    old: bytes,
    new: bytes,
    joined: bool,  # noqa: FBT001 - a parameter
    tmp_path: Path,
) -> None:
    # as after an upgrade of the brokers
    upgraded = [segment_id(base) for base in BASES[3:]]
    changed = []
    for value in values():
        is_upgraded = value[1:3] == old and any(one in value for one in upgraded)
        changed.append(value[:1] + new + value[3:] if is_upgraded else value)
    assert sum(one != other for one, other in zip(changed, values(), strict=True)) >= len(upgraded)
    options: dict[str, Any] = {"remote_log_metadata": metadata_of(changed, tmp_path)}
    if joined:
        options["remote"] = REMOTE
    place = TAIL if joined else REMOTE
    expected = offsets_of(place, **{**options, "remote_log_metadata": METADATA})
    with pytest.warns(UserWarning, match="kbat") as caught:
        assert offsets_of(place, **options) == expected
    [text] = {str(warning.message) for warning in caught}
    assert "the states of segments in __remote_log_metadata are not used: the record at offset" in text
    assert f"is of type {new[0]} in version {new[1]}, which is unknown" in text


# --- leader epochs


def of_epoch(log: bytes, epoch: int) -> bytes:
    """Return a log as a leader of this epoch writes it."""
    changed = bytearray(log)
    position = 0
    while position < len(log):
        struct.pack_into(">i", changed, position + 12, epoch)  # the checksum does not cover it
        position += 12 + int.from_bytes(log[position + 8 : position + 12], "big")
    return bytes(changed)


def store(manifest: Path, segment: str, log: bytes, epoch: int, last: int) -> None:
    """Write the objects of a segment with a log of this epoch, from those of another segment."""
    content = json.loads(manifest.read_text())
    extent = content["segmentIndexes"]["leaderEpoch"]
    epochs = b"0\n1\n%d %d\n" % (epoch, int(segment[:20]))
    indexes = manifest.with_suffix(".indexes").read_bytes()[: extent["position"]] + epochs
    extent["size"] = len(epochs)
    content["chunkIndex"].update(originalFileSize=len(log), finalTransformedChunkSize=len(log) % 4096)
    content[MEMBER].update(endOffset=last, segmentLeaderEpochs={str(epoch): int(segment[:20])})
    content[MEMBER]["remoteLogSegmentId"]["id"] = segment[21:]
    manifest.with_name(f"{segment}.log").write_bytes(of_epoch(log, epoch))
    manifest.with_name(f"{segment}.indexes").write_bytes(indexes)
    manifest.with_name(f"{segment}.rsm-manifest").write_text(json.dumps(content))


@pytest.mark.parametrize("has_metadata", [True, False])
@pytest.mark.parametrize("other_id", [OTHER_ID, "z" * 21 + "w"])
def test_segments_of_a_deposed_leader_are_not_read(has_metadata: bool, other_id: str, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter
    partition = copied("plain", TOPIC, tmp_path)
    manifests = [manifest_of(partition, base) for base in FIRST_OFFSETS]
    logs = [manifest.with_suffix(".log").read_bytes() for manifest in manifests]
    store(manifests[1], f"{147:020}-{other_id}", logs[1] + logs[2], 1, 420)
    lasts = [base - 1 for base in (*FIRST_OFFSETS[1:], END_OFFSET)]
    for manifest, log, last in list(zip(manifests, logs, lasts, strict=True))[1:]:
        store(manifest, manifest.stem, log, 2, last)
    if not has_metadata:
        for manifest in partition.glob("*.rsm-manifest"):
            with edited(manifest) as content:
                del content[MEMBER]
    found: list[Any] = []
    columns = ["offset", "value", "partition_leader_epoch"]
    text = warned(lambda: found.append(kbat.scan(tmp_path, columns=columns).to_pyarrow()))
    original = kbat.scan(topic_directory("plain", TOPIC), columns=["offset", "value"]).to_pyarrow()
    assert found[0].select(["offset", "value"]) == original
    assert found[0]["partition_leader_epoch"].to_pylist() == [0] * 147 + [2] * (END_OFFSET - 147)
    assert f"{other_id}.log is not read: a deposed leader, epoch 1, wrote" in text
    assert len(text.splitlines()) == 1


# --- memory

READS = """
import sys, kbat
place, on_corrupt = sys.argv[1:]
table = kbat.scan(place, columns=["offset"], include_control=True, on_corrupt=on_corrupt).to_pyarrow()
severities = {finding.severity for finding in kbat.verify(place).findings}
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(table.num_rows, "error" in severities, peak)
"""
"""Prints the number of rows, whether there are errors, and the largest number of KiB of memory.

The peak of `getrusage` would include that of the process that started it.
"""
MOST_MEMORY = 400 << 10


def reads(place: Path, on_corrupt: str) -> tuple[int, bool]:
    """Read and verify a location, in a process with limits of time and memory."""
    code, output, errors = run(READS, place, on_corrupt)
    assert (code, errors) == (0, "")
    rows, has_errors, peak = output.split()
    assert int(peak) < MOST_MEMORY
    return int(rows), has_errors == "True"


@pytest.mark.parametrize("element", ['{"":{"":1}},', "[[[1]]],", '{"topic":{"id":{"size":1}}},'])
def test_unknown_members_of_a_manifest_take_no_memory(element: str, tmp_path: Path) -> None:
    manifest = object_of(copied("plain", "codec-lz4", tmp_path), ".rsm-manifest")
    elements = element * ((20 << 20) // len(element))
    manifest.write_text(f'{manifest.read_text()[:-1]},"unknown":[{elements}0]}}')
    assert reads(tmp_path, "fail") == (220, False)


def test_too_many_members_of_a_manifest_are_an_error(tmp_path: Path) -> None:
    with edited(object_of(copied("plain", "codec-lz4", tmp_path), ".rsm-manifest")) as content:
        content[MEMBER]["segmentLeaderEpochs"] = {str(epoch): 0 for epoch in range(100_001)}
    with pytest.raises(kbat.CorruptError, match="it has more than 100000 members"):
        kbat.scan(tmp_path).count()


@pytest.mark.parametrize("chunk", [1, 4096])
def test_chunks_that_the_object_does_not_have_are_skipped_at_once(chunk: int, tmp_path: Path) -> None:
    size = 2**31 - 1
    with edited(manifest_of(copied("plain", TOPIC, tmp_path), 310)) as content:
        len_of_log = content["chunkIndex"]["originalFileSize"]
        content["chunkIndex"] = {
            "type": "fixed",
            "originalChunkSize": chunk,
            "originalFileSize": size,
            "transformedChunkSize": chunk,
            "finalTransformedChunkSize": (size - 1) % chunk + 1,
        }
    rows, has_errors = reads(tmp_path, "skip")
    # the last chunk of the object is truncated
    assert (rows == END_OFFSET) == (len_of_log % chunk == 0)
    assert END_OFFSET - 20 < rows <= END_OFFSET
    assert has_errors
    with pytest.raises(kbat.CorruptError, match=f"chunk {len_of_log // chunk} is truncated"):
        kbat.scan(tmp_path).count()
