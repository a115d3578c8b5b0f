"""Where the files of a read are: in a file system, or in a store that a URL names, such as a bucket.

```
options storage.<name>                          kbat.spark.read, register
spark.hadoop.fs.s3a.* of the session  ──► s3a_settings ──► names of object_store
                                                              │ with every URL, on the driver and in the tasks
                                                              ▼
                                          kbat.scan("s3://…", storage_options=…, encryption_keys=…)
```

Each task opens the objects that it reads, in Rust. The values of options may be secrets: no repr or message has them.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

from kbat._core.files import discover

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    import kbat

Pairs = tuple[tuple[str, str], ...]

_SCHEMES = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https")
S3_SCHEMES = ("s3", "s3a")
_HADOOP = "spark.hadoop.fs.s3a."
# The settings of Hadoop's S3A client that have an option of object_store.
_OF_S3A = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
# What Hadoop has for "the endpoint of the region".
_CENTRAL_ENDPOINT = "s3.amazonaws.com"
_UNKNOWN = re.compile(r'storage_options has no option "(.*?)"')


def scheme_of(path: str) -> str:
    """Return the scheme of a URL that a store opens, in lower case; empty for other paths."""
    scheme, separator, _ = path.partition("://")
    return scheme.lower() if separator and scheme.lower() in _SCHEMES else ""


def location(path: str) -> str:
    """Return a URL as it is, and the absolute path of any other path. Raises `ValueError` for an unknown scheme."""
    scheme, _, rest = path.partition(":")
    if scheme == "memory" and rest.startswith("//"):
        message = f"kbat: {path} is in the memory of one process, and Spark's tasks are other processes"
        raise ValueError(message)
    if scheme.lower() in _SCHEMES and rest.startswith("/") and not rest.startswith("//"):
        message = f"kbat: {path}: pathlib removes a slash from URLs; pass the URL as a str"
        raise ValueError(message)
    return path if scheme_of(path) else local_path(path)


def local_path(path: str) -> str:
    """Return the absolute path of a path or `file:` URL."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme.lower() == "file":
        path = "/" + rest.lstrip("/")
    elif colon and rest.startswith("/") and scheme.isalnum():
        message = (
            f"kbat: {path} is not in a local file system; "
            "every task opens files by a path that all machines have: mount or copy it"
        )
        raise ValueError(message)
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 -- strings in, strings out


def storage_for(paths: Iterable[str], storage: Pairs, session: Pairs) -> Pairs:
    """Return the options of the store of some paths: those of the read, else for S3 those of the session.

    Raises `ValueError` for options without a URL, and for options with paths of several kinds.
    """
    schemes = {scheme_of(path) for path in paths}
    kinds = {"s3" if scheme in S3_SCHEMES else scheme for scheme in schemes}
    if not storage and kinds != {"s3"}:
        return ()
    if storage and kinds == {""}:
        message = "kbat: the options storage.<name> have no effect on paths in a file system: remove them, or load URLs"
        raise ValueError(message)
    if len(kinds) > 1:
        message = (
            "kbat: the options storage.<name> are those of one store, and the paths are of several kinds: load them "
            "apart, and combine the rows with union"
        )
        raise ValueError(message)
    return storage or session


def s3a_settings(spark: SparkSession) -> Pairs:
    """Return the options of object_store that correspond to the session's settings `spark.hadoop.fs.s3a.*`."""

    def setting(name: str) -> str:
        return (spark.conf.get(_HADOOP + name, None) or "").strip()

    found = {ours: value for theirs, ours in _OF_S3A.items() if (value := setting(theirs))}
    endpoint = setting("endpoint")
    if endpoint and endpoint.partition("://")[2] != _CENTRAL_ENDPOINT and endpoint != _CENTRAL_ENDPOINT:
        scheme = "http" if setting("connection.ssl.enabled").lower() == "false" else "https"
        found["endpoint"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
    is_path_style = setting("path.style.access").lower()
    if is_path_style:
        # with an endpoint, object_store only knows paths, which every store accepts
        is_virtual = is_path_style == "false" and "endpoint" not in found
        found["virtual_hosted_style_request"] = str(is_virtual).lower()
    return tuple(found.items())


def with_s3a_settings(source: type[Any], spark: SparkSession) -> type[Any]:
    """Return the class of a data source that has the session's settings, or `source` itself if there are none.

    Spark plans a Python data source in a process without a session, so the class carries them there.
    """
    settings = s3a_settings(spark)
    return type(source.__name__, (source,), {"session_storage": settings}) if settings else source


def named_as_option(error: ValueError) -> ValueError:
    """Return an error about storage options and keys with their names in Spark."""
    text = _UNKNOWN.sub(r"there is no option storage.\1", str(error))
    text = text.replace("encryption_keys have no effect", "option encryptionKeys has no effect")
    text = text.replace("no encryption keys were passed", "set the option encryptionKeys")
    return ValueError(f"kbat: {text}") if text != str(error) else error


def look_up(paths: Sequence[str], keywords: Mapping[str, Any]) -> dict[str, int | kbat.SegmentFile]:
    """Return the bytes of each file that exists, or if it is not in a file system, the file as kbat found it.

    A directory of several files in a store is listed once. A found file is opened without another request.
    """
    found: dict[str, int | kbat.SegmentFile] = {}
    directories: dict[str, list[str]] = {}
    for path in paths:
        try:
            size = None if scheme_of(path) else os.stat(path).st_size  # noqa: PTH116 -- strings in, strings out
        except FileNotFoundError:
            size = None
        if size is None:
            directories.setdefault(path.rpartition("/")[0], []).append(path)
        else:
            found[path] = size
    for directory, files in directories.items():
        listed: dict[str, kbat.SegmentFile] = {}
        with contextlib.suppress(ValueError):  # no file is named like a segment
            listed = {str(file.path): file for file in _found_at(directory, keywords)}
        for path in files:
            file = listed.get(path) or next(iter(_found_at(path, keywords)), None)
            if file is not None:
                found[path] = file
    return found


def _found_at(path: str, keywords: Mapping[str, Any]) -> list[kbat.SegmentFile]:
    """Return the segments at a path; none if it does not exist."""
    try:
        return discover([path], replicas="longest", **keywords)[0]
    except FileNotFoundError as error:
        if error.filename not in {None, path}:  # the file of a key
            raise
        return []
