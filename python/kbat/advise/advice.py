"""The recommendation, by rules that follow from the measured figures.

- Codec and level: of the settings that compress at least at the minimum speed, the smallest. One that is up to 5 %
  larger is preferred: a codec with Kafka's default level, which needs no config of its own, otherwise the fastest.
- It is recommended if it saves at least 5 % of the topic.
- `linger.ms` and `batch.size`: of those with up to 5 % more bytes than the smallest, the shortest delay, then the least
  memory. They are recommended only if they save another 5 %, or halve the number of batches.
- If no codec saves that much with the batches as they are, codecs at their default level are compared in the largest
  batches. The best is recommended with larger batches if these are at least 5 % smaller with it than with the codec in
  use. Otherwise larger batches are projected with the codec in use.
- Producers are named if their mean batch is below 4 KiB before compression, or if at least half of their bytes are not
  compressed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kbat.advise.batching import AS_SENT, BATCHINGS, Batching, Joined, Sent
from kbat.advise.codecs import DEFAULTS, NONE, Setting

#: Bytes per second of one core.
MIN_SPEED = 50 << 20
#: Sizes that differ by less count as equal, and savings below it as none.
EQUAL = 0.05
#: Batches below this mean size before compression are small: a quarter of Kafka's default `batch.size`.
SMALL_BATCH = 4096


@dataclass(frozen=True)
class Projection:
    """A log or topic with a setting.

    Attributes:
        setting: The codec and level.
        bytes: Projected size of the log with the batches as they are.
        today: Size of the batches as they are.
        ratio: Records before compression by records after it, of the sample, with the headers of batches.
        compress_rate: Bytes per second of one core; None for no compression.
        decompress_rate: Bytes per second of one core; None for no compression.
        sample_bytes: Bytes that the setting was measured on, before compression.
    """

    setting: Setting
    bytes: int
    today: int
    ratio: float
    compress_rate: float | None
    decompress_rate: float | None
    sample_bytes: int

    @property
    def saved(self) -> float:
        """Part of the log that would be saved; negative if it would grow."""
        return 1 - self.bytes / self.today if self.today else 0.0


@dataclass
class Producer:
    """A producer that sends small or uncompressed batches.

    Attributes:
        topic: Its topic.
        producer_id: Its id, -1 for all producers without idempotence.
        batches: Number of its batches, of those whose headers were read.
        records: Number of its records; of batches with a record count.
        bytes: Their size.
        mean_batch_bytes: Mean size of a batch.
        mean_uncompressed_bytes: Mean size of a batch before compression, computed from the sample.
        records_per_batch: Mean number of records, None if unknown.
        compression: Bytes by codec.
        is_small: Whether the mean batch is small.
        is_uncompressed: Whether at least half of the bytes are not compressed.
        bytes_after: Size with the recommendation for the topic; None if the producer is not in the sample.
        batches_after: Number of batches with it.
    """

    topic: str | None
    producer_id: int
    batches: int
    records: int
    bytes: int
    mean_batch_bytes: float
    mean_uncompressed_bytes: float
    records_per_batch: float | None
    compression: dict[str, int]
    is_small: bool
    is_uncompressed: bool
    bytes_after: int | None = None
    batches_after: int | None = None


@dataclass
class Topic:
    """A topic, or several small ones, and what is recommended for it.

    Attributes:
        name: The topic; None for a file outside of a partition directory, and for several topics.
        topic_count: Number of topics.
        bytes: Size of its batches.
        compression: Bytes by codec; computed from a part of the headers if not all were read.
        projections: The settings that were measured.
        setting: The recommended setting; None to keep what the producers use.
        batching: The recommended configs of the producers; None to keep theirs.
        bytes_after: Projected size with the recommendation.
        batches_after: Number of batches with it, compared to today, 0 to 1.
        is_sampled: Whether the sample has records of the topic.
    """

    name: str | None
    topic_count: int
    bytes: int
    compression: dict[str, int] = field(default_factory=dict)
    projections: list[Projection] = field(default_factory=list)
    setting: Setting | None = None
    batching: Batching | None = None
    bytes_after: int = 0
    batches_after: float = 1.0

    @property
    def is_sampled(self) -> bool:
        """Whether the sample has records of the topic."""
        return bool(self.projections)

    @property
    def is_internal(self) -> bool:
        """Whether brokers write the topic, so that no producer can be configured."""
        return is_internal(self.name)


def is_internal(topic: str | None) -> bool:
    """Return whether brokers write a topic."""
    return topic is not None and topic.startswith("__")


def best(projections: Sequence[Projection], min_speed: float) -> Projection | None:
    """Return the recommended setting; None if no setting is fast enough."""
    fast = [one for one in projections if one.setting != NONE and (one.compress_rate or 0) >= min_speed]
    if not fast:
        return None
    smallest = min(one.bytes for one in fast)
    equal = [one for one in fast if one.bytes <= smallest * (1 + EQUAL)]
    preferred = [one for one in equal if one.setting in DEFAULTS]
    return max(preferred or equal, key=lambda one: one.compress_rate or 0)


def best_batching(joined: Mapping[Batching, Joined]) -> Batching | None:
    """Return the recommended configs of producers; None if they gain too little."""
    before = joined[AS_SENT]
    smallest = min(joined[one].bytes for one in BATCHINGS)
    chosen = next(one for one in BATCHINGS if joined[one].bytes <= smallest * (1 + EQUAL))
    after = joined[chosen]
    is_worth = after.bytes <= before.bytes * (1 - EQUAL) or 2 * after.batches <= before.batches
    return chosen if is_worth else None


def recommend(topic: Topic, sent: Sent, chosen: Projection | None) -> None:
    """Complete a topic with its recommendation, from the best setting and its sample in larger batches."""
    topic.bytes_after = topic.bytes
    if chosen is None or topic.is_internal:
        return
    if chosen.saved >= EQUAL:
        topic.setting = chosen.setting
        topic.bytes_after = chosen.bytes
    if not sent.stored_len:
        return
    if topic.setting is not None:
        _recommend_batching(topic, sent.joined, topic.bytes_after)
        return
    _recommend_batching(topic, sent.kept, topic.bytes)
    both = replace(topic)
    _recommend_batching(both, sent.joined, chosen.bytes)
    if both.batching is not None and both.bytes_after <= topic.bytes_after * (1 - EQUAL):
        topic.setting = chosen.setting
        topic.batching, topic.bytes_after, topic.batches_after = both.batching, both.bytes_after, both.batches_after


def _recommend_batching(topic: Topic, joined: Mapping[Batching, Joined], size: int) -> None:
    """Complete a topic with larger batches, if they gain enough; `size` is its size with the codec of the batches."""
    topic.batching = best_batching(joined)
    if topic.batching is not None:
        before, after = joined[AS_SENT], joined[topic.batching]
        topic.bytes_after = round(size * after.bytes / before.bytes)
        topic.batches_after = after.batches / before.batches


def gain(producer: Producer, topic: Topic, sent: Sent | None) -> None:
    """Complete a producer with what it would gain with the recommendation for its topic."""
    if sent is None or not sent.stored_len:
        return
    joined = sent.kept if topic.setting is None else sent.joined
    before, after = joined[AS_SENT], joined[topic.batching or AS_SENT]
    if not before.batches:
        return
    # without another codec only the effect of larger batches counts
    size = before.bytes if topic.setting is None else sent.stored_len
    producer.bytes_after = round(producer.bytes * after.bytes / size)
    producer.batches_after = round(producer.batches * after.batches / before.batches)
