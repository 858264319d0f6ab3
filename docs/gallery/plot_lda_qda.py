"""
LDA or QDA: one covariance, or one for each class
=================================================

LDA takes the classes for Gaussians of one common covariance. The squares in the log posteriors
then cancel, and borders are straight. QDA gives each class its own covariance, and borders are
conics. QDA can say more and has more to estimate: K d(d+1)/2 numbers of covariances against
d(d+1)/2.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import discriminant as dd

rng = np.random.default_rng(1)
spreads = {
    "round": [[0.4, 0.0], [0.0, 0.4]],
    "tilted": [[3.0, 2.2], [2.2, 2.0]],
    "wide": [[4.0, 0.0], [0.0, 0.3]],
}
means = [(0.0, 0.0), (3.0, 3.5), (1.5, -2.5)]
X = np.vstack(
    [rng.multivariate_normal(m, s, 150) for m, s in zip(means, spreads.values(), strict=True)]
)
y = np.repeat(list(spreads), 150)

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained", sharey=True)
for ax, model in zip(axes, (dd.LDA(), dd.QDA()), strict=True):
    held = dd.cross_validate(model, X, y, 10)
    title = f"{type(model).__name__}: {held.error:.1%} wrong when held out"
    dd.plot_boundary(model.fit(X, y), X, y, ax=ax, title=title)
plt.show()

# %%
# Which of them do the rows call for? Box's M tests whether the covariances are equal: a small p
# says that they are not. With many rows it finds differences too small to matter, so look at
# the held-out error too.

print(f"Box's M: p = {dd.box_m(dd.moments(X, y)).p:.2g}")

# %%
# In the space of the features, their squares and their product, the curved borders are
# straight: LDA on five features in place of two comes close to QDA.

basis = make_pipeline(dd.Basis(degree=2), dd.LDA())
held = dd.cross_validate(basis, X, y, 10)
title = f"LDA on squares and products: {held.error:.1%} wrong when held out"
dd.plot_boundary(basis.fit(X, y), X, y, title=title)
plt.show()
