"""Hidden checks of q4_10: evaluate_translation on models of known quality, and what the student's model has learned."""

import pytest
import torch
from sacrebleu import corpus_bleu, corpus_chrf

from autograder.judge.faults import StudentRaised
from autograder.suites.hw4_translation.oracle import Translator, greedy_steps, loaded
from course_utils.checking import Wrong, check, number
from course_utils.data import BOS, EOS, PAD, number_words
from course_utils.lively import lively_weights
from course_utils.steps import brief_run
from course_utils.translation import (
    LANGUAGE,
    LARGEST,
    MAX_LEN,
    SIZES,
    brief_corpus,
    corpus,
    encode_pairs,
    exact_match,
    load_model,
    translate,
    vocabularies,
)

LOSS_BAR, BRIEF_BAR, FULL_BAR = 1.3, 0.6, 0.6  # see docs/thresholds.md
LONGEST = 10  # of the outputs with which most scores are tested
MOST = 11  # tokens of the longest number, EOS not counted


def _padded(rows):
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    return ids, torch.arange(width) >= torch.tensor([len(row) for row in rows])[:, None]


def _speaker(rng, silent=0, steps=LONGEST, long=0):
    """Weights with which a model of the stated sizes translates nonsense, and sentences with what it says to them.

    To the last `silent` sentences it says nothing, and `long` of the others have as many tokens as a number can have.
    """
    source, target = vocabularies()
    sizes = (len(source), len(target), *(SIZES[name] for name in ("d_model", "n_heads", "d_ff", "n_layers")))
    for _ in range(40):
        seed = int(torch.randint(2**31, (1,), generator=rng))
        weights = {name: value.float().double() for name, value in lively_weights(seed, *sizes).items()}
        pairs = number_words(LANGUAGE, 80, seed % 1000, LARGEST)
        src, padding = _padded([source.encode(words) for words, _ in pairs])
        written, leads = greedy_steps(Translator(weights, SIZES["n_heads"]), src, padding, BOS, steps)
        for end in torch.randperm(len(target), generator=rng).tolist():
            rows = [_ending(row, lead, end) for row, lead in zip(written, leads, strict=True)]
            said = [(words, target.decode(row)) for (words, _), row in zip(pairs, rows, strict=True) if row is not None]
            nothing = [pair for pair in said if not pair[1]][:silent]
            said = sorted((pair for pair in said if len(pair[1]) >= 4), key=lambda pair: -len(pair[1]))
            many = len({tuple(row) for _, row in said}) >= 4 and len(said) >= 6 and end != BOS
            if many and len(nothing) == silent and sum(len(row) == MOST for _, row in said) >= long:
                table = weights["tgt_embed.weight"]
                table[[end, EOS]] = table[[EOS, end]]
                return weights, sizes, said[:8] + nothing
    raise RuntimeError("no speaker was found")


def _ending(row, lead, end):
    """The tokens before `end`, if it comes and all are sure and none is special; `end` changes places with EOS."""
    if end not in row:
        return None
    row = [end if token == EOS else token for token in row[: row.index(end)]]
    return row if min(lead[: len(row) + 1]) > 1e-2 and min(row, default=EOS + 1) > EOS else None


def _scores(evaluate_translation, model, pairs):
    got = evaluate_translation(model, [(list(a), list(b)) for a, b in pairs])
    check(isinstance(got, dict), "evaluate_translation gives a dict with the keys exact, bleu and chrf")
    missing = [key for key in ("exact", "bleu", "chrf") if key not in got]
    check(not missing, f"evaluate_translation's dict has no {', '.join(missing)}")
    return {key: number(got[key], f"the score {key!r}") for key in ("exact", "bleu", "chrf")}


def _told(key, got, expected):
    message = f"{key} is {got:.4f}, expected {expected:.4f}"
    if expected and abs(got - 100 * expected) < 0.1:
        return f"{message}: a share from 0 to 1 is asked for, not percent"
    if expected and abs(100 * got - expected) < 0.1:
        return f"{message}: a score from 0 to 100 is asked for, not a share"
    return message


def test_right_translations(evaluate_translation, Transformer, rng):
    """Where every translation is the reference, exact is 1, and BLEU and chrF are 100."""
    weights, sizes, said = _speaker(rng)
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), said)
    for key, expected in (("exact", 1.0), ("bleu", 100.0), ("chrf", 100.0)):
        check(abs(got[key] - expected) < 1e-3, _told(key, got[key], expected))


def _changed(row, kind, words):
    """Another reference than what the model says: in another order, longer, shorter, or with other words."""
    if kind == 0:
        return list(row)
    if kind == 1:
        return [*row[2:], *row[:2]]
    if kind == 2:
        return [*row, *words[:3]]
    if kind == 3:
        return row[: len(row) // 2]
    if kind == 4:
        return [word for i in range(0, len(row), 2) for word in reversed(row[i : i + 2])]
    return [words[i % 4] if i % 3 == 1 else word for i, word in enumerate(row)]


def _right_scores(outputs, references):
    bleus = [corpus_bleu(outputs, [references], tokenize=t, force=True).score for t in ("none", "13a")]
    return {"bleu": bleus, "chrf": [corpus_chrf(outputs, [references]).score]}


def _other_scores(outputs, references):
    """What is often taken for BLEU and chrF of a set."""
    def mean(values):
        return sum(values) / len(values)

    pieces = [slice(i, i + 4) for i in range(0, len(outputs), 4)]
    spelt = [[" ".join(text.replace(" ", "")) for text in texts] for texts in (outputs, references)]

    def bleu(a, b):
        return corpus_bleu(a, [b], tokenize="none", force=True).score

    return {
        "bleu": {
            "it is the mean of the sentences' scores": mean([bleu([a], [b]) for a, b in zip(outputs, references,
                                                                                           strict=True)]),
            "it is the mean of the scores of pieces; BLEU is one score of the whole set":
                mean([bleu(outputs[i], references[i]) for i in pieces]),
            "characters are counted, and not words": bleu(*spelt),
        },
        "chrf": {
            "it is the mean of the sentences' scores": mean([corpus_chrf([a], [[b]]).score for a, b in zip(
                outputs, references, strict=True)]),
            "it is chrF++, which counts words too": corpus_chrf(outputs, [references], word_order=2).score,
        },
    }


@pytest.mark.weight(2)
def test_scores(evaluate_translation, Transformer, rng):
    """For a model of which some translations are right, the scores are those of the definition and of sacrebleu."""
    weights, sizes, said = _speaker(rng)
    words = [word for _, row in said for word in row[:1]]
    outputs, pairs = [" ".join(row) for _, row in said], []
    for turn in range(12):
        kinds = [(i * (1 + turn // 6) + turn) % 6 for i in range(len(said))]
        pairs = [(source, _changed(row, kind, words)) for kind, (source, row) in zip(kinds, said, strict=True)]
        references = [" ".join(row) for _, row in pairs]
        right, other = _right_scores(outputs, references), _other_scores(outputs, references)
        if all(abs(value - x) > 0.4 for key in right for value in right[key] for x in other[key].values()):
            break
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), pairs)
    exact = sum(a == b for a, b in zip(outputs, references, strict=True)) / len(pairs)
    bag = sum(sorted(a.split()) == sorted(b.split()) for a, b in zip(outputs, references, strict=True)) / len(pairs)
    unordered = " (is the order of the words looked at?)" if abs(got["exact"] - bag) < 1e-3 else ""
    check(abs(got["exact"] - exact) < 1e-3, _told("exact", got["exact"], exact) + unordered)
    for key, values in right.items():
        if min(abs(got[key] - value) for value in values) > 0.1:
            fits = [cause for cause, value in other[key].items() if abs(value - got[key]) < 0.05]
            raise Wrong(_told(key, got[key], values[0]) + (f". Likely cause: {fits[0]}" if len(fits) == 1 else ""))


def test_silence_counts(evaluate_translation, Transformer, rng):
    """A translation without a single word is one too: it is wrong, and it is one of the set."""
    weights, sizes, said = _speaker(rng, silent=2)
    pairs = [(source, row or ["ein", "hundert"]) for source, row in said]
    outputs, references = [" ".join(row) for _, row in said], [" ".join(row) for _, row in pairs]
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), pairs)
    exact, told = 1 - 2 / len(pairs), f" (of {len(pairs)} outputs, two are empty and the others right)"
    check(abs(got["exact"] - exact) < 1e-3, _told("exact", got["exact"], exact) + told)
    bleus = _right_scores(outputs, references)["bleu"]
    check(min(abs(got["bleu"] - bleu) for bleu in bleus) < 0.1, _told("bleu", got["bleu"], bleus[0]) + told)


def test_long_outputs(evaluate_translation, Transformer, rng):
    """Outputs as long as the longest number, 11 tokens and EOS, are not cut."""
    weights, sizes, said = _speaker(rng, steps=MOST + 1, long=1)
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), said)["exact"]
    check(abs(got - 1) < 1e-3, f"exact is {got:.4f}, expected 1.0000: every translation is its reference, and the "
          f"longest has {MOST} tokens. Is max_len large enough? It counts the step that gives EOS")


def test_dropout_is_off(evaluate_translation, Transformer, rng):
    """A model that comes in training mode is evaluated without its dropout."""
    weights, sizes, said = _speaker(rng)
    model = loaded(Transformer, weights, sizes, dropout=0.5)
    model.train()
    got = _scores(evaluate_translation, model, said)
    check(abs(got["exact"] - 1) < 1e-3, f"exact is {got['exact']:.4f} for a model with dropout that comes in training "
          "mode, and 1.0000 in evaluation mode: dropout is off while you decode")


def test_many_pairs(evaluate_translation, Transformer, rng):
    """All pairs count, of a long list too."""
    weights, sizes, said = _speaker(rng)
    pairs, wrong = (said * 30)[:150], 30
    pairs[-wrong:] = [(words, [*row[1:], row[0], row[0]]) for words, row in pairs[-wrong:]]
    got, exact = _scores(evaluate_translation, loaded(Transformer, weights, sizes), pairs)["exact"], 1 - wrong / 150
    check(abs(got - exact) < 1e-3, _told("exact", got, exact) + f" (of 150 pairs, the last {wrong} are not what the "
          "model says)")


def _learned(in_box, parts, rng):
    """Losses (None for a checkpoint that was loaded) and exact match of the checkpoint, or of the brief run's model."""
    make_model, pad_batch, teacher_forcing, train_step, greedy_decode = parts
    seed = int(torch.randint(1000, 10**6, (1,), generator=rng))
    try:
        model, losses = in_box(load_model, make_model), None
    except StudentRaised:
        brief = brief_corpus(seed)
        model, losses = in_box(brief_run, make_model, pad_batch, teacher_forcing, train_step, brief.train, seed)
        pairs = brief.held_out[:150]
    else:
        known = {tuple(words) for words, _ in corpus().train}
        pairs = [pair for pair in number_words(LANGUAGE, 300, seed, LARGEST) if tuple(pair[0]) not in known][:150]
    sources, targets = encode_pairs(pairs)
    outputs = in_box(translate, model, greedy_decode, *_padded(sources), MAX_LEN)
    check(isinstance(outputs, list) and len(outputs) == len(pairs), "greedy_decode gave no list for every sentence")
    rows = [row.tolist() if isinstance(row, torch.Tensor) else list(row) for row in outputs]
    return losses, exact_match(rows, targets)


@pytest.mark.weight(5)
def test_learned(Transformer, pad_batch, teacher_forcing, train_step, greedy_decode, evaluate_translation, in_box, rng):
    """Your checkpoint, or a short training run with your parts, translates numbers that it has never seen."""
    parts = Transformer, pad_batch, teacher_forcing, train_step, greedy_decode
    losses, exact = _learned(in_box, parts, rng)
    if losses is None:
        check(exact >= FULL_BAR, f"with your checkpoint {exact:.0%} of new numbers come out right to the last token, "
              f"and {FULL_BAR:.0%} are asked for: train longer (the notebook's run reaches more than 90%)")
        return
    check(len(losses) > 20 and all(isinstance(loss, float) for loss in losses), "train_step gave no loss at every step")
    last = sum(losses[-10:]) / 10
    check(last < LOSS_BAR, f"no checkpoint loaded, so your parts trained for {len(losses)} steps: the loss went from "
          f"{losses[0]:.2f} to {last:.2f}, and below {LOSS_BAR} is asked for")
    if exact < BRIEF_BAR:
        raise Wrong(f"no checkpoint loaded, so your parts trained for {len(losses)} steps: the loss fell to "
                    f"{last:.2f}, but {exact:.0%} of new numbers come out right, and {BRIEF_BAR:.0%} are asked for. A "
                    "low loss without translations: are the inputs shifted, and does decoding begin with BOS?")
