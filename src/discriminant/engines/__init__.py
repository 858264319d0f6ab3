"""Engines that sum over the rows of a table: in memory, files, Dask, Spark and SQL."""
