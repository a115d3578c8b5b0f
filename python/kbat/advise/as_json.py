"""The measurement and the recommendation as JSON, for `kbat advise --json`."""

from typing import Any

from kbat.advise.advice import Projection, Topic
from kbat.advise.measure import Advice
from kbat.advise.words import recommendation

_PRODUCERS = 1000


def as_json(advice: Advice) -> dict[str, Any]:
    """Return the figures for JSON: sizes in bytes, shares from 0 to 1."""
    survey, total = advice.survey, advice.survey.total
    return {
        "bytes": advice.bytes,
        "headers": {
            "is_complete": survey.is_complete,
            "segments": survey.segment_count,
            "segments_read": survey.segments_read,
            "bytes_read": survey.bytes_read,
            "batches": total.batches,
            "records": total.records,
            "batches_skipped": survey.batches_skipped,
            "bytes_lost": survey.bytes_lost,
        },
        "sample": {
            "bytes": advice.stored_len,
            "uncompressed_bytes": advice.raw_len,
            "batches": advice.sampled_batches,
            "records": advice.sampled_records,
            "windows": advice.sampled_windows,
            "batches_skipped": advice.sample_skipped,
        },
        "settings": [{**_setting_json(one), "is_recommended": one == advice.best} for one in advice.projections],
        "usual_orders": [
            {
                "name": order.name,
                "usual": [setting.codec for setting, _ in order.figures],
                "measured": [{"compression": setting.codec, "value": value} for setting, value in order.measured],
                "holds": not order.exceptions,
                "exceptions": [[better.codec, worse.codec] for better, worse in order.exceptions],
            }
            for order in advice.orders
        ],
        "topics": [_topic_json(one) for one in advice.topics],
        "producers": [vars(one) for one in advice.producers[:_PRODUCERS]],
        "producer_count": len(advice.producers),
        "bytes_after": advice.bytes_after,
        "saved": 1 - advice.bytes_after / advice.bytes if advice.bytes else None,
        "recommendation": recommendation(advice),
        "seconds": round(advice.seconds, 3),
    }


def _setting_json(one: Projection) -> dict[str, Any]:
    return {
        "compression": one.setting.codec,
        "level": one.setting.level,
        "bytes": one.bytes,
        "saved": one.saved,
        "ratio": one.ratio,
        "compress_bytes_per_second": one.compress_rate,
        "decompress_bytes_per_second": one.decompress_rate,
        "sample_bytes": one.sample_bytes,
    }


def _topic_json(topic: Topic) -> dict[str, Any]:
    setting, batching = topic.setting, topic.batching
    return {
        "topic": topic.name,
        "topic_count": topic.topic_count,
        "bytes": topic.bytes,
        "compression": topic.compression,
        "settings": [_setting_json(one) for one in topic.projections],
        "recommended": None if setting is None else {"compression": setting.codec, "level": setting.level},
        "linger_ms": None if batching is None else batching.linger_ms,
        "batch_size": None if batching is None else batching.batch_size,
        "bytes_after": topic.bytes_after,
        "batches_after": topic.batches_after,
    }
