"""Hidden checks of q3_10: dead_transformer_fix, judged by what the mended model does."""

import pytest
import torch
import torch.nn.functional as F

from course_utils.checking import check, same, tensor
from course_utils.patients import BAR, ENOUGH, FAULTS, RUNNERS, mended, patient, toy_batch, train_patient

TOUCHED = {  # where a fault sits: parts of the model that a mending may write anew
    "dead_relu": ("fc.bias",),
    "no_positions": ("positions",),
    "zero_gains": ("norm",),
    "constant_weights": ("attn.", "fc", "head."),
}
HINTS = {
    "frozen": "does every parameter get a gradient?",
    "dead_relu": "does any ReLU of the read-out fire?",
    "dropout": "how much of a branch is left in training mode?",
    "flipped_mask": "does the content of the padding move the output?",
    "no_positions": "does the order of the tokens move the output?",
    "zero_gains": "what comes out of each layer norm?",
    "blurred": "how even are the attention weights?",
    "constant_weights": "do the units of a layer differ from each other?",
}


def _seed(rng):
    return int(torch.randint(10**6, (1,), generator=rng))


def _logits(model, ids, padding):
    with torch.no_grad():
        return tensor(model(ids, padding), "the logits of the mended model", (len(ids), RUNNERS))


def _state(model):
    return {name: value.float() for name, value in model.state_dict().items() if value.is_floating_point()}


def _kept(model, twin, allowed, told):
    """`Wrong` unless the weights are the healthy twin's, the places of the fault aside."""
    state = _state(model)
    for name, value in _state(twin).items():
        if any(part in name for part in allowed):
            continue
        check(name in state, f"`{name}` is gone from {told}")
        check(state[name].shape == value.shape and torch.allclose(state[name], value, rtol=1e-4, atol=1e-5),
              f"`{name}` of {told} has changed, and nothing was wrong with it: keep the weights that are good, and "
              "do not train inside the function")


def _alike(model, twin, seed):
    """Whether weights, outputs and gradients are the twin's, in training mode, and the outputs in evaluation mode."""
    state, theirs = _state(model), _state(twin)
    if state.keys() != theirs.keys() or not all(_close(state[name], theirs[name]) for name in theirs):
        return False
    ids, padding, labels = toy_batch(torch.Generator().manual_seed(seed + 2), 50)
    model.eval()
    twin.eval()
    if not _close(_logits(model, ids, padding), _logits(twin, ids, padding)):
        return False
    gradients = []
    for each in (model, twin):
        each.train()
        each.zero_grad()
        logits = tensor(each(ids, padding), "the logits of the mended model", (len(ids), RUNNERS))
        if not logits.requires_grad:
            return False
        F.cross_entropy(logits, labels).backward()
        named = model.grads() if each is model else {name: p.grad for name, p in twin.named_parameters()}
        gradients.append({"": logits.detach(), **{name: g for name, g in named.items() if g is not None}})
    mine, usual = gradients
    return mine.keys() == usual.keys() and all(_close(mine[name], usual[name]) for name in usual)


def _close(a, b):
    return a.shape == b.shape and bool((a.float() - b).norm() <= 1e-3 * b.norm() + 1e-6)


@pytest.mark.weight(2)
def test_healthy_models(dead_transformer_fix, in_box, rng):
    """A healthy model comes back with its weights and its outputs, in evaluation mode and in training mode."""
    for _ in range(2):
        seed = _seed(rng)
        model, twin = in_box(mended, dead_transformer_fix, "healthy", seed), patient("healthy", seed)
        _kept(model, twin, (), "a healthy model")
        ids, padding, _ = toy_batch(torch.Generator().manual_seed(seed + 1), 50)
        for mode in (False, True):
            model.train(mode)
            twin.train(mode)
            same(_logits(model, ids, padding), twin(ids, padding).detach(), "the logits of a healthy model in "
                 f"{'training' if mode else 'evaluation'} mode (a setting has changed)", rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.weight(0.5)
def test_signs_of_life(dead_transformer_fix, in_box, rng, fault):
    """Mended and not trained yet: gradients reach the parameters, order counts, padding does not."""
    seed = _seed(rng)
    model = in_box(mended, dead_transformer_fix, fault, seed)
    ids, padding, _ = toy_batch(torch.Generator().manual_seed(seed + 1), 50)
    told = f"the mended patient with the fault {fault!r}"
    model.eval()
    before = _logits(model, ids, padding)
    junk = torch.where(padding, torch.randint(2, 10, ids.shape, generator=rng), ids)
    same(_logits(model, junk, padding), before, f"the logits of {told}, after a change in the padding", rtol=1e-3,
         atol=1e-4)
    whole = ids[padding.sum(1) == 0]
    none, order = torch.zeros_like(whole, dtype=torch.bool), [0, *range(whole.shape[1] - 1, 0, -1)]
    moved = (_logits(model, whole[:, order], none) - _logits(model, whole, none)).abs().max()
    check(moved > 1e-5, f"the order of the tokens does not move the logits of {told}")
    logits = model(ids, padding)
    check(logits.requires_grad, f"no gradient flows in {told}")
    model.zero_grad()
    (logits * torch.randn(logits.shape, generator=rng)).sum().backward()
    dead = [name for name, g in model.grads().items()
            if not name.endswith("k_proj.bias") and (g is None or not g.abs().max() > 1e-12)]
    check(not dead, f"no gradient reaches `{dead[0] if dead else ''}` in {told}")


@pytest.mark.parametrize("fault", FAULTS)
def test_mended(dead_transformer_fix, in_box, rng, fault):
    """After mending and the stated training run, the patient does the race on new sequences."""
    told, hint = f"the patient with the fault {fault!r}", HINTS.get(fault, "compare it with its healthy twin")
    for seed in (_seed(rng), _seed(rng)):  # the second only where the first run was unlucky
        model = in_box(mended, dead_transformer_fix, fault, seed)
        _kept(model, patient("healthy", seed), TOUCHED.get(fault, ()), told)
        if _alike(model, patient("healthy", seed), seed):  # it would train as its healthy twin does
            return
        check(not _alike(model, patient(fault, seed), seed), f"{told} comes back as sick as it came: {hint}")
        in_box(train_patient, model, seed=seed, enough=ENOUGH)
        model.eval()
        ids, padding, labels = toy_batch(torch.Generator().manual_seed(seed + 1), 500)
        reached = (_logits(model, ids, padding).argmax(-1) == labels).double().mean().item()
        if reached >= BAR:
            break
    check(reached >= BAR, f"{told} is right on {reached:.0%} of new races after the training run, and {BAR:.0%} are "
          f"asked for: {hint}")
