"""Both corpora and the log directory through an S3-compatible server: everything is equal to the same through files."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from obstore.store import MemoryStore, S3Store

import kbat
from data import DATA, build
from expected import case_directories
from fault_proxy import FaultProxy
from s3_server import ACCESS_KEY, BUCKET, SECRET_KEY, log_files
from store_servers import SCHEME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fault_proxy import Kind
    from s3_server import S3Server

T = TypeVar("T")
FOLDERS = ("corpus", "corpus-legacy", "log-dir")
CASES = [directory.relative_to(DATA).as_posix() for directory in case_directories()]
# Cases in which the isolation level or the indexes of a segment make a difference.
TRANSACTIONS = [case for case in CASES if "txn" in case or (DATA / case / "read-committed.json").exists()]
FAMILIES = [case for case in CASES if case.startswith("corpus/")]
# A server in Python takes some milliseconds for a request: of the old formats, which differ in records only, some cases
# are enough for the functions that read every file many times.
SOME = [*FAMILIES, *[case for case in CASES if not case.startswith("corpus/")][::6]]
COMMANDS = ("salvage", "recover", "rewrite", "compact")
s3_only = pytest.mark.skipif(SCHEME != "s3", reason="names and messages of S3")
every_case = pytest.mark.parametrize("case", CASES)
COLUMNS = [
    "key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers", "base_offset", "position",
    "partition_leader_epoch", "producer_id", "producer_epoch", "sequence", "is_transactional", "compression", "magic",
    "batch_size", "segment",
]  # fmt: skip


@dataclass
class Place:
    """The same files in a directory and in a bucket."""

    local: str
    stored: str
    options: dict[str, Any]

    def both(self, run: Callable[[str, dict[str, Any]], T], case: str) -> tuple[Any, Any]:
        """Run on the files and on the objects, and return the two outcomes without the places in them."""
        found = outcome(lambda: run(f"{self.local}/{case}", {}), self.local)
        stored = outcome(lambda: run(f"{self.stored}/{case}", {"storage_options": self.options}), self.stored)
        return found, stored


def outcome(run: Callable[[], T], place: str) -> object:
    """Return the result or the error, with `<place>` for the place."""
    try:
        return without(run(), place)
    except kbat.KbatError as error:
        fields = {name: getattr(error, name) for name in ("path", "position", "base_offset")}
        return type(error), without(str(error), place), without(fields, place)
    except (OSError, ValueError) as error:
        return type(error), without(str(error), place)


def without(value: Any, place: str) -> Any:  # noqa: ANN401 - anything
    """Replace a place wherever it is in a value."""
    if isinstance(value, str):
        return value.replace(place, "<place>")
    if isinstance(value, dict):
        return {without(key, place): without(item, place) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without(item, place) for item in value]
    if isinstance(value, pa.Table):
        for name in {"segment", "path"} & set(value.column_names):
            plain = pc.replace_substring(value[name].cast(pa.string()), place, "<place>")
            value = value.set_column(value.column_names.index(name), name, plain)
        if "error" in value.column_names:
            return value.drop_columns("error"), without(value["error"].to_pylist(), place)
    return value


@pytest.fixture(scope="module")
def place(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The corpora and the log directory, without the answers."""
    root = tmp_path_factory.mktemp("files")
    for folder in FOLDERS:
        for path in log_files(DATA / folder):
            copy = root / path.relative_to(DATA)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    stored = s3_server.upload(root, "stores", [path for path in root.rglob("*") if path.is_file()])
    return Place(os.fspath(root), stored, s3_server.options)


def rows(source: str, **options: Any) -> tuple[Any, Any]:  # noqa: ANN401 - those of kbat.scan
    """Read the rows up to the first error, and the error."""
    scan = kbat.scan(source, **options)
    batches: list[pa.RecordBatch] = []
    error = None
    try:
        batches.extend(scan.to_batches())
    except kbat.KbatError as raised:
        error = [type(raised).__name__, str(raised), raised.position, raised.base_offset]
    table = pa.Table.from_batches(batches, scan.schema)
    stats = scan.stats
    return table, [error, stats.to_dict() if stats and not error else None]


def scanned(asked: dict[str, Any], source: str, options: dict[str, Any]) -> object:
    """Read rows."""
    return rows(source, **asked, **options)


@every_case
def test_rows_and_corruption_are_those_of_the_files(case: str, place: Place) -> None:
    """Where nothing is corrupt, the three modes are the same."""
    for on_corrupt in ("fail", "report", "skip"):
        mode = {"on_corrupt": on_corrupt, "columns": COLUMNS, "include_control": True}
        found, stored = place.both(partial(scanned, mode), case)
        assert stored == found, on_corrupt
        if on_corrupt == "report" and not any(found[0][1]):
            break


@pytest.mark.parametrize("case", SOME)
def test_batches_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, view="batches", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", FAMILIES[::3])
def test_segments_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, view="segments", **options), case)
    assert stored == found


@pytest.mark.parametrize("case", TRANSACTIONS)
def test_committed_rows_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: rows(source, isolation="read_committed", **options), case)
    assert stored == found


def lookups(source: str, options: dict[str, Any]) -> list[Any]:
    """Everything that a partition answers."""
    log = kbat.PartitionLog(source, **options)
    segments = log.segments
    some = list(
        {s.base_offset: s for s in (*segments[:1], *segments[len(segments) // 2 :][:1], *segments[-1:])}.values()
    )
    bases = [segment.base_offset for segment in some]
    end = log.end_offset
    offsets = {-1, end - 1, end, *(base + 37 for base in bases)}
    found = []
    for offset in sorted(offsets):
        at = log.find_offset(offset)
        found.append(at and (at.segment, at.position, at.base_offset, at.last_offset, at.size, at.index))
    tops = [segment.largest_timestamp for segment in some]
    times = {kbat.EARLIEST, kbat.LATEST, kbat.MAX_TIMESTAMP, *(top - 5 for top in tops)}
    by_time = []
    for timestamp in sorted(times):
        at_time = log.find_timestamp(timestamp)
        by_time.append(at_time and (at_time.timestamp, at_time.offset, at_time.leader_epoch, at_time.index))
    aborted = [(a.producer_id, a.first_offset, a.last_offset) for a in log.aborted_transactions(0, end)]
    state = [log.start_offset, end, log.last_stable_offset, log.leader_epochs, log.topic_id, log.topic, log.partition]
    files = [log.snapshots, log.leftovers, [segment.files for segment in log.segments]]
    return [found, by_time, aborted, state, files]


@pytest.mark.parametrize("case", SOME)
def test_lookups_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lookups, case)
    assert stored == found


@pytest.mark.parametrize("case", SOME)
def test_reports_are_those_of_the_files(case: str, place: Place) -> None:
    found, stored = place.both(lambda source, options: kbat.verify(source, **options).to_dict(), case)
    assert stored == found


def written(out: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("case", "command"), [(case, COMMANDS[at % 4]) for at, case in enumerate(SOME)])
def test_files_written_from_objects_are_those_from_files(case: str, command: str, place: Place, tmp_path: Path) -> None:
    def write(source: str, options: dict[str, Any]) -> dict[str, bytes]:
        out = tmp_path / ("stored" if options else "local") / "out-0"
        out.parent.mkdir()
        try:
            now = {"now_ms": 1_800_000_000_000} if command == "compact" else {}
            getattr(kbat, command)(source, out, **now, **options)
        except (ValueError, OSError) as error:
            message = str(error).replace(os.fspath(out), "<out>")
            raise type(error)(message) from error
        return written(out)

    found, stored = place.both(write, case)
    assert stored == found


# --- Names and options


@pytest.fixture(scope="module")
def prefix(s3_server: S3Server) -> str:
    """A partition of 220 records in the bucket."""
    return s3_server.upload(DATA / "corpus" / "codec-none", "options/codec-none-0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acess_key_id": "hunter2"}, 'no option "acess_key_id" for s3://'),
        ({"key": "hunter2", "secret": "hunter2"}, "the name in fsspec; use access_key_id"),
        ({"client_kwargs": {"endpoint_url": "hunter2"}}, "the name in fsspec; use endpoint"),
        ({"anon": True}, "the name in fsspec; use skip_signature"),
    ],
)
def test_a_wrong_option_is_named_without_its_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="storage_options") as raised:
        kbat.scan("s3://bucket/x", storage_options=options)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)


@s3_only
def test_secrets_are_in_no_text(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    texts = [repr(kbat.scan(prefix, **options)), kbat.scan(prefix, **options)._repr_html_()]
    for opened in (kbat.PartitionLog(prefix, **options), kbat.LogDirectory(s3_server.url("options"), **options)):
        texts += [repr(opened), opened._repr_html_()]
    for url in ("s3://no-such-bucket/x", f"{prefix}/none.log"):
        with pytest.raises(OSError, match="s3://") as raised:
            kbat.scan(url, **options)
        texts.append(str(raised.value))
    for secret in (ACCESS_KEY, SECRET_KEY):
        assert not any(secret in text for text in texts), texts


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no effect on a path in the file system"):
        kbat.scan(tmp_path, storage_options={"region": "us-east-1"})


def test_a_url_that_pathlib_changed_is_refused() -> None:
    with pytest.raises(ValueError, match="pathlib removes a slash from URLs"):
        kbat.scan(Path("s3://bucket/x"))


@pytest.mark.parametrize("function", ["scan", "PartitionLog", "LogDirectory", "Segment", "read_batches", "verify"])
def test_unknown_keywords_are_refused(function: str) -> None:
    with pytest.raises(TypeError, match=rf"{function}\(\) got an unexpected keyword argument 'storage_option'"):
        getattr(kbat, function)("s3://bucket/x", storage_option={})


@pytest.mark.parametrize(
    "function", ["scan", "PartitionLog", "LogDirectory", "read_batches", "verify", "find_segments"]
)
def test_a_missing_object_is_a_missing_file(function: str, s3_server: S3Server) -> None:
    for name in ("none", "none/00000000000000000000.log"):
        with pytest.raises(FileNotFoundError, match=f"{SCHEME}://.*/{name}"):
            getattr(kbat, function)(s3_server.url(name), storage_options=s3_server.options)


@s3_only
def test_a_missing_bucket_is_a_missing_file(s3_server: S3Server) -> None:
    with pytest.raises(FileNotFoundError):
        kbat.scan("s3://no-such-bucket/x", storage_options=s3_server.options)


@s3_only
def test_a_missing_bucket_is_named(s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    with pytest.raises(OSError, match="bucket does not exist"):
        kbat.scan("s3://no-such-bucket/x", **options)


def test_refused_requests_are_permission_errors(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": {**s3_server.options, "skip_signature": True}}
    with pytest.raises(PermissionError, match="403"):
        kbat.scan(f"{prefix}/00000000000000000000.log", **options).to_pyarrow()


def test_an_endpoint_without_scheme_is_an_argument_error(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": {**s3_server.options, "endpoint": "localhost"}}
    with pytest.raises(ValueError, match="endpoint"):
        kbat.scan(prefix, **options)


def test_options_of_a_wrong_type_are_a_type_error() -> None:
    options: dict[str, Any] = {"storage_options": [("region", "us-east-1")]}
    with pytest.raises(TypeError, match="storage_options"):
        kbat.scan("s3://bucket/x", **options)


def test_option_values_of_a_wrong_type_are_a_type_error() -> None:
    options: dict[str, Any] = {"storage_options": {"secret_access_key": b"hunter2"}}
    with pytest.raises((TypeError, ValueError), match="secret_access_key"):
        kbat.scan("s3://bucket/x", **options)


def test_a_pattern_matches_prefixes_of_a_bucket_or_is_refused(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    found = kbat.scan(prefix.replace("codec-none", "codec-*"), **options).count()
    assert found == 220


def test_keys_with_spaces_and_signs_are_read(s3_server: S3Server) -> None:
    for name in ("a b-0", "ü#+-0", "%41-0"):
        s3_server.put(f"odd/{name}/00000000000000000000.log", build())
        options: dict[str, Any] = {"storage_options": s3_server.options}
        assert kbat.scan(s3_server.url(f"odd/{name}"), **options).count() == 1, name


def test_changing_a_bucket_in_place_is_refused(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    with pytest.raises(ValueError, match="can only be changed in the file system"):
        kbat.recover(prefix, in_place=True, **options)
    with pytest.raises(ValueError, match="writes to the file system only"):
        kbat.LogWriter(s3_server.url("options/new-0"))


def test_what_is_in_a_store_is_not_pickled(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    log = kbat.PartitionLog(prefix, **options)
    for opened in (log, log.segments[0]):
        with pytest.raises(TypeError, match="can't be pickled: open its URL again"):
            pickle.dumps(opened)


def test_parts_of_a_split_contain_every_row_once(prefix: str, s3_server: S3Server) -> None:
    options: dict[str, Any] = {"storage_options": s3_server.options}
    parts = kbat.split(prefix, 20_000, **options)
    assert len(parts) > 2
    offsets = kbat.scan(parts, **options).to_pyarrow()["offset"].to_pylist()
    assert offsets == list(range(220))


@s3_only
def test_a_store_of_obstore_is_opened(prefix: str, s3_server: S3Server) -> None:
    assert prefix.endswith("options/codec-none-0")
    arguments: dict[str, Any] = {**s3_server.options, "client_options": {"allow_http": True}}
    whole, below = S3Store(BUCKET, **arguments), S3Store(BUCKET, prefix="options", **arguments)
    opened: dict[str, Any] = {"store": whole}
    assert kbat.scan("options/codec-none-0", **opened).count() == 220
    assert kbat.PartitionLog("codec-none-0", **{**opened, "store": below}).end_offset == 220
    with pytest.raises(ValueError, match="the path is relative to the store"):
        kbat.scan(prefix, **opened)
    with pytest.raises(ValueError, match="not both"):
        kbat.scan("options", storage_options=s3_server.options, **opened)


def test_other_stores_are_refused() -> None:
    opened: dict[str, Any] = {"store": MemoryStore()}
    with pytest.raises(TypeError, match="not MemoryStore"):
        kbat.scan("x", **opened)


# --- Faults between kbat and the server


def values(count: int, size: int, fill: bytes = b"a") -> bytes:
    """A segment of `count` batches of `size` bytes."""
    return b"".join(build([(1, b"k%d" % at, fill * size)], base_offset=at) for at in range(count))


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    """A proxy to the server, with a segment of 40 batches of 100 kB, and one of 500 batches of 16 kB."""
    s3_server.put("faults/large-0/00000000000000000000.log", values(40, 100_000))
    s3_server.put("faults/small-0/00000000000000000000.log", values(500, 16_000))
    with FaultProxy(s3_server.port, options_at=s3_server.options_at) as running:
        yield running


LARGE, SMALL = f"{SCHEME}://{BUCKET}/faults/large-0", f"{SCHEME}://{BUCKET}/faults/small-0"


def offsets_of(url: str, proxy: FaultProxy, **options: Any) -> list[Any]:  # noqa: ANN401 - those of kbat.scan
    scan = kbat.scan(url, storage_options=proxy.options, **options)
    found: list[Any] = scan.to_pyarrow(threads=1)["offset"].to_pylist()
    return found


@pytest.mark.parametrize("kind", ["reset", "error", "slow down", "truncate", "drip"])
def test_rows_are_complete_despite_faults(kind: Kind, proxy: FaultProxy) -> None:
    proxy.clear(lambda request: kind if request.is_read and request.number % 2 else None)
    assert offsets_of(LARGE, proxy) == list(range(40))
    assert len(proxy.requests) <= 30


@pytest.mark.parametrize("kind", ["reset", "error", "slow down", "truncate"])
def test_a_listing_is_complete_despite_faults(kind: Kind, proxy: FaultProxy) -> None:
    proxy.clear(lambda request: kind if request.number == 0 else None)
    assert offsets_of(LARGE, proxy) == list(range(40))


@pytest.mark.parametrize("kind", ["longer", "shorter", "whole", "other range"])
def test_an_answer_with_other_bytes_is_an_error(kind: Kind, proxy: FaultProxy) -> None:
    proxy.clear(lambda request: kind if request.is_read else None)
    with pytest.raises((OSError, kbat.KbatError), match=LARGE):
        offsets_of(LARGE, proxy)
    assert len(proxy.requests) <= 30


def test_a_short_answer_is_not_corruption(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "shorter" if request.is_read and request.number == 2 else None)
    try:
        offsets = offsets_of(LARGE, proxy, on_corrupt="skip")
    except OSError:
        return
    assert offsets == list(range(40))


def test_a_server_that_always_fails_is_an_error(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "slow down" if request.is_read else None)
    with pytest.raises(OSError, match="503"):
        offsets_of(LARGE, proxy)
    assert len(proxy.requests) <= 40


def test_a_stalled_answer_is_requested_again(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_read and request.number == 3 else None)
    options: dict[str, Any] = {"storage_options": {**proxy.options, "timeout": "1s"}}
    assert kbat.scan(LARGE, **options).count() == 40


@pytest.mark.parametrize("on_corrupt", ["fail", "skip", "report"])
def test_an_object_that_is_replaced_is_an_error(on_corrupt: Any, s3_server: S3Server) -> None:  # noqa: ANN401 - a literal
    """The object is longer than everything that a reader requests in advance."""
    key = f"replaced-{on_corrupt}/x-0/00000000000000000000.log"
    url = s3_server.put(key, values(600, 100_000))
    options: dict[str, Any] = {"storage_options": s3_server.options, "on_corrupt": on_corrupt}
    # a scan with bounds requests less in advance
    batches = kbat.scan(url, max_bytes=1, end_offset=1_000_000, **options).to_batches()
    assert next(batches)["value"][0].as_py()[:1] == b"a"
    s3_server.put(key, values(600, 100_000, b"b"))
    with pytest.raises(OSError, match="the object was replaced while it was read"):
        assert {batch["value"][0].as_py()[:1] for batch in batches} == {b"a"}
    s3_server.delete(key)


def test_batches_of_an_object_that_is_replaced_are_an_error(s3_server: S3Server) -> None:
    url = s3_server.put("replaced/x-0/00000000000000000000.log", values(200, 100_000))
    options: dict[str, Any] = {"storage_options": s3_server.options}
    batches = kbat.read_batches(url, **options)
    next(batches)
    s3_server.put("replaced/x-0/00000000000000000000.log", values(200, 100_000, b"b"))
    with pytest.raises(OSError, match="the object was replaced while it was read"):
        list(batches)


# A shell's background jobs ignore Ctrl-C, and so would their child processes.
_HEARD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
_READ = """
import sys, kbat
from ast import literal_eval
options = literal_eval(sys.argv[2])
print("go", flush=True)
print(kbat.scan(sys.argv[1], storage_options=options).count())
"""


def run_script(script: str, proxy: FaultProxy, seconds: float, *, stop: bool = False) -> tuple[int, str, str]:
    """Run a script and its child processes, and optionally press Ctrl-C after its first line."""
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", _HEARD + script, LARGE, repr(proxy.options)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        if stop:
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        try:
            printed, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, printed, errors


def test_control_c_ends_a_stalled_read(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_read else None)
    _, printed, errors = run_script(_READ.replace(".count()", ".count(threads=2)"), proxy, 2, stop=True)
    assert printed == ""
    assert "KeyboardInterrupt" in errors


def test_control_c_ends_a_stalled_read_of_one_thread(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_read else None)
    _, printed, errors = run_script(_READ.replace(".count()", ".count(threads=1)"), proxy, 2, stop=True)
    assert printed == ""
    assert "KeyboardInterrupt" in errors


def test_control_c_ends_a_stalled_listing(proxy: FaultProxy) -> None:
    proxy.clear(lambda request: "stall" if request.is_list else None)
    _, printed, errors = run_script(_READ, proxy, 2, stop=True)
    assert printed == ""
    assert "KeyboardInterrupt" in errors


_FORK = """
import os, sys, warnings, kbat
from ast import literal_eval
warnings.simplefilter("ignore")
print("go", flush=True)
def opened():
    return kbat.scan(sys.argv[1], storage_options=literal_eval(sys.argv[2]))
scan = opened()
first = scan.count()
child = os.fork()
if child:
    print(first, os.waitpid(child, 0)[1])
else:
    os._exit(0 if CHILD.count() == first else 1)
"""


def test_a_forked_process_opens_a_store(proxy: FaultProxy) -> None:
    proxy.clear()
    assert run_script(_FORK.replace("CHILD", "opened()"), proxy, 10)[1] == "40 0\n"


def test_a_forked_process_uses_an_open_store(proxy: FaultProxy) -> None:
    proxy.clear()
    assert run_script(_FORK.replace("CHILD", "scan"), proxy, 5)[1] == "40 0\n"


# --- Requests and bytes


def test_a_scan_requests_every_byte_once(proxy: FaultProxy) -> None:
    proxy.clear()
    assert offsets_of(SMALL, proxy) == list(range(500))
    size = len(values(500, 16_000))
    assert size <= proxy.body_len() <= size + 65_536
    assert len(proxy.reads()) <= 8
    assert len(proxy.lists()) == 1
    assert len(proxy.requests) <= 11


def test_headers_of_large_batches_are_read_without_their_records(proxy: FaultProxy, s3_server: S3Server) -> None:
    s3_server.put("faults/huge-0/00000000000000000000.log", values(40, 500_000))
    proxy.clear()
    assert kbat.scan(s3_server.url("faults/huge-0"), view="batches", storage_options=proxy.options).count() == 40
    assert proxy.body_len() <= 40 * 65_536
    assert len(proxy.requests) <= 45


def test_headers_of_small_batches_are_read_in_few_requests(proxy: FaultProxy) -> None:
    proxy.clear()
    assert kbat.scan(SMALL, view="batches", storage_options=proxy.options).count() == 500
    assert len(proxy.requests) <= 11


def test_a_lookup_reads_the_index_and_one_range(proxy: FaultProxy, s3_server: S3Server) -> None:
    url = s3_server.upload(DATA / "corpus" / "segments-default-interval", "faults/lookup-0")
    proxy.clear()
    options: dict[str, Any] = {"storage_options": proxy.options}
    place = kbat.PartitionLog(url, **options).find_offset(500)
    assert place is not None
    assert place.index == "used"
    assert len(proxy.requests) <= 4
    assert proxy.body_len() <= 32_000


def test_end_offsets_read_the_ends_of_last_segments(proxy: FaultProxy, s3_server: S3Server) -> None:
    for number in range(10):
        s3_server.upload(DATA / "corpus" / "txn-lz4", f"ends/t-{number}")
    proxy.clear()
    options: dict[str, Any] = {"storage_options": proxy.options}
    directory = kbat.LogDirectory(s3_server.url("ends"), **options)
    assert [log.end_offset for log in directory.partitions] == [374] * 10
    assert len(proxy.lists()) == 1
    assert len(proxy.requests) <= 22
    assert proxy.body_len() <= 32_000
