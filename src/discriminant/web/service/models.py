"""The models of a service: loaded from files, and loaded again when a file changes.

A file that changes is loaded beside the model in use, which is then replaced in one step. Requests
in progress complete with the model they started with, and no request waits. If a file cannot be
loaded, or disappears, the model stays in use, and the log states this.

No file can run code: a model file contains numbers and texts only (`store`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discriminant.errors import CommandError, DiscriminantError
from discriminant.web.request_log import JsonLog
from discriminant.web.responses import HttpError

if TYPE_CHECKING:
    from discriminant.web.service.predictions import Predictor


@dataclass(frozen=True, slots=True, eq=False)
class ServedModel:
    """A model that serves requests."""

    name: str
    path: str
    kind: str  # class of the model, such as LDA
    digest: str  # SHA-256 of the file, which identifies the version
    predictor: Predictor


def model_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the path of each model by its name, the stem of the file.

    >>> model_names(["models/loans.model", "iris.model"])
    {'loans': 'models/loans.model', 'iris': 'iris.model'}
    """
    names: dict[str, str] = {}
    for path in paths:
        name = Path(path).stem
        if name in names:
            raise CommandError(
                f"{names[name]} and {path} would both be served as '{name}'. Rename one of them."
            )
        if not name or not name.isprintable() or "/" in name or "\\" in name:
            raise CommandError(f"{path}: the name of the file cannot be the name of a model.")
        names[name] = path
    return names


def load_model(name: str, path: str) -> ServedModel:
    """Load a model and make it ready to predict."""
    from discriminant import store
    from discriminant.web.service.predictions import Predictor, SparsePredictor

    digest = str(store.look(path)["sha256"])
    model = store.load(path)
    if not hasattr(model, "predict"):
        raise CommandError.not_a_model(path, type(model).__name__)
    if hasattr(model, "write_predictions") and not hasattr(model, "feature_names_in_"):
        return ServedModel(name, path, type(model).__name__, digest, SparsePredictor(model))
    model, array = with_columns(model)
    predictor = Predictor(model, array=array)
    kind = type(predictor.encoded.estimator_).__name__
    return ServedModel(name, path, kind, digest, predictor)


def with_columns(model: Any) -> tuple[Any, bool]:
    """Return the model with an encoding of its columns, and whether it was fitted without names.

    The columns of a model that was fitted to an array are called x0, x1, ..., in their order.
    """
    from discriminant.assessment.evaluate import encoding_of
    from discriminant.estimators.meta.encoded import Encoded
    from discriminant.study.predict import with_encoding
    from discriminant.table.blocks import numbered_names
    from discriminant.table.encoding import Column, Encoding

    encoding = encoding_of(model)
    if encoding is not None and (encoding.named or encoding.formula is not None):
        return model, False
    if encoding is None and getattr(model, "feature_names_in_", None) is not None:
        return with_encoding(model)[0], False
    names = numbered_names(int(model.n_features_in_))
    columns = tuple(Column(name, "number", features=(name,)) for name in names)
    return Encoded.of_fitted(model, Encoding(columns, named=False)), True


class ModelRegistry:
    """The models of a service by name."""

    def __init__(
        self,
        paths: Mapping[str, str],
        log: JsonLog,
        *,
        changed: Callable[[ServedModel], None] = lambda model: None,
    ) -> None:
        self.paths = dict(paths)
        self._models: dict[str, ServedModel] = {}
        self._identities: dict[str, Any] = {}
        self._log = log
        self._changed = changed

    @property
    def ready(self) -> bool:
        """Whether all models are loaded."""
        return len(self._models) == len(self.paths)

    def is_ready(self, name: str) -> bool:
        """Return whether a model is loaded; an unknown name is an error."""
        if name not in self.paths:
            raise self._unknown()
        return name in self._models

    def model(self, name: str) -> ServedModel:
        """Return a model by name."""
        served = self._models.get(name)
        if served is not None:
            return served
        if name not in self.paths:
            raise self._unknown()
        raise HttpError(
            503,
            "NotReadyError",
            f"The model '{name}' is being loaded. Send the request again after a second.",
            headers=[(b"retry-after", b"1")],
        )

    def only(self) -> ServedModel:
        """Return the only model of the service; several models are an error."""
        if len(self.paths) == 1:
            return self.model(next(iter(self.paths)))
        raise HttpError(
            400,
            "ModelNameError",
            f"The service has {len(self.paths)} models ({', '.join(self.paths)}). Name one in the "
            "path: /models/NAME/predict.",
        )

    def load_all(self) -> None:
        """Load every model; if one cannot be loaded, the service does not start."""
        for name in self.paths:
            self._load(name)

    def _load(self, name: str) -> None:
        from discriminant.table.files.formats import FileIdentity

        path = self.paths[name]
        identity = FileIdentity.current(path)
        served = load_model(name, path)
        self._changed(served)
        self._models[name] = served
        self._identities[name] = identity
        self._log.write("info", "model_loaded", model=name, kind=served.kind, sha256=served.digest)

    async def watch(self, executor: Executor, seconds: float) -> None:
        """Load each model again whenever its file changes."""
        from discriminant.table.files.formats import FileIdentity

        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            for name, path in self.paths.items():
                try:
                    identity = FileIdentity.current(path)
                except OSError:
                    identity = None
                if identity == self._identities.get(name):
                    continue
                self._identities[name] = identity  # a failed load is tried again after a change
                if identity is None:
                    self._log.write("warning", "model_file_absent", model=name)
                    continue
                try:
                    await loop.run_in_executor(executor, self._load, name)
                except (DiscriminantError, OSError) as error:
                    self._log.write(
                        "error", "model_not_loaded", model=name, kind=type(error).__name__
                    )

    def _unknown(self) -> HttpError:
        known = ", ".join(self.paths)
        return HttpError(
            404, "ModelNameError", f"There is no model of this name. The models are: {known}."
        )
