"""Rows, models and the slow way to hold rows out, for the tests of this folder to share."""

import warnings

import numpy as np
from sklearn.base import clone

from discriminant import (
    LDA,
    QDA,
    RDA,
    SDA,
    Fisher,
    LaplaceNB,
    LeastSquares,
    NearestMean,
    ShrunkenCentroids,
    SparseLDA,
)

MEMBERS = {
    "lda": LDA(),
    "lda ml": LDA(denominator="ml"),
    "lda reliability": LDA(denominator="reliability"),
    "lda with priors": LDA(prior=[0.2, 0.3, 0.5]),
    "lda shrunk to its diagonal": LDA(shrinkage=0.3),
    "lda shrunk to one variance": LDA(shrinkage=0.3, target="scaled_identity"),
    "lda shrunk to the identity": LDA(shrinkage=0.3, target="identity"),
    "lda shrunk by ledoit and wolf": LDA(shrinkage="auto"),
    "lda shrunk by oas": LDA(shrinkage="oas", target="scaled_identity"),
    "diagonal lda": LDA(shrinkage=1.0),
    "diagonal lda ml": LDA(shrinkage=1.0, denominator="ml"),
    "identity lda": LDA(shrinkage=1.0, target="identity"),
    "nearest mean": NearestMean(),
    "nearest mean with priors": NearestMean(prior=[0.2, 0.3, 0.5], denominator="ml"),
    "qda": QDA(),
    "qda ml": QDA(denominator="ml"),
    "qda shrunk": QDA(shrinkage=0.2),
    "rda pooling 0": RDA(pooling=0.0),
    "rda pooling 0.3": RDA(pooling=0.3),
    "rda pooling 0.3 ml": RDA(pooling=0.3, denominator="ml"),
    "rda pooling 1": RDA(pooling=1.0),
    "rda friedman": RDA(pooling=0.4, weighting="friedman"),
    "rda klar": RDA.from_klar(0.3, 0.4),
    "rda shrunk": RDA(pooling=0.5, shrinkage=0.4),
    "rda shrunk to one variance": RDA(pooling=0.5, shrinkage=0.4, target="scaled_identity"),
    "lda student": LDA(predictive="student"),
    "lda student ml": LDA(predictive="student", denominator="ml"),
    "lda student reliability": LDA(predictive="student", denominator="reliability"),
    "diagonal lda student": LDA(predictive="student", shrinkage=1.0),
    "lda student shrunk to one variance": LDA(
        predictive="student", shrinkage=0.3, target="scaled_identity", denominator="ml"
    ),
    "qda student": QDA(predictive="student"),
    "qda student reliability": QDA(predictive="student", denominator="reliability"),
    "rda student": RDA(pooling=0.5, shrinkage=0.4, predictive="student"),
    "fisher": Fisher(),
    "fisher with one direction": Fisher(n_components=1),
    "least squares": LeastSquares(),
    "least squares ridged": LeastSquares(ridge=2.0),
    "laplace": LaplaceNB(),
    "least squares signs": LeastSquares(coding="sign"),
    "sda": SDA(),
    "sda with two features": SDA(n_features=2, prior=[0.2, 0.3, 0.5]),
    "shrunken centroids": ShrunkenCentroids(threshold=0.3),
    "sparse directions": SparseLDA(penalty=0.2),
}


def unequal_classes(rows=60, features=3, seed=0):
    """Rows of three classes of unequal size and shape, far from zero."""
    rng = np.random.default_rng(seed)
    y = np.array(["ash", "birch", "cedar"], dtype=object)[
        np.repeat([0, 1, 2], [rows // 6, rows // 3, rows - rows // 6 - rows // 3])
    ]
    shape = np.eye(features) + 0.3 * rng.normal(size=(3, features, features))
    code = np.unique(y, return_inverse=True)[1]
    noise = np.einsum("nij,nj->ni", shape[code], rng.normal(size=(rows, features)))
    X = 50.0 + rng.normal(size=(3, features))[code] + noise
    order = rng.permutation(rows)
    return X[order], y[order]


def refitted(model, X, y, fold, weight=None):
    """Log posterior of each row by a model fitted to the rows of the other folds."""
    labels = np.unique(y)
    found = np.full((len(y), len(labels)), -np.inf)
    for f in np.unique(fold):
        train, test = fold != f, fold == f
        more = {} if weight is None else {"sample_weight": weight[train]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class that is masked without a row, and the like
            fitted = clone(model).fit(X[train], y[train], **more)
        columns = np.searchsorted(labels, fitted.classes_)
        found[np.ix_(test, columns)] = fitted.predict_log_proba(X[test])
    return found


def assert_same_logs(found, expected, tolerance=1e-10):
    """Equal to `tolerance`, relative where a log is large; -inf only where it is -inf."""
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
