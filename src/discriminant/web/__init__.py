"""Web front ends on the user's own machine: the scoring service, and access control and logging."""
