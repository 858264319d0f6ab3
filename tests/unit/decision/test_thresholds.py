"""Thresholds by group: equal recall, and equal rates, on the rows from which they are chosen."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from discriminant.decision import group_thresholds
from discriminant.errors import LabelError, OptionError, ShapeError, ThresholdError

RNG = np.random.default_rng(0)
N = 3000
GROUPS = RNG.choice(["north", "south", "west"], N)
TRUTH = (RNG.random(N) < np.where(GROUPS == "north", 0.5, 0.2)).astype(int)
SCORE = RNG.normal(TRUTH * 1.5 - (GROUPS == "south") * 1.0, 1.0)
POSTERIOR = 1 / (1 + np.exp(-SCORE))
LOGS = np.log(np.column_stack([1 - POSTERIOR, POSTERIOR]))


def rates(decided, truth):
    return decided[truth == 1].mean(), decided[truth == 0].mean()


def test_recall_is_equal_up_to_one_row():
    fair = group_thresholds(LOGS, TRUTH, GROUPS, recall=0.8)
    decided = fair.decide(LOGS, GROUPS)
    for g, name in enumerate(["north", "south", "west"]):
        own = name == GROUPS
        recall, false = rates(decided[own], TRUTH[own])
        assert 0.8 <= recall < 0.8 + 1 / TRUTH[own].sum()
        np.testing.assert_allclose([fair.recall[g], fair.false_positive_rate[g]], [recall, false])
    single = [rates((POSTERIOR > 0.5)[g == GROUPS], TRUTH[g == GROUPS])[0] for g in fair.groups]
    assert fair.gap < 0.01 < np.ptp(single)


def test_without_a_target_the_recall_is_that_of_the_threshold_one_half():
    fair = group_thresholds(LOGS, TRUTH, GROUPS)
    assert fair.target_recall == rates(POSTERIOR > 0.5, TRUTH)[0]
    assert (fair.recall >= fair.target_recall).all()


def test_rates_are_nearer_to_each_other_than_with_one_threshold():
    fair = group_thresholds(LOGS, TRUTH, GROUPS, criterion="rates")
    single = np.array(
        [rates((POSTERIOR > 0.5)[g == GROUPS], TRUTH[g == GROUPS]) for g in fair.groups]
    )
    chosen = np.column_stack([fair.recall, fair.false_positive_rate])
    assert np.ptp(chosen, axis=0).max() < np.ptp(single, axis=0).max()
    decided = fair.decide(LOGS, GROUPS)
    for g, name in enumerate(fair.groups):
        own = name == GROUPS
        np.testing.assert_allclose(rates(decided[own], TRUTH[own]), chosen[g])


@given(seed=st.integers(0, 999))
def test_the_chosen_threshold_is_the_best_of_all(seed):
    """By brute force over all thresholds, with ties and weights."""
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 9, 30) / 10
    truth, weight = rng.integers(0, 2, 30), rng.integers(1, 4, 30)
    if len(set(truth)) < 2:
        return
    logs = np.log(np.column_stack([1 - p, p]))
    fair = group_thresholds(logs, truth, ["all"] * 30, recall=0.6, sample_weight=weight)
    positive = weight[truth == 1].sum()
    best = max(
        cut
        for cut in np.arange(0, 11) / 10 + 0.05
        if (weight * truth * (p > cut)).sum() / positive >= 0.6 - 1e-12 or cut < 0.1
    )
    assert fair.decide(logs, ["all"] * 30).tolist() == (p > best).astype(int).tolist()


def test_weights_are_repeats():
    weight = np.arange(N) % 3
    weighted = group_thresholds(LOGS, TRUTH, GROUPS, recall=0.7, sample_weight=weight + 1)
    repeated = group_thresholds(
        LOGS.repeat(weight + 1, axis=0),
        TRUTH.repeat(weight + 1),
        GROUPS.repeat(weight + 1),
        recall=0.7,
    )
    np.testing.assert_allclose(weighted.threshold, repeated.threshold)
    np.testing.assert_allclose(weighted.recall, repeated.recall)


def test_errors_say_what_to_do():
    with pytest.raises(ThresholdError, match=r"Group 'z' has no row of the second class"):
        group_thresholds(LOGS[:4], [0, 1, 0, 0], ["a", "a", "z", "z"])
    with pytest.raises(OptionError, match=r"criterion='parity'"):
        group_thresholds(LOGS, TRUTH, GROUPS, criterion="parity")
    with pytest.raises(OptionError, match=r"recall=0.8"):
        group_thresholds(LOGS, TRUTH, GROUPS, criterion="rates", recall=0.8)
    with pytest.raises(ShapeError, match=r"groups"):
        group_thresholds(LOGS, TRUTH, GROUPS[:5])
    with pytest.raises(LabelError):
        group_thresholds(LOGS[:4], [1, 1, 1, 1], list("aabb"))
    with pytest.raises(ThresholdError, match=r"No threshold was chosen for the group.* 'east'"):
        group_thresholds(LOGS, TRUTH, GROUPS).decide(LOGS[:1], ["east"])
