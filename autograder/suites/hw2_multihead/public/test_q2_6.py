"""Public checks of q2_6: receptive_field and reach."""

from course_utils.checking.compare import check, number

# two layers, five positions, one head: layer 0 looks one to the right, layer 1 two to the right
ONE_HEAD = [[[1], [2], [3], [4], [4]], [[2], [3], [4], [4], [4]]]
# three layers, six positions, two heads
TWO_HEADS = [
    [[3, 1], [4, 4], [0, 2], [5, 1], [2, 2], [5, 0]],
    [[1, 1], [2, 5], [2, 3], [0, 3], [4, 1], [3, 5]],
    [[0, 2], [1, 4], [5, 3], [3, 3], [0, 0], [1, 2]],
]


def _reach(reach, attended):
    got = reach(attended)
    check(isinstance(got, (set, frozenset)), f"reach gives {got!r}, expected a set of positions")
    return {int(position) for position in got}


def test_bound(receptive_field):
    """One head and three layers reach at most 8 positions, two heads and two layers at most 9."""
    # keeps: bound
    for heads, layers, expected in ((1, 1, 2), (1, 3, 8), (2, 2, 9), (3, 2, 16)):
        got = number(receptive_field(heads, layers), f"receptive_field({heads}, {layers})")
        check(got == expected, f"receptive_field({heads}, {layers}) is {got:g}, expected {expected}: how many "
              "positions does one layer add to each that is there already?")


def test_one_head(reach):
    """Layer 0 looks one to the right, layer 1 two: position 0 holds 0, 1, 2 and 3 in the end."""
    # keeps: reach, itself
    got = _reach(reach, ONE_HEAD)
    check(0 in got, "position 0 itself is missing: the residual connection keeps it")
    check(got == {0, 1, 2, 3}, f"reach is {sorted(got)}, expected [0, 1, 2, 3]")


def test_order_of_layers(reach):
    """attended[0] is the first layer, the one that sees the input; the last layer writes position 0."""
    # keeps: from-the-output-down
    first, last = [[2], [2], [2]], [[1], [1], [1]]
    got = _reach(reach, [first, last])
    check(got == {0, 1, 2}, f"layer 0 attends to position 2, layer 1 to position 1: reach is {sorted(got)}, expected "
          "[0, 1, 2]")
    got = _reach(reach, [[[0], [2], [2]], [[1], [1], [2]]])
    check(got == {0, 1, 2}, f"position 0 takes up position 1 in the last layer, when that already holds 2: reach is "
          f"{sorted(got)}, expected [0, 1, 2]")
    got = _reach(reach, [[[1], [1], [2]], [[0], [2], [2]]])
    check(got == {0, 1}, f"position 0 takes up position 1 in layer 0, before that holds 2: reach is {sorted(got)}, "
          "expected [0, 1]")


def test_all_heads(reach):
    """Every head counts, the last one too; positions are ints in a set; without any layer position 0 is alone."""
    # keeps: reach, no-layers
    got = _reach(reach, [[[1, 2, 3], [1, 1, 4], [2, 2, 2], [3, 3, 3], [4, 4, 4]]])
    check(got == {0, 1, 2, 3}, f"position 0 has three heads, at 1, 2 and 3: reach is {sorted(got)}, expected [0, 1, "
          f"2, 3]")
    got = _reach(reach, [[[0, 0], [1, 4], [2, 3], [3, 3], [4, 4]], [[1, 2], [1, 1], [2, 2], [3, 3], [4, 4]]])
    check(got == {0, 1, 2, 3, 4}, f"through its second heads position 0 holds everything: reach is {sorted(got)}")
    got = _reach(reach, [])
    check(got == {0}, f"reach([]) is {sorted(got)}, expected [0]: without a layer position 0 holds itself")


def probe_bound(receptive_field):
    return [receptive_field(heads, layers) for heads, layers in ((1, 1), (1, 4), (2, 3), (3, 2), (5, 1), (2, 5))]


def probe_one_head(reach):
    return reach(ONE_HEAD)


def probe_two_heads(reach):
    return reach(TWO_HEADS)


def probe_two_layers(reach):
    return reach(TWO_HEADS[:2])


def probe_one_layer(reach):
    return reach(TWO_HEADS[:1])


def probe_layers_reversed(reach):
    return reach(TWO_HEADS[::-1])


def probe_first_then_last(reach):
    return [reach([[[0], [2], [2]], [[1], [1], [2]]]), reach([[[1], [1], [2]], [[0], [2], [2]]])]


def probe_without_itself(reach):
    return reach([[[1, 2]] * 4, [[3, 3]] * 4])


def probe_many(reach):
    return reach([[[(3 * i + 2 * layer + 5 * h + 1) % 23 for h in range(2)] for i in range(23)] for layer in range(3)])


def probe_square(reach):
    return reach([[[(i + 2 * h + layer + 1) % 3 for h in range(3)] for i in range(3)] for layer in range(1)])


def probe_far_apart(reach):
    return reach([[[(i + 3**layer * (h + 1)) % 40 for h in range(2)] for i in range(40)] for layer in range(3)])


def probe_no_layer(reach):
    return reach([])
