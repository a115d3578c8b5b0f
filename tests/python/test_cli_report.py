"""The command `kbat report`: the figures on the page, what a browser makes of it, and the file."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import os
import random
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

import kbat
from browser import open_page, screenshot
from command_line import LOG, LOG_DIR, copy_of, json_of, run
from kbat.cli.output import size_text
from kbat.report.headers import read
from kbat.report.plots import name_of, short
from kbat.report.timeline import MONDAY, Timeline, date_text

if TYPE_CHECKING:
    from pathlib import Path

START = 1_700_000_000_000
DAY = 86_400_000
EVIL = "script><img src=x onerror=alert(1)>&lt;b>"
QUICK = ("--seconds", 1)


def data_of(page: Path, name: str) -> dict[str, Any]:
    """The JSON in a page: its figures or its tables."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    parsed: dict[str, Any] = json.loads(found[1])
    return parsed


def rows_of(page: Path, name: str) -> list[dict[str, Any]]:
    table = data_of(page, "tables")[name]
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on the log directory of the tests, whose path ends a script of the page, and loads an image."""
    out = tmp_path_factory.mktemp("report") / "report.html"
    # a slash makes the end of a tag of two directories
    place = out.parent / "<" / EVIL
    place.parent.mkdir()
    place.symlink_to(LOG_DIR)
    done = run("report", place, "-o", out, *QUICK)
    assert done.exit_code == 0, done.stderr
    assert "15 topics, 15 partitions, 703 batches, 610.1 KiB; verified: 0 errors, 0 warnings" in done.stdout
    return out


def write(directory: Path, timestamps: list[list[int]]) -> Path:
    """Write a segment with a batch for each list of timestamps."""
    directory.mkdir(parents=True)
    offset, data = 0, b""
    for batch in timestamps:
        builder = kbat.BatchBuilder(base_offset=offset)
        for timestamp in batch:
            builder.append(b"key", b"value", timestamp=timestamp)
            offset += 1
        data += builder.finish()
    (directory / LOG).write_bytes(data)
    return directory


def test_tables_have_the_figures_of_the_log(page: Path) -> None:
    partitions = rows_of(page, "partitions-table")
    listed = {(one["topic"], one["partition"]): one for one in json_of("ls", LOG_DIR)["partitions"]}
    assert {(one["topic"], one["partition"]) for one in partitions} == set(listed)
    for one in partitions:
        expected = listed[one["topic"], one["partition"]]
        assert (one["size"], one["segments"]) == (expected["bytes"], expected["segments"])
        assert one["end offset"] == expected["end_offset"]
    audit = json_of("audit", LOG_DIR)
    assert sum(one["batches"] for one in rows_of(page, "topics-table")) == audit["total"]["batches"]
    producers = {(one["topic"], one["producer id"]): one for one in rows_of(page, "producers-table")}
    assert producers["txn-lz4", "1010"]["batches"] == 57
    assert producers["txn-lz4", "1010"]["remark"] == "small"
    assert rows_of(page, "findings-table") == [] or {one["severity"] for one in rows_of(page, "findings-table")} == {
        "info"
    }


def test_figures_are_plotlys_and_have_the_bytes_of_the_log(page: Path) -> None:
    graph_objects = importlib.import_module("plotly.graph_objects")
    figures = data_of(page, "figures")
    assert set(figures) == {
        f"{name}-plot"
        for name in (
            "sizes_over_time", "sizes", "codecs", "batch_sizes", "batch_records", "record_sizes", "producers",
            "lateness", "spans", "compaction", "settings",
        )
    }  # fmt: skip
    for figure in figures.values():
        # rejects properties that Plotly does not have
        graph_objects.Figure(figure)
    batches = kbat.scan(LOG_DIR, view="batches", columns=["size", "max_timestamp"]).to_pyarrow().to_pylist()
    timed = sum(one["size"] for one in batches if one["max_timestamp"] is not None)
    assert sum(sum(one["y"]) for one in figures["sizes_over_time-plot"]["data"]) == timed
    assert figures["sizes-plot"]["data"][0]["values"][0] == sum(one["size"] for one in batches)
    shares = [sum(series["x"][row] for series in figures["codecs-plot"]["data"]) for row in range(13)]
    assert shares == pytest.approx([1.0] * 13)


def test_compaction_is_the_state_of_the_brokers_checkpoint(page: Path) -> None:
    (row,) = rows_of(page, "compaction-table")
    first_dirty = kbat.LogDirectory(LOG_DIR).checkpoints["cleaner-offset-checkpoint"]["compacted", 0]
    *older, _ = kbat.PartitionLog(LOG_DIR / "compacted-0").segments
    dirty = sum(one.size for one in older if one.base_offset >= first_dirty)
    assert row["first dirty offset"] == first_dirty
    assert row["dirty bytes"] == dirty
    assert row["dirty ratio"] == dirty / sum(one.size for one in older)
    batches = kbat.scan(LOG_DIR / "compacted-0", view="batches").to_pyarrow().to_pylist()
    span = batches[-1]["last_offset"] + 1 - batches[0]["base_offset"]
    assert row["offsets with a record"] == sum(one["record_count"] for one in batches) / span
    assert row["batches with a delete horizon"] == sum(one["delete_horizon"] is not None for one in batches)


@pytest.mark.parametrize("names", [("log", "log/orders-0"), ("log/orders-0", "log"), ("log", "link"), ("log", "log")])
def test_findings_of_paths_that_overlap_are_counted_once(
    names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (0, 1):
        log = write(tmp_path / "log" / f"orders-{number}", [[START]] * 20) / LOG
        data = bytearray(log.read_bytes())
        data[200] ^= 1
        log.write_bytes(data)
    (tmp_path / "link").symlink_to(tmp_path / "log")
    monkeypatch.chdir(tmp_path)
    expected = json_of("report", "log", "-o", "one.html", *QUICK)
    found = json_of("report", *names, "-o", "two.html", *QUICK)
    assert (found["errors"], found["warnings"]) == (expected["errors"], expected["warnings"])
    assert expected["errors"] >= 2


def test_producers_beyond_the_limit_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    data = b""
    for offset in range(7):
        builder = kbat.BatchBuilder(base_offset=offset, producer_id=offset, producer_epoch=3, base_sequence=0)
        builder.append(b"key", b"value", timestamp=START)
        data += builder.finish()
    (directory / LOG).write_bytes(data)
    monkeypatch.setattr("kbat.advise.headers.MAX_PRODUCERS", 4)
    found = read(kbat.find_segments(directory), ["orders"])
    assert sum(one.sums.bytes for one in found.writers.values()) == found.survey.total.bytes == len(data)
    assert run("report", directory, "-o", tmp_path / "report.html", *QUICK).exit_code == 0
    rows = rows_of(tmp_path / "report.html", "producers-table")
    assert sum(one["size"] for one in rows) == len(data)
    (others,) = (one for one in rows if one["producer id"] == "other producers")
    assert (others["batches"], others["epoch"]) == (3, None)
    texts = [
        name for one in data_of(tmp_path / "report.html", "figures")["producers-plot"]["data"] for name in one["text"]
    ]
    assert "orders<br>other producers" in texts


def test_zeros_of_preallocated_segments_are_not_saved_by_the_advice(tmp_path: Path) -> None:
    directory = write(tmp_path / "orders-0", [[START]] * 20)
    batches = (directory / LOG).stat().st_size
    os.truncate(directory / LOG, 1 << 24)
    found = json_of("report", directory, "-o", tmp_path / "report.html", *QUICK)
    assert (found["bytes"], found["batch_bytes"]) == (1 << 24, batches)
    assert 0 < found["bytes_after"] <= batches
    annotation = data_of(tmp_path / "report.html", "figures")["settings-plot"]["layout"]["annotations"][0]
    assert annotation["text"] == f"today: {size_text(batches)}"


def test_page_loads_nothing_and_allows_only_its_own_scripts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n<!-- kbat report -->\n")
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert len(scripts) == 2
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    allowed = unescape(policy[1])
    assert allowed.startswith(f"default-src 'none'; script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'; style-src")
    rest = text.replace(scripts[0], "")
    assert re.findall(r"""<img|src=["']|href="[^#]|https?://|url\(|@import""", rest) == []


def test_browser_draws_every_plot_and_table_without_an_error(page: Path) -> None:
    opened = open_page(page)
    assert opened.console == []
    assert 'data-ready="true"' in opened.html
    assert "<img" not in opened.html
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;lt;b&gt;</h1>" in opened.html
    places = re.findall(r'<div class="plot[^"]*" id="([\w-]+)"', opened.html)
    assert set(places) == set(data_of(page, "figures"))
    for place in places:
        drawn = opened.html.split(f'id="{place}"')[1]
        assert re.match(r'[^>]*>.*?class="main-svg"', drawn, flags=re.DOTALL), place
    assert opened.html.count("<tbody><tr>") == sum(1 for one in data_of(page, "tables").values() if one["rows"])


def test_names_in_plots_are_escaped_and_shortened() -> None:
    assert name_of("<b>bold</b> & more") == "&lt;b&gt;bold&lt;/b&gt; &amp; more"
    assert name_of("line\nfeed\x1b[31m") == "line\\nfeed\\x1b[31m"
    assert name_of(None) == "(file without a topic)"
    assert short("a" * 28) == "a" * 28
    assert short(name_of("<" * 40)) == f"{'&lt;' * 14}…{'&lt;' * 14}"


def test_damaged_log_has_findings_and_commands(tmp_path: Path) -> None:
    place = copy_of("crash-flip", tmp_path / "topic-0")
    out = tmp_path / "report.html"
    found = json_of("report", place, "-o", out, *QUICK)
    verified = json_of("verify", place, exit_code=2)
    assert found["is_verified"]
    assert found["errors"] == sum(one["severity"] == "error" for one in verified["findings"])
    rows = rows_of(out, "findings-table")
    assert rows[0]["severity"] == "error"
    assert {one["finding"] for one in rows} == {one["message"] for one in verified["findings"]}
    text = out.read_text(encoding="utf-8")
    assert f"<code>kbat recover {place} --dry-run" in text


def test_headers_alone_show_corrupt_headers(tmp_path: Path) -> None:
    place = copy_of("codec-lz4", tmp_path / "topic-0")
    batches = list(kbat.read_batches(place / LOG))
    data = bytearray((place / LOG).read_bytes())
    data[batches[3].position + 8 : batches[3].position + 12] = b"\xff\xff\xff\xff"
    (place / LOG).write_bytes(data)
    out = tmp_path / "report.html"
    found = json_of("report", place, "-o", out, "--verify", "never", *QUICK)
    assert (found["is_verified"], found["errors"], found["batches"]) == (False, 1, len(batches) - 1)
    (row,) = rows_of(out, "findings-table")
    assert (row["severity"], row["byte"]) == ("error", batches[3].position)
    assert "Only headers were read" in out.read_text(encoding="utf-8")


def test_late_batches_are_older_than_an_earlier_batch_of_their_partition(tmp_path: Path) -> None:
    write(tmp_path / "late-0", [[START, START + 50], [START + 5000], [START + 3000, START + 4000], [START + 5001]])
    write(tmp_path / "late-1", [[START - DAY]])
    segments = kbat.find_segments(tmp_path)
    found = read(segments, ["late"])
    late = found.partitions["late", 0]
    assert (late.late_batches, late.lateness) == (1, 1000)
    assert found.partitions["late", 1].late_batches == 0
    # classes begin at 1, 10, 100, 1000 ms, …
    assert dict(found.lateness.batches) == {0: 4, 4: 1}
    assert dict(found.spans.batches) == {0: 3, 2: 1, 4: 1}
    assert (late.first_timestamp, late.last_timestamp) == (START, START + 5001)


def test_extreme_timestamps_are_not_dates(tmp_path: Path) -> None:
    write(tmp_path / "odd-0", [[-1], [(1 << 63) - 1], [0], [START]])
    found = read(kbat.find_segments(tmp_path), ["odd"])
    sizes = [batch.size for batch in kbat.read_batches(tmp_path / "odd-0" / LOG)]
    assert found.timeline.untimed == sizes[0] + sizes[1]
    assert found.partitions["odd", 0].last_timestamp == START


def timeline_of(times: list[int], size: int = 1) -> Timeline:
    timeline = Timeline()
    for time in times:
        timeline.add((time + MONDAY) // timeline.width, 0, size)
        timeline.settle()
    return timeline


def test_timeline_has_at_most_120_parts_and_keeps_all_bytes() -> None:
    for step, unit in (
        (1000, "second"),
        (60_000, "minute"),
        (DAY, "day"),
        (30 * DAY, "4 weeks"),
        (40 * DAY, "13 weeks"),
    ):
        span = timeline_of([START + step * index for index in range(100)]).span()
        assert span is not None
        assert span.unit == unit
        assert len(span.starts) <= 120
        assert sum(span.series[0]) + span.omitted == 100
    assert Timeline().span() is None


def test_weeks_of_a_timeline_begin_on_monday() -> None:
    span = timeline_of([START + 7 * DAY * index for index in range(100)]).span()
    assert span is not None
    assert span.unit == "week"
    # 2023-11-14 was a Tuesday
    assert date_text(span.starts[0]) == "2023-11-13 00:00:00"


def test_timeline_grows_wider_in_memory_and_omits_far_outliers() -> None:
    many = timeline_of([START + 7000 * index for index in range(60_000)])
    assert len(many._sums) <= 50_000  # noqa: SLF001 - the bound on memory
    span = many.span()
    assert span is not None
    assert sum(span.series[0]) == 60_000
    outlier = timeline_of([*(START + 1000 * index for index in range(1000)), START + 36_500 * DAY]).span()
    assert outlier is not None
    assert (outlier.unit, outlier.omitted, sum(outlier.series[0])) == ("10 seconds", 1, 1000)


def test_report_replaces_only_a_report_outside_of_its_sources(tmp_path: Path) -> None:
    place = write(tmp_path / "orders-0", [[START]])
    out = tmp_path / "report.html"
    out.write_text("my notes", encoding="utf-8")
    done = run("report", place, "-o", out, *QUICK)
    assert (done.exit_code, out.read_text(encoding="utf-8")) == (2, "my notes")
    assert "exists and is not a report of kbat" in done.stderr
    out.unlink()
    assert run("report", place, "-o", out, *QUICK).exit_code == 0
    first = out.read_bytes()
    assert run("report", place, "-o", out, *QUICK).exit_code == 0
    assert out.read_bytes() != first
    before = sorted(place.iterdir())
    for inside in (place / "report.html", place / LOG):
        done = run("report", place, "-o", inside, *QUICK)
        assert done.exit_code == 2
        assert "which is only read" in done.stderr
    assert run("report", place, "-o", tmp_path / "missing" / "report.html").exit_code == 2
    assert sorted(place.iterdir()) == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["orders-0", "report.html"]
    assert out.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_report_needs_plotly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "plotly" else found(name))
    done = run("report", LOG_DIR, "-o", tmp_path / "report.html")
    assert done.exit_code == 2
    assert "pip install 'kbat[report]'" in done.stderr


def test_paths_without_records_have_a_report_or_an_exit_code(tmp_path: Path) -> None:
    zeros, out = tmp_path / "zeros.log", tmp_path / "report.html"
    zeros.write_bytes(bytes(1 << 20))
    assert json_of("report", zeros, "-o", out, *QUICK)["batches"] == 0
    assert "There are no records to measure." in out.read_text(encoding="utf-8")
    noise = tmp_path / "noise-0"
    noise.mkdir()
    (noise / LOG).write_bytes(random.Random(0).randbytes(1 << 16))  # noqa: S311 - the same bytes in each run
    before = out.read_bytes()
    done = run("report", noise, "-o", out, *QUICK)
    assert (done.exit_code, out.read_bytes()) == (1, before)
    assert "no batch can be read" in done.stderr
    (tmp_path / "empty").mkdir()
    assert run("report", tmp_path / "empty", "-o", out).exit_code == 1
    assert run("report", tmp_path / "missing", "-o", out).exit_code == 2


def many_partitions(root: Path, count: int) -> Path:
    for number in range(count):
        batches = [[START + number * 1000 + index * DAY // 20] for index in range(1 + number % 5)]
        write(root / f"team-{number % 40:02}.events-{number // 40:02}-{number % 3}", batches)
    return root


def colors(image: Path) -> tuple[set[Any], tuple[int, ...]]:
    """The colors of a picture, and that of its corner, the background."""
    with Image.open(image) as picture:
        rgb = picture.convert("RGB")
        corner = rgb.getpixel((2, 2))
        assert isinstance(corner, tuple)
        return {color for _, color in rgb.getcolors(1 << 24) or ()}, corner


@pytest.mark.long
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 500], ids=["wide", "phone"])
def test_screenshot_has_the_colors_of_its_theme(page: Path, tmp_path: Path, width: int, *, is_dark: bool) -> None:
    image = tmp_path / "page.png"
    screenshot(page, image, width, 4000, is_dark=is_dark)
    shown, corner = colors(image)
    assert (max(corner) < 64) == is_dark
    # the bars of the plots
    assert {(76, 120, 168), (245, 133, 24)} <= shown


@pytest.mark.long
def test_report_on_1000_partitions_is_drawn(tmp_path: Path) -> None:
    root, out = many_partitions(tmp_path / "data", 1000), tmp_path / "report.html"
    found = json_of("report", root, "-o", out, *QUICK)
    assert found["partitions"] == 1000
    opened = open_page(out)
    assert opened.console == []
    assert 'data-ready="true"' in opened.html
    # 25 rows of each table at a time
    assert opened.html.count("<tr>") < 300
    assert "1 to 25 of 1,000" in opened.html
    screenshot(out, tmp_path / "page.png", 1280, 4000)
    assert len(colors(tmp_path / "page.png")[0]) > 100
