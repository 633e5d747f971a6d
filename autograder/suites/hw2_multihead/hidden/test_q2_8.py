"""Hidden checks of q2_8: linear_attention, against the quadratic form in loops, and by counted work."""

import math

import pytest
import torch

from autograder.suites.causes import same_or_because
from autograder.suites.growth import growth_exponent
from course_utils.checking.compare import check, same, tensor
from course_utils.hw2.feature_maps import elu_features, exp_features, square_features
from course_utils.instruments.calls import call_with_slices, call_with_views
from course_utils.instruments.work import count_work

F64 = torch.float64
MAPS = [elu_features, exp_features, square_features]


def _draw(rng, B=3, T=4, S=6, D=5, Dv=7, dtype=F64):
    return [torch.randn(B, *shape, generator=rng, dtype=F64).to(dtype) for shape in ((T, D), (S, D), (S, Dv))]


def _by_hand(q, k, v, feature_map, causal=False):
    """The quadratic form, with a loop over the queries and one over the keys."""
    rows = []
    for b in range(len(q)):
        for i in range(q.shape[1]):
            keys = range(max(0, i + 1 + k.shape[1] - q.shape[1])) if causal else range(k.shape[1])
            if not keys:
                rows.append(v.new_zeros(v.shape[-1]))
                continue
            weights = [(feature_map(q[b, i]) * feature_map(k[b, j])).sum() for j in keys]
            rows.append(sum(w * v[b, j] for w, j in zip(weights, keys, strict=True)) / sum(weights))
    return torch.stack(rows).reshape(*q.shape[:2], v.shape[-1])


def _causes(q, k, v, feature_map, causal):
    """What known misunderstandings lead to."""
    fq, fk = feature_map(q), feature_map(k)
    table = (fq @ fk.mT).tril() if causal else fq @ fk.mT
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf) if causal else scores
    every = (fq @ fk.mT).sum(-1, keepdim=True)
    causes = {
        "the products are not divided by their sum over the keys": table @ v,
        "the products are divided by their sum over the queries; it runs over the keys":
            table / table.sum(1, keepdim=True) @ v,
        "the products are divided by the number of keys; divide by their sum": table @ v / k.shape[1],
        "that is softmax attention, with scores q . k / sqrt(D); here the weights are phi(q) . phi(k)":
            scores.softmax(-1) @ v,
        "the products are divided by sqrt(D) before a softmax; they are the weights, up to their sum":
            (table / math.sqrt(q.shape[-1])).softmax(-1) @ v,
        "the feature map is applied to a scaled q; there is no scale here":
            (feature_map(q / math.sqrt(q.shape[-1])) @ fk.mT) @ v
            / (feature_map(q / math.sqrt(q.shape[-1])) @ fk.mT).sum(-1, keepdim=True),
    }
    if feature_map(q).shape == q.shape:
        half, other = fq @ k.mT, q @ fk.mT
        causes["the feature map is applied to the queries alone"] = half @ v / half.sum(-1, keepdim=True)
        causes["the feature map is applied to the keys alone"] = other @ v / other.sum(-1, keepdim=True)
        if feature_map(v).shape == v.shape:
            causes["the feature map is applied to the values too"] = (
                table @ feature_map(v) / table.sum(-1, keepdim=True))
    if causal:
        causes["the mask has no effect, every query sees all keys"] = (fq @ fk.mT) @ v / every
        causes["the weights are masked, but their sum is taken over all keys"] = table @ v / every
        causes["the values are summed over all keys, and only the divisor is a running sum"] = (
            (fq @ fk.mT) @ v / table.sum(-1, keepdim=True))
        before = (fq @ fk.mT).tril(-1)
        without = (before @ v / before.sum(-1, keepdim=True)).nan_to_num()
        causes["off by one, a query sees its own position too"] = without
        past = (fq @ fk.mT).triu()
        causes["the running sum runs from the end, so queries see the future"] = past @ v / past.sum(-1, keepdim=True)
    return causes


def _compare(got, q, k, v, feature_map, told, causal=False, **how):
    tensor(got, f"the output {told}", (*q.shape[:2], v.shape[-1]), q.dtype)
    same_or_because(got, _by_hand(q, k, v, feature_map, causal), f"the output {told}",
                    _causes(q, k, v, feature_map, causal), **how)


@pytest.mark.weight(3)
@pytest.mark.parametrize("feature_map", MAPS, ids=lambda f: f.__name__)
def test_values(linear_attention, rng, feature_map):
    """Without a mask the output equals the quadratic form, for T != S and for features of any width."""
    for T, S in ((4, 6), (6, 3), (5, 5)):
        q, k, v = _draw(rng, T=T, S=S)
        told = f"with {feature_map.__name__}, T={T}, S={S}"
        _compare(linear_attention(q, k, v, feature_map), q, k, v, feature_map, told)


@pytest.mark.weight(3)
@pytest.mark.parametrize("feature_map", MAPS, ids=lambda f: f.__name__)
def test_causal_values(linear_attention, rng, feature_map):
    """With causal=True query i sees the keys 0 to i, as in the quadratic form with a triangle of weights."""
    for N in (6, 2, 9):
        q, k, v = _draw(rng, T=N, S=N)
        got = linear_attention(q, k, v, feature_map, causal=True)
        _compare(got, q, k, v, feature_map, f"with {feature_map.__name__}, causal=True, N={N}", causal=True)


def test_causal_lengths(linear_attention, rng):
    """With causal=True and T other than S, query i sees the keys j <= i + (S - T); one that sees none gives 0."""
    for T, S, cause in ((3, 6, "with T < S the last query sees every key"), (6, 3, "with T > S the first see none")):
        q, k, v = _draw(rng, T=T, S=S)
        got = tensor(linear_attention(q, k, v, elu_features, causal=True), "the output", (3, T, 7), F64)
        check(not got.isnan().any(), f"the output has NaN with T={T} and S={S}: a query that sees no key gives 0")
        same(got, _by_hand(q, k, v, elu_features, True), f"the output with T={T} and S={S} ({cause})")


def _quadratic(q, k, v, feature_map, causal):
    """The quadratic form in one go, for lengths at which loops take too long."""
    table = feature_map(q) @ feature_map(k).mT
    if causal:
        table = table.tril(k.shape[1] - q.shape[1])
    total = table.sum(-1, keepdim=True)
    return table @ v / total.masked_fill(total == 0, 1.0)


def test_longer_sequences(linear_attention, rng):
    """Every output is right at lengths of 20 to 130 tokens too, with as many queries as keys, fewer and more."""
    for T, S in ((50, 50), (37, 61), (23, 130), (61, 37), (129, 129)):
        q, k, v = _draw(rng, 2, T, S, 3, 2)
        for causal in (False, True):
            got = linear_attention(q, k, v, elu_features, causal)
            same(got, _quadratic(q, k, v, elu_features, causal), f"the output with T={T}, S={S}, causal={causal}")


def test_small_features(linear_attention, rng):
    """Weights are relative: tiny features give what large ones give, nothing is added to the divisor or cut off."""
    for causal in (False, True):
        for shift, size in ((11, "1e-5"), (18, "1e-8")):  # exp makes features of about this size
            q, k, v = _draw(rng, T=6)
            q, k = q - shift, k - shift
            same(linear_attention(q, k, v, exp_features, causal), _quadratic(q, k, v, exp_features, causal),
                 f"the output with features of about {size}, causal={causal} (the divisor is the sum of the products "
                 "as it is, however small)")


@pytest.mark.weight(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all-keys", "causal"])
def test_gradients(linear_attention, rng, causal):
    """Gradients by q, k and v are those of the quadratic form, for T = S and for T other than S."""
    for T, S in ((5, 5), (3, 6)) if causal else ((5, 5), (4, 6), (6, 3)):
        for feature_map in (elu_features, square_features):
            values = _draw(rng, 2, T, S, 3, 4)
            mine, theirs = ([x.clone().requires_grad_() for x in values] for _ in range(2))
            out = tensor(linear_attention(*mine, feature_map, causal), "the output", (2, T, 4), F64)
            check(out.requires_grad, "no gradient flows: the output is cut off from q, k and v. Stay with torch, and "
                  "do not detach")
            up = torch.randn(2, T, 4, generator=rng, dtype=F64)
            (out * up).sum().backward()
            (_by_hand(*theirs, feature_map, causal) * up).sum().backward()
            for name, a, b in zip("qkv", mine, theirs, strict=True):
                told = f"the gradient of {name} with T={T}, S={S}, causal={causal}"
                check(a.grad is not None, f"{told} is missing: {name} is cut off from the output")
                same(a.grad, b.grad, told)


def test_gradients_where_nothing_is_seen(linear_attention, rng):
    """With causal=True and T > S all gradients are finite and right, and those of a query that sees no key are 0."""
    values = _draw(rng, 2, 6, 3, 3, 4)
    mine, theirs = ([x.clone().requires_grad_() for x in values] for _ in range(2))
    out = tensor(linear_attention(*mine, elu_features, True), "the output", (2, 6, 4), F64)
    check(out.requires_grad, "no gradient flows: the output is cut off from q, k and v")
    up = torch.randn(2, 6, 4, generator=rng, dtype=F64)
    (out * up).sum().backward()
    (_by_hand(*theirs, elu_features, True) * up).sum().backward()
    for name, a, b in zip("qkv", mine, theirs, strict=True):
        check(a.grad is not None, f"no gradient reaches {name} with T=6, S=3, causal=True")
        check(a.grad.isfinite().all(), f"the gradient of {name} is not finite with T=6, S=3, causal=True: a NaN that "
              "is overwritten in the forward pass comes back in the backward pass; never divide by 0 at all")
        same(a.grad, b.grad, f"the gradient of {name} with T=6, S=3, causal=True")


def test_views_of_other_tensors(linear_attention, in_box, rng):
    """Inputs that are slices or transposes of other tensors count by their values, however they lie in memory."""
    for layout, call in (("slices of wider tensors", call_with_slices), ("transposes", call_with_views)):
        for causal in (False, True):
            q, k, v = _draw(rng, T=6)
            got = in_box(call, linear_attention, q, k, v, elu_features, causal)
            same(got, _by_hand(q, k, v, elu_features, causal), f"the output for inputs that are {layout}")


def test_sizes(linear_attention, rng):
    """One query, one key, one row, one feature or one value are fine."""
    for B, T, S, D, Dv in ((1, 4, 6, 5, 7), (2, 1, 6, 3, 4), (2, 3, 1, 4, 2), (3, 4, 5, 1, 2), (2, 3, 4, 5, 1)):
        q, k, v = _draw(rng, B, T, S, D, Dv)
        told = f"for B={B}, T={T}, S={S}, D={D}, Dv={Dv}"
        _compare(linear_attention(q, k, v, elu_features), q, k, v, elu_features, told)
        q, k, v = _draw(rng, B, S, S, D, Dv)
        got = linear_attention(q, k, v, elu_features, causal=True)
        _compare(got, q, k, v, elu_features, f"{told}, causal", causal=True)


@pytest.mark.weight(2)
def test_constant_values(linear_attention, rng):
    """Values that are all the same come back as they are: the weights of a query sum to 1."""
    for causal in (False, True):
        q, k, _ = _draw(rng, T=6)
        constant = torch.randn(7, generator=rng, dtype=F64)
        got = linear_attention(q, k, constant.expand(3, 6, 7).clone(), elu_features, causal)
        same(got, constant.expand(3, 6, 7), f"the output for constant values with causal={causal} (is the sum of the "
             "products over the keys divided out?)")


@pytest.mark.weight(2)
def test_causality(linear_attention, rng):
    """With causal=True a change of key and value t moves the outputs from t on, and none before it."""
    q, k, v = _draw(rng, T=6)
    before = tensor(linear_attention(q, k, v, elu_features, causal=True), "the output", (3, 6, 7), F64)
    same(before[:, 0], v[:, 0], "the first output, which sees the first value alone")
    for t in (1, 3, 5):
        other_k, other_v = k.clone(), v.clone()
        other_k[:, t], other_v[:, t] = k[:, t] + 1, v[:, t] - 1
        after = tensor(linear_attention(q, other_k, other_v, elu_features, causal=True), "the output", (3, 6, 7), F64)
        moved = (after - before).abs().amax((0, 2))
        check((moved[:t] < 1e-9).all(), f"a change of key and value {t} moves an output before it")
        check((moved[t:] > 1e-6).all(), f"a change of key and value {t} leaves an output from {t} on as it is")
    full = tensor(linear_attention(q, k, v, elu_features), "the output", (3, 6, 7), F64)
    same(before[:, -1], full[:, -1], "the last causal output, which sees everything")


def test_rows_and_order(linear_attention, rng):
    """Rows do not see each other, and without a mask the order of the keys does not matter."""
    q, k, v = _draw(rng)
    whole = tensor(linear_attention(q, k, v, elu_features), "the output", (3, 4, 7), F64)
    alone = [linear_attention(q[b : b + 1], k[b : b + 1], v[b : b + 1], elu_features) for b in range(3)]
    for b, row in enumerate(alone):
        same(row, whole[b : b + 1], f"the output of row {b} alone")
    order = torch.randperm(6, generator=rng)
    got = linear_attention(q, k[:, order], v[:, order], elu_features)
    same(got, whole, "the output with reordered keys and values")


def test_float32(linear_attention, rng):
    """In float32 the result is float32, close to the quadratic form."""
    for causal in (False, True):
        q, k, v = _draw(rng, T=6, dtype=torch.float32)
        got = linear_attention(q, k, v, elu_features, causal)
        _compare(got, q, k, v, elu_features, f"in float32 with causal={causal}", causal, rtol=1e-3, atol=1e-4)


def _work(in_box, linear_attention, rng, causal):
    """Counted work at lengths that double, one row, few features: T x S would dominate everything else."""
    lengths, work = [256, 512, 1024], []
    for N in lengths:
        inputs = _draw(rng, 1, N, N, 2, 3)
        work.append(in_box(count_work, linear_attention, *inputs, elu_features, causal))
        told = f"the output for {N} tokens (its work is counted only where it is right)"
        same(work[-1]["result"], _quadratic(*inputs, elu_features, causal), told)
    return lengths, work


@pytest.mark.weight(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all-keys", "causal"])
def test_work_is_linear(linear_attention, in_box, rng, causal):
    """Counted work: operations and numbers written to memory grow in proportion to the length."""
    lengths, work = _work(in_box, linear_attention, rng, causal)
    for kind, what in (("flops", "operations"), ("made", "numbers written to memory")):
        power = growth_exponent(lengths, [w[kind] for w in work])
        check(power < 1.25, f"with causal={causal} the {what} grow like the length to the power of {power:.2f} (from "
              f"{work[0][kind]:,} at 256 tokens to {work[-1][kind]:,} at 1024), and 1 is asked for: sum over the keys "
              "first, then let the queries read the sums")


@pytest.mark.weight(2)
@pytest.mark.parametrize("causal", [False, True], ids=["all-keys", "causal"])
def test_no_table_at_length(linear_attention, in_box, rng, causal):
    """Counted work: the largest tensor on the way is no [T, S] table, and grows in proportion to the length."""
    lengths, work = _work(in_box, linear_attention, rng, causal)
    largest = [w["largest"] for w in work]
    power = growth_exponent(lengths, largest)
    check(largest[-1] < 1024**2 and power < 1.25, f"with causal={causal} and 1024 tokens a tensor of {largest[-1]:,} "
          f"numbers is made (it grows like the length to the power of {power:.2f}); the table of weights has 1024 x "
          f"1024 = {1024**2:,} entries, and is never needed")
