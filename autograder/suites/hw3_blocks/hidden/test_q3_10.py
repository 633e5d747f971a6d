"""Hidden checks of q3_10: dead_transformer_fix, judged by what the mended model does."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.learning import in_another_box
from autograder.suites.secret_race import SecretRace
from course_utils.checking.compare import check, same, tensor
from course_utils.hw3.patients import (
    BAR,
    ENOUGH,
    RUNNERS,
    STEPS,
    WARD,
    chart,
    healthy,
    mended_by_chart,
    planted,
    toy_batch,
    train_patient,
)

TOUCHED = {  # where a fault sits: parts of the model that a mending may write anew
    1: ("positions",),
    3: ("fc.bias",),
    8: ("norm",),
    11: ("attn.", "fc", "head."),
}
HINTS = {
    1: "does the order of the tokens move the output?",
    2: "which tokens does the first one hear?",
    3: "does any ReLU of the read-out fire?",
    4: "how much of a branch is left in training mode?",
    5: "every parameter wants a gradient; where on its way back does it end?",
    6: "how even are the attention weights?",
    7: "which parameters want a gradient?",
    8: "what comes out of each layer norm?",
    9: "what is left of a token after two blocks whose branches give 0?",
    10: "does the content of the padding move the output?",
    11: "do the units of a layer differ from each other?",
}
PATIENTS = pytest.mark.parametrize("number", WARD)


def _seed(rng):
    return int(torch.randint(2**62, (1,), generator=rng))


def _mended(student, patient):
    """What the student makes of a patient that was built here and is sent as data, without a number or a seed."""
    return student.run(mended_by_chart, student["dead_transformer_fix"], chart(patient))


def _logits(model, ids, padding):
    with torch.no_grad():
        return tensor(model(ids, padding), "the logits of the mended model", (len(ids), RUNNERS))


def _state(model):
    return {name: value.float() for name, value in model.state_dict().items() if value.is_floating_point()}


def _kept(model, twin, allowed, told):
    """The weights; `Wrong` unless they are the twin's, the places of the fault aside, and nothing else learns."""
    state, usual = _state(model), _state(twin)
    learned = sum(math.prod(shape) for shape in model.parameter_shapes().values())
    check(learned <= sum(value.numel() for value in usual.values()), f"{told} comes back with more parameters than it "
          "had: mend what is sick, and put nothing beside it")
    for name, value in usual.items():
        if any(part in name for part in allowed):
            continue
        check(name in state, f"`{name}` is gone from {told}")
        check(state[name].shape == value.shape and torch.allclose(state[name], value, rtol=1e-4, atol=1e-5),
              f"`{name}` of {told} has changed, and nothing was wrong with it: keep the weights that are good, and "
              "do not train inside the function")
    return state


def _alike(model, state, twin, rng):
    """Whether weights, outputs and gradients are the twin's, in training mode, and the outputs in evaluation mode."""
    theirs = _state(twin)
    if state.keys() != theirs.keys() or not all(_close(state[name], theirs[name]) for name in theirs):
        return False
    ids, padding, labels = toy_batch(rng, 50)
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
def test_healthy_models(dead_transformer_fix, student, rng):
    """A healthy model comes back with its weights and its outputs, in evaluation mode and in training mode."""
    for _ in range(2):
        seed = _seed(rng)
        twin = healthy(seed)
        model = _mended(student, twin)
        _kept(model, twin, (), "a healthy model")
        ids, padding, _ = toy_batch(rng, 50)
        for mode in (False, True):
            model.train(mode)
            twin.train(mode)
            same(_logits(model, ids, padding), twin(ids, padding).detach(), "the logits of a healthy model in "
                 f"{'training' if mode else 'evaluation'} mode (a setting has changed)", rtol=1e-3, atol=1e-4)


@PATIENTS
@pytest.mark.weight(0.5)
def test_signs_of_life(dead_transformer_fix, student, rng, number):
    """Mended and not trained yet: gradients reach the parameters, order counts, padding does not."""
    model = _mended(student, planted(healthy(_seed(rng)), number))
    ids, padding, _ = toy_batch(rng, 50)
    told = f"mended patient {number}"
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


@PATIENTS
def test_mended(dead_transformer_fix, student, anew, rng, number):
    """After mending and the stated training run, the patient does the race on new sequences."""
    told, hint = f"patient {number}", HINTS[number]
    for seed in (_seed(rng), _seed(rng)):  # the second only where the first run was unlucky
        twin = healthy(seed)
        sick = planted(twin, number)
        model = _mended(student, sick)
        state = _kept(model, twin, TOUCHED.get(number, ()), told)
        if _alike(model, state, twin, rng):  # it would train as it did before it fell ill
            return
        check(not _alike(model, state, sick, rng), f"{told} comes back as sick as it came: {hint}")
        race = SecretRace(rng)
        asked = _trained(student, anew, model, partial(_mended, patient=sick), race, _seed(rng))
        reached = _accuracy(race, asked.trained, 500)
        if reached >= BAR:
            break
        student = asked.student
    check(reached >= BAR, f"{told} is right on {reached:.0%} of new races after the training run, and {BAR:.0%} are "
          f"asked for: {hint}")
    known = _accuracy(race, asked.untrained, 200)
    check(known < BAR, f"{told} is right on {known:.0%} of new races before any training: this is not learned")


def _trained(student, anew, model, make, race, seed):
    batches = race.batches(STEPS)

    def train(student, model):
        student.run(train_patient, model, STEPS, seed, ENOUGH, batches)

    return next(in_another_box(student, anew, model, make, [train]))


def _accuracy(race, model, n):
    return race.shares(lambda ids, padding: _logits(model, ids, padding), n).mean()
