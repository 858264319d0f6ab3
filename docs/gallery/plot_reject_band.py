"""
The reject option: better not to decide than to be wrong
========================================================

Where two classes are nearly as probable as one another, whoever decides is often wrong. If a
row can be handed to somebody else at a cost c, an error costing 1, the best rule is to decide
only where the largest posterior is at least 1 - c.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import discriminant as dd

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]

# %%
# One feature: the posteriors, the least of them that decides, and the bands in between.

length = X[["petal length (cm)"]]
model = dd.Decision(dd.LDA(), reject=0.2).fit(length, y)
dd.plot_reject(model, length, y)
plt.show()

# %%
# Two features: the same regions in the plane. The cost of rejecting is an option of the
# decision and not of the fit, so it can be changed as often as one likes.

sepals = X[["sepal length (cm)", "sepal width (cm)"]]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained", sharey=True)
model = dd.Decision(dd.LDA()).fit(sepals, y)
for ax, cost in zip(axes, (0.4, 0.1), strict=True):
    model.set_params(reject=cost)
    share = (model.decide(sepals) == dd.REJECT).mean()
    title = f"rejecting costs {cost}: {share:.0%} rejected"
    dd.plot_boundary(model, sepals, y, ax=ax, title=title)
plt.show()

# %%
# What is gained? On held-out rows, the error of those that are decided, as fewer and fewer are.

held = dd.cross_validate(dd.LDA(), sepals, y, 10)
dd.plot_reject(held, reject=0.2)
plt.show()
