"""Our ViT and MAP head are the published ones: with the same weights, transformers' models give the same numbers."""

from types import SimpleNamespace

import pytest
import torch

from autograder.homework import read_homework
from autograder.judge.local import reference_names
from course_utils.hw5.published import from_siglip, from_vit, published_vit

transformers = pytest.importorskip("transformers")
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=12, patch_size=4)
OLD_NAMES = {  # of the files that are published: the library's own names have changed since
    "vit.layers.": "vit.encoder.layer.", "attention.q_proj": "attention.attention.query",
    "attention.k_proj": "attention.attention.key", "attention.v_proj": "attention.attention.value",
    "attention.o_proj": "attention.output.dense", "mlp.fc1": "intermediate.dense", "mlp.fc2": "output.dense",
}  # fmt: skip


@pytest.fixture(scope="module")
def ours() -> SimpleNamespace:
    return reference_names(read_homework("hw5_vision"))


def stirred(model: torch.nn.Module) -> torch.nn.Module:
    """The model with weights that are all random: zero biases and unit norms would hide mistakes."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def siglip() -> torch.nn.Module:
    config = transformers.SiglipVisionConfig(**SIZES, intermediate_size=128)
    return stirred(transformers.SiglipVisionModel(config))


def images(side: int = 12) -> torch.Tensor:
    return torch.randn(3, 3, side, side, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_our_vit_with_siglip_s_weights_is_siglip_at_other_sizes_too(ours):
    theirs = siglip()
    state = {f"vision_model.{name}": weight for name, weight in theirs.state_dict().items()}
    state |= {"text_model.final_layer_norm.bias": torch.ones(3), "logit_scale": torch.ones(1)}  # as in the whole file
    model = published_vit(ours.ViT, state, n_heads=4)
    for side in (12, 20):
        right = theirs(images(side), interpolate_pos_encoding=True)
        torch.testing.assert_close(model(images(side)), right.pooler_output, atol=1e-5, rtol=1e-5)
    head = ours.MAPHead(32, 4)
    names = {name: w for name, w in from_siglip(state).items() if name.startswith("map_head.")}
    head.load_state_dict({name.removeprefix("map_head."): weight for name, weight in names.items()})
    tokens = torch.randn(2, 7, 32)
    torch.testing.assert_close(head(tokens), theirs.head(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_the_exchanged_eps_and_gelu_matter(ours):
    """Without them the numbers are others: the agreement above is no accident of a loose tolerance."""
    theirs = siglip()
    plain = ours.ViT(12, 4, 3, 32, 4, 128, 2, 32)
    plain.load_state_dict(from_siglip(theirs.state_dict()))
    assert (plain(images()) - theirs(images()).pooler_output).abs().max() > 1e-3


@torch.no_grad()
@pytest.mark.parametrize("names", ["new", "old"])
def test_our_vit_with_published_weights_is_the_class_token_vit(ours, names):
    theirs = stirred(transformers.ViTForImageClassification(
        transformers.ViTConfig(**SIZES, intermediate_size=48, num_labels=5)
    ))  # fmt: skip
    state = theirs.state_dict()
    if names == "old":
        for new, old in OLD_NAMES.items():
            state = {name.replace(new, old): weight for name, weight in state.items()}
    model = published_vit(ours.ViT, state, n_heads=4)
    torch.testing.assert_close(model(images()), theirs(images()).logits, atol=1e-5, rtol=1e-5)
    inner = {name.removeprefix("vit."): w for name, w in state.items() if not name.startswith("classifier")}
    right = theirs.vit(images()).last_hidden_state[:, 0]  # without a classifier: the class token itself
    torch.testing.assert_close(published_vit(ours.ViT, inner, n_heads=4)(images()), right, atol=1e-5, rtol=1e-5)


def test_weights_of_another_kind_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"no weights of this kind: nothing in them becomes embed\.proj\.weight"):
        from_siglip({"text_model.embeddings.weight": torch.ones(2, 2)})
    with pytest.raises(ValueError, match="no weights of this kind"):
        from_vit(siglip().state_dict())
