"""Public names of the package. Written by tests/fence/stub.py."""

from discriminant.assessment.assessment import (
    Assessment as Assessment,
)
from discriminant.assessment.evaluate import (
    assess as assess,
    evaluate as evaluate,
)
from discriminant.assessment.inference.contrasts_and_nested_fits import (
    compare_fits as compare_fits,
)
from discriminant.assessment.inference.manova import (
    manova as manova,
)
from discriminant.assessment.inference.mean_and_covariance_tests import (
    box_m as box_m,
    hotelling as hotelling,
)
from discriminant.assessment.intervals import (
    interval_over as interval_over,
)
from discriminant.assessment.parameter_count import (
    count_parameters as count_parameters,
)
from discriminant.assessment.ranking.auc import (
    auc as auc,
    compare_auc as compare_auc,
)
from discriminant.assessment.ranking.roc import (
    average_precision as average_precision,
    precision_recall as precision_recall,
    ranking as ranking,
    roc as roc,
)
from discriminant.assessment.resampling.compare import (
    compare_models as compare_models,
)
from discriminant.assessment.resampling.cross_validate import (
    cross_validate as cross_validate,
    leave_one_out as leave_one_out,
    rda_grid as rda_grid,
)
from discriminant.assessment.selection.greedy_feature_selection import (
    select_features as select_features,
)
from discriminant.assessment.selection.stepwise import (
    stepwise as stepwise,
)
from discriminant.assessment.smallest_change import (
    smallest_change as smallest_change,
)
from discriminant.assessment.standardised_coefficients import (
    importance as importance,
)
from discriminant.decision.actions import (
    OUTLIER as OUTLIER,
    REJECT as REJECT,
)
from discriminant.engines.dispatch import (
    moments as moments,
    rows as rows,
)
from discriminant.engines.sql import (
    sql as sql,
)
from discriminant.estimators.basis import (
    Basis as Basis,
)
from discriminant.estimators.gaussian.fisher import (
    Fisher as Fisher,
)
from discriminant.estimators.gaussian.lda_qda import (
    LDA as LDA,
    NearestMean as NearestMean,
    QDA as QDA,
)
from discriminant.estimators.gaussian.mda import (
    MDA as MDA,
)
from discriminant.estimators.gaussian.rda import (
    RDA as RDA,
)
from discriminant.estimators.gaussian.robust import (
    RobustLDA as RobustLDA,
    RobustQDA as RobustQDA,
)
from discriminant.estimators.gaussian.sda import (
    SDA as SDA,
)
from discriminant.estimators.gaussian.shrunken_centroids import (
    ShrunkenCentroids as ShrunkenCentroids,
)
from discriminant.estimators.gaussian.sparse_lda import (
    SparseLDA as SparseLDA,
)
from discriminant.estimators.laplace_naive_bayes import (
    LaplaceNB as LaplaceNB,
)
from discriminant.estimators.linear.bayesian_logistic import (
    BayesianLogistic as BayesianLogistic,
)
from discriminant.estimators.linear.glm import (
    GLM as GLM,
    LogLinear as LogLinear,
)
from discriminant.estimators.linear.least_squares import (
    LeastSquares as LeastSquares,
)
from discriminant.estimators.linear.linear_regressor import (
    LinearRegression as LinearRegression,
)
from discriminant.estimators.linear.logistic import (
    Logistic as Logistic,
)
from discriminant.estimators.linear.ordered import (
    OrderedLogistic as OrderedLogistic,
)
from discriminant.estimators.linear.perceptron import (
    Perceptron as Perceptron,
)
from discriminant.estimators.linear.svm import (
    SVM as SVM,
)
from discriminant.estimators.meta.calibrated import (
    Calibrated as Calibrated,
)
from discriminant.estimators.meta.compare_imbalance import (
    compare_imbalance as compare_imbalance,
    imbalance_strategies as imbalance_strategies,
    imbalance_ways as imbalance_ways,
)
from discriminant.estimators.meta.decision import (
    Decision as Decision,
)
from discriminant.estimators.meta.encoded import (
    Encoded as Encoded,
)
from discriminant.estimators.meta.fusion import (
    Fusion as Fusion,
)
from discriminant.estimators.meta.logit_adjustment import (
    LogitAdjusted as LogitAdjusted,
)
from discriminant.estimators.meta.multiclass import (
    OneVsOne as OneVsOne,
    OneVsRest as OneVsRest,
    OutputCodes as OutputCodes,
)
from discriminant.estimators.meta.pool import (
    Pool as Pool,
)
from discriminant.estimators.meta.prediction_sets import (
    PredictionSets as PredictionSets,
)
from discriminant.estimators.meta.resampling import (
    EasyEnsemble as EasyEnsemble,
    Resampled as Resampled,
    Reweighted as Reweighted,
)
from discriminant.export import (
    export as export,
)
from discriminant.extreme.label_tree import (
    LabelTree as LabelTree,
)
from discriminant.extreme.model.propensity import (
    inverse_propensity as inverse_propensity,
)
from discriminant.extreme.ranking_measures import (
    TopK as TopK,
)
from discriminant.moments.class_moments import (
    ClassMoments as ClassMoments,
)
from discriminant.moments.ranking import (
    Ranking as Ranking,
)
from discriminant.posterior import (
    estimated_prior as estimated_prior,
)
from discriminant.report.plots.boundary import (
    plot_boundary as plot_boundary,
)
from discriminant.report.plots.heatmaps import (
    plot_confusion as plot_confusion,
    plot_surface as plot_surface,
)
from discriminant.report.plots.lectures import (
    plot_masking as plot_masking,
    plot_perceptron_path as plot_perceptron_path,
)
from discriminant.report.plots.penalty_path import (
    plot_penalty_path as plot_penalty_path,
    plot_selection_path as plot_selection_path,
)
from discriminant.report.plots.projection import (
    plot_projection as plot_projection,
)
from discriminant.report.plots.reject import (
    plot_reject as plot_reject,
)
from discriminant.report.plots.roc import (
    plot_roc as plot_roc,
)
from discriminant.store import (
    load as load,
    save as save,
)
from discriminant.study import (
    study as study,
)
from discriminant.study.predict import (
    predict_file as predict_file,
    predict_frame as predict_frame,
)
from discriminant.table.files.svmlight import (
    read_svmlight as read_svmlight,
    read_xmc as read_xmc,
    write_svmlight as write_svmlight,
    write_xmc as write_xmc,
    xmc_blocks as xmc_blocks,
)
from discriminant.table.load import (
    open_source as open_source,
)

__version__: str
__all__: list[str]
