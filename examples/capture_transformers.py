"""Captures the matrix products of Hugging Face models, whatever their size, without a GPU and without a download.

    python examples/capture_transformers.py --out shapes.csv gpt2 bert llama
    autoheur collect pad_mm --from shapes.csv --out d.parquet --device cuda

Models are built from configurations alone, on fake tensors: they have shapes, but neither values nor memory. Needs the
package transformers, which autoheur itself does not. Sequence lengths that are not multiples of 8 are what makes
padding worth a question; a training step meets more shapes than inference.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch._subclasses import FakeTensorMode

from autoheur.inductor.capture import capture, trace

MODELS: dict[str, Callable[[], Any]] = {
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig()),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False)),
    # The sizes of Llama 2 7B, with fewer layers: they repeat the same shapes.
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(num_hidden_layers=2, use_cache=False)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Capture the matrix products of Hugging Face models.")
    parser.add_argument("models", nargs="*", default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--out", default="shapes.csv")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, nargs="+", default=[509])
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--inference", action="store_true", help="forward graphs only")
    arguments = parser.parse_args()
    with capture(arguments.out) as shapes, FakeTensorMode(), torch.set_grad_enabled(not arguments.inference):
        for name in arguments.models:
            before = shapes.total()
            torch.set_default_dtype(getattr(torch, arguments.dtype))
            model = MODELS[name]()
            torch.set_default_dtype(torch.float32)
            for length in arguments.length:
                tokens = torch.zeros(arguments.batch, length, dtype=torch.long)
                trace(model, input_ids=tokens, labels=None if arguments.inference else tokens)
            print(f"{name}: {shapes.total() - before} products")
    print(f"{len(shapes)} different ones are in {arguments.out}")


if __name__ == "__main__":
    main()
