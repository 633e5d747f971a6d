"""Public checks of q5_4: MAPHead."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.instruments.slopes import slopes

F64 = torch.float64
D, H = 6, 3
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True], [False, True, False, False, True]])
ROADS = ("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.o_proj")


def _shapes(ratio=4):
    shapes = {"probe": (1, 1, D), "norm.weight": (D,), "norm.bias": (D,)}
    for name, out, into in (*((road, D, D) for road in ROADS), ("mlp.fc1", ratio * D, D), ("mlp.fc2", D, ratio * D)):
        shapes |= {f"{name}.weight": (out, into), f"{name}.bias": (out,)}
    return shapes


def _weights(ratio=4, **other):
    """Fixed weights by name; `other` replaces some (a dot in a name is written as __)."""
    g = torch.Generator().manual_seed(54)
    weights = {name: torch.randn(shape, generator=g, dtype=F64) / shape[-1] ** 0.5 for name, shape in
               _shapes(ratio).items()}
    weights["norm.weight"] += 1
    return weights | {name.replace("__", "."): value for name, value in other.items()}


def _module(MAPHead, weights=None, ratio=4, n_heads=H):
    """The head in float64, with weights put in by name."""
    head = MAPHead(D, n_heads) if ratio == 4 else MAPHead(D, n_heads, mlp_ratio=ratio)
    head.double()
    weights, state = weights or _weights(ratio), dict(head.state_dict())
    for name, value in weights.items():
        check(name in state, f"the head has no `{name}`: its parts are probe, attn (a MultiHeadAttention), norm, and "
              "mlp "
              "with fc1 and fc2")
        tensor(state[name], name, value.shape)
    head.load_state_dict({**state, **weights})
    return head


def _x(N=5, B=3):
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(55), dtype=F64)


def _run(head, x, padding=None):
    got = head(x) if padding is None else head(x, key_padding_mask=padding)
    return tensor(got, "the head's output", (len(x), D), x.dtype)


def test_names_and_shape(MAPHead):
    """The parts have their names and shapes; tokens [B, N, D] become one vector [B, D] for each image."""
    # keeps: parts, shape
    check(_run(_module(MAPHead), _x()).isfinite().all(), "the output is not finite")
    _run(_module(MAPHead, ratio=2), _x(1))


def test_no_opinion(MAPHead):
    """With a zero query all tokens weigh the same; with a zero fc2 what the attention gives is the result."""
    # keeps: probe, no-residual
    w = _weights(attn__q_proj__weight=torch.zeros(D, D, dtype=F64), attn__q_proj__bias=torch.zeros(D, dtype=F64),
                 mlp__fc2__weight=torch.zeros(D, 4 * D, dtype=F64), mlp__fc2__bias=torch.zeros(D, dtype=F64))
    x = _x()
    mean = x.mean(1) @ w["attn.v_proj.weight"].mT + w["attn.v_proj.bias"]
    expected = mean @ w["attn.o_proj.weight"].mT + w["attn.o_proj.bias"]
    same(_run(_module(MAPHead, w), x), expected, "the output, against o_proj(v_proj(mean of the tokens))")


def test_reordered_tokens(MAPHead):
    """The order of the tokens makes no difference; the tokens themselves and the probe do."""
    # keeps: probe
    head, x = _module(MAPHead), _x()
    before = _run(head, x)
    same(_run(head, x[:, [3, 0, 4, 1, 2]]), before, "the output for reordered tokens")
    check((_run(head, x + 1) - before).abs().max() > 1e-3, "other tokens give the same output")
    other = _module(MAPHead, _weights(probe=3 * _weights()["probe"]))
    check((_run(other, x) - before).abs().max() > 1e-3, "another probe gives the same output")


def test_real_tokens_alone(MAPHead):
    """Padded tokens (True) have no influence: a row gives the same as its real tokens alone."""
    # keeps: padding
    head, x = _module(MAPHead), _x()
    got = _run(head, x, PADDING)
    for row in range(3):
        alone = _run(head, x[row : row + 1, ~PADDING[row]])
        same_as_yours(got[row : row + 1], alone, f"the output of row {row} with padding", "of its real tokens alone")


def test_details(MAPHead):
    """One number by hand: the norm's eps is 1e-6 and the GELU is the one approximated by tanh."""
    # keeps: norm, mlp, residual
    zero, eye = torch.zeros(D, D, dtype=F64), torch.eye(D, dtype=F64)
    w = {name: torch.zeros_like(value) for name, value in _weights(1).items()}
    small = 1e-3 * torch.tensor([1.0, -1, 1, -1, 1, -1], dtype=F64)  # mean 0, variance 1e-6
    w |= {"attn.o_proj.bias": small, "norm.weight": 2**0.5 * torch.ones(D, dtype=F64), "mlp.fc1.weight": eye,
          "mlp.fc2.weight": eye, "attn.o_proj.weight": zero}
    got = _run(_module(MAPHead, w, ratio=1), _x())
    expected = small + torch.tensor([0.8411919906, -0.1588080094] * 3, dtype=F64)  # the GELU of 1 and of -1
    same(got, expected.expand(3, D), "the output for a vector of variance 1e-6, a gain of sqrt(2) and an mlp that is "
         "the "
         "GELU alone", atol=1e-8)


def test_where_gradients_go(MAPHead):
    """Every part learns, the probe among them."""
    # keeps: parts, probe
    found = run_beside(slopes, _module(MAPHead), _x())
    for name in _shapes():
        cancels = name == "attn.k_proj.bias"
        check(cancels or name in found, f"no gradient reaches `{name}`: it is frozen, detached or not used")


def probe_slopes(MAPHead):
    found = run_beside(slopes, _module(MAPHead), _x())
    return [name in found for name in ("probe", "norm.weight", "mlp.fc1.weight", "attn.v_proj.weight")]


def probe_names(MAPHead):
    return {name: list(value.shape) for name, value in MAPHead(D, H).state_dict().items()}


def probe_output(MAPHead):
    return _module(MAPHead)(_x())


def probe_shape(MAPHead):
    return list(_module(MAPHead)(_x()).shape)


def probe_shape_of_one_image(MAPHead):
    return list(_module(MAPHead)(_x(B=1)).shape)


def probe_one_head(MAPHead):
    return _module(MAPHead, n_heads=1)(_x())


def probe_ratio(MAPHead):
    return _module(MAPHead, ratio=2)(_x())


def probe_ratio_shapes(MAPHead):
    return [list(MAPHead(D, H, mlp_ratio=3).state_dict()[f"mlp.{name}.weight"].shape) for name in ("fc1", "fc2")]


def probe_padding(MAPHead):
    return _module(MAPHead)(_x(), key_padding_mask=PADDING)


def probe_padding_in_the_first_row(MAPHead):
    return _module(MAPHead)(_x(), key_padding_mask=PADDING.flip(0))


def probe_padding_by_position(MAPHead):
    return _module(MAPHead)(_x(), PADDING)


def probe_nothing_but_padding(MAPHead):
    return _module(MAPHead)(_x(), key_padding_mask=PADDING | torch.tensor([[False], [True], [False]]))


def probe_one_token(MAPHead):
    return _module(MAPHead)(_x(1))


def probe_small_entries(MAPHead):
    weights = _weights()
    weights["attn.o_proj.weight"] *= 2e-3
    weights["attn.o_proj.bias"] *= 2e-3
    return _module(MAPHead, weights)(_x())


def probe_without_mlp(MAPHead):
    zero = {"mlp__fc2__weight": torch.zeros(D, 4 * D, dtype=F64), "mlp__fc2__bias": torch.zeros(D, dtype=F64)}
    return _module(MAPHead, _weights(**zero))(_x())


def probe_without_opinion(MAPHead):
    zero = {"attn__q_proj__weight": torch.zeros(D, D, dtype=F64), "attn__q_proj__bias": torch.zeros(D, dtype=F64)}
    return _module(MAPHead, _weights(**zero))(_x())


def probe_large_probe(MAPHead):
    return _module(MAPHead, _weights(probe=5 * _weights()["probe"]))(_x())


def probe_order_of_tokens(MAPHead):
    head, x = _module(MAPHead), _x()
    return bool((head(x[:, [3, 0, 4, 1, 2]]) - head(x)).abs().max() > 1e-9)


def probe_float32(MAPHead):
    head = _module(MAPHead)
    head.float()
    return str(head(_x().float(), key_padding_mask=PADDING).dtype)


def probe_gradients(MAPHead):
    x, head = _x().requires_grad_(), _module(MAPHead)
    got = head(x, key_padding_mask=PADDING)
    (got * torch.linspace(-1, 1, got.numel(), dtype=F64).reshape(got.shape)).sum().backward()
    return x.grad


def probe_training_mode(MAPHead):
    head = _module(MAPHead)
    head.train()
    return head(_x())
