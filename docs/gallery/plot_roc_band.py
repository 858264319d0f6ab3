"""
ROC: every threshold at once, and how sure it is
================================================

A score becomes a decision by a threshold, and which threshold is right depends on what errors
cost. The ROC curve shows all of them: of the positive rows the share that is found, against the
share of the others that is called positive too. The area under it is the chance that a positive
row has a higher score than another one. It does not change with how rare the positive class is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import discriminant as dd

rows = load_breast_cancer()
X, y = rows.data[:, :4], np.where(rows.target == 0, "malignant", "benign")


def scores(model):
    """Log-odds of held-out rows."""
    held = dd.cross_validate(model, X, y, 10)
    return held.log_posterior[:, 1] - held.log_posterior[:, 0]


# %%
# One curve, with DeLong's interval of its area. At each threshold the true point lies within
# the band with 95 %. Marked is the threshold at which the two rates are furthest apart
# (Youden).

lda = scores(dd.LDA())
dd.plot_roc(y, lda, positive="malignant")
plt.show()

# %%
# Two models on the same rows. The intervals overlap, but that is no test: both know the same
# rows. The paired test of DeLong is one.

dd.plot_roc(y, {"LDA": lda, "one feature": X[:, 0]}, positive="malignant")
plt.show()
print(dd.compare_auc(y, lda, X[:, 0], positive="malignant"))
