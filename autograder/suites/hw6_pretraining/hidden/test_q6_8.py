"""Hidden checks of q6_8: from_gpt2, by name and value, and by what a model with these weights says."""

import math

import pytest
import torch

from autograder.judge.faults import StudentRaised
from course_utils.checking.compare import check, same
from course_utils.hw6.published import published, taken
from course_utils.hw6.torch_gpt import loaded, twin_logits
from course_utils.instruments.calls import with_arguments

F64 = torch.float64


def _published_logits(state, n_heads, ids):
    """The published model's logits, as its own code computes them: x W + b, masks, tanh GELU; ids [B, T]."""
    T, D = ids.shape[1], state["wte.weight"].shape[1]
    x = state["wte.weight"][ids] + state["wpe.weight"][:T]

    def norm(x, name):
        x = x - x.mean(-1, keepdim=True)
        return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * state[f"{name}.weight"] + state[f"{name}.bias"]

    def conv(x, name):
        return x @ state[f"{name}.weight"] + state[f"{name}.bias"]

    for i in range(sum(name.endswith("ln_1.bias") for name in state)):
        q, k, v = conv(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").split(D, -1)
        heads = []
        for h in range(n_heads):
            part = slice(h * D // n_heads, (h + 1) * D // n_heads)
            scores = q[..., part] @ k[..., part].mT / math.sqrt(D // n_heads)
            scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
            heads.append(scores.softmax(-1) @ v[..., part])
        x = x + conv(torch.cat(heads, -1), f"h.{i}.attn.c_proj")
        y = conv(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + conv(y, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ state["wte.weight"].T


@pytest.mark.weight(3)
def test_every_weight(from_gpt2, rng):
    """Every weight arrives under its name, for several sizes."""
    for sizes in ({}, {"D": 8, "L": 1, "V": 8}, {"D": 4, "L": 3, "max_len": 4, "V": 5}):
        state, ours = published(rng, **sizes)
        taken(from_gpt2(state), ours)


@pytest.mark.weight(2)
def test_agrees_with_the_published_model(from_gpt2, rng):
    """A GPT with these weights says what the published model says."""
    (state, ours), ids = published(rng, V=11, D=12, L=3), torch.randint(11, (2, 9), generator=rng)
    got = from_gpt2(state)
    taken(got, ours)
    same(
        twin_logits({name: got[name] for name in ours}, 3, ids),
        _published_logits(state, 3, ids),
        "the logits of a GPT with these weights",
    )


@pytest.mark.weight(1.5)
def test_prefix_and_company(from_gpt2, rng):
    """With a prefix, masks, lm_head and unknown names around them; in any order."""
    state, ours = published(rng)
    masks = {f"h.{i}.attn.bias": torch.ones(1, 1, 9, 9).tril() for i in range(2)}
    masks |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)}
    for prefix in ("", "transformer."):
        whole = {prefix + name: value for name, value in (state | masks).items()} | {
            "lm_head.weight": state["wte.weight"]
        }
        whole |= {"score.weight": torch.zeros(2, 6), "step": torch.tensor(3)}
        names = sorted(whole, reverse=True)
        taken(from_gpt2({name: whole[name] for name in names}), ours)


@pytest.mark.weight(1)
def test_many_layers(from_gpt2, rng):
    """The number of layers is the largest number plus 1, also beyond ten."""
    state, ours = published(rng, D=2, L=13)
    taken(from_gpt2(state), ours)


@pytest.mark.weight(2)
def test_every_missing_tensor(from_gpt2, rng):
    """Whichever tensor is missing, a KeyError or ValueError names it."""
    whole, _ = published(rng, D=2, L=2)
    for number, missing in enumerate(whole):
        prefix = "transformer." if number % 2 else ""
        state = {prefix + name: value for name, value in whole.items() if name != missing}
        state["lm_head.weight"] = whole["wte.weight"]
        try:
            from_gpt2(state)
        except StudentRaised as error:
            kinds, text = set(error.type_names), str(error)
        else:
            kinds, text = set(), "nothing"
        check(
            kinds & {"KeyError", "ValueError"},
            f"without {missing} it raises {text}; a KeyError or ValueError is expected",
        )
        check(missing in text, f"without {missing} the error says {text!r}, which does not name it")


@pytest.mark.weight(1)
def test_state_is_kept_whole(from_gpt2, in_box, rng):
    """The given dict and its tensors are as before; float32 stays float32."""
    state = {f"transformer.{name}": value for name, value in published(rng, dtype=torch.float32)[0].items()}
    got, (after,) = in_box(with_arguments, from_gpt2, dict(state))
    check(list(after) == list(state), "the given dict has other names afterwards")
    for name, value in state.items():
        same(after[name], value, f"the given {name} afterwards")
    check(got["blocks.0.ff.fc1.weight"].dtype == torch.float32, "weights in float32 come back in another dtype")


@pytest.mark.integration
@pytest.mark.weight(0.5)
def test_with_your_own_gpt(from_gpt2, GPT, rng):
    """Together with your own GPT: it says what the published model says."""
    (state, ours), ids = published(rng, V=11, D=12, L=2), torch.randint(11, (2, 9), generator=rng)
    got = from_gpt2(state)
    model = loaded(GPT, {name: got[name] for name in ours}, 3)
    same(model(ids).detach(), _published_logits(state, 3, ids), "the logits of your GPT with these weights")
