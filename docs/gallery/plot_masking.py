"""
Masking: a class that least squares never predicts
==================================================

Regress on an indicator of each class, and give a row to the class of the largest fitted value.
That works for two classes. With three in a row it can fail: the indicator of the middle class
is 0, then 1, then 0 along the row, and the best *straight line* through that is level. Somebody
else is larger everywhere.
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
# The three classes could hardly be easier to tell apart. Still no row at all is given to the
# middle one, and the fit says so: ``MaskedClassWarning``. (It is silenced here, since we know.)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    squares = dd.LeastSquares().fit(X, y)
wrong = int((squares.predict(X) != y).sum())
print(f"masked on the rows: {squares.masked_}, everywhere: {squares.masked_everywhere_}")
print(f"{wrong} of {len(y)} rows wrong")

dd.plot_masking(squares, X, y)
plt.show()

# %%
# Two ways out. With squares and products of the features the fitted curve of the middle class
# can rise and fall again. In general K classes in a row need powers up to K - 1.

curved = dd.LeastSquares(degree=2).fit(X, y)
dd.plot_masking(curved, X, y)
plt.show()

# %%
# Or model the classes themselves. LDA asks how probable a row is in each class, and the middle
# class is most probable in the middle. The borders are straight lines as before, but there are
# two.

lda = dd.LDA().fit(X, y)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
for ax, model in zip(axes, (squares, lda), strict=True):
    wrong = np.mean(model.predict(X) != y)
    dd.plot_boundary(model, X, y, ax=ax, title=f"{type(model).__name__}: {wrong:.0%} wrong")
plt.show()
