"""The recommendation in words, for a terminal and for a report."""

from collections.abc import Iterable

from kbat.advise.advice import EQUAL, Projection, Topic
from kbat.advise.batching import Batching
from kbat.advise.codecs import Setting
from kbat.advise.measure import Advice
from kbat.advise.usual import Order
from kbat.cli.output import count_text, size_text, text

# Topics that a sentence names.
_NAMED = 5


def rate_text(rate: float | None) -> str:
    """Return bytes per second as MiB per second, a dash for none."""
    return "-" if rate is None else f"{rate / (1 << 20):,.{0 if rate >= 10 << 20 else 1}f}"


def saved_text(before: float, after: float) -> str:
    """Return the part of a size that is saved; with a minus if it grows."""
    return f"{1 - after / before:.1%}" if before else "-"


def topic_text(topic: Topic) -> str:
    """Return the name of a topic, or how many there are."""
    if topic.topic_count > 1:
        return f"{topic.topic_count:,} other topics"
    return text(topic.name)


def recommendation(advice: Advice) -> list[str]:
    """Return what to change, and what it saves: one line per change, then the sum."""
    groups: dict[tuple[Setting | None, Batching | None], list[Topic]] = {}
    for topic in advice.topics:
        if topic.setting is not None or topic.batching is not None:
            groups.setdefault((topic.setting, topic.batching), []).append(topic)
    if not advice.projections:
        return []
    if not groups:
        return [f"Keep the codecs and batch sizes: no change would save {EQUAL:.0%} of a topic."]
    ordered = sorted(groups.items(), key=lambda one: sum(topic.bytes_after - topic.bytes for topic in one[1]))
    lines = [_change(*changes, topics) for changes, topics in ordered]
    kept = [topic for topic in advice.topics if topic.setting is None and topic.batching is None]
    if kept:
        lines.append(f"{_names(kept)}: keep the codecs and batch sizes.")
    sizes = f"{size_text(advice.bytes_after)} instead of {size_text(advice.bytes)}"
    saved = f"{size_text(advice.bytes - advice.bytes_after)} ({saved_text(advice.bytes, advice.bytes_after)}) less"
    return [*lines, f"All together: {sizes}, {saved}."]


def costs(advice: Advice) -> list[str]:
    """Return what the recommended settings cost."""
    settings = {topic.setting for topic in advice.topics}
    return [_cost(one) for one in advice.projections if one.setting in settings]


def order_lines(order: Order) -> list[str]:
    """Return a usual order, the measured one, and whether the first one holds."""
    usual = " > ".join(setting.codec for setting, _ in order.figures)
    unit = "" if order.unit == "ratio" else " in MiB/s"
    figures = ", ".join(f"{setting.codec} {_figure(order, value)}" for setting, value in order.measured)
    word = "smaller" if order.unit == "ratio" else "faster"
    wrong = [f"{better.codec} is {word} than {worse.codec}" for better, worse in order.exceptions]
    verdict = f"does not hold here: {_listed(wrong)}" if wrong else "holds here"
    return [f"usual {order.name}: {usual}", f"  measured{unit}: {figures}", f"  {verdict}"]


def _figure(order: Order, value: float) -> str:
    return f"{value:.2f}" if order.unit == "ratio" else rate_text(value)


def _change(setting: Setting | None, batching: Batching | None, topics: list[Topic]) -> str:
    configs = {**(setting.configs if setting else {}), **(batching.configs if batching else {})}
    shown = " ".join(f"{name}={value}" for name, value in configs.items())
    before, after = sum(topic.bytes for topic in topics), sum(topic.bytes_after for topic in topics)
    sizes = f"{size_text(after)} instead of {size_text(before)} ({saved_text(before, after)} less)"
    return f"{_names(topics)}: set {shown} on the producers: {sizes}."


def _cost(projection: Projection) -> str:
    compress, decompress = rate_text(projection.compress_rate), rate_text(projection.decompress_rate)
    return f"With {projection.setting}, one core compresses {compress} MiB/s and decompresses {decompress} MiB/s."


def _names(topics: list[Topic]) -> str:
    names = [topic_text(topic) for topic in topics]
    if len(names) > _NAMED:
        rest = sum(topic.topic_count for topic in topics[_NAMED - 1 :])
        names = [*names[: _NAMED - 1], count_text(rest, "more topic")]
    return _listed(names)


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
