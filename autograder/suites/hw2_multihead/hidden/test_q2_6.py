"""Hidden checks of q2_6: receptive_field and reach, against a layer that really attends."""

import numbers

import pytest
import torch
import torch.nn.functional as F

from autograder.in_box.hw2 import positions_held
from autograder.suites.causes import same_or_because
from course_utils.checking.compare import check, number

F64 = torch.float64


def _draw(rng, layers, N, heads):
    return torch.randint(N, (layers, N, heads), generator=rng).tolist()


def _matrices(attended):
    """What each layer does to the positions: itself (the residual) plus the one that each head attends to."""
    matrices = []
    for layer in attended:
        N, targets = len(layer), torch.tensor(layer)  # [N, heads]
        matrices.append(torch.eye(N, dtype=F64) + F.one_hot(targets, N).sum(1).to(F64))
    return matrices


def _experiment(attended):
    """Mark every position with a colour of its own, run the layers, and see which colours arrive at position 0."""
    colours = torch.eye(len(attended[0]), dtype=F64)  # [N, N]
    for matrix in _matrices(attended):
        colours = matrix @ colours
    return set(colours[0].nonzero()[:, 0].tolist())


def _walk(attended, residual=True):
    """The other way round, from position 0 back through the layers in the given order."""
    found = {0}
    for layer in attended:
        found = {j for i in found for j in layer[i]} | (found if residual else set())
    return found


def _positions(got, N):
    """The student's set as ints, after a look at its form."""
    check(isinstance(got, (set, frozenset)), f"reach gives a {type(got).__name__}, expected a set of positions")
    good = all(isinstance(p, numbers.Real) and not isinstance(p, bool) and p == int(p) and 0 <= p < N for p in got)
    check(good, f"reach gives {sorted(map(str, got))[:8]}, expected positions from 0 to {N - 1}")
    return {int(position) for position in got}


def _compare(reach, attended):
    layers, N, heads = len(attended), len(attended[0]), len(attended[0][0])
    got, expected = _positions(reach(attended), N), _experiment(attended)
    causes = {
        "the residual connection is forgotten; what a position holds, it keeps": _walk(attended[::-1], residual=False),
        "the layers are run through in the wrong order; attended[0] is the layer next to the input": _walk(attended),
        "these are the positions that position 0 reaches; asked for are those that reach it":
            {i for i in range(N) if 0 in _from(attended, i)},
        "only the last layer is looked at": _walk(attended[-1:]),
        "only the first layer is looked at": _walk(attended[:1]),
        "position 0 itself belongs to the set": expected - {0},
        "only the first head is looked at": _walk([[targets[:1] for targets in layer] for layer in attended][::-1]),
        "only position 0's own row of each layer is looked at; what the attended positions hold comes along":
            {0} | {j for layer in attended for j in layer[0]},
    }
    fitting = [why for why, value in causes.items() if got == value]
    because = f". Likely cause: {fitting[0]}." if len(fitting) == 1 else ""
    check(got == expected, f"reach for {layers} layers, {N} positions and {heads} head{'s' * (heads > 1)} is "
          f"{sorted(got)}, expected {sorted(expected)}{because}")


def _from(attended, start):
    found = {start}
    for layer in attended[::-1]:
        found = found | {j for i in found for j in layer[i]}
    return found


def _spread(heads, layers):
    """The best choice: layer l looks 1, 2, ..., heads times (heads + 1)^l to the right, so that no two paths meet."""
    N = (heads + 1) ** layers + 3
    return [[[(i + h * (heads + 1) ** layer) % N for h in range(1, heads + 1)] for i in range(N)]
            for layer in range(layers)]


@pytest.mark.weight(2)
def test_bound_for_many_sizes(receptive_field):
    """The bound is what the best choice of attended positions attains, for every number of heads and layers."""
    for heads, layers in ((3, 2), (1, 1), (1, 2), (1, 5), (2, 1), (2, 3), (3, 3), (4, 2), (6, 1)):
        attained = len(_experiment(_spread(heads, layers)))
        got = number(receptive_field(heads, layers), f"receptive_field({heads}, {layers})")
        same_or_because(got, attained, f"receptive_field({heads}, {layers})", {
            "the residual connection is forgotten, so that a position loses what it held": heads**layers,
            "the layers are added; each layer multiplies, as everything attended to has a field of its own":
                heads * layers + 1,
            "every head adds a position, so a layer multiplies by heads + 1 and not by 2": 2**layers,
            "heads and layers are swapped": (layers + 1) ** heads,
            "the fields of all layers before are counted again": sum((heads + 1) ** n for n in range(layers + 1)),
        }, rtol=0, atol=0)


def test_bound_is_never_passed(receptive_field, rng):
    """No choice of attended positions reaches more than the bound, and no layer at all leaves one position."""
    for heads, layers, N in ((1, 3, 20), (2, 2, 30), (3, 2, 40), (2, 4, 90)):
        bound = number(receptive_field(heads, layers), f"receptive_field({heads}, {layers})")
        most = max(len(_experiment(_draw(rng, layers, N, heads))) for _ in range(3))
        check(most <= bound, f"with {heads} heads and {layers} layers {most} positions are reached, more than your "
              f"bound of {bound:g}")
    for heads in (1, 4):
        alone = number(receptive_field(heads, 0), f"receptive_field({heads}, 0)")
        check(alone == 1, f"receptive_field({heads}, 0) is {alone:g}; with no layer there is one position, itself")


@pytest.mark.weight(0.5)
def test_bound_is_exact(receptive_field):
    """The bound is a whole number, exact to its last digit for deep stacks too."""
    for heads, layers in ((1, 50), (4, 20), (2, 36)):
        got, told = receptive_field(heads, layers), f"receptive_field({heads}, {layers})"
        number(got, told)
        value = got.item() if isinstance(got, torch.Tensor) else got
        expected = (heads + 1) ** layers
        right = float(expected) if isinstance(value, float) else expected  # a float has the digits that it can have
        check(value == right, f"{told} is {value}, expected {expected}: count in whole numbers, floats have 16 digits")


@pytest.mark.weight(3)
def test_random_attention(reach, rng):
    """The positions that arrive at position 0 are those that an experiment finds, for random attended positions."""
    for layers, N, heads in ((2, 9, 1), (3, 12, 2), (2, 15, 3), (4, 25, 2), (3, 20, 1), (5, 40, 1), (4, 130, 3)):
        _compare(reach, _draw(rng, layers, N, heads))


@pytest.mark.weight(2)
def test_order_of_random_layers(reach, rng):
    """attended[0] is the first layer: what is passed on later in the stack comes too late for earlier layers."""
    for _ in range(4):
        attended = _draw(rng, 3, 11, 1)
        _compare(reach, attended)
        _compare(reach, attended[::-1])
    _compare(reach, [[[0], [2], [2]], [[1], [1], [2]]])
    _compare(reach, [[[1], [1], [2]], [[0], [2], [2]]])


def test_residual(reach, rng):
    """Position 0 is always there, also when no head attends to it, and one that was reached stays."""
    for layers, N, heads in ((1, 5, 1), (3, 8, 2), (4, 30, 1)):
        attended = (1 + torch.randint(N - 1, (layers, N, heads), generator=rng)).tolist()
        check(0 in _positions(reach(attended), N), "position 0 is missing: the residual connection keeps it")
        _compare(reach, attended)


@pytest.mark.weight(0.5)
def test_positions_are_ints(reach, in_box, rng):
    """The set holds ints, so that `n in reach(...)` tells whether position n is there."""
    attended = _draw(rng, 3, 12, 2)
    there = _positions(reach(attended), 12)
    got = [n for n, held in enumerate(in_box(positions_held, reach, attended, 12)) if held]
    check(got == sorted(there), f"reach prints as {sorted(there)}, but asked with `n in` it holds {got}: the set is "
          "made of ints, not of tensors")


def test_one_layer(reach, rng):
    """One layer brings what the heads of position 0 attend to, and nothing else."""
    for N, heads in ((6, 1), (9, 3), (4, 4), (1, 2)):
        _compare(reach, _draw(rng, 1, N, heads))


def test_no_layer(reach):
    """Without any layer the output at position 0 is its input: reach([]) is {0}."""
    got = _positions(reach([]), 1)
    check(got == {0}, f"reach([]) is {sorted(got)}, expected [0]: position 0 is always in the set")


def test_heads_on_the_same_position(reach):
    """Heads that agree add nothing: with all of them on the next position, n layers reach n + 1 positions."""
    for layers, heads in ((3, 1), (4, 3), (2, 5)):
        attended = [[[min(i + 1, 11)] * heads for i in range(12)] for _ in range(layers)]
        _compare(reach, attended)


def test_best_case(reach, receptive_field):
    """With well-chosen positions reach is as large as your bound."""
    for heads, layers in ((1, 4), (2, 3), (3, 2)):
        attended = _spread(heads, layers)
        size = len(_positions(reach(attended), len(attended[0])))
        bound = number(receptive_field(heads, layers), f"receptive_field({heads}, {layers})")
        check(size == bound, f"with {heads} heads and {layers} layers, reach finds {size} positions at best, and your "
              f"bound is {bound:g}")
