"""Hidden checks of q2_10: broken_claims, by evaluating the counter-examples."""

import math

import pytest
import torch

from course_utils.checking.compare import Wrong, check
from course_utils.hw2.claims import CLAIMS, holds

F64 = torch.float64


def _random_example(name, rng):
    """An example with the claim's arguments, in which every part matters."""
    def draw(*shape):
        return torch.randn(*shape, generator=rng, dtype=F64)

    square = {W: draw(6, 6) for W in ("Wq", "Wk", "Wv")}
    N, small = int(torch.randint(1, 60, (1,), generator=rng)), int(torch.randint(0, 3, (1,), generator=rng))
    cross = {"x": draw(3, 4 + small), "y": draw(5, 8), "Wq": draw(4 + small, 2), "Wk": draw(8, 2), "Wv": draw(8, 3)}
    return {
        "exchange_heads": {"x": draw(5, 6), **square, "Wo": draw(6, 6), "n_heads": 3, "i": 0, "j": 2},
        "heads_get_slices": {"x": draw(5, 6), **square, "n_heads": 3, "head": small},
        "more_heads_cost_less": {"N": N, "D": 12, "fewer": 1 + small, "more": (4, 6, 12)[small]},
        "cross_needs_equal_width": cross,
        "mask_after_softmax": {"scores": draw(4, 5), "blocked": draw(4, 5) > 0, "values": draw(5, 3)},
        "cache_without_mask": {"x": draw(5, 6), **{W: draw(2, 6, 6) for W in square}},
        "new_key_meets_old_queries": {"x": draw(5, 6), **square},
        "key_bias_is_idle": {"x": draw(5, 6), **square, "bk": draw(6)},
    }[name]


def _is_false(name, rng):
    """Whether some example out of many breaks the claim."""
    return not all(holds(name, _random_example(name, rng)) for _ in range(60))


def _answer(broken_claims):
    got = broken_claims()
    check(isinstance(got, dict), f"broken_claims gives a {type(got).__name__}, expected a dict from the names of false "
          "claims to counter-examples")
    unknown = [str(name) for name in got if name not in CLAIMS]
    check(not unknown, f"there is no claim {', '.join(unknown)}; the claims are {', '.join(CLAIMS)}")
    return got


@pytest.mark.weight(2)
@pytest.mark.parametrize("name", CLAIMS)
def test_claim(broken_claims, rng, name):
    """A false claim is named, with an example on which it fails; a true one is not named."""
    got = _answer(broken_claims)
    false = _is_false(name, rng)
    if name not in got:
        check(not false, f"{name} is let stand, but it is false")
        check(got, "no claim is named, and not all eight are true")
        return
    try:
        broken = not holds(name, got[name])
    except ValueError as error:
        raise Wrong(f"the example for {name} does not fit: {error}") from None
    check(false, f"{name} is named as false, but no example breaks it: it is true, by a reason that fits into one line")
    check(broken, f"{name} is false, but it is true of your example: the example does not reach the place where it "
          "fails")


def test_examples_by_hand(broken_claims):
    """The examples break their claims also when the claims are worked out anew, in another way."""
    got = _answer(broken_claims)
    check(got, "no claim is named, and not all eight are true")
    for name, check_by_hand in (("heads_get_slices", _slice), ("more_heads_cost_less", _count),
                                ("cross_needs_equal_width", _cross), ("mask_after_softmax", _mask),
                                ("cache_without_mask", _cache), ("new_key_meets_old_queries", _joins)):
        if name in got:
            try:
                holds(name, got[name])
            except ValueError as error:
                raise Wrong(f"the example for {name} does not fit: {error}") from None
            check(check_by_hand(**got[name]), f"worked out by hand, {name} is true of your example")


def _floats(*values):
    return [torch.as_tensor(value).to(F64) for value in values]


def _mask(scores, blocked, values):
    """Whether some query's output differs: what is left of its weights after the mask does not sum to 1."""
    scores, blocked, values = _floats(scores, blocked, values)
    for row, hidden in zip(scores, blocked == 1, strict=True):
        seen = row[~hidden]
        if len(seen):  # in logarithms: a blocked score may be larger than all others by thousands
            lost = 1 - torch.exp(seen.logsumexp(0) - row.logsumexp(0))
            weights = torch.exp(seen - seen.logsumexp(0))
            if (lost * (weights @ values[~hidden])).abs().max() > 0:
                return True
    return False


def _cache(x, Wq, Wk, Wv):
    """Whether a layer's keys or values of the old tokens change when the last one joins."""
    x, Wq, Wk, Wv = _floats(x, Wq, Wk, Wv)

    def keys_and_values(tokens):
        found = []
        for q, k, v in zip(Wq, Wk, Wv, strict=True):
            found.append(torch.cat([tokens @ k, tokens @ v], -1))
            weights = (tokens @ q @ (tokens @ k).T / math.sqrt(tokens.shape[-1])).softmax(-1)
            tokens = tokens + weights @ (tokens @ v)
        return found

    pairs = zip(keys_and_values(x[:-1]), keys_and_values(x), strict=True)
    return any((old - new[:-1]).abs().max() > 0 for old, new in pairs)


def _one_head(query, tokens, Wq, Wk, Wv, blocked=None):
    """Attention of one head, row by row."""
    rows = []
    for i, q in enumerate(query @ Wq):
        scores = tokens @ Wk @ q / math.sqrt(Wq.shape[1])
        seen = torch.ones(len(tokens), dtype=torch.bool) if blocked is None else ~blocked[i]
        weights = torch.exp(scores[seen] - scores[seen].logsumexp(0))
        rows.append(weights @ (tokens[seen] @ Wv))
    return torch.stack(rows)


def _slice(x, Wq, Wk, Wv, n_heads, head):
    """Whether the head hears a feature outside of its slice."""
    x, Wq, Wk, Wv = _floats(x, Wq, Wk, Wv)
    H, h, D = int(n_heads), int(head), x.shape[1]
    own = torch.arange(D) // (D // H) == h
    whole, cut = (_one_head(z, z, Wq[:, own], Wk[:, own], Wv[:, own]) for z in (x, x * own))
    return bool((whole - cut).abs().max() > 0)


def _count(N, D, fewer, more):
    """Whether there are more heads, and they cost as much: what the four projections and the two products take."""
    N, D, fewer, more = (int(n) for n in (N, D, fewer, more))
    few, many = (8 * N * D * D + 4 * H * N * N * (D // H) for H in (fewer, more))
    return more > fewer and many >= few


def _cross(x, y, Wq, Wk, Wv):
    """Whether the widths differ, and there is an output all the same."""
    x, y, Wq, Wk, Wv = _floats(x, y, Wq, Wk, Wv)
    if x.shape[1] == y.shape[1] or Wq.shape[1] != Wk.shape[1]:
        return False
    return bool(_one_head(x, y, Wq, Wk, Wv).isfinite().all())


def _joins(x, Wq, Wk, Wv):
    """Whether the outputs of the old tokens stay when the last one joins."""
    x, Wq, Wk, Wv = _floats(x, Wq, Wk, Wv)
    later = torch.ones(len(x), len(x)).triu(1).bool()
    old, new = (_one_head(z, z, Wq, Wk, Wv, later[: len(z), : len(z)]) for z in (x[:-1], x))
    return bool(torch.allclose(old, new[:-1], rtol=1e-6, atol=1e-9))
