"""
Masking: a class that least squares never predicts
==================================================

Least squares classification regresses an indicator of each class on the features and predicts the
class with the largest fitted value. This works for two classes. With three classes along a line
it can fail: the indicator of the middle class is 0, then 1, then 0 along the line, so the best
*linear* fit is constant, and another class has a larger value everywhere.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import discriminant as dd

rng = np.random.default_rng(1)
centres = {"left": (-4, -4), "middle": (0, 0), "right": (4, 4)}
X = np.vstack([rng.normal(centre, 1.0, (150, 2)) for centre in centres.values()])
y = np.repeat(list(centres), 150)

# %%
# The three classes are easy to separate. Nevertheless no row is assigned to the middle class, and
# the fit issues a ``MaskedClassWarning`` (silenced here).

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    squares = dd.LeastSquares().fit(X, y)
wrong = int((squares.predict(X) != y).sum())
print(f"masked on the rows: {squares.masked_}, everywhere: {squares.masked_everywhere_}")
print(f"{wrong} of {len(y)} rows misclassified")

dd.plot_masking(squares, X, y)
plt.show()

# %%
# There are two remedies. With squares and products of the features, the fitted curve of the
# middle class can have a maximum in the middle. In general, K classes along a line need powers up
# to K - 1.

curved = dd.LeastSquares(degree=2).fit(X, y)
dd.plot_masking(curved, X, y)
plt.show()

# %%
# The second remedy is to model the classes. LDA estimates how probable a row is in each class, and
# the middle class is the most probable one in the middle. The boundaries are still linear, but
# there are two of them.

lda = dd.LDA().fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
for ax, model in zip(axes, (squares, lda), strict=True):
    error = np.mean(model.predict(X) != y)
    dd.plot_boundary(model, X, y, ax=ax, title=f"{type(model).__name__}: error {error:.0%}")
plt.show()
