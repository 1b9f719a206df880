"""What `import autoheur` and a decision pull in: nothing that takes long to load."""

from __future__ import annotations

import os
import subprocess
import sys

PAD_MM = {
    "m": 4097, "k": 2049, "n": 1025,
    "mat1_stride_0": 2049, "mat1_stride_1": 1, "mat2_stride_0": 1025, "mat2_stride_1": 1,
    "m_padded_length": 7, "k_padded_length": 7, "n_padded_length": 7, "mat1_align_size": 8, "mat2_align_size": 8,
    "mat1_dtype": "torch.float16", "mat2_dtype": "torch.float16",
    "prepadded_mat1": False, "prepadded_mat2": False, "using_tf32": "not_float_32",
}  # fmt: skip

DECIDE = f"""
import autoheur, autoheur.fingerprint
decision = autoheur.decide("pad_mm", {PAD_MM!r}, device=autoheur.fingerprint.parse("a100"))
assert decision.reason in ("decided", "below_threshold", "out_of_range"), decision
"""

HEAVY = ("joblib", "numpy", "pandas", "polars", "scipy", "sklearn", "torch", "triton")
LOADED = f"print([name for name in {HEAVY} if name in sys.modules])"
BLOCK = f"sys.modules.update(dict.fromkeys({HEAVY}))\n"  # importing them now raises ImportError


def python(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_check_sees_a_heavy_import() -> None:
    assert python(f"import numpy\n{LOADED}") == "['numpy']"


def test_importing_autoheur_loads_nothing_heavy() -> None:
    assert python(f"import autoheur\n{LOADED}") == "[]"


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    assert python(f"import autoheur.cli.main\n{LOADED}") == "[]"


def test_a_decision_loads_nothing_heavy_with_every_plugin_installed() -> None:
    assert python(f"{DECIDE}\n{LOADED}") == "[]"


def test_core_and_pad_mm_decide_where_nothing_heavy_can_be_imported() -> None:
    assert python(f"{BLOCK}{DECIDE}\nprint('done')", AUTOHEUR_PLUGINS="pad_mm") == "done"


def test_a_broken_heavy_package_of_a_learner_does_not_break_a_decision() -> None:
    assert python(f"{BLOCK}{DECIDE}\nprint('done')") == "done"
