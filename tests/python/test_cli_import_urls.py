"""`kbat import` of files in a store, and `kbat export` of logs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from command_line import LOG_DIR, content, json_of, run
from test_cli_stores import Stores, stores, unreachable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["stores", "unreachable"]


@pytest.fixture(scope="module")
def files(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A directory with exported records, and its URL."""
    root: Path = tmp_path_factory.mktemp("files")
    (root / "log.jsonl").write_text(run("cat", LOG_DIR / "txn-simple-0").stdout, encoding="utf-8")
    (root / "no suffix").write_text(run("cat", LOG_DIR / "txn-simple-0").stdout, encoding="utf-8")
    (root / "notes.txt").write_text("no records\n", encoding="utf-8")
    run("export", LOG_DIR, root / "archive", "--partition-by", "topic,partition")
    run("export", LOG_DIR / "codec-lz4-0", root / "one.parquet")
    return root, stores.server.upload(root, "files", sorted(path for path in root.rglob("*") if path.is_file()))


@pytest.mark.parametrize("name", ["log.jsonl", "no suffix", "one.parquet"])
def test_a_file_of_a_url_is_imported_like_one_of_a_path(name: str, files: tuple[Path, str], tmp_path: Path) -> None:
    root, url = files
    local = json_of("import", root / name, tmp_path / "local")
    stored = json_of("import", f"{url}/{name}", tmp_path / "stored")
    assert stored["path"] == f"{url}/{name}"
    assert (stored["format"], stored["records"]) == (local["format"], local["records"])
    assert content(tmp_path / "stored") == content(tmp_path / "local")


def test_parquet_files_below_a_url_are_imported(files: tuple[Path, str], tmp_path: Path) -> None:
    report = json_of("import", f"{files[1]}/archive", tmp_path / "out", "--log-directory")
    assert report["format"] == "parquet"
    assert run("cat", tmp_path / "out").stdout == run("cat", LOG_DIR).stdout


def test_what_a_url_does_not_contain_is_a_wrong_argument(files: tuple[Path, str], tmp_path: Path) -> None:
    _, url = files
    for name, message in (
        ("missing.jsonl", "does not exist"),
        ("missing", "does not exist"),
        ("notes.txt", "notes.txt, line 1: it is not JSON"),
    ):
        done = run("import", f"{url}/{name}", tmp_path / "out")
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
        assert message in done.stderr


def test_a_log_in_a_store_is_not_an_input(stores: Stores, tmp_path: Path) -> None:
    done = run("import", f"{stores.url}/logs", tmp_path / "out")
    assert done.exit_code == 2
    assert done.stderr == f"kbat: {stores.url}/logs contains no Parquet file; 'kbat copy' copies a log\n"


@pytest.mark.parametrize("output_format", ["parquet", "arrow", "csv", "jsonl"])
def test_a_log_of_a_url_is_exported_like_one_of_a_path(output_format: str, stores: Stores, tmp_path: Path) -> None:
    found: list[object] = []
    for place in (f"{stores.root}/logs", f"{stores.url}/logs"):
        out = tmp_path / f"{len(found)}.{output_format}"
        done = run("export", place, out, "--topic", "codec-*")
        assert done.exit_code == 0, done.stderr
        # the boundaries of Arrow batches may differ
        found.append(pa.ipc.open_file(str(out)).read_all() if output_format == "arrow" else out.read_bytes())
    assert found[0] == found[1]
