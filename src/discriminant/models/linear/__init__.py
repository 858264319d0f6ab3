"""Linear models fitted from moments or by repeated passes over the rows."""
