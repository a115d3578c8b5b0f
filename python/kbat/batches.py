"""Functions for the bytes of single batches: sizes, edits in place, transaction markers, partitions of keys.

Each is an attribute of `kbat`, too.
"""

from kbat._core.build import (
    batch_size,
    end_transaction_marker,
    partition_for_key,
    set_base_offset,
    set_log_append_time,
    set_partition_leader_epoch,
)
from kbat._core.rewrite import retain_records

__all__ = [
    "batch_size",
    "end_transaction_marker",
    "partition_for_key",
    "retain_records",
    "set_base_offset",
    "set_log_append_time",
    "set_partition_leader_epoch",
]
