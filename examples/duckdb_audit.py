"""Shows with SQL which topic and codec fill a log directory. Reads only the headers of batches.

python examples/duckdb_audit.py [LOG_DIR]
"""

import sys

import duckdb

import kbat

log_dir = sys.argv[1] if len(sys.argv) > 1 else "tests/data/log-dir"

batches = kbat.scan(log_dir, view="batches", leave_page_cache=True)
largest = duckdb.sql("""
    select topic, compression, count(*) as batches, sum(record_count)::bigint as records, sum(size)::bigint as bytes
    from batches
    group by all
    order by bytes desc
    limit 10
""")
print(largest)
