# %% second-name-for-the-table
"""An output layer whose weight is the table, and an attribute for the longest input."""
class BERT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0):
        super().__init__()
        self.max_len = max_len
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(max_len, d_model)
        self.segment_embed = nn.Embedding(2, d_model)
        self.embed_norm = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout, False) for _ in range(n_layers)])
        self.mlm_dense = nn.Linear(d_model, d_model)
        self.mlm_norm = nn.LayerNorm(d_model)
        self.mlm_bias = nn.Parameter(torch.zeros(vocab_size))
        self.pooler = nn.Linear(d_model, d_model)
        self.nsp = nn.Linear(d_model, 2)
        self.apply(self._start)
        self.decoder = nn.Linear(d_model, vocab_size, bias=False)
        self.decoder.weight = self.token_embed.weight

    @staticmethod
    def _start(part):
        if isinstance(part, nn.Linear):
            part.weight.data.normal_(0, 0.02)
            part.bias.data.zero_()
        elif isinstance(part, nn.Embedding):
            part.weight.data.normal_(0, 0.02)

    def encode(self, ids, segments=None, key_padding_mask=None):
        B, N = ids.shape
        if N > self.max_len:
            raise ValueError("too long")
        x = self.token_embed(ids) + self.position_embed.weight[:N]
        x = x + (self.segment_embed.weight[0] if segments is None else self.segment_embed(segments))
        x = self.drop(self.embed_norm(x))
        for layer in self.layers:
            x = layer(x, key_padding_mask=key_padding_mask)
        return x

    def forward(self, ids, segments=None, key_padding_mask=None):
        h = self.encode(ids, segments, key_padding_mask)
        words = self.decoder(self.mlm_norm(nn.GELU()(self.mlm_dense(h)))) + self.mlm_bias
        return words, self.nsp(self.pooler(h[:, 0, :]).tanh())


# %% positions-as-a-buffer
"""Places are a buffer, the word head a method of its own, F.linear with the table and the bias."""
class BERT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0):
        super().__init__()
        D = d_model
        for name, n in (("token", vocab_size), ("position", max_len), ("segment", 2)):
            setattr(self, f"{name}_embed", nn.Embedding(n, D))
        self.register_buffer("places", torch.arange(max_len)[None], persistent=False)
        self.embed_norm, self.mlm_norm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.layers = nn.ModuleList()
        for _ in range(n_layers):
            self.layers.append(EncoderLayer(D, n_heads, d_ff, dropout=dropout, norm_first=False))
        self.mlm_dense, self.pooler, self.nsp = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 2)
        self.mlm_bias = nn.Parameter(torch.zeros(vocab_size))
        self.p = dropout
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if "norm" not in name:
                    parameter.normal_(0, 0.02) if parameter.ndim == 2 else parameter.zero_()

    def encode(self, ids, segments=None, key_padding_mask=None):
        if ids.size(1) > self.places.size(1):
            raise ValueError(f"at most {self.places.size(1)} tokens")
        if segments is None:
            segments = ids * 0
        parts = [self.token_embed(ids), self.position_embed(self.places[:, : ids.size(1)]), self.segment_embed(segments)]
        x = F.dropout(self.embed_norm(sum(parts)), self.p, self.training)
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        return x

    def words(self, h):
        return F.linear(self.mlm_norm(F.gelu(self.mlm_dense(h))), self.token_embed.weight, self.mlm_bias)

    def forward(self, ids, segments=None, key_padding_mask=None):
        h = self.encode(ids, segments, key_padding_mask)
        return self.words(h), self.nsp(torch.tanh(self.pooler(h.select(1, 0))))


# %% one-hot-embeddings
"""Embeddings as products of one-hot rows, the sum written with einsum."""
class BERT(BERT):
    def encode(self, ids, segments=None, key_padding_mask=None):
        V, longest = self.token_embed.weight.shape[0], self.position_embed.weight.shape[0]
        N = ids.shape[-1]
        if N > longest:
            raise ValueError("more tokens than positions")
        table = self.token_embed.weight
        x = torch.einsum("bnv,vd->bnd", F.one_hot(ids, V).to(table), table)
        x = x + self.position_embed.weight[None, :N]
        x = x + self.segment_embed(ids.new_zeros(ids.shape) if segments is None else segments)
        x = self.dropout(self.embed_norm(x))
        for i in range(len(self.layers)):
            x = self.layers[i](x, key_padding_mask)
        return x
