# %% norm-after-pooling price=0.25
"""The class token is right and another pooling is not: you pool first and normalise the pooled vector. The norm is for
all tokens and comes before pooling."""
replace("x = self.norm(x)", "")
replace("self.head(self.map_head(x))", "self.head(self.norm(self.map_head(x)))")
replace('self.head(x[:, 0] if self.pool == "cls" else x.mean(1))',
        'self.head(self.norm(x[:, 0] if self.pool == "cls" else x.mean(1)))')

# %% no-final-norm price=0.25
"""`norm` has no influence on your logits. Pre-norm layers leave the residual stream as large as it has grown, so a
last norm stands behind them, before pooling."""
replace("x = self.norm(x)", "")

# %% class-token-at-the-end price=0.1
"""Your class token stands behind the patches. It belongs in front, and place 0 is where it is read."""
replace("[self.cls.expand(len(x), -1, -1), x]", "[x, self.cls.expand(len(x), -1, -1)]")

# %% class-token-gets-a-position price=0.2
"""With the class token your table of positions has a row more, and weights cannot be loaded. There is only one class
token, so it needs no position: add positions to the patches, and put it in front afterwards."""
replace("torch.randn(1, self.grid[0] * self.grid[1], d_model)",
        'torch.randn(1, self.grid[0] * self.grid[1] + (pool == "cls"), d_model)')
replace("x = self.embed(images) + resize_positions(self.positions, self.grid, grid)",
        """own = int(self.pool == "cls")
        x = self.embed(images) + resize_positions(self.positions[:, own:], self.grid, grid)""")
replace("torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)",
        "torch.cat([(self.cls + self.positions[:, :1]).expand(len(x), -1, -1), x], dim=1)")

# %% mean-instead-of-the-class-token price=0.25
"""With `pool="cls"` you average over all tokens, the class token among them. Read the class token alone: it has
collected what it needs."""
replace('x[:, 0] if self.pool == "cls" else x.mean(1)', "x.mean(1)")

# %% positions-cut-to-length price=0.3
"""Smaller images get the first positions of the list, and larger ones fail. Positions belong to places on a grid:
resize them to the grid of the image at hand."""
replace("self.embed(images) + resize_positions(self.positions, self.grid, grid)",
        "self.embed(images) + self.positions[:, : grid[0] * grid[1]]")

# %% grid-swapped price=0.2
"""Square images are right, others are not: the grid of the image is (rows, cols), so height first, and you give width
first."""
replace("(images.shape[-2] // self.patch, images.shape[-1] // self.patch)",
        "(images.shape[-1] // self.patch, images.shape[-2] // self.patch)")

# %% unknown-pool-accepted price=0.1
"""A model with `pool="max"` can be made. A typing error would be found late or never: raise a ValueError when the model
is made, before any image is seen."""
replace("raise ValueError(f'pool is \"cls\", \"gap\" or \"map\", not {pool!r}')", "pass")

# %% layers-share-their-weights price=0.3
"""All your layers are one and the same: `[layer] * n` repeats a reference, so the weights of the last one loaded are
used n times. Make a new layer in each round."""
replace("nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))",
        "nn.ModuleList([EncoderLayer(d_model, n_heads, d_ff)] * n_layers)")

# %% head-without-bias price=0.15
"""Weights cannot be loaded: your `head` has no bias. It is a plain `nn.Linear(d_model, n_classes)`, so that a class can be
likely whatever the image."""
replace("nn.Linear(d_model, n_classes)", "nn.Linear(d_model, n_classes, bias=False)")

# %% post-norm-layers price=0.3
"""Your layers normalise after adding. The contract's are pre-norm, the default of `EncoderLayer`."""
replace("EncoderLayer(d_model, n_heads, d_ff)", "EncoderLayer(d_model, n_heads, d_ff, norm_first=False)")

# %% softmax-in-the-model price=0.25
"""Your rows sum to 1: the model ends with a softmax. The loss has one already; return the logits."""
replace("self.head(self.map_head(x))", "self.head(self.map_head(x)).softmax(-1)")
replace("else x.mean(1))", "else x.mean(1)).softmax(-1)")

# %% map-head-with-one-head price=0.2
"""Class token and average are right and MAP is not: its head was made with one attention head. It gets `n_heads`."""
replace("MAPHead(d_model, n_heads)", "MAPHead(d_model, 1)")

# %% dropout price=0.2
"""In training mode your logits change from call to call: there is dropout. The contract's model has none."""
replace("EncoderLayer(d_model, n_heads, d_ff)", "EncoderLayer(d_model, n_heads, d_ff, dropout=0.1)")

# %% average-normalised-after price=0.2
"""Class token and MAP are right and the average is not: there you take the mean first and normalise it. The norm is for
all tokens and comes before pooling."""
replace("x = self.norm(x)", 'x = self.norm(x.mean(1, keepdim=True)) if self.pool == "gap" else self.norm(x)')

# %% other-sizes-cropped price=0.25
"""An image whose sides `patch` does not divide is not refused with a ValueError. Is it cut to fit somewhere?"""
replace("x = self.embed(images)", """images = images[..., : grid[0] * self.patch, : grid[1] * self.patch]
        x = self.embed(images)""")

# %% resized-positions-kept price=0.2
"""After a step of training, images of another size still get the old positions: you keep the resized table. Resize in
every call."""
replace("self.patch, self.pool = patch, pool", "self.patch, self.pool, self.kept = patch, pool, {}")
replace("x = self.embed(images) + resize_positions(self.positions, self.grid, grid)",
        """if grid not in self.kept:
            self.kept[grid] = resize_positions(self.positions, self.grid, grid).detach()
        x = self.embed(images) + (self.positions if grid == self.grid else self.kept[grid].to(images.dtype))""")
