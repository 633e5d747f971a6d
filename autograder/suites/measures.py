"""Instruments of this course as the judge reads them: what a step of decoding costs, counted in the vault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

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
        cache = session.call(make_cache, opaque="all").value
        for t in range(lengths[-1]):
            seen = session.call(cached_step, mha, x[:, t : t + 1], cache, opaque="last")
            if not (isinstance(seen.value, tuple | list) and len(seen.value) == 2):
                raise Wrong(f"cached_step gave a {type(seen.value).__name__}, expected the pair (out, cache)")
            out, cache = seen.value
            if t + 1 in lengths:
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
