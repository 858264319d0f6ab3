"""Feature selection: stepwise by Wilks' lambda; greedy and floating search by held-out error."""
