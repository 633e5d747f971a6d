"""The stories of homework 6: repeatable, and without the leaks that its questions warn of."""

import random

from course_utils.hw6.leaks import leaks
from course_utils.hw6.stories import ROUND, SPECIAL_IDS, encoded, read_folder, stories, words


def _order(documents, rng):
    for document in documents:
        for pair in zip(document, document[1:], strict=False):
            label = rng.random() < 0.5
            yield (*(pair if label else pair[::-1]), label)


def _next(documents, rng):
    for document in documents:
        for first, second in zip(document, document[1:], strict=False):
            label = rng.random() < 0.5
            yield first, second if label else rng.choice(rng.choice(documents)), label


def test_the_same_seed_gives_the_same_stories():
    assert stories(5, 3) == stories(5, 3) != stories(5, 4)
    assert stories(9, 3)[:5] == stories(5, 3)


def test_who_acts_and_what_happens_follow_from_the_sentence_before():
    for story in stories(50):
        kinds = list(ROUND)
        for i in range(len(story.kinds) - 1):
            assert story.kinds[i + 1] == kinds[(kinds.index(story.kinds[i]) + 1) % len(kinds)]
            other = story.sentences[i][-4]
            assert story.actors[i + 1] == (other if story.kinds[i] == "given" else story.actors[i])


def test_neither_side_nor_length_tells_next_sentence_or_order():
    documents = encoded(stories(600, 8))
    for task in (_order, _next):
        assert max(leaks(list(task(documents, random.Random(1)))).values()) < 0.58


def test_topic_alone_tells_little_about_the_next_sentence():
    tales = stories(600, 9)
    rng, right = random.Random(2), []
    for tale in tales:
        other = rng.choice(tales)
        label = rng.random() < 0.5
        second = tale.sentences[1] if label else rng.choice(other.sentences)
        themes = [_theme(tale.sentences[0]), _theme(second)]
        right.append(label == (None in themes or themes[0] == themes[1]))
    assert sum(right) / len(right) < 0.67


def _theme(sentence):
    from course_utils.hw6.stories import THEMES

    return next((name for name, things in THEMES.items() if set(things) & set(sentence)), None)


def test_every_word_has_a_number():
    vocabulary = words()
    assert all(min(sentence) > max(SPECIAL_IDS) for document in encoded(stories(100)) for sentence in document)
    assert vocabulary.decode(vocabulary.encode(["ada", "nobody"])) == ["ada", "[unk]"]


def test_a_folder_of_texts_becomes_documents(tmp_path):
    (tmp_path / "a.txt").write_text("One day, it rained. Then not!\n\nA new paragraph", encoding="utf-8")
    documents, vocabulary = read_folder(tmp_path)
    assert documents == [[["one", "day", ",", "it", "rained", "."], ["then", "not", "!"]], [["a", "new", "paragraph"]]]
    assert len(vocabulary) == 5 + 12
