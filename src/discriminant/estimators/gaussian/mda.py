"""Mixture discriminant analysis: every class is a mixture of Gaussian components, fitted by EM.

A fit chooses the number of components of each class, and which components share a covariance, by
the Bayesian information criterion. The choice and the random starts use a sample of the rows. EM
from the best start then reads all rows once per step. The formulas are in
`models.gaussian.mixture`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discriminant.assessment.resampling.folds import content_folds, rows_by_fold
from discriminant.engines.dispatch import fold, read_moments
from discriminant.engines.partitioned_table import AnyTable
from discriminant.engines.sampling import RowSampleReading
from discriminant.errors import (
    LabelError,
    MixtureError,
    NotConvergedWarning,
    OptionError,
    capture_warnings,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import (
    PosteriorMixin,
    Prior,
    WeightedIterativeClassifier,
    check_choice,
    class_totals,
)
from discriminant.estimators.gaussian.lda_qda import OUTLIER_KINDS, OutlierKind
from discriminant.models.gaussian.bayes_error import BayesError, estimate_bayes_error
from discriminant.models.gaussian.covariance import TARGETS, Target
from discriminant.models.gaussian.family import validate_prior
from discriminant.models.gaussian.known_parameters import component_parameters
from discriminant.models.gaussian.mixture import (
    STRUCTURES,
    Mixture,
    MixtureModel,
    MixtureRule,
    Structure,
    run_em,
    scores_with_missing,
    single_gaussian,
    starting_mixtures,
)
from discriminant.moments.anchor import Anchor
from discriminant.posterior import posterior
from discriminant.table.blocks import Block, Floats, Places, numbered_names
from discriminant.table.memory import Table

_LOG_2PI = float(np.log(2 * np.pi))
_SAMPLE_ROWS = 2000  # largest number of rows of a class in the sample
_SHORT_STEPS = 10  # steps of EM from every start; only the best start is continued
_FOLDS = 10  # folds of components='cv'
_WORSE = 2  # the search ends after this many larger numbers of components were worse


class MDA(PosteriorMixin, WeightedIterativeClassifier):
    """Mixture discriminant analysis: every class is a mixture of Gaussian components.

    Boundaries can be curved, and a class can consist of several separate groups. The parameters are
    estimated by EM, which reads the rows once per step. By default, the model chooses how many
    components each class has, and which covariances are equal.

    Parameters
    ----------
    components : 'bic', 'cv', int or dict by label, default 'bic'
        Number of components of each class. 'bic': the number with the smallest Bayesian information
        criterion, for each class separately. 'cv': the number with the largest log density of
        held-out rows of the class (10 folds); EM is repeated for each fold.
    covariance : {'bic', 'shared', 'class', 'component'}, default 'bic'
        'shared': all components of all classes have one covariance, as in R's `mda`. 'class': one
        covariance for each class. 'component': one for each component. 'bic': the choice with the
        smallest Bayesian information criterion.
    prior : array of shape (K,), dict by label or None, default None
        Class priors, in the order of the sorted labels. None means the class shares of the rows.
    shrinkage : float, default 0.0
        Shrinkage of the covariances toward `target`, from 0 (none) to 1.
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Matrix toward which covariances are shrunk: the diagonal matrix of the variances, the
        identity times the mean variance, or the identity.
    max_components : int, default 9
        Largest number of components of a class that is tried with components='bic' or 'cv'.
    starts : int, default 5
        Number of random starts, by k-means++ in each class.
    tolerance : float, default 1e-6
        EM ends when the mean log likelihood of a row changes by at most this value.
    max_steps : int, default 500
        Maximum number of steps of EM.
    random_state : int, default 0
        Seed of the starts and of the sample.
    progress : callable or None, default None
        Called after every step over all rows with its number and the log likelihood.

    Attributes
    ----------
    components_ : array of shape (K,)
        Number of components of each class.
    covariance_structure_ : {'shared', 'class', 'component'}
        Which components share a covariance.
    prior_ : array of shape (K,)
        Class priors: `prior`, or the class shares of the rows.
    means_ : array of shape (C, d)
        Means of all components, ordered by class.
    shares_ : array of shape (C,)
        Share of each component in its class.
    covariances_ : array of shape (C, d, d)
        Covariance of each component.
    log_likelihood_ : float
        Sum of log p(row | class of the row); None for known parameters.
    bic_ : float
        Bayesian information criterion: parameters times log(rows) minus twice the log likelihood;
        None for known parameters.
    converged_ : bool
        Whether EM met `tolerance` within `max_steps`.
    n_iter_, n_passes_ : int
        Number of steps of EM over all rows.

    See Also
    --------
    QDA : One Gaussian component per class.
    LDA : One Gaussian component per class, and one covariance.

    Notes
    -----
    The numbers of components and the start are chosen with at most 2,000 different rows of each
    class. A hash of their values selects these rows, so rows in memory and the same rows in
    partitions give the same model.

    References
    ----------
    .. [1] Hastie & Tibshirani (1996), Discriminant analysis by Gaussian mixtures.
    .. [2] Fraley & Raftery (2002), Model-based clustering, discriminant analysis, and density
       estimation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> inner = rng.normal(size=(200, 1))
    >>> outer = rng.normal(size=(200, 1)) + np.repeat([-6.0, 6.0], 100)[:, None]
    >>> model = MDA().fit(np.vstack([inner, outer]), np.repeat(["inner", "outer"], 200))
    >>> model.components_.tolist(), model.predict([[-6.0], [0.0], [6.0]]).tolist()
    ([1, 2], ['outer', 'inner', 'outer'])
    """

    rule_: MixtureRule  # type: ignore[assignment]
    log_likelihood_: float | None
    bic_: float | None
    can_marginalise = True  # whether rows with missing features can be scored
    _partitions = True

    def __init__(
        self,
        *,
        components: Literal["bic", "cv"] | int | Mapping[Any, int] = "bic",
        covariance: Literal["bic", "shared", "class", "component"] = "bic",
        prior: Prior | None = None,
        shrinkage: float = 0.0,
        target: Target = "diagonal",
        max_components: int = 9,
        starts: int = 5,
        tolerance: float = 1e-6,
        max_steps: int = 500,
        random_state: int = 0,
        progress: Callable[[int, float], object] | None = None,
    ) -> None:
        self.components = components
        self.covariance = covariance
        self.prior = prior
        self.shrinkage = shrinkage
        self.target = target
        self.max_components = max_components
        self.starts = starts
        self.tolerance = tolerance
        self.max_steps = max_steps
        self.random_state = random_state
        self.progress = progress

    @classmethod
    def from_parameters(
        cls,
        means: Sequence[npt.ArrayLike],
        covariances: npt.ArrayLike | Sequence[npt.ArrayLike],
        shares: Sequence[npt.ArrayLike] | None = None,
        prior: Prior | None = None,
        *,
        classes: npt.ArrayLike | None = None,
        features: Sequence[str] | None = None,
    ) -> MDA:
        """Create a fitted model from known parameters, without rows.

        Parameters
        ----------
        means : sequence of K arrays of shape (R_k, d)
            Means of the components of each class.
        covariances : array of shape (d, d), or sequence of K arrays
            (d, d): one covariance for all components. K arrays of shape (d, d): one for each class.
            K arrays of shape (R_k, d, d): one for each component.
        shares : sequence of K arrays of shape (R_k,), default None
            Share of each component in its class. None means equal shares.
        prior, classes, features
            As in `LDA.from_parameters`.

        Returns
        -------
        MDA
            Model that predicts and samples, and that can be saved and exported. `log_likelihood_`
            and `bic_` are None.

        Examples
        --------
        >>> means = [[[0.0]], [[-6.0], [6.0]]]
        >>> model = MDA.from_parameters(means, [[1.0]], classes=["inner", "outer"])
        >>> model.predict([[-5.0], [1.0], [7.0]]).tolist()
        ['outer', 'inner', 'outer']
        """
        components = component_parameters(
            means, covariances, shares, prior, classes=classes, features=features
        )
        model = cls(
            components=dict(zip(components.labels.tolist(), components.numbers, strict=True)),
            covariance=components.structure,
            prior=None if prior is None else components.prior,
        )
        names = components.features
        model._set_features(names, names != numbered_names(len(names)))
        model._copy_options()
        model.rule_, model._densities = components.rules()
        model.classes_, model.prior_ = components.labels, components.prior
        model.components_ = np.array(components.numbers)
        model.covariance_structure_ = components.structure
        model.shares_ = np.concatenate(components.shares)
        model.log_likelihood_ = model.bic_ = None
        model.n_iter_ = model.n_passes_ = 0
        model.converged_ = True
        return model

    def _fit_table(self, table: AnyTable) -> None:
        labels, totals = table.schema.labels, class_totals(table)
        numbers = self._numbers(labels)
        self.prior_ = totals / totals.sum()
        if self.prior is not None:
            self.prior_ = validate_prior(self.prior, labels)
        with merge_warnings():
            moments = read_moments(table, detail="class")
            search, chosen = _StartSearch.of(self, table, moments.anchor), list(numbers)
            while True:
                structure, start = search.best(chosen)
                model = MixtureModel.of(
                    structure, moments, shrinkage=float(self.shrinkage), target=self.target
                )
                mixture = self._iterate(table, model, start)
                k = mixture.collapsed
                if k is None:
                    break
                number = len(mixture.moments[k].labels)
                if numbers[k] is not None:
                    raise MixtureError.collapsed(labels.tolist()[k], number)
                chosen[k] = number - 1
            model.from_moments(mixture.moments)  # issues the warnings about covariances
            self._set_mixture(table, model, mixture)

    def _iterate(self, table: AnyTable, model: MixtureModel, start: Mixture) -> Mixture:
        return run_em(
            model,
            start,
            partial(fold, table),
            tolerance=float(self.tolerance),
            max_steps=int(self.max_steps),
            progress=self.progress,
        )

    def _set_mixture(self, table: AnyTable, model: MixtureModel, mixture: Mixture) -> None:
        rule, self._densities = model.rule(mixture, self.prior_)
        self._set_rule(table, rule)  # type: ignore[arg-type]
        self.components_ = np.array([len(own.labels) for own in mixture.moments])
        self.covariance_structure_ = model.structure
        self.shares_ = mixture.shares
        self.log_likelihood_, self.bic_ = mixture.log_likelihood, model.bic(mixture)
        self.n_iter_ = self.n_passes_ = mixture.steps
        self.converged_ = bool(mixture.change <= self.tolerance)
        if not self.converged_:
            warn(NotConvergedWarning.of_mixture(mixture.steps, mixture.change, self.tolerance))

    # --- fitted components ----------------------------------------------------------------------

    @property
    def means_(self) -> Floats:
        """Means of all components (C, d), ordered by class."""
        self._check_is_fitted()
        return np.asarray(self._densities.anchor.values(self._densities.mean))

    @property
    def covariances_(self) -> Floats:
        """Covariance of each component (C, d, d)."""
        self._check_is_fitted()
        unit = self._densities.anchor.unit
        square = unit[:, None] * unit
        return np.array([metric.covariance() * square for metric in self._densities.metrics])

    # --- prediction -----------------------------------------------------------------------------

    def marginal_scores(self, X: Floats) -> Floats:
        """Return scores (n, K) of rows with missing features (NaN), which are integrated out."""
        return scores_with_missing(np.asarray(X), self.rule_, self._densities)

    def log_density(self, X: Any, by_class: bool = False) -> Floats:
        """Compute the log density of rows under the fitted model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        by_class : bool, default False
            Return log p(x | class) for each class instead of log p(x).

        Returns
        -------
        array of shape (n,), or (n, K) with `by_class`
        """
        self._check_is_fitted()
        units = float(np.log(self._densities.anchor.unit).sum())
        constant = 0.5 * self.n_features_in_ * _LOG_2PI + units
        components = self._score_rows(self._densities.scores, X)
        densities = self.rule_.class_scores(components) - constant
        if by_class:
            return np.asarray(densities - np.log(self.prior_))
        one = MixtureRule(self.classes_[:1], self._densities, np.zeros_like(self.rule_.classes))
        return np.asarray(one.class_scores(components)[:, 0] - constant)

    def outlier_scores(self, X: Any, kind: OutlierKind = "mahalanobis") -> Floats:
        """Score how unusual rows are; larger scores are more unusual.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        kind : {'mahalanobis', 'relative_mahalanobis', 'energy'}, default 'mahalanobis'
            'mahalanobis': squared Mahalanobis distance from the nearest component.
            'relative_mahalanobis': that distance minus the squared distance from the mean of the
            mixture, in units of its covariance (Ren et al. 2021). 'energy': -log p(x).

        Returns
        -------
        array of shape (n,)
        """
        check_choice("kind", kind, OUTLIER_KINDS)
        if kind == "energy":
            return -self.log_density(X)
        self._check_is_fitted()
        densities = self._densities
        nearest = np.asarray(self._score_rows(densities.distances, X).min(axis=1))
        if kind == "mahalanobis":
            return nearest
        return nearest - self._score_rows(single_gaussian(densities).distances, X)[:, 0]

    def sample(self, n: int, seed: int | np.random.Generator) -> tuple[Floats, npt.NDArray[Any]]:
        """Draw random rows and their labels from the fitted model.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int or Generator
            Seed.

        Returns
        -------
        rows : array of shape (n, d)
        labels : array of shape (n,)
        """
        self._check_is_fitted()
        rng, densities = np.random.default_rng(seed), self._densities
        share = np.exp(densities.log_prior)
        codes = rng.choice(len(share), size=n, p=share / share.sum())
        rows = np.empty((n, self.n_features_in_))
        for c, metric in enumerate(densities.metrics):
            chosen = codes == c
            noise = metric.sample(rng.standard_normal((int(chosen.sum()), self.n_features_in_)))
            rows[chosen] = densities.anchor.values(densities.mean[c] + noise)
        return rows, self.classes_[self.rule_.classes[codes]]

    def bayes_error(
        self, prior: Prior | None = None, n: int = 1 << 16, seed: int | np.random.Generator = 0
    ) -> BayesError:
        """Estimate the Bayes error, the error of the best possible classifier if the model is true.

        Arguments and result are as in `LDA.bayes_error`; the method is quasi-Monte Carlo.
        """
        self._check_is_fitted()
        own, densities = self.prior_, self._densities
        new = own if prior is None else validate_prior(prior, self.classes_)
        change, classes = np.log(new) - np.log(own), self.rule_.classes

        def draw(code: int, uniform: Floats) -> Floats:
            components = np.flatnonzero(classes == code)
            ends = np.cumsum(self.shares_[components])[:-1]
            chosen = components[np.searchsorted(ends, uniform[:, -1], side="right")]
            normal, rows = ndtri(uniform[:, :-1]), np.empty((len(uniform), self.n_features_in_))
            for c in components:
                own_rows = chosen == c
                noise = densities.metrics[c].sample(normal[own_rows])
                rows[own_rows] = densities.anchor.values(densities.mean[c] + noise)
            return rows

        return estimate_bayes_error(
            lambda rows: posterior(self.rule_.scores(rows) + change),
            draw,
            labels=self.classes_,
            prior=new,
            dimensions=self.n_features_in_ + 1,
            n=n,
            seed=seed,
        )

    # --- options ----------------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_choice("covariance", self.covariance, ("bic", *STRUCTURES))
        check_choice("target", self.target, TARGETS)
        shrinkage: Any = self.shrinkage
        if not (isinstance(shrinkage, Real) and 0.0 <= float(shrinkage) <= 1.0):
            raise OptionError.of("shrinkage", shrinkage, "a number from 0 to 1")
        tolerance: Any = self.tolerance
        if not (isinstance(tolerance, Real) and float(tolerance) > 0.0):
            raise OptionError.of("tolerance", tolerance, "a positive number")
        for name in ("max_components", "starts", "max_steps"):
            if not _is_positive_integer(getattr(self, name)):
                raise OptionError.of(name, getattr(self, name), "a whole number of 1 or more")
        seed: Any = self.random_state
        if not (isinstance(seed, Integral) and int(seed) >= 0):
            raise OptionError.of("random_state", seed, "a whole number of 0 or more")
        components = self.components
        given = list(components.values()) if isinstance(components, Mapping) else [components]
        if not _is_criterion(components) and not all(map(_is_positive_integer, given)):
            allowed = "'bic', 'cv', a whole number of 1 or more, or a dict with one for each label"
            raise OptionError.of("components", components, allowed)

    def _numbers(self, labels: Any) -> list[int | None]:
        """Return the number of components of each class; None where it is to be chosen."""
        components = self.components
        if not isinstance(components, Mapping):
            number = None if isinstance(components, str) else int(components)
            return [number] * len(labels)
        unknown = [label for label in components if label not in labels.tolist()]
        if unknown:
            raise LabelError.unknown(unknown, labels.tolist())
        return [components.get(label) for label in labels.tolist()]


def _is_criterion(components: Any) -> bool:
    return isinstance(components, str) and components in ("bic", "cv")


def _is_positive_integer(value: Any) -> bool:
    is_bool = isinstance(value, bool | np.bool_)
    return not is_bool and isinstance(value, Integral) and int(value) >= 1


@dataclass(frozen=True, slots=True, eq=False)
class _StartSearch:
    """Search for the structure, the numbers of components and the start of EM on a sample."""

    estimator: MDA
    sample: Table
    anchor: Anchor  # of the moments of all rows, so that EM can continue from the start

    @classmethod
    def of(cls, estimator: MDA, table: AnyTable, anchor: Anchor) -> _StartSearch:
        """Create the search, with a sample of the rows of a table."""
        labels, seed = table.schema.labels, int(estimator.random_state)
        rows = fold(table, RowSampleReading(_SAMPLE_ROWS, table.width, len(labels), seed))
        sample = Table(table.schema, rows.features, rows.codes, rows.weight)
        return cls(estimator, sample, anchor)

    def best(self, numbers: list[int | None]) -> tuple[Structure, Mixture]:
        """Return the structure of the covariances and the start with the smallest BIC."""
        wanted = self.estimator.covariance
        structures: tuple[Structure, ...] = STRUCTURES if wanted == "bic" else (wanted,)
        for k, number in enumerate(numbers):
            distinct = int((self.sample.codes == k).sum())
            if number is not None and number > distinct:
                label = self.sample.schema.labels.tolist()[k]
                raise MixtureError.too_few_rows(label, number, distinct)
        chosen: dict[str, list[int]] = {}
        candidates: list[tuple[float, Structure, Mixture]] = []
        failures: list[Mixture] = []
        for structure in structures:
            model = self._model(structure, self.sample)
            kind = "component" if structure == "component" else "class"
            if kind not in chosen:
                chosen[kind] = [self._number(model, k, number) for k, number in enumerate(numbers)]
            own = list(chosen[kind])
            mixture = self._fit_classes(model, own)
            while mixture.collapsed is not None and numbers[mixture.collapsed] is None:
                own[mixture.collapsed] -= 1
                mixture = self._fit_classes(model, own)
            if mixture.collapsed is None:
                candidates.append((model.bic(mixture), structure, mixture))
            else:
                failures.append(mixture)
        if not candidates:
            k = failures[0].collapsed or 0
            label = self.sample.schema.labels.tolist()[k]
            raise MixtureError.collapsed(label, len(failures[0].moments[k].labels))
        _, structure, mixture = min(candidates, key=lambda pair: pair[0])
        return structure, mixture

    def _number(self, model: MixtureModel, k: int, given: int | None) -> int:
        """Return the number of components of class k: `given`, or that with the least criterion."""
        if given is not None:
            return given
        own = self._rows_of(k)
        restricted = model.restrict(k)
        by_folds = self.estimator.components == "cv" and len(own) > 1
        criterion = self._held_out_loss if by_folds else self._bic
        best, least = 1, np.inf
        for number in range(1, min(int(self.estimator.max_components), len(own)) + 1):
            value = criterion(restricted, own, number)
            if value < least or number == 1:
                best, least = number, value
            elif number >= best + _WORSE:
                break
        return best

    def _bic(self, model: MixtureModel, own: Table, number: int) -> float:
        """Return the BIC of a number of components; infinite if a component is unreliable."""
        mixture = self._fit(model, own, [number])
        excluded = mixture.collapsed is not None or model.is_scarce(mixture)
        return np.inf if excluded else model.bic(mixture)

    def _held_out_loss(self, model: MixtureModel, own: Table, number: int) -> float:
        """Return minus the summed log density of the held-out rows of a class, without constants.

        It is infinite if a component is unreliable in some training set.
        """
        numbers, total = content_folds(own.features, own.codes, own.weight, _FOLDS), 0.0
        for held_out in rows_by_fold(numbers):
            train = own.take(np.setdiff1d(np.arange(len(own)), held_out))
            part = self._model(model.structure, train)
            mixture = self._fit(part, train, [number]) if number <= len(train) else None
            if mixture is None or mixture.collapsed is not None or part.is_scarce(mixture):
                return np.inf
            rule, _ = part.rule(mixture, np.ones(1))
            rows = own.take(held_out)
            logs = rule.scores(rows.features)[:, 0]
            total -= float(logs.sum() if rows.weight is None else logs @ rows.weight)
        return total

    def _fit_classes(self, model: MixtureModel, numbers: list[int]) -> Mixture:
        """Return the best result of EM.

        Classes that do not share a covariance are fitted one by one, each from its own starts.
        """
        if model.structure == "shared":
            return self._fit(model, self.sample, numbers)
        parts = [
            self._fit(model.restrict(k), self._rows_of(k), [number])
            for k, number in enumerate(numbers)
        ]
        with capture_warnings():
            mixture = model.from_moments([part.moments[0] for part in parts])
        return replace(mixture, log_likelihood=sum(part.log_likelihood for part in parts))

    def _fit(self, model: MixtureModel, rows: Table, numbers: list[int]) -> Mixture:
        """Return the best result of EM from several starts.

        A few steps are made from each start. EM then goes on from the best of them until it
        converges.
        """
        options = self.estimator
        single = max(numbers) == 1
        starts = starting_mixtures(
            model,
            [_block(rows, k) for k in range(len(numbers))],
            numbers,
            starts=1 if single else int(options.starts),
            rng=np.random.default_rng(int(options.random_state)),
        )
        em = partial(run_em, model, fold=partial(fold, rows), tolerance=float(options.tolerance))
        short = [em(start, max_steps=_SHORT_STEPS) for start in starts]
        longest = []
        for mixture in sorted(short, key=partial(_preference, model), reverse=True):
            converged = mixture.collapsed is not None or mixture.change <= options.tolerance
            longest.append(mixture if converged else em(mixture, max_steps=int(options.max_steps)))
            if longest[-1].collapsed is None and not model.is_scarce(longest[-1]):
                break
        return max(longest, key=partial(_preference, model))

    def _model(self, structure: Structure, rows: Table) -> MixtureModel:
        options = self.estimator
        moments = read_moments(rows, detail="class", anchor=self.anchor)
        return MixtureModel.of(
            structure, moments, shrinkage=float(options.shrinkage), target=options.target
        )

    def _rows_of(self, k: int) -> Table:
        block = _block(self.sample, k)
        schema = self.sample.schema
        own = type(schema)(schema.features, schema.labels[k : k + 1], schema.named)
        return Table(own, block.features, np.zeros_like(block.codes), block.weight)


def _preference(model: MixtureModel, mixture: Mixture) -> tuple[bool, bool, float]:
    """Return the key by which results are sorted: whether they are valid, then log likelihood."""
    return mixture.collapsed is None, not model.is_scarce(mixture), mixture.log_likelihood


def _block(rows: Table, k: int) -> Block:
    own: Places = np.flatnonzero(rows.codes == k)
    weight = None if rows.weight is None else rows.weight[own]
    return Block(rows.features[own], rows.codes[own], weight)
