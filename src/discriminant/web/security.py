"""Access control of a local web server, as ASGI middleware.

    Host            must be one of the names of the server: a page of another site cannot reach it
                    by pointing its own name at this machine (DNS rebinding)
    Origin          a request that a page of another site sends is refused, also by Sec-Fetch-Site
    token           `Authorization: Bearer ...`, compared in constant time; optionally a cookie
    body            no larger than `max_bytes`, and complete within `body_seconds`
    load            more than `max_requests` at a time, or bodies of more than `max_total_bytes`
                    together, are refused with 503 and Retry-After
    headers         a strict Content-Security-Policy, nosniff, no-referrer, no-store

A rejected request does not reach the application. `Access` holds the settings; each front end uses
this middleware with its own settings.
"""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from discriminant.errors import CommandError
from discriminant.web.responses import (
    App,
    Headers,
    HttpError,
    Message,
    Receive,
    Scope,
    Send,
    respond_error,
)

TOKEN_VARIABLE = "DISCRIMINANT_TOKEN"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
_SINGLE = (b"host", b"origin", b"authorization", b"content-length", b"content-type")
_LONGEST_TOKEN = 4096  # bytes
_SHORTEST_TOKEN = 16  # characters

SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_NO_CONTENT: Headers = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
CLOSE: Headers = [(b"connection", b"close")]


@dataclass(frozen=True, slots=True)
class Access:
    """Access rules of a server: which requests it accepts, and how large and how many."""

    token: str | None = None
    hosts: frozenset[str] | None = LOOPBACK  # allowed names in Host, without port; None: any
    public: frozenset[str] = frozenset()  # paths that need no token
    cookie: str | None = None  # name of a cookie that may hold the token
    navigation: bool = False  # whether a link on another site may open a page with GET
    max_bytes: int = 32 << 20
    body_seconds: float = 30.0
    max_requests: int = 256
    max_total_bytes: int = 256 << 20  # of the bodies of all requests in progress

    def check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """Raise `HttpError` if the request may not be processed."""
        self._check_host(headers)
        self._check_origin(scope, headers)
        self._check_token(scope, headers)
        self._check_length(headers)

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not host:
            raise HttpError(400, "HostError", "The request has no Host header.", headers=CLOSE)
        if self.hosts is not None and host_name(host) not in self.hosts:
            message = (
                "The Host header does not name this server. Use one of: "
                f"{', '.join(sorted(self.hosts - {'::1'}))}; or start the server with "
                "--allow-host NAME."
            )
            raise HttpError(403, "HostError", message, headers=CLOSE)

    def _check_origin(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        site = headers.get(b"sec-fetch-site", b"none")
        origin = headers.get(b"origin")
        if origin is None and site in (b"none", b"same-origin"):
            return
        if origin is not None:
            same = origin.partition(b"://")[2].lower() == headers.get(b"host", b"").lower()
        else:
            opens = headers.get(b"sec-fetch-mode") == b"navigate" and scope["method"] == "GET"
            same = self.navigation and opens
        if not same:
            message = (
                "A page of another site sent this request. Send it from a program, or from a page "
                "of this server."
            )
            raise HttpError(403, "OriginError", message, headers=CLOSE)

    def _check_token(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if self.token is None or scope["path"] in self.public:
            return
        expected = self.token.encode()
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), expected):
            return
        if self.cookie is not None and hmac.compare_digest(
            _cookie(headers.get(b"cookie", b""), self.cookie), expected
        ):
            return
        message = "The token is missing or wrong. Send the header Authorization: Bearer TOKEN."
        challenge = (b"www-authenticate", b"Bearer")
        raise HttpError(401, "TokenError", message, headers=[challenge, *CLOSE])

    def _check_length(self, headers: Mapping[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        if length is None:
            return
        if not length.isdigit():
            message = "Content-Length is not a whole number."
            raise HttpError(400, "LengthError", message, headers=CLOSE)
        if len(length) > 15 or int(length) > self.max_bytes:
            raise self.too_large()

    def too_large(self) -> HttpError:
        """Return the error for a body beyond the limit."""
        message = (
            f"The body is larger than {self.max_bytes:,} bytes. Send fewer rows at a time, or "
            "start the server with a larger --max-bytes."
        )
        return HttpError(413, "BodyTooLargeError", message, headers=CLOSE)


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("127.0.0.1")
    ('localhost', '[::1]', '127.0.0.1')
    """
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.rpartition(":")[0] if ":" in host else host


def _cookie(header: bytes, name: str) -> bytes:
    for part in header.split(b";"):
        key, _, value = part.strip().partition(b"=")
        if key == name.encode():
            return value
    return b""


def read_token(path: str | None) -> str | None:
    """Return the token from a file or, without a file, from the environment variable; or None.

    The token is the first line of the file. A token on the command line could be read by other
    users of the machine.
    """
    if path is not None:
        try:
            with Path(path).open("rb") as file:
                text = file.read(_LONGEST_TOKEN + 1).decode("ascii").strip()
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}. --token-file needs a file.") from None
        except UnicodeDecodeError:
            raise CommandError(f"{path}: a token consists of ASCII characters.") from None
        source = path
    else:
        text, source = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not text:
            return None
    if len(text) < _SHORTEST_TOKEN or len(text) > _LONGEST_TOKEN or not text.isprintable():
        raise CommandError(
            f"{source}: a token is one line of {_SHORTEST_TOKEN} to {_LONGEST_TOKEN:,} printable "
            "characters. Create one with: python -c 'import secrets; "
            "print(secrets.token_urlsafe(32))'"
        )
    if " " in text:
        raise CommandError(f"{source}: a token contains no spaces.")
    return text


def is_loopback(host: str) -> bool:
    """Return whether an address can only be reached from this machine."""
    from ipaddress import ip_address

    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(host: str, token: str | None) -> None:
    """Raise an error if other machines could use the server without a token."""
    if not is_loopback(host) and token is None:
        raise CommandError(
            f"--host {host} can be reached from other machines, and no token is set. Write a token "
            f"to a file and pass --token-file FILE, or set {TOKEN_VARIABLE}; or leave --host out "
            "to serve this machine only."
        )


class SecurityMiddleware:
    """Middleware that refuses requests, limits their bodies, and adds security headers."""

    def __init__(self, app: App, access: Access) -> None:
        self.app = app
        self.access = access
        self.active = 0  # requests in progress
        self.bytes = 0  # received with them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Process a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = message["headers"]
                headers += SECURITY_HEADERS
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers += _NO_CONTENT
            await send(message)

        self.active += 1
        limited = _LimitedBody(receive, self)
        try:
            headers = _single_headers(scope)
            if self.active > self.access.max_requests:
                raise overloaded()
            self.access.check(scope, headers)
            scope["header_values"] = headers
            await self.app(scope, limited.receive, send_with_headers)
        except HttpError as error:
            if started:
                raise
            scope["refused"] = error.kind
            await respond_error(send_with_headers, error, scope.get("request_id", ""))
        finally:
            self.active -= 1
            self.bytes -= limited.size


def overloaded() -> HttpError:
    """Return the error for a request that arrives while too many others are in progress."""
    message = "The server is busy. Send the request again after a second."
    return HttpError(503, "OverloadedError", message, headers=[(b"retry-after", b"1"), *CLOSE])


def _single_headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by name; a repeated header that is used here is an error."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in headers and name in _SINGLE:
            message = f"The header {name.decode('latin-1')} is repeated."
            raise HttpError(400, "HeaderError", message, headers=CLOSE)
        headers[name] = value
    return headers


class _LimitedBody:
    """The body of a request, with limits on its size and on the time until it is complete."""

    __slots__ = ("_complete", "_deadline", "_late", "_loop", "_owner", "_receive", "size")

    def __init__(self, receive: Receive, owner: SecurityMiddleware) -> None:
        self._receive = receive
        self._owner = owner
        self.size = 0
        self._complete = False
        self._late = False
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + owner.access.body_seconds

    def _stop(self, task: asyncio.Task[None]) -> None:
        self._late = True
        task.cancel()

    async def receive(self) -> Message:
        """Receive the next part of the body."""
        if self._complete:
            return await self._receive()
        task = asyncio.current_task()
        assert task is not None
        timer = self._loop.call_at(self._deadline, self._stop, task)
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            if not self._late:
                raise
            task.uncancel()
            seconds = self._owner.access.body_seconds
            text = f"The body was not complete after {seconds:g} seconds."
            raise HttpError(408, "BodyTooSlowError", text, headers=CLOSE) from None
        finally:
            timer.cancel()
        if message["type"] == "http.request":
            part = len(message.get("body", b""))
            self.size += part
            self._owner.bytes += part
            self._complete = not message.get("more_body", False)
            access = self._owner.access
            if self.size > access.max_bytes:
                raise access.too_large()
            if self._owner.bytes > access.max_total_bytes:
                raise overloaded()
        else:
            self._complete = True
        return message
