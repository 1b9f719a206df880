"""What the padding operators sample."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import pytest

from autoheur import default_registry
from autoheur.fingerprint import KNOWN, Fingerprint
from autoheur.types import Operand, Problem
from autoheur_pad_mm.sampling import CPU_BYTES, CPU_SECONDS, CPU_SPREAD, Limits, is_contiguous

OPERATORS = ("pad_mm", "bmm", "addmm")
CPU = Fingerprint("cpu", vendor="Acme", isa="avx512_bf16", cores=4)
SMALL_GPU = Fingerprint("cuda", "NVIDIA Tiny", "7.5", memory_gib=1)
ITEM_SIZE = {"torch.float16": 2, "torch.bfloat16": 2, "torch.float32": 4}


def sample(operator: str, device: Fingerprint, count: int = 1500, seed: int = 0) -> list[Problem]:
    return list(itertools.islice(default_registry().operator(operator).problems(Random(seed), device), count))


def sizes(problem: Problem) -> tuple[int, int, int, int]:
    return int(problem.get("b", 1)), int(problem["m"]), int(problem["k"]), int(problem["n"])


def needed_bytes(problem: Problem) -> int:
    """Both operands, a padded copy of each, and the product."""
    b, m, k, n = sizes(problem)
    return b * (2 * m * k + 2 * k * n + m * n) * ITEM_SIZE[str(problem["mat1_dtype"])]


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_same_seed_samples_the_same_problems(operator: str) -> None:
    assert sample(operator, CPU, 50, seed=1) == sample(operator, CPU, 50, seed=1)
    assert sample(operator, CPU, 50, seed=1) != sample(operator, CPU, 50, seed=2)


@pytest.mark.parametrize("operator", OPERATORS)
def test_problems_fit_into_a_third_of_the_devices_memory(operator: str) -> None:
    problems = sample(operator, SMALL_GPU)
    largest = max(map(needed_bytes, problems))
    assert largest <= 2**30 / 3
    assert largest > 2**30 / 10, "what fits is used"
    assert max(map(needed_bytes, sample(operator, KNOWN["a100"]))) > 2**30 / 3 or operator == "bmm"


@pytest.mark.parametrize("operator", OPERATORS)
def test_problems_on_a_cpu_are_small_enough_to_be_quick(operator: str) -> None:
    for problem in sample(operator, CPU):
        b, m, k, n = sizes(problem)
        rate = 1e9 if problem["mat1_dtype"] == "torch.float16" else 20e9
        assert 2 * b * m * k * n / (rate * 4) <= CPU_SECONDS
        assert needed_bytes(problem) <= CPU_BYTES


def test_a_cpu_without_bfloat16_instructions_gets_smaller_bfloat16_problems() -> None:
    old, new = (Limits.of(Fingerprint("cpu", isa=isa, cores=1), "torch.bfloat16") for isa in ("avx2", "amx"))
    assert old.operations < new.operations


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("device", [CPU, SMALL_GPU, KNOWN["a100"], KNOWN["h200"]], ids=lambda device: device.label())
def test_every_problem_needs_padding(operator: str, device: Fingerprint) -> None:
    for problem in sample(operator, device, 400):
        assert any(problem[f"{dim}_padded_length"] for dim in "mkn")


@pytest.mark.parametrize("operator", OPERATORS)
def test_dtypes_layouts_and_flags_have_the_published_shares(operator: str) -> None:
    problems = sample(operator, SMALL_GPU, 4000)
    count = len(problems)
    dtypes = Counter(problem["mat1_dtype"] for problem in problems)
    assert set(dtypes) == set(ITEM_SIZE)
    assert all(0.25 < number / count < 0.42 for number in dtypes.values()), (
        "all alike, but float32 is aligned more often"
    )
    dense = [problem for problem in problems if contiguous(problem, "mat1")]
    prepadded = sum(problem["prepadded_mat1"] is True for problem in dense) / len(dense)
    assert 0.17 < prepadded < 0.23
    float32 = [problem for problem in problems if problem["mat1_dtype"] == "torch.float32"]
    assert 0.16 < sum(problem["using_tf32"] is True for problem in float32) / len(float32) < 0.24
    both = sum(column_major(problem, "mat1") and column_major(problem, "mat2") for problem in problems) / count
    assert 0.03 < both < 0.08
    for operand in ("mat1", "mat2"):
        assert 0.28 < sum(column_major(problem, operand) for problem in problems) / count < 0.45


def column_major(problem: Problem, operand: str) -> bool:
    return problem[f"{operand}_stride_0"] == 1 and problem[f"{operand}_stride_1"] != 1


def contiguous(problem: Problem, operand: str) -> bool:
    shape = [problem[dim] for dim in ("mk" if operand == "mat1" else "kn")]
    stride = [problem[f"{operand}_stride_{dim}"] for dim in (0, 1)]
    if "b" in problem:
        shape, stride = [problem["b"], *shape], [problem[f"{operand}_stride_b"], *stride]
    return is_contiguous(Operand(tuple(map(int, shape)), tuple(map(int, stride)), ""))


@pytest.mark.parametrize("operator", OPERATORS)
def test_only_contiguous_operands_are_prepadded(operator: str) -> None:
    for problem in sample(operator, SMALL_GPU):
        for operand in ("mat1", "mat2"):
            if problem[f"prepadded_{operand}"]:
                assert contiguous(problem, operand)


def test_sizes_are_uniform_powers_of_two_beside_them_multiples_and_unaligned() -> None:
    drawn = [int(problem[dim]) for problem in sample("pad_mm", Fingerprint("cuda", memory_gib=80)) for dim in "mkn"]
    powers = {1 << exponent for exponent in range(1, 17)}
    kinds = {
        "power of two": sum(size in powers for size in drawn),
        "beside one": sum(any(0 < abs(size - power) <= 4 for power in powers if power >= 64) for size in drawn),
        "multiple of 8": sum(size % 8 == 0 and size not in powers for size in drawn),
        "unaligned": sum(size % 8 != 0 for size in drawn),
        "large": sum(size > 20_000 for size in drawn),
    }
    shares = {kind: number / len(drawn) for kind, number in kinds.items()}
    assert 0.15 < shares["power of two"] < 0.4
    assert 0.02 < shares["beside one"] < 0.15
    assert 0.05 < shares["multiple of 8"] < 0.25
    assert 0.4 < shares["unaligned"] < 0.75
    assert shares["large"] > 0.15


def test_a_device_of_unknown_memory_gets_problems_for_a_common_one() -> None:
    assert Limits.of(Fingerprint("cuda"), "torch.float16") == Limits.of(
        Fingerprint("cuda", memory_gib=16), "torch.float16"
    )


@pytest.mark.parametrize(("device", "smallest"), [("a100", 512), ("h200", 768)])
def test_pad_mm_samples_what_its_precondition_admits(device: str, smallest: int) -> None:
    problems = sample("pad_mm", KNOWN[device], 300)
    assert min(int(problem[dim]) for problem in problems for dim in "mkn") >= smallest


def test_bmm_samples_batches_of_all_sizes_and_kinds() -> None:
    problems = sample("bmm", SMALL_GPU, 4000)
    batches = [int(problem["b"]) for problem in problems]
    assert (min(batches), max(batches) > 200) == (1, True)
    assert 0.35 < sum(batch <= 16 for batch in batches) / len(batches) < 0.75
    many = [problem for problem in problems if int(problem["b"]) > 1 and int(problem["k"]) > 1]
    expanded = sum(problem["mat1_stride_b"] == 0 for problem in many) / len(many)
    inside = sum(problem["mat1_stride_b"] in (problem["k"], problem["m"]) for problem in many) / len(many)
    assert 0.07 < expanded < 0.13
    assert 0.07 < inside < 0.2


def test_addmm_samples_every_form_of_bias_and_factor() -> None:
    problems = sample("addmm", SMALL_GPU, 3000)
    forms = Counter(problem["bias_form"] for problem in problems)
    assert set(forms) == {"n", "1n", "m1", "mn", "1"}
    assert forms["n"] > len(problems) / 2
    assert set(Counter(problem["beta"] for problem in problems)) == {"0", "1", "other"}


def test_is_contiguous_agrees_with_torch() -> None:
    import torch

    for shape in itertools.product((1, 2, 3), repeat=3):
        for stride in itertools.product((0, 1, 2, 3, 6, 9), repeat=3):
            tensor = torch.empty(100).as_strided(shape, stride)
            assert is_contiguous(Operand(shape, stride, "torch.float32")) == tensor.is_contiguous()


def test_a_cpus_products_are_mostly_small_and_a_gpus_as_published() -> None:
    cpu = Fingerprint("cpu", cores=2)
    gpu = Fingerprint("cuda", "NVIDIA A100", "8.0", memory_gib=40)
    random = Random(0)
    full = Limits.of(cpu, "torch.float32")
    drawn = sorted(Limits.draw(random, cpu, "torch.float32").operations for _ in range(999))
    assert full.operations / CPU_SPREAD < drawn[0]
    assert drawn[-1] <= full.operations
    assert drawn[499] == pytest.approx(full.operations / CPU_SPREAD**0.5, rel=0.5)
    before = random.getstate()
    assert Limits.draw(random, gpu, "torch.float32") == Limits.of(gpu, "torch.float32")
    assert random.getstate() == before, "the problems of a seed on a GPU stay what they were"


def test_where_nothing_is_padded_there_is_nothing_to_choose() -> None:
    for name in ("pad_mm", "bmm", "addmm"):
        operator = default_registry().operator(name)
        problem = dict(next(operator.problems(Random(0), Fingerprint("cpu", cores=1))))
        assert [choice.name for choice in operator.choices(problem)] == ["orig", "pad"]
        assert operator.choices(problem) == operator.choices(None)
        problem.update({f"{dim}_padded_length": 0 for dim in "mkn"})
        assert [choice.name for choice in operator.choices(problem)] == ["orig"]
