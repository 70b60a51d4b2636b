"""Examples of modules whose package is not installed are not run: Spark takes half a gigabyte."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("pyspark") else ["src/viewfold/engine/spark.py"]
