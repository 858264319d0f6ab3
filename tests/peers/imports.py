"""Rewrite a peer's test file so that it tests an adapter in place of the peer."""

from __future__ import annotations

import ast
from collections.abc import Collection


def rewrite_imports(source: str, *, package: str, names: Collection[str], adapter: str) -> str:
    """The source with `names` of `package` imported from the module `adapter`.

    Both `from package.module import Name` and `module.Name`, for a module that was imported from
    `package`, are replaced.
    """
    tree = ast.parse(source)
    rewriter = _Rewriter(package, names, adapter)
    tree = ast.fix_missing_locations(rewriter.visit(tree))
    return ast.unparse(tree)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, package: str, names: Collection[str], adapter: str) -> None:
        self.package = package
        self.names = names
        self.adapter = adapter
        self.modules: set[str] = set()  # imported from the package, by their names in the file

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if node.level or (node.module or "").split(".")[0] != self.package:
            return node
        self.modules |= {alias.asname or alias.name for alias in node.names}
        ours = [alias for alias in node.names if alias.name in self.names]
        theirs = [alias for alias in node.names if alias.name not in self.names]
        return [
            ast.ImportFrom(module, aliases, 0)
            for module, aliases in ((self.adapter, ours), (node.module, theirs))
            if aliases
        ]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if (
            isinstance(node.value, ast.Name)
            and node.value.id in self.modules
            and node.attr in self.names
        ):
            inside = ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant(self.adapter)], [])
            return ast.Attribute(inside, node.attr, node.ctx)
        return node
