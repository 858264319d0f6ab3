"""Tables: sources of rows, columns and their types, labels, encoding, and blocks of rows."""
