"""
Confusion matrix
================

The error rate does not show which classes are confused. The confusion matrix has a row for each
decision and a column for each true class; entries off the diagonal are errors. Colours show
fractions of the true class, so that the diagonal is the recall, however few rows a class has.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import discriminant as dd

X, y = load_digits(return_X_y=True)
X = X[:, (X > 0).mean(axis=0) > 0.02]  # drop pixels that are nearly always empty

# %%
# Ten digits, with each row held out once.

held = dd.cross_validate(dd.LDA(shrinkage=0.1), X, y, 10)
dd.plot_confusion(held)
plt.show()

# %%
# The same in percent of each true class. The digit 8 has the lowest recall.

dd.plot_confusion(held, normalise="true", ax=plt.subplots(figsize=(9, 6), layout="constrained")[1])
plt.show()
print("recall:", dict(zip(held.labels.tolist(), held.tally.recall.round(3).tolist(), strict=True)))

# %%
# With a reject option, uncertain rows are counted in a separate row, and there are fewer errors.

careful = dd.Decision(dd.LDA(shrinkage=0.1), reject=0.1)
dd.plot_confusion(dd.cross_validate(careful, X, y, 10))
plt.show()
