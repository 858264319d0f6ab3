"""Run the studio: `discriminant studio loans.csv`."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from discriminant.redaction import register
from discriminant.web.request_log import JsonLog
from discriminant.web.security import Access
from discriminant.web.server import check_libraries, create_server, listen, url_of
from discriminant.web.studio.app import PUBLIC, Studio, build_app

_STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class StudioOptions:
    """Options of the command."""

    port: int = 0
    browser: bool = True
    table: str | None = None
    max_bytes: int = 1 << 30


class ErrorLog(JsonLog):
    """Log of errors only, for a terminal that a person reads."""

    def write(self, level: str, event: str, **facts: object) -> None:
        """Write one line, if it is about an error."""
        if level == "error":
            super().write(level, event, **facts)


def run_studio(source: str | None, options: StudioOptions) -> None:
    """Serve the studio until Ctrl-C or SIGTERM."""
    check_libraries()
    if source is not None:
        register(source)
    listener = listen("127.0.0.1", options.port)  # before anything large is imported
    try:
        with tempfile.TemporaryDirectory(prefix="discriminant-studio-") as folder:
            _serve(listener, source, Path(folder), options)
    finally:
        listener.close()


def _serve(
    listener: socket.socket, source: str | None, folder: Path, options: StudioOptions
) -> None:
    # A slider moves many times a second: threads of BLAS would cost more time than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    token = secrets.token_urlsafe(32)
    log = ErrorLog(secrets=(token,))
    studio = Studio(folder, given=source, table=options.table)
    access = Access(
        token=token,
        public=PUBLIC,
        navigation=True,
        max_bytes=options.max_bytes,
        body_seconds=300.0,
        max_requests=64,
        max_total_bytes=2 * options.max_bytes,
    )
    url = f"{url_of(listener)}/#token={token}"
    print(f"Studio: {url}\nPress Ctrl-C to stop.", file=sys.stderr, flush=True)
    server = create_server(build_app(studio, access, log), stop_seconds=_STOP_SECONDS)
    studio.stop = lambda: setattr(server, "should_exit", True)
    studio.stopping = lambda: bool(server.should_exit)
    if options.browser:
        threading.Thread(target=_open_browser, args=(url,), daemon=True).start()
    server.run(sockets=[listener])
    if studio.failure is not None:
        raise studio.failure


def _open_browser(url: str) -> None:
    import webbrowser

    webbrowser.open(url)
