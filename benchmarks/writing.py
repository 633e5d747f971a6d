"""Writing 256 tokens with the reference's GPT: with its cache, and without one, in one run.

    python benchmarks/writing.py [--rounds 3] [--tokens 256] [--json]

Both take turns on one thread, and the median of the ratios of neighbouring rounds is shown, so that a busy machine
slows both sides alike. The texts are compared first: greedy, both ways must write the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from autograder.homework import read_homework
from autograder.judge.local import reference_names

PROMPT = list(range(1, 17))
SIZES = {"vocab_size": 200, "d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 4}


def main() -> None:
    """Measure, print a line, and with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ours = reference_names(read_homework("hw6_pretraining", draft=True))
    model = ours.GPT(**SIZES, max_len=len(PROMPT) + options.tokens).eval()
    for parameter in model.parameters():  # so that the text is not one token over and over
        parameter.data += 0.1 * torch.randn_like(parameter)
    cached, plain = [], []
    for _ in range(options.rounds):
        seconds, with_cache = timed(lambda: ours.sample(model, [PROMPT], options.tokens, 0.0)[0])
        cached.append(seconds)
        seconds, without = timed(lambda: write_anew(model, PROMPT, options.tokens))
        plain.append(seconds)
        assert with_cache == without, "with a cache another text is written"
    ratio = statistics.median(b / a for a, b in zip(cached, plain, strict=True))
    print(
        f"writing {options.tokens} tokens: {min(plain):.2f} s without a cache, {min(cached):.2f} s with one, "
        f"{ratio:.1f} times"
    )
    if options.json:
        print(json.dumps({"tokens": options.tokens, "cached": cached, "uncached": plain, "ratio": ratio}))


@torch.no_grad()
def write_anew(model: nn.Module, prompt: list[int], n: int) -> list[int]:
    """Greedy, the whole text through the model for every token."""
    row = list(prompt)
    for _ in range(n):
        row.append(int(model(torch.tensor([row]))[0, -1].argmax()))
    return row


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
