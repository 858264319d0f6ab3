"""Write the type stub of the package: every public name, imported from its module.

    python -m tests.fence.stub > src/discriminant/__init__.pyi

The package imports a name when it is first used; type checkers and editors read the stub instead.
"""

from __future__ import annotations

from collections import defaultdict

import discriminant


def stub() -> str:
    """Return the text of `__init__.pyi`."""
    modules: dict[str, list[str]] = defaultdict(list)
    for name in discriminant.__all__:
        modules[f"discriminant.{discriminant._HOMES[name]}"].append(name)
    lines = ['"""Public names of the package. Written by tests/fence/stub.py."""', ""]
    for module in sorted(modules):
        names = ",\n    ".join(f"{name} as {name}" for name in sorted(modules[module]))
        lines.append(f"from {module} import (\n    {names},\n)")
    return "\n".join([*lines, "", "__version__: str", "__all__: list[str]", ""])


if __name__ == "__main__":
    print(stub(), end="")
