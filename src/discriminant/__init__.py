"""Linear classification: read the data once; every linear classifier after that is algebra."""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names again, for type checkers and editors
    from discriminant.assessment.auc import auc as auc, compare_auc as compare_auc
    from discriminant.assessment.evaluation import assess as assess, evaluate as evaluate
    from discriminant.assessment.homogeneity import box_m as box_m
    from discriminant.assessment.hotelling import hotelling as hotelling
    from discriminant.assessment.manova import manova as manova
    from discriminant.assessment.measures import Assessment as Assessment
    from discriminant.assessment.model_comparison import compare_models as compare_models
    from discriminant.assessment.named_intervals import interval_over as interval_over
    from discriminant.assessment.resampling import (
        cross_validate as cross_validate,
        leave_one_out as leave_one_out,
        rda_grid as rda_grid,
    )
    from discriminant.assessment.roc import (
        average_precision as average_precision,
        precision_recall as precision_recall,
        roc as roc,
    )
    from discriminant.assessment.selection import select_features as select_features
    from discriminant.assessment.steps import ranking as ranking
    from discriminant.assessment.stepwise import stepwise as stepwise
    from discriminant.assessment.top_k import TopK as TopK
    from discriminant.decision.actions import OUTLIER as OUTLIER, REJECT as REJECT
    from discriminant.engines.engine import moments as moments
    from discriminant.engines.opening import rows as rows
    from discriminant.engines.sql import sql as sql
    from discriminant.estimators.basis import Basis as Basis
    from discriminant.estimators.decision import Decision as Decision
    from discriminant.estimators.easy_ensemble import EasyEnsemble as EasyEnsemble
    from discriminant.estimators.encoded import Encoded as Encoded
    from discriminant.estimators.fisher import Fisher as Fisher
    from discriminant.estimators.fusion import Fusion as Fusion
    from discriminant.estimators.gaussian import (
        LDA as LDA,
        QDA as QDA,
        NearestMean as NearestMean,
    )
    from discriminant.estimators.glm import GLM as GLM, LogLinear as LogLinear
    from discriminant.estimators.imbalance import (
        Resampled as Resampled,
        Reweighted as Reweighted,
    )
    from discriminant.estimators.imbalance_compared import (
        compare_imbalance as compare_imbalance,
        imbalance_ways as imbalance_ways,
    )
    from discriminant.estimators.label_tree import LabelTree as LabelTree
    from discriminant.estimators.laplace import LaplaceNB as LaplaceNB
    from discriminant.estimators.least_squares import LeastSquares as LeastSquares
    from discriminant.estimators.logistic import Logistic as Logistic
    from discriminant.estimators.many_classes import (
        OneVsOne as OneVsOne,
        OneVsRest as OneVsRest,
        OutputCodes as OutputCodes,
    )
    from discriminant.estimators.perceptron import Perceptron as Perceptron
    from discriminant.estimators.regression import LinearRegression as LinearRegression
    from discriminant.estimators.regularised import RDA as RDA
    from discriminant.estimators.svm import SVM as SVM
    from discriminant.export import export as export
    from discriminant.models.label_tree.propensity import inverse_propensity as inverse_propensity
    from discriminant.moments.class_moments import ClassMoments as ClassMoments
    from discriminant.moments.ranking import Ranking as Ranking
    from discriminant.posterior import estimated_prior as estimated_prior
    from discriminant.report.plots.boundary import plot_boundary as plot_boundary
    from discriminant.report.plots.confusion import plot_confusion as plot_confusion
    from discriminant.report.plots.masking import plot_masking as plot_masking
    from discriminant.report.plots.perceptron import plot_perceptron_path as plot_perceptron_path
    from discriminant.report.plots.projection import plot_projection as plot_projection
    from discriminant.report.plots.ranking import plot_roc as plot_roc
    from discriminant.report.plots.reject import plot_reject as plot_reject
    from discriminant.report.plots.surface import plot_surface as plot_surface
    from discriminant.store import load as load, save as save
    from discriminant.study import study as study
    from discriminant.study.lazy import predict_frame as predict_frame
    from discriminant.study.scoring import predict_file as predict_file
    from discriminant.table.opening import open_source as open_source
    from discriminant.table.xmc import (
        read_svmlight as read_svmlight,
        read_xmc as read_xmc,
        xmc_blocks as xmc_blocks,
    )
    from discriminant.table.xmc_writing import (
        write_svmlight as write_svmlight,
        write_xmc as write_xmc,
    )

__version__ = "0.1.0.dev0"

_HOMES = {
    "LDA": "estimators.gaussian",
    "QDA": "estimators.gaussian",
    "RDA": "estimators.regularised",
    "NearestMean": "estimators.gaussian",
    "Fisher": "estimators.fisher",
    "LeastSquares": "estimators.least_squares",
    "LinearRegression": "estimators.regression",
    "LaplaceNB": "estimators.laplace",
    "GLM": "estimators.glm",
    "LogLinear": "estimators.glm",
    "Logistic": "estimators.logistic",
    "Basis": "estimators.basis",
    "Perceptron": "estimators.perceptron",
    "SVM": "estimators.svm",
    "LabelTree": "estimators.label_tree",
    "Decision": "estimators.decision",
    "Fusion": "estimators.fusion",
    "Encoded": "estimators.encoded",
    "OneVsRest": "estimators.many_classes",
    "OneVsOne": "estimators.many_classes",
    "OutputCodes": "estimators.many_classes",
    "Reweighted": "estimators.imbalance",
    "Resampled": "estimators.imbalance",
    "EasyEnsemble": "estimators.easy_ensemble",
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
