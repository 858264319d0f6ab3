"""Count modules, code lines, imports and class names of src.

    python tools/structure.py                  counts, and the places of what must be absent
    python tools/structure.py --single         also the modules with one importer, and the importer
    python tools/structure.py --src DIRECTORY  the same for another tree

Code lines are lines without docstrings, comments and blank lines. A folder holds its files: every
Python module except `__init__.py`, and every asset, but not its subfolders. Imports inside
functions and under TYPE_CHECKING count like those at the top of a module. A cycle is a set of
modules of one package directly below `discriminant` that import each other, directly or through
others. `tests/tools/test_structure.py` holds folders, cycles and class names.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
MOST_FILES = 15
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

Graph = dict[str, set[str]]  # module, modules that it imports


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--src", type=Path, default=SRC, help="folder that holds the package")
    parser.add_argument("--single", action="store_true", help="list modules with one importer")
    options = parser.parse_args()
    sources = read_sources(options.src)
    graph = import_graph(sources)
    single = single_importers(graph)
    findings = {
        f"folders with more than {MOST_FILES} files": large_folders(options.src),
        "import cycles inside a room": cycles_in_rooms(graph),
        "class names used twice": repeated_classes(sources),
    }
    print(f"{sum(not is_package(name) for name in sources):>8,} modules")
    print(f"{sum(code_lines(text) for text in sources.values()):>8,} code lines")
    print(f"{len(single):>8,} modules with one importer")
    for title, places in findings.items():
        print(f"{len(places):>8,} {title}", *places, sep="\n         ")
    if options.single:
        print("", *(f"{name} <- {importer}" for name, importer in single.items()), sep="\n")


def read_sources(src: Path) -> dict[str, str]:
    """Return the text of every module by its dotted name; a package ends in `.__init__`."""
    return {
        ".".join(path.relative_to(src).with_suffix("").parts): path.read_text()
        for path in sorted(src.rglob("*.py"))
    }


def is_package(name: str) -> bool:
    """Return whether a module is the `__init__` of a package."""
    return name.endswith(".__init__")


def code_lines(text: str) -> int:
    """Return the number of lines that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for docstring in docstrings(ast.parse(text)):
        lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield texts that are statements: docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value


def large_folders(src: Path, most: int = MOST_FILES) -> list[str]:
    """Return the folders with more files than allowed, each with its count."""
    counts = Counter(
        path.parent
        for path in src.rglob("*")
        if path.is_file()
        and path.suffix not in {".pyc", ".nbi", ".nbc"}
        and path.name not in {"__init__.py", "__init__.pyi"}
        and "__pycache__" not in path.parts
    )
    return [f"{folder.relative_to(src)}: {n}" for folder, n in sorted(counts.items()) if n > most]


def import_graph(sources: dict[str, str]) -> Graph:
    """Return the modules that every module imports; a name of a package is its `__init__`."""
    graph: Graph = {}
    for name, text in sources.items():
        targets = (
            resolve(target, sources)
            for node in ast.walk(ast.parse(text))
            for target in imported_names(node)
        )
        graph[name] = {target for target in targets if target is not None} - {name}
    return graph


def imported_names(node: ast.AST) -> Iterator[str]:
    """Yield the dotted names of an import statement; imports are absolute in this package."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            yield from (f"{module}.{alias.name}" for alias in names)


def resolve(target: str, sources: dict[str, str]) -> str | None:
    """Return the module that defines a dotted name, or None if it is not in the tree."""
    parent = target.rpartition(".")[0]
    candidates = (target, f"{target}.__init__", parent, f"{parent}.__init__")
    return next((name for name in candidates if name in sources), None)


def cycles_in_rooms(graph: Graph) -> list[str]:
    """Return the sets of modules of one room that import each other."""
    rooms: dict[str, Graph] = defaultdict(dict)
    for name, imports in graph.items():
        rooms[room_of(name)][name] = {other for other in imports if room_of(other) == room_of(name)}
    return [" <-> ".join(cycle) for room in rooms.values() for cycle in cycles(room)]


def room_of(name: str) -> str:
    """Return the package directly below `discriminant`: table for discriminant.table.files.csv."""
    return ".".join(name.split(".")[:2])


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected sets of two or more modules."""
    reach = {name: reachable(name, graph) for name in graph}
    sets = {
        tuple(sorted({name} | {other for other in reach[name] if name in reach[other]}))
        for name in graph
    }
    return sorted(list(names) for names in sets if len(names) > 1)


def reachable(start: str, graph: Graph) -> set[str]:
    """Return the modules that a module imports, directly or through others."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - reached
        reached |= new
        waiting.extend(new)
    return reached


def single_importers(graph: Graph) -> dict[str, str]:
    """Return the modules that exactly one other module imports, with that module."""
    importers: dict[str, list[str]] = defaultdict(list)
    for name, imports in graph.items():
        for target in imports:
            importers[target].append(name)
    return {
        name: names[0]
        for name, names in sorted(importers.items())
        if len(names) == 1 and not is_package(name)
    }


def repeated_classes(sources: dict[str, str]) -> list[str]:
    """Return the class names that more than one definition uses, with the modules."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    return [
        f"{name}: {', '.join(where)}" for name, where in sorted(homes.items()) if len(where) > 1
    ]


if __name__ == "__main__":
    main()
