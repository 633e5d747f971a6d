"""Public checks of q6_13: false_claims."""

from course_utils.checking.compare import Wrong, check
from course_utils.hw6.claims import CLAIMS, holds


def _answer(false_claims):
    got = false_claims()
    check(isinstance(got, dict), "false_claims returns a dict from the names of false claims to counter-examples")
    unknown = [str(name) for name in got if name not in CLAIMS]
    check(not unknown, f"there is no claim {', '.join(unknown)}; the claims are {', '.join(CLAIMS)}")
    check(got, "no claim is named, and not all six are true")
    return got


def _holds(name, example):
    try:
        return holds(name, example)
    except ValueError as error:
        raise Wrong(f"the example for {name} does not fit: {error}") from None


def test_form(false_claims):
    """The answer is a dict: names of claims, each with an example that has the claim's arguments."""
    # keeps: form
    for name, example in _answer(false_claims).items():
        _holds(name, example)


def test_examples_break_their_claims(false_claims):
    """On each of your examples the claim fails. (Whether you have found all false claims is for you to say.)"""
    # keeps: breaks
    for name, example in _answer(false_claims).items():
        check(not _holds(name, example), f"{name} is true of your example: find another one, or is the claim true?")


def _verdict(false_claims, name):
    """What becomes of one claim: "not named", True, False, or why the example does not fit."""
    got = false_claims()
    if name not in got:
        return "not named"
    try:
        return str(holds(name, got[name]))
    except ValueError:
        return "does not fit"


def probe_form(false_claims):
    return type(false_claims()).__name__


def probe_names(false_claims):
    return sorted(map(str, false_claims()))


def probe_order(false_claims):
    return _verdict(false_claims, "order_needs_positions")


def probe_loss(false_claims):
    return _verdict(false_claims, "loss_reaches_every_word")


def probe_nucleus(false_claims):
    return _verdict(false_claims, "nucleus_keeps_most_words")


def probe_perplexity(false_claims):
    return _verdict(false_claims, "lower_perplexity_knows_better")


def probe_inference(false_claims):
    return _verdict(false_claims, "neighbours_tell_inference")


def probe_places(false_claims):
    return _verdict(false_claims, "same_places_teach_as_much")
