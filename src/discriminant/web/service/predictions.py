"""Predictions for one request, with its own priors, costs, reject option and explanation.

    prior     {"ill": 0.01, "well": 0.99}          class priors in place of those of the fit
    cost      {"well": {"ill": 50}}                {action: {class: cost}}, as for `Decision`
    reject    0.2 or {"threshold": 0.9}            reject doubtful rows
    explain   true                                 contribution of each column
    top_k     5                                    the most probable classes, best first
    probabilities   false                          leave them out

The contribution of a column to a prediction is the change of the log odds of the predicted class
against the second most probable class, if the value of the column is replaced by its typical value,
the training mean:

    c_j = [log P(c|x) - log P(r|x)] - [log P(c|x') - log P(r|x')]      x' = x, but column j typical

For a linear model this is (w_c - w_r)_j (x_j - mean_j), and the contributions and `base`, the log
odds of the typical row, sum to the log odds. A categorical column is replaced as a whole, with all
its indicators.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discriminant.assessment.smallest_change import smallest_change
from discriminant.errors import LinearModelError, OptionError, PosteriorError, capture_warnings
from discriminant.estimators.base import is_regressor
from discriminant.estimators.meta.decision import Decision, log_posterior_of
from discriminant.estimators.meta.encoded import Encoded
from discriminant.posterior import gives_posterior
from discriminant.study.predict import has_decision
from discriminant.study.row_explanation import typical_row
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import Frame
from discriminant.table.encoding import EncodedRows, Encoding
from discriminant.table.memory import ColumnarFeatures
from discriminant.web.service.rows import RequestError, plain_getter

OPTIONS = ("prior", "cost", "reject", "explain", "top_k", "probabilities")
_EXPLAINED_CELLS = 200_000  # largest number of rows times columns of one explanation


@dataclass(frozen=True, slots=True)
class PredictionOptions:
    """Options of one request."""

    prior: Any = None
    cost: Any = None
    reject: Any = None
    explain: bool = False
    top_k: int | None = None
    probabilities: bool = True

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PredictionOptions:
        """Return the options of a request; an invalid option is an error."""
        if unknown := [name for name in given if name not in OPTIONS]:
            raise RequestError(
                f"The option '{unknown[0][:100]}' is not known. Options are: {', '.join(OPTIONS)}.",
                kind="UnknownOptionError",
            )
        for name in ("explain", "probabilities"):
            if not isinstance(given.get(name, False), bool):
                raise RequestError(f"{name} is not true or false.", kind="OptionError")
        top = given.get("top_k")
        if top is not None and (type(top) is not int or top < 1):
            raise RequestError("top_k is not a whole number, 1 or more.", kind="OptionError")
        return cls(**given)

    @property
    def changes_decision(self) -> bool:
        """Whether the request replaces priors, costs or the reject option."""
        return not (self.prior is None and self.cost is None and self.reject is None)


DEFAULTS = PredictionOptions()


@dataclass(slots=True)
class RequestPredictions:
    """Predictions for the rows of a request."""

    predicted: list[Any]
    labels: tuple[Any, ...] = ()  # classes, in the order of the columns of `probabilities`
    decision: list[str] | None = None
    probabilities: Floats | None = None  # (n, K)
    top: list[list[tuple[Any, float]]] | None = None  # labels with scores, best first
    explanations: list[dict[str, Any]] | None = None
    notes: list[str] = field(default_factory=list)
    encoded: EncodedRows | None = None  # the features of the rows

    def records(self) -> list[dict[str, Any]]:
        """Return an object for each row, for JSON."""
        rows: list[dict[str, Any]] = [{"predicted": value} for value in self.predicted]
        if self.decision is not None:
            for row, action in zip(rows, self.decision, strict=True):
                row["decision"] = action
        if self.probabilities is not None:
            names = [str(label) for label in self.labels]
            for row, values in zip(rows, self.probabilities.tolist(), strict=True):
                row["probabilities"] = dict(zip(names, values))  # noqa: B905 -- in a long loop
        if self.top is not None:
            for row, best in zip(rows, self.top, strict=True):
                row["top"] = [{"label": label, "score": score} for label, score in best]
        if self.explanations is not None:
            for row, explanation in zip(rows, self.explanations, strict=True):
                row["explanation"] = explanation
        return rows

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns that `discriminant predict` adds to a file, for CSV and Arrow."""
        columns: dict[str, list[Any]] = {"predicted": self.predicted}
        if self.decision is not None:
            columns["decision"] = self.decision
        if self.probabilities is not None:
            for j, label in enumerate(self.labels):
                columns[f"p({label})"] = self.probabilities[:, j].tolist()
        for j in range(max(map(len, self.top or [[]]), default=0)):
            pairs = [best[j] if j < len(best) else (None, None) for best in self.top or []]
            columns[f"label_{j + 1}"] = [label for label, _ in pairs]
            columns[f"score_{j + 1}"] = [score for _, score in pairs]
        return columns


class Predictor:
    """A loaded model, with cached data that its predictions need."""

    def __init__(self, model: Any, *, array: bool) -> None:
        self.model = model
        self.array = array  # whether the model was fitted to rows without column names
        self.encoded = _encoded_within(model)
        self.encoding = self.encoded.encoding_
        self.regressor = is_regressor(model)
        self.is_tree = hasattr(model, "predict_topk")
        self.labels: tuple[Any, ...] = () if self.regressor else tuple(model.classes_.tolist())
        self.has_posterior = not self.regressor and gives_posterior(model)
        self.has_decision = not self.regressor and has_decision(model)
        self._encodes_once = _encodes_once(model)
        # for rows that need no encoding
        self.values_of = plain_getter(self.encoding) if self._encodes_once or array else None

    def encode(self, frame: Frame) -> EncodedRows:
        """Return the features of the rows."""
        encoded: EncodedRows = self.encoding.encode_rows(frame)
        return encoded

    @np.errstate(under="ignore")
    def predict(
        self, given: Frame | EncodedRows, options: PredictionOptions = DEFAULTS
    ) -> RequestPredictions:
        """Predict the rows of a request."""
        with capture_warnings() as notes:
            encoded = given if isinstance(given, EncodedRows) else self.encode(given)
            predictions = self._predict(given, encoded, options)
        predictions.notes += [str(note) for note in notes]
        predictions.encoded = encoded
        return predictions

    def _predict(
        self, given: Frame | EncodedRows, encoded: EncodedRows, options: PredictionOptions
    ) -> RequestPredictions:
        model = self._with_options(options) if options.changes_decision else self.model
        rows: Any = encoded
        if self.array:
            rows = encoded.matrix()
        elif not self._encodes_once and isinstance(given, Frame):
            rows = Frame(given.columns, given.rows)
        predicted = np.asarray(model.predict(rows))
        predictions = RequestPredictions(predicted.tolist(), self.labels)
        if self.regressor:
            self._refuse_for_regressor(options)
            return predictions
        if self.has_decision or options.cost is not None or options.reject is not None:
            predictions.decision = [str(action) for action in model.decide(rows).tolist()]
        if self.is_tree:
            predictions.top = self._best(model, rows, options.top_k or 5)
        elif self.has_posterior and (options.probabilities or options.top_k is not None):
            p = np.asarray(model.predict_proba(rows))
            predictions.probabilities = p if options.probabilities else None
            if options.top_k is not None:
                predictions.top = _largest(p, self.labels, options.top_k)
        elif options.top_k is not None:
            raise PosteriorError.absent(type(model).__name__)
        if options.explain:
            predictions.explanations = self._explain(model, encoded)
        return predictions

    def _best(self, model: Any, rows: Any, k: int) -> list[list[tuple[Any, float]]]:
        codes, scores = model.predict_topk(rows, k=min(k, len(self.labels)))
        return [
            [(self.labels[code], score) for code, score in zip(*pair, strict=True) if code >= 0]
            for pair in zip(codes.tolist(), np.asarray(scores).tolist(), strict=True)
        ]

    def _refuse_for_regressor(self, options: PredictionOptions) -> None:
        for name in ("prior", "cost", "reject", "explain", "top_k"):
            if getattr(options, name):
                raise OptionError.of(name, getattr(options, name), "a classifier's option")

    def _with_options(self, options: PredictionOptions) -> Any:
        """Return the model with the priors, costs and reject option of a request.

        The loaded model is not changed, because other requests use it at the same time.
        """
        if self.regressor:
            self._refuse_for_regressor(options)
        given = {
            "prior": self._by_label(options.prior, "prior"),
            "cost": self._costs(options.cost),
            "reject": options.reject,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        if isinstance(self.model, Decision):
            decision = copy.copy(self.model)
            decision.set_params(**changes)
        elif isinstance(self.model, Encoded) and isinstance(self.model.estimator_, Decision):
            model, decision = copy.copy(self.model), copy.copy(self.model.estimator_)
            decision.set_params(**changes)
            decision.check_options()
            model.estimator_ = decision
            return model
        else:
            if not self.has_posterior:
                raise PosteriorError.absent(type(self.encoded.estimator_).__name__)
            decision = Decision.of_fitted(self.model, **changes)
        decision.check_options()
        return decision

    def _by_label(self, given: Any, name: str) -> Any:
        """Return a mapping with the model's labels, which are texts in JSON, as keys."""
        if not isinstance(given, Mapping):
            return given
        known = {str(label): label for label in self.labels}
        return {known.get(key, key): value for key, value in given.items()}

    def _costs(self, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        by_label = self._by_label(given, "cost")
        return {action: self._by_label(costs, "cost") for action, costs in by_label.items()}

    # --- explanations -----------------------------------------------------------------------------

    def _explain(self, model: Any, encoded: EncodedRows) -> list[dict[str, Any]]:
        can_encode = self.array or self._encodes_once
        if self.is_tree or not can_encode or not self.has_posterior:
            raise RequestError(
                f"explain is not available for this model ({type(self.model).__name__}): it needs "
                "a classifier with class probabilities and named columns.",
                kind="OptionError",
            )
        used, (n, _) = self.encoding.used, encoded.shape
        if n * (len(used) + 1) > _EXPLAINED_CELLS:
            raise RequestError(
                f"explain for {n:,} rows and {len(used):,} columns is too much for one request. "
                f"Send at most {max(_EXPLAINED_CELLS // (len(used) + 1), 1):,} rows.",
                kind="TooManyRowsError",
                status=413,
            )
        if self.encoding.formula is not None or encoded.incomplete.any():
            raise RequestError(
                "explain is not available for formulas and for rows with missing cells. Leave it "
                "out, or fill the cells.",
                kind="OptionError",
            )
        typical, source = self.typical_features()
        features = encoded.matrix()
        logs = self._log_posterior(model, features)
        order = np.argsort(-logs, axis=1, kind="stable")[:, :2]
        first, second, rows = order[:, 0], order[:, 1], np.arange(n)

        def lead(logs: Floats) -> Floats:
            with np.errstate(invalid="ignore"):
                return np.asarray(logs[rows, first] - logs[rows, second])

        odds = lead(logs)
        base = lead(self._log_posterior(model, np.tile(typical, (n, 1))))
        contributions = np.empty((n, len(used)))
        start = 0
        for j, column in enumerate(used):
            changed = features.copy()
            stop = start + len(column.features)
            changed[:, start:stop] = typical[start:stop]
            contributions[:, j] = odds - lead(self._log_posterior(model, changed))
            start = stop
        names = [column.name for column in used]
        changes = self._smallest_changes(features) if model is self.encoded else None
        return [
            {
                "class": self.labels[first[i]],
                "against": self.labels[second[i]],
                "log_odds": _finite(odds[i]),
                "base": _finite(base[i]),
                "typical": source,
                "contributions": {
                    name: _finite(value)
                    for name, value in zip(names, contributions[i].tolist(), strict=True)
                },
                **({} if changes is None else {"smallest_change": changes[i]}),
            }
            for i in range(n)
        ]

    def _log_posterior(self, model: Any, features: Floats) -> Floats:
        if self.array:
            return log_posterior_of(model, features)
        n = len(features)
        nothing = np.zeros(n, dtype=bool)
        columns = ColumnarFeatures(tuple(features.T))
        return log_posterior_of(model, EncodedRows(columns, nothing, nothing))

    def typical_features(self) -> tuple[Floats, str]:
        """Return the features (d,) of a typical row, and a text that describes their source."""
        moments = self.training_moments()
        if moments is not None:
            return np.asarray(moments.anchor.values(moments.centre[None]))[0], "training means"
        fills = [column.fill for column in self.encoding.used]
        if all(fills):
            filled = [
                [*fill, *([0.0] * column.indicator)]
                for fill, column in zip(fills, self.encoding.used, strict=True)
            ]
            return np.concatenate(filled), "values for missing cells"
        origin = typical_row(self.encoded.estimator_, self.encoding)
        if origin is not None:
            return origin, "origin of the model, near the first rows"
        raise RequestError(
            "explain is not available for this model, which stores no typical row: fit a model "
            "that stores moments (LDA, QDA, RDA), or with missing='mean'.",
            kind="OptionError",
        )

    def training_moments(self) -> Any:
        """Return the moments of the training rows in the features of the encoding, or None."""
        model = self.encoded.estimator_
        while model is not None:
            moments = getattr(model, "moments_", None)
            if moments is not None and tuple(getattr(moments, "features", ())) == tuple(
                self.encoding.features
            ):
                return moments if hasattr(moments, "centre") else None
            model = getattr(model, "estimator_", None)
        return None

    def _smallest_changes(self, features: Floats) -> list[Any] | None:
        """Return for each row the numeric column whose smallest change changes the class."""
        free = {
            column.features[0]: column.name
            for column in self.encoding.used
            if column.kind == "number" and len(column.features) == 1
        }
        fixed = [j for j, name in enumerate(self.encoding.features) if name not in free]
        inner = self.encoded.estimator_
        moments = self.training_moments()
        if not free or moments is None or moments.detail == "rows":
            return None
        variance = np.diagonal(moments.pooled) if moments.pooled.ndim == 2 else moments.pooled
        scale = np.sqrt(variance / moments.weight.sum()) * moments.anchor.unit
        if not (scale > 0).all():
            return None
        changes: list[Any] = []
        try:
            with capture_warnings():  # the rows are arrays in the order of the model's features
                for row in features:
                    change = smallest_change(inner, row, norm="l1", scale=scale, fixed=fixed)
                    j = int(np.flatnonzero(change.change)[0])
                    column = free[self.encoding.features[j]]
                    value = float(change.row[j])
                    changes.append({"column": column, "to": value, "class": change.after})
        except LinearModelError:  # the model is not linear
            return None
        return changes


class SparsePredictor(Predictor):
    """A label tree that was fitted to sparse rows without column names."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.array = self.regressor = self.has_posterior = self.has_decision = False
        self.is_tree = True
        self.encoding = Encoding(())
        self.labels = tuple(model.classes_.tolist())
        self.values_of = None
        self.width = int(model.n_features_in_)
        first = getattr(model, "first_feature_", 0)
        self.first = first if isinstance(first, int) else 0  # number of the first feature

    def training_moments(self) -> Any:
        """Return None: a label tree stores no moments."""
        return None

    def predict_sparse(
        self, rows: Any, options: PredictionOptions = DEFAULTS
    ) -> RequestPredictions:
        """Predict the best labels of the rows of a CSR matrix."""
        if options.changes_decision or options.explain:
            raise RequestError(
                "prior, cost, reject and explain are not available for a label tree.",
                kind="OptionError",
            )
        with capture_warnings() as notes:
            top = self._best(self.model, rows, options.top_k or 5)
        predicted = [best[0][0] if best else None for best in top]
        texts = [str(note) for note in notes]
        return RequestPredictions(predicted, self.labels, top=top, notes=texts)


def _encoded_within(model: Any) -> Any:
    while not isinstance(model, Encoded):
        model = model.estimator_
    return model


def _encodes_once(model: Any) -> bool:
    """Return whether every method of a model accepts rows that are already encoded."""
    if isinstance(model, Decision) and model.outlier is None:
        model = model.estimator_
    return isinstance(model, Encoded) and not model._skips_encoding()


def _largest(p: Floats, labels: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
    order = np.argsort(-p, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(p, order, axis=1)
    return [
        [(labels[code], value) for code, value in zip(codes, row, strict=True)]
        for codes, row in zip(order.tolist(), values.tolist(), strict=True)
    ]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
