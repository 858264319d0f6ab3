"""One JSON line in the log for each request, with an id that is also in the response.

    {"time": "...", "level": "info", "event": "request", "request_id": "...", "method": "POST",
     "route": "/models/{name}/predict", "status": 200, "ms": 1.2, "model": "loans", "rows": 3}

The log contains no headers, no query and no body. Instead of the path that a client sent, it
contains a route of the server. The log therefore contains no token and no value of a row. An
unexpected error is logged with its type and the places in the code, without its text; the client
gets only the id.
"""

from __future__ import annotations

import asyncio
import re
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from os import urandom
from time import perf_counter
from typing import Any

from discriminant.web.responses import (
    App,
    HttpError,
    Message,
    Receive,
    Scope,
    Send,
    dump,
    respond_error,
)

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
Observer = Callable[[Scope, int, float], None]


class JsonLog:
    """Log of JSON lines, by default to stderr. Secrets are replaced wherever they appear."""

    def __init__(self, stream: Any = None, *, secrets: tuple[str, ...] = ()) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._secrets = tuple(filter(None, secrets))

    def write(self, level: str, event: str, **facts: Any) -> None:
        """Write one line."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = dump({"time": time, "level": level, "event": event, **facts}).decode()
        for secret in self._secrets:
            line = line.replace(secret, "***")
        self._stream.write(line + "\n")
        self._stream.flush()


class RequestLog:
    """Middleware that gives each request an id, logs it, and reports unexpected errors."""

    def __init__(self, app: App, log: JsonLog, observe: Observer | None = None) -> None:
        self.app = app
        self.log = log
        self._observe = observe
        self._prefix = urandom(6).hex()
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process and log a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), 0
        request_id = scope["request_id"] = self._request_id(scope)

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode()))
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except asyncio.CancelledError:
            self._write(scope, 499, start)
            raise
        except Exception as error:
            self.log.write("error", "internal_error", request_id=request_id, **_without_text(error))
            if not status:
                text = f"Internal error. The log has more under request_id {request_id}."
                await respond_error(send_with_id, HttpError(500, "InternalError", text), request_id)
        self._write(scope, status, start)

    def _request_id(self, scope: Scope) -> str:
        for name, value in scope["headers"]:
            if name == b"x-request-id" and _ID.fullmatch(value):
                return str(value.decode())
        return f"{self._prefix}-{next(self._numbers)}"

    def _write(self, scope: Scope, status: int, start: float) -> None:
        seconds = perf_counter() - start
        if self._observe is not None:
            self._observe(scope, status, seconds)
        facts = {name: scope[name] for name in ("model", "rows", "refused") if name in scope}
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.log.write(
            "info",
            "request",
            request_id=scope["request_id"],
            method=method,
            route=scope.get("route_name", "none"),
            status=status,
            ms=round(seconds * 1000, 3),
            **facts,
        )


def _without_text(error: BaseException) -> dict[str, Any]:
    """Return the type of an error and where it was raised, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames
    ]
    return {"kind": type(error).__name__, "places": places[-8:]}
