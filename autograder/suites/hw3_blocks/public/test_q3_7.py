"""Public checks of q3_7: EncoderLayer."""

import torch
from torch import nn

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.instruments.torch_match import encoder_layer_state
from course_utils.instruments.work import functions_called

RULED_OUT = ("multi_head_attention_forward", "scaled_dot_product_attention", "_layer_fwd")
F64 = torch.float64
D, HEADS, WIDTH = 6, 2, 10
PADDING = torch.tensor([[False] * 4, [False, False, False, True]])


def _theirs(norm_first, seed=37):
    """torch's layer with fixed, lively weights; dropout is 0, so training mode changes nothing."""
    layer = nn.TransformerEncoderLayer(D, HEADS, WIDTH, 0.0, "gelu", batch_first=True, norm_first=norm_first).double()
    g = torch.Generator().manual_seed(seed)
    for name, parameter in layer.named_parameters():
        noise = torch.randn(parameter.shape, generator=g, dtype=F64) * (0.5 if parameter.ndim > 1 else 0.3)
        parameter.data = noise + (1.0 if name in ("norm1.weight", "norm2.weight") else 0.0)
    return layer


def _mine(EncoderLayer, weights, **options):
    """The student's layer in float64 and evaluation mode, with the weights put in by name."""
    layer = EncoderLayer(D, HEADS, WIDTH, **options)
    layer.double()
    layer.eval()
    state = layer.state_dict()
    missing = [name for name in weights if name not in state]
    check(not missing, f"there is no parameter `{missing[0] if missing else ''}`: the parts are self_attn, ff, norm1 "
          "and norm2")
    layer.load_state_dict({**state, **weights})
    return layer


def _x(B=2, N=4):
    return torch.randn(B, N, D, generator=torch.Generator().manual_seed(38), dtype=F64)


def test_agrees_with_torch(EncoderLayer):
    """With the weights of nn.TransformerEncoderLayer it gives the same output, pre-norm and post-norm."""
    # keeps: agrees, names, norm-orders
    x = _x()
    for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
        theirs = _theirs(norm_first)
        got = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)(x)
        check(isinstance(got, torch.Tensor), "forward returns one tensor [B, N, D] (attention itself returns a pair)")
        same(got, theirs(x), f"the {told} output")
    default = _mine(EncoderLayer, encoder_layer_state(_theirs(True)))(x)
    same(default, _theirs(True)(x), "the output without norm_first, which is pre-norm")


def test_padding(EncoderLayer):
    """A padded token (True in the mask) moves no real one, pre-norm and post-norm; each row has a mask of its own."""
    # keeps: padding
    x = _x()
    for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
        layer = _mine(EncoderLayer, encoder_layer_state(_theirs(norm_first)), norm_first=norm_first)
        for mask in (PADDING, PADDING.flip(0)):
            got = tensor(layer(x, key_padding_mask=mask), "the output", x.shape, F64)
            other = tensor(layer(x + 5 * mask[..., None], key_padding_mask=mask), "the output", x.shape, F64)
            same_as_yours(other[~mask], got[~mask], f"the {told} output at the real positions, after a change in the "
                          "padding", "before it")


def test_agrees_with_padding(EncoderLayer):
    """With padding, too, the output at the real positions is that of torch's layer."""
    # keeps: padding, agrees
    x = _x()
    for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
        theirs = _theirs(norm_first)
        layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
        for mask in (PADDING, PADDING.flip(0)):
            got, expected = layer(x, key_padding_mask=mask), theirs(x, src_key_padding_mask=mask)
            same(tensor(got, "the output", x.shape, F64)[~mask], expected[~mask],
                 f"the {told} output at the real positions, row {int(mask[0].any()) ^ 1} being padded")


def test_gradients_flow(EncoderLayer):
    """The gradients by x and by every parameter are those of torch's layer, pre-norm and post-norm."""
    # keeps: agrees
    for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
        theirs = _theirs(norm_first)
        layer = _mine(EncoderLayer, encoder_layer_state(theirs), norm_first=norm_first)
        mine, x = _x().requires_grad_(), _x().requires_grad_()
        for output in (layer(mine), theirs(x)):
            (output * torch.linspace(-1, 1, output.numel(), dtype=F64).reshape(output.shape)).sum().backward()
        check(mine.grad is not None, f"no gradient reaches x in {told}")
        same(mine.grad, x.grad, f"the gradient by x in {told} (is a part detached, or under no_grad?)")


def test_residual(EncoderLayer):
    """With both branches at zero, a pre-norm layer gives x back and a post-norm layer its norm."""
    # keeps: residual
    x = _x()
    zero = {name: 0 * value if "o_proj" in name or "fc2" in name else value
            for name, value in encoder_layer_state(_theirs(True)).items()}
    same(_mine(EncoderLayer, zero)(x), x, "the pre-norm output with nothing in the branches")
    norms = {name: torch.ones(D, dtype=F64) * ("weight" in name) for name in zero if "norm" in name}
    got = _mine(EncoderLayer, {**zero, **norms}, norm_first=False)(x)
    same(got, nn.functional.layer_norm(x, (D,)), "the post-norm output with nothing in the branches", rtol=1e-4)


def test_dropout(EncoderLayer):
    """Dropout acts in training mode and not in evaluation mode."""
    # keeps: dropout-places
    x, weights = _x(), encoder_layer_state(_theirs(True))
    layer = _mine(EncoderLayer, weights, dropout=0.5)
    same(layer(x), _theirs(True)(x), "the output in evaluation mode with dropout=0.5")
    layer.train()
    check(not torch.equal(layer(x), layer(x)), "two calls in training mode give the same output with dropout=0.5")


def _output(EncoderLayer, x=None, padding=None, **options):
    norm_first = options.get("norm_first", True)
    layer = _mine(EncoderLayer, encoder_layer_state(_theirs(norm_first)), **options)
    return layer(_x() if x is None else x, padding).detach()


def _real(output):
    return output[~PADDING]


def probe_default(EncoderLayer):
    return _output(EncoderLayer)


def probe_pre_norm(EncoderLayer):
    return _output(EncoderLayer, norm_first=True)


def probe_post_norm(EncoderLayer):
    return _output(EncoderLayer, norm_first=False)


def probe_padding(EncoderLayer):
    return _real(_output(EncoderLayer, padding=PADDING))


def probe_padding_post_norm(EncoderLayer):
    return _real(_output(EncoderLayer, padding=PADDING, norm_first=False))


def probe_small_entries(EncoderLayer):
    return _output(EncoderLayer, _x() / 500)


def probe_one_token(EncoderLayer):
    return _output(EncoderLayer, _x(1, 1))


def probe_evaluation(EncoderLayer):
    return _output(EncoderLayer, dropout=0.5)


def probe_training_without_dropout(EncoderLayer):
    layer = _mine(EncoderLayer, encoder_layer_state(_theirs(True)))
    layer.train()
    return layer(_x()).detach()


def probe_parameters(EncoderLayer):
    state, names = EncoderLayer(D, HEADS, WIDTH).state_dict(), encoder_layer_state(_theirs(True))
    return {name: list(state[name].shape) if name in state else "missing" for name in names}


def _branch(EncoderLayer, on, dropout=0.25, x=0.0, **more):
    """What a branch with the constant output 1 adds to a constant x, in training mode: a set of rounded values."""
    weights = {name: torch.zeros_like(value) for name, value in encoder_layer_state(_theirs(True)).items()}
    weights |= {name: torch.ones(D, dtype=F64) for name in ("norm1.weight", "norm2.weight", on)} | more
    layer = _mine(EncoderLayer, weights, dropout=dropout)
    layer.train()
    return sorted({round(v, 4) for v in layer(torch.full((4, 12, D), x, dtype=F64)).detach().flatten().tolist()})


def probe_dropout_on_attention_branch(EncoderLayer):
    return _branch(EncoderLayer, "self_attn.o_proj.bias")


def probe_dropout_on_feed_forward_branch(EncoderLayer):
    return _branch(EncoderLayer, "ff.fc2.bias")


def probe_dropout_on_attention_weights(EncoderLayer):
    unit = torch.eye(D, dtype=F64)
    return len(_branch(EncoderLayer, "self_attn.v_proj.bias", **{"self_attn.o_proj.weight": unit})) > 2


def probe_gradient(EncoderLayer):
    layer, x = _mine(EncoderLayer, encoder_layer_state(_theirs(True))), _x().requires_grad_()
    y = layer(x)
    (y * torch.linspace(-1, 1, y.numel(), dtype=F64).reshape(y.shape)).sum().backward()
    return x.grad


def probe_gradient_post_norm(EncoderLayer):
    layer, x = _mine(EncoderLayer, encoder_layer_state(_theirs(False)), norm_first=False), _x().requires_grad_()
    y = layer(x)
    (y * torch.linspace(-1, 1, y.numel(), dtype=F64).reshape(y.shape)).sum().backward()
    return x.grad


def probe_padding_of_the_first_row(EncoderLayer):
    return _output(EncoderLayer, padding=PADDING.flip(0))[~PADDING.flip(0)]


def probe_ruled_out(EncoderLayer):
    _, used = run_beside(functions_called, _mine(EncoderLayer, encoder_layer_state(_theirs(True))), _x())
    return [any(call.endswith(name) for call in used) for name in RULED_OUT]


def probe_dropout_in_the_feed_forward_layer(EncoderLayer):
    units = {"ff.fc1.bias": torch.ones(WIDTH, dtype=F64), "ff.fc2.weight": torch.ones(D, WIDTH, dtype=F64)}
    return len(_branch(EncoderLayer, "norm1.weight", **units)) > 2


def probe_nothing_but_padding(EncoderLayer):
    return _output(EncoderLayer, padding=torch.ones_like(PADDING))


def probe_dropout_on_the_road(EncoderLayer):
    return _branch(EncoderLayer, "norm1.weight", x=1.0)


def probe_dropout_on_what_a_branch_reads(EncoderLayer):
    weights = {name: torch.zeros_like(value) for name, value in encoder_layer_state(_theirs(True)).items()}
    weights |= {name: torch.ones(D, dtype=F64) for name in ("norm1.weight", "norm2.weight")}
    weights |= {f"self_attn.{part}_proj.weight": torch.eye(D, dtype=F64) for part in "vo"}
    layer = _mine(EncoderLayer, weights, dropout=0.25)
    layer.train()
    x = torch.tensor([1.0, -1.0], dtype=F64).repeat(D // 2).expand(60, 1, D).contiguous()  # its own norm
    return sorted({round(v, 3) for v in ((layer(x).detach() - x) * x).flatten().tolist()})


def test_dropout_places(EncoderLayer):
    """With dropout=0.25 branches' outputs, attention weights and units of ff are dropped, and nothing else."""
    # keeps: dropout-places
    for told, on in (("attention", "self_attn.o_proj.bias"), ("feed-forward", "ff.fc2.bias")):
        check(_branch(EncoderLayer, on) == [0.0, 1.3333], f"in training mode the {told} branch, whose output is 1 "
              f"everywhere, adds {_branch(EncoderLayer, on)[:4]}; with dropout=0.25 on it, once, it adds 0 or 1.3333")
    unit = torch.eye(D, dtype=F64)
    for part in ("self_attn",):
        check(len(_branch(EncoderLayer, f"{part}.v_proj.bias", **{f"{part}.o_proj.weight": unit})) > 2,
              f"the attention weights of {part} are never dropped: it was made without the layer's dropout")
    units = {"ff.fc1.bias": torch.ones(WIDTH, dtype=F64), "ff.fc2.weight": torch.ones(D, WIDTH, dtype=F64)}
    check(len(_branch(EncoderLayer, "norm1.weight", **units)) > 2, "the hidden units of ff are never dropped: it was "
          "made without "
          "the layer's dropout")
    check(_branch(EncoderLayer, "norm1.weight", x=1.0) == [1.0], "in training mode the residual road itself has "
          "holes: dropout belongs "
          "on each branch, before it is added")
    weights = {name: torch.zeros_like(value) for name, value in encoder_layer_state(_theirs(True)).items()}
    weights |= {name: torch.ones(D, dtype=F64) for name in ("norm1.weight", "norm2.weight")}
    weights |= {f"self_attn.{part}_proj.weight": torch.full((D, D), 1 / D, dtype=F64) for part in "vo"}
    weights |= {"self_attn.v_proj.bias": torch.ones(D, dtype=F64)}
    layer = _mine(EncoderLayer, weights, dropout=0.25)
    layer.train()
    x = torch.tensor([1.0, -1.0], dtype=F64).repeat(D // 2).expand(60, 1, D).contiguous()  # its norm sums to 0
    added = {round(v, 3) for v in (layer(x).detach() - x).flatten().tolist()}
    check(added <= {0.0, 0.889, 1.778}, "in training mode a branch reads an input with holes: dropout has no place "
          "in front of a branch")


def test_only_padding(EncoderLayer):
    """A sequence that is all padding: its attention branch gives o_proj's bias, never NaN, and never its padding."""
    # keeps: only-padding
    state, x = encoder_layer_state(_theirs(True)), _x()
    layer = _mine(EncoderLayer, {**state, **{name: 0 * state[name] for name in ("ff.fc2.weight", "ff.fc2.bias")}})
    mask = PADDING | torch.tensor([[True], [False]])
    got = tensor(layer(x, key_padding_mask=mask), "the output", x.shape, F64)
    check(got.isfinite().all(), "NaN where a sequence is all padding")
    same(got[0], x[0] + state["self_attn.o_proj.bias"], "the output of a sequence that is all padding, with nothing "
         "in ff")


def test_built_from_your_parts(EncoderLayer):
    """nn.TransformerEncoderLayer, nn.MultiheadAttention and the fused attention are not used inside."""
    # keeps: ruled-out
    _, used = run_beside(functions_called, _mine(EncoderLayer, encoder_layer_state(_theirs(True))), _x())
    found = [name for name in RULED_OUT if any(call.endswith(name) for call in used)]
    check(not found, f"the layer calls {', '.join(found)}, which this question rules out")
