"""Hidden checks of q4_8: cached_greedy_decode, token for token and by counted work."""

import math

import pytest
import torch

from autograder.suites.hw4_translation import decoding
from autograder.suites.hw4_translation.oracle import (
    SearchTask,
    Translator,
    as_tokens,
    compare_rows,
    draw_problem,
    greedy_steps,
    loaded,
)
from course_utils.checking.compare import check
from course_utils.hw4.decoding_weights import lively_weights
from course_utils.instruments.work import count_work


@pytest.mark.weight(3)
def test_token_for_token(cached_greedy_decode, Transformer, rng):
    """It writes what greedy decoding without a cache writes, for sentences that end at different steps."""
    decoding.token_for_token(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(1.5)
def test_max_len(cached_greedy_decode, Transformer, rng):
    """There are at most max_len steps, the one that gives EOS counted."""
    decoding.step_limit(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(1.5)
def test_every_end(cached_greedy_decode, Transformer, rng):
    """EOS at the first step gives an empty list; without an EOS a sentence gets max_len tokens."""
    decoding.other_ends(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(0.5)
def test_bos_is_a_token(cached_greedy_decode, Transformer, rng):
    """Where BOS is the likeliest token, it is written like any other."""
    decoding.bos_is_a_token(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(1.5)
def test_rows_are_apart(cached_greedy_decode, Transformer, rng):
    """A sentence gets the same translation alone, in any batch, and at any place; no cache outlives its call."""
    decoding.rows_are_apart(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(1.5)
def test_padding(cached_greedy_decode, Transformer, rng):
    """Other tokens in the source's padding, or more of it, change nothing."""
    decoding.padding_is_not_seen(cached_greedy_decode, Transformer, rng)


def test_long(cached_greedy_decode, Transformer, rng):
    """Nothing is lost over 40 steps, nor does it stop before 150: positions and caches go on."""
    problem = draw_problem(rng, max_len=40, rows=3)
    decoding.compare(cached_greedy_decode, Transformer, problem, "what a lively model writes in 40 steps")
    problem = _endless(rng, SMALL, rows=2, longest=3, max_len=1)
    rows = cached_greedy_decode(loaded(Transformer, problem.weights, SMALL), *problem.arguments(max_len=150))
    lengths = [len(row) for row in as_tokens(rows, 2, "the result with max_len = 150")]
    check(set(lengths) == {150}, f"with max_len = 150 and no EOS the rows have {lengths} tokens")


@pytest.mark.weight(1)
def test_without_a_mask(cached_greedy_decode, Transformer, rng):
    """None for src_padding means that nothing is padding."""
    decoding.without_a_mask(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(0.5)
def test_gradients_stay_on(cached_greedy_decode, Transformer, rng):
    """After decoding, the model can be trained: gradients were off in the function only."""
    decoding.gradients_stay_on(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(0.5)
def test_nothing_but_padding(cached_greedy_decode, Transformer, rng):
    """A source that is nothing but padding gets what the model finds likeliest, and the others do not notice."""
    decoding.nothing_but_padding(cached_greedy_decode, Transformer, rng)


@pytest.mark.weight(0.5)
def test_float32(cached_greedy_decode, Transformer, rng):
    """A model in float32 writes the same."""
    decoding.in_float32(cached_greedy_decode, Transformer, rng)


def _decoded(watch, decode, Transformer, problem, max_len):
    """What a watched call costs, once it writes what it should; the weights are not where the student's code is."""
    model = loaded(Transformer, lively_weights(0, *problem.sizes), problem.sizes)
    with watch(reads=READS * len(problem.src) * (max_len + 1)) as session:
        session.load(model, problem.weights)
        seen = session.call(decode, model, *problem.arguments(max_len=max_len))
    compare_rows(seen.value, problem.cut(problem.eos, max_len), problem, f"the result of a watched call with max_len = "
                 f"{max_len}", max_len=max_len)
    return seen.flops


READS = 3  # numbers that may be read out for each token: the token itself, whether its row ends, whether all have ended
LONG = (7, 8, 16, 2, 64, 2)  # wide layers and long sentences: here a second run of the encoder shows
BOS, EOS = 1, 3


@pytest.mark.weight(2)
def test_encoder_once_per_sentence(cached_greedy_decode, Transformer, watch, rng):
    """Counted: however many tokens are written, every sentence goes through the encoder once."""
    first, last = 2, 8
    problem = _endless(rng, LONG, rows=3, longest=14, max_len=last)
    few, many = (_decoded(watch, cached_greedy_decode, Transformer, problem, n) for n in (first, last))
    once = count_work(problem.oracle.encode, problem.src, problem.padding)["flops"]
    again = (many - few) / (last - first)
    check(again < once / 2, f"a further step costs {again:,.0f} operations, and running the encoder {once:,}: what "
          "comes out of encode stays the same at every step")


SMALL = (5, 6, 4, 2, 4, 1)  # narrow and long: here the cost of attention shows, and not that of the projections
LENGTHS = (16, 32, 64)


@pytest.mark.weight(3)
def test_work_per_token(cached_greedy_decode, Transformer, watch, rng):
    """Counted: what a further token costs grows no faster than the number of tokens before it."""
    flops = []
    for length in LENGTHS:  # each with weights of its own: whoever knows them has no need to compute
        problem = _endless(rng, SMALL, rows=2, longest=3, max_len=length)
        flops.append(_decoded(watch, cached_greedy_decode, Transformer, problem, length))
    spans = list(zip(LENGTHS, LENGTHS[1:], strict=False))
    costs = [(flops[i + 1] - flops[i]) / (b - a) for i, (a, b) in enumerate(spans)]
    middles = [(a + b) / 2 for a, b in spans]
    check(min(costs) > 0, "the count of operations does not grow with the number of tokens")
    power = math.log(costs[-1] / costs[0]) / math.log(middles[-1] / middles[0])
    check(power < 1.4, f"around token {middles[0]:.0f} one more token costs {costs[0]:,.0f} operations, around token "
          f"{middles[-1]:.0f} {costs[-1]:,.0f}: that grows like the number of tokens to the power of {power:.1f}, and "
          "1 is enough. With the keys and values of earlier tokens kept, one new query looks at them, and nothing is "
          "decoded again")


def _endless(rng, sizes, rows, longest, max_len):
    """A problem in which EOS never comes, and no step is a close call."""
    while True:
        weights = lively_weights(int(torch.randint(2**31, (1,), generator=rng)), *sizes)
        table = weights["tgt_embed.weight"]
        table[EOS] = 0.0
        table[0] = -table[2]  # of two opposite logits one lies above 0, which is the logit of EOS
        src = torch.randint(sizes[0], (rows, longest), generator=rng)
        padding, oracle = torch.zeros_like(src, dtype=torch.bool), Translator(weights, sizes[3])
        steps, leads = greedy_steps(oracle, src, padding, BOS, max_len)
        if min(map(min, leads)) > 1e-6:
            return SearchTask(weights, oracle, sizes, src, padding, BOS, EOS, max_len, steps)


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_parts(cached_greedy_decode, Transformer, rng):
    """Together with your own q4_2, it writes what your own model finds likeliest, step by step."""
    decoding.with_own_model(cached_greedy_decode, Transformer, rng)
