"""SVG figures of the report page."""
