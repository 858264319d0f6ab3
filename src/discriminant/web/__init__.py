"""Web front ends on the user's own machine: the scoring service and what it shares with others."""
