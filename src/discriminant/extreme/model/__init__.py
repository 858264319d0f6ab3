"""Very many classes: a tree over the labels, linear classifiers in its nodes, a beam to search."""
