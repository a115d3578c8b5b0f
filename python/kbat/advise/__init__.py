"""Which codec, level and batch size a log should have, measured on its own batches."""

from kbat.advise.advice import Producer, Projection, Topic
from kbat.advise.codecs import ALL_SETTINGS, SETTINGS, Setting
from kbat.advise.measure import Advice, advise

__all__ = ["ALL_SETTINGS", "SETTINGS", "Advice", "Producer", "Projection", "Setting", "Topic", "advise"]
