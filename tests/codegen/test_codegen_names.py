from __future__ import annotations

import ast
import builtins
import keyword
import math
import re

from hypothesis import given
from hypothesis import strategies as st

from autoheur.codegen.names import Identifiers, comment, literal, number

ANY_TEXT = st.text(st.characters(), max_size=40)  # surrogates too


@given(ANY_TEXT)
def test_a_literal_reads_back_as_its_text_and_is_ascii(text: str) -> None:
    assert ast.literal_eval(literal(text)) == text
    assert literal(text).isascii()


def test_a_literal_is_quoted_as_formatters_quote() -> None:
    assert literal("plain") == '"plain"'
    assert literal("it's") == '"it\'s"'
    assert literal('say "x"') == "'say \"x\"'"
    assert literal("both \"'") == '"both \\"\'"'


@given(st.floats(allow_nan=False))
def test_a_number_reads_back_exactly(value: float) -> None:
    assert eval(number(value)) == value
    assert math.copysign(1, eval(number(value))) == math.copysign(1, value)


@given(ANY_TEXT)
def test_a_comment_stays_on_its_line(text: str) -> None:
    assert len(comment(text).splitlines()) <= 1
    assert comment(text).isascii()
    assert len(comment(text)) <= 100


@given(st.lists(ANY_TEXT, max_size=20), st.sampled_from(["v_", "score_"]))
def test_identifiers_are_valid_distinct_and_shadow_nothing(names: list[str], prefix: str) -> None:
    identifiers = Identifiers(["problem", "decide"])
    taken = [identifiers.take(name, prefix) for name in [*names, "problem", "decide", "float", "class", "match"]]
    assert len(set(taken)) == len(taken)
    for identifier in taken:
        assert re.fullmatch("[A-Za-z][A-Za-z0-9_]*", identifier)
        assert identifier not in {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "problem", "decide"}


def test_an_ordinary_name_is_its_own_identifier() -> None:
    identifiers = Identifiers([])
    assert identifiers.take("mat1_stride_0") == "mat1_stride_0"
    assert identifiers.take("m*k") == "v_m_k"
    assert identifiers.take("m/k") == "v_m_k_2"


@given(ANY_TEXT)
def test_a_class_name_is_valid_and_free(name: str) -> None:
    taken = Identifiers(["LearnedHeuristic"]).take_class(name)
    assert re.fullmatch("[A-Z][A-Za-z0-9_]*", taken)
    assert taken not in {*dir(builtins), "LearnedHeuristic"}


def test_a_class_name_is_written_in_capitalised_words() -> None:
    assert Identifiers([]).take_class("pad_mm_a100") == "PadMmA100"
    assert Identifiers([]).take_class("value_error") == "ValueErrorHeuristic"
    assert Identifiers([]).take_class("2nd try") == "Heuristic2ndTry"
