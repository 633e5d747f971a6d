"""Instruments of this course as the judge reads them: what a step of decoding costs, counted in the vault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from autograder.in_box.hw2 import several_steps
from autograder.judge.measures import instead_of, work_of
from autograder.judge.proxies import Student
from autograder.judge.watch import watch
from course_utils.checking.compare import Wrong
from course_utils.hw2.kv_runs import work_per_step
from course_utils.hw4.decoding_runs import decoding_work

READS = 8  # numbers for each token: whether it ends its row, and whether all rows have ended


@instead_of(work_per_step)
def worked_per_step(
    student: Student, cached_step: Any, make_cache: Any, mha: Any, x: Tensor, lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """What the step costs, and its result, that brings the sequence to each of these lengths."""
    found = []
    with watch(student) as session:
        cache, t = session.call(make_cache, opaque="all").value, 0
        while t < lengths[-1]:
            step, after = cached_step, t + 1
            if t > 0 and t + 1 not in lengths:  # up to the next one that counts in one call
                step, after = several_steps, next(length for length in lengths if length > t) - 1
            args = (cached_step,) if step is several_steps else ()
            seen = session.call(step, *args, mha, x[:, t:after], cache, opaque="last")
            if not (isinstance(seen.value, tuple | list) and len(seen.value) == 2):
                raise Wrong(f"cached_step gave a {type(seen.value).__name__}, expected the pair (out, cache)")
            (out, cache), t = seen.value, after
            if t in lengths:
                found.append(work_of(seen) | {"result": out})
    return found


@instead_of(decoding_work)
def decoded(student: Student, decode: Any, args: Sequence[Any], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """What decoding costs for each `max_len`, and its result."""
    found, (_, src, *_) = [], args
    for length in lengths:
        with watch(student, reads=READS * len(src) * (length + 1)) as session:
            found.append(work_of(session.call(decode, *args, length)))
    return found
