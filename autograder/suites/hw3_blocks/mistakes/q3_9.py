# %% mask-not-passed-on
"""Changing a padded token changes the logits: the mask does not reach your layers, or not all of them and always, so
the real tokens attend to the padding."""
replace("layer(x, key_padding_mask)", "layer(x)")

# %% mask-never-used
"""With and without key_padding_mask your logits are the same. It has two jobs: every layer needs it, so that no token
attends to padding, and so does your mean, which runs over the padding too."""
replace("layer(x, key_padding_mask)", "layer(x)")
replace("self.norm(x[:, 0])", "self.norm(x).mean(1)")

# %% mask-in-the-first-layer-only
"""With one layer all is well, with two the padding moves the logits: only your first layer gets the mask. Padded
places have outputs too, and the next layer must not look at them either."""
replace("layer(x, key_padding_mask)", "layer(x, key_padding_mask if layer is self.layers[0] else None)")

# %% mean-over-padding-too
"""Your layers hide the padding and your average brings it back: padded places have outputs too. Average over the
real tokens."""
replace("self.norm(x[:, 0])", "self.norm(x).mean(1)")

# %% mean-divided-by-the-whole-length price=0.2
"""You leave the padding out of the sum and still divide by the whole length: another column of padding makes your
mean smaller. Divide by the number of real tokens."""
replace("return self.head(self.norm(x[:, 0]))",
        """real = True if key_padding_mask is None else ~key_padding_mask[..., None]
        return self.head((self.norm(x) * real).mean(1))""")

# %% mean-of-the-padding
"""Your average runs over the padding and leaves the real tokens out: on the card True means padding."""
replace("return self.head(self.norm(x[:, 0]))", """if key_padding_mask is None:
            return self.head(self.norm(x).mean(1))
        real = key_padding_mask[..., None]  # [B, N, 1]
        return self.head((self.norm(x) * real).sum(1) / real.sum(1).clamp(min=1))""")

# %% mask-inverted
"""Your layers attend to the padding and to nothing else: on the card True means padding, and you turn the mask
round."""
replace("layer(x, key_padding_mask)", "layer(x, None if key_padding_mask is None else ~key_padding_mask)")

# %% last-place-read
"""A padded place is read: you take the last column, which in a padded row is padding, or your mask is a place off (a
token of your own in front moves it). Read the first token, or average over the real ones."""
replace("x[:, 0]", "x[:, -1]")

# %% padding-embedded-as-zeros
"""What stands in the padding moves nothing, and how much of it there is does: you set its embedding to zero and let
the layers attend to it (a zero vector takes its share of the attention), or your positions depend on N. Pass the mask
on."""
replace("for layer in self.layers:", """if key_padding_mask is not None:
            x = x.masked_fill(key_padding_mask[..., None], 0.0)
        for layer in self.layers:""")
replace("layer(x, key_padding_mask)", "layer(x)")

# %% padding-guessed-from-the-ids
"""You take id 0 for padding and never look at key_padding_mask. Which places are padding is what the mask says; 0
may be a word."""
replace("layer(x, key_padding_mask)", "layer(x, ids == 0)")

# %% no-positions
"""Shuffle the words and your logits stay the same: nothing tells the layers where a token stands. Add positions to
the embedding."""
replace("self.embed(ids) + self.positions[: ids.shape[1]]", "self.embed(ids)")

# %% full-length-only price=0.2
"""Sentences shorter than max_len raise an error: you add the whole table of positions. Take as many rows as there
are tokens."""
replace("self.positions[: ids.shape[1]]", "self.positions")

# %% softmax-on-the-logits price=0.2
"""Your outputs are positive and sum to 1: they are probabilities, not logits. The loss has its own softmax, and a
second one flattens the gradient."""
replace("return self.head(self.norm(x[:, 0]))", "return torch.softmax(self.head(self.norm(x[:, 0])), -1)")

# %% mask-required price=0.2
"""Without a mask your model fails: key_padding_mask is None when there is no padding."""
replace("return self.head(self.norm(x[:, 0]))", """real = ~key_padding_mask[..., None]  # [B, N, 1]
        return self.head((self.norm(x) * real).sum(1) / real.sum(1))""")

# %% one-answer-per-token
"""Your result has one row of logits for every token. A sentence has one class: read out one vector before the
head."""
replace("self.norm(x[:, 0])", "self.norm(x)")

# %% dropout-never-ends price=0.2
"""Two calls in evaluation mode give different logits: `F.dropout` is on unless you tell it whether the module is
training."""
replace("self.norm(x[:, 0])", "F.dropout(self.norm(x[:, 0]), 0.3)")

# %% mask-of-the-first-row
"""Every row of the batch gets the mask of the first one: keep the mask as [B, N]."""
replace("for layer in self.layers:", """if key_padding_mask is not None:
            key_padding_mask = key_padding_mask[:1].expand_as(key_padding_mask)
        for layer in self.layers:""")

# %% positions-from-the-end
"""Your logits depend on how long the row is with its padding: place 0 gets another position when columns are added, or
you divide by a length of the batch. Count from the first token, and each row's own tokens."""
replace("self.positions[: ids.shape[1]]", "self.positions[: ids.shape[1]].flip(0)")

# %% batch-first-forgotten
"""The logits of a sentence change with its neighbours in the batch, and its own later words do not count: torch's
layers take [N, B, D] unless told `batch_first=True`, so your tokens attend to other sentences."""
replace("nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))",
        """nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d_model, n_heads, d_ff, dropout=0.0, norm_first=True), n_layers, None, False
        )""")
replace("""for layer in self.layers:
            x = layer(x, key_padding_mask)""",
        "x = self.layers(x, src_key_padding_mask=None if key_padding_mask is None else key_padding_mask.T)")

# %% log-softmax-on-the-logits price=0.2
"""Your outputs are logarithms of probabilities: a log-softmax comes too early. The loss has its own; return the
scores as the last linear layer gives them."""
replace("return self.head(self.norm(x[:, 0]))", "return torch.log_softmax(self.head(self.norm(x[:, 0])), -1)")

# %% far-places-cut-off price=0.2
"""In a long sentence the last words move nothing: you read a fixed number of places. All N of them count, up to
max_len."""
replace("x = self.embed(ids)",
        """ids, key_padding_mask = ids[:, :12], None if key_padding_mask is None else key_padding_mask[:, :12]
        x = self.embed(ids)""")

# %% positions-on-the-cpu price=0.2
"""Your positions are made on the CPU in each call, whatever device the ids are on: keep them in a buffer, which moves
with the module, or make them on the device of an input."""
replace('self.register_buffer("positions", sinusoidal_encoding(max_len, d_model))', "")
replace("self.positions[: ids.shape[1]]",
        "sinusoidal_encoding(ids.shape[1], self.embed.weight.shape[1]).to(self.embed.weight.dtype)")

# %% statistics-of-the-batch
"""The logits of a sentence change with its neighbours in the batch: a norm of yours takes its mean over the examples.
Layer norm looks at one token at a time."""
replace("return self.head(self.norm(x[:, 0]))", """top = x[:, 0]
        spread = top.var(0, keepdim=True, correction=0) + 1e-5 if len(top) > 1 else 1.0
        return self.head((top - top.mean(0, keepdim=True) * (len(top) > 1)) / spread**0.5)""")

# %% batch-mean-taken-away
"""The logits of a sentence change with its neighbours in the batch: you take the mean over the examples away. Nothing
may run over axis 0."""
replace("self.norm(x[:, 0])", "self.norm(x - x.mean(0, keepdim=True))[:, 0]")
