# %% padding-polarity-inverted
"""Your padding mask is True on the real tokens. On the card True means blocked, so the padding is True."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    n = int(lengths.max()) if max_len is None else max_len
    return torch.arange(n, device=lengths.device) < lengths[:, None]


# %% first-padding-left-open
"""Your mask lets one padding token through: positions count from 0, so a sentence of length 3 fills positions
0, 1 and 2, and position 3 is padding already."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    n = int(lengths.max()) if max_len is None else max_len
    return torch.arange(n, device=lengths.device) > lengths[:, None]


# %% last-token-blocked
"""Your mask blocks the last real token of each sentence: positions count from 0, so the last one of a sentence
of length 3 is 2."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    n = int(lengths.max()) if max_len is None else max_len
    return torch.arange(n, device=lengths.device) >= lengths[:, None] - 1


# %% max-len-ignored
"""Your mask is always as wide as the longest sentence of the batch: a given `max_len` must set the width."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    return torch.arange(int(lengths.max()), device=lengths.device) >= lengths[:, None]


# %% padding-on-the-left
"""Your mask puts the padding in front of the sentence. Padding stands on the right: the first tokens are
real."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    n = int(lengths.max()) if max_len is None else max_len
    return torch.arange(n, device=lengths.device) < n - lengths[:, None]


# %% number-mask
"""Your padding mask holds numbers. Masks on the card are boolean: with numbers `~mask` and `masked_fill` go
wrong."""
def padding_mask(lengths, max_len=None):
    lengths = torch.as_tensor(lengths)
    n = int(lengths.max()) if max_len is None else max_len
    return (torch.arange(n, device=lengths.device) >= lengths[:, None]).float()


# %% lengths-as-list-not-accepted
"""Your `padding_mask` stops when the lengths come as a Python list: they may be a list or a tensor."""
def padding_mask(lengths, max_len=None):
    n = int(lengths.max()) if max_len is None else max_len
    return torch.arange(n, device=lengths.device)[None, :] >= lengths[:, None]


# %% causal-polarity-inverted
"""Your causal mask is True where a query may look: on the card True means blocked, so what is True is the
future."""
def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.ones(T, S, dtype=torch.bool).tril(S - T)


# %% causal-flipped
"""Your causal mask blocks the past: the last query sees only itself, and the first one everything. Query i may
look at keys up to i + (S - T)."""
def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.ones(T, S, dtype=torch.bool).tril(S - T - 1)


# %% causal-diagonal-blocked
"""Your causal mask blocks the token itself. A query may see its own position: the True part begins one step
further to the right."""
def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.ones(T, S, dtype=torch.bool).triu(S - T)


# %% causal-top-left
"""When T and S differ your triangle starts in the wrong corner: the last query must see every key. Which
diagonal depends on S - T."""
def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.ones(T, S, dtype=torch.bool).triu(1)


# %% causal-wrong-sign
"""When T and S differ your triangle moves the wrong way: with more keys than queries the first query sees more,
not less. Look at the sign of T - S."""
def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.ones(T, S, dtype=torch.bool).triu(T - S + 1)


# %% causal-always-square
"""Your causal mask has shape [T, T] whatever S is: it has a row per query and a column per key."""
def causal_mask(T, S=None):
    return torch.ones(T, T, dtype=torch.bool).triu(1)


# %% cross-causal
"""You make cross-attention causal. The source is there from the start, and a target word may look at all of it:
there is no future in it."""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": {"padding"}},
        "decoder": {"decoder_self": {"causal"}},
        "encoder-decoder": {"encoder_self": {"padding"}, "decoder_self": {"causal"}, "cross": {"padding", "causal"}},
    }[architecture]


# %% cross-unmasked
"""You leave cross-attention without a mask: the decoder then looks at the padding of the source. Where do its
keys come from?"""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": {"padding"}},
        "decoder": {"decoder_self": {"causal"}},
        "encoder-decoder": {"encoder_self": {"padding"}, "decoder_self": {"causal"}, "cross": set()},
    }[architecture]


# %% decoder-padding-too
"""You ask for a padding mask in causal self-attention. With padding on the right, what could a real token see
of it? The question is which masks are needed."""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": {"padding"}},
        "decoder": {"decoder_self": {"causal", "padding"}},
        "encoder-decoder": {
            "encoder_self": {"padding"}, "decoder_self": {"causal", "padding"}, "cross": {"padding"},
        },
    }[architecture]


# %% encoder-unmasked
"""You leave the encoder without a mask, as if masks were the decoder's business. In a batch of sentences of
different length, what do its tokens look at?"""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": set()},
        "decoder": {"decoder_self": {"causal"}},
        "encoder-decoder": {"encoder_self": set(), "decoder_self": {"causal"}, "cross": {"padding"}},
    }[architecture]


# %% encoder-causal
"""You make the encoder causal. It reads a sentence that is whole: each word may look in both directions."""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": {"padding", "causal"}},
        "decoder": {"decoder_self": {"causal"}},
        "encoder-decoder": {"encoder_self": {"padding", "causal"}, "decoder_self": {"causal"}, "cross": {"padding"}},
    }[architecture]


# %% decoder-with-cross
"""Your decoder-only model has cross-attention. There is no encoder whose output it could look at: name only the
attentions that the architecture has."""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": {"padding"}},
        "decoder": {"decoder_self": {"causal"}, "cross": {"padding"}},
        "encoder-decoder": {"encoder_self": {"padding"}, "decoder_self": {"causal"}, "cross": {"padding"}},
    }[architecture]


# %% all-attentions-listed
"""You list all three attentions for every architecture, the missing ones with an empty set. Name only those
that the architecture has."""
def masks_for(architecture):
    encoder, decoder = architecture != "decoder", architecture != "encoder"
    return {
        "encoder_self": {"padding"} if encoder else set(),
        "decoder_self": {"causal"} if decoder else set(),
        "cross": {"padding"} if encoder and decoder else set(),
    }


# %% translator-padding-too
"""Your GPT is right, and your translator's decoder has a mask too many: its self-attention is causal as well, and
its padding is on the right as well."""
def masks_for(architecture):
    return {
        "encoder": {"encoder_self": {"padding"}},
        "decoder": {"decoder_self": {"causal"}},
        "encoder-decoder": {
            "encoder_self": {"padding"}, "decoder_self": {"causal", "padding"}, "cross": {"padding"},
        },
    }[architecture]


# %% causal-more-queries-than-keys
"""With more queries than keys your triangle starts in the upper left corner. The rule j > i + (S - T) holds there
too: the first T - S queries see nothing."""
def causal_mask(T, S=None):
    S = T if S is None else S
    return torch.ones(T, S, dtype=torch.bool).triu(max(S - T, 0) + 1)
