# %% own-mlp-class
"""A small class for the MLP, the probe repeated, the only token kept to the end and flattened away."""
class _TanhMLP(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x):
        h = self.fc1(x)
        inner = math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)
        return self.fc2(0.5 * h * (1 + torch.tanh(inner)))


class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(torch.empty(1, 1, d_model))
        nn.init.xavier_uniform_(self.probe)
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = _TanhMLP(d_model, int(mlp_ratio * d_model))

    def forward(self, x, key_padding_mask=None):
        z, _ = self.attn(self.probe.repeat(x.shape[0], 1, 1), x, x, key_padding_mask=key_padding_mask)
        z = z + self.mlp(self.norm(z))  # [B, 1, D]
        return z.flatten(1)


# %% fused-attention
"""torch's fused attention with the projections of attn; images without a single real token give o_proj's bias."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.mlp = nn.ModuleDict({
            "fc1": nn.Linear(d_model, d_model * mlp_ratio),
            "fc2": nn.Linear(d_model * mlp_ratio, d_model),
        })
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.register_parameter("probe", nn.Parameter(torch.randn(1, 1, d_model) / math.sqrt(d_model)))

    def forward(self, x, key_padding_mask=None):
        (B, N, D), H = x.shape, self.attn.n_heads
        q = self.attn.q_proj(self.probe).view(1, 1, H, -1).transpose(1, 2).expand(B, -1, -1, -1)  # [B, H, 1, Dh]
        k = self.attn.k_proj(x).reshape(B, N, H, -1).transpose(1, 2)
        v = self.attn.v_proj(x).reshape(B, N, H, -1).transpose(1, 2)
        keep, dead = None, None
        if key_padding_mask is not None:
            dead = key_padding_mask.all(1)[:, None, None, None]  # [B, 1, 1, 1]
            keep = ~key_padding_mask[:, None, None] | dead
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)  # [B, H, 1, Dh]
        if dead is not None:
            heads = heads.masked_fill(dead, 0.0)
        z = self.attn.o_proj(heads.transpose(1, 2).reshape(B, D))
        return z + self.mlp["fc2"](F.gelu(self.mlp["fc1"](self.norm(z)), approximate="tanh"))


# %% sequential-with-names
"""add_module gives the names inside a Sequential; normalisation by F.layer_norm with the norm's own parameters."""
class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.d_model = d_model
        self.probe = nn.Parameter(torch.zeros(1, 1, d_model).normal_(std=0.02))
        self.attn = MultiHeadAttention(d_model, n_heads, dropout=0.0)
        self.norm = nn.LayerNorm(d_model)
        self.norm.eps = 1e-6
        self.mlp = nn.Sequential()
        self.mlp.add_module("fc1", nn.Linear(d_model, mlp_ratio * d_model))
        self.mlp.add_module("act", nn.GELU("tanh"))
        self.mlp.add_module("fc2", nn.Linear(mlp_ratio * d_model, d_model))

    def forward(self, x, key_padding_mask=None):
        query = x.new_ones(x.shape[0], 1, 1) * self.probe  # [B, 1, D]
        pooled = self.attn(query, x, x, key_padding_mask)[0].squeeze(1)
        normed = F.layer_norm(pooled, (self.d_model,), self.norm.weight, self.norm.bias, self.norm.eps)
        return pooled + self.mlp(normed)


# %% feed-forward-with-another-gelu
"""The MLP inherits fc1 and fc2 from FeedForward and changes the activation only; image by image in a loop."""
class _PublishedFeedForward(FeedForward):
    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x), approximate="tanh"))


class MAPHead(nn.Module):
    def __init__(self, d_model, n_heads, mlp_ratio=4):
        super().__init__()
        self.probe = nn.Parameter(torch.randn(d_model)[None, None])
        self.attn = MultiHeadAttention(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.mlp = _PublishedFeedForward(d_model, mlp_ratio * d_model)

    def forward(self, x, key_padding_mask=None):
        pooled = []
        for i in range(len(x)):
            mask = None if key_padding_mask is None else key_padding_mask[i : i + 1]
            out, _ = self.attn(self.probe, x[i : i + 1], x[i : i + 1], mask)
            pooled.append(out[0, 0])
        z = torch.stack(pooled)  # [B, D]
        return torch.add(self.mlp(self.norm(z)), z)
