"""JSON responses and errors of the web front ends.

An error is a JSON object. `error` is a sentence for people, as the Open Inference Protocol
requires; `kind` is a name for programs; `request_id` finds the request in the log:

    {"error": "...", "kind": "CategoryError", "request_id": "..."}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

import orjson

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

JSON = b"application/json"


class Response(NamedTuple):
    """A complete response."""

    body: bytes
    kind: bytes = JSON
    headers: Headers | None = None
    status: int = 200


class HttpError(Exception):
    """A request that is rejected, with the status and the message of the response."""

    def __init__(
        self, status: int, kind: str, message: str, *, headers: Headers | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.headers = headers or []


def dump(value: Any) -> bytes:
    """Return a value as JSON. Floats are written with enough digits to be read back bit for bit."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


async def respond(
    send: Send, status: int, body: bytes, kind: bytes = JSON, headers: Headers | None = None
) -> None:
    """Send a complete response."""
    lines = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *(headers or ())]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


async def respond_error(send: Send, error: HttpError, request_id: str) -> None:
    """Send an error and close the connection if its body may not have been read."""
    body = {"error": error.message, "kind": error.kind, "request_id": request_id}
    await respond(send, error.status, dump(body), headers=error.headers)
