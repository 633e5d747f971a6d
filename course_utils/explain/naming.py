"""Name the known mistakes whose prints a student's outputs have: at most two, and none that explains nothing seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_utils.explain.fingerprints import Fingerprint
from course_utils.explain.sealed_prints import Mistake

REFUSAL = "ValueError"  # what right answers raise, where they are to refuse
ENOUGH = 4  # prints of numbers that cannot agree by chance


@dataclass(frozen=True)
class Found:
    """A mistake that fits; `exact`: the outputs are its own wherever those differ from the right ones."""

    mistake: Mistake
    exact: bool


def diagnose(
    student: Mapping[str, Fingerprint],
    catalogue: Sequence[Mistake],
    named: Collection[str] = (),
    failed: Collection[str] = (),
) -> list[Found]:
    """The mistakes that explain a wrong answer, the best first: none, one, or two that it takes together.

    The best fit answers with values of its own rather than errors alone, has the most prints that match, then the
    fewest of its own that do not, then is among those that a failed check has `named`, then comes first. A mistake that
    fits neither most of its prints nor ENOUGH of them is not named: at one place many mistakes look alike. One that
    itself fails none of the `failed` checks explains none of them, and is not named either; nor is one for which little
    speaks, a single print or words alone, unless it fails half of them.
    """
    best: tuple[Mistake, list[str]] | None = None
    best_score = (False, 0, 0, False)
    fitting = []
    for mistake in catalogue:
        hits = _hits(student, mistake) if _explains(mistake, failed) else []
        if not hits:
            continue
        fitting.append((mistake, hits))
        score = (bool(_values(mistake, hits)), len(hits), len(hits) - len(mistake.prints), mistake.label in named)
        if best is None or score > best_score:
            best, best_score = (mistake, hits), score
    if best is None:
        return []
    first, left = best[0], [check for check in failed if check not in best[0].fails]
    if first.fails and left:
        for second, _ in fitting:
            if second is not first and second.fails and set(left) & set(second.fails):
                pair = [Found(one, _exact(student, one, other)) for one, other in ((first, second), (second, first))]
                if all(found.exact for found in pair):
                    return pair
    if first.fails and 2 * len(left) > len(failed) and _says_little(first, best[1]):
        return []
    return [Found(first, _exact(student, first))]


def _explains(mistake: Mistake, failed: Collection[str]) -> bool:
    """Whether it fails one of these checks itself; taken for granted where nobody knows."""
    return not mistake.fails or not failed or not set(mistake.fails).isdisjoint(failed)


def _exact(student: Mapping[str, Fingerprint], mistake: Mistake, other: Mistake | None = None) -> bool:
    """Whether the outputs are the mistake's wherever it alone differs from the right ones; errors alone say too little.

    Where `other` differs as well, what the two do together is not known.
    """
    own = [name for name in mistake.prints if other is None or name not in other.prints]
    fits = all(name in student and mistake.prints[name].fits(student[name]) for name in own)
    return fits and bool(_values(mistake, own))


def _says_little(mistake: Mistake, hits: Sequence[str]) -> bool:
    """Whether many other answers may give the same: one print, or a yes, a word or an error each."""
    return len(hits) == 1 or not any(mistake.prints[name].kind == "shape" for name in hits)


def _values(mistake: Mistake, probes: Iterable[str]) -> list[str]:
    """Those of the probes at which the mistake gives anything but an error."""
    return [name for name in probes if mistake.prints[name].kind != "error"]


def _hits(student: Mapping[str, Fingerprint], mistake: Mistake) -> list[str]:
    """The probes at which the student's prints are the mistake's; none where that is too little to go by."""
    tried = [name for name in mistake.prints if name in student]
    hits = [name for name in tried if mistake.prints[name].fits(student[name])]
    telling = [name for name in hits if mistake.prints[name].kind == "shape"]  # numbers, not a yes, a word or an error
    if 2 * len(hits) <= len(tried) and len(telling) < ENOUGH:
        return []
    if not _values(mistake, hits):  # says little: many errors are of the same type
        elsewhere = [student[name].get("error") for name in student if name not in mistake.prints]
        crashes = set(elsewhere) - {None, REFUSAL}  # where this mistake does as the right answer
        if _values(mistake, mistake.prints) or len(hits) < len(tried) or crashes:
            return []
    return hits
