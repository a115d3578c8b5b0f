"""`kbat.Limits`: bounds on the cost of untrusted input."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import kbat.batches
from data import build, records_of

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
FIELDS = ["batch_len", "decompressed_len", "ratio", "ratio_free_len", "record_count", "header_count"]
CODECS: list[Any] = ["gzip", "snappy", "lz4", "zstd"]


def limit_error(data: bytes, limits: kbat.Limits) -> kbat.LimitError:
    with pytest.raises(kbat.LimitError) as raised:
        records_of(data, limits=limits)
    with pytest.raises(kbat.LimitError):
        kbat.scan(data, limits=limits).to_pyarrow()
    assert raised.value.kind == "limit"
    return raised.value


def stored_len(records: list[tuple[int, None, bytes]]) -> int:
    """Bytes of the records before compression."""
    return kbat.batches.batch_size(records) - 61


def test_defaults_are_those_of_the_documentation() -> None:
    defaults = [getattr(kbat.Limits(), name) for name in FIELDS]
    assert defaults == [128 * MIB, 1024 * MIB, 1000, 128 * MIB, 200_000_000, 16 * MIB]
    assert repr(kbat.Limits(ratio=7)) == (
        "Limits(batch_len=134217728, decompressed_len=1073741824, ratio=7, ratio_free_len=134217728, "
        "record_count=200000000, header_count=16777216)"
    )


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_set_by_name_and_compare(name: str) -> None:
    limits = kbat.Limits(**{name: 5})
    assert getattr(limits, name) == 5
    assert limits == kbat.Limits(**{name: 5})
    assert limits != kbat.Limits()
    with pytest.raises(AttributeError):
        setattr(limits, name, 6)


def test_limits_pickle() -> None:
    """Edge case 88: Spark sends them to its tasks."""
    limits = kbat.Limits(**{name: index + 1 for index, name in enumerate(FIELDS)})
    assert pickle.loads(pickle.dumps(limits)) == limits  # noqa: S301 -- our own


@pytest.mark.parametrize("value", [-1, 2**64])
def test_limits_outside_of_a_size_are_refused(value: int) -> None:
    with pytest.raises(OverflowError):
        kbat.Limits(ratio=value)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [1, 2])
def test_decompressed_len_is_exact(codec: Any, magic: int) -> None:  # noqa: ANN401 -- of a literal type
    """Edge case 49: at the limit it passes, a byte below it does not."""
    if (magic, codec) == (1, "zstd"):
        return
    records = [(0, None, bytes(200_000))]
    data = build(records, magic=magic, compression=codec)
    length = stored_len(records) if magic == 2 else kbat.batches.batch_size(records, magic=1)
    assert len(records_of(data, limits=kbat.Limits(decompressed_len=length))) == 1
    error = limit_error(data, kbat.Limits(decompressed_len=length - 1))
    assert f"limit decompressed_len of {length - 1} exceeded" in str(error)
    assert "raise Limits.decompressed_len" in str(error)
    assert error.position is not None


@pytest.mark.parametrize("codec", CODECS)
def test_ratio_counts_past_the_free_length(codec: Any) -> None:  # noqa: ANN401 -- of a literal type
    """Edge cases 49 and 50: the error names the limit to raise, and raising it reads the batch."""
    records = [(0, None, bytes(1000)) for _ in range(500)]
    data = build(records, compression=codec)
    length = stored_len(records)
    error = limit_error(data, kbat.Limits(ratio=2, ratio_free_len=1000))
    assert "raise Limits.ratio or Limits.ratio_free_len if the input can be trusted" in str(error)
    assert len(records_of(data, limits=kbat.Limits(ratio=2, ratio_free_len=length))) == 500
    assert len(records_of(data, limits=kbat.Limits(ratio=length, ratio_free_len=0))) == 500


def test_bomb_is_refused_by_default_and_read_on_request() -> None:
    """Edge cases 49 and 50: 13 kB that unpack to 140 MiB."""
    data = build([(0, None, bytes(140 * MIB))], compression="zstd")
    assert len(data) < 32 << 10
    assert "limit ratio" in str(limit_error(data, kbat.Limits()))
    [record] = records_of(data, limits=kbat.Limits(ratio=100_000))
    assert record.value is not None
    assert len(record.value) == 140 * MIB


def test_honest_batch_with_a_ratio_over_1000_is_read() -> None:
    """Edge case 50."""
    data = build([(0, None, bytes(10 * MIB))], compression="zstd")
    assert len(data) * 1000 < 10 * MIB
    assert len(records_of(data)) == 1


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batch_len_bounds_the_batches_of_files_and_buffers(magic: int, tmp_path: Path) -> None:
    data = build([(0, None, bytes(5000))], magic=magic)
    path = tmp_path / "0.log"
    path.write_bytes(data)
    limits, lower = kbat.Limits(batch_len=len(data)), kbat.Limits(batch_len=len(data) - 1)
    assert len(records_of(path, limits=limits)) == 1
    with pytest.raises(kbat.LimitError, match=f"limit batch_len of {len(data) - 1} exceeded") as raised:
        records_of(path, limits=lower)
    assert raised.value.path == str(path)
    assert raised.value.base_offset == 0
    for source in (path, data):
        with pytest.raises(kbat.LimitError):
            records_of(source, limits=lower)
        with pytest.raises(kbat.LimitError):
            kbat.scan(source, limits=lower).to_pyarrow()
    batches = kbat.read_batches(data + build([(0, None, b"small")], magic=magic), limits=lower)
    with pytest.raises(kbat.LimitError):
        next(batches)
    assert batches.skip_batch()
    assert [record.value for batch in batches for record in batch] == [b"small"]


def test_record_count_is_exact() -> None:
    data = build([(0, None, None)] * 10)
    assert len(records_of(data, limits=kbat.Limits(record_count=10))) == 10
    assert "limit record_count of 9 exceeded (at least 10" in str(limit_error(data, kbat.Limits(record_count=9)))


def test_header_count_is_exact() -> None:
    builder = kbat.BatchBuilder()
    builder.append(None, None, timestamp=0, headers=[("h", None)] * 10)
    data = builder.finish()
    assert len(records_of(data, limits=kbat.Limits(header_count=10))) == 1
    assert "limit header_count of 9 exceeded" in str(limit_error(data, kbat.Limits(header_count=9)))


def test_limit_error_in_one_batch_leaves_the_next() -> None:
    data = build([(0, None, None)] * 10) + build([(0, None, b"next")])
    first, second = kbat.read_batches(data, limits=kbat.Limits(record_count=5))
    with pytest.raises(kbat.LimitError):
        list(first)
    assert [record.value for record in second] == [b"next"]
