"""Label tree model for very many classes: linear classifiers in the nodes, and beam search."""
