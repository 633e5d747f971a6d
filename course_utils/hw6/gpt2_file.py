"""GPT-2's published weights: where they are, whether a copy is whole, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.data.safetensors_header import read_header

if TYPE_CHECKING:  # `course data` answers at once
    from torch import Tensor

ADDRESS = "https://huggingface.co/openai-community/gpt2/resolve/main"
WEIGHTS, TOKENS = "gpt2.safetensors", "tokenizer.json"
SIZE = 548_105_171  # bytes of model.safetensors
SHA256 = "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"
GPT2 = {"vocab_size": 50257, "d_model": 768, "n_heads": 12, "d_ff": 3072, "n_layers": 12, "max_len": 1024}


@dataclass(frozen=True)
class Gpt2File:
    """The weights and, beside them, the words."""

    weights: Path
    tokens: Path

    def state(self) -> dict[str, Tensor]:
        """The published tensors by their published names."""
        from safetensors.torch import load_file

        return load_file(self.weights)

    def tokenizer(self) -> tuple[Callable[[str], list[int]], Callable[[Sequence[int]], str]]:
        """Text to token numbers, and back: byte-level pairs by the library `tokenizers`."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ImportError("words become tokens by the library tokenizers: pip install tokenizers") from None
        if not self.tokens.is_file():
            raise FileNotFoundError(f"{self.tokens} is missing: fetch it from {ADDRESS}/{TOKENS}")
        found: Any = Tokenizer.from_file(str(self.tokens))
        return lambda text: list(found.encode(text).ids), lambda ids: str(found.decode(list(ids)))


def find_gpt2(folder: Path) -> Gpt2File | None:
    """The file beside a notebook, if there is one."""
    weights = folder / WEIGHTS
    return Gpt2File(weights, folder / TOKENS) if weights.is_file() else None


def tell_gpt2(folder: Path) -> tuple[bool, list[str]]:
    """Whether the folder has what is needed, and what to say about it."""
    told = []
    weights, tokens = folder / WEIGHTS, folder / TOKENS
    fault = _fault(weights)
    if fault is None:
        told.append(f"{weights}: the published weights, whole.")
    else:
        told.append(f"{weights}: {fault}")
        told.append(f"  Fetch {ADDRESS}/model.safetensors ({SIZE / 1e6:.0f} MB) and save it as {WEIGHTS} beside your")
        told.append(f"  notebook. Its SHA-256 is {SHA256}.")
    whole = fault is None
    if tokens.is_file():
        told.append(f"{tokens}: there.")
    else:
        whole = False
        told.append(f"{tokens}: not there. Fetch {ADDRESS}/{TOKENS} (1 MB) and put it beside the weights.")
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        whole = False
        told.append("the library tokenizers: not installed. pip install tokenizers")
    return whole, told


def _fault(path: Path) -> str | None:
    """What is wrong with a copy of the weights; None where it is whole."""
    from course_utils.data.fetch import digest

    if not path.is_file():
        return "not there; nothing in the homework needs it."
    if (size := path.stat().st_size) != SIZE:
        header = read_header(path)
        if header and "wte.weight" in {name.removeprefix("transformer.") for name in header.tensors}:
            return f"a model of this kind, but not the published file ({size:,} bytes, expected {SIZE:,})."
        return f"{size:,} bytes, expected {SIZE:,}: it is cut, or another file."
    if (found := digest(path)) != SHA256:
        return f"its SHA-256 is {found}: it is damaged, or another version."
    return None
