"""
Outliers: least squares minds rows that are too right
=====================================================

Least squares wants the fitted value of a row to *be* 1, not to be large. A row far on the right
side of the border has a fitted value well over 1, and is punished for it as if it were wrong.
Logistic regression is not: the further out a row is on its own side, the less it counts.
"""

import matplotlib.pyplot as plt
import numpy as np

import discriminant as dd

rng = np.random.default_rng(2)
X = np.vstack([rng.normal((-1.2, 1), 0.9, (60, 2)), rng.normal((1.2, -1), 0.9, (60, 2))])
y = np.repeat(["ring", "star"], 60)

# Twelve more rows of the second class, far away and on the right side of the border.
far = rng.normal((7, -8), 0.6, (12, 2))
X_far, y_far = np.vstack([X, far]), np.append(y, np.repeat("star", 12))

# %%
# Both models, without the far rows and with them. The border of least squares turns toward them
# and gives up rows that were right; that of logistic regression stays.

figure, axes = plt.subplots(2, 2, figsize=(9.5, 8.5), layout="constrained")
for row, model in zip(axes, (dd.LeastSquares, dd.Logistic), strict=True):
    for ax, (rows, labels, name) in zip(
        row, ((X, y, "without"), (X_far, y_far, "with")), strict=True
    ):
        fitted = model().fit(rows, labels)
        wrong = int((fitted.predict(rows) != labels).sum())
        title = f"{model.__name__}, {name} far rows: {wrong} wrong"
        window = ((-4.5, 9), (-10, 4.5))
        dd.plot_boundary(fitted, rows, labels, ax=ax, window=window, title=title)
plt.show()

# %%
# The angle between the two borders of each model says the same in a number.

for model in (dd.LeastSquares, dd.Logistic, dd.LDA):
    slopes = []
    for rows, labels in ((X, y), (X_far, y_far)):
        score = model().fit(rows, labels).decision_function
        origin, *units = score(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
        slopes.append(np.arctan2(units[1] - origin, units[0] - origin))
    print(f"{model.__name__:12} turns by {np.degrees(abs(slopes[1] - slopes[0])):.0f} degrees")

# %%
# LDA of two classes has the direction of least squares, and shares its fault: far rows pull the
# mean and the covariance of their class.
