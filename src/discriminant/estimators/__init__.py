"""Scikit-learn-shaped classes: each wires one path through the house."""
