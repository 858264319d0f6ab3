"""What is summed: readings of rows and the summaries they add up to."""
