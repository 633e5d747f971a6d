"""Public checks of q1_13: repairs."""

import torch

from course_utils.checking.beside import ask_all
from course_utils.checking.compare import check, same
from course_utils.hw1.spot_the_error import DERIVATIONS, draw, largest_gaps

F64 = torch.float64


def _answer(repairs):
    """The dict, after its form has been checked."""
    got = repairs()
    check(isinstance(got, dict), "repairs returns a dict: the name of a derivation -> (line, repaired)")
    for name, entry in got.items():
        check(name in DERIVATIONS, f"{name!r} is none of the derivations: {', '.join(DERIVATIONS)}")
        check(isinstance(entry, (tuple, list)) and len(entry) == 2, f"{name} has a pair: (line, repaired)")
        line, repaired = entry
        check(line in DERIVATIONS[name], f"{line!r} is no line of {name}: {', '.join(DERIVATIONS[name])}")
        check(callable(repaired), f"the second part of {name} is a function of the derivation's arguments")
    return got


def _first_false(gaps):
    """The first line that departs from the first one, or None."""
    return next((line for line, gap in gaps.items() if gap > 1e-6), None)


def test_form(repairs):
    """Names of derivations, each with the name of a line and a function."""
    # keeps: form
    _answer(repairs)


def test_true_derivations_stand(repairs, rng):
    """No derivation is blamed whose lines agree wherever they are tried."""
    # keeps: no-other
    for name in _answer(repairs):
        gaps = largest_gaps(name, [draw(name, rng) for _ in range(20)])
        check(_first_false(gaps), f"all lines of {name} agree at twenty random "
              "points: is there a false one?")


def test_false_derivations_are_named(repairs, rng):
    """Every derivation in which a line departs from the first one is in the dict."""
    # keeps: each-false
    got = _answer(repairs)
    for name in DERIVATIONS:
        gaps = largest_gaps(name, [draw(name, rng) for _ in range(20)])
        check(name in got or not _first_false(gaps), f"you let {name} stand, but its lines do not agree "
              "everywhere: evaluate them at several random points")


def test_first_false_line(repairs, rng):
    """The line that you name is the first that departs, and the lines before it agree."""
    # keeps: first-line
    for name, (line, _) in _answer(repairs).items():
        gaps = largest_gaps(name, [draw(name, rng) for _ in range(20)])
        check(gaps[line] > 1e-6, f"{name}: line {line} agrees with the first line at twenty random points")
        check(line == _first_false(gaps), f"{name}: a line before {line} departs from the first line already")


def test_repairs_hold(repairs, rng):
    """Each repaired line equals the first line of its derivation, at ten random points; a query of 0 is one, too."""
    # keeps: repaired
    for name, (line, repaired) in _answer(repairs).items():
        first = next(iter(DERIVATIONS[name].values()))
        points = [draw(name, rng) for _ in range(10)]
        for point, value in zip(points, ask_all(repaired, points), strict=True):
            same(value, first(*point), f"{name}: the repaired line {line}", 1e-6, 1e-8, dtype=False)
        if name == "longer_key":
            q, *others = draw(name, rng)
            same(repaired(0 * q, *others), first(0 * q, *others), f"{name}: the repaired line {line} where q . k_j = 0",
                 1e-6, 1e-8, dtype=False)


def _points(name):
    rng = torch.Generator().manual_seed(131)
    return [draw(name, rng) for _ in range(4)]  # longer_key: both signs are among them


def _line(repairs, name):
    entry = repairs().get(name)
    return "stands" if entry is None else str(entry[0])


def _values(repairs, name):
    entry = repairs().get(name)
    if entry is None:
        return "stands"
    return [torch.as_tensor(entry[1](*point), dtype=F64).flatten()[0].item() for point in _points(name)]


def probe_blamed(repairs):
    return [_line(repairs, name) for name in DERIVATIONS]


def probe_lines_are_names(repairs):
    return [type(entry[0]).__name__ for entry in repairs().values()]


def probe_variance(repairs):
    return _values(repairs, "variance")


def probe_copy(repairs):
    return _values(repairs, "copy")


def probe_longer_key(repairs):
    return _values(repairs, "longer_key")


def probe_shuffled_tokens(repairs):
    return _values(repairs, "shuffled_tokens")


def probe_sensitive(repairs):
    return _values(repairs, "sensitive")


def probe_repaired_limit_at_zero(repairs):
    entry = repairs().get("longer_key")
    if entry is None:
        return "stands"
    q, *others = _points("longer_key")[0]
    return entry[1](0 * q, *others)
