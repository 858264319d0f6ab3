"""Run the service: `discriminant serve loans.model`."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from discriminant.web.request_log import JsonLog
from discriminant.web.security import (
    LOOPBACK,
    Access,
    check_address,
    is_loopback,
    read_token,
)
from discriminant.web.server import check_libraries, create_server, listen, url_of


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of the command."""

    host: str = "127.0.0.1"
    port: int = 8000
    token_file: str | None = None
    allow_hosts: tuple[str, ...] = ()
    max_bytes: int = 32 << 20
    max_rows: int = 100_000
    max_requests: int = 256
    seconds: float = 30.0
    reload_seconds: float = 1.0
    stop_seconds: float = 30.0


def serve(paths: Sequence[str], options: ServeOptions) -> None:
    """Serve models until SIGTERM or Ctrl-C."""
    token = read_token(options.token_file)
    check_address(options.host, token)
    check_libraries()
    listener = listen(options.host, options.port)  # before anything large is imported
    try:
        _serve(listener, paths, token, options)
    finally:
        listener.close()


def _serve(
    listener: socket.socket, paths: Sequence[str], token: str | None, options: ServeOptions
) -> None:
    # A request has few rows, so that threads of BLAS would cost more time than they save.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from discriminant.web.service.app import Service, ServiceOptions, build_app
    from discriminant.web.service.models import model_names

    log = JsonLog(secrets=() if token is None else (token,))
    log.write("info", "listening", url=url_of(listener), pid=os.getpid())
    service = Service(
        model_names(paths),
        ServiceOptions(options.max_rows, options.seconds, options.reload_seconds),
        log,
        token=token is not None,
    )
    access = Access(
        token=token,
        hosts=allowed_hosts(options.host, options.allow_hosts),
        max_bytes=options.max_bytes,
        body_seconds=options.seconds,
        max_requests=options.max_requests,
        max_total_bytes=max(8 * options.max_bytes, 64 << 20),
    )
    server = create_server(build_app(service, access), log, stop_seconds=options.stop_seconds)
    service.stop = lambda: setattr(server, "should_exit", True)
    server.run(sockets=[listener])
    if service.failure is not None:
        raise service.failure
    log.write("info", "stopped")


def allowed_hosts(host: str, names: Sequence[str]) -> frozenset[str] | None:
    """Return the names that the Host header of a request may contain; None allows any name.

    A server that other machines can reach has many names, and every request to it needs the token,
    which a page of another site does not have. With `names` the server accepts only these names.
    """
    if not is_loopback(host) and not names:
        return None
    return LOOPBACK | {host.lower(), *(name.lower() for name in names)}
