# %% padding-on-the-left
"""Your short sentences stand at the right end of their rows. Padding goes behind the sentence: every first word is
in column 0."""
replace("[*s, *[pad_id] * (longest - len(s))]", "[*[pad_id] * (longest - len(s)), *s]")
replace("torch.arange(longest) >= lengths[:, None]", "torch.arange(longest) < longest - lengths[:, None]")

# %% mask-inverted
"""Your mask is True at the words. On the card True means padding: look at which places you set."""
replace("torch.arange(longest) >= lengths[:, None]", "torch.arange(longest) < lengths[:, None]")

# %% mask-from-the-ids price=0.2
"""A sentence may contain pad_id as a real token, and you mask it: you read the mask off the ids. What tells padding
from words is the length of each sentence."""
replace("torch.arange(longest) >= lengths[:, None]", "ids == pad_id")

# %% padded-with-zeros price=0.2
"""You fill up with 0, whatever pad_id is. It goes unnoticed as long as pad_id happens to be 0."""
replace("*[pad_id] * (longest - len(s))", "*[0] * (longest - len(s))")

# %% labels-not-shifted
"""Inputs and labels are the same rows, so the model learns to copy the word that it has just read. At each place
the label is the word after the input."""
replace("return inputs, labels", "return inputs, inputs.clone()")

# %% eos-missing
"""Your labels never have EOS, so the model never learns to stop. The label behind the last word is EOS."""
replace("[[*s, eos_id] for s in target]", "[[*s, pad_id] for s in target]")

# %% eos-after-the-padding
"""EOS stands in the last column of every row, behind the padding. It belongs right behind the last word of each
sentence: add it before you pad."""
replace("labels, _ = pad_batch([[*s, eos_id] for s in target], pad_id)", """words, _ = pad_batch(target, pad_id)
    labels = torch.cat([words, words.new_full((len(words), 1), eos_id)], dim=1)""")

# %% bos-missing
"""Your inputs do not begin with BOS. At the first step nothing has been written yet, and the model still needs a
token to start from."""
replace("[[bos_id, *s] for s in target]", "[[*s, eos_id] for s in target]")

# %% last-word-lost
"""The longest sentence loses its last word: you shift rows that have no EOS, so they come out with T columns
instead of T + 1."""
replace("return inputs, labels", "return inputs[:, :-1], inputs[:, 1:]")

# %% ids-in-int32 price=0.2
"""Your ids are int32. Ids are int64, torch's own type for whole numbers: leave the dtype away, or say torch.long."""
replace("dtype=torch.long", "dtype=torch.int32")

# %% inputs-lose-the-last-word
"""Your inputs lack the last word of every sentence, so the model is asked for EOS without having seen it. Inputs are
BOS and the *whole* sentence; only EOS is missing in them."""
replace("[[bos_id, *s] for s in target]", "[[bos_id, *s[:-1], pad_id] if s else [bos_id] for s in target]")
