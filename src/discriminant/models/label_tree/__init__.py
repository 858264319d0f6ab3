"""Very many classes: a tree over the labels, a linear classifier in every node, a beam to search."""
