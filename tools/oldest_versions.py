"""Print the oldest version that pyproject.toml allows of every direct dependency.

    python tools/oldest_versions.py > oldest.txt
    pip install --constraint oldest.txt --editable ".[test]"

`name>=1.2` becomes `name==1.2`, which also means 1.2.0. Requirements without a lower bound are left
to pip. Extras in brackets are dropped, since constraints may not have any.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print the file of constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    print(constraints([*project["dependencies"], *(r for extra in extras for r in extra)]), end="")


def constraints(requirements: Iterable[str]) -> str:
    """Return one line `name==version` for each requirement with a lower bound."""
    oldest: dict[str, Version] = {}
    for requirement in map(Requirement, requirements):
        for specifier in requirement.specifier:
            if specifier.operator in (">=", "==", "~="):
                name, version = canonicalize_name(requirement.name), Version(specifier.version)
                oldest[name] = max(version, oldest.get(name, version))
    return "".join(f"{name}=={version}\n" for name, version in sorted(oldest.items()))


if __name__ == "__main__":
    main()
