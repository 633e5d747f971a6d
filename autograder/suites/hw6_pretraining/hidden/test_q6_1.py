"""Hidden checks of q6_1: mask_tokens, counted over many draws. The bounds are those of chances.py."""

import math

import pytest
import torch

from autograder.suites.chances import likely, spread
from course_utils.checking.compare import check, same, tensor
from course_utils.checking.raises import expect_value_error
from course_utils.hw6.chance import masked, masked_by_torchs_own, stream_moved

SIZES = (300, 200)


class Draws:
    """A vocabulary with special ids of its own, and calls with it."""

    def __init__(self, mask_tokens, in_box, rng, kind=list):
        self.mask_tokens, self.in_box = mask_tokens, in_box
        self.vocab = int(torch.randint(26, 44, (1,), generator=rng))
        order = torch.randperm(self.vocab, generator=rng).tolist()
        self.special, self.mask_id = kind(order[:4]), order[2]
        self.others = sorted(order[4:])
        self.seed = int(torch.randint(10**6, (1,), generator=rng))

    def ids(self, rng, shape=SIZES, special=True):
        words = torch.arange(self.vocab) if special else torch.tensor(self.others)
        return words[torch.randint(len(words), shape, generator=rng)]

    def __call__(self, ids, p=0.15, calls=1, elsewhere=0, seed=0):
        results = self.in_box(
            masked,
            self.mask_tokens,
            ids,
            self.mask_id,
            self.vocab,
            self.special,
            p,
            self.seed + seed,
            calls,
            elsewhere,
        )
        for result in results:
            check(
                isinstance(result, (tuple, list)) and len(result) == 2, "mask_tokens gives the pair (inputs, labels)"
            )
            for got, what in zip(result, ("the inputs", "the labels"), strict=True):
                tensor(got, what, ids.shape, torch.int64)
        return results if calls > 1 else results[0]

    def are_special(self, ids):
        return torch.isin(ids, torch.tensor(sorted(self.special)))


def _count(hits, n, p, what):
    hits = int(hits)
    check(likely(hits, n, p), f"{what}: {hits / n:.3f}, expected {p:g} (within {spread(n, p) / n:.3f}, of {n} cases)")


@pytest.mark.weight(2)
def test_who_is_chosen(mask_tokens, in_box, rng):
    """Every token that is not special is chosen with probability p, by itself; special ones never."""
    for p in (0.15, 0.6):
        draws = Draws(mask_tokens, in_box, rng)
        ids = draws.ids(rng)
        inputs, labels = draws(ids, p)
        chosen, special = labels != -100, draws.are_special(ids)
        check(not (chosen & special).any(), "a special token was chosen")
        check((inputs[special] == ids[special]).all(), "a special token was changed")
        usual = ~special
        _count(chosen.sum(), int(usual.sum()), p, f"share of chosen positions with p={p}")
        below = usual[::2] & usual[1::2]
        _count(
            (chosen[::2] & chosen[1::2] & below).sum(),
            int(below.sum()),
            p * p,
            f"two positions, one below the other, both chosen with p={p}",
        )
        beside = usual[:, ::2] & usual[:, 1::2]
        _count(
            (chosen[:, ::2] & chosen[:, 1::2] & beside).sum(),
            int(beside.sum()),
            p * p,
            f"two neighbouring positions both chosen with p={p}",
        )


@pytest.mark.weight(2)
def test_fates(mask_tokens, in_box, rng):
    """Of the chosen positions 80 percent are masked, 10 get a random word, 10 stay, each by itself."""
    draws = Draws(mask_tokens, in_box, rng)
    ids = draws.ids(rng, special=False)
    inputs, labels = draws(ids, 0.7)
    chosen = labels != -100
    n, same_by_chance = int(chosen.sum()), 0.1 / len(draws.others)
    masks, stay = (inputs == draws.mask_id) & chosen, (inputs == ids) & chosen
    for one, other, place in (
        ((slice(0, None, 2), slice(None)), (slice(1, None, 2), slice(None)), "below"),
        ((slice(None), slice(0, None, 2)), (slice(None), slice(1, None, 2)), "beside"),
    ):
        both, together = chosen[one] & chosen[other], int((masks[one] & masks[other]).sum())
        alone = int(masks.sum()) / max(n, 1)
        check(
            likely(together, int(both.sum()), alone * alone),
            f"two chosen positions, one {place} the other, share their fate: both are masked in "
            f"{together / max(int(both.sum()), 1):.3f} of the cases, and each by itself in {alone:.3f} of them",
        )
    _count(masks.sum(), n, 0.8, "share of the chosen positions that are masked")
    _count(stay.sum(), n, 0.1 + same_by_chance, "share of the chosen positions that keep their token")
    _count(
        (chosen & ~masks & ~stay).sum(), n, 0.1 - same_by_chance, "share of the chosen positions with another word"
    )


@pytest.mark.weight(2)
def test_random_words_are_even(mask_tokens, in_box, rng):
    """Random words are drawn evenly from all ids that are not special, at every position by itself."""
    draws = Draws(mask_tokens, in_box, rng)
    ids = torch.full((400, 250), draws.others[0])
    inputs, _ = draws(ids, 1.0)
    new = inputs[(inputs != draws.mask_id) & (inputs != ids)]
    check(not draws.are_special(new).any(), "a random word is a special token")
    check(((new >= 0) & (new < draws.vocab)).all(), "a random word is outside range(vocab_size)")
    k = len(draws.others)
    for token in draws.others[1:]:
        _count(
            (new == token).sum(),
            ids.numel(),
            0.1 / k,
            f"share of the random word {token} among all {k} that are not special",
        )
    left, right = inputs[:, ::2], inputs[:, 1::2]
    words = [torch.isin(x, torch.tensor(draws.others[1:])) for x in (left, right)]
    both = words[0] & words[1]
    _count((both & (left == right)).sum(), int(both.sum()), 1 / (k - 1), "neighbouring random words that are equal")


@pytest.mark.weight(2)
def test_every_label(mask_tokens, in_box, rng):
    """Labels are the old tokens at every chosen place, -100 elsewhere; where nothing is chosen nothing changes."""
    draws = Draws(mask_tokens, in_box, rng)
    ids = draws.ids(rng)
    inputs, labels = draws(ids, 0.4)
    chosen = labels != -100
    same(labels[chosen], ids[chosen], "the labels at chosen places")
    same(inputs[~chosen], ids[~chosen], "the inputs at places that were not chosen")


def test_edges(mask_tokens, in_box, rng):
    """p=0 changes nothing, p=1 asks for everything that is not special."""
    draws = Draws(mask_tokens, in_box, rng, set)
    ids = draws.ids(rng, (40, 50))
    for p in (0, 0.0):
        inputs, labels = draws(ids, p)
        same(inputs, ids, "the inputs with p=0")
        check((labels == -100).all(), "with p=0 no position is chosen")
    for p in (1, 1.0):
        _, labels = draws(ids, p)
        same(labels, ids.masked_fill(draws.are_special(ids), -100), "the labels with p=1")


def test_shapes_and_collections(mask_tokens, in_box, rng):
    """ids of any shape; special ids as a tuple, list or set; nothing but special tokens."""
    for shape, kind in (((7,), tuple), ((2, 3, 4), set), ((0, 5), list), ((), list), ((1, 1), tuple)):
        draws = Draws(mask_tokens, in_box, rng, kind)
        ids = draws.ids(rng, shape)
        inputs, labels = draws(ids, 1.0)
        same(labels, ids.masked_fill(draws.are_special(ids), -100), f"the labels for shape {list(shape)} with p=1")
    ids = torch.full((5, 6), draws.mask_id)
    inputs, labels = draws(ids, 1.0)
    check(torch.equal(inputs, ids) and (labels == -100).all(), "ids that are all special stay as they are")


def test_one_word_that_is_not_special(mask_tokens, in_box):
    """Special ids may be all but one, and may lie beyond vocab_size."""
    ids = torch.tensor([[0, 1, 2, 3, 9]]).repeat(50, 1)
    inputs, labels = in_box(masked, mask_tokens, ids, 9, 4, [0, 1, 3, 9], 1.0, 1)[0]
    same(labels, ids.masked_fill(ids != 2, -100), "the labels where 2 is the only token that is not special")
    check(
        torch.isin(inputs[:, 2], torch.tensor([2, 9])).all(),
        "the only token that is not special becomes mask_id or stays",
    )


@pytest.mark.weight(2)
def test_all_chance(mask_tokens, in_box, rng):
    """All chance comes from the generator: torch's own numbers neither matter nor move."""
    draws = Draws(mask_tokens, in_box, rng)
    ids = draws.ids(rng, (60, 50))
    results, again = draws(ids, 0.3, calls=3), draws(ids, 0.3, calls=3, elsewhere=12345)
    for i, (mine, other) in enumerate(zip(results, again, strict=True)):
        check(
            torch.equal(mine[0], other[0]) and torch.equal(mine[1], other[1]),
            f"call {i + 1} with a generator in the same state gives something else when torch's own numbers differ",
        )
    check(
        not torch.equal(results[0][1], results[1][1]),
        "the second call with a generator chooses the same as the first",
    )
    check(not torch.equal(draws(ids, 0.3, seed=1)[1], results[0][1]), "another seed chooses the same places")
    moved = in_box(stream_moved, mask_tokens, ids, draws.mask_id, draws.vocab, draws.special)
    check(moved is False, "a call with a generator moves torch's own random numbers")


def test_without_a_generator(mask_tokens, in_box, rng):
    """Without a generator torch's own numbers are used: seeding torch repeats the result; p is 0.15."""
    draws = Draws(mask_tokens, in_box, rng)
    ids = draws.ids(rng, special=False)
    first, again, other = (
        in_box(masked_by_torchs_own, mask_tokens, ids, draws.mask_id, draws.vocab, draws.special, seed)
        for seed in (3, 3, 4)
    )
    check(
        torch.equal(first[0], again[0]) and torch.equal(first[1], again[1]),
        "after torch.manual_seed the result differs",
    )
    check(not torch.equal(first[1], other[1]), "another seed of torch chooses the same places")
    _count((first[1] != -100).sum(), ids.numel(), 0.15, "share of chosen positions without p")


def test_the_number_varies(mask_tokens, in_box, rng):
    """Each position is chosen by itself, so the number of chosen ones varies from call to call as it should."""
    draws = Draws(mask_tokens, in_box, rng)
    ids = draws.ids(rng, (100,), special=False)
    counts = torch.tensor([float((labels != -100).sum()) for _, labels in draws(ids, 0.3, calls=200)])
    check(
        10 < counts.var().item() < 50,
        f"the number of chosen positions of 100 has a variance of "
        f"{counts.var():.1f} over 200 "
        "calls, expected 21: is each position chosen by itself?",
    )


def test_wrong_p(mask_tokens, rng):
    """p below 0 or above 1 is a ValueError, also where there is nothing to choose."""
    ids = torch.tensor([[5, 6, 7]])
    for p in (-1e-6, 1.0001, 2, -3, math.inf):
        expect_value_error(f"p={p}", mask_tokens, ids, 1, 10, [0, 1], p)
    expect_value_error(
        "p=2 with ids that are all special", mask_tokens, torch.zeros(2, 2, dtype=torch.long), 1, 10, [0, 1], 2
    )
