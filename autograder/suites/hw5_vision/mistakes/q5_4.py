# %% residual-around-the-attention price=0.3
"""Your result is off by about the size of the probe: you add the probe to what it found. The probe is a question,
not a part of the answer; the only residual road runs around the MLP."""
replace("self.attn(probe, x, x, key_padding_mask)[0][:, 0]",
        "(probe + self.attn(probe, x, x, key_padding_mask)[0])[:, 0]")

# %% residual-forgotten price=0.3
"""You return what the MLP gives, alone: the residual road around norm and MLP is missing."""
replace("return z + self.mlp(self.norm(z))", "return self.mlp(self.norm(z))")

# %% norm-before-the-attention price=0.25
"""You normalise the tokens on their way into the attention, and the MLP gets its input without a norm. The tokens
go in as they are; `norm` stands between attention and MLP."""
replace("self.attn(probe, x, x, key_padding_mask)", "self.attn(probe, self.norm(x), self.norm(x), key_padding_mask)")
replace("self.mlp(self.norm(z))", "self.mlp(z)")

# %% exact-gelu price=0.15
"""You agree to three digits and not to four: your GELU is the exact one, the card's. The published heads were
trained with its approximation by tanh; `FeedForward` has the exact one inside."""
replace('nn.GELU(approximate="tanh")', "nn.GELU()")

# %% default-eps price=0.1
"""When the attention's output is small your result is off: the norm has eps 1e-5, torch's default. The published head
has 1e-6."""
replace("nn.LayerNorm(d_model, eps=1e-6)", "nn.LayerNorm(d_model)")

# %% mean-token-as-query price=0.5
"""Your query is the mean of the tokens, and the learned probe has no influence. The probe is the query, the same for
all images."""
replace("self.probe.expand(len(x), -1, -1)", "x.mean(1, keepdim=True)")

# %% padding-ignored price=0.25
"""Padded tokens change your result: the mask is not handed on to the attention, or not always."""
replace("self.attn(probe, x, x, key_padding_mask)", "self.attn(probe, x, x)")

# %% padding-inverted price=0.25
"""Your head looks at the padding and at nothing else: on the card True means padding, and the mask is turned round
on its way."""
replace("(probe, x, x, key_padding_mask)", "(probe, x, x, None if key_padding_mask is None else ~key_padding_mask)")

# %% output-projection-left-out price=0.25
"""You take the heads' results as they are: `o_proj` has no influence. Call the whole `attn`, it projects at the end."""
replace("z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]",
        """tokens = (self.attn.q_proj(probe), self.attn.k_proj(x), self.attn.v_proj(x))
        heads = attention(*(split_heads(y, self.attn.n_heads) for y in tokens), key_padding_mask)[0]
        z = merge_heads(heads)[:, 0]""")

# %% batch-of-one-squeezed price=0.15
"""For a single image your result has the shape [D] instead of [1, D]: `squeeze()` takes away every axis of length one,
the batch too. Name the axis."""
replace("self.attn(probe, x, x, key_padding_mask)[0][:, 0]", "self.attn(probe, x, x, key_padding_mask)[0].squeeze()")

# %% mask-of-the-first-row price=0.25
"""The mask of the first image counts for all images. Each row has its own."""
replace("(probe, x, x, key_padding_mask)",
        "(probe, x, x, None if key_padding_mask is None else key_padding_mask[:1].expand(len(x), -1))")

# %% padding-set-to-zero price=0.25
"""Padded tokens are set to zero and still get a weight, so they dilute the result. Hand the mask to the attention."""
replace("z = self.attn(probe, x, x, key_padding_mask)",
        """x = x if key_padding_mask is None else x.masked_fill(key_padding_mask[..., None], 0.0)
        z = self.attn(probe, x, x)""")

# %% residual-from-the-norm price=0.25
"""Your residual road starts behind the norm: what is added to the MLP's result is norm(z), and it should be z."""
replace("z + self.mlp(self.norm(z))", "self.norm(z) + self.mlp(self.norm(z))")

# %% mlp-ratio-ignored price=0.1
"""The MLP is four times as wide as the tokens, whatever `mlp_ratio` says."""
replace("fc1, fc2 = nn.Linear(d_model, mlp_ratio * d_model), nn.Linear(mlp_ratio * d_model, d_model)",
        "fc1, fc2 = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)")

# %% probe-detached price=0.15
"""The numbers are right and the probe learns nothing: it is detached, frozen, or no parameter. It is learned like all else."""
replace("self.probe.expand", "self.probe.detach().expand")
