"""Hidden checks of q6_10: sample, token for token, by statistics, and by counted work.

The model is an Echo: no GPT of the student's is needed. Where work is counted its weights are in the vault alone.
Statistics: a right answer fails with probability at most 1e-10 per case (Chernoff's bound, valid for every number of
draws): below 1e-6 that one of the right answers of a class of a thousand sees a false alarm.
"""

import math
from collections import Counter

import pytest
import torch

from autograder.in_box.hw6_writing import new_echo
from autograder.suites.devices import STRAY, on_another_device
from course_utils.checking.compare import check, same
from course_utils.hw6.echo import echo, echo_weights
from course_utils.hw6.torch_gpt import gpt_weights, loaded, twin_logits
from course_utils.hw6.writing_runs import from_one_generator, write_with_echo

F64 = torch.float64
FALSE_ALARM = 1e-10  # of one case; there are seven such cases, so below 1e-6 for a class of 1,000


def _prompts(rng, B, V, longest):
    lengths = torch.randint(1, longest + 1, (B,), generator=rng)
    lengths[0] = longest
    return [torch.randint(V, (int(n),), generator=rng).tolist() for n in lengths]


def _weights(rng, V=9, D=6, max_len=24, size=1.5):
    return echo_weights(int(torch.randint(2**31, (), generator=rng)), V, D, max_len, size)


def _alone(model, prompt, n):
    """The greedy text of one prompt, everything computed again for each token; and the closest call."""
    row, lead = list(prompt), math.inf
    with torch.no_grad():
        for _ in range(n):
            logits = model(torch.tensor([row]))[0, -1]
            best = logits.topk(2).values
            lead = min(lead, float(best[0] - best[1]))
            row.append(int(logits.argmax()))
    return row, lead


def _task(rng, B, n, longest=7, **sizes):
    """Weights and prompts without a close call, and what is right."""
    while True:
        weights = _weights(rng, **sizes)
        model, prompts = echo(weights), _prompts(rng, B, len(weights["token_embed.weight"]), longest)
        texts = [_alone(model, prompt, n) for prompt in prompts]
        if min(lead for _, lead in texts) > 1e-6:
            return weights, prompts, [row for row, _ in texts]


def _rows(told, prompts, n):
    check(told["error"] is None, f"sample raises a {(told['error'] or ['?'])[0]}")
    for rows in told["results"]:
        check(
            isinstance(rows, list) and len(rows) == len(prompts), f"the result should be a list of {len(prompts)} lists"
        )
        for row, prompt in zip(rows, prompts, strict=True):
            check(
                isinstance(row, list) and all(type(token) is int for token in row),
                "a result is not a list of Python ints",
            )
            check(
                row[: len(prompt)] == prompt and len(row) == len(prompt) + n,
                f"the result for a prompt of {len(prompt)} tokens is not that prompt and {n} more",
            )
    return told["results"]


@pytest.mark.weight(3)
def test_greedy_as_alone(sample, in_box, rng):
    """At temperature 0 every prompt gets what it gets alone, in batches of one to eight."""
    for B, n, longest in ((5, 6, 7), (1, 4, 3), (8, 3, 12), (2, 12, 12)):
        weights, prompts, right = _task(rng, B, n, longest)
        (rows,) = _rows(in_box(write_with_echo, sample, weights, prompts, n, {"temperature": 0.0}), prompts, n)
        for prompt, row, wanted in zip(prompts, rows, right, strict=True):
            same(row, wanted, f"the greedy text of a prompt of {len(prompt)} tokens in a batch of {B}")


@pytest.mark.weight(1)
def test_settings_of_one_token(sample, in_box, rng):
    """top_k=1, and a tiny top_p, leave no choice: the greedy text, with a generator or without."""
    weights, prompts, right = _task(rng, 4, 5)
    for options in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 0}, {"temperature": 5.0, "top_k": 1}):
        for seeds in ([3], []):
            (rows,) = _rows(in_box(write_with_echo, sample, weights, prompts, 5, options, seeds), prompts, 5)
            same(rows, right, f"the texts with {options}")


def _believed(counts, probabilities, told):
    """`Wrong` where counts cannot come from these probabilities; of a right one by a chance of FALSE_ALARM / 20."""
    N = sum(counts.values())
    limit = math.log(20 * 2 * len(probabilities) / FALSE_ALARM)
    for token, p in enumerate(probabilities):
        share = counts.get(token, 0) / N
        if p == 0:
            check(share == 0, f"{told}: token {token} is written, and its probability is 0")
            continue
        far = N * (_part(share, p) + _part(1 - share, 1 - p))  # Chernoff: P(as far or farther) <= exp(-far), per side
        check(far <= limit, f"{told}: of {N} draws a token of probability {p:.3f} comes in a share of {share:.3f}")


def _part(share, p):
    if share == 0:
        return 0.0
    return math.inf if p <= 0 else share * math.log(share / p)


def _bent(reference, logits, options):
    return reference.next_probabilities(logits, **options).tolist()


@pytest.mark.weight(2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0},
        {"top_k": 3},
        {"top_p": 0.6},
        {"temperature": 0.7, "top_k": 4, "top_p": 0.8},
    ],
    ids=["plain", "cold", "hot", "top_k", "top_p", "all"],
)
def test_distribution_of_tokens(sample, in_box, reference, rng, options):
    """Each token is drawn from next_probabilities, given all before it: 1,200 texts of two tokens from two prompts."""
    weights = _weights(rng, V=6, D=6, max_len=8, size=0.7)
    model, prompts = echo(weights), [[1, 2, 3], [4]]
    told = in_box(
        write_with_echo, sample, weights, prompts * 600, 2, options, [int(torch.randint(2**31, (), generator=rng))]
    )
    (rows,) = _rows(told, prompts * 600, 2)
    for i, prompt in enumerate(prompts):
        texts = [row[len(prompt) :] for row in rows[i::2]]
        logits = model(torch.tensor([prompt]))[0, -1].detach()
        _believed(
            Counter(first for first, _ in texts), _bent(reference, logits, options), f"the first token with {options}"
        )
        for token, many in Counter(first for first, _ in texts).most_common(3):
            logits = model(torch.tensor([[*prompt, token]]))[0, -1].detach()
            seconds = Counter(second for first, second in texts if first == token)
            if many >= 60:
                _believed(seconds, _bent(reference, logits, options), f"the token after token {token} with {options}")


@pytest.mark.weight(1)
def test_draws_are_apart(sample, in_box, rng):
    """Draws for different prompts, and for different steps, have nothing to do with each other."""
    weights = {name: 0 * value for name, value in _weights(rng, V=4, max_len=8).items()}  # all tokens alike
    prompts = [[0], [0, 1]] * 500
    told = in_box(write_with_echo, sample, weights, prompts, 3, {}, [int(torch.randint(2**31, (), generator=rng))])
    (rows,) = _rows(told, prompts, 3)
    new = [row[-3:] for row in rows]
    even = [1 / 16] * 16
    _believed(Counter(4 * a + b for a, b, _ in new), even, "pairs of the first and the second token")
    _believed(Counter(4 * b + c for _, b, c in new), even, "pairs of the second and the third token")
    _believed(
        Counter(4 * a[0] + b[0] for a, b in zip(new[::2], new[1::2], strict=True)), even, "first tokens of two prompts"
    )
    _believed(
        Counter(4 * a[0] + b[0] for a, b in zip(new[:500], new[500:], strict=True)), even, "first tokens far apart"
    )


@pytest.mark.weight(1.5)
def test_all_chance_from_the_generator(sample, in_box, rng):
    """The same seed gives the same text, whatever torch's global generator is doing, and does not move that."""
    weights, prompts = _weights(rng, size=0.3), _prompts(rng, 4, 9, 6)
    seeds = torch.randint(2**31, (3,), generator=rng).tolist()
    told = in_box(write_with_echo, sample, weights, prompts, 12, {}, [seeds[0], seeds[0], seeds[1], seeds[2]])
    first, again, *others = _rows(told, prompts, 12)
    check(first == again, "generators with the same seed give different texts")
    check(any(first != other for other in others), "generators with other seeds give the same text")
    check(told["untouched"], "torch's global generator has moved")
    one, two, three = in_box(from_one_generator, sample, weights, prompts, 12, seeds[0], 3)
    check(one == first, "the same generator gives another text in another call")
    check(one != two and two != three, "calls with one generator, which moves on, give the same text again and again")


@pytest.mark.weight(1.5)
def test_modes_and_gradients(sample, in_box, rng):
    """Evaluation mode and no gradients inside; the mode comes back, after an error too; prompts are not changed."""
    weights, prompts, right = _task(rng, 3, 4)
    for training in (True, False):
        told = in_box(write_with_echo, sample, weights, prompts, 4, {"temperature": 0.0}, [], training, 0.5)
        (rows,) = _rows(told, prompts, 4)
        same(rows, right, "the greedy texts of a model with dropout")
        check(
            not told["trained"] and not told["recorded"],
            "the model is called in training mode, or gradients are recorded",
        )
        check(told["training"] is training, f"a model with training={training} comes back in the other mode")
        check(told["kept"], "the prompts are changed")
        for wrong, options in (([[1], [99]], {}), (prompts, {"temperature": -1.0}), (prompts, {"top_k": 0})):
            told = in_box(write_with_echo, sample, weights, wrong, 4, options, [], training, 0.5)
            check(told["error"] is not None, f"{options or 'a token beyond the vocabulary'} raises nothing")
            check(
                told["training"] is training,
                "after an error the model is in the other mode",
                mistake="mode-lost-after-an-error",
            )


@pytest.mark.weight(1)
def test_room(sample, in_box, rng):
    """Longest prompt + n above max_len is a ValueError before any call; up to max_len, and n = 0, are fine."""
    weights, prompts, _ = _task(rng, 3, 1, 7)
    for n in (18, 40):
        told = in_box(write_with_echo, sample, weights, prompts, n, {"temperature": 0.0})
        check(
            told["error"] is not None and "ValueError" in told["error"],
            f"7 + {n} tokens with max_len = 24 must raise a ValueError",
        )
        check(not told["calls"], "the ValueError comes after the model was called")
    told = in_box(write_with_echo, sample, weights, prompts, 17, {"temperature": 0.0})
    _rows(told, prompts, 17)
    (rows,) = _rows(in_box(write_with_echo, sample, weights, prompts, 0, {}, [1], True), prompts, 0)
    same(rows, prompts, "the result for n = 0")


READS = 130  # for each token of the vocabulary, prompt and step: a draw may read all probabilities, bit by bit


def _watched(watch, in_box, sample, rng, B, n, longest):
    """A watched greedy run whose weights are in the vault alone: what it cost, after it wrote what it should."""
    V, D, max_len = 9, 16, 40
    weights, prompts, right = _task(rng, B, n, longest, V=V, D=D, max_len=max_len)
    model = in_box(new_echo, V, D, max_len)
    with watch(reads=READS * B * V * (n + 1), brings=4000) as session:
        session.load(model, weights)
        seen = session.call(sample, model, prompts, n, 0.0)
    same(seen.value, right, "the texts of a watched call")
    return seen, 2 * (D * D + D * V)


@pytest.mark.weight(3)
def test_counted(sample, watch, in_box, rng):
    """Counted: at most n + 1 calls of the model for any number of prompts, then one token per prompt and call."""
    for B, n, longest in ((1, 6, 4), (6, 6, 4), (3, 12, 8), (6, 2, 12)):
        seen, per_token = _watched(watch, in_box, sample, rng, B, n, longest)
        calls = math.ceil(seen.names.get("embedding", 0) / 2)  # an Echo has two tables
        check(calls <= n + 1, f"{calls} calls of the model for {n} tokens and {B} prompts; {n + 1} are allowed")
        tokens = B * (longest + n)
        fades = 2 * B * 16 * (longest * longest + n * (longest + n))  # what an Echo does with earlier tokens
        check(
            seen.flops <= 1.1 * (tokens * per_token + fades),
            f"{seen.flops:,} operations for {B} prompts of up to {longest} "
            f"tokens and {n} more; {tokens} tokens through the model cost {tokens * per_token + fades:,.0f}: after the "
            "first call each call gets one token per prompt",
            mistake="everything-again",
        )


@pytest.mark.weight(1)
def test_another_device(sample, watch, in_box, rng):
    """New tensors go to the device of the model's parameters."""
    weights, prompts, right = _task(rng, 3, 4)
    model = in_box(new_echo, 9, 6, 24)
    with on_another_device(watch) as session:
        session.load(model, weights)
        seen = session.call(sample, model, prompts, 4, 0.0)
    check(not seen.strays, STRAY)
    same(seen.value, right, "the texts with a model on another device")


@pytest.mark.integration
@pytest.mark.weight(1)
def test_with_your_own_gpt(sample, GPT, rng):
    """Together with your own GPT and next_probabilities: the greedy texts of three prompts."""
    weights = gpt_weights(rng, 11, 12, 16, 2, 14)
    prompts, right = [[1, 2, 3], [4], [5, 6, 7, 8, 9]], []
    for prompt in prompts:
        row = list(prompt)
        for _ in range(6):
            row.append(int(twin_logits(weights, 3, torch.tensor([row]))[0, -1].argmax()))
        right.append(row)
    same(sample(loaded(GPT, weights, 3), prompts, 6, 0.0), right, "the greedy texts of your GPT")
