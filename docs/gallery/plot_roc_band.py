"""
ROC curves with confidence bands
================================

A threshold turns a score into a decision, and the best threshold depends on the costs of errors.
The ROC curve shows all thresholds: the fraction of positive rows that are classified as positive,
against the fraction of negative rows that are classified as positive. The area under the curve is
the probability that a positive row has a higher score than a negative one. It does not depend on
the frequency of the positive class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import discriminant as dd

rows = load_breast_cancer()
X, y = rows.data[:, :4], np.where(rows.target == 0, "malignant", "benign")


def scores(model):
    """Log odds of held-out rows."""
    held = dd.cross_validate(model, X, y, 10)
    return held.log_posterior[:, 1] - held.log_posterior[:, 0]


# %%
# One curve with DeLong's interval for the area. At each threshold, the band contains the true point
# with a probability of 95 %. The marked threshold has the largest difference between the two rates
# (Youden).

lda = scores(dd.LDA())
dd.plot_roc(y, lda, positive="malignant")
plt.show()

# %%
# Two models on the same rows. Overlapping intervals are not a test, because the two AUCs are
# correlated. DeLong's paired test takes this into account.

dd.plot_roc(y, {"LDA": lda, "one feature": X[:, 0]}, positive="malignant")
plt.show()
print(dd.compare_auc(y, lda, X[:, 0], positive="malignant"))
