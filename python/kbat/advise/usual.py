"""The usual order of the codecs, and where the measured figures differ from it."""

from collections.abc import Mapping
from dataclasses import dataclass

from kbat.advise.codecs import DEFAULTS, USUAL_RATIO, USUAL_SPEED, Measured, Setting

# Figures that differ by less count as equal.
_EQUAL = 1.05


@dataclass(frozen=True)
class Order:
    """Codecs in the usual order, the best first, and their measured figures.

    Attributes:
        name: What is compared.
        unit: "bytes_per_second" or "ratio".
        figures: The usual order, with the figure of each codec at Kafka's default level.
    """

    name: str
    unit: str
    figures: tuple[tuple[Setting, float], ...]

    @property
    def measured(self) -> list[tuple[Setting, float]]:
        """The figures, the best first."""
        return sorted(self.figures, key=lambda one: -one[1])

    @property
    def exceptions(self) -> list[tuple[Setting, Setting]]:
        """Pairs of codecs for which the order does not hold: the first one is better here, the second one usually."""
        pairs = (
            (later, earlier)
            for index, later in enumerate(self.figures)
            for earlier in self.figures[:index]
            if later[1] > earlier[1] * _EQUAL
        )
        return [(better[0], worse[0]) for better, worse in pairs]


def orders(measured: Mapping[Setting, Measured], ratios: Mapping[Setting, float]) -> list[Order]:
    """Compare the codecs at their default levels."""
    by_codec = {setting.codec: setting for setting in DEFAULTS if setting in measured}
    speed = [by_codec[codec] for codec in USUAL_SPEED if codec in by_codec]
    small = [by_codec[codec] for codec in USUAL_RATIO if codec in by_codec]
    return [
        Order("compression speed", "bytes_per_second", tuple((one, measured[one].compress_rate or 0) for one in speed)),
        Order(
            "decompression speed", "bytes_per_second", tuple((one, measured[one].decompress_rate or 0) for one in speed)
        ),
        Order("ratio", "ratio", tuple((one, ratios[one]) for one in small)),
    ]
