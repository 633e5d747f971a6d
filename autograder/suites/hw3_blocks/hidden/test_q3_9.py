"""Hidden checks of q3_9: EncoderClassifier, judged by what it does."""

import pytest
import torch

from autograder.suites.devices import device_ready
from autograder.suites.learning import in_another_box
from autograder.suites.secret_race import SecretRace
from course_utils.checking.compare import check, same, tensor
from course_utils.hw3.patients import D_FF, D_MODEL, N_HEADS, N_LAYERS, RUNNERS, train_patient
from course_utils.hw3.patients import LENGTHS as RACE
from course_utils.hw3.patients import VOCAB as RACE_VOCAB

VOCAB, D, HEADS, WIDTH, LAYERS, CLASSES, LONGEST = 13, 16, 4, 24, 2, 5, 10
SIZES = (VOCAB, D, HEADS, WIDTH, LAYERS, CLASSES, LONGEST)
LENGTHS = (7, 4, 2, 1)  # of the four sequences; the rest of each row is padding
STEPS, BAR = 300, 0.45  # guessing gives .25, untrained models .32 at most, right ones .66 to .97 (7 designs, 25 seeds)
THREE = 0.15  # of the races of three runners: right models have .62 or more; who guesses names seldom has more than two
LEARNED = 0.6  # a loss that lies far below what .45 asks for (guessing has 1.39): the run may end there


def _lively(EncoderClassifier, rng, amount=0.2, sizes=SIZES):
    """A model in evaluation mode with every parameter stirred: nothing is zero or equal by initialisation."""
    model = EncoderClassifier(*sizes)
    model.eval()
    state = dict(model.state_dict())
    shapes = model.parameter_shapes()
    for name, shape in shapes.items():
        noise = torch.randn(tuple(shape), generator=rng, dtype=torch.float64).to(state[name].dtype)
        state = _moved(shapes, state, name, amount * noise)
    model.load_state_dict(state)
    return model


def _moved(first, state, name, step):
    """The state with a step added to one parameter, under every name that it has (tied weights have two).

    `first` are the names that parameters have.
    """
    old = state[name]
    names = [key for key, value in state.items() if key not in first and value.dtype == old.dtype and value.equal(old)]
    return {**state, **dict.fromkeys([name, *names], old + step)}


def _precise(model):
    """Turn the model to float64 if it can run in it; returns the tolerance that suits its precision."""
    model.double()
    try:
        _run(model, torch.zeros(1, 3, dtype=torch.long), torch.tensor([[False, False, True]]))
    except Exception:  # a model that makes float32 tensors inside is judged in float32
        model.float()
        return {"rtol": 1e-3, "atol": 1e-4}
    return {"rtol": 1e-6, "atol": 1e-8}


def _run(model, ids, padding=None, classes=CLASSES):
    got = model(ids) if padding is None else model(ids, key_padding_mask=padding)
    logits = tensor(got, "the logits", (len(ids), classes))
    check(logits.is_floating_point() and logits.isfinite().all(), "the logits are not finite real numbers")
    return logits


def _batch(rng, first=0, N=7):
    ids = torch.randint(first, VOCAB, (4, N), generator=rng)
    return ids, torch.arange(N) >= torch.tensor(LENGTHS)[:, None]  # True = padding


def test_shapes_of_logits(EncoderClassifier, rng):
    """ids [B, N] give logits [B, n_classes] for any N up to max_len, with and without a mask, at other sizes too."""
    for sizes in (SIZES, (7, 12, 3, 20, 1, 2, 6), (20, 8, 2, 8, 3, 3, 4)):
        model = EncoderClassifier(*sizes)
        model.eval()
        vocab, classes, longest = sizes[0], sizes[5], sizes[6]
        for B, N in ((3, longest), (2, longest - 1), (1, 1), (5, 2)):
            ids = torch.randint(vocab, (B, N), generator=rng)
            ids[0, 0], ids[-1, -1] = 0, vocab - 1
            padding = torch.arange(N) >= torch.randint(1, N + 1, (B, 1), generator=rng)
            for mask in (None, padding):
                _run(model, ids, mask, classes)


def test_logits(EncoderClassifier, rng):
    """The results are logits, before any softmax, and differ between classes and between sequences."""
    ids, padding = _batch(rng)
    logits = _run(_lively(EncoderClassifier, rng), ids, padding).detach()
    one = torch.ones(4, dtype=logits.dtype)
    check(not torch.allclose(logits.sum(-1), one, atol=1e-4), "these are probabilities: logits come before the softmax")
    check(not torch.allclose(logits.exp().sum(-1), one, atol=1e-4), "these are log-probabilities: logits come before "
          "the softmax")
    check((logits - logits.mean(-1, keepdim=True)).abs().max() > 1e-5, "all classes have the same logit")
    check((logits - logits.mean(0)).abs().max() > 1e-5, "all sequences have the same logits")


@pytest.mark.weight(3)
def test_contents_of_padding(EncoderClassifier, rng):
    """Whatever ids stand in the padded part, the logits stay the same; other real ids move them."""
    model, (ids, padding) = _lively(EncoderClassifier, rng), _batch(rng)
    close = _precise(model)
    before = _run(model, ids, padding)
    for _ in range(4):
        junk = torch.where(padding, torch.randint(VOCAB, ids.shape, generator=rng), ids)
        same(_run(model, junk, padding), before, "the logits after a change in the padding (it must be kept out of "
             "every attention and out of the read-out)", **close)
    moved = (_run(model, (ids + 3) % VOCAB, padding) - before).abs().amax(-1)
    check((moved > 1e-6).all(), "other tokens leave the logits as they are")


@pytest.mark.weight(3)
def test_amounts_of_padding(EncoderClassifier, rng):
    """A sequence has the same logits alone, without a mask, and with any amount of padding behind it."""
    model, (ids, padding) = _lively(EncoderClassifier, rng), _batch(rng)
    close = _precise(model)
    together = _run(model, ids, padding)
    for row, length in enumerate(LENGTHS):
        alone = _run(model, ids[row : row + 1, :length])
        same(together[row : row + 1], alone, f"the logits of a sequence of {length} with {7 - length} of padding, "
             "against the same sequence alone", **close)
    more = LONGEST - 7
    longer = torch.cat([ids, torch.randint(VOCAB, (4, more), generator=rng)], 1)
    mask = torch.cat([padding, torch.ones(4, more, dtype=torch.bool)], 1)
    same(_run(model, longer, mask), together, f"the logits with {more} more of padding", **close)


def test_no_mask(EncoderClassifier, rng):
    """No mask, None, and a mask that is False everywhere all say that nothing is padding."""
    model, (ids, padding) = _lively(EncoderClassifier, rng), _batch(rng)
    close = _precise(model)
    none = _run(model, ids)
    same(_run(model, ids, torch.zeros_like(padding)), none, "the logits with a mask of False, against those without a "
         "mask", **close)
    same(model(ids, None), none, "the logits with key_padding_mask=None", **close)
    same(model(ids, padding), _run(model, ids, padding), "the logits with the mask given by position", **close)
    moved = (_run(model, ids, padding) - none).abs().amax(-1)[1:]
    check((moved > 1e-7).all(), "the mask makes no difference")


def test_token_zero(EncoderClassifier, rng):
    """The mask alone says what is padding: id 0 is a token like any other."""
    model = _lively(EncoderClassifier, rng)
    _precise(model)
    ids = torch.tensor([[3, 5, 0, 0]])
    check((_run(model, ids) - _run(model, ids[:, :2])).abs().max() > 1e-7, "without a mask, two tokens of id 0 at the "
          "end do not count: is id 0 taken for padding?")


@pytest.mark.weight(2)
def test_order_of_tokens(EncoderClassifier, rng):
    """The same tokens in another order, the first in its place, give other logits: positions count."""
    model = _lively(EncoderClassifier, rng)
    _precise(model)
    ids = torch.stack([torch.randperm(VOCAB, generator=rng)[:7] for _ in range(4)])  # no token twice
    before = _run(model, ids)
    for order in ([0, 3, 1, 6, 2, 5, 4], [0, 2, 1, 3, 4, 5, 6], [0, 1, 2, 3, 4, 6, 5]):
        moved = (_run(model, ids[:, torch.tensor(order)]) - before).abs().amax(-1)
        check((moved > 1e-6).all(), "the order of the tokens makes no difference: nothing tells the model where a "
              "token stands")


@pytest.mark.weight(2)
def test_every_real_token_counts(EncoderClassifier, rng):
    """Changing any real token moves the logits of its sequence."""
    model, (ids, padding) = _lively(EncoderClassifier, rng), _batch(rng)
    _precise(model)
    before = _run(model, ids, padding)
    for place in range(7):
        other = ids.clone()
        other[:, place] = (other[:, place] + 4) % VOCAB
        moved = (_run(model, other, padding) - before).abs().amax(-1)
        for row, length in enumerate(LENGTHS):
            check(place >= length or moved[row] > 1e-7, f"token {place} of a sequence of {length} moves no logit")


def test_longest(EncoderClassifier, rng):
    """A sequence of max_len tokens works, and its last token counts."""
    model = _lively(EncoderClassifier, rng)
    _precise(model)
    ids = torch.randint(VOCAB, (2, LONGEST), generator=rng)
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 4) % VOCAB
    moved = (_run(model, other) - _run(model, ids)).abs().amax(-1)
    check((moved > 1e-7).all(), f"token {LONGEST - 1} of a sequence of max_len = {LONGEST} does not move the logits")


def test_long_sequences(EncoderClassifier, rng):
    """With a larger max_len, long sequences are read to their end: any token counts, and so does its place."""
    longest = int(torch.randint(34, 44, (1,), generator=rng))
    model = _lively(EncoderClassifier, rng, sizes=(*SIZES[:-1], longest))
    close = _precise(model)
    for N, real in ((longest, longest), (longest, longest - 11), (longest - 5, longest - 5)):
        ids = torch.randint(VOCAB, (2, N), generator=rng)
        ids[:, real - 1] = (ids[:, real - 2] + 3) % VOCAB  # the last two differ
        padding = None if real == N else (torch.arange(N) >= real).expand(2, N).contiguous()
        before, told = _run(model, ids, padding), f"{real} tokens with {N - real} of padding, for max_len = {longest}"
        for place in (real - 1, real - 2, real // 2, 0):
            other = ids.clone()
            other[:, place] = (other[:, place] + 4) % VOCAB
            moved = (_run(model, other, padding) - before).abs().amax(-1)
            check((moved > 1e-8).all(), f"token {place} of {told}, moves no logit")
        swapped = ids.clone()
        swapped[:, real - 2], swapped[:, real - 1] = ids[:, real - 1], ids[:, real - 2]
        moved = (_run(model, swapped, padding) - before).abs().amax(-1)
        check((moved > (1e-8 if close["rtol"] < 1e-5 else 0)).all(), f"the last two of {told}, may change places "
              "without any effect: has every place up to max_len a position of its own?")
        if padding is not None:
            same(_run(model, ids[:, :real]), before, f"the logits of {told}, against the same alone", **close)


def test_rows_keep_apart(EncoderClassifier, rng):
    """The logits of a sequence do not depend on the other rows of the batch, nor on its place among them."""
    model, (ids, padding) = _lively(EncoderClassifier, rng), _batch(rng)
    close = _precise(model)
    logits = _run(model, ids, padding)
    order = torch.tensor([2, 0, 3, 1])
    same(_run(model, ids[order], padding[order]), logits[order], "the logits of the reordered batch", **close)
    for row in range(4):
        alone = _run(model, ids[row : row + 1], padding[row : row + 1])
        same(alone, logits[row : row + 1], f"the logits of row {row} as a batch of its own", **close)
    same(_run(model, ids, padding), logits, "the logits of a second call in evaluation mode", **close)


def test_without_gradients(EncoderClassifier, rng):
    """Under torch.no_grad, as one evaluates, the logits are the same and padding stays out (in float32)."""
    model, (ids, padding) = _lively(EncoderClassifier, rng, 0.05), _batch(rng)
    with_gradients = _run(model, ids, padding).detach()
    with torch.no_grad():
        plain = _run(model, ids, padding)
        junk = _run(model, torch.where(padding, (ids + 5) % VOCAB, ids), padding)
    same(plain, with_gradients, "the logits under torch.no_grad", rtol=1e-3, atol=1e-3)
    same(junk, plain, "the logits after a change in the padding, under torch.no_grad", rtol=1e-3, atol=1e-4)


@pytest.mark.weight(2)
def test_gradients(EncoderClassifier, rng):
    """The gradient of every parameter is what moving that parameter does to the logits: nothing is cut off."""
    model, (ids, padding) = _lively(EncoderClassifier, rng), _batch(rng, first=1)
    step, slack = (1e-5, 1e-5) if _precise(model)["rtol"] < 1e-5 else (1e-2, 5e-2)
    direction = torch.randn(4, CLASSES, generator=rng, dtype=torch.float64)
    logits = _run(model, ids, padding)
    check(logits.requires_grad, "no gradient flows from the logits to the parameters")
    model.zero_grad()
    (logits * direction).sum().backward()
    gradients = {name: g for name, g in model.grads().items() if g is not None}
    state = dict(model.state_dict())

    shapes, ways = model.parameter_shapes(), {}
    for name, shape in shapes.items():
        along = torch.randn(tuple(shape), generator=rng, dtype=torch.float64).to(state[name].dtype)
        if name in gradients and gradients[name].ndim == 2:
            along[(gradients[name] == 0).all(-1)] = 0  # rows that take no part, such as an embedding's `padding_idx`
        ways[name] = along / along.norm().clamp_min(1e-12)

    def value(names, size):
        moved = state
        for name in names:
            moved = _moved(shapes, moved, name, size * ways[name])
        model.load_state_dict(moved)
        return (_run(model, ids, padding).detach() * direction).sum().item()

    def compared(*names):
        """What moving these parameters together does, what their gradients say, and the size of the largest."""
        slope = (value(names, step) - value(names, -step)) / (2 * step)
        known = [name for name in names if name in gradients]
        told = sum((gradients[name] * ways[name]).sum().item() for name in known)
        return slope, told, max([1.0, *(gradients[name].norm().item() for name in known)])

    slope, told, scale = compared(*shapes)
    if slack < 1e-4 and abs(slope - told) <= slack * (scale + abs(slope)):  # all together, in a direction that is drawn
        return
    for name in shapes:
        slope, told, scale = compared(name)
        check(abs(slope - told) <= slack * (scale + abs(slope)), f"moving `{name}` changes the logits at the rate "
              f"{slope:.4g}, but its gradient says {told:.4g}: is something detached, under no_grad, or `.data`?")


def test_everything_is_registered(EncoderClassifier, rng):
    """The weights of one model make another one equal to it: all that matters is in state_dict."""
    one, two, (ids, padding) = _lively(EncoderClassifier, rng), EncoderClassifier(*SIZES), _batch(rng)
    two.eval()
    two.load_state_dict(one.state_dict())
    same(_run(two, ids, padding), _run(one, ids, padding).detach(), "the logits of a second model with the same "
         "weights (layers in a plain list are unknown to the model: nn.ModuleList)", rtol=1e-3, atol=1e-4)


@pytest.mark.weight(3)
def test_learns(EncoderClassifier, student, anew, rng):
    """Trained on the race, 300 steps or until it has learned, it does clearly better than guessing."""
    race = SecretRace(rng)  # who is who, nobody knows who has not been trained

    def make(student):
        return student["EncoderClassifier"](RACE_VOCAB, D_MODEL, N_HEADS, D_FF, N_LAYERS, RUNNERS, RACE[1])

    def training(steps):
        seed = int(torch.randint(2**62, (1,), generator=rng))
        batches = race.batches(steps)
        return lambda student, model: student.run(train_patient, model, steps, seed, LEARNED, batches)

    def shares(model, n):
        return race.shares(lambda ids, padding: _run(model, ids, padding, RUNNERS), n)

    runs = (training(steps) for steps in (STEPS, STEPS // 2))  # the second only for those who learn slowly
    for asked in in_another_box(student, anew, make(student), make, runs):
        reached = shares(asked.trained, 500)
        if reached.mean() >= BAR and reached.sort().values[1] >= THREE:
            break
    check(reached.mean() >= BAR, f"after the training run it is right on {reached.mean():.0%} of new races; guessing "
          f"gives 25%, and {BAR:.0%} are asked for. Do positions and gradients reach every part?")
    check(reached.sort().values[1] >= THREE, "after the training run it still confuses two of the four runners")
    known = shares(asked.untrained, 200).mean()
    check(known < BAR, f"an untrained model is right on {known:.0%} of new races: this is not learned")


@pytest.mark.weight(0.5)
def test_device(EncoderClassifier, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    ids, padding = _batch(rng)
    device_ready(watch, EncoderClassifier, SIZES, call=(ids,), kwargs={"key_padding_mask": padding},
                 mistake="positions-on-the-cpu")
