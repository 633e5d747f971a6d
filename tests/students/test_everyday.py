"""Sentences in two languages: what each one's rules make of a meaning, and what is held back."""

from __future__ import annotations

import pytest

from course_utils.data.everyday import (
    Choices,
    Clause,
    Meaning,
    Phrase,
    readable,
    say_english,
    say_german,
    sentence_pairs,
    ways,
    write,
)
from course_utils.data.lexicon import ADJECTIVES, GIVING, NOUNS, SAYING, TO_PLACES, VERBS, Adjective, Noun, Verb


def noun(one: str) -> Noun:
    return next(found for kind in NOUNS.values() for found in kind if found.one == one)


def verb(base: str) -> Verb:
    return next(found for found in (*VERBS, *GIVING, *TO_PLACES) if found.base == base)


def adjective(english: str) -> Adjective:
    return next(found for kind in ADJECTIVES.values() for found in kind if found.english == english)


def phrase(text: str, many: bool = False) -> Phrase:
    """`my old dog`, `the boy`, `she`."""
    words = text.split()
    if len(words) == 1 and words[0] in ("i", "you", "he", "she", "we", "they"):
        return Phrase(pronoun=text)
    return Phrase("", noun(words[-1]), words[0], adjective(words[1]) if len(words) == 3 else None, many)


SAID = [
    (Meaning("plain", Clause(phrase("the old woman"), verb("call"), accusative=phrase("her neighbour"), tense="past")),
     "The old woman called her neighbour.", "Die alte Frau hat ihren Nachbarn angerufen."),
    (Meaning("plain", Clause(phrase("a dog"), verb("see"), accusative=phrase("a small bird"), denied=True)),
     "A dog does not see a small bird.", "Ein Hund sieht keinen kleinen Vogel."),
    (Meaning("plain", Clause(phrase("she"), verb("read"), accusative=phrase("the book"), denied=True,
                             place="at school")),
     "She does not read the book at school.", "Sie liest das Buch nicht in der Schule."),
    (Meaning("question", Clause(phrase("you"), verb("turn_on"), accusative=phrase("the red lamp"))),
     "Do you turn on the red lamp?", "Schaltest du die rote Lampe ein?"),
    (Meaning("that", Clause(phrase("i"), SAYING[0]), Clause(phrase("the child"), verb("get_up")), "that"),
     "I know that the child gets up.", "Ich weiß, dass das Kind aufsteht."),
    (Meaning("because", Clause(phrase("we"), verb("laugh")),
             Clause(phrase("he"), verb("go"), place="home", tense="past"), "because"),
     "We laugh, because he went home.", "Wir lachen, weil er nach Hause gegangen ist."),
    (Meaning("when", Clause(phrase("the boy"), verb("wake_up")), Clause(phrase("his dog"), verb("sleep"))),
     "When the boy wakes up, his dog sleeps.", "Wenn der Junge aufwacht, schläft sein Hund."),
    (Meaning("and-it", Clause(phrase("the man"), verb("wash"), accusative=phrase("a shirt")),
          Clause(phrase("the man"), verb("put_on"), object_is_it="n")),
     "The man washes a shirt and puts it on.", "Der Mann wäscht ein Hemd und zieht es an."),
    (Meaning("but-it", Clause(phrase("the lamp"), state=adjective("new")),
          Clause(phrase("the lamp"), state=adjective("expensive"), subject_is_it="f"), "but"),
     "The lamp is new, but it is expensive.", "Die Lampe ist neu, aber sie ist teuer."),
    (Meaning("plain", Clause(phrase("our teacher"), verb("give"), dative=phrase("the child", many=True),
                          accusative=phrase("three apple", many=True))),
     "Our teacher gives the children three apples.", "Unser Lehrer gibt den Kindern drei Äpfel."),
    (Meaning("plain", Clause(phrase("you"), verb("open"), accusative=phrase("this box"), tense="must", denied=True)),
     "You must not open this box.", "Du darfst diese Kiste nicht öffnen."),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "english", "german"), SAID, ids=[english for _, english, _ in SAID])
def test_a_meaning_is_said_by_the_rules_of_each_language(plan: Meaning, english: str, german: str) -> None:
    assert readable(say_english(plan)) == english
    assert readable(say_german(plan, Choices([]))) == german


def test_all_good_ways_are_known() -> None:
    clause = Clause(phrase("he"), verb("close"), accusative=phrase("the door"), tense="future", time="tomorrow")
    said = {readable(words) for words in ways(Meaning("plain", clause))}
    assert {
        "Er schließt morgen die Tür.", "Er macht morgen die Tür zu.", "Morgen wird er die Tür schließen.",
        "Er wird die Tür morgen zumachen.", "Morgen macht er die Tür zu.",
    } <= said and len(said) == 12  # fmt: skip


def test_the_same_seed_writes_the_same_sentences_and_none_twice() -> None:
    first, again = write(500, seed=3), write(500, seed=3)
    assert first == again and first != write(500, seed=4)
    assert len({tuple(sentence.english) for sentence in first}) == 500
    assert all(1 <= len(sentence.german) <= 5 for sentence in first)


def test_pairs_of_words_that_are_held_back_come_together_in_no_pair_of_sentences() -> None:
    pairs = sentence_pairs(4_000, seed=5)
    assert len(pairs) == 4_000 and pairs == sentence_pairs(4_000, seed=5)
    written = {tuple(one.english): one for one in write(4_820, seed=5)}
    for english, german in pairs:
        assert not written[tuple(english)].is_held_back and german in written[tuple(english)].german
    held = [one for one in written.values() if one.is_held_back]
    known = {word for english, _ in pairs for word in english}
    assert held and sum(known.issuperset(one.english) for one in held) > 0.8 * len(held)  # their words are known


def test_what_is_hard_about_a_sentence_is_named() -> None:
    found = {name for one in write(300, seed=1) for name in one.phenomena}
    assert {"separable verb", "perfect with sein", "dative", "kein", "nicht", "adjective ending", "it"} <= found
