"""What a row is: schema, blocks, sources."""
