"""Every error and warning of the package, each built from facts.

A message names the place, the number and the way out. Callers pass facts to a class method; the
sentences live here. Rows are counted from 0, as Python does, and their values are never printed,
except a text that stands where a number should be.
"""

from discriminant.errors.answers import (
    LabelError as LabelError,
    OptionError as OptionError,
    PriorError as PriorError,
    TooFewRowsError as TooFewRowsError,
    WeightError as WeightError,
)
from discriminant.errors.balancing import (
    ClassWeightError as ClassWeightError,
    ResamplingError as ResamplingError,
    WayLeftOutWarning as WayLeftOutWarning,
)
from discriminant.errors.base import (
    DiscriminantError as DiscriminantError,
    DiscriminantWarning as DiscriminantWarning,
    InputError as InputError,
    carried as carried,
    gathered as gathered,
    kept as kept,
    listing as listing,
    speaking as speaking,
    tell as tell,
)
from discriminant.errors.coding import (
    CodeError as CodeError,
    CouplingWarning as CouplingWarning,
    RepeatedColumnsWarning as RepeatedColumnsWarning,
)
from discriminant.errors.columns import (
    BasisError as BasisError,
    CollinearWarning as CollinearWarning,
    ConstantColumnWarning as ConstantColumnWarning,
    ConstantInClassWarning as ConstantInClassWarning,
    SeparatingColumnWarning as SeparatingColumnWarning,
)
from discriminant.errors.deciding import (
    CostError as CostError,
    FusionError as FusionError,
    NeverRejectsWarning as NeverRejectsWarning,
    NoClassDecidedWarning as NoClassDecidedWarning,
    PosteriorError as PosteriorError,
    SharedColumnsWarning as SharedColumnsWarning,
    ThresholdError as ThresholdError,
)
from discriminant.errors.edges import (
    BoundaryWarning as BoundaryWarning,
    NoEstimateError as NoEstimateError,
    NoPenaltyWarning as NoPenaltyWarning,
)
from discriminant.errors.encoding import (
    BadNumberError as BadNumberError,
    CategoryError as CategoryError,
    ColumnKindError as ColumnKindError,
    EmptyColumnError as EmptyColumnError,
    InfiniteCellError as InfiniteCellError,
    LookalikeWarning as LookalikeWarning,
    MissingCellError as MissingCellError,
    NoFeaturesError as NoFeaturesError,
    TargetError as TargetError,
    UnreadTextWarning as UnreadTextWarning,
)
from discriminant.errors.export import ExportError as ExportError
from discriminant.errors.files import (
    FileError as FileError,
    check_file_name as check_file_name,
)
from discriminant.errors.fitting import (
    ClassMissingWarning as ClassMissingWarning,
    InferenceError as InferenceError,
    MaskedClassWarning as MaskedClassWarning,
    NoPosteriorWarning as NoPosteriorWarning,
    NotConvergedWarning as NotConvergedWarning,
    NotSeparatedWarning as NotSeparatedWarning,
    ScarceRowsWarning as ScarceRowsWarning,
    SeparationWarning as SeparationWarning,
    ShrinkageChosenWarning as ShrinkageChosenWarning,
)
from discriminant.errors.label_tree import (
    HierarchyError as HierarchyError,
    LabelSetError as LabelSetError,
    LabelTreeError as LabelTreeError,
    LongRowsWarning as LongRowsWarning,
    UnlabelledRowsWarning as UnlabelledRowsWarning,
    UnseenLabelsWarning as UnseenLabelsWarning,
)
from discriminant.errors.options import UnknownOptionError as UnknownOptionError
from discriminant.errors.parts import (
    CheckpointError as CheckpointError,
    CheckpointWarning as CheckpointWarning,
    DatabaseError as DatabaseError,
    EngineError as EngineError,
    NeedsMemoryError as NeedsMemoryError,
    PartSchemaError as PartSchemaError,
    SourceChangedError as SourceChangedError,
)
from discriminant.errors.plotting import (
    LibraryMissingError as LibraryMissingError,
    PlotError as PlotError,
)
from discriminant.errors.ranking import (
    ComparisonError as ComparisonError,
    NoSpreadWarning as NoSpreadWarning,
    RankedLabelsError as RankedLabelsError,
    ScoreError as ScoreError,
)
from discriminant.errors.responses import (
    OffsetError as OffsetError,
    ResponseError as ResponseError,
)
from discriminant.errors.rows import (
    CellTypeError as CellTypeError,
    ColumnNamesError as ColumnNamesError,
    ColumnTypeError as ColumnTypeError,
    ExtraColumnsWarning as ExtraColumnsWarning,
    InfiniteValueError as InfiniteValueError,
    LargeIntegerWarning as LargeIntegerWarning,
    MissingValueError as MissingValueError,
    NamesUncheckedWarning as NamesUncheckedWarning,
    ShapeError as ShapeError,
    TextInNumberError as TextInNumberError,
)
from discriminant.errors.store import (
    StateError as StateError,
    StoredFileError as StoredFileError,
    WriteError as WriteError,
)
from discriminant.errors.studying import (
    CommandError as CommandError,
    CommandWarning as CommandWarning,
    DrawnRowsWarning as DrawnRowsWarning,
    ModelLeftOutWarning as ModelLeftOutWarning,
    OutOfMemoryError as OutOfMemoryError,
    StudyError as StudyError,
)
from discriminant.errors.sums import (
    MomentsMismatchError as MomentsMismatchError,
    PrecisionLostError as PrecisionLostError,
    SitesError as SitesError,
)
from discriminant.errors.xmc import (
    FirstFeatureWarning as FirstFeatureWarning,
    MoreFeaturesWarning as MoreFeaturesWarning,
    SparseFileError as SparseFileError,
)
