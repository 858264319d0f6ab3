"""How good a rule is."""
