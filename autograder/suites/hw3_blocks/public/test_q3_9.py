"""Public checks of q3_9: EncoderClassifier. They look at an untrained model, in evaluation mode."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same_as_yours, tensor
from course_utils.hw3.vital_signs import parameters_without_gradient

VOCAB, D, HEADS, WIDTH, LAYERS, CLASSES, LONGEST = 13, 16, 4, 24, 2, 5, 9
LENGTHS = (7, 4, 2)  # of the three sequences; the rest of each row is padding
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def _batch():
    ids = torch.randint(VOCAB, (3, 7), generator=torch.Generator().manual_seed(39))
    return ids, torch.arange(7) >= torch.tensor(LENGTHS)[:, None]  # True = padding


def _model(EncoderClassifier, layers=LAYERS):
    torch.manual_seed(39)
    model = EncoderClassifier(VOCAB, D, HEADS, WIDTH, layers, CLASSES, LONGEST)
    model.eval()
    return model


def _run(model, ids, padding=None):
    got = model(ids) if padding is None else model(ids, key_padding_mask=padding)
    return tensor(got, "the logits", (len(ids), CLASSES)).detach()


def test_shapes(EncoderClassifier):
    """ids [B, N] give logits [B, n_classes], with and without a mask, up to N = max_len."""
    # keeps: shapes, no-mask
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    for logits in (_run(model, ids), _run(model, ids, padding), _run(model, torch.zeros(2, LONGEST, dtype=torch.long))):
        check(logits.isfinite().all(), "the logits are not finite")


def test_content_of_padding(EncoderClassifier):
    """Other ids in the padded part leave the logits as they are; other real ids do not."""
    # keeps: padding-silent
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    before = _run(model, ids, padding)
    other = (ids + 5) % VOCAB
    same_as_yours(_run(model, torch.where(padding, other, ids), padding), before, "the logits after a change in the "
                  "padding (it must be kept out of the attention and out of the read-out)", "before it", **CLOSE)
    check((_run(model, other, padding) - before).abs().max() > 1e-4, "other tokens leave the logits as they are")


def test_amount_of_padding(EncoderClassifier):
    """A sequence has the same logits alone and with padding behind it."""
    # keeps: padding-silent, kept-out-twice, neighbours
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    together = _run(model, ids, padding)
    for row, length in enumerate(LENGTHS):
        alone = _run(model, ids[row : row + 1, :length])
        what = f"the logits of a sequence of {length} with {7 - length} of padding"
        same_as_yours(together[row : row + 1], alone, what, "without padding", **CLOSE)


def test_order(EncoderClassifier):
    """The same tokens in another order give other logits."""
    # keeps: order
    model, (ids, _) = _model(EncoderClassifier), _batch()
    order = torch.tensor([0, 3, 1, 6, 2, 5, 4])  # the first token stays
    moved = (_run(model, ids[:, order]) - _run(model, ids)).abs().amax(-1)
    check((moved > 1e-4).all(), "the order of the tokens makes no difference: are positions added?")


def test_logits_here(EncoderClassifier):
    """The results are logits: neither probabilities nor their logarithms."""
    # keeps: logits
    logits = _run(_model(EncoderClassifier), *_batch())
    check((logits.sum(-1) - 1).abs().max() > 1e-3, "each row sums to 1: these are probabilities, and the loss has "
          "its own softmax")
    check(logits.exp().sum(-1).sub(1).abs().max() > 1e-3, "the exponentials of each row sum to 1: a log-softmax "
          "comes too early")


def test_every_place_counts(EncoderClassifier):
    """Every real token can move the logits, in a long sequence too, up to max_len."""
    # keeps: every-token
    torch.manual_seed(39)
    model = EncoderClassifier(VOCAB, D, HEADS, WIDTH, LAYERS, CLASSES, 20)
    model.eval()
    ids = torch.randint(VOCAB, (1, 20), generator=torch.Generator().manual_seed(40))
    still = [place for place, moved in enumerate(_places_that_move(model, ids, None, 0, range(20))) if not moved]
    check(not still, f"in a sequence of 20 another token at place {(still or [0])[0]} leaves the logits as they are")


def test_gradients_reach_every_part(EncoderClassifier):
    """Every parameter gets a gradient, so that the model can learn. (The grader trains it.)"""
    # keeps: can-learn
    found = run_beside(parameters_without_gradient, _model(EncoderClassifier), *_batch())
    check(not found, f"no gradient reaches {', '.join(found[:3])}")


def _moves(a, b):
    return not bool((a - b).abs().max() <= 1e-4)  # NaN counts as a move


def _places_that_move(model, ids, padding, row, places):
    """For each of the places, whether another id there moves the logits of the row."""
    before, moved = _run(model, ids, padding)[row], []
    for place in places:
        other = ids.clone()
        other[row, place] = (other[row, place] + 5) % VOCAB
        moved.append(_moves(_run(model, other, padding)[row], before))
    return moved


def probe_shape(EncoderClassifier):
    return list(_model(EncoderClassifier)(_batch()[0]).shape)


def probe_longest(EncoderClassifier):
    return list(_model(EncoderClassifier)(torch.zeros(2, LONGEST, dtype=torch.long)).shape)


def probe_content_of_padding_moves(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    return _moves(_run(model, torch.where(padding, (ids + 5) % VOCAB, ids), padding), _run(model, ids, padding))


def probe_amount_of_padding_moves(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    together = _run(model, ids, padding)
    return [_moves(together[row], _run(model, ids[row : row + 1, :n])[0]) for row, n in enumerate(LENGTHS)]


def probe_padded_places_that_move_one_layer(EncoderClassifier):
    return _places_that_move(_model(EncoderClassifier, 1), *_batch(), 2, range(2, 7))


def probe_padded_places_that_move_no_layer(EncoderClassifier):
    return _places_that_move(_model(EncoderClassifier, 0), *_batch(), 2, range(2, 7))


def probe_real_places_that_move_beside_padding(EncoderClassifier):
    return _places_that_move(_model(EncoderClassifier, 1), *_batch(), 1, range(4))


def probe_more_padding_moves_no_layer(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier, 0), _batch()
    return _moves(_run(model, ids, padding)[1], _run(model, ids[1:2, :4])[0])


def probe_more_padding_scales(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier, 1), _batch()
    three, five, seven = (_run(model, ids[2:, :n], padding[2:, :n]) for n in (3, 5, 7))
    early, late = (three - five) / (1 / 3 - 1 / 5), (five - seven) / (1 / 5 - 1 / 7)
    return _moves(three, seven) and bool((early - late).norm() < 1e-3 * late.norm())  # a constant plus one over N


def probe_changes_in_padding(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier, 1), _batch()
    one, two = ids.clone(), ids.clone()
    one[2, 5], two[2, 6] = (ids[2, 5] + 5) % VOCAB, (ids[2, 6] + 5) % VOCAB
    both = torch.where(one == ids, two, one)
    before, *after = (_run(model, x, padding)[2] for x in (ids, one, two, both))
    if not _moves(after[2], before):
        return "move nothing"
    return "act together" if _moves(after[0] + after[1] - before, after[2]) else "add up"


def probe_more_padding_moves(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    more = torch.cat([ids, ids[:, :2]], 1), torch.cat([padding, padding[:, :2] | True], 1)
    return _moves(_run(model, *more), _run(model, ids, padding))


def probe_mask_of_false_moves(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    return _moves(_run(model, ids, padding & False), _run(model, ids))


def probe_mask_counts(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    return _moves(_run(model, ids, padding), _run(model, ids))


def probe_order_counts(EncoderClassifier):
    model, (ids, _) = _model(EncoderClassifier), _batch()
    return _moves(_run(model, ids[:, torch.tensor([0, 3, 1, 6, 2, 5, 4])]), _run(model, ids))


def probe_every_token_counts(EncoderClassifier):
    model, (ids, _) = _model(EncoderClassifier), _batch()
    before, moved = _run(model, ids), []
    for place in range(7):
        other = ids.clone()
        other[:, place] = (other[:, place] + 4) % VOCAB
        moved.append(_moves(_run(model, other), before))
    return moved


def probe_rows_move_each_other(EncoderClassifier):
    model, (ids, _) = _model(EncoderClassifier), _batch()
    return _moves(torch.cat([_run(model, ids[row : row + 1]) for row in range(3)]), _run(model, ids))


def probe_two_calls_differ(EncoderClassifier):
    model, (ids, _) = _model(EncoderClassifier), _batch()
    return _moves(_run(model, ids), _run(model, ids))


def probe_probabilities(EncoderClassifier):
    model, (ids, _) = _model(EncoderClassifier), _batch()
    logits = _run(model, ids)
    one = torch.ones(3, dtype=logits.dtype)
    if not _moves(logits.sum(-1), one):
        return "probabilities"
    return "their logarithms" if not _moves(logits.exp().sum(-1), one) else "logits"


def probe_many_parameters_without_gradient(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    return len(run_beside(parameters_without_gradient, model, ids, padding)) > 5


def probe_a_second_model_with_the_same_weights(EncoderClassifier):
    model, (ids, padding) = _model(EncoderClassifier), _batch()
    other = EncoderClassifier(VOCAB, D, HEADS, WIDTH, LAYERS, CLASSES, LONGEST)
    other.eval()
    other.load_state_dict(model.state_dict())
    return _moves(_run(other, ids, padding), _run(model, ids, padding))


def probe_token_zero_is_a_token(EncoderClassifier):
    model = _model(EncoderClassifier)
    return _moves(_run(model, torch.tensor([[3, 5, 0, 0]])), _run(model, torch.tensor([[3, 5]])))


def probe_far_places_that_move(EncoderClassifier):
    torch.manual_seed(39)
    model = EncoderClassifier(VOCAB, D, HEADS, WIDTH, 1, CLASSES, 40)
    model.eval()
    ids = torch.randint(VOCAB, (3, 40), generator=torch.Generator().manual_seed(40))
    return _places_that_move(model, ids, None, 0, (15, 25, 39))
