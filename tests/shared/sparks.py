"""One Spark session for all tests, in this process and two more; `stop` ends it."""

import os
import shutil
import sys
from functools import lru_cache


def why_not():
    """Why Spark cannot be had here, if it cannot."""
    found = os.environ.get("JAVA_HOME") or shutil.which("java")
    return "" if found else "Spark needs Java, which is not installed: apt install default-jre"


@lru_cache(maxsize=1)
def spark():
    """Two cores of this machine; a task may fail twice."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
    for name, value in {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }.items():
        made = made.config(name, value)
    return made.getOrCreate()


def lay(frame, parts):
    """A Spark frame of these rows in so many partitions, in their order."""
    import pyarrow as pa

    from tests.shared.engine_kinds import pieces_of

    session = spark()
    pieces = [piece.to_dict("records") for piece in pieces_of(frame, parts)]
    schema = session.createDataFrame(pa.Table.from_pandas(frame, preserve_index=False)).schema
    rows = session.sparkContext.parallelize(pieces, len(pieces)).flatMap(lambda some: some)
    return session.createDataFrame(rows.map(_plain), schema, verifySchema=False)


def _plain(row):
    """Python's own numbers; Spark knows no others, and takes NaN for a number."""
    return {name: None if value != value else value for name, value in row.items()}


def stop():
    """End the session, if there is one."""
    if spark.cache_info().currsize:
        spark().stop()
