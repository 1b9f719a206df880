"""Reading and grouping a large AutoHeuristic log: wall time, rows per second, peak memory.

    python benchmarks/dataset_scale.py [--rows 10000000] [--repetitions 3]

Synthesises a log like pad_mm's (17 features, two choices, some repetitions each), then reads and groups it in a process
of its own, whose peak memory is reported. The log of 58,000 rows, the size of a published one, is measured beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NUMERICAL = [
    *("m", "k", "n", "mat1_stride_0", "mat1_stride_1", "mat2_stride_0", "mat2_stride_1"),
    *("m_padded_length", "k_padded_length", "n_padded_length", "mat1_align_size", "mat2_align_size"),
]
CATEGORICAL = ["mat1_dtype", "mat2_dtype", "prepadded_mat1", "prepadded_mat2", "using_tf32"]
METADATA = {
    "shared_memory": 166912,
    "device_capa": [8, 0],
    "name": "pad_mm",
    "numerical_features": NUMERICAL,
    "categorical_features": CATEGORICAL,
    "choices": ["orig", "pad"],
}
PUBLISHED_ROWS = 58_000


def synthesise(path: Path, rows: int, repetitions: int) -> None:
    """Write a log of at least ``rows`` rows; the same arguments give the same bytes."""
    generator = random.Random(0)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(METADATA) + "\n" + ",".join((*NUMERICAL, *CATEGORICAL, "choice", "feedback")) + "\n")
        while written < rows:
            lines = []
            for _ in range(10_000):
                m, k, n = (generator.randint(512, 65536) for _ in range(3))
                paddings = f"{-m % 8},{-k % 8},{-n % 8}"
                problem = f"{m},{k},{n},{k},1,{n},1,{paddings},8,8,torch.float16,torch.float16,False,True,not_float_32"
                base = m * k * n / 1e11
                for _ in range(repetitions):
                    lines.append(f"{problem},orig,{base * generator.uniform(1.0, 1.02)}\n")
                    lines.append(f"{problem},pad,{base * generator.uniform(0.9, 1.1)}\n")
                written += 2 * repetitions
                if written >= rows:
                    break
            file.writelines(lines)


def measure(path: Path) -> None:
    """Read and group in this process, print the figures as JSON."""
    import resource

    from autoheur.dataset.files import read
    from autoheur.dataset.statistics import statistics

    start = time.perf_counter()
    dataset = read(path)
    middle = time.perf_counter()
    statistics(dataset)
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows, problems = len(dataset.rows), len(dataset.problems)
    print(
        json.dumps(
            {"rows": rows, "problems": problems, "read_s": middle - start, "group_s": end - middle, "peak_mib": peak}
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repetitions", type=int, default=3, help="measurements of each choice on each problem")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        measure(arguments.measure)
        return
    print(f"{'rows':>12} {'problems':>10} {'read s':>8} {'group s':>8} {'rows/s':>12} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for rows in dict.fromkeys((PUBLISHED_ROWS, arguments.rows)):
            path = Path(folder) / "log.txt"
            synthesise(path, rows, arguments.repetitions)
            command = [sys.executable, __file__, "--measure", str(path)]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            rate = found["rows"] / (found["read_s"] + found["group_s"])
            print(
                f"{found['rows']:>12,} {found['problems']:>10,} {found['read_s']:>8.2f} {found['group_s']:>8.2f} "
                f"{rate:>12,.0f} {found['peak_mib']:>9,.0f}"
            )


if __name__ == "__main__":
    main()
