# %% residual-around-the-attention
"""Your result is off by about the size of the probe: you add the probe to what it found. The probe is a question,
not a part of the answer; the only residual road runs around the MLP."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = (probe + self.attn(probe, x, x, key_padding_mask)[0])[:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% residual-forgotten
"""You return what the MLP gives, alone: the residual road around norm and MLP is missing."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        return self.think(self.norm(z))


# %% norm-before-the-attention
"""You normalise the tokens on their way into the attention, and the MLP gets its input without a norm. The tokens
go in as they are; `norm` stands between attention and MLP."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        x = self.norm(x)
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        return z + self.think(z)


# %% exact-gelu
"""You agree to three digits and not to four: your GELU is the exact one, the card's. The published heads were
trained with its approximation by tanh; `FeedForward` has the exact one inside."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = FeedForward(d_model, mlp_ratio * d_model)

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        return z + self.mlp(self.norm(z))


# %% default-eps
"""When the attention's output is small your result is off: the norm has eps 1e-5, torch's default. The published head
has 1e-6."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% mean-token-as-query
"""Your query is the mean of the tokens, and the learned probe has no influence. The probe is the query, the same for
all images."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = x.mean(1, keepdim=True)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% padding-ignored
"""Padded tokens change your result: the mask is not handed on to the attention, or not always."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x)[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% padding-inverted
"""Your head looks at the padding and at nothing else: on the card True means padding, and the mask is turned round
on its way."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        real = None if key_padding_mask is None else ~key_padding_mask
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, real)[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% output-projection-left-out
"""You take the heads' results as they are: `o_proj` has no influence. Call the whole `attn`, it projects at the end."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe, H = self.probe.expand(len(x), -1, -1), self.attn.n_heads
        q, k, v = (split_heads(y, H) for y in (self.attn.q_proj(probe), self.attn.k_proj(x), self.attn.v_proj(x)))
        z = merge_heads(attention(q, k, v, key_padding_mask)[0])[:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% batch-of-one-squeezed
"""For a single image your result has the shape [D] instead of [1, D]: `squeeze()` takes away every axis of length one,
the batch too. Name the axis."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0].squeeze()  # [B, D]
        return z + self.think(self.norm(z))


# %% mask-of-the-first-row
"""The mask of the first image counts for all images. Each row has its own."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, None if key_padding_mask is None else key_padding_mask[:1].expand(len(x), -1))[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% padding-set-to-zero
"""Padded tokens are set to zero and still get a weight, so they dilute the result. Hand the mask to the attention."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        if key_padding_mask is not None:
            x = x.masked_fill(key_padding_mask[..., None], 0.0)
        z = self.attn(probe, x, x)[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))


# %% residual-from-the-norm
"""Your residual road starts behind the norm: what is added to the MLP's result is norm(z), and it should be z."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, mlp_ratio * d_model)
        self.mlp.fc2 = nn.Linear(mlp_ratio * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        z = self.norm(z)
        return z + self.think(z)


# %% mlp-ratio-ignored
"""The MLP is four times as wide as the tokens, whatever `mlp_ratio` says."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = nn.Module()
        self.mlp.fc1 = nn.Linear(d_model, 4 * d_model)
        self.mlp.fc2 = nn.Linear(4 * d_model, d_model)

    def think(self, z):
        return self.mlp.fc2(F.gelu(self.mlp.fc1(z), approximate="tanh"))

    def forward(self, x, key_padding_mask=None):
        probe = self.probe.expand(len(x), -1, -1)  # [B, 1, D]
        z = self.attn(probe, x, x, key_padding_mask)[0][:, 0]  # [B, D]
        return z + self.think(self.norm(z))
