"""Hidden checks of q6_12: fine_tune. The bars of the experiment are in docs/thresholds.md."""

from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from autograder.suites.hw6_pretraining.berts import lively, put_in
from course_utils.checking.compare import check, same, tensor
from course_utils.hw6.fine_tuning import around, trained_parts
from course_utils.hw6.pretraining import SIZES, order_task
from course_utils.hw6.stories import SPECIAL_IDS, words

SMALL = (15, 8, 2, 12, 1, 9)
LABELS, STEPS, NEW = 96, 60, 300
BAR, GAP = 0.72, 0.12


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
    changed = in_box(around, fine_tune, _bert(BERT, rng), examples, labels, 3, 3, frozen)
    check(changed == [], f"fine_tune changed bert: {', '.join(map(str, changed))}")


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


def test_deterministic(fine_tune, BERT, rng):
    """The same seed gives the same classifier; it starts from bert's weights."""
    examples, labels = _examples(rng)
    bert = _bert(BERT, rng)
    first, again = (fine_tune(bert, examples, labels, 3, steps=5, seed=3)(*examples).detach() for _ in range(2))
    same(again, first, "the logits after the same seed", atol=1e-5)
    other = fine_tune(_bert(BERT, rng), examples, labels, 3, steps=5, seed=3)(*examples).detach()
    check(
        (other - first).abs().max() > 1e-4, "another bert gives the same classifier: start from the weights of bert"
    )


@cache
def _ours():
    return {
        name: value.float() for name, value in load_file(Path(__file__).parents[1] / "pretrained.safetensors").items()
    }


def _renumbered(weights, order):
    """The weights of the same model for words with other numbers."""
    weights = dict(weights)
    for name in ("token_embed.weight", "mlm_bias"):
        weights[name] = weights[name][order]
    return weights


def _fresh(rng, like):
    weights = {}
    for name, value in like.items():
        norm = "norm" in name and name.endswith("weight")
        weights[name] = (
            0.02 * torch.randn(value.shape, generator=rng) if value.ndim > 1 else torch.full_like(value, float(norm))
        )
    return weights


@pytest.mark.weight(4)
def test_pretraining_pays(fine_tune, BERT, rng):
    """From pretrained weights, few labels are enough to tell the order of new pairs; from fresh ones they are not."""
    V, special = len(words()), len(SPECIAL_IDS)
    new = torch.cat(
        [torch.arange(special), special + torch.randperm(V - special, generator=rng)]
    )  # a word's new number
    shown, unseen = torch.randint(2**62, (2,), generator=rng).tolist()  # too many to try: the pairs say no word
    (ids, *rest), labels = order_task(LABELS, shown)
    (asked, *more), answers = order_task(NEW, unseen)

    def reached(weights):
        model = BERT(V, *SIZES.values())
        put_in(model, weights)
        tuned = fine_tune(model, (new[ids], *rest), labels, 2, steps=STEPS, seed=1)
        with torch.no_grad():
            return (tuned(new[asked], *more).argmax(-1) == answers).double().mean().item()

    # never a student's own weights: their rows could say which word is which, to a rule written by hand
    scratch, best = reached(_fresh(rng, _ours())), reached(_renumbered(_ours(), new.argsort()))
    check(
        best >= BAR,
        f"fine-tuned on {LABELS} labels from pretrained weights it is right on {best:.0%} of new "
        f"pairs, and "
        f"{BAR:.0%} are asked for; from fresh weights it is right on {scratch:.0%}",
    )
    check(
        best - scratch >= GAP, f"pretrained {best:.0%}, from scratch {scratch:.0%}: a gain of {GAP:.0%} is asked for"
    )
