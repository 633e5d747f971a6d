"""The device that a notebook computes on."""

from __future__ import annotations

import os

import torch

VARIABLE = "COURSE_DEVICE"


def pick_device(prefer: str | None = None) -> torch.device:
    """The device named by COURSE_DEVICE, else `prefer`, else the best one here: cuda, then mps, then cpu."""
    wanted = os.environ.get(VARIABLE) or prefer
    if not wanted:
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if _available(kind)))
    source = f"the environment variable {VARIABLE}" if os.environ.get(VARIABLE) else "pick_device"
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise ValueError(f"{source} asks for the device {wanted!r}: use cuda, cuda:1, mps or cpu") from None
    missing = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if missing or not _available(device.type):
        raise ValueError(
            f"{source} asks for the device {wanted!r}, which this machine does not have: "
            f"here are {', '.join(k for k in ('cuda', 'mps', 'cpu') if _available(k))}"
        )
    return device


def _available(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    if kind == "mps":
        return torch.backends.mps.is_available()
    return kind == "cpu"
