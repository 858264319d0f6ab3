"""Command that serves models over HTTP."""

from __future__ import annotations

from typing import Any

from discriminant.web.service.command import ServeOptions, serve as serve_models


def serve(models: tuple[str, ...], options: dict[str, Any]) -> int:
    """Serve models until the process is asked to stop."""
    serve_models(models, ServeOptions(**options))
    return 0
