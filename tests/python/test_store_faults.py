"""Uploads, listings and reads through a proxy with faults: everything arrives once, or there is an error."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from data import DATA
from fault_proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fault_proxy import Kind, Request
    from s3_server import S3Server

SMALL = DATA / "corpus" / "txn-lz4"


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    """A proxy to the server."""
    with FaultProxy(s3_server.port, options_at=s3_server.options_at) as running:
        yield running


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with a segment of 20 MiB, which is uploaded in three parts."""
    directory = tmp_path_factory.mktemp("large") / "large-0"
    noise = random.Random(1)  # noqa: S311 - not for cryptography
    with kbat.LogWriter(directory) as writer:
        for _ in range(20):
            writer.append(None, noise.randbytes(1 << 20), timestamp=0)
    return directory


def values(source: Path | str, **options: Any) -> list[Any]:  # noqa: ANN401 - those of kbat.scan
    found: list[Any] = kbat.scan(source, columns=["value"], **options).to_pyarrow()["value"].to_pylist()
    return found


@pytest.mark.parametrize("kind", ["reset", "reset in body", "error", "slow down", "drip"])
@pytest.mark.parametrize("source", ["small", "large"])
def test_an_upload_is_complete_despite_faults(
    kind: Kind, source: str, proxy: FaultProxy, s3_server: S3Server, large: Path
) -> None:
    """Every third request fails, wherever in the upload it is."""
    directory = large if source == "large" else SMALL
    for first in range(3):
        key = f"upload-faults/{kind.replace(' ', '-')}/{source}/{first}/t-0"

        def plan(request: Request, first: int = first) -> Kind | None:
            if not request.is_write or request.number % 3 != first:
                return None
            # if only the answer to the last request is lost, there is no upload any more to complete
            is_last = request.method == "POST" and "uploadId" in request.query
            return None if is_last and kind == "reset in body" else kind

        proxy.clear(plan)
        kbat.rewrite(directory, s3_server.url(key), storage_options=proxy.options)
        writes = sum(request.is_write for request in proxy.requests)
        objects = len(s3_server.keys(key))
        # each request at most twice: one per object, and five for the parts of a large one
        assert objects <= writes <= 2 * (objects + 5)
        assert values(s3_server.url(key), storage_options=s3_server.options) == values(directory)


@pytest.mark.parametrize("kind", ["error", "slow down", "reset"])
@pytest.mark.parametrize("part", ["first", "part", "last"])
def test_an_upload_that_always_fails_is_an_error_without_an_object(
    kind: Kind, part: str, proxy: FaultProxy, s3_server: S3Server, large: Path
) -> None:
    """The request that begins the upload, one of a part, or the one that completes it."""

    def plan(request: Request) -> Kind | None:
        query = request.query
        is_of = {
            "first": request.method == "POST" and "uploads" in query,
            "part": (request.method == "PUT" and "partNumber=2" in query) or "comp=block&" in f"{query}&",
            "last": (request.method == "POST" and "uploadId" in query) or "comp=blocklist" in query,
        }
        return kind if is_of[part] else None

    if s3_server.scheme != "s3" and part == "first":
        pytest.skip("no request begins an upload to Azure")
    key = f"upload-fails/{kind.replace(' ', '-')}/{part}/t-0"
    proxy.clear(plan)
    with pytest.raises(OSError, match="upload-fails"):
        kbat.rewrite(large, s3_server.url(key), storage_options=proxy.options)
    assert len(proxy.requests) <= 60
    assert not [name for name in s3_server.keys(key) if name.endswith(".log")]


@pytest.mark.parametrize("kind", ["reset", "reset in body", "error", "slow down", "truncate", "drip", "longer"])
def test_a_read_of_several_segments_is_complete_despite_faults(
    kind: Kind, proxy: FaultProxy, s3_server: S3Server, tmp_path: Path
) -> None:
    """Every request, including listings, fails once before it succeeds."""
    with kbat.LogWriter(tmp_path / "t-0", segment_bytes=300_000) as writer:
        for number in range(1000):
            writer.append(b"%d" % number, b"x" * 1000, timestamp=number)
    assert len(list((tmp_path / "t-0").glob("*.log"))) >= 3
    url = s3_server.upload(tmp_path / "t-0", f"read-faults/{kind.replace(' ', '-')}/t-0")
    seen: set[tuple[str, str | None]] = set()

    def plan(request: Request) -> Kind | None:
        # after half of a range has arrived, the rest of it is requested
        name = (request.path + request.query, request.range and request.range.partition("-")[2])
        if name in seen or (kind == "longer" and not request.is_list):
            return None
        seen.add(name)
        return kind

    proxy.clear(plan)
    scan = kbat.scan(url, columns=["offset"], storage_options=proxy.options)
    try:
        found = scan.to_pyarrow(threads=1)["offset"].to_pylist()
    except OSError:
        assert kind == "longer"
        return
    assert found == list(range(1000))
    assert len(proxy.requests) <= 60


@pytest.mark.parametrize("kind", ["longer", "shorter", "drip"])
def test_a_listing_with_a_wrong_length_is_complete_or_an_error(
    kind: Kind, proxy: FaultProxy, s3_server: S3Server
) -> None:
    url = s3_server.upload(SMALL, f"list-faults/{kind}/t-0")
    proxy.clear(lambda request: kind if request.is_list else None)
    try:
        count = kbat.scan(url, storage_options=proxy.options).count()
    except OSError:
        assert kind != "drip"
    else:
        assert count == kbat.scan(SMALL).count()
    assert len(proxy.requests) <= 30
