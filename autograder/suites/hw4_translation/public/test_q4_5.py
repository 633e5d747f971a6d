"""Public checks of q4_5: train_step and fit."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, number
from course_utils.hw4.decoding_weights import lively_weights, put_weights
from course_utils.hw4.training_runs import call_fit, counts_epochs, optimizer_of_fit, take_steps, watch_fit
from course_utils.hw4.translation import BETAS

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
    # keeps: float
    first, _ = _run(train_step, _model(Transformer), [BATCH], rate=0.0)
    again, _ = _run(train_step, _model(Transformer), [BATCH], rate=1.0)
    resting, moving = _number(first[0]), _number(again[0])
    check(abs(resting - moving) < 1e-6, f"the loss is {resting:.4f} when the weights rest, and {moving:.4f} when they "
          "move: return the loss before the update")


def test_clipping(train_step, Transformer):
    """With rate 1 and plain gradient descent, an update is never longer than 1."""
    # keeps: clip
    _, (move,) = _run(train_step, _model(Transformer), [BATCH])
    check(move <= 1.001, f"the update has norm {move:.3f}: clip the norm of all gradients together to 1")
    check(move >= 0.9, f"the update has norm {move:.3f}, and the gradient here is longer than 1")


def test_learns_by_heart(train_step, Transformer):
    """Forty steps of Adam on one small batch bring the loss down."""
    # keeps: step, by-heart
    losses, _ = _run(train_step, _model(Transformer, calm=True), [BATCH] * 40, rate=0.02, adam=True)
    first, last = _number(losses[0]), _number(losses[-1])
    check(last < 0.75 * first, f"on one batch the loss goes from {first:.3f} to {last:.3f} in 40 steps")


def test_gradients_left_over(train_step, Transformer):
    """Gradients that somebody left in the parameters, or that an earlier step left, have no part in a step."""
    # keeps: clear
    fresh, left = (run_beside(take_steps, train_step, _model(Transformer), [BATCH, OTHER], PAD, 0.1, False, old)[1]
                   for old in (None, 0.5))
    gap = max(float((fresh[1][name] - left[1][name]).abs().max()) for name in fresh[1])
    check(gap < 1e-9, "gradients that were there before the first step get into it: clear them before backward")
    _, (_, alone) = run_beside(take_steps, train_step, _at(Transformer, fresh[1]), [OTHER], PAD, 0.1)
    gap = max(float((fresh[2][name] - alone[name]).abs().max()) for name in alone)
    check(gap < 1e-9, "the second of two steps is not what it is alone: the gradients of the first are still in it")


def _at(Transformer, state):
    """The model with these parameters."""
    return put_weights(Transformer(*SIZES), {name: state[name] for name in lively_weights(45, *SIZES) if name in state}
                       | ({} if "tgt_embed.weight" in state else {"tgt_embed.weight": _tied(state)}))


def _tied(state):
    """The target embedding of a model that has it under the name of its output layer."""
    return next(value for name, value in state.items() if name not in lively_weights(45, *SIZES))


def test_short_gradients_stay(train_step, Transformer):
    """A gradient shorter than 1 is left as it is: it is not divided by its norm."""
    # keeps: clip
    _, (move,) = _run(train_step, _model(Transformer, calm=True), [BATCH])
    check(0 < move < 0.99, f"the update of a calm model has norm {move:.3f}, and its gradient is shorter than 1: "
          "divide by the norm only where it is larger than 1")


def test_what_the_loss_sees(train_step, Transformer):
    """Padding counts for nothing, on both sides and under any number; the words that the decoder is given count."""
    # keeps: padding, batch
    src, padding, inputs, labels = BATCH

    def loss(batch, pad=PAD):
        return _number(run_beside(take_steps, train_step, _model(Transformer), [batch], pad, 0.0)[0][0])

    plain = loss(BATCH)
    other = loss((torch.where(padding, (src + 3) % 7, src), padding, inputs, labels))
    check(abs(other - plain) < 1e-6, f"other tokens in the source's padding change the loss from {plain:.4f} to "
          f"{other:.4f}: does src_padding reach the model?")
    longer = torch.cat([labels, torch.zeros_like(labels)[:, :2]], 1)
    more = loss((src, padding, torch.cat([inputs, inputs[:, :2]], 1), longer))
    check(abs(more - plain) < 1e-6, f"more padding behind the labels changes the loss from {plain:.4f} to {more:.4f}: "
          "does pad_id reach the loss?")
    renamed = loss((src, padding, inputs, labels.masked_fill(labels == PAD, -7)), -7)
    check(abs(renamed - plain) < 1e-6, f"with -7 for padding the loss is {renamed:.4f}, and {plain:.4f} with 0: look "
          "for pad_id, whatever it is")
    fed = loss((src, padding, torch.where(labels == PAD, inputs, (inputs + 1) % 8), labels))
    check(abs(fed - plain) > 1e-6, "other words in `inputs` leave the loss as it is: the decoder reads the inputs, and "
          "is asked for the labels")


def test_dropout_while_training(fit, Transformer):
    """A model that comes in evaluation mode is trained with its dropout on."""
    # keeps: mode
    losses = run_beside(call_fit, fit, _model(Transformer, dropout=0.5), [BATCH] * 3, PAD, 0.0)
    values = [_number(loss) for loss in losses]
    check(max(values) - min(values) > 1e-9, "three steps on one batch give the same loss, and the model has dropout: "
          "call model.train()")


def test_fit_runs(fit, Transformer):
    """fit trains on every batch, in order, `epochs` times over, and gives a list with the loss of each step."""
    # keeps: every-batch, losses, epochs
    model = _model(Transformer, calm=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    last = (torch.tensor([[6, 6]]), torch.zeros(1, 2, dtype=torch.bool), torch.tensor([[1, 3]]), torch.tensor([[3, 2]]))
    losses = run_beside(call_fit, fit, model, [BATCH, OTHER, last], PAD, 0.02)
    check(isinstance(losses, list) and len(losses) == 3, f"for three batches fit gives {losses}: one loss for each "
          "step is asked for, in a list")
    for loss in losses:
        _number(loss)
    moved = (model.state_dict()["src_embed.weight"] - before["src_embed.weight"]).abs().amax(1)  # [7]
    check(moved[5] > 1e-9, "after fit the model is as it was: nothing makes a step")
    check(moved[6] > 1e-9, "the last batch was not trained on: word 6 of the source is in it alone, and has not moved")
    if run_beside(counts_epochs, fit):
        twice = run_beside(call_fit, fit, _model(Transformer, calm=True), [BATCH, OTHER], PAD, 0.02, 2)
        check(isinstance(twice, list) and len(twice) == 4, f"with two batches and epochs=2 fit gives {twice}: the "
              "batches are run through `epochs` times, which makes four steps here")


def _noam(step, warmup):
    return SIZES[2] ** -0.5 * min(step**-0.5, step * warmup**-1.5)


def test_rates_of_fit(fit, Transformer):
    """With the stub's arguments every step has its rate, in all groups, counted on from start; the default is Adam."""
    # keeps: schedule, adam
    schedule = {"epochs": 2, "rate": 0.3, "warmup": 5, "start": 2}
    watched = run_beside(watch_fit, fit, _model(Transformer, calm=True), [BATCH, OTHER], PAD, schedule)
    if watched is None:
        return  # the arguments behind `batches` are free
    _, rates = watched
    check(len(rates) == 4, f"with two batches and epochs=2 the given optimizer makes {len(rates)} steps, expected 4")
    for n, (one, other) in enumerate(rates, 1):
        check(abs(one - other) < 1e-9, f"at step {n} the optimizer's two groups have the rates {one:.5f} and "
              f"{other:.5f}: set the rate of all param_groups")
        expected = 0.3 * _noam(2 + n, 5)
        check(abs(one - expected) < 1e-6, f"with rate=0.3, warmup=5 and start=2 the rate of step {n} is {one:.5f}, "
              f"expected rate * noam_rate({2 + n}, d_model, warmup) = {expected:.5f}")
    kind, betas = run_beside(optimizer_of_fit, fit, _model(Transformer, calm=True), BATCH, PAD)
    check(kind.startswith("Adam"), f"without an optimizer fit takes {kind}, and Adam is asked for")
    check(len(betas) == 2 and all(abs(a - b) < 1e-9 for a, b in zip(betas, BETAS, strict=True)),
          f"without an optimizer fit takes {kind} with betas {betas}; betas=BETAS, {list(BETAS)}, is asked for")


def test_losses_of_fit(fit, Transformer):
    """Each entry of the list is the loss of its own step, in the order of the batches."""
    # keeps: losses
    batches = [tuple(part[i:] for part in BATCH) for i in range(3)]

    def rest(chosen):
        losses = run_beside(call_fit, fit, _model(Transformer, calm=True), chosen, PAD, 0.0)
        check(isinstance(losses, list) and len(losses) == len(chosen), f"fit gives {losses} for {len(chosen)} batches: "
              "there is one loss for each step")
        return [_number(loss) for loss in losses]

    if abs(rest([batches[0]] * 2)[1] - rest([batches[0]])[0]) < 1e-9:  # where a rate of 0 lets the model rest
        alone, together = [rest([batch])[0] for batch in batches], rest(batches)
        check(all(abs(a - b) < 1e-6 for a, b in zip(alone, together, strict=True)), f"three batches give the losses "
              f"{[round(x, 4) for x in together]}; alone they give {[round(x, 4) for x in alone]}")


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


def probe_rates(fit, Transformer):
    schedule = {"epochs": 2, "rate": 0.3, "warmup": 5, "start": 2}
    watched = run_beside(watch_fit, fit, _model(Transformer, calm=True), [BATCH, OTHER], PAD, schedule)
    return "as it likes" if watched is None else torch.tensor(watched[1], dtype=torch.float64)


def probe_rates_from_the_start(fit, Transformer):
    schedule = {"epochs": 1, "rate": 1.0, "warmup": 2, "start": 0}
    watched = run_beside(watch_fit, fit, _model(Transformer, calm=True), [BATCH, OTHER, BATCH], PAD, schedule)
    return "as it likes" if watched is None else torch.tensor(watched[1], dtype=torch.float64)


def probe_optimizer(fit, Transformer):
    made = run_beside(optimizer_of_fit, fit, _model(Transformer, calm=True), BATCH, PAD)
    return "as it likes" if made is None else [made[0], *map(str, made[1])]


def probe_masked_words(train_step, Transformer):
    src, padding, inputs, labels = BATCH
    hidden = padding | torch.tensor([[False, False, False, True], [False] * 4, [False] * 4])
    batches = [(src + shift, hidden, inputs, labels) for shift in (0, 1)]
    runs = [run_beside(take_steps, train_step, _model(Transformer), [batch], PAD, 0.0) for batch in batches]
    return [_number(losses[0]) for losses, _ in runs]


def probe_epochs(fit, Transformer):
    if not run_beside(counts_epochs, fit):
        return "as many as it likes"
    losses = run_beside(call_fit, fit, _model(Transformer, calm=True), [BATCH, OTHER], PAD, 0.02, 3)
    return losses if isinstance(losses, str) else len(losses)
