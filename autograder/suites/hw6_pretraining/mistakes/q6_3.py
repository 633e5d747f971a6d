# %% pre-norm
"""Your layers are pre-norm, the default of EncoderLayer. BERT is post-norm: `norm_first=False`."""
replace(", dropout, norm_first=False)", ", dropout)")

# %% no-embedding-norm
"""The sum of the embeddings goes into the layers as it is. `embed_norm` comes first."""
replace("self.dropout(self.embed_norm(x))", "self.dropout(x)")

# %% segments-forgotten
"""The segments have no effect: both sentences look alike to the model. Add `segment_embed` to the sum."""
replace("self.token_embed(ids) + self.position_embed(places) + self.segment_embed(segments)", "self.token_embed(ids) + self.position_embed(places) + 0 * self.segment_embed(segments)")

# %% padding-not-masked
"""The mask does not reach the layers: real tokens look at padding."""
replace("x = layer(x, key_padding_mask)", "x = layer(x)")

# %% no-tanh
"""The pooler's output goes into the pair head without a tanh."""
replace("self.nsp(torch.tanh(self.pooler(h[:, 0])))", "self.nsp(self.pooler(h[:, 0]))")

# %% mean-pooled
"""Your pair head reads the mean over all places. It reads the first one, where [CLS] stands."""
replace("self.pooler(h[:, 0])", "self.pooler(h.mean(1))")

# %% approximate-gelu
"""Off by a thousandth: the word head has the tanh approximation of GELU. The exact one is asked for."""
replace("F.gelu(self.mlm_dense(h))", 'F.gelu(self.mlm_dense(h), approximate="tanh")')

# %% no-bias-for-words
"""`mlm_bias` is never added to the word logits."""
replace(" + self.mlm_bias, self.nsp", ", self.nsp")

# %% norm-before-gelu
"""In the word head you take the norm before the GELU. It is dense, GELU, norm."""
replace("self.mlm_norm(F.gelu(self.mlm_dense(h)))", "F.gelu(self.mlm_norm(self.mlm_dense(h)))")

# %% pytorchs-own-start
"""Weights start as PyTorch makes them, embeddings with variance 1: the first loss is far above ln V. Start embeddings and linear
weights as N(0, 0.02^2), biases at 0."""
replace("nn.init.normal_(part.weight, std=0.02)", "pass")

# %% pair-columns-swapped
"""The columns of the pair logits have changed places: column 0 is "is next"."""
replace("self.nsp(torch.tanh(self.pooler(h[:, 0])))", "self.nsp(torch.tanh(self.pooler(h[:, 0]))).flip(-1)")

# %% long-inputs-cut
"""Inputs longer than max_len are cut without a word. That is a ValueError: nobody would notice the lost text."""
replace('raise ValueError(f"{N} tokens are more than the {longest} that this model has positions for")', "ids, N = ids[:, :longest], longest")

# %% no-dropout-on-embeddings
"""There is no dropout on the embeddings. It comes after `embed_norm`."""
replace("self.dropout(self.embed_norm(x))", "self.embed_norm(x)")
