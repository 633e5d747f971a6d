"""One check for every module and mask function: would it run on a GPU as it stands?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course_utils.checking import check
from course_utils.elsewhere import WRONG, try_elsewhere


def device_ready(
    in_box: Callable[..., Any],
    target: Any,
    init: Sequence[Any] = (),
    init_kwargs: Mapping[str, Any] | None = None,
    *,
    call: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> None:
    """`Wrong` where the student's function, or the module made with `init`, makes a tensor on a fixed device.

    It runs beside the student's code and can be lied to, so give it little weight and check values elsewhere.
    """
    verdict, why = in_box(try_elsewhere, target, list(init), dict(init_kwargs or {}), list(call), dict(kwargs or {}))
    check(verdict != WRONG, str(why))
