# %% eos-kept price=0.2
"""Your sentences end with EOS. The result has the tokens before it."""
replace("row.index(eos_id)", "row.index(eos_id) + 1")

# %% bos-kept price=0.2
"""Your sentences begin with BOS. It was only there to start from: leave it out of the result."""
replace("written[:, 1:]", "written")

# %% stops-at-the-first-eos-of-the-batch
"""Sentences are cut short when they are decoded together: your loop stops as soon as one of them has ended. It
stops when all have."""
replace("ended.all()", "ended.any()")

# %% goes-on-after-eos
"""After its end a sentence goes on in your result: you take the EOS out and keep what was written behind it. Cut at
the first EOS."""
replace("row[: row.index(eos_id)] if eos_id in row else row", "[token for token in row if token != eos_id]")

# %% last-token-always-cut price=0.2
"""A sentence that runs into max_len loses its last word: you take away the last token, EOS or not."""
replace("if eos_id in row else row", "if eos_id in row else row[:-1]")

# %% one-step-short price=0.2
"""You make max_len - 1 steps: BOS is no step. A sentence that does not end has max_len tokens."""
replace("range(max_len)", "range(max_len - 1)")

# %% encoder-without-mask
"""The same sentence is translated differently with more padding behind it: src_padding does not reach encode."""
replace("model.encode(src, src_padding)", "model.encode(src)")

# %% decoder-without-mask
"""The same sentence is translated differently with more padding behind it: src_padding does not reach decode."""
replace("model.decode(written, memory, src_padding)", "model.decode(written, memory)")

# %% last-word-only
"""Your decoder sees the last word alone, without what was written before it, and always at position 0. Give it all
words so far."""
replace("model.decode(written, memory,", "model.decode(written[:, -1:], memory,")

# %% sampled
"""Your output changes from call to call: you draw the next word. Greedy takes the most likely one."""
replace("[:, -1].argmax(-1)", "[:, -1].softmax(-1).multinomial(1).squeeze(1)")

# %% one-step-too-many price=0.2
"""You make max_len + 1 steps: a sentence that does not end has max_len tokens, and BOS is none of them."""
replace("range(max_len)", "range(max_len + 1)")

# %% bos-never-written price=0.2
"""You keep the model from writing BOS. Greedy decoding takes the likeliest token, whichever it is."""
replace("token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)",
        """logits = model.decode(written, memory, src_padding)[:, -1].clone()
        logits[:, bos_id] = -math.inf
        token = logits.argmax(-1)""")

# %% mask-needed price=0.2
"""Your function fails without a mask. None for src_padding means that nothing is padding: hand it on as it is."""
replace("memory = model.encode(src, src_padding)", "memory = model.encode(src, src_padding.bool())")

# %% first-place-read
"""The same word comes again and again: you read the logits of the first place, which never change. The next word
stands in those of the last, `[:, -1]`."""
replace("src_padding)[:, -1]", "src_padding)[:, 0]")

# %% cut-at-the-last-eos
"""Rubbish follows a sentence's end: you cut at the last EOS of the row. What comes after the *first* does not count."""
replace("row[: row.index(eos_id)] if eos_id in row else row",
        "row[: len(row) - 1 - row[::-1].index(eos_id)] if eos_id in row else row")

# %% bos-filtered-out price=0.2
"""You take every BOS out of the result. BOS is a token like any other, should the model write it; only the one to
start from is left out."""
replace("rows = written[:, 1:].tolist()", "rows = [[t for t in row if t != bos_id] for row in written.tolist()]")

# %% rows-as-tensors price=0.2
"""Your rows are tensors. The result is a list of lists of ints: `.tolist()` makes one of a tensor."""
replace("return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]",
        "return [torch.tensor(row[: row.index(eos_id)] if eos_id in row else row) for row in rows]")

# %% mask-of-the-first-row
"""Every sentence gets the padding of the first one: keep src_padding as [B, S]."""
replace("memory = model.encode(src, src_padding)",
        """src_padding = None if src_padding is None else src_padding[:1].expand_as(src)
    memory = model.encode(src, src_padding)""")
