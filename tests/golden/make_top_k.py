"""Measures of ranked labels by napkinXC: python make_top_k.py > top_k.json (needs napkinxc 0.7)."""

import json
import sys
from importlib.metadata import version

import numpy as np
from napkinxc import metrics

L, K = 30, 5


def case(seed):
    """Every row has labels, since conventions differ where there are none."""
    rng = np.random.default_rng(seed)
    share = 1 / (np.arange(L) + 1.0)
    train, truth, lists = [], [], []
    for _ in range(80):
        some = rng.choice(L, rng.integers(1, 8), replace=False, p=share / share.sum())
        train.append(sorted(some.tolist()))
    for _ in range(40):
        own = rng.choice(L, rng.integers(1, 8), replace=False, p=share / share.sum()).tolist()
        truth.append(sorted(own))
        likely = np.full(L, 1.0)
        likely[own] = 8.0
        lists.append(rng.choice(L, K, replace=False, p=likely / likely.sum()).tolist())
    frequency = np.bincount(np.concatenate(train), minlength=L)
    inverse = metrics.Jain_et_al_inverse_propensity([*train, [L - 1]])
    inverse = metrics.Jain_et_al_inverse_propensity(train) if frequency[-1] else inverse
    told = {
        "precision": metrics.precision_at_k(truth, lists, k=K),
        "recall": metrics.recall_at_k(truth, lists, k=K),
        "ndcg": metrics.ndcg_at_k(truth, lists, k=K),
        "ps_precision": metrics.psprecision_at_k(truth, lists, inverse, k=K),
        "ps_ndcg": metrics.psndcg_at_k(truth, lists, inverse, k=K),
    }
    return {
        "train": train if frequency[-1] else [*train, [L - 1]],
        "truth": truth,
        "lists": lists,
        "inverse_propensity": np.asarray(inverse).tolist(),
        "measures": {name: np.asarray(value).tolist() for name, value in told.items()},
    }


json.dump(
    {
        "made_by": f"napkinxc {version('napkinxc')}",
        "labels": L,
        "cases": [case(s) for s in range(3)],
    },
    sys.stdout,
    indent=1,
)
