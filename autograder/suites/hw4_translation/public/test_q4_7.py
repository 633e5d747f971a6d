"""Public checks of q4_7: beam_search."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check
from course_utils.hw4.decoding_runs import decode_and_leave
from course_utils.hw4.decoding_weights import lively_weights, put_weights

SIZES = (6, 8, 8, 2, 12, 1)  # src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers
BOS, EOS, STEPS = 1, 2, 7
SRC = torch.tensor([[5, 1, 4, 2, 3], [2, 5, 0, 0, 0], [4, 0, 0, 0, 0], [3, 3, 1, 5, 0]])
PADDING = torch.arange(5) >= torch.tensor([5, 2, 1, 4])[:, None]  # True = padding
EXPECTED = [[0, 3, 7, 6, 0, 6, 0], [4, 0, 3], [0, 7], [4, 0, 3, 7]]  # the first sentence does not end in 7 steps
BEST = {  # with two steps, of all possible results those with the best score, by length penalty
    0.0: [[], [], [], []],
    1.0: [[7, 7], [3, 3], [], [7, 7]],
    2.0: [[7, 7], [3, 3], [3], [7, 7]],
}


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


def _search(beam_search, Transformer, width, length_penalty, src=SRC, padding=PADDING, eos=EOS, max_len=STEPS):
    return _rows(beam_search(_model(Transformer), src, padding, BOS, eos, max_len, width, length_penalty), len(src))


def _unsure(Transformer):
    """Your model with other fixed weights: no token is very likely, so that there is something to search for."""
    weights = lively_weights(54, *SIZES)
    weights["tgt_embed.weight"] *= 0.4
    return put_weights(Transformer(*SIZES), weights)


def _two_steps(beam_search, Transformer, length_penalty, width=8):
    return _rows(beam_search(_unsure(Transformer), SRC, PADDING, BOS, EOS, 2, width, length_penalty))


def test_width_one(beam_search, Transformer):
    """With width 1 it is greedy decoding."""
    # keeps: width-one, form
    for length_penalty in (0.0, 1.0):
        got = _search(beam_search, Transformer, 1, length_penalty)
        check(got == EXPECTED, f"with width 1 and length penalty {length_penalty} you get {got}; greedy decoding gives "
              f"{EXPECTED}")


def test_best_of_all(beam_search, Transformer):
    """With two steps and a beam as wide as the vocabulary, nothing is pruned: it finds the best of all results."""
    # keeps: score, unfinished, finished
    for length_penalty, best in BEST.items():
        got = _two_steps(beam_search, Transformer, length_penalty)
        for i, (row, expected) in enumerate(zip(got, best, strict=True)):
            check(row == expected, f"with length penalty {length_penalty} sentence {i} gives {row}; {expected} has a "
                  "better score: (sum of log-probabilities, EOS included) / (their number) ** length_penalty")


def test_alone(beam_search, Transformer):
    """A sentence alone, without padding, gets the same result as in the batch."""
    # keeps: rows
    together = _search(beam_search, Transformer, 3, 1.0)
    for i in range(4):
        length = int((~PADDING[i]).sum())
        (row,) = _search(beam_search, Transformer, 3, 1.0, SRC[i : i + 1, :length], PADDING[i : i + 1, :length])
        check(row == together[i], f"sentence {i} alone gives {row}, and in the batch {together[i]}")


def _score(model, src, padding, bos, eos, max_len, row, length_penalty):
    """The model's own score of a result: EOS is a term of the sum, unless the row has max_len tokens."""
    terms = [*row, eos] if len(row) < max_len else list(row)
    logits = model.decode(torch.tensor([[bos, *terms[:-1]]]), model.encode(src, padding), padding)[0].detach()
    total = logits.log_softmax(-1)[range(len(terms)), terms].sum().item()
    return total / len(terms) ** length_penalty


def test_greedy_competes_too(beam_search, Transformer):
    """Where a narrow beam alone loses what greedy decoding finds, the result is still no worse than greedy's."""
    # keeps: greedy
    for (seed, i, width, length_penalty), greedy in zip(HARD, GREEDY, strict=True):
        model, src, padding = _hard_problem(Transformer, seed, i)
        (row,) = _rows(beam_search(model, src, padding, 0, 6, 7, width, length_penalty), 1)
        check(len(row) <= 7 and 6 not in row, f"the result is {row}: at most max_len = 7 tokens, and EOS (6) is none")
        mine, theirs = (_score(model, src, padding, 0, 6, 7, tokens, length_penalty) for tokens in (row, greedy))
        check(mine >= theirs - 1e-4, f"with width {width}, length penalty {length_penalty} you find {row} with score "
              f"{mine:.4f}; greedy decoding finds {greedy} with {theirs:.4f}, and competes too")


NARROW = (  # seed of a model, sentence, width, length penalty, and a score that every right kind of beam reaches
    (300, 2, 3, 0.0, -2.5840), (300, 0, 2, 0.0, -3.0237), (303, 2, 3, 2.0, -0.3509), (306, 3, 3, 0.0, -3.3938),
    (300, 4, 2, 0.0, -3.8781), (302, 4, 3, 2.0, -0.1975), (303, 2, 2, 2.0, -0.5187),
)


def _narrow_problem(Transformer, seed, i):
    """One of 16 sentences for a model of five words with small steps between them, and its numbers of BOS and EOS."""
    sizes, g = (6, 5, 8, 2, 10, 1), torch.Generator().manual_seed(seed)
    weights = lively_weights(seed, *sizes)
    weights["tgt_embed.weight"] *= 0.4
    src = torch.randint(6, (16, 4), generator=g)
    padding = torch.arange(4) >= torch.randint(1, 5, (16,), generator=g)[:, None]
    bos, eos = torch.randperm(5, generator=g)[:2].tolist()
    return put_weights(Transformer(*sizes), weights), src[i : i + 1], padding[i : i + 1], bos, eos


def test_a_narrow_beam(beam_search, Transformer):
    """The `width` best of all extensions live on, whichever beginnings they come from, to the end of the search."""
    # keeps: extend, keep, stop
    for seed, i, width, length_penalty, least in NARROW:
        model, src, padding, bos, eos = _narrow_problem(Transformer, seed, i)
        (row,) = _rows(beam_search(model, src, padding, bos, eos, 5, width, length_penalty), 1)
        mine = _score(model, src, padding, bos, eos, 5, row, length_penalty)
        check(mine >= least - 1e-3, f"with width {width}, length penalty {length_penalty} and max_len 5 you find {row} "
              f"with score {mine:.4f}, and a beam of this width finds one with {least:.4f}: may two of those that live "
              "on come from one beginning, and does the search go on after the first end?")


def test_width_one_of_an_unsure_model(beam_search, Transformer):
    """Width 1 is greedy decoding with any length penalty, also where a longer sentence would score better."""
    # keeps: width-one
    model = _unsure(Transformer)
    for eos in (EOS, 3):
        plain, other = (_rows(beam_search(model, SRC, PADDING, BOS, eos, 6, 1, p)) for p in (0.0, 3.0))
        check(plain == other, f"width 1 gives {plain} with length penalty 0 and {other} with 3; greedy knows none")


def test_model_stays(beam_search, Transformer):
    """The model comes in evaluation mode and stays in it, with its weights as they were, ready to be trained on."""
    # keeps: model-stays
    left = run_beside(decode_and_leave, beam_search, _model(Transformer), SRC, PADDING, BOS, EOS, 3, 2, 1.0)
    check(not left["woken"], f"afterwards {left['woken'][:1]} is in training mode")
    check(not left["changed"] and not left["frozen"], "afterwards its parameters are others, or want no gradient")
    check(left["grad"], "afterwards gradients are switched off everywhere: use torch.no_grad() for your own work alone")


def test_no_mask_or_more_of_it(beam_search, Transformer):
    """None for src_padding means that nothing is padding; what stands in the padding, or how much, is not noticed."""
    # keeps: none-mask, not-noticed
    for src in (SRC[:1], SRC[3:, :4]):
        nothing = torch.zeros_like(src, dtype=torch.bool)
        a, b = (_search(beam_search, Transformer, 3, 1.0, src, mask) for mask in (None, nothing))
        check(a == b, f"without a mask you get {a}, and with a mask of False {b}")
    expected = _search(beam_search, Transformer, 2, 1.0)
    other = _search(beam_search, Transformer, 2, 1.0, torch.where(PADDING, (SRC + 4) % 6, SRC))
    check(other == expected, f"other tokens in the padding change the result from {expected} to {other}")


def probe_width_one(beam_search, Transformer):
    return _search(beam_search, Transformer, 1, 0.0)


def probe_width_one_with_penalty(beam_search, Transformer):
    return _search(beam_search, Transformer, 1, 1.0)


def probe_width_one_steps(beam_search, Transformer):
    return [_search(beam_search, Transformer, 1, 0.6, max_len=n) for n in (1, 3, 4)]


def probe_lengths(beam_search, Transformer):
    return [len(row) for row in _search(beam_search, Transformer, 1, 1.0)]


def probe_best_sum(beam_search, Transformer):
    return _two_steps(beam_search, Transformer, 0.0)


def probe_best_mean(beam_search, Transformer):
    return _two_steps(beam_search, Transformer, 1.0)


def probe_best_by_square(beam_search, Transformer):
    return _two_steps(beam_search, Transformer, 2.0)


def probe_best_by_root(beam_search, Transformer):
    return _two_steps(beam_search, Transformer, 0.5)


def probe_best_by_large_penalty(beam_search, Transformer):
    return _two_steps(beam_search, Transformer, 4.0)


def probe_best_of_one_step(beam_search, Transformer):
    return _rows(beam_search(_unsure(Transformer), SRC, PADDING, BOS, EOS, 1, 4, 1.0))


def probe_best_with_other_end(beam_search, Transformer):
    return _rows(beam_search(_unsure(Transformer), SRC, PADDING, BOS, 3, 2, 8, 1.0))


def probe_wider_than_the_vocabulary(beam_search, Transformer):
    return _rows(beam_search(_unsure(Transformer), SRC[:2], PADDING[:2], BOS, EOS, 3, 70, 1.0), 2)


def probe_all_sums_of_three_steps(beam_search, Transformer):
    return _rows(beam_search(_unsure(Transformer), SRC[:2], PADDING[:2], BOS, EOS, 3, 70, 0.0), 2)


def probe_width_two(beam_search, Transformer):
    return _search(beam_search, Transformer, 2, 1.0)


def probe_width_three_sums(beam_search, Transformer):
    return _search(beam_search, Transformer, 3, 0.0)


def probe_one_row(beam_search, Transformer):
    return _search(beam_search, Transformer, 3, 1.0, SRC[1:2], PADDING[1:2])


def probe_other_padding(beam_search, Transformer):
    return _search(beam_search, Transformer, 2, 1.0, torch.where(PADDING, (SRC + 4) % 6, SRC))


def probe_never_eos(beam_search, Transformer):
    return _search(beam_search, Transformer, 1, 1.0, eos=5)


def probe_form(beam_search, Transformer):
    got = beam_search(_model(Transformer), SRC, PADDING, BOS, EOS, 3, 2, 1.0)
    return [type(got).__name__ in ("list", "tuple"), len(got)]


HARD = ((17, 5, 2, 0.0), (17, 19, 2, 1.0), (20, 11, 3, 0.0))  # a narrow beam alone loses what greedy finds


GREEDY = ([1, 0, 2], [1, 0, 1, 3, 5, 2, 5], [2, 5, 5])  # what that is


def _hard_problem(Transformer, seed, i):
    sizes, g = (5, 7, 8, 2, 12, 1), torch.Generator().manual_seed(seed)
    src, lengths = torch.randint(5, (20, 4), generator=g), torch.randint(1, 5, (20,), generator=g)
    padding = torch.arange(4) >= lengths[:, None]
    return put_weights(Transformer(*sizes), lively_weights(seed, *sizes)), src[i : i + 1], padding[i : i + 1]


def _hard(beam_search, Transformer, seed, i, width, length_penalty):
    model, src, padding = _hard_problem(Transformer, seed, i)
    return _rows(beam_search(model, src, padding, 0, 6, 7, width, length_penalty), 1)


def probe_greedy_competes(beam_search, Transformer):
    return [_hard(beam_search, Transformer, *hard) for hard in HARD[:2]]


def probe_greedy_competes_again(beam_search, Transformer):
    return [_hard(beam_search, Transformer, *hard) for hard in HARD[2:]]


def probe_width_one_ends_with_the_first_end(beam_search, Transformer):
    model = _unsure(Transformer)
    return [_rows(beam_search(model, SRC, PADDING, BOS, eos, 6, 1, 2.0)) for eos in (EOS, 3)]


def probe_width_one_long_wins(beam_search, Transformer):
    return _rows(beam_search(_unsure(Transformer), SRC, PADDING, BOS, 7, 6, 1, 3.0))


def probe_narrow_beams(beam_search, Transformer):
    found = []
    for seed, i, width, length_penalty, _ in NARROW:
        model, src, padding, bos, eos = _narrow_problem(Transformer, seed, i)
        found.append(_rows(beam_search(model, src, padding, bos, eos, 5, width, length_penalty), 1))
    return found
