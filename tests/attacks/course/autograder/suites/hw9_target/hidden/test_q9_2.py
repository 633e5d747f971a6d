"""Hidden checks of q9_2. MARK-OF-THE-HIDDEN-SUITE"""

import torch

from course_utils.checking.compare import check, same, tensor

F64 = torch.float64


def _pair(Gate, reference, rng, dim=4):
    """The student's gate and the reference's, with the same weights."""
    mine, theirs = reference.Gate(dim).double(), Gate(dim).double()
    state = {name: torch.randn(p.shape, generator=rng, dtype=F64) for name, p in mine.state_dict().items()}
    mine.load_state_dict(state)
    theirs.load_state_dict(state)
    return mine, theirs, state


def test_values(Gate, reference, rng):
    """With weights put in from outside, the output is x * sigmoid(W x + b)."""
    mine, theirs, _ = _pair(Gate, reference, rng)
    x = torch.randn(5, 4, generator=rng, dtype=F64)
    same(theirs(x), mine(x).detach(), "the output")


def test_weights_stay(Gate, reference, rng):
    """The weights that are put in are the ones that come out, and a fresh gate has weights of its own."""
    _, theirs, state = _pair(Gate, reference, rng)
    same(theirs.state_dict(), state, "the weights")
    same(theirs.parameter_shapes(), {"linear.weight": (4, 4), "linear.bias": (4,)}, "the shapes")
    fresh = Gate(4).double().state_dict()
    check(not torch.equal(tensor(fresh.get("linear.weight"), "the weight", (4, 4)), state["linear.weight"]), "not fresh")


def test_gradients(Gate, reference, rng):
    """The gradients of the weights are right."""
    mine, theirs, _ = _pair(Gate, reference, rng)
    x, direction = (torch.randn(5, 4, generator=rng, dtype=F64) for _ in range(2))
    out = tensor(theirs(x), "the output", (5, 4), F64)
    check(out.requires_grad, "no gradient flows")
    (out * direction).sum().backward()
    (mine(x) * direction).sum().backward()
    same(theirs.grads(), {name: p.grad for name, p in mine.named_parameters()}, "the gradients")
