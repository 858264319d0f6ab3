"""
The perceptron's path
=====================

Rows are taken one by one. A row on the wrong side moves the border toward itself; a row on the
right side never does, however far out it is. If a straight border can have every row right,
this ends after at most :math:`R^2 / \\gamma^2` moves, with R the longest row and
:math:`\\gamma` the margin.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import discriminant as dd

iris = load_iris()
names = iris.target_names[iris.target]

# %%
# Two kinds of iris that can be separated, by their sepals. The border swings in the first
# passes and then creeps: the last few rows lie close to it.

X, y = iris.data[:100, :2], names[:100]
model = dd.Perceptron(shuffle=True, random_state=0).fit(X, y)
print(f"{model.n_updates_} moves; the bound for the border found: {model.bound_:.0f}")
dd.plot_perceptron_path(model, X, y)
plt.show()

# %%
# Its moves in each pass. They do not fall steadily: a move that puts one row right can put
# another wrong.

dd.plot_perceptron_path(model)
plt.show()

# %%
# The other two kinds overlap, and the perceptron never ends. What it keeps is the best border
# that it met on the way (the "pocket"), with a warning that says how many rows that has wrong.

X, y = iris.data[50:, :2], names[50:]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = dd.Perceptron(max_passes=100, shuffle=True, random_state=0).fit(X, y)
dd.plot_perceptron_path(model, X, y)
plt.show()
