# %% padding-attended
"""Your attention gives weight to padded source places: changing a padding token changes the logits. Block
those keys before the softmax."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% encoder-state-after-padding
"""The decoder starts from the encoder's state after the padding, so padding reaches the logits although
attention hides it. Start from the state at the last real token of each sentence (and read the source from left to
right only: a GRU that also reads backwards carries the padding to every state)."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, final = self.encoder(self.src_embed(src))  # [B, S, D], [1, B, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), final)  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% mask-polarity-inverted
"""Your model attends to the padding and to nothing else: on the card True means padding, and you treat True
as "may be attended to"."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        ignore = pad if key_padding_mask is None else ~pad
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(ignore[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% masked-after-softmax
"""You zero the padded places after the softmax, so your rows sum to less than 1 and the padding still counts
in the denominator. Block the scores before the softmax."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores).masked_fill(pad[:, None], 0.0)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% all-padding-nan
"""A sentence that is all padding gives NaN: a softmax over nothing but -inf has no value. The card asks for
zero weights there; your q1_1 knows how."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = torch.softmax(scores.masked_fill(pad[:, None], -math.inf), -1)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% context-ignored
"""Your logits come from the decoder's state alone: the weights are computed, but their weighted sum of
encoder states never reaches the output."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(states))
        return self.out(h_tilde), weights


# %% softmax-over-targets
"""Your weights sum to 1 over the target steps, not over the source places: look at the axis of the softmax.
It also lets later target tokens change earlier logits."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf), dim=1)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% rows-meet-in-training
"""In training mode the rows of a batch influence each other: a batch norm takes its mean and variance over all of them.
Leave it out; `nn.LayerNorm` looks at one state only."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.norm = nn.BatchNorm1d(d_model)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(self.norm(h_tilde.transpose(1, 2)).transpose(1, 2)), weights


# %% encoder-states-detached
"""No gradient reaches the encoder through the attention: its states are detached (or their `.data` is taken)
before they are used as keys, so the encoder cannot learn what to offer."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h.detach())
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% decoder-sees-the-future
"""A later target token changes earlier logits: your decoder runs in both directions, or `tgt_in` is shifted once more
than it should be. At step t it may know only the target tokens up to t, or there is nothing left to predict."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True, bidirectional=True)
        self.join = nn.Linear(2 * d_model, d_model)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h.expand(2, -1, -1).contiguous())
        states = self.join(states)  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% one-query-for-all-steps
"""Every target step has the same weights: you score the encoder with the decoder's final state only. Each
step needs weights of its own, from its own state."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states[:, -1:].expand_as(states)) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% batch-not-first
"""The sentences of a batch influence one another: one of your GRUs takes the first axis as time. The card's
shapes are batch first, and nn.GRU has to be told."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% last-state-only
"""All your weight lies on the last source token: the decoder is offered one encoder state, not all of them.
Keep the state of every step and attend over the whole list."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        places = torch.arange(src.shape[1], device=src.device)
        last = (~pad * (places + 1)).argmax(1)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        others = pad | (places != last[:, None])
        weights = softargmax(scores.masked_fill(others[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% scores-for-weights
"""The rows of the second thing you return do not sum to 1: these look like the scores before the softmax. Return the
weights with which the encoder states were mixed."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), scores.masked_fill(pad[:, None], 0.0)


# %% weights-transposed
"""Your weights have shape [B, S, T]: the card asks for target steps first, source places last, so that each
row sums to 1."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        x = self.src_embed(src)
        h, keys = x.new_zeros(x.shape[0], x.shape[2]), []
        for s in range(src.shape[1]):
            h = torch.where(pad[:, s, None], h, self.encoder(x[:, s], h))
            keys.append(h)
        keys = torch.stack(keys, 1)  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights.transpose(1, 2)


# %% another-result-every-time
"""In eval mode the same call gives another result the second time. Either dropout is always on (`F.dropout` needs
`training=self.training`, or use `nn.Dropout`), or your model keeps something from one call for the next."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        scores = scores.masked_fill(pad[:, None], -math.inf)
        weights = softargmax(scores)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        h_tilde = F.dropout(h_tilde, 0.2)
        return self.out(h_tilde), weights


# %% other-weights-returned
"""The weights that you return are not those that the model averages with: they come from a second softmax. Return the
very tensor that is multiplied by the memory."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        scores = scores.masked_fill(pad[:, None], -math.inf)
        weights = softargmax(scores)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), softargmax(2 * scores)


# %% all-padding-starts-from-padding
"""A sentence that is all padding starts the decoder from a state made of padding: its number of real tokens is 0, and
you take place 0 all the same. There is no real state, so start from zeros."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last]
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        scores = scores.masked_fill(pad[:, None], -math.inf)
        weights = softargmax(scores)
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% a-symbol-taken-for-padding
"""You take a source symbol, such as 0, for padding wherever it stands. Every symbol is a real one here: only
`key_padding_mask` says what is padding."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        pad = pad | (src == 0)
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% decoder-starts-from-zeros
"""The encoder's last state is not handed over: your decoder starts from zeros, so where it looks does not depend on
what was read. Start it from the encoder's last real state."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in))  # [B, T, D]
        scores = self.W(states) @ keys.transpose(1, 2)  # [B, T, S]
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights


# %% weights-ignore-the-source
"""Your weights do not depend on what stands in the source: they follow from the places alone. Score each step's state
against the encoder's states."""


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros_like(src, dtype=torch.bool) if key_padding_mask is None else key_padding_mask
        keys, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        last = (~pad * torch.arange(1, src.shape[1] + 1, device=src.device)).argmax(1)
        h = keys[torch.arange(len(src), device=src.device), last] * ~pad.all(1, keepdim=True)
        states, _ = self.decoder(self.tgt_embed(tgt_in), h[None])  # [B, T, D]
        T, S = tgt_in.shape[1], src.shape[1]
        t, s = torch.arange(T, device=src.device)[:, None], torch.arange(S, device=src.device)
        scores = -1.0 * (s + t - S + 1).abs().to(keys).expand(len(src), T, S)
        weights = softargmax(scores.masked_fill(pad[:, None], -math.inf))
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ keys], -1)))
        return self.out(h_tilde), weights
