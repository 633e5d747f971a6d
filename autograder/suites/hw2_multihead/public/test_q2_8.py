"""Public checks of q2_8: linear_attention."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.explain.fingerprints import precision
from course_utils.hw2.feature_maps import elu_features, exp_features, square_features
from course_utils.instruments.work import count_work

F64 = torch.float64


def _inputs(B=2, T=3, S=5, D=4, Dv=6):
    g = torch.Generator().manual_seed(81)
    return [torch.randn(B, *shape, generator=g, dtype=F64) for shape in ((T, D), (S, D), (S, Dv))]


def _quadratic(q, k, v, feature_map, causal=False):
    """The form that makes the whole table of weights: right, and what you are to avoid."""
    products = feature_map(q) @ feature_map(k).mT  # [B, T, S]
    if causal:
        products = products.tril(k.shape[1] - q.shape[1])
    total = products.sum(-1, keepdim=True)
    return products / total.masked_fill(total == 0, 1.0) @ v


def _work(linear_attention, N, causal):
    return run_beside(count_work, linear_attention, *_inputs(1, N, N, 2, 3), elu_features, causal)


def test_worked_number(linear_attention):
    """phi(q) = 2 and phi(k) = (1, 2) give the weights 1/3 and 2/3, so the values 3 and 6 give 5."""
    # keeps: normalised, features
    q, k, v = (torch.tensor([[[float(x)] for x in xs]], dtype=F64) for xs in ((1,), (0, 1), (3, 6)))
    got = tensor(linear_attention(q, k, v, elu_features), "the output", (1, 1, 1), F64)
    check(got.item() != 30, "30 = 2 * 3 + 4 * 6 is the sum before it is divided by the sum of the products, 2 + 4")
    same(got, torch.tensor([[[5.0]]], dtype=F64), "the output")


def test_equals_the_quadratic_form(linear_attention):
    """The outputs are those of the weights phi(q) . phi(k), divided by their sum over the keys."""
    # keeps: quadratic-form, shapes, features, causal
    for feature_map in (elu_features, square_features):
        inputs = _inputs()
        same(linear_attention(*inputs, feature_map), _quadratic(*inputs, feature_map), "the output")
        inputs = _inputs(T=5)
        same(linear_attention(*inputs, feature_map, causal=True), _quadratic(*inputs, feature_map, True),
             "the causal output")


def test_no_table(linear_attention):
    """Counted work: twice the length means twice the work and twice the largest tensor, not four times."""
    # keeps: linear
    for causal in (False, True):
        short, long = (_work(linear_attention, N, causal) for N in (256, 512))
        for N, work in ((256, short), (512, long)):
            same(work["result"], _quadratic(*_inputs(1, N, N, 2, 3), elu_features, causal),
                 f"the output for {N} tokens with causal={causal} (its work is counted only where it is right)")
        for kind, what in (("flops", "the operations"), ("largest", "the largest tensor"), ("made", "all tensors")):
            check(long[kind] <= 2.5 * short[kind], f"with causal={causal}, from 256 to 512 tokens {what} grow from "
                  f"{short[kind]} to {long[kind]}: somewhere a table of T x S is made")


def test_lengths_that_differ(linear_attention):
    """With causal=True query i sees the keys j <= i + (S - T), for T < S and T > S; one that sees none has output 0."""
    # keeps: causal, sees-none
    for T, S in ((3, 5), (5, 3), (1, 4), (4, 1), (2, 2)):
        inputs = _inputs(T=T, S=S)
        got = tensor(linear_attention(*inputs, elu_features, causal=True), "the output", (2, T, 6), F64)
        check(got.isfinite().all(), f"the causal output with T={T}, S={S} has NaN: a query that sees no key has "
              f"output 0")
        same(got, _quadratic(*inputs, elu_features, True), f"the causal output with T={T}, S={S}")
    q, k, v = _inputs()
    got = linear_attention(q.float(), k.float(), v.float(), elu_features)
    same(got, _quadratic(q, k, v, elu_features).float(), "the output in float32", atol=1e-5)


def test_gradients_here(linear_attention):
    """Gradients by queries, keys and values are those of the quadratic form, where a query sees nothing too."""
    # keeps: gradients
    for causal, T in ((False, 3), (True, 5), (True, 7)):
        mine, theirs = ([x.clone().requires_grad_() for x in _inputs(T=T)] for _ in range(2))
        out = linear_attention(*mine, elu_features, causal)
        check(out.requires_grad, "no gradient flows through linear_attention: stay with torch, and do not detach")
        up = torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)
        (out * up).sum().backward()
        (_quadratic(*theirs, elu_features, causal) * up).sum().backward()
        for name, a, b in zip("qkv", mine, theirs, strict=True):
            check(a.grad is not None and a.grad.isfinite().all(), f"with causal={causal}, T={T} no finite gradient "
                  f"reaches {name}")
            same(a.grad, b.grad, f"the gradient by {name} with causal={causal}, T={T}, S=5")


def probe_plain(linear_attention):
    return linear_attention(*_inputs(), elu_features)


def probe_square_features(linear_attention):
    return linear_attention(*_inputs(), square_features)


def probe_exp_features(linear_attention):
    return linear_attention(*_inputs(), exp_features)


def probe_constant_values(linear_attention):
    q, k, v = _inputs()
    return linear_attention(q, k, torch.ones_like(v), elu_features)


def probe_same_lengths(linear_attention):
    return linear_attention(*_inputs(T=5), elu_features)


def probe_one_key(linear_attention):
    return linear_attention(*_inputs(S=1), elu_features)


def probe_causal(linear_attention):
    return linear_attention(*_inputs(T=5), elu_features, causal=True)


def probe_causal_square_features(linear_attention):
    return linear_attention(*_inputs(T=5), square_features, True)


def probe_causal_constant_values(linear_attention):
    q, k, v = _inputs(T=5)
    return linear_attention(q, k, torch.ones_like(v), elu_features, causal=True)


def probe_causal_first_output(linear_attention):
    return linear_attention(*_inputs(T=5), elu_features, causal=True)[:, 0]


def probe_causal_last_output(linear_attention):
    return linear_attention(*_inputs(T=5), elu_features, causal=True)[:, -1]


def probe_causal_fewer_queries(linear_attention):
    return linear_attention(*_inputs(T=3, S=5), elu_features, causal=True)


def probe_causal_fewer_keys(linear_attention):
    return linear_attention(*_inputs(T=5, S=3), elu_features, causal=True)


def probe_float32(linear_attention):
    inputs = [x.float() for x in _inputs(T=5)]
    return [str(linear_attention(*inputs, elu_features, causal).dtype) for causal in (False, True)]


def _grows(linear_attention, causal):
    short, long = (_work(linear_attention, N, causal) for N in (32, 64))
    return {kind: long[kind] > 2.5 * short[kind] for kind in ("flops", "largest", "made")}


def probe_growth(linear_attention):
    return _grows(linear_attention, False)


def probe_causal_growth(linear_attention):
    return _grows(linear_attention, True)


def _gradients(linear_attention, T, causal):
    leaves = [x.requires_grad_() for x in _inputs(T=T)]
    out = linear_attention(*leaves, elu_features, causal)
    if not out.requires_grad:
        return "no gradient"
    (out * torch.linspace(-1, 1, out.numel(), dtype=F64).reshape(out.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


def probe_gradients(linear_attention):
    return _gradients(linear_attention, 3, False)


def probe_causal_gradients(linear_attention):
    return _gradients(linear_attention, 5, True)


def probe_causal_gradients_fewer_keys(linear_attention):
    return _gradients(linear_attention, 7, True)


def probe_small_features(linear_attention):
    q, k, v = _inputs()
    return linear_attention(q - 11, k - 11, v, exp_features)


def probe_digits(linear_attention):
    q, k, v = _inputs()
    weights = elu_features(q) @ elu_features(k).mT
    return precision(linear_attention(q, k, v, elu_features) - weights @ v / weights.sum(-1, keepdim=True))
