"""
RDA: pooling and shrinkage
==========================

Regularised discriminant analysis (Friedman 1989) includes QDA, LDA and diagonal LDA as special
cases. The covariance of class k is a mixture of its own, C_k, and the pooled one, C::

    (1 - pooling) C_k + pooling [(1 - shrinkage) C + shrinkage diag(C)]

If there are few rows for the number of features, an intermediate model is often better than these
special cases. (In the lectures, :math:`\\alpha` is 1 - pooling and :math:`\\gamma` is
1 - shrinkage.)
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import discriminant as dd

X, y = load_wine(return_X_y=True)
some = np.random.default_rng(0).permutation(len(y))[:100]  # few rows for 13 features

# %%
# All 121 candidates are compared by 10-fold cross-validation without refitting: one eigenproblem
# for each fold, class and shrinkage serves all values of pooling.

grid = dd.rda_grid(X[some], y[some])
print(grid)
dd.plot_surface(grid)
plt.show()

# %%
# The error is a coarser measure than the log loss: it counts rows, and many candidates have the
# same error.

dd.plot_surface(grid, measure="error")
plt.show()

# %%
# The special cases and the selected model, assessed on rows that were not used for the selection:

rest = np.setdiff1d(np.arange(len(y)), some)
p, s, _ = grid.best()
models = {
    "QDA": dd.RDA(pooling=0.0),
    "LDA": dd.RDA(pooling=1.0),
    "diagonal LDA": dd.RDA(pooling=1.0, shrinkage=1.0),
    "selected": dd.RDA(pooling=grid.pooling[p], shrinkage=grid.shrinkage[s]),
}
for name, model in models.items():
    result = dd.evaluate(model.fit(X[some], y[some]), X[rest], y[rest])
    print(f"{name:13} error {result.error:.3f}   log loss {result.log_loss:.3f}")
