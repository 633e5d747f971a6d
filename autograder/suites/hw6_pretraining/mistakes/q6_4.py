# %% classes-swapped
"""Your pair loss has the classes the wrong way round: column 0 means "is next", so True is class 0."""
replace("(~is_next).long()", "is_next.long()")

# %% every-place-in-the-mean
"""You divide the word loss by all places. It is the mean over the chosen ones; otherwise it shrinks with the share of hidden
words."""
replace("chosen.sum().clamp(min=1)", "labels.numel()")

# %% nan-without-labels price=0.2
"""Without a single label your word loss is NaN: a mean over nothing. It must be exactly 0."""
replace("each / chosen.sum().clamp(min=1)", "each / chosen.sum()")

# %% detached-zero price=0.2
"""Without labels your word loss is a 0 that hangs on nothing, and words.backward() fails. A sum over no places is 0 and stays
attached."""
replace("words = each / chosen.sum().clamp(min=1)", "words = each / chosen.sum().clamp(min=1) if chosen.any() else word_logits.new_zeros(())")

# %% pads-in-the-loss
"""Places with label -100 are asked too, as if the label were 0."""
replace("chosen = labels != -100", "chosen = labels == labels")
replace("labels[chosen], reduction", "labels[chosen].clamp(min=0), reduction")

# %% label-zero-ignored price=0.25
"""You leave out places whose label is 0. Only -100 means that nothing is asked."""
replace("labels != -100", "labels > 0")

# %% summed-pairs price=0.25
"""Your pair loss is the sum over the batch. It is the mean."""
replace("(~is_next).long())", '(~is_next).long(), reduction="sum")')

# %% mean-of-the-two price=0.25
"""The total is the mean of the two losses in your version. It is their sum."""
replace("return words + pairs,", "return (words + pairs) / 2,")

# %% encoder-only-by-words price=0.25
"""You think that only the word loss trains the encoder. The pair loss reads the first place, and through attention that place
hangs on everything below."""
replace("return encoder | heads[task]", 'return encoder | heads[task] if task == "words" else heads[task]')

# %% table-forgotten price=0.2
"""The table of tokens gets a gradient too: it makes the input, and in the word head it is the output."""
replace('"token_embed", "position_embed"', '"position_embed"')

# %% segments-only-by-pairs price=0.2
"""You think that the segments matter to the pair loss alone. They are added to every token, so the word loss reaches them as
well."""
replace("return encoder | heads[task]", 'return (encoder | heads[task]) - ({"segment_embed"} if task == "words" else set())')

# %% everything-by-both price=0.3
"""You say that each loss reaches every part. Which path leads from the pair loss to the word head?"""
replace("return encoder | heads[task]", 'return encoder | heads["words"] | heads["pairs"]')

# %% mean-of-row-means price=0.3
"""You take the mean within each row first and then over the rows, so a word of a row with few hidden ones counts more. It is one
mean over all chosen places of the batch."""
replace('each = F.cross_entropy(word_logits[chosen], labels[chosen], reduction="sum")',
        'each = F.cross_entropy(word_logits.transpose(1, 2), labels, reduction="none").sum(1)')
replace("words = each / chosen.sum().clamp(min=1)", "words = (each / chosen.sum(1).clamp(min=1)).mean()")

# %% total-detached price=0.35
"""The total hangs on nothing: it was made of numbers (`item()`, `float()`, `detach()`). Add the two tensors, or nothing is learned."""
replace("return words + pairs, words, pairs", "return (words + pairs).detach(), words, pairs")

# %% added-to-the-count price=0.2
"""Nearly right: something small is added to the number of chosen places before you divide by it. Divide by the number itself,
and by 1 where it is 0."""
replace("chosen.sum().clamp(min=1)", "(chosen.sum() + 1e-3)")

# %% unknown-task-accepted price=0.1
"""A task that is neither "words" nor "pairs" gets a set. It is a ValueError."""
replace('raise ValueError(f"the tasks are {sorted(heads)}, not {task!r}")', "return set()")
