"""One check for every module and mask function: would it run on a GPU as it stands?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from autograder.judge.faults import StudentRaised
from course_utils.checking.compare import Wrong, check, same

MISMATCH = ("same device", "two devices", "different devices", "to numpy")
REMEDY = "Give new tensors `device=` of an input (or make them with x.new_zeros, torch.zeros_like), constants a buffer."
STRAY = f"a result is on the CPU while the inputs are elsewhere. {REMEDY}"
MANY = 10**6  # numbers may be read and brought in: here it matters where they are


def device_ready(
    watch: Callable[..., Any],
    target: Any,
    init: Sequence[Any] = (),
    init_kwargs: Mapping[str, Any] | None = None,
    *,
    call: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    then: Sequence[Any] | None = None,
    mistake: str | None = None,
) -> None:
    """`Wrong` where the student's function, or the module made with `init`, makes a tensor on a fixed device.

    The tensors of the call claim to be on another device than the CPU, and so do the parameters and buffers of modules.
    With `then` the function makes a module, which is called with these.
    """
    function = target(*init, **(init_kwargs or {})) if target.is_class else target
    try:
        with on_another_device(watch, mistake) as session:  # first: nobody has met the numbers of this call
            seen = session.call(function, *call, opaque="none" if then is None else "all", **(kwargs or {}))
            if then is not None:
                seen = session.call(seen.value, *then)
    except (StudentRaised, Wrong):
        _plainly(function, call, kwargs or {}, then)  # what fails here too is no matter of devices
        raise
    usual, again = (_plainly(function, call, kwargs or {}, then) for _ in range(2))
    check(not seen.strays, STRAY, mistake=mistake)
    if all(map(torch.equal, usual, again)):  # there is no dropout, say
        got = _tensors(seen.value)
        check(len(got) == len(usual), "with inputs on another device it gives something else back")
        for mine, right in zip(got, usual, strict=True):
            same(mine, right, "the result with inputs on another device", rtol=1e-3, atol=1e-4)


@contextmanager
def on_another_device(watch: Callable[..., Any], mistake: str | None = None) -> Iterator[Any]:
    """Watched calls whose tensors claim to be on another device than the CPU; `Wrong` where others meet them."""
    try:
        with watch(device="meta", reads=MANY, brings=MANY) as session:
            yield session
    except StudentRaised as error:
        if not any(words in str(error).lower() for words in MISMATCH):
            raise
        raise Wrong(f"on another device than the CPU: {error}. {REMEDY}", mistake) from None


def _plainly(function: Any, call: Sequence[Any], kwargs: Mapping[str, Any], then: Sequence[Any] | None) -> list[Tensor]:
    """The tensors that come back here."""
    with torch.no_grad():
        made = function(*call, **kwargs)
        return _tensors(made if then is None else made(*then))


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]
