"""The cases that greedy_decode and cached_greedy_decode have in common."""

from dataclasses import replace

import torch

from autograder.suites.hw4_translation.oracle import (
    MARGIN,
    SIZES,
    a_call,
    as_tokens,
    compare_calls,
    draw_problem,
    draw_with_bos,
    greedy_steps,
    loaded,
)
from course_utils.checking.compare import check, tensor


class Deaf:
    """A model that does not hear of the padding in one of its parts, or that reads its answer at the wrong step."""

    def __init__(self, model, encode=True, decode=True, step=None, **slips):
        self.model, self.encode_hears, self.decode_hears, self.step = model, encode, decode, step
        self.slips = slips

    def encode(self, src, padding):
        return self.model.encode(src, padding if self.encode_hears else None)

    def decode(self, tgt, memory, padding):
        logits = self.model.decode(tgt, memory, padding if self.decode_hears else None, **self.slips)
        return logits if self.step is None else logits[:, : self.step]


def _causes(problem, eos, max_len):
    def wrong(model, bos=problem.bos):
        steps, _ = greedy_steps(model, problem.src, problem.padding, bos, max_len)
        return [row[: row.index(eos)] if eos in row else row for row in steps]

    right = problem.cut(eos, max_len)
    first = min(len(row) for row in right)

    def until_as_many_ends():
        for n in range(1, max_len + 1):
            if sum(row[:n].count(eos) for row in problem.steps) >= len(right):
                return problem.cut(eos, n)
        return right

    return {
        "the source's padding reaches neither encode nor decode":
            lambda: wrong(Deaf(problem.oracle, encode=False, decode=False)),
        "the source's padding does not reach decode": lambda: wrong(Deaf(problem.oracle, decode=False)),
        "the source's padding does not reach encode": lambda: wrong(Deaf(problem.oracle, encode=False)),
        "decoding begins with EOS and not with BOS": lambda: wrong(problem.oracle, eos),
        "decoding begins with 0 and not with bos_id": lambda: wrong(problem.oracle, 0),
        "the next token is read from the first step's logits, and it stands in the last one's":
            lambda: wrong(Deaf(problem.oracle, step=1)),
        "the whole batch stops when its first sentence ends; the others are not done":
            lambda: problem.cut(eos, min(first + 1, max_len)),
        "the loop stops when as many EOS were written as there are sentences, and one sentence can have several":
            until_as_many_ends,
        "there is one step too many": lambda: problem.more(eos, max_len + 1),
        "rows go on after their EOS": lambda: [row[:max_len] for row in problem.steps],
        "EOS is dropped and the row goes on; it ends there": lambda: [
            [token for token in row[:max_len] if token != eos] for row in problem.steps],
        "every new token is taken for the first: its position is its place in the sentence":
            lambda: wrong(Deaf(problem.oracle, still=True)),
        "positions are missing": lambda: wrong(Deaf(problem.oracle, positions=False)),
        "positions are one too far": lambda: wrong(Deaf(problem.oracle, first=1)),
        "the embeddings are not multiplied by sqrt(d_model)": lambda: wrong(Deaf(problem.oracle, scale=1.0)),
        "a new token sees itself alone; the keys and values before it are lost":
            lambda: wrong(Deaf(problem.oracle, alone=True)),
        "decoder_norm is left out": lambda: wrong(Deaf(problem.oracle, norm=False)),
        "every row ends with the last one's EOS": lambda: [row[: max(map(len, right))] for row in problem.steps],
    }


def _call(decode, model, problem, what, eos=None, max_len=None):
    """The student's decoding beside the oracle's, with another EOS or another number of steps if given."""
    eos = problem.eos if eos is None else eos
    max_len = problem.max_len if max_len is None else max_len
    got = decode(model, *problem.arguments(eos=eos, max_len=max_len))
    return a_call(got, problem.cut(eos, max_len), problem, what, _causes(problem, eos, max_len), max_len)


def compare(decode, Transformer, problem, what):
    compare_calls([_call(decode, loaded(Transformer, problem.weights, problem.sizes), problem, what)])


def token_for_token(decode, Transformer, rng):
    sizes = (SIZES, (7, 9, 8, 2, 12, 1), (6, 12, 10, 1, 16, 3))
    calls = []
    for number, chosen in enumerate(sizes):
        problem = draw_problem(rng, chosen, max_len=9 - number)
        model = loaded(Transformer, problem.weights, problem.sizes)
        calls.append(_call(decode, model, problem, f"what a lively model of sizes {chosen} writes for "
                           f"{len(problem.src)} sentences"))
        check(not model.training, "the model came in evaluation mode, and is in training mode after decoding")
    compare_calls(calls)


def step_limit(decode, Transformer, rng):
    problem = draw_problem(rng, max_len=8)
    model = loaded(Transformer, problem.weights, problem.sizes)
    compare_calls([_call(decode, model, problem, f"the result with max_len = {n}", max_len=n) for n in range(1, 9)])


def other_ends(decode, Transformer, rng):
    problem = draw_problem(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    firsts = {row[0] for row in problem.steps}
    never = next(t for t in range(problem.sizes[1]) if all(t not in row for row in problem.steps))
    compare_calls([_call(decode, model, problem, f"the result where EOS is token {eos}", eos=eos)
                   for eos in [*firsts, never] if eos != problem.bos])


def bos_is_a_token(decode, Transformer, rng):
    problem = draw_with_bos(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    got = decode(model, *problem.arguments())
    compare_calls([a_call(got, problem.greedy, problem, f"the result of a model that writes BOS, token {problem.bos}")])


def rows_are_apart(decode, Transformer, rng):
    problem = draw_problem(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    calls = []
    for i, expected in enumerate(problem.greedy):
        src, padding = problem.row(i)
        alone = decode(model, *problem.arguments(src=src, padding=padding))
        calls.append(a_call(alone, [expected], problem, f"sentence {i} as a batch of its own"))
        length = int((~padding).sum())
        short = decode(model, *problem.arguments(src=src[:, :length], padding=padding[:, :length]))
        calls.append(a_call(short, [expected], problem, f"sentence {i} alone and without its padding"))
    orders = {"the batch in another order": [3, 1, 4, 0, 2], "a batch of 45 in which sentences come several times":
              torch.randint(5, (45,), generator=rng).tolist()}
    for told, order in orders.items():
        got = decode(model, *problem.arguments(src=problem.src[order], padding=problem.padding[order]))
        calls.append(a_call(got, [problem.greedy[i] for i in order], problem, told))
    compare_calls(calls)


def without_a_mask(decode, Transformer, rng):
    """None for src_padding is a mask of False, whatever the numbers of the tokens."""
    problem = draw_problem(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    calls = []
    for i, expected in enumerate(problem.greedy):
        src, padding = problem.row(i)
        got = decode(model, *problem.arguments(src=src[:, : int((~padding).sum())], padding=None))
        calls.append(a_call(got, [expected], problem, f"sentence {i} alone, with None for src_padding"))
    src, free = torch.cat([problem.src, torch.zeros_like(problem.src)]), None
    src[5:, 1::2] = problem.src[:, 1::2]  # every other token is token 0
    steps, leads = greedy_steps(problem.oracle, src, free, problem.bos, problem.max_len)
    sure = [i for i, lead in enumerate(leads) if min(lead) > MARGIN]
    other = replace(problem, src=src[sure], padding=free, steps=[steps[i] for i in sure])
    got = decode(model, *other.arguments())
    calls.append(a_call(got, other.greedy, other, "a batch in which nothing is padding, with None for src_padding"))
    compare_calls(calls)


def gradients_stay_on(decode, Transformer, rng):
    """A model can be trained after it was decoded with."""
    problem = draw_problem(rng, max_len=4)
    model = loaded(Transformer, problem.weights, problem.sizes)
    decode(model, *problem.arguments())
    logits = model(problem.src, problem.src[:, :3], problem.padding)
    check(tensor(logits, "the logits").requires_grad, "after decoding, the model's logits have no gradient any more: "
          "gradients are off inside the function (`@torch.no_grad()`), not for good")


def padding_is_not_seen(decode, Transformer, rng):
    problem = draw_problem(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    junk = torch.where(problem.padding, torch.randint(problem.sizes[0], problem.src.shape, generator=rng), problem.src)
    other = replace(problem, src=junk)
    src, padding = torch.cat([junk, junk[:, :3]], 1), torch.cat([problem.padding, problem.padding[:, :3] | True], 1)
    more = replace(problem, src=src, padding=padding)
    compare_calls([_call(decode, model, other, "the result with other tokens in the padding"),
                   _call(decode, model, more, "the result with more padding")])


def in_float32(decode, Transformer, rng):
    problem = draw_problem(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    model.float()
    compare_calls([_call(decode, model, problem, "the result of a model in float32")])


def with_own_model(decode, Transformer, rng):
    problem = draw_problem(rng)
    _step_by_step(decode, Transformer, problem, "with your own model the result is")


def nothing_but_padding(decode, Transformer, rng):
    """A sentence of which nothing is left, beside others."""
    problem = draw_problem(rng)
    gone = problem.padding | (torch.arange(5) == 2)[:, None]
    _step_by_step(decode, Transformer, replace(problem, padding=gone), "where the third source is nothing but padding, "
                  "the result is")


@torch.no_grad()
def _step_by_step(decode, Transformer, problem, told):
    """Against a loop over the student's own encode and decode."""
    model = loaded(Transformer, problem.weights, problem.sizes)
    src, padding, bos, eos, max_len = problem.arguments()
    memory = tensor(model.encode(src, padding), "your memory")
    written = torch.full((len(src), 1), bos)
    for _ in range(max_len):
        logits = tensor(model.decode(written, memory, padding), "your logits", (*written.shape, problem.sizes[1]))
        check(logits.isfinite().all(), "your model's logits are not finite")
        written = torch.cat([written, logits[:, -1:].argmax(-1)], 1)
    rows = [row[: row.index(eos)] if eos in row else row for row in written[:, 1:].tolist()]
    got = as_tokens(decode(model, *problem.arguments()), len(src), "the result")
    check(got == rows, f"{told} {got}; step by step, your model's likeliest tokens are {rows}")
