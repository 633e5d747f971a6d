"""Hidden checks of q3_7: EncoderLayer."""

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
from course_utils.instruments.torch_match import encoder_layer_state
from course_utils.instruments.work import functions_called

F64 = torch.float64
D, HEADS, WIDTH = 12, 3, 20
LENGTHS = (5, 3, 1, 4)
PADDING = torch.arange(5) >= torch.tensor(LENGTHS)[:, None]  # [4, 5], True = padding
ORDERS = pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])


def _theirs(rng, norm_first=True):
    """torch's layer with lively weights, in training mode (no fast path) with dropout 0."""
    layer = nn.TransformerEncoderLayer(D, HEADS, WIDTH, 0.0, "gelu", batch_first=True, norm_first=norm_first).double()
    for name, parameter in layer.named_parameters():
        noise = torch.randn(parameter.shape, generator=rng, dtype=F64)
        parameter.data = noise * 1.5 / math.sqrt(parameter.shape[-1]) if parameter.ndim > 1 else 0.3 * noise
        if name in ("norm1.weight", "norm2.weight"):
            parameter.data += 1
    return layer


def _mine(EncoderLayer, weights, *options, **more):
    """The student's layer in float64 and evaluation mode, with weights put in by name."""
    layer = EncoderLayer(D, HEADS, WIDTH, *options, **more)
    found = layer.parameter_shapes()
    for name, value in weights.items():
        check(name in found, f"there is no parameter `{name}`: the parts are self_attn (q_proj, k_proj, v_proj, "
              "o_proj), ff (fc1, fc2), norm1 and norm2")
        check(tuple(found[name]) == tuple(value.shape), f"`{name}` has shape {list(found[name])}, expected "
              f"{list(value.shape)}")
    extra = sorted(set(found) - set(weights))
    check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many")
    layer.double()
    layer.eval()
    layer.load_state_dict({**layer.state_dict(), **weights})
    return layer


def _run(layer, x, padding=None, what="the output"):
    got = layer(x) if padding is None else layer(x, key_padding_mask=padding)
    check(not isinstance(got, (tuple, list)), "forward returns one tensor [B, N, D], not a tuple (attention returns a "
          "pair: take its output)")
    got = tensor(got, what, x.shape, x.dtype)
    check(not got.isnan().any(), f"{what} has NaN")
    return got


def _x(rng, B=4, N=5, scale=1.0):
    return scale * torch.randn(B, N, D, generator=rng, dtype=F64)


def _attention(x, w, blocked, heads, scale):
    q, k, v = (F.linear(x, w[f"self_attn.{p}_proj.weight"], w[f"self_attn.{p}_proj.bias"])
               .unflatten(-1, (heads, -1)).transpose(1, 2) for p in "qkv")
    scores = q @ k.mT * (scale or 1 / math.sqrt(q.shape[-1]))
    if blocked is not None:
        scores = scores.masked_fill(blocked, -math.inf)
    out = (torch.softmax(scores, -1).nan_to_num() @ v).transpose(1, 2).flatten(2)
    return F.linear(out, w["self_attn.o_proj.weight"], w["self_attn.o_proj.bias"])


def _by_hand(x, w, blocked=None, order="pre", heads=HEADS, scale=None, activation=F.gelu, eps=1e-5, swap=False):
    """One layer, with the turns that one can take wrongly; `order` is where norms and residuals stand."""
    n1, n2 = ("norm2", "norm1") if swap else ("norm1", "norm2")

    def norm(name, z):
        return F.layer_norm(z, (D,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def attend(z):
        return _attention(z, w, blocked, heads, scale)

    def feed(z):
        return F.linear(activation(F.linear(z, w["ff.fc1.weight"], w["ff.fc1.bias"])), w["ff.fc2.weight"],
                        w["ff.fc2.bias"])

    for name, branch in ((n1, attend), (n2, feed)):
        x = {
            "pre": lambda x, n, f: x + f(norm(n, x)),
            "post": lambda x, n, f: norm(n, x + f(x)),
            "inside": lambda x, n, f: x + norm(n, f(x)),
            "from norm": lambda x, n, f: norm(n, x) + f(norm(n, x)),
            "no residual": lambda x, n, f: f(norm(n, x)),
            "no residual, post": lambda x, n, f: norm(n, f(x)),
            "no norm": lambda x, n, f: x + f(x),
            "no attention residual": lambda x, n, f: f(norm(n, x)) + (x if n == n2 else 0),
            "no feed-forward residual": lambda x, n, f: f(norm(n, x)) + (x if n == n1 else 0),
        }[order](x, name, branch)
    return x


def _causes(x, w, blocked, norm_first):
    right, other = ("pre", "post") if norm_first else ("post", "pre")
    wrong = {
        f"this is {other}-norm, and {right}-norm was asked for": _by_hand(x, w, blocked, other),
        "norm1 and norm2 have changed places": _by_hand(x, w, blocked, right, swap=True),
        "the branch's output is normalised, x + norm(f(x))": _by_hand(x, w, blocked, "inside"),
        "the residual starts from the normalised x; it starts from x itself": _by_hand(x, w, blocked, "from norm"),
        "the residual connections are missing":
            _by_hand(x, w, blocked, "no residual" if norm_first else "no residual, post"),
        "the residual around the attention is missing": _by_hand(x, w, blocked, "no attention residual"),
        "the residual around the feed-forward part is missing": _by_hand(x, w, blocked, "no feed-forward residual"),
        "the norms are missing": _by_hand(x, w, blocked, "no norm"),
        "the feed-forward part uses ReLU, and exact GELU is asked for": _by_hand(x, w, blocked, right,
                                                                                 activation=torch.relu),
        "the feed-forward part uses the tanh approximation of GELU": _by_hand(
            x, w, blocked, right, activation=lambda z: F.gelu(z, approximate="tanh")),
        "attention has one head only": _by_hand(x, w, blocked, right, heads=1),
        "the scores are divided by sqrt(D), and the width of a head belongs there":
            _by_hand(x, w, blocked, right, scale=1 / math.sqrt(D)),
        "the norms' eps is 1e-6": _by_hand(x, w, blocked, right, eps=1e-6),
        "the norms' eps is 1e-12": _by_hand(x, w, blocked, right, eps=1e-12),
    }
    N = x.shape[1]
    later = torch.ones(N, N, dtype=torch.bool).triu(1)
    wrong["the attention is causal; an encoder looks both ways"] = _by_hand(
        x, w, later if blocked is None else later | blocked, right)
    if blocked is not None:
        wrong["the mask has no effect"] = _by_hand(x, w, None, right)
        wrong["the mask is upside down (True = padding)"] = _by_hand(x, w, ~blocked, right)
    return wrong


def _value(got, theirs, x, what, norm_first, padding=None):
    """Against torch's layer, at the real positions, with the likely cause."""
    w, real = encoder_layer_state(theirs), torch.ones(x.shape[:2], dtype=torch.bool) if padding is None else ~padding
    expected = theirs(x, src_key_padding_mask=padding).detach()
    blocked = None if padding is None else padding[:, None, None]
    try:
        same(got[real], expected[real], what)
    except Wrong:  # only now are the causes worth their time
        causes = {cause: value[real] for cause, value in _causes(x, w, blocked, norm_first).items()}
        same_or_because(got[real], expected[real], what, causes)


@ORDERS
@pytest.mark.weight(3)
def test_agrees_with_torchs_layer(EncoderLayer, rng, norm_first):
    """With the weights of nn.TransformerEncoderLayer it gives the same output."""
    theirs = _theirs(rng, norm_first)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    for B, N in ((4, 5), (2, 7), (1, 1)):
        x = _x(rng, B, N)
        _value(_run(layer, x), theirs, x, f"the output for x of shape {[B, N, D]}", norm_first)


@ORDERS
@pytest.mark.weight(2)
def test_padding_agrees_with_torch(EncoderLayer, rng, norm_first):
    """With padding that differs from row to row, the real positions are those of nn.TransformerEncoderLayer."""
    theirs, x = _theirs(rng, norm_first), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    _value(_run(layer, x, PADDING), theirs, x, "the output at the real positions", norm_first, PADDING)
    front = PADDING.flip(1)
    _value(_run(layer, x, front), theirs, x, "the output at the real positions, padding in front", norm_first, front)
    none = torch.zeros_like(PADDING)
    _value(_run(layer, x, none), theirs, x, "the output with a mask that is False everywhere", norm_first, none)


def test_defaults(EncoderLayer, rng):
    """Without options the layer is pre-norm and has no dropout; options may be given by position."""
    theirs, x = _theirs(rng), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs))
    _value(_run(layer, x), theirs, x, "the output without norm_first", True)
    layer.train()
    _value(_run(layer, x), theirs, x, "the output in training mode, dropout being 0 by default", True)
    post = _theirs(rng, False)
    layer = _mine(EncoderLayer, encoder_layer_state(post), 0.0, False)
    _value(_run(layer, x), post, x, "the output of EncoderLayer(d_model, n_heads, d_ff, 0.0, False)", False)
    same(layer(x, PADDING)[~PADDING], post(x, src_key_padding_mask=PADDING)[~PADDING], "the output with the mask given "
         "by position")


@ORDERS
def test_small_entries(EncoderLayer, rng, norm_first):
    """Where entries are small the norms' eps counts: 1e-5, inside the root."""
    theirs = _theirs(rng, norm_first)
    if not norm_first:  # so that what the norms see is small as well
        for name, parameter in theirs.named_parameters():
            if "norm" in name or "out_proj" in name or "linear2" in name:
                parameter.data *= 3e-3
    x = _x(rng, scale=3e-3)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    _value(_run(layer, x), theirs, x, "the output for small entries", norm_first)


@ORDERS
@pytest.mark.weight(2)
def test_padding_never_leaks(EncoderLayer, rng, norm_first):
    """Other content in the padding, or more of it, moves no real position; real tokens do."""
    theirs, x = _theirs(rng, norm_first), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    before = _run(layer, x, PADDING)
    wild = x + 1e4 * torch.randn(4, 5, D, generator=rng, dtype=F64) * PADDING[..., None]
    same(_run(layer, wild, PADDING)[~PADDING], before[~PADDING], "the output at the real positions, after a change in "
         "the padding")
    longer = torch.cat([x, _x(rng, 4, 3)], 1), torch.cat([PADDING, torch.ones(4, 3, dtype=torch.bool)], 1)
    same(_run(layer, *longer)[:, :5][~PADDING], before[~PADDING], "the output at the real positions, with more padding")
    for row, length in enumerate(LENGTHS):
        alone = _run(layer, x[row : row + 1, :length])
        same(before[row : row + 1, :length], alone, f"the output of a row of {length} tokens, against that row alone")
    other = x.clone()
    other[:, 0, 0] += 1  # one entry, not all of them: the norm takes a common shift away
    moved = (_run(layer, other, PADDING) - before).abs().amax(-1)
    check((moved[~PADDING] > 1e-9).all(), "another first token moves nothing at some real position of its row: does "
          "attention reach it?")


@ORDERS
def test_nothing_but_padding(EncoderLayer, rng, norm_first):
    """A row that is all padding gets o_proj's bias from the attention, never NaN; the other rows stay as they are."""
    theirs, x = _theirs(rng, norm_first), _x(rng).requires_grad_()
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    padding = PADDING.clone()
    padding[2] = True
    got = tensor(layer(x, key_padding_mask=padding), "the output", x.shape, F64)
    check(got.isfinite().all(), "a row that is all padding gives an output that is not finite: a softmax over nothing")
    rows = [0, 1, 3]
    expected = theirs(x.detach()[rows], src_key_padding_mask=PADDING[rows])
    same(got[rows][~PADDING[rows]], expected[~PADDING[rows]], "the output of the other rows")
    blind = copy.deepcopy(theirs)  # values of zero: the attention gives its output bias
    blind.self_attn.in_proj_weight.data[2 * D :] = 0
    blind.self_attn.in_proj_bias.data[2 * D :] = 0
    row, w = x.detach()[2:3], encoder_layer_state(theirs)
    right = blind(row)
    bare = {name: 0 * value if "o_proj" in name else value for name, value in w.items()}
    same_or_because(got[2:3], right, "the output of the row that is all padding (attention over nothing is 0, so its "
                    "branch is o_proj's bias)", {
        "the row attends as if nothing were padding": theirs(row),
        "o_proj's bias is missing": _by_hand(row, bare, None, "pre" if norm_first else "post"),
        "the output at padding is set to 0": torch.zeros_like(right),
    })
    for told, some in (("alone", x.detach()[2:3]), ("among others that are all padding", x.detach())):
        every = torch.ones(some.shape[:2], dtype=torch.bool)
        same_or_because(_run(layer, some, every), blind(some), f"the output of a row that is all padding, {told} (a "
                        "mask of True everywhere is a mask)", {"the mask is thrown away": theirs(some)})
    got[~padding].sum().backward()
    check(x.grad.isfinite().all(), "a row that is all padding gives gradients that are not finite")
    check(all(g is None or g.isfinite().all() for g in layer.grads().values()), "a row that is all padding gives the "
          "parameters gradients that are not finite")


@ORDERS
@pytest.mark.weight(2)
def test_gradients(EncoderLayer, rng, norm_first):
    """Gradients reach x and every parameter, and they are those of nn.TransformerEncoderLayer."""
    theirs, x, up = _theirs(rng, norm_first), _x(rng), _x(rng)
    up[PADDING] = 0
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    got = _run(layer, mine, PADDING)
    check(got.requires_grad, "no gradient flows from the output")
    got.backward(up)
    theirs(other, src_key_padding_mask=PADDING).backward(up)
    same(mine.grad, other.grad, "the gradient of x")
    slopes = copy.deepcopy(theirs)
    for parameter, source in zip(slopes.parameters(), theirs.parameters(), strict=True):
        parameter.data = source.grad
    found = layer.grads()
    for name, expected in encoder_layer_state(slopes).items():
        check(found.get(name) is not None, f"no gradient reaches `{name}`")
        same(found[name], expected, f"the gradient of `{name}`")


def _constant(on, **more):
    """Weights of a layer whose one branch gives 1 everywhere, whatever it sees; the other gives 0."""
    layer = nn.TransformerEncoderLayer(D, HEADS, WIDTH, batch_first=True)
    weights = {name: torch.zeros_like(value, dtype=F64) for name, value in encoder_layer_state(layer).items()}
    return weights | {name: torch.ones(D, dtype=F64) for name in ("norm1.weight", "norm2.weight", on)} | more


@ORDERS
@pytest.mark.parametrize("branch", ["self_attn.o_proj.bias", "ff.fc2.bias"], ids=["attention", "feed-forward"])
def test_dropout_on_branches(EncoderLayer, rng, branch, norm_first):
    """In training mode dropout acts on what the branch adds, before it is added to x."""
    p, name = 0.3, "attention" if branch.startswith("self") else "feed-forward"
    layer = _mine(EncoderLayer, _constant(branch), dropout=p, norm_first=norm_first)
    layer.train()
    added = _run(layer, torch.zeros(10, 40, D, dtype=F64)).detach()
    if norm_first:
        shifted = _run(layer, torch.full((10, 40, D), 5.0, dtype=F64)).detach()
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


@pytest.mark.weight(2)
def test_dropout_on_attention_weights(EncoderLayer, rng):
    """In training mode dropout also acts on the attention weights, so that their sum is 1 on average only."""
    p = 0.3
    unit = {"self_attn.o_proj.weight": torch.eye(D, dtype=F64)}
    layer = _mine(EncoderLayer, _constant("self_attn.v_proj.bias", **unit), dropout=p)
    x = torch.randn(80, 6, D, generator=rng, dtype=F64)
    same(_run(layer, x), x + 1, "the output in evaluation mode, when every value is 1")
    layer.train()
    added = (_run(layer, x) - x).detach()
    kept = added[added.abs() > 1e-9] * (1 - p)  # what dropout on the branch left
    check(((kept - 1).abs() > 1e-6).double().mean() > 0.5, f"with dropout={p} the attention weights are never dropped: "
          "pass dropout on to the attention")
    check(abs(added.mean().item() - 1) < 0.12, f"dropout changes what is added on average: {added.mean().item():.2f}, "
          "expected 1")


def test_dropout_in_the_feed_forward_layer(EncoderLayer, rng):
    """In training mode dropout also acts inside ff, on its hidden units, so that their sum is right on average only."""
    p, unit = 0.3, F.gelu(torch.ones(1, dtype=F64)).item()
    share = torch.full((D, WIDTH), 1 / (WIDTH * unit), dtype=F64)
    layer = _mine(EncoderLayer, _constant("norm1.weight", **{
        "ff.fc1.bias": torch.ones(WIDTH, dtype=F64), "ff.fc2.weight": share}), dropout=p)
    x = torch.randn(80, 6, D, generator=rng, dtype=F64)
    same(_run(layer, x), x + 1, "the output in evaluation mode, when every hidden unit adds its share of 1")
    layer.train()
    added = (_run(layer, x) - x).detach()
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
def test_dropout_nowhere_else(EncoderLayer, rng, norm_first):
    """Dropout acts in no other place: x on its road, what a branch reads and what leaves the layer are whole."""
    p, zero = 0.3, _constant("norm1.weight")
    x = torch.randn(D // HEADS, D, generator=rng, dtype=F64)  # as many tokens as a head is wide
    x[:, 0], x[:, 1] = 2.0, -2.0
    layer = _mine(EncoderLayer, zero, dropout=p, norm_first=norm_first)
    layer.train()
    many = x.expand(60, *x.shape).contiguous()
    same(_run(layer, many), many if norm_first else _norm(_norm(many)), "the output in training mode, when both "
         "branches give 0 (dropout belongs on what is added, not on x, on a norm or on the result)", rtol=1e-6)
    free = torch.eye(D, dtype=F64)
    free[:2] = 0  # nothing is added to features 0 and 1
    q, k = (torch.randn(D, D, generator=rng, dtype=F64) / math.sqrt(D) for _ in range(2))
    read, road = (_norm(x), x) if norm_first else (x, x)
    w = zero | {"self_attn.q_proj.weight": q, "self_attn.k_proj.weight": k, "self_attn.o_proj.weight": free,
                "self_attn.v_proj.weight": _one_hot_values(read)}  # so that every attention weight is seen by itself
    first = torch.randn(WIDTH, D, generator=rng, dtype=F64)
    into, onto = (_norm(x), x) if norm_first else (_norm(x), _norm(x))
    feed = zero | {"ff.fc1.weight": first, "ff.fc2.weight": free @ torch.eye(D, WIDTH, dtype=F64)}
    for name, weights, whole, base in (("attention", w, _attention(read[None], w, None, HEADS, None)[0], road),
                                       ("feed-forward", feed, F.gelu(into @ first.T)[:, :D] @ free, onto)):
        layer = _mine(EncoderLayer, weights, dropout=p, norm_first=norm_first)
        layer.train()
        out = _run(layer, many).detach()
        _whole_or_dropped(out - x if norm_first else _added(out, base), whole, p, f"with dropout={p} the {name} branch "
                          "adds values that no dropout on its own places explains: is what it reads dropped as well, "
                          "or the sum, or the result?")


@ORDERS
def test_without_gradients(EncoderLayer, in_box, rng, norm_first):
    """Under torch.no_grad, and for an x that is a view with other strides, the output is the same; x stays as it is."""
    theirs, x = _theirs(rng, norm_first), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    for padding in (None, PADDING):
        with torch.no_grad():
            _value(_run(layer, x, padding), theirs, x, "the output under torch.no_grad", norm_first, padding)
        got = tensor(in_box(call_with_views, layer, x, padding), "the output for a transposed view", x.shape, F64)
        _value(got, theirs, x, "the output for a transposed view", norm_first, padding)


def test_long_sequences(EncoderLayer, rng):
    """Longer sequences, with padding from row to row and without, are no different."""
    theirs, N = _theirs(rng), int(torch.randint(40, 60, (1,), generator=rng))
    layer, x = _mine(EncoderLayer, encoder_layer_state(theirs)), _x(rng, 3, N)
    padding = torch.arange(N) >= torch.tensor([[N], [N // 2], [3]])
    for mask in (None, padding):
        _value(_run(layer, x, mask), theirs, x, f"the output for {N} tokens", True, mask)


@ORDERS
def test_evaluation_mode(EncoderLayer, rng, norm_first):
    """In evaluation mode dropout does nothing, before and after training."""
    theirs, x = _theirs(rng, norm_first), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), dropout=0.5, norm_first=norm_first)
    _value(_run(layer, x), theirs, x, "the output in evaluation mode with dropout=0.5", norm_first)
    layer.train()
    check(not torch.equal(_run(layer, x), _run(layer, x)), "two calls in training mode with dropout=0.5 give the same "
          "output")
    layer.eval()
    _value(_run(layer, x, PADDING), theirs, x, "the output back in evaluation mode", norm_first, PADDING)


def test_order_of_tokens(EncoderLayer, rng):
    """The layer knows no positions: reordered tokens give reordered outputs."""
    theirs, x = _theirs(rng), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs))
    order = torch.tensor([3, 0, 4, 1, 2])
    whole = _run(layer, x)
    same(_run(layer, x[:, order]), whole[:, order], "the output of reordered tokens")
    _value(whole, theirs, x, "the output", True)


@pytest.mark.integration
def test_stack(EncoderLayer, rng):
    """Together with your own q3_6: two layers on top of each other give what two of torch's give."""
    x = _x(rng)
    got = expected = x
    for theirs in (_theirs(rng), _theirs(rng)):
        got = _run(_mine(EncoderLayer, encoder_layer_state(theirs)), got, PADDING)
        expected = theirs(expected, src_key_padding_mask=PADDING)
    same(got[~PADDING], expected[~PADDING], "the output of two layers at the real positions")


def test_float32(EncoderLayer, rng):
    """A layer in float32 gives float32 outputs."""
    theirs, x = _theirs(rng), _x(rng)
    layer = _mine(EncoderLayer, encoder_layer_state(theirs))
    layer.float()
    got = tensor(layer(x.float(), key_padding_mask=PADDING), "the output", x.shape, torch.float32)
    expected = theirs(x, src_key_padding_mask=PADDING).float()
    same(got[~PADDING], expected[~PADDING], "the output at the real positions", rtol=1e-3, atol=1e-4)


@ORDERS
@pytest.mark.weight(8)  # both together are a quarter of the points: the layer is to be built, and to be right
def test_built_from_its_parts(EncoderLayer, in_box, rng, norm_first):
    """It is right and built from its parts, not with torch's layer, its attention or scaled_dot_product_attention."""
    theirs, x = _theirs(rng, norm_first), _x(rng, N=50)  # too many numbers to guess from times
    layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
    for mode in (layer.eval, layer.train):
        mode()
        for padding in (None, PADDING.repeat_interleave(10, 1)):
            got, used = in_box(functions_called, layer, x, padding)
            for name in ("multi_head_attention_forward", "native_multi_head_attention", "scaled_dot_product_attention",
                         "_layer_fwd"):
                check(not any(call.endswith(name) for call in used), f"the answer calls torch's {name}, which this "
                      "question rules out: it is what you are to build")
            _value(tensor(got, "the output", x.shape, F64), theirs, x, "the output", norm_first, padding)


@pytest.mark.weight(0.5)
def test_device(EncoderLayer, watch, rng):
    """Nothing is made on a fixed device: it would run on a GPU as it stands."""
    x = _x(rng).float()
    for options in ({}, {"norm_first": False}):
        device_ready(watch, EncoderLayer, (D, HEADS, WIDTH), options, call=(x,), kwargs={"key_padding_mask": PADDING})
