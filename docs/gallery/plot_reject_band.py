"""
Reject option
=============

Where two classes are almost equally probable, errors are frequent. If rejecting a row costs c and
an error costs 1, the best strategy is to decide only if the largest posterior is at least 1 - c.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import discriminant as dd

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]

# %%
# One feature: the posteriors, the threshold for a decision, and the reject regions.

length = X[["petal length (cm)"]]
model = dd.Decision(dd.LDA(), reject=0.2).fit(length, y)
dd.plot_reject(model, length, y)
plt.show()

# %%
# Two features: the reject regions in the plane. The cost of rejecting is an option of the decision,
# not of the fit, so it can be changed at any time.

sepals = X[["sepal length (cm)", "sepal width (cm)"]]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
model = dd.Decision(dd.LDA()).fit(sepals, y)
for ax, cost in zip(axes, (0.4, 0.1), strict=True):
    model.set_params(reject=cost)
    rejected = (model.decide(sepals) == dd.REJECT).mean()
    title = f"rejecting costs {cost}: {rejected:.0%} rejected"
    dd.plot_boundary(model, sepals, y, ax=ax, title=title)
plt.show()

# %%
# The error of the decided rows as a function of the fraction decided, on held-out rows.

held = dd.cross_validate(dd.LDA(), sepals, y, 10)
dd.plot_reject(held, reject=0.2)
plt.show()
