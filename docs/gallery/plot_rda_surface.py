"""
RDA: how much to pool, how much to shrink
=========================================

Between QDA and LDA, and between LDA and features taken for independent, there is a square of
models (Friedman 1989)::

    (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage diag(C)]

is the covariance of class k, made of its own, C_k, and of the pooled one, C. With few rows for
the features, somewhere between is often better than any corner. (Where a lecture writes
:math:`\\alpha` and :math:`\\gamma`, they are 1 - pooling and 1 - shrinkage.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import discriminant as dd

X, y = load_wine(return_X_y=True)
some = np.random.default_rng(0).permutation(len(y))[:100]  # few rows for 13 features

# %%
# All 121 candidates are compared by 10-fold cross-validation. None of them is fitted on its
# own: one eigenproblem for each fold, class and shrinkage serves all poolings.

grid = dd.rda_grid(X[some], y[some])
print(grid)
dd.plot_surface(grid)
plt.show()

# %%
# The error is a coarser measure than the log loss: it counts rows, and many candidates have the
# same.

dd.plot_surface(grid, measure="error")
plt.show()

# %%
# The rest of the rows never took part in the choice. The corners, and what was chosen:

rest = np.setdiff1d(np.arange(len(y)), some)
p, s, _ = grid.best()
models = {
    "QDA": dd.RDA(pooling=0.0),
    "LDA": dd.RDA(pooling=1.0),
    "diagonal LDA": dd.RDA(pooling=1.0, shrinkage=1.0),
    "chosen": dd.RDA(pooling=grid.pooling[p], shrinkage=grid.shrinkage[s]),
}
for name, model in models.items():
    found = dd.evaluate(model.fit(X[some], y[some]), X[rest], y[rest])
    print(f"{name:13} error {found.error:.3f}   log loss {found.log_loss:.3f}")
