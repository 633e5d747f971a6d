"""Name the known mistake whose prints a student's outputs have."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from course_utils.explain.fingerprints import Fingerprint
from course_utils.explain.sealed_prints import Mistake

REFUSAL = "ValueError"  # what right answers raise, where they are to refuse
ENOUGH = 4  # prints of numbers that cannot agree by chance


def diagnose(
    student: Mapping[str, Fingerprint], catalogue: Sequence[Mistake], named: Collection[str] = ()
) -> Mistake | None:
    """The mistake that fits the student's prints best, or None.

    The best fit has the most prints that match, then the fewest of its own that do not, then is among those that a
    failed case has `named`, then comes first. A mistake that fits neither most of its prints nor ENOUGH of them is
    not named: at one place many mistakes look alike.
    """
    best, best_score = None, (0, 0, False)
    for mistake in catalogue:
        hits = _hits(student, mistake)
        score = (len(hits), len(hits) - len(mistake.prints), mistake.label in named)
        if hits and (best is None or score > best_score):
            best, best_score = mistake, score
    return best


def _hits(student: Mapping[str, Fingerprint], mistake: Mistake) -> list[str]:
    """The probes at which the student's prints are the mistake's; none where that is too little to go by."""
    tried = [name for name in mistake.prints if name in student]
    hits = [name for name in tried if mistake.prints[name].fits(student[name])]
    telling = [name for name in hits if mistake.prints[name].kind == "shape"]  # numbers, not a yes, a word or an error
    if 2 * len(hits) <= len(tried) and len(telling) < ENOUGH:
        return []
    if all(mistake.prints[name].kind == "error" for name in hits):  # says little: many errors are of the same type
        elsewhere = [student[name].get("error") for name in student if name not in mistake.prints]
        crashes = set(elsewhere) - {None, REFUSAL}  # where this mistake does as the right answer
        only_errors = all(print_.kind == "error" for print_ in mistake.prints.values())
        if not only_errors or len(hits) < len(tried) or crashes:
            return []
    return hits
