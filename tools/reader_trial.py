"""Draw names and sentences at random, to ask a reader who does not know the project.

    python tools/reader_trial.py modules --seed 1          70 module names, without anything else
    python tools/reader_trial.py modules --seed 1 --key    the same with the docstring of each
    python tools/reader_trial.py names --rooms table,moments,models
    python tools/reader_trial.py sentences                 100 from docstrings, messages and guides

The reader writes what each name stands for, or which sentences had to be read twice; somebody else
compares the answers with the key and counts right, partly right and wrong.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "discriminant"


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("modules", "names", "sentences"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int)
    parser.add_argument("--rooms", default="", help="comma-separated folders (default: all)")
    parser.add_argument("--key", action="store_true", help="print the docstrings too")
    options = parser.parse_args()
    rooms = tuple(room for room in options.rooms.split(",") if room)
    population = {"modules": modules, "names": names, "sentences": sentences}[options.what](rooms)
    number = options.number or (100 if options.what == "sentences" else 70)
    generator = random.Random(options.seed)
    names_or_sentences = sorted(set(population))
    sample = generator.sample(names_or_sentences, min(number, len(names_or_sentences)))
    for k, (text, meaning) in enumerate(sample, 1):
        print(f"{k}. {text}" + (f"  --  {meaning}" if options.key else ""))


def modules(rooms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every module's path inside the package, with its docstring's first paragraph."""
    for path in paths(rooms):
        if path.name not in ("__init__.py", "__main__.py"):
            name = path.relative_to(PACKAGE).with_suffix("").as_posix()
            yield name, first_paragraph(ast.parse(path.read_text()))


def names(rooms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every class and public function, with its module and docstring's first paragraph."""
    for path in paths(rooms):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                kind = "class " if isinstance(node, ast.ClassDef) else "def "
                yield f"{kind}{node.name} ({module})", first_paragraph(node)


def sentences(rooms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield every sentence of docstrings and messages, and of the guides, with its file."""
    for path in paths(rooms):
        where = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((text, where) for text in split(node.value))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        prose = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        where = path.relative_to(ROOT).as_posix()
        yield from ((text, where) for text in split(prose) if "|" not in text)


def split(text: str) -> Iterator[str]:
    """Yield the sentences of a text; formulas, tables and examples are left out."""
    blocks = (block for block in text.split("\n\n") if not re.match(r" {4,}\S.*=|\s*>>>", block))
    for block in blocks:
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(block.split())):
            if re.match(r"[A-Z]", sentence) and sentence.endswith(".") and sentence.count(" ") >= 4:
                yield sentence


def paths(rooms: tuple[str, ...]) -> list[Path]:
    """Return the modules of these folders of the package."""
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not rooms or path.relative_to(PACKAGE).parts[0].removesuffix(".py") in rooms
    ]


def first_paragraph(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((ast.get_docstring(node) or "(no docstring)").split("\n\n")[0].split())


if __name__ == "__main__":
    main()
