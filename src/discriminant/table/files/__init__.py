"""Reading and writing files: CSV, Parquet, Arrow, JSON lines, svmlight."""
