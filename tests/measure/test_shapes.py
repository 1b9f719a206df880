"""Files of shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from autoheur import default_registry
from autoheur.errors import InputError
from autoheur.measure.shapes import read_shapes
from autoheur.types import Problem

FULL = {
    "m": 5,
    "k": 8,
    "n": 7,
    "mat1_stride_0": 8,
    "mat1_stride_1": 1,
    "mat2_stride_0": 1,
    "mat2_stride_1": 8,
    "m_padded_length": 3,
    "k_padded_length": 0,
    "n_padded_length": 0,
    "mat1_align_size": 8,
    "mat2_align_size": 8,
    "mat1_dtype": "torch.float16",
    "mat2_dtype": "torch.float16",
    "prepadded_mat1": "True",
    "prepadded_mat2": "False",
    "using_tf32": "not_float_32",
}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., list[Problem]]:
    def from_text(text: str, operator: str = "pad_mm") -> list[Problem]:
        path = tmp_path / "shapes.csv"
        path.write_text(text)
        return read_shapes(path, default_registry().operator(operator))

    return from_text


def rows(*problems: dict[str, Any]) -> str:
    return pl.DataFrame(problems).write_csv()


def test_raw_features_are_taken_as_they_are(read: Callable[..., list[Problem]]) -> None:
    assert read(rows(FULL)) == [FULL], "n is unaligned, yet unpadded: it was symbolic"


def test_parquet_and_csv_give_the_same_problems(read: Callable[..., list[Problem]], tmp_path: Path) -> None:
    path = tmp_path / "shapes.parquet"
    pl.DataFrame([FULL | {"prepadded_mat1": True, "prepadded_mat2": False}]).write_parquet(path)
    assert read_shapes(path, default_registry().operator("pad_mm")) == read(rows(FULL)) == [FULL]


def test_the_short_form_is_completed(read: Callable[..., list[Problem]]) -> None:
    text = "m,k,n,dtype,mat2_transposed,prepadded_mat1,n_padded_length\n5,8,7,float16,true,true,0\n"
    assert read(text) == [FULL]


def test_the_short_form_takes_float32_with_tf32(read: Callable[..., list[Problem]]) -> None:
    first, second = read("m,k,n,dtype,using_tf32\n5,6,7,torch.float32,true\n5,6,7,float32,\n")
    assert (first["using_tf32"], second["using_tf32"]) == ("True", "False")
    assert (first["m_padded_length"], first["k_padded_length"], first["n_padded_length"]) == (3, 2, 1)


def test_batches_may_be_expanded(read: Callable[..., list[Problem]]) -> None:
    text = "b,m,k,n,dtype,mat1_expanded,mat2_transposed\n3,5,6,7,bfloat16,true,true\n"
    (problem,) = read(text, "bmm")
    assert [problem[f"mat1_stride_{dim}"] for dim in "b01"] == [0, 6, 1]
    assert [problem[f"mat2_stride_{dim}"] for dim in "b01"] == [42, 1, 6]


def test_addmm_has_a_bias_of_shape_n_unless_told_otherwise(read: Callable[..., list[Problem]]) -> None:
    text = "m,k,n,dtype,bias_form,beta\n5,6,7,float16,,\n5,6,7,float16,mn,0\n5,6,7,float16,1n,0.25\n"
    problems = read(text, "addmm")
    assert [(problem["bias_form"], problem["beta"]) for problem in problems] == [
        ("n", "1"),
        ("mn", "0"),
        ("1n", "other"),
    ]


def test_a_file_may_hold_shapes_of_several_operators_with_counts(read: Callable[..., list[Problem]]) -> None:
    text = "operator,b,m,k,n,dtype,count\npad_mm,,5,6,7,float16,12\n\nbmm,3,9,6,7,float16,1\n"
    assert [problem["m"] for problem in read(text, "pad_mm")] == [5]
    assert [problem["m"] for problem in read(text, "bmm")] == [9]
    with pytest.raises(InputError, match="no shape for operator 'addmm'"):
        read(text, "addmm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"shapes\.csv:1: no column names"),
        ("m,k,n,dtype\n", r"shapes\.csv: no shape for operator 'pad_mm'"),
        ("m,k,m,dtype\n1,2,3,float16\n", r"shapes\.csv:1: the column 'm' is there twice"),
        ("m,k,n,dtype\n5,6,7,float16\n5,6\n", r"shapes\.csv:3: 2 values, but the header names 4"),
        ("m,k,n,dtype\n5,6,x,float16\n", r"shapes\.csv:2: n must be a whole number of at least 1, not 'x'"),
        ("m,k,n,dtype\n5,6,7.5,float16\n", r"shapes\.csv:2: n must be a whole number"),
        ("m,k,n,dtype\n5,0,7,float16\n", r"shapes\.csv:2: k must be a whole number of at least 1, not '0'"),
        ("m,k,n,dtype\n5,,7,float16\n", r"shapes\.csv:2: no k: give a column k"),
        ("m,k,n\n5,6,7\n", r"shapes\.csv:2: no dtype"),
        ("m,k,n,dtype\n5,6,7,half-baked\n", r"shapes\.csv:2: dtype 'half-baked' is not a dtype"),
        ("m,k,n,dtype,colour\n5,6,7,float16,red\n", r"shapes\.csv:2: features unknown colour"),
        ("m,k,n,dtype,mat1_transposed\n5,6,7,float16,maybe\n", r"shapes\.csv:2: mat1_transposed must be true or false"),
        ('m,k,n,dtype\n5,6,"7,float16\n', r"shapes\.csv:2: not CSV"),
        (rows(FULL | {"m_padded_length": -1}), r"shapes\.csv:2: m_padded_length must be at least 0, not -1"),
        (rows(FULL | {"m": 0}), r"shapes\.csv:2: m must be at least 1, not 0"),
        (rows(FULL | {"m": "many"}), r"shapes\.csv:2: m must be a whole number, not 'many'"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(read: Callable[..., list[Problem]], text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read(text)
    assert "\n" not in str(raised.value)


def test_an_unknown_bias_form_is_told(read: Callable[..., list[Problem]]) -> None:
    with pytest.raises(InputError, match=r"shapes\.csv:2: bias_form 'nm' is none of n, 1n, m1, mn, 1"):
        read("m,k,n,dtype,bias_form\n5,6,7,float16,nm\n", "addmm")


@pytest.mark.parametrize("name", ["missing.csv", "missing.parquet", "broken.parquet", "binary.csv"])
def test_files_that_cannot_be_read_are_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if not name.startswith("missing"):
        path.write_bytes(b"\xff\xfe\x00PAR")
    with pytest.raises(InputError, match=name) as raised:
        read_shapes(path, default_registry().operator("pad_mm"))
    assert "\n" not in str(raised.value)
