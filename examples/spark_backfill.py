"""Reads topics with Spark from a log directory instead of a broker, and writes them to Parquet.

python examples/spark_backfill.py OUTPUT [LOG_DIR] [TOPICS]
"""

import os
import sys

from pyspark.sql import SparkSession

import kbat.spark

if len(sys.argv) < 2:
    print("usage: python examples/spark_backfill.py OUTPUT [LOG_DIR] [TOPICS]", file=sys.stderr)
    sys.exit(2)
output = sys.argv[1]
log_dir = sys.argv[2] if len(sys.argv) > 2 else "tests/data/log-dir"
topics = sys.argv[3] if len(sys.argv) > 3 else "codec-lz4,codec-zstd"

# Workers must run the Python that has kbat, and the settings must be set before the session starts.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.master("local[2]").config(map=dict(kbat.spark.SETTINGS)).getOrCreate()

records = spark.read.format("kbat").option("subscribe", topics).option("includeHeaders", "true").load(log_dir)
records.write.mode("overwrite").partitionBy("topic").parquet(output)
spark.read.parquet(output).groupBy("topic").count().orderBy("topic").show()
spark.stop()
