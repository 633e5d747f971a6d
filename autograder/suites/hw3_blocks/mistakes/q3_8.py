# %% not-causal
"""A later token changes earlier outputs: your self-attention sees the future. In a decoder it is causal."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% cross-attention-causal
"""Your cross-attention is causal too, so the first words see only part of the source. The whole source is known
before the first word is written: only self-attention is causal."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask, causal=True)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% causal-on-the-wrong-attention
"""The causal mask sits on the cross-attention, and your self-attention sees the future. It is the other way
round."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask, causal=True)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% queries-and-keys-swapped
"""In your cross-attention the memory asks and the decoder answers, so the result has the memory's length. The
queries come from the decoder; keys and values from the memory."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(memory, x, x)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% memory-never-read
"""Another memory gives the same output: your second attention looks at the decoder's own tokens. Its keys and
values come from the memory."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, x, x)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% memory-normalised
"""In pre-norm you send the memory through norm2 as well. The memory is taken as it is (the encoder has normalised
it already); norm2 belongs to the queries."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), self.norm2(memory), memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% memory-padding-ignored
"""Changing a padded place of the memory changes the outputs: memory_padding_mask never reaches the
cross-attention."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% memory-padding-inverted
"""You look up the padding of the memory and nothing else: on the card True means padding."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        mask = None if mask is None else ~mask
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% memory-mask-on-self-attention
"""memory_padding_mask says which places of the *memory* are padding, and you give it to the self-attention, which
has other keys. When the two lengths agree nothing fails, and the wrong keys are hidden."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, mask):
        return self.dropout(self.self_attn(x, x, x, mask, causal=True)[0])

    def look_up(self, x, memory):
        return self.dropout(self.cross_attn(x, memory, memory)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), memory_padding_mask)
            x = x + self.look_up(self.norm2(x), memory)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x, memory_padding_mask))
        x = self.norm2(x + self.look_up(x, memory))
        return self.norm3(x + self.think(x))


# %% cross-attention-first
"""You look at the memory before you look at yourself. The order is self-attention, cross-attention,
feed-forward."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            x = x + self.attend(self.norm1(x))
            return x + self.think(self.norm3(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        x = self.norm1(x + self.attend(x))
        return self.norm3(x + self.think(x))


# %% norms-in-another-order
"""norm2 and norm3 have changed places: norm1 is for self-attention, norm2 for cross-attention, norm3 for the
feed-forward layer."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm3(x), memory, memory_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm3(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm2(x + self.think(x))


# %% no-residual-around-cross-attention
"""The cross-attention's output replaces x: the residual in the middle is missing."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% always-pre-norm
"""norm_first=False gives the same as norm_first=True: you always normalise before the branch. Post-norm takes
the norm of the sum."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        x = x + self.attend(self.norm1(x))
        x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
        return x + self.think(self.norm3(x))


# %% always-post-norm
"""norm_first=True gives the same as norm_first=False: you always take the norm of the sum. Pre-norm, the default
here, normalises what goes into the branch and leaves the sum alone."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% residual-from-the-normalised-input
"""In pre-norm your residual carries the normalised x: you overwrite x with its norm and add the branch to that.
The sum starts from x as it came in."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = self.norm1(x)
            x = x + self.attend(x)
            x = self.norm2(x)
            x = x + self.look_up(x, memory, memory_padding_mask)
            x = self.norm3(x)
            return x + self.think(x)
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% one-attention-for-both
"""self_attn is used in both places and cross_attn nowhere: the weights of cross_attn change nothing and never get
a gradient."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.self_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% relu-feed-forward
"""Your feed-forward layer has a ReLU. The blocks of this course have the exact GELU."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, "relu", dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        return self.dropout(self.self_attn(x, x, x, causal=True)[0])

    def look_up(self, x, memory, mask):
        return self.dropout(self.cross_attn(x, memory, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% no-dropout-on-the-branches
"""In training your branches are added whole: dropout acts inside attention and feed-forward layer, but not on
the three branches."""
class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def attend(self, x):
        return self.self_attn(x, x, x, causal=True)[0]

    def look_up(self, x, memory, mask):
        return self.cross_attn(x, memory, memory, mask)[0]

    def think(self, x):
        return self.ff(x)

    def forward(self, x, memory, memory_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            x = x + self.look_up(self.norm2(x), memory, memory_padding_mask)
            return x + self.think(self.norm3(x))
        x = self.norm1(x + self.attend(x))
        x = self.norm2(x + self.look_up(x, memory, memory_padding_mask))
        return self.norm3(x + self.think(x))


# %% fused-kernel-in-self-attention
"""Your self-attention calls F.scaled_dot_product_attention, which this question rules out: use the MultiHeadAttention
that you have."""


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, "gelu", dropout)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.drop, self.norm_first = nn.Dropout(dropout), norm_first

    def look_back(self, x):
        attn = self.self_attn
        q, k, v = (split_heads(p(x), attn.n_heads) for p in (attn.q_proj, attn.k_proj, attn.v_proj))
        p = attn.dropout if self.training else 0.0
        return attn.o_proj(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)))

    def forward(self, x, memory, memory_padding_mask=None):
        def look(y):
            return self.cross_attn(y, memory, memory, memory_padding_mask)[0]

        for norm, branch in ((self.norm1, self.look_back), (self.norm2, look), (self.norm3, self.ff)):
            x = x + self.drop(branch(norm(x))) if self.norm_first else norm(x + self.drop(branch(x)))
        return x


# %% no-dropout-in-the-feed-forward-layer
"""The hidden units of `ff` are never dropped: the feed-forward layer was made without the layer's `dropout`."""
class DecoderLayer(DecoderLayer):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__(d_model, n_heads, d_ff, dropout, norm_first)
        self.ff = FeedForward(d_model, d_ff)


# %% post-norm-by-default
"""Without the argument `norm_first` your layer is post-norm; the default is pre-norm, `norm_first=True`."""
class DecoderLayer(DecoderLayer):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, n_heads, d_ff, dropout, norm_first)


# %% mask-of-the-first-row
"""Every row of the batch gets the mask of the first one: keep memory_padding_mask as [B, S]."""
class DecoderLayer(DecoderLayer):
    def forward(self, x, memory, memory_padding_mask=None):
        if memory_padding_mask is not None:
            memory_padding_mask = memory_padding_mask[:1].expand_as(memory_padding_mask)
        return super().forward(x, memory, memory_padding_mask)


# %% dropout-on-the-memory
"""In training the memory loses entries before the cross-attention reads it. Dropout goes to both attentions, to ff and
onto each branch; the memory is taken as it is."""
class DecoderLayer(DecoderLayer):
    def forward(self, x, memory, memory_padding_mask=None):
        return super().forward(x, self.dropout(memory), memory_padding_mask)
