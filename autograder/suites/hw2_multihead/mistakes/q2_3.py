# %% padding-polarity-inverted price=0.25
"""Your padding mask is True on the real tokens. On the card True means blocked, so the padding is True."""
replace(">= lengths[:, None]", "< lengths[:, None]")

# %% first-padding-left-open price=0.2
"""Your mask lets one padding token through: positions count from 0, so a sentence of length 3 fills positions
0, 1 and 2, and position 3 is padding already."""
replace(">= lengths[:, None]", "> lengths[:, None]")

# %% last-token-blocked price=0.2
"""Your mask blocks the last real token of each sentence: positions count from 0, so the last one of a sentence
of length 3 is 2."""
replace(">= lengths[:, None]", ">= lengths[:, None] - 1")

# %% max-len-ignored price=0.15
"""Your mask is always as wide as the longest sentence of the batch: a given `max_len` must set the width."""
replace("max_len = int(lengths.max()) if max_len is None else max_len", "max_len = int(lengths.max())")

# %% padding-on-the-left price=0.25
"""Your mask puts the padding in front of the sentence. Padding stands on the right: the first tokens are
real."""
replace(">= lengths[:, None]", "< max_len - lengths[:, None]")

# %% number-mask price=0.15
"""Your padding mask holds numbers. Masks on the card are boolean: with numbers `~mask` and `masked_fill` go
wrong."""
replace("torch.arange(max_len, device=lengths.device) >= lengths[:, None]",
        "(torch.arange(max_len, device=lengths.device) >= lengths[:, None]).float()")

# %% lengths-as-list-not-accepted price=0.1
"""Your `padding_mask` stops when the lengths come as a Python list: they may be a list or a tensor."""
replace("lengths = torch.as_tensor(lengths)", "")

# %% causal-polarity-inverted price=0.25
"""Your causal mask is True where a query may look: on the card True means blocked, so what is True is the
future."""
replace("torch.arange(S) > torch.arange(T)[:, None] + (S - T)",
        "torch.arange(S) <= torch.arange(T)[:, None] + (S - T)")

# %% causal-flipped price=0.25
"""Your causal mask blocks the past: the last query sees only itself, and the first one everything. Query i may
look at keys up to i + (S - T)."""
replace("torch.arange(S) > torch.arange(T)[:, None] + (S - T)",
        "torch.arange(S) < torch.arange(T)[:, None] + (S - T)")

# %% causal-diagonal-blocked price=0.2
"""Your causal mask blocks the token itself. A query may see its own position: the True part begins one step
further to the right."""
replace("torch.arange(S) > torch.arange(T)[:, None] + (S - T)",
        "torch.arange(S) >= torch.arange(T)[:, None] + (S - T)")

# %% causal-top-left price=0.2
"""When T and S differ your triangle starts in the wrong corner: the last query must see every key. Which
diagonal depends on S - T."""
replace("torch.arange(T)[:, None] + (S - T)", "torch.arange(T)[:, None]")

# %% causal-wrong-sign price=0.2
"""When T and S differ your triangle moves the wrong way: with more keys than queries the first query sees more,
not less. Look at the sign of T - S."""
replace("torch.arange(T)[:, None] + (S - T)", "torch.arange(T)[:, None] + (T - S)")

# %% causal-always-square price=0.15
"""Your causal mask has shape [T, T] whatever S is: it has a row per query and a column per key."""
replace("S = T if S is None else S", "S = T")

# %% cross-causal price=0.15
"""You make cross-attention causal. The source is there from the start, and a target word may look at all of it:
there is no future in it."""
replace('{"cross": {"padding"}}', '{"cross": {"padding", "causal"}}')

# %% cross-unmasked price=0.15
"""You leave cross-attention without a mask: the decoder then looks at the padding of the source. Where do its
keys come from?"""
replace('{"cross": {"padding"}}', '{"cross": set()}')

# %% decoder-padding-too price=0.15
"""You ask for a padding mask in causal self-attention. With padding on the right, what could a real token see
of it? The question is which masks are needed."""
replace('{"decoder_self": {"causal"}}', '{"decoder_self": {"causal", "padding"}}')

# %% encoder-unmasked price=0.15
"""You leave the encoder without a mask, as if masks were the decoder's business. In a batch of sentences of
different length, what do its tokens look at?"""
replace('{"encoder_self": {"padding"}}', '{"encoder_self": set()}')

# %% encoder-causal price=0.15
"""You make the encoder causal. It reads a sentence that is whole: each word may look in both directions."""
replace('{"encoder_self": {"padding"}}', '{"encoder_self": {"padding", "causal"}}')

# %% decoder-with-cross price=0.15
"""Your decoder-only model has cross-attention. There is no encoder whose output it could look at: name only the
attentions that the architecture has."""
replace('"decoder": decoder', '"decoder": decoder | cross')

# %% all-attentions-listed price=0.15
"""You list all three attentions for every architecture, the missing ones with an empty set. Name only those
that the architecture has."""
replace('return {"encoder": encoder, "decoder": decoder,',
        """none = {"encoder_self": set(), "decoder_self": set(), "cross": set()}
    return {"encoder": none | encoder, "decoder": none | decoder,""")

# %% translator-padding-too price=0.1
"""Your GPT is right, and your translator's decoder has a mask too many: its self-attention is causal as well, and
its padding is on the right as well."""
replace("encoder | decoder | cross", 'encoder | {"decoder_self": {"causal", "padding"}} | cross')

# %% causal-more-queries-than-keys price=0.1
"""With more queries than keys your triangle starts in the upper left corner. The rule j > i + (S - T) holds there
too: the first T - S queries see nothing."""
replace("torch.arange(T)[:, None] + (S - T)", "torch.arange(T)[:, None] + max(S - T, 0)")
