"""Sums to rules."""
