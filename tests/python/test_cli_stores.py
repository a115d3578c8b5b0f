"""The command `kbat` with URLs of an S3 server and with tiered storage: the same output as for directories."""

from __future__ import annotations

import http.server
import json
import re
import shlex
import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

import kbat
from command_line import LOG, LOG_DIR, content, copy_of, json_of, lines_of, process, run
from data import DATA
from s3_server import ACCESS_KEY, SECRET_KEY, S3Server, free_port
from store_servers import start_server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from typer.testing import Result

AIVEN = DATA / "tiered" / "aiven"
KEY = ("--encryption-key", f"key1={AIVEN / 'test-private-key.pem'}")
OTHER_KEY = ("--encryption-key", f"key1={AIVEN / 'other-private-key.pem'}")
CRASHES = ("crash-flip", "crash-torn")


class Stores:
    """A server with copies of directories: `codec-lz4-0` is the directory `root / codec-lz4-0` and the object's URL."""

    def __init__(self, server: S3Server, root: Path) -> None:
        """Copy a log directory, corrupt partitions, directories that are not logs, and tiered storage."""
        self.root = root
        self.server = server
        shutil.copytree(LOG_DIR, root / "logs")
        for case in (*CRASHES, "crash-index"):
            copy_of(case, root / "crashes" / f"{case}-0")
        controller = copy_of("cluster-metadata", root / "controller" / "__cluster_metadata-0")
        for path in (DATA / "corpus" / "cluster-metadata").glob("*.checkpoint"):
            shutil.copy(path, controller)
        copy_of("consumer-offsets", root / "controller" / "__consumer_offsets-0")
        _texts(root / "texts-0")
        shutil.copytree(AIVEN / "aes", root / "aes")
        self.url = server.upload(root, "cli", sorted(path for path in root.rglob("*") if path.is_file()))

    def both(self, *arguments: str) -> tuple[Result, Result]:
        """Run a command with the directory and with the URL in place of `{}`."""
        return tuple(run(*(one.format(place) for one in arguments)) for place in (self.root, self.url))  # type: ignore[return-value]

    def neutral(self, text: str) -> str:
        """Return an output without the differences that are in the names of locations."""
        text = re.sub(r" +(?=#)", " ", text)
        return text.replace(self.url, "ROOT").replace(str(self.root), "ROOT")


def _texts(directory: Path) -> None:
    directory.mkdir()
    for number in (0, 100):
        (directory / f"{number:020}.log").write_text("2026-11-22 10:00:00 INFO this is the log of a program\n" * 20)


@pytest.fixture(scope="module")
def unreachable() -> Iterator[subprocess.Popen[str]]:
    """A command whose server does not run. It retries for a long time, so it starts before the other tests."""
    endpoint = f"endpoint=http://127.0.0.1:{free_port()}"
    options = ["--storage-option", endpoint, "--storage-option", "region=x"]
    secret = ["--storage-option", f"secret_access_key={SECRET_KEY}", "--storage-option", f"access_key_id={ACCESS_KEY}"]
    with process("ls", "s3://bucket/logs", *options, *secret) as command:
        yield command
        command.kill()


@pytest.fixture(scope="module")
def stores(unreachable: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    del unreachable
    with start_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        patch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        patch.setenv("AWS_REGION", "us-east-1")
        yield Stores(server, tmp_path_factory.mktemp("stores"))


READS = [
    ("ls", "{}/logs", "--topic", "codec-*"),
    ("ls", "{}/logs", "--topic", "no-topic"),
    ("ls", "{}/logs/txn-lz4-0", "--json"),
    ("ls", "{}/logs/txn-lz4-0/"),
    ("ls", "{}/logs/codec-lz4-0/" + LOG),
    ("ls", "{}/crashes", "--json"),
    ("ls", "{}/texts-0"),
    ("ls", "{}/logs/codec-lz4-0/00000000000000000000.index"),
    ("verify", "{}/logs/compacted-0"),
    ("verify", "{}/logs", "--topic", "codec-*", "--json"),
    ("verify", "{}/crashes/crash-flip-0"),
    ("verify", "{}/crashes/crash-flip-0", "--json"),
    ("verify", "{}/crashes/crash-torn-0/" + LOG),
    ("verify", "{}/texts-0"),
    ("cat", "{}/logs/txn-simple-0"),
    ("cat", "{}/logs/codec-lz4-0", "{}/logs/codec-gzip-0/" + LOG, "--start-offset", "100", "--text"),
    ("cat", "{}/logs/txn-lz4-0", "--isolation", "read_committed", "--start-time", "2023-11-14T22:13:20Z", "-n", "50"),
    ("cat", "{}/crashes/crash-flip-0"),
    ("cat", "{}/crashes/crash-flip-0", "--on-corrupt", "report"),
    ("cat", "{}/texts-0"),
    ("audit", "{}/logs", "--by", "partition,producer"),
    ("audit", "{}/logs/codec-lz4-0", "{}/logs/codec-gzip-0", "--json"),
    ("batches", "{}/logs/txn-lz4-0", "--check-crc"),
    ("batches", "{}/logs", "--topic", "codec-*", "--json"),
    ("stat", "{}/logs", "--by", "topic,codec", "--records", "--json"),
    ("stat", "{}/crashes", "--records"),
    ("lookup", "{}/logs/segments-default-interval-0", "--offset", "500"),
    ("lookup", "{}/logs", "--time", "2023-11-14T22:22:00Z", "--json"),
    ("lookup", "{}/crashes", "--offset", "100"),
    ("recover", "{}/crashes/crash-flip-0", "--dry-run"),
    ("recover", "{}/crashes/crash-torn-0", "--dry-run", "--json"),
    ("recover", "{}/logs", "--dry-run"),
    ("recover", "{}/texts-0", "--dry-run"),
]


@pytest.mark.parametrize("arguments", READS, ids=" ".join)
def test_url_prints_what_its_directory_prints(arguments: tuple[str, ...], stores: Stores) -> None:
    local, stored = stores.both(*arguments)
    assert stores.neutral(stored.stdout) == stores.neutral(local.stdout)
    # a shell has no loop over the partitions of a store
    shown = re.sub("; for each damaged one: .*", "", local.stderr)
    assert stores.neutral(stored.stderr) == stores.neutral(shown)
    assert stored.exit_code == local.exit_code


WRITES = [
    ("recover", "crashes/crash-flip-0"),
    ("salvage", "crashes/crash-flip-0"),
    ("salvage", "crashes/crash-torn-0/" + LOG),
    ("compact", "logs/compacted-0", "--include-active", "--now", "1800000000000"),
    ("rewrite", "logs/codec-none-0", "--compression", "lz4"),
    ("rewrite", "texts-0"),
    ("copy", "logs/txn-lz4-0", "--start-offset", "20"),
    ("convert", "logs/codec-none-0", "--compression", "zstd"),
    ("filter", "logs/codec-none-0", "--key", ".*1.*"),
]


@pytest.mark.parametrize("arguments", WRITES, ids=" ".join)
def test_copy_of_a_url_is_that_of_its_directory(arguments: tuple[str, ...], stores: Stores, tmp_path: Path) -> None:
    command, source, *options = arguments
    out = tmp_path / "out-0"
    found = []
    for place in _places(stores):
        done = run(command, f"{place}/{source}", out, *options)
        files = content(out) if out.exists() else {}
        shutil.rmtree(out, ignore_errors=True)
        written = {name: stores.neutral(data.decode("latin-1")) for name, data in files.items()}
        found.append((done.exit_code, stores.neutral(done.stdout), stores.neutral(done.stderr), written))
    assert found[0] == found[1]


def test_lookup_with_options_of_a_store_shows_the_same_steps(stores: Stores) -> None:
    local, stored = (f"{place}/logs/segments-default-interval-0" for place in _places(stores))
    time = ("--time", "2023-11-14T22:22:00Z")
    (expected,) = json_of("lookup", local, *time)["results"]
    (found,) = json_of("lookup", stored, *time, "--storage-option", f"endpoint={stores.server.endpoint}")["results"]
    assert expected["scan"]["batches"] == 3
    for name in ("time_index", "offset_index"):
        assert found[name].pop("path").rpartition("/")[2] == expected[name].pop("path").rpartition("/")[2]
    same = ("scan", "time_index", "offset_index", "index", "batch", "record")
    assert [found[name] for name in same] == [expected[name] for name in same]


@pytest.mark.parametrize("command", ["topics", "groups"])
@pytest.mark.parametrize("place", ["controller", "controller/{topic}-0"])
def test_tables_of_internal_topics_of_a_url_are_those_of_its_directory(
    command: str, place: str, stores: Stores
) -> None:
    topic = {"topics": "__cluster_metadata", "groups": "__consumer_offsets"}[command]
    name = place.format(topic=topic)
    local, stored = stores.both(command, f"{{}}/{name}", "--json")
    assert (local.exit_code, stored.exit_code) == (0, 0), stored.stderr
    assert len(json.loads(stored.stdout)[command]) > 1
    assert stores.neutral(stored.stdout) == stores.neutral(local.stdout)
    option = f"endpoint={stores.server.endpoint}"
    assert run(command, f"{stores.url}/{name}", "--json", "--storage-option", option).stdout == stored.stdout


def test_dump_prints_the_records_of_a_url(stores: Stores) -> None:
    local, stored = (run("dump", f"{place}/logs/codec-lz4-0/{LOG}", "--print-data-log") for place in _places(stores))
    assert (stored.exit_code, stored.stderr) == (0, "")
    assert stored.stdout.splitlines()[1:] == local.stdout.splitlines()[1:]


def _places(stores: Stores) -> tuple[Path, str]:
    return stores.root, stores.url


def test_file_url_is_its_path(stores: Stores) -> None:
    local = run("verify", stores.root / "logs" / "codec-lz4-0")
    assert run("verify", f"file://{stores.root}/logs/codec-lz4-0").stdout == local.stdout
    assert run("verify", f"file://localhost{stores.root}/logs/codec%2dlz4-0").stdout == local.stdout


@pytest.mark.parametrize("case", ["crash-flip", "crash-index"])
def test_next_commands_of_a_url_work(
    case: str, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"{stores.url}/crashes/{case}-0"
    commands = json_of("verify", url, exit_code=2)["next"]
    assert commands
    for command in commands:
        name, *arguments = shlex.split(command)
        assert (name, arguments[1]) == ("kbat", url)
        assert run(*arguments).exit_code == 0
    assert run("verify", f"salvaged/{case}-0").exit_code == 0


def test_next_commands_of_a_file_and_of_an_error_name_the_url(stores: Stores) -> None:
    place = f"{stores.url}/crashes/crash-flip-0"
    done = run("cat", place)
    assert done.exit_code == 1
    assert f"'kbat verify {place}' lists all corruption, 'kbat salvage {place} OUT' keeps" in done.stderr


def test_change_in_place_is_refused_with_what_to_do(stores: Stores, tmp_path: Path) -> None:
    url = f"{stores.url}/crashes/crash-index-0"
    for arguments, advice in (
        (("recover", url, "--in-place"), f"'kbat recover {url} OUT' writes a copy"),
        (("rebuild-indexes", url), f"'kbat salvage {url} OUT' writes a copy with new indexes"),
        (("rebuild-indexes", url, tmp_path / "out"), f"'kbat salvage {url} OUT' writes a copy with new indexes"),
    ):
        done = run(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert advice in done.stderr
    assert not (tmp_path / "out").exists()


def test_url_as_out_of_rebuild_indexes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("rebuild-indexes", LOG_DIR / "codec-lz4-0", "s3://bucket/out")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "OUT is a URL, but this command writes only to the file system" in _unwrapped(done)
    assert list(tmp_path.iterdir()) == []


def _unwrapped(done: Result) -> str:
    """Return the errors of arguments, which typer prints in a box, on one line."""
    return " ".join(done.stderr.replace("│", "").split())


@pytest.mark.parametrize("command", ["ls", "verify", "cat", "audit"])
def test_location_that_does_not_exist_is_a_wrong_argument(command: str, stores: Stores) -> None:
    for place in (f"{stores.url}/no", "memory://no"):
        done = run(command, place)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == f"kbat: path '{place}' does not exist\n"


def test_missing_bucket_is_a_file_that_cannot_be_read(stores: Stores) -> None:
    del stores
    done = run("ls", "s3://no-bucket/logs")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the bucket does not exist" in done.stderr
    assert run("verify", "s3://no-bucket/logs").exit_code == 2


def test_unknown_scheme_is_a_wrong_argument() -> None:
    done = run("ls", "hdfs://name/logs")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "hdfs:// is not a known scheme; use file, s3, s3a" in done.stderr


def _settings(**values: str) -> list[str]:
    return [word for name, value in values.items() for word in ("--storage-option", f"{name}={value}")]


def test_storage_options_open_the_store(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run("ls", f"{stores.url}/crashes")
    options = stores.server.options
    for name in ("ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"):
        monkeypatch.delenv(f"AWS_{name}")
    done = run("ls", f"{stores.url}/crashes", *_settings(**options))
    assert (done.exit_code, done.stdout) == (expected.exit_code, expected.stdout)
    report = json_of("verify", f"{stores.url}/crashes/crash-flip-0", *_settings(**options), exit_code=2)
    names = "".join(f" --storage-option {name}=..." for name in options)
    assert [command.endswith(names) for command in report["next"]] == [True] * 3
    failed = run("cat", f"{stores.url}/crashes/crash-flip-0", *_settings(**options))
    assert names in failed.stderr
    for output in (json.dumps(report), failed.stderr):
        assert SECRET_KEY not in output
        assert ACCESS_KEY not in output
        assert stores.server.endpoint not in output


@pytest.mark.parametrize("command", ["transactions", "producers"])
@pytest.mark.parametrize("name", ["logs/txn-lz4-0", f"logs/txn-lz4-0/{LOG}"])
def test_files_beside_a_log_are_in_the_same_store(
    command: str, name: str, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(command, f"{stores.root}/{name}")
    for variable in ("ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION"):
        monkeypatch.delenv(f"AWS_{variable}")
    done = run(command, f"{stores.url}/{name}", *_settings(**stores.server.options))
    assert (done.exit_code, done.stderr) == (expected.exit_code, expected.stderr)
    assert stores.neutral(done.stdout) == stores.neutral(expected.stdout)


WRONG_OPTIONS = [
    (("--storage-option", "secret=hunter2"), "that is the name in fsspec; use secret_access_key"),
    (("--storage-option", "aws_secret=hunter2"), '--storage-option has no option "aws_secret" for s3://'),
    (("--storage-option", "timeout=hunter2"), 'failed to parse "<timeout>"'),
    (("--storage-option", "hunter2"), "a storage option has the form NAME=VALUE"),
    (("--storage-option", "=hunter2"), "a storage option has the form NAME=VALUE"),
    (("--encryption-key", "key1"), "an encryption key has the form ID=PATH"),
    (("--encryption-key", "key1=no.pem"), "the file 'no.pem' of the encryption key 'key1' does not exist"),
    (KEY, "--encryption-key has no effect"),
]


@pytest.mark.parametrize(("options", "reason"), WRONG_OPTIONS, ids=lambda value: str(value[-1]))
def test_wrong_option_is_named_without_its_value(options: tuple[str, ...], reason: str, stores: Stores) -> None:
    done = run("ls", f"{stores.url}/logs", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert reason in _unwrapped(done)
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_ls_reads_little_of_a_large_partition(stores: Stores, tmp_path: Path, *, with_snapshot: bool) -> None:
    """Without a snapshot at its end, the last stable offset is known only after reading the partition."""
    log = tmp_path / "orders-0"
    with kbat.LogWriter(log) as writer:
        for _ in range(9):
            writer.append(None, bytes(1 << 20), timestamp=0)
    for snapshot in [] if with_snapshot else log.glob("*.snapshot"):
        snapshot.unlink()
    url = stores.server.upload(tmp_path, f"large-{with_snapshot}", sorted(log.iterdir()))
    (found,) = json_of("ls", url)["partitions"]
    assert (found["end_offset"], found["error"]) == (9, None)
    assert found["last_stable_offset"] == (9 if with_snapshot else None)
    assert f"last stable {'9' if with_snapshot else '-'}\n" in run("ls", f"{url}/orders-0").stdout


@pytest.mark.parametrize("url", ["https://user:hunter2@host/logs", "https://host/logs?sig=hunter2"])
def test_secret_in_a_url_is_refused_and_not_shown(url: str) -> None:
    done = run("ls", url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--storage-option instead" in _unwrapped(done)
    assert "hunter2" not in done.stderr


def test_storage_option_of_a_path_has_no_effect() -> None:
    done = run("ls", LOG_DIR, "--storage-option", "region=us-east-1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--storage-option has no effect on a path in the file system: remove it, or name a URL" in done.stderr


class _Forbidden(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(403)

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def log_message(self, *_: Any) -> None:  # noqa: ANN401 - of the base class
        """Print nothing."""


@pytest.mark.parametrize("command", [("ls", "s3://bucket/logs"), ("copy", LOG_DIR / "codec-lz4-0", "s3://bucket/copy")])
def test_wrong_credentials_are_an_error_with_advice(command: tuple[object, ...]) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Forbidden) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = _settings(endpoint=f"http://127.0.0.1:{server.server_port}", region="x")
        secrets = _settings(access_key_id=ACCESS_KEY, secret_access_key=SECRET_KEY)
        done = run(*command, *options, *secrets)
        server.shutdown()
    assert (done.exit_code, done.stdout) == (1, "")
    assert "403 Forbidden" in done.stderr
    assert "; check the credentials in the environment" in done.stderr
    assert "run kbat as" not in done.stderr
    assert SECRET_KEY not in done.stderr
    assert ACCESS_KEY not in done.stderr


ENCRYPTED = [
    ("ls", "{}/aes/txn-lz4-0", "--json"),
    ("ls", "{}/aes/pre/fix/codec-lz4-UyyBKsrVktnmaB6mgNFkkA/0"),
    ("verify", "{}/aes", "--json"),
    ("cat", "{}/aes/compacted-0"),
    ("audit", "{}/aes/compacted-0"),
    ("recover", "{}/aes/idempotent-0", "--dry-run"),
]


@pytest.mark.parametrize("arguments", ENCRYPTED, ids=" ".join)
def test_encrypted_tiered_storage_is_read_with_its_key(arguments: tuple[str, ...], stores: Stores) -> None:
    local, stored = stores.both(*arguments, *KEY)
    assert (local.exit_code, local.stderr) == (0, "")
    assert (stored.exit_code, stored.stderr) == (local.exit_code, "")
    assert stores.neutral(stored.stdout) == stores.neutral(local.stdout)


@pytest.mark.parametrize("command", ["verify", "recover"])
def test_encrypted_tiered_storage_without_its_key_is_an_error_that_names_it(command: str, stores: Stores) -> None:
    arguments = (command, "{}/aes/compacted-0", *(["--dry-run"] if command == "recover" else []))
    for done in stores.both(*arguments):
        assert (done.exit_code, done.stdout) == (2, "")
        assert 'the segment is encrypted with the key "key1": add --encryption-key key1=PATH.pem' in done.stderr
    for done in stores.both(*arguments, *OTHER_KEY):
        assert (done.exit_code, done.stdout) == (2, "")
        assert 'the encryption key "key1" does not decrypt the segment\'s data key' in done.stderr


def test_tiered_storage_has_the_records_of_its_partition(stores: Stores, tmp_path: Path) -> None:
    expected = lines_of(LOG_DIR / "codec-lz4-0")
    for place in (f"{stores.url}/aes/codec-lz4-0", stores.root / "aes" / "codec-lz4-0"):
        assert lines_of(place, *KEY) == expected
        out = tmp_path / "copy" / "codec-lz4-0"
        assert run("rewrite", place, out, *KEY).exit_code == 0
        assert lines_of(out) == expected
        shutil.rmtree(out)


def test_next_commands_of_tiered_storage_name_what_is_presented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(AIVEN / "plain", tmp_path / "plain")
    (log,) = (tmp_path / "plain").rglob("codec-lz4-*/0/*.log")
    data = bytearray(log.read_bytes())
    data[20_000] ^= 1
    log.write_bytes(data)
    commands = json_of("verify", "plain", exit_code=2)["next"]
    assert commands[0] == "kbat recover plain/codec-lz4-0 --dry-run"
    for command in commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0
    assert lines_of("salvaged/codec-lz4-0") == lines_of("plain/codec-lz4-0", "--on-corrupt", "skip")
    assert log.read_bytes() == bytes(data)


def test_change_of_tiered_storage_is_refused(tmp_path: Path) -> None:
    shutil.copytree(AIVEN / "plain", tmp_path / "plain")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    partition = next((tmp_path / "plain").rglob("codec-lz4-*/0"))
    for place in (tmp_path / "plain" / "codec-lz4-0", partition):
        for arguments in (("recover", place, "--in-place"), ("rebuild-indexes", place)):
            done = run(*arguments)
            assert (done.exit_code, done.stdout) == (2, ""), arguments
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("path", ["no", "codec-lz4-0/no", "no/no/no"])
def test_path_that_tiered_storage_does_not_contain_is_a_wrong_argument(path: str) -> None:
    done = run("ls", AIVEN / "plain" / path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "does not exist" in _unwrapped(done)


def test_help_names_the_options_and_the_environment() -> None:
    for command in ("ls", "verify", "cat", "audit", "recover", "salvage", "rebuild-indexes", "compact", "rewrite"):
        text = run(command, "--help").stdout
        for expected in ("--storage-option", "--encryption-key", "AWS_ACCESS_KEY_ID"):
            assert expected in text, (command, expected)


def test_endpoint_that_cannot_be_reached_is_an_error(unreachable: subprocess.Popen[str]) -> None:
    stdout, stderr = unreachable.communicate(timeout=120)
    assert (unreachable.returncode, stdout) == (1, "")
    assert stderr.startswith("kbat: Generic S3 error: ")
    assert stderr.endswith("(s3://bucket/logs)\n")
    assert stderr.count("\n") == 1
    assert SECRET_KEY not in stderr
    assert ACCESS_KEY not in stderr
