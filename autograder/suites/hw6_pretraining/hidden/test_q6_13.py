"""Hidden checks of q6_13: false_claims, by evaluating the counter-examples."""

import math

import pytest
import torch

from course_utils.checking.compare import Wrong, check
from course_utils.hw6.claims import CLAIMS, holds

F64 = torch.float64


def _random_example(name, rng):
    """An example with the claim's arguments, in which every part matters."""

    def draw(*shape):
        return torch.randn(*shape, generator=rng, dtype=F64)

    def whole(low, high, *shape):
        return torch.randint(low, high, shape, generator=rng).tolist()

    a, b = (1 + 50 * torch.rand((2,), generator=rng)).tolist()
    n, m = whole(1, 101, 2)
    chosen = torch.stack([torch.arange(8) < 2] * 3)
    return {
        "order_needs_positions": {
            "x": draw(5, 4),
            "order": torch.randperm(4, generator=rng).tolist(),
            **{W: draw(2, 4, 4) for W in ("Wq", "Wk", "Wv")},
        },
        "loss_reaches_every_word": {"logits": draw(6, 5), "labels": [-100 if x > 4 else x for x in whole(0, 8, 6)]},
        "nucleus_keeps_most_words": {"probabilities": (2 * draw(20)).softmax(0)},
        "lower_perplexity_knows_better": {
            "perplexity_a": a,
            "tokens_a": n,
            "perplexity_b": b,
            "tokens_b": m,
            "characters": 100,
        },
        "neighbours_tell_inference": {
            "document": [sorted(set(whole(0, 3, 3))) for _ in range(6)],
            "i": whole(0, 5, 1)[0],
            "j": whole(0, 5, 1)[0],
        },
        "same_places_teach_as_much": {
            "fixed": chosen[0],
            "anew": torch.stack([row[torch.randperm(8, generator=rng)] for row in chosen]),
        },
    }[name]


def _is_false(name, rng):
    """Whether some example out of many breaks the claim."""
    return not all(holds(name, _random_example(name, rng)) for _ in range(60))


def _answer(false_claims):
    got = false_claims()
    check(
        isinstance(got, dict),
        f"false_claims gives a {type(got).__name__}, expected a dict from the names of false "
        "claims to counter-examples",
    )
    unknown = [str(name) for name in got if name not in CLAIMS]
    check(not unknown, f"there is no claim {', '.join(unknown)}; the claims are {', '.join(CLAIMS)}")
    return got


@pytest.mark.weight(2)
@pytest.mark.parametrize("name", CLAIMS)
def test_claim(false_claims, rng, name):
    """A false claim is named, with an example on which it fails; a true one is not named."""
    got = _answer(false_claims)
    false = _is_false(name, rng)
    if name not in got:
        check(not false, f"{name} is let stand, but it is false")
        return
    try:
        broken = not holds(name, got[name])
    except ValueError as error:
        raise Wrong(f"the example for {name} does not fit: {error}") from None
    check(false, f"{name} is named as false, but no example breaks it")
    check(
        broken, f"{name} is false, but it is true of your example: the example does not reach the place where it fails"
    )


def test_examples_by_hand(false_claims):
    """The examples break their claims also when the claims are worked out anew, in another way."""
    got = _answer(false_claims)
    check(got, "no claim is named, and not all six are true")
    by_hand = {
        "order_needs_positions": _order,
        "loss_reaches_every_word": _loss,
        "nucleus_keeps_most_words": _nucleus,
        "lower_perplexity_knows_better": _perplexity,
        "neighbours_tell_inference": _inference,
        "same_places_teach_as_much": _places,
    }
    for name, example in got.items():
        try:
            holds(name, example)
        except ValueError as error:
            raise Wrong(f"the example for {name} does not fit: {error}") from None
        check(by_hand[name](**example), f"worked out by hand, {name} is true of your example")


def _floats(*values):
    return [torch.as_tensor(value).to(F64) for value in values]


def _order(x, order, Wq, Wk, Wv):
    """Whether the last row moves: each row attends to itself and those before it, row by row."""
    x, Wq, Wk, Wv = _floats(x, Wq, Wk, Wv)
    order = [int(i) for i in order]

    def last(rows):
        for q, k, v in zip(Wq, Wk, Wv, strict=True):
            new = []
            for i, row in enumerate(rows):
                past = torch.stack(rows[: i + 1])
                weights = ((row @ q) @ (past @ k).T / math.sqrt(len(row))).softmax(-1)
                new.append(row + weights @ (past @ v))
            rows = new
        return rows[-1]

    return bool((last([*x]) - last([*[x[i] for i in order], x[-1]])).abs().max() > 0)


def _loss(logits, labels):
    """Whether some place gets no gradient from torch's own cross-entropy."""
    logits, labels = torch.as_tensor(logits).to(F64).clone().requires_grad_(), torch.as_tensor(labels).long()
    torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100, reduction="sum").backward()
    return bool((logits.grad.abs().amax(-1) == 0).any())


def _nucleus(probabilities):
    p = sorted(torch.as_tensor(probabilities).to(F64).tolist(), reverse=True)
    kept = next(n for n in range(1, len(p) + 1) if math.fsum(p[:n]) >= 0.9 - 1e-6 or n == len(p))
    return kept < 0.9 * len(p)


def _perplexity(perplexity_a, tokens_a, perplexity_b, tokens_b, characters):
    pairs = sorted([(float(perplexity_a), int(tokens_a)), (float(perplexity_b), int(tokens_b))])
    (low, n), (high, m) = pairs
    return low < high and n * math.log(low) > m * math.log(high)


def _inference(document, i, j):
    facts = [{int(fact) for fact in sentence} for sentence in document]
    first, second = (not facts[int(k) + 1] - facts[int(k)] for k in (i, j))
    return first != second


def _places(fixed, anew):
    fixed, anew = torch.as_tensor(fixed).bool(), torch.as_tensor(anew).bool()
    return len({int(i) for row in anew for i in row.nonzero()}) > int(fixed.sum())
