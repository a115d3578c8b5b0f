"""Bounds of the Spark data source, without Spark: the rules of Spark's Kafka source."""

from __future__ import annotations

import json
import re

import pytest

from kbat.spark.options import parse_options


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("startingOffsets", "first"),
        ("startingOffsets", ""),
        ("startingOffsets", "5"),
        ("startingOffsets", "{}"),
        ("startingOffsets", '{"a": 5}'),
        ("startingOffsets", '{"a": {"x": 5}}'),
        ("startingOffsets", '{"a": {"0": -3}}'),
        ("startingOffsets", '{"a": {"0": true}}'),
        ("startingOffsets", '{"a": {"0": 9223372036854775808}}'),
        ("endingOffsets", '{"a": {"0": "5"}}'),
        ("startingOffsetsByTimestamp", "1700000000000"),
        ("startingOffsetsByTimestamp", '{"a": {"0": -1}}'),
        ("endingOffsetsByTimestamp", '["a"]'),
        ("startingTimestamp", "2026-01-01"),
        ("startingTimestamp", "-1"),
        ("endingTimestamp", ""),
        ("endingTimestamp", "2026-13-01T00:00:00Z"),
    ],
)
def test_bounds_wrong_ones_are_refused_with_the_forms(name: str, text: str) -> None:
    forms = {
        "Offsets": 'earliest, latest, or JSON like {"orders": {"0": 23, "1": -2}}',
        "Timestamp": "milliseconds since 1970, UTC",
    }
    form = forms["Offsets" if name.endswith("Offsets") else "Timestamp"]
    with pytest.raises(ValueError, match=re.escape(f"kbat: option {name}={text!r}: ") + ".*" + re.escape(form)):
        parse_options({name: text})


@pytest.mark.parametrize("text", ["1", "1700000000", "99999999999"])
def test_bounds_times_that_look_like_seconds_are_refused(text: str) -> None:
    message = f"{text} looks like seconds, but the unit is milliseconds: write {text}000"
    for name in ("startingTimestamp", "endingTimestamp"):
        with pytest.raises(ValueError, match=f"option {name}='{text}': {message}"):
            parse_options({name: text})
    for name in ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp"):
        with pytest.raises(ValueError, match=message):
            parse_options({name: f'{{"a": {{"0": {text}}}}}'})


@pytest.mark.parametrize("text", ["2026-11-22T00:00:00", "2026-11-22"])
def test_bounds_times_without_a_zone_are_refused(text: str) -> None:
    message = "has no time zone; write 2026-11-22T00:00:00Z if it is in UTC"
    with pytest.raises(ValueError, match=f"option endingTimestamp='{text}': {message}"):
        parse_options({"endingTimestamp": text})
    with pytest.raises(ValueError, match=message):
        parse_options({"endingOffsetsByTimestamp": json.dumps({"a": {"0": text}})})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets can't be latest in a batch read"),
        ({"startingOffsets": '{"a": {"0": 3, "1": -1}}'}, "startingOffsets can't be latest in a batch read"),
        ({"endingOffsets": "earliest"}, "endingOffsets can't be earliest in a batch read"),
        ({"endingOffsets": '{"a": {"0": -2}}'}, "endingOffsets can't be earliest in a batch read"),
        (
            {"startingOffsets": '{"a": {"0": 3}}', "endingOffsets": '{"a": {"1": 3}}'},
            "name different partitions; only one of them has a-0, a-1",
        ),
        (
            {"startingOffsets": '{"a": {"0": 3}}', "endingOffsets": '{"a": {"0": 2}}'},
            "starting offset 3 of a-0 is greater than its ending offset 2",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"a": {"0": 1700000000003}}',
                "endingOffsetsByTimestamp": '{"a": {"0": 1700000000002}}',
            },
            "starting timestamp 1700000000003 of a-0 is greater than its ending timestamp 1700000000002",
        ),
        # Spark's Kafka source fails too, once it has the offsets
        (
            {"startingTimestamp": "1700000000005", "endingTimestamp": "1700000000003"},
            "startingTimestamp 1700000000005 is after endingTimestamp 1700000000003",
        ),
    ],
)
def test_bounds_of_a_batch_have_rules(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_options(given).check_batch()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"startingOffsets": "latest", "startingTimestamp": "1700000000005"},  # the timestamp comes first
        {"startingOffsets": '{"a": {"0": 3}}', "endingOffsets": '{"a": {"0": -1}}'},
        {"startingOffsets": '{"a": {"0": -2}}', "endingOffsets": '{"a": {"0": 3}}'},
        {"startingOffsets": '{"a": {"0": 3}}', "endingOffsets": '{"a": {"0": 3}}'},
        {"startingOffsets": "earliest", "endingOffsets": '{"a": {"0": 3}}'},
        {"startingTimestamp": "1700000000005", "endingTimestamp": "1700000000005"},
        {"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"},
    ],
)
def test_bounds_of_a_batch_that_fit_pass(given: dict[str, str]) -> None:
    parse_options(given).check_batch()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets has no effect on a stream"),
        ({"endingTimestamp": "1700000000005"}, "an ending timestamp has no effect on a stream"),
        (
            {"endingOffsetsByTimestamp": '{"a": {"0": 1700000000005}}'},
            "an ending timestamp has no effect on a stream",
        ),
        (
            {"minOffsetsPerTrigger": "11", "maxOffsetsPerTrigger": "10"},
            "minOffsetsPerTrigger=11 is higher than maxOffsetsPerTrigger=10",
        ),
    ],
)
def test_bounds_of_a_stream_have_rules(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_options(given).check_stream()


def test_bounds_of_a_stream_may_start_at_the_end() -> None:
    parse_options(
        {"startingOffsets": "latest", "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "10"}
    ).check_stream()
