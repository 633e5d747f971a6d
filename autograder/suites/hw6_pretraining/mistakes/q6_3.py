# %% pre-norm price=0.3
"""Your layers are pre-norm, the default of EncoderLayer. BERT is post-norm: `norm_first=False`."""
replace(", dropout, norm_first=False)", ", dropout)")

# %% no-embedding-norm price=0.3
"""The sum of the embeddings goes into the layers as it is. `embed_norm` comes first."""
replace("self.dropout(self.embed_norm(x))", "self.dropout(x)")

# %% segments-forgotten price=0.3
"""The segments have no effect: both sentences look alike to the model. Add `segment_embed` to the sum."""
replace("self.token_embed(ids) + self.position_embed(places) + self.segment_embed(segments)", "self.token_embed(ids) + self.position_embed(places) + 0 * self.segment_embed(segments)")

# %% padding-not-masked price=0.35
"""The mask does not reach the layers: real tokens look at padding."""
replace("x = layer(x, key_padding_mask)", "x = layer(x)")

# %% no-tanh price=0.25
"""The pooler's output goes into the pair head without a tanh."""
replace("self.nsp(torch.tanh(self.pooler(h[:, 0])))", "self.nsp(self.pooler(h[:, 0]))")

# %% mean-pooled price=0.25
"""Your pair head reads the mean over all places. It reads the first one, where [CLS] stands."""
replace("self.pooler(h[:, 0])", "self.pooler(h.mean(1))")

# %% approximate-gelu price=0.2
"""Off by a thousandth: the word head has the tanh approximation of GELU. The exact one is asked for."""
replace("F.gelu(self.mlm_dense(h))", 'F.gelu(self.mlm_dense(h), approximate="tanh")')

# %% no-bias-for-words price=0.25
"""`mlm_bias` is never added to the word logits."""
replace(" + self.mlm_bias, self.nsp", ", self.nsp")

# %% norm-before-gelu price=0.3
"""In the word head you take the norm before the GELU. It is dense, GELU, norm."""
replace("self.mlm_norm(F.gelu(self.mlm_dense(h)))", "F.gelu(self.mlm_norm(self.mlm_dense(h)))")

# %% pytorchs-own-start price=0.1
"""Weights start as PyTorch makes them, embeddings with variance 1: the first loss is far above ln V. Start embeddings and linear
weights as N(0, 0.02^2), biases at 0."""
replace("nn.init.normal_(part.weight, std=0.02)", "pass")

# %% pair-columns-swapped price=0.2
"""The columns of the pair logits have changed places: column 0 is "is next"."""
replace("self.nsp(torch.tanh(self.pooler(h[:, 0])))", "self.nsp(torch.tanh(self.pooler(h[:, 0]))).flip(-1)")

# %% long-inputs-cut price=0.1
"""Inputs longer than max_len do not raise the ValueError that is asked for: look at their length first, before a table is
read or anything is cut."""
replace('raise ValueError(f"{N} tokens are more than the {longest} that this model has positions for")', "ids, N = ids[:, :longest], longest")

# %% no-dropout-on-embeddings price=0.15
"""There is no dropout on the embeddings. It comes after `embed_norm`."""
replace("self.dropout(self.embed_norm(x))", "self.embed_norm(x)")

# %% masked-in-the-first-layer-only price=0.25
"""Padding is masked in the first layer and seen in later ones. Give the mask to every layer."""
replace("for layer in self.layers:\n            x = layer(x, key_padding_mask)", "for i, layer in enumerate(self.layers):\n            x = layer(x, key_padding_mask if i == 0 else None)")

# %% mask-of-the-first-row price=0.3
"""The first row's mask is used for all rows: those with more padding see it, those with less lose real tokens. Each row has its
own."""
replace("x = layer(x, key_padding_mask)", "x = layer(x, None if key_padding_mask is None else key_padding_mask[:1].expand(len(x), -1))")

# %% mask-upside-down price=0.3
"""Your mask works upside down: the model looks at padding alone and at no real token. True = padding."""
replace("x = layer(x, key_padding_mask)", "x = layer(x, None if key_padding_mask is None else ~key_padding_mask)")

# %% all-of-segment-0 price=0.3
"""The segments that are given are not used: every token gets the vector of segment 0. Look them up in `segment_embed`."""
replace("self.segment_embed(segments)", "self.segment_embed(torch.zeros_like(ids))")

# %% table-detached-in-the-head price=0.2
"""The word logits teach `token_embed.weight` nothing: they are products with a copy of it, with a detached one, or with a matrix
of their own. Use the parameter itself."""
replace("guess @ self.token_embed.weight.T", "guess @ self.token_embed.weight.detach().T")

# %% positions-frozen price=0.2
"""The positions get no gradient: they are frozen. In BERT they are learned."""
replace("self.segment_embed = nn.Embedding(2, d_model)", "self.segment_embed = nn.Embedding(2, d_model)\n        self.position_embed.weight.requires_grad_(False)")
