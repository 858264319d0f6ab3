"""Command that opens the studio in a browser."""

from __future__ import annotations

from typing import Any

from discriminant.web.studio.command import StudioOptions, run_studio


def studio(source: str | None, options: dict[str, Any]) -> int:
    """Serve the studio until the process is asked to stop."""
    run_studio(source, StudioOptions(**options))
    return 0
