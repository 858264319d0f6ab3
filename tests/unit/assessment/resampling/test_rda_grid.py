"""The grid of RDA, all poolings at once, is every candidate refitted; 'cv' picks its best."""

import numpy as np
import pytest

from discriminant import RDA, cross_validate
from discriminant.assessment.resampling import rda_grid as room
from discriminant.assessment.resampling.folds import fold_moments, fold_numbers, sums_without_each
from discriminant.assessment.resampling.rda_grid import (
    Candidates,
    Grid,
    candidate_scores,
    score_grid,
)
from discriminant.errors import LabelError, OptionError, TooFewRowsError
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.posterior import log_posterior
from discriminant.table.memory import as_table
from tests.shared.assessed_models import assert_same_logs, refitted, unequal_classes

_POOLING = np.array([0.0, 0.05, 0.5, 1.0])
_SHRINKAGE = (0.0, 0.3, 1.0)
_FAMILIES = {
    "diagonal": GaussianFamily(),
    "one variance": GaussianFamily(target="scaled_identity"),
    "identity": GaussianFamily(target="identity"),
    "ml": GaussianFamily(denominator="ml"),
    "shrunk after mixing": GaussianFamily(shrink="mixed"),
    "friedman": GaussianFamily(weighting="friedman", shrink="mixed"),
}


def model_of(family, pooling, shrinkage, prior=None):
    options = {name: getattr(family, name) for name in ("target", "denominator", "shrink")}
    weighting = family.weighting
    return RDA(pooling=pooling, shrinkage=shrinkage, prior=prior, weighting=weighting, **options)


def losses(X, y, candidates, fold, weight=None):
    return score_grid(as_table(X, y, weight=weight), candidates, fold)


@pytest.mark.parametrize("name", _FAMILIES)
@pytest.mark.parametrize("shrinkage", _SHRINKAGE)
@pytest.mark.parametrize("pooling", _POOLING)
def test_every_candidate_has_the_log_posterior_of_a_refit(name, shrinkage, pooling):
    X, y = unequal_classes(90)
    table, candidates = as_table(X, y), Candidates(_FAMILIES[name], _POOLING, _SHRINKAGE)
    fold = fold_numbers(4, table.codes)
    place = _SHRINKAGE.index(shrinkage), slice(None), slice(None), list(_POOLING).index(pooling)
    found = np.empty((len(y), 3))
    for f, train in enumerate(sums_without_each(fold_moments(table, fold, "class"))):
        scores = candidate_scores(train, train.anchor.offsets(X[fold == f]), candidates)
        prior = np.log(train.weight / train.weight.sum())
        found[fold == f] = log_posterior(scores[place].T + prior)
    model = model_of(_FAMILIES[name], pooling, shrinkage)
    assert_same_logs(found, refitted(model, X, y, fold))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", [None, (0.2, 0.3, 0.5)])
def test_losses_are_those_of_every_candidate_by_itself(prior, weighted):
    X, y = unequal_classes(120)
    weight = np.random.default_rng(1).integers(0, 4, len(y)) * 0.5 + 1 if weighted else None
    candidates = Candidates(GaussianFamily(), _POOLING, _SHRINKAGE, (None, prior))
    fold = fold_numbers(5, np.unique(y, return_inverse=True)[1])
    found = losses(X, y, candidates, fold, weight)
    for p, pooling in enumerate(_POOLING):
        for s, shrinkage in enumerate(_SHRINKAGE):
            model = RDA(pooling=pooling, shrinkage=shrinkage, prior=prior)
            held = cross_validate(model, X, y, fold, sample_weight=weight)
            assert found.log_loss[p, s, 1] == pytest.approx(held.log_loss, rel=1e-11)
            assert found.error[p, s, 1] == pytest.approx(held.error, rel=1e-12)


def test_poolings_together_do_without_a_fit_each(monkeypatch):
    X, y = unequal_classes(120)
    monkeypatch.setattr(room, "fit_gaussian_from_moments_or_rows", None)
    fold = np.arange(len(y)) % 5
    found = losses(X, y, Candidates(GaussianFamily(), _POOLING, _SHRINKAGE), fold)
    assert np.isfinite(found.log_loss).all()


@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
@pytest.mark.parametrize("spoil", ["a constant column", "a copy of a column", "few rows"])
def test_where_a_covariance_has_no_inverse_candidates_are_fitted_one_by_one(spoil):
    X, y = unequal_classes(90 if spoil != "few rows" else 42, 3 if spoil != "few rows" else 8)
    extra = {"a constant column": np.ones(len(y)), "a copy of a column": X[:, 0]}.get(spoil)
    X = X if extra is None else np.column_stack([X, extra])
    fold = fold_numbers(3, np.unique(y, return_inverse=True)[1])
    found = losses(X, y, Candidates(GaussianFamily(), _POOLING, (0.0, 0.5)), fold)
    for p, pooling in enumerate(_POOLING):
        held = cross_validate(RDA(pooling=pooling, shrinkage=0.5), X, y, fold)
        assert found.log_loss[p, 1, 0] == pytest.approx(held.log_loss, rel=1e-9)


def test_shrinkages_a_few_at_a_time_give_the_same(monkeypatch):
    X, y = unequal_classes(120)
    fold = np.arange(len(y)) % 5
    candidates = Candidates(GaussianFamily(), _POOLING, _SHRINKAGE)
    whole = losses(X, y, candidates, fold)
    monkeypatch.setattr(room, "_MAX_NUMBERS", 1)
    np.testing.assert_allclose(losses(X, y, candidates, fold).log_loss, whole.log_loss, rtol=1e-13)


def test_of_equal_candidates_the_simplest_is_best():
    loss = np.array([[0.5, 0.3, 0.3], [0.3, 0.3, 0.5], [0.5, 0.5, 0.5]])[..., None]
    found = Grid(np.array([0.0, 0.5, 1.0]), (0.0, 0.5, 1.0), (None,), loss, loss, np.zeros(0, int))
    assert found.best() == (1, 1, 0)


def test_cv_takes_the_candidate_of_least_held_out_loss():
    X, y = unequal_classes(120)
    fold = np.arange(len(y)) % 4
    model = RDA(pooling="cv", shrinkage="cv", folds=fold).fit(X, y)
    tried = [
        (cross_validate(RDA(pooling=p, shrinkage=s), X, y, fold).log_loss, p, s)
        for p in np.linspace(0, 1, 11).round(10)
        for s in np.linspace(0, 1, 11).round(10)
    ]
    least = min(tried)[0]
    best = max((p, s) for loss, p, s in tried if loss <= least * (1 + 1e-12))
    assert (model.pooling_, model.shrinkage_) == best


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "cv"},
        {"shrinkage": "cv"},
        {"pooling": "cv", "shrinkage": "cv", "target": "scaled_identity"},
        {"pooling": "cv", "shrinkage": "auto"},
        {"pooling": "cv", "shrinkage": "cv", "shrink": "mixed"},
    ],
)
def test_after_cv_the_model_is_the_one_chosen(options):
    X, y = unequal_classes(90)
    model = RDA(**options).fit(X, y)
    chosen = {"pooling": model.family.pooling, "shrinkage": model.family.shrinkage}
    same = RDA(**{**options, **chosen}).fit(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), same.predict_log_proba(X))


def test_cv_needs_rows():
    X, y = unequal_classes(90)
    model = RDA(pooling="cv").fit(X, y)
    with pytest.raises(OptionError, match=r"pooling='cv'.*no rows to hold out"):
        model.fit_moments(model.moments_)


def test_cv_keeps_its_choice_when_rows_are_added():
    X, y = unequal_classes(90)
    model = RDA(pooling="cv").fit(X[:80], y[:80])
    chosen = model.pooling_
    model.partial_fit(X[80:], y[80:])
    expected = RDA(pooling=chosen).fit(X, y).predict_log_proba(X)
    assert_same_logs(model.predict_log_proba(X), expected)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
def test_cv_of_more_features_than_rows_works_in_the_space_of_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 300)), np.repeat(["a", "b"], 15)
    X[y == "a", :5] += 2.0
    fold = np.arange(30) % 3
    model = RDA(pooling=1.0, shrinkage="cv", folds=fold).fit(X, y)
    held = cross_validate(RDA(pooling=1.0, shrinkage=0.5), X, y, fold)
    assert model.cv_.log_loss[0, 5, 0] == pytest.approx(held.log_loss, rel=1e-9)


def test_a_class_with_too_few_rows_to_hold_out_is_named():
    X, y = unequal_classes(90)
    y[:2] = "date"
    with pytest.raises(TooFewRowsError, match=r"'date' has 1 row.*at least 2"):
        RDA(pooling="cv").fit(X, y)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ClassMissingWarning")
def test_rows_of_a_class_that_training_lacks_do_not_count():
    X, y = unequal_classes(90)
    fold = np.where(y == "ash", 0, 1 + np.arange(len(y)) % 3)
    found = losses(X, y, Candidates(GaussianFamily(), _POOLING, (0.0,)), fold)
    held = cross_validate(RDA(pooling=0.5), X, y, fold, sample_weight=None)
    known = held.codes != 0
    own = held.log_posterior[known, held.codes[known]]
    assert found.log_loss[2, 0, 0] == pytest.approx(-own.mean(), rel=1e-11)


def test_a_training_part_of_one_class_is_refused_by_name():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.repeat(["ash", "oak"], 10)
    fold = np.where(y == "oak", 0, 1 + np.arange(20) % 2)
    with pytest.raises(LabelError, match=r"'oak' are in one fold.*class 'ash' only"):
        RDA(pooling="cv", folds=fold).fit(X, y)
