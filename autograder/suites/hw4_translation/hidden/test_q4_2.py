"""Hidden checks of q4_2: Transformer, against torch's nn.Transformer with the same weights."""

import math

import pytest
import torch
import torch.nn.functional as F

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from autograder.suites.hw4_translation.oracle import SIZES, Translator, check_parameters, lengths_to_padding, loaded
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.hw4.decoding_weights import lively_weights

F64 = torch.float64
CLOSE = {"rtol": 2e-4, "atol": 3e-4}  # a table of positions made in float32 is right, and differs by 2e-6
LENGTHS = (6, 4, 1)
PADDING = lengths_to_padding(LENGTHS, 6)
T = 5


def _twins(Transformer, rng, sizes=SIZES, **options):
    """The student's model and torch's, with the same weights."""
    weights = lively_weights(int(torch.randint(2**31, (1,), generator=rng)), *sizes)
    return loaded(Transformer, weights, sizes, **options), Translator(weights, sizes[3])


def _draw(rng, B=3, S=6, length=T, sizes=SIZES, least=0):
    """Source and target ids."""
    return tuple(torch.randint(least, vocab, (B, n), generator=rng) for vocab, n in ((sizes[0], S), (sizes[1], length)))


def _memory(rng, B=3, S=6, width=SIZES[2]):
    return torch.randn(B, S, width, generator=rng, dtype=F64)


def _clean(got, what, shape, dtype=F64):
    check(not isinstance(got, (tuple, list)), f"{what}: one tensor is expected, not a tuple")
    got = tensor(got, what, shape, dtype)
    check(not got.isnan().any(), f"{what}: NaN")
    return got


def _encode(model, src, padding, what, width=SIZES[2]):
    return _clean(model.encode(src, padding), what, (*src.shape, width))


def _decode(model, tgt, memory, padding, what, vocab=SIZES[1]):
    return _clean(model.decode(tgt, memory, padding), what, (*tgt.shape, vocab))


def _forward(model, src, tgt, padding, what, vocab=SIZES[1]):
    return _clean(model(src, tgt, padding), what, (*tgt.shape, vocab))


def _slips(width):
    """Ways to make the first layer's input wrongly."""
    return {
        "the embeddings are not multiplied by sqrt(d_model)": {"scale": 1.0},
        "the embeddings are multiplied by d_model and not by its root": {"scale": float(width)},
        "the embeddings are divided by sqrt(d_model)": {"scale": width**-0.5},
        "positions are missing": {"positions": False},
        "positions begin at 1, and the first is 0": {"first": 1},
    }


def _explained(got, expected, what, wrong):
    """`same`, and the causes only where it fails: `wrong` makes them."""
    try:
        same(got, expected, what, **CLOSE)
    except Wrong:
        causes = {}
        for cause, make in wrong.items():
            try:
                causes[cause] = make()
            except (RuntimeError, IndexError):
                continue
        same_or_because(got, expected, what, causes, **CLOSE)


def _compare_encode(model, oracle, src, padding, what):
    got = _encode(model, src, padding, what, oracle.width)
    layers = len(oracle.core.encoder.layers)
    slips = _slips(oracle.width)
    wrong = {cause: (lambda slip=slip: oracle.encode(src, padding, **slip)) for cause, slip in slips.items()}
    wrong |= {
        "encoder_norm is not applied to the output": lambda: oracle.encode(src, padding, norm=False),
        "the first layer alone is applied": lambda: oracle.encode(src, padding, layers=1),
        "the last layer is left out": lambda: oracle.encode(src, padding, layers=layers - 1),
        "decoder_norm stands in the place of encoder_norm":
            lambda: oracle.core.decoder.norm(oracle.encode(src, padding, norm=False)),
        "encoder_norm is applied twice": lambda: oracle.core.encoder.norm(oracle.encode(src, padding)),
        "the positions are multiplied by sqrt(d_model) too; only the embeddings are":
            lambda: _scaled_positions(oracle, src, padding),
        "the target embedding is used for the source":
            lambda: _with_table(oracle, src, padding),
    }
    if padding is not None:
        wrong["the padding mask does not reach the encoder's layers"] = lambda: oracle.encode(src)
        wrong["the padding mask is upside down (True = padding)"] = lambda: oracle.encode(src, ~padding)
    _explained(got.detach(), oracle.encode(src, padding).detach(), what, wrong)


def _scaled_positions(oracle, src, padding):
    x = (oracle.src[src] + oracle.positions(src.shape[1])) * math.sqrt(oracle.width)
    for layer in oracle.core.encoder.layers:
        x = layer(x, src_key_padding_mask=padding)
    return oracle.core.encoder.norm(x)


def _with_table(oracle, src, padding):
    x = oracle.tgt[src] * math.sqrt(oracle.width) + oracle.positions(src.shape[1])
    for layer in oracle.core.encoder.layers:
        x = layer(x, src_key_padding_mask=padding)
    return oracle.core.encoder.norm(x)


def _compare_decode(model, oracle, tgt, memory, padding, what):
    got = _decode(model, tgt, memory, padding, what, len(oracle.tgt))
    layers = len(oracle.core.decoder.layers)

    def decode(**slip):
        return oracle.decode(tgt, memory, padding, **slip)

    wrong = {cause: (lambda slip=slip: decode(**slip)) for cause, slip in _slips(oracle.width).items()}
    wrong |= {
        "decoder_norm is not applied before the output layer": lambda: decode(norm=False),
        "later target tokens are visible; the decoder's self-attention is causal": lambda: decode(causal=False),
        "the first layer alone is applied": lambda: decode(layers=1),
        "the last layer is left out": lambda: decode(layers=layers - 1),
        "the result is log-probabilities, and logits are asked for": lambda: decode().log_softmax(-1),
        "the result is probabilities, and logits are asked for": lambda: decode().softmax(-1),
        "the output layer is multiplied by sqrt(d_model) too": lambda: decode() * math.sqrt(oracle.width),
        "the logits are divided by sqrt(d_model)": lambda: decode() / math.sqrt(oracle.width),
        "decode normalises the memory once more; encode has done so":
            lambda: oracle.decode(tgt, oracle.core.encoder.norm(memory), padding),
        "decoder_norm is applied to the memory":
            lambda: oracle.decode(tgt, oracle.core.decoder.norm(memory), padding),
        "BOS is put in front of tgt, or a position is shifted": lambda: decode(first=1),
    }
    if padding is not None:
        wrong["the padding mask does not reach the cross-attention"] = lambda: oracle.decode(tgt, memory)
        wrong["the padding mask is upside down (True = padding)"] = lambda: oracle.decode(tgt, memory, ~padding)
    _explained(got.detach(), oracle.decode(tgt, memory, padding).detach(), what, wrong)


@pytest.mark.weight(2)
def test_parameters(Transformer):
    """The parameters have the names and shapes of the contract, and there are no others."""
    for sizes in (SIZES, (5, 4, 6, 2, 7, 1), (6, 13, 8, 4, 10, 3)):
        weights = lively_weights(1, *sizes)
        check_parameters(loaded(Transformer, weights, sizes), weights)


@pytest.mark.weight(3)
def test_encode(Transformer, rng):
    """encode agrees with nn.Transformer's encoder on scaled embeddings plus positions."""
    model, oracle = _twins(Transformer, rng)
    for B, S in ((3, 6), (1, 4), (2, 1)):
        src, _ = _draw(rng, B, S)
        _compare_encode(model, oracle, src, None, f"the memory for S = {S}")
    src, _ = _draw(rng)
    _compare_encode(model, oracle, src, PADDING, "the memory with padding")


@pytest.mark.weight(3)
def test_decode(Transformer, rng):
    """decode agrees with nn.Transformer's decoder, times the transposed target embedding."""
    model, oracle = _twins(Transformer, rng)
    for B, S, length in ((3, 6, 5), (2, 3, 7), (1, 4, 4), (2, 5, 1)):
        _, tgt = _draw(rng, B, S, length)
        _compare_decode(model, oracle, tgt, _memory(rng, B, S), None, f"the logits for T = {length}, S = {S}")
    _, tgt = _draw(rng)
    _compare_decode(model, oracle, tgt, _memory(rng), PADDING, "the logits with padding in the source")


@pytest.mark.weight(3)
def test_whole_model(Transformer, rng):
    """forward agrees with nn.Transformer from ids to logits, with padding that differs from row to row."""
    model, oracle = _twins(Transformer, rng)
    for length in (5, 6, 2):
        src, tgt = _draw(rng, length=length)
        for told, padding in (("padding", PADDING), ("a mask of False", PADDING & False), ("None for the mask", None)):
            what = f"the logits for T = {length}, S = 6 with {told}"
            got = _forward(model, src, tgt, padding, what)
            wrong = {
                "encode sees the padding mask and decode does not":
                    lambda padding=padding, src=src, tgt=tgt: oracle.decode(tgt, oracle.encode(src, padding)),
                "decode sees the padding mask and encode does not":
                    lambda padding=padding, src=src, tgt=tgt: oracle.decode(tgt, oracle.encode(src), padding),
                "the padding mask reaches nothing": lambda src=src, tgt=tgt: oracle(src, tgt),
            }
            _explained(got.detach(), oracle(src, tgt, padding).detach(), what, wrong)


def test_forward_is_encode_then_decode(Transformer, rng):
    """forward(src, tgt, src_padding) is decode(tgt, encode(src, src_padding), src_padding), arguments by name too."""
    model, _ = _twins(Transformer, rng)
    src, tgt = _draw(rng)
    whole = _forward(model, src, tgt, PADDING, "the logits").detach()
    memory = _encode(model, src, PADDING, "the memory").detach()
    same(_decode(model, tgt, memory, PADDING, "decode's logits").detach(), whole, "decode's logits, against forward's")
    named = model.decode(tgt, model.encode(src, src_padding=PADDING).detach(), src_padding=PADDING)
    same(_clean(named, "the logits", whole.shape).detach(), whole, "the logits with src_padding given by name")
    bare = model.decode(tgt, model.encode(src).detach())
    same(_clean(bare, "the logits", whole.shape).detach(), _forward(model, src, tgt, None, "the logits").detach(),
         "the logits of encode(src) and decode(tgt, memory) without a mask, against forward's with None")


@pytest.mark.weight(2)
def test_other_sizes(Transformer, rng):
    """Other sizes agree too: one layer, three layers, one head, an odd width, more heads, vocabularies of one size."""
    for sizes in ((7, 5, 6, 1, 9, 1), (5, 8, 9, 3, 4, 3), (4, 6, 8, 4, 30, 2), (6, 6, 8, 2, 12, 1)):
        model, oracle = _twins(Transformer, rng, sizes)
        src, tgt = _draw(rng, sizes=sizes)
        _compare_encode(model, oracle, src, PADDING, f"the memory of Transformer{sizes}")
        _compare_decode(model, oracle, tgt, _memory(rng, width=sizes[2]), PADDING, f"the logits of Transformer{sizes}")


@pytest.mark.weight(2)
def test_causal(Transformer, rng):
    """A target token moves the logits of its own step and of later ones, never those before it."""
    model, _ = _twins(Transformer, rng)
    _, tgt = _draw(rng)
    memory = _memory(rng)
    before = _decode(model, tgt, memory, PADDING, "the logits").detach()
    for t in range(T):
        other = tgt.clone()
        other[:, t] = (other[:, t] + 3) % SIZES[1]
        moved = _decode(model, other, memory, PADDING, "the logits").detach()
        same(moved[:, :t], before[:, :t], f"the logits before step {t}, whose token has changed")
        check((moved[:, t:] - before[:, t:]).abs().amax(-1).min() > 1e-7, f"the token of step {t} does not move its "
              "own logits and all later ones")
    same(_decode(model, tgt[:, :2], memory, PADDING, "the logits").detach(), before[:, :2], "the logits of the first "
         "two steps alone")


@pytest.mark.weight(2)
def test_padding_never_leaks(Transformer, rng):
    """Other tokens in the source's padding, more padding or none at all leave a sentence's logits as they are."""
    model, _ = _twins(Transformer, rng)
    src, tgt = _draw(rng)
    before = _forward(model, src, tgt, PADDING, "the logits").detach()
    junk = torch.where(PADDING, (src + 4) % SIZES[0], src)
    same(_forward(model, junk, tgt, PADDING, "the logits").detach(), before, "the logits after a change in the padding "
         "(is it masked in the encoder and in the cross-attention?)", rtol=1e-6, atol=1e-7)
    more = torch.cat([src, junk[:, :3]], 1), tgt, torch.cat([PADDING, PADDING[:, :3] | True], 1)
    same(_forward(model, *more, "the logits").detach(), before, "the logits with more padding", rtol=1e-6, atol=1e-7)
    for row, length in enumerate(LENGTHS):
        alone = _forward(model, src[row : row + 1, :length], tgt[row : row + 1], None, "the logits").detach()
        same(before[row : row + 1], alone, f"the logits of a sentence of {length} with {6 - length} of padding, "
             "against the sentence alone", rtol=1e-6, atol=1e-7)


def test_every_source_token_counts(Transformer, rng):
    """Every real token of the source, and its place, moves the logits of every step, and of its own row alone."""
    model, _ = _twins(Transformer, rng)
    src, tgt = _draw(rng)
    before = _forward(model, src, tgt, PADDING, "the logits").detach()
    for place in range(6):
        other = src.clone()
        other[:, place] = (other[:, place] + 2) % SIZES[0]
        moved = (_forward(model, other, tgt, PADDING, "the logits").detach() - before).abs().amax(-1)  # [B, T]
        for row, length in enumerate(LENGTHS):
            if place < length:
                check(moved[row].min() > 1e-12, f"source token {place} of a sentence of {length} does not move every "
                      "step")
    other = src.clone()
    other[1] = (other[1] + 2) % SIZES[0]
    moved = _forward(model, other, tgt, PADDING, "the logits").detach()
    same(moved[::2], before[::2], "the logits of the other sentences")
    swapped = torch.tensor([1, 0, 2, 3, 4, 5])
    check((_encode(model, src[:, swapped], None, "the memory")[:, swapped] - _encode(model, src, None, "the memory"))
          .detach().abs().max() > 1e-6, "the order of the source's tokens makes no difference: are positions added?")


@pytest.mark.weight(2)
def test_long_sentences(Transformer, rng):
    """Positions are right far out: sentences of 45 tokens agree with nn.Transformer."""
    model, oracle = _twins(Transformer, rng, (9, 11, 8, 2, 10, 1))
    src, tgt = _draw(rng, 2, 45, 42)
    _compare_encode(model, oracle, src, None, "the memory of 45 tokens")
    _compare_decode(model, oracle, tgt, _memory(rng, 2, 3, 8), None, "the logits of 42 steps")


def test_max_len(Transformer, rng):
    """Sentences of max_len tokens fit, on both sides; the default is 512."""
    sizes = (5, 4, 4, 2, 6, 1)
    for longest, options in ((7, {"max_len": 7}), (40, {"max_len": 40}), (512, {}), (600, {"max_len": 600})):
        model, _ = _twins(Transformer, rng, sizes, **options)
        src, tgt = _draw(rng, 1, longest, longest, sizes)
        got = _forward(model, src, tgt, None, f"the logits for {longest} tokens", sizes[1]).detach()
        short = _forward(model, src, tgt[:, :3], None, "the logits", sizes[1]).detach()
        same(got[:, :3], short, f"the first logits of {longest} target tokens, against those of 3", **CLOSE)


def test_dropout(Transformer, rng):
    """Dropout is at work in training mode alone, and off by default."""
    model, oracle = _twins(Transformer, rng, dropout=0.4)
    src, tgt = _draw(rng)
    got = _forward(model, src, tgt, PADDING, "the logits").detach()
    same(got, oracle(src, tgt, PADDING).detach(), "the logits in evaluation mode of a model with dropout=0.4", **CLOSE)
    model.train()
    first, second = (_forward(model, src, tgt, PADDING, "the logits").detach() for _ in range(2))
    check((first - second).abs().max() > 1e-6, "in training mode with dropout=0.4 two calls give the same: is dropout "
          "handed on to the layers?")
    for part in ("the encoder's", "the decoder's"):
        calls = [model.encode(src, PADDING) if "enc" in part else model.decode(tgt, _memory(rng) * 0 + 1, PADDING)
                 for _ in range(2)]
        check((calls[0] - calls[1]).abs().max() > 1e-6, f"{part} layers do not drop in training mode")
    model, oracle = _twins(Transformer, rng)
    model.train()
    got = _forward(model, src, tgt, PADDING, "the logits").detach()
    same(got, oracle(src, tgt, PADDING).detach(), "the logits in training mode, dropout being 0 by default", **CLOSE)


def test_dropout_on_every_branch(Transformer, rng):
    """dropout reaches every residual branch of both stacks: where it takes all, nothing is added to the input."""
    model, oracle = _twins(Transformer, rng, dropout=1 - 1e-9)
    model.train()
    src, tgt = _draw(rng)
    memory, zero = _memory(rng), torch.zeros(3, 6, SIZES[2], dtype=F64)
    for part, got, kept, dropped in (
        ("encoder", _encode(model, src, PADDING, "the memory"), oracle.encode(src, PADDING, layers=0),
         oracle.core.encoder.norm(zero)),
        ("decoder", _decode(model, tgt, memory, PADDING, "the logits"), oracle.decode(tgt, memory, PADDING, layers=0),
         oracle.core.decoder.norm(zero[:, :T]) @ oracle.tgt.T),
    ):  # the sum of embedding and position may be dropped too
        nothing_added = any(torch.allclose(got.detach(), value.detach(), rtol=1e-3, atol=1e-3)
                            for value in (kept, dropped))
        check(nothing_added, f"in training mode with a dropout of nearly 1 the {part}'s layers still add something to "
              f"their input: dropout goes to every layer, and onto each residual branch")


@pytest.mark.weight(2)
def test_gradients(Transformer, rng):
    """The gradient of every parameter is that of nn.Transformer; the target embedding learns from both its ends."""
    model, oracle = _twins(Transformer, rng)
    src, tgt = _draw(rng, least=1)  # an embedding with padding_idx=0 may keep that row from learning
    labels = torch.randint(SIZES[1], tgt.shape, generator=rng)
    model.zero_grad()
    logits = _forward(model, src, tgt, PADDING, "the logits")
    check(logits.requires_grad, "no gradient flows from the logits to the parameters")
    for each in (logits, oracle(src, tgt, PADDING)):
        F.cross_entropy(each.flatten(0, 1), labels.flatten()).backward()
    grads, expected = model.grads(), oracle.gradients()
    other = next((name for name in grads if name not in expected), "")  # the other name of a tied tgt_embed.weight
    for name, want in expected.items():
        got = grads.get(name, grads.get(other) if name == "tgt_embed.weight" else None)
        check(got is not None, f"no gradient reaches `{name}`")
        what = f"the gradient of `{name}`"
        if name == "tgt_embed.weight":
            what += " (it adds up from the input side and from the output layer)"
        same(got, want, what, rtol=1e-3, atol=1e-4 * max(1.0, want.abs().max().item()))


@pytest.mark.weight(0.5)
def test_float32(Transformer, rng):
    """As it comes, in float32, it gives float32, right to its precision."""
    model, oracle = _twins(Transformer, rng)
    model.float()
    src, tgt = _draw(rng)
    got = _clean(model(src, tgt, PADDING), "the logits", (*tgt.shape, SIZES[1]), torch.float32).detach()
    same(got, oracle(src, tgt, PADDING).detach().float(), "the logits in float32", rtol=1e-2, atol=1e-2)


@pytest.mark.weight(1)
def test_empty_source(Transformer, rng):
    """A source that is nothing but padding: attention to it gives zero, never NaN, and other rows do not notice."""
    model, oracle = _twins(Transformer, rng)
    src, tgt = _draw(rng)
    before = _forward(model, src, tgt, PADDING, "the logits").detach()
    gone = PADDING | torch.tensor([[False], [True], [False]])
    got = _forward(model, src, tgt, gone, "the logits with a source that is all padding").detach()
    check(got.isfinite().all(), "the logits with a source that is all padding are not finite")
    same(got[::2], before[::2], "the logits of the other rows")
    deaf = {name: value * 0 if ".v_proj." in name and ("encoder_layers" in name or "cross_attn" in name) else value
            for name, value in oracle.weights.items()}  # without values, attention's output is zero
    expected = Translator(deaf, SIZES[3])(src, tgt).detach()
    same(got[1], expected[1], "the logits of a row whose source is all padding (where every key is blocked, the output "
         "of attention is zero, and o_proj's bias remains)", **CLOSE)


@pytest.mark.weight(1)
def test_dropout_on_attention(Transformer, rng):
    """dropout reaches the attention weights: with one key and one head, half of the rows lose all at dropout 0.5."""
    sizes, rows = (5, 7, 16, 1, 6, 1), 80
    weights = lively_weights(int(torch.randint(2**31, (1,), generator=rng)), *sizes)
    oracle = Translator(weights, 1)
    for side in ("src", "tgt"):  # embedding plus position is zero, so that dropping it changes nothing
        weights[f"{side}_embed.weight"][0] = -oracle.positions(1)[0] / math.sqrt(sizes[2])
    parts = ("encoder_layers.0.self_attn", "decoder_layers.0.self_attn", "decoder_layers.0.cross_attn")
    ids, memory = torch.zeros(rows, 1, dtype=torch.long), _memory(rng, rows, 1, sizes[2])
    for part in parts:
        alone = {name: value * 0 if ".ff.fc2" in name or ".o_proj." in name and not name == f"{part}.o_proj.weight"
                 else value for name, value in weights.items()}  # no other branch adds anything
        model, twin = loaded(Transformer, alone, sizes, dropout=0.5), Translator(alone, 1)
        model.train()
        zero = torch.zeros(sizes[2], dtype=F64)
        if part.startswith("encoder"):
            got, nothing = _encode(model, ids, None, "the memory", sizes[2]), twin.core.encoder.norm(zero)
        else:
            got = _decode(model, ids, memory, None, "the logits", sizes[1])
            nothing = twin.core.decoder.norm(zero) @ twin.tgt.T
        lost = ((got.detach()[:, 0] - nothing.detach()).abs().amax(-1) < 1e-6).double().mean().item()
        check(0.2 < lost < 0.8, f"{part} in training mode with dropout=0.5, one head and one key: the weight of that "
              f"key is dropped in {lost:.0%} of {rows} rows, expected about half. Is dropout applied to the attention "
              "weights?")


@pytest.mark.weight(0.5)
def test_device(Transformer, watch, rng):
    """Nothing is made on a fixed device: the model would run on a GPU as it stands."""
    src, tgt = _draw(rng)
    device_ready(watch, Transformer, SIZES, call=(src, tgt, PADDING))
