"""The formula language for derived features and preconditions.

A formula is data: a string with a small part of Python's expression grammar, over the names of raw features. It is
parsed once, checked against a white list, and from there either printed as Python source (generated code) or
evaluated over whole columns (training); nothing from it is ever handed to ``eval``.

    names, numbers, 'strings', True, False
    + - * / // %   unary -   == != < <= > >=   and or not   A if C else B
    min(a, b) max(a, b) abs(a) log2(a) floor(a) ceil(a) trailing_zeros(a)

Numbers are float64 throughout, so Python and numpy agree bit for bit; a truth value in arithmetic counts 0 or 1.
Categorical features are compared, as strings, with ``==`` and ``!=``. ``trailing_zeros`` says how often 2 divides a
number's whole part, which is the logarithm of its alignment; 64 for 0.
"""

from __future__ import annotations

import ast
import keyword
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

import attrs

from autoheur.errors import FormulaError
from autoheur.types import FeatureKind

FormulaKind = Literal["number", "integer", "truth", "category"]

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARISON: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
FUNCTIONS: dict[str, int] = {"min": 2, "max": 2, "abs": 1, "log2": 1, "floor": 1, "ceil": 1, "trailing_zeros": 1}
"""Function name -> number of arguments."""

_MAX_LENGTH = 4000


@attrs.frozen
class Formula:
    """A parsed, checked formula. ``names`` are the raw features it reads, in order of first use."""

    text: str
    tree: ast.expr = attrs.field(eq=False, repr=False)
    names: tuple[str, ...] = attrs.field(eq=False, repr=False)

    def kind(self, kinds: Mapping[str, FeatureKind], integers: frozenset[str] = frozenset()) -> FormulaKind:
        """Type-check against the raw features' kinds.

        ``integers`` names the numerical features that only take whole numbers. Returns ``truth`` for a formula that
        yields True or False, ``integer`` for whole numbers, ``number`` otherwise.

        Raises:
            FormulaError: a name is unknown, or a category is used as a number or the other way round.
        """
        for name in self.names:
            if name not in kinds:
                known = ", ".join(kinds)
                raise FormulaError(f"formula {self.text!r} names {name!r}, which is not a raw feature (known: {known})")
        return _Checker(self.text, kinds, integers).visit(self.tree)


@lru_cache(maxsize=4096)
def parse(text: str) -> Formula:
    """Parse and check one formula.

    Raises:
        FormulaError: the text is not in the language; the message quotes the part that is not.
    """
    if len(text) > _MAX_LENGTH:
        raise FormulaError(f"formula is longer than {_MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FormulaError(f"formula {text!r} cannot be parsed: {error}") from None
    names: dict[str, None] = {}
    _check_node(tree, text, names, depth=0)
    return Formula(text.strip(), tree, tuple(names))


def _check_node(node: ast.expr, text: str, names: dict[str, None], depth: int) -> None:
    if depth > 60:
        raise FormulaError(f"formula {text!r} is nested too deeply")
    children: list[ast.expr]
    match node:
        case ast.Constant(value=value) if isinstance(value, bool | int | float | str):
            if isinstance(value, float) and not (value == value and abs(value) != float("inf")):
                raise FormulaError(f"formula {text!r} has a number that is not finite")
            if isinstance(value, int) and abs(value) > 2**53:
                raise FormulaError(f"formula {text!r} has a whole number beyond 2**53")
            children = []
        case ast.Name(id=name):
            names.setdefault(name)
            children = []
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            children = [left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            children = [operand]
        case ast.BoolOp(values=values):
            children = list(values)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISON:
            children = [left, right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = [test, body, orelse]
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]) if function in FUNCTIONS:
            if len(args) != FUNCTIONS[function]:
                raise FormulaError(f"formula {text!r}: {function} takes {FUNCTIONS[function]} argument(s)")
            children = list(args)
        case _:
            try:
                part = ast.unparse(node)
            except RecursionError:
                part = f"{type(node).__name__}, deeply nested,"
            raise FormulaError(f"formula {text!r}: {part!r} is not in the formula language")
    for child in children:
        _check_node(child, text, names, depth + 1)


class _Checker:
    """Infers the kind of every sub-expression."""

    def __init__(self, text: str, kinds: Mapping[str, FeatureKind], integers: frozenset[str]) -> None:
        self.text = text
        self.kinds = kinds
        self.integers = integers

    def visit(self, node: ast.expr) -> FormulaKind:
        match node:
            case ast.Constant(value=bool()):
                return "truth"
            case ast.Constant(value=int()):
                return "integer"
            case ast.Constant(value=float()):
                return "number"
            case ast.Constant():
                return "category"
            case ast.Name(id=name):
                if self.kinds[name] == "categorical":
                    return "category"
                return "integer" if name in self.integers else "number"
            case ast.BinOp(left=left, op=op, right=right):
                whole = self._numeric(left) and self._numeric(right) and not isinstance(op, ast.Div)
                return "integer" if whole else "number"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._truth(operand)
                return "truth"
            case ast.UnaryOp(operand=operand):
                return "integer" if self._numeric(operand) else "number"
            case ast.BoolOp(values=values):
                for value in values:
                    self._truth(value)
                return "truth"
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                sides = {self.visit(left) == "category", self.visit(right) == "category"}
                if len(sides) == 2 or (sides == {True} and not isinstance(op, ast.Eq | ast.NotEq)):
                    self._fail(node, "compares a category with a number, or orders categories")
                return "truth"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._truth(test)
                first, second = self.visit(body), self.visit(orelse)
                if first == second and first != "category":
                    return first
                return "integer" if self._numeric(body) and self._numeric(orelse) else "number"
            case ast.Call(func=ast.Name(id=function), args=args):
                whole_arguments = [self._numeric(argument) for argument in args]  # all of them are checked
                if function in ("floor", "ceil", "trailing_zeros"):
                    return "integer"
                return "integer" if all(whole_arguments) and function != "log2" else "number"
        raise AssertionError(f"unchecked node {node!r}")

    def _numeric(self, node: ast.expr) -> bool:
        """Require a number; tell whether it is whole."""
        kind = self.visit(node)
        if kind == "category":
            self._fail(node, "is a category where a number is needed")
        return kind in ("integer", "truth")

    def _truth(self, node: ast.expr) -> None:
        if self.visit(node) != "truth":
            self._fail(node, "is not a truth value")

    def _fail(self, node: ast.expr, what: str) -> None:
        raise FormulaError(f"formula {self.text!r}: {ast.unparse(node)!r} {what}")


def to_python(formula: Formula, rename: Mapping[str, str] | None = None) -> str:
    """Print a formula as Python source, with raw feature names replaced as ``rename`` says.

    The source expects the numerical names to be floats, the categorical ones strings, and ``log2``, ``floor``, ``ceil``
    and ``trailing_zeros`` in scope when :func:`functions_used` names them.
    """
    renamed = _Rename(dict(rename or {})).visit(ast.parse(formula.text, mode="eval"))
    return ast.unparse(renamed)


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        # Only the arguments: a function's name is not a feature.
        node.args = [self.visit(argument) for argument in node.args]
        return node


def trailing_zeros(value: float) -> float:
    """How often 2 divides the whole part of a number; 64 for 0.

    Raises:
        ArithmeticError, ValueError: the value is not finite.
    """
    whole = int(value)
    return float((whole & -whole).bit_length() - 1) if whole else 64.0


def functions_used(formula: Formula) -> frozenset[str]:
    """The names of the functions that a formula calls."""
    return frozenset(
        node.func.id
        for node in ast.walk(formula.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )


def is_plain_name(name: str) -> bool:
    """Whether a raw feature's name can be written in a formula as it is."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in FUNCTIONS


ARITHMETIC_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
COMPARISON_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def arithmetic_symbol(op: ast.operator) -> str:
    return _ARITHMETIC[type(op)]


def comparison_symbol(op: ast.cmpop) -> str:
    return _COMPARISON[type(op)]
