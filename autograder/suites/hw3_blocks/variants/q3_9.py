# %% first-token
"""Own layers, learned positions, read-out from the first token through a tanh."""
class EncoderClassifier(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.pooler = nn.Linear(d_model, d_model)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, ids, key_padding_mask=None):
        x = self.embed(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        return self.head(torch.tanh(self.pooler(self.norm(x)[:, 0])))


# %% masked-mean-sinusoids
"""Own layers in post-norm, sinusoidal positions as a buffer, mean over the real tokens."""
class EncoderClassifier(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model))
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, norm_first=False) for _ in range(n_layers)])
        self.out = nn.Linear(d_model, n_classes)

    def forward(self, ids, key_padding_mask=None):
        N = ids.shape[1]
        x = self.embed(ids) + self.positions[:N]
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        real = torch.ones_like(ids) if key_padding_mask is None else (~key_padding_mask).long()
        real = real.to(x.dtype)  # [B, N]
        mean = torch.einsum("bn,bnd->bd", real, x) / real.sum(1, keepdim=True).clamp(min=1)
        return self.out(mean)


# %% torch-encoder-first-token
"""`nn.TransformerEncoder`, pre-norm with a last norm, first token."""
class EncoderClassifier(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab, d_model)
        self.places = nn.Parameter(torch.randn(1, max_len, d_model) * 0.1)
        layer = nn.TransformerEncoderLayer(
            d_model, n_heads, d_ff, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, n_layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.head = nn.Sequential(nn.Linear(d_model, d_model), nn.GELU(), nn.Linear(d_model, n_classes))

    def forward(self, ids, key_padding_mask=None):
        x = self.words(ids) + self.places[:, : ids.size(1)]
        h = self.encoder(x, src_key_padding_mask=key_padding_mask)
        return self.head(h.select(1, 0))


# %% torch-encoder-masked-mean
"""`nn.TransformerEncoder` with PyTorch's defaults and dropout; mean over the real tokens by boolean fill."""
class EncoderClassifier(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab, d_model)
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, ids, key_padding_mask=None):
        x = self.words(ids) + self.table[: ids.shape[1]].to(self.words.weight.dtype)
        x = self.encoder(x, src_key_padding_mask=key_padding_mask)
        if key_padding_mask is None:
            return self.head(x.mean(dim=1))
        x = x.masked_fill(key_padding_mask.unsqueeze(-1), 0.0)
        count = (~key_padding_mask).sum(1, keepdim=True).clamp(min=1)
        return self.head(x.sum(dim=1) / count)


# %% class-token-in-front
"""A learned class token is put in front of the sentence (and of the mask) and read out."""
class EncoderClassifier(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab, d_model)
        self.cls = nn.Parameter(torch.zeros(1, 1, d_model))
        self.positions = nn.Parameter(torch.empty(max_len, d_model).uniform_(-0.1, 0.1))
        self.layers = nn.Sequential(*[EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)

    def forward(self, ids, key_padding_mask=None):
        B, N = ids.shape
        x = torch.cat([self.cls.expand(B, -1, -1), self.embed(ids) + self.positions[:N]], 1)  # [B, 1 + N, D]
        if key_padding_mask is not None:
            key_padding_mask = F.pad(key_padding_mask, (1, 0), value=False)
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        return self.head(self.norm(x[:, 0]))


# %% average-of-token-logits
"""The head first, the mean over real tokens after it: a mean commutes with a linear map."""
class EncoderClassifier(nn.Module):
    def __init__(self, vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len):
        super().__init__()
        self.table = nn.ModuleDict({"word": nn.Embedding(vocab, d_model), "place": nn.Embedding(max_len, d_model)})
        self.blocks = nn.ModuleList()
        for _ in range(n_layers):
            self.blocks.append(EncoderLayer(d_model, n_heads, d_ff, dropout=0.1))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes, bias=False)

    def forward(self, ids, key_padding_mask=None):
        if key_padding_mask is None:
            key_padding_mask = torch.zeros(ids.shape, dtype=torch.bool, device=ids.device)
        place = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        x = self.table["word"](ids) + self.table["place"](place)
        for block in self.blocks:
            x = block(x, key_padding_mask=key_padding_mask)
        logits = self.head(self.norm(x))  # [B, N, C]
        share = (~key_padding_mask).to(x.dtype)
        share = share / share.sum(1, keepdim=True).clamp(min=1)
        return (share[..., None] * logits).sum(1)
