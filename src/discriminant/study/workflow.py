"""Study: one reading of a table, and all that a person asks of it afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from discriminant.assessment.resampling.folds import FoldNumbers, check_folds
from discriminant.assessment.resampling.held_out import supports_partitions
from discriminant.decision.actions import Reject
from discriminant.decision.costs import Costs
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import (
    DrawnRowsWarning,
    NeedsMemoryError,
    OptionError,
    StudyError,
    capture_warnings,
    warn,
)
from discriminant.estimators.meta.decision import Decision
from discriminant.estimators.meta.encoded import Encoded, fit_with_weight
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import gives_posterior
from discriminant.report.fact_types import Facts
from discriminant.study.compare import ComparisonRun
from discriminant.study.comparison import Choice, Comparison
from discriminant.study.models import StudyModel, candidate_models, resolve_models
from discriminant.study.predict import ProgressRate
from discriminant.study.report import explanation, report_facts, write_report
from discriminant.study.data_source import StudySource, open_study_source, study_folds
from discriminant.table.load import EncodedTable

_MOST = 50_000  # rows that a model which reads rows is fitted to, in each training part


class Study:
    """A table that was read, and what was found in it. Made by `discriminant.study`."""

    def __init__(
        self,
        taken: StudySource,
        *,
        target: str,
        seed: int,
        folds: Any,
        reading: Sequence[Warning] = (),
        seconds: float = 0.0,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> None:
        self.study_source, self.source, self.target = taken, taken.name, target
        self.seed, self.folds = seed, folds
        self.warnings: list[Warning] = list(reading)
        self.comparison: Comparison | None = None
        self.choice: Choice | None = None
        self.options: dict[str, Any] = {}  # of the decision: cost, reject
        self._progress = ProgressRate(progress) if progress is None else progress
        self.seconds = {"reading": seconds}  # that steps took
        self._models: dict[str, Any] = {}
        self._members: dict[str, StudyModel] = {}
        self._fold: FoldNumbers | None = None
        self._run: ComparisonRun | None = None

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        target: str,
        seed: int,
        folds: Any,
        progress: Callable[[str, int, int], object] | None,
        reading: Mapping[str, Any],
    ) -> Study:
        """Read the source."""
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise OptionError.of("seed", seed, "a whole number, 0 or more")
        started, pace = time.perf_counter(), ProgressRate(progress)
        pace("reading", 0, 1)
        if folds == target and isinstance(folds, str):
            raise OptionError.of("folds", folds, "a column other than the target")
        if isinstance(folds, str):  # the column that defines the folds is not a feature
            reading = {**reading, "exclude": (*(reading.get("exclude") or ()), folds)}
        with capture_warnings() as said:
            taken = open_study_source(
                source, target=target, progress=pace.rows, **reading
            ).with_model_notes()
        made = cls(
            taken,
            target=target,
            seed=int(seed),
            folds=folds,
            reading=said,
            seconds=time.perf_counter() - started,
            progress=pace,
        )
        if taken.partitioned is None:  # say now if they cannot be
            made._fold = study_folds(taken, source, folds, seed=made.seed)
        else:
            check_folds(folds, taken.partitioned)
        return made

    def __repr__(self) -> str:
        """One line: what was read, and what was taken."""
        table = self.rows
        taken = "" if self.choice is None else f", {self.choice.title} taken"
        return (
            f"Study({self.source}: {len(table)} rows, {table.width} features, "
            f"{len(table.schema.labels)} classes{taken})"
        )

    @property
    def opened(self) -> EncodedTable:
        """The rows in memory, what the columns became, and what was said of it."""
        return self.study_source.opened

    @property
    def rows(self) -> AnyTable:
        """All rows: a table in memory, or rows in parts."""
        return self.study_source.rows

    def complete(self) -> None:
        """Remove the checkpoint, if there is one: all that was to be done is done."""
        self.study_source.complete()

    # --- comparing ------------------------------------------------------------------------------

    def compare(self, models: Any = None, *, most: int = _MOST) -> Comparison:
        """Every model on the same folds.

        Parameters
        ----------
        models
            Names of the family (`study.names`), or {name: classifier} of one's own; None: all.
        most
            Models that read rows are fitted to at most so many of each training part, drawn; their
            lines say so. Models made from moments are always fitted to all.
        """
        members = resolve_models(models)
        run = self._get_run(most)
        self.comparison = run.compare(members)
        self.choice = None
        self._models = {}  # a name may stand for another model now
        self._members = {member.name: member for member in members}
        return self.comparison

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the family."""
        return tuple(candidate_models())

    @property
    def moments(self) -> ClassMoments | None:
        """Of all rows; None where features are so many that rows are kept instead."""
        return self._get_run().moments

    def choose(
        self, name: str | None = None, *, by: str = "log_loss", rule: str = "one_se"
    ) -> Choice:
        """Take a model: one by name, or the one that did best.

        Costs and a reject option that `decide` was given stay: they are of the problem.

        Parameters
        ----------
        by
            'log_loss', 'error' or 'brier', on held-out rows.
        rule
            'one_se': the simplest model within one standard error of the best; 'least': the best.
        """
        found = self._get_comparison()
        choice = found.choose(by, rule) if name is None else found.choose_named(name)
        if self._weighs() and found[choice.name].facts["brier"] is None:
            raise StudyError.no_decision_probabilities(choice.name)
        self.choice = choice
        return choice

    # --- using ------------------------------------------------------------------------------------

    def model(self, name: str | None = None) -> Encoded:
        """A model fitted to all rows, that takes tables such as the one read; None: that chosen."""
        if name is None:
            name = self._get_choice().name
        if name not in self._models:
            member = self._members.get(name) or resolve_models([name])[0]
            self._models[name] = self._fitted(member)
        return cast(Encoded, self._models[name])

    def fitted(self, model: Any) -> Encoded:
        """A classifier of one's own fitted to all rows, that takes tables such as the one read."""
        return self._fitted(StudyModel.of(type(model).__name__, model))

    def decide(self, cost: Any = None, reject: Any = None, *, name: str | None = None) -> Decision:
        """The model with costs and a reject option; a report then shows these.

        Parameters
        ----------
        cost
            {said: {true: cost}}: what it costs to say the first where the second is true.
        reject
            The cost of passing a row on to a person.
        """
        if name is not None:
            self.choose(name)
        model = self.model()
        if not gives_posterior(model):
            raise StudyError.no_probabilities(self._get_choice().name)
        self.check_decision(cost, reject)
        made = Decision.of_fitted(model, cost=cost, reject=reject)
        self.options = {"cost": cost, "reject": reject}
        return made

    def check_decision(self, cost: Any = None, reject: Any = None) -> None:
        """Say now, before any work, if costs or a reject option cannot be."""
        if cost is not None:
            Costs.of(cost, self.rows.schema.labels)
        Reject.of(reject)

    def explain(self) -> str:
        """What tells the classes apart, and what is odd about the rows: Markdown."""
        return explanation(self.facts())

    def facts(self, *, title: str | None = None, command: str | None = None) -> Facts:
        """All that a report says, as one plain dictionary."""
        return report_facts(self, title=title, command=command)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        save: str | os.PathLike[str] | None = None,
        title: str | None = None,
        command: str | None = None,
    ) -> Facts:
        """Write the report as one HTML page, and the model taken beside it if `save` names a file.

        Returns the facts of the page. Places are checked before there is any work.
        """
        return write_report(self, Path(path), save=save, title=title, command=command)

    # --- inside -----------------------------------------------------------------------------------

    def _get_run(self, most: int = _MOST) -> ComparisonRun:
        if self._run is None:
            partitioned = self.study_source.partitioned
            self._run = ComparisonRun(
                self.rows,
                self._fold if partitioned is None else self.folds,
                self.seed,
                most,
                self._progress,
                self.seconds,
                self.opened.encoding.missing == "marginal",
                self.folds if isinstance(self.folds, str) else None,
            )
        self._run.max_rows = most
        return self._run

    def _weighs(self) -> bool:
        """Whether costs or a reject option were asked for."""
        return any(option is not None for option in self.options.values())

    def _get_comparison(self) -> Comparison:
        return self.compare() if self.comparison is None else self.comparison

    def _get_choice(self) -> Choice:
        return self.choose() if self.choice is None else self.choice

    def _fitted(self, member: StudyModel) -> Encoded:
        run = self._get_run()
        model = run.unfitted(member)
        run.check(model)
        with capture_warnings() as said:
            if member.moment_based and run.moments is not None and run.moments.holds(model.detail):
                model.fit_moments(run.moments)
            elif not self._fit_to_partitions(model):
                self._fit_to_rows(model)
        self.warnings += said
        return Encoded.of_fitted(model, self.opened.encoding)

    def _fit_to_partitions(self, model: Any) -> bool:
        """Whether it could be fitted to all rows where they are."""
        parted = self.study_source.partitioned
        if parted is None or not supports_partitions(model, parted):
            return False
        self._progress(f"fitting {type(model).__name__} to all rows", 0, 1)
        try:
            model.fit(parted)
        except NeedsMemoryError:
            return False
        return True

    def _fit_to_rows(self, model: Any) -> None:
        """To those in memory, which may be some of all."""
        table = self.opened.table
        if len(table) < len(self.rows):
            warn(DrawnRowsWarning.of(type(model).__name__, len(table), len(self.rows)))
        rows = _frame(table.schema.features, table.features)
        fit_with_weight(model, rows, table.schema.labels[table.codes], table.weight)


def _frame(names: Sequence[str], features: Any) -> Any:
    import pyarrow as pa

    columns = getattr(features, "columns", None)
    if columns is None:
        columns = [np.ascontiguousarray(column) for column in np.asarray(features).T]
    return pa.table(dict(zip(names, columns, strict=True)))
