"""Public checks of q2_4: counts of parameters and attention weights."""

from torch import nn

from course_utils.checking.compare import check, number


def _pair(got, what):
    check(got is not None, f"{what} is None (is a `return` missing?)")
    check(isinstance(got, (tuple, list)) and len(got) == 2, f"{what} gives {got!r:.80}, expected the pair (weights, "
          "biases)")
    return [number(got[0], f"the weights of {what}"), number(got[1], f"the biases of {what}")]


def _exactly(got, expected, what):
    check(got == expected, f"{what}: you count {got:.15g}, and there are {expected}")


def test_small_layers(qkv_parameters, attention_entries):
    """Three linear layers of width 5 have 75 weights and 15 biases; 4 tokens have 16 attention weights."""
    # keeps: qkv, entries, exact, pairs
    weights, biases = _pair(qkv_parameters(5), "qkv_parameters(5)")
    _exactly(weights, 75, "the weights of three layers of width 5")
    _exactly(biases, 15, "the biases of three layers of width 5 (one number for each output, not for each layer)")
    _exactly(number(attention_entries(4), "attention_entries(4)"), 16, "attention weights of 4 tokens")


def test_dense_layer(dense_parameters):
    """One dense layer from all N * D numbers to all N * D numbers, counted on nn.Linear itself."""
    # keeps: dense, exact, pairs
    for N, D in ((2, 3), (4, 5)):
        layer = nn.Linear(N * D, N * D)
        weights, biases = _pair(dense_parameters(N, D), f"dense_parameters({N}, {D})")
        _exactly(weights, layer.weight.numel(), f"the weights at N={N}, D={D}")
        _exactly(biases, layer.bias.numel(), f"the biases at N={N}, D={D}")


def test_whole_module(mha_parameters):
    """mha_parameters counts the four projections, with and without biases, whatever the number of heads."""
    # keeps: mha, exact
    for D, H in ((6, 1), (6, 3), (8, 2)):
        for bias in (True, False):
            module = nn.MultiheadAttention(D, H, bias=bias)
            there = sum(parameter.numel() for parameter in module.parameters())
            told = f"mha_parameters({D}, {H}, bias={bias})"
            _exactly(number(mha_parameters(D, H, bias=bias), told), there, told)


def probe_qkv(qkv_parameters):
    return [list(qkv_parameters(D)) for D in (5, 12)]


def probe_qkv_biases(qkv_parameters):
    return qkv_parameters(7)[1]


def probe_entries(attention_entries):
    return [attention_entries(N) for N in (1, 4, 9)]


def probe_dense(dense_parameters):
    return [list(dense_parameters(3, 5)), list(dense_parameters(5, 3)), list(dense_parameters(7, 2))]


def probe_dense_biases(dense_parameters):
    return [dense_parameters(3, 5)[1], dense_parameters(7, 2)[1]]


def probe_dense_weights(dense_parameters):
    return [dense_parameters(3, 5)[0], dense_parameters(7, 2)[0]]


def probe_mha(mha_parameters):
    return [mha_parameters(12, H) for H in (1, 2, 3, 6)]


def probe_mha_without_bias(mha_parameters):
    return [mha_parameters(12, H, bias=False) for H in (1, 2, 3, 6)]


def probe_mha_one_head(mha_parameters):
    return [mha_parameters(5, 1), mha_parameters(5, 1, False)]
