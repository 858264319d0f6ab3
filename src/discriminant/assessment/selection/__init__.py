"""Feature selection: stepwise, greedy and floating search."""
