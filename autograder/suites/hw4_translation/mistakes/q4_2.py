# %% embedding-not-scaled
"""Your embeddings go in unscaled, so the positions drown the words. Multiply the embedding by the root of its width
first."""
replace("self.scale = math.sqrt(d_model)", "self.scale = 1.0")

# %% positions-scaled-too
"""You add the positions before you scale, so they grow by sqrt(D) as well. Only the embedding is scaled."""
replace("self.scale * self.src_embed(src) + self.positions[: src.shape[1]]",
        "self.scale * (self.src_embed(src) + self.positions[: src.shape[1]])")
replace("self.scale * self.tgt_embed(tgt) + self.positions[: tgt.shape[1]]",
        "self.scale * (self.tgt_embed(tgt) + self.positions[: tgt.shape[1]])")

# %% logits-scaled-too price=0.3
"""Your logits are sqrt(D) times too small: the factor is for the input side of the embedding. The output uses the
plain weight."""
replace("@ self.tgt_embed.weight.T", "@ self.tgt_embed.weight.T / self.scale")

# %% positions-from-one price=0.3
"""Your first token stands at position 1. Positions count from 0."""
replace("sinusoidal_encoding(max_len, d_model)", "sinusoidal_encoding(max_len + 1, d_model)[1:]")

# %% output-not-tied
"""Your output layer has a weight of its own. It is tied: the logits are products with the rows of the target
embedding."""
replace("self.dropout = nn.Dropout(dropout)", """self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, tgt_vocab, bias=False)""")
replace("self.decoder_norm(x) @ self.tgt_embed.weight.T", "self.output(self.decoder_norm(x))")

# %% output-with-a-bias price=0.3
"""Your output layer shares the target embedding's weight, and adds a bias of its own. There is none: the logits are the
products alone."""
replace("self.dropout = nn.Dropout(dropout)", """self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, tgt_vocab)
        self.output.weight = self.tgt_embed.weight
        nn.init.zeros_(self.output.bias)""")
replace("self.decoder_norm(x) @ self.tgt_embed.weight.T", "self.output(self.decoder_norm(x))")

# %% encoder-norm-forgotten price=0.3
"""You made encoder_norm and never call it. In a pre-norm stack the last layer's output has not been normalised by
anyone."""
replace("return self.encoder_norm(x)", "return x")

# %% decoder-norm-forgotten price=0.3
"""You made decoder_norm and never call it: it stands between the last decoder layer and the output."""
replace("return self.decoder_norm(x)", "return x")

# %% post-norm
"""Your layers are post-norm. The stacks are pre-norm, as on the card, and that is why they end with a norm of their
own."""
replace("(d_model, n_heads, d_ff, dropout)", "(d_model, n_heads, d_ff, dropout, False)")

# %% one-layer-many-times
"""All layers of a stack are the same object: a list times n repeats the reference. Make a new layer for every
place."""
replace("nn.ModuleList(EncoderLayer(*sizes) for _ in range(n_layers))",
        "nn.ModuleList([EncoderLayer(*sizes)] * n_layers)")
replace("nn.ModuleList(DecoderLayer(*sizes) for _ in range(n_layers))",
        "nn.ModuleList([DecoderLayer(*sizes)] * n_layers)")

# %% future-visible
"""A later target word changes the logits of earlier places: your decoder's self-attention has lost its causal
mask."""
replace("x = layer(x, memory, src_padding)", """h = layer.norm1(x)
            x = x + layer.self_attn(h, h, h)[0]
            x = x + layer.cross_attn(layer.norm2(x), memory, memory, src_padding)[0]
            x = x + layer.ff(layer.norm3(x))""")

# %% padding-read-by-the-decoder
"""Changing the memory at a padded place changes the logits: src_padding reaches the encoder and not the cross-
attention."""
replace("layer(x, memory, src_padding)", "layer(x, memory)")

# %% padding-read-by-the-encoder
"""A padded source word changes the memory of the real ones: src_padding never reaches the encoder's layers."""
replace("layer(x, src_padding)", "layer(x)")

# %% positions-made-on-the-cpu price=0.1
"""Your positions stay on the CPU when the model moves to a GPU: a plain attribute is left behind. Register the
table as a buffer."""
replace('self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)',
        "self.positions = sinusoidal_encoding(max_len, d_model)")

# %% decoder-without-dropout price=0.2
"""Your decoder's layers never drop anything: dropout is handed on to the encoder's layers alone."""
replace("DecoderLayer(*sizes)", "DecoderLayer(d_model, n_heads, d_ff)")

# %% forward-without-the-encoders-mask price=0.3
"""forward is not decode after encode: it calls encode without src_padding. encode itself is right."""
replace("self.encode(src, src_padding), src_padding)", "self.encode(src), src_padding)")

# %% forward-without-the-decoders-mask price=0.3
"""forward is not decode after encode: it calls decode without src_padding. decode itself is right."""
replace("self.encode(src, src_padding), src_padding)", "self.encode(src, src_padding))")

# %% positions-trained price=0.2
"""Your table of positions is a parameter, so the optimizer would change it. Register it as a buffer: it moves with
the model and is not trained."""
replace('self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)',
        "self.positions = nn.Parameter(sinusoidal_encoding(max_len, d_model))")

# %% tied-to-the-source price=0.3
"""Where both vocabularies have one size your output is the *source* embedding. The logits are products with the
target's words."""
replace("@ self.tgt_embed.weight.T",
        "@ (self.src_embed if self.src_embed.weight.shape == self.tgt_embed.weight.shape else self.tgt_embed).weight.T")

# %% tied-weight-detached price=0.2
"""The logits are right, and the output layer teaches the embedding nothing: its weight is detached there. Tied means
that both uses learn."""
replace("@ self.tgt_embed.weight.T", "@ self.tgt_embed.weight.T.detach()")

# %% targets-from-place-one
"""The target's words stand one place too far: BOS is at place 0. (The source's places are right.)"""
replace("self.positions[: tgt.shape[1]]", "self.positions[1 : tgt.shape[1] + 1]")

# %% sources-from-place-one
"""The source's words stand one place too far: the first is at place 0. (The target's places are right.)"""
replace("self.positions[: src.shape[1]]", "self.positions[1 : src.shape[1] + 1]")

# %% no-positions-for-the-target
"""Your decoder adds no positions: both sides get them, from place 0 on."""
replace("self.scale * self.tgt_embed(tgt) + self.positions[: tgt.shape[1]]", "self.scale * self.tgt_embed(tgt)")

# %% source-not-scaled
"""The source's embedding goes in unscaled, and the target's is scaled: the factor sqrt(D) belongs on both sides."""
replace("self.scale * self.src_embed(src)", "self.src_embed(src)")

# %% target-not-scaled
"""The target's embedding goes in unscaled, and the source's is scaled: the factor sqrt(D) belongs on both sides."""
replace("self.scale * self.tgt_embed(tgt)", "self.tgt_embed(tgt)")

# %% norm-after-every-encoder-layer
"""encoder_norm runs after every layer of the encoder. It stands once, behind the last: pre-norm layers have norms of
their own."""
replace("            x = layer(x, src_padding)", "            x = self.encoder_norm(layer(x, src_padding))")
replace("return self.encoder_norm(x)", "return x")

# %% one-encoder-layer-many-times
"""The encoder's layers are one object: a list times n repeats the reference. Make a new layer for every place, as in
your decoder."""
replace("nn.ModuleList(EncoderLayer(*sizes) for _ in range(n_layers))",
        "nn.ModuleList([EncoderLayer(*sizes)] * n_layers)")

# %% one-decoder-layer-many-times
"""The decoder's layers are one object: a list times n repeats the reference. Make a new layer for every place, as in
your encoder."""
replace("nn.ModuleList(DecoderLayer(*sizes) for _ in range(n_layers))",
        "nn.ModuleList([DecoderLayer(*sizes)] * n_layers)")
