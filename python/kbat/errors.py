"""What can go wrong, as exceptions that say where.

``KbatError`` is the base of all. ``OSError``, ``TypeError`` and ``ValueError`` are raised as such where they fit: a
file that can't be read, an argument of another type, a setting that Kafka's rules forbid.
"""

from __future__ import annotations


class KbatError(Exception):
    """Something is wrong with the bytes, or they ask for more than the limits allow.

    Attributes:
        kind: Stable name of the fault in ``snake_case``, such as ``"crc"`` or ``"batch_length"``.
        position: Byte from the start of the file or buffer; inside compressed records, where the compressed ones begin.
        base_offset: Base offset of the batch as stored in its first eight bytes.
        record: Which record of the batch, counting from 0.
        field: The field, under Kafka's name in ``snake_case``.
        path: The file.

    What is not known, or does not apply, is None.
    """

    def __init__(  # noqa: PLR0913 - the parts of a place
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
    """A checksum is not that of the bytes."""


class TruncatedError(CorruptError):
    """The bytes end too early."""


class DecompressionError(CorruptError):
    """A codec refused the compressed records."""


class UnsupportedError(KbatError):
    """A message format or codec that does not exist, or that this build has not."""


class LimitError(KbatError):
    """The input asks for more than :class:`kbat.Limits` allows."""


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
