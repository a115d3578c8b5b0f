"""Spark Connect: servers without the jar and with it, and a client that sends it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import kbat.spark
import spark_connect
from data import DATA
from spark_faces import message_of, read_in_python

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("grpc_status", reason="Spark Connect needs grpcio-status")

pytestmark = pytest.mark.long

LOG_DIR = DATA / "log-dir"
RECORD_COUNT = 220

Outcomes = dict[str, Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def bare_server(directory: Path) -> Iterator[str]:
    """The URL of a server without the jar."""
    (home := directory / "bare").mkdir()
    with spark_connect.started(home) as url:
        yield url


@pytest.fixture(scope="module")
def without(bare_server: str, directory: Path) -> Outcomes:
    """What a client has whose server has no jar."""
    return spark_connect.outcomes(bare_server, directory / "without")


@pytest.fixture(scope="module")
def sent(bare_server: str, directory: Path) -> Outcomes:
    """What a client has that sends the jar with addArtifacts."""
    return spark_connect.outcomes(bare_server, directory / "sent", "artifact")


@pytest.fixture(scope="module")
def started(directory: Path) -> Outcomes:
    """What a client has whose server was started with the jar and its SQL functions."""
    (home := directory / "jars").mkdir()
    with spark_connect.started(
        home, "--jars", kbat.spark.jar(), "--conf", "spark.sql.extensions=kbat.Extensions"
    ) as url:
        return spark_connect.outcomes(url, directory / "started")


@pytest.fixture(params=["without", "sent", "started"])
def case(request: pytest.FixtureRequest) -> tuple[Outcomes, str]:
    """The outcomes of each of the three, and where kbat runs by default."""
    return request.getfixturevalue(request.param), "python" if request.param == "without" else "jvm"


def error_of(path: Path, **options: Any) -> str:  # noqa: ANN401 -- those of read_in_python
    """Return the message of an error of a classic session."""
    return message_of(partial(read_in_python, path, **options))


def test_connect_rows_are_those_of_scan(case: tuple[Outcomes, str]) -> None:
    outcomes, _ = case
    assert outcomes["rows"] is True


def test_connect_engine_selects_the_face_and_messages_are_those_of_a_classic_session(
    case: tuple[Outcomes, str],
) -> None:
    outcomes, face = case
    by_jvm = "jvm" if face == "jvm" else error_of(LOG_DIR, engine="jvm")
    faces = {"auto": face, "jvm": by_jvm, "python": "python"}
    unknown = "kbat: option engine='x': must be auto, jvm or python"
    assert outcomes["engines"] == faces | {"x": unknown}
    assert outcomes["read engines"] == faces
    assert outcomes["missing"] == outcomes["read missing"] == error_of(LOG_DIR / "missing")


def test_connect_stream_reads_all_records(case: tuple[Outcomes, str]) -> None:
    outcomes, face = case
    assert outcomes["stream"] == [RECORD_COUNT, face == "jvm"]


def test_connect_write_has_the_records(case: tuple[Outcomes, str]) -> None:
    outcomes, face = case
    by_jvm = True if face == "jvm" else error_of(LOG_DIR, engine="jvm")
    assert outcomes["writes"] == {"auto": True, "jvm": by_jvm, "python": True}


def test_connect_read_decode_and_to_parquet_use_the_jar_of_the_server(case: tuple[Outcomes, str]) -> None:
    outcomes, face = case
    assert outcomes["read"] == [face, True]
    assert outcomes["decode"] == [face, True]
    assert outcomes["parquet"] == [True, face == "jvm"]


def test_connect_encode_has_the_records(case: tuple[Outcomes, str]) -> None:
    outcomes, _ = case
    assert outcomes["encode"] is True


def test_connect_register_adds_the_functions_of_the_face(case: tuple[Outcomes, str]) -> None:
    outcomes, face = case
    assert outcomes["register"] is None
    assert outcomes["functions"] == [face, RECORD_COUNT, "a value"]


def test_connect_functions_need_register_unless_the_server_has_the_extensions(
    without: Outcomes, sent: Outcomes, started: Outcomes
) -> None:
    assert without["functions before"].startswith("[UNRESOLVED_ROUTINE]")
    assert sent["functions before"].startswith("[UNRESOLVED_ROUTINE]")
    assert started["functions before"] == ["jvm", RECORD_COUNT, "a value"]


def test_connect_session_sends_the_jar_if_the_server_has_none(case: tuple[Outcomes, str]) -> None:
    outcomes, _ = case
    assert outcomes["is same"] is True
    assert outcomes["warnings"] == []
    assert outcomes["after session"] == "jvm"


def test_connect_jar_is_found_before_and_after_it_is_sent(without: Outcomes, sent: Outcomes, started: Outcomes) -> None:
    assert [outcomes["before"] for outcomes in (without, sent, started)] == ["python", "python", "jvm"]
    assert sent["read"][0] == "jvm"


def test_connect_session_starts_a_local_server_with_the_jar(directory: Path) -> None:
    outcomes = spark_connect.outcomes("local[2]", directory / "local", "session")
    assert outcomes == {"before": "jvm", "functions": ["jvm", RECORD_COUNT, "a value"]}
