"""Counts records and bytes by topic with Polars.

python examples/polars_topics.py [LOG_DIR]
"""

import sys

import polars as pl

import kbat

log_dir = sys.argv[1] if len(sys.argv) > 1 else "tests/data/log-dir"

# A lazy frame: Polars selects columns, and kbat reads no others.
records = kbat.scan_polars(log_dir)
print(
    records.group_by("topic")
    .agg(
        pl.len().alias("records"),
        (pl.col("key").bin.size().sum() + pl.col("value").bin.size().sum()).alias("bytes"),
        pl.col("timestamp").max().alias("latest"),
    )
    .sort("records", descending=True)
    .collect()
)
