# ruff: noqa: PYI021 -- editors show these docstrings; the compiled module has them too
"""Print the files of a partition as ``kafka-dump-log`` does."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from kbat._core import Limits, _EncryptionKeys

__all__ = ["dump"]

def dump(
    paths: Sequence[str | os.PathLike[str]],
    write: Callable[[bytes], object],
    note: Callable[[bytes], object],
    *,
    contents: bool = False,
    deep: bool = False,
    skip_record_metadata: bool = False,
    verify_index_only: bool = False,
    index_sanity_check: bool = False,
    max_message_size: int = 5_242_880,
    max_bytes: int | None = None,
    decoder: Literal[
        "text", "offsets", "transaction_log", "cluster_metadata", "share_group_state", "remote_log_metadata"
    ] = "text",
    output_format: Literal["kafka", "table", "jsonl"] = "kafka",
    limits: Limits | None = None,
    storage_options: Mapping[str, object] | None = None,
    store: object | None = None,
    encryption_keys: _EncryptionKeys | None = None,
    remote: str | os.PathLike[str] | None = None,
    remote_log_metadata: str | os.PathLike[str] | None = None,
) -> None:
    """Print files as ``kafka-dump-log`` does, line for line.

    Args:
        paths: ``.log``, ``.checkpoint``, ``.index``, ``.timeindex``, ``.txnindex`` and ``.snapshot`` files, or URLs.
        write: Called with a large piece of the output, as bytes.
        note: Called with what ``kafka-dump-log`` writes to its standard error, as bytes.
        contents: Print keys and values; includes ``deep``.
        deep: Print records, not only batches.
        skip_record_metadata: Print only keys and values of records.
        verify_index_only: Compare indexes with the log without printing their entries.
        index_sanity_check: Only check what a broker checks when it starts.
        max_message_size: Bytes after an index entry's position in which its batch must end.
        max_bytes: Bytes of each log to read. Default: all.
        decoder: ``text``, ``offsets``, ``transaction_log``, ``cluster_metadata``, ``share_group_state`` or
            ``remote_log_metadata``.
        output_format: ``kafka`` for the lines of ``kafka-dump-log``, ``table`` or ``jsonl``.
        limits: Bounds on untrusted input.
        storage_options: How to open the store of a URL, with the names of object_store, such as
            ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
            ``AWS_ACCESS_KEY_ID``, or the role of the machine.
        store: A store of obstore; paths are relative to it.
        encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
            function that returns the PEM text of an id.
        remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
            offset is read once, from ``paths`` if it is there. ``storage_options`` are those of the URLs,
            and ``store`` is that of ``remote``.
        remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
            ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
            partitions in the log directory, if any.

    Raises:
        KbatError: Bytes that Kafka cannot decode either. The output up to them was written.
        OSError: A file can't be read.
        ValueError: An unknown decoder or format, or the name of an index without a base offset.
    """
