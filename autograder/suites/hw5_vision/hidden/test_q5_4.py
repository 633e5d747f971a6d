"""Hidden checks of q5_4: MAPHead, against two independent implementations of the published head."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor

F64 = torch.float64
D, H = 12, 3
LENGTHS = (3, 5, 1, 4)
PADDING = torch.arange(5) >= torch.tensor(LENGTHS)[:, None]  # [4, 5], True = padding


def _weights(rng, ratio=4):
    """Lively random weights under the contract's names."""
    linears = {f"attn.{road}_proj": (D, D) for road in "qkvo"} | {"mlp.fc1": (ratio * D, D), "mlp.fc2": (D, ratio * D)}
    weights = {"probe": torch.randn(1, 1, D, generator=rng, dtype=F64)}
    for name, (out, into) in linears.items():
        weights[f"{name}.weight"] = 1.5 * torch.randn(out, into, generator=rng, dtype=F64) / math.sqrt(into)
        weights[f"{name}.bias"] = 0.5 * torch.randn(out, generator=rng, dtype=F64)
    weights["norm.weight"] = 1 + 0.3 * torch.randn(D, generator=rng, dtype=F64)
    weights["norm.bias"] = 0.3 * torch.randn(D, generator=rng, dtype=F64)
    return weights


def _mine(MAPHead, weights, *options, n_heads=H, **more):
    """The student's head in float64, with weights put in by name."""
    head = MAPHead(D, n_heads, *options, **more)
    found = head.parameter_shapes()
    for name, value in weights.items():
        check(name in found, f"there is no parameter `{name}`: the parts are probe, attn (q_proj, k_proj, v_proj, "
              "o_proj), "
              f"norm, and mlp (fc1, fc2); found {', '.join(found) or 'none'}")
        check(tuple(found[name]) == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected "
              f"{list(value.shape)}")
    extra = sorted(set(found) - set(weights))
    check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many")
    head.double()
    head.load_state_dict({**head.state_dict(), **weights})
    return head


def _run(head, x, padding=None, what="the output"):
    got = head(x) if padding is None else head(x, key_padding_mask=padding)
    check(not isinstance(got, (tuple, list)), "forward returns one tensor [B, D], not a tuple (attention returns a "
          "pair: "
          "take its output)")
    if isinstance(got, torch.Tensor) and got.shape == (len(x), 1, D):
        raise Wrong(f"{what} has shape {[len(x), 1, D]}, expected [B, D] = {[len(x), D]}: take out the one token")
    got = tensor(got, what, (len(x), D), x.dtype)
    check(not got.isnan().any(), f"{what} has NaN")
    return got


def _x(rng, B=4, N=5):
    return torch.randn(B, N, D, generator=rng, dtype=F64)


def _by_hand(x, w, padding=None, n_heads=H, **wrong):
    """The published head by einsum over heads, with the turns that one can take wrongly."""

    def linear(name, z):
        return torch.einsum("...i,oi->...o", z, w[f"{name}.weight"]) + w[f"{name}.bias"]

    def heads(z):
        return z.reshape(*z.shape[:-1], n_heads, D // n_heads)

    query = wrong.get("query", w["probe"].expand(len(x), 1, D))
    q = heads(query if wrong.get("bare_query") else linear("attn.q_proj", query))
    k, v = heads(linear("attn.k_proj", x)), heads(linear("attn.v_proj", x))
    scores = torch.einsum("bthd,bshd->bhts", q, k) * wrong.get("scale", 1 / math.sqrt(D // n_heads))
    if padding is not None:
        scores = scores.masked_fill(padding[:, None, None], -math.inf)
    weights = torch.softmax(scores, -1).nan_to_num()  # a row without tokens has weights 0
    z = torch.einsum("bhts,bshd->bthd", weights, v).reshape(len(x), -1, D)
    z = z if wrong.get("no_o_proj") else linear("attn.o_proj", z)
    z = (z + query if wrong.get("query_residual") else z).mean(1)

    def norm(z):
        return F.layer_norm(z, (D,), w["norm.weight"], w["norm.bias"], wrong.get("eps", 1e-6))

    def mlp(z):
        activation = wrong.get("activation", lambda z: F.gelu(z, approximate="tanh"))
        return linear("mlp.fc2", activation(linear("mlp.fc1", z)))

    return wrong.get("end", lambda z, norm, mlp: z + mlp(norm(z)))(z, norm, mlp)


def _published(x, w, padding=None, n_heads=H):
    """The same with torch's own attention, as published for SigLIP: one stacked projection, residual around the mlp."""
    attention = nn.MultiheadAttention(D, n_heads, batch_first=True, dtype=F64)
    attention.load_state_dict({
        "in_proj_weight": torch.cat([w[f"attn.{road}_proj.weight"] for road in "qkv"]),
        "in_proj_bias": torch.cat([w[f"attn.{road}_proj.bias"] for road in "qkv"]),
        "out_proj.weight": w["attn.o_proj.weight"],
        "out_proj.bias": w["attn.o_proj.bias"],
    })
    hidden = attention(w["probe"].repeat(len(x), 1, 1), x, x, key_padding_mask=padding)[0].detach()
    residual = hidden
    hidden = F.layer_norm(hidden, (D,), w["norm.weight"], w["norm.bias"], 1e-6)
    hidden = F.gelu(F.linear(hidden, w["mlp.fc1.weight"], w["mlp.fc1.bias"]), approximate="tanh")
    return (residual + F.linear(hidden, w["mlp.fc2.weight"], w["mlp.fc2.bias"]))[:, 0]


def _causes(x, w, padding, n_heads):
    def result(**wrong):
        tokens = wrong.pop("x", x)
        return _by_hand(tokens, w, wrong.pop("padding", padding), wrong.pop("n_heads", n_heads), **wrong)

    causes = {
        "the GELU is the exact one; the published heads use the approximation by tanh": result(activation=F.gelu),
        "the activation is ReLU; it is the GELU approximated by tanh": result(activation=torch.relu),
        "the norm's eps is 1e-5; here it is 1e-6": result(eps=1e-5),
        "the norm's eps is 1e-5 and the GELU is the exact one; here they are 1e-6 and the tanh approximation":
            result(eps=1e-5, activation=F.gelu),
        "the probe is added to what the attention gives; there is no residual around the attention":
            result(query_residual=True),
        "the residual around the mlp is missing: x + mlp(norm(x))": result(end=lambda z, norm, mlp: mlp(norm(z))),
        "the norm is missing: x + mlp(norm(x))": result(end=lambda z, norm, mlp: z + mlp(z)),
        "the residual starts from the normalised x; it starts from x itself":
            result(end=lambda z, norm, mlp: norm(z) + mlp(norm(z))),
        "the norm comes after the sum; it belongs in front of the mlp":
            result(end=lambda z, norm, mlp: norm(z + mlp(z))),
        "the mlp's result is normalised, not what goes into it": result(end=lambda z, norm, mlp: z + norm(mlp(z))),
        "the norm and the mlp are missing": result(end=lambda z, norm, mlp: z),
        "the tokens are the queries, averaged afterwards; the one query is the probe": result(query=x),
        "the mean of the tokens is the query; the one query is the probe": result(query=x.mean(1, keepdim=True)),
        "every token weighs the same: the probe is not used as the query": result(scale=0.0),
        "the probe goes in without q_proj": result(bare_query=True),
        "o_proj is not applied": result(no_o_proj=True),
        "attention has one head only": result(n_heads=1),
        "the scores are divided by sqrt(D), and the width of a head belongs there": result(scale=1 / math.sqrt(D)),
        "the scale of the scores is missing": result(scale=1.0),
    }
    if padding is not None:
        causes["the mask of the first row counts for all rows"] = result(padding=padding[:1].expand_as(padding))
        zeroed = result(x=x * ~padding[..., None], padding=None)
        causes["padded tokens are set to zero; they still get a weight"] = zeroed
        causes["the mask has no effect"] = result(padding=None)
        causes["the mask is upside down (True = padding)"] = result(padding=~padding)
    return causes


def _value(got, x, w, what, padding=None, n_heads=H):
    expected = _by_hand(x, w, padding, n_heads)
    try:
        same(got, expected, what)
    except Wrong:  # only now are the causes worth their time
        same_or_because(got, expected, what, _causes(x, w, padding, n_heads))


@pytest.mark.weight(3)
def test_value(MAPHead, rng):
    """With weights put in by name, the output is x + mlp(norm(x)) of what the probe gathers from the tokens."""
    w = _weights(rng)
    head = _mine(MAPHead, w)
    for B, N in ((4, 5), (2, 7), (3, 1), (1, 9)):
        x = _x(rng, B, N)
        _value(_run(head, x), x, w, f"the output for tokens {[B, N, D]}")


@pytest.mark.weight(2)
def test_published_head(MAPHead, rng):
    """With the published head's weights under our names it gives the published head's result, masked and unmasked."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    same(_run(head, x), _published(x, w), "the output, against the published head's")
    same(_run(head, x, PADDING), _published(x, w, PADDING), "the output with padding, against the published head's")


@pytest.mark.weight(3)
def test_padding(MAPHead, rng):
    """With padding that differs from row to row, only the real tokens are gathered."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    _value(_run(head, x, PADDING), x, w, "the output with padding at the end", PADDING)
    _value(_run(head, x, PADDING.flip(1)), x, w, "the output with padding in front", PADDING.flip(1))
    none = torch.zeros_like(PADDING)
    _value(_run(head, x, none), x, w, "the output with a mask that is False everywhere", none)
    same(head(x, PADDING), _by_hand(x, w, PADDING), "the output with the mask given by position")


@pytest.mark.weight(2)
def test_padding_never_leaks(MAPHead, rng):
    """Other content in the padding, or more of it, changes nothing."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    before = _run(head, x, PADDING)
    wild = x + 100 * _x(rng) * PADDING[..., None]
    same(_run(head, wild, PADDING), before, "the output after a change in the padding")
    longer = torch.cat([x, _x(rng, 4, 3)], 1), torch.cat([PADDING, torch.ones(4, 3, dtype=torch.bool)], 1)
    same(_run(head, *longer), before, "the output with more padding")
    for row, length in enumerate(LENGTHS):
        alone = _run(head, x[row : row + 1, :length])
        same(before[row : row + 1], alone, f"the output of a row of {length} real tokens, against these tokens alone")
    moved = (_run(head, x + _x(rng), PADDING) - before).abs().amax(-1)
    check((moved > 1e-6).all(), "other real tokens leave the output as it is")


@pytest.mark.weight(2)
def test_order_of_tokens(MAPHead, rng):
    """The order of the tokens makes no difference, with their mask reordered alongside, and the value is right."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    order = torch.tensor([3, 0, 4, 1, 2])
    plain, masked = _run(head, x), _run(head, x, PADDING)
    same(_run(head, x[:, order]), plain, "the output of reordered tokens")
    same(_run(head, x[:, order], PADDING[:, order]), masked, "the output of reordered tokens with their mask")
    _value(plain, x, w, "the output")


def test_probe_counts(MAPHead, rng):
    """Another probe gives another output; one probe serves all images."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    before = _run(head, x)
    other = w | {"probe": torch.randn(1, 1, D, generator=rng, dtype=F64)}
    after = _run(_mine(MAPHead, other), x)
    check(((after - before).abs().amax(-1) > 1e-6).all(), "another probe gives the same output: is it the query?")
    _value(after, x, other, "the output with another probe")
    shuffled = _run(head, x[[2, 0, 3, 1]])
    same(shuffled, before[[2, 0, 3, 1]], "the output of a reordered batch")
    for row in range(4):
        same(_run(head, x[row : row + 1]), before[row : row + 1], f"the output of image {row} as a batch of its own")


def test_nothing_but_padding(MAPHead, rng):
    """A row that is all padding gathers nothing: it starts from o_proj's bias, with finite outputs and gradients."""
    w, x = _weights(rng), _x(rng).requires_grad_()
    head = _mine(MAPHead, w)
    padding = PADDING.clone()
    padding[2] = True
    got = head(x, key_padding_mask=padding)
    got = tensor(got, "the output", (4, D), F64)
    check(got.isfinite().all(), "a row that is all padding gives an output that is not finite: a softmax over nothing")
    same(got, _by_hand(x.detach(), w, padding), "the output where row 2 is all padding (there, attention's output is "
         "o_proj's bias)")
    head.zero_grad()
    got.sum().backward()
    check(x.grad.isfinite().all(), "a row that is all padding gives gradients that are not finite")
    check(all(g is None or g.isfinite().all() for g in head.grads().values()), "a row that is all padding gives the "
          "parameters gradients that are not finite")


def test_small_entries(MAPHead, rng):
    """Where the gathered vector is small the norm's eps counts: 1e-6, inside the root."""
    w, x = _weights(rng), _x(rng)
    for name in ("attn.o_proj.weight", "attn.o_proj.bias"):
        w[name] = 1e-3 * w[name]
    _value(_run(_mine(MAPHead, w), x), x, w, "the output where the norm sees small entries")


def test_sizes(MAPHead, rng):
    """mlp_ratio sets the width of the mlp, 4 by default; any number of heads that divides D."""
    x = _x(rng)
    for ratio in (2, 3):
        w = _weights(rng, ratio)
        _value(_run(_mine(MAPHead, w, mlp_ratio=ratio), x), x, w, f"the output with mlp_ratio={ratio}")
        same(_run(_mine(MAPHead, w, ratio), x), _by_hand(x, w), f"the output of MAPHead(d_model, n_heads, {ratio})")
    for n_heads in (1, 2, 6):
        w = _weights(rng)
        got = _run(_mine(MAPHead, w, n_heads=n_heads), x, PADDING)
        _value(got, x, w, f"the output with {n_heads} {'head' if n_heads == 1 else 'heads'}", PADDING, n_heads)


@pytest.mark.weight(2)
def test_gradients(MAPHead, rng):
    """Gradients reach the tokens and every parameter, the probe among them, and they have the right values."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    leaves = {name: value.clone().requires_grad_() for name, value in w.items()}
    head.zero_grad()
    got = _run(head, mine, PADDING)
    check(got.requires_grad, "no gradient flows from the output")
    up = torch.randn(4, D, generator=rng, dtype=F64)
    got.backward(up)
    _by_hand(other, leaves, PADDING).backward(up)
    same(mine.grad, other.grad, "the gradient of the tokens")
    found = head.grads()
    for name, leaf in leaves.items():
        check(found.get(name) is not None, f"no gradient reaches `{name}`")
        same(found[name], leaf.grad, f"the gradient of `{name}`")


def test_start(MAPHead, rng):
    """A new head is alive: its probe gets a gradient, and different tokens give different outputs."""
    head = MAPHead(D, H)
    head.double()
    x = _x(rng)
    head.zero_grad()
    got = _run(head, x)
    check((got - got.mean(0)).abs().max() > 1e-6, "an untrained head gives the same output for different tokens")
    (got * torch.randn(got.shape, generator=rng, dtype=F64)).sum().backward()
    weights = [name for name in head.parameter_shapes() if name.endswith("weight")]
    dead = [name for name in weights if (g := head.grads().get(name)) is None or not g.isfinite().all()]
    check(not dead, f"no finite gradient reaches `{dead[0] if dead else ''}` of a new head")


def test_float32(MAPHead, rng):
    """A head in float32 gives float32 outputs, with and without a mask."""
    w, x = _weights(rng), _x(rng)
    head = _mine(MAPHead, w)
    head.float()
    for padding in (None, PADDING):
        got = _run(head, x.float(), padding)
        same(got, _by_hand(x, w, padding).float(), "the output in float32", rtol=1e-3, atol=1e-3)


@pytest.mark.weight(0.5)
def test_device(MAPHead, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    x = _x(rng).float()
    device_ready(watch, MAPHead, (D, H), call=(x,), kwargs={"key_padding_mask": PADDING})
