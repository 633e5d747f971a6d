"""Hidden checks of q4_7: beam_search, by its score on lively models, and against every possible result."""

import pytest
import torch

from autograder.suites.hw4_translation import decoding
from autograder.suites.hw4_translation.oracle import (
    BEAMS,
    SIZES,
    SearchTask,
    Translator,
    all_hypotheses,
    as_tokens,
    beam,
    compare_rows,
    draw_problem,
    greedy_steps,
    lengths_to_padding,
    loaded,
    score,
    trees,
)
from course_utils.checking.compare import Wrong, check, tensor
from course_utils.hw4.decoding_weights import lively_weights

SLACK = 1e-4  # of a score: a table of positions made in float32 is right
PENALTIES = (0.0, 0.6, 1.0)


def _search(beam_search, model, problem, width, length_penalty, what, **other):
    got = beam_search(model, *problem.arguments(**other), width, length_penalty)
    rows = as_tokens(got, len(other.get("src", problem.src)), what)
    for i, row in enumerate(rows):
        check(len(row) <= problem.max_len, f"{what}, row {i}: {len(row)} tokens, and max_len is {problem.max_len}")
        check(problem.eos not in row, f"{what}, row {i}: EOS is part of your result; it ends a sentence and is "
              "left out")
        check(all(0 <= token < problem.sizes[1] for token in row), f"{what}, row {i}: {row} has numbers that "
              "are no tokens")
    return rows


@pytest.mark.weight(2)
def test_width_one_is_greedy(beam_search, Transformer, rng):
    """With width 1 it writes what greedy decoding writes, whatever the length penalty."""
    for max_len in (9, 5):
        problem = draw_problem(rng, max_len=max_len)
        model = loaded(Transformer, problem.weights, problem.sizes)
        for length_penalty in (*PENALTIES, 2.0):
            what = f"the result with width 1 and length penalty {length_penalty}"
            got = _search(beam_search, model, problem, 1, length_penalty, what)
            compare_rows(got, problem.greedy, problem, f"{what}, against greedy decoding")


def _never_worse(beam_search, model, problem, width, length_penalty):
    what = f"the result with width {width} and length penalty {length_penalty}"
    rows = _search(beam_search, model, problem, width, length_penalty, what)
    for i, (row, greedy) in enumerate(zip(rows, problem.greedy, strict=True)):
        mine, theirs = (score(problem, i, tokens, length_penalty) for tokens in (row, greedy))
        check(mine >= theirs - SLACK, f"{what}: sentence {i} gives {row} with score {mine:.4f}, and greedy decoding "
              f"finds {greedy} with {theirs:.4f}. The result of greedy decoding competes too, so that none is worse")
    return rows


@pytest.mark.weight(3)
def test_never_worse_than_greedy(beam_search, Transformer, rng):
    """By (sum of log-probabilities) / (their number) ** length_penalty, no result is worse than greedy decoding's."""
    for width, max_len in ((2, 8), (3, 6), (5, 7)):
        problem = draw_problem(rng, max_len=max_len)
        model = loaded(Transformer, problem.weights, problem.sizes)
        for length_penalty in PENALTIES:
            _never_worse(beam_search, model, problem, width, length_penalty)


HARD = ((17, [5, 19]), (20, [11]))  # on these, common ways of pruning lose what greedy finds
HARD_SIZES = (5, 7, 8, 2, 12, 1)


def _hard_problem(seed, chosen):
    weights = lively_weights(seed, *HARD_SIZES)
    oracle, rng = Translator(weights, HARD_SIZES[3]), torch.Generator().manual_seed(seed)
    src = torch.randint(5, (20, 4), generator=rng)
    padding = lengths_to_padding(torch.randint(1, 5, (20,), generator=rng).tolist(), 4)
    src, padding = src[chosen], padding[chosen]
    steps, _ = greedy_steps(oracle, src, padding, 0, 7)
    return SearchTask(weights, oracle, HARD_SIZES, src, padding, 0, 6, 7, steps)


@pytest.mark.weight(2)
def test_greedy_competes(beam_search, Transformer):
    """Where a narrow beam alone would lose what greedy decoding finds, the result is still no worse."""
    for seed, chosen in HARD:
        problem = _hard_problem(seed, chosen)
        model = loaded(Transformer, problem.weights, problem.sizes)
        for width in (2, 3):
            for length_penalty in (0.0, 1.0):
                _never_worse(beam_search, model, problem, width, length_penalty)


def _tiny(rng, vocab, max_len, bos, eos):
    """A small problem with the best result of all for each penalty and sentence, where it leads clearly."""
    sizes = (5, vocab, 8, 2, 10, 1)
    while True:
        weights = lively_weights(int(torch.randint(2**31, (1,), generator=rng)), *sizes)
        weights["tgt_embed.weight"] *= 0.4  # no token is sure, so that there is something to search for
        oracle = Translator(weights, sizes[3])
        src, padding = torch.randint(5, (3, 4), generator=rng), lengths_to_padding((4, 1, 2), 4)
        steps, leads = greedy_steps(oracle, src, padding, bos, max_len)
        problem = SearchTask(weights, oracle, sizes, src, padding, bos, eos, max_len, steps)
        found = [all_hypotheses(problem, i) for i in range(3)]
        best = {p: [_best(each, p) for each in found] for p in TINY_PENALTIES}
        clear = all(lead > 1e-2 for rows in best.values() for _, lead in rows) and min(map(min, leads)) > 1e-3
        rows = {p: [list(tokens) for tokens, _ in each] for p, each in best.items()}
        if clear and rows[0.0] != rows[1.0] and any(each != problem.greedy for each in rows.values()):
            return problem, found, rows


TINY_PENALTIES = (0.0, 0.5, 1.0, 2.0)


def _best(found, length_penalty):
    ranked = sorted(found, key=lambda h: -h[1] / h[2] ** length_penalty)
    lead = ranked[0][1] / ranked[0][2] ** length_penalty - ranked[1][1] / ranked[1][2] ** length_penalty
    return ranked[0][0], lead


def _tiny_causes(problem, found, p):
    """What other rules for the score would choose."""
    def rows(rate, allowed=lambda tokens, n: True):
        return [list(max((h for h in each if allowed(h[0], h[2])), key=lambda h: rate(*h[:3]))[0]) for each in found]

    def ended(tokens, n):
        return len(tokens) < n

    return {
        "it is what greedy decoding finds, and not the best": problem.greedy,
        "the sum is not divided by (number of tokens) ** length_penalty": rows(lambda t, s, n: s),
        "EOS does not count in the number of log-probabilities": rows(lambda t, s, n: s / max(len(t), 1) ** p),
        "the sum is multiplied by number ** length_penalty, and not divided": rows(lambda t, s, n: s * n**p),
        "the sum is divided by length_penalty * number": rows(lambda t, s, n: s / (p * n) if p else s),
        "the sum is divided by the number, whatever the length penalty": rows(lambda t, s, n: s / n),
        "the penalty is that of Wu et al., ((5 + n) / 6) ** length_penalty; here it is n ** length_penalty":
            rows(lambda t, s, n: s / ((5 + n) / 6) ** p),
        "BOS counts in the number of log-probabilities, and it has none": rows(lambda t, s, n: s / (n + 1) ** p),
        "hypotheses without EOS do not compete; at the end they do": rows(lambda t, s, n: s / n**p, ended),
        "EOS counts in the number of log-probabilities, and its own is not in the sum":
            [list(max(each, key=lambda h: h[3] / h[2] ** p)[0]) for each in found],
    }


def _find_the_best(beam_search, Transformer, rng, vocab, max_len, width, bos, eos):
    problem, found, best = _tiny(rng, vocab, max_len, bos, eos)
    model = loaded(Transformer, problem.weights, problem.sizes)
    told = f"{vocab} tokens, max_len {max_len}, width {width} (nothing needs to be pruned)"
    rows = {p: _search(beam_search, model, problem, width, p, f"the result for {told} and length penalty {p}")
            for p in TINY_PENALTIES}
    if rows == best:
        return
    causes = {p: _tiny_causes(problem, found, p) for p in TINY_PENALTIES}
    fits = [cause for cause in causes[0.0] if all(causes[p][cause] == rows[p] for p in TINY_PENALTIES)]
    p = next(p for p in TINY_PENALTIES if rows[p] != best[p])
    i = next(i for i, row in enumerate(rows[p]) if row != best[p][i])
    mine, theirs = (score(problem, i, tokens, p) for tokens in (rows[p][i], best[p][i]))
    message = (f"for {told} and length penalty {p}, sentence {i} gives {rows[p][i]} with score {mine:.4f}; "
               f"{best[p][i]} has {theirs:.4f}")
    raise Wrong(f"{message}. Likely cause: {fits[0]}." if len(fits) == 1 else message)


@pytest.mark.weight(3)
def test_best_of_two_steps(beam_search, Transformer, rng):
    """With two steps and a beam as wide as the vocabulary, the result is the best of all by the score."""
    for vocab, eos in ((7, 6), (5, 1)):
        _find_the_best(beam_search, Transformer, rng, vocab, 2, vocab, 0, eos)


@pytest.mark.weight(2)
def test_best_of_three_steps(beam_search, Transformer, rng):
    """With four tokens, three steps and a beam that holds all hypotheses, the result is the best of all."""
    _find_the_best(beam_search, Transformer, rng, 4, 3, 64, 0, 2)


NARROW = {  # kinds of search that lose what every right one finds
    "one word each": "every beginning keeps its one best word; the `width` best of all extensions of all beginnings "
                     "live on, and two of them may come from one beginning",
    "stops at the first end": "the search stops with the first hypothesis that ends, and others are still alive",
}


# seed of a model, sentences, width and length penalty on which such a search ends clearly below all right ones
SHORT = {
    "one word each": [
        (1, [8, 10, 11], 2, 0.0), (2, [3, 4, 7], 2, 0.0), (3, [0, 7], 3, 2.0), (4, [6], 2, 0.0),
        (5, [0, 3, 6], 2, 0.0), (6, [9, 13], 3, 2.0), (7, [2, 12], 3, 0.5), (10, [7, 10, 13], 2, 0.0),
    ],
    "stops at the first end": [
        (2, [1, 6, 9], 2, 2.0), (3, [0, 1, 6], 2, 2.0), (4, [6], 3, 1.0), (5, [2, 9], 2, 1.0),
        (6, [1, 3, 5], 2, 2.0), (7, [5, 7], 2, 2.0), (9, [11], 2, 1.0), (10, [1, 10], 2, 0.0),
    ],
}
# the first sentence has nothing alive when the second's best is still to come; the third has `width` ended hypotheses
# before its best, and the fourth has not so many until then
UNEVEN = [
    (1024, [1, 0, 7, 3], 2, 1.0), (1027, [15, 4, 4, 2], 2, 1.0), (1028, [2, 4, 9, 5], 2, 1.0),
    (1064, [3, 0, 2, 4], 2, 2.0), (1075, [11, 1, 7, 0], 2, 2.0), (1089, [2, 12, 15, 14], 2, 2.0),
    (1138, [2, 5, 2, 1], 3, 1.0), (1174, [1, 5, 5, 6], 3, 1.0), (1182, [6, 8, 8, 9], 3, 1.0),
    (1226, [3, 5, 5, 0], 3, 2.0), (1305, [9, 3, 3, 2], 3, 2.0),
]


def _unsure(seed, chosen, vocab, max_len):
    """Some of 16 sentences for a model with small steps between its tokens, and the log-probabilities of its trees."""
    rng, sizes = torch.Generator().manual_seed(seed), (6, vocab, 8, 2, 10, 1)
    weights = lively_weights(seed, *sizes)
    weights["tgt_embed.weight"] *= 0.4
    oracle = Translator(weights, sizes[3])
    src = torch.randint(sizes[0], (16, 4), generator=rng)
    padding = lengths_to_padding(torch.randint(1, 5, (16,), generator=rng).tolist(), 4)
    bos, eos = torch.randperm(vocab, generator=rng)[:2].tolist()
    src, padding = src[chosen], padding[chosen]
    steps, _ = greedy_steps(oracle, src, padding, bos, max_len)
    problem = SearchTask(weights, oracle, sizes, src, padding, bos, eos, max_len, steps)
    return problem, trees(problem)


def _found(problem, tree, width, p, kind):
    """The best score that a search of this kind finds, greedy's hypothesis competing."""
    pools = [beam(tree, problem.eos, problem.max_len, w, p, k)[0] for w, k in ((1, "plain"), (width, kind))]
    return max(total / len(tokens) ** p for pool in pools for tokens, total in pool)


def _least(problem, tree, width, p):
    """What every right kind of beam search reaches."""
    return min(_found(problem, tree, width, p, kind) for kind in BEAMS)


def _picked(rng, known, n):
    return [known[i] for i in torch.randperm(len(known), generator=rng)[:n].tolist()]


@pytest.mark.weight(2)
def test_narrow_beam(beam_search, Transformer, rng):
    """With a narrow beam, no result scores below what every right way to keep the `width` best beginnings finds."""
    short = []
    for seed, chosen, width, p in [each for known in SHORT.values() for each in _picked(rng, known, 2)]:
        problem, found_trees = _unsure(seed, chosen, 5, 5)
        least = [_least(problem, tree, width, p) for tree in found_trees]
        model = loaded(Transformer, problem.weights, problem.sizes)
        what = f"the result with width {width}, length penalty {p}, 5 tokens and max_len 5"
        rows = _search(beam_search, model, problem, width, p, what)
        for i, (row, tree) in enumerate(zip(rows, found_trees, strict=True)):
            mine = score(problem, i, row, p)
            if mine < least[i] - SLACK:
                fits = {kind for kind in NARROW if abs(_found(problem, tree, width, p, kind) - mine) < SLACK}
                short.append((fits, f"{what}: sentence {i} gives {row} with score {mine:.4f}, and a beam search of "
                              f"this width finds one with {least[i]:.4f}"))
    if short:
        fits = set.intersection(*(fits for fits, _ in short))
        told = f". Likely cause: {NARROW[fits.pop()]}." if len(fits) == 1 else ""
        raise Wrong(short[0][1] + told)


def test_one_step(beam_search, Transformer, rng):
    """With max_len = 1 the result is the likeliest token, or an empty list where that is EOS."""
    problem = draw_problem(rng)
    model = loaded(Transformer, problem.weights, problem.sizes)
    for eos in (problem.eos, problem.steps[0][0]):
        got = beam_search(model, *problem.arguments(eos=eos, max_len=1), 3, 1.0)
        compare_rows(got, problem.cut(eos, 1), problem, "the result with max_len = 1 and width 3", max_len=1)


def _as_good(problem, i, row, other, length_penalty, what):
    """The same tokens, or by a hair's breadth the same score."""
    a, b = (score(problem, i, tokens, length_penalty) for tokens in (row, other))
    check(row == other or abs(a - b) < SLACK, f"{what}: sentence {i} gives {row}, and in the batch it gives {other}")


@pytest.mark.weight(1.5)
def test_rows_are_apart(beam_search, Transformer, rng):
    """A sentence gets the same result alone and in any batch."""
    problem = draw_problem(rng, max_len=7)
    model = loaded(Transformer, problem.weights, problem.sizes)
    whole = _search(beam_search, model, problem, 3, 0.6, "the result")
    for i in range(len(whole)):
        src, padding = problem.row(i)
        (row,) = _search(beam_search, model, problem, 3, 0.6, "the result", src=src, padding=padding)
        _as_good(problem, i, row, whole[i], 0.6, "as a batch of its own")
    order = [3, 1, 4, 0, 2]
    mixed = {"src": problem.src[order], "padding": problem.padding[order]}
    for row, i in zip(_search(beam_search, model, problem, 3, 0.6, "the result", **mixed), order, strict=True):
        _as_good(problem, i, row, whole[i], 0.6, "in a batch in another order")


@pytest.mark.weight(1)
def test_others_end_early(beam_search, Transformer, rng):
    """A sentence is searched to its end, whether others in its batch have ended before it or go on after it."""
    for seed, chosen, width, p in _picked(rng, UNEVEN, 3):
        problem, found_trees = _unsure(seed, chosen, 4, 6)
        model = loaded(Transformer, problem.weights, problem.sizes)
        what = f"the result with width {width} and length penalty {p}"
        whole = _search(beam_search, model, problem, width, p, what)
        for i, tree in enumerate(found_trees):
            src, padding = problem.row(i)
            (row,) = _search(beam_search, model, problem, width, p, what, src=src, padding=padding)
            _as_good(problem, i, row, whole[i], p, f"{what}, as a batch of its own")
            mine, least = score(problem, i, whole[i], p), _least(problem, tree, width, p)
            check(mine > least - SLACK, f"{what}: sentence {i} gives {whole[i]} with score {mine:.4f}, and a beam "
                  f"search of this width finds one with {least:.4f}: does the search stop too early?")


@pytest.mark.weight(0.5)
def test_without_a_mask(beam_search, Transformer, rng):
    """None for src_padding means that nothing is padding."""
    def greedy(model, *args):
        return beam_search(model, *args, 1, 1.0)

    decoding.without_a_mask(greedy, Transformer, rng)


@pytest.mark.weight(0.5)
def test_gradients_stay_on(beam_search, Transformer, rng):
    """After the search, the model can be trained: gradients were off in the function only."""
    decoding.gradients_stay_on(lambda model, *args: beam_search(model, *args, 2, 1.0), Transformer, rng)


@pytest.mark.weight(1.5)
def test_padding(beam_search, Transformer, rng):
    """Other tokens in the source's padding, or more of it, change nothing."""
    problem = draw_problem(rng, max_len=7)
    model = loaded(Transformer, problem.weights, problem.sizes)
    whole = _search(beam_search, model, problem, 3, 1.0, "the result")
    junk = torch.where(problem.padding, torch.randint(SIZES[0], problem.src.shape, generator=rng), problem.src)
    more = torch.cat([junk, junk[:, :2]], 1), torch.cat([problem.padding, problem.padding[:, :2] | True], 1)
    for told, src, padding in (("with other padding", junk, problem.padding), ("with more padding", *more)):
        rows = _search(beam_search, model, problem, 3, 1.0, "the result", src=src, padding=padding)
        for i, row in enumerate(rows):
            _as_good(problem, i, row, whole[i], 1.0, told)


@pytest.mark.integration
@pytest.mark.weight(0.5)
@torch.no_grad()
def test_with_your_own_parts(beam_search, greedy_decode, Transformer, rng):
    """Together with your own q4_2 and q4_6: by your own model's score, no result is worse than your greedy one."""
    problem = draw_problem(rng, max_len=7)
    model = loaded(Transformer, problem.weights, problem.sizes)
    mine = _search(beam_search, model, problem, 3, 1.0, "the result")
    greedy = as_tokens(greedy_decode(model, *problem.arguments()), len(mine), "your greedy result")
    for i, (row, other) in enumerate(zip(mine, greedy, strict=True)):
        a, b = (_own_score(model, problem, i, tokens) for tokens in (row, other))
        check(a >= b - SLACK, f"sentence {i}: your beam's score is {a:.4f}, and your greedy decoding's {b:.4f}")


def _own_score(model, problem, i, tokens):
    src, padding = problem.row(i)
    written = [*tokens, problem.eos] if len(tokens) < problem.max_len else list(tokens)[: problem.max_len]
    logits = tensor(model(src, torch.tensor([[problem.bos, *written[:-1]]]), padding), "your logits")[0]
    check(logits.isfinite().all(), "your model's logits are not finite")
    return logits.log_softmax(-1)[range(len(written)), written].mean().item()
