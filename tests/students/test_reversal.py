"""The training run of q1_5: fair, repeatable, and able to tell attention from its absence."""

import pytest
import torch
from torch import nn

from course_utils.hw1.reversal import BOS, D_MODEL, LENGTH, VOCAB, greedy_accuracy, reversal_batch, train_reversal


class Tiny(nn.Module):
    """Predicts each token from its place alone; with `cheat`, looks the answer up in the source."""

    def __init__(self, cheat=False, dropout=0.0):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(LENGTH, VOCAB + 1))
        self.scale = nn.Parameter(torch.tensor(5.0 if cheat else 0.0))
        self.dropout = nn.Dropout(dropout)

    def forward(self, src, tgt_in):
        T = tgt_in.shape[1]
        answer = nn.functional.one_hot(src.flip(1)[:, :T], VOCAB + 1) * self.scale
        return self.dropout(self.table[:T] + answer), torch.zeros(*tgt_in.shape, src.shape[1])


class Bottleneck(nn.Module):
    """An encoder and a decoder; with `attend`, the decoder looks back at the source."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.src, self.tgt = nn.Embedding(VOCAB, D_MODEL), nn.Embedding(VOCAB + 1, D_MODEL)
        self.encoder = nn.GRU(D_MODEL, D_MODEL, batch_first=True)
        self.decoder = nn.GRU(D_MODEL, D_MODEL, batch_first=True)
        self.mix, self.out = nn.Linear(2 * D_MODEL, D_MODEL), nn.Linear(D_MODEL, VOCAB + 1)

    def forward(self, src, tgt_in):
        keys, last = self.encoder(self.src(src))
        h, _ = self.decoder(self.tgt(tgt_in), last)
        weights = (h @ keys.mT).softmax(-1)
        context = weights @ keys if self.attend else torch.zeros_like(h)
        return self.out(torch.tanh(self.mix(torch.cat([h, context], -1)))), weights


def test_a_batch_is_the_source_its_reverse_and_the_reverse_shifted_behind_bos():
    src, tgt_in, tgt_out = reversal_batch(5, torch.Generator().manual_seed(3))
    assert src.shape == tgt_in.shape == tgt_out.shape == (5, LENGTH)
    assert torch.equal(tgt_out, src.flip(1)) and torch.equal(tgt_in[:, 1:], tgt_out[:, :-1])
    assert (tgt_in[:, 0] == BOS).all() and 0 <= src.min() and src.max() < VOCAB == BOS
    again, _, _ = reversal_batch(5, torch.Generator().manual_seed(3))
    assert torch.equal(src, again)


def test_lengths_and_vocabularies_can_be_chosen():
    src, tgt_in, _ = reversal_batch(2, torch.Generator().manual_seed(0), length=7, vocab=3)
    assert src.shape == (2, 7) and src.max() < 3 and (tgt_in[:, 0] == 3).all()


def test_a_code_says_how_each_symbol_is_written():
    code = torch.randperm(VOCAB, generator=torch.Generator().manual_seed(1))
    plain, coded = (reversal_batch(5, torch.Generator().manual_seed(3), code=c) for c in (None, code))
    assert torch.equal(plain[0], coded[0]) and torch.equal(code[plain[2]], coded[2])
    assert torch.equal(coded[1][:, 1:], coded[2][:, :-1]) and (coded[1][:, 0] == BOS).all()
    assert greedy_accuracy(Tiny(cheat=True), 50, seed=2, code=code) < 0.4


def test_batches_can_be_given_and_are_those_that_it_trains_on():
    generator = torch.Generator().manual_seed(1)
    drawn = [reversal_batch(8, generator) for _ in range(4)]
    batches = tuple(torch.stack(x).to(torch.uint8) for x in zip(*drawn, strict=True))
    given = train_reversal(Tiny(), steps=4, seed=1, batches=batches)
    assert given == train_reversal(Tiny(), steps=4, seed=1, batch=8)
    assert len(train_reversal(Tiny(), steps=2, batches=batches)) == 2


def test_a_run_ends_once_ten_losses_are_small_enough():
    losses = train_reversal(Tiny(), steps=20, batch=8, enough=5.0)
    assert losses == train_reversal(Tiny(), steps=20, batch=8)[:10]


def test_accuracy_is_one_for_a_model_that_knows_and_chance_for_one_that_does_not():
    assert greedy_accuracy(Tiny(cheat=True), 50, seed=2) == 1.0
    assert greedy_accuracy(Tiny(), 200, seed=2) == pytest.approx(1 / VOCAB, abs=0.05)


def test_accuracy_asks_any_callable_and_only_with_tensors():
    calls = []

    def remote(*args, **kwargs):
        calls.append((args, kwargs))
        return Tiny(cheat=True)(*args)

    assert greedy_accuracy(remote, 10, seed=0) == 1.0
    assert len(calls) == LENGTH
    for args, kwargs in calls:
        assert [type(x) for x in args] == [torch.Tensor, torch.Tensor] and not kwargs


def test_accuracy_is_measured_without_dropout_and_the_mode_is_given_back():
    model = Tiny(cheat=True, dropout=0.9).train()
    assert greedy_accuracy(model, 20, seed=0) == 1.0
    assert model.training


def test_training_repeats_exactly_and_leaves_the_random_state_alone():
    torch.manual_seed(9)
    before = torch.get_rng_state()
    runs = [train_reversal(Tiny(dropout=0.5), steps=4, seed=seed, batch=8) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2] and len(runs[0]) == 4
    assert torch.equal(before, torch.get_rng_state())


def test_attention_learns_to_reverse_and_a_bottleneck_does_not_in_the_stated_run():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        accuracy = {}
        for attend in (True, False):
            torch.manual_seed(0)
            model = Bottleneck(attend)
            losses = train_reversal(model, seed=0)
            assert losses[-1] < losses[0]
            accuracy[attend] = greedy_accuracy(model)
    finally:
        torch.set_num_threads(threads)
    assert accuracy[True] > 0.8 and accuracy[False] < 0.65
