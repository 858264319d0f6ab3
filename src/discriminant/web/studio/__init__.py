"""The studio: a page on the user's own machine to look at a table, fit models and decide."""
