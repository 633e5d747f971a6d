"""The published files of homework 5: where they are, whether a copy is whole, how to read one, and a photograph."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.data.safetensors_header import read_header

if TYPE_CHECKING:  # `course data` answers at once
    from torch import Tensor

HUB = "https://huggingface.co/google"
LABELS = "vit_config.json"  # the names of the 1,000 classes
PHOTOS = ("photo.jpg", "photo.jpeg", "photo.png", "photo.webp")


@dataclass(frozen=True)
class Published:
    """One published file."""

    file: str  # its name beside the notebook
    address: str
    parameters: int  # of 4 bytes each, which nearly is the size of the file
    tower: str  # how the names of the vision model begin
    mark: str  # a name by which it is known


SIGLIP = Published(
    "siglip.safetensors", f"{HUB}/siglip-base-patch16-224", 203_155_970, "vision_model.", "vision_model.head.probe"
)
VIT = Published("vit.safetensors", f"{HUB}/vit-base-patch16-224", 86_567_656, "", "vit.embeddings.cls_token")


def read_published(kind: Published, folder: Path) -> dict[str, Tensor] | None:
    """The tensors of the vision model by their published names, if the file is in the folder."""
    from safetensors import safe_open

    path = folder / kind.file
    if not path.is_file():
        return None
    with safe_open(path, framework="pt") as file:  # the other tower is never read
        return {name: file.get_tensor(name).float() for name in file.keys() if name.startswith(kind.tower)}


def read_labels(folder: Path) -> list[str] | None:
    """The names of the classes of the published ViT, if its config lies in the folder."""
    path = folder / LABELS
    if not path.is_file():
        return None
    named = json.loads(path.read_text(encoding="utf-8"))["id2label"]
    return [named[str(number)] for number in range(len(named))]


def read_photo(folder: Path, side: int) -> tuple[str, Tensor]:
    """The name of a photograph and its pixels [3, side, side] in [0, 1]: one of PHOTOS, else one of matplotlib's."""
    import torch
    from matplotlib import get_data_path
    from PIL import Image, ImageOps

    sample = Path(get_data_path()) / "sample_data" / "grace_hopper.jpg"
    path = next((folder / name for name in PHOTOS if (folder / name).is_file()), sample)
    with Image.open(path) as opened:
        upright = ImageOps.exif_transpose(opened).convert("RGB")  # cameras note which way they were held
        small = upright.resize((side, side), Image.Resampling.BICUBIC)
    pixels = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8)
    return path.name, pixels.reshape(side, side, 3).movedim(-1, 0).float() / 255


def tell_siglip(folder: Path) -> tuple[bool, list[str]]:
    """Whether the folder has SigLIP's file, and what to say about it."""
    return _tell(SIGLIP, folder)


def tell_vit(folder: Path) -> tuple[bool, list[str]]:
    """Whether the folder has the class-token ViT's file, and what to say about it."""
    whole, told = _tell(VIT, folder)
    there = (folder / LABELS).is_file()
    fetch = f"not there, so classes are numbers. Fetch {VIT.address}/resolve/main/config.json and save it as {LABELS}."
    return whole, [*told, f"{folder / LABELS}: {'there.' if there else fetch}"]


def _tell(kind: Published, folder: Path) -> tuple[bool, list[str]]:
    from course_utils.data.fetch import digest

    path = folder / kind.file
    if (fault := _fault(path, kind)) is None:
        return True, [
            f"{path}: whole, as far as its own table of contents tells.",
            f"  Its SHA-256 is {digest(path)}. This course does not know the published one:",
            f"  compare it with the one that {kind.address}/blob/main/model.safetensors shows.",
        ]
    size = 4 * kind.parameters / 1e6
    return False, [
        f"{path}: {fault}",
        f"  Fetch {kind.address}/resolve/main/model.safetensors (about {size:.0f} MB)",
        f"  and save it as {kind.file} beside your notebook. This course does not know its SHA-256:",
        f"  {kind.address}/blob/main/model.safetensors shows it.",
    ]


def _fault(path: Path, kind: Published) -> str | None:
    """What is wrong with a copy; None where it has the wanted tensors and all the bytes that they need."""
    if not path.is_file():
        return "not there; nothing in the homework needs it."
    header = read_header(path)
    if header is None:
        return "no safetensors file, or cut within its first part."
    size = path.stat().st_size
    if size != header.size:
        return f"{size:,} bytes where its table of contents promises {header.size:,}: it is cut or damaged."
    return None if kind.mark in header.tensors else f"another model's file: it has no {kind.mark}."
