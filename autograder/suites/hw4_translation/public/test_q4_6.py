"""Public checks of q4_6: greedy_decode."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw4.decoding_runs import decode_and_leave, decoder_runs
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


def _decode(greedy_decode, Transformer, src=SRC, padding=PADDING, eos=EOS, max_len=STEPS):
    return _rows(greedy_decode(_model(Transformer), src, padding, BOS, eos, max_len), len(src))


def test_four_sentences(greedy_decode, Transformer):
    """Four sentences that end at different steps: each gets the likeliest tokens up to its own EOS."""
    # keeps: greedy, form, first-eos
    got = _decode(greedy_decode, Transformer)
    for i, (row, expected) in enumerate(zip(got, EXPECTED, strict=True)):
        check(row == expected, f"sentence {i} gives {row}, expected {expected}")


def test_number_of_steps(greedy_decode, Transformer):
    """There are at most max_len steps, and the one that gives EOS is one of them."""
    # keeps: steps
    for max_len in (1, 3, 4):
        got = _decode(greedy_decode, Transformer, max_len=max_len)
        expected = [row[:max_len] for row in EXPECTED]
        check(got == expected, f"with max_len = {max_len} you get {got}, expected {expected}")


def test_alone(greedy_decode, Transformer):
    """A sentence alone, without padding, gets the same translation as in the batch."""
    # keeps: rows
    for i in range(4):
        length = int((~PADDING[i]).sum())
        (row,) = _decode(greedy_decode, Transformer, SRC[i : i + 1, :length], PADDING[i : i + 1, :length])
        check(row == EXPECTED[i], f"sentence {i} alone gives {row}, expected {EXPECTED[i]}")


def test_any_token(greedy_decode, Transformer):
    """BOS and EOS are the numbers that the call says, and BOS is a token like any other once it is the likeliest."""
    # keeps: greedy, bos-too
    model = _model(Transformer)
    for bos, expected in ((0, [7, 2, 6, 0, 0, 0, 4]), (4, [0, 3, 7, 6, 0, 3, 7]), (3, [4, 0, 3, 4, 0, 6, 0])):
        (row,) = _rows(greedy_decode(model, SRC[:1], PADDING[:1], bos, 5, STEPS), 1)
        check(row == expected, f"with {bos} for BOS and 5 for EOS the first sentence gives {row}, expected {expected}")
    got = _decode(greedy_decode, Transformer, eos=4)
    expected = [[0, 3, 7, 6, 0, 6, 0], [], [0, 7, 2, 7, 2, 7, 2], []]
    for i in (0, 1, 3):
        check(got[i] == expected[i], f"with 4 for EOS sentence {i} gives {got[i]}, expected {expected[i]}")


def test_model_stays(greedy_decode, Transformer):
    """The model comes in evaluation mode and stays in it, with its weights as they were, ready to be trained on."""
    # keeps: model-stays
    left = run_beside(decode_and_leave, greedy_decode, _model(Transformer), SRC, PADDING, BOS, EOS, 3)
    check(not left["woken"], f"afterwards {left['woken'][:1]} is in training mode")
    check(not left["changed"] and not left["frozen"], "afterwards its parameters are others, or want no gradient")
    check(left["grad"], "afterwards gradients are switched off everywhere: use torch.no_grad() for your own work alone")


def test_no_mask_or_more_of_it(greedy_decode, Transformer):
    """None for src_padding means that nothing is padding; what stands in the padding, or how much, is not noticed."""
    # keeps: none-mask, not-noticed
    for src in (SRC[:1], SRC[3:, :4]):
        nothing = torch.zeros_like(src, dtype=torch.bool)
        a, b = (_decode(greedy_decode, Transformer, src, mask) for mask in (None, nothing))
        check(a == b, f"without a mask you get {a}, and with a mask of False {b}")
    expected = _decode(greedy_decode, Transformer)
    other = _decode(greedy_decode, Transformer, torch.where(PADDING, (SRC + 4) % 6, SRC))
    check(other == expected, f"other tokens in the padding change the result from {expected} to {other}")
    longer = torch.cat([SRC, SRC[:, :2]], 1), torch.cat([PADDING, PADDING[:, :2] | True], 1)
    more = _decode(greedy_decode, Transformer, *longer)
    check(more == expected, f"more padding changes the result from {expected} to {more}")


def probe_four_sentences(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer)


def probe_lengths(greedy_decode, Transformer):
    return [len(row) for row in _decode(greedy_decode, Transformer)]


def probe_one_step(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, max_len=1)


def probe_three_steps(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, max_len=3)


def probe_four_steps(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, max_len=4)


def probe_eos_at_once(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, eos=4)


def probe_never_eos(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, eos=5)


def probe_first_alone(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, SRC[:1], PADDING[:1])


def probe_second_alone(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, SRC[1:2, :2], PADDING[1:2, :2])


def probe_second_alone_with_padding(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, SRC[1:2], PADDING[1:2])


def probe_two_that_end(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, SRC[1:3], PADDING[1:3])


def probe_other_padding(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, torch.where(PADDING, (SRC + 4) % 6, SRC))


def probe_other_order(greedy_decode, Transformer):
    return _decode(greedy_decode, Transformer, SRC.flip(0), PADDING.flip(0))


def probe_form(greedy_decode, Transformer):
    got = greedy_decode(_model(Transformer), SRC, PADDING, BOS, EOS, STEPS)
    return [type(got).__name__ in ("list", "tuple"), len(got)]


def probe_twice(greedy_decode, Transformer):
    model = _model(Transformer)
    return [_rows(greedy_decode(model, SRC.roll(i, 0), PADDING.roll(i, 0), BOS, EOS, STEPS)) for i in range(2)]


def probe_dropout(greedy_decode, Transformer):
    model = put_weights(Transformer(*SIZES, dropout=0.9), lively_weights(1022, *SIZES))
    return _rows(greedy_decode(model, SRC, PADDING, BOS, EOS, STEPS))


def probe_begins_with_another_token(greedy_decode, Transformer):
    return _rows(greedy_decode(_model(Transformer), SRC, PADDING, 3, EOS, STEPS))


def probe_steps_without_an_end(greedy_decode, Transformer):
    return run_beside(decoder_runs, greedy_decode, _model(Transformer), SRC[:1], PADDING[:1], BOS, 5, 3)[1]


def _same_again(greedy_decode, Transformer, max_len, calls):
    """Whether all calls agree, on a model without dropout to which no token is very likely."""
    weights = lively_weights(1022, *SIZES)
    weights["tgt_embed.weight"] *= 0.2
    model = put_weights(Transformer(*SIZES, dropout=0.0), weights)
    results = []
    with torch.random.fork_rng(devices=[]):
        for seed in range(calls):
            torch.manual_seed(seed)
            results.append(_rows(greedy_decode(model, SRC, PADDING, BOS, 5, max_len)))
    return all(result == results[0] for result in results)


def probe_two_calls_agree(greedy_decode, Transformer):
    return _same_again(greedy_decode, Transformer, STEPS, 2)


def probe_first_tokens_agree(greedy_decode, Transformer):
    return _same_again(greedy_decode, Transformer, 1, 12)


def probe_bos_as_a_token(greedy_decode, Transformer):
    return [_rows(greedy_decode(_model(Transformer), SRC, PADDING, bos, 5, STEPS)) for bos in (0, 4)]


def probe_no_mask(greedy_decode, Transformer):
    with_a_mask = _decode(greedy_decode, Transformer, SRC[:1], PADDING[:1])  # where this works,
    try:
        return [with_a_mask, _decode(greedy_decode, Transformer, SRC[:1], None)]
    except Exception:
        return "nothing without a mask"
