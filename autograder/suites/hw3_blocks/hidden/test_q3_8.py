"""Hidden checks of q3_8: DecoderLayer."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.suites.causes import same_or_because
from autograder.suites.devices import device_ready
from course_utils.checking.compare import Wrong, check, same, tensor
from course_utils.instruments.calls import call_with_views
from course_utils.instruments.torch_match import decoder_layer_state, encoder_layer_state
from course_utils.instruments.work import functions_called

F64 = torch.float64
D, HEADS, WIDTH = 12, 3, 20
T, S = 4, 6
LENGTHS = (6, 4, 1)
PADDING = torch.arange(S) >= torch.tensor(LENGTHS)[:, None]  # of the memory: [3, 6], True = padding
ORDERS = pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
NORMS = ("norm1", "norm2", "norm3")


def _lively(layer, rng):
    for name, parameter in layer.named_parameters():
        noise = torch.randn(parameter.shape, generator=rng, dtype=F64)
        parameter.data = noise * 1.5 / math.sqrt(parameter.shape[-1]) if parameter.ndim > 1 else 0.3 * noise
        if name.startswith("norm") and name.endswith("weight"):
            parameter.data += 1
    return layer


def _theirs(rng, norm_first=True):
    """torch's layer with lively weights and dropout 0."""
    layer = nn.TransformerDecoderLayer(D, HEADS, WIDTH, 0.0, "gelu", batch_first=True, norm_first=norm_first)
    return _lively(layer.double(), rng)


def _expected(theirs, x, memory, padding=None):
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return theirs(x, memory, tgt_mask=later, memory_key_padding_mask=padding)


def _loaded(layer, weights, parts):
    """The layer in float64 and evaluation mode, with weights put in by name."""
    found = layer.parameter_shapes()
    for name, value in weights.items():
        check(name in found, f"there is no parameter `{name}`: the parts are {parts}")
        check(tuple(found[name]) == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected "
              f"{list(value.shape)}")
    extra = sorted(set(found) - set(weights))
    check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many")
    layer.double()
    layer.eval()
    layer.load_state_dict({**layer.state_dict(), **weights})
    return layer


def _mine(DecoderLayer, weights, *options, **more):
    return _loaded(DecoderLayer(D, HEADS, WIDTH, *options, **more), weights,
                   "self_attn, cross_attn (q_proj, k_proj, v_proj, o_proj each), ff (fc1, fc2), norm1, norm2 and norm3")


def _run(layer, x, memory, padding=None, what="the output"):
    got = layer(x, memory) if padding is None else layer(x, memory, memory_padding_mask=padding)
    check(not isinstance(got, (tuple, list)), "forward returns one tensor [B, T, D], not a tuple (attention returns a "
          "pair: take its output)")
    got = tensor(got, what, x.shape, x.dtype)
    check(not got.isnan().any(), f"{what} has NaN")
    return got


def _draw(rng, B=3, length=T, source=S):
    return (torch.randn(B, n, D, generator=rng, dtype=F64) for n in (length, source))


def _attention(x, source, w, name, blocked):
    parts = ((x, "q"), (source, "k"), (source, "v"))
    q, k, v = (F.linear(z, w[f"{name}.{p}_proj.weight"], w[f"{name}.{p}_proj.bias"])
               .unflatten(-1, (HEADS, -1)).transpose(1, 2) for z, p in parts)
    scores = (q @ k.mT / math.sqrt(D // HEADS)).masked_fill(blocked, -math.inf)
    out = (torch.softmax(scores, -1).nan_to_num() @ v).transpose(1, 2).flatten(2)
    return F.linear(out, w[f"{name}.o_proj.weight"], w[f"{name}.o_proj.bias"])


def _by_hand(x, memory, w, norm_first, padding=None, causal=True, norms=NORMS, order="self cross ff", activation=F.gelu,
             rule=None, look_at="memory", ahead=True, eps=1e-5, cross="cross_attn", own="self_attn"):
    """One layer, with the turns that one can take wrongly."""
    length, source = x.shape[1], memory.shape[1]
    later = torch.ones(length, length, dtype=torch.bool).triu(1) & causal
    padded = torch.zeros(1, 1, 1, source, dtype=torch.bool) if padding is None else padding[:, None, None]

    def norm(name, z):
        return F.layer_norm(z, (D,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def feed(z):
        return F.linear(activation(F.linear(z, w["ff.fc1.weight"], w["ff.fc1.bias"])), w["ff.fc2.weight"],
                        w["ff.fc2.bias"])

    def look(z):
        if look_at == "itself":
            return _attention(z, z, w, cross, torch.zeros(1, dtype=torch.bool))
        ahead_of = torch.ones(length, source, dtype=torch.bool).triu(source - length + 1)
        blocked = padded if ahead else padded | ahead_of
        return _attention(z, memory if look_at == "memory" else norm(norms[1], memory), w, cross, blocked)

    branches = {"self": (norms[0], lambda z: _attention(z, z, w, own, later)), "cross": (norms[1], look),
                "ff": (norms[2], feed)}
    for part in order.split():
        name, f = branches[part]
        if rule is not None:
            x = rule(x, lambda z, name=name: norm(name, z), f)
        else:
            x = x + f(norm(name, x)) if norm_first else norm(name, x + f(x))
    return x


def _causes(x, memory, w, norm_first, padding):
    right, other = ("pre", "post") if norm_first else ("post", "pre")

    def wrong(**turns):
        return _by_hand(x, memory, w, **{"norm_first": norm_first, "padding": padding, **turns})

    found = {
        f"this is {other}-norm, and {right}-norm was asked for": wrong(norm_first=not norm_first),
        "self-attention sees later tokens; it is causal": wrong(causal=False),
        "cross-attention comes before self-attention": wrong(order="cross self ff"),
        "cross-attention is missing": wrong(order="self ff"),
        "the feed-forward part is missing": wrong(order="self cross"),
        "self-attention is missing": wrong(order="cross ff"),
        "norm2 belongs to the cross-attention and norm3 to the feed-forward part; they have changed places":
            wrong(norms=("norm1", "norm3", "norm2")),
        "norm1 belongs to the self-attention and norm2 to the cross-attention; they have changed places":
            wrong(norms=("norm2", "norm1", "norm3")),
        "self_attn and cross_attn have changed places": wrong(own="cross_attn", cross="self_attn"),
        "the memory is normalised as well; only the decoder's own stream is": wrong(look_at="normalised"),
        "cross-attention looks at the decoder's own tokens, not at the memory": wrong(look_at="itself"),
        "cross-attention is causal; only self-attention is": wrong(ahead=False),
        "the feed-forward part uses ReLU, and exact GELU is asked for": wrong(activation=torch.relu),
        "the feed-forward part uses the tanh approximation of GELU":
            wrong(activation=lambda z: F.gelu(z, approximate="tanh")),
        "the residual connections are missing":
            wrong(rule=lambda x, n, f: f(n(x)) if norm_first else n(f(x))),
        "the residual starts from the normalised x; it starts from x itself":
            wrong(rule=lambda x, n, f: n(x) + f(n(x))),
        "the branch's output is normalised, x + norm(f(x))": wrong(rule=lambda x, n, f: x + n(f(x))),
        "the norms' eps is not 1e-5": wrong(eps=1e-6),
        "the norms' eps is 1e-12": wrong(eps=1e-12),
    }
    if padding is not None:
        found["the padding mask of the memory has no effect"] = wrong(padding=None)
        found["the mask is upside down (True = padding)"] = wrong(padding=~padding)
    return found


def _value(got, theirs, x, memory, what, norm_first, padding=None):
    expected = _expected(theirs, x, memory, padding).detach()
    try:
        same(got, expected, what)
    except Wrong:  # only now are the causes worth their time
        same_or_because(got, expected, what, _causes(x, memory, decoder_layer_state(theirs), norm_first, padding))


@ORDERS
@pytest.mark.weight(3)
def test_agrees_with_torchs_layer(DecoderLayer, rng, norm_first):
    """With the weights of nn.TransformerDecoderLayer and a causal mask it gives the same output."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    for B, length, source in ((3, 4, 6), (2, 7, 3), (1, 5, 5), (2, 1, 4), (2, 3, 1)):
        x, memory = _draw(rng, B, length, source)
        _value(_run(layer, x, memory), theirs, x, memory, f"the output for T = {length} and S = {source}", norm_first)


@ORDERS
@pytest.mark.weight(2)
def test_memory_padding_agrees_with_torch(DecoderLayer, rng, norm_first):
    """With padding in the memory that differs from row to row, the output is that of nn.TransformerDecoderLayer."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    for length in (4, 6, 8):
        x, memory = _draw(rng, length=length)
        for told, padding in (("padding behind", PADDING), ("padding in front", PADDING.flip(1)),
                              ("a mask of False", torch.zeros_like(PADDING))):
            what = f"the output for T = {length}, S = {S} with {told}"
            _value(_run(layer, x, memory, padding), theirs, x, memory, what, norm_first, padding)


def test_defaults(DecoderLayer, rng):
    """Without options the layer is pre-norm and has no dropout; options and mask may be given by position."""
    theirs = _theirs(rng)
    x, memory = _draw(rng)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs))
    _value(_run(layer, x, memory), theirs, x, memory, "the output without norm_first", True)
    layer.train()
    _value(_run(layer, x, memory), theirs, x, memory, "the output in training mode, dropout being 0 by default", True)
    post = _theirs(rng, False)
    layer = _mine(DecoderLayer, decoder_layer_state(post), 0.0, False)
    _value(layer(x, memory, PADDING), post, x, memory, "the output of DecoderLayer(d_model, n_heads, d_ff, 0.0, False) "
           "with the mask given by position", False, PADDING)


@ORDERS
def test_small_entries(DecoderLayer, rng, norm_first):
    """Where entries are small the norms' eps counts: 1e-5, inside the root."""
    theirs = _theirs(rng, norm_first)
    for name, parameter in theirs.named_parameters():
        if "out_proj" in name or "linear2" in name or (not norm_first and name.startswith("norm")):
            parameter.data *= 3e-3
    x, memory = _draw(rng)
    x = 3e-3 * x
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    _value(_run(layer, x, memory), theirs, x, memory, "the output for small entries", norm_first)


@ORDERS
@pytest.mark.weight(2)
def test_causality(DecoderLayer, rng, norm_first):
    """A token moves its own output and later ones, never those before it; more tokens behind change nothing."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    x, memory = _draw(rng, length=5)
    before = _run(layer, x, memory, PADDING)
    for t in range(5):
        other = x.clone()
        other[:, t, 0] += 2
        moved = _run(layer, other, memory, PADDING)
        same(moved[:, :t], before[:, :t], f"the output before position {t}, whose token has changed (causal "
             "self-attention)")
        check((moved[:, t:] - before[:, t:]).abs().amax(-1).min() > 1e-9, f"the token at position {t} does not move "
              "its own output and all later ones")
    same(_run(layer, x[:, :3], memory, PADDING), before[:, :3], "the output of the first three tokens alone")
    _value(before, theirs, x, memory, "the output", norm_first, PADDING)


@ORDERS
@pytest.mark.weight(2)
def test_memory_padding_never_leaks(DecoderLayer, rng, norm_first):
    """Other content in the memory's padding, or more of it, changes nothing; real memory moves every output."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    x, memory = _draw(rng)
    before = _run(layer, x, memory, PADDING)
    wild = memory + 1e4 * torch.randn(3, S, D, generator=rng, dtype=F64) * PADDING[..., None]
    same(_run(layer, x, wild, PADDING), before, "the output after a change in the memory's padding")
    more = torch.cat([memory, _second(rng)], 1), torch.cat([PADDING, torch.ones(3, 2, dtype=torch.bool)], 1)
    same(_run(layer, x, *more), before, "the output with more padding in the memory")
    for row, length in enumerate(LENGTHS):
        alone = _run(layer, x[row : row + 1], memory[row : row + 1, :length])
        same(before[row : row + 1], alone, f"the output of a row with a memory of {length}, against that row alone")
    other = memory.clone()
    other[:, 0] += torch.randn(D, generator=rng, dtype=F64)
    moved = (_run(layer, x, other, PADDING) - before).abs().amax(-1)
    check((moved > 1e-9).all(), "another memory does not move every output: every position looks at the whole memory")


def _second(rng):
    return torch.randn(3, 2, D, generator=rng, dtype=F64)


@ORDERS
def test_memory_of_nothing_but_padding(DecoderLayer, rng, norm_first):
    """A row whose memory is all padding gets o_proj's bias from the cross-attention; never NaN, gradients included."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    x, memory = _draw(rng)
    padding = PADDING.clone()
    padding[1] = True
    leaf = x.clone().requires_grad_()
    got = tensor(layer(leaf, memory, memory_padding_mask=padding), "the output", x.shape, F64)
    check(got.isfinite().all(), "a memory that is all padding gives an output that is not finite")
    rows = [0, 2]
    same(got[rows], _expected(theirs, x[rows], memory[rows], PADDING[rows]), "the output of the other rows")
    blind = copy.deepcopy(theirs)  # values of zero: the cross-attention gives its output bias
    blind.multihead_attn.in_proj_weight.data[2 * D :] = 0
    blind.multihead_attn.in_proj_bias.data[2 * D :] = 0
    same(got[1:2], _expected(blind, x[1:2], memory[1:2]), "the output of the row without any memory")
    for told, rows in (("alone", slice(1, 2)), ("among others like it", slice(None))):
        some, source = x[rows], memory[rows]
        every = torch.ones(source.shape[:2], dtype=torch.bool)
        same_or_because(_run(layer, some, source, every), _expected(blind, some, source), "the output of a row whose "
                        f"memory is all padding, {told} (a mask of True everywhere is a mask)",
                        {"the mask is thrown away": _expected(theirs, some, source)})
    got.sum().backward()
    check(leaf.grad.isfinite().all() and all(g is None or g.isfinite().all() for g in layer.grads().values()),
          "a memory that is all padding gives gradients that are not finite")


@ORDERS
@pytest.mark.weight(2)
def test_gradients(DecoderLayer, rng, norm_first):
    """Gradients reach x, the memory and every parameter, and they are those of nn.TransformerDecoderLayer."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    values = list(_draw(rng))
    up = torch.randn(3, T, D, generator=rng, dtype=F64)
    mine, others = ([v.clone().requires_grad_() for v in values] for _ in range(2))
    got = _run(layer, *mine, PADDING)
    check(got.requires_grad, "no gradient flows from the output")
    got.backward(up)
    _expected(theirs, *others, PADDING).backward(up)
    for name, a, b in zip(("x", "memory"), mine, others, strict=True):
        check(a.grad is not None, f"no gradient reaches {name}")
        same(a.grad, b.grad, f"the gradient of {name}")
    slopes = copy.deepcopy(theirs)
    for parameter, source in zip(slopes.parameters(), theirs.parameters(), strict=True):
        parameter.data = source.grad
    found = layer.grads()
    for name, expected in decoder_layer_state(slopes).items():
        check(found.get(name) is not None, f"no gradient reaches `{name}`")
        same(found[name], expected, f"the gradient of `{name}`")


def _constant(on, **more):
    """Weights of a layer whose one branch gives 1 everywhere, whatever it sees; the others give 0."""
    layer = nn.TransformerDecoderLayer(D, HEADS, WIDTH, batch_first=True)
    weights = {name: torch.zeros_like(value, dtype=F64) for name, value in decoder_layer_state(layer).items()}
    return weights | {name: torch.ones(D, dtype=F64) for name in (*(f"{n}.weight" for n in NORMS), on)} | more


BRANCHES = {"self-attention": "self_attn.o_proj.bias", "cross-attention": "cross_attn.o_proj.bias",
            "feed-forward": "ff.fc2.bias"}


@ORDERS
@pytest.mark.parametrize("name", list(BRANCHES))
def test_dropout_on_branches(DecoderLayer, rng, name, norm_first):
    """In training mode dropout acts on what the branch adds, before it is added to x."""
    p = 0.3
    layer = _mine(DecoderLayer, _constant(BRANCHES[name]), dropout=p, norm_first=norm_first)
    layer.train()
    memory = torch.zeros(10, 3, D, dtype=F64)
    added = _run(layer, torch.zeros(10, 40, D, dtype=F64), memory).detach()
    if norm_first:
        shifted = _run(layer, torch.full((10, 40, D), 5.0, dtype=F64), memory).detach()
        check((shifted > 4.9).all(), f"dropout acts on the sum of x and the {name} branch; it belongs on the branch")
        seen, kept = sorted({round(v, 6) for v in added.flatten().tolist()}), 1 / (1 - p)
        check(seen != [1.0], f"with dropout={p} the {name} branch is added whole: dropout belongs on every branch")
        check(round(kept**2, 6) not in seen, f"dropout acts twice on the output of the {name} branch")
        check(len(seen) == 2 and abs(seen[0]) < 1e-6 and abs(seen[1] - kept) < 1e-5,
              f"with dropout={p}, a {name} branch of 1 adds {seen[:4]}, expected 0 or {kept:.4g}")
        gone = added.abs() < 1e-6  # [10, 40, D]
        for axis, told in ((2, "all entries of a token"), (1, "all tokens of a sequence"), (0, "all rows of a batch")):
            check(not (gone == gone.narrow(axis, 0, 1)).all(), f"{told} lose the {name} branch together; every entry "
                  "is dropped or kept on its own")
    spread = added.amax(-1) - added.amin(-1) > 0.1  # rows in which something was dropped
    check(spread.any(), f"with dropout={p} the {name} branch is added whole: dropout belongs on every branch")
    middle = (added.amax(-1, keepdim=True) + added.amin(-1, keepdim=True)) / 2
    dropped = (added < middle)[spread].double().mean().item()
    check(abs(dropped - p) < 0.06, f"dropout={p} drops {dropped:.0%} of what the {name} branch adds")


@pytest.mark.parametrize("part", ["self_attn", "cross_attn"])
def test_dropout_on_attention_weights(DecoderLayer, rng, part):
    """In training mode dropout also acts on the attention weights, so that their sum is 1 on average only."""
    p, unit = 0.3, torch.eye(D, dtype=F64)
    layer = _mine(DecoderLayer, _constant(f"{part}.v_proj.bias", **{f"{part}.o_proj.weight": unit}), dropout=p)
    x, memory = _draw(rng, 80, 6, 5)
    same(_run(layer, x, memory), x + 1, "the output in evaluation mode, when every value is 1")
    layer.train()
    added = (_run(layer, x, memory) - x).detach()
    kept = added[added.abs() > 1e-9] * (1 - p)  # what dropout on the branch left
    check(((kept - 1).abs() > 1e-6).double().mean() > 0.5, f"with dropout={p} the weights of {part} are never dropped: "
          "pass dropout on to the attention")
    check(abs(added.mean().item() - 1) < 0.15, f"dropout changes what is added on average: {added.mean().item():.2f}, "
          "expected 1")


def test_dropout_in_the_feed_forward_layer(DecoderLayer, rng):
    """In training mode dropout also acts inside ff, on its hidden units, so that their sum is right on average only."""
    p, unit = 0.3, F.gelu(torch.ones(1, dtype=F64)).item()
    share = torch.full((D, WIDTH), 1 / (WIDTH * unit), dtype=F64)
    layer = _mine(DecoderLayer, _constant("norm1.weight", **{
        "ff.fc1.bias": torch.ones(WIDTH, dtype=F64), "ff.fc2.weight": share}), dropout=p)
    x, memory = _draw(rng, 80, 6, 5)
    same(_run(layer, x, memory), x + 1, "the output in evaluation mode, when every hidden unit adds its share of 1")
    layer.train()
    added = (_run(layer, x, memory) - x).detach()
    kept = added[added.abs() > 1e-9] * (1 - p)  # what dropout on the branch left
    check(((kept - 1).abs() > 1e-6).double().mean() > 0.5, f"with dropout={p} the hidden units of ff are never "
          "dropped: pass dropout on to the feed-forward layer")
    check(abs(added.mean().item() - 1) < 0.12, f"dropout changes what is added on average: {added.mean().item():.2f}, "
          "expected 1")


def _norm(x):
    return F.layer_norm(x, (D,))


def _one_hot_values(source):
    """v_proj's weight that gives token j of `source` [D / HEADS, D] the value e_j in every head: [D, D]."""
    return torch.eye(D // HEADS, dtype=F64).repeat(HEADS, 1) @ torch.linalg.pinv(source.T)


def _added(out, road):
    """What was added to `road`: a norm leaves it known up to scale and shift, and features 0 and 1 tell those."""
    scale = (road[..., :1] - road[..., 1:2]) / (out[..., :1] - out[..., 1:2])
    return scale * (out - out[..., :1]) + road[..., :1] - road


def _whole_or_dropped(added, whole, p, told):
    """Every entry is 0 or the whole one, grown by 1 / (1 - p) for each place where dropout may act."""
    allowed = [torch.zeros_like(whole), *(whole / (1 - p) ** n for n in range(3))]
    near = torch.stack([(added - value).abs() <= 1e-6 * (1 + value.abs()) for value in allowed]).any(0)
    check(near.all(), told)


@ORDERS
def test_dropout_nowhere_else(DecoderLayer, rng, norm_first):
    """Dropout acts in no other place: x on its road, memory, what a branch reads and what leaves a layer are whole."""
    p, zero, tokens = 0.3, _constant("norm1.weight"), D // HEADS  # as many tokens as a head is wide
    x, memory = torch.randn(2, tokens, D, generator=rng, dtype=F64)
    x[:, 0], x[:, 1] = 2.0, -2.0
    layer = _mine(DecoderLayer, zero, dropout=p, norm_first=norm_first)
    layer.train()
    many, source = (v.expand(60, *v.shape).contiguous() for v in (x, memory))
    same(_run(layer, many, source), many if norm_first else _norm(_norm(_norm(many))), "the output in training mode, "
         "when all branches give 0 (dropout belongs on what is added, not on x, on a norm or on the result)", rtol=1e-6)
    free = torch.eye(D, dtype=F64)
    free[:2] = 0  # nothing is added to features 0 and 1
    q, k = (torch.randn(D, D, generator=rng, dtype=F64) / math.sqrt(D) for _ in range(2))
    first = torch.randn(WIDTH, D, generator=rng, dtype=F64)
    later = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    roads = (x, x, x) if norm_first else (x, _norm(x), _norm(_norm(x)))  # what each branch is added to
    for name, part, road in zip(BRANCHES, ("self_attn", "cross_attn", "ff"), roads, strict=True):
        read = _norm(x) if norm_first else road
        if part == "ff":
            weights = zero | {"ff.fc1.weight": first, "ff.fc2.weight": free @ torch.eye(D, WIDTH, dtype=F64)}
            whole = F.gelu(read @ first.T)[:, :D] @ free
        else:  # every attention weight is seen by itself
            seen, blocked = (read, later) if part == "self_attn" else (memory, later & False)
            weights = zero | {f"{part}.q_proj.weight": q, f"{part}.k_proj.weight": k, f"{part}.o_proj.weight": free,
                              f"{part}.v_proj.weight": _one_hot_values(seen)}
            whole = _attention(read[None], seen[None], weights, part, blocked)[0]
        layer = _mine(DecoderLayer, weights, dropout=p, norm_first=norm_first)
        layer.train()
        out = _run(layer, many, source).detach()
        _whole_or_dropped(out - x if norm_first else _added(out, road), whole, p, f"with dropout={p} the {name} branch "
                          "adds values that no dropout on its own places explains: is what it reads dropped as well, "
                          "or the memory, or the sum, or the result?")


@ORDERS
def test_without_gradients(DecoderLayer, in_box, rng, norm_first):
    """Under torch.no_grad, and for views with other strides, the output is the same; x and memory stay as they are."""
    theirs = _theirs(rng, norm_first)
    x, memory = _draw(rng)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    for padding in (None, PADDING):
        with torch.no_grad():
            got = _run(layer, x, memory, padding)
        _value(got, theirs, x, memory, "the output under torch.no_grad", norm_first, padding)
        got = tensor(in_box(call_with_views, layer, x, memory, padding), "the output for views", x.shape, F64)
        _value(got, theirs, x, memory, "the output for transposed views", norm_first, padding)


@ORDERS
def test_long_sequences(DecoderLayer, rng, norm_first):
    """Long targets are causal too, and long memories are read to their end, T above S and below."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    some = int(torch.randint(40, 60, (1,), generator=rng))
    for length, source in ((some, 20), (20, some), (some, some)):
        x, memory = _draw(rng, 2, length, source)
        padding = torch.arange(source) >= torch.tensor([[source], [source // 2]])
        for mask in (None, padding):
            _value(_run(layer, x, memory, mask), theirs, x, memory, f"the output for T = {length} and S = {source}",
                   norm_first, mask)


def test_evaluation_mode(DecoderLayer, rng):
    """In evaluation mode dropout does nothing, before and after training."""
    theirs = _theirs(rng)
    x, memory = _draw(rng)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), dropout=0.5)
    _value(_run(layer, x, memory), theirs, x, memory, "the output in evaluation mode with dropout=0.5", True)
    layer.train()
    check(not torch.equal(_run(layer, x, memory), _run(layer, x, memory)), "two calls in training mode with "
          "dropout=0.5 give the same output")
    layer.eval()
    _value(_run(layer, x, memory, PADDING), theirs, x, memory, "the output back in evaluation mode", True, PADDING)


@pytest.mark.integration
def test_on_top_of_an_encoder(EncoderLayer, DecoderLayer, rng):
    """Together with your own q3_6 and q3_7: a decoder layer that looks at an encoder layer's output."""
    encoder = nn.TransformerEncoderLayer(D, HEADS, WIDTH, 0.0, "gelu", batch_first=True, norm_first=True).double()
    encoder, decoder = _lively(encoder, rng), _theirs(rng)
    parts = "self_attn (q_proj, k_proj, v_proj, o_proj), ff (fc1, fc2), norm1 and norm2"
    below = _loaded(EncoderLayer(D, HEADS, WIDTH), encoder_layer_state(encoder), parts)
    above = _mine(DecoderLayer, decoder_layer_state(decoder))
    x, source = _draw(rng)
    got = _run(above, x, below(source, key_padding_mask=PADDING), PADDING)
    expected = _expected(decoder, x, encoder(source, src_key_padding_mask=PADDING), PADDING)
    same(got, expected, "the output of an encoder layer and a decoder layer together")


def test_float32(DecoderLayer, rng):
    """A layer in float32 gives float32 outputs."""
    theirs = _theirs(rng)
    x, memory = _draw(rng)
    layer = _mine(DecoderLayer, decoder_layer_state(theirs))
    layer.float()
    got = tensor(layer(x.float(), memory.float(), memory_padding_mask=PADDING), "the output", x.shape, torch.float32)
    same(got, _expected(theirs, x, memory, PADDING).float(), "the output", rtol=1e-3, atol=1e-4)


@ORDERS
@pytest.mark.weight(9)  # both together are a quarter of the points: the layer is to be built, and to be right
def test_built_from_its_parts(DecoderLayer, in_box, rng, norm_first):
    """It is right and built from its parts, not with torch's layer, its attention or scaled_dot_product_attention."""
    theirs, (x, memory) = _theirs(rng, norm_first), _draw(rng, length=30, source=5 * S)  # too many to guess from times
    layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
    for mode in (layer.eval, layer.train):
        mode()
        for padding in (None, PADDING.repeat_interleave(5, 1)):
            got, used = in_box(functions_called, layer, x, memory, padding)
            for name in ("multi_head_attention_forward", "native_multi_head_attention", "scaled_dot_product_attention",
                         "_layer_fwd"):
                check(not any(call.endswith(name) for call in used), f"the answer calls torch's {name}, which this "
                      "question rules out: it is what you are to build")
            _value(tensor(got, "the output", x.shape, F64), theirs, x, memory, "the output", norm_first, padding)


@pytest.mark.weight(0.5)
def test_device(DecoderLayer, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    x, memory = (v.float() for v in _draw(rng))
    for options in ({}, {"norm_first": False}):
        device_ready(watch, DecoderLayer, (D, HEADS, WIDTH), options, call=(x, memory),
                     kwargs={"memory_padding_mask": PADDING})
