"""Hidden checks of q6_12: fine_tune. The bars of the experiment are in docs/thresholds.md."""

import pytest
import torch

from autograder.in_box.hw6_brief import briefly_pretrained
from autograder.suites.hw6_pretraining.berts import lively, put_in
from course_utils.checking.compare import check, same, tensor
from course_utils.hw6.fine_tuning import other_switches, ready, seeded_alike, trained_parts, updates
from course_utils.hw6.stories import CLS, MASK, SEP, SPECIAL_IDS

SMALL = (15, 8, 2, 12, 1, 9)
LABELS, STEPS, NEW = 96, 60, 300
KINDS, WORDS, LENGTH, BRIEF, BATCH, BAR = 4, 24, 8, 300, 64, 0.85  # the language, its pretraining, what is asked for
TRIES = 3  # languages, where one was not learned


def _examples(rng, n=12, N=7, classes=3):
    ids, segments = torch.randint(15, (n, N), generator=rng), torch.randint(2, (n, N), generator=rng)
    padding = torch.arange(N) >= torch.randint(2, N + 1, (n, 1), generator=rng)
    return (ids, segments, padding), torch.arange(n) % classes


def _bert(BERT, rng):
    model = BERT(*SMALL)
    put_in(model, {name: value.float() for name, value in lively(rng, 15, 8, 12, 1, 9).items()})
    return model


def test_form(fine_tune, BERT, rng):
    """Logits [B, n_classes], in evaluation mode, for any number of classes, with segments and mask given or not."""
    (ids, segments, padding), _ = _examples(rng)
    for classes, given in (
        (2, (ids, segments, padding)),
        (5, (ids, None, padding)),
        (3, (ids, segments, None)),
        (4, (ids, None, None)),
    ):
        model = fine_tune(_bert(BERT, rng), given, torch.arange(12) % classes, classes, steps=3)
        with torch.no_grad():
            got = tensor(model(*given), "the logits", (12, classes), torch.float32)
            same(model(*given), got, "the logits of a second call (is dropout on?)", atol=1e-6)
            tensor(model(ids[:1]), "the logits of one example's ids alone", (1, classes))
            same(
                model(ids, segments=given[1], key_padding_mask=given[2]),
                got,
                "the logits with arguments by name",
                atol=1e-5,
            )
        check(model.training is False, "the classifier is in training mode")


@pytest.mark.weight(2)
@pytest.mark.parametrize("frozen", [False, True], ids=["trainable", "frozen"])
def test_bert_is_not_changed(fine_tune, BERT, in_box, rng, frozen):
    """bert keeps weights, gradients, mode and requires_grad, in both modes."""
    examples, labels = _examples(rng)
    for training in (True, False):
        bert = _bert(BERT, rng)
        answers = _answers(bert, examples[0])
        in_box(ready, bert, training, frozen)
        state, grads = bert.state_dict(), bert.grads()
        fine_tune(bert, examples, labels, 3, steps=3)
        changed = in_box(other_switches, bert, training, frozen)
        changed += [what for what, before, after in (("weights", state, bert.state_dict()),
                                                     ("gradients", grads, bert.grads())) if not _equal(before, after)]
        check(changed == [], f"fine_tune changed bert: {', '.join(sorted(map(str, changed)))}")
        for after, before in zip(_answers(bert, examples[0]), answers, strict=True):
            same(after, before, "what bert answers after fine_tune (has it changed?)", atol=1e-5)


def _answers(bert, ids):
    """What the model says of these ids, in evaluation mode."""
    bert.eval()
    with torch.no_grad():
        words, pair = bert(ids)
    return words, pair


def _equal(before, after):
    """Whether two dicts of tensors, or of None, hold the same."""
    return before.keys() == after.keys() and all(
        value is other if value is None or other is None else torch.equal(value, other)
        for value, other in zip(before.values(), after.values(), strict=True)
    )


@pytest.mark.weight(2)
@pytest.mark.parametrize("frozen", [False, True], ids=["trainable", "frozen"])
def test_all_is_trained(fine_tune, BERT, in_box, rng, frozen):
    """The copy's embeddings and layers are trained, also where bert's own parameters are frozen."""
    examples, labels = _examples(rng)
    found = in_box(trained_parts, fine_tune, _bert(BERT, rng), examples, labels, 3, 6, frozen)
    for part in ("token_embed", "layers"):
        check(
            found.get(part) is not False,
            f"`{part}` of the classifier is the same after training: train all of the encoder",
        )


@pytest.mark.weight(2)
def test_padding_does_not_matter(fine_tune, BERT, rng):
    """Neither the content nor the amount of padding moves the logits."""
    (ids, segments, padding), labels = _examples(rng)
    model = fine_tune(_bert(BERT, rng), (ids, segments, padding), labels, 3, steps=5)
    with torch.no_grad():
        before = model(ids, segments, padding)
        other = torch.where(padding, torch.randint(15, ids.shape, generator=rng), ids)
        same(
            model(other, torch.where(padding, 1 - segments, segments), padding),
            before,
            "the logits with another padding",
            atol=1e-4,
        )
        wide = [torch.cat([x, x.new_ones(len(x), 2)], 1) for x in (ids, segments, padding)]
        same(model(*wide), before, "the logits with more padding", atol=1e-4)
        row = ~padding[0]
        alone = model(*(x[:1, : int(row.sum())] for x in (ids, segments, padding)))
        same(alone, before[:1], "the logits of an example without its padding", atol=1e-4)


def test_deterministic(fine_tune, BERT, in_box, rng):
    """The same seed gives the same classifier, whatever happened before; it starts from bert's weights."""
    examples, labels = _examples(rng)
    first, again = in_box(seeded_alike, fine_tune, _bert(BERT, rng), examples, labels, 3, 5)
    same(again, first, "the logits after the same seed, when torch's own numbers were in another state", atol=1e-5)
    other = fine_tune(_bert(BERT, rng), examples, labels, 3, steps=5, seed=5)(*examples).detach()
    check((other - first).abs().max() > 1e-4, "another bert gives the same classifier: start from the weights of bert")


def test_steps_are_updates(fine_tune, BERT, in_box, rng):
    """`steps` counts updates, with few examples and with many."""
    for n, steps in ((5, 4), (200, 3)):
        examples, labels = _examples(rng, n)
        for made in in_box(updates, fine_tune, _bert(BERT, rng), examples, labels, 3, steps):
            check(made == steps, f"with steps={steps} and {n} examples the optimiser makes {made} steps")


@pytest.mark.weight(4)
def test_pretraining_pays(fine_tune, BERT, in_box, rng):
    """From pretrained weights few labels are enough for what fresh weights cannot tell."""
    right = 0.0
    for _ in range(TRIES):
        right = max(right, _secret_language(fine_tune, BERT, in_box, rng)) if right < BAR else right
    check(
        right >= BAR,
        f"after a brief pretraining of your BERT on a language with secret kinds of words, and fine-tuning on "
        f"{LABELS} labels, it tells the kind of {right:.0%} of sentences in new words; {BAR:.0%} are asked for, and "
        "without what pretraining found out it would guess",
    )


def _secret_language(fine_tune, BERT, in_box, rng):
    """The share of right answers about words of which no label tells, after a brief pretraining of a small BERT.

    The words are of four kinds, and each sentence has words of one kind alone. Hidden words teach which belong
    together; the labels (two kinds against the other two) are of sentences in one half of the words, the questions in
    the other.
    """
    special, each = len(SPECIAL_IDS), WORDS // KINDS
    kinds = (special + torch.randperm(WORDS, generator=rng)).view(KINDS, each)

    def told(n, some):
        of = torch.arange(n) % KINDS
        said = kinds[of[:, None], torch.randint(some.start, some.stop, (n, LENGTH), generator=rng)]
        return torch.cat([torch.full((n, 1), CLS), said, torch.full((n, 1), SEP)], 1), of % 2

    text, _ = told(BRIEF * BATCH, range(each))
    text = text[torch.randperm(len(text), generator=rng)].view(BRIEF, BATCH, -1)
    hidden = (torch.rand(text.shape, generator=rng) < 0.25) & (text >= special)
    sizes = (special + WORDS, 32, 4, 64, 1, LENGTH + 2)
    model = in_box(briefly_pretrained, BERT, sizes, text.masked_fill(hidden, MASK), text.masked_fill(~hidden, -100))
    ids, labels = told(LABELS, range(each // 2))
    asked, answers = told(NEW, range(each // 2, each))
    tuned = fine_tune(model, (ids, None, None), labels, 2, steps=STEPS, seed=1)
    with torch.no_grad():
        return (tuned(asked).argmax(-1) == answers).double().mean().item()
