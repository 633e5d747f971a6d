"""Public checks of q6_11: perplexity and bits_per_character. The model is an Echo (course_utils.hw6.echo)."""

import math

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number, same
from course_utils.hw6.echo import echo, echo_weights
from course_utils.hw6.writing_runs import perplexity_of_echo

V, D, MAX = 9, 6, 5


def _weights():
    return echo_weights(611, V, D, MAX)


def _ids(N, seed=612):
    return torch.randint(V, (N,), generator=torch.Generator().manual_seed(seed))


def _found(perplexity, N=6, training=False, dropout=0.0, weights=None):
    return run_beside(perplexity_of_echo, perplexity, weights or _weights(), _ids(N), training, dropout)


@torch.no_grad()
def _right(N, L=MAX):
    """Token by token, each from at most L before it."""
    model, ids, total = echo(_weights()), _ids(N), 0.0
    for i in range(1, N):
        total -= float(model(ids[None, max(i - L, 0) : i])[0, -1].log_softmax(-1)[ids[i]])
    return math.exp(total / (N - 1))


def test_even_chances(perplexity):
    """A model that gives all tokens the same probability has perplexity V, as a Python float."""
    # keeps: float
    flat = {name: 0 * value for name, value in _weights().items()}
    got = _found(perplexity, weights=flat)[0]
    check(isinstance(got, float), f"perplexity gives a {type(got).__name__}, expected a Python float")
    same(got, float(V), "the perplexity of a model with even chances")


def test_short_text(perplexity):
    """Up to max_len + 1 tokens: each from all before it."""
    # keeps: all-before
    for N in (2, 4, 6):
        same(
            number(_found(perplexity, N)[0], "the perplexity"),
            _right(N),
            f"the perplexity of {N} tokens with max_len = 5",
            rtol=1e-5,
        )


def test_long_text(perplexity):
    """Beyond that, each token from the max_len tokens before it, with positions from 0."""
    # keeps: windows, window-positions
    for N in (7, 14):
        same(
            number(_found(perplexity, N)[0], "the perplexity"),
            _right(N),
            f"the perplexity of {N} tokens with max_len = 5",
            rtol=1e-5,
        )


def test_mode(perplexity):
    """Evaluation mode and no gradients inside; the mode is as before afterwards."""
    # keeps: eval-inside, mode-back
    for training in (True, False):
        got, after, trained, recorded = _found(perplexity, 8, training, 0.5)
        same(number(got, "the perplexity"), _right(8), "the perplexity of a model with dropout", rtol=1e-5)
        check(not trained and not recorded, "the model is called in training mode, or gradients are recorded")
        check(after is training, f"a model with training={training} comes back in the other mode")


def test_bits(bits_per_character):
    """27 letters with even chances: 4.75 bits; words of perplexity 1,000 and 5.5 characters: 1.81."""
    # keeps: bits
    same(number(bits_per_character(27.0, 100, 100), "the bits"), math.log2(27), "the bits of 27 letters", rtol=1e-6)
    same(
        number(bits_per_character(1000.0, 200, 1100), "the bits"), math.log2(1000) / 5.5, "the bits of words", rtol=1e-6
    )


def probe_short(perplexity):
    return [float(_found(perplexity, N)[0]) for N in (2, 4, 6)]


def probe_long(perplexity):
    return [float(_found(perplexity, N)[0]) for N in (7, 14)]


def probe_one_window_more(perplexity):
    return float(_found(perplexity, 7)[0])


def probe_modes(perplexity):
    got = [_found(perplexity, 8, training, 0.5)[1:] for training in (True, False)]
    return [[str(flag) for flag in row] for row in got]


def probe_flat(perplexity):
    return float(_found(perplexity, weights={name: 0 * value for name, value in _weights().items()})[0])


def probe_type(perplexity):
    return type(_found(perplexity)[0]).__name__


def probe_bits(bits_per_character):
    return [float(bits_per_character(*numbers)) for numbers in ((27.0, 100, 100), (1000.0, 200, 1100), (2.0, 10, 40))]
