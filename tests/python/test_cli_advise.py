"""The command `kbat advise`: projected sizes, rules, producers, and logs that can't be measured."""

from __future__ import annotations

import json
import os
import random
import re
from itertools import islice, pairwise
from shutil import copytree
from typing import TYPE_CHECKING, Literal

import pytest

import kbat
from command_line import LOG, LOG_DIR, copy_of, json_of, on_terminal, run
from kbat.advise import Advice, Projection, Setting, Topic, advise
from kbat.advise.advice import best, best_batching, recommend
from kbat.advise.batching import AS_SENT, BATCHINGS, Batching, Joined, Sent, simulate
from kbat.advise.clock import Deadline, points, spread
from kbat.advise.codecs import ALL_SETTINGS, DEFAULTS, NONE, SETTINGS, Bench, Chunk
from kbat.advise.headers import survey
from kbat.advise.sample import fill, strata
from kbat.advise.usual import Order
from kbat.advise.words import order_lines

if TYPE_CHECKING:
    from pathlib import Path

ZSTD, GZIP, SNAPPY, LZ4 = Setting("zstd", 3), Setting("gzip", 6), Setting("snappy"), Setting("lz4", 9)
START = 1_700_000_000_000
QUICK = ("--seconds", 1, "--sample", "1MiB")
MIB = 1 << 20


def write(directory: Path, batches: int, records: int, *, producer_id: int = -1, step: int = 1) -> Path:
    """Write a segment of uncompressed batches, with a record every `step` milliseconds."""
    directory.mkdir(parents=True)
    offset, data = 0, []
    for _ in range(batches):
        epoch, sequence = (0, offset) if producer_id >= 0 else (-1, -1)
        builder = kbat.BatchBuilder(
            base_offset=offset, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        for _ in range(records):
            value = json.dumps({"order": offset, "customer": f"customer-{offset * 7919 % 500}", "state": "paid"})
            builder.append(f"key-{offset % 97}".encode(), value.encode(), timestamp=START + offset * step)
            offset += 1
        data.append(builder.finish())
    (directory / LOG).write_bytes(b"".join(data))
    return directory


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition of 40 batches with 50 records."""
    return write(tmp_path_factory.mktemp("logs") / "orders-0", 40, 50)


@pytest.fixture(scope="module")
def measured(orders: Path) -> Advice:
    """The whole partition, measured."""
    return advise(kbat.find_segments(orders), seconds=10)


@pytest.mark.parametrize("setting", [ZSTD, GZIP, SNAPPY, LZ4, Setting("lz4", 12), Setting("zstd", -5)])
def test_projection_of_a_whole_log_is_what_rewrite_writes(
    orders: Path, measured: Advice, tmp_path: Path, setting: Setting
) -> None:
    (found,) = (one for one in measured.projections if one.setting == setting)
    written = kbat.rewrite(orders, tmp_path / "out-0", compression=setting.codec, level=setting.level).written
    assert found.bytes == written.bytes
    assert found.sample_bytes == measured.raw_len == (orders / LOG).stat().st_size


def test_projection_from_a_sample_is_near_what_rewrite_writes(tmp_path: Path) -> None:
    log = write(tmp_path / "orders-0", 300, 50)
    segments = kbat.find_segments(log)
    found = advise(segments, sample_len=MIB // 8, seconds=10, settings=[ZSTD])
    assert found.raw_len < segments[0].size / 4
    written = kbat.rewrite(log, tmp_path / "out-0", compression="zstd", level=3).written.bytes
    assert found.projections[0].bytes == pytest.approx(written, rel=0.03)


@pytest.mark.parametrize("has_index", [True, False])
def test_sample_is_spread_over_the_log_and_has_no_batch_twice(tmp_path: Path, *, has_index: bool) -> None:
    log = write(tmp_path / "orders-0", 800, 50)
    if has_index:
        kbat.rebuild_indexes(log)
    (stratum,) = strata(kbat.find_segments(log))
    fill([stratum], MIB // 4, Deadline(10))
    offsets = [batch.rows.column("offset")[0].as_py() for window in stratum.windows for batch in window.batches]
    assert len(offsets) == len(set(offsets))
    # of each quarter of the log some complete batches
    assert {offset * 4 // 40_000 for offset in offsets} == {0, 1, 2, 3}
    assert {offset % 50 for offset in offsets} == {0}
    assert MIB // 4 <= stratum.raw_len <= MIB // 2
    assert stratum.batches_skipped == 0


def test_each_large_topic_and_the_others_are_sampled() -> None:
    parts = strata(kbat.find_segments(LOG_DIR), topics=3)
    assert [one.name for one in parts] == ["segments-default-interval", "codec-none", "txn-lz4", None]
    assert len(parts[3].topics) == 12
    assert sum(one.size for one in parts) == sum(segment.size for segment in kbat.find_segments(LOG_DIR))
    fill(parts, MIB, Deadline(10))
    assert all(one.raw_len for one in parts)


def test_sample_has_a_window_of_each_topic_after_the_deadline() -> None:
    parts = strata(kbat.find_segments(LOG_DIR))
    fill(parts, MIB, Deadline(0))
    assert all(len(one.windows) == 1 for one in parts)


def test_spread_and_points_cover_a_range_evenly() -> None:
    assert sorted(spread(100)) == list(range(100))
    first = sorted(islice(spread(1000), 10))
    assert max(after - before for before, after in pairwise(first)) < 200
    assert {point // 100 for point in islice(points(1000), 20)} == set(range(10))
    assert list(spread(0)) == list(points(0)) == []


def test_slow_setting_is_measured_in_part_and_estimated(orders: Path) -> None:
    data = (orders / LOG).read_bytes()
    batches = [bytes(batch) for batch in kbat.read_batches(data)]
    chunks = [Chunk(index % 2, b"".join(batches[index * 4 : index * 4 + 4])) for index in range(10)]
    slow = Setting("zstd", 19)
    bench = Bench(chunks)
    (measured,) = bench.run([slow], Deadline(0))
    assert measured.is_partial
    assert measured.raw_len == len(chunks[0].data)
    whole = Bench(chunks)
    whole.run([slow], Deadline(30))
    for stratum in (0, 1):
        assert bench.size(slow, stratum) == pytest.approx(whole.size(slow, stratum), rel=0.05)


def test_every_setting_is_valid_and_smaller_levels_are_faster(orders: Path) -> None:
    data = (orders / LOG).read_bytes()
    bench = Bench([Chunk(0, data)])
    found = {one.setting: one for one in bench.run(ALL_SETTINGS, Deadline(1))}
    assert set(SETTINGS) <= set(ALL_SETTINGS)
    assert {level for codec, level in ALL_SETTINGS if codec == "gzip"} == set(range(1, 10))
    assert {level for codec, level in ALL_SETTINGS if codec == "lz4"} == set(range(1, 18))
    assert {level for codec, level in ALL_SETTINGS if codec == "zstd" and (level or 0) > 0} == set(range(1, 23))
    assert bench.size(NONE, 0) == len(data)
    assert bench.size(Setting("zstd", 19), 0) < bench.size(Setting("zstd", 1), 0) < bench.size(SNAPPY, 0) < len(data)
    slow, fast = found[Setting("zstd", 19)].compress_rate, found[Setting("zstd", 1)].compress_rate
    assert slow is not None
    assert fast is not None
    assert slow < fast / 2
    assert found[NONE].compress_rate is None


def projection(setting: Setting, size: int, mib: float, today: int = 1000) -> Projection:
    return Projection(setting, size, today, 2.0, mib * MIB, 1000 * MIB, 1)


def test_best_is_the_smallest_that_is_fast_enough() -> None:
    found = [
        projection(Setting("zstd", 19), 300, 3),
        projection(Setting("zstd", 9), 400, 60),
        projection(LZ4, 600, 500),
    ]
    assert best(found, 50 * MIB) == found[1]
    assert best(found, 100 * MIB) == found[2]
    assert best(found, 1000 * MIB) is None
    assert best([projection(NONE, 1000, 0)], 0) is None


def test_best_prefers_a_default_level_then_speed_among_equal_sizes() -> None:
    nine, three, one = Setting("zstd", 9), ZSTD, Setting("zstd", 1)
    sizes = [projection(nine, 400, 60), projection(three, 419, 200), projection(one, 418, 300)]
    assert best(sizes, 50 * MIB) == sizes[1]
    assert best([sizes[0], sizes[2]], 50 * MIB) == sizes[2]
    assert best([sizes[0], projection(three, 421, 200)], 50 * MIB) == sizes[0]


def sent(as_sent: Joined, **joined: Joined) -> Sent:
    sizes = {AS_SENT: as_sent, **{one: joined.get(f"linger_{one.linger_ms}", as_sent) for one in BATCHINGS}}
    return Sent(as_sent.bytes, as_sent.bytes, sizes, sizes)


def test_larger_batches_are_recommended_only_if_they_gain() -> None:
    assert best_batching(sent(Joined(100, 1000), linger_100=Joined(80, 960)).joined) is None
    assert best_batching(sent(Joined(100, 1000), linger_100=Joined(80, 940)).joined) == Batching(100, 16384)
    # the shortest delay of those that are almost as small
    both = sent(Joined(100, 1000), linger_20=Joined(50, 620), linger_100=Joined(30, 600))
    assert best_batching(both.joined) == Batching(20, 16384)
    assert best_batching(sent(Joined(100, 1000), linger_5=Joined(50, 990)).joined) == Batching(5, 16384)


def test_topic_keeps_its_codec_if_little_is_saved_and_brokers_topics_get_no_advice() -> None:
    none = sent(Joined(10, 100))
    kept = Topic("orders", 1, 1000, {"zstd": 1000}, [projection(ZSTD, 960, 200)])
    recommend(kept, none, kept.projections[0])
    assert (kept.setting, kept.batching, kept.bytes_after) == (None, None, 1000)
    changed = Topic("orders", 1, 1000, {"none": 1000}, [projection(ZSTD, 500, 200)])
    recommend(changed, sent(Joined(10, 100), linger_5=Joined(2, 80)), changed.projections[0])
    assert (changed.setting, changed.batching) == (ZSTD, Batching(5, 16384))
    assert (changed.bytes_after, changed.batches_after) == (400, 0.2)
    internal = Topic("__consumer_offsets", 1, 1000, {"none": 1000}, [projection(ZSTD, 500, 200)])
    recommend(internal, none, internal.projections[0])
    assert (internal.setting, internal.bytes_after) == (None, 1000)


def test_codec_that_saves_little_now_is_recommended_with_larger_batches_if_it_makes_these_smaller() -> None:
    larger = sent(Joined(10, 100), linger_5=Joined(2, 30)).joined
    plain = sent(Joined(10, 100), linger_5=Joined(2, 90)).joined
    both = Topic("orders", 1, 1000, {"none": 1000}, [projection(ZSTD, 990, 200)])
    recommend(both, Sent(100, 100, larger, plain), both.projections[0])
    assert (both.setting, both.batching, both.bytes_after) == (ZSTD, Batching(5, 16384), 297)
    # the codec in use is as good
    alone = Topic("orders", 1, 1000, {"gzip": 1000}, [projection(ZSTD, 990, 200)])
    recommend(alone, Sent(100, 100, larger, larger), alone.projections[0])
    assert (alone.setting, alone.batching, alone.bytes_after) == (None, Batching(5, 16384), 300)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_advice_for_equal_records_in_batches_of_their_own_is_what_rewrite_writes(
    tmp_path: Path, codec: Literal["none", "zstd"]
) -> None:
    # each record is incompressible, and all of them are equal: only a codec with larger batches saves much
    value = random.Random(1).randbytes(900)  # noqa: S311 - the same bytes in each run
    data = b""
    for offset in range(1000):
        builder = kbat.BatchBuilder(compression=codec, base_offset=offset)
        builder.append(b"key", value, timestamp=START + offset)
        data += builder.finish()
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / LOG).write_bytes(data)
    found = advise(kbat.find_segments(directory), seconds=10)
    (topic,), (producer,) = found.topics, found.producers
    assert topic.batching is not None
    if codec == "none":
        assert topic.setting == ZSTD
    else:
        assert topic.setting is None
    batch_bytes = topic.batching.batch_size
    written = kbat.rewrite(directory, tmp_path / "out-0", compression="zstd", level=3, batch_bytes=batch_bytes).written
    assert topic.bytes_after == pytest.approx(written.bytes, rel=0.5)
    assert topic.bytes_after < len(data) / 20
    assert producer.bytes_after == topic.bytes_after


def test_larger_batches_without_a_codec_are_projected_without_one(tmp_path: Path) -> None:
    log = write(tmp_path / "orders-0", 600, 1)
    parts = strata(kbat.find_segments(log))
    fill(parts, MIB, Deadline(10))
    ((_, found),) = simulate(parts, [ZSTD], Deadline(30), kept={0}).items()
    one = Batching(100, 16384)
    written = kbat.rewrite(log, tmp_path / "out-0", compression="none", batch_bytes=16384).written
    assert found.kept[AS_SENT].bytes == (log / LOG).stat().st_size
    assert found.kept[one].bytes == pytest.approx(written.bytes, rel=0.05)
    assert found.joined[one].bytes < found.kept[one].bytes / 2


def test_linger_joins_batches_by_time_and_size(tmp_path: Path) -> None:
    log = write(tmp_path / "slow-0", 600, 1)
    (stratum,) = strata(kbat.find_segments(log))
    fill([stratum], MIB, Deadline(10))
    ((sender, found),) = simulate([stratum], [ZSTD], Deadline(30)).items()
    assert sender.producer_id == -1
    counts = {one: sums.batches for one, sums in found.joined.items()}
    # a record per millisecond: six of them are within 5 ms, 21 within 20 ms
    assert counts[AS_SENT] == 600
    assert counts[Batching(5, 16384)] == 100
    assert counts[Batching(20, 16384)] == 29
    size = (log / LOG).stat().st_size
    assert counts[Batching(100, 16384)] >= size / 16384
    # joined, the records are those of one batch
    builder = kbat.BatchBuilder(compression="zstd", level=3)
    rows = [record for batch in kbat.read_batches(log / LOG) for record in batch]
    for record in rows[:6]:
        builder.append(record.key, record.value, timestamp=record.timestamp)
    assert found.joined[Batching(5, 16384)].bytes == pytest.approx(100 * len(builder.finish()), rel=0.05)


def test_batches_of_other_producers_are_not_joined(tmp_path: Path) -> None:
    directory = tmp_path / "two-0"
    directory.mkdir()
    data = b""
    for offset in range(200):
        builder = kbat.BatchBuilder(
            base_offset=offset, producer_id=offset % 2, producer_epoch=0, base_sequence=offset // 2
        )
        builder.append(None, b"value", timestamp=START + offset)
        data += builder.finish()
    (directory / LOG).write_bytes(data)
    parts = strata(kbat.find_segments(directory))
    fill(parts, MIB, Deadline(10))
    found = simulate(parts, [ZSTD], Deadline(30))
    assert sorted(sender.producer_id for sender in found) == [0, 1]
    # every second millisecond: three within 5 ms
    assert {one.joined[Batching(5, 16384)].batches for one in found.values()} == {34}


def test_usual_order_holds_or_names_the_exceptions() -> None:
    holds = Order("ratio", "ratio", ((ZSTD, 4.0), (GZIP, 4.1), (LZ4, 2.0), (SNAPPY, 1.9)))
    assert holds.exceptions == []
    assert order_lines(holds) == [
        "usual ratio: zstd > gzip > lz4 > snappy",
        "  measured: gzip 4.10, zstd 4.00, lz4 2.00, snappy 1.90",
        "  holds here",
    ]
    wrong = Order(
        "compression speed", "bytes_per_second", ((LZ4, 200.0 * MIB), (SNAPPY, 300.0 * MIB), (ZSTD, 9.5 * MIB))
    )
    assert wrong.exceptions == [(SNAPPY, LZ4)]
    assert order_lines(wrong)[1:] == [
        "  measured in MiB/s: snappy 300, lz4 200, zstd 9.5",
        "  does not hold here: snappy is faster than lz4",
    ]


def test_default_levels_need_no_config() -> None:
    assert [one.configs for one in DEFAULTS] == [{"compression.type": one.codec} for one in DEFAULTS]
    assert Setting("gzip", 9).configs == {"compression.type": "gzip", "compression.gzip.level": "9"}


def test_survey_stops_at_its_deadline(tmp_path: Path) -> None:
    for number in range(100):
        write(tmp_path / f"orders-{number}", 1, 1)
    segments = kbat.find_segments(tmp_path)
    part, whole = survey(segments, Deadline(0)), survey(segments, Deadline(30))
    assert not part.is_complete
    assert 0 < part.segments_read < 100
    assert whole.is_complete
    assert whole.total.batches == 100
    assert part.total.batches == part.segments_read


def test_json_names_producers_with_small_or_uncompressed_batches(tmp_path: Path) -> None:
    write(tmp_path / "small-0", 200, 1, producer_id=7)
    write(tmp_path / "plain-0", 10, 100, producer_id=8)
    kbat.rewrite(write(tmp_path / "other" / "good-0", 5, 200), tmp_path / "good-0", compression="zstd")
    found = json_of("advise", tmp_path, *QUICK, "--topic", "small", "--topic", "plain", "--topic", "good")
    named = {one["topic"]: one for one in found["producers"]}
    assert set(named) == {"small", "plain"}
    assert (named["small"]["producer_id"], named["small"]["is_small"]) == (7, True)
    assert (named["plain"]["producer_id"], named["plain"]["is_small"], named["plain"]["is_uncompressed"]) == (
        8,
        False,
        True,
    )
    assert named["small"]["batches"] == named["small"]["records"] == 200
    assert named["small"]["batches_after"] < 10
    assert named["small"]["bytes_after"] < named["small"]["bytes"] / 4
    topics = {one["topic"]: one for one in found["topics"]}
    assert topics["small"]["linger_ms"] == 100
    assert topics["plain"]["recommended"]["compression"] in {"zstd", "gzip"}
    assert found["bytes_after"] == sum(one["bytes_after"] for one in found["topics"])
    assert found["recommendation"][-1].startswith("All together: ")


@pytest.mark.parametrize("is_complete", [True, False])
def test_zeros_of_preallocated_segments_are_not_projected(orders: Path, tmp_path: Path, *, is_complete: bool) -> None:
    size = (orders / LOG).stat().st_size
    for topic, length in (("zeros", MIB), ("orders", 100 * MIB), ("whole", size)):
        directory = copytree(orders, tmp_path / f"{topic}-0")
        os.truncate(directory / LOG, 0 if topic == "zeros" else size)
        os.truncate(directory / LOG, length)
    segments = kbat.find_segments(tmp_path)
    found = survey(segments, Deadline(30 if is_complete else 0))
    if not is_complete:
        found.segments_read = 0
    advice = advise(segments, found=found, settings=[ZSTD], seconds=10)
    assert {topic.name: topic.bytes for topic in advice.topics} == {"zeros": 0, "orders": size, "whole": size}
    written = kbat.rewrite(orders, tmp_path / "out", compression="zstd", level=3).written
    assert (advice.bytes, advice.projections[0].bytes) == (2 * size, 2 * written.bytes)


def test_json_has_the_documented_fields(orders: Path) -> None:
    found = json_of("advise", orders, *QUICK)
    help_text = " ".join(run("advise", "--help").stdout.split())
    names = set(re.findall(r"[a-z][a-z_]+", help_text))
    shown = {"headers": found["headers"], "sample": found["sample"], "settings": found["settings"][0]}
    shown |= {
        "topics": found["topics"][0],
        "producers": found["producers"][0],
        "usual_orders": found["usual_orders"][0],
    }
    assert set(found) <= names
    for part in shown.values():
        assert set(part) <= names
    assert found["path"] == str(orders)
    assert found["headers"]["is_complete"]
    assert found["headers"]["batches"] == 40
    assert sum(one["is_recommended"] for one in found["settings"]) <= 1


def test_text_fits_80_columns_and_wide_shows_all_columns() -> None:
    narrow = on_terminal(80, "advise", LOG_DIR, *QUICK)
    tables = narrow.split("recommendation:")[0]
    # sentences, of which the second depends on the speed of this machine
    sentences = ("hidden in this narrow terminal", "  does not hold here")
    rows = [line for line in tables.splitlines()[1:] if not line.startswith(sentences)]
    assert max(map(len, rows)) <= 80
    assert "usual compression speed: lz4 > snappy > zstd > gzip" in narrow
    assert "hidden in this narrow terminal: " in narrow
    wide = run("advise", LOG_DIR, "--wide", *QUICK).stdout
    assert all(name in wide for name in ("linger.ms", "batch.size", "records per batch", "measured on"))


def test_min_speed_that_no_codec_reaches_recommends_nothing(orders: Path) -> None:
    done = run("advise", orders, *QUICK, "--min-speed", "1000GiB")
    assert done.exit_code == 0
    assert "no setting compresses at least --min-speed" in done.stdout
    assert "- Keep the codecs and batch sizes" in done.stdout


def test_damaged_batches_are_reported_and_the_rest_is_measured(orders: Path, tmp_path: Path) -> None:
    data = bytearray((orders / LOG).read_bytes())
    data[len(data) // 2] ^= 1
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / LOG).write_bytes(data[:-5])
    done = run("advise", directory, *QUICK)
    assert done.exit_code == 0
    assert "* the setting" in done.stdout
    assert "not counted: " in done.stderr
    assert "not measured: " in done.stderr


def test_copies_of_the_corpus_are_measured(tmp_path: Path) -> None:
    for case in ("compacted-txn", "preallocated", "crash-torn"):
        assert run("advise", copy_of(case, tmp_path / f"{case}-0"), *QUICK).exit_code == 0, case


def test_batch_that_expands_beyond_the_limit_is_not_measured(tmp_path: Path) -> None:
    builder = kbat.BatchBuilder(compression="zstd")
    builder.append(None, bytes(65 << 20), timestamp=START)
    (tmp_path / "bomb-0").mkdir()
    (tmp_path / "bomb-0" / LOG).write_bytes(builder.finish())
    done = run("advise", tmp_path / "bomb-0", *QUICK)
    assert done.exit_code == 0
    assert done.stdout == f"{tmp_path / 'bomb-0'}: no records to measure\n"
    assert "not measured: 1 batch corrupt or too large" in done.stderr


def test_paths_without_records_end_with_their_exit_code(tmp_path: Path) -> None:
    noise = tmp_path / "noise-0"
    noise.mkdir()
    (noise / LOG).write_bytes(random.Random(0).randbytes(1 << 16))  # noqa: S311 - the same bytes in each run
    done = run("advise", noise, *QUICK)
    assert done.exit_code == 1
    assert "no batch can be read" in done.stderr
    zeros = tmp_path / "zeros.log"
    zeros.write_bytes(bytes(MIB))
    assert run("advise", zeros, *QUICK).stdout == f"{zeros}: no records to measure\n"
    (tmp_path / "empty").mkdir()
    assert run("advise", tmp_path / "empty").exit_code == 1
    assert run("advise", tmp_path / "missing").exit_code == 2
    assert run("advise", noise, "--sample", "1k").exit_code == 2
