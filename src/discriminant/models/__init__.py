"""Models: rules that score classes, fitted from class moments or by passes over the rows."""
