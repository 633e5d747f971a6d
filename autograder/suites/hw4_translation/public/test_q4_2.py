"""Public checks of q4_2: Transformer, with fixed weights that are put in by name."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, same_as_yours, tensor
from course_utils.hw4.decoding_weights import lively_weights, put_weights
from course_utils.instruments.elsewhere import kinds_inside, left_behind
from course_utils.instruments.parts import gradient_norms, loose_tensors, row_gradient

F64 = torch.float64
SIZES = (7, 5, 8, 2, 12, 2)  # src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers
SRC = torch.tensor([[3, 1, 6, 2], [5, 4, 0, 0], [2, 0, 0, 0]])
PADDING = torch.arange(4) >= torch.tensor([4, 2, 1])[:, None]  # True = padding
TGT = torch.tensor([[1, 4, 3], [1, 2, 2], [1, 0, 4]])
CLOSE = {"rtol": 1e-3, "atol": 5e-4}
MEMORY = [-0.3243, -1.0415, 1.9506, -1.3470, 0.0125, -0.7973, 0.3362, 0.8750]  # at the last place of the first sentence
LOGITS = [
    [-2.8249, -3.3519, -1.4151, 4.1544, 0.6190],
    [-3.1264, -1.8037, -1.0702, 4.1724, -0.7947],
    [-0.8208, -2.0849, -2.3484, 2.8488, 0.7639],
]  # of the last step, sentence by sentence


def _model(Transformer, sizes=SIZES, **options):
    """The model in float64 and evaluation mode, with fixed weights."""
    return put_weights(Transformer(*sizes, **options), lively_weights(42, *sizes))


def _logits(model, src=SRC, tgt=TGT, padding=PADDING, vocab=SIZES[1]):
    return tensor(model(src, tgt, padding), "the logits", (*tgt.shape, vocab), F64).detach()


def test_worked_numbers(Transformer):
    """With fixed weights, the memory and the logits are those of nn.Transformer on scaled embeddings plus positions."""
    # keeps: encode, decode, names, agrees
    model = _model(Transformer)
    memory = tensor(model.encode(SRC, PADDING), "the memory", (*SRC.shape, SIZES[2]), F64).detach()
    same(memory[0, -1], torch.tensor(MEMORY, dtype=F64), "the memory at the last place of the first sentence", **CLOSE)
    same(_logits(model)[:, -1], torch.tensor(LOGITS, dtype=F64), "the logits of the last step", **CLOSE)


def test_encode_then_decode(Transformer):
    """forward is decode after encode, and the source's padding is nothing that either of them sees."""
    # keeps: forward, padding
    model = _model(Transformer)
    whole = _logits(model)
    steps = model.decode(TGT, model.encode(SRC, PADDING).detach(), PADDING)
    same_as_yours(tensor(steps, "decode's logits", whole.shape, F64).detach(), whole, "decode's logits", "in forward's")
    other = _logits(model, torch.where(PADDING, (SRC + 3) % SIZES[0], SRC))
    same_as_yours(other, whole, "the logits after a change in the source's padding", "before it")


def test_no_look_ahead(Transformer):
    """The logits of a step do not depend on later target tokens."""
    # keeps: causal
    model = _model(Transformer)
    before = _logits(model)
    after = _logits(model, tgt=torch.cat([TGT[:, :2], (TGT[:, 2:] + 2) % SIZES[1]], 1))
    same(after[:, :2], before[:, :2], "the logits before the changed token")
    check((after[:, 2] - before[:, 2]).abs().max() > 1e-6, "a target token does not move the logits of its own step")


def test_without_a_mask(Transformer):
    """src_padding may be left out, or be None: then nothing is padding. A model of another size works too."""
    # keeps: encode, decode, forward
    model = _model(Transformer)
    given, nothing = model.encode(SRC, PADDING & False).detach(), PADDING & False
    for told, memory in (("left out", model.encode(SRC)), ("None", model.encode(SRC, None))):
        same(tensor(memory, "the memory", (3, 4, SIZES[2]), F64).detach(), given, f"the memory with src_padding {told}")
    whole = _logits(model, padding=nothing)
    same(tensor(model.decode(TGT, given), "the logits", whole.shape, F64).detach(), whole, "decode without src_padding")
    same(tensor(model(SRC, TGT), "the logits", whole.shape, F64).detach(), whole, "forward without src_padding")
    other = _model(Transformer, (4, 6, 12, 3, 5, 3))
    ids = torch.tensor([[0, 3, 2], [1, 1, 3]])
    long = _logits(other, ids, torch.tensor([[0, 5, 4, 1], [2, 3, 5, 0]]), None, 6)
    short = _logits(other, ids, torch.tensor([[0, 5], [2, 3]]), None, 6)
    same_as_yours(long[:, :2], short, "the first two steps of four", "of two steps alone")


def test_vocabularies_of_one_size(Transformer):
    """Where both vocabularies have one size the output is still the *target* embedding, which learns from both uses."""
    # keeps: tied, decode
    model, memory = _model(Transformer, (5, 5, 8, 2, 12, 1)), _memory()
    logits = tensor(model.decode(TGT, memory, PADDING), "the logits", (*TGT.shape, 5), F64).detach()
    other = _model(Transformer, (5, 5, 8, 2, 12, 1))
    other.load_state_dict({name: value + ("src_embed" in name) for name, value in other.state_dict().items()})
    same(other.decode(TGT, memory, PADDING).detach(), logits, "decode's logits when the source embedding changes (the "
         "output is tied to the target's)")
    check(_unread_word(Transformer) > 0, "the embedding of a word that is never an input gets no gradient: does it "
          "reach the output layer, which is the same table?")


def _unread_word(Transformer):
    """The length of the gradient that reaches the embedding of word 4, which is no input here."""
    return run_beside(row_gradient, _model(Transformer), "tgt_embed.weight", 4, SRC, TGT * 0 + 1, PADDING)


def test_nothing_else_is_trained(Transformer):
    """The trained numbers are those of the table of names: 1,728 for Transformer(11, 13, 8, 2, 16, 1), all in use."""
    # keeps: names, tied, not-trained, own-layers
    sizes = (11, 13, 8, 2, 16, 1)
    norms = run_beside(gradient_norms, _model(Transformer, sizes), SRC % 7, TGT, PADDING)
    names = list(lively_weights(42, *sizes))
    more = sorted(set(norms) - set(names))
    check(len(norms) <= len(names), f"your model has {len(norms)} parameters where {len(names)} are asked for; these "
          f"are not: {more}. The output is the target embedding's own weight, and there is no bias")
    idle = [name for name, norm in norms.items() if not norm > 0 and not name.endswith("k_proj.bias")]  # moves nothing
    check(not idle, f"no gradient reaches {idle}: it has no influence on the logits")
    kinds = run_beside(kinds_inside, Transformer, SIZES)
    ruled_out = [kind for kind in kinds if kind.startswith("torch.nn.modules.transformer.")]
    check(not ruled_out, f"your model is made of {ruled_out[:1]}, which is not allowed here")


def test_positions_come_along(Transformer):
    """The table of positions moves with the model, and is there for max_len places: 512 unless another is given."""
    # keeps: buffer, max-len
    told = run_beside(left_behind, Transformer, SIZES, SRC, TGT, PADDING)
    check(not told, f"moved to another device, your model fails: {told}. Register the table of positions as a buffer")
    model = _model(Transformer)
    model.float()
    tensor(model(SRC, TGT, PADDING), "the logits of a model in float32", (*TGT.shape, SIZES[1]), torch.float32)
    for longest, options in ((512, {}), (6, {"max_len": 6}), (600, {"max_len": 600})):
        ids = torch.ones(1, longest, dtype=torch.long)
        model = _model(Transformer, (7, 5, 4, 1, 4, 1), **options)
        tensor(model(ids, ids[:, : min(longest, 20)], None), f"the logits for a source of {longest} places",
               (1, min(longest, 20), 5), F64)


def test_dropout_in_both_stacks(Transformer):
    """dropout goes to all layers of both stacks, in training mode alone: where it takes nearly all, nothing mixes."""
    # keeps: dropout
    same(_logits(_model(Transformer, dropout=0.5)), _logits(_model(Transformer)), "the logits in evaluation mode of a "
         "model with dropout=0.5, against those without")
    quiet = _model(Transformer)
    quiet.train()
    same(_logits(quiet), _logits(_model(Transformer)), "the logits in training mode, dropout being 0 by default")
    model, other = _dropping(Transformer), SRC.clone()
    other[:, 0] = (other[:, 0] + 1) % SIZES[0]
    moved = (model.encode(other, PADDING) - model.encode(SRC, PADDING)).detach()[:, 1:].abs().max()
    check(moved < 1e-6, "with a dropout of nearly 1 an encoder's token still looks at others: is dropout handed on to "
          "the encoder's layers?")
    moved = (model.decode(TGT, _memory(), PADDING) - model.decode(TGT, _memory().flip(-1), PADDING)).detach()
    check(moved.abs().max() < 1e-6, "with a dropout of nearly 1 the decoder still looks at the memory: is dropout "
          "handed on to the decoder's layers?")


def _memory(S=4, width=SIZES[2]):
    return torch.linspace(-2, 2, 3 * S * width, dtype=F64).reshape(3, S, width).sin() * 2


def probe_names(Transformer):
    state = Transformer(*SIZES).state_dict()
    return {name: list(state[name].shape) if name in state else "missing" for name in lively_weights(42, *SIZES)}


def probe_extra_biases(Transformer):
    own = [name for name in Transformer(*SIZES).state_dict() if name.endswith("bias")]
    return len(set(own) - set(lively_weights(42, *SIZES)))


def probe_logits(Transformer):
    return _model(Transformer)(SRC, TGT, PADDING).detach()


def probe_logits_without_padding(Transformer):
    return _model(Transformer)(SRC, TGT, None).detach()


def probe_memory(Transformer):
    return _model(Transformer).encode(SRC, PADDING).detach()


def probe_memory_without_padding(Transformer):
    return _model(Transformer).encode(SRC).detach()


def probe_memory_of_one_token(Transformer):
    return _model(Transformer).encode(SRC[:, :1]).detach()


def probe_decode(Transformer):
    return _model(Transformer).decode(TGT, _memory(), PADDING).detach()


def probe_decode_without_padding(Transformer):
    return _model(Transformer).decode(TGT, _memory()).detach()


def probe_first_step(Transformer):
    return _model(Transformer).decode(TGT[:, :1], _memory()).detach()


def probe_one_layer(Transformer):
    return _model(Transformer, (7, 5, 8, 2, 12, 1))(SRC, TGT, PADDING).detach()


def probe_three_layers(Transformer):
    return _model(Transformer, (7, 5, 8, 2, 12, 3))(SRC, TGT, PADDING).detach()


def probe_one_head(Transformer):
    return _model(Transformer, (7, 5, 8, 1, 12, 2))(SRC, TGT, PADDING).detach()


def probe_tied_gradient(Transformer):
    return _unread_word(Transformer) > 0


def probe_decode_of_equal_vocabularies(Transformer):
    return _model(Transformer, (5, 5, 8, 2, 12, 1)).decode(TGT, _memory(), PADDING).detach()


def probe_equal_vocabularies(Transformer):
    return _model(Transformer, (7, 7, 8, 2, 12, 1))(SRC, TGT, PADDING).detach()


def probe_long(Transformer):
    model, ids = _model(Transformer, (7, 5, 8, 2, 12, 1)), torch.arange(30)[None] % 5
    return model(ids, ids[:, :20], None).detach()


def probe_max_len(Transformer):
    model = _model(Transformer, (7, 5, 8, 2, 12, 1), max_len=6)
    return list(model(torch.ones(1, 6, dtype=torch.long), torch.ones(1, 6, dtype=torch.long), None).shape)


def probe_default_max_len(Transformer):
    model = _model(Transformer, (7, 5, 4, 1, 4, 1))
    return list(model(torch.ones(1, 512, dtype=torch.long), torch.ones(1, 1, dtype=torch.long), None).shape)


def probe_evaluation(Transformer):
    return _model(Transformer, dropout=0.5)(SRC, TGT, PADDING).detach()


def probe_training_without_dropout(Transformer):
    model = _model(Transformer)
    model.train()
    return model(SRC, TGT, PADDING).detach()


def _varies(f):
    return bool((f() - f()).abs().max() > 1e-9)


def probe_encoder_drops(Transformer):
    model = _model(Transformer, dropout=0.5)
    model.train()
    return _varies(lambda: model.encode(SRC, PADDING).detach())


def probe_decoder_drops(Transformer):
    model = _model(Transformer, dropout=0.5)
    model.train()
    return _varies(lambda: model.decode(TGT, _memory(), PADDING).detach())


def probe_look_ahead(Transformer):
    model = _model(Transformer)
    other = torch.cat([TGT[:, :2], (TGT[:, 2:] + 2) % SIZES[1]], 1)
    return bool((_logits(model, tgt=other)[:, :2] - _logits(model)[:, :2]).abs().max() > 1e-9)


def probe_padding_leaks(Transformer):
    model = _model(Transformer)
    other = torch.where(PADDING, (SRC + 3) % SIZES[0], SRC)
    return bool((_logits(model, other) - _logits(model)).abs().max() > 1e-9)


def probe_all_padding(Transformer):
    model = _model(Transformer)
    return bool(model(SRC, TGT, PADDING | torch.tensor([[False], [True], [False]])).isfinite().all())


def probe_gradients(Transformer):
    norms = run_beside(gradient_norms, _model(Transformer), SRC, TGT, PADDING)
    return [norms.get(name, -1.0) for name in lively_weights(42, *SIZES)]


def probe_number_of_parameters(Transformer):
    return len(run_beside(gradient_norms, _model(Transformer), SRC, TGT, PADDING))


def probe_loose_tensors(Transformer):
    return run_beside(loose_tensors, Transformer, *SIZES) > 0


def probe_float32(Transformer):
    model = _model(Transformer)
    model.float()
    return str(model(SRC, TGT, PADDING).dtype)


def _dropping(Transformer):
    """A model in training mode whose dropout takes nearly all."""
    model = _model(Transformer, dropout=1 - 1e-9)
    model.train()
    return model


def probe_encoder_branches_drop(Transformer):
    model, other = _dropping(Transformer), SRC.clone()
    other[:, 0] = (other[:, 0] + 1) % SIZES[0]
    moved = (model.encode(other, PADDING) - model.encode(SRC, PADDING)).detach()[:, 1:]
    return bool(moved.abs().max() > 1e-6)  # what is dropped looks at no other place


def probe_decoder_branches_drop(Transformer):
    model = _dropping(Transformer)
    moved = (model.decode(TGT, _memory(), PADDING) - model.decode(TGT, _memory().flip(-1), PADDING)).detach()
    return bool(moved.abs().max() > 1e-6)  # nor at the memory
