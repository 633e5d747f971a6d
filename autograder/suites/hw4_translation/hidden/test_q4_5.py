"""Hidden checks of q4_5: train_step and fit, watched through plain gradient descent with rate 1."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.hw4_translation.oracle import Translator, lengths_to_padding, loaded
from course_utils.checking.compare import Wrong, check, number, same, tensor
from course_utils.hw4.decoding_weights import lively_weights
from course_utils.hw4.training_runs import call_fit, optimizer_of_fit, take_steps, watch_fit
from course_utils.hw4.translation import BETAS

SIZES = (9, 11, 12, 3, 20, 1)
PAD = 0


def _batch(rng, lengths=(5, 3, 1), sources=(6, 2, 4)):
    """(src, src_padding, inputs, labels), tokens from 1 on, PAD where there is no token."""
    padding = lengths_to_padding(sources, max(sources))
    src = torch.randint(1, SIZES[0], padding.shape, generator=rng).masked_fill(padding, PAD)
    beyond = lengths_to_padding(lengths, max(lengths))
    labels = torch.randint(3, SIZES[1], beyond.shape, generator=rng).masked_fill(beyond, PAD)
    inputs = torch.cat([torch.ones(len(labels), 1, dtype=torch.long), labels[:, :-1]], 1)
    return src, padding, inputs, labels


def _weights(rng, calm=False):
    weights = lively_weights(int(torch.randint(2**31, (1,), generator=rng)), *SIZES)
    if calm:  # small logits, small gradients
        weights["tgt_embed.weight"] *= 0.1
        weights["decoder_norm.weight"] *= 0.1
        weights["decoder_norm.bias"] *= 0.1
        for name in weights:
            if name.endswith(("o_proj.weight", "fc2.weight")):
                weights[name] *= 0.3
    return weights


SMOOTHINGS = (0.1, 0.0)  # both are right


def _losses(logits, labels, pad):
    """The loss for each smoothing that is right."""
    flat, right = logits.flatten(0, 1), labels.flatten()
    return {s: F.cross_entropy(flat, right, ignore_index=pad, label_smoothing=s) for s in SMOOTHINGS}


def _losses_and_gradients(weights, batch, pad=PAD):
    """For each smoothing that is right: the loss before the step, and the gradient by name."""
    src, padding, inputs, labels = batch
    oracle, found = Translator(weights, SIZES[3]), {}
    for smoothing, loss in _losses(oracle(src, inputs, padding), labels, pad).items():
        for parameter in oracle.parameters():
            parameter.grad = None
        loss.backward(retain_graph=True)
        found[smoothing] = loss.item(), oracle.gradients()
    return found


@torch.no_grad()
def _measured(weights, batch):
    """What these weights do with a batch, computed here: the losses by smoothing, and the share of right tokens."""
    src, padding, inputs, labels = batch
    logits = Translator(weights, SIZES[3])(src, inputs, padding)
    right = (logits.argmax(-1) == labels)[labels != PAD].double().mean().item()
    return {smoothing: loss.item() for smoothing, loss in _losses(logits, labels, PAD).items()}, right


def _named(state, weights):
    """The parameters of the contract out of a model's; a tied embedding may go by its other name."""
    if "tgt_embed.weight" not in state:
        other = next(name for name in state if name not in weights)
        state = {**state, "tgt_embed.weight": state[other]}
    for name, value in weights.items():
        check(name in state, f"there is no parameter `{name}`")
        tensor(state[name], f"`{name}`", value.shape)
    return {name: state[name].detach() for name in weights}


def _loss(returned, what="the loss"):
    check(returned != "a tensor with its graph", f"{what} is a tensor that still hangs on its graph, expected a float")
    return number(returned, what)


def _which(found, loss):
    """The smoothing that the returned loss tells of."""
    return min(found, key=lambda smoothing: abs(found[smoothing][0] - loss))


def _norm(named):
    return math.sqrt(sum(value.square().sum().item() for value in named.values()))


def _moves(before, after):
    """By how much each parameter of the contract moved; a tied embedding may go by its other name."""
    moves = {name: after[name] - before[name] for name in before}
    if "tgt_embed.weight" not in moves:
        other = next(name for name, value in moves.items() if tuple(value.shape) == (SIZES[1], SIZES[2]))
        moves["tgt_embed.weight"] = moves.pop(other)
    return moves


def _compare_move(moves, gradient, what):
    norm = _norm(gradient)
    factor = min(1.0, 1 / norm)
    took = _norm(moves)
    if norm > 1:
        check(took < 1 + 1e-3, f"{what}: the gradient's norm is {norm:.3f}, and the update (rate 1) has norm "
              f"{took:.3f}: clip the norm of all gradients together to 1, between backward and step")
    for name, grad in gradient.items():
        check(name in moves, f"there is no parameter `{name}`")
        expected = -factor * grad
        try:
            same(moves[name], expected, f"{what}: the update of `{name}`", rtol=2e-3, atol=2e-5)
        except Wrong as wrong:
            causes = {
                "each parameter is clipped by itself; the norm is that of all gradients together":
                    -grad * min(1.0, 1 / max(grad.norm().item(), 1e-12)),
                "each entry of the gradient is clipped; its norm is asked for": -grad.clamp(-1, 1),
                "the gradient is always divided by its norm, also where the norm is below 1": -grad / norm,
                "the gradient is not clipped": -grad,
                "the parameters did not move": torch.zeros_like(grad),
                "the step goes up the gradient": factor * grad,
            }
            for cause, value in causes.items():
                fits = torch.allclose(moves[name], value, rtol=1e-3, atol=1e-6)
                if fits and not torch.allclose(value, expected, rtol=1e-3):
                    raise Wrong(wrong.plain, relation=f"Likely cause: {cause}.") from None
            raise


@pytest.mark.weight(2)
def test_returns_the_loss(train_step, Transformer, in_box, rng):
    """It returns the loss before the update, as a float."""
    weights, batch = _weights(rng), _batch(rng)
    (returned,), _ = in_box(take_steps, train_step, loaded(Transformer, weights, SIZES), [batch], PAD)
    loss, found = _loss(returned), _losses_and_gradients(weights, batch)
    smoothing = _which(found, loss)
    src, padding, inputs, labels = batch
    oracle = Translator(weights, SIZES[3])
    unmasked = oracle(src, inputs).flatten(0, 1)
    counted = oracle(src, inputs, padding).flatten(0, 1)
    told = ""
    for cause, logits, ignored in (("the source's padding does not reach the model", unmasked, PAD),
                                   ("padding among the labels counts", counted, -100)):
        for s in (0.0, 0.1):
            other = F.cross_entropy(logits, labels.flatten(), ignore_index=ignored, label_smoothing=s).item()
            if abs(loss - other) < 1e-4 and abs(other - found[smoothing][0]) > 1e-3:
                told = f". Likely cause: {cause}"
    check(abs(loss - found[smoothing][0]) < 1e-3, f"the loss of the first step is {loss:.5f}, expected "
          f"{found[0.1][0]:.5f} (smoothed) or {found[0.0][0]:.5f} (plain): the one before the update{told}")


@pytest.mark.weight(3)
def test_clips(train_step, Transformer, in_box, rng):
    """A gradient whose norm is above 1 is scaled to norm 1, all parameters by the same factor."""
    for _ in range(2):
        weights, batch = _weights(rng), _batch(rng)
        (returned,), states = in_box(take_steps, train_step, loaded(Transformer, weights, SIZES), [batch], PAD)
        found = _losses_and_gradients(weights, batch)
        gradient = found[_which(found, _loss(returned))][1]
        _compare_move(_moves(*states), gradient, "a step with a large gradient")


@pytest.mark.weight(2)
def test_small_gradient(train_step, Transformer, in_box, rng):
    """A gradient whose norm is below 1 is used as it is."""
    weights, batch = _weights(rng, calm=True), _batch(rng)
    (returned,), states = in_box(take_steps, train_step, loaded(Transformer, weights, SIZES), [batch], PAD)
    found = _losses_and_gradients(weights, batch)
    gradient = found[_which(found, _loss(returned))][1]
    if _norm(gradient) < 0.95:
        _compare_move(_moves(*states), gradient, f"a step with a gradient of norm {_norm(gradient):.2f}")


@pytest.mark.weight(3)
def test_second_step(train_step, Transformer, in_box, rng):
    """The second step uses the gradient at the new weights alone: nothing is left from the first."""
    weights, batches = _weights(rng, calm=True), [_batch(rng), _batch(rng, (2, 4, 4), (3, 5, 1))]
    returned, states = in_box(take_steps, train_step, loaded(Transformer, weights, SIZES), batches, PAD, 0.5)
    check(len(returned) == 2 and len(states) == 3, "two steps were asked for")
    found = _losses_and_gradients(_named(states[1], weights), batches[1])
    loss = _loss(returned[1], "the loss of the second step")
    smoothing = _which(found, loss)
    check(abs(loss - found[smoothing][0]) < 1e-3, f"the loss of the second step is {loss:.5f}, expected "
          f"{found[smoothing][0]:.5f}: the loss of its own batch at the weights that the first step left")
    moves = {name: 2 * move for name, move in _moves(states[1], states[2]).items()}  # the rate is 0.5
    first = _losses_and_gradients(weights, batches[0])[smoothing][1]
    piled = {name: grad + first[name] for name, grad in found[smoothing][1].items()}
    scale = min(1.0, 1 / _norm(piled))
    name = "encoder_layers.0.ff.fc1.weight"
    if torch.allclose(moves[name], -scale * piled[name], rtol=1e-2, atol=1e-5):
        raise Wrong("the update of the second step adds the gradient of the first: clear the gradients in every step")
    _compare_move(moves, found[smoothing][1], "the second step")


OTHER = 5  # another pad_id, so that 0 is a word


@pytest.mark.weight(2)
def test_pad_id(train_step, Transformer, in_box, rng):
    """pad_id is an argument, and of the source's tokens src_padding alone tells which are padding."""
    weights, (src, padding, inputs, labels) = _weights(rng), _batch(rng)
    labels = torch.where(labels == OTHER, 3, labels).masked_fill(labels == PAD, OTHER)
    labels[0, 1], labels[1, 0] = 0, 0  # words
    src = src.masked_fill(padding, OTHER)
    src[0, 1], src[2, 2] = OTHER, OTHER  # words that have the number of the padding
    batch = src, padding, inputs, labels
    (returned,), _ = in_box(take_steps, train_step, loaded(Transformer, weights, SIZES), [batch], OTHER)
    loss, found = _loss(returned), _losses_and_gradients(weights, batch, OTHER)
    expected = found[_which(found, loss)][0]
    told = ""
    for cause, other, ignored in (
        ("the labels' padding is looked for with another number than pad_id", batch, PAD),
        ("the source's padding is taken from its tokens and not from src_padding",
         (src, src == OTHER, inputs, labels), OTHER),
    ):
        wrong = _losses_and_gradients(weights, other, ignored)
        if abs(loss - expected) > 1e-3 and min(abs(loss - value) for value, _ in wrong.values()) < 1e-4:
            told = f". Likely cause: {cause}"
    check(abs(loss - expected) < 1e-3, f"the loss with pad_id = {OTHER} is {loss:.5f}, expected {expected:.5f}: 0 is "
          f"a word here, and so is a {OTHER} in the source where src_padding is False{told}")


def test_old_gradients(train_step, Transformer, in_box, rng):
    """Gradients that stand in the parameters before the step do not get into it."""
    weights, batch, old = _weights(rng), _batch(rng), 0.5
    model = loaded(Transformer, weights, SIZES)
    (returned,), states = in_box(take_steps, train_step, model, [batch], PAD, 1.0, False, old)
    found = _losses_and_gradients(weights, batch)
    gradient = found[_which(found, _loss(returned))][1]
    moves, name = _moves(*states), "encoder_layers.0.ff.fc1.weight"
    piled = {key: grad + old for key, grad in gradient.items()}
    if name in moves and torch.allclose(moves[name], -piled[name] / max(1.0, _norm(piled)), rtol=1e-2, atol=1e-5):
        raise Wrong("gradients that were there before the step are part of its update: clear them before backward, and "
                    "not only after the step")
    _compare_move(moves, gradient, "a step of a model with old gradients")


@pytest.mark.weight(0.5)
def test_float32(train_step, Transformer, in_box, rng):
    """A model in float32 is trained in float32 on a CPU: its losses are right to five digits."""
    weights, batches = _weights(rng), [_batch(rng) for _ in range(4)]
    model = loaded(Transformer, weights, SIZES)
    model.float()
    returned, _ = in_box(take_steps, train_step, model, batches, PAD, 0.0)
    for batch, value in zip(batches, returned, strict=True):
        loss, found = _loss(value), _losses_and_gradients(weights, batch)
        expected = found[_which(found, loss)][0]
        check(abs(loss - expected) < 5e-4 * max(1.0, expected), f"the loss of a model in float32 is {loss:.5f}, "
              f"expected {expected:.5f}: is it computed in a shorter type? On a CPU nothing is cast")


def test_training_mode(train_step, fit, Transformer, in_box, rng):
    """Training is done in training mode: with dropout, the loss of one batch varies while the weights rest."""
    weights, batch = _weights(rng), _batch(rng)
    model = loaded(Transformer, weights, SIZES, dropout=0.5)
    model.train()
    returned, _ = in_box(take_steps, train_step, model, [batch] * 3, PAD, 0.0)
    losses = [_loss(value) for value in returned]
    check(max(losses) - min(losses) > 1e-6, "three steps with rate 0 and dropout 0.5 on a model in training mode give "
          "the same loss: dropout is off while you train")
    model.eval()
    returned, _ = in_box(take_steps, train_step, model, [batch] * 3, PAD, 0.0)
    losses = [_loss(value) for value in returned]
    if max(losses) - min(losses) <= 1e-6:  # then it is for fit to put the model into training mode
        model.eval()
        in_box(call_fit, fit, model, [batch], PAD, 0.0)
        check(model.training, "a model that was in evaluation mode, say after decoding, is trained without its "
              "dropout: call model.train()")


@pytest.mark.weight(2)
def test_overfits(train_step, Transformer, in_box, rng):
    """Forty steps with Adam on one small batch bring the loss close to its minimum."""
    weights, batch, steps = _weights(rng, calm=True), _batch(rng), 40
    returned, states = in_box(take_steps, train_step, loaded(Transformer, weights, SIZES), [batch] * steps, PAD, 0.03,
                              True)
    check(len(returned) == steps and len(states) == 3, f"{steps} steps were asked for")
    told = [_loss(value) for value in returned]
    (first, _), (late, _), (last, right) = (_measured(_named(state, weights), batch) for state in states)
    smoothing = min(first, key=lambda each: abs(first[each] - told[0]))
    check(last[smoothing] < 0.75 * first[smoothing] and right > 0.85, f"by the weights, {steps} steps of Adam on one "
          f"batch of nine tokens bring the loss from {first[smoothing]:.3f} to {last[smoothing]:.3f}, and {right:.0%} "
          "of the tokens are right then: a model learns that by heart")
    for which, loss, expected in (("first", told[0], first[smoothing]), ("last", told[-1], late[smoothing])):
        check(abs(loss - expected) < 1e-3, f"the loss of the {which} of {steps} steps is {loss:.5f}, and by the "
              f"weights before that step it is {expected:.5f}")


@pytest.mark.weight(2)
def test_fit(fit, Transformer, in_box, rng):
    """fit(model, batches) trains: the loss on its batches falls."""
    weights, batch = _weights(rng, calm=True), _batch(rng)
    model = loaded(Transformer, weights, SIZES)
    in_box(call_fit, fit, model, [batch] * 40, PAD, 0.02)
    before, after = (_measured(each, batch)[0][0.0] for each in (weights, _named(model.state_dict(), weights)))
    check(after < before - 5e-4, f"the loss on the one batch that fit saw 40 times went from {before:.4f} to "
          f"{after:.4f} by the model's weights: it should fall")


@pytest.mark.weight(2)
def test_fit_takes_every_batch(fit, Transformer, in_box, rng):
    """fit makes a step for each of its batches: of the source's tokens, each batch has one that the others lack."""
    weights = _weights(rng, calm=True)
    model = loaded(Transformer, weights, SIZES)
    tokens = (1 + torch.randperm(SIZES[0] - 1, generator=rng)[:5]).tolist()
    batches = []
    for token in tokens:
        _, padding, inputs, labels = _batch(rng)
        batches.append((torch.full(padding.shape, token).masked_fill(padding, PAD), padding, inputs, labels))
    first = [batches[0]] * 18  # a schedule of one's own may have a tenth of the steps for its warm-up
    got = in_box(call_fit, fit, model, first + batches, PAD, 0.02)
    moved = (model.state_dict()["src_embed.weight"].detach() - weights["src_embed.weight"]).abs().amax(1)
    still = [number for number, token in enumerate(tokens, 1) if not moved[token] > 0]
    if still == list(range(2, len(tokens) + 1)):
        stopped = isinstance(got, list) and len(got) == 1
        raise Wrong(f"of {18 + len(tokens)} batches, fit trains on the first alone: the words that only the others "
                    "have were not trained. " + ("Does a return stand inside the loop?" if stopped else "Is it taken "
                    "again and again?"), mistake="fit-returns-in-the-loop" if stopped else None)
    check(not still, f"fit got {18 + len(tokens)} batches, and the word that only batch "
          f"{18 + still[0] if still else 0} has was not trained: there is a step for each batch")


@pytest.mark.weight(1.5)
def test_fit_losses(fit, Transformer, in_box, rng):
    """fit gives a list of the losses: one for each step, in the order of the batches."""
    weights = _weights(rng)
    model = loaded(Transformer, weights, SIZES)
    sizes = ((5, 3), (2, 6), (4, 4), (1, 2), (3, 7))
    batches = [_batch(rng, (a, 1), (b, 2)) for a, b in sizes]
    got = in_box(call_fit, fit, model, batches, PAD, 0.0)  # with a rate of 0 the weights rest
    check(isinstance(got, list), f"fit gives {got}, expected a list of the losses")
    check(len(got) == len(batches), f"fit got {len(batches)} batches and gives {len(got)} losses: one for each step")
    losses = [_loss(value, f"loss {i} of fit's list") for i, value in enumerate(got)]
    found = [_measured(weights, batch)[0] for batch in batches]
    right = {smoothing: [each[smoothing] for each in found] for smoothing in SMOOTHINGS}
    expected = min(right.values(), key=lambda values: abs(values[0] - losses[0]))
    if not torch.equal(model.state_dict()["src_embed.weight"].detach(), weights["src_embed.weight"]):
        losses, expected = losses[:1], expected[:1]  # a fit with a rate of its own: later weights are unknown here
    for values in right.values() if len(losses) == len(batches) else ():
        if torch.allclose(torch.tensor(sorted(losses)), torch.tensor(sorted(values)), atol=1e-3):
            expected = values
    for i, (loss, value) in enumerate(zip(losses, expected, strict=True)):
        check(abs(loss - value) < 1e-3, f"loss {i} of fit's list is {loss:.5f}, and that of batch {i} is {value:.5f} "
              "(the rate is 0, so that the weights rest): every step has its own loss, and the batches come in turn")


def _noam(step, warmup):
    return SIZES[2] ** -0.5 * min(step**-0.5, step * warmup**-1.5)


def _descended(weights, batches, rates, first):
    """The losses and the weights of plain gradient descent with these rates; `first` is the loss that is told."""
    smoothing, losses = None, []
    for batch, rate in zip(batches, rates, strict=True):
        found = _losses_and_gradients(weights, batch)
        smoothing = _which(found, first) if smoothing is None else smoothing
        loss, gradient = found[smoothing]
        step = rate * min(1.0, 1 / _norm(gradient))
        weights = {name: value - step * gradient[name] for name, value in weights.items()}
        losses.append(loss)
    return losses, weights


@pytest.mark.weight(2)
def test_fit_epochs_and_rates(fit, Transformer, in_box, rng):
    """Where fit has the arguments of the stub: all batches `epochs` times, and the rate of each step in all groups."""
    weights, start = _weights(rng, calm=True), int(torch.randint(3, 9, (1,), generator=rng))
    batches = [_batch(rng, (2, 1), (3, 2)), _batch(rng, (1, 3), (2, 4))]
    for epochs, warmup, first in ((3, 4, 0), (2, 10, start)):
        model = loaded(Transformer, weights, SIZES)
        schedule = {"epochs": epochs, "rate": 0.3, "warmup": warmup, "start": first}
        watched = in_box(watch_fit, fit, model, batches, PAD, schedule)
        if watched is None:
            return  # the arguments behind `batches` are free
        losses, rates = watched
        told = f"fit with {len(batches)} batches, epochs={epochs}, warmup={warmup} and start={first}"
        check(bool(rates), f"{told} makes no step with the optimizer that it is given")
        steps = epochs * len(batches)
        check(isinstance(losses, list), f"{told} gives {losses}, expected a list of the losses")
        check(len(rates) == steps and len(losses) == steps, f"{told} makes {len(rates)} steps and gives {len(losses)} "
              f"losses, expected {steps}: the batches are run through `epochs` times")
        for n, (one, other) in enumerate(rates, 1):
            check(abs(one - other) < 1e-9, f"{told}: at step {n} the optimizer's groups have the rates {one:.6f} and "
                  f"{other:.6f}: set the rate of all param_groups")
        got, expected = ([row[0] for row in rates], [0.3 * _noam(first + n, warmup) for n in range(1, steps + 1)])
        causes = {
            "the first step has the number start + 1, and you begin with start":
                [0.3 * _noam(max(first + n, 1), warmup) for n in range(steps)],
            "the steps are counted anew in each epoch":
                [0.3 * _noam(first + 1 + n % len(batches), warmup) for n in range(steps)],
            "`start` is ignored": [0.3 * _noam(n, warmup) for n in range(1, steps + 1)],
            "`rate` is ignored": [_noam(first + n, warmup) for n in range(1, steps + 1)],
        }
        if max(abs(a - b) for a, b in zip(got, expected, strict=True)) > 1e-6:
            fits = [cause for cause, values in causes.items()
                    if max(abs(a - b) for a, b in zip(got, values, strict=True)) < 1e-6]
            n = next(n for n, (a, b) in enumerate(zip(got, expected, strict=True)) if abs(a - b) > 1e-6)
            raise Wrong(f"{told}: the rate of step {n + 1} is {got[n]:.6f}, expected {expected[n]:.6f}"
                        + (f". Likely cause: {fits[0]}." if len(fits) == 1 else ""))
        right, reached = _descended(weights, batches * epochs, expected, _loss(losses[0]))
        for n, (value, loss) in enumerate(zip(losses, right, strict=True), 1):
            check(abs(_loss(value) - loss) < 1e-3, f"{told}: the loss of step {n} is {_loss(value):.5f}, expected "
                  f"{loss:.5f}")
        state = _named(model.state_dict(), weights)
        for name, value in reached.items():
            same(state[name], value, f"`{name}` after {told} and plain gradient descent", rtol=1e-3, atol=1e-5)


def test_optimizer_of_its_own(fit, Transformer, in_box, rng):
    """Where fit has the arguments of the stub, `optimizer=None` means Adam with `betas=BETAS`."""
    made = in_box(optimizer_of_fit, fit, loaded(Transformer, _weights(rng, calm=True), SIZES), _batch(rng), PAD)
    if made is not None:
        kind, betas = made
        check(kind.startswith("Adam"), f"without an optimizer fit takes {kind}, and Adam is asked for")
        check(len(betas) == 2 and all(abs(a - b) < 1e-9 for a, b in zip(betas, BETAS, strict=True)),
              f"without an optimizer fit takes {kind} with betas {betas}; betas=BETAS, {list(BETAS)}, is asked for")


def test_fit_goes_on(fit, Transformer, in_box, rng):
    """fit makes a step for every batch, also when the loss is small already or has ceased to fall."""
    weights, (src, *rest), steps = _weights(rng, calm=True), _batch(rng, (1,), (2,)), 80
    model = loaded(Transformer, weights, SIZES)
    word, other = (1 + torch.randperm(SIZES[0] - 1, generator=rng)[:2]).tolist()
    batches = [(torch.full_like(src, word), *rest)] * (steps - 1) + [(torch.full_like(src, other), *rest)]
    losses = in_box(call_fit, fit, model, batches, PAD, 1.0)
    check(isinstance(losses, list), f"fit gives {losses}, expected a list of the losses")
    moved = model.state_dict()["src_embed.weight"].detach()[other] != weights["src_embed.weight"][other]
    check(len(losses) == steps and moved.any(), f"fit got {steps} batches and gives {len(losses)} losses, and the word "
          f"that only the last batch has was {'' if moved.any() else 'not '}trained: there is a step for each batch, "
          "however small the loss")
