"""Public checks of q4_8: cached_greedy_decode."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw4.decoding_runs import decode_and_leave, decoding_work, encoder_rows
from course_utils.hw4.decoding_weights import lively_weights, put_weights

SIZES = (6, 8, 8, 2, 12, 1)  # src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers
BOS, EOS, STEPS = 1, 2, 7
SRC = torch.tensor([[5, 1, 4, 2, 3], [2, 5, 0, 0, 0], [4, 0, 0, 0, 0], [3, 3, 1, 5, 0]])
PADDING = torch.arange(5) >= torch.tensor([5, 2, 1, 4])[:, None]  # True = padding
EXPECTED = [[0, 3, 7, 6, 0, 6, 0], [4, 0, 3], [0, 7], [4, 0, 3, 7]]  # the first sentence does not end in 7 steps


def _model(Transformer):
    """Your model with fixed weights, under which it has something to say."""
    return put_weights(Transformer(*SIZES), lively_weights(1022, *SIZES))


def _rows(got, n=4):
    """The result as lists of ints."""
    check(isinstance(got, (list, tuple)) and len(got) == n, f"expected a list of {n} lists of ints, one per sentence")
    for i, row in enumerate(got):
        whole = isinstance(row, (list, tuple)) and all(type(token) is int for token in row)
        check(whole, f"row {i} of the result is no list of ints: .tolist() makes one of a tensor")
    return [list(row) for row in got]


def _decode(cached_greedy_decode, Transformer, src=SRC, padding=PADDING, eos=EOS, max_len=STEPS):
    return _rows(cached_greedy_decode(_model(Transformer), src, padding, BOS, eos, max_len), len(src))


def test_four_sentences(cached_greedy_decode, Transformer):
    """Four sentences that end at different steps: the same tokens as without a cache."""
    # keeps: same-output
    got = _decode(cached_greedy_decode, Transformer)
    for i, (row, expected) in enumerate(zip(got, EXPECTED, strict=True)):
        check(row == expected, f"sentence {i} gives {row}, expected {expected}")


def test_number_of_steps(cached_greedy_decode, Transformer):
    """There are at most max_len steps, and the one that gives EOS is one of them."""
    # keeps: same-output
    for max_len in (1, 3, 4):
        got = _decode(cached_greedy_decode, Transformer, max_len=max_len)
        expected = [row[:max_len] for row in EXPECTED]
        check(got == expected, f"with max_len = {max_len} you get {got}, expected {expected}")


def test_alone(cached_greedy_decode, Transformer):
    """A sentence alone, without padding, gets the same translation as in the batch."""
    # keeps: same-output, rows
    for i in range(4):
        length = int((~PADDING[i]).sum())
        (row,) = _decode(cached_greedy_decode, Transformer, SRC[i : i + 1, :length], PADDING[i : i + 1, :length])
        check(row == EXPECTED[i], f"sentence {i} alone gives {row}, expected {EXPECTED[i]}")


def test_encoder_runs_once(cached_greedy_decode, Transformer):
    """Counted: each of the four sentences goes through the encoder once."""
    # keeps: encoder-once
    rows = run_beside(encoder_rows, cached_greedy_decode, _model(Transformer), SRC, PADDING, BOS, EOS, STEPS)[1]
    check(max(rows) <= 4, f"{max(rows)} sentences went through a layer of the encoder, and four were given")


def test_work(cached_greedy_decode, Transformer):
    """Counted: the 24th token costs about as much as the 8th, and not three times as much."""
    # keeps: linear
    early, late = _costs(cached_greedy_decode, Transformer)
    check(late <= 2 * early, f"a token around step 8 costs {early:,.0f} operations, one around step 24 {late:,.0f}: "
          "what is computed again that the cache could have kept?")


def test_two_layers(cached_greedy_decode, Transformer):
    """With two layers, each with a cache and with keys of the memory of its own, it is the same as without a cache."""
    # keeps: same-output
    for seed, expected in (
        (80, [[7, 6, 5], [3, 0, 3, 0, 3, 0, 3], [1, 6, 6, 6, 7, 0, 7], [6, 7, 0, 7, 0, 4, 7]]),
        (53, [[5, 7, 5, 5, 5, 7, 5], [0, 7, 3, 7], [0, 0, 0, 0, 0, 0, 0], [5, 6, 5, 5, 6, 6, 6]]),
    ):
        got = _two_layers(cached_greedy_decode, Transformer, seed)
        check(got == expected, f"with two layers you get {got}, expected {expected}: what do the layers share?")


def test_model_stays(cached_greedy_decode, Transformer):
    """The model comes in evaluation mode and stays in it, with its weights as they were, ready to be trained on."""
    # keeps: model-stays
    left = run_beside(decode_and_leave, cached_greedy_decode, _model(Transformer), SRC, PADDING, BOS, EOS, 3)
    check(not left["woken"], f"afterwards {left['woken'][:1]} is in training mode")
    check(not left["changed"] and not left["frozen"], "afterwards its parameters are others, or want no gradient")
    check(left["grad"], "afterwards gradients are switched off everywhere: use torch.no_grad() for your own work alone")


def test_no_mask_or_more_of_it(cached_greedy_decode, Transformer):
    """None for src_padding means that nothing is padding; what stands in the padding, or how much, is not noticed."""
    # keeps: none-mask, not-noticed
    for src in (SRC[:1], SRC[3:, :4]):
        nothing = torch.zeros_like(src, dtype=torch.bool)
        a, b = (_decode(cached_greedy_decode, Transformer, src, mask) for mask in (None, nothing))
        check(a == b, f"without a mask you get {a}, and with a mask of False {b}")
    expected = _decode(cached_greedy_decode, Transformer)
    other = _decode(cached_greedy_decode, Transformer, torch.where(PADDING, (SRC + 4) % 6, SRC))
    check(other == expected, f"other tokens in the padding change the result from {expected} to {other}")
    longer = torch.cat([SRC, SRC[:, :2]], 1), torch.cat([PADDING, PADDING[:, :2] | True], 1)
    more = _decode(cached_greedy_decode, Transformer, *longer)
    check(more == expected, f"more padding changes the result from {expected} to {more}")


def _costs(cached_greedy_decode, Transformer):
    """Operations for a further token around steps 8 and 24; token 5 never comes, so it serves as EOS."""
    wide = (6, 8, 16, 2, 16, 1)
    weights = lively_weights(1022, *wide)
    weights["tgt_embed.weight"][5] = 0.0
    weights["tgt_embed.weight"][6] = -weights["tgt_embed.weight"][7]  # one of the two has a logit above 0
    model = put_weights(Transformer(*wide), weights)
    asked = (model, SRC[:1], PADDING[:1], BOS, 5)
    found = run_beside(decoding_work, cached_greedy_decode, asked, [6, 10, 22, 26])
    (row,) = _rows(cached_greedy_decode(*asked, 26), 1)
    check(all(_rows(work["result"], 1) == [row[:n]] for work, n in zip(found, (6, 10, 22, 26), strict=True)),
          "the tokens are others where the work is counted")
    flops = [work["flops"] for work in found]
    return (flops[1] - flops[0]) / 4, (flops[3] - flops[2]) / 4


def probe_four_sentences(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer)


def probe_lengths(cached_greedy_decode, Transformer):
    return [len(row) for row in _decode(cached_greedy_decode, Transformer)]


def probe_one_step(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, max_len=1)


def probe_three_steps(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, max_len=3)


def probe_four_steps(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, max_len=4)


def probe_eos_at_once(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, eos=4)


def probe_never_eos(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, eos=5)


def probe_first_alone(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, SRC[:1], PADDING[:1])


def probe_second_alone(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, SRC[1:2, :2], PADDING[1:2, :2])


def probe_second_alone_with_padding(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, SRC[1:2], PADDING[1:2])


def probe_two_that_end(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, SRC[1:3], PADDING[1:3])


def probe_other_padding(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, torch.where(PADDING, (SRC + 4) % 6, SRC))


def probe_other_order(cached_greedy_decode, Transformer):
    return _decode(cached_greedy_decode, Transformer, SRC.flip(0), PADDING.flip(0))


def probe_form(cached_greedy_decode, Transformer):
    got = cached_greedy_decode(_model(Transformer), SRC, PADDING, BOS, EOS, STEPS)
    return [type(got).__name__ in ("list", "tuple"), len(got)]


def probe_twice(cached_greedy_decode, Transformer):
    model = _model(Transformer)
    return [_rows(cached_greedy_decode(model, SRC.roll(i, 0), PADDING.roll(i, 0), BOS, EOS, STEPS)) for i in range(2)]


def probe_dropout(cached_greedy_decode, Transformer):
    model = put_weights(Transformer(*SIZES, dropout=0.9), lively_weights(1022, *SIZES))
    return _rows(cached_greedy_decode(model, SRC, PADDING, BOS, EOS, STEPS))


def probe_begins_with_another_token(cached_greedy_decode, Transformer):
    return _rows(cached_greedy_decode(_model(Transformer), SRC, PADDING, 3, EOS, STEPS))


def probe_encoder_rows(cached_greedy_decode, Transformer):
    return run_beside(encoder_rows, cached_greedy_decode, _model(Transformer), SRC, PADDING, BOS, EOS, STEPS)[1][0] > 4


def probe_work_grows(cached_greedy_decode, Transformer):
    early, late = _costs(cached_greedy_decode, Transformer)
    return "faster than it should" if late > 2 * early else "slowly"


def _two_layers(cached_greedy_decode, Transformer, seed):
    sizes = (*SIZES[:-1], 2)
    model = put_weights(Transformer(*sizes), lively_weights(seed, *sizes))
    return _rows(cached_greedy_decode(model, SRC, PADDING, BOS, EOS, STEPS))


def probe_two_layers(cached_greedy_decode, Transformer):
    return _two_layers(cached_greedy_decode, Transformer, 80)


def probe_two_other_layers(cached_greedy_decode, Transformer):
    return _two_layers(cached_greedy_decode, Transformer, 53)


def probe_no_mask(cached_greedy_decode, Transformer):
    with_a_mask = _decode(cached_greedy_decode, Transformer, SRC[:1], PADDING[:1])  # where this works,
    try:
        return [with_a_mask, _decode(cached_greedy_decode, Transformer, SRC[:1], None)]
    except Exception:
        return "nothing without a mask"
