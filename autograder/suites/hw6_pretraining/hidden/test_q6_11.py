"""Hidden checks of q6_11: perplexity and bits_per_character."""

import math

import pytest
import torch

from autograder.in_box.hw6_writing import new_echo
from autograder.suites.devices import on_another_device
from course_utils.checking.compare import check, number, same
from course_utils.hw6.echo import echo, echo_weights
from course_utils.hw6.torch_gpt import gpt_weights, loaded, twin_logits
from course_utils.hw6.writing_runs import perplexity_of_echo


def _weights(rng, V=9, D=6, max_len=5):
    return echo_weights(int(torch.randint(2**31, (), generator=rng)), V, D, max_len)


def _right(weights, ids, pieces=False):
    """Token by token in float64; `pieces` is what a text cut into pieces would give."""
    model, total = echo(weights), []
    L = model.max_len
    with torch.no_grad():
        for i in range(1, len(ids)):
            start = (i - 1) // L * L if pieces else max(i - L, 0)
            total.append(-float(model(ids[None, start:i])[0, -1].log_softmax(-1)[ids[i]]))
    return math.exp(sum(total) / len(total))


def _compare(got, weights, ids, told):
    value = number(got, "the perplexity")
    right, pieces = _right(weights, ids), _right(weights, ids, pieces=True)
    check(
        abs(value - right) <= 1e-5 * right or abs(value - pieces) > 1e-5 * pieces,
        f"{told}: the text is cut into pieces, and the first tokens of each are predicted from too few",
        mistake="cut-into-pieces",
    )
    same(value, right, told, rtol=1e-5)


@pytest.mark.weight(2)
def test_texts_that_fit(perplexity, in_box, rng):
    """From two tokens to max_len + 1: one pass is enough, each token from all before it."""
    weights = _weights(rng, max_len=8)
    for N in (2, 3, 8, 9):
        ids = torch.randint(9, (N,), generator=rng)
        _compare(
            in_box(perplexity_of_echo, perplexity, weights, ids)[0],
            weights,
            ids,
            f"the perplexity of {N} tokens, max_len = 8",
        )


@pytest.mark.weight(3)
def test_texts_that_do_not_fit(perplexity, in_box, rng):
    """Longer texts, far longer ones too: each token from exactly max_len before it, positions from 0."""
    for max_len, N in ((5, 7), (5, 11), (4, 150), (1, 6), (16, 40)):
        weights, ids = _weights(rng, max_len=max_len), torch.randint(9, (N,), generator=rng)
        got = in_box(perplexity_of_echo, perplexity, weights, ids)[0]
        check(isinstance(got, float), f"perplexity gives a {type(got).__name__}, expected a Python float")
        _compare(got, weights, ids, f"the perplexity of {N} tokens, max_len = {max_len}")


@pytest.mark.weight(1)
def test_modes_inside_and_after(perplexity, in_box, rng):
    """Evaluation mode and no gradients inside, the mode back afterwards; ids as they were."""
    weights, ids = _weights(rng), torch.randint(9, (9,), generator=rng)
    for training in (True, False):
        got, after, trained, recorded = in_box(perplexity_of_echo, perplexity, weights, ids, training, 0.5)
        _compare(got, weights, ids, "the perplexity of a model with dropout")
        check(not trained and not recorded, "the model is called in training mode, or gradients are recorded")
        check(after is training, f"a model with training={training} comes back in the other mode")


@pytest.mark.weight(0.5)
def test_float32_and_another_device(perplexity, watch, in_box, rng):
    """A model in float32; and ids and model on another device."""
    weights, ids = _weights(rng), torch.randint(9, (12,), generator=rng)
    single = {name: value.float() for name, value in weights.items()}
    same(
        number(in_box(perplexity_of_echo, perplexity, single, ids)[0], "the perplexity"),
        _right(weights, ids),
        "the perplexity of a model in float32",
        rtol=1e-3,
    )
    model = in_box(new_echo, 9, 6, 5)
    with on_another_device(watch) as session:
        session.load(model, weights)
        got = session.call(perplexity, model, ids).value
    _compare(got, weights, ids, "the perplexity on another device")


@pytest.mark.weight(2)
def test_any_bits(bits_per_character, rng):
    """Bits of all predictions over all characters."""
    for _ in range(5):
        p = float(1 + 100 * torch.rand((), generator=rng))
        n, c = (int(x) for x in torch.randint(1, 5000, (2,), generator=rng))
        same(
            number(bits_per_character(p, n, c), "the bits"),
            n * math.log2(p) / c,
            f"the bits of {n} tokens, {c} characters",
            rtol=1e-6,
        )
    same(number(bits_per_character(1.0, 7, 9), "the bits"), 0.0, "the bits of a model that knows everything")


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_gpt(perplexity, GPT, rng):
    """Together with your own GPT, on a text that does not fit."""
    weights, ids, total = gpt_weights(rng, 11, 12, 16, 2, 6), torch.randint(11, (10,), generator=rng), 0.0
    for i in range(1, 10):
        total -= float(twin_logits(weights, 3, ids[None, max(i - 6, 0) : i])[0, -1].log_softmax(-1)[ids[i]])
    got = perplexity(loaded(GPT, weights, 3), ids)
    same(number(got, "the perplexity"), math.exp(total / 9), "the perplexity of your GPT", rtol=1e-5)
