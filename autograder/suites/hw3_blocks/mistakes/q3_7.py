# %% always-pre-norm
"""norm_first=False gives the same as norm_first=True: you always normalise before the branch. Post-norm takes
the norm of the sum."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        x = x + self.attend(self.norm1(x), key_padding_mask)
        return x + self.think(self.norm2(x))


# %% always-post-norm
"""norm_first=True gives the same as norm_first=False: you always take the norm of the sum, as the first
Transformer did. Pre-norm, the default here, normalises what goes into the branch and leaves the sum alone."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% norm-orders-swapped
"""Pre-norm and post-norm have changed places: norm_first=True should normalise first, inside the branch."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if not self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% residual-from-the-normalised-input
"""In pre-norm your residual carries the normalised x: you overwrite x with its norm and add the branch to that.
The sum starts from x as it came in; with both branches at zero the layer is the identity."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = self.norm1(x)
            x = x + self.attend(x, key_padding_mask)
            x = self.norm2(x)
            return x + self.think(x)
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% branch-normalised-in-post-norm
"""In post-norm you normalise the branch and then add x. There the sum is normalised: the norm is the last thing
that happens."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = x + self.norm1(self.attend(x, key_padding_mask))
        return x + self.norm2(self.think(x))


# %% no-residual-around-attention
"""The attention's output replaces x: the first residual is missing. With the attention's weights at zero your
layer forgets its input."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% no-residual-around-feed-forward
"""The feed-forward layer's output replaces x: the second residual is missing."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(self.think(x))


# %% second-residual-from-the-start
"""The second residual adds the layer's input, so what attention has found is lost on the straight path. Add to
the result of the first half."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            h = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(h))
        h = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(h))


# %% one-norm-for-both
"""norm1 is used in both places and norm2 nowhere: norm2 never gets a gradient. The two halves have a norm
each."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm1(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm1(x + self.think(x))


# %% keys-and-values-not-normalised
"""In pre-norm you normalise the queries only: keys and values are the raw x. In self-attention all three are the
same normalised x."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            out, _ = self.self_attn(self.norm1(x), x, x, key_padding_mask)
            x = x + self.dropout(out)
            return x + self.think(self.norm2(x))
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        x = self.norm1(x + self.dropout(out))
        return self.norm2(x + self.think(x))


# %% parallel-branches
"""Both of your branches read the layer's input. Here the feed-forward layer comes after attention and reads the
sum."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            return x + self.attend(self.norm1(x), key_padding_mask) + self.think(self.norm2(x))
        return self.norm2(self.norm1(x + self.attend(x, key_padding_mask)) + self.think(x))


# %% padding-ignored
"""Changing a padded token changes the outputs at the real ones: the mask never reaches the attention."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% padding-inverted
"""You attend to the padding only: on the card True means padding, and you turn the mask round on its way to the
attention."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        seen = None if key_padding_mask is None else ~key_padding_mask
        out, _ = self.self_attn(x, x, x, seen)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% causal-encoder
"""The first token's output does not change when later tokens do: you made the attention causal. An encoder reads
the whole sentence."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask, causal=True)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% relu-feed-forward
"""Your feed-forward layer has a ReLU. The blocks of this course have the exact GELU (`nn.TransformerEncoderLayer`
has a ReLU unless told otherwise: compare with activation="gelu")."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, "relu", dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% norm-with-another-eps
"""Where a token hardly varies your result is off: your norms have an eps of their own. The card says 1e-5, the
default of `nn.LayerNorm`."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model, eps=1e-12)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% dropout-on-the-sum
"""Your dropout acts on the sum, so in training it tears holes into the residual path too. It belongs on each
branch, before the branch is added."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return out

    def think(self, x):
        return self.ff(x)

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = self.dropout(x + self.attend(self.norm1(x), key_padding_mask))
            return self.dropout(x + self.think(self.norm2(x)))
        x = self.norm1(self.dropout(x + self.attend(x, key_padding_mask)))
        return self.norm2(self.dropout(x + self.think(x)))


# %% no-dropout-on-the-branches
"""In training your branches are added whole: dropout acts inside attention and feed-forward layer, but not on
the two branches."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return out

    def think(self, x):
        return self.ff(x)

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% no-dropout-inside-attention
"""Your attention weights are never dropped: the attention was built without the layer's `dropout`."""
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, n_heads)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x, key_padding_mask):
        out, _ = self.self_attn(x, x, x, key_padding_mask)
        return self.dropout(out)

    def think(self, x):
        return self.dropout(self.ff(x))

    def forward(self, x, key_padding_mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), key_padding_mask)
            return x + self.think(self.norm2(x))
        x = self.norm1(x + self.attend(x, key_padding_mask))
        return self.norm2(x + self.think(x))


# %% torchs-own-layer
"""Inside your layer works nn.TransformerEncoderLayer, which this question rules out: it is what you are to build, from
self_attn, ff and the two norms."""


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, "gelu", dropout)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.options = {"dropout": dropout, "norm_first": norm_first}

    def forward(self, x, key_padding_mask=None):
        attn, ff = self.self_attn, self.ff
        d_ff, d_model = ff.fc1.weight.shape
        theirs = nn.TransformerEncoderLayer(d_model, attn.n_heads, d_ff, activation="gelu", batch_first=True,
                                            **self.options).to(x)
        theirs.train(self.training)
        state = {}
        for kind in ("weight", "bias"):
            joined = torch.cat([getattr(p, kind) for p in (attn.q_proj, attn.k_proj, attn.v_proj)])
            state[f"self_attn.in_proj_{kind}"] = joined
            parts = {"self_attn.out_proj": attn.o_proj, "linear1": ff.fc1, "linear2": ff.fc2, "norm1": self.norm1,
                     "norm2": self.norm2}
            state |= {f"{name}.{kind}": getattr(part, kind) for name, part in parts.items()}
        return torch.func.functional_call(theirs, state, (x,), {"src_key_padding_mask": key_padding_mask})


# %% no-dropout-in-the-feed-forward-layer
"""The hidden units of `ff` are never dropped: the feed-forward layer was made without the layer's `dropout`."""
class EncoderLayer(EncoderLayer):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=True):
        super().__init__(d_model, n_heads, d_ff, dropout, norm_first)
        self.ff = FeedForward(d_model, d_ff)


# %% post-norm-by-default
"""Without the argument `norm_first` your layer is post-norm; the default is pre-norm, `norm_first=True`."""
class EncoderLayer(EncoderLayer):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, n_heads, d_ff, dropout, norm_first)


# %% all-padding-attends-to-all
"""A row that is all padding attends to its padding: scores of -1e9 everywhere are equal, and the softmax shares them
out. The card asks for an attention of 0 there, so the branch is `o_proj`'s bias."""
class EncoderLayer(EncoderLayer):
    def forward(self, x, key_padding_mask=None):
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask & ~key_padding_mask.all(1, keepdim=True)
        return super().forward(x, key_padding_mask)


# %% dropout-on-what-a-branch-reads
"""In training the input of a branch loses entries, before the branch has seen it. Dropout has four places: the attention
weights, the units of ff, and the output of each branch."""
class EncoderLayer(EncoderLayer):
    def forward(self, x, key_padding_mask=None):
        def attend(x):
            x = self.dropout(x)
            return self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0])

        def think(x):
            return self.dropout(self.ff(self.dropout(x)))

        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + think(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + think(x))


# %% dropout-twice-on-a-branch
"""Dropout acts twice on the output of a branch: more of it is lost than asked for, and the rest is scaled up twice."""
class EncoderLayer(EncoderLayer):
    def forward(self, x, key_padding_mask=None):
        def attend(x):
            return self.dropout(self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0]))

        def think(x):
            return self.dropout(self.dropout(self.ff(x)))

        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + think(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + think(x))
