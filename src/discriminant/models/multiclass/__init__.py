"""Many classes out of two: code matrices, decoding and two-class members."""
