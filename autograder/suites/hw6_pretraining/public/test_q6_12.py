"""Public checks of q6_12: fine_tune."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.hw6.fine_tuning import around, seeded_alike, trained_parts, updates

SIZES = (12, 8, 2, 12, 1, 7)


def _examples(seed=1, n=12):
    g = torch.Generator().manual_seed(seed)
    ids, segments = torch.randint(2, 12, (n, 6), generator=g), torch.randint(2, (n, 6), generator=g)
    return (ids, segments, torch.arange(6) >= torch.randint(2, 7, (n, 1), generator=g)), torch.arange(n) % 3


def _bert(BERT, seed=4):
    model = BERT(*SIZES)
    state = model.state_dict()
    g = torch.Generator().manual_seed(seed)
    model.load_state_dict(
        {
            name: value if value.ndim < 2 else 0.3 * torch.randn(value.shape, generator=g)
            for name, value in state.items()
        }
    )
    return model


def test_a_classifier(fine_tune, BERT):
    """It gives a classifier with logits [B, n_classes]; segments and mask may be None."""
    # keeps: classifier, nones, evaluation
    examples, labels = _examples()
    for given in (examples, (examples[0], None, None)):
        model = fine_tune(_bert(BERT), given, labels, 3, steps=4)
        tensor(model(*given), "the logits", (12, 3))
        tensor(model(examples[0][:2]), "the logits of ids alone", (2, 3))
        check(model.training is False, "the classifier is in training mode: return it in evaluation mode")


def test_bert_stays(fine_tune, BERT):
    """bert keeps its weights, gradients, mode and requires_grad."""
    # keeps: weights, bert-stays
    examples, labels = _examples()
    changed = run_beside(around, fine_tune, _bert(BERT), examples, labels, 3, 4)
    check(not changed, f"fine_tune changed bert: {', '.join(changed)}")


def test_end_to_end(fine_tune, BERT):
    """It starts from bert's weights, and embeddings and layers are trained, not only the head."""
    # keeps: end-to-end
    examples, labels = _examples()
    starts = [
        fine_tune(_bert(BERT, seed), examples, labels, 3, steps=1, rate=1e-9)(*examples).detach() for seed in (4, 9)
    ]
    check((starts[0] - starts[1]).abs().max() > 1e-4, "another bert gives the same classifier: start from its weights")
    found = run_beside(trained_parts, fine_tune, _bert(BERT), examples, labels, 3, 6)
    for part in ("token_embed", "layers"):
        check(found.get(part) is not False, f"`{part}` is the same after training: train all of the encoder")


def test_padding(fine_tune, BERT):
    """Neither content nor amount of padding moves the logits."""
    # keeps: padding
    (ids, segments, padding), labels = _examples()
    model = fine_tune(_bert(BERT), (ids, segments, padding), labels, 3, steps=4)
    before = model(ids, segments, padding)
    other = model(ids.masked_fill(padding, 11), segments, padding)
    same_as_yours(other, before, "the logits after a change in the padding", "before it", atol=1e-5)
    more = [
        torch.cat([x, fill[:, :1]], 1)
        for x, fill in ((ids, ids), (segments, segments), (padding, padding[:, :1] | True))
    ]
    same_as_yours(model(*more), before, "the logits with more padding", "with less", atol=1e-5)


def test_seed(fine_tune, BERT):
    """The same seed gives the same classifier, whatever happened before."""
    # keeps: seed
    examples, labels = _examples()
    first, again = run_beside(seeded_alike, fine_tune, _bert(BERT), examples, labels, 3, 4)
    same(again, first, "the logits after the same seed, when torch's own numbers were in another state", atol=1e-5)


def _updates(fine_tune, BERT):
    g = torch.Generator().manual_seed(2)
    ids = torch.randint(2, 12, (150, 6), generator=g)
    return run_beside(updates, fine_tune, _bert(BERT), (ids, None, None), torch.arange(150) % 3, 3, 7)


def test_steps(fine_tune, BERT):
    """`steps` counts updates, however many examples there are."""
    # keeps: steps
    for made in _updates(fine_tune, BERT):
        check(made == 7, f"with steps=7 and 150 examples the optimiser makes {made} steps")


def probe_bert(fine_tune, BERT):
    examples, labels = _examples()
    return sorted(run_beside(around, fine_tune, _bert(BERT), examples, labels, 3, 4))


def probe_parts(fine_tune, BERT):
    examples, labels = _examples()
    found = run_beside(trained_parts, fine_tune, _bert(BERT), examples, labels, 3, 6)
    return [found.get(part) for part in ("token_embed", "layers")]


def probe_padding(fine_tune, BERT):
    (ids, segments, padding), labels = _examples()
    model = fine_tune(_bert(BERT), (ids, segments, padding), labels, 3, steps=4)
    before, after = model(ids, segments, padding), model(ids.masked_fill(padding, 11), segments, padding)
    return bool((before - after).abs().max() < 1e-4), model.training


def probe_seed(fine_tune, BERT):
    examples, labels = _examples()
    first, again = run_beside(seeded_alike, fine_tune, _bert(BERT), examples, labels, 3, 4)
    return bool((again - first).abs().max() < 1e-4)


def probe_updates(fine_tune, BERT):
    return _updates(fine_tune, BERT)


def probe_segments(fine_tune, BERT):
    (ids, segments, padding), labels = _examples()
    model = fine_tune(_bert(BERT), (ids, segments, padding), labels, 3, steps=4)
    return bool((model(ids, segments, padding) - model(ids, 1 - segments, padding)).abs().max() > 1e-6)


def probe_starts_from_bert(fine_tune, BERT):
    (ids, segments, padding), labels = _examples()
    bert = _bert(BERT)
    one = fine_tune(bert, (ids, segments, padding), labels, 3, steps=1, rate=1e-9)(ids, segments, padding)
    other = _bert(BERT, 9)
    two = fine_tune(other, (ids, segments, padding), labels, 3, steps=1, rate=1e-9)(ids, segments, padding)
    return bool((one - two).abs().max() > 1e-4)


def probe_frozen(fine_tune, BERT):
    examples, labels = _examples()
    found = run_beside(trained_parts, fine_tune, _bert(BERT), examples, labels, 3, 6, True)
    return [found.get(part) for part in ("token_embed", "layers")]


def probe_amount_of_padding(fine_tune, BERT):
    (ids, segments, padding), labels = _examples()
    model = fine_tune(_bert(BERT), (ids, segments, padding), labels, 3, steps=4)
    wide = [torch.cat([x, x.new_ones(len(x), 1)], 1) for x in (ids, segments, padding)]
    return bool((model(*wide) - model(ids, segments, padding)).abs().max() < 1e-4)


def probe_first_token_hidden(fine_tune, BERT):
    (ids, segments, padding), labels = _examples()
    model = fine_tune(_bert(BERT), (ids, segments, None), labels, 3, steps=4)
    return bool((model(ids, segments, padding) - model(ids, segments)).abs().max() > 1e-4)
