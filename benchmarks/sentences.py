"""Right and wrong models on the sentences of homework 4, for the bar of q4_10's checkpoint.

    python benchmarks/sentences.py reference --seed 2
    python benchmarks/sentences.py q4_2.future-visible q4_1.labels-not-shifted memory-ignored [--steps 2400]

Trains like the notebook, with the reference's answers or with a known mistake (or one of `MORE`) in their place, and
tells the share of new sentences that come out right: by the model and the decoding that it was trained with, and by its
weights in a right model, as the judge reads a checkpoint.
"""

from __future__ import annotations

import argparse
import time
from types import SimpleNamespace

import torch
from torch import nn

from autograder.homework import Homework, read_homework
from autograder.judge.local import reference_names
from autograder.suites.hw4_translation.oracle import Translator, greedy_steps
from course_utils import seed_everything
from course_utils.data import BOS, EOS, PAD
from course_utils.data.everyday_splits import TESTS, held_out_sentences
from course_utils.hw4.decoding_weights import lively_weights
from course_utils.hw4.tasks import TranslationTask, sentences
from course_utils.hw4.translation import BETAS, exact_match, make_batches, translate

ASKED, DRAWN = 500, 4  # new sentences, and the seed that they are drawn by
MORE = {  # wrong models that are no mistake of the catalogue: a question, and what runs after its answer
    "no-positions": ("q4_2", "sinusoidal_encoding = lambda *sizes: torch.zeros(sizes)"),
    "source-ignored": ("q4_2", "_encode = Transformer.encode\nTransformer.encode = lambda *given: 0 * _encode(*given)"),
    "no-warm-up": ("q4_4", "noam_rate = lambda step, d_model, warmup: (d_model * warmup) ** -0.5"),
}


def main() -> None:
    """Train and judge one model after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", help=f"reference, a known mistake as q4_2.its-name, {', '.join(MORE)}")
    parser.add_argument("--steps", type=int, default=2_400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    homework, task = read_homework("hw4_translation"), sentences()
    print(f"{options.steps} steps, seed {options.seed}; right of {ASKED} sentences, in its own form and as judged:")
    for name in options.models:
        start = time.process_time()
        parts = reference_names(homework, pasted(homework, name))
        model, loss = trained(parts, task, options.steps, options.seed)
        own, judged = scores(parts, model, task)
        print(f"{name:36}{time.process_time() - start:6.0f} s   loss {loss:.3f}{own:8.3f}{judged:8.3f}", flush=True)


def pasted(homework: Homework, name: str) -> dict[str, str]:
    """What goes below which question's answer, for this wrong model; nothing for the reference."""
    if name == "reference":
        return {}
    question, _, label = name.partition(".")
    if name in MORE:
        return dict([MORE[name]])
    return {question: next(each.source for each in homework.mistakes[question] if each.label == label)}


def trained(parts: SimpleNamespace, task: TranslationTask, steps: int, seed: int) -> tuple[nn.Module, float]:
    """A model after the notebook's run, and the mean loss of its last hundred steps."""
    recipe = task.recipe
    batches = make_batches(
        task.train, parts.pad_batch, parts.teacher_forcing, steps=steps, size=recipe.batch, alike=recipe.alike,
        seed=seed, source=task.source, target=task.target,
    )  # fmt: skip
    seed_everything(seed)
    model = task.build(parts.Transformer)
    optimizer = torch.optim.Adam(model.parameters(), betas=BETAS)
    losses = parts.fit(model, batches, optimizer, rate=recipe.rate, warmup=recipe.warmup)
    return model.eval(), sum(losses[-100:]) / len(losses[-100:])


@torch.no_grad()
def scores(parts: SimpleNamespace, model: nn.Module, task: TranslationTask) -> tuple[float, float]:
    """The share of new sentences right in the model's own form, and by its weights in torch's nn.Transformer."""
    asked = held_out_sentences(TESTS[0], ASKED, DRAWN)
    references = [[task.target.encode(some) for some in one.german] for one in asked]
    src, padding = parts.pad_batch([task.source.encode(one.english) for one in asked], PAD)
    length, sizes = task.recipe.max_len, task.recipe.sizes
    own = translate(model, parts.greedy_decode, src, padding, length)
    names = lively_weights(0, len(task.source), len(task.target), *sizes.values())
    judge = Translator({name: value for name, value in model.state_dict().items() if name in names}, sizes["n_heads"])
    read = [[*row, EOS][: [*row, EOS].index(EOS)] for row in greedy_steps(judge, src, padding, BOS, length)[0]]
    return exact_match(own, references), exact_match(read, references)


if __name__ == "__main__":
    main()
