"""Sub-expressions that several derived features have in common are computed once."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from autoheur import formula as formulas
from autoheur.codegen.nodes import Derive

_SMALLEST = 6
"""Below this size a variable of its own costs about what it saves. A name or number counts 1, a call 2."""

_RAISING = ("log2", "floor", "ceil", "trailing_zeros")


@attrs.frozen
class Sharing:
    """Derived features in an order in which each can be computed, and what the names in their formulas stand for.

    ``names`` maps names that are no features to the variables that hold them.
    """

    derives: tuple[Derive, ...]
    names: dict[str, str]


def share(derives: Sequence[Derive], raw: Sequence[str], take: Callable[[str], str]) -> Sharing:
    """Give every sub-expression that occurs twice a variable; results and failures stay the same.

    What can fail is moved out of a branch only if it is computed outside of branches somewhere too. ``raw`` are the
    names of the raw features, ``take`` hands out unused identifiers.
    """
    trees = {derive.variable: derive.formula.tree for derive in derives}
    names: dict[str, str] = {}
    while (text := _largest_shared(trees.values())) is not None:
        name = _unused({*raw, *names, *trees})
        # Where a feature is just that, its variable will do.
        variable = next((other for other, tree in trees.items() if ast.unparse(tree) == text), name)
        names[name] = variable
        expression = ast.parse(text, mode="eval").body
        replace = _Replace(text, name)
        trees = {other: tree if other == variable else replace.expression(tree) for other, tree in trees.items()}
        trees.setdefault(variable, expression)
    ordered = list(_ordered(trees, names))
    # Only now is it known in which order they stand, which is how they are numbered.
    features = {derive.variable for derive in derives}
    added = [derive.variable for derive in ordered if derive.variable not in features]
    variables = {name: take(f"shared_{number}") for number, name in enumerate(added, 1)}
    return Sharing(
        tuple(attrs.evolve(derive, variable=variables.get(derive.variable, derive.variable)) for derive in ordered),
        {name: variables.get(variable, variable) for name, variable in names.items()},
    )


def _unused(taken: set[str]) -> str:
    return next(name for name in map("shared_{}".format, itertools.count(1)) if name not in taken)


def _largest_shared(trees: Iterable[ast.expr]) -> str | None:
    """The largest sub-expression that occurs more than once and may be moved, as text; of equals the first in order."""
    counts: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    movable: set[str] = set()
    for tree in trees:
        for node, certain in _visited(tree, True):
            text = ast.unparse(node)
            counts[text] += 1
            if text not in sizes:
                sizes[text] = _size(node)
            if certain or not _may_raise(node):
                movable.add(text)
    candidates = [text for text, count in counts.items() if count > 1 and text in movable and sizes[text] >= _SMALLEST]
    return max(candidates, key=lambda text: (sizes[text], text), default=None)


def _visited(node: ast.expr, certain: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Every sub-expression, and whether it is computed whenever the whole is."""
    yield node, certain
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from _visited(test, certain)
            yield from _visited(body, False)
            yield from _visited(orelse, False)
        case ast.BoolOp(values=[first, *others]):
            yield from _visited(first, certain)
            for other in others:
                yield from _visited(other, False)
        case _:
            for child in _children(node):
                yield from _visited(child, certain)


def _children(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return list(node.args)  # a function's name is no expression
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _size(node: ast.expr) -> int:
    return 1 + isinstance(node, ast.Call) + sum(map(_size, _children(node)))


def _may_raise(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
            if not (isinstance(right, ast.Constant) and right.value):
                return True
        case ast.Call(func=ast.Name(id=function)) if function in _RAISING:
            return True
    return any(map(_may_raise, _children(node)))


class _Replace:
    """Puts a name in the place of every occurrence of an expression."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name

    def expression(self, node: ast.expr) -> ast.expr:
        replaced = self.visit(node)
        assert isinstance(replaced, ast.expr)
        return replaced

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.unparse(node) == self.text:
            return ast.Name(self.name, ast.Load())
        if isinstance(node, ast.Call):
            return ast.Call(node.func, [self.expression(argument) for argument in node.args], [])
        return self._copy(node)

    def _copy(self, node: ast.AST) -> ast.AST:
        """Formulas are shared between artifacts: their trees are not changed in place."""
        fields: dict[str, Any] = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                fields[name] = [self.visit(item) if isinstance(item, ast.AST) else item for item in value]
            else:
                fields[name] = self.visit(value) if isinstance(value, ast.AST) else value
        return type(node)(**fields)


def _ordered(trees: dict[str, ast.expr], names: dict[str, str]) -> Iterator[Derive]:
    """What is needed before what needs it, else in the given order."""
    done: set[str] = set()

    def emit(variable: str) -> Iterator[Derive]:
        if variable in done:
            return
        done.add(variable)
        formula = formulas.parse(ast.unparse(trees[variable]))
        for name in formula.names:
            if name in names:
                yield from emit(names[name])
        yield Derive(variable, formula)

    for variable in trees:
        yield from emit(variable)
