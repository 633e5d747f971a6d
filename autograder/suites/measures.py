"""Instruments of this course as the judge reads them: what a step of decoding costs, counted in the vault."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from autograder.in_box.hw2 import all_steps, several_steps
from autograder.judge.measures import instead_of, work_of
from autograder.judge.proxies import Student
from autograder.judge.watch import Session, watch
from course_utils.checking.compare import Wrong
from course_utils.hw2.kv_runs import work_per_step
from course_utils.hw4.decoding_runs import decoding_work

READS = 8  # numbers for each token: whether it ends its row, and whether all rows have ended


@instead_of(work_per_step)
def worked_per_step(
    student: Student, cached_step: Any, make_cache: Any, mha: Any, x: Tensor, lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """What the step costs, and its result, that brings the sequence to each of these lengths."""
    with watch(student) as session:
        found = worked_in_spans(session, cached_step, make_cache, mha, x, [(end - 1, end) for end in lengths])
    return [work | {"result": work["result"][0]} for work in found]


def worked_in_spans(
    session: Session, cached_step: Any, make_cache: Any, mha: Any, x: Tensor, spans: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """What the steps for each span of the tokens x[:, first:end] cost together, and their results, one a token."""
    found = []
    cache, t = session.call(make_cache, opaque="all").value, 0
    for first, end in spans:
        while t < end:
            counted = t == first
            after = end if counted else first if t > 0 else 1  # up to the next one that counts in one call
            step = cached_step if after - t == 1 else all_steps if counted else several_steps
            args = () if step is cached_step else (cached_step,)
            seen = session.call(step, *args, mha, x[:, t:after], cache, opaque="last")
            outputs = after - t if counted else 1
            if not (isinstance(seen.value, tuple | list) and len(seen.value) == outputs + 1):
                raise Wrong(f"cached_step gave a {type(seen.value).__name__}, expected the pair (out, cache)")
            (*results, cache), t = seen.value, after
        found.append(work_of(seen) | {"result": results})
    return found


@instead_of(decoding_work)
def decoded(student: Student, decode: Any, args: Sequence[Any], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """What decoding costs for each `max_len`, and its result."""
    found, (_, src, *_) = [], args
    for length in lengths:
        with watch(student, reads=READS * len(src) * (length + 1)) as session:
            found.append(work_of(session.call(decode, *args, length)))
    return found
