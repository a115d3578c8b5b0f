"""The exceptions of kbat, with the position of the error as attributes.

``KbatError`` is their base class. The built-in ``OSError``, ``TypeError`` and ``ValueError`` are raised for a file that
can't be read, an argument of the wrong type, and a setting that Kafka's rules forbid.
"""

from __future__ import annotations


class KbatError(Exception):
    """The bytes are invalid or unsupported, or they exceed the limits.

    Attributes:
        kind: Stable name of the kind of error in ``snake_case``, such as ``"crc"`` or ``"batch_length"``.
        position: Byte position in the file or buffer. For compressed records, their start.
        base_offset: Base offset of the batch, as stored in its first eight bytes.
        record: Number of the record in the batch, from 0.
        field: Kafka's name of the field, in ``snake_case``.
        path: Path of the file.

    An attribute has the value None if it is unknown or does not apply.
    """

    def __init__(  # noqa: PLR0913 - the parts of a position
        self,
        message: str,
        *,
        kind: str | None = None,
        position: int | None = None,
        base_offset: int | None = None,
        record: int | None = None,
        field: str | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.position = position
        self.base_offset = base_offset
        self.record = record
        self.field = field
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with all attributes: Spark sends exceptions from its tasks."""
        return (_restore, (type(self), str(self), self.__dict__.copy()))


class CorruptError(KbatError, ValueError):
    """The bytes break the format."""


class CrcError(CorruptError):
    """A checksum differs from that of the bytes."""


class TruncatedError(CorruptError):
    """The bytes end too early."""


class DecompressionError(CorruptError):
    """The compressed records can't be decompressed."""


class UnsupportedError(KbatError):
    """A message format or codec that does not exist, or that this build does not include."""


class LimitError(KbatError):
    """The input exceeds :class:`kbat.Limits`."""


def _restore(cls: type[KbatError], message: str, attributes: dict[str, object]) -> KbatError:
    error = cls(message)
    error.__dict__.update(attributes)
    return error


__all__ = [
    "CorruptError",
    "CrcError",
    "DecompressionError",
    "KbatError",
    "LimitError",
    "TruncatedError",
    "UnsupportedError",
]
