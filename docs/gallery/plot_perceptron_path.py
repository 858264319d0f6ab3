"""
The path of the perceptron
==========================

The perceptron processes rows one by one. A misclassified row moves the boundary toward itself; a
correctly classified row never moves it, however far away it is. If the classes are linearly
separable, the algorithm stops after at most :math:`R^2 / \\gamma^2` updates, where R is the largest
norm of a row and :math:`\\gamma` is the margin.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import discriminant as dd

iris = load_iris()
names = iris.target_names[iris.target]

# %%
# The sepals of two separable iris species. The boundary changes a lot in the first passes and
# only a little after that, because the last few misclassified rows lie close to it.

X, y = iris.data[:100, :2], names[:100]
model = dd.Perceptron(shuffle=True, random_state=0).fit(X, y)
print(f"{model.n_updates_} updates; upper bound: {model.bound_:.0f}")
dd.plot_perceptron_path(model, X, y)
plt.show()

# %%
# The number of updates in each pass is not monotone: an update that corrects one row can make
# another row wrong.

dd.plot_perceptron_path(model)
plt.show()

# %%
# The other two species overlap, so the perceptron would never stop. It returns the best weights
# seen (the "pocket" algorithm), with a warning that gives the number of misclassified rows.

X, y = iris.data[50:, :2], names[50:]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = dd.Perceptron(max_passes=100, shuffle=True, random_state=0).fit(X, y)
dd.plot_perceptron_path(model, X, y)
plt.show()
