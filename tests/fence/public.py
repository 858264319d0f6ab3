"""Write the public surface: names, signatures, members of classes, kinds of stored objects.

    python tests/fence/public.py > tests/fence/public.json

The JSON file is committed, so that a change of the public surface shows in the diff of its commit.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import discriminant
from discriminant.store.kinds import KINDS


def surface() -> dict[str, Any]:
    """Return public names with their signatures, and the kinds that a file may hold."""
    names = {name: described(getattr(discriminant, name)) for name in sorted(discriminant.__all__)}
    return {"names": names, "kinds": sorted(KINDS)}


def described(thing: Any) -> Any:
    """Return a signature, or for a class the signature and the public members."""
    if not isinstance(thing, type):
        return signature(thing) if callable(thing) else type(thing).__name__
    members = {
        name: signature(member) if callable(member) else "attribute"
        for name in sorted(dir(thing))
        if not name.startswith("_") and (member := inspect.getattr_static(thing, name)) is not None
    }
    return {"signature": signature(thing), "members": members}


def signature(thing: Any) -> str:
    """Return the parameters with their defaults, without types."""
    parameters = inspect.signature(thing).parameters.values()
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(bare))


if __name__ == "__main__":
    print(json.dumps(surface(), indent=1))
