"""Sections of the report page, as facts."""
