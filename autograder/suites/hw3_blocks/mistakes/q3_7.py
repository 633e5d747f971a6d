# %% always-pre-norm
"""norm_first=False gives the same as norm_first=True: you always normalise before the branch. Post-norm takes
the norm of the sum."""
replace("if self.norm_first:", "if True:")

# %% always-post-norm
"""norm_first=True gives the same as norm_first=False: you always take the norm of the sum, as the first
Transformer did. Pre-norm, the default here, normalises what goes into the branch and leaves the sum alone."""
replace("if self.norm_first:", "if False:")

# %% norm-orders-swapped
"""Pre-norm and post-norm have changed places: norm_first=True should normalise first, inside the branch."""
replace("if self.norm_first:", "if not self.norm_first:")

# %% residual-from-the-normalised-input
"""In pre-norm your residual carries the normalised x: you overwrite x with its norm and add the branch to that.
The sum starts from x as it came in; with both branches at zero the layer is the identity."""
replace("x + attend(self.norm1(x))", "self.norm1(x) + attend(self.norm1(x))")
replace("x + think(self.norm2(x))", "self.norm2(x) + think(self.norm2(x))")

# %% branch-normalised-in-post-norm
"""In post-norm you normalise the branch and then add x. There the sum is normalised: the norm is the last thing
that happens."""
replace("self.norm1(x + attend(x))", "x + self.norm1(attend(x))")
replace("self.norm2(x + think(x))", "x + self.norm2(think(x))")

# %% no-residual-around-attention
"""The attention's output replaces x: the first residual is missing. With the attention's weights at zero your
layer forgets its input."""
replace("x + attend(self.norm1(x))", "attend(self.norm1(x))")
replace("x + attend(x)", "attend(x)")

# %% no-residual-around-feed-forward
"""The feed-forward layer's output replaces x: the second residual is missing."""
replace("x + think(self.norm2(x))", "think(self.norm2(x))")
replace("x + think(x)", "think(x)")

# %% second-residual-from-the-start
"""The second residual adds the layer's input, so what attention has found is lost on the straight path. Add to
the result of the first half."""
replace("if self.norm_first:", """start = x
        if self.norm_first:""")
replace("x + think(self.norm2(x))", "start + think(self.norm2(x))")
replace("x + think(x)", "start + think(x)")

# %% one-norm-for-both
"""norm1 is used in both places and norm2 nowhere: norm2 never gets a gradient. The two halves have a norm
each."""
replace("think(self.norm2(x))", "think(self.norm1(x))")
replace("self.norm2(x + think(x))", "self.norm1(x + think(x))")

# %% keys-and-values-not-normalised
"""In pre-norm you normalise the queries only: keys and values are the raw x. In self-attention all three are the
same normalised x."""
replace("def attend(x: Tensor) -> Tensor:", """raw = x

        def attend(x: Tensor) -> Tensor:""")
replace("self.self_attn(x, x, x,", "self.self_attn(x, raw, raw,")

# %% parallel-branches
"""Both of your branches read the layer's input. Here the feed-forward layer comes after attention and reads the
sum."""
replace("""x = x + attend(self.norm1(x))
            return x + think(self.norm2(x))""",
        "return x + attend(self.norm1(x)) + think(self.norm2(x))")
replace("""x = self.norm1(x + attend(x))
        return self.norm2(x + think(x))""",
        "return self.norm2(self.norm1(x + attend(x)) + think(x))")

# %% padding-ignored
"""Changing a padded token changes the outputs at the real ones: the mask never reaches the attention."""
replace("self.self_attn(x, x, x, key_padding_mask=key_padding_mask)", "self.self_attn(x, x, x)")

# %% padding-inverted
"""You attend to the padding only: on the card True means padding, and you turn the mask round on its way to the
attention."""
replace("key_padding_mask=key_padding_mask",
        "key_padding_mask=None if key_padding_mask is None else ~key_padding_mask")

# %% causal-encoder
"""The first token's output does not change when later tokens do: you made the attention causal. An encoder reads
the whole sentence."""
replace("key_padding_mask=key_padding_mask", "key_padding_mask=key_padding_mask, causal=True")

# %% relu-feed-forward price=0.2
"""Your feed-forward layer has a ReLU. The blocks of this course have the exact GELU (`nn.TransformerEncoderLayer`
has a ReLU unless told otherwise: compare with activation="gelu")."""
replace("FeedForward(d_model, d_ff, dropout=dropout)", 'FeedForward(d_model, d_ff, "relu", dropout)')

# %% norm-with-another-eps price=0.1
"""Where a token hardly varies your result is off: your norms have an eps of their own. The card says 1e-5, the
default of `nn.LayerNorm`."""
replace("nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
        "nn.LayerNorm(d_model, eps=1e-12), nn.LayerNorm(d_model, eps=1e-12)")

# %% dropout-on-the-sum price=0.2
"""Your dropout acts on the sum, so in training it tears holes into the residual path too. It belongs on each
branch, before the branch is added."""
replace("self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0])",
        "self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0]")
replace("self.dropout(self.ff(x))", "self.ff(x)")
replace("x + attend(self.norm1(x))", "self.dropout(x + attend(self.norm1(x)))")
replace("x + think(self.norm2(x))", "self.dropout(x + think(self.norm2(x)))")
replace("self.norm1(x + attend(x))", "self.norm1(self.dropout(x + attend(x)))")
replace("self.norm2(x + think(x))", "self.norm2(self.dropout(x + think(x)))")

# %% no-dropout-on-the-branches price=0.2
"""In training your branches are added whole: dropout acts inside attention and feed-forward layer, but not on
the two branches."""
replace("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()")

# %% no-dropout-inside-attention price=0.2
"""Your attention weights are never dropped: the attention was built without the layer's `dropout`."""
replace("MultiHeadAttention(d_model, n_heads, dropout)", "MultiHeadAttention(d_model, n_heads)")

# %% torchs-own-layer price=0.8
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

# %% no-dropout-in-the-feed-forward-layer price=0.2
"""The hidden units of `ff` are never dropped: the feed-forward layer was made without the layer's `dropout`."""
replace("FeedForward(d_model, d_ff, dropout=dropout)", "FeedForward(d_model, d_ff)")

# %% post-norm-by-default price=0.1
"""Without the argument `norm_first` your layer is post-norm; the default is pre-norm, `norm_first=True`."""
replace("norm_first: bool = True", "norm_first: bool = False")

# %% all-padding-attends-to-all price=0.2
"""A row that is all padding attends to its padding: scores of -1e9 everywhere are equal, and the softmax shares them
out. The card asks for an attention of 0 there, so the branch is `o_proj`'s bias."""
replace("def attend(x: Tensor) -> Tensor:", """if key_padding_mask is not None:
            key_padding_mask = key_padding_mask & ~key_padding_mask.all(1, keepdim=True)

        def attend(x: Tensor) -> Tensor:""")

# %% dropout-on-what-a-branch-reads price=0.2
"""In training the input of a branch loses entries, before the branch has seen it. Dropout has four places: the
attention weights, the units of ff, and the output of each branch."""
replace("return self.dropout(self.self_attn", """x = self.dropout(x)
            return self.dropout(self.self_attn""")
replace("self.dropout(self.ff(x))", "self.dropout(self.ff(self.dropout(x)))")

# %% dropout-twice-on-a-branch price=0.2
"""Dropout acts twice on the output of a branch: more of it is lost than asked for, and the rest is scaled up twice."""
replace("self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0])",
        "self.dropout(self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0]))")
replace("self.dropout(self.ff(x))", "self.dropout(self.dropout(self.ff(x)))")

# %% first-residual-normalised
"""In pre-norm the residual around attention carries the normalised x: you overwrite x with norm1 of x and add to
that. The sum starts from x as it came in. (Your second residual is right.)"""
replace("x + attend(self.norm1(x))", "self.norm1(x) + attend(self.norm1(x))")

# %% second-residual-normalised
"""In pre-norm the residual around the feed-forward layer carries the normalised x: you overwrite x with norm2 of x
and add to that. The sum starts from x as it is. (Your first residual is right.)"""
replace("x + think(self.norm2(x))", "self.norm2(x) + think(self.norm2(x))")

# %% norms-swapped
"""norm1 and norm2 have changed places: norm1 belongs to attention, norm2 to the feed-forward layer. Their weights
come by name."""
replace("attend(self.norm1(x))", "attend(self.norm2(x))")
replace("think(self.norm2(x))", "think(self.norm1(x))")
replace("self.norm1(x + attend(x))", "self.norm2(x + attend(x))")
replace("self.norm2(x + think(x))", "self.norm1(x + think(x))")

# %% norms-swapped-in-pre-norm
"""In pre-norm norm1 and norm2 have changed places: norm1 belongs to attention, norm2 to the feed-forward layer.
(Post-norm is right.)"""
replace("attend(self.norm1(x))", "attend(self.norm2(x))")
replace("think(self.norm2(x))", "think(self.norm1(x))")

# %% mask-of-the-first-row
"""Every row of the batch gets the mask of the first one: keep key_padding_mask as [B, N]."""
replace("def attend(x: Tensor)", """if key_padding_mask is not None:
            key_padding_mask = key_padding_mask[:1].expand_as(key_padding_mask)

        def attend(x: Tensor)""")

# %% padding-ignored-in-post-norm price=0.3
"""In post-norm a padded token moves the real ones: there your call of the attention lacks the mask. (Pre-norm is
right.)"""
replace("key_padding_mask=key_padding_mask", "key_padding_mask=key_padding_mask if self.norm_first else None")

# %% padding-ignored-in-pre-norm price=0.3
"""In pre-norm a padded token moves the real ones: there your call of the attention lacks the mask. (Post-norm is
right.)"""
replace("key_padding_mask=key_padding_mask", "key_padding_mask=None if self.norm_first else key_padding_mask")

# %% one-norm-object
"""norm1 and norm2 are one object: whatever is loaded into one stands in the other. Make two, `nn.LayerNorm(d_model)`
each."""
replace("self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)",
        "self.norm1 = self.norm2 = nn.LayerNorm(d_model)")

# %% attention-without-gradients price=0.3
"""The values are right and the gradient is not: no gradient comes back through your attention. Is it detached, or under
no_grad?"""
replace("self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0]",
        "self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0].detach()")

# %% feed-forward-without-gradients price=0.3
"""The values are right and the gradient is not: no gradient comes back through your feed-forward layer. Is it
detached, or under no_grad?"""
replace("self.dropout(self.ff(x))", "self.dropout(self.ff(x)).detach()")

# %% padding-set-to-zero
"""You set the padded tokens to 0 and let the attention look at them: a zero vector takes its share of the weights.
Hand the mask to the attention, which blocks those keys."""
replace("def attend(x: Tensor)", """if key_padding_mask is not None:
            x = x.masked_fill(key_padding_mask[..., None], 0.0)
            key_padding_mask = None

        def attend(x: Tensor)""")

# %% no-dropout-on-the-feed-forward-branch price=0.2
"""In training the feed-forward branch is added whole: dropout belongs on the output of both branches."""
replace("self.dropout(self.ff(x))", "self.ff(x)")

# %% no-dropout-on-the-attention-branch price=0.2
"""In training the attention branch is added whole: dropout belongs on the output of both branches."""
replace("self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0])",
        "self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0]")
