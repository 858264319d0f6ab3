"""
Fisher's projection to two dimensions
=====================================

Fisher's directions are those along which the class means are farthest apart, relative to the
variation within classes. K classes have at most K - 1 directions, so three classes in any number
of features can be shown in a plane without losing any information that LDA uses.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA

import discriminant as dd

# %%
# Thirteen measurements of wines of three cultivars: the classes hardly overlap. Principal
# components do not use the class labels, and depend mostly on the measurements with the largest
# values.

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
dd.plot_projection(dd.Fisher().fit(X, y), X, y, ax=axes[0], title="Fisher's directions")
dd.plot_projection(PCA(2).fit(X), X, y, ax=axes[1], title="Principal components")
for ax in axes[1:]:
    ax.set(xlabel="component 1", ylabel="component 2")
plt.show()

# %%
# Iris: almost all of the separation is along the first direction.

iris = load_iris(as_frame=True)
kinds = iris.target_names[iris.target]
model = dd.Fisher().fit(iris.data, kinds)
print("canonical correlations:", model.canonical_correlations_.round(3))
dd.plot_projection(model, iris.data, kinds)
plt.show()

# %%
# Two classes have one direction. The thirty measurements of each tumour are projected to a single
# number, and the decision boundary is a point on its axis.

tumour = load_breast_cancer(as_frame=True)
diagnosis = tumour.target_names[tumour.target]
dd.plot_projection(dd.Fisher().fit(tumour.data, diagnosis), tumour.data, diagnosis)
plt.show()
