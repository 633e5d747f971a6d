# %% tied-linear
"""An nn.Linear without bias whose weight is the target embedding: one tensor, two names. The positions are a
persistent buffer [1, max_len, D]."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.register_buffer("pe", sinusoidal_encoding(max_len, d_model)[None])
        self.drop = nn.Dropout(dropout)
        self.encoder_layers, self.decoder_layers = nn.ModuleList(), nn.ModuleList()
        for _ in range(n_layers):
            self.encoder_layers.append(EncoderLayer(d_model, n_heads, d_ff, dropout))
            self.decoder_layers.append(DecoderLayer(d_model, n_heads, d_ff, dropout))
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.generator = nn.Linear(d_model, tgt_vocab, bias=False)
        self.generator.weight = self.tgt_embed.weight

    def encode(self, src, src_padding=None):
        x = self.drop(self.src_embed(src) * self.pe.shape[-1] ** 0.5 + self.pe[:, : src.shape[1]])
        for layer in self.encoder_layers:
            x = layer(x, key_padding_mask=src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.drop(self.tgt_embed(tgt) * self.pe.shape[-1] ** 0.5 + self.pe[:, : tgt.shape[1]])
        for layer in self.decoder_layers:
            x = layer(x, memory, memory_padding_mask=src_padding)
        return self.generator(self.decoder_norm(x))

    def forward(self, src, tgt, src_padding=None):
        memory = self.encode(src, src_padding)
        return self.decode(tgt, memory, src_padding)


# %% scaled-embedding-class
"""A subclass of nn.Embedding scales and adds positions; the output multiplies with its weight. Dropout only inside
the layers."""
class PlacedEmbedding(nn.Embedding):
    def __init__(self, vocab, d_model, max_len):
        super().__init__(vocab, d_model)
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model), persistent=False)

    def forward(self, ids):
        return torch.add(self.table[: ids.shape[-1]], super().forward(ids), alpha=math.sqrt(self.embedding_dim))


class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.src_embed = PlacedEmbedding(src_vocab, d_model, max_len)
        self.tgt_embed = PlacedEmbedding(tgt_vocab, d_model, max_len)
        sizes = dict(d_model=d_model, n_heads=n_heads, d_ff=d_ff, dropout=dropout, norm_first=True)
        self.encoder_layers = nn.ModuleList(EncoderLayer(**sizes) for _ in range(n_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(**sizes) for _ in range(n_layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def encode(self, src, src_padding=None):
        x = self.src_embed(src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.tgt_embed(tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return F.linear(self.decoder_norm(x), self.tgt_embed.weight)

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% positions-made-anew
"""No table: positions are made for the length at hand, on the device and in the dtype of the embeddings. Logits by
einsum; small embeddings at the start."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        for table in (self.src_embed, self.tgt_embed):
            nn.init.normal_(table.weight, std=1 / math.sqrt(d_model))
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.rate = dropout

    def prepare(self, words):
        _, n, d = words.shape
        i = torch.arange(d, device=words.device)
        angles = torch.arange(n, device=words.device).double()[:, None] / 10000.0 ** ((i - i % 2).double() / d)
        places = torch.where(i % 2 == 0, angles.sin(), angles.cos())
        return F.dropout(d**0.5 * words + places.to(words.dtype), self.rate, self.training)

    def encode(self, src, src_padding=None):
        x = self.prepare(self.src_embed(src))
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.prepare(self.tgt_embed(tgt))
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return torch.einsum("btd,vd->btv", self.decoder_norm(x), self.tgt_embed.weight)

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% layers-taken-apart
"""The stacks call the parts of each layer themselves, pre-norm by hand; the scale is a buffer."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.tensor(d_model, dtype=torch.float64).sqrt(), persistent=False)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def start(self, table, ids):
        return self.dropout(table(ids) * self.scale + self.positions.narrow(0, 0, ids.shape[1]))

    def encode(self, src, src_padding=None):
        x = self.start(self.src_embed, src)
        for layer in self.encoder_layers:
            h = layer.norm1(x)
            x = x + self.dropout(layer.self_attn(h, h, h, src_padding)[0])
            x = x + self.dropout(layer.ff(layer.norm2(x)))
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.start(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            h = layer.norm1(x)
            x = x + self.dropout(layer.self_attn(h, h, h, causal=True)[0])
            x = x + self.dropout(layer.cross_attn(layer.norm2(x), memory, memory, src_padding)[0])
            x = x + self.dropout(layer.ff(layer.norm3(x)))
        return torch.matmul(self.decoder_norm(x), self.tgt_embed.weight.t())

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% stacks-as-modules
"""Positions in a module of their own without parameters, and the whole mask made where none is given."""
class AddPositions(nn.Module):
    def __init__(self, max_len, d_model, dropout):
        super().__init__()
        self.register_buffer("table", sinusoidal_encoding(max_len, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, N, D = x.shape
        return self.dropout(x * math.sqrt(D) + self.table[:N].expand(B, N, D))


class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.src_embed, self.tgt_embed = nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model)
        self.add_positions = AddPositions(max_len, d_model, dropout)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def encode(self, src, src_padding=None):
        if src_padding is None:
            src_padding = torch.zeros_like(src, dtype=torch.bool)
        x = self.add_positions(F.embedding(src, self.src_embed.weight))
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        if src_padding is None:
            src_padding = torch.zeros(memory.shape[:2], dtype=torch.bool, device=memory.device)
        x = self.add_positions(F.embedding(tgt, self.tgt_embed.weight))
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.mT

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)
