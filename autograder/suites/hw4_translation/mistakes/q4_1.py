# %% padding-on-the-left
"""Your short sentences stand at the right end of their rows. Padding goes behind the sentence: every first word is
in column 0."""
def pad_batch(sequences, pad_id):
    longest = max(len(s) for s in sequences)
    ids = torch.full((len(sequences), longest), pad_id)
    key_padding_mask = torch.ones(len(sequences), longest, dtype=torch.bool)
    for i, s in enumerate(sequences):
        ids[i, longest - len(s) :] = torch.tensor(s)
        key_padding_mask[i, longest - len(s) :] = False
    return ids, key_padding_mask


# %% mask-inverted
"""Your mask is True at the words. On the card True means padding: look at which places you set."""
def pad_batch(sequences, pad_id):
    longest = max(len(s) for s in sequences)
    ids = torch.full((len(sequences), longest), pad_id)
    key_padding_mask = torch.zeros(len(sequences), longest, dtype=torch.bool)
    for i, s in enumerate(sequences):
        ids[i, : len(s)] = torch.tensor(s)
        key_padding_mask[i, : len(s)] = True
    return ids, key_padding_mask


# %% mask-from-the-ids
"""A sentence may contain pad_id as a real token, and you mask it: you read the mask off the ids. What tells padding
from words is the length of each sentence."""
def pad_batch(sequences, pad_id):
    longest = max(len(s) for s in sequences)
    ids = torch.tensor([list(s) + [pad_id] * (longest - len(s)) for s in sequences], dtype=torch.long)
    return ids, ids == pad_id


# %% padded-with-zeros
"""You fill up with 0, whatever pad_id is. It goes unnoticed as long as pad_id happens to be 0."""
def pad_batch(sequences, pad_id):
    longest = max(len(s) for s in sequences)
    ids = torch.zeros(len(sequences), longest, dtype=torch.long)
    key_padding_mask = torch.ones(len(sequences), longest, dtype=torch.bool)
    for i, s in enumerate(sequences):
        ids[i, : len(s)] = torch.tensor(s)
        key_padding_mask[i, : len(s)] = False
    return ids, key_padding_mask


# %% labels-not-shifted
"""Inputs and labels are the same rows, so the model learns to copy the word that it has just read. At each place
the label is the word after the input."""
def teacher_forcing(target, bos_id, eos_id, pad_id):
    inputs, _ = pad_batch([[bos_id] + list(s) for s in target], pad_id)
    labels = inputs.clone()
    return inputs, labels


# %% eos-missing
"""Your labels never have EOS, so the model never learns to stop. The label behind the last word is EOS."""
def teacher_forcing(target, bos_id, eos_id, pad_id):
    inputs, _ = pad_batch([[bos_id] + list(s) for s in target], pad_id)
    labels = torch.full_like(inputs, pad_id)
    labels[:, :-1] = inputs[:, 1:]
    return inputs, labels


# %% eos-after-the-padding
"""EOS stands in the last column of every row, behind the padding. It belongs right behind the last word of each
sentence: add it before you pad."""
def teacher_forcing(target, bos_id, eos_id, pad_id):
    words, _ = pad_batch(target, pad_id)
    bos = words.new_full((len(target), 1), bos_id)
    eos = words.new_full((len(target), 1), eos_id)
    return torch.cat([bos, words], dim=1), torch.cat([words, eos], dim=1)


# %% bos-missing
"""Your inputs do not begin with BOS. At the first step nothing has been written yet, and the model still needs a
token to start from."""
def teacher_forcing(target, bos_id, eos_id, pad_id):
    inputs, _ = pad_batch([list(s) + [eos_id] for s in target], pad_id)
    labels, _ = pad_batch([list(s) + [eos_id] for s in target], pad_id)
    return inputs, labels


# %% last-word-lost
"""The longest sentence loses its last word: you shift rows that have no EOS, so they come out with T columns
instead of T + 1."""
def teacher_forcing(target, bos_id, eos_id, pad_id):
    whole, _ = pad_batch([[bos_id, *s] for s in target], pad_id)
    return whole[:, :-1], whole[:, 1:]


# %% ids-in-int32
"""Your ids are int32. Ids are int64, torch's own type for whole numbers: leave the dtype away, or say torch.long."""
def pad_batch(sequences, pad_id):
    width = max(len(s) for s in sequences)
    ids = torch.tensor([[*s, *[pad_id] * (width - len(s))] for s in sequences], dtype=torch.int32)
    return ids, torch.arange(width) >= torch.tensor([len(s) for s in sequences])[:, None]
