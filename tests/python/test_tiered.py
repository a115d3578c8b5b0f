"""Objects of Aiven's plugin and of Kafka's `LocalTieredStorage`: read as the partitions that they were made of."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import json_of, run
from data import DATA
from outcomes import COLUMNS, lookups, outcome, rows, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from s3_server import S3Server

AIVEN = DATA / "tiered" / "aiven"
KAFKA = DATA / "tiered" / "kafka-local"
PEM = AIVEN / "test-private-key.pem"
KEYS = {"key1": os.fspath(PEM)}
MODES = ("plain", "zstd", "aes", "zstd-aes", "zstd-aes-4m")
TOPICS = ("codec-none", "codec-lz4", "codec-zstd", "txn-lz4", "segments-default-interval", "compacted", "idempotent")
# Names of directories of the test data in the bucket.
UPLOADED: set[str] = set()
every_topic = pytest.mark.parametrize("topic", TOPICS)
every_mode = pytest.mark.parametrize("mode", MODES)


def keys_for(mode: str) -> dict[str, Any]:
    """Return the keyword argument that a mode needs."""
    return {"encryption_keys": KEYS} if "aes" in mode else {}


def topic_directory(mode: str, topic: str) -> Path:
    """Return the directory of a topic, whose name ends with the topic's id."""
    [found] = [path for path in (AIVEN / mode / "pre" / "fix").iterdir() if path.name[:-23] == topic]
    return found


def copied(mode: str, topic: str, target: Path) -> Path:
    """Copy a topic, to be damaged; the directory of its partition."""
    source = topic_directory(mode, topic)
    return shutil.copytree(source, target / source.name) / "0"


def object_of(partition: Path, suffix: str) -> Path:
    """Return the first object of a kind."""
    return min(partition.glob(f"*{suffix}"))


def truth_of(objects: Path, case: Path, out: Path) -> Path:
    """Copy the files of a case whose segments were copied to tiered storage."""
    out.mkdir(parents=True)
    for path in objects.glob("*.log"):
        for source in case.glob(f"{path.name[:20]}.*"):
            if source.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
                shutil.copyfile(source, out / source.name)
    shutil.copyfile(case / "leader-epoch-checkpoint", out / "leader-epoch-checkpoint")
    return out


def answers(partition: str, options: dict[str, Any]) -> Any:  # noqa: ANN401 - lists of anything
    """Everything that a partition answers, without the files that tiered storage does not have."""
    found, by_time, aborted, state, _ = lookups(partition, options)
    start, end, stable, epochs, _topic_id, topic, number = state
    # the epochs of a remote segment begin with the segment
    epochs = [(epoch, max(first, start)) for epoch, first in epochs]
    return [found, by_time, aborted, start, end, stable, epochs, topic, number]


@pytest.fixture(params=["files", "objects"])
def location(request: pytest.FixtureRequest, s3_server: S3Server) -> Callable[[Path], tuple[str, dict[str, Any]]]:
    """Return where a directory is read, and the options for it: in the file system, and in a bucket."""

    def place(directory: Path) -> tuple[str, dict[str, Any]]:
        if request.param == "files":
            return os.fspath(directory), {}
        name = f"tiered/{hashlib.sha256(os.fspath(directory).encode()).hexdigest()[:12]}/{directory.name}"
        options = {"storage_options": s3_server.options}
        if DATA not in directory.parents or name not in UPLOADED:
            UPLOADED.add(name)
            s3_server.upload(directory, name, [path for path in directory.rglob("*") if path.is_file()])
        return s3_server.url(name), options

    return place


@every_mode
@every_topic
def test_rows_are_those_of_the_partition(mode: str, topic: str, tmp_path: Path, location: Any) -> None:  # noqa: ANN401 - the fixture
    directory = topic_directory(mode, topic)
    truth = truth_of(directory / "0", DATA / "corpus" / topic, tmp_path / f"{topic}-0")
    place, options = location(directory)
    for isolation in ("read_uncommitted", "read_committed"):
        asked = {"columns": COLUMNS, "include_control": isolation == "read_uncommitted", "isolation": isolation}
        expected = without(rows(os.fspath(truth), **asked), os.fspath(tmp_path))
        assert expected[0].num_rows > 0
        assert without(rows(place, **asked, **options, **keys_for(mode)), place) == expected, isolation


@every_mode
@every_topic
def test_lookups_are_those_of_the_partition(mode: str, topic: str, tmp_path: Path) -> None:
    directory = topic_directory(mode, topic)
    truth = truth_of(directory / "0", DATA / "corpus" / topic, tmp_path / f"{topic}-0")
    expected = without(answers(os.fspath(truth), {}), os.fspath(tmp_path))
    found = answers(f"{directory}/{topic}-0", keys_for(mode))
    assert without(found, os.fspath(directory)) == expected


@every_mode
def test_bytes_are_those_of_the_segments(mode: str) -> None:
    for log in kbat.LogDirectory(AIVEN / mode, **keys_for(mode)).partitions:
        for segment in log.segments:
            original = DATA / "corpus" / str(log.topic) / os.path.basename(segment.path)  # noqa: PTH119 - not a path
            data = b"".join(bytes(batch) for batch in kbat.read_batches(segment.path, **keys_for(mode)))
            assert data == original.read_bytes(), segment.path


@every_mode
def test_partitions_are_found_under_a_prefix(mode: str, location: Any) -> None:  # noqa: ANN401 - the fixture
    place, options = location(AIVEN / mode)
    directory = kbat.LogDirectory(place, **options, **keys_for(mode))
    assert sorted((log.topic, log.partition) for log in directory.partitions) == sorted((name, 0) for name in TOPICS)


@every_mode
def test_nothing_is_wrong_with_the_objects(mode: str) -> None:
    report = kbat.verify(AIVEN / mode, **keys_for(mode))
    assert [str(finding.to_dict()) for finding in report.findings if finding.severity == "error"] == []
    assert report.segment_count == len(list((AIVEN / mode).rglob("*.log")))


@pytest.mark.parametrize("command", ["salvage", "recover", "rewrite"])
def test_files_written_are_those_of_the_partition(command: str, tmp_path: Path) -> None:
    directory = topic_directory("zstd-aes", "txn-lz4")
    getattr(kbat, command)(directory / "0", tmp_path / "out-0", encryption_keys=KEYS)
    for path in (directory / "0").glob("*.log"):
        name = f"{path.name[:20]}.log"
        assert (tmp_path / "out-0" / name).read_bytes() == (DATA / "corpus" / "txn-lz4" / name).read_bytes()


def test_keys_may_come_from_a_function() -> None:
    ids = []

    def load(key_id: str) -> str:
        ids.append(key_id)
        return PEM.read_text()

    scan = kbat.scan(topic_directory("aes", "codec-none"), encryption_keys=load)
    assert scan.count() == kbat.scan(DATA / "corpus" / "codec-none").count()
    assert set(ids) == {"key1"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (None, 'encrypted with the key "key1": no encryption keys were passed'),
        ({"key2": os.fspath(PEM)}, 'encrypted with the key "key1": encryption keys were passed for "key2"'),
        ({"key1": os.fspath(AIVEN / "other-private-key.pem")}, '"key1" does not decrypt the segment\'s data key'),
        ({"key1": os.fspath(DATA / "README.md")}, '"key1" is not a PEM file'),
        (lambda _id: None, "the callback does not know it"),
    ],
    ids=["missing", "unknown id", "wrong", "not PEM", "unknown to function"],
)
def test_wrong_keys_are_named(keys: Any, message: str) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(ValueError, match="key1") as raised:
        kbat.scan(topic_directory("aes", "codec-none"), encryption_keys=keys).to_pyarrow()
    assert message in str(raised.value)
    assert "BEGIN RSA" not in str(raised.value)


def test_errors_of_the_key_function_are_raised() -> None:
    def load(key_id: str) -> str:
        raise LookupError(key_id)

    with pytest.raises(LookupError, match="key1"):
        kbat.scan(topic_directory("aes", "codec-none"), encryption_keys=load).to_pyarrow()


def test_a_missing_key_file_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.pem"):
        kbat.scan(topic_directory("aes", "codec-none"), encryption_keys={"key1": "none.pem"})


def test_a_private_key_may_be_passed_as_text() -> None:
    scan = kbat.scan(topic_directory("aes", "codec-none"), encryption_keys={"key1": PEM.read_text()})
    assert scan.count() == 220


def test_a_broken_private_key_is_not_repeated() -> None:
    text = PEM.read_text()[:-200]
    with pytest.raises(ValueError, match="key1") as raised:
        kbat.scan(topic_directory("aes", "codec-none"), encryption_keys={"key1": text})
    assert text.splitlines()[5] not in str(raised.value)


def test_keys_of_a_wrong_type_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="encryption_keys"):
        kbat.scan(AIVEN / "aes", encryption_keys="key1")  # type: ignore[arg-type]


def test_keys_for_other_directories_are_refused() -> None:
    with pytest.raises(ValueError, match="encryption_keys have no effect"):
        kbat.scan(DATA / "corpus" / "codec-none", encryption_keys=KEYS)


def test_an_object_by_its_own_name_is_decoded_or_refused_by_name() -> None:
    path = object_of(topic_directory("aes", "codec-none") / "0", ".log")
    found = outcome(lambda: kbat.scan(path, encryption_keys=KEYS).count(), "nowhere")
    assert found == 220 or "no effect" not in str(found)


def flip(path: Path) -> None:
    """Change a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    """Remove the second half of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("mode", ["aes", "zstd-aes"])
@pytest.mark.parametrize(("damage", "message"), [(flip, "cannot be decrypted"), (truncate, "is truncated")])
def test_damage_is_an_error_that_names_object_and_chunk(
    mode: str,
    damage: Callable[[Path], None],
    message: str,
    tmp_path: Path,
    location: Any,  # noqa: ANN401 - the fixture
) -> None:
    path = object_of(copied(mode, "codec-none", tmp_path), ".log")
    damage(path)
    place, options = location(tmp_path)
    with pytest.raises(kbat.CorruptError, match=f"chunk 9 {message}") as raised:
        kbat.scan(place, encryption_keys=KEYS, **options).to_pyarrow()
    assert path.name in str(raised.value)


@pytest.mark.parametrize("mode", ["plain", "zstd"])
def test_a_flipped_bit_without_encryption_is_found_by_the_checksum(mode: str, tmp_path: Path) -> None:
    flip(object_of(copied(mode, "codec-none", tmp_path), ".log"))
    with pytest.raises(kbat.CrcError):
        kbat.scan(tmp_path).to_pyarrow()
    table = kbat.scan(tmp_path, on_corrupt="report").to_pyarrow()
    [error] = [row for row in table["error"].to_pylist() if row is not None]
    assert error["kind"] == "crc"
    lost = error["last_offset"] - error["first_offset"] + 1
    assert table.num_rows - 1 == 220 - lost


@pytest.mark.parametrize("damage", [flip, truncate])
@pytest.mark.parametrize("on_corrupt", ["skip", "report"])
def test_batches_around_a_damaged_chunk_are_read(
    damage: Callable[[Path], None],
    on_corrupt: Any,  # noqa: ANN401 - a literal
    tmp_path: Path,
) -> None:
    damage(object_of(copied("zstd-aes", "codec-none", tmp_path), ".log"))
    scan = kbat.scan(tmp_path, on_corrupt=on_corrupt, encryption_keys=KEYS)
    assert scan.to_pyarrow().num_rows > 50
    assert scan.stats is not None
    assert scan.stats.bytes_lost > 0


@pytest.mark.parametrize("damage", [flip, truncate])
def test_a_report_contains_damaged_chunks(damage: Callable[[Path], None], tmp_path: Path) -> None:
    damage(object_of(copied("zstd-aes", "codec-none", tmp_path), ".log"))
    report = kbat.verify(tmp_path, encryption_keys=KEYS)
    assert any("chunk 9" in finding.message for finding in report.findings)


def test_a_report_contains_broken_manifests(tmp_path: Path) -> None:
    manifest = object_of(copied("plain", "codec-none", tmp_path), ".rsm-manifest")
    manifest.write_text('{"version":"1"')
    assert any("manifest" in finding.message for finding in kbat.verify(tmp_path).findings)
    # the directory that the report names is none of the file system
    assert json_of("verify", tmp_path, exit_code=2)["next"] == []
    message = run("cat", tmp_path).stderr
    assert manifest.name in message
    assert message.strip().endswith(f"'kbat verify {tmp_path}' checks the other segments")


@pytest.mark.parametrize("mode", ["plain", "zstd-aes"])
@pytest.mark.parametrize("more", [b"zz", bytes(1 << 20)], ids=len)
def test_an_object_that_is_longer_than_its_manifest_says_loses_no_batch(mode: str, more: bytes, tmp_path: Path) -> None:
    options: dict[str, Any] = keys_for(mode)
    directory = copied(mode, "codec-none", tmp_path / "logs")
    copied(mode, "codec-zstd", tmp_path / "logs")
    with object_of(directory, ".log").open("ab") as file:
        file.write(more)
    with pytest.raises(kbat.CorruptError, match="bytes, but its manifest describes"):
        kbat.scan(tmp_path / "logs", **options).to_pyarrow()
    scan = kbat.scan(tmp_path / "logs", on_corrupt="report", **options)
    errors = [error for error in scan.to_pyarrow()["error"].to_pylist() if error is not None]
    assert [error["length"] for error in errors] == [len(more)]
    assert "its manifest describes" in errors[0]["message"]
    assert kbat.scan(tmp_path / "logs", on_corrupt="skip", **options).count() == 440
    report = kbat.verify(tmp_path / "logs", **options)
    [finding] = [finding for finding in report.findings if finding.severity == "error"]
    assert "its manifest describes" in finding.message
    assert report.record_count == 440
    kbat.salvage(tmp_path / "logs" / "codec-none-0", tmp_path / "salvaged", **options)
    assert kbat.scan(tmp_path / "salvaged").count() == 220


@pytest.mark.parametrize("size", [2**31 - 1, 0, -1, 1 << 40])
def test_a_manifest_that_lies_about_the_size_is_an_error(size: int, tmp_path: Path) -> None:
    for mode in ("plain", "zstd", "aes"):
        path = object_of(copied(mode, "codec-none", tmp_path / mode), ".rsm-manifest")
        manifest = json.loads(path.read_text())
        manifest["chunkIndex"]["originalFileSize"] = size
        path.write_text(json.dumps(manifest))
        with pytest.raises((kbat.KbatError, ValueError)) as raised:
            kbat.scan(tmp_path / mode, **keys_for(mode)).to_pyarrow()
        assert path.name[:43] in str(raised.value), mode


def test_unknown_members_of_a_manifest_are_ignored(tmp_path: Path) -> None:
    path = object_of(copied("zstd", "codec-none", tmp_path), ".rsm-manifest")
    path.write_text(json.dumps({**json.loads(path.read_text()), "new": {"in": ["later", "versions"]}}))
    assert kbat.scan(tmp_path).count() == 220


def test_a_segment_without_manifest_is_omitted_with_a_warning(tmp_path: Path, location: Any) -> None:  # noqa: ANN401 - the fixture
    partition = copied("zstd", "txn-lz4", tmp_path)
    manifest = sorted(partition.glob("*.rsm-manifest"))[2]
    manifest.unlink()
    place, options = location(tmp_path)
    with pytest.warns(UserWarning, match="kbat") as caught:
        offsets = kbat.scan(place, include_control=True, **options).to_pyarrow()["offset"].to_pylist()
    texts = [str(warning.message) for warning in caught]
    assert any(manifest.stem in text and "incomplete" in text for text in texts), texts
    assert any("no segment contains offsets 114 to 125" in text for text in texts), texts
    assert set(offsets) == set(range(366)) - set(range(114, 126))


def test_a_log_alone_does_not_hide_a_complete_segment(tmp_path: Path) -> None:
    # a copy that ended after its first object, and began again as another segment
    partition = copied("plain", "txn-lz4", tmp_path)
    log = sorted(partition.glob("*.log"))[2]
    name, _, stem = log.name.partition("-")
    shutil.copyfile(log, partition / f"{name}-{stem.removesuffix('.log')[:-4]}zzzw.log")
    with pytest.warns(UserWarning, match="zzzw") as caught:
        offsets = kbat.scan(tmp_path, include_control=True).to_pyarrow()["offset"].to_pylist()
    assert offsets == list(range(366))
    assert any("it is incomplete" in str(warning.message) for warning in caught)


def test_the_only_segment_without_manifest_is_named(tmp_path: Path) -> None:
    manifest = object_of(copied("zstd", "codec-none", tmp_path), ".rsm-manifest")
    manifest.unlink()
    with pytest.warns(UserWarning, match="kbat") as caught:
        kbat.scan(tmp_path).to_pyarrow()
    assert any(manifest.stem in str(warning.message) for warning in caught)


def omitted_in_report(directory: Path) -> Iterator[str]:
    for finding in kbat.verify(directory).findings:
        yield finding.path + finding.message


def test_a_report_names_a_segment_without_manifest(tmp_path: Path) -> None:
    manifest = sorted(copied("zstd", "txn-lz4", tmp_path).glob("*.rsm-manifest"))[2]
    manifest.unlink()
    assert any(manifest.stem in text for text in omitted_in_report(tmp_path))


def test_an_index_that_cannot_be_decrypted_changes_no_answer(tmp_path: Path) -> None:
    partition = copied("aes", "codec-none", tmp_path)
    flip(object_of(partition, ".indexes"))
    log = kbat.PartitionLog(partition, encryption_keys=KEYS)
    place = log.find_offset(100)
    expected = kbat.PartitionLog(DATA / "corpus" / "codec-none").find_offset(100)
    assert place is not None
    assert expected is not None
    assert (place.position, place.base_offset) == (expected.position, expected.base_offset)
    assert kbat.scan(tmp_path, encryption_keys=KEYS, start_offset=100).count() == 120
    assert any("index cannot be decrypted" in f.message for f in kbat.verify(tmp_path, encryption_keys=KEYS).findings)


def test_two_ids_of_a_topic_are_named(tmp_path: Path) -> None:
    source = copied("plain", "codec-none", tmp_path).parent
    shutil.copytree(source, source.with_name("codec-none-AAAAAAAAAAAAAAAAAAAAAA"))
    with pytest.raises(ValueError, match="two topic ids"):
        kbat.scan(tmp_path)


# --- Kafka's LocalTieredStorage


def remote_directory() -> Path:
    [found] = (KAFKA / "remote").iterdir()
    return found


def remote_truth(tmp_path: Path) -> Path:
    """The remote segments under a broker's names, each of which is one of the broker's deleted files."""
    lines = (KAFKA / "deleted.sha256").read_text().splitlines()
    digests = {name: digest for digest, name in (line.split() for line in lines)}
    out = tmp_path / "orders-0"
    out.mkdir()
    for path in remote_directory().iterdir():
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex"}:
            name = f"{path.name[:20]}{path.suffix}"
            assert hashlib.sha256(path.read_bytes()).hexdigest() == digests[f"{name}.deleted"], name
            shutil.copyfile(path, out / name)
    return out


def test_remote_rows_are_those_of_the_files_that_the_broker_deleted(tmp_path: Path, location: Any) -> None:  # noqa: ANN401 - the fixture
    truth = remote_truth(tmp_path)
    place, options = location(remote_directory())
    expected = without(rows(os.fspath(truth), columns=COLUMNS, include_control=True), os.fspath(tmp_path))
    found = without(rows(place, columns=COLUMNS, include_control=True, **options), place)
    assert expected[0].num_rows > 6000
    assert found == expected


def test_remote_bytes_are_those_of_the_files_that_the_broker_deleted(tmp_path: Path) -> None:
    truth = remote_truth(tmp_path)
    log = kbat.PartitionLog(remote_directory())
    assert (log.topic, log.partition, log.end_offset) == ("orders", 0, 6678)
    assert [segment.base_offset for segment in log.segments] == [200, 2218, 2361, 4404, 4517, 6535]
    for segment in log.segments:
        data = b"".join(bytes(batch) for batch in kbat.read_batches(segment.path))
        assert data == (truth / os.path.basename(segment.path)).read_bytes()  # noqa: PTH119 - not a path


def test_remote_transactions_are_those_of_the_files_that_the_broker_deleted(tmp_path: Path) -> None:
    truth = os.fspath(remote_truth(tmp_path))
    remote = os.fspath(remote_directory())
    found, expected = kbat.PartitionLog(remote), kbat.PartitionLog(truth)
    assert found.last_stable_offset == expected.last_stable_offset
    assert len(expected.aborted_transactions(0, 6678)) > 0
    assert found.aborted_transactions(0, 6678) == expected.aborted_transactions(0, 6678)
    assert (
        kbat.scan(remote, isolation="read_committed", columns=["offset", "value"]).to_pyarrow()
        == kbat.scan(truth, isolation="read_committed", columns=["offset", "value"]).to_pyarrow()
    )


def test_an_overlapping_segment_of_a_deposed_leader_is_read_once(tmp_path: Path) -> None:
    partition = shutil.copytree(remote_directory(), tmp_path / remote_directory().name)
    for path in partition.glob("*2218-*"):
        shutil.copyfile(path, path.with_name(path.name[:21] + "A" * 22 + path.name[43:]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        offsets: list[Any] = (
            kbat.scan(partition, columns=["offset"], include_control=True).to_pyarrow()["offset"].to_pylist()
        )
    assert offsets == sorted(set(offsets))
    assert len(offsets) == kbat.scan(remote_directory(), include_control=True).count()
