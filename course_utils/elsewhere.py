"""Would it run on a GPU as it stands? Tried on CUDA if there is one, else on a stand-in that holds no numbers."""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

FINE, WRONG, UNKNOWN = "fine", "wrong", "cannot tell"
MISMATCH = (
    "device propagation",
    "same device",
    "different devices",
    "found two devices",
    "device type at start",
    "device between",
)
REMEDY = "Give new tensors `device=` of an input (or make them with x.new_zeros, torch.zeros_like), constants a buffer."


def try_elsewhere(
    target: Callable[..., Any],
    init: Sequence[Any] = (),
    init_kwargs: Mapping[str, Any] | None = None,
    call: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> tuple[str, str]:
    """Call a function, or make a module and call that, with every tensor on another device than the CPU.

    Gives "fine", "wrong" with the reason, or "cannot tell": the stand-in cannot run code that looks at values.
    """
    function: Any = target(*init, **(init_kwargs or {})) if inspect.isclass(target) else target
    function(*_moved(call, torch.clone), **_moved(kwargs or {}, torch.clone))  # what fails here is no matter of devices
    if torch.cuda.is_available():
        return _on_cuda(function, call, kwargs or {})
    found = _on_stand_in(function, call, kwargs or {}, FakeTensorMode(allow_non_fake_inputs=True))
    if found[0] == UNKNOWN and "dynamic" in found[1].lower():  # a shape that depends on values, as of x[mask]
        from torch.fx.experimental.symbolic_shapes import ShapeEnv  # takes a second or two

        mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
        found = _on_stand_in(function, call, kwargs or {}, mode)
    return found


def _on_stand_in(function: Any, call: Any, kwargs: Any, mode: FakeTensorMode) -> tuple[str, str]:
    with mode:
        if isinstance(function, nn.Module):
            _empty(function)
        return _attempt(function, _moved(call, _fake), _moved(kwargs, _fake), "meta")


def _on_cuda(function: Any, call: Any, kwargs: Any) -> tuple[str, str]:
    def move(x: Tensor) -> Tensor:
        return x.to("cuda")

    function = function.to("cuda") if isinstance(function, nn.Module) else function
    return _attempt(function, _moved(call, move), _moved(kwargs, move), "cuda")


def _attempt(function: Any, call: Any, kwargs: Any, device: str) -> tuple[str, str]:
    try:
        result = function(*call, **kwargs)
    except Exception as error:
        if any(words in str(error).lower() for words in MISMATCH):
            return WRONG, f"two tensors on different devices meet{_place(error)}. {REMEDY}"
        return UNKNOWN, f"{type(error).__name__}: {error}"[:500]
    strays = {x.device.type for x in _tensors(result)} - {device}
    if strays:
        return WRONG, f"a result is on the {strays.pop()} while the inputs are elsewhere. {REMEDY}"
    return FINE, ""


def _place(error: Exception) -> str:
    """The notebook's line at which it happened, in words."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename.startswith("<cell"):
            return f" in `{linecache.getline(frame.f_code.co_filename, line).strip()[:120]}`"
    return ""


def _fake(x: Tensor) -> Tensor:
    return torch.empty_like(x, device="meta")


def _empty(module: nn.Module) -> None:
    """Replace parameters and buffers by stand-ins; `Module.to` cannot."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(_fake(parameter), requires_grad=parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = _fake(buffer)


def _moved(value: Any, move: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return move(value)
    if isinstance(value, list | tuple):
        return type(value)(_moved(item, move) for item in value)
    if isinstance(value, Mapping):
        return {key: _moved(item, move) for key, item in value.items()}
    return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
