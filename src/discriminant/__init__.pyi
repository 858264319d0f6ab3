"""Public names of the package. Written by tests/fence/stub.py."""

from discriminant.assessment.auc import (
    auc as auc,
    compare_auc as compare_auc,
)
from discriminant.assessment.evaluation import (
    assess as assess,
    evaluate as evaluate,
)
from discriminant.assessment.homogeneity import (
    box_m as box_m,
)
from discriminant.assessment.hotelling import (
    hotelling as hotelling,
)
from discriminant.assessment.manova import (
    manova as manova,
)
from discriminant.assessment.measures import (
    Assessment as Assessment,
)
from discriminant.assessment.model_comparison import (
    compare_models as compare_models,
)
from discriminant.assessment.named_intervals import (
    interval_over as interval_over,
)
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
from discriminant.assessment.selection import (
    select_features as select_features,
)
from discriminant.assessment.steps import (
    ranking as ranking,
)
from discriminant.assessment.stepwise import (
    stepwise as stepwise,
)
from discriminant.assessment.top_k import (
    TopK as TopK,
)
from discriminant.decision.actions import (
    OUTLIER as OUTLIER,
    REJECT as REJECT,
)
from discriminant.engines.engine import (
    moments as moments,
)
from discriminant.engines.opening import (
    rows as rows,
)
from discriminant.engines.sql import (
    sql as sql,
)
from discriminant.estimators.basis import (
    Basis as Basis,
)
from discriminant.estimators.decision import (
    Decision as Decision,
)
from discriminant.estimators.easy_ensemble import (
    EasyEnsemble as EasyEnsemble,
)
from discriminant.estimators.encoded import (
    Encoded as Encoded,
)
from discriminant.estimators.fisher import (
    Fisher as Fisher,
)
from discriminant.estimators.fusion import (
    Fusion as Fusion,
)
from discriminant.estimators.gaussian import (
    LDA as LDA,
    NearestMean as NearestMean,
    QDA as QDA,
)
from discriminant.estimators.glm import (
    GLM as GLM,
    LogLinear as LogLinear,
)
from discriminant.estimators.imbalance import (
    Resampled as Resampled,
    Reweighted as Reweighted,
)
from discriminant.estimators.imbalance_compared import (
    compare_imbalance as compare_imbalance,
    imbalance_ways as imbalance_ways,
)
from discriminant.estimators.label_tree import (
    LabelTree as LabelTree,
)
from discriminant.estimators.laplace import (
    LaplaceNB as LaplaceNB,
)
from discriminant.estimators.least_squares import (
    LeastSquares as LeastSquares,
)
from discriminant.estimators.logistic import (
    Logistic as Logistic,
)
from discriminant.estimators.many_classes import (
    OneVsOne as OneVsOne,
    OneVsRest as OneVsRest,
    OutputCodes as OutputCodes,
)
from discriminant.estimators.perceptron import (
    Perceptron as Perceptron,
)
from discriminant.estimators.regression import (
    LinearRegression as LinearRegression,
)
from discriminant.estimators.regularised import (
    RDA as RDA,
)
from discriminant.estimators.svm import (
    SVM as SVM,
)
from discriminant.export import (
    export as export,
)
from discriminant.models.label_tree.propensity import (
    inverse_propensity as inverse_propensity,
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
from discriminant.report.plots.confusion import (
    plot_confusion as plot_confusion,
)
from discriminant.report.plots.masking import (
    plot_masking as plot_masking,
)
from discriminant.report.plots.perceptron import (
    plot_perceptron_path as plot_perceptron_path,
)
from discriminant.report.plots.projection import (
    plot_projection as plot_projection,
)
from discriminant.report.plots.ranking import (
    plot_roc as plot_roc,
)
from discriminant.report.plots.reject import (
    plot_reject as plot_reject,
)
from discriminant.report.plots.surface import (
    plot_surface as plot_surface,
)
from discriminant.store import (
    load as load,
    save as save,
)
from discriminant.study import (
    study as study,
)
from discriminant.study.lazy import (
    predict_frame as predict_frame,
)
from discriminant.study.scoring import (
    predict_file as predict_file,
)
from discriminant.table.opening import (
    open_source as open_source,
)
from discriminant.table.xmc import (
    read_svmlight as read_svmlight,
    read_xmc as read_xmc,
    xmc_blocks as xmc_blocks,
)
from discriminant.table.xmc_writing import (
    write_svmlight as write_svmlight,
    write_xmc as write_xmc,
)

__version__: str
__all__: list[str]
