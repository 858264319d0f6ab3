"""Pages for people: facts in one plain dictionary, then one HTML page, Markdown or JSON of them."""
