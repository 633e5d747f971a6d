"""All words that the grammar of `everyday.py` can write, and what each German form is a form of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from course_utils.data import lexicon
from course_utils.data.everyday import AUXILIARIES, DEFINITE, ENDINGS, IT, JOINTS, OWNERS, PERSONS, THIS
from course_utils.data.lexicon import Verb
from course_utils.data.vocabulary import Vocabulary

MARKS = ", . ?"
ENGLISH = "the a an this these not do does did am is are was were will cannot it them they and but when wants to"
VERBS = (*lexicon.VERBS, *lexicon.TO_PLACES, *lexicon.DATIVE, *lexicon.GIVING, *lexicon.SAYING)
SCENES = (lexicon.LOCATIONS, lexicon.DIRECTIONS)


@cache
def vocabularies() -> tuple[Vocabulary, Vocabulary]:
    """The English and the German vocabulary, each in alphabetical order: the same on every machine."""
    return Vocabulary(sorted(set(_english()))), Vocabulary(sorted(german_forms()))


@cache
def german_forms() -> dict[str, frozenset[tuple[str, str]]]:
    """Each German word with what it may be a form of: pairs of a kind (noun, verb ...) and a dictionary word."""
    found: dict[str, set[tuple[str, str]]] = {}
    for kind, word, forms in _german():
        for form in forms:
            found.setdefault(form, set()).add((kind, word))
    return {form: frozenset(pairs) for form, pairs in found.items()}


def _english() -> Iterator[str]:
    texts = [MARKS, ENGLISH, *OWNERS, *lexicon.NUMBERS, *lexicon.MODALS, *lexicon.OFTEN, *lexicon.TIMES, *JOINTS]
    texts += [text for table in SCENES for text in table]
    texts += [text for person in PERSONS.values() for text in (person.subject, person.object)]
    texts += [text for kind in lexicon.NOUNS.values() for noun in kind for text in (noun.one, noun.many)]
    texts += [adjective.english for kind in lexicon.ADJECTIVES.values() for adjective in kind]
    texts += [text for verb in VERBS for text in (verb.base, verb.third, verb.past)]
    yield from (word for text in texts for word in text.replace("_", " ").split() if word != "-")


def _german() -> Iterator[tuple[str, str, list[str]]]:
    """A kind, a dictionary word, and its forms."""
    yield "mark", "", MARKS.split()
    yield "joint", "", [*JOINTS.values(), "wenn", "als", "und", "aber"]
    yield "negation", "nicht", ["nicht"]
    for number in lexicon.NUMBERS.values():
        yield "number", number, [number]
    yield "article", "der", [form for row in DEFINITE.values() for form in row]
    yield "article", "dieser", [f"dies{ending}" for row in THIS.values() for ending in row]
    for word in ("ein", "kein", *OWNERS.values()):
        yield "negation" if word == "kein" else "article", word, [word + e for row in ENDINGS.values() for e in row]
    for name, person in PERSONS.items():
        yield "pronoun", name, list(person.german)
    yield "pronoun", "it", [form for row in IT.values() for form in row]
    for kind in lexicon.NOUNS.values():
        for noun in kind:
            dative = noun.plural if noun.plural[-1] in "ns" else f"{noun.plural}n"
            plural = [noun.plural, dative] if noun.many != "-" else []
            yield "noun", noun.singular, [noun.singular, *plural, *([noun.weak] if noun.weak else [])]
        for adjective in lexicon.ADJECTIVES[kind[0].kind]:
            forms = [adjective.german, *(adjective.stem + ending for ending in ("e", "en", "er", "es"))]
            yield "adjective", adjective.german, forms
    for auxiliary in AUXILIARIES:
        yield "verb", auxiliary["plural"], list(auxiliary.values())
    for modal in lexicon.MODALS.values():
        yield "verb", modal[-1], list(modal)
    for verb in VERBS:
        for one in (verb, verb.synonym):
            if one is not None:
                yield "verb", one.whole, _forms(one)
    scenes = [text for table in SCENES for texts in table.values() for text in texts]
    times = [time for time, _ in lexicon.TIMES.values()]
    yield "place", "", [word for text in scenes for word in text.split()]
    yield "time", "", [word for text in (*times, *lexicon.OFTEN.values()) for word in text.split()]


def _forms(verb: Verb) -> list[str]:
    """Forms of a verb, parted and in one word, as subordinate clauses have it."""
    finite = [verb.ich, verb.du, verb.er, verb.infinitive]
    prefix = [verb.prefix] if verb.prefix else []
    return [*finite, *prefix, *(verb.prefix + form for form in finite), verb.participle]
