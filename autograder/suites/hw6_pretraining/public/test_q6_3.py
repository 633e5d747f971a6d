"""Public checks of q6_3: BERT."""

import math

import torch
import torch.nn.functional as F

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.checking.raises import expect_value_error, raises_value_error
from course_utils.instruments.slopes import slopes

F64 = torch.float64
SIZES = (11, 8, 2, 16, 1, 6)
IDS = torch.tensor([[1, 7, 8, 2, 9, 2], [1, 5, 2, 6, 2, 0]])
SEGMENTS = torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]])
PADDING = torch.arange(6) >= torch.tensor([6, 5])[:, None]
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "fc1", "fc2", "mlm_dense", "pooler", "nsp")


def _shapes():
    V, D, _, d_ff, _, longest = SIZES
    found = {
        "token_embed.weight": (V, D),
        "position_embed.weight": (longest, D),
        "segment_embed.weight": (2, D),
        "mlm_bias": (V,),
        "mlm_dense.weight": (D, D),
        "pooler.weight": (D, D),
        "nsp.weight": (2, D),
        "layers.0.ff.fc1.weight": (d_ff, D),
        "layers.0.ff.fc2.weight": (D, d_ff),
    }
    found |= {f"layers.0.self_attn.{p}_proj.weight": (D, D) for p in "qkvo"}
    found |= {
        name.replace(".weight", ".bias"): shape[:1]
        for name, shape in found.items()
        if name != "mlm_bias" and name.split(".")[-2] in LINEAR
    }
    return found | {
        f"{norm}.{kind}": (D,)
        for norm in ("embed_norm", "mlm_norm", "layers.0.norm1", "layers.0.norm2")
        for kind in ("weight", "bias")
    }


def _model(BERT, seed=6, sizes=SIZES):
    """A BERT in float64 with weights that are a function of their names, and these weights."""
    model = BERT(*sizes).double().eval()
    state, weights = model.state_dict(), {}
    for i, (name, shape) in enumerate(sorted(_shapes().items())):
        check(name in state, f"there is no parameter `{name}`: use the names of the table")
        check(
            tuple(state[name].shape) == shape, f"`{name}` has shape {list(state[name].shape)}, expected {list(shape)}"
        )
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(100 * seed + i), dtype=F64)
        weights[name] = noise * (0.7 if len(shape) > 1 else 0.3) + ("norm" in name and name.endswith("weight"))
    tied = {
        name: weights["token_embed.weight"]
        for name, value in state.items()
        if name not in weights and tuple(value.shape) == SIZES[:2]
    }
    model.load_state_dict({**state, **tied, **weights})
    return model, weights


def _norm(x, w, name):
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"])


def _linear(x, w, name):
    return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def _by_hand(w, ids, segments, padding):
    """One layer of BERT, written out."""
    x = w["token_embed.weight"][ids] + w["position_embed.weight"][: ids.shape[1]] + w["segment_embed.weight"][segments]
    x = _norm(x, w, "embed_norm")
    q, k, v = (_linear(x, w, f"layers.0.self_attn.{p}_proj").unflatten(-1, (2, -1)).transpose(1, 2) for p in "qkv")
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(padding[:, None, None], -torch.inf)
    out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    x = _norm(x + _linear(out, w, "layers.0.self_attn.o_proj"), w, "layers.0.norm1")
    h = _norm(x + _linear(F.gelu(_linear(x, w, "layers.0.ff.fc1")), w, "layers.0.ff.fc2"), w, "layers.0.norm2")
    guess = _norm(F.gelu(_linear(h, w, "mlm_dense")), w, "mlm_norm")
    words = guess @ w["token_embed.weight"].T + w["mlm_bias"]
    return h, words, _linear(torch.tanh(_linear(h[:, 0], w, "pooler")), w, "nsp")


def test_names(BERT):
    """The parameters have the names and shapes of the table: 957 numbers for BERT(11, 8, 2, 16, 1, 6)."""
    # keeps: names
    model = BERT(*SIZES)
    found, wanted = {name: tuple(x.shape) for name, x in model.state_dict().items()}, _shapes()
    for name, shape in wanted.items():
        check(found.get(name) == shape, f"`{name}` should be there with shape {list(shape)}")
    check(sum(math.prod(shape) for shape in wanted.values()) == 957, "957 numbers")


def test_values(BERT):
    """encode and forward give the numbers of the formulas, with segments and padding."""
    # keeps: encode, forward
    model, weights = _model(BERT)
    h, words, pair = _by_hand(weights, IDS, SEGMENTS, PADDING)
    got = model.encode(IDS, SEGMENTS, PADDING)
    same(tensor(got, "encode's result", (2, 6, 8))[~PADDING], h[~PADDING], "encode's result at real tokens")
    got = model(IDS, SEGMENTS, PADDING)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward gives the pair (word_logits, pair_logits)")
    same(tensor(got[0], "the word logits", (2, 6, 11))[~PADDING], words[~PADDING], "the word logits at real tokens")
    same(got[1], pair, "the pair logits")


def _slopes(BERT):
    return run_beside(slopes, _model(BERT)[0], IDS, SEGMENTS, PADDING)


def test_where_gradients_go(BERT):
    """Every parameter gets a gradient, and the table of tokens gets it from both its uses."""
    # keeps: names, forward
    found = _slopes(BERT)
    still = [name for name in _shapes() if name not in found or not found[name].any()]
    still = [name for name in still if not name.endswith("k_proj.bias")]  # it cancels in the softmax
    check(not still, f"no gradient reaches `{still[0] if still else ''}`: is something frozen, detached or not used?")
    unseen = found["token_embed.weight"][10]  # token 10 is not in the input: only the word logits reach its row
    check(unseen.any(), "the word logits send no gradient to `token_embed.weight`: it is detached there, or not tied")


def _deep(BERT):
    """Two layers, lively weights, in float64."""
    model = BERT(11, 8, 2, 16, 2, 6).double().eval()
    state = dict(model.state_dict())
    for name in [name for name in state if name.endswith(("weight", "bias"))]:
        g = torch.Generator().manual_seed(sum(i * byte for i, byte in enumerate(name.encode(), 1)))
        noise = 0.4 * torch.randn(state[name].shape, generator=g, dtype=F64)
        state[name] = noise + ("norm" in name and name.endswith("weight"))
    tied = {name: state["token_embed.weight"] for name, x in state.items() if tuple(x.shape) == SIZES[:2]}
    model.load_state_dict(state | tied)
    return model


def _moved_by_padding(BERT):
    model = _deep(BERT)
    words = [model(ids, SEGMENTS, PADDING)[0][~PADDING] for ids in (IDS, IDS.masked_fill(PADDING, 4))]
    return float((words[0] - words[1]).detach().abs().max())


def test_two_layers(BERT):
    """With two layers, too, what stands in padding moves no real token."""
    # keeps: padding
    moved = _moved_by_padding(BERT)
    check(
        moved < 1e-9,
        f"another token in the padding moves word logits of real tokens by {moved:.2g} in a model of two layers: "
        "padding is masked in every layer, by each row's own mask",
    )


def test_embeddings_are_dropped_out(BERT):
    """In training mode the normed sum of the embeddings is dropped out; in evaluation mode nothing is."""
    # keeps: encode
    model = BERT(*SIZES, dropout=0.5)
    silent = {
        name: torch.zeros_like(value) if "o_proj" in name or "fc2" in name else value
        for name, value in model.state_dict().items()
    }
    model.load_state_dict(silent)  # no branch adds anything
    model.train()
    check(
        (model.encode(IDS) - model.encode(IDS)).abs().max() > 1e-6,
        "with branches that add nothing two passes in training mode with dropout=0.5 are the same: drop out the "
        "embeddings, after their norm",
    )
    model.eval()
    same(model.encode(IDS).detach(), model.encode(IDS).detach(), "a second pass in evaluation mode")


def test_no_segments(BERT):
    """Without segments all tokens are of segment 0; without a mask nothing is padding."""
    # keeps: no-segments
    model, weights = _model(BERT)
    nothing = torch.zeros_like(PADDING)
    _, words, pair = _by_hand(weights, IDS, torch.zeros_like(IDS), nothing)
    got = model(IDS)
    same(got[0], words, "the word logits without segments")
    same(got[1], pair, "the pair logits without segments")


def test_padding(BERT):
    """What stands in padding, and how much of it there is, moves no real token."""
    # keeps: padding
    model, _ = _model(BERT)
    before = model(IDS, SEGMENTS, PADDING)
    other = IDS.masked_fill(PADDING, 4)
    after = model(other, SEGMENTS, PADDING)
    same_as_yours(after[0][~PADDING], before[0][~PADDING], "the word logits after a change in the padding", "before it")
    same_as_yours(after[1], before[1], "the pair logits after a change in the padding", "before it")
    short = model(IDS[1:, :5], SEGMENTS[1:, :5], None)
    same_as_yours(short[1], before[1][1:], "the pair logits without the padding", "with it")


def test_too_long(BERT):
    """More than max_len tokens are a ValueError."""
    # keeps: too-long
    model = BERT(*SIZES)
    expect_value_error("7 tokens with max_len=6", model, torch.ones(1, 7, dtype=torch.long))
    expect_value_error("7 tokens with max_len=6, in encode,", model.encode, torch.ones(1, 7, dtype=torch.long))


def test_start(BERT):
    """Embeddings and linear weights start as N(0, 0.02^2), biases at 0."""
    # keeps: start
    state = BERT(50, 32, 4, 64, 2, 20).state_dict()
    for name, value in state.items():
        if name.endswith("weight") and "norm" not in name:
            spread = value.std().item()
            check(0.012 < spread < 0.03, f"`{name}` starts with a standard deviation of {spread:.3f}, expected 0.02")
        elif name.endswith("bias"):
            check((value == 0).all(), f"`{name}` does not start at 0")


def probe_encode(BERT):
    return _model(BERT)[0].encode(IDS, SEGMENTS, PADDING)[~PADDING]


def probe_words(BERT):
    return _model(BERT)[0](IDS, SEGMENTS, PADDING)[0][~PADDING]


def probe_pairs(BERT):
    return _model(BERT)[0](IDS, SEGMENTS, PADDING)[1]


def probe_no_segments(BERT):
    return _model(BERT)[0](IDS)[1]


def probe_padding(BERT):
    return (
        _model(BERT)[0](IDS, SEGMENTS, PADDING)[1] - _model(BERT)[0](IDS.masked_fill(PADDING, 4), SEGMENTS, PADDING)[1]
    )


def probe_too_long(BERT):
    model = BERT(*SIZES)
    return raises_value_error(model, torch.ones(1, 7, dtype=torch.long))


def probe_start(BERT):
    state = BERT(50, 32, 4, 64, 2, 20).state_dict()
    return {name: value.double().std().item() > 0.06 for name, value in state.items() if value.ndim > 1}


def probe_dropout(BERT):
    model = BERT(11, 8, 2, 16, 1, 6, 1.0).train()
    return [x.detach().abs().sum().item() > 0 for x in (model.encode(IDS), *model(IDS))]


def probe_two_layers(BERT):
    model = _deep(BERT)
    return model(IDS, SEGMENTS, PADDING)[0][~PADDING]


def probe_slopes(BERT):
    found = _slopes(BERT)
    return [name in found and bool(found[name].any()) for name in ("position_embed.weight", "segment_embed.weight")], (
        bool(found["token_embed.weight"][10].any()) if "token_embed.weight" in found else None
    )


def probe_first_row_padded(BERT):
    ids, segments, padding = (x.flip(0) for x in (IDS, SEGMENTS, PADDING))
    return _model(BERT)[0](ids, segments, padding)[0][~padding]
