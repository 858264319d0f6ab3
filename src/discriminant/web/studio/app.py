"""The application of the studio: its page, its assets, and the routes of its workspace.

The page and its assets need no token, because they contain no data. Every other route needs the
header `Authorization: Bearer TOKEN`, which a page of another site cannot send. The token reaches
the page in the fragment of its URL, which browsers neither send to a server nor pass on as
referrer.

This module imports nothing large. Requests that need the workspace wait until it is imported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

import orjson

from discriminant.errors import DiscriminantError, InputError, OutOfMemoryError
from discriminant.redaction import is_address, masked
from discriminant.web.request_log import JsonLog, RequestLog
from discriminant.web.responses import (
    App,
    Headers,
    HttpError,
    Message,
    Receive,
    Response,
    Scope,
    Send,
    dump,
    respond,
)
from discriminant.web.security import CLOSE, Access, SecurityMiddleware

if TYPE_CHECKING:
    from discriminant.web.studio.workspace import Workspace

T = TypeVar("T")
_LOAD_SECONDS = 1.0  # time after which the workspace is imported even if no page has asked for it
_THREADS = 2  # requests that compute at a time
_TYPES = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
_MODULES = (
    *("studio", "start", "state", "server", "model", "worker", "space"),
    *("charts", "measures", "elements", "left_out"),
    *("panels/dials", "panels/decide", "panels/what_if", "panels/cohorts", "panels/columns"),
    "panels/export",
)
_ASSETS = {
    "/": ("discriminant.web.studio", "index.html"),
    "/assets/studio.css": ("discriminant.web.studio", "studio.css"),
    "/assets/icon.svg": ("discriminant.web.studio", "icon.svg"),
    "/assets/moments.js": ("discriminant.report", "moments.js"),
    **{f"/assets/{name}.js": ("discriminant.web.studio", f"{name}.js") for name in _MODULES},
}
_LECTURES = {f"/lectures/lecture_{n}.html": n for n in range(1, 6)}
PUBLIC = frozenset({*_ASSETS, *_LECTURES})
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    b"connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    b"frame-ancestors 'none'"
)
_PAGE_HEADERS: Headers = [(b"content-security-policy", _POLICY)]
_LECTURE_POLICY = b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_LECTURE_HEADERS: Headers = [(b"content-security-policy", _LECTURE_POLICY)]  # the page has the rest
_TABLE_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_JSON = 16 << 20  # bytes of a JSON body
_ACTIONS = ("density", "evaluate", "surface", "slices", "export", "drift", "code")


class Studio:
    """ASGI application of the studio."""

    def __init__(self, folder: Path, *, given: str | None = None, table: str | None = None) -> None:
        self.folder = folder  # for uploads and reports, removed when the server stops
        self.given, self.table = given, table  # source named on the command line
        self.failure: BaseException | None = None
        self.stop: Callable[[], None] = lambda: None  # stops the server
        self.stopping: Callable[[], bool] = lambda: False  # whether the server is to stop
        self._slots = asyncio.Semaphore(_THREADS)
        self._loading: asyncio.Future[Workspace] | None = None
        self._assets: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request, or the start and stop of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        path, method = scope["path"], scope["method"]
        if path in _ASSETS:
            _check_method(method, "GET")
            scope["route_name"] = path
            headers = list(_PAGE_HEADERS)
            await respond(send, 200, self._asset(path), _TYPES[_suffix(path)], headers)
            return
        if path in _LECTURES:
            _check_method(method, "GET")
            scope["route_name"] = path
            await self._answer(send, _lecture_page, _LECTURES[path])
            return
        try:
            await self._api(scope, receive, send)
        except (DiscriminantError, MemoryError) as error:
            raise self._refusal(error) from None

    # --- start and stop ---------------------------------------------------------------------------

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        timer = asyncio.get_running_loop().call_later(_LOAD_SECONDS, self._start_loading)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        timer.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    def _start_loading(self) -> asyncio.Future[Workspace]:
        """Import what computes. The page is shown first: its first request comes after that."""
        if self._loading is None:
            self._loading = start_thread(self.load)
            self._loading.add_done_callback(self._loaded)
        return self._loading

    def _loaded(self, loading: asyncio.Future[Workspace]) -> None:
        if not loading.cancelled() and loading.exception() is not None:
            self.failure = loading.exception()
            self.stop()

    def load(self) -> Workspace:
        """Import everything that computes."""
        from discriminant.web.studio.workspace import Workspace

        return Workspace(self.folder, given=self.given, table=self.table)

    def _asset(self, path: str) -> bytes:
        if path not in self._assets:
            package, name = _ASSETS[path]
            self._assets[path] = files(package).joinpath("assets", name).read_bytes()
        return self._assets[path]

    # --- requests ---------------------------------------------------------------------------------

    async def _workspace(self) -> Workspace:
        return await self._wait(self._start_loading())

    async def _wait(self, work: asyncio.Future[T]) -> T:
        """Wait for a thread, unless the server is to stop."""
        while not work.done():
            if self.stopping():
                raise HttpError(503, "StoppedError", "The studio was stopped.", headers=CLOSE)
            await asyncio.wait({work}, timeout=0.2)
        return work.result()

    def _refusal(self, error: DiscriminantError | MemoryError) -> HttpError:
        """Return the response to an error; files are named as the user named them."""
        if isinstance(error, MemoryError):
            message = "There is not enough memory for this table. Open a part of its rows."
            return HttpError(413, "OutOfMemoryError", message)
        text = re.sub(rf"{re.escape(str(self.folder))}[/\\](\d+[/\\])?", "", str(error))
        if self.given is not None and not is_address(self.given):
            text = text.replace(self.given, Path(self.given).name)
        status = 413 if isinstance(error, OutOfMemoryError) else 400
        return HttpError(status, type(error).__name__, text)

    async def _api(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        parts = path.split("/")[1:]
        if parts[:1] != ["api"]:
            raise _nothing_here()
        scope["route_name"] = "/".join(part if part.isalpha() else "{id}" for part in parts)
        if path == "/api/upload":
            _check_method(method, "POST")
            await self._upload(scope, receive, send)
            return
        if path == "/api/start":  # needs nothing large, so that the page is usable at once
            _check_method(method, "GET")
            await respond(send, 200, self._start_facts())
            self._start_loading()
            return
        workspace = await self._workspace()
        if path in ("/api/preview", "/api/open"):
            _check_method(method, "POST")
            body = await _read_json(receive)
            await self._answer(send, getattr(workspace, parts[1]), body)
        elif len(parts) in (3, 4) and parts[1] == "tables" and _TABLE_NUMBER.fullmatch(parts[2]):
            await self._table(workspace, parts[2:], method, receive, send)
        else:
            raise _nothing_here()

    def _start_facts(self) -> bytes:
        """Return what the start page offers."""
        from discriminant.lectures import TITLES
        from discriminant.table.files.example_tables import EXAMPLES

        given = self.given
        if given is not None:
            given = masked(given) if is_address(given) else Path(given).name
        examples = [each._asdict() for each in EXAMPLES]
        return dump({"examples": examples, "given": given, "lectures": TITLES})

    async def _table(
        self, workspace: Workspace, parts: list[str], method: str, receive: Receive, send: Send
    ) -> None:
        table, action = workspace.table(int(parts[0])), parts[1] if len(parts) == 2 else ""
        if action in ("", "data", "checks"):
            _check_method(method, "GET")
            endpoint = {"": table.describe, "data": table.data, "checks": table.check}[action]
            await self._answer(send, endpoint)
        elif action == "report" and method == "GET":
            await self._answer(send, table.report_page)
        elif action == "report":
            _check_method(method, "POST")
            await self._report(workspace, table, await _read_json(receive), send)
        elif action in _ACTIONS:
            _check_method(method, "POST")
            body = await _read_json(receive)
            await self._answer(send, getattr(workspace, action), table, body)
        else:
            raise _nothing_here()

    async def _answer(self, send: Send, endpoint: Callable[..., Response], *given: Any) -> None:
        async with self._slots:
            response = await self._wait(start_thread(endpoint, *given))
        headers = list(response.headers or ())
        await respond(send, response.status, response.body, response.kind, headers)

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the body to a file, part by part."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        name = query.get("name", ["table.csv"])[0]
        workspace = await self._workspace()
        upload, path = workspace.new_upload(name)
        try:
            with path.open("wb") as file:
                async for part in _parts(receive):
                    file.write(part)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        await respond(send, 200, dump({"upload": upload, "name": path.name}))

    async def _report(self, workspace: Workspace, table: Any, body: Any, send: Send) -> None:
        """Write the report in a thread, and send its progress as server-sent events."""
        events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        spec = workspace.checked_spec(table, body)
        async with self._slots:
            work = start_thread(workspace.report, table, spec, events.put)
            headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while (not work.done() or not events.empty()) and not self.stopping():
                lines = b""
                while not events.empty():
                    lines += b"data: " + dump(events.get()) + b"\n\n"
                await send(_part(lines or b": waiting\n\n"))
                if not work.done():
                    await asyncio.wait({work}, timeout=0.25)
            last: dict[str, Any] = {"done": True}
            error = work.exception() if work.done() else InputError("The studio was stopped.")
            if isinstance(error, DiscriminantError | MemoryError):
                last = {"error": self._refusal(error).message}
            elif error is not None:
                with suppress(Exception):
                    await send(_part(b'data: {"error": "The report could not be written."}\n\n'))
                raise error
            await send({**_part(b"data: " + dump(last) + b"\n\n"), "more_body": False})


def _lecture_page(number: int) -> Response:
    from discriminant.lectures import page

    return Response(page(number).encode(), _TYPES["html"], _LECTURE_HEADERS)


def start_thread(function: Callable[..., T], *given: Any) -> asyncio.Future[T]:
    """Call a function in a thread that does not keep the process alive when the server stops."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function(*given)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop may be closed already
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=run, name="studio", daemon=True).start()
    return future


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


def _suffix(path: str) -> str:
    return path.rpartition(".")[2] if "." in path else "html"


def _check_method(method: str, expected: str) -> None:
    if method != expected and not (method == "HEAD" and expected == "GET"):
        allow = (b"allow", expected.encode())
        raise HttpError(
            405, "MethodError", f"Use {expected} at this path.", headers=[allow, *CLOSE]
        )


def _nothing_here() -> HttpError:
    return HttpError(404, "PathError", "There is nothing at this path.", headers=CLOSE)


async def _parts(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, "DisconnectedError", "The client closed the connection.")
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _read_json(receive: Receive) -> dict[str, Any]:
    body = bytearray()
    async for part in _parts(receive):
        body += part
        if len(body) > _MAX_JSON:
            raise HttpError(413, "BodyTooLargeError", "The request is too large.", headers=CLOSE)
    try:
        value = orjson.loads(bytes(body))
    except orjson.JSONDecodeError:
        raise HttpError(400, "JsonError", "The body is not valid JSON.") from None
    if not isinstance(value, dict):
        raise HttpError(400, "JsonError", "The body is not a JSON object.")
    return value


def build_app(studio: Studio, access: Access, log: JsonLog) -> App:
    """Return the studio with its access control and its log."""
    return RequestLog(SecurityMiddleware(studio, access), log)
