"""Write ``src/internal/schemas.txt``, the table of Kafka's internal messages, from Kafka's jars.

Run this when Kafka adds a record type or a version:

    for module in clients group-coordinator transaction-coordinator share-coordinator metadata storage raft; do
        mvn -q dependency:copy -Dartifact=org.apache.kafka:kafka-$module:4.4.0 -DoutputDirectory=JARS
    done
    python tests/internal_schemas.py JARS [MORE_JARS]... > src/internal/schemas.txt

The directories of jars are in order of age. If two versions of Kafka have a message of the same name, the later one is
used; the script fails if the later one lacks a field of the earlier one.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

FOREVER = 32767
"""Kafka's largest version."""

FAMILIES = {
    "group-coordinator": "group",
    "transaction-coordinator": "transaction",
    "share-coordinator": "share",
    "metadata": "metadata",
    "storage": "remote",
}
"""The family of the messages with a number, by the module of their jar."""

SINGLE = {
    "LeaderChangeMessage",
    "SnapshotHeaderRecord",
    "SnapshotFooterRecord",
    "KRaftVersionRecord",
    "VotersRecord",
    "EndTxnMarker",
    "ConsumerProtocolSubscription",
    "ConsumerProtocolAssignment",
    "ProducerSnapshot",
    "QuorumStateData",
    "AbortedTxn",
}
"""Messages without a number that are not part of a request."""

PRIMITIVES = {
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "string", "bytes", "records", "uuid",
}  # fmt: skip

HEADER = """\
# Kafka's internal messages, written by tests/internal_schemas.py. Do not edit.
#
# message  family kind number name versions flexible-versions
# field    depth name type versions [n=nullable-versions] [t=tag] [d=default]
#
# A "common" struct, unlike others, can be read in versions that are newer than the last one of its message.
# A version range is "low-high", "low+" or "none". Depth 1 is the message; deeper fields belong to the struct above.
# Versions before the first and after the last valid version of a message count as these, as in Kafka's generated code.
"""

Message = dict[str, Any]


def main() -> None:
    """Write the table to standard output."""
    messages: dict[tuple[str, str, int, str], Message] = {}
    for directory in sys.argv[1:]:
        for jar in sorted(Path(directory).glob("kafka-*.jar")):
            for key, message in messages_of(jar):
                if key in messages:
                    check_extends(messages[key], message)
                messages[key] = message
    lines = [HEADER.rstrip("\n")]
    for (family, kind, number, name), message in sorted(messages.items()):
        valid = bounds(message["validVersions"])
        lines.append(f"{family} {kind} {number} {name} {text(valid)} {relative(message['flexibleVersions'], valid)}")
        structs = {struct["name"]: struct for struct in message.get("commonStructs", [])}
        lines += fields_of(message["fields"], 1, structs, valid)
    sys.stdout.write("\n".join(lines) + "\n")


def messages_of(jar: Path) -> list[tuple[tuple[str, str, int, str], Message]]:
    """Return the messages of a jar that are records, with family, kind, number and name."""
    match = re.fullmatch(r"kafka-(.+)-\d[\d.]*\.jar", jar.name)
    module = match[1] if match else ""
    found: list[tuple[tuple[str, str, int, str], Message]] = []
    with zipfile.ZipFile(jar) as archive:
        for path in sorted(archive.namelist()):
            if not re.match(r"(common/)?(message|metadata)/.*\.json$", path):
                continue
            message: Message = json.loads(without_comments(archive.read(path).decode()))
            kind = {"coordinator-key": "key", "coordinator-value": "value", "metadata": "record"}.get(message["type"])
            if kind and module in FAMILIES:
                found.append(((FAMILIES[module], kind, int(message["apiKey"]), message["name"]), message))
            elif message["name"] in SINGLE:
                found.append((("single", "data", 0, message["name"]), message))
    return found


def without_comments(source: str) -> str:
    """Remove the lines that are comments; Kafka's files have no others."""
    return "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("//"))


def check_extends(old: Message, new: Message) -> None:
    """Fail if a later version of a message lacks a field of an earlier one, or has it with another type."""
    old_fields = {field["name"]: field["type"] for field in old["fields"]}
    new_fields = {field["name"]: field["type"] for field in new["fields"]}
    missing = {name: kind for name, kind in old_fields.items() if new_fields.get(name) != kind}
    if missing:
        message = f"{new['name']}: the later version has not the fields {missing}; keep both by hand"
        raise SystemExit(message)


def fields_of(fields: list[Message], depth: int, structs: dict[str, Message], valid: tuple[int, int]) -> list[str]:
    """Return the lines of a list of fields, with those of their structs."""
    lines = []
    for field in fields:
        element = field["type"].removeprefix("[]")
        array = "[]" if element != field["type"] else ""
        name = field["name"][:1].lower() + field["name"][1:]
        shown = element if element in PRIMITIVES else "struct" if field.get("fields") else "common"
        versions = field.get("versions") or field["taggedVersions"]
        line = f"{depth} {name} {array}{shown} {relative(versions, valid)}"
        if field.get("nullableVersions"):
            line += f" n={relative(field['nullableVersions'], valid)}"
        if "tag" in field:
            if relative(field["taggedVersions"], valid) != relative(versions, valid):
                message = f"{name}: tagged and untagged in different versions; extend the table"
                raise SystemExit(message)
            line += f" t={field['tag']}"
        if (default := default_of(field)) is not None:
            line += f" d={default}"
        if field.get("flexibleVersions"):
            message = f"{name}: flexible versions of its own; extend the table"
            raise SystemExit(message)
        lines.append(line)
        if shown in {"struct", "common"}:
            inner = field.get("fields") or structs[element]["fields"]
            lines += fields_of(inner, depth + 1, structs, valid)
    return lines


def default_of(field: Message) -> str | None:
    """Return the default of a field, or nothing if it is zero, false or empty.

    Kafka's generator takes only the string "null" as null; a JSON null is the same as no default.
    """
    default = field.get("default")
    if default is None:
        return None
    if isinstance(default, bool):
        default = str(default).lower()
    default = str(default)
    if default.lower().startswith("0x"):
        default = str(int(default, 16))
    return None if default in {"", "0", "false"} else default


def bounds(versions: str) -> tuple[int, int]:
    """Return the first and last version of a range."""
    if versions == "none":
        return (1, 0)
    if versions.endswith("+"):
        return (int(versions[:-1]), FOREVER)
    low, _, high = versions.partition("-")
    return (int(low), int(high or low))


def relative(versions: str, valid: tuple[int, int]) -> str:
    """Return a range, widened if it reaches the first or last valid version of the message."""
    low, high = bounds(versions)
    if low > high:
        return "none"
    return text((0 if low <= valid[0] else low, FOREVER if high >= valid[1] else high))


def text(versions: tuple[int, int]) -> str:
    """Return a range as text."""
    low, high = versions
    return f"{low}+" if high == FOREVER else f"{low}-{high}"


if __name__ == "__main__":
    main()
