"""`kbat dump`: the output of `kafka-dump-log`."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer

from kbat._core.dump import dump as dump_files
from kbat.cli import output
from kbat.cli.location import Location, is_presented
from kbat.cli.options import choice_option, number_option
from kbat.cli.place import foreign
from kbat.cli.stores import EncryptionKeys, StorageOptions

# The largest `int` of Java, which `kafka-dump-log` has as the default of --max-bytes.
_MAX_INT = (1 << 31) - 1
_MAX_MESSAGE_SIZE = 5 * 1024 * 1024
_STRING_DECODERS = {"org.apache.kafka.tools.api.StringDecoder", "kafka.serializer.StringDecoder"}

_Decoder = Literal["text", "offsets", "transaction_log", "cluster_metadata", "share_group_state", "remote_log_metadata"]


class Format(StrEnum):
    """What the output looks like."""

    KAFKA = "kafka"
    TABLE = "table"
    JSONL = "jsonl"


def _flag(name: str, text: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(name, help=text)


def _string_decoder(value: str) -> str:
    if value not in _STRING_DECODERS:
        message = f"{value!r} is a class of Java, which kbat cannot load; it decodes text, and internal topics"
        raise typer.BadParameter(message)
    return value


def _class_option(name: str, what: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(
        name, metavar="CLASS", parser=_string_decoder, help=f"Print {what}; only StringDecoder, the default."
    )


def dump(  # noqa: PLR0913 - the options of kafka-dump-log
    paths: Annotated[list[str] | None, typer.Argument(metavar="[FILE]", help="Files to print, as --files.")] = None,
    *,
    files: Annotated[
        list[str] | None, typer.Option("--files", metavar="FILE,FILE", help="Files to print, separated by commas.")
    ] = None,
    print_data_log: Annotated[bool, _flag("--print-data-log", "Print keys and values; set by every decoder.")] = False,
    deep_iteration: Annotated[
        bool, _flag("--deep-iteration", "Print records, not only batches; set by --print-data-log.")
    ] = False,
    skip_record_metadata: Annotated[
        bool, _flag("--skip-record-metadata", "Print only keys and values of records; omits control records.")
    ] = False,
    verify_index_only: Annotated[
        bool, _flag("--verify-index-only", "Compare indexes with the log without printing their entries.")
    ] = False,
    index_sanity_check: Annotated[
        bool, _flag("--index-sanity-check", "Only check what a broker checks when it starts.")
    ] = False,
    max_message_size: Annotated[
        int, number_option(0, "--max-message-size", help="Bytes in which the batch of an index entry must end.")
    ] = _MAX_MESSAGE_SIZE,
    max_bytes: Annotated[
        int, number_option(0, "--max-bytes", help="Bytes of each .log file to read.", show_default=False)
    ] = _MAX_INT,
    offsets_decoder: Annotated[bool, _flag("--offsets-decoder", "Decode __consumer_offsets.")] = False,
    transaction_log_decoder: Annotated[bool, _flag("--transaction-log-decoder", "Decode __transaction_state.")] = False,
    cluster_metadata_decoder: Annotated[
        bool, _flag("--cluster-metadata-decoder", "Decode __cluster_metadata and its snapshots.")
    ] = False,
    remote_log_metadata_decoder: Annotated[
        bool, _flag("--remote-log-metadata-decoder", "Decode __remote_log_metadata.")
    ] = False,
    share_group_state_decoder: Annotated[
        bool, _flag("--share-group-state-decoder", "Decode __share_group_state.")
    ] = False,
    key_decoder_class: Annotated[str | None, _class_option("--key-decoder-class", "keys")] = None,
    value_decoder_class: Annotated[str | None, _class_option("--value-decoder-class", "values")] = None,
    output_format: Annotated[
        Format, choice_option(Format, "--format", help="Kafka's lines, a table, or one JSON object per line.")
    ] = Format.KAFKA,
    json: Annotated[bool, _flag("--json", "The same as --format jsonl.")] = False,
    storage_option: StorageOptions = None,
    encryption_key: EncryptionKeys = None,
) -> None:
    """Print files as `kafka-dump-log` does, line for line and with the same options, without Java.

    FILE is a `.log`, `.checkpoint`, `.index`, `.timeindex`, `.txnindex` or `.snapshot` file, or its URL. Indexes are
    compared with the `.log` file beside them. Differences from the log are reported on the standard error after all
    files. Other files are ignored with a note, as by `kafka-dump-log`.

    Examples: `kbat dump --files 00000000000000000000.log --print-data-log`, `kbat dump *.index --verify-index-only`,
    `kbat dump 00000000000000000000.log --offsets-decoder --format jsonl`

    JSON lines have a `type`: `file` (`path`), `batch` (`position`, `size`, `base_offset`, `last_offset`,
    `record_count`, `magic`, `compression`, `timestamp_type`, `max_timestamp`, `producer_id`, `producer_epoch`,
    `base_sequence`, `partition_leader_epoch`, `is_transactional`, `is_control`, `delete_horizon_ms`, `crc`, `crc_ok`),
    `record` (`offset`, `timestamp`, `sequence`, `headers`, `control` or `key` and `value`; of internal topics also
    `record_type`, `type_id` and `version`, or `error`), `entry`, `producer`, `aborted_transaction`, `tail` (`bytes`)
    and `index` (`verdict`). Bytes are a string if they are UTF-8, else `{"base64": "…"}`.

    Exit codes: 0, also for differences and corrupt checksums, which the output shows; 1 for bytes that cannot be
    decoded, after everything before them was printed, and for files that can't be read; 2 for wrong arguments, for a
    directory, and for a file that does not exist; 141 if the reader of a pipe has closed it.
    """
    chosen = [one.opened_with(storage_option, encryption_key) for one in _located(paths, files)]
    _check(chosen)
    decoder = _decoder(
        offsets=offsets_decoder,
        transaction_log=transaction_log_decoder,
        cluster_metadata=cluster_metadata_decoder,
        remote_log_metadata=remote_log_metadata_decoder,
        share_group_state=share_group_state_decoder,
    )
    dump_files(
        [str(one) for one in chosen],
        sys.stdout.buffer.write,
        _note,
        contents=print_data_log or decoder != "text" or bool(key_decoder_class or value_decoder_class),
        deep=deep_iteration,
        skip_record_metadata=skip_record_metadata,
        verify_index_only=verify_index_only,
        index_sanity_check=index_sanity_check,
        max_message_size=max_message_size,
        max_bytes=None if max_bytes >= _MAX_INT else max_bytes,
        decoder=decoder,
        output_format=(Format.JSONL if json else output_format).value,
        **chosen[0].options,
    )
    _note_foreign(chosen)


def _located(paths: list[str] | None, groups: list[str] | None) -> list[Location]:
    """Return the files of --files, each a list with commas, and those of the arguments."""
    named = [name for group in groups or () for name in group.split(",") if name]
    # the output has the names of --files unchanged
    located = [Location.parse(name) if "://" in name else Location(name) for name in named]
    return located + [Location.parse(path) for path in paths or ()]


def _check(chosen: Sequence[Location]) -> None:
    """Refuse directories and paths that do not exist."""
    if not chosen:
        message = "name at least one file, as --files FILE,FILE or as arguments"
        raise ValueError(message)
    for one in chosen:
        if one.is_local and one.is_dir:
            message = f"{one} is a directory: name its files, such as {one}/*.log"
            raise ValueError(message)
        # files of tiered storage exist only as the core presents them
        if not (one.is_local or one.is_url or is_presented(one.parent)):
            message = f"path {str(one)!r} does not exist"
            raise ValueError(message)


def _decoder(**flags: bool) -> _Decoder:
    """Return the first decoder whose flag is set, in Kafka's order."""
    chosen: Any = next((name for name, is_set in flags.items() if is_set), "text")
    found: _Decoder = chosen
    return found


def _note_foreign(chosen: Sequence[Location]) -> None:
    """Warn of files of other formats: the output shows only that the bytes are invalid."""
    for one in chosen:
        if one.suffix == ".log" and (reason := foreign(one)):
            output.warn(reason)


def _note(text: bytes) -> None:
    sys.stdout.flush()
    sys.stderr.buffer.write(text)
    sys.stderr.flush()
