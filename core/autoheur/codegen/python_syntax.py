"""Expressions of generated Python: formulas, tests and trees as text."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from autoheur import formula as formulas
from autoheur.codegen.names import literal, number
from autoheur.codegen.nodes import AtMost, Expression, Guard, InRange, IsChoice, Leaf, Matches, Part, Test, Truth
from autoheur.formula import Formula


def guard(check: Guard) -> str:
    if isinstance(check, InRange):
        return f"{number(check.low)} <= {check.variable} <= {number(check.high)}"
    if len(check.categories) == 1:
        return f"{check.variable} == {literal(check.categories[0])}"
    # An empty pair of braces would be a dictionary, in which there is nothing either.
    return f"{check.variable} in {{{', '.join(literal(c) for c in check.categories)}}}"


def expression(tree: Expression, parameters: list[str]) -> str:
    if isinstance(tree, Leaf):
        return _values(tree.values, len(tree.values) == 1)
    if isinstance(tree, Part):
        return f"_part_{tree.index}({', '.join(parameters)})"
    then, orelse = expression(tree.then, parameters), expression(tree.orelse, parameters)
    if not isinstance(tree.then, Leaf):
        then = f"({then})"
    return f"{then} if {test(tree.test)} else {orelse}"


def _values(values: tuple[float, ...], single: bool) -> str:
    return number(values[0]) if single else f"({', '.join(number(value) for value in values)})"


def test(asked: Test) -> str:
    match asked:
        case AtMost(variable=variable, limit=limit):
            return f"{variable} <= {number(limit)}"
        case Matches(variable=variable, category=category, equal=equal):
            return f"{variable} {'==' if equal else '!='} {literal(category)}"
        case Truth(variable=variable, expected=expected):
            return variable if expected else f"not {variable}"
        case IsChoice(index=index, equal=equal):
            return f"choice {'==' if equal else '!='} {index}"


def formula(source: Formula, variables: Mapping[str, str]) -> str:
    """A formula as source: names replaced, strings quoted as formatters do, functions qualified."""
    renamed = ast.parse(formulas.to_python(source, variables), mode="eval")
    return ast.unparse(_Polish().visit(renamed))


class _Polish(ast.NodeTransformer):
    """Puts finished source text in place of nodes, by way of names: ``ast.unparse`` prints those as they are."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            return ast.Name(literal(node.value))
        return ast.Name(number(node.value)) if isinstance(node.value, float) else node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        arguments = [self.visit(argument) for argument in node.args]
        assert isinstance(node.func, ast.Name), "formulas call functions by name"
        name = node.func.id
        if name == "log2":
            return ast.Call(ast.Name("math.log2"), arguments, [])
        if name in ("floor", "ceil"):
            # Formulas compute in float64 throughout; Python's own floor gives an int.
            return ast.Call(ast.Name("float"), [ast.Call(ast.Name(f"math.{name}"), arguments, [])], [])
        if name == "trailing_zeros":
            return ast.Call(ast.Name("_trailing_zeros"), arguments, [])
        return ast.Call(node.func, arguments, [])
