"""The application of the service: routes, limits, and the start and stop of its models.

This module imports nothing large. While the models are being loaded, the server answers the health
checks, and everything else with 503 and Retry-After. The endpoints that compute are in `endpoints`,
which is imported together with the models.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from discriminant.errors import InputError
from discriminant.web.request_log import JsonLog, RequestLog
from discriminant.web.responses import (
    App,
    Headers,
    HttpError,
    Receive,
    Response,
    Scope,
    Send,
    dump,
    respond,
)
from discriminant.web.security import CLOSE, Access, SecurityMiddleware, overloaded
from discriminant.web.service.models import ModelRegistry, ServedModel

if TYPE_CHECKING:
    from discriminant.web.service.endpoints import Endpoints

PUBLIC = frozenset({"/ping", "/health", "/v2/health/live", "/v2/health/ready"})
_INLINE_BYTES = 1 << 16  # larger bodies are processed in a thread
_QUEUE = 32  # requests that wait for a thread
_NOT_READY: Headers = [(b"retry-after", b"1")]


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Limits and times of a service."""

    max_rows: int = 100_000
    seconds: float = 30.0  # time limit of one prediction
    reload_seconds: float = 1.0  # time between two checks of the model files
    threads: int = 2


class Route(NamedTuple):
    """A route, and the endpoint that answers it."""

    name: str  # for logs and metrics
    method: str
    endpoint: str  # name of a method of `Endpoints`, or of `Service`
    takes_body: bool = False


_ROUTES = {
    "/v2": Route("/v2", "GET", "server_metadata"),
    "/v2/health/live": Route("/v2/health/live", "GET", "live"),
    "/v2/health/ready": Route("/v2/health/ready", "GET", "ready"),
    "/ping": Route("/ping", "GET", "ready"),
    "/health": Route("/health", "GET", "ready"),
    "/version": Route("/version", "GET", "version"),
    "/metrics": Route("/metrics", "GET", "metrics_text"),
    "/openapi.json": Route("/openapi.json", "GET", "openapi"),
    "/models": Route("/models", "GET", "list_models"),
    "/predict": Route("/predict", "POST", "predict", True),
    "/invocations": Route("/invocations", "POST", "invocations", True),
}
_MODEL_ROUTES = {  # by the parts of the path before and after the name of the model
    ("models", "predict"): Route("/models/{name}/predict", "POST", "predict", True),
    ("models", "invocations"): Route("/models/{name}/invocations", "POST", "invocations", True),
    ("v2/models", ""): Route("/v2/models/{name}", "GET", "model_metadata"),
    ("v2/models", "ready"): Route("/v2/models/{name}/ready", "GET", "model_ready"),
    ("v2/models", "infer"): Route("/v2/models/{name}/infer", "POST", "infer", True),
}


def find_route(path: str) -> tuple[Route | None, str | None]:
    """Return the route of a path, and the name of the model in the path.

    >>> find_route("/v2/models/iris/infer")[1], find_route("/models/../../etc/passwd/predict")
    ('iris', (None, None))
    """
    route = _ROUTES.get(path)
    if route is not None:
        return route, None
    parts = path.split("/")[1:]
    for prefix in ("models", "v2/models"):
        depth = prefix.count("/") + 1
        if "/".join(parts[:depth]) == prefix and len(parts) in (depth + 1, depth + 2):
            last = parts[depth + 1] if len(parts) == depth + 2 else ""
            route = _MODEL_ROUTES.get((prefix, last))
            return (route, parts[depth]) if route is not None else (None, None)
    return None, None


class Service:
    """ASGI application of the service."""

    def __init__(
        self, paths: Mapping[str, str], options: ServiceOptions, log: JsonLog, *, token: bool
    ) -> None:
        self.options = options
        self.log = log
        self.registry = ModelRegistry(paths, log, changed=self._model_changed)
        self.failure: BaseException | None = None  # why the models could not be loaded
        self.stop: Callable[[], None] = lambda: None  # stops the server
        self._token = token
        self._endpoints: Endpoints | None = None
        self._pool = ThreadPoolExecutor(options.threads, thread_name_prefix="predict")
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._in_threads = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request, or the start and stop of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        response = await self._respond(scope, receive)
        await respond(
            send, response.status, response.body, response.kind, list(response.headers or ())
        )

    # --- start and stop ---------------------------------------------------------------------------

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._tasks.append(asyncio.create_task(self._load_and_watch()))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for task in self._tasks:
            task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._loader.shutdown(wait=False, cancel_futures=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def _load_and_watch(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._loader, self.load)
        except Exception as error:
            self.failure = error
            self.stop()
            return
        await self.registry.watch(self._loader, self.options.reload_seconds)

    def load(self) -> None:
        """Import the endpoints and load the models."""
        from discriminant.web.service.endpoints import Endpoints

        self._endpoints = Endpoints(self.registry, self.options.max_rows, token=self._token)
        self.registry.load_all()
        gc.collect()
        gc.freeze()  # loaded objects are permanent, so that later garbage collections are short
        self.log.write("info", "ready", models=list(self.registry.paths))

    def _model_changed(self, model: ServedModel) -> None:
        assert self._endpoints is not None
        self._endpoints.model_changed(model)

    def observe(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request."""
        if self._endpoints is not None:
            self._endpoints.metrics.request(scope.get("route_name", "none"), status, seconds)

    # --- requests ---------------------------------------------------------------------------------

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        route, name = find_route(scope["path"])
        if route is None:
            message = "There is nothing at this path. /openapi.json lists the paths."
            raise HttpError(404, "PathError", message, headers=CLOSE)
        scope["route_name"] = route.name
        method = scope["method"]
        if method != route.method and not (method == "HEAD" and route.method == "GET"):
            message = f"Use {route.method} at this path."
            allow = (b"allow", route.method.encode())
            raise HttpError(405, "MethodError", message, headers=[allow, *CLOSE])
        body = await _read_body(receive) if route.takes_body else b""
        if route.endpoint in ("live", "ready", "model_ready"):
            return self._health(route.endpoint, name)
        endpoints = self._endpoints
        if endpoints is None:
            message = "The models are being loaded. Send the request again after a second."
            raise HttpError(503, "NotReadyError", message, headers=_NOT_READY)
        endpoint: Callable[..., Response] = getattr(endpoints, route.endpoint)
        try:
            if len(body) <= _INLINE_BYTES:
                return endpoint(scope, name, body)
            return await self._in_thread(endpoint, scope, name, body)
        except InputError as error:
            raise HttpError(400, type(error).__name__, str(error)) from None
        except MemoryError:
            message = "The request needs more memory than is available. Send fewer rows at a time."
            raise HttpError(413, "OutOfMemoryError", message) from None

    def _health(self, endpoint: str, name: str | None) -> Response:
        ready = self.registry.ready
        if endpoint == "live":
            return Response(dump({"live": True}))
        if endpoint == "model_ready":
            assert name is not None
            ready = self.registry.is_ready(name)
        if not ready:
            return Response(dump({"ready": False}), headers=_NOT_READY, status=503)
        return Response(dump({"ready": True}))

    async def _in_thread(
        self, endpoint: Callable[..., Response], scope: Scope, name: str | None, body: bytes
    ) -> Response:
        if self._in_threads >= self.options.threads + _QUEUE:
            raise overloaded()
        loop = asyncio.get_running_loop()
        self._in_threads += 1
        work = loop.run_in_executor(self._pool, endpoint, scope, name, body)
        work.add_done_callback(self._left_thread)
        try:
            return await asyncio.wait_for(asyncio.shield(work), self.options.seconds)
        except TimeoutError:
            work.add_done_callback(_retrieve)
            message = (
                f"The prediction took longer than {self.options.seconds:g} seconds. Send fewer "
                "rows at a time, or start the server with a larger --seconds."
            )
            raise HttpError(503, "TimeLimitError", message, headers=CLOSE) from None

    def _left_thread(self, work: Any) -> None:
        self._in_threads -= 1


def _retrieve(work: asyncio.Future[Any]) -> None:
    """Retrieve the exception of abandoned work, so that asyncio does not report it."""
    if not work.cancelled():
        work.exception()


async def _read_body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    parts = [body]
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, "DisconnectedError", "The client closed the connection.")
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def build_app(service: Service, access: Access) -> App:
    """Return the service with its access control and its log."""
    access = replace(access, public=PUBLIC)
    return RequestLog(SecurityMiddleware(service, access), service.log, service.observe)
