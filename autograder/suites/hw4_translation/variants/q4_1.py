# %% shift-of-one-tensor
"""One padded tensor BOS ... EOS, seen twice; where the label is padding the input may be EOS. The mask from
lengths."""
def pad_batch(sequences, pad_id):
    lengths = torch.tensor([len(s) for s in sequences])
    columns = torch.arange(int(lengths.max()))
    ids = torch.full((len(sequences), len(columns)), pad_id, dtype=torch.int64)
    mask = columns >= lengths[:, None]
    ids[~mask] = torch.tensor([token for s in sequences for token in s], dtype=torch.int64)
    return ids, mask


def teacher_forcing(target, bos_id, eos_id, pad_id):
    whole, _ = pad_batch([(bos_id, *s, eos_id) for s in target], pad_id)
    return whole[:, :-1], whole[:, 1:]


# %% pad-sequence
"""torch's own pad_sequence, for the ids and for the mask."""
from torch.nn.utils.rnn import pad_sequence


def pad_batch(sequences, pad_id):
    rows = [torch.tensor(s, dtype=torch.long) for s in sequences]
    ids = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    real = pad_sequence([torch.ones(len(s), dtype=torch.bool) for s in sequences], batch_first=True)
    return ids, real.logical_not()


def teacher_forcing(target, bos_id, eos_id, pad_id):
    def column(i):
        return pad_sequence([torch.tensor(pair[i]) for pair in rows], batch_first=True, padding_value=pad_id)

    rows = [([bos_id, *s], [*s, eos_id]) for s in target]
    return column(0), column(1)


# %% plain-lists
"""Lists all the way, tensors at the end; nothing shared between the two functions."""
def pad_batch(sequences, pad_id):
    width = max(map(len, sequences), default=0)
    ids, mask = [], []
    for s in sequences:
        gap = width - len(s)
        ids.append([*s, *[pad_id] * gap])
        mask.append([False] * len(s) + [True] * gap)
    return torch.tensor(ids, dtype=torch.long), torch.tensor(mask, dtype=torch.bool)


def teacher_forcing(target, bos_id, eos_id, pad_id):
    width = 1 + max(map(len, target), default=0)
    inputs = [([bos_id, *s] + [pad_id] * width)[:width] for s in target]
    labels = [([*s, eos_id] + [pad_id] * width)[:width] for s in target]
    return torch.tensor(inputs), torch.tensor(labels)


# %% columns-by-zip
"""zip_longest turns the batch on its side; a sentinel, not pad_id, says where a sentence has ended."""
from itertools import zip_longest


def pad_batch(sequences, pad_id):
    columns = list(zip_longest(*sequences, fillvalue=None))
    ids = [[pad_id if token is None else token for token in column] for column in columns]
    mask = [[token is None for token in column] for column in columns]
    shape = (len(columns), len(sequences))
    ids = torch.tensor(ids, dtype=torch.long).reshape(shape)
    return ids.t().contiguous(), torch.tensor(mask, dtype=torch.bool).reshape(shape).t()


def teacher_forcing(target, bos_id, eos_id, pad_id):
    labels, _ = pad_batch([[*s, eos_id] for s in target], pad_id)
    inputs = labels.roll(1, dims=1)
    inputs[:, 0] = bos_id
    return inputs, labels


# %% numpy-arrays
"""Filled in numpy, handed over at the end; inputs come from the words, EOS is put in by index."""
import numpy as np


def pad_batch(sequences, pad_id):
    lengths = np.array([len(s) for s in sequences])
    ids = np.full((len(lengths), lengths.max()), pad_id, dtype=np.int64)
    for row, s in zip(ids, sequences, strict=True):
        row[: len(s)] = s
    return torch.from_numpy(ids), torch.from_numpy(np.arange(ids.shape[1])[None] >= lengths[:, None])


def teacher_forcing(target, bos_id, eos_id, pad_id):
    words, padding = pad_batch(target, pad_id)
    inputs = F.pad(words, (1, 0), value=bos_id)
    labels = F.pad(words, (0, 1), value=pad_id)
    labels[torch.arange(len(target)), (~padding).sum(1)] = eos_id
    return inputs, labels
