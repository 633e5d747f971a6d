"""Public checks of q2_10: broken_claims."""

from course_utils.checking.compare import Wrong, check
from course_utils.hw2.claims import CLAIMS, holds


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
    got = _answer(broken_claims)
    check(got, "no claim is named, and not all five are true")
    for name, example in got.items():
        _holds(name, example)


def test_examples_break_their_claims(broken_claims):
    """On each of your examples the claim fails. (Whether you have found all false claims is for you to say.)"""
    for name, example in _answer(broken_claims).items():
        check(not _holds(name, example), f"{name} is true of your example: find another one, or is the claim true?")


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


def probe_mask_after_softmax(broken_claims):
    return _verdict(broken_claims, "mask_after_softmax")


def probe_cache_without_mask(broken_claims):
    return _verdict(broken_claims, "cache_without_mask")


def probe_key_bias_is_idle(broken_claims):
    return _verdict(broken_claims, "key_bias_is_idle")


def probe_attention_above_width(broken_claims):
    return _verdict(broken_claims, "attention_above_width")


def probe_count(broken_claims):
    example = broken_claims()["attention_above_width"]
    return [float(example["N"]), float(example["D"])] if holds("attention_above_width", example) else "broken"
