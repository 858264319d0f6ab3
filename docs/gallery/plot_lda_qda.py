"""
LDA and QDA: common or separate covariances
===========================================

LDA assumes that all classes are Gaussian with a common covariance. The quadratic terms of the log
posteriors then cancel, and decision boundaries are linear. QDA estimates a covariance for each
class, and boundaries are conic sections. QDA is more flexible, but has more parameters:
K d(d+1)/2 for the covariances instead of d(d+1)/2.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import discriminant as dd

rng = np.random.default_rng(1)
covariances = {
    "round": [[0.4, 0.0], [0.0, 0.4]],
    "tilted": [[3.0, 2.2], [2.2, 2.0]],
    "wide": [[4.0, 0.0], [0.0, 0.3]],
}
means = [(0.0, 0.0), (3.0, 3.5), (1.5, -2.5)]
X = np.vstack(
    [rng.multivariate_normal(m, s, 150) for m, s in zip(means, covariances.values(), strict=True)]
)
y = np.repeat(list(covariances), 150)

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained", sharey=True)
for ax, model in zip(axes, (dd.LDA(), dd.QDA()), strict=True):
    held = dd.cross_validate(model, X, y, 10)
    title = f"{type(model).__name__}: held-out error {held.error:.1%}"
    dd.plot_boundary(model.fit(X, y), X, y, ax=ax, title=title)
plt.show()

# %%
# Box's M tests whether the covariances are equal; a small p-value indicates that they are not. With
# many rows, even unimportant differences are significant, so compare the held-out errors as well.

print(f"Box's M: p = {dd.box_m(dd.moments(X, y)).p:.2g}")

# %%
# The curved boundaries are linear in the space of the features, their squares and their product:
# LDA on these five features is almost as good as QDA.

basis = make_pipeline(dd.Basis(degree=2), dd.LDA())
held = dd.cross_validate(basis, X, y, 10)
title = f"LDA on squares and products: held-out error {held.error:.1%}"
dd.plot_boundary(basis.fit(X, y), X, y, title=title)
plt.show()
