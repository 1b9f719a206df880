from __future__ import annotations

import pytest

from autoheur import formula
from autoheur.errors import FormulaError
from autoheur.types import FeatureKind

KINDS: dict[str, FeatureKind] = {"m": "numerical", "x": "numerical", "dtype": "categorical"}
INTEGERS = frozenset({"m"})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("m * m", "integer"),
        ("m / m", "number"),
        ("m % 2 == 0", "truth"),
        ("x + m", "number"),
        ("(m != 0) + (x != 0)", "integer"),
        ("dtype == 'torch.float16' and m > 3", "truth"),
        ("m if m > 2 else 1", "integer"),
        ("m if dtype != 'a' else 0.5", "number"),
        ("log2(m)", "number"),
        ("min(trailing_zeros(x), 4)", "integer"),
        ("floor(x)", "integer"),
        ("min(m, 16)", "integer"),
        ("not m > 1 or False", "truth"),
        ("-m", "integer"),
    ],
)
def test_the_kind_of_a_formula_is_inferred(text: str, kind: str) -> None:
    assert formula.parse(text).kind(KINDS, INTEGERS) == kind


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "m.real",
        "m[0]",
        "[m for m in x]",
        "lambda: m",
        "m ** m",
        "m << 60",
        "f'{m}'",
        "(m := 1)",
        "m < x < 3",
        "print(m)",
        "min(m)",
        "min(m, x, 1)",
        "log2(m, base=2)",
        "log2(*x)",
        "1e999",
        "10 ** 9",
        "99999999999999999999",
        "",
        "m +",
        "None",
        "...",
        "m is x",
        "1j",
        "b'm'",
        "-" * 200 + "m",
        "m" + " + m" * 3000,
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(FormulaError):
        formula.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k + 1", "names 'k', which is not a raw feature (known: m, x, dtype)"),
        ("dtype + 1", "'dtype' is a category where a number is needed"),
        ("dtype < 'a'", "orders categories"),
        ("dtype == 1", "compares a category with a number"),
        ("m and x", "'m' is not a truth value"),
        ("1 if m else 2", "'m' is not a truth value"),
    ],
)
def test_type_errors_say_which_part_is_wrong(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as error:
        formula.parse(text).kind(KINDS, INTEGERS)
    assert message in str(error.value)


def test_python_source_uses_the_names_it_is_told_and_keeps_functions() -> None:
    parsed = formula.parse("min(m, log2(x)) * m")
    assert formula.to_python(parsed, {"m": "v_m", "x": "v_x", "min": "nonsense"}) == "min(v_m, log2(v_x)) * v_m"
    assert formula.functions_used(parsed) == {"min", "log2"}
    assert parsed.names == ("m", "x")
