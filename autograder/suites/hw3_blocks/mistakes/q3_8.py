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

# %% memory-never-read price=0.6
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

# %% relu-feed-forward price=0.2
"""Your feed-forward layer has a ReLU. The blocks of this course have the exact GELU."""
replace("FeedForward(d_model, d_ff, dropout=dropout)", 'FeedForward(d_model, d_ff, "relu", dropout)')

# %% no-dropout-on-the-branches price=0.2
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

# %% no-dropout-in-the-feed-forward-layer price=0.2
"""The hidden units of `ff` are never dropped: the feed-forward layer was made without the layer's `dropout`."""
replace("FeedForward(d_model, d_ff, dropout=dropout)", "FeedForward(d_model, d_ff)")

# %% post-norm-by-default price=0.1
"""Without the argument `norm_first` your layer is post-norm; the default is pre-norm, `norm_first=True`."""
replace("norm_first: bool = True", "norm_first: bool = False")

# %% mask-of-the-first-row
"""Every row of the batch gets the mask of the first one: keep memory_padding_mask as [B, S]."""
replace("def attend(x: Tensor)", """if memory_padding_mask is not None:
            memory_padding_mask = memory_padding_mask[:1].expand_as(memory_padding_mask)

        def attend(x: Tensor)""")

# %% dropout-on-the-memory price=0.2
"""In training the memory loses entries before the cross-attention reads it. Dropout goes to both attentions, to ff and
onto each branch; the memory is taken as it is."""
replace("def attend(x: Tensor)", """memory = self.dropout(memory)

        def attend(x: Tensor)""")

# %% memory-mask-on-both price=0.3
"""memory_padding_mask goes to the self-attention as well where it fits. It says which places of the *memory* are
padding; the target's own keys are other ones."""
replace("self.self_attn(x, x, x, causal=True)", """self.self_attn(
                x, x, x, memory_padding_mask if memory.shape[1] == x.shape[1] else None, causal=True
            )""")

# %% memory-detached price=0.3
"""The values are right, and no gradient reaches the memory: it is detached. The encoder learns through it and through
nothing else."""
replace("self.cross_attn(x, memory, memory, ", "self.cross_attn(x, memory.detach(), memory.detach(), ")

# %% memory-of-the-first-row
"""Every row of the batch looks at the memory of the first one: keep the memory as [B, S, D]."""
replace("self.cross_attn(x, memory, memory, ",
        "self.cross_attn(x, memory[:1].expand_as(memory), memory[:1].expand_as(memory), ")

# %% cross-residual-from-the-start
"""The residual around cross-attention starts from the layer's input, so what self-attention has found is lost on the
straight road. Add to the result of the first branch."""
replace("def attend(x: Tensor)", """start = x

        def attend(x: Tensor)""")
replace("x + look(self.norm2(x))", "start + look(self.norm2(x))")
replace("x + look(x)", "start + look(x)")

# %% cross-norm-forgotten-in-post-norm price=0.3
"""In post-norm the sum around cross-attention is not normed: norm2 stands around it, as norm1 and norm3 stand around
the others."""
replace("self.norm2(x + look(x))", "x + look(x)")

# %% cross-norm-forgotten-in-pre-norm price=0.3
"""In pre-norm the queries of cross-attention are not normed: norm2 belongs there."""
replace("look(self.norm2(x))", "look(x)")

# %% not-causal-in-post-norm price=0.3
"""In post-norm a later token changes earlier outputs: there your self-attention lacks the causal mask. (Pre-norm is
right.)"""
replace("causal=True", "causal=self.norm_first")

# %% not-causal-in-pre-norm price=0.3
"""In pre-norm a later token changes earlier outputs: there your self-attention lacks the causal mask. (Post-norm is
right.)"""
replace("causal=True", "causal=not self.norm_first")

# %% dropout-on-the-input price=0.2
"""In training x loses entries before the first branch, and so on the residual road too. Dropout goes onto the output
of each branch and into the parts, nowhere else."""
replace("def attend(x: Tensor)", """x = self.dropout(x)

        def attend(x: Tensor)""")

# %% norms-swapped-in-pre-norm
"""In pre-norm norm2 and norm3 have changed places: norm2 is for cross-attention, norm3 for the feed-forward layer.
(Post-norm is right.)"""
replace("look(self.norm2(x))", "look(self.norm3(x))")
replace("think(self.norm3(x))", "think(self.norm2(x))")

# %% memory-padding-ignored-in-pre-norm price=0.3
"""In pre-norm the padding of the memory is looked at: there your cross-attention lacks memory_padding_mask.
(Post-norm is right.)"""
replace("key_padding_mask=memory_padding_mask", "key_padding_mask=None if self.norm_first else memory_padding_mask")

# %% memory-padding-ignored-in-post-norm price=0.3
"""In post-norm the padding of the memory is looked at: there your cross-attention lacks memory_padding_mask.
(Pre-norm is right.)"""
replace("key_padding_mask=memory_padding_mask", "key_padding_mask=memory_padding_mask if self.norm_first else None")
