"""Kafka's internal topics as typed tables: the state that a broker builds from their records.

:func:`kbat.scan` with ``view="internal"`` returns the records themselves.
"""

from kbat.internal.cluster import topics
from kbat.internal.groups import consumer_groups, consumer_offsets
from kbat.internal.schemas import schemas
from kbat.internal.transactions import transactional_ids

__all__ = ["consumer_groups", "consumer_offsets", "schemas", "topics", "transactional_ids"]
