# %% not-causal
"""A later token changes earlier outputs: your self-attention sees the future. In a decoder it is causal."""
replace("self.self_attn(x, x, x, causal=True)", "self.self_attn(x, x, x)")

# %% cross-attention-causal
"""Your cross-attention is causal too, so the first words see only part of the source. The whole source is known
before the first word is written: only self-attention is causal."""
replace("key_padding_mask=memory_padding_mask", "key_padding_mask=memory_padding_mask, causal=True")

# %% causal-on-the-wrong-attention
"""The causal mask sits on the cross-attention, and your self-attention sees the future. It is the other way
round."""
replace("self.self_attn(x, x, x, causal=True)", "self.self_attn(x, x, x)")
replace("key_padding_mask=memory_padding_mask", "key_padding_mask=memory_padding_mask, causal=True")

# %% queries-and-keys-swapped
"""In your cross-attention the memory asks and the decoder answers, so the result has the memory's length. The
queries come from the decoder; keys and values from the memory."""
replace("self.cross_attn(x, memory, memory, key_padding_mask=memory_padding_mask)", "self.cross_attn(memory, x, x)")

# %% memory-never-read
"""Another memory gives the same output: your second attention looks at the decoder's own tokens. Its keys and
values come from the memory."""
replace("self.cross_attn(x, memory, memory, key_padding_mask=memory_padding_mask)", "self.cross_attn(x, x, x)")

# %% memory-normalised
"""In pre-norm you send the memory through norm2 as well. The memory is taken as it is (the encoder has normalised
it already); norm2 belongs to the queries."""
replace("self.cross_attn(x, memory, memory, ", "self.cross_attn(x, lasting, lasting, ")
replace("def attend(x: Tensor)", """lasting = self.norm2(memory) if self.norm_first else memory

        def attend(x: Tensor)""")

# %% memory-padding-ignored
"""Changing a padded place of the memory changes the outputs: memory_padding_mask never reaches the
cross-attention."""
replace(", key_padding_mask=memory_padding_mask)", ")")

# %% memory-padding-inverted
"""You look up the padding of the memory and nothing else: on the card True means padding."""
replace("key_padding_mask=memory_padding_mask",
        "key_padding_mask=None if memory_padding_mask is None else ~memory_padding_mask")

# %% memory-mask-on-self-attention
"""memory_padding_mask says which places of the *memory* are padding, and you give it to the self-attention, which
has other keys. When the two lengths agree nothing fails, and the wrong keys are hidden."""
replace("self.self_attn(x, x, x, causal=True)", "self.self_attn(x, x, x, memory_padding_mask, causal=True)")
replace(", key_padding_mask=memory_padding_mask)", ")")

# %% cross-attention-first
"""You look at the memory before you look at yourself. The order is self-attention, cross-attention,
feed-forward."""
replace("""x = x + attend(self.norm1(x))
            x = x + look(self.norm2(x))""",
        """x = x + look(self.norm2(x))
            x = x + attend(self.norm1(x))""")
replace("""x = self.norm1(x + attend(x))
        x = self.norm2(x + look(x))""",
        """x = self.norm2(x + look(x))
        x = self.norm1(x + attend(x))""")

# %% norms-in-another-order
"""norm2 and norm3 have changed places: norm1 is for self-attention, norm2 for cross-attention, norm3 for the
feed-forward layer."""
replace("self.norm1, self.norm2, self.norm3 =", "self.norm1, self.norm3, self.norm2 =")
replace("look(self.norm2(x))", "look(self.norm3(x))")
replace("think(self.norm3(x))", "think(self.norm2(x))")
replace("self.norm2(x + look(x))", "self.norm3(x + look(x))")
replace("self.norm3(x + think(x))", "self.norm2(x + think(x))")

# %% no-residual-around-cross-attention
"""The cross-attention's output replaces x: the residual in the middle is missing."""
replace("x + look(self.norm2(x))", "look(self.norm2(x))")
replace("x + look(x)", "look(x)")

# %% always-pre-norm
"""norm_first=False gives the same as norm_first=True: you always normalise before the branch. Post-norm takes
the norm of the sum."""
replace("if self.norm_first:", "if True:")

# %% always-post-norm
"""norm_first=True gives the same as norm_first=False: you always take the norm of the sum. Pre-norm, the default
here, normalises what goes into the branch and leaves the sum alone."""
replace("if self.norm_first:", "if False:")

# %% residual-from-the-normalised-input
"""In pre-norm your residual carries the normalised x: you overwrite x with its norm and add the branch to that.
The sum starts from x as it came in."""
replace("x + attend(self.norm1(x))", "self.norm1(x) + attend(self.norm1(x))")
replace("x + look(self.norm2(x))", "self.norm2(x) + look(self.norm2(x))")
replace("x + think(self.norm3(x))", "self.norm3(x) + think(self.norm3(x))")

# %% one-attention-for-both
"""self_attn is used in both places and cross_attn nowhere: the weights of cross_attn change nothing and never get
a gradient."""
replace("self.cross_attn(x, memory, memory, ", "self.self_attn(x, memory, memory, ")

# %% relu-feed-forward
"""Your feed-forward layer has a ReLU. The blocks of this course have the exact GELU."""
replace("FeedForward(d_model, d_ff, dropout=dropout)", 'FeedForward(d_model, d_ff, "relu", dropout)')

# %% no-dropout-on-the-branches
"""In training your branches are added whole: dropout acts inside attention and feed-forward layer, but not on
the three branches."""
replace("self.dropout = nn.Dropout(dropout)", "self.dropout = nn.Identity()")

# %% fused-kernel-in-self-attention
"""Your self-attention calls F.scaled_dot_product_attention, which this question rules out: use the MultiHeadAttention
that you have."""
replace("return self.dropout(self.self_attn(x, x, x, causal=True)[0])", """attn = self.self_attn
            q, k, v = (split_heads(p(x), attn.n_heads) for p in (attn.q_proj, attn.k_proj, attn.v_proj))
            p = attn.dropout if self.training else 0.0
            heads = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
            return self.dropout(attn.o_proj(merge_heads(heads)))""")

# %% no-dropout-in-the-feed-forward-layer
"""The hidden units of `ff` are never dropped: the feed-forward layer was made without the layer's `dropout`."""
replace("FeedForward(d_model, d_ff, dropout=dropout)", "FeedForward(d_model, d_ff)")

# %% post-norm-by-default
"""Without the argument `norm_first` your layer is post-norm; the default is pre-norm, `norm_first=True`."""
replace("norm_first: bool = True", "norm_first: bool = False")

# %% mask-of-the-first-row
"""Every row of the batch gets the mask of the first one: keep memory_padding_mask as [B, S]."""
replace("def attend(x: Tensor)", """if memory_padding_mask is not None:
            memory_padding_mask = memory_padding_mask[:1].expand_as(memory_padding_mask)

        def attend(x: Tensor)""")

# %% dropout-on-the-memory
"""In training the memory loses entries before the cross-attention reads it. Dropout goes to both attentions, to ff and
onto each branch; the memory is taken as it is."""
replace("def attend(x: Tensor)", """memory = self.dropout(memory)

        def attend(x: Tensor)""")
