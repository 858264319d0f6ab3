"""Linear classification: read the data once; every linear classifier after that is algebra."""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import Any

from discriminant import catalog

__version__ = "0.1.0.dev0"

_HOMES = {
    **catalog.HOMES,
    "compare_imbalance": "estimators.imbalance_compared",
    "imbalance_ways": "estimators.imbalance_compared",
    "REJECT": "decision.actions",
    "OUTLIER": "decision.actions",
    "estimated_prior": "posterior",
    "open_source": "table.opening",
    "read_xmc": "table.xmc",
    "xmc_blocks": "table.xmc",
    "write_xmc": "table.xmc_writing",
    "read_svmlight": "table.xmc",
    "write_svmlight": "table.xmc_writing",
    "inverse_propensity": "models.label_tree.propensity",
    "cross_validate": "assessment.resampling",
    "leave_one_out": "assessment.resampling",
    "rda_grid": "assessment.resampling",
    "assess": "assessment.evaluation",
    "evaluate": "assessment.evaluation",
    "Assessment": "assessment.measures",
    "interval_over": "assessment.named_intervals",
    "TopK": "assessment.top_k",
    "manova": "assessment.manova",
    "box_m": "assessment.homogeneity",
    "hotelling": "assessment.hotelling",
    "stepwise": "assessment.stepwise",
    "auc": "assessment.auc",
    "compare_auc": "assessment.auc",
    "roc": "assessment.roc",
    "precision_recall": "assessment.roc",
    "average_precision": "assessment.roc",
    "compare_models": "assessment.model_comparison",
    "Ranking": "moments.ranking",
    "ranking": "assessment.steps",
    "select_features": "assessment.selection",
    "plot_boundary": "report.plots.boundary",
    "plot_projection": "report.plots.projection",
    "plot_roc": "report.plots.ranking",
    "plot_confusion": "report.plots.confusion",
    "plot_surface": "report.plots.surface",
    "plot_masking": "report.plots.masking",
    "plot_reject": "report.plots.reject",
    "plot_perceptron_path": "report.plots.perceptron",
    "save": "store",
    "load": "store",
    "ClassMoments": "moments.class_moments",
    "moments": "engines.engine",
    "predict_frame": "study.lazy",
    "rows": "engines.opening",
    "sql": "engines.sql",
    "export": "export",
    "study": "study",
    "predict_file": "study.scoring",
}
__all__ = [*_HOMES]

# Rooms that share their name with a function. Loaded now, while they are next to nothing, they do
# not take that name later: `discriminant.moments` is the function, whatever else is imported.
for _room in ("export", "moments", "study"):
    import_module(f"discriminant.{_room}")
    globals().pop(_room)


def __getattr__(name: str) -> Any:
    """Everything is imported when it is first named, so that `import discriminant` is quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'discriminant' has no attribute {name!r}")
    found = getattr(import_module(f"discriminant.{_HOMES[name]}"), name)
    if isfunction(found):
        from discriminant.errors.foreign_options import named_options

        found = named_options(found)
        found.__module__ = __name__  # where pickle finds it
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted(__all__)
