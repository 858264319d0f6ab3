"""
Outliers in least squares and logistic regression
=================================================

Least squares requires the fitted value of a row to *equal* 1, not just to be large. A row far on
the correct side of the boundary has a fitted value well above 1 and is penalised as if it were
misclassified. In logistic regression, a row has less influence the farther it is on the correct
side.
"""

import matplotlib.pyplot as plt
import numpy as np

import discriminant as dd

rng = np.random.default_rng(2)
X = np.vstack([rng.normal((-1.2, 1), 0.9, (60, 2)), rng.normal((1.2, -1), 0.9, (60, 2))])
y = np.repeat(["ring", "star"], 60)

# Twelve more rows of the second class, far away on the correct side of the boundary.
far = rng.normal((7, -8), 0.6, (12, 2))
X_far, y_far = np.vstack([X, far]), np.append(y, np.repeat("star", 12))

# %%
# Both models, fitted without and with the distant rows. The boundary of least squares turns toward
# them and misclassifies rows that were correct before; that of logistic regression does not move.

figure, axes = plt.subplots(2, 2, figsize=(9.5, 8.5), layout="constrained")
for row, model in zip(axes, (dd.LeastSquares, dd.Logistic), strict=True):
    for ax, (rows, labels, name) in zip(
        row, ((X, y, "without"), (X_far, y_far, "with")), strict=True
    ):
        fitted = model().fit(rows, labels)
        wrong = int((fitted.predict(rows) != labels).sum())
        title = f"{model.__name__}, {name} distant rows: {wrong} errors"
        window = ((-4.5, 9), (-10, 4.5))
        dd.plot_boundary(fitted, rows, labels, ax=ax, window=window, title=title)
plt.show()

# %%
# The angle between the two boundaries of each model measures this effect.

for model in (dd.LeastSquares, dd.Logistic, dd.LDA):
    slopes = []
    for rows, labels in ((X, y), (X_far, y_far)):
        score = model().fit(rows, labels).decision_function
        origin, *units = score(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        slopes.append(np.arctan2(units[1] - origin, units[0] - origin))
    print(f"{model.__name__:12} turns by {np.degrees(abs(slopes[1] - slopes[0])):.0f} degrees")

# %%
# For two classes, LDA has the same direction as least squares and the same problem: distant rows
# change the mean and the covariance of their class.
