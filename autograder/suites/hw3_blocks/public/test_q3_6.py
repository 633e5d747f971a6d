"""Public checks of q3_6: FeedForward."""

import math

import torch

from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error

F64 = torch.float64


def _weights(D, width, seed=36):
    g = torch.Generator().manual_seed(seed)
    shapes = {"fc1.weight": (width, D), "fc1.bias": (width,), "fc2.weight": (D, width), "fc2.bias": (D,)}
    return {name: torch.randn(*shape, generator=g, dtype=F64) / math.sqrt(shape[-1]) for name, shape in shapes.items()}


def _model(FeedForward, D, width, *options, weights=None, **more):
    """The student's module in float64 and evaluation mode, with weights put in by name."""
    model = FeedForward(D, width, *options, **more)
    model.double()
    model.eval()
    weights, state = weights or _weights(D, width), model.state_dict()
    for name, value in weights.items():
        check(name in state, f"there is no parameter `{name}`: the layers are `fc1` and `fc2`, both nn.Linear")
        check(state[name].shape == value.shape, f"`{name}` has shape {list(state[name].shape)}, expected "
              f"{list(value.shape)}")
    model.load_state_dict({**state, **weights})
    return model


def _x(*lead, D=3):
    return 2 * torch.randn(*lead, D, generator=torch.Generator().manual_seed(37), dtype=F64)


def test_worked_numbers(FeedForward):
    """One unit that passes its input on: GELU of 1 is 0.8413 (0.8412 is the tanh approximation), ReLU of -1 is 0."""
    # keeps: exact-gelu, relu
    one = {"fc1.weight": [[1.0]], "fc1.bias": [0.0], "fc2.weight": [[1.0]], "fc2.bias": [0.0]}
    weights = {name: torch.tensor(value, dtype=F64) for name, value in one.items()}
    x = torch.tensor([[[1.0], [-1.0]]], dtype=F64)
    got = tensor(_model(FeedForward, 1, 1, weights=weights)(x), "the output", (1, 2, 1), F64)
    tanh = torch.nn.functional.gelu(x, approximate="tanh")
    check(not torch.allclose(got, tanh, rtol=0, atol=1e-7), "this is the tanh approximation of GELU: the exact one "
          "uses the error function erf")
    exact = torch.tensor([[[0.8413447461], [-0.1586552539]]], dtype=F64)
    same(got, exact, "the output with GELU", rtol=0, atol=1e-8)
    relu = _model(FeedForward, 1, 1, "relu", weights=weights)(x)
    same(relu, torch.tensor([[[1.0], [0.0]]], dtype=F64), "the output with ReLU")


def test_position_wise(FeedForward):
    """Every position goes through the same two layers by itself: one token more or less changes nothing."""
    # keeps: position-wise
    model, x = _model(FeedForward, 3, 5), _x(2, 4)
    whole = tensor(model(x), "the output", (2, 4, 3), F64)
    same_as_yours(model(x[:, 1:3]), whole[:, 1:3], "the output of two tokens alone", "among the others")


def test_unknown_activation(FeedForward):
    """Any other activation than "gelu" or "relu" is a ValueError when the module is made."""
    # keeps: other-activations
    FeedForward(3, 5)
    for name in ("tanh", "GELU", ""):
        expect_value_error(f"FeedForward(3, 5, {name!r})", FeedForward, 3, 5, name)


def _build_and_call(FeedForward, activation):
    return FeedForward(3, 5, activation=activation)(torch.zeros(1, 2, 3))


def test_activation_between(FeedForward):
    """fc1, activation, fc2: against the formula, with both activations and any leading axes."""
    # keeps: formula, names, relu
    weights = _weights(3, 5)
    for activation in ("gelu", "relu"):
        for lead in ((4,), (2, 4)):
            x = _x(*lead)
            hidden = getattr(torch.nn.functional, activation)(x @ weights["fc1.weight"].T + weights["fc1.bias"])
            same(_model(FeedForward, 3, 5, activation)(x), hidden @ weights["fc2.weight"].T + weights["fc2.bias"],
                 f"the output with {activation}")


def test_dropout(FeedForward):
    """Dropout acts in training mode only, after the activation: on the hidden units, one by one, and nowhere else."""
    # keeps: dropout
    model, x = _model(FeedForward, 3, 50, dropout=0.5), _x(2, 4)
    same(model(x), model(x), "the output of a second call in evaluation mode")
    model.train()
    check(not torch.equal(model(x), model(x)), "two calls in training mode give the same output with dropout=0.5")
    for activation, unit in (("gelu", 0.8413447461), ("relu", 1.0)):
        out = _seen(FeedForward, 0.25, activation)(torch.zeros(1, 60, 3, dtype=F64)).detach()
        kept = (out - 10).abs() > 1e-6
        same(out[kept], torch.full_like(out[kept], 10 + unit / 0.75), f"a unit that is not dropped, with "
             f"{activation} (the bias "
             "of fc2 comes after the dropout)", rtol=1e-6)
        check(0.1 < 1 - kept.double().mean() < 0.45, f"with dropout=0.25 a share of {1 - kept.double().mean():.2f} "
              f"of the units is "
              "dropped")
        check(not (kept == kept[..., :1]).all(), "all units of a token are dropped together: each is dropped by itself")
    zeros = {"fc1.bias": torch.zeros(3), "fc2.bias": torch.zeros(3)}
    weights = {"fc1.weight": torch.eye(3), "fc2.weight": torch.ones(3, 3), **zeros}
    model = _model(FeedForward, 3, 3, "relu", 0.25, weights={k: v.to(F64) for k, v in weights.items()})
    model.train()
    out = model(torch.ones(1, 200, 3, dtype=F64)).detach()  # three units of 1, summed: the three outputs are one number
    check((out - out[..., :1]).abs().max() < 1e-9, "outputs that are the same sum differ in training mode: dropout "
          "acts on the "
          "output, too, and it belongs to the hidden units")
    model = _model(FeedForward, 3, 3, "relu", 0.25, weights={k: v.to(F64) for k, v in (
        weights | {"fc1.weight": torch.ones(3, 3), "fc2.weight": torch.eye(3)}).items()})
    model.train()
    out = model(torch.ones(1, 200, 3, dtype=F64)).detach()  # a unit is the sum of the inputs, 3, or dropped
    check(((out - 4).abs().lt(1e-6) | out.abs().lt(1e-6)).all(), "units see an input with holes in training mode: "
          "dropout acts on "
          "the input or before the activation, and it belongs after the activation")


def _seen(FeedForward, p, activation="gelu"):
    """Three units with pre-activation 1, each passed on as it is, plus a bias of 10."""
    weights = {"fc1.weight": torch.zeros(3, 3), "fc1.bias": torch.ones(3), "fc2.weight": torch.eye(3),
               "fc2.bias": torch.full((3,), 10.0)}
    model = _model(FeedForward, 3, 3, activation, p, weights={k: v.to(F64) for k, v in weights.items()})
    model.train()
    return model


def probe_gelu(FeedForward):
    return _model(FeedForward, 3, 5)(_x(2, 4)).detach()


def probe_gelu_by_name(FeedForward):
    return _model(FeedForward, 3, 5, activation="gelu")(_x(2, 4)).detach()


def probe_gelu_precisely(FeedForward):
    x, weights = _x(2, 4), _weights(3, 5)
    hidden = x @ weights["fc1.weight"].T + weights["fc1.bias"]
    hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
    gap = _model(FeedForward, 3, 5)(x).detach() - hidden @ weights["fc2.weight"].T - weights["fc2.bias"]
    return torch.round(gap, decimals=6)


def probe_relu(FeedForward):
    return _model(FeedForward, 3, 5, "relu")(_x(2, 4)).detach()


def probe_parameters(FeedForward):
    state = FeedForward(3, 5).state_dict()
    return {name: list(state[name].shape) if name in state else "missing" for name in _weights(3, 5)}


def probe_one_token(FeedForward):
    return _model(FeedForward, 3, 5)(_x(1, 1)).detach()


def probe_eval_with_dropout(FeedForward):
    return _model(FeedForward, 3, 5, dropout=0.5)(_x(2, 4)).detach()


def probe_eval_with_dropout_is_random(FeedForward):
    model, x = _model(FeedForward, 3, 50, dropout=0.5), _x(2, 4)
    return bool((model(x) - model(x)).abs().max() > 1e-9)


def probe_training_without_dropout(FeedForward):
    model = _model(FeedForward, 3, 5)
    model.train()
    return model(_x(2, 4)).detach()


def probe_dropped_values(FeedForward):
    values = _seen(FeedForward, 0.25)(torch.zeros(1, 40, 3, dtype=F64)).detach()
    return sorted({round(v, 5) for v in values.flatten().tolist()})


def probe_dropped_values_with_relu(FeedForward):
    model = _seen(FeedForward, 0.25, "relu")
    values = model(torch.zeros(1, 40, 3, dtype=F64)).detach()
    return sorted({round(v, 5) for v in values.flatten().tolist()})


def _outcome(FeedForward, activation):
    FeedForward(3, 5)
    if raises_value_error(_build_and_call, FeedForward, activation):
        return "ValueError"
    try:
        _build_and_call(FeedForward, activation)
    except Exception:
        return "another error"
    return "no error"


def probe_unknown_activation(FeedForward):
    return _outcome(FeedForward, "tanh")


def probe_misspelt_activation(FeedForward):
    return _outcome(FeedForward, "gleu")


def probe_dtype(FeedForward):
    return str(FeedForward(3, 5)(torch.zeros(1, 2, 3)).dtype)


def _outcome_of_making(FeedForward, activation):
    FeedForward(3, 5)
    return "ValueError" if raises_value_error(FeedForward, 3, 5, activation) else "none"


def probe_unknown_when_made(FeedForward):
    return _outcome_of_making(FeedForward, "tanh")


def probe_capitals(FeedForward):
    return _outcome_of_making(FeedForward, "GELU")


def probe_longer_name(FeedForward):
    return _outcome_of_making(FeedForward, "gelu_new")


def probe_units_dropped_together(FeedForward):
    values = _seen(FeedForward, 0.5)(torch.ones(1, 40, 3, dtype=F64)).detach()
    return bool((values == values[..., :1]).all())


def probe_dropout_of_the_input(FeedForward):
    third = {"fc1.weight": torch.full((2, 3), 1 / 3), "fc1.bias": torch.zeros(2), "fc2.weight": torch.eye(3, 2),
             "fc2.bias": torch.zeros(3)}
    model = _model(FeedForward, 3, 2, "relu", 0.5, weights={k: v.to(F64) for k, v in third.items()})
    model.train()
    return sorted({round(v, 5) for v in model(torch.ones(1, 60, 3, dtype=F64)).detach().flatten().tolist()})
