"""Public checks of q4_9: stack_costs and extra_cost_for_second_language."""

from course_utils.checking.compare import check, number


def test_worked_numbers(stack_costs):
    """With M = 7, N = 5 and k = 12 the encoder's self-attention costs 10,416; all three stand in a dict."""
    # keeps: costs, keys
    costs = stack_costs(7, 5, 12)
    check(isinstance(costs, dict) and set(costs) == {"encoder_self", "decoder_self", "cross"},
          "stack_costs gives a dict with the keys encoder_self, decoder_self and cross")
    got = number(costs["encoder_self"], "the cost")
    check(got == 10_416, f"the cost of the encoder's self-attention is {got:,.15g}, expected 10,416")


def test_equal_lengths(stack_costs):
    """Where source and target are equally long, all three cost the same: masking saves nothing."""
    # keeps: costs, mask
    costs = stack_costs(6, 6, 8)
    different = {number(value, "a cost") for value in costs.values()}
    check(len(different) == 1, f"with M = N = 6 the costs are {costs}")


def test_second_language(extra_cost_for_second_language):
    """With M = 7, N = 5 and k = 12 a second target language costs 15,552."""
    # keeps: second
    got = number(extra_cost_for_second_language(7, 5, 12), "the extra cost")
    check(got == 15_552, f"extra_cost_for_second_language(7, 5, 12) is {got:,.15g}, expected 15,552")


def test_other_lengths(stack_costs, extra_cost_for_second_language):
    """A source of 9 and a target of 4 at width 3: in cross-attention the target asks and the source answers."""
    # keeps: costs, second
    costs = stack_costs(9, 4, 3)
    for key, expected in (("encoder_self", 1_620), ("decoder_self", 480), ("cross", 900)):
        got = number(costs[key], "the cost")
        check(got == expected, f"stack_costs(9, 4, 3)[{key!r}] is {got:,.15g}, expected {expected:,}")
    got = number(extra_cost_for_second_language(9, 4, 3), "the extra cost")
    check(got == 1_380, f"extra_cost_for_second_language(9, 4, 3) is {got:,.15g}, expected 1,380")


def probe_costs(stack_costs):
    return stack_costs(7, 5, 12)


def probe_encoder(stack_costs):
    return stack_costs(7, 5, 12)["encoder_self"]


def probe_decoder(stack_costs):
    return stack_costs(7, 5, 12)["decoder_self"]


def probe_cross(stack_costs):
    return stack_costs(7, 5, 12)["cross"]


def probe_keys(stack_costs):
    return set(stack_costs(7, 5, 12))


def probe_wide(stack_costs):
    return stack_costs(3, 2, 64)


def probe_long(stack_costs):
    return stack_costs(1000, 1, 2)


def probe_one(stack_costs):
    return stack_costs(1, 1, 1)


def probe_second_language(extra_cost_for_second_language):
    return extra_cost_for_second_language(7, 5, 12)


def probe_second_language_after_a_long_source(extra_cost_for_second_language):
    return [extra_cost_for_second_language(M, 3, 4) for M in (1, 10, 100)]


def probe_second_language_wide(extra_cost_for_second_language):
    return extra_cost_for_second_language(3, 2, 64)
