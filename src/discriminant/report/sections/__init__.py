"""Sections of the report, each computed as plain facts."""
