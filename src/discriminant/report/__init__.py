"""Reports: facts in one plain dictionary, rendered as an HTML page, Markdown or JSON."""
