"""Hidden checks of q1_5: AttentionSeq2Seq, judged by what it does."""

import pytest
import torch

from autograder.suites.devices import device_ready
from autograder.suites.factors import are_factors
from autograder.suites.learning import in_another_box
from course_utils.checking.compare import check, same, tensor
from course_utils.hw1.reversal import D_MODEL, VOCAB, greedy_accuracy, reversal_batch, train_reversal

VOCAB_SRC, VOCAB_TGT, D = 11, 7, 16
LENGTHS = (6, 4, 2)  # of the three sources; the rest of each row is padding
LENGTH, BATCH, STEPS = 10, 64, 150  # of the training run here: shorter than a student's own
BAR = 0.69  # after one run, or two if need be: docs/thresholds.md
LEARNED = 0.15  # a loss below which the run may end


def _lively(AttentionSeq2Seq, rng, amount=0.3):
    """A model in eval mode with every parameter stirred: nothing is zero or equal by initialisation."""
    model = AttentionSeq2Seq(VOCAB_SRC, VOCAB_TGT, D)
    model.eval()
    model.load_state_dict(_stirred(model, rng, amount))
    return model


def _stirred(model, rng, amount):
    """The model's state with every parameter moved at random."""
    state, shapes = dict(model.state_dict()), model.parameter_shapes()
    for name, shape in shapes.items():
        noise = torch.randn(tuple(shape), generator=rng, dtype=torch.float64).to(state[name].dtype)
        state = _moved(shapes, state, name, amount * noise)
    return state


def _moved(first, state, name, step):
    """The state with a step added to one parameter, under every name that it has (tied weights have two).

    `first` are the names that parameters have.
    """
    old = state[name]
    others = [key for key in state if key not in first] if old.min() < old.max() else []  # ones are like other ones
    names = [key for key in others if state[key].dtype == old.dtype and state[key].equal(old)]
    return {**state, **dict.fromkeys([name, *names], old + step)}


def _precise(model, src, tgt_in):
    """Turn the model to float64 if it can run in it; returns the tolerance that suits its precision."""
    model.double()
    try:
        _run(model, src, tgt_in)
    except Exception:  # a model that makes float32 tensors inside is judged in float32
        model.float()
        return {"rtol": 1e-4, "atol": 1e-4}
    return {"rtol": 1e-6, "atol": 1e-8}


def _run(model, src, tgt_in, padding=None, vocab=VOCAB_TGT):
    """(logits, weights) after a look at their form."""
    got = model(src, tgt_in) if padding is None else model(src, tgt_in, key_padding_mask=padding)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (logits, weights)")
    (B, S), T = src.shape, tgt_in.shape[1]
    logits, weights = tensor(got[0], "the logits", (B, T, vocab)), tensor(got[1], "the weights", (B, T, S))
    check(logits.isfinite().all(), "the logits are not finite")
    check(weights.isfinite().all(), "the weights are not finite")
    return logits, weights


def _batch(rng, first=0, left=0):
    """Tokens from `first` on, without the last `left`; three sources of different lengths."""
    src = torch.randint(first, VOCAB_SRC - left, (3, 6), generator=rng)
    tgt_in = torch.randint(first, VOCAB_TGT - left, (3, 5), generator=rng)
    padding = torch.arange(6) >= torch.tensor(LENGTHS)[:, None]  # True = padding
    return src, tgt_in, padding


def test_shapes(AttentionSeq2Seq, rng):
    """Logits are [B, T, vocab_tgt] and weights [B, T, S], for any lengths, with and without a mask."""
    model = AttentionSeq2Seq(VOCAB_SRC, VOCAB_TGT, D)
    model.eval()
    for B, S, T in ((3, 6, 4), (2, 3, 8), (1, 5, 1), (4, 1, 2), (1, 1, 3), (1, 1, 1), (2, 4, 1)):
        src = torch.randint(VOCAB_SRC, (B, S), generator=rng)
        tgt_in = torch.randint(VOCAB_TGT, (B, T), generator=rng)
        padding = torch.arange(S) >= torch.randint(1, S + 1, (B, 1), generator=rng)
        for mask in (None, padding):
            logits, weights = _run(model, src, tgt_in, mask)
            check(logits.is_floating_point() and weights.is_floating_point(), "logits and weights are real numbers")
            check((logits < 0).any() or (logits.sum(-1) - 1).abs().max() > 1e-4,
                  "these are probabilities: logits come before the softmax")


def test_weights_are_distributions(AttentionSeq2Seq, rng):
    """The weights are not negative, sum to 1 over the source, and differ by position and by target step."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    for mask in (None, padding):
        _, weights = _run(model, src, tgt_in, mask)
        check((weights >= 0).all(), "a weight is negative: are these scores?")
        over_steps = weights.sum(1)
        check(not torch.allclose(over_steps, torch.ones_like(over_steps), atol=1e-4),
              "your weights sum to 1 over the target steps, not over the source: look at the softmax's axis")
        total = weights.sum(-1)
        same(total, torch.ones_like(total), "the sum of the weights over the source", rtol=0, atol=1e-5)
    _, weights = _run(model, src, tgt_in)
    check((weights - weights.mean(-1, keepdim=True)).abs().max() > 1e-6, "every source position has the same weight")
    check((weights - weights.mean(1, keepdim=True)).abs().max() > 1e-6, "every target step has the same weights: "
          "the query of a step is the decoder's state at that step")


def test_every_symbol_is_real(AttentionSeq2Seq, rng):
    """Only the mask says what is padding: no source symbol is, not 0 and not the last, so all rows sum to 1."""
    src = torch.arange(VOCAB_SRC)[:, None].repeat(1, 4)  # row c is nothing but the symbol c
    tgt_in = torch.randint(VOCAB_TGT, (VOCAB_SRC, 3), generator=rng)
    model = _lively(AttentionSeq2Seq, rng)
    padded = torch.arange(4).repeat(VOCAB_SRC, 1) >= 3
    for told, mask in (("no mask", None), ("a mask that is False everywhere", padded & False), ("a mask", padded)):
        got = model(src, tgt_in) if mask is None else model(src, tgt_in, key_padding_mask=mask)
        check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (logits, weights)")
        weights = tensor(got[1], "the weights", (VOCAB_SRC, 3, 4))
        lost = [c for c in range(VOCAB_SRC) if not torch.allclose(weights[c].sum(-1), torch.ones(3).to(weights))]
        check(not lost or len(lost) == VOCAB_SRC, f"with {told}, a source of nothing but the symbol {(lost or [0])[0]} "
              "has weights that do not sum to 1: every symbol is a real one, and only the mask tells padding",
              mistake="a-symbol-taken-for-padding")
        same(weights.sum(-1), torch.ones(VOCAB_SRC, 3).to(weights), f"the sum of the weights with {told}", rtol=0,
             atol=1e-5)


def test_start_of_the_decoder(AttentionSeq2Seq, rng):
    """The decoder starts from the encoder's last real state: the last source token has a say in where it looks."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    slack = _precise(model, src, tgt_in)["rtol"]
    for mask in (None, padding):
        lengths = LENGTHS if mask is not None else (6, 6, 6)
        other = src.clone()
        for row, length in enumerate(lengths):
            other[row, length - 1] = (other[row, length - 1] + 4) % VOCAB_SRC
        # among the tokens before it, weights are shared in a way that depends on the decoder's state and on them alone
        before, moved = _ratios_moved(model, src, other, tgt_in, mask)
        if (moved > slack).all():
            continue
        check((before[:2, :, :3] > 0).all(), "the first places of the source have no weight, though they are real: "
              "every encoder state is to be offered")
        earlier = src.clone()
        earlier[:, 1] = (earlier[:, 1] + 4) % VOCAB_SRC
        check((_ratios_moved(model, src, earlier, tgt_in, mask)[1] > slack).any(), "the weights do not depend on what "
              "stands in the source: score each step's state against the encoder's states")
        second = src.clone()
        for row, length in enumerate(lengths):
            second[row, length - 2] = (second[row, length - 2] + 4) % VOCAB_SRC
        check(not (_ratios_moved(model, src, second, tgt_in, None)[1] > slack).all() or mask is not None, "the last "
              "token but one has a say in where the decoder looks, and the last one has none: the state after n tokens "
              "stands at place n - 1", mistake="decoder-starts-one-token-early")
        check(False, "another token at the end of the source leaves the weights on the tokens before it in the same "
              "ratios at every step, so the decoder's states do not depend on it: start the decoder from the encoder's "
              "last real state", mistake="decoder-starts-from-zeros")


def _ratios_moved(model, src, other, tgt_in, mask):
    """The weights on a source, and how far the ratios among the first three lie apart on another one, per row."""
    weights = [_run(model, x, tgt_in, mask)[1].detach().double() for x in (src, other)]
    ratios = [log[:2, :, 1:3] - log[:2, :, :1] for log in (w.clamp_min(1e-30).log() for w in weights)]
    return weights[0], (ratios[0] - ratios[1]).abs().amax((1, 2))


def test_no_weight_on_padding(AttentionSeq2Seq, rng):
    """A padded source position has weight 0; True in the mask means padding."""
    src, tgt_in, padding = _batch(rng)
    _, weights = _run(_lively(AttentionSeq2Seq, rng), src, tgt_in, padding)
    padded = padding[:, None].expand_as(weights)
    check(not (weights[~padded].abs().max() < 1e-6 < weights[padded].abs().max()), "only the padding gets weight: "
          "the mask is upside down (True means padding)")
    check(weights[padded].abs().max() < 1e-6, f"a padded position has weight {weights[padded].abs().max():.3g}")
    check((weights[~padded] > 0).any(), "no position has any weight")


@pytest.mark.weight(2)
def test_content_of_padding(AttentionSeq2Seq, rng):
    """Whatever stands in the padded part of the source, logits and weights stay the same."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    close = _precise(model, src, tgt_in)
    logits, weights = _run(model, src, tgt_in, padding)
    for _ in range(3):
        junk = torch.where(padding, torch.randint(VOCAB_SRC, (3, 6), generator=rng), src)
        other_logits, other_weights = _run(model, junk, tgt_in, padding)
        same(other_logits, logits, "the logits after a change in the padding (attention is not the only way in: "
             "which encoder state does the decoder start from?)", **close)
        same(other_weights, weights, "the weights after a change in the padding", **close)
    moved, _ = _run(model, (src + 1) % VOCAB_SRC, tgt_in, padding)
    check((moved - logits).abs().amax((1, 2)).min() > 1e-6, "another source leaves the logits as they are")


@pytest.mark.weight(2)
def test_amount_of_padding(AttentionSeq2Seq, rng):
    """A source gives the same logits alone, without a mask, and with any amount of padding behind it."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    close = _precise(model, src, tgt_in)
    logits, weights = _run(model, src, tgt_in, padding)
    for row, length in enumerate(LENGTHS):
        alone, alone_weights = _run(model, src[row : row + 1, :length], tgt_in[row : row + 1])
        same(logits[row : row + 1], alone, f"the logits of a source of {length} tokens with {6 - length} of padding",
             **close)
        same(weights[row : row + 1, :, :length], alone_weights, "the weights on the real tokens", **close)
    longer = torch.cat([src, torch.randint(VOCAB_SRC, (3, 3), generator=rng)], 1)
    mask = torch.cat([padding, torch.ones(3, 3, dtype=torch.bool)], 1)
    more, more_weights = _run(model, longer, tgt_in, mask)
    same(more, logits, "the logits with three more tokens of padding", **close)
    same(more_weights[..., :6], weights, "the weights with three more tokens of padding", **close)
    none, _ = _run(model, src, tgt_in)
    empty, _ = _run(model, src, tgt_in, torch.zeros_like(padding))
    same(empty, none, "the logits with a mask that is False everywhere, against those without a mask", **close)


def test_nothing_but_padding(AttentionSeq2Seq, rng):
    """A source that is all padding has weights 0 and finite logits, and the other rows do not notice."""
    src, tgt_in, padding = _batch(rng)
    padding[1] = True
    model = _lively(AttentionSeq2Seq, rng)
    alone, _ = _run(model, src[:1], tgt_in[:1], padding[:1])
    got = model(src, tgt_in, key_padding_mask=padding)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (logits, weights)")
    logits, weights = tensor(got[0], "the logits", (3, 5, VOCAB_TGT)), tensor(got[1], "the weights", (3, 5, 6))
    check(logits.isfinite().all() and weights.isfinite().all(), "a source that is all padding gives NaN: a softmax "
          "over nothing but -inf has no value. The card asks for weights 0 there", mistake="all-padding-nan")
    check(weights[1].abs().max() < 1e-6, "a source that is all padding has weights that are not 0")
    same(logits[:1], alone, "the logits of a row beside one that is all padding", rtol=1e-4, atol=1e-4)


@pytest.mark.weight(0.5)
def test_content_of_nothing_but_padding(AttentionSeq2Seq, rng):
    """Other tokens in a source that is all padding leave its logits as they are: it has no real token to start from."""
    src, tgt_in, padding = _batch(rng)
    padding[1] = True
    model = _lively(AttentionSeq2Seq, rng)
    close = _precise(model, src, tgt_in)
    logits, weights = _run(model, src, tgt_in, padding)
    check(weights[1].abs().max() < 1e-6, "a source that is all padding has weights that are not 0, so its tokens reach "
          "the logits through the attention")
    junk = torch.where(padding, (src + 1 + torch.randint(VOCAB_SRC - 1, (3, 6), generator=rng)) % VOCAB_SRC, src)
    other, _ = _run(model, junk, tgt_in, padding)
    kept = [torch.allclose(a, b, **close) for a, b in zip(other, logits, strict=True)]
    check(kept[1] or not (kept[0] and kept[2]), "other tokens in a source that is all padding move its logits: it has "
          "no real token, so the decoder starts from zeros, not from a state made of padding",
          mistake="all-padding-starts-from-padding")
    same(other, logits, "the logits after a change in the padding", **close)


@pytest.mark.weight(0.5)
def test_same_call_again(AttentionSeq2Seq, rng):
    """In eval mode the same call gives the same result again: no dropout, and nothing is kept between calls."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    logits, weights = _run(model, src, tgt_in, padding)
    _run(model, (src + 1) % VOCAB_SRC, tgt_in)
    again, again_weights = _run(model, src, tgt_in, padding)
    check(torch.allclose(again, logits, atol=1e-5) and torch.allclose(again_weights, weights, atol=1e-5), "the same "
          "call gives another result the second time: is dropout on in eval mode, or something kept from call to call?",
          mistake="another-result-every-time")


def test_weights_are_those_used(AttentionSeq2Seq, watch, rng):
    """The weights that come back are the ones that the memory is averaged with."""
    src, tgt_in, _ = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    close = _precise(model, src, tgt_in)
    state = _stirred(model, rng, 0.1)
    with watch(factors=True) as session:
        session.load(model, state)  # weights that nobody knows until the call is over
        seen = session.call(model, src, tgt_in)
    model.load_state_dict(state)
    expected = _run(model, src, tgt_in)
    check(isinstance(seen.value, (tuple, list)) and len(seen.value) == 2, "forward returns the pair (logits, weights)")
    for mine, right, what in zip(seen.value, expected, ("logits", "weights"), strict=True):
        same(mine, right, f"the {what} of a watched call", **close)
    check(are_factors(seen.value[1], seen.factors), "no product in your model has the returned weights as a factor: "
          "the context must be the sum of the memory with these weights", mistake="other-weights-returned")


def test_every_source_token_counts(AttentionSeq2Seq, rng):
    """Changing any real source token moves the logits and the weights of its row."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    _precise(model, src, tgt_in)
    logits, weights = _run(model, src, tgt_in, padding)
    for position in range(6):
        other = src.clone()
        other[:, position] = (other[:, position] + 4) % VOCAB_SRC
        other_logits, other_weights = _run(model, other, tgt_in, padding)
        for row in range(3):
            if position < LENGTHS[row]:
                check((other_logits[row] - logits[row]).abs().max() > 1e-9,
                      f"token {position} of a source of {LENGTHS[row]} does not move the logits")
        check((other_weights - weights).abs().max() > 1e-9, f"source token {position} does not move the weights")


@pytest.mark.weight(2)
def test_any_distance(AttentionSeq2Seq, rng):
    """A token in the middle of a long source reaches the logits: attention does not forget, a state does."""
    src = torch.randint(VOCAB_SRC, (2, 100), generator=rng)
    tgt_in = torch.randint(VOCAB_TGT, (2, 3), generator=rng)
    model = _lively(AttentionSeq2Seq, rng, 0.05)
    _precise(model, src[:, :4], tgt_in)
    other = src.clone()
    other[:, 50] = (other[:, 50] + 4) % VOCAB_SRC
    moved = (_run(model, other, tgt_in)[0] - _run(model, src, tgt_in)[0]).abs().amax((1, 2)).min().item()
    check(moved > 1e-7, f"another token in the middle of 100 moves the logits by {moved:.1g} only: does the context, "
          "the weighted sum over all encoder states, reach them?")


@pytest.mark.weight(2)
def test_target_is_causal(AttentionSeq2Seq, rng):
    """A target input moves the logits of its own step and of later ones, never those before it."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    close = _precise(model, src, tgt_in)
    logits, weights = _run(model, src, tgt_in, padding)
    for step in range(5):
        other = tgt_in.clone()
        other[:, step] = (other[:, step] + 2) % VOCAB_TGT
        moved, _ = _run(model, src, other, padding)
        same(moved[:, :step], logits[:, :step], f"the logits before step {step}, whose input has changed", **close)
        check((moved[:, step] - logits[:, step]).abs().amax(-1).min() > 1e-9,
              f"the input of step {step} does not move the logits of that step")
        if step < 4:
            check((moved[:, step + 1] - logits[:, step + 1]).abs().max() > 1e-9,
                  f"the input of step {step} does not move the logits of the next one: does the state carry over?")
    prefix, prefix_weights = _run(model, src, tgt_in[:, :2], padding)
    same(prefix, logits[:, :2], "the logits of the first two steps when only two are asked for", **close)
    same(prefix_weights, weights[:, :2], "the weights of the first two steps when only two are asked for", **close)


def test_rows_keep_apart(AttentionSeq2Seq, rng):
    """The results of a row do not depend on the other rows of the batch, nor on its place among them."""
    src, tgt_in, padding = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    close = _precise(model, src, tgt_in)
    logits, weights = _run(model, src, tgt_in, padding)
    order = torch.tensor([1, 2, 0])
    shuffled, shuffled_weights = _run(model, src[order], tgt_in[order], padding[order])
    same(shuffled, logits[order], "the logits of the reordered batch", **close)
    same(shuffled_weights, weights[order], "the weights of the reordered batch", **close)
    check((logits[0] - logits[1]).abs().max() > 1e-6, "two different rows have the same logits")
    for row in range(3):
        alone, _ = _run(model, src[row : row + 1], tgt_in[row : row + 1], padding[row : row + 1])
        same(alone, logits[row : row + 1], f"the logits of row {row} as a batch of its own", **close)


@pytest.mark.weight(0.5)
def test_rows_keep_apart_in_training(AttentionSeq2Seq, rng):
    """In training mode too a row does not depend on the other rows of its batch (not tried where there is dropout)."""
    src, tgt_in, _ = _batch(rng)
    model = _lively(AttentionSeq2Seq, rng)
    model.train()
    logits, again = (_run(model, src, tgt_in)[0].detach() for _ in range(2))
    if torch.equal(logits, again):
        alone = torch.cat([_run(model, src[row : row + 1], tgt_in[row : row + 1])[0].detach() for row in range(3)])
        check(torch.allclose(alone, logits, rtol=1e-3, atol=1e-3), "in training mode the logits of a row change with "
              "the other rows of its batch: is there a batch norm?", mistake="rows-meet-in-training")


@pytest.mark.weight(2)
def test_gradients_reach_every_parameter(AttentionSeq2Seq, rng):
    """The gradient of every parameter is what moving that parameter does to the logits: nothing is cut off."""
    src, tgt_in, padding = _batch(rng, 1, 1)  # a `padding_idx` of an embedding may keep its row from learning
    model = _lively(AttentionSeq2Seq, rng)
    precise = _precise(model, src, tgt_in)["rtol"] < 1e-5
    step, slack = (1e-5, 1e-5) if precise else (1e-2, 5e-2)
    direction = torch.randn(3, 5, VOCAB_TGT, generator=rng, dtype=torch.float64)
    model.zero_grad()
    logits, _ = _run(model, src, tgt_in, padding)
    check(logits.requires_grad, "no gradient flows from the logits to the parameters")
    (logits * direction).sum().backward()
    gradients = {name: g for name, g in model.grads().items() if g is not None}
    check(gradients, "no parameter has a gradient")
    state = dict(model.state_dict())

    shapes, ways = model.parameter_shapes(), {}
    for name, shape in shapes.items():
        along = torch.randn(tuple(shape), generator=rng, dtype=torch.float64).to(state[name].dtype)
        ways[name] = along / along.norm().clamp_min(1e-12)

    def value(names, size):
        moved = state
        for name in names:
            moved = _moved(shapes, moved, name, size * ways[name])
        model.load_state_dict(moved)
        return (_run(model, src, tgt_in, padding)[0].detach() * direction).sum().item()

    def compared(*names):
        """What moving these parameters together does, what their gradients say, and the size of the largest."""
        slope = (value(names, step) - value(names, -step)) / (2 * step)
        known = [name for name in names if name in gradients]
        told = sum((gradients[name] * ways[name]).sum().item() for name in known)
        return slope, told, max([1.0, *(gradients[name].norm().item() for name in known)])

    slope, told, scale = compared(*shapes)
    if precise and abs(slope - told) <= slack * (scale + abs(slope)):  # all together, in a direction that is drawn
        return
    for name in shapes:
        slope, told, scale = compared(name)
        check(abs(slope - told) <= slack * (scale + abs(slope)), f"moving `{name}` changes the logits at the rate "
              f"{slope:.4g}, but its gradient says {told:.4g}: is something detached, under no_grad, or `.data`?",
              mistake="encoder-states-detached")


@pytest.mark.weight(3)
def test_learns_to_reverse(AttentionSeq2Seq, student, anew, rng):
    """After a training run on 10 tokens the model writes them backwards by itself, by means of its attention."""
    code = torch.randperm(VOCAB, generator=rng)  # how each symbol is written: nobody knows who has not been trained

    def make(student):
        return student["AttentionSeq2Seq"](VOCAB, VOCAB + 1, D_MODEL)

    def train(student, model):
        data = reversal_batch(STEPS * BATCH, rng, LENGTH, code=code)
        batches = tuple(x.unflatten(0, (STEPS, BATCH)).to(torch.uint8) for x in data)
        student.run(train_reversal, model, STEPS, seed=_seed(rng), batches=batches, enough=LEARNED)

    # the second run is for those who learn slowly
    for asked in in_another_box(student, anew, make(student), make, (train, train)):
        model = asked.trained
        _run(model, *reversal_batch(2, rng, LENGTH)[:2], vocab=VOCAB + 1)
        reached = greedy_accuracy(model, n=128, seed=_seed(rng), code=code, length=LENGTH)
        if reached >= BAR:
            break
    check(reached >= BAR, f"after training, {reached:.0%} of the tokens that the model writes are right; {BAR:.0%} are "
          "asked for. Near 50% the context does not reach the logits; far below it, look at the decoder")
    known = greedy_accuracy(asked.untrained, n=32, seed=_seed(rng), code=code, length=LENGTH)
    check(known < BAR / 2, f"an untrained model writes {known:.0%} of the tokens right: this is not learned")
    src, tgt_in, _ = reversal_batch(64, rng, LENGTH, code=code)
    weights = _run(model, src, tgt_in, vocab=VOCAB + 1)[1].detach()
    check(weights.amax(-1).mean() > 2 / LENGTH, "the trained model spreads its weights evenly over the source: the "
          "weights that you return are not those that it uses")
    place = (weights * torch.arange(LENGTH, dtype=weights.dtype)).sum(-1).mean(0)  # [T], mean position looked at
    check(place[:4].mean() - place[-4:].mean() > 1, "the trained model writes backwards, but its weights do not move "
          "backwards: the weights that you return are not those that it uses")


def _seed(rng):
    return int(torch.randint(2**62, (1,), generator=rng))


@pytest.mark.weight(0.5)
def test_device(AttentionSeq2Seq, watch, rng):
    """Nothing is made on a fixed device: the model would run on a GPU as it stands."""
    src, tgt_in, padding = _batch(rng)
    sizes, kwargs = (VOCAB_SRC, VOCAB_TGT, D), {"key_padding_mask": padding}
    device_ready(watch, AttentionSeq2Seq, sizes, call=(src, tgt_in), kwargs=kwargs)
