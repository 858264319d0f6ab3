"""The HTTP server: a socket that listens before anything large is imported, and uvicorn.

Clients that connect while the application is still being imported have to wait, but are not
rejected. On SIGTERM or Ctrl-C, the server stops listening, completes the requests in progress
within `stop_seconds`, and returns.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from discriminant.errors import CommandError, LibraryMissingError
from discriminant.web.request_log import JsonLog

_BACKLOG = 2048
_HEADER_SECONDS = 10.0  # time until the headers of a request must be complete
_HEADER_BYTES = 1 << 16  # largest size of the headers of a request


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Port 0 chooses a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise CommandError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}. Choose another "
            "--port, or 0 for any free one."
        ) from None
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def check_libraries() -> None:
    """Raise an error with installation instructions if libraries of the extra `web` are missing."""
    from importlib.util import find_spec

    for library in ("uvicorn", "httptools", "orjson"):
        if find_spec(library) is None:
            raise LibraryMissingError.of(library, what="The server", extra="web")


class _LogHandler(logging.Handler):
    """Handler that writes uvicorn's own warnings as lines of the JSON log."""

    def __init__(self, log: JsonLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write(record.levelname.lower(), "server", text=record.getMessage())


def create_server(app: Any, log: JsonLog, *, stop_seconds: float = 30.0) -> Any:
    """Return a uvicorn server, whose `run(sockets=[...])` serves until SIGTERM or Ctrl-C."""
    import uvicorn

    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_LogHandler(log)], False
    config = uvicorn.Config(
        app,
        http=_protocol(),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(stop_seconds),
    )

    class Server(uvicorn.Server):
        """Server that returns after a signal, instead of raising the signal again."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            before = {
                number: signal.signal(number, self._stop)
                for number in (signal.SIGINT, signal.SIGTERM)
            }
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

        def _stop(self, number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

    return Server(config)


class _OpenTransport:
    """Transport that drops what is written after the client has closed the connection.

    uvloop raises an error there, and an answer to a client that is gone is no error of the server.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


def _protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol, with a limit on the time in which headers must arrive."""
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Protocol(HttpToolsProtocol):
        """HTTP/1.1 protocol that closes connections whose headers are too long or too late."""

        _timer: asyncio.TimerHandle | None = None
        _in_headers = False
        _header_bytes = 0

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._start_timer()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._in_headers:
                self._header_bytes += len(data)
                if self._header_bytes > _HEADER_BYTES:
                    self._close()
                elif self._timer is None:
                    self._start_timer()
            elif self._timer is not None:
                self._stop_timer()

        def on_message_begin(self) -> None:
            self._in_headers, self._header_bytes = True, 0
            if not isinstance(self.transport, _OpenTransport):
                self.transport: Any = _OpenTransport(self.transport)
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_headers = False
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _start_timer(self) -> None:
            self._timer = self.loop.call_later(_HEADER_SECONDS, self._close)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _close(self) -> None:
            self._timer = None
            if self.transport is not None and not self.transport.is_closing():
                self.transport.close()

    return Protocol
