"""Where the files of a read are: in a file system, or in a store that a URL names, such as a bucket.

```
options storage.<name>                          kbat.spark.read, register
spark.hadoop.fs.s3a.* of the session  ──► s3a_settings ──► names of object_store, for reads whose options name none
```

The core opens the stores. The values of options may be secrets: no repr or message has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Pairs = tuple[tuple[str, str], ...]

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
