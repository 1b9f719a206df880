"""Trees of a model -> trees of generated code: tests resolved, constants folded, choices specialised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from autoheur.codegen.nodes import Assign, Block, Branch, Expression, IsChoice, Leaf, Part, Split, Test
from autoheur.heuristic.model import Forest, Tree

Resolve = Callable[[int, float], Test | bool]
"""Turns ``input[i] <= threshold`` into a test, or into its value where it is the same for every problem."""

MAX_HEIGHT = 40
"""Conditional expressions nested more deeply than this are cut into parts; Python's own parser gives up near 100."""


def depth(tree: Tree) -> int:
    """The number of tests on the longest path."""
    heights = [0] * len(tree.feature)
    for node in range(len(heights) - 1, -1, -1):  # children come after their parent
        if tree.feature[node] >= 0:
            heights[node] = 1 + max(heights[tree.left[node]], heights[tree.right[node]])
    return heights[0]


def to_blocks(forest: Forest, choices: int, resolve: Resolve, limit: int) -> Block | None:
    """The forest as statements that give every choice its score; ``None`` where they would be more than ``limit``.

    Choices that a tree treats alike share its statements and part only below a test of the choice, so the code is
    never longer than the trees.
    """
    everyone = tuple(range(choices))
    base = forest.base * choices if forest.layout == "row" else forest.base
    if not forest.trees:
        return _assign(everyone, base, add=False)
    block: Block = ()
    statements = 0
    for position, tree in enumerate(forest.trees):
        # The base is added to the first tree's leaves here: the same sum, in the same order.
        start = base if position == 0 else None
        added = _Specialiser(tree, forest.layout == "row", start, resolve).block(0, everyone)
        statements += _count(added)
        if statements > limit:
            return None
        block += added
    return block


class _Specialiser:
    """Turns one tree into statements, for a set of choices at a time."""

    def __init__(self, tree: Tree, per_choice: bool, base: Sequence[float] | None, resolve: Resolve) -> None:
        self.tree = tree
        self.per_choice = per_choice
        self.base = base
        self.resolve = resolve

    def block(self, node: int, choices: tuple[int, ...]) -> Block:
        tree = self.tree
        if not choices:
            return ()
        if tree.feature[node] < 0:
            return self._leaf(tree.value[node], choices)
        test = self.resolve(tree.feature[node], tree.threshold[node])
        left, right = tree.left[node], tree.right[node]
        if isinstance(test, bool):
            return self.block(left if test else right, choices)
        if isinstance(test, IsChoice):
            goes_left = tuple(c for c in choices if (c == test.index) == test.equal)
            goes_right = tuple(c for c in choices if c not in goes_left)
            return self.block(left, goes_left) + self.block(right, goes_right)
        then, orelse = self.block(left, choices), self.block(right, choices)
        return then if then == orelse else (Split(test, then, orelse),)

    def _leaf(self, value: Sequence[float], choices: tuple[int, ...]) -> Block:
        values = [value[0] if self.per_choice else value[choice] for choice in choices]
        if self.base is None:
            return _assign(choices, values, add=True)
        return _assign(choices, [self.base[c] + v for c, v in zip(choices, values, strict=True)], add=False)


def _assign(choices: tuple[int, ...], values: Sequence[float], add: bool) -> Block:
    """One statement for all choices of the same value, except that each addition needs its own."""
    if add:
        return tuple(Assign((choice,), value, add) for choice, value in zip(choices, values, strict=True))
    groups: dict[float, list[int]] = {}
    for choice, value in zip(choices, values, strict=True):
        groups.setdefault(value, []).append(choice)
    return tuple(Assign(tuple(targets), value, add) for value, targets in groups.items())


def _count(block: Block) -> int:
    """The number of statements, a test counting two (``if`` and ``else``)."""
    return sum(
        1 if isinstance(statement, Assign) else 2 + _count(statement.then) + _count(statement.orelse)
        for statement in block
    )


class Expressions:
    """Turns trees into conditional expressions, bottom-up, so that the depth of a tree does not matter.

    Equal subtrees become one object; a test whose branches are equal is dropped.
    """

    def __init__(self, resolve: Resolve) -> None:
        self.parts: list[Expression] = []
        self._resolve = resolve
        self._leaves: dict[tuple[float, ...], Leaf] = {}
        self._branches: dict[tuple[Test, int, int], Expression] = {}
        self._heights: dict[int, int] = {}

    def convert(self, tree: Tree) -> Expression:
        built: dict[int, Expression] = {}
        for node in range(len(tree.feature) - 1, -1, -1):  # children come after their parent
            if tree.feature[node] < 0:
                values = tuple(tree.value[node])
                built[node] = self._leaves.setdefault(values, Leaf(values))
                continue
            test = self._resolve(tree.feature[node], tree.threshold[node])
            then, orelse = built.pop(tree.left[node]), built.pop(tree.right[node])
            if isinstance(test, bool):
                built[node] = then if test else orelse
            else:
                built[node] = then if then is orelse else self._branch(test, then, orelse)
        return built[0]

    def _branch(self, test: Test, then: Expression, orelse: Expression) -> Expression:
        key = (test, id(then), id(orelse))
        known = self._branches.get(key)
        if known is not None:
            return known
        height = 1 + max(self._heights.get(id(then), 0), self._heights.get(id(orelse), 0))
        branch: Expression = Branch(test, then, orelse)
        if height >= MAX_HEIGHT:
            self.parts.append(branch)
            branch, height = Part(len(self.parts) - 1), 0
        self._heights[id(branch)] = height
        self._branches[key] = branch
        return branch


def tests(roots: Sequence[Expression]) -> Iterator[Test]:
    """The tests of all branches, each object once."""
    waiting, seen = list(roots), set[int]()
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, Branch) and id(tree) not in seen:
            seen.add(id(tree))
            yield tree.test
            waiting += (tree.then, tree.orelse)
