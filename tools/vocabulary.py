"""Count words of this project that the field does not use; no count may rise.

    python tools/vocabulary.py                  counts of all words
    python tools/vocabulary.py found "at hand"  every place of these words
    python tools/vocabulary.py --lower          write lower counts to vocabulary_counts.toml

The words are in vocabulary.toml. Names are counted where they are defined: each count is one thing
to rename. Prose is counted in docstrings, comments and messages of src, and in the guides, there
without code. `tests/tools/test_vocabulary.py` compares the counts with vocabulary_counts.toml.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COUNTS = HERE / "vocabulary_counts.toml"
HEADER = "# Written by tools/vocabulary.py --lower. Counts only fall.\n"

Words = dict[str, dict[str, str]]  # section of vocabulary.toml, word, replacement
Counts = dict[str, dict[str, int]]  # kind of text, word


class Place(NamedTuple):
    """One occurrence of a word."""

    kind: str  # identifiers, prose (of src) or guides
    word: str
    path: str
    line: int
    text: str


def main() -> None:
    """Print counts or places, or lower the committed counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="print every place of these words")
    parser.add_argument("--lower", action="store_true", help="write lower counts")
    options = parser.parse_args()
    places = list(all_places())
    if options.lower:
        COUNTS.write_text(as_toml(lowered(committed(), counted(places))))
    elif options.words:
        print(listing([place for place in places if place.word in options.words]))
    else:
        print(as_toml(counted(places)), end="")


def all_places() -> Iterator[Place]:
    """Yield every occurrence in src and in the guides."""
    words = listed()
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield from places_in_module(path.relative_to(ROOT).as_posix(), path.read_text(), words)
    for path in guides():
        name = path.relative_to(ROOT).as_posix()
        yield from places_in_text("guides", name, 1, without_code(path.read_text()), words)


def listed() -> Words:
    """Return the words to avoid."""
    return tomllib.loads((HERE / "vocabulary.toml").read_text())


def guides() -> list[Path]:
    """Return the Markdown files that people write."""
    built = {"_build", "auto_gallery", "reference"}
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return sorted(ROOT.glob("*.md")) + [page for page in pages if not built & {*page.parts}]


def places_in_module(path: str, source: str, words: Words) -> Iterator[Place]:
    """Yield the names and phrases of one module."""
    tree = ast.parse(source)
    for name, line in [(Path(path).stem, 1), *definitions(tree)]:
        for part in sorted(parts_of(name) & words["identifiers"].keys()):
            yield Place("identifiers", part, path, line, name)
    for text, line in [*literals(tree), *comments(source)]:
        yield from places_in_text("prose", path, line, text, words)


def definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield every name that a module defines, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name, node.lineno
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name, node.lineno


def parts_of(name: str) -> set[str]:
    """Return the words of a name: found_rows and FoundRows are found and rows."""
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def literals(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield every docstring and text, with its first line; {names} in templates are not prose."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\{\w+\}", "{}", node.value), node.lineno


def comments(source: str) -> Iterator[tuple[str, int]]:
    """Yield every comment with its first line; comments on adjacent lines are one."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield "\n".join(block), last - len(block) + 1
            block = []
        block.append(token.string.lstrip("#: "))
        last = token.start[0]
    if block:
        yield "\n".join(block), last - len(block) + 1


def without_code(text: str) -> str:
    """Return Markdown with blocks and spans of code blank, line numbers unchanged."""
    return re.sub(
        r"```.*?```|`[^`\n]*`",
        lambda code: re.sub(r"[^\n]", " ", code.group()),
        text,
        flags=re.DOTALL,
    )


def places_in_text(kind: str, path: str, line: int, text: str, words: Words) -> Iterator[Place]:
    """Yield the phrases of a text that starts at `line`."""
    for word in [*words["prose"], *words["openings"]]:
        if word.split()[0].lower() not in text.lower():
            continue
        pattern = opening(word) if word in words["openings"] else phrase(word)
        for match in re.finditer(pattern, text):
            before = text.count("\n", 0, match.end())
            yield Place(kind, word, path, line + before, text.splitlines()[before].strip())


def opening(word: str) -> str:
    """Return a pattern of a sentence that begins with a word."""
    return rf"(?:\A|[.:!?]\s|\n\s*\n)\s*{word}\b"


def phrase(words: str) -> str:
    """Return a pattern of a phrase, also if it is broken over two lines."""
    spaced = r"\s+".join(map(re.escape, words.split()))
    return rf"(?i:\b{spaced}\b)"


def counted(places: list[Place]) -> Counts:
    """Return the number of places of every listed word."""
    words = listed()
    phrases = sorted(words["prose"] | words["openings"])
    counts = {"identifiers": dict.fromkeys(sorted(words["identifiers"]), 0)}
    counts |= {kind: dict.fromkeys(phrases, 0) for kind in ("prose", "guides")}
    for place in places:
        counts[place.kind][place.word] += 1
    return counts


def committed() -> Counts:
    """Return the counts that no commit may exceed."""
    return tomllib.loads(COUNTS.read_text()) if COUNTS.exists() else {}


def lowered(before: Counts, now: Counts) -> Counts:
    """Return the smaller counts; a new word starts with its present count."""
    return {
        kind: {word: min(n, before.get(kind, {}).get(word, n)) for word, n in words.items()}
        for kind, words in now.items()
    }


def as_toml(counts: Counts) -> str:
    """Return the text of the file of counts."""
    tables = [
        f"\n[{kind}]\n" + "".join(f'"{word}" = {n}\n' for word, n in words.items())
        for kind, words in counts.items()
    ]
    return HEADER + "".join(tables)


def listing(places: list[Place]) -> str:
    """Return one line for each place."""
    return "\n".join(f"{p.path}:{p.line}: {p.word}: {p.text}" for p in places)


if __name__ == "__main__":
    main()
