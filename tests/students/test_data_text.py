"""Pairs of sentences: numbers in words, the user's own files, and vocabularies."""

import gzip
from pathlib import Path

import pytest

from course_utils.data import (
    BOS,
    EOS,
    LANGUAGES,
    PAD,
    UNK,
    DataError,
    Vocabulary,
    multi30k,
    number_words,
    read_pairs,
    split_pairs,
    tokenise,
)

OWN_COPY = Path(__file__).parents[3] / "shared" / "data" / "multi30k"


def test_words_and_marks_are_tokens():
    assert tokenise("Twenty-one dogs, it's  true.") == ["twenty", "-", "one", "dogs", ",", "it", "'", "s", "true", "."]
    assert tokenise("Cafe\u0301") == tokenise("CAFÉ") == ["café"]  # two ways to write one letter


def test_a_vocabulary_has_frequent_words_first_and_breaks_ties_by_alphabet():
    words = Vocabulary.build([["b", "a", "c"], ["c", "d"]])
    assert words.tokens == ["<pad>", "<bos>", "<eos>", "<unk>", "c", "a", "b", "d"]
    assert Vocabulary.build([["d", "c"], ["c", "b", "a"]]).tokens == words.tokens
    assert len(Vocabulary.build([["b", "a", "c"], ["c", "d"]], max_size=6)) == 6
    assert Vocabulary.build([["b", "a", "c"], ["c", "d"]], min_count=2).tokens[4:] == ["c"]


def test_encode_and_decode_are_inverse_but_for_unknown_words():
    words = Vocabulary(["one", "two"])
    assert words.encode(["two", "three", "one"]) == [5, UNK, 4]
    assert words.decode([BOS, 5, UNK, 4, EOS, PAD, PAD]) == ["two", "<unk>", "one"]
    assert "two" in words and "three" not in words
    assert words.encode([]) == words.decode([]) == []


def test_a_vocabulary_says_what_is_wrong():
    with pytest.raises(ValueError, match="these come again: one"):
        Vocabulary(["one", "two", "one"])
    with pytest.raises(ValueError, match="no token has the number 6"):
        Vocabulary(["one", "two"]).decode([6])
    with pytest.raises(ValueError, match="no token has the number -1"):
        Vocabulary(["one", "two"]).decode([-1])
    with pytest.raises(ValueError, match="special tokens alone are 4"):
        Vocabulary.build([["a"]], max_size=3)


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_are_those_of_num2words(language):
    from num2words import num2words

    pairs = number_words(language, n=150, seed=3)
    numbers = {" ".join(tokenise(num2words(i))): i for i in range(1000)}
    known = [(numbers[" ".join(a)], b) for a, b in pairs if " ".join(a) in numbers]
    assert len(known) > 40  # short numbers are there, not only long ones
    for number, target in known:
        spelled = num2words(number, lang=language)
        assert "".join(target) == "".join(tokenise(spelled))


def test_numbers_are_different_repeatable_and_need_few_words():
    pairs = number_words("de", n=1500, seed=1)
    assert number_words("de", n=1500, seed=1) == pairs != number_words("de", n=1500, seed=2)
    assert len({tuple(source) for source, _ in pairs}) == 1500
    for side in (0, 1):
        assert len(Vocabulary.build(pair[side] for pair in pairs)) < 60
    assert max(len(side) for pair in pairs for side in pair) <= 24
    early, late = (sum(len(source) for source, _ in half) / 750 for half in (pairs[:750], pairs[750:]))
    assert abs(early - late) < 1  # no order by length


def test_the_cache_of_numbers_cannot_be_spoilt():
    pairs = number_words(n=5)
    pairs[0][0].append("spoilt")
    assert "spoilt" not in number_words(n=5)[0][0]


def test_all_numbers_up_to_the_largest_can_be_had():
    assert len({tuple(target) for _, target in number_words("es", n=100, largest=99)}) == 100
    with pytest.raises(ValueError, match="there are 100 numbers from 0 to 99"):
        number_words(n=101, largest=99)
    with pytest.raises(ValueError, match="knows fr, de, es.*not 'xx'"):
        number_words("xx")


def test_a_split_is_repeatable_and_no_source_is_on_both_sides():
    pairs = [([str(i % 80)], [str(i)]) for i in range(100)]
    train, test = split_pairs(pairs, held_out=30)
    assert (train, test) == split_pairs(pairs, held_out=30) != split_pairs(pairs, held_out=30, seed=1)
    assert len(test) == 30 and len(train) <= 70
    assert not {source[0] for source, _ in train} & {source[0] for source, _ in test}
    unique = [([str(i)], ["x"]) for i in range(10)]
    train, test = split_pairs(unique, held_out=3)
    assert sorted(train + test) == sorted(unique)
    with pytest.raises(ValueError, match="cannot hold out 11 of 10"):
        split_pairs(unique, held_out=11)


def test_pairs_are_read_plain_or_compressed(tmp_path):
    text = "\ufeffGo.\tVa !\nTwo dogs\tDeux chiens\tCC-BY\r\n\nA\u2028b\tc\n"
    (tmp_path / "pairs.txt").write_text(text, encoding="utf-8", newline="")
    (tmp_path / "pairs.txt.gz").write_bytes(gzip.compress(text.encode()))
    expected = [
        (["go", "."], ["va", "!"]),
        (["two", "dogs"], ["deux", "chiens"]),
        (["a", "b"], ["c"]),  # a line separator inside a sentence ends no line
    ]
    assert read_pairs(tmp_path / "pairs.txt") == read_pairs(str(tmp_path / "pairs.txt.gz")) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nno tab\n", "line 2: no tab"),
        (b"a\tb\nc\td\n\t e\n", "line 3: the sentence is empty"),
        (b"a\t \n", "line 1: the translation is empty"),
        (b"a\tb\nc\t\xff\xfe\n", "line 2: not UTF-8"),
        (b"\n\n", "has no pairs"),
        (b"", "has no pairs"),
    ],
)
def test_bad_pairs_are_named_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "mine.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"mine\.tsv.*{message}"):
        read_pairs(path)


def test_cut_missing_and_misnamed_files_are_named(tmp_path):
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a\tb\n" * 500)[:-12])
    (tmp_path / "plain.gz").write_bytes(b"a\tb\n")
    for name, message in (("cut.gz", "cut or damaged"), ("plain.gz", "cut or damaged"), ("none", "cannot be read")):
        with pytest.raises(DataError, match=rf"{name}.* {message}"):
            read_pairs(tmp_path / name)


def small_multi30k(folder: Path) -> Path:
    for split, n in (("train", 4), ("val", 2), ("test_2016_flickr", 3)):
        (folder / f"{split}.de").write_text("".join(f"Ein Hund {i}.\n" for i in range(n)))
        (folder / f"{split}.en.gz").write_bytes(gzip.compress("".join(f"A dog {i}.\n" for i in range(n)).encode()))
    return folder


def test_multi30k_is_read_from_plain_and_compressed_files(tmp_path):
    sets = multi30k(small_multi30k(tmp_path))
    assert {split: len(pairs) for split, pairs in sets.items()} == {"train": 4, "val": 2, "test": 3}
    assert sets["train"][1] == (["ein", "hund", "1", "."], ["a", "dog", "1", "."])
    assert multi30k(tmp_path, "en", "de")["val"][0] == (["a", "dog", "0", "."], ["ein", "hund", "0", "."])


def test_a_multi30k_that_is_not_whole_is_explained(tmp_path):
    small_multi30k(tmp_path)
    with pytest.raises(DataError, match=r"no file train\.fr \(plain or \.gz\)"):
        multi30k(tmp_path, "fr")
    with pytest.raises(DataError, match="is not a folder"):
        multi30k(tmp_path / "nowhere")
    (tmp_path / "val.de").write_text("Ein Hund\n")
    with pytest.raises(DataError, match=r"val\.de 1 and val\.en\.gz 2"):
        multi30k(tmp_path)


@pytest.mark.skipif(not OWN_COPY.is_dir(), reason="Multi30k does not come with the course")
def test_the_real_multi30k():
    sets = multi30k(OWN_COPY)
    assert {split: len(pairs) for split, pairs in sets.items()} == {"train": 29_000, "val": 1_014, "test": 1_000}
    assert sets["test"][0][0][:3] == ["ein", "mann", "mit"]
