"""The task of homework 4: the same on every machine, and fair to every right model."""

import copy

import pytest
import torch
from torch import nn

from course_utils import plots
from course_utils.data import BOS, EOS, PAD, UNK, number_words
from course_utils.hw4 import tasks
from course_utils.hw4 import translation as task
from course_utils.notebook.checkpoints import CheckpointError, save_checkpoint


def pad_batch(sequences, pad_id):
    ids = [torch.tensor(s, dtype=torch.long) for s in sequences]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=pad_id)
    return padded, torch.arange(padded.shape[1]) >= torch.tensor([len(s) for s in sequences])[:, None]


def teacher_forcing(target, bos_id, eos_id, pad_id):
    return tuple(pad_batch(s, pad_id)[0] for s in ([[bos_id, *t] for t in target], [[*t, eos_id] for t in target]))


class Tiny(nn.Module):
    """Predicts the next token from the last one; its cross-attention looks at every source token alike."""

    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.5):
        super().__init__()
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.out = nn.Linear(d_model, tgt_vocab)
        self.dropout = nn.Dropout(dropout)
        self.decoder_layers = nn.ModuleList(nn.Module() for _ in range(n_layers))
        for layer in self.decoder_layers:
            layer.cross_attn = Even()

    def forward(self, src, tgt, src_padding=None):
        for layer in self.decoder_layers:
            layer.cross_attn(src, tgt)
        return self.out(self.dropout(self.tgt_embed(tgt)))


class Even(nn.Module):
    def forward(self, src, tgt):
        return tgt, torch.full((len(src), 1, tgt.shape[1], src.shape[1]), 1 / src.shape[1])


def train_step(model, batch, optimizer, pad_id):
    src, src_padding, inputs, labels = batch
    loss = nn.functional.cross_entropy(model(src, inputs, src_padding).mT, labels, ignore_index=pad_id)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def test_the_vocabularies_know_every_word_of_the_task():
    source, target = task.vocabularies()
    sources, targets = task.encode_pairs(number_words(task.LANGUAGE, 3_000, seed=5, largest=task.LARGEST))
    assert (len(source), len(target)) == (37, 36)
    assert not any(UNK in ids for ids in [*sources, *targets])
    assert max(map(len, targets)) + 1 <= task.MAX_LEN


def test_nothing_held_out_is_trained_on_and_a_corpus_is_repeatable():
    first, second = task.brief_corpus(3), task.brief_corpus(3)
    assert first.train == second.train and first.held_out == second.held_out
    assert len(first.held_out) == task.BRIEF_HELD_OUT
    trained = {tuple(source) for source, _ in first.train}
    assert not any(tuple(source) in trained for source, _ in first.held_out)
    assert task.brief_corpus(4).train != first.train


def test_batches_depend_on_seed_and_place_alone():
    pairs = task.brief_corpus().train[:50]
    short, long = (
        task.make_batches(pairs, pad_batch, teacher_forcing, steps=steps, size=8, seed=1) for steps in (7, 20)
    )
    assert len(long) == 20
    assert all(torch.equal(a, b) for x, y in zip(short, long, strict=False) for a, b in zip(x, y, strict=True))
    src, src_padding, inputs, labels = long[0]
    assert src.shape == src_padding.shape and inputs.shape == labels.shape and len(src) == 8
    assert (inputs[:, 0] == BOS).all() and ((labels == EOS).sum(1) == 1).all()


def test_batches_that_are_alike_have_every_pair_once_and_little_padding():
    pairs = task.brief_corpus().train[:128]
    mixed, alike = (
        task.make_batches(pairs, pad_batch, teacher_forcing, steps=16, size=8, alike=some) for some in (1, 16)
    )
    rows = [[tuple(row[row != PAD].tolist()) for src, *_ in batches for row in src] for batches in (mixed, alike)]
    assert sorted(rows[0]) == sorted(rows[1])
    assert sum((b[3] == PAD).sum() for b in alike) < sum((b[3] == PAD).sum() for b in mixed) / 3


def test_an_epoch_has_every_pair_once():
    pairs = task.brief_corpus().train[:24]
    batches = task.make_batches(pairs, pad_batch, teacher_forcing, steps=3, size=8)
    rows = [tuple(row[row != PAD].tolist()) for src, *_ in batches for row in src]
    assert sorted(rows) == sorted(tuple(ids) for ids in task.encode_pairs(pairs)[0])


def test_the_brief_run_learns_and_is_repeatable():
    batches = task.make_batches(task.brief_corpus().train, pad_batch, teacher_forcing, steps=30, size=8)
    model = task.build_model(Tiny)
    again = copy.deepcopy(model)
    before = torch.get_rng_state()
    losses = task.train_briefly(model, train_step, batches)
    assert torch.equal(before, torch.get_rng_state()) and not model.training
    assert losses[-1] < losses[0]
    assert task.train_briefly(again, train_step, batches) == losses


def sentence_model():
    source, target = tasks.everyday_vocabularies()
    return Tiny(len(source), len(target), **tasks.SENTENCE_SIZES)


def test_a_checkpoint_comes_back(tmp_path):
    model = sentence_model()
    save_checkpoint(tmp_path / task.CHECKPOINT, model)
    loaded = tasks.load_model(Tiny, tmp_path / task.CHECKPOINT)
    assert all(
        torch.equal(a, b) for a, b in zip(model.state_dict().values(), loaded.state_dict().values(), strict=True)
    )
    assert not loaded.training


def test_a_checkpoint_that_is_too_large_or_missing_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / task.CHECKPOINT
    with pytest.raises(FileNotFoundError, match="train first"):
        tasks.load_model(Tiny, file)
    with file.open("wb") as stream:
        stream.truncate(task.MAX_CHECKPOINT + 1)
    with pytest.raises(CheckpointError, match="needs less than 16 MB"):
        tasks.load_model(Tiny, file)


def test_translating_keeps_the_order_and_the_mode():
    def copy(model, src, src_padding, bos_id, eos_id, max_len):
        assert not model.training and (bos_id, eos_id, max_len) == (BOS, EOS, 5)
        return [row[~padded].tolist() for row, padded in zip(src, src_padding, strict=True)]

    model, sources = task.build_model(Tiny).train(), [[4, 5], [6], [7, 8, 9]]
    assert task.translate(model, copy, *pad_batch(sources, PAD), max_len=5, size=2) == sources
    assert model.training


def test_the_weights_of_all_cross_attentions_are_seen():
    model = task.build_model(Tiny)
    weights = task.cross_attention(model, torch.ones(2, 5, dtype=torch.long), torch.ones(2, 3, dtype=torch.long))
    assert weights.shape == (task.SIZES["n_layers"], 2, 1, 3, 5) and torch.allclose(weights.sum(-1), torch.ones(()))
    assert not any(layer.cross_attn._forward_hooks for layer in model.decoder_layers)


def test_scores():
    right, wrong = ["drei", "und", "zwanzig", "tausend", "eins"], ["zwanzig", "und", "drei", "tausend", "eins"]
    assert task.exact_match([right, wrong], [[right], [right]]) == 0.5
    assert task.bleu([right], [[right]]) == pytest.approx(100) == task.chrf([right], [[right]])
    assert 0 < task.bleu([right, wrong], [[right], [right]]) < 100
    assert 0 < task.chrf([wrong], [[right]]) < 100
    for score in (task.exact_match, task.bleu, task.chrf):
        assert score([right, wrong], [[wrong[:2], right], [wrong]]) == score([right], [[right]])  # any reference counts
        with pytest.raises(ValueError, match="1 outputs for 2 lists of references"):
            score([right], [[right], [right]])
        with pytest.raises(ValueError, match="one or more lists of tokens"):
            score([right], [right])


def test_a_batch_is_drawn_as_tables_of_words():
    rows, padding = [["drei", "und"], ["elf", "<pad>"]], torch.tensor([[False, False], [False, True]])
    picture = plots.token_tables({"inputs": (rows, padding), "labels": (rows, padding)}, alt="Two tables of words.")
    assert picture.png.startswith(b"\x89PNG") and picture.alt == "Two tables of words."
