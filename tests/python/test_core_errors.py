"""The exceptions: their classes, their attributes, their messages."""

from __future__ import annotations

import copy
import errno
import gzip
import os
import pickle
from pathlib import Path

import pytest

import kbat
from data import DATA, build, patched, records_of, with_right_crc

ATTRIBUTES = ["kind", "position", "base_offset", "record", "field", "path"]


def error_of(source: bytes | bytearray | Path) -> kbat.KbatError:
    """The error that reading everything ends with."""
    with pytest.raises(kbat.KbatError) as raised:
        records_of(source)
    return raised.value


def attributes_of(error: kbat.KbatError) -> dict[str, object]:
    return {name: getattr(error, name) for name in ATTRIBUTES}


@pytest.mark.parametrize(
    ("cls", "bases"),
    [
        (kbat.CorruptError, (kbat.KbatError, ValueError)),
        (kbat.CrcError, (kbat.CorruptError,)),
        (kbat.TruncatedError, (kbat.CorruptError,)),
        (kbat.DecompressionError, (kbat.CorruptError,)),
        (kbat.UnsupportedError, (kbat.KbatError,)),
        (kbat.LimitError, (kbat.KbatError,)),
        (kbat.KbatError, (Exception,)),
    ],
)
def test_classes_have_these_bases(cls: type[Exception], bases: tuple[type[Exception], ...]) -> None:
    assert cls.__bases__ == bases


def test_classes_of_unsupported_and_limit_are_no_value_errors() -> None:
    for cls in (kbat.UnsupportedError, kbat.LimitError):
        assert not issubclass(cls, ValueError)


def test_batch_length_error_has_every_attribute(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000042.log"
    path.write_bytes(build(base_offset=42) + patched(build(base_offset=43), 8, ">i", 5))
    error = error_of(path)
    assert type(error) is kbat.CorruptError
    assert attributes_of(error) == {
        "kind": "batch_length",
        "position": 84,
        "base_offset": 43,
        "record": None,
        "field": "batch_length",
        "path": str(path),
    }
    for part in (str(path), "byte 84", "base offset 43", "field batch_length", "5"):
        assert part in str(error)


def test_crc_error_tells_both_checksums() -> None:
    batch = build(base_offset=6)
    stored = int.from_bytes(batch[17:21])
    error = error_of(patched(batch, 17, ">I", stored ^ 1))
    assert type(error) is kbat.CrcError
    assert (error.kind, error.position, error.base_offset, error.path) == ("crc", 17, 6, None)
    assert f"stored {stored ^ 1:#010x}, computed {stored:#010x}" in str(error)


def test_record_error_names_record_and_field() -> None:
    data = build([(0, b"key", b"value"), (0, b"key", b"value")], base_offset=8)
    second = 61 + (len(data) - 61) // 2
    error = error_of(with_right_crc(patched(data, second + 4, ">b", 100)))  # a key of 50 bytes
    assert isinstance(error, kbat.CorruptError)
    assert (error.record, error.base_offset, error.field) == (1, 8, "key")
    assert error.position is not None
    assert second < error.position < len(data)
    assert "record 1" in str(error)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd", "snappy"])
def test_decompression_error_names_codec_and_start(codec: str) -> None:
    data = bytearray(build([(0, b"k", b"v" * 1000)], compression=codec))
    data[61:71] = b"\xff" * 10
    error = error_of(with_right_crc(data))
    assert type(error) is kbat.DecompressionError
    assert error.kind == "decompression"
    assert codec in str(error)
    assert error.position == 61


@pytest.mark.parametrize("cls", [kbat.KbatError, kbat.CrcError, kbat.LimitError, kbat.UnsupportedError])
def test_exceptions_pickle_and_copy_with_their_attributes(cls: type[kbat.KbatError]) -> None:
    """Edge case 88: Spark sends them from its tasks."""
    error = cls("words", kind="crc", position=1, base_offset=2, record=3, field="crc", path="/a/b.log")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301 -- our own
        assert type(again) is cls
        assert str(again) == "words"
        assert attributes_of(again) == attributes_of(error)


def test_exception_raised_by_rust_pickles() -> None:
    """Edge case 88."""
    error = error_of(patched(build(base_offset=6), 17, ">I", 0))
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own
    assert (type(again), str(again), attributes_of(again)) == (type(error), str(error), attributes_of(error))


def test_kbat_error_made_by_hand_knows_nothing() -> None:
    assert set(attributes_of(kbat.KbatError("words")).values()) == {None}


def test_missing_file_is_file_not_found(tmp_path: Path) -> None:
    path = tmp_path / "no.log"
    for use in (kbat.read_batches, kbat.scan, kbat.find_segments):
        with pytest.raises(FileNotFoundError) as raised:
            use(path)
        assert raised.value.errno == errno.ENOENT
        assert raised.value.filename == str(path)
        assert str(raised.value) == f"[Errno 2] No such file or directory: '{path}'"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("ftp://host/orders-0", "ftp:// is not a known scheme; use file, s3,"),
        (Path("s3://bucket/orders-0"), "pathlib removes a slash from URLs; pass the URL as a str"),
    ],
)
def test_url_that_names_no_store_is_refused(path: str | Path, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kbat.scan(path)
    with pytest.raises(ValueError, match=message):
        kbat.LogDirectory(DATA / "log-dir", remote=path)


def test_file_url_is_a_path(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="is empty"):
        assert kbat.find_segments(f"file://{tmp_path}") == []


def test_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as raised:
        kbat.read_batches(tmp_path)
    assert raised.value.filename == str(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_permission_error(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(build())
    path.chmod(0)
    with pytest.raises(PermissionError) as raised:
        kbat.read_batches(path)
    assert raised.value.filename == str(path)


def test_scan_raises_kbats_own_exceptions(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(build(base_offset=5) + patched(build(base_offset=6), 17, ">I", 0))
    for use in (kbat.Scan.to_pyarrow, kbat.Scan.to_pandas, lambda scan: list(scan.to_batches())):
        with pytest.raises(kbat.CrcError) as raised:
            use(kbat.scan(path))
        assert (raised.value.path, raised.value.position, raised.value.base_offset) == (str(path), 76 + 17, 6)


def test_errors_of_a_batch_from_a_file_name_the_file() -> None:
    path = DATA / "corpus/crash-flip/00000000000000000000.log"
    bad = [batch for batch in kbat.read_batches(path) if not batch.crc_ok]
    assert bad
    for batch in bad:
        with pytest.raises(kbat.CrcError, match="crash-flip") as raised:
            iter(batch)
        assert raised.value.path == str(path)
        assert raised.value.position == batch.position + 17


@pytest.mark.parametrize("magic", [0, 1])
def test_errors_inside_a_compressed_set_are_where_the_compressed_bytes_begin(magic: int) -> None:
    before = kbat.BatchBuilder()
    before.append(b"key", b"value", timestamp=1)
    builder = kbat.BatchBuilder(magic, "gzip", base_offset=1)
    for value in (b"one", b"two"):
        builder.append(b"key", value, timestamp=1 if magic else -1)
    prefix, whole = before.finish(), builder.finish()
    value_position = len(prefix) + (34 if magic else 26)
    in_set = value_position - len(prefix)
    for inner in (
        b"no gzip at all",
        gzip.compress(b"\0" * 11 + b"\5" + b"12345678"),  # a message of 5 bytes
        gzip.compress(b""),
        gzip.compress(gzip.decompress(whole[in_set:])[:-7] + b"\x7f\0\0\0two"),  # its value's length
    ):
        damaged = prefix + whole[: in_set - 4] + len(inner).to_bytes(4, "big") + inner
        length = (len(damaged) - len(prefix) - 12).to_bytes(4, "big")
        damaged = damaged[: len(prefix) + 8] + length + damaged[len(prefix) + 12 :]
        with pytest.raises(kbat.KbatError) as raised:
            [list(batch) for batch in kbat.read_batches(damaged, check_crc=False)]
        assert raised.value.position == value_position, raised.value


def test_errors_of_control_records_are_where_the_record_is(tmp_path: Path) -> None:
    before = kbat.BatchBuilder()
    before.append(b"key", b"value", timestamp=1)
    builder = kbat.BatchBuilder(base_offset=500)
    builder.append(b"\0\0\0", b"", timestamp=1)
    prefix, control = before.finish(), with_right_crc(patched(builder.finish(), 21, ">h", 0x20))
    (tmp_path / "control.log").write_bytes(prefix + control)
    record = next(iter(list(kbat.read_batches(tmp_path / "control.log"))[1]))
    with pytest.raises(kbat.CorruptError) as raised:
        _ = record.control
    error = raised.value
    assert (error.position, error.base_offset, error.record) == (len(prefix) + 61, 500, 0)
    assert error.path == str(tmp_path / "control.log")
    assert error.field == "control_type"


def test_url_is_no_directory_of_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No result goes to a directory named s3:."""
    monkeypatch.chdir(tmp_path)
    log = DATA / "corpus" / "codec-lz4"
    target = "s3://bucket/out"
    options = {"acess_key_id": "x"}
    for write in (
        lambda: kbat.salvage(log, target, storage_options=options),
        lambda: kbat.rewrite(log, target, compression="none", storage_options=options),
        lambda: kbat.write_parquet(kbat.scan(log), target, storage_options=options),
    ):
        with pytest.raises(ValueError, match='no option "acess_key_id" for s3://'):
            write()
    with pytest.raises(ValueError, match="writes to the file system only"):
        kbat.LogWriter(target)
    assert list(tmp_path.iterdir()) == []
