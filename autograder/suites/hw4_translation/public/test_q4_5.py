"""Public checks of q4_5: train_step and fit."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number
from course_utils.hw4.decoding_weights import lively_weights, put_weights
from course_utils.hw4.training_runs import call_fit, take_steps

SIZES = (7, 8, 8, 2, 12, 1)
PAD = 0
BATCH = (
    torch.tensor([[5, 1, 4, 2], [2, 5, 0, 0], [4, 0, 0, 0]]),  # src
    torch.arange(4) >= torch.tensor([4, 2, 1])[:, None],  # src_padding
    torch.tensor([[1, 5, 3, 7], [1, 6, 0, 0], [1, 4, 4, 0]]),  # inputs
    torch.tensor([[5, 3, 7, 2], [6, 2, 0, 0], [4, 4, 2, 0]]),  # labels
)
OTHER = tuple(part.flip(0) for part in BATCH)


def _model(Transformer, calm=False, **options):
    weights = lively_weights(45, *SIZES)
    if calm:
        for name in ("tgt_embed.weight", "decoder_norm.weight", "decoder_norm.bias"):
            weights[name] *= 0.1
    return put_weights(Transformer(*SIZES, **options), weights)


def _run(train_step, model, batches, rate=1.0, adam=False):
    """The losses, and the norm of the update of each step."""
    returned, states = run_beside(take_steps, train_step, model, list(batches), PAD, rate, adam)
    moves = []
    for before, after in zip(states, states[1:], strict=False):
        moves.append(float(sum((after[name] - before[name]).square().sum() for name in before)) ** 0.5)
    return returned, moves


def _number(value):
    check(value != "a tensor with its graph", "the loss is a tensor that hangs on its graph; .item() gives a float")
    return number(value, "the loss")


def test_float_before_the_update(train_step, Transformer):
    """It returns the loss before the update as a float: with rate 0 or 1, the first loss is the same."""
    first, _ = _run(train_step, _model(Transformer), [BATCH], rate=0.0)
    again, _ = _run(train_step, _model(Transformer), [BATCH], rate=1.0)
    resting, moving = _number(first[0]), _number(again[0])
    check(abs(resting - moving) < 1e-6, f"the loss is {resting:.4f} when the weights rest, and {moving:.4f} when they "
          "move: return the loss before the update")


def test_clipping(train_step, Transformer):
    """With rate 1 and plain gradient descent, an update is never longer than 1."""
    _, (move,) = _run(train_step, _model(Transformer), [BATCH])
    check(move <= 1.001, f"the update has norm {move:.3f}: clip the norm of all gradients together to 1")
    check(move >= 0.9, f"the update has norm {move:.3f}, and the gradient here is longer than 1")


def test_learns_by_heart(train_step, Transformer):
    """Forty steps of Adam on one small batch bring the loss down."""
    losses, _ = _run(train_step, _model(Transformer, calm=True), [BATCH] * 40, rate=0.02, adam=True)
    first, last = _number(losses[0]), _number(losses[-1])
    check(last < 0.75 * first, f"on one batch the loss goes from {first:.3f} to {last:.3f} in 40 steps")


def probe_loss(train_step, Transformer):
    return _run(train_step, _model(Transformer), [BATCH])[0]


def probe_is_float(train_step, Transformer):
    return type(_run(train_step, _model(Transformer), [BATCH])[0][0]).__name__ in ("float", "int")


def probe_move(train_step, Transformer):
    return _run(train_step, _model(Transformer), [BATCH])[1]


def probe_small_move(train_step, Transformer):
    return _run(train_step, _model(Transformer, calm=True), [BATCH])[1]


def probe_resting(train_step, Transformer):
    return _run(train_step, _model(Transformer), [BATCH, OTHER, BATCH], rate=0.0)[0]


def probe_three_steps(train_step, Transformer):
    return _run(train_step, _model(Transformer), [BATCH, OTHER, BATCH], rate=0.1)


def probe_three_calm_steps(train_step, Transformer):
    return _run(train_step, _model(Transformer, calm=True), [BATCH, OTHER, BATCH], rate=0.5)


def _parts_moved(train_step, Transformer, calm):
    _, (before, after) = run_beside(take_steps, train_step, _model(Transformer, calm), [BATCH], PAD)
    return [float((after[name] - before[name]).norm()) for name in sorted(before)]


def probe_parts_moved(train_step, Transformer):
    return _parts_moved(train_step, Transformer, False)


def probe_parts_moved_calmly(train_step, Transformer):
    return _parts_moved(train_step, Transformer, True)


def probe_dropout_is_on(train_step, Transformer):
    model = _model(Transformer, dropout=0.5)
    model.train()
    losses, _ = _run(train_step, model, [BATCH] * 3, rate=0.0)
    return bool(max(losses) - min(losses) > 1e-9)


def probe_training_mode_is_set(train_step, Transformer):
    losses, _ = _run(train_step, _model(Transformer, dropout=0.5), [BATCH] * 3, rate=0.0)
    return bool(max(losses) - min(losses) > 1e-9)


def probe_by_heart(train_step, Transformer):
    losses, _ = _run(train_step, _model(Transformer, calm=True), [BATCH] * 12, rate=0.02, adam=True)
    return losses[-1] < 0.9 * losses[0]


def probe_fit_learns(fit, Transformer):
    model = _model(Transformer, calm=True)
    before = model.state_dict()["src_embed.weight"].clone()
    run_beside(call_fit, fit, model, [BATCH] * 3, PAD, 0.02)
    return bool((model.state_dict()["src_embed.weight"] - before).abs().max() > 1e-9)


def probe_fit_takes_every_batch(fit, Transformer):
    model = _model(Transformer, calm=True)
    before = model.state_dict()["src_embed.weight"].clone()
    last = (torch.tensor([[6, 6]]), torch.zeros(1, 2, dtype=torch.bool), torch.tensor([[1, 3]]), torch.tensor([[3, 2]]))
    run_beside(call_fit, fit, model, [BATCH, last], PAD, 0.02)  # token 6 of the source is in the last batch alone
    return bool((model.state_dict()["src_embed.weight"] - before)[6].abs().max() > 1e-9)


def probe_other_pad_id(train_step, Transformer):
    src, padding, inputs, labels = BATCH
    labels = torch.tensor([[5, 0, 7, 2], [6, 2, 3, 3], [0, 4, 2, 3]])  # 3 is padding, and 0 a word
    return _number(run_beside(take_steps, train_step, _model(Transformer), [(src, padding, inputs, labels)], 3)[0][0])


def _parts_after_old_gradients(train_step, Transformer, old):
    model = _model(Transformer)
    _, (before, after) = run_beside(take_steps, train_step, model, [BATCH], PAD, 1.0, False, old)
    return [float((after[name] - before[name]).norm()) for name in sorted(before)]


def probe_old_gradients(train_step, Transformer):
    return _parts_after_old_gradients(train_step, Transformer, 0.5)


def probe_large_old_gradients(train_step, Transformer):
    return _parts_after_old_gradients(train_step, Transformer, -3.0)


def _fit_losses(fit, Transformer, batches):
    return run_beside(call_fit, fit, _model(Transformer, calm=True), batches, PAD, 0.0)


def probe_fit_losses(fit, Transformer):
    losses = _fit_losses(fit, Transformer, [BATCH, OTHER, tuple(part[1:] for part in BATCH)])
    return losses if isinstance(losses, str) else len(losses)


def probe_fit_losses_at_rest(fit, Transformer):
    return _fit_losses(fit, Transformer, [tuple(part[i:] for part in BATCH) for i in range(3)])
