"""Hidden checks of q4_10: evaluate_translation on models of known quality, and what the student's model has learned."""

from functools import cache, lru_cache
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from sacrebleu import corpus_bleu, corpus_chrf

from autograder.in_box.hw4 import brief_run
from autograder.judge.faults import StudentRaised
from autograder.suites.hw4_translation.oracle import Translator, as_tokens, greedy_steps, loaded
from course_utils.checking.compare import Wrong, check, number, tensor
from course_utils.data import BOS, EOS, PAD, UNK, number_words
from course_utils.data.everyday_splits import held_out_sentences
from course_utils.data.everyday_words import vocabularies as everyday_vocabularies
from course_utils.hw4.decoding_weights import lively_weights
from course_utils.hw4.tasks import SENTENCE_SIZES, load_model
from course_utils.hw4.translation import (
    BATCH,
    BRIEF_SIZES,
    BRIEF_STEPS,
    LANGUAGE,
    LARGEST,
    MAX_LEN,
    brief_corpus,
    encode_pairs,
    translate,
    vocabularies,
)

LOSS_BAR, BRIEF_BAR, FULL_BAR = 1.3, 0.4, 0.6  # see docs/thresholds.md
SPEAKER = {"d_model": 32, "n_heads": 4, "d_ff": 48, "n_layers": 1}  # of models that talk nonsense
LAST = 10  # steps at the end of the run, over which losses are averaged
FIRST_GAP, LAST_GAP = 0.01, 0.1  # between losses that are told and those of the weights
ASKED, FEW = 150, 24  # sentences that a checkpoint is asked about; those that are decoded by the student's function
SENTENCE_STEPS = 32  # of decoding; the longest sentence of two clauses has 24 tokens
LONGEST = 10  # of the outputs with which most scores are tested
MOST = 11  # tokens of the longest number, EOS not counted


def _sizes(named, words=None):
    return *map(len, words or vocabularies()), *(named[name] for name in ("d_model", "n_heads", "d_ff", "n_layers"))


BRIEF = _sizes(BRIEF_SIZES)


def _padded(rows):
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows])
    return ids, torch.arange(width) >= torch.tensor([len(row) for row in rows])[:, None]


@lru_cache(maxsize=8)
def _speaker(seed, silent=0, steps=LONGEST, long=0):
    """Weights with which a small model translates nonsense, its sizes, and sentences with what it says to them.

    To the last `silent` sentences it says nothing, and `long` of the others have as many tokens as a number can have.
    """
    (source, target), sizes, rng = vocabularies(), _sizes(SPEAKER), torch.Generator().manual_seed(seed)
    for _ in range(40):
        seed = int(torch.randint(2**31, (1,), generator=rng))
        weights = {name: value.float().double() for name, value in lively_weights(seed, *sizes).items()}
        pairs = number_words(LANGUAGE, 80, seed % 1000, LARGEST)
        src, padding = _padded([source.encode(words) for words, _ in pairs])
        written, leads = greedy_steps(Translator(weights, SPEAKER["n_heads"]), src, padding, BOS, steps)
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


def _alone(pairs):
    """Pairs with one reference each."""
    return [(source, [reference]) for source, reference in pairs]


def _scores(evaluate_translation, model, pairs):
    """The scores of pairs (source, references)."""
    got = evaluate_translation(model, [(list(a), [list(b) for b in several]) for a, several in pairs])
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
    weights, sizes, said = _speaker(rng.initial_seed())
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), _alone(said))
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
    weights, sizes, said = _speaker(rng.initial_seed())
    words = [word for _, row in said for word in row[:1]]
    outputs, pairs = [" ".join(row) for _, row in said], []
    for turn in range(12):
        kinds = [(i * (1 + turn // 6) + turn) % 6 for i in range(len(said))]
        pairs = [(source, _changed(row, kind, words)) for kind, (source, row) in zip(kinds, said, strict=True)]
        references = [" ".join(row) for _, row in pairs]
        right, other = _right_scores(outputs, references), _other_scores(outputs, references)
        if all(abs(value - x) > 0.4 for key in right for value in right[key] for x in other[key].values()):
            break
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), _alone(pairs))
    exact = sum(a == b for a, b in zip(outputs, references, strict=True)) / len(pairs)
    bag = sum(sorted(a.split()) == sorted(b.split()) for a, b in zip(outputs, references, strict=True)) / len(pairs)
    unordered = " (is the order of the words looked at?)" if abs(got["exact"] - bag) < 1e-3 else ""
    check(abs(got["exact"] - exact) < 1e-3, _told("exact", got["exact"], exact) + unordered)
    for key, values in right.items():
        if min(abs(got[key] - value) for value in values) > 0.1:
            fits = [cause for cause, value in other[key].items() if abs(value - got[key]) < 0.05]
            raise Wrong(_told(key, got[key], values[0]) + (f". Likely cause: {fits[0]}" if len(fits) == 1 else ""))


@pytest.mark.weight(2)
def test_any_reference(evaluate_translation, Transformer, rng):
    """Every reference of a sentence counts, whichever stands first; sentences may have different numbers of them."""
    weights, sizes, said = _speaker(rng.initial_seed())
    words, pairs = [word for _, row in said for word in row[:1]], []
    for i, (source, row) in enumerate(said):
        others = [_changed(row, kind, words) for kind in (5, 3, 4)]
        others = [other for other in others if other != row]
        places = ([row], [others[0], row], [*others[:2], row], others[:2])[i % 4]  # the last has no right one
        pairs.append((source, places))
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), pairs)
    exact = sum(row in several for (_, row), (_, several) in zip(said, pairs, strict=True)) / len(pairs)
    first = sum(row == several[0] for (_, row), (_, several) in zip(said, pairs, strict=True)) / len(pairs)
    cause = " (do you look at the first reference only?)" if abs(got["exact"] - first) < 1e-3 else ""
    check(abs(got["exact"] - exact) < 1e-3, _told("exact", got["exact"], exact) + cause)
    outputs, most = [" ".join(row) for _, row in said], max(len(several) for _, several in pairs)
    columns = [[" ".join(several[min(i, len(several) - 1)]) for _, several in pairs] for i in range(most)]
    bleus = [corpus_bleu(outputs, columns, tokenize=t, force=True).score for t in ("none", "13a")]
    check(min(abs(got["bleu"] - bleu) for bleu in bleus) < 0.1, _told("bleu", got["bleu"], bleus[0]))
    chrf = corpus_chrf(outputs, columns).score
    check(abs(got["chrf"] - chrf) < 0.1, _told("chrf", got["chrf"], chrf))


def test_silence_counts(evaluate_translation, Transformer, rng):
    """A translation without a single word is one too: it is wrong, and it is one of the set."""
    weights, sizes, said = _speaker(rng.initial_seed(), silent=2)
    pairs = [(source, row or ["ein", "hundert"]) for source, row in said]
    outputs, references = [" ".join(row) for _, row in said], [" ".join(row) for _, row in pairs]
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), _alone(pairs))
    exact, told = 1 - 2 / len(pairs), f" (of {len(pairs)} outputs, two are empty and the others right)"
    check(abs(got["exact"] - exact) < 1e-3, _told("exact", got["exact"], exact) + told)
    bleus = _right_scores(outputs, references)["bleu"]
    check(min(abs(got["bleu"] - bleu) for bleu in bleus) < 0.1, _told("bleu", got["bleu"], bleus[0]) + told)


def test_long_outputs(evaluate_translation, Transformer, rng):
    """Outputs as long as the longest number, 11 tokens and EOS, are not cut."""
    weights, sizes, said = _speaker(rng.initial_seed(), steps=MOST + 1, long=1)
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), _alone(said))["exact"]
    check(abs(got - 1) < 1e-3, f"exact is {got:.4f}, expected 1.0000: every translation is its reference, and the "
          f"longest has {MOST} tokens. Is max_len large enough? It counts the step that gives EOS")


def test_dropout_is_off(evaluate_translation, Transformer, rng):
    """A model that comes in training mode is evaluated without its dropout."""
    weights, sizes, said = _speaker(rng.initial_seed())
    model = loaded(Transformer, weights, sizes, dropout=0.5)
    model.train()
    got = _scores(evaluate_translation, model, _alone(said))
    check(abs(got["exact"] - 1) < 1e-3, f"exact is {got['exact']:.4f} for a model with dropout that comes in training "
          "mode, and 1.0000 in evaluation mode: dropout is off while you decode")


def test_many_pairs(evaluate_translation, Transformer, rng):
    """All pairs count, of a long list too."""
    weights, sizes, said = _speaker(rng.initial_seed())
    pairs, wrong = (said * 30)[:150], 30
    pairs[-wrong:] = [(words, [*row[1:], row[0], row[0]]) for words, row in pairs[-wrong:]]
    got = _scores(evaluate_translation, loaded(Transformer, weights, sizes), _alone(pairs))["exact"]
    exact = 1 - wrong / 150
    check(abs(got - exact) < 1e-3, _told("exact", got, exact) + f" (of 150 pairs, the last {wrong} are not what the "
          "model says)")


class Task(NamedTuple):
    """Numbers in two languages whose words have secret numbers: what is trained on, step by step, and what is asked."""

    sources: list
    targets: list
    rows: torch.Tensor  # [steps, batch], of the sentences above
    asked: list  # sources and targets that are none of these
    start: dict  # weights to begin with


@lru_cache(maxsize=4)
def _task(seed):
    """The words of both languages are numbered anew."""
    rng = torch.Generator().manual_seed(seed)
    brief = brief_corpus(int(torch.randint(10**6, (1,), generator=rng)))
    secret = [_renumbered(words, rng) for words in (brief.source, brief.target)]

    def told(pairs):
        return [[new[ids].tolist() for ids in part] for new, part in zip(secret, encode_pairs(pairs), strict=True)]

    n = len(brief.train)
    epochs = [torch.randperm(n, generator=rng) for _ in range(-(-BRIEF_STEPS * BATCH // n))]
    rows = torch.cat(epochs)[: BRIEF_STEPS * BATCH].reshape(BRIEF_STEPS, BATCH)
    return Task(*told(brief.train), rows, told(brief.held_out), _start(rng))


def _renumbered(words, rng):
    """A new number for each word; special tokens keep theirs."""
    special = UNK + 1
    return torch.cat([torch.arange(special), special + torch.randperm(len(words) - special, generator=rng)])


def _start(rng):
    """Weights as one begins with: embeddings of variance 1 / D, Xavier's matrices, norms that change nothing."""
    weights = {}
    for name, value in lively_weights(0, *BRIEF).items():
        if value.ndim < 2:
            weights[name] = torch.full_like(value, "norm" in name and name.endswith("weight"))
        else:
            spread = value.shape[1] ** -0.5 if "embed" in name else (2 / sum(value.shape)) ** 0.5
            weights[name] = spread * torch.randn(value.shape, generator=rng, dtype=value.dtype)
    return weights


def _batch(sources, targets):
    """src, src_padding, inputs and labels."""
    src, padding = _padded(sources)
    inputs, _ = _padded([[BOS, *row] for row in targets])
    return src, padding, inputs, _padded([[*row, EOS] for row in targets])[0]


@torch.no_grad()
def _right(weights, n_heads, sources, targets):
    """Which sentences these weights translate to the last token, EOS included: bool [N].

    That is where, behind the right beginning, the right token is the likeliest at every place.
    """
    src, padding, inputs, labels = _batch(sources, targets)
    best = Translator(weights, n_heads)(src, inputs, padding).argmax(-1)
    return ((best == labels) | (labels == PAD)).all(1)


@torch.no_grad()
def _loss(weights, n_heads, sources, targets, smoothing=0.1):
    src, padding, inputs, labels = _batch(sources, targets)
    logits = Translator(weights, n_heads)(src, inputs, padding).flatten(0, 1)
    return F.cross_entropy(logits, labels.flatten(), ignore_index=PAD, label_smoothing=smoothing).item()


def _weights_of(model, like):
    """The model's weights, each with the shape of its like."""
    state = model.state_dict()
    for name, value in like.items():
        check(name in state, f"the trained model has no `{name}`")
        tensor(state[name], f"`{name}` of the trained model", value.shape)
        check(state[name].isfinite().all(), f"`{name}` of the trained model is not finite")
    return {name: state[name].detach().float() for name in like}


def _decodes(in_box, greedy_decode, model, sources, targets, right, max_len=MAX_LEN):
    """`Wrong` where greedy_decode does not write what the model's weights say; each sentence has a list of targets."""
    outputs = in_box(translate, model, greedy_decode, *_padded(sources[:FEW]), max_len)
    got = [a in b for a, b in zip(as_tokens(outputs, FEW, "greedy_decode"), targets, strict=False)]
    wrong = sum(1 for a, b in zip(got, right.tolist(), strict=False) if a != b)
    check(wrong <= FEW // 8, f"by its weights the trained model is right on {int(right[:FEW].sum())} of {FEW} "
          f"sentences, and with your Transformer and your greedy_decode on {sum(got)}: do these compute what q4_2 and "
          "q4_6 ask for, and does decoding begin with BOS?")


def _checkpoint(in_box, Transformer, greedy_decode, rng):
    """What is missing in the checkpoint; None where its weights translate sentences whose words have secret numbers."""
    try:
        model = in_box(load_model, Transformer)
    except StudentRaised as error:
        return str(error)
    words, heads = everyday_vocabularies(), SENTENCE_SIZES["n_heads"]
    sizes = _sizes(SENTENCE_SIZES, words)
    weights = _weights_of(model, _shapes(sizes))
    secret = [_renumbered(some, rng) for some in words]
    for name, new in zip(("src_embed.weight", "tgt_embed.weight"), secret, strict=True):
        weights[name] = torch.empty_like(weights[name]).index_copy_(0, new, weights[name])
    drawn = held_out_sentences("unseen sentences", ASKED, int(torch.randint(1000, 10**6, (1,), generator=rng)))
    sources = [secret[0][words[0].encode(one.english)].tolist() for one in drawn]
    targets = [[secret[1][words[1].encode(some)].tolist() for some in one.german] for one in drawn]
    right = _any_right(weights, heads, sources, targets)
    reached = right.double().mean().item()
    if reached < FULL_BAR:
        return (f"by its weights it translates {reached:.0%} of new sentences as one of their references, and "
                f"{FULL_BAR:.0%} are asked for; the notebook's run reaches more than 90%")
    renumbered = loaded(Transformer, {name: value.double() for name, value in weights.items()}, sizes)
    renumbered.float()
    _decodes(in_box, greedy_decode, renumbered, sources, targets, right, SENTENCE_STEPS)
    return None


@cache
def _shapes(sizes):
    """A weight of the right shape for each name."""
    return lively_weights(0, *sizes)


def _any_right(weights, n_heads, sources, targets):
    """Which sentences these weights translate as one of their references: bool [N]."""
    rows = [(i, target) for i, several in enumerate(targets) for target in several]
    right = _right(weights, n_heads, [sources[i] for i, _ in rows], [target for _, target in rows])
    found = {i for (i, _), hit in zip(rows, right.tolist(), strict=True) if hit}
    return torch.tensor([i in found for i in range(len(sources))])


@pytest.mark.weight(5)
def test_learned(Transformer, pad_batch, teacher_forcing, train_step, greedy_decode, evaluate_translation, in_box, rng):
    """Your checkpoint translates sentences that it has never seen, or a short run with your parts new numbers."""
    missing = _checkpoint(in_box, Transformer, greedy_decode, rng)
    if missing is None:
        return
    task, heads = _task(rng.initial_seed()), BRIEF_SIZES["n_heads"]
    model = loaded(Transformer, task.start, BRIEF)
    model.float()
    losses = in_box(brief_run, model, pad_batch, teacher_forcing, train_step, task.sources, task.targets, task.rows)
    told = f"your parts trained for {BRIEF_STEPS} steps (your checkpoint: {missing})"
    check(isinstance(losses, list) and len(losses) == BRIEF_STEPS and all(isinstance(loss, float) for loss in losses),
          "train_step gave no loss at every step")
    weights = _weights_of(model, task.start)
    last = [i for row in task.rows[-LAST:].tolist() for i in row]
    shown = [[part[i] for i in last] for part in (task.sources, task.targets)]
    first = [[part[i] for i in task.rows[0].tolist()] for part in (task.sources, task.targets)]
    reached, right = _loss(weights, heads, *shown), _right(weights, heads, *task.asked)
    check(reached < LOSS_BAR, f"{told}: by the model's weights the loss is {reached:.2f} then, and below {LOSS_BAR} is "
          "asked for")
    exact = right.double().mean().item()
    check(exact >= BRIEF_BAR, f"{told}: the loss fell to {reached:.2f}, but by the model's weights {exact:.0%} of new "
          f"numbers come out right, and {BRIEF_BAR:.0%} are asked for. A low loss without translations: are the inputs "
          "shifted?")
    _are_these_losses(losses, [(_loss(task.start, heads, *first, s), _loss(weights, heads, *shown, s))
                               for s in (0.1, 0.0)])
    _decodes(in_box, greedy_decode, model, task.asked[0], [[target] for target in task.asked[1]], right)
    untrained = _right(task.start, heads, *task.asked).double().mean().item()
    if untrained >= BRIEF_BAR / 2:
        raise RuntimeError("this task needs no training")


def _are_these_losses(told, computed):
    """`Wrong` where the losses of the first step and of the last ones are not those of the weights."""
    begin, end = told[0], sum(told[-LAST:]) / LAST
    gaps = [(abs(begin - before), abs(end - after)) for before, after in computed]
    check(any(a < FIRST_GAP and b < LAST_GAP for a, b in gaps), f"train_step tells of a loss of {begin:.3f} at the "
          f"first step and of {end:.3f} at the last ones; by the weights they are {computed[0][0]:.3f} and "
          f"{computed[0][1]:.3f} (smoothed), or {computed[1][0]:.3f} and {computed[1][1]:.3f} (plain)")
