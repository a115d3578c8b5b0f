"""Bounds and topics of the Spark data source, without Spark: the forms and rules of Spark's Kafka source."""

from __future__ import annotations

import json
import re

import pytest

from kbat.spark.bounds import (
    EARLIEST,
    LATEST,
    Offset,
    Offsets,
    Timestamp,
    Timestamps,
    offsets_json,
    offsets_of_json,
)
from kbat.spark.options import parse_options
from kbat.spark.topics import Subscription, TopicPartition, parse_assign, parse_pattern

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets"])
def test_bounds_offsets_have_three_forms(name: str) -> None:
    def parse(text: str) -> object:
        options = parse_options({name: text})
        return options.start if name == "startingOffsets" else options.end

    assert parse(" Earliest ") == Offset(EARLIEST)
    assert parse("LATEST") == Offset(LATEST)
    assert parse('{"b": {"0": 5}, "a": {"1": -1, "0": -2}}') == Offsets(((A0, -2), (A1, -1), (B0, 5)))


def test_bounds_precedence_is_timestamp_then_timestamps_then_offsets() -> None:
    given = {
        "startingOffsets": "earliest",
        "startingOffsetsByTimestamp": '{"a": {"0": 1700000000007}}',
        "startingTimestamp": "0",
        "endingOffsets": "latest",
        "endingOffsetsByTimestamp": '{"a": {"0": 1700000000008}}',
        "endingTimestamp": " 1700000000009 ",
    }
    expected = [
        (Timestamp(0), Timestamp(1700000000009)),
        (Timestamps(((A0, 1700000000007),)), Timestamps(((A0, 1700000000008),))),
        (Offset(EARLIEST), Offset(LATEST)),
        (None, None),
    ]
    without: list[tuple[str, ...]] = [
        (),
        ("startingTimestamp", "endingTimestamp"),
        ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp"),
        ("startingOffsets", "endingOffsets"),
    ]
    for names, bounds in zip(without, expected, strict=True):
        for name in names:
            del given[name]
        options = parse_options(given)
        assert (options.start, options.end) == bounds


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


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("100000000000", 100_000_000_000),
        ("2026-11-22T00:00:00Z", 1_795_305_600_000),
        ("2026-11-22T01:00:00.250+01:00", 1_795_305_600_250),
        (" 2026-11-22 00:00:00+00:00 ", 1_795_305_600_000),
        ("1970-01-01T00:00:01Z", 1000),
    ],
)
def test_bounds_times_are_milliseconds_or_text_with_a_zone(text: str, milliseconds: int) -> None:
    assert parse_options({"startingTimestamp": text}).start == Timestamp(milliseconds)
    assert parse_options({"endingTimestamp": text}).end == Timestamp(milliseconds)
    value = text if not text.isdecimal() else int(text)
    by_partition = parse_options({"startingOffsetsByTimestamp": json.dumps({"a": {"0": value}})})
    assert by_partition.start == Timestamps(((A0, milliseconds),))


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


def test_offsets_json_is_kafkas_form_and_comes_back() -> None:
    offsets = {B0: 7, A1: 0, A0: 23}
    written = offsets_json(offsets)
    assert json.dumps(written) == '{"a": {"0": 23, "1": 0}, "b": {"0": 7}}'
    assert offsets_of_json(written) == offsets


def chosen(subscription: Subscription, found: list[TopicPartition]) -> list[TopicPartition]:
    return [partition for partition in found if subscription.takes(partition)]


def test_subscription_of_nothing_takes_all() -> None:
    found = [A0, B0, TopicPartition("__consumer_offsets", 3), TopicPartition(None, None)]
    assert chosen(Subscription(), found) == found
    Subscription().check([])


def test_subscription_by_topic_takes_its_partitions() -> None:
    assert chosen(Subscription(topics=("a",)), [A0, A1, B0]) == [A0, A1]
    assert Subscription(topics=("__consumer_offsets",)).takes(TopicPartition("__consumer_offsets", 0))


def test_subscription_by_partition_takes_these() -> None:
    assert chosen(Subscription(partitions=parse_assign('{"a": [1], "b": [0]}')), [A0, A1, B0]) == [A1, B0]


def test_subscription_of_what_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="c, d are not under the path; topics found: a, b;"):
        Subscription(topics=("a", "c", "d")).check([A0, A1, B0])
    with pytest.raises(ValueError, match="a-2 is not under the path"):
        Subscription(partitions=(A0, TopicPartition("a", 2))).check([A0, A1, B0])
    with pytest.raises(ValueError, match="topics found: none"):
        Subscription(topics=("a",)).check([])


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("orders", ["orders", "my-orders-2"], ["order"]),  # found anywhere, as Spark's Kafka source does
        ("^orders-.*", ["orders-1"], ["orders", "x-orders-1"]),
        (r"\Qa.b\E$", ["a.b", "xa.b"], ["axb"]),
        (r"^(?<first>.)\k<first>", ["aab"], ["aba"]),
        (r"^\p{Alpha}+$", ["abc"], ["a1"]),
        (r"^[\p{Digit}.]+$", ["1.2"], ["1a"]),
        (r"^\P{Upper}+\z", ["abc"], ["aBc"]),
        (r"^\p{IsAlphabetic}\p{Nd}$", ["a1"], ["1a"]),
        ("^a|b$", ["ax", "xb"], ["xax"]),
        ("a{2}", ["aa"], ["a"]),
        ("^a++b$", ["aab"], ["ab-"]),
    ],
)
def test_subscription_pattern_is_javas(pattern: str, matching: list[str], other: list[str]) -> None:
    subscription = Subscription(pattern=parse_pattern(pattern))
    found = [TopicPartition(topic, 0) for topic in [*matching, *other]]
    assert [partition.topic for partition in chosen(subscription, found)] == matching


def test_subscription_pattern_never_takes_internal_topics_or_files_without_topic() -> None:
    found = [TopicPartition("__consumer_offsets", 0), TopicPartition(None, None), A0]
    assert chosen(Subscription(pattern=parse_pattern(".*")), found) == [A0]
