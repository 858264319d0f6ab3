"""Checks of the data before models are fitted: leaks, sentinels, groups, duplicates, drift, ..."""
