"""Sizes, dtypes and layouts to sample for padding problems, shared by mm, addmm and bmm.

Modelled on the generator behind PyTorch's published measurements (torchgen/_autoheuristic/pad_mm/gen_data_pad_mm.py),
with two additions: sizes beside powers of two and multiples of common tile sizes, and limits on the time that one
product takes.
"""

from __future__ import annotations

from random import Random

import attrs

from autoheur.plugin import Fingerprint, Operand, Value

DTYPES = ("torch.float16", "torch.bfloat16", "torch.float32")
ITEM_SIZE = {"torch.float16": 2, "torch.bfloat16": 2, "torch.float32": 4}

LARGEST = 65536
"""The largest dimension of a product; bmm's are smaller."""

UNIFORM, POWERS = 0.4, 0.4
"""Probabilities of drawing all sizes uniformly and of the published power-of-two scheme; else :func:`_structured`."""

UNALIGNED = 0.25
"""In the power-of-two scheme, the probability that a dimension lies between two powers."""

PREPADDED = 0.2
TF32 = 0.2
"""Probability that a float32 product may use TF32, on a GPU."""

MEMORY_SHARE = 1 / 3
UNKNOWN_MEMORY_GIB = 16
"""What a device is taken to have whose fingerprint does not tell its memory."""

GPU_SECONDS, GPU_FLOPS = 1.0, {"torch.float16": 100e12, "torch.bfloat16": 100e12, "torch.float32": 15e12}
"""A product on a GPU takes at most about this long at these conservative rates (operations per second)."""

CPU_SECONDS, CPU_FLOPS_PER_CORE, CPU_SLOW_FLOPS_PER_CORE = 0.05, 20e9, 1e9
"""Likewise on a CPU; the slow rate is for 16-bit types that the instruction set does not multiply."""

CPU_BYTES = 256 * 2**20
"""Operands, padded copies and product on a CPU: about 50 ms to read at 5 GB/s."""

CPU_SPREAD = 1000
"""On a CPU each problem's limits are so much lower at most, log-uniformly: most products then take a millisecond or
less, and a machine of two cores measures several problems a second."""

_NATIVE = {"torch.float32": None, "torch.bfloat16": ("amx", "avx512_bf16"), "torch.float16": ()}
"""dtype -> the instruction sets (``Fingerprint.isa``) known to multiply it at full rate; None for all."""


@attrs.frozen
class Limits:
    """What a problem may need: ``memory`` in bytes and ``operations`` (2 m k n, times the batch), for one dtype."""

    memory: float
    operations: float
    item_size: int

    @classmethod
    def of(cls, device: Fingerprint, dtype: str) -> Limits:
        if device.kind == "cpu":
            native = _NATIVE[dtype]
            rate = CPU_FLOPS_PER_CORE if native is None or device.isa in native else CPU_SLOW_FLOPS_PER_CORE
            return cls(CPU_BYTES, CPU_SECONDS * rate * (device.cores or 1), ITEM_SIZE[dtype])
        gib = device.memory_gib or UNKNOWN_MEMORY_GIB
        return cls(gib * 2**30 * MEMORY_SHARE, GPU_SECONDS * GPU_FLOPS[dtype], ITEM_SIZE[dtype])

    @classmethod
    def draw(cls, random: Random, device: Fingerprint, dtype: str) -> Limits:
        """The limits of one problem: on a GPU those of every problem, on a CPU lower ones more often than not."""
        limits = cls.of(device, dtype)
        if device.kind != "cpu":
            return limits
        share = CPU_SPREAD ** -random.random()
        return attrs.evolve(limits, memory=share * limits.memory, operations=share * limits.operations)

    def admit(self, m: int, k: int, n: int, batch: int = 1) -> bool:
        """Whether both operands, a padded copy of each and the product fit, and the product is quick enough."""
        elements = batch * (2 * m * k + 2 * k * n + m * n)
        return elements * self.item_size <= self.memory and 2 * batch * m * k * n <= self.operations

    def largest_uniform(self, largest: int) -> int:
        """The upper end of a uniform distribution from which a fair share of problems is admitted."""
        by_operations = 4 * (self.operations / 2) ** (1 / 3)
        by_memory = 4 * (self.memory / self.item_size / 5) ** (1 / 2)
        return max(1, int(min(largest, by_operations, by_memory)))


def draw_sizes(random: Random, limits: Limits, largest: int = LARGEST, batch: int = 1) -> tuple[int, int, int]:
    """Draw m, k and n that ``limits`` admit."""
    scheme = random.random()
    highest = largest.bit_length() - 1
    while True:
        if scheme < UNIFORM:
            sizes = [random.randint(1, limits.largest_uniform(largest)) for _ in range(3)]
        elif scheme < UNIFORM + POWERS:
            sizes = [_power_or_between(random, highest) for _ in range(3)]
        else:
            sizes = [_structured(random, highest) for _ in range(3)]
        m, k, n = (min(size, largest) for size in sizes)
        if limits.admit(m, k, n, batch):
            return m, k, n


def _power_or_between(random: Random, highest: int) -> int:
    """A power of two from 2 to 2**highest, or a size between two neighbouring ones."""
    if random.random() >= UNALIGNED:
        return 1 << random.randint(1, highest)
    exponent = random.randint(1, highest - 1)
    return random.randint((1 << exponent) + 1, (1 << exponent + 1) - 1)


def _structured(random: Random, highest: int) -> int:
    """A size beside a power of two, a multiple of a tile size, or one beside a multiple of the alignment."""
    kind = random.randrange(3)
    if kind == 0:
        return max(1, (1 << random.randint(3, highest)) + random.choice((-4, -3, -2, -1, 1, 2, 3, 4)))
    near = _log_uniform(random, 1 << highest)
    if kind == 1:
        tile = random.choice((8, 16, 24, 32, 48, 64, 96, 128))
        return max(1, round(near / tile)) * tile
    return near // 8 * 8 + random.randint(1, 7)


def _log_uniform(random: Random, largest: int) -> int:
    """A whole number from 1 to ``largest``, its logarithm uniformly distributed."""
    return min(largest, int(2 ** (random.random() * (largest.bit_length() - 1 + 1e-9))))


def draw_batch(random: Random, largest: int) -> int:
    """A batch size from 1 to ``largest``, log-uniform."""
    return _log_uniform(random, largest)


def draw_transposed(random: Random) -> tuple[bool, bool]:
    """Which operands are column-major: both in 5 %, else mat1, mat2 or none alike, as in the published generator."""
    if random.random() < 0.05:
        return True, True
    return random.choice(((True, False), (False, True), (False, False)))


def draw_flags(random: Random, device: Fingerprint, *operands: Operand) -> dict[str, Value]:
    """Draw prepadded and TF32 flags for (mat1, mat2). Only a contiguous operand's padding can be planned away."""
    drawn = [random.random() < PREPADDED for _ in operands]
    tf32 = random.random() < TF32
    return {
        **{
            f"prepadded_mat{position}": flag and is_contiguous(operand)
            for position, (flag, operand) in enumerate(zip(drawn, operands, strict=True), start=1)
        },
        "using_tf32": tf32 and device.kind != "cpu",
    }


def matrix(rows: int, columns: int, dtype: str, transposed: bool = False) -> Operand:
    """A dense matrix, row-major, or column-major when ``transposed``."""
    return Operand((rows, columns), (1, rows) if transposed else (columns, 1), dtype)


def is_contiguous(operand: Operand) -> bool:
    """Whether the operand is row-major and dense, sizes of 1 aside, as torch's ``is_contiguous`` says."""
    expected = 1
    for size, stride in zip(reversed(operand.shape), reversed(operand.stride), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def needs_padding(problem: dict[str, Value]) -> bool:
    """Whether any dimension would be padded; Inductor asks no question where none would."""
    return any(problem[f"{dim}_padded_length"] for dim in "mkn")
