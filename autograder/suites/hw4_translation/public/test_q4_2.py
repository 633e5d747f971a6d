"""Public checks of q4_2: Transformer, with fixed weights that are put in by name."""

import torch

from course_utils.checking.beside import run_beside
from course_utils.checking.compare import check, same, tensor
from course_utils.hw4.decoding_weights import lively_weights, put_weights
from course_utils.instruments.parts import gradient_norms, loose_tensors

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
    model = _model(Transformer)
    memory = tensor(model.encode(SRC, PADDING), "the memory", (*SRC.shape, SIZES[2]), F64).detach()
    same(memory[0, -1], torch.tensor(MEMORY, dtype=F64), "the memory at the last place of the first sentence", **CLOSE)
    same(_logits(model)[:, -1], torch.tensor(LOGITS, dtype=F64), "the logits of the last step", **CLOSE)


def test_encode_then_decode(Transformer):
    """forward is decode after encode, and the source's padding is nothing that either of them sees."""
    model = _model(Transformer)
    whole = _logits(model)
    steps = model.decode(TGT, model.encode(SRC, PADDING).detach(), PADDING)
    same(tensor(steps, "decode's logits", whole.shape, F64).detach(), whole, "decode's logits, against forward's")
    other = _logits(model, torch.where(PADDING, (SRC + 3) % SIZES[0], SRC))
    same(other, whole, "the logits after a change in the source's padding")


def test_no_look_ahead(Transformer):
    """The logits of a step do not depend on later target tokens."""
    model = _model(Transformer)
    before = _logits(model)
    after = _logits(model, tgt=torch.cat([TGT[:, :2], (TGT[:, 2:] + 2) % SIZES[1]], 1))
    same(after[:, :2], before[:, :2], "the logits before the changed token")
    check((after[:, 2] - before[:, 2]).abs().max() > 1e-6, "a target token does not move the logits of its own step")


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
