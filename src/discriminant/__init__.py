"""Linear classification: read the data once; every linear classifier after that is algebra."""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import Any

from discriminant import catalog

__version__ = "0.1.0.dev0"

_HOMES = {
    **catalog.HOMES,
    "compare_imbalance": "estimators.meta.compare_imbalance",
    "imbalance_strategies": "estimators.meta.compare_imbalance",
    "imbalance_ways": "estimators.meta.compare_imbalance",
    "REJECT": "decision.actions",
    "OUTLIER": "decision.actions",
    "estimated_prior": "posterior",
    "open_source": "table.load",
    "read_xmc": "table.files.svmlight",
    "xmc_blocks": "table.files.svmlight",
    "write_xmc": "table.files.svmlight",
    "read_svmlight": "table.files.svmlight",
    "write_svmlight": "table.files.svmlight",
    "inverse_propensity": "extreme.model.propensity",
    "cross_validate": "assessment.resampling.cross_validate",
    "leave_one_out": "assessment.resampling.cross_validate",
    "rda_grid": "assessment.resampling.cross_validate",
    "assess": "assessment.evaluate",
    "evaluate": "assessment.evaluate",
    "Assessment": "assessment.assessment",
    "importance": "assessment.standardised_coefficients",
    "count_parameters": "assessment.parameter_count",
    "smallest_change": "assessment.smallest_change",
    "interval_over": "assessment.intervals",
    "TopK": "extreme.ranking_measures",
    "manova": "assessment.inference.manova",
    "box_m": "assessment.inference.mean_and_covariance_tests",
    "hotelling": "assessment.inference.mean_and_covariance_tests",
    "stepwise": "assessment.selection.stepwise",
    "auc": "assessment.ranking.auc",
    "compare_auc": "assessment.ranking.auc",
    "roc": "assessment.ranking.roc",
    "precision_recall": "assessment.ranking.roc",
    "average_precision": "assessment.ranking.roc",
    "compare_models": "assessment.resampling.compare",
    "compare_fits": "assessment.inference.contrasts_and_nested_fits",
    "Ranking": "moments.ranking",
    "ranking": "assessment.ranking.roc",
    "select_features": "assessment.selection.greedy_feature_selection",
    "plot_boundary": "report.plots.boundary",
    "plot_projection": "report.plots.projection",
    "plot_roc": "report.plots.roc",
    "plot_confusion": "report.plots.heatmaps",
    "plot_surface": "report.plots.heatmaps",
    "plot_penalty_path": "report.plots.penalty_path",
    "plot_selection_path": "report.plots.penalty_path",
    "plot_masking": "report.plots.lectures",
    "plot_reject": "report.plots.reject",
    "plot_perceptron_path": "report.plots.lectures",
    "save": "store",
    "load": "store",
    "ClassMoments": "moments.class_moments",
    "moments": "engines.dispatch",
    "predict_frame": "study.predict",
    "rows": "engines.dispatch",
    "sql": "engines.sql",
    "export": "export",
    "study": "study",
    "predict_file": "study.predict",
}
__all__ = [*_HOMES]

# Packages that have the same name as a function are imported now, while that costs little, so that
# a later import does not replace the function: `discriminant.moments` is always the function.
for _package in ("export", "moments", "study"):
    import_module(f"discriminant.{_package}")
    globals().pop(_package)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import discriminant` is fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'discriminant' has no attribute {name!r}")
    value = getattr(import_module(f"discriminant.{_HOMES[name]}"), name)
    if isfunction(value):
        from discriminant.errors.foreign_options import named_options

        value = named_options(value)
        value.__module__ = __name__  # the module in which pickle looks for it
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return all public names, whether they are imported already or not."""
    return sorted(__all__)
