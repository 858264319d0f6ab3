"""Bootstrap bias-corrected cross-validation against a direct computation and known truths."""

import numpy as np
import pytest

from discriminant.assessment.resampling.selection_bias import MAX_BLOCKS, correct_losses

SAME = np.ones(200)


def least(means):
    return means.argmin(axis=1)


def test_correction_equals_a_loop_over_bootstrap_samples():
    losses = np.random.default_rng(1).random((200, 4))
    corrected = correct_losses(losses, {"loss": (losses, SAME)}, least, draws=50, seed=3)["loss"]
    counts = np.random.default_rng(3).multinomial(200, np.full(200, 1 / 200), size=50)
    expected = []
    for count in counts:
        drawn = np.repeat(np.arange(200), count)
        chosen = losses[drawn].mean(axis=0).argmin()
        expected.append(losses[np.setdiff1d(np.arange(200), drawn), chosen].mean())
    assert corrected.value == pytest.approx(np.mean(expected), rel=1e-12)
    ends = np.quantile(expected, (0.025, 0.975))
    np.testing.assert_allclose((corrected.low, corrected.high), ends)


def test_best_of_many_guessing_models_is_corrected_to_guessing():
    values = []
    for seed in range(20):
        wrong = (np.random.default_rng(seed).random((200, 30)) < 0.5).astype(float)
        raw = wrong.mean(axis=0).min()
        corrected = correct_losses(wrong, {"error": (wrong, SAME)}, least)["error"]
        assert raw < corrected.value
        values.append(corrected.value)
    assert np.mean(values) == pytest.approx(0.5, abs=0.015)


def test_one_model_is_not_corrected_beyond_chance():
    losses = np.random.default_rng(0).random((2000, 1))
    corrected = correct_losses(losses, {"loss": (losses, np.ones(2000))}, least)["loss"]
    assert corrected.value == pytest.approx(losses.mean(), abs=0.003)
    assert corrected.low < losses.mean() < corrected.high


def test_rows_of_share_zero_do_not_count_even_if_infinite():
    losses = np.random.default_rng(0).random((200, 2))
    share = (np.arange(200) >= 20).astype(float)
    with_infinite = losses.copy()
    with_infinite[:20] = np.inf
    finite = correct_losses(losses, {"loss": (losses, share)}, least)["loss"]
    assert correct_losses(losses, {"loss": (with_infinite, share)}, least)["loss"] == finite


def test_blocks_of_many_rows_give_nearly_the_same_interval_as_rows():
    losses = np.random.default_rng(0).random((3 * MAX_BLOCKS, 3))
    whole = {"loss": (losses, np.ones(len(losses)))}
    corrected = correct_losses(losses, whole, least)["loss"]
    sd = losses.std() / np.sqrt(0.368 * len(losses))  # of a mean over the rows that are not drawn
    assert (corrected.high - corrected.low) / (2 * 1.96 * sd) == pytest.approx(1.0, abs=0.2)
