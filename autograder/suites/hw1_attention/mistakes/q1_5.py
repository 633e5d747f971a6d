# %% padding-attended
"""Your attention gives weight to padded source places: changing a padding token changes the logits. Block
those keys before the softmax."""
replace("scores.masked_fill(key_padding_mask[:, None], -math.inf)", "scores")

# %% encoder-state-after-padding
"""The decoder starts from the encoder's state after the padding, so padding reaches the logits although
attention hides it. Start from the state at the last real token of each sentence (and read the source from left to
right only: a GRU that also reads backwards carries the padding to every state)."""
replace("memory, _ = self.encoder", "memory, final = self.encoder")
replace("start.transpose(0, 1).contiguous()", "final")

# %% mask-polarity-inverted
"""Your model attends to the padding and to nothing else: on the card True means padding, and you treat True
as "may be attended to"."""
replace("if key_padding_mask is None:", """given = key_padding_mask is not None
        if key_padding_mask is None:""")
replace("scores.masked_fill(key_padding_mask[:, None], -math.inf)",
        "scores.masked_fill(key_padding_mask[:, None] != given, -math.inf)")

# %% masked-after-softmax
"""You zero the padded places after the softmax, so your rows sum to less than 1 and the padding still counts
in the denominator. Block the scores before the softmax."""
replace("softargmax(scores.masked_fill(key_padding_mask[:, None], -math.inf))",
        "softargmax(scores).masked_fill(key_padding_mask[:, None], 0.0)")

# %% all-padding-nan price=0.15
"""A sentence that is all padding gives NaN: a softmax over nothing but -inf has no value. The card asks for
zero weights there; your q1_1 knows how."""
replace("softargmax(scores.masked_fill(key_padding_mask[:, None], -math.inf))",
        "torch.softmax(scores.masked_fill(key_padding_mask[:, None], -math.inf), -1)")

# %% context-ignored
"""Your logits come from the decoder's state alone: the weights are computed, but their weighted sum of
encoder states never reaches the output."""
replace("nn.Linear(2 * d_model, d_model, bias=False)", "nn.Linear(d_model, d_model, bias=False)")
replace("torch.cat([states, weights @ memory], dim=-1)", "states")

# %% softmax-over-targets
"""Your weights sum to 1 over the target steps, not over the source places: look at the axis of the softmax.
It also lets later target tokens change earlier logits."""
replace("masked_fill(key_padding_mask[:, None], -math.inf))",
        "masked_fill(key_padding_mask[:, None], -math.inf), dim=1)")

# %% rows-meet-in-training price=0.2
"""In training mode the rows of a batch influence each other: a batch norm takes its mean and variance over all of them.
Leave it out; `nn.LayerNorm` looks at one state only."""
replace("self.out = nn.Linear(d_model, vocab_tgt)", """self.norm = nn.BatchNorm1d(d_model)
        self.out = nn.Linear(d_model, vocab_tgt)""")
replace("self.out(h_tilde)", "self.out(self.norm(h_tilde.mT).mT)")

# %% encoder-states-detached price=0.3
"""No gradient reaches the encoder through the attention: its states are detached (or their `.data` is taken)
before they are used as keys, so the encoder cannot learn what to offer."""
replace("scores = self.W(states)", """memory = memory.detach()
        scores = self.W(states)""")

# %% decoder-sees-the-future
"""A later target token changes earlier logits: your decoder runs in both directions, or `tgt_in` is shifted once more
than it should be. At step t it may know only the target tokens up to t, or there is nothing left to predict."""
replace("self.decoder = nn.GRU(d_model, d_model, batch_first=True)",
        """self.decoder = nn.GRU(d_model, d_model, batch_first=True, bidirectional=True)
        self.join = nn.Linear(2 * d_model, d_model)""")
replace("start.transpose(0, 1).contiguous()", "start.transpose(0, 1).repeat(2, 1, 1)")
replace("scores = self.W(states)", """states = self.join(states)
        scores = self.W(states)""")

# %% one-query-for-all-steps
"""Every target step has the same weights: you score the encoder with the decoder's final state only. Each
step needs weights of its own, from its own state."""
replace("self.W(states)", "self.W(states[:, -1:].expand_as(states))")

# %% batch-not-first
"""The sentences of a batch influence one another: one of your GRUs takes the first axis as time. The card's
shapes are batch first, and nn.GRU has to be told."""
replace("self.encoder = nn.GRU(d_model, d_model, batch_first=True)", "self.encoder = nn.GRU(d_model, d_model)")

# %% last-state-only
"""All your weight lies on the last source token: the decoder is offered one encoder state, not all of them.
Keep the state of every step and attend over the whole list."""
replace("masked_fill(key_padding_mask[:, None], -math.inf)",
        "masked_fill((places != lengths[:, None] - 1)[:, None], -math.inf)")
replace("scores = self.W(states)", """places = torch.arange(src.shape[1], device=src.device)
        scores = self.W(states)""")

# %% scores-for-weights
"""The rows of the second thing you return do not sum to 1: these look like the scores before the softmax. Return the
weights with which the encoder states were mixed."""
replace("return self.out(h_tilde), weights",
        "return self.out(h_tilde), scores.masked_fill(key_padding_mask[:, None], 0.0)")

# %% weights-transposed price=0.2
"""Your weights have shape [B, S, T]: the card asks for target steps first, source places last, so that each
row sums to 1."""
replace("return self.out(h_tilde), weights", "return self.out(h_tilde), weights.mT")

# %% another-result-every-time price=0.2
"""In eval mode the same call gives another result the second time. Either dropout is always on (`F.dropout` needs
`training=self.training`, or use `nn.Dropout`), or your model keeps something from one call for the next."""
replace("self.out(h_tilde)", "self.out(F.dropout(h_tilde, 0.2))")

# %% other-weights-returned price=0.2
"""The weights that you return are not those that the model averages with: they come from a second softmax. Return the
very tensor that is multiplied by the memory."""
replace("return self.out(h_tilde), weights",
        "return self.out(h_tilde), softargmax(scores.masked_fill(key_padding_mask[:, None], -math.inf), 2.0)")

# %% all-padding-starts-from-padding price=0.1
"""A sentence that is all padding starts the decoder from a state made of padding: its number of real tokens is 0, and
you take place 0 all the same. There is no real state, so start from zeros."""
replace("lengths = (~key_padding_mask).sum(1)", "lengths = (~key_padding_mask).sum(1).clamp(min=1)")

# %% a-symbol-taken-for-padding
"""You take a source symbol, such as 0, for padding wherever it stands. Every symbol is a real one here: only
`key_padding_mask` says what is padding."""
replace("memory, _ = self.encoder", """key_padding_mask = key_padding_mask | (src == 0)
        memory, _ = self.encoder""")

# %% decoder-starts-from-zeros price=0.3
"""The encoder's last state is not handed over: your decoder starts from zeros, so where it looks does not depend on
what was read. Start it from the encoder's last real state."""
replace("self.tgt_embed(tgt_in), start.transpose(0, 1).contiguous()", "self.tgt_embed(tgt_in)")

# %% weights-ignore-the-source
"""Your weights do not depend on what stands in the source: they follow from the places alone. Score each step's state
against the encoder's states."""
replace("scores = self.W(states) @ memory.mT", """T, S = tgt_in.shape[1], src.shape[1]
        t, s = torch.arange(T, device=src.device)[:, None], torch.arange(S, device=src.device)
        scores = -1.0 * (s + t - S + 1).abs().to(memory).expand(len(src), T, S)""")

# %% another-rows-mask
"""Each source is masked with another row's padding: row b of the mask belongs to source b."""
replace("scores.masked_fill(key_padding_mask[:, None], -math.inf)", "scores.masked_fill(key_padding_mask.roll(1, 0)[:, None], -math.inf)")

# %% context-of-another-row
"""The context of each row is made of another row's encoder states: rows of a batch do not influence each other."""
replace("weights @ memory], dim=-1)", "weights @ memory.roll(1, 0)], dim=-1)")

# %% decoder-starts-one-token-early price=0.2
"""Your decoder starts from the state before the last real token. The state after n tokens stands at place n - 1 of the
memory."""
replace("lengths = (~key_padding_mask).sum(1)", "lengths = ((~key_padding_mask).sum(1) - 1).clamp(min=0)")

# %% a-part-is-frozen price=0.3
"""A part of your model never learns: its parameters are frozen (`requires_grad`), detached, or belong to a symbol that
was declared as padding (`padding_idx`). Every parameter that the model uses must get a gradient."""
replace("self.out = nn.Linear(d_model, vocab_tgt)", """self.out = nn.Linear(d_model, vocab_tgt)
        self.tgt_embed.weight.requires_grad_(False)""")

# %% symbol-declared-as-padding price=0.2
"""The embedding of one symbol never learns: `padding_idx` keeps it at zero. Every source symbol is a real one here, 0
too."""
replace("nn.Embedding(vocab_src, d_model)", "nn.Embedding(vocab_src, d_model, padding_idx=0)")

# %% all-padding-uniform price=0.15
"""A source that is all padding gets even weights: when every score is the same large negative number, the softmax
cannot tell that nothing may be seen. Block with -inf, and leave such rows to your softargmax."""
replace("key_padding_mask[:, None], -math.inf)", "key_padding_mask[:, None], -1e9)")

# %% target-shifted-again
"""The logits of a step do not depend on that step's own input: `tgt_in` is shifted once more. It starts with the start
token already, so read it as it stands."""
replace("self.tgt_embed(tgt_in)", "self.tgt_embed(tgt_in.roll(1, 1))")
