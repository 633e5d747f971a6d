"""Public checks of q2_10: broken_claims."""

import torch

from course_utils.checking.compare import Wrong, check
from course_utils.hw2.claims import CLAIMS, holds


def _random_example(name, rng):
    """An example with the claim's arguments, in which every part matters."""
    def draw(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    square = {W: draw(6, 6) for W in ("Wq", "Wk", "Wv")}
    return {
        "exchange_heads": {"x": draw(5, 6), **square, "Wo": draw(6, 6), "n_heads": 3, "i": 0, "j": 2},
        "heads_get_slices": {"x": draw(5, 6), **square, "n_heads": 3, "head": 1},
        "more_heads_cost_less": {"N": 5, "D": 6, "fewer": 2, "more": 3},
        "cross_needs_equal_width": {
            "x": draw(3, 4), "y": draw(5, 6), "Wq": draw(4, 2), "Wk": draw(6, 2), "Wv": draw(6, 3)
        },
        "mask_after_softmax": {"scores": draw(4, 5), "blocked": draw(4, 5) > 0, "values": draw(5, 3)},
        "cache_without_mask": {"x": draw(5, 6), **{W: draw(2, 6, 6) for W in square}},
        "new_key_meets_old_queries": {"x": draw(5, 6), **square},
        "key_bias_is_idle": {"x": draw(5, 6), **square, "bk": draw(6)},
    }[name]


def _answer(broken_claims):
    got = broken_claims()
    check(isinstance(got, dict), "broken_claims returns a dict from the names of false claims to counter-examples")
    unknown = [str(name) for name in got if name not in CLAIMS]
    check(not unknown, f"there is no claim {', '.join(unknown)}; the claims are {', '.join(CLAIMS)}")
    return got


def _holds(name, example):
    try:
        return holds(name, example)
    except ValueError as error:
        raise Wrong(f"the example for {name} does not fit: {error}") from None


def test_form(broken_claims):
    """The answer is a dict: names of claims, each with an example that has the claim's arguments."""
    # keeps: form
    got = _answer(broken_claims)
    check(got, "no claim is named, and not all eight are true")
    for name, example in got.items():
        _holds(name, example)


def test_examples_break_their_claims(broken_claims):
    """On each of your examples the claim fails."""
    # keeps: breaks, no-other
    for name, example in _answer(broken_claims).items():
        check(not _holds(name, example), f"{name} is true of your example: find another one, or is the claim true?")


def test_no_false_claim_is_let_stand(broken_claims, rng):
    """Every false claim is named. (Which one is missing is for you to find out.)"""
    # keeps: each-false
    missing = [name for name in CLAIMS if name not in _answer(broken_claims)
               and not all(holds(name, _random_example(name, rng)) for _ in range(10))]
    check(not missing, f"{len(missing)} of the claims that you let stand {'is' if len(missing) == 1 else 'are'} "
          f"false: try "
          "each of them on random examples in which every part matters")


def _verdict(broken_claims, name):
    """What becomes of one claim: "not named", True, False, or why the example does not fit."""
    got = broken_claims()
    if name not in got:
        return "not named"
    try:
        return holds(name, got[name])
    except ValueError as error:
        return f"does not fit: {error}"


def probe_names(broken_claims):
    return sorted(map(str, broken_claims()))


def probe_form(broken_claims):
    return type(broken_claims()).__name__


def probe_exchange_heads(broken_claims):
    return _verdict(broken_claims, "exchange_heads")


def probe_heads_get_slices(broken_claims):
    return _verdict(broken_claims, "heads_get_slices")


def probe_more_heads_cost_less(broken_claims):
    return _verdict(broken_claims, "more_heads_cost_less")


def probe_cross_needs_equal_width(broken_claims):
    return _verdict(broken_claims, "cross_needs_equal_width")


def probe_mask_after_softmax(broken_claims):
    return _verdict(broken_claims, "mask_after_softmax")


def probe_cache_without_mask(broken_claims):
    return _verdict(broken_claims, "cache_without_mask")


def probe_new_key_meets_old_queries(broken_claims):
    return _verdict(broken_claims, "new_key_meets_old_queries")


def probe_key_bias_is_idle(broken_claims):
    return _verdict(broken_claims, "key_bias_is_idle")


def probe_heads_of_the_count(broken_claims):
    example = broken_claims()["more_heads_cost_less"]
    return int(example["more"]) > int(example["fewer"])


def probe_widths(broken_claims):
    example = broken_claims()["cross_needs_equal_width"]
    return len(example["x"][0]) != len(example["y"][0])
