"""Extreme classification: label trees for very many classes or labels."""
