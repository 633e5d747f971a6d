"""Hidden checks of q3_6: FeedForward."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.judge.expect import raises
from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import check, same, tensor
from course_utils.instruments.calls import call_with_views

F64 = torch.float64
D, WIDTH = 4, 7
ACTIVATIONS = {"gelu": lambda z: z * (1 + torch.erf(z / math.sqrt(2))) / 2, "relu": lambda z: z.clamp_min(0)}


def _draw(rng, d=D, width=WIDTH):
    shapes = {"fc1.weight": (width, d), "fc1.bias": (width,), "fc2.weight": (d, width), "fc2.bias": (d,)}
    return {name: 1.5 * torch.randn(*shape, generator=rng, dtype=F64) / math.sqrt(shape[-1])
            for name, shape in shapes.items()}


def _loaded(FeedForward, weights, *options, **more):
    """The student's module in float64 and evaluation mode, with weights put in by name."""
    width, d = weights["fc1.weight"].shape
    model = FeedForward(d, width, *options, **more)
    found = model.parameter_shapes()
    for name, value in weights.items():
        check(name in found, f"there is no parameter `{name}`: the layers are `fc1` and `fc2`, both nn.Linear")
        check(tuple(found[name]) == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected "
              f"{list(value.shape)}")
    extra = sorted(set(found) - set(weights))
    check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many: fc1 and fc2 are all there are")
    model.double()
    model.eval()
    model.load_state_dict({**model.state_dict(), **weights})
    return model


def _forward(x, w, activation):
    return activation(x @ w["fc1.weight"].T + w["fc1.bias"]) @ w["fc2.weight"].T + w["fc2.bias"]


def _causes(x, w, activation):
    last = _forward(x, w, lambda z: z)
    return {
        "this is the tanh approximation of GELU; the exact one uses erf": _forward(x, w, lambda z: F.gelu(
            z, approximate="tanh")),
        "the activation is ReLU": _forward(x, w, torch.relu),
        "the activation is the exact GELU, and ReLU was asked for": _forward(x, w, F.gelu),
        "there is no activation between the layers": last,
        "the activation comes after the second layer, not between the two": activation(last),
        "the activation acts twice, between the layers and after them": activation(_forward(x, w, activation)),
        "the activation is SiLU": _forward(x, w, F.silu),
        "this is the approximation z * sigmoid(1.702 z) of GELU":
            _forward(x, w, lambda z: z * torch.sigmoid(1.702 * z)),
        "x itself is added; the residual belongs to the block around it": x + _forward(x, w, activation),
    }


def _x(rng, B=3, N=5, d=D, dtype=F64):
    return 1.5 * torch.randn(B, N, d, generator=rng, dtype=dtype)


def test_parameters(FeedForward, rng):
    """The parameters are those of fc1 (to d_ff) and fc2 (back to d_model), with biases, and no others."""
    for d, width in ((4, 7), (6, 3), (5, 5)):
        _loaded(FeedForward, _draw(rng, d, width))


@pytest.mark.weight(3)
def test_gelu(FeedForward, rng):
    """fc2(gelu(fc1(x))) with the exact GELU, which is the default activation."""
    w, x = _draw(rng), _x(rng)
    for told, options in (("", ()), (' with activation="gelu"', ("gelu",))):
        got = tensor(_loaded(FeedForward, w, *options)(x), f"the output{told}", x.shape, F64)
        same_or_because(got, _forward(x, w, ACTIVATIONS["gelu"]), f"the output{told}", _causes(x, w, F.gelu))


@pytest.mark.weight(2)
def test_relu(FeedForward, rng):
    """fc2(relu(fc1(x))) with activation="relu"."""
    w, x = _draw(rng), _x(rng)
    for model in (_loaded(FeedForward, w, "relu"), _loaded(FeedForward, w, activation="relu")):
        got = tensor(model(x), "the output", x.shape, F64)
        same_or_because(got, _forward(x, w, ACTIVATIONS["relu"]), "the output with ReLU", _causes(x, w, torch.relu))


def test_other_shapes(FeedForward, rng):
    """Any batch and length, d_ff below d_model as well as above it, large and small entries."""
    for B, N, d, width, scale in ((1, 1, 4, 7, 1.0), (2, 6, 6, 3, 1.0), (4, 2, 5, 5, 30.0), (2, 3, 3, 8, 1e-2)):
        w, x = _draw(rng, d, width), scale * _x(rng, B, N, d)
        for name, activation in ACTIVATIONS.items():
            got = tensor(_loaded(FeedForward, w, name)(x), "the output", x.shape, F64)
            same_or_because(got, _forward(x, w, activation), f"the output for x of shape {[B, N, d]} with {name}",
                            _causes(x, w, activation))


def test_any_leading_axes(FeedForward, rng):
    """One vector alone, a matrix, and a batch with two more axes: [..., D] gives [..., D]."""
    w = _draw(rng)
    model = _loaded(FeedForward, w)
    for lead in ((), (1,), (3,), (2, 3, 4), (2, 1, 3, 2)):
        x = 1.5 * torch.randn(*lead, D, generator=rng, dtype=F64)
        what = f"the output for x of shape {list(x.shape)}"
        same_or_because(tensor(model(x), what, x.shape, F64), _forward(x, w, F.gelu), what, _causes(x, w, F.gelu))


def test_views(FeedForward, in_box, rng):
    """An x that is a view with other strides is worth its values like any other, with and without gradients."""
    w, x = _draw(rng), _x(rng)
    for name, activation in ACTIVATIONS.items():
        model = _loaded(FeedForward, w, name)
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                got, plain = in_box(call_with_views, model, x), model(x)
            same(got, _forward(x, w, activation), f"the output for a transposed view with {name}")
            same(plain, _forward(x, w, activation), f"the output with {name}{'' if grad else ' under torch.no_grad'}")


@pytest.mark.parametrize("kind", ["others", "nearly", "no names"])
def test_unknown_activations(FeedForward, kind):
    """Any other activation is a ValueError when the module is made: one that torch knows, a misspelt one, None."""
    model = FeedForward(D, WIDTH)
    given = {"others": ("tanh", "silu", "swish", ""), "nearly": ("GELU", "ReLU", "gelu_new", "relu6", "gel"),
             "no names": (None, 1, model)}[kind]
    for activation in given:
        told = "a module" if activation is model else repr(activation)
        with raises(ValueError, f"making FeedForward with activation={told}"):
            FeedForward(D, WIDTH, activation)


def test_positions_keep_apart(FeedForward, rng):
    """A token moves its own output and no other: the layers act on every position by itself."""
    w, x = _draw(rng), _x(rng)
    model = _loaded(FeedForward, w)
    before = tensor(model(x), "the output", x.shape, F64)
    other = x.clone()
    other[1, 2] += 1
    moved = (tensor(model(other), "the output", x.shape, F64) - before).abs().amax(-1) > 1e-9
    check(moved[1, 2], "another token leaves its output as it is")
    check(int(moved.sum()) == 1, "another token moves the outputs of other positions too")
    same(before, _forward(x, w, F.gelu), "the output")


@pytest.mark.weight(2)
def test_dropout_place(FeedForward, rng):
    """In training mode dropout acts after the activation: a unit becomes 0, or grows by 1 / (1 - p); fc2 follows."""
    p, z, bias = 0.3, 1.0, 10.0
    w = {"fc1.weight": torch.full((5, 3), z / 3, dtype=F64), "fc1.bias": torch.zeros(5, dtype=F64),
         "fc2.weight": torch.eye(3, 5, dtype=F64), "fc2.bias": torch.full((3,), bias, dtype=F64)}
    model = _loaded(FeedForward, w, dropout=p)
    model.train()
    got = tensor(model(torch.ones(20, 50, 3, dtype=F64)), "the output", (20, 50, 3), F64).detach() - bias
    unit = F.gelu(torch.tensor(z, dtype=F64)).item()
    kept, seen = unit / (1 - p), sorted({round(v, 6) for v in got.flatten().tolist()})
    check(seen != [round(unit, 6)], f"dropout={p} changes nothing in training mode")
    early, late = F.gelu(torch.tensor(z / (1 - p), dtype=F64)).item(), (unit + bias) / (1 - p) - bias
    third = round(F.gelu(torch.tensor(z / 3 / (1 - p), dtype=F64)).item(), 6)  # two of the three inputs dropped
    check(third not in seen, "dropout acts on the input of fc1; it comes after the activation, before fc2")
    for value, told in ((early, "dropout acts before the activation; it comes after it"),
                        (late, "dropout acts on the output of fc2; it comes after the activation, before fc2"),
                        (kept / (1 - p), "dropout acts twice"),
                        (unit / p, "dropout is the share that is dropped; here it is the share that is kept"),
                        (unit, "units that are kept are not scaled by 1 / (1 - p)")):
        check(not any(math.isclose(v, value, abs_tol=1e-5) for v in seen), told)
    check(len(seen) == 2 and math.isclose(seen[0], 0, abs_tol=1e-5) and math.isclose(seen[1], kept, abs_tol=1e-5),
          f"with dropout={p}, a unit of {unit:.4g} becomes {seen[:4]}, expected 0 or {kept:.4g}")
    dropped = (got < kept / 2).double().mean().item()
    check(abs(dropped - p) < 0.05, f"dropout={p} drops {dropped:.0%} of the units")
    gone = got < kept / 2  # [20, 50, 3]
    for axis, told in ((2, "all units of a token"), (1, "all tokens of a sequence"), (0, "all sequences of a batch")):
        check(not (gone == gone.narrow(axis, 0, 1)).all(), f"{told} are dropped or kept together; every unit of every "
              "token is drawn on its own")


def test_evaluation_mode(FeedForward, rng):
    """In evaluation mode dropout does nothing; without dropout, training mode changes nothing."""
    w, x = _draw(rng), _x(rng)
    model = _loaded(FeedForward, w, dropout=0.4)
    same(model(x), _forward(x, w, F.gelu), "the output in evaluation mode with dropout=0.4")
    model.train()
    check(not torch.equal(model(x), model(x)), "two calls in training mode with dropout=0.4 give the same output")
    model.eval()
    same(model(x), _forward(x, w, F.gelu), "the output back in evaluation mode")
    plain = _loaded(FeedForward, w)
    plain.train()
    same(plain(x), _forward(x, w, F.gelu), "the output in training mode, dropout being 0 by default")


@pytest.mark.weight(2)
def test_gradients(FeedForward, rng):
    """Gradients reach x and all four parameters, and they are right."""
    w, x, up = _draw(rng), _x(rng), torch.randn(3, 5, D, generator=rng, dtype=F64)
    for name, activation in (("gelu", F.gelu), ("relu", torch.relu)):
        model = _loaded(FeedForward, w, name)
        leaf = x.clone().requires_grad_()
        got = tensor(model(leaf), "the output", x.shape, F64)
        check(got.requires_grad, "no gradient flows from the output")
        got.backward(up)
        theirs = {"x": x.clone().requires_grad_(), **{key: value.clone().requires_grad_() for key, value in w.items()}}
        _forward(theirs["x"], theirs, activation).backward(up)
        mine = {"x": leaf.grad, **model.grads()}
        for key, value in theirs.items():
            check(mine.get(key) is not None, f"no gradient reaches {key}")
            same(mine[key], value.grad, f"the gradient of {key} with {name}")


def test_float32(FeedForward, rng):
    """A module in float32 gives float32 outputs."""
    w, x = _draw(rng), _x(rng)
    model = _loaded(FeedForward, w)
    model.float()
    got = tensor(model(x.float()), "the output", x.shape, torch.float32)
    same(got, _forward(x, w, F.gelu).float(), "the output", rtol=1e-3, atol=1e-4)


@pytest.mark.weight(0.5)
def test_device(FeedForward, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    device_ready(watch, FeedForward, (D, WIDTH), call=(_x(rng, dtype=torch.float32),))
