"""Workflow of a study: read a table once, then compare, select, explain and report on models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from html import escape
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    check_column,
    check_folds,
    sample_rows,
)
from discriminant.assessment.resampling.held_out_folds import supports_partitions
from discriminant.decision.actions import Reject
from discriminant.decision.costs import Costs
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import (
    NeedsMemoryError,
    OptionError,
    SampledRowsWarning,
    StudyError,
    capture_warnings,
    warn,
)
from discriminant.estimators.base import fit_with_weight
from discriminant.estimators.meta.decision import Decision
from discriminant.estimators.meta.encoded import Encoded
from discriminant.estimators.meta.pool import Pool
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import gives_posterior
from discriminant.report.fact_types import (
    ComparisonFacts,
    Facts,
    LearningCurveFacts,
    WithoutColumnsFacts,
    YardstickFacts,
)
from discriminant.report.format import count_with_noun, shown
from discriminant.study.compare import ComparisonRun
from discriminant.study.comparison import Choice, Comparison
from discriminant.study.data_checks.result import DataChecks, check_source
from discriminant.study.data_source import (
    StudySource,
    check_design,
    class_order,
    open_study_source,
    study_folds,
)
from discriminant.study.learning_curve import learning_curve
from discriminant.study.models import POOL, StudyModel, candidate_models, resolve_models
from discriminant.study.progress import ProgressRate, StudyProgress
from discriminant.study.report import explanation, report_facts, write_report
from discriminant.study.training_overlap import feature_range, row_sketch
from discriminant.study.without_leaks import compare_without, leaking_columns
from discriminant.study.yardstick import start_boosted_trees
from discriminant.table.blocks import Floats
from discriminant.table.load import EncodedTable

# largest number of rows of each training set, for models that are fitted to rows
_MAX_ROWS = 50_000


class Study:
    """A study: a table that was read once, and the models compared on it.

    See `discriminant.study`.
    """

    def __init__(
        self,
        study_source: StudySource,
        *,
        target: str,
        seed: int,
        folds: Any,
        progress: StudyProgress,
        groups: str | None = None,
        time_column: str | None = None,
        class_order: tuple[Any, ...] | None = None,
    ) -> None:
        self.study_source, self.source, self.target = study_source, study_source.name, target
        self.seed, self.folds = seed, folds
        self.groups, self.time_column = groups, time_column
        self.class_order = class_order  # labels of ordered classes, lowest first
        self.warnings: list[Warning] = []
        self.comparison: Comparison | None = None
        self.choice: Choice | None = None
        self.options: dict[str, Any] = {}  # options of the decision: cost, reject
        self.seconds: dict[str, float] = {}  # time taken by each step
        self._progress = progress
        self._fitted_models: dict[str, Encoded] = {}
        self._models: dict[str, StudyModel] = {}  # the models of the last comparison
        self._fold: FoldNumbers | None = None
        self._run: ComparisonRun | None = None
        self._checks: DataChecks | None = None
        self._with_yardstick = True
        self._yardstick: dict[str, YardstickFacts | None] = {}  # by name of the selected model
        self._curve: LearningCurveFacts | None = None
        self._without: WithoutColumnsFacts | None = None
        self._described: Comparison | None = None  # the comparison that these describe
        self._compared_with_trees: Comparison | None = None

    @classmethod
    def of(
        cls,
        source: Any,
        *,
        target: str,
        seed: int,
        folds: Any,
        progress: StudyProgress | None,
        reading: Mapping[str, Any],
        groups: str | None = None,
        time: str | None = None,
    ) -> Study:
        """Read a source; `reading` holds the options of `open_study_source`."""
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise OptionError.of("seed", seed, "a whole number, 0 or more")
        started, rate = perf_counter(), ProgressRate(progress)
        rate("reading", 0, 1)
        design = check_design(folds, groups, time, target=target)
        # columns that define the folds are not used as features
        ordered = dict(reading.get("ordered") or {})
        levels = ordered.pop(target, None)  # of the classes
        exclude = (*(reading.get("exclude") or ()), *design)
        reading = {**reading, "exclude": exclude, "ordered": ordered or None}
        with capture_warnings() as warnings:
            study_source = open_study_source(
                source, target=target, progress=rate.rows, **{"unlabelled": "drop", **reading}
            ).with_model_notes()
        study = cls(
            study_source,
            target=target,
            seed=int(seed),
            folds=folds,
            progress=rate,
            groups=groups,
            time_column=time,
            class_order=class_order(source, target, study_source.rows.schema.labels, levels),
        )
        study.warnings += warnings
        study.seconds["reading"] = perf_counter() - started
        # checked now, so that invalid folds raise an error before any work
        if study_source.partitioned is None:
            study._fold = study_folds(
                study.opened, source, folds, groups=groups, time=time, seed=study.seed
            )
        else:
            if time is not None:
                raise StudyError.time_needs_memory(time)
            check_folds(folds, study_source.partitioned)
            if groups is not None:
                check_column(groups, study_source.partitioned, "groups")
        return study

    def without(self, columns: Sequence[str]) -> Study:
        """Return a study of the same rows without the features of some columns.

        With missing='drop', rows with missing cells in these columns remain dropped. With
        `exclude`, they are not dropped.

        Parameters
        ----------
        columns : list of str
            Names of columns that have features.

        Returns
        -------
        Study
            A study on which nothing has been compared yet.

        Examples
        --------
        >>> import discriminant as dd
        >>> from sklearn.datasets import load_wine
        >>> wine = load_wine(as_frame=True)
        >>> dd.study(wine.frame, target="target").without(["alcohol", "ash"])
        Study(DataFrame: 178 rows, 11 features, 3 classes)
        """
        study = Study(
            self.study_source.without(columns),
            target=self.target,
            seed=self.seed,
            folds=self.folds,
            progress=self._progress,
            groups=self.groups,
            time_column=self.time_column,
            class_order=self.class_order,
        )
        study.source, study._fold = self.source, self._fold
        study.warnings += self.warnings
        study.seconds.update(self.seconds)
        return study

    def __repr__(self) -> str:
        """Return the size of the table, and the selected model."""
        table = self.rows
        selected = "" if self.choice is None else f", {self.choice.title} selected"
        return (
            f"Study({self.source}: {count_with_noun(len(table), 'row')}, "
            f"{count_with_noun(table.width, 'feature')}, "
            f"{len(table.schema.labels)} classes{selected})"
        )

    def _repr_html_(self) -> str:
        lines = [repr(self), *(shown(note, 500) for note in self.opened.notes)]
        if self.choice is not None:
            lines.append(self.choice.why)
        text = "".join(f"<p>{escape(line)}</p>" for line in lines)
        return text if self.comparison is None else text + self.comparison._repr_html_()

    @property
    def opened(self) -> EncodedTable:
        """The rows in memory, the encoding of their columns, and notes on rows and columns."""
        return self.study_source.opened

    @property
    def rows(self) -> AnyTable:
        """All rows: a table in memory, or a partitioned table."""
        return self.study_source.rows

    def complete(self) -> None:
        """Remove the checkpoint, if there is one."""
        self.study_source.complete()

    # --- checking -------------------------------------------------------------------------------

    def check(self) -> DataChecks:
        """Check the data before modelling, without fitting a model.

        The checks look for columns that reveal the class (leaks), sentinel values, identifiers,
        groups of rows that belong together, duplicate rows and columns, drift between the first and
        the last rows, and other defects. See the guide on data checks for each rule.

        Returns
        -------
        DataChecks
            Findings, the most severe first.

        Examples
        --------
        >>> import discriminant as dd
        >>> from sklearn.datasets import load_wine
        >>> wine = load_wine(as_frame=True)
        >>> table = wine.data.assign(cultivar=wine.target)
        >>> table["code"] = 10 - 2 * table["cultivar"]
        >>> checks = dd.study(table, target="cultivar").check()
        >>> [(found["severity"], found["title"]) for found in checks.findings]
        [('stop', 'Leak: code')]
        """
        if self._checks is None:
            self._checks = check_source(
                self.study_source, target=self.target, fold=self._fold, seed=self.seed
            )
        return self._checks

    # --- comparing ------------------------------------------------------------------------------

    def compare(
        self, models: Any = None, *, most: int = _MAX_ROWS, repeats: int | None = None
    ) -> Comparison:
        """Compare models on the same folds.

        Parameters
        ----------
        models : list of str, 'all', or {name: classifier}, optional
            Names of candidates, all candidates (see `study.names`), or classifiers of your own.
            Default: the candidates that the catalogue marks as default.
        most : int
            Largest number of rows of each training set to which models that need rows are fitted.
            If such models are fitted to a sample, a note in the result states this. Models based on
            moments are always fitted to all rows.
        repeats : int, optional
            How often the rows are divided into folds; measures are means over the divisions. After
            the first, only models that may be selected are compared again. Default: 3 for fewer
            than 250 rows, else 1; 1 if rows are held out by a column.

        Returns
        -------
        Comparison
            Measures of every model on held-out rows.
        """
        if repeats is not None and not (isinstance(repeats, int | np.integer) and repeats >= 1):
            raise OptionError.of("repeats", repeats, "a whole number, 1 or more")
        study_models = resolve_models(models, self.class_order)
        run = self._get_run(most)
        run.repeats = None if repeats is None else int(repeats)
        self.comparison = run.compare(study_models, distinct=models is None)
        self.choice = None
        self._fitted_models = {}  # the same name may now stand for another model
        self._models = {model.name: model for model in study_models}
        return self.comparison

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all candidates."""
        return tuple(candidate_models())

    @property
    def moments(self) -> ClassMoments | None:
        """Moments of all rows; None if there are too many features, so that models use rows."""
        return self._get_run().moments

    def choose(
        self,
        name: str | None = None,
        *,
        by: str = "log_loss",
        rule: str = "least",
        select: str = "auto",
    ) -> Choice:
        """Select a model, by name or by its measures on held-out rows.

        Costs and a reject option that were set by `decide` remain set.

        Parameters
        ----------
        name : str, optional
            Model to select; default: by criterion and rule.
        by : {'log_loss', 'error', 'brier'}
            Criterion.
        rule : {'least', 'one_se'}
            'least': the best; 'one_se': the simplest model within one standard error of the best.
        select : {'auto', 'single', 'pool'}
            'auto': the pool, a weighted mean of the probabilities of the models; but a single model
            replaces it if its criterion, corrected for the selection among the models, is at most
            1% worse, and if it has at least half of the weight in the pool. 'single': never the
            pool. 'pool': the pool.

        Returns
        -------
        Choice
            The selected model, and the reason.
        """
        comparison = self._get_comparison()
        if name is None:
            choice = comparison.choose(by, rule, select=select)
        else:
            choice = comparison.choose_named(name)
        weighs = any(option is not None for option in self.options.values())
        if weighs and comparison[choice.name].facts["brier"] is None:
            raise StudyError.no_decision_probabilities(choice.name)
        self.choice = choice
        return choice

    # --- using ------------------------------------------------------------------------------------

    def model(self, name: str | None = None) -> Encoded:
        """Return a model fitted to all rows, by default the selected model.

        The model accepts tables.
        """
        if name is None:
            name = self._get_choice().name
        if name not in self._fitted_models:
            if name == POOL:
                self._fitted_models[name] = self._fit_pool()
            else:
                model = self._models.get(name) or resolve_models([name], self.class_order)[0]
                self._fitted_models[name] = self._fit(model)
            if self.study_source.partitioned is None:  # else the rows are not in memory
                self._fitted_models[name].training_rows_ = self._training_sketch
                self._fitted_models[name].training_range_ = self._training_range
        return self._fitted_models[name]

    @cached_property
    def _training_sketch(self) -> Floats:
        return row_sketch(self.opened.table.features)

    @cached_property
    def _training_range(self) -> Floats:
        return feature_range(self.opened.table.features)

    def fitted(self, model: Any) -> Encoded:
        """Fit a classifier of your own to all rows. The result accepts tables."""
        return self._fit(StudyModel.of(type(model).__name__, model))

    def decide(self, cost: Any = None, reject: Any = None, *, name: str | None = None) -> Decision:
        """Return the selected model with costs and a reject option.

        A report then shows the costs and the reject option.

        Parameters
        ----------
        cost : {decision: {class: cost}}, optional
            Cost of each decision for each true class.
        reject : float, optional
            Cost of rejecting a row, that is, of referring it to a person.
        name : str, optional
            Model to select first.
        """
        if name is not None:
            self.choose(name)
        model = self.model()
        if not gives_posterior(model):
            raise StudyError.no_probabilities(self._get_choice().name)
        self.check_decision(cost, reject)
        decision = Decision.of_fitted(model, cost=cost, reject=reject)
        self.options = {"cost": cost, "reject": reject}
        return decision

    def check_decision(self, cost: Any = None, reject: Any = None) -> None:
        """Raise an error if costs or a reject option are not valid."""
        if cost is not None:
            Costs.of(cost, self.rows.schema.labels)
        Reject.of(reject)

    def explain(self) -> str:
        """Return Markdown text on the features that separate the classes, and on data checks."""
        return explanation(self.facts(yardstick=False))

    def facts(
        self, *, title: str | None = None, command: str | None = None, yardstick: bool = True
    ) -> Facts:
        """Return the content of the report as a plain dictionary.

        With `yardstick`, scikit-learn's boosted trees are fitted for comparison.
        """
        self._with_yardstick = yardstick
        return report_facts(self, title=title, command=command)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        save: str | os.PathLike[str] | None = None,
        title: str | None = None,
        command: str | None = None,
        yardstick: bool = True,
    ) -> Facts:
        """Write the report as one HTML page; write the selected model too if `save` names a file.

        With `yardstick`, scikit-learn's boosted trees are fitted for comparison. Returns the facts
        of the report. The output paths are checked before any work.
        """
        self._with_yardstick = yardstick
        return write_report(self, Path(path), save=save, title=title, command=command)

    # --- inside -----------------------------------------------------------------------------------

    def _get_run(self, max_rows: int = _MAX_ROWS) -> ComparisonRun:
        if self._run is None:
            partitioned = self.study_source.partitioned
            self._run = ComparisonRun(
                self.rows,
                self._fold if partitioned is None else self.folds,
                self.seed,
                max_rows,
                self._progress,
                self.seconds,
                self.opened.encoding.missing == "marginal",
                self.folds if isinstance(self.folds, str) else None,
                group_column=self.groups,
                time_column=self.time_column,
            )
        self._run.max_rows = max_rows
        return self._run

    def _get_comparison(self) -> Comparison:
        return self.compare() if self.comparison is None else self.comparison

    def _comparison_section(self) -> ComparisonFacts:
        """Return the section on the comparison, with the learning curve."""
        comparison, choice = self._get_comparison(), self._get_choice()
        section, run = comparison.section(choice), self._get_run()
        if self._described is not comparison:
            self._described = comparison
            self._curve = learning_curve(run, comparison)
            leaks = leaking_columns(self.check().findings)
            columns = self.opened.encoding.columns
            models = list(self._models.values())
            self._without = compare_without(run, models, columns, leaks) if leaks else None
        if self._curve is not None:
            section["learning_curve"] = self._curve
        if self._without is not None:
            section["without"] = [self._without]
        return section

    @contextmanager
    def _boosted_trees(self) -> Iterator[Callable[[], YardstickFacts | None]]:
        """Fit boosted trees in another thread within a `with` block; yield a function to wait."""
        comparison, choice = self._get_comparison(), self._get_choice()
        if self._compared_with_trees is not comparison:
            self._compared_with_trees, self._yardstick = comparison, {}
        if not self._with_yardstick:
            yield lambda: None
        elif choice.name in self._yardstick:
            yield lambda: self._yardstick[choice.name]
        else:
            with start_boosted_trees(self._get_run(), comparison[choice.name]) as future:

                def wait() -> YardstickFacts | None:
                    if not future.done():
                        self._progress("boosted trees, for comparison", 0, 1)
                    self._yardstick[choice.name] = future.result()
                    return self._yardstick[choice.name]

                yield wait

    def _get_choice(self) -> Choice:
        return self.choose() if self.choice is None else self.choice

    def _fit_pool(self) -> Encoded:
        """Return the pool of the models of the comparison, each fitted to all rows."""
        members = self._get_comparison().members
        if not members:
            raise StudyError.no_pool()
        fitted = [(member.name, self.model(member.name).estimator_) for member in members]
        pool = Pool.of_fitted(fitted, [member.weight for member in members])
        return Encoded.of_fitted(pool, self.opened.encoding)

    def _fit(self, model: StudyModel) -> Encoded:
        run = self._get_run()
        estimator = run.unfitted(model)
        run.check(estimator)
        moments = run.moments
        with capture_warnings() as warnings:
            if model.moment_based and moments is not None and moments.has(estimator.detail):
                estimator.fit_moments(moments)
            elif not self._fit_to_partitions(estimator):
                self._fit_to_rows(estimator, model, run.final_rows(model))
        self.warnings += warnings
        return Encoded.of_fitted(estimator, self.opened.encoding)

    def _fit_to_partitions(self, model: Any) -> bool:
        """Fit a model to the partitioned table; return False if that is not possible."""
        table = self.study_source.partitioned
        if table is None or not supports_partitions(model, table):
            return False
        self._progress(f"fitting {type(model).__name__} to all rows", 0, 1)
        try:
            model.fit(table)
        except NeedsMemoryError:
            return False
        return True

    def _fit_to_rows(self, estimator: Any, model: StudyModel, most: int) -> None:
        """Fit an estimator to the rows in memory, which are all rows or a sample.

        If there are more than `most` rows, it is fitted to a sample of them.
        """
        table = self.opened.table
        if len(table) < len(self.rows):
            warn(SampledRowsWarning.of(type(estimator).__name__, len(table), len(self.rows)))
        elif most < len(table):
            warn(SampledRowsWarning.of_expanded(model.title, most, len(table)))
        if most < len(table):
            generator = np.random.default_rng(self.seed)
            sampled = sample_rows(np.arange(len(table)), most, generator)
            rare = np.flatnonzero(~np.isin(table.codes, table.codes[sampled]))
            table = table.take(np.union1d(sampled, rare))  # with every class
        rows = _frame(table.schema.features, table.features)
        fit_with_weight(estimator, rows, table.schema.labels[table.codes], table.weight)


def _frame(names: Sequence[str], features: Any) -> Any:
    import pyarrow as pa

    columns = getattr(features, "columns", None)
    if columns is None:
        columns = [np.ascontiguousarray(column) for column in np.asarray(features).T]
    return pa.table(dict(zip(names, columns, strict=True)))
