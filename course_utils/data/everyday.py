"""Everyday sentences in English and German, written side by side by a grammar.

    the old woman called her neighbour yesterday .  ->  die alte Frau hat gestern ihren Nachbarn angerufen .

A sentence is a meaning first (who does what to whom, when, where, asked or denied), and is then said in each language
by that language's rules. German has gender and case with the endings of articles and adjectives, the verb second in
main clauses and last in subordinate ones, prefixes that part from their verbs, participles and infinitives at the end,
*nicht* and *kein*, and pronouns that agree. Where German has several good ways, all are known, the plainest first.
`write(n, seed)` is the same on every machine.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from course_utils.data import lexicon
from course_utils.data.lexicon import (
    ADJECTIVES,
    APART,
    DATIVE,
    DIRECTIONS,
    GIVING,
    INTRANSITIVE,
    LOCATIONS,
    MODALS,
    NEVER_DENIED,
    NOUNS,
    NOW_OR_THEN,
    NUMBERS,
    OFTEN,
    OPPOSED,
    SAYING,
    SPEAK_OF,
    TIMES,
    TO_PLACES,
    TRANSITIVE,
    WITHOUT_PLACE,
    WITHOUT_TIME,
    Adjective,
    Noun,
    Verb,
)

MOST = 5  # references of a sentence
HELD_BACK = 12  # one in so many pairs of a verb and its object, or an adjective and its noun, is never trained on
NOM, ACC, DAT = 0, 1, 2
DEFINITE = {
    "m": ("der", "den", "dem"), "f": ("die", "die", "der"), "n": ("das", "das", "dem"), "p": ("die", "die", "den"),
}  # fmt: skip
ENDINGS = {  # of ein, kein, mein ... (no plural of ein)
    "m": ("", "en", "em"), "f": ("e", "e", "er"), "n": ("", "", "em"), "p": ("e", "e", "en"),
}  # fmt: skip
THIS = {"m": ("er", "en", "em"), "f": ("e", "e", "er"), "n": ("es", "es", "em"), "p": ("e", "e", "en")}
OWNERS = {"my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}


class Person(NamedTuple):
    """A personal pronoun: English subject and object, German by case, and who it is."""

    subject: str
    object: str
    german: tuple[str, str, str]
    who: str  # ich, du, er or plural


PERSONS = {
    "i": Person("I", "me", ("ich", "mich", "mir"), "ich"),
    "you": Person("you", "you", ("du", "dich", "dir"), "du"),
    "he": Person("he", "him", ("er", "ihn", "ihm"), "er"),
    "she": Person("she", "her", ("sie", "sie", "ihr"), "er"),
    "we": Person("we", "us", ("wir", "uns", "uns"), "plural"),
    "they": Person("they", "them", ("sie", "sie", "ihnen"), "plural"),
}
IT = {"m": ("er", "ihn"), "f": ("sie", "sie"), "n": ("es", "es"), "p": ("sie", "sie")}


@dataclass(frozen=True)
class Phrase:
    """Somebody or something: a pronoun, or a noun with what stands before it."""

    pronoun: str = ""
    noun: Noun | None = None
    determiner: str = ""  # the, a, this, one of OWNERS, one of NUMBERS, or none with a plural
    adjective: Adjective | None = None
    many: bool = False

    @property
    def who(self) -> str:
        """Which form of a verb goes with it."""
        return PERSONS[self.pronoun].who if self.pronoun else "plural" if self.many else "er"

    @property
    def gender(self) -> str:
        """m, f, n, or p in the plural."""
        return "p" if self.many or self.noun is None else self.noun.gender

    @property
    def is_indefinite(self) -> bool:
        """Whether it is denied with kein."""
        return not self.pronoun and self.determiner in ("a", "")

    @property
    def is_known(self) -> bool:
        """Whether it speaks of somebody known: the, this, my."""
        return bool(self.pronoun) or self.determiner in ("the", "this", *OWNERS)

    def english(self, case: int) -> str:
        """The phrase in English; pronouns have two forms."""
        if self.pronoun:
            return PERSONS[self.pronoun].subject if case == NOM else PERSONS[self.pronoun].object
        assert self.noun is not None
        words = [self.adjective.english] if self.adjective else []
        words.append(self.noun.many if self.many else self.noun.one)
        first = "an" if self.determiner == "a" and words[0][0] in "aeiou" else self.determiner
        first = "these" if first == "this" and self.many else first
        return " ".join([first, *words] if first else words)

    def german(self, case: int, denied: bool = False) -> str:
        """The phrase in German, in one of the three cases; denied: with kein."""
        if self.pronoun:
            return PERSONS[self.pronoun].german[case]
        assert self.noun is not None
        gender, strong = self.gender, False
        if denied:
            article = f"kein{ENDINGS[gender][case]}"
        elif self.determiner == "the":
            article = DEFINITE[gender][case]
        elif self.determiner == "this":
            article = f"dies{THIS[gender][case]}"
        elif self.determiner == "a":
            article = f"ein{ENDINGS[gender][case]}"
        elif self.determiner in OWNERS:
            article = OWNERS[self.determiner] + ENDINGS[gender][case]
        else:
            article, strong = NUMBERS.get(self.determiner, ""), True
        words = [article] if article else []
        if self.adjective:
            weak = self.determiner in ("the", "this") and not denied
            words.append(self.adjective.stem + _adjective_ending(gender, case, weak, strong))
        return " ".join([*words, self._german_noun(case)])

    def _german_noun(self, case: int) -> str:
        assert self.noun is not None
        if not self.many:
            return self.noun.weak if self.noun.weak and case != NOM else self.noun.singular
        plural = self.noun.plural
        return plural if case != DAT or plural[-1] in "ns" else f"{plural}n"


def _adjective_ending(gender: str, case: int, weak: bool, strong: bool) -> str:
    """After der and dieser; after ein and its like; and where nothing else shows the case, a plural without article."""
    if strong:
        return ("e", "e", "en")[case]
    if case == DAT or gender == "p" or (gender == "m" and case == ACC):
        return "en"
    if weak or gender == "f":
        return "e"
    return {"m": "er", "n": "es"}[gender]


@dataclass(frozen=True)
class Clause:
    """Who does what to whom, when and where."""

    subject: Phrase
    verb: Verb | None = None  # none: the subject is as `state` says
    state: Adjective | None = None
    accusative: Phrase | None = None
    dative: Phrase | None = None
    object_is_it: str = ""  # m, f, n or p: the object is a pronoun for a thing spoken of before
    subject_is_it: str = ""
    tense: str = "present"  # past, future, or the name of a modal verb
    time: str = ""
    often: str = ""
    place: str = ""  # of LOCATIONS or DIRECTIONS
    denied: bool = False

    @property
    def who(self) -> str:
        """Which form of the verb goes with the subject."""
        return ("plural" if self.subject_is_it == "p" else "er") if self.subject_is_it else self.subject.who


class Choices:
    """Ways to say a thing: each run of the German grammar takes one, and `ways` goes through all of them."""

    def __init__(self, taken: Sequence[int]) -> None:
        self._taken = list(taken)
        self.made: list[tuple[int, int]] = []

    def pick(self, *options: str) -> str:
        """One of the options."""
        return options[self.number(len(options))]

    def number(self, count: int) -> int:
        """A number below `count`."""
        place = len(self.made)
        taken = self._taken[place] if place < len(self._taken) else 0
        self.made.append((taken, count))
        return taken


# English


def english_clause(clause: Clause, asked: bool = False) -> list[str]:
    """A clause in English words; `asked`: as a question that yes answers."""
    subject = _english_subject(clause)
    rest = [phrase.english(ACC) for phrase in (clause.dative, clause.accusative) if phrase]
    if clause.object_is_it:
        rest.append("them" if clause.object_is_it == "p" else "it")
    particle = ""
    by_pronoun = clause.object_is_it or (clause.accusative is not None and clause.accusative.pronoun)
    if clause.verb is not None and clause.verb.base in APART and by_pronoun:
        particle = clause.verb.base.partition("_")[2]  # put it on
        rest[0] += f" {particle}"
    rest += [clause.place] if clause.place else []
    rest += [clause.time] if clause.time else []
    not_ = ["not"] if clause.denied else []
    singular = clause.who == "er"
    if clause.verb is None:
        assert clause.state is not None
        present = {"ich": "am", "er": "is"}.get(clause.who, "are")
        be = present if clause.tense == "present" else "was" if clause.who in ("ich", "er") else "were"
        words = [be, subject] if asked else [subject, be]
        return _words([*words, *not_, clause.state.english, *rest])
    verb = clause.verb
    base = verb.base.removesuffix(f"_{particle}")
    if clause.tense in ("present", "past"):
        finite = verb.past if clause.tense == "past" else verb.third if singular else verb.base
        finite = finite.removesuffix(f"_{particle}")
        do = "did" if clause.tense == "past" else "does" if singular else "do"
        if asked:
            return _words([do, subject, clause.often, base, *rest])
        if clause.denied:
            return _words([subject, do, "not", base, *rest])
        return _words([subject, clause.often, finite, *rest])
    if clause.tense == "want_to":
        if asked or clause.denied:
            do = "does" if singular else "do"
            head = [do, subject] if asked else [subject, do, "not"]
            return _words([*head, "want to", base, *rest])
        return _words([subject, "wants to" if singular else "want to", base, *rest])
    modal = "will" if clause.tense == "future" else clause.tense
    head = [modal, subject] if asked else [subject, modal, *not_]
    return _words([*head, base, *rest] if head[1:] != ["can", "not"] else [subject, "cannot", base, *rest])


def _english_subject(clause: Clause) -> str:
    if clause.subject_is_it:
        return "they" if clause.subject_is_it == "p" else "it"
    return clause.subject.english(NOM)


def _words(parts: Sequence[str]) -> list[str]:
    return " ".join(part for part in parts if part).replace("_", " ").split()


# German


def german_clause(clause: Clause, order: str, choices: Choices, front: bool = True) -> list[str]:
    """A clause in German words; the order is "main" (verb second), "first" (questions, after a clause) or "last"."""
    finite, end = _german_verbs(clause, choices)
    subject = IT[clause.subject_is_it][NOM] if clause.subject_is_it else clause.subject.german(NOM)
    field_ = _middle(clause, choices)
    if order == "last":
        return _words([subject, *field_, *_closed(clause, finite, end)])
    time = _german_time(clause)
    if order == "main" and front and time and choices.number(2):
        field_ = [word for word in field_ if word != time]
        return _words([time, finite, subject, *field_, *end])
    return _words([subject, finite, *field_, *end] if order == "main" else [finite, subject, *field_, *end])


def _german_verbs(clause: Clause, choices: Choices) -> tuple[str, list[str]]:
    """The finite verb of a main clause, and what stands at its end."""
    who = clause.who
    if clause.verb is None:
        assert clause.state is not None
        forms = _SEIN if clause.tense == "present" else _WAR
        return forms[who], [clause.state.german]
    verb = clause.verb
    if verb.synonym is not None and choices.number(2):
        verb = verb.synonym
    prefix = [verb.prefix] if verb.prefix else []
    if clause.tense == "past":
        return (_SEIN if verb.perfect == "sein" else _HABEN)[who], [verb.participle]
    if clause.tense in MODALS:
        modal = "may" if clause.denied and clause.tense == "must" else clause.tense  # must not: darf nicht
        first, second, plural = MODALS[modal]
        return {"ich": first, "er": first, "du": second, "plural": plural}[who], [verb.whole]
    if clause.tense == "future" and choices.number(2):
        return _WERDEN[who], [verb.whole]
    return {"ich": verb.ich, "du": verb.du, "er": verb.er, "plural": verb.infinitive}[who], prefix


_SEIN = {"ich": "bin", "du": "bist", "er": "ist", "plural": "sind"}
_WAR = {"ich": "war", "du": "warst", "er": "war", "plural": "waren"}
_HABEN = {"ich": "habe", "du": "hast", "er": "hat", "plural": "haben"}
_WERDEN = {"ich": "werde", "du": "wirst", "er": "wird", "plural": "werden"}
AUXILIARIES = (_SEIN, _WAR, _HABEN, _WERDEN)


def _closed(clause: Clause, finite: str, end: list[str]) -> list[str]:
    """The verbs at the end of a subordinate clause: a prefix is one with its verb again, the finite verb is last."""
    is_prefix = clause.verb is not None and len(end) == 1 and end[0] in _PREFIXES
    return [end[0] + finite] if is_prefix else [*end, finite]


_PREFIXES = {verb.prefix for verb in lexicon.VERBS if verb.prefix} | {
    verb.synonym.prefix for verb in lexicon.VERBS if verb.synonym
}


def _german_time(clause: Clause) -> str:
    return TIMES[clause.time][0] if clause.time else ""


def _middle(clause: Clause, choices: Choices) -> list[str]:
    """What stands between the verb and the end: pronouns, dative, time, accusative, *nicht*, place."""
    pronouns: list[str] = []
    dative: list[str] = []
    objects: list[str] = []
    denied = clause.denied
    if clause.object_is_it:
        pronouns.append(IT[clause.object_is_it][ACC])
    if clause.dative is not None:
        (pronouns if clause.dative.pronoun else dative).append(clause.dative.german(DAT))
    indefinite = False
    if clause.accusative is not None:
        indefinite = clause.accusative.is_indefinite
        with_kein = denied and indefinite
        words = clause.accusative.german(ACC, denied=with_kein)
        (pronouns if clause.accusative.pronoun else objects).append(words)
        denied = denied and not with_kein
    when = [_german_time(clause)] if clause.time else [OFTEN[clause.often]] if clause.often else []
    counted = clause.accusative is not None and clause.accusative.determiner in NUMBERS
    if when and objects and not indefinite and not counted and not clause.often and choices.number(2):
        between = [*objects, *when]
    else:
        between = [*when, *objects]
    place = [choices.pick(*(LOCATIONS | DIRECTIONS)[clause.place])] if clause.place else []
    if clause.dative is not None and not clause.dative.is_known:  # what is new comes later
        between, dative = [*when, *dative, *objects], []
    return [*pronouns, *dative, *between, *(["nicht"] if denied else []), *place]


# Sentences


@dataclass(frozen=True)
class Sentence:
    """An English sentence with its good German translations, the plainest first; what is in it, by name."""

    english: list[str]
    german: list[list[str]]
    phenomena: frozenset[str]
    pairs: frozenset[str] = frozenset()  # of a verb and its object, of an adjective and its noun

    @property
    def is_held_back(self) -> bool:
        """Whether it has a pair of words that training never sees together."""
        return any(_is_held_back(pair) for pair in self.pairs)


def _is_held_back(pair: str) -> bool:
    return int.from_bytes(hashlib.sha256(pair.encode()).digest()[:4], "big") % HELD_BACK == 0


@dataclass(frozen=True)
class Meaning:
    """A sentence as meaning: one or two clauses and how they hang together."""

    kind: str  # plain, question, where, that, because, when, and-it, but-it
    first: Clause
    second: Clause | None = None
    word: str = ""  # because, although, when ...
    extra: Clause | None = field(default=None)  # a third clause, in long sentences


JOINTS = {"because": "weil", "although": "obwohl", "that": "dass"}


def say_english(plan: Meaning) -> list[str]:
    """The sentence in English."""
    if plan.kind == "question":
        return [*english_clause(plan.first, asked=True), "?"]
    words = english_clause(plan.first)
    if plan.kind == "when":
        assert plan.second is not None
        words = ["when", *words, ",", *english_clause(plan.second)]
    elif plan.kind == "and-it":
        assert plan.second is not None
        words += ["and", *english_clause(plan.second)[_length_of_subject(plan.second) :]]
    elif plan.second is not None:
        words += (
            [plan.word, *english_clause(plan.second)]
            if plan.word == "that"
            else ([",", plan.word, *english_clause(plan.second)])
        )
    if plan.extra is not None:
        words += [",", "because", *english_clause(plan.extra)]
    return [*words, "."]


def _length_of_subject(clause: Clause) -> int:
    return len(_english_subject(clause).split())


def say_german(plan: Meaning, choices: Choices) -> list[str]:
    """The sentence in German, in the way that the choices say."""
    if plan.kind == "question":
        return [*german_clause(plan.first, "first", choices), "?"]
    if plan.kind == "when":
        assert plan.second is not None
        joint = "als" if plan.first.tense == "past" else "wenn"
        words = [joint, *german_clause(plan.first, "last", choices), ","]
        words += german_clause(plan.second, "first", choices)
    else:
        words = german_clause(plan.first, "main", choices)
        if plan.kind == "and-it":
            assert plan.second is not None
            finite, end = _german_verbs(plan.second, choices)
            words += ["und", *([] if plan.second.tense == "past" else [finite])]
            words += [*_middle(plan.second, choices), *end]
        elif plan.second is not None and plan.word == "but":
            words += [",", "aber", *german_clause(plan.second, "main", choices)]
        elif plan.second is not None:
            words += [",", JOINTS[plan.word], *german_clause(plan.second, "last", choices)]
    if plan.extra is not None:
        words += [",", "weil", *german_clause(plan.extra, "last", choices)]
    return [*words, "."]


def ways(plan: Meaning) -> Iterator[list[str]]:
    """All German translations that the grammar knows, the plainest first."""
    waiting: list[list[int]] = [[]]
    while waiting:
        taken = waiting.pop(0)
        choices = Choices(taken)
        yield say_german(plan, choices)
        for place in range(len(taken), len(choices.made)):
            for other in range(1, choices.made[place][1]):
                waiting.append([number for number, _ in choices.made[:place]] + [other])


# Meanings


class Writer:
    """Draws meanings: all chance comes from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def sentence(self, long: bool = False) -> Sentence:
        """One sentence with its translations."""
        plan = self.plan(long)
        german: list[list[str]] = []
        for words in ways(plan):
            if words not in german:
                german.append(words)
            if len(german) == MOST:
                break
        clauses = [clause for clause in (plan.first, plan.second, plan.extra) if clause is not None]
        found = {plan.kind, *(name for clause in clauses for name in _phenomena(clause))}
        pairs = frozenset(pair for clause in clauses for pair in _pairs(clause))
        return Sentence(say_english(plan), german, frozenset(found), pairs)

    def plan(self, long: bool = False) -> Meaning:
        """A meaning; a long one has three clauses."""
        kinds = {"plain": 50, "question": 14, "that": 9, "because": 9, "when": 8, "and-it": 6, "but-it": 4}
        if long:
            kinds = {"that": 1, "when": 1, "because": 1}
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        plan = getattr(self, f"_{kind.replace('-', '_')}")()
        return replace(plan, extra=self.clause(simple=True)) if long else plan

    def _plain(self) -> Meaning:
        return Meaning("plain", self.clause())

    def _question(self) -> Meaning:
        return Meaning("question", replace(self.clause(), denied=False))

    def _that(self) -> Meaning:
        first = Clause(self.subject(animals=False), self.rng.choice(SAYING))
        return Meaning("that", first, self.clause(), "that")

    def _because(self) -> Meaning:
        word = self.rng.choice(["because", "because", "although"])
        return Meaning("because", self.clause(simple=True), self.clause(), word)

    def _when(self) -> Meaning:
        tense = self.rng.choice(["present", "past"])
        first, second = (self.clause(simple=True, tense=tense) for _ in range(2))
        return Meaning("when", replace(first, denied=False), replace(second, time="", often=""))

    def _and_it(self) -> Meaning:
        """Two things that one does with the same object: German needs its gender for the second."""
        kind = self.rng.choice(list(SPEAK_OF))
        one, two = (_verb_of(base) for base in self.rng.choice(SPEAK_OF[kind]))
        thing = self.thing((kind,))
        tense = self.rng.choice(["present", "past"])
        subject = self.subject(animals=False)
        first = Clause(subject, one, accusative=thing, tense=tense, time=self.time(tense))
        second = Clause(subject, two, object_is_it=thing.gender, tense=tense)
        return Meaning("and-it", first, second)

    def _but_it(self) -> Meaning:
        thing = self.thing(("thing", "clothes", "device", "vehicle", "text", "place"), definite=True)
        assert thing.noun is not None
        one = self.rng.choice(ADJECTIVES[thing.noun.kind])
        two = self.rng.choice([other for other in ADJECTIVES[thing.noun.kind] if not _opposed(one, other)])
        thing = replace(thing, adjective=None)
        tense = self.rng.choice(["present", "past"])
        second = Clause(thing, state=two, subject_is_it=thing.gender, tense=tense)
        return Meaning("but-it", Clause(thing, state=one, tense=tense), second, "but")

    def clause(self, simple: bool = False, tense: str = "") -> Clause:
        """Who does what; a simple one has little besides."""
        shape = self.rng.choices(["object", "none", "go", "dative", "give", "state"], [42, 18, 9, 8, 11, 12])[0]
        tense = tense or self.tense(shape)
        clause: Clause = getattr(self, f"_clause_{shape}")(tense)
        tense = clause.tense
        still = shape == "state" or (clause.verb is not None and clause.verb.base in WITHOUT_TIME)
        time = "" if (simple and self.rng.random() < 0.8) or (still and tense != "future") else self.time(tense)
        place = clause.place
        placed = shape in ("object", "none") and clause.verb is not None and clause.verb.base not in WITHOUT_PLACE
        if placed and not simple and not still and self.rng.random() < 0.3:
            place = self.rng.choice(list(LOCATIONS))
        often = ""
        if not time and tense == "present" and not still and self.rng.random() < 0.15:
            often = self.rng.choice(list(OFTEN))
        counted = clause.accusative is not None and clause.accusative.determiner in NUMBERS
        denied = not often and not counted and time not in NEVER_DENIED and self.rng.random() < 0.18
        return replace(clause, time=time, place=place, often=often, denied=denied)

    def _clause_object(self, tense: str) -> Clause:
        verb = self.rng.choice(TRANSITIVE)
        kind = self.rng.choice(verb.objects)
        subject = self.subject(animals=verb.animals)
        tense = "present" if verb.base in NOW_OR_THEN and tense != "past" else tense
        return Clause(subject, verb, accusative=self.object((kind,), subject), tense=tense)

    def _clause_none(self, tense: str) -> Clause:
        verb = self.rng.choice(INTRANSITIVE)
        return Clause(self.subject(animals=verb.animals), verb, tense=tense)

    def _clause_go(self, tense: str) -> Clause:
        place = self.rng.choice(list(DIRECTIONS))
        return Clause(self.subject(animals=False), self.rng.choice(TO_PLACES), place=place, tense=tense)

    def _clause_dative(self, tense: str) -> Clause:
        subject = self.subject(animals=False)
        return Clause(subject, self.rng.choice(DATIVE), dative=self.object(("person",), subject), tense=tense)

    def _clause_give(self, tense: str) -> Clause:
        verb, subject = self.rng.choice(GIVING), self.subject(animals=False)
        receiver = self.object(("person",), subject)
        given = self.thing((self.rng.choice(verb.objects),))
        return Clause(subject, verb, dative=receiver, accusative=given, tense=tense)

    def _clause_state(self, tense: str) -> Clause:
        acts = self.rng.random() < 0.5
        subject = self.subject(animals=True) if acts else self.thing(("thing", "room", "place"), definite=True)
        kind = subject.noun.kind if subject.noun else "person"
        states = [one for one in ADJECTIVES[kind] if not (subject.adjective and _opposed(one, subject.adjective))]
        return Clause(subject, state=self.rng.choice(states), tense="past" if tense == "past" else "present")

    def tense(self, shape: str) -> str:
        """Present, past, future or a modal verb."""
        if shape == "state":
            return self.rng.choices(["present", "past"], [3, 1])[0]
        kind = self.rng.choices(["present", "past", "future", "modal"], [45, 30, 9, 16])[0]
        return self.rng.choice(list(MODALS)) if kind == "modal" else kind

    def time(self, tense: str) -> str:
        """When, or nothing."""
        if tense == "future":
            return self.rng.choice([time for time, (_, tenses) in TIMES.items() if "future" in tenses])
        fitting = "present" if tense != "past" else "past"
        known = [time for time, (_, tenses) in TIMES.items() if fitting in tenses]
        return self.rng.choice(known) if self.rng.random() < 0.35 else ""

    def subject(self, animals: bool) -> Phrase:
        """Somebody who acts."""
        if self.rng.random() < 0.38:
            return Phrase(pronoun=self.rng.choice(list(PERSONS)))
        kind = "animal" if animals and self.rng.random() < 0.5 else "person"
        return self.noun_phrase((kind,), ["the", "the", "the", "a", "owner", "this", "number"])

    def object(self, kinds: tuple[str, ...], subject: Phrase) -> Phrase:
        """Somebody or something that is acted upon; nobody acts upon himself."""
        if kinds == ("person",) and self.rng.random() < 0.3:
            others = [name for name in PERSONS if name != subject.pronoun and not _alike(name, subject)]
            return Phrase(pronoun=self.rng.choice(others))
        while True:
            phrase = self.thing(kinds)
            if subject.noun is None or phrase.noun is not subject.noun:
                return phrase

    def thing(self, kinds: tuple[str, ...], definite: bool = False) -> Phrase:
        """A noun with what stands before it."""
        determiners = ["the", "the", "this", "owner"]
        return self.noun_phrase(kinds, determiners if definite else [*determiners, "a", "a", "a", "number", ""])

    def noun_phrase(self, kinds: tuple[str, ...], determiners: list[str]) -> Phrase:
        """A noun of one of the kinds after one of the determiners, with an adjective at times."""
        noun = self.rng.choice(NOUNS[self.rng.choice(kinds)])
        determiner = self.rng.choice(determiners)
        if noun.many == "-":
            determiner = determiner if determiner in ("the", "a", "owner", "this") else "the"
        many = determiner in ("number", "") or (determiner != "a" and noun.many != "-" and self.rng.random() < 0.2)
        if determiner == "owner":
            determiner = self.rng.choice(list(OWNERS))
        elif determiner == "number":
            determiner = self.rng.choice(list(NUMBERS))
        # No *junger Junge*: the adjective is not the noun's own beginning.
        fitting = [one for one in ADJECTIVES[noun.kind] if not noun.singular.lower().startswith(one.stem)]
        adjective = self.rng.choice(fitting) if self.rng.random() < 0.32 else None
        return Phrase("", noun, determiner, adjective, many)


def _alike(pronoun: str, subject: Phrase) -> bool:
    """Whether an object would mean the one who acts: we see me."""
    same = [{"i", "we"}, {"you"}, {"he"}, {"she"}, {"they"}]
    return any({pronoun, subject.pronoun} <= group for group in same)


def _opposed(one: Adjective, other: Adjective) -> bool:
    """Whether two adjectives are the same or say opposite things."""
    return one == other or any({one.english, other.english} <= group for group in OPPOSED)


def _verb_of(base: str) -> Verb:
    return next(verb for verb in TRANSITIVE if verb.base == base)


def _phenomena(clause: Clause) -> Iterator[str]:
    """What is hard about a clause, by name."""
    verb = clause.verb
    if verb is not None and verb.prefix:
        yield "separable verb"
    if clause.tense == "past" and verb is not None:
        yield "perfect with sein" if verb.perfect == "sein" else "perfect"
    if clause.tense in MODALS:
        yield "modal verb"
    if clause.denied:
        yield "kein" if clause.accusative is not None and clause.accusative.is_indefinite else "nicht"
    if clause.dative is not None:
        yield "dative"
    if clause.object_is_it or clause.subject_is_it:
        yield "it"
    phrases = (clause.subject, clause.accusative, clause.dative)
    if any(phrase is not None and phrase.adjective for phrase in phrases):
        yield "adjective ending"
    if clause.accusative is not None and clause.accusative.gender == "m" and not clause.accusative.pronoun:
        yield "masculine accusative"
    if any(phrase is not None and phrase.determiner in NUMBERS for phrase in phrases):
        yield "number"


def _pairs(clause: Clause) -> Iterator[str]:
    for phrase in (clause.subject, clause.accusative, clause.dative):
        if phrase is not None and phrase.noun is not None and phrase.adjective is not None:
            yield f"{phrase.adjective.english} {phrase.noun.one}"
    if clause.verb is not None and clause.accusative is not None and clause.accusative.noun is not None:
        yield f"{clause.verb.base} {clause.accusative.noun.one}"


def write(n: int, seed: int = 0, long: bool = False) -> list[Sentence]:
    """`n` different sentences."""
    writer, found, seen = Writer(random.Random(f"sentences {seed} {long}")), list[Sentence](), set[tuple[str, ...]]()
    while len(found) < n:
        sentence = writer.sentence(long)
        if tuple(sentence.english) not in seen:
            seen.add(tuple(sentence.english))
            found.append(sentence)
    return found


def sentence_pairs(n: int, seed: int = 0) -> list[tuple[list[str], list[str]]]:
    """`n` pairs of an English sentence and one of its German translations, drawn by chance where there are several.

    Pairs of words that are held back (`Sentence.is_held_back`) do not come together in them: `write` has such sentences
    too, to see whether a model can put known words together anew.
    """
    rng = random.Random(f"translations {seed}")
    kept = [one for one in write(n + n // 5 + 20, seed) if not one.is_held_back][:n]
    return [(one.english, rng.choice(one.german)) for one in kept]


def readable(words: Sequence[str]) -> str:
    """Tokens as people write them: a capital first, no space before a mark."""
    text = " ".join(words)
    for mark in ",.?!":
        text = text.replace(f" {mark}", mark)
    return text[:1].upper() + text[1:]
