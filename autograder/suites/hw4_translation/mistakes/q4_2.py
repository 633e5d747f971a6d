# %% embedding-not-scaled
"""Your embeddings go in unscaled, so the positions drown the words. Multiply the embedding by the root of its width
first."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% positions-scaled-too
"""You add the positions before you scale, so they grow by sqrt(D) as well. Only the embedding is scaled."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) + self.positions[: ids.shape[1]]
        return self.dropout(x * math.sqrt(self.d_model))

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% logits-scaled-too
"""Your logits are sqrt(D) times too small: the factor is for the input side of the embedding. The output uses the
plain weight."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T / math.sqrt(self.d_model)

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% positions-from-one
"""Your first token stands at position 1. Positions count from 0."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len + 1, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[1 : ids.shape[1] + 1])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% output-not-tied
"""Your output layer has a weight of its own. It is tied: the logits are products with the rows of the target
embedding."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)
        self.output = nn.Linear(d_model, tgt_vocab, bias=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.output(self.decoder_norm(x))

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% output-with-a-bias
"""Your output layer shares the target embedding's weight, and adds a bias of its own. There is none: the logits are the
products alone."""
class Transformer(Transformer):
    def __init__(self, src_vocab, tgt_vocab, d_model, *args, **kwargs):
        super().__init__(src_vocab, tgt_vocab, d_model, *args, **kwargs)
        self.output = nn.Linear(d_model, tgt_vocab)
        self.output.weight = self.tgt_embed.weight
        nn.init.zeros_(self.output.bias)

    def decode(self, tgt, memory, src_padding=None):
        return super().decode(tgt, memory, src_padding) + self.output.bias


# %% encoder-norm-forgotten
"""You made encoder_norm and never call it. In a pre-norm stack the last layer's output has not been normalised by
anyone."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return x

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% decoder-norm-forgotten
"""You made decoder_norm and never call it: it stands between the last decoder layer and the output."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return x @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% post-norm
"""Your layers are post-norm. The stacks are pre-norm, as on the card, and that is why they end with a norm of their
own."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout, norm_first=False) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout, norm_first=False) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% one-layer-many-times
"""All layers of a stack are the same object: a list times n repeats the reference. Make a new layer for every
place."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout)] * n_layers)
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout)] * n_layers)
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% future-visible
"""A later target word changes the logits of earlier places: your decoder's self-attention has lost its causal
mask."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            h = layer.norm1(x)
            x = x + layer.self_attn(h, h, h)[0]
            x = x + layer.cross_attn(layer.norm2(x), memory, memory, src_padding)[0]
            x = x + layer.ff(layer.norm3(x))
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% padding-read-by-the-decoder
"""Changing the memory at a padded place changes the logits: src_padding reaches the encoder and not the cross-
attention."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% padding-read-by-the-encoder
"""A padded source word changes the memory of the real ones: src_padding never reaches the encoder's layers."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% positions-made-on-the-cpu
"""Your positions stay on the CPU when the model moves to a GPU: a plain attribute is left behind. Register the
table as a buffer."""
class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(d_model, n_heads, d_ff, dropout) for _ in range(n_layers)])
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.positions = sinusoidal_encoding(max_len, d_model)

    def embed(self, table, ids):
        x = table(ids) * math.sqrt(self.d_model)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def encode(self, src, src_padding=None):
        x = self.embed(self.src_embed, src)
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)

    def decode(self, tgt, memory, src_padding=None):
        x = self.embed(self.tgt_embed, tgt)
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T

    def forward(self, src, tgt, src_padding=None):
        return self.decode(tgt, self.encode(src, src_padding), src_padding)


# %% decoder-without-dropout
"""Your decoder's layers never drop anything: dropout is handed on to the encoder's layers alone."""
class Transformer(Transformer):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512):
        super().__init__(src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout, max_len)
        self.decoder_layers = nn.ModuleList(DecoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
