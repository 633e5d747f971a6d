# %% exact-gelu price=0.3
"""Nearly right, and off in the third digit everywhere: your `ff` has the exact GELU. The published model has the tanh
approximation."""
replace(', approximate="tanh")', ")")

# %% positions-of-the-columns price=0.25
"""Right without padding and wrong with it: positions count from column 0. They count from the first real token of the
row."""
replace("places = (places - key_padding_mask.sum(1, keepdim=True)).clamp(min=0)", "pass")

# %% padding-seen price=0.3
"""What stands in the padding changes the real logits: the mask does not reach attention."""
replace("attention(q, k, v, key_padding_mask, causal=True)", "attention(q, k, v, None, causal=True)")

# %% no-causal-mask price=0.6
"""A token sees those after it: the causal mask is missing. Such a model guesses well and writes badly."""
replace("attention(q, k, v, key_padding_mask, causal=True)", "attention(q, k, v, key_padding_mask)")

# %% chunk-mask-from-the-left price=0.25
"""Token by token it is right perhaps, in chunks it is not: the causal mask of a chunk begins in the upper left corner.
The last query of a chunk sees everything so far."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal=True)", """T, S = q.shape[2], k.shape[2]
        later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], -math.inf)
        weights = softargmax(scores)""")

# %% nan-at-padding price=0.2
"""Logits at padding are NaN: a padding token on the left sees nothing, and a softmax over nothing but -inf is 0 / 0."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal=True)", """T, S = q.shape[2], k.shape[2]
        later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -math.inf)
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], -math.inf)
        weights = torch.softmax(scores, -1)""")

# %% cache-starts-at-place-0 price=0.25
"""With a cache every chunk begins at position 0 again. Its tokens stand behind those in the cache."""
replace("torch.arange(past, past + T, device=ids.device)", "torch.arange(T, device=ids.device)")

# %% cache-forgets price=0.35
"""The first chunk is right and later ones are not: your cache does not keep what it was given, so each chunk starts
anew."""
replace("kept.update(k=k, v=v)", "pass")

# %% one-cache-for-all-blocks price=0.3
"""All blocks share one cache, so each reads the others' keys. Every block needs its own."""
replace("return [{} for _ in self.blocks]", "return [{}] * len(self.blocks)")

# %% one-cache-for-all-texts price=0.2
"""Two texts see each other: `new_cache()` gives the same cache each time."""
replace("return [{} for _ in self.blocks]", """if not hasattr(self, "_kept"):
            self._kept = [{} for _ in self.blocks]
        return self._kept""")

# %% everything-again price=0.3
"""The logits are right and nothing is saved: all tokens so far go through the layers at every call. Only the new ones
should."""
replace("past = cache[0][\"k\"].shape[2] if cache and cache[0] else 0", """if cache is not None:
            ids = torch.cat([*cache[0].get("ids", []), ids], 1)
            cache[0]["ids"] = [ids]
        cache, new, T, past = None, T, ids.shape[1], 0""")
replace("return self.final_norm(x) @ self.token_embed.weight.T  # [B, T, V]",
        "return (self.final_norm(x) @ self.token_embed.weight.T)[:, T - new :]")

# %% cache-not-counted price=0.15
"""A text that grows in the cache beyond max_len is not noticed: columns in the cache count too."""
replace("if past + T > self.max_len:", "if T > self.max_len:")
replace("torch.arange(past, past + T, device=ids.device)", "torch.arange(past, past + T, device=ids.device).clamp(max=self.max_len - 1)")

# %% padding-not-counted price=0.15
"""max_len counts columns, and padding is columns: you count the real tokens alone."""
replace("if past + T > self.max_len:", """longest = past + T
        if key_padding_mask is not None:
            longest = int((~key_padding_mask).sum(1).max())
        if longest > self.max_len:""")

# %% final-norm-forgotten price=0.2
"""The last norm is missing: logits are made of final_norm(x)."""
replace("self.final_norm(x) @", "x @")

# %% post-norm price=0.3
"""You norm after adding. In a GPT each branch is normed first, and the road itself stays free."""
replace("x = x + self.dropout(self.attend(self.norm1(x), key_padding_mask, kept))",
        "x = self.norm1(x + self.dropout(self.attend(x, key_padding_mask, kept)))")
replace("(self.norm2(x)), approximate", "(x), approximate")
replace("return x + self.dropout(self.ff[\"fc2\"](hidden))", "return self.norm2(x + self.dropout(self.ff[\"fc2\"](hidden)))")

# %% pytorch-start price=0.1
"""The first loss is far above ln V: embeddings of size 1 make logits of size sqrt(D). Start with N(0, 0.02^2)."""
replace("if \"norm\" not in name:", "if False:")

# %% table-detached-in-the-logits price=0.2
"""The logits teach `token_embed.weight` nothing: they are products with a copy of it, with a detached one, or with a matrix of their
own. Use the parameter itself."""
replace("self.final_norm(x) @ self.token_embed.weight.T", "self.final_norm(x) @ self.token_embed.weight.detach().T")

# %% dropout-inside-ff price=0.15
"""There is dropout inside `ff`, between its two layers. Here its branch is dropped out as a whole, and nothing inside."""
replace("return x + self.dropout(self.ff[\"fc2\"](hidden))", "return x + self.dropout(self.ff[\"fc2\"](self.dropout(hidden)))")

# %% embeddings-not-dropped price=0.15
"""The sum of the embeddings is not dropped out in training mode."""
replace("x = self.dropout(self.token_embed(ids) + self.position_embed(places))",
        "x = self.token_embed(ids) + self.position_embed(places)")

# %% attention-weights-not-dropped price=0.15
"""The attention weights are not dropped out in training mode."""
replace("heads = F.dropout(weights, mha.dropout, self.training) @ v", "heads = weights @ v")

# %% paddings-of-the-first-row price=0.3
"""The number of paddings of the first row is taken off the positions of every row. Each row has its own."""
replace("key_padding_mask.sum(1, keepdim=True)", "key_padding_mask[0].sum()")

# %% old-columns-of-the-mask-forgotten price=0.3
"""With a cache the padding among the older tokens is seen again: you use the mask's new columns alone. The mask covers all tokens
so far, and so do the keys."""
replace("heads, weights = attention(q, k, v, key_padding_mask, causal=True)", """if key_padding_mask is not None:
            key_padding_mask = torch.cat([torch.zeros_like(key_padding_mask[:, : k.shape[2] - q.shape[2]]), key_padding_mask[:, -q.shape[2] :]], 1)
        heads, weights = attention(q, k, v, key_padding_mask, causal=True)""")
