# %% counts-by-product
"""Every product by its shapes; nothing shared but the size of a product."""
def _product(n, m, p):
    return 2 * n * m * p


def stack_costs(M, N, k):
    encoder = 4 * _product(M, k, k) + _product(M, k, M) + _product(M, M, k)
    decoder = 4 * _product(N, k, k) + _product(N, k, N) + _product(N, N, k)
    cross = 2 * _product(N, k, k) + 2 * _product(M, k, k) + _product(N, k, M) + _product(N, M, k)
    return dict(encoder_self=encoder, decoder_self=decoder, cross=cross)


def extra_cost_for_second_language(M, N, k):
    return sum(cost for name, cost in stack_costs(M, N, k).items() if name != "encoder_self")


# %% closed-form
"""Factored formulas; the second language as one expression."""
def stack_costs(M, N, k):
    return {
        "cross": 4 * k * (k * (M + N) + M * N),
        "decoder_self": 4 * k * N * (2 * k + N),
        "encoder_self": 4 * k * M * (2 * k + M),
    }


def extra_cost_for_second_language(M, N, k):
    return 4 * k * (3 * N * k + M * k + N * N + M * N)


# %% zero-dim-tensors
"""In torch, with 0-dim tensors as results."""
def stack_costs(M, N, k):
    queries = torch.tensor([M, N, N])
    keys = torch.tensor([M, N, M])
    flops = 4 * (queries + keys) * k**2 + 4 * queries * keys * k
    return dict(zip(("encoder_self", "decoder_self", "cross"), flops, strict=True))


def extra_cost_for_second_language(M, N, k):
    costs = stack_costs(M, N, k)
    return torch.stack([costs["decoder_self"], costs["cross"]]).sum()


# %% measured
"""A MultiHeadAttention on the meta device, watched by the counter of the course: nothing is computed, all is
counted."""
def _measure(T, S, k):
    mha = MultiHeadAttention(k, 1).to("meta")
    query, keys = torch.empty(1, T, k, device="meta"), torch.empty(1, S, k, device="meta")
    return count_work(mha, query, keys, keys)["flops"]


def stack_costs(M, N, k):
    return {"encoder_self": _measure(M, M, k), "decoder_self": _measure(N, N, k), "cross": _measure(N, M, k)}


def extra_cost_for_second_language(M, N, k):
    return _measure(N, N, k) + _measure(N, M, k)


# %% all-minus-the-encoder
"""The whole stack minus what the encoder did; numbers as floats."""
def stack_costs(M, N, k):
    pairs = {"encoder_self": (M, M), "decoder_self": (N, N), "cross": (N, M)}
    return {name: 4.0 * (T * S * k + (T + S) * k**2) for name, (T, S) in pairs.items()}


def extra_cost_for_second_language(M, N, k):
    costs = stack_costs(M, N, k)
    return sum(costs.values()) - costs["encoder_self"]
