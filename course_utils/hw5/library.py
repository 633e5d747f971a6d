"""A student's `ViT` held against the library transformers: small models of both kinds, with the same random weights."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from course_utils.hw5.published import from_siglip, published_vit

SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 12}
SIZES |= {"patch_size": 4, "intermediate_size": 128}


def has_library() -> bool:
    """Whether the library is installed; no homework needs it."""
    return find_spec("transformers") is not None


@torch.no_grad()
def gaps_to_the_library(make: Callable[..., Any]) -> dict[str, float]:
    """The largest difference of the student's numbers from the library's, by model, for images of the model's size.

    One of them is SigLIP with its weights, but with our eps and our GELU: what the exchange is for.
    """
    transformers: Any = import_module("transformers")
    images = torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    siglip = _stirred(transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**SIZES)))
    vit = _stirred(transformers.ViTForImageClassification(transformers.ViTConfig(**SIZES, num_labels=5)))
    plain = make(12, 4, 3, 32, 4, 128, 2, 32, pool="map").eval()
    plain.load_state_dict(from_siglip(siglip.state_dict()))
    tower, classifier = (published_vit(make, theirs.state_dict(), n_heads=4) for theirs in (siglip, vit))
    vector, logits = siglip(images).pooler_output, vit(images).logits
    return {
        "SigLIP": float((tower(images) - vector).abs().max()),
        "ViT with a class token": float((classifier(images) - logits).abs().max()),
        "SigLIP, with our eps and GELU": float((plain(images) - vector).abs().max()),
    }


def _stirred(model: Any) -> Any:
    """The model with weights that are all random: biases of 0 and norms of 1 would hide mistakes."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
    return model.eval()
