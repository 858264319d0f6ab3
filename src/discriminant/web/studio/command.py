"""Run the studio: `discriminant studio loans.csv`."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from html import escape
from pathlib import Path

from discriminant.redaction import register
from discriminant.web.request_log import JsonLog
from discriminant.web.security import Access
from discriminant.web.server import check_libraries, create_server, listen, url_of
from discriminant.web.studio.app import PUBLIC, Studio, build_app

_STOP_SECONDS = 2.0
_REDIRECT_SECONDS = 30.0  # the token is in a file until the browser has read it


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
    server = create_server(build_app(studio, access, log), log, stop_seconds=_STOP_SECONDS)
    studio.stop = lambda: setattr(server, "should_exit", True)
    studio.stopping = lambda: bool(server.should_exit)
    if options.browser:
        threading.Thread(target=_open_browser, args=(url, folder), daemon=True).start()
    server.run(sockets=[listener])
    if studio.failure is not None:
        raise studio.failure


def _open_browser(url: str, folder: Path) -> None:
    """Open a file that leads to the page: the arguments of the browser are visible to all users.

    The folder is readable by its owner only, and is removed when the studio stops.
    """
    import webbrowser

    page = folder / "start.html"
    descriptor = os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={escape(url)}"><title>Studio</title>'
        )
    webbrowser.open(page.as_uri())
    time.sleep(_REDIRECT_SECONDS)
    page.unlink(missing_ok=True)
