"""Hidden checks of q4_6: greedy_decode, on lively models, against nn.Transformer and a plain loop."""

import pytest

from autograder.suites.hw4_translation import decoding


@pytest.mark.weight(3)
def test_token_for_token(greedy_decode, Transformer, rng):
    """For sentences that end at different steps, it writes the likeliest token of every step, up to EOS."""
    decoding.token_for_token(greedy_decode, Transformer, rng)


@pytest.mark.weight(2)
def test_max_len(greedy_decode, Transformer, rng):
    """There are at most max_len steps, the one that gives EOS counted."""
    decoding.step_limit(greedy_decode, Transformer, rng)


@pytest.mark.weight(2)
def test_every_end(greedy_decode, Transformer, rng):
    """EOS at the first step gives an empty list; without an EOS a sentence gets max_len tokens."""
    decoding.other_ends(greedy_decode, Transformer, rng)


@pytest.mark.weight(1)
def test_bos_is_a_token(greedy_decode, Transformer, rng):
    """Where BOS is the likeliest token, it is written like any other."""
    decoding.bos_is_a_token(greedy_decode, Transformer, rng)


@pytest.mark.weight(2)
def test_rows_are_apart(greedy_decode, Transformer, rng):
    """A sentence gets the same translation alone, in any batch, and at any place in it."""
    decoding.rows_are_apart(greedy_decode, Transformer, rng)


@pytest.mark.weight(2)
def test_padding(greedy_decode, Transformer, rng):
    """Other tokens in the source's padding, or more of it, change nothing."""
    decoding.padding_is_not_seen(greedy_decode, Transformer, rng)


@pytest.mark.weight(1)
def test_without_a_mask(greedy_decode, Transformer, rng):
    """None for src_padding means that nothing is padding."""
    decoding.without_a_mask(greedy_decode, Transformer, rng)


@pytest.mark.weight(0.5)
def test_gradients_stay_on(greedy_decode, Transformer, rng):
    """After decoding, the model can be trained: gradients were off in the function only."""
    decoding.gradients_stay_on(greedy_decode, Transformer, rng)


@pytest.mark.weight(0.5)
def test_float32(greedy_decode, Transformer, rng):
    """A model in float32 writes the same."""
    decoding.in_float32(greedy_decode, Transformer, rng)


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_model(greedy_decode, Transformer, rng):
    """Together with your own q4_2, it writes what your own model finds likeliest, step by step."""
    decoding.with_own_model(greedy_decode, Transformer, rng)
