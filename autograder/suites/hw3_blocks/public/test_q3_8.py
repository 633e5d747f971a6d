"""Public checks of q3_8: DecoderLayer."""

import torch
from torch import nn

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.instruments.torch_match import decoder_layer_state
from course_utils.instruments.work import functions_called

RULED_OUT = ("multi_head_attention_forward", "scaled_dot_product_attention", "_layer_fwd")
F64 = torch.float64
D, HEADS, WIDTH = 6, 2, 10
T, S = 4, 5
PADDING = torch.tensor([[False] * 5, [False, False, True, True, True]])  # of the memory


def _theirs(norm_first, seed=381):
    """torch's layer with fixed, lively weights; dropout is 0, so training mode changes nothing."""
    layer = nn.TransformerDecoderLayer(D, HEADS, WIDTH, 0.0, "gelu", batch_first=True, norm_first=norm_first).double()
    g = torch.Generator().manual_seed(seed)
    for name, parameter in layer.named_parameters():
        noise = torch.randn(parameter.shape, generator=g, dtype=F64) * (0.5 if parameter.ndim > 1 else 0.3)
        parameter.data = noise + (1.0 if name in ("norm1.weight", "norm2.weight", "norm3.weight") else 0.0)
    return layer


def _expected(layer, x, memory, padding=None):
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return layer(x, memory, tgt_mask=later, memory_key_padding_mask=padding)


def _mine(DecoderLayer, weights, **options):
    """The student's layer in float64 and evaluation mode, with the weights put in by name."""
    layer = DecoderLayer(D, HEADS, WIDTH, **options)
    layer.double()
    layer.eval()
    state = layer.state_dict()
    missing = [name for name in weights if name not in state]
    check(not missing, f"there is no parameter `{missing[0] if missing else ''}`: the parts are self_attn, cross_attn, "
          "ff, norm1, norm2 and norm3")
    layer.load_state_dict({**state, **weights})
    return layer


def _inputs(length=T, source=S):
    g = torch.Generator().manual_seed(382)
    return (torch.randn(2, n, D, generator=g, dtype=F64) for n in (length, source))


def test_agrees_with_torch(DecoderLayer):
    """With the weights of nn.TransformerDecoderLayer it gives the same output, pre-norm and post-norm."""
    # keeps: agrees, names, norm-orders, memory-as-it-is
    x, memory = _inputs()
    for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
        theirs = _theirs(norm_first)
        got = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)(x, memory)
        check(isinstance(got, torch.Tensor), "forward returns one tensor [B, T, D] (attention itself returns a pair)")
        same(got, _expected(theirs, x, memory), f"the {told} output")


def test_causal(DecoderLayer):
    """A later token moves no earlier output."""
    # keeps: causal
    x, memory = _inputs()
    layer = _mine(DecoderLayer, decoder_layer_state(_theirs(True)))
    before = tensor(layer(x, memory), "the output", x.shape, F64)
    other = x.clone()
    other[:, 2, 0] += 3
    after = tensor(layer(other, memory), "the output", x.shape, F64)
    same_as_yours(after[:, :2], before[:, :2], "the output before the changed token", "without the change")
    check((after[:, 3] - before[:, 3]).abs().max() > 1e-6, "a token does not move the output after it")


def test_memory_padding(DecoderLayer):
    """Padding of the memory (True in the mask) is never looked at, for as many targets as sources or not."""
    # keeps: memory-padding
    for length in (T, S):
        x, memory = _inputs(length)
        for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
            layer = _mine(DecoderLayer, decoder_layer_state(_theirs(norm_first)), norm_first=norm_first)
            got = tensor(layer(x, memory, memory_padding_mask=PADDING), "the output", x.shape, F64)
            other = layer(x, memory + 5 * PADDING[..., None], memory_padding_mask=PADDING)
            same_as_yours(tensor(other, "the output", x.shape, F64), got, f"the {told} output after a change in the "
                          "padding of the memory", "before it")


def test_agrees_with_memory_padding(DecoderLayer):
    """With padding in the memory, too, the output is that of torch's layer: all that is no padding is looked at."""
    # keeps: memory-padding, only-padding
    for length in (T, S):
        x, memory = _inputs(length)
        for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
            theirs = _theirs(norm_first)
            layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
            got = tensor(layer(x, memory, memory_padding_mask=PADDING), "the output", x.shape, F64)
            same(got, _expected(theirs, x, memory, PADDING), f"the {told} output for {length} targets and {S} places "
                 "of memory, some of them padding")


def test_gradients_flow(DecoderLayer):
    """The gradients by x and by the memory are those of torch's layer: the encoder learns through the memory."""
    # keeps: agrees, memory-as-it-is
    for norm_first, told in ((True, "pre-norm"), (False, "post-norm")):
        theirs = _theirs(norm_first)
        layer = _mine(DecoderLayer, decoder_layer_state(theirs), norm_first=norm_first)
        mine, right = ([v.requires_grad_() for v in _inputs()] for _ in range(2))
        for output in (layer(*mine), _expected(theirs, *right)):
            (output * torch.linspace(-1, 1, output.numel(), dtype=F64).reshape(output.shape)).sum().backward()
        for name, a, b in zip(("x", "memory"), mine, right, strict=True):
            check(a.grad is not None, f"no gradient reaches {name} in {told}: is it detached, or under no_grad?")
            same(a.grad, b.grad, f"the gradient by {name} in {told} (is a part detached, or under no_grad?)")


def _output(DecoderLayer, padding=None, lengths=(T, S), **options):
    layer = _mine(DecoderLayer, decoder_layer_state(_theirs(options.get("norm_first", True))), **options)
    return layer(*_inputs(*lengths), padding).detach()


def probe_default(DecoderLayer):
    return _output(DecoderLayer)


def probe_pre_norm(DecoderLayer):
    return _output(DecoderLayer, norm_first=True)


def probe_post_norm(DecoderLayer):
    return _output(DecoderLayer, norm_first=False)


def probe_memory_padding(DecoderLayer):
    return _output(DecoderLayer, PADDING)


def probe_memory_padding_post_norm(DecoderLayer):
    return _output(DecoderLayer, PADDING, norm_first=False)


def probe_longer_target(DecoderLayer):
    return _output(DecoderLayer, lengths=(7, 3))


def probe_equal_lengths(DecoderLayer):
    return _output(DecoderLayer, PADDING, (5, 5))


def probe_one_token(DecoderLayer):
    return _output(DecoderLayer, lengths=(1, S))


def probe_all_memory_padded(DecoderLayer):
    return _output(DecoderLayer, PADDING | torch.tensor([[True], [False]]))


def probe_small_entries(DecoderLayer):
    x, memory = _inputs()
    return _mine(DecoderLayer, decoder_layer_state(_theirs(True)))(x / 500, memory).detach()


def probe_memory_is_not_normalised(DecoderLayer):
    x, memory = _inputs()
    return _mine(DecoderLayer, decoder_layer_state(_theirs(True)))(x, 3 * memory + 1).detach()


def probe_evaluation(DecoderLayer):
    return _output(DecoderLayer, dropout=0.5)


def probe_training_without_dropout(DecoderLayer):
    layer = _mine(DecoderLayer, decoder_layer_state(_theirs(True)))
    layer.train()
    return layer(*_inputs()).detach()


def probe_parameters(DecoderLayer):
    state, names = DecoderLayer(D, HEADS, WIDTH).state_dict(), decoder_layer_state(_theirs(True))
    return {name: list(state[name].shape) if name in state else "missing" for name in names}


def _branch(DecoderLayer, on, dropout=0.25, **more):
    """What a branch with the constant output 1 adds to x = 0, in training mode: a set of rounded values."""
    weights = {name: torch.zeros_like(value) for name, value in decoder_layer_state(_theirs(True)).items()}
    ones = ("norm1.weight", "norm2.weight", "norm3.weight", on)
    layer = _mine(DecoderLayer, weights | {name: torch.ones(D, dtype=F64) for name in ones} | more, dropout=dropout)
    layer.train()
    out = layer(torch.zeros(4, 12, D, dtype=F64), torch.zeros(4, 7, D, dtype=F64)).detach()
    return sorted({round(v, 4) for v in out.flatten().tolist()})


def probe_dropout_on_self_attention_branch(DecoderLayer):
    return _branch(DecoderLayer, "self_attn.o_proj.bias")


def probe_dropout_on_cross_attention_branch(DecoderLayer):
    return _branch(DecoderLayer, "cross_attn.o_proj.bias")


def probe_dropout_on_feed_forward_branch(DecoderLayer):
    return _branch(DecoderLayer, "ff.fc2.bias")


def probe_dropout_on_self_attention_weights(DecoderLayer):
    unit = torch.eye(D, dtype=F64)
    return len(_branch(DecoderLayer, "self_attn.v_proj.bias", **{"self_attn.o_proj.weight": unit})) > 2


def probe_dropout_on_cross_attention_weights(DecoderLayer):
    unit = torch.eye(D, dtype=F64)
    return len(_branch(DecoderLayer, "cross_attn.v_proj.bias", **{"cross_attn.o_proj.weight": unit})) > 2


def probe_gradients(DecoderLayer):
    layer = _mine(DecoderLayer, decoder_layer_state(_theirs(True)))
    x, memory = (v.requires_grad_() for v in _inputs())
    y = layer(x, memory)
    (y * torch.linspace(-1, 1, y.numel(), dtype=F64).reshape(y.shape)).sum().backward()
    return [torch.zeros_like(v) if v.grad is None else v.grad for v in (x, memory)]


def probe_ruled_out(DecoderLayer):
    _, used = run_beside(functions_called, _mine(DecoderLayer, decoder_layer_state(_theirs(True))), *_inputs())
    return [any(call.endswith(name) for call in used) for name in RULED_OUT]


def probe_dropout_in_the_feed_forward_layer(DecoderLayer):
    units = {"ff.fc1.bias": torch.ones(WIDTH, dtype=F64), "ff.fc2.weight": torch.ones(D, WIDTH, dtype=F64)}
    return len(_branch(DecoderLayer, "norm1.weight", **units)) > 2


def probe_dropout_on_the_road(DecoderLayer):
    weights = {name: torch.zeros_like(value) for name, value in decoder_layer_state(_theirs(True)).items()}
    layer = _mine(DecoderLayer, weights, dropout=0.25)
    layer.train()
    x = torch.ones(4, 12, D, dtype=F64)
    return sorted({round(v, 4) for v in layer(x, x).detach().flatten().tolist()})


def probe_gradients_post_norm(DecoderLayer):
    layer = _mine(DecoderLayer, decoder_layer_state(_theirs(False)), norm_first=False)
    x, memory = (v.requires_grad_() for v in _inputs())
    y = layer(x, memory)
    (y * torch.linspace(-1, 1, y.numel(), dtype=F64).reshape(y.shape)).sum().backward()
    return [torch.zeros_like(v) if v.grad is None else v.grad for v in (x, memory)]


def probe_equal_lengths_post_norm(DecoderLayer):
    return _output(DecoderLayer, PADDING, (5, 5), norm_first=False)


def probe_dropout_on_the_memory(DecoderLayer):
    weights = {name: torch.zeros_like(value) for name, value in decoder_layer_state(_theirs(True)).items()}
    weights |= {"cross_attn.v_proj.weight": torch.full((D, D), 1 / D, dtype=F64),
                "cross_attn.o_proj.weight": torch.eye(D, dtype=F64)}
    layer = _mine(DecoderLayer, weights, dropout=0.25)
    layer.train()
    x, memory = torch.zeros(60, 1, D, dtype=F64), torch.ones(60, 1, D, dtype=F64)
    return len({round(v, 3) for v in layer(x, memory).detach().flatten().tolist()}) > 2  # a mean of what is left


def test_dropout_places(DecoderLayer):
    """With dropout=0.25 branches' outputs, attention weights and units of ff are dropped, and nothing else."""
    # keeps: dropout-places
    for told, on in (("self-attention", "self_attn.o_proj.bias"), ("cross-attention", "cross_attn.o_proj.bias"),
                     ("feed-forward", "ff.fc2.bias")):
        check(_branch(DecoderLayer, on) == [0.0, 1.3333], f"in training mode the {told} branch, whose output is 1 "
              f"everywhere, adds {_branch(DecoderLayer, on)[:4]}; with dropout=0.25 on it, once, it adds 0 or 1.3333")
    unit = torch.eye(D, dtype=F64)
    for part in ("self_attn", "cross_attn"):
        check(len(_branch(DecoderLayer, f"{part}.v_proj.bias", **{f"{part}.o_proj.weight": unit})) > 2,
              f"the attention weights of {part} are never dropped: it was made without the layer's dropout")
    units = {"ff.fc1.bias": torch.ones(WIDTH, dtype=F64), "ff.fc2.weight": torch.ones(D, WIDTH, dtype=F64)}
    check(len(_branch(DecoderLayer, "norm1.weight", **units)) > 2, "the hidden units of ff are never dropped: it was "
          "made without "
          "the layer's dropout")
    weights = {name: torch.zeros_like(value) for name, value in decoder_layer_state(_theirs(True)).items()}
    weights |= {"cross_attn.v_proj.weight": torch.full((D, D), 1 / D, dtype=F64),
                "cross_attn.o_proj.weight": torch.eye(D, dtype=F64)}
    layer = _mine(DecoderLayer, weights, dropout=0.25)
    layer.train()
    x, memory = torch.zeros(60, 1, D, dtype=F64), torch.ones(60, 1, D, dtype=F64)
    check(len({round(v, 3) for v in layer(x, memory).detach().flatten().tolist()}) <= 2, "in training mode the "
          "memory has holes: "
          "dropout has no place on it")
    silent = _mine(DecoderLayer, {name: torch.zeros_like(value) for name, value in weights.items()}, dropout=0.25)
    silent.train()
    x = torch.ones(4, 12, D, dtype=F64)
    check(bool((silent(x, memory[:4]) == 1).all()), "in training mode x itself loses entries, with nothing in the "
          "branches: dropout has no place on the residual road")


def test_built_from_your_parts(DecoderLayer):
    """nn.TransformerDecoderLayer, nn.MultiheadAttention and the fused attention are not used inside."""
    # keeps: ruled-out
    _, used = run_beside(functions_called, _mine(DecoderLayer, decoder_layer_state(_theirs(True))), *_inputs())
    found = [name for name in RULED_OUT if any(call.endswith(name) for call in used)]
    check(not found, f"the layer calls {', '.join(found)}, which this question rules out")
