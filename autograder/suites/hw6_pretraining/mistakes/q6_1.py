# %% special-tokens-chosen price=0.3
"""You choose special tokens too: the labels ask for [CLS], [SEP] and padding. Only the other positions may be chosen."""
replace("(chance < p) & ~special", "chance < p")

# %% always-the-mask price=0.35
"""Every chosen word becomes [MASK]. One in ten should become a random word and one in ten stay, so that the model cannot
rely on seeing a mask wherever it is asked."""
replace("chosen & (fate < 0.8)", "chosen")
replace("inputs = torch.where(chosen & (fate >= 0.9), drawn, inputs)", "")

# %% random-words-from-everything price=0.2
"""Your random words are drawn from the whole vocabulary, special tokens and [MASK] included. Draw from the ids that are not
special."""
replace("for i in range(vocab_size) if i not in set(special_ids)]", "for i in range(vocab_size)]")

# %% labels-everywhere
"""Your labels hold the old token at every place. Where nothing was chosen they must be -100, or the loss asks for words that
stand in the input."""
replace("torch.where(chosen, ids, -100)", "ids.clone()")

# %% kept-words-have-no-label price=0.3
"""Words that were chosen and stay have no label in your version. They were chosen, so they are asked for: that is why they are
there."""
replace("torch.where(chosen, ids, -100)", "torch.where(inputs != ids, ids, -100)")

# %% labels-from-the-inputs
"""Your labels hold what stands in the input now, not what stood there before. The model would be asked to copy."""
replace("torch.where(chosen, ids, -100)", "torch.where(chosen, inputs, -100)")

# %% fates-one-after-another price=0.25
"""You draw the fates one after another with their full probabilities: one in ten of *what the mask left* becomes random, and
nine in fifty stay. Of the chosen positions 0.8, 0.1 and 0.1 are asked for: one draw decides."""
replace("chosen & (fate >= 0.9)", "chosen & (fate >= 0.8) & (torch.rand(ids.shape, generator=generator).to(ids.device) < 0.1)")

# %% exactly-a-share price=0.15
"""You choose a fixed number of positions. Each position is chosen by itself with probability p, so the number varies."""
replace("chosen = (chance < p) & ~special", """ranks = chance.masked_fill(special, 2.0).flatten().argsort().argsort().view(ids.shape)
    chosen = (ranks < round(p * int((~special).sum()))) & ~special""")

# %% not-from-the-generator price=0.25
"""Part of the chance comes from torch's own numbers: a generator in the same state gives another result. Every draw needs
`generator=generator`."""
replace("torch.rand(ids.shape, generator=generator).to", "torch.rand(ids.shape).to")

# %% p-is-not-checked price=0.1
"""A p outside [0, 1] goes through without a word. It is a ValueError."""
replace("not 0 <= p <= 1", "False")

# %% whole-columns price=0.3
"""You choose whole columns: what is drawn for the first row is used for all. Each position has a draw of its own."""
replace("chosen = (chance < p) & ~special", "chosen = (chance[:1].expand(ids.shape) < p) & ~special if ids.ndim > 1 else (chance < p) & ~special")

# %% one-number-for-both
"""One random number decides both whether a position is chosen and what becomes of it, so with a small p every chosen one
has the same fate. Draw a second number for the fate."""
replace("(fate < 0.8)", "(chance < 0.8)")
replace("(fate >= 0.9)", "(chance >= 0.9)")

# %% shares-exchanged
"""Most chosen words become a random word and few become [MASK]. It is the other way round: 0.8 are masked, 0.1 random."""
replace("fate < 0.8", "fate < 0.1")
replace("fate >= 0.9", "fate >= 0.2")

# %% only-the-mask-is-special price=0.3
"""Only `mask_id` is kept from being chosen. All of `special_ids` are special, [CLS], [SEP] and padding too."""
replace("torch.tensor(list(special_ids), dtype", "torch.tensor([mask_id], dtype")

# %% one-word-for-all price=0.25
"""All random words of a call are the same word. Each position that gets one has a draw of its own."""
replace("torch.randint(len(others), ids.shape, generator=generator)", "torch.randint(len(others), ids.shape[:0] + (1,) * ids.ndim, generator=generator)")

# %% fate-not-from-the-generator price=0.25
"""The places come from the generator and the fates do not: with the same state the labels agree and the inputs differ. Every
draw needs `generator=generator`."""
replace("drawn = others", "fate = torch.rand(ids.shape).to(ids.device)\n    drawn = others")

# %% same-seed-without-a-generator price=0.15
"""Without a generator your result is always the same: you make a generator with a fixed seed. None means torch's own numbers."""
replace("    special = torch.isin", "    generator = torch.Generator().manual_seed(0) if generator is None else generator\n    special = torch.isin")

# %% zero-where-nothing-is-asked price=0.25
"""Labels are 0 where nothing was chosen. The mark for "not asked" is -100, which the loss leaves out; 0 is a token."""
replace("torch.where(chosen, ids, -100)", "torch.where(chosen, ids, 0)")
