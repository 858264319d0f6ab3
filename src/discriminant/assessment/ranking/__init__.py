"""ROC and precision-recall curves, and the area under them."""
