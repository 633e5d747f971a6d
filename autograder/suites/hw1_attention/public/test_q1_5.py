"""Public checks of q1_5: AttentionSeq2Seq. They look at an untrained model, in eval mode."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.hw1.symbol_gradients import idle_parameters, symbol_gradients

VOCAB_SRC, VOCAB_TGT, D = 11, 7, 16
LENGTHS = (6, 4, 2)  # of the three sources; the rest of each row is padding
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def _batch():
    g = torch.Generator().manual_seed(51)
    src = torch.randint(VOCAB_SRC, (3, 6), generator=g)
    tgt_in = torch.randint(VOCAB_TGT, (3, 5), generator=g)
    padding = torch.arange(6) >= torch.tensor(LENGTHS)[:, None]  # True = padding
    return src, tgt_in, padding


def _model(AttentionSeq2Seq):
    model = AttentionSeq2Seq(VOCAB_SRC, VOCAB_TGT, D)
    model.eval()
    return model


def _run(model, src, tgt_in, padding=None):
    got = model(src, tgt_in) if padding is None else model(src, tgt_in, key_padding_mask=padding)
    check(isinstance(got, (tuple, list)) and len(got) == 2, "forward returns the pair (logits, weights)")
    (B, S), T = src.shape, tgt_in.shape[1]
    return tensor(got[0], "the logits", (B, T, VOCAB_TGT)).detach(), tensor(got[1], "the weights", (B, T, S)).detach()


def test_two_lengths(AttentionSeq2Seq):
    """Sources of length 6 and target inputs of length 5 give logits [B, 5, vocab_tgt] and weights [B, 5, 6]."""
    # keeps: shapes
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    for mask in (None, padding):
        logits, weights = _run(model, src, tgt_in, mask)
        check(logits.isfinite().all() and weights.isfinite().all(), "a result is not finite")


def test_weights_and_padding(AttentionSeq2Seq):
    """For every target step the weights sum to 1 over the source, and padding gets none of it."""
    # keeps: weights, padding-weights
    src, tgt_in, padding = _batch()
    _, weights = _run(_model(AttentionSeq2Seq), src, tgt_in, padding)
    same(weights.sum(-1), torch.ones(3, 5, dtype=weights.dtype), "the sum of the weights over the source", **CLOSE)
    on_padding = weights.masked_select(padding[:, None].expand_as(weights)).abs().max().item()
    check(on_padding < 1e-6, f"a padded source position has weight {on_padding:.3g}: block it before the softmax")


def test_other_padding(AttentionSeq2Seq):
    """Other tokens in the padded part of the source leave the logits as they are."""
    # keeps: padding
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    before, _ = _run(model, src, tgt_in, padding)
    after, _ = _run(model, torch.where(padding, (src + 3) % VOCAB_SRC, src), tgt_in, padding)
    check(not before.equal(_run(model, (src + 3) % VOCAB_SRC, tgt_in, padding)[0]), "the source makes no difference")
    same_as_yours(after, before, "the logits after a change in the padding (is the encoder's last state one of "
                  "padding?)", "before it", **CLOSE)


def test_no_look_ahead(AttentionSeq2Seq):
    """The logits of step t depend on the target inputs up to t, and on none after it."""
    # keeps: no-look-ahead
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    other = tgt_in.clone()
    other[:, 3] = (other[:, 3] + 1) % VOCAB_TGT
    before, after = _run(model, src, tgt_in)[0], _run(model, src, other)[0]
    same(after[:, :3], before[:, :3], "the logits before the changed step", **CLOSE)
    check((after[:, 3] - before[:, 3]).abs().max() > 1e-6, "the logits of a step ignore its own input token")


def test_more_padding(AttentionSeq2Seq):
    """A source gives the same logits alone and with any amount of padding behind it."""
    # keeps: padding, last-real-state
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    logits, _ = _run(model, src, tgt_in, padding)
    for row, length in enumerate(LENGTHS):
        alone, _ = _run(model, src[row : row + 1, :length], tgt_in[row : row + 1])
        same_as_yours(logits[row : row + 1], alone, f"the logits of a source of {length} tokens with {6 - length} of "
                      "padding", "without padding", **CLOSE)


def test_a_source_of_padding(AttentionSeq2Seq):
    """A source that is all padding has weights 0 and finite logits; what stands in it moves nothing."""
    # keeps: all-padding
    src, tgt_in, padding = _batch()
    padding[1] = True
    model = _model(AttentionSeq2Seq)
    logits, weights = _run(model, src, tgt_in, padding)
    check(logits.isfinite().all() and weights.isfinite().all(), "a source that is all padding gives NaN: a softmax "
          "over nothing but -inf has no value")
    check(weights[1].abs().max() < 1e-6, "a source that is all padding has weights that are not 0")
    other, _ = _run(model, torch.where(padding, (src + 3) % VOCAB_SRC, src), tgt_in, padding)
    same(other[1], logits[1], "the logits after other tokens in a source that is all padding", **CLOSE)


def test_no_symbol_is_padding(AttentionSeq2Seq):
    """Only the mask says what is padding: a source of nothing but one symbol, 0 too, has weights that sum to 1."""
    # keeps: only-the-mask
    src = torch.arange(VOCAB_SRC)[:, None].repeat(1, 3)
    _, weights = _run(_model(AttentionSeq2Seq), src, torch.zeros_like(src))
    for c in range(VOCAB_SRC):
        same(weights[c].sum(-1), torch.ones(3).to(weights), f"the sum of the weights for a source of symbol {c} only",
             **CLOSE)


def test_rows_alone(AttentionSeq2Seq):
    """A row gives the same alone as in its batch, in training mode too (not tried there with dropout)."""
    # keeps: rows
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    logits, _ = _run(model, src, tgt_in, padding)
    again, _ = _run(model, src, tgt_in, padding)
    same(again, logits, "the logits of the same call again, in eval mode", **CLOSE)
    for row in range(3):
        alone, _ = _run(model, src[row : row + 1], tgt_in[row : row + 1], padding[row : row + 1])
        same_as_yours(alone, logits[row : row + 1], f"the logits of row {row} alone", "in the batch", **CLOSE)
    model.train()
    logits, again = (_run(model, src, tgt_in)[0] for _ in range(2))
    if torch.equal(logits, again):
        alone = torch.cat([_run(model, src[row : row + 1], tgt_in[row : row + 1])[0] for row in range(3)])
        check(torch.allclose(alone, logits, rtol=1e-3, atol=1e-3), "in training mode the logits of a row change with "
              "the other rows of its batch: is there a batch norm?")


def test_where_the_decoder_starts(AttentionSeq2Seq):
    """The decoder starts from the encoder's last state: the last source token has a say in where it looks."""
    # keeps: last-real-state, parts
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    _, weights = _run(model, src, tgt_in)
    check((weights > 0).all(), "some real source places have no weight at all: every encoder state is offered")
    other = src.clone()
    other[:, 0] = (other[:, 0] + 4) % VOCAB_SRC
    check((_run(model, other, tgt_in)[1] - weights).abs().max() > 1e-6, "the weights do not depend on the source")
    # among the tokens before it the weights are shared in ratios that only the decoder's state can move
    moved = _moves_the_ratio(model, -1)
    check(moved or not _moves_the_ratio(model, -2), "the last token but one has a say in where the decoder looks, and "
          "the last one has none: the state after n tokens stands at place n - 1",
          mistake="decoder-starts-one-token-early")
    check(moved, "another last token leaves the weights on the others in the same ratios: the decoder's states do not "
          "depend on it. Start the decoder from the encoder's last real state")


def _moves_the_ratio(model, place):
    """Whether another token there changes how the first two source places share their weight."""
    src, tgt_in, _ = _batch()
    other = src.clone()
    other[:, place] = (other[:, place] + 4) % VOCAB_SRC
    logs = [_run(model, x, tgt_in)[1].double().clamp_min(1e-30).log() for x in (src, other)]
    return _moves(*(log[:, :, 1] - log[:, :, 0] for log in logs))


def test_far_symbols(AttentionSeq2Seq):
    """A symbol in the middle of 100 reaches the logits, and learns: attention does not forget, a state does."""
    # keeps: parts, gradients
    src = torch.randint(VOCAB_SRC - 1, (2, 100), generator=torch.Generator().manual_seed(52))
    tgt_in, other = torch.zeros(2, 3, dtype=torch.long), src.clone()
    other[:, 50] = VOCAB_SRC - 1  # a symbol that stands nowhere else
    model = _model(AttentionSeq2Seq)
    moved = (_run(model, other, tgt_in)[0] - _run(model, src, tgt_in)[0]).abs().max().item()
    check(moved > 1e-6, f"another token in the middle of 100 moves the logits by {moved:.1g} only: does the context, "
          "the weighted sum over all encoder states, reach them?")
    learned = run_beside(symbol_gradients, model, other, tgt_in, VOCAB_SRC)
    check(learned is None or learned[-1] > 1e-6 * learned.max(), "no gradient reaches the symbol in the middle: are "
          "the encoder's states detached before they are attended to?")


def test_all_parts_learn(AttentionSeq2Seq):
    """Each parameter that the model uses gets a gradient, also from a source of nothing but the symbol 0."""
    # keeps: gradients, only-the-mask
    src, tgt_in, _ = _batch()
    for told, source in (("", src), (" from a source of nothing but the symbol 0", torch.zeros_like(src))):
        idle = run_beside(idle_parameters, _model(AttentionSeq2Seq), source, tgt_in)
        check(not idle, f"no gradient reaches {', '.join(idle[:3])}{told}, though the logits depend on it: is it "
              "frozen, detached, or is a symbol declared as padding (`padding_idx`)?", mistake="a-part-is-frozen")


def _moves(a, b):
    return bool((a - b).abs().max() > 1e-5)


def probe_shapes(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    return [list(x.shape) for x in _model(AttentionSeq2Seq)(src, tgt_in)]


def probe_weights_sum_to_one_over_the_source(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    weights = _run(_model(AttentionSeq2Seq), src, tgt_in)[1]
    return not _moves(weights.sum(-1), torch.ones(3, 5))


def probe_weights_sum_to_one_with_padding(AttentionSeq2Seq):
    weights = _run(_model(AttentionSeq2Seq), *_batch())[1]
    return not _moves(weights.sum(-1), torch.ones(3, 5))


def probe_weight_on_padding(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    weights = _run(_model(AttentionSeq2Seq), src, tgt_in, padding)[1]
    return bool((weights * padding[:, None]).abs().max() > 1e-6)


def probe_weight_off_padding(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    weights = _run(_model(AttentionSeq2Seq), src, tgt_in, padding)[1]
    return bool((weights * ~padding[:, None]).abs().max() > 1e-6)


def probe_all_weights_equal(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    weights = _run(_model(AttentionSeq2Seq), src, tgt_in)[1]
    return not bool((weights - weights.mean(-1, keepdim=True)).abs().max() > 1e-7)


def probe_weights_equal_at_all_steps(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    weights = _run(_model(AttentionSeq2Seq), src, tgt_in)[1]
    return not bool((weights - weights.mean(1, keepdim=True)).abs().max() > 1e-7)


def probe_padding_moves_the_logits(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    other = torch.where(padding, (src + 3) % VOCAB_SRC, src)
    return _moves(_run(model, other, tgt_in, padding)[0], _run(model, src, tgt_in, padding)[0])


def probe_more_padding_moves_the_logits(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    longer = _run(model, torch.cat([src, src], 1), tgt_in, torch.cat([padding, padding | True], 1))[0]
    return _moves(longer, _run(model, src, tgt_in, padding)[0])


def probe_mask_of_false_moves_the_logits(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    return _moves(_run(model, src, tgt_in, padding & False)[0], _run(model, src, tgt_in)[0])


def probe_future_moves_the_past(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    other = tgt_in.clone()
    other[:, 3] = (other[:, 3] + 1) % VOCAB_TGT
    return _moves(_run(model, src, other)[0][:, :3], _run(model, src, tgt_in)[0][:, :3])


def probe_own_input_moves_the_step(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    other = tgt_in.clone()
    other[:, 3] = (other[:, 3] + 1) % VOCAB_TGT
    return _moves(_run(model, src, other)[0][:, 3], _run(model, src, tgt_in)[0][:, 3])


def probe_source_moves_the_logits(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    return _moves(_run(model, (src + 3) % VOCAB_SRC, tgt_in)[0], _run(model, src, tgt_in)[0])


def probe_far_source_token_moves_the_logits(AttentionSeq2Seq):
    g = torch.Generator().manual_seed(52)
    src, tgt_in = torch.randint(VOCAB_SRC, (2, 100), generator=g), torch.randint(VOCAB_TGT, (2, 3), generator=g)
    other = src.clone()
    other[:, 50] = (other[:, 50] + 4) % VOCAB_SRC
    model = _model(AttentionSeq2Seq)
    return bool((_run(model, other, tgt_in)[0] - _run(model, src, tgt_in)[0]).abs().max() > 1e-6)


def probe_rows_move_each_other(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    alone = torch.cat([_run(model, src[row : row + 1], tgt_in[row : row + 1])[0] for row in range(3)])
    return _moves(alone, _run(model, src, tgt_in)[0])


def probe_order_of_rows_matters(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    model, order = _model(AttentionSeq2Seq), torch.tensor([2, 0, 1])
    shuffled = _run(model, src[order], tgt_in[order], padding[order])[0]
    return _moves(shuffled, _run(model, src, tgt_in, padding)[0][order])


def probe_logits_are_probabilities(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    logits = _run(_model(AttentionSeq2Seq), src, tgt_in)[0]
    return not _moves(logits.exp().sum(-1), torch.ones(3, 5)) or not _moves(logits.sum(-1), torch.ones(3, 5))


def probe_same_call_again_moves_the_logits(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    model = _model(AttentionSeq2Seq)
    before = _run(model, src, tgt_in, padding)[0]
    _run(model, (src + 3) % VOCAB_SRC, tgt_in, padding)
    return _moves(_run(model, src, tgt_in, padding)[0], before)


def probe_weights_of_one_symbol(AttentionSeq2Seq):
    src = torch.arange(VOCAB_SRC)[:, None].repeat(1, 3)
    weights = _run(_model(AttentionSeq2Seq), src, torch.zeros_like(src))[1]
    return [_moves(weights[c].sum(-1), torch.ones(3)) for c in range(VOCAB_SRC)]


def probe_last_token_moves_the_ratio_of_the_others(AttentionSeq2Seq):
    return _moves_the_ratio(_model(AttentionSeq2Seq), -1)


def probe_source_moves_the_weights(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    model = _model(AttentionSeq2Seq)
    return _moves(_run(model, (src + 3) % VOCAB_SRC, tgt_in)[1], _run(model, src, tgt_in)[1])


def probe_second_last_token_moves_the_ratio(AttentionSeq2Seq):
    return _moves_the_ratio(_model(AttentionSeq2Seq), -2)


def probe_weights_of_a_source_of_padding(AttentionSeq2Seq):
    src, tgt_in, padding = _batch()
    padding[1] = True
    total = _run(_model(AttentionSeq2Seq), src, tgt_in, padding)[1][1].sum(-1)
    return "none" if not total.isfinite().all() else "zero" if not _moves(total, 0 * total) else "some"


def probe_everything_learns(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    return not run_beside(idle_parameters, _model(AttentionSeq2Seq), src, tgt_in)


def probe_symbol_zero_learns(AttentionSeq2Seq):
    src, tgt_in, _ = _batch()
    return not run_beside(idle_parameters, _model(AttentionSeq2Seq), 0 * src, tgt_in)
