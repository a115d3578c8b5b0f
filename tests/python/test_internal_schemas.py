"""`kbat.schemas`: the schemas that a registry has after it has read its topic."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import LOG
from data import build

if TYPE_CHECKING:
    from pathlib import Path

Pair = tuple[bytes, bytes | None]


def key(subject: str, version: int) -> bytes:
    return json.dumps({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}).encode()


def schema(subject: str, version: int, /, **more: Any) -> Pair:  # noqa: ANN401 - JSON
    value = {"subject": subject, "version": version, "id": 7, "schema": "{}", **more}
    return key(subject, version), json.dumps(value).encode()


def deleted_subject(subject: str, version: int) -> Pair:
    name = json.dumps({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}).encode()
    return name, json.dumps({"subject": subject, "version": version}).encode()


def log(*pairs: Pair) -> bytes:
    return build([(0, *pair) for pair in pairs])


def live(*pairs: Pair) -> dict[tuple[str, int], bool]:
    """Whether each version is live."""
    return {(row["subject"], row["version"]): not row["is_deleted"] for row in kbat.schemas(log(*pairs)).to_pylist()}


def test_schemas_of_a_registry() -> None:
    data = log(
        (b'{"keytype":"NOOP","magic":0}', None),
        schema("a", 1),
        schema("a", 2, id=8, schemaType="PROTOBUF", deleted=False),
        schema("b", 1),
        (key("b", 1), None),
        schema("c", 1, deleted=True),
        schema("d", 1, schemaType=None),
        deleted_subject("a", 1),
        (b"no JSON", b"\0\0\0\0\1{}"),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
    )
    assert kbat.schemas(data).to_pylist() == [
        {"subject": "a", "version": 1, "id": 7, "schema_type": "AVRO", "schema": "{}", "is_deleted": True},
        {"subject": "a", "version": 2, "id": 8, "schema_type": "PROTOBUF", "schema": "{}", "is_deleted": False},
        {"subject": "c", "version": 1, "id": 7, "schema_type": "AVRO", "schema": "{}", "is_deleted": True},
        {"subject": "d", "version": 1, "id": 7, "schema_type": "AVRO", "schema": "{}", "is_deleted": False},
    ]


def test_records_are_applied_in_the_order_of_the_log() -> None:
    first, second = schema("a", 1), schema("a", 2)
    assert live(first, deleted_subject("a", 1), second) == {("a", 1): False, ("a", 2): True}
    assert live(first, deleted_subject("a", 2), second) == {("a", 1): False, ("a", 2): True}
    # registered again
    assert live(first, deleted_subject("a", 1), first) == {("a", 1): True}
    gone = (schema("a", 1, deleted=True), (key("a", 1), None))
    assert live(first, deleted_subject("a", 1), *gone) == {}
    assert live(first, deleted_subject("a", 1), *gone, schema("a", 1, id=9)) == {("a", 1): True}
    # the tombstone of a deletion, and the deletion of an unknown subject, change nothing
    assert live(first, deleted_subject("a", 1), (deleted_subject("a", 1)[0], None)) == {("a", 1): False}
    assert live(first, deleted_subject("b", 1)) == {("a", 1): True}


@pytest.mark.parametrize(
    "pair",
    [
        schema("x", 1, id=99_999_999_999),
        schema("x", 1, id=None),
        schema("x", 1, version=1 << 40),
        schema("x", 1 << 40),
        schema("x", 1, version=True),
        schema("x", 1, id=True),
        schema("x", 1, version=1.5),
        schema("x", 1, subject=None),
        deleted_subject("y", 1 << 40),
        (key("x", 1), b"no JSON"),
        (key("x", 1), b"[]"),
        (key("x", 1), b'{"subject":"x","version":' + b"9" * 5000 + b"}"),
    ],
)
def test_malformed_records_do_not_hide_others(pair: Pair) -> None:
    with pytest.warns(UserWarning, match=r"^schemas may be missing or old: 1 record can't be decoded") as caught:
        assert kbat.schemas(log(schema("y", 1), pair))["subject"].to_pylist() == ["y"]
    assert [one.filename for one in caught] == [__file__]


def test_topic_may_have_another_name(tmp_path: Path) -> None:
    directory = tmp_path / "my-schemas-0"
    directory.mkdir()
    (directory / LOG).write_bytes(log(schema("a", 1)))
    for source in (tmp_path, directory, directory / LOG, log(schema("a", 1))):
        assert kbat.schemas(source, topic="my-schemas")["subject"].to_pylist() == ["a"]
    for source in (tmp_path, directory):
        with pytest.raises(ValueError, match='no topic matches "_schemas"; topics found: my-schemas'):
            kbat.schemas(source)
    with pytest.raises(TypeError, match=r"kbat.schemas\(\) does not accept the argument 'topics' of kbat.scan"):
        kbat.schemas(directory, topics=["my-schemas"])
    directory.rename(tmp_path / "_schemas-0")
    assert kbat.schemas(tmp_path)["subject"].to_pylist() == ["a"]


def test_corruption_is_a_warning() -> None:
    data = bytearray(log(schema("a", 1)))
    data[-3] ^= 1
    data += build([(0, *schema("b", 1))], base_offset=1)
    for option in ("skip", "report"):
        with pytest.warns(UserWarning, match="^schemas may be missing or old: skipped 1 corrupt range"):
            assert kbat.schemas(bytes(data), on_corrupt=option)["subject"].to_pylist() == ["b"]
