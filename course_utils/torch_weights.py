"""The weights of torch's own modules under the course's names, so that the two can be held against each other.

    mine.load_state_dict(encoder_layer_state(theirs))

What each is called (`attention` is `nn.MultiheadAttention`, whose first projection stacks query, key and value):

    torch                                  here
    in_proj_weight, in_proj_bias           q_proj, k_proj, v_proj: rows 0 .. D-1, D .. 2D-1, 2D .. 3D-1
    out_proj                               o_proj
    linear1, linear2                       ff.fc1, ff.fc2
    self_attn, norm1, norm2, norm3         the same
    multihead_attn                         cross_attn
"""

from __future__ import annotations

from torch import Tensor, nn

State = dict[str, Tensor]


def mha_state(module: nn.MultiheadAttention) -> State:
    """The weights of `nn.MultiheadAttention` for a `MultiHeadAttention`."""
    state = _copy(module)
    if "in_proj_weight" not in state or "bias_k" in state:
        raise ValueError("only nn.MultiheadAttention with kdim = vdim = embed_dim and without add_bias_kv has a match")
    result: State = {}
    for kind in ("weight", "bias"):
        if f"in_proj_{kind}" in state:
            parts = state[f"in_proj_{kind}"].chunk(3)  # query, key, value
            result |= {f"{p}_proj.{kind}": part.clone() for p, part in zip("qkv", parts, strict=True)}
            result[f"o_proj.{kind}"] = state[f"out_proj.{kind}"]
    return result


def encoder_layer_state(layer: nn.TransformerEncoderLayer) -> State:
    """The weights of `nn.TransformerEncoderLayer` for an `EncoderLayer`."""
    return {
        **_under("self_attn", mha_state(layer.self_attn)),
        **_feed_forward(layer),
        **_norms(layer, "norm1", "norm2"),
    }


def decoder_layer_state(layer: nn.TransformerDecoderLayer) -> State:
    """The weights of `nn.TransformerDecoderLayer` for a `DecoderLayer`."""
    return {
        **_under("self_attn", mha_state(layer.self_attn)),
        **_under("cross_attn", mha_state(layer.multihead_attn)),
        **_feed_forward(layer),
        **_norms(layer, "norm1", "norm2", "norm3"),
    }


def _feed_forward(layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> State:
    return _under("ff.fc1", _copy(layer.linear1)) | _under("ff.fc2", _copy(layer.linear2))


def _norms(layer: nn.Module, *names: str) -> State:
    return {key: value for name in names for key, value in _under(name, _copy(layer.get_submodule(name))).items()}


def _copy(module: nn.Module) -> State:
    return {name: value.clone() for name, value in module.state_dict().items()}


def _under(prefix: str, state: State) -> State:
    return {f"{prefix}.{name}": value for name, value in state.items()}
