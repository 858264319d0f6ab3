"""
Fisher's projection: many features, two axes
============================================

Fisher's directions are those along which class means lie far apart, measured by the spread
within classes. K classes have at most K - 1 of them, so that three classes of any number of
features fit on a sheet of paper with nothing lost that LDA would use.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA

import discriminant as dd

# %%
# Thirteen measurements of wines of three cultivars: hardly anything overlaps. Principal
# components know nothing of the classes, and see only which measurements are written in large
# numbers.

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
dd.plot_projection(dd.Fisher().fit(X, y), X, y, ax=axes[0], title="Fisher's directions")
dd.plot_projection(PCA(2).fit(X), X, y, ax=axes[1], title="Principal components")
for ax in axes[1:]:
    ax.set(xlabel="component 1", ylabel="component 2")
plt.show()

# %%
# Iris: nearly all of the separation is along the first direction.

iris = load_iris(as_frame=True)
kinds = iris.target_names[iris.target]
model = dd.Fisher().fit(iris.data, kinds)
print("canonical correlations:", model.canonical_correlations_.round(3))
dd.plot_projection(model, iris.data, kinds)
plt.show()

# %%
# Two classes have one direction. Thirty measurements of each tumour become a single number, and
# the border is a point on its axis.

tumour = load_breast_cancer(as_frame=True)
found = tumour.target_names[tumour.target]
dd.plot_projection(dd.Fisher().fit(tumour.data, found), tumour.data, found)
plt.show()
