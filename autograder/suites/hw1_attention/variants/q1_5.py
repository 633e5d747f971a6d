# %% cells-with-input-feeding
"""GRU cells in both loops; the previous attentional state is fed into the next step; "dot" scores after a
projection."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.embed = nn.ModuleList([nn.Embedding(vocab_src, d_model), nn.Embedding(vocab_tgt, d_model)])
        self.read = nn.GRUCell(d_model, d_model)
        self.write = nn.GRUCell(2 * d_model, d_model)
        self.ask = nn.Linear(d_model, d_model)
        self.mix = nn.Linear(2 * d_model, d_model)
        self.out = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        pad = torch.zeros(src.shape, dtype=torch.bool, device=src.device)
        if key_padding_mask is not None:
            pad = key_padding_mask
        xs, ys = self.embed[0](src), self.embed[1](tgt_in)
        h = torch.zeros_like(xs[:, 0])
        memory = []
        for x, hold in zip(xs.unbind(1), pad.unbind(1), strict=True):
            h = torch.where(hold[:, None], h, self.read(x, h))
            memory.append(h)
        memory = torch.stack(memory, 1)  # [B, S, D]
        fed = torch.zeros_like(h)
        logits, weights = [], []
        for y in ys.unbind(1):
            h = self.write(torch.cat([y, fed], -1), h)
            scores = luong_scores(self.ask(h), memory, "dot").masked_fill(pad, -math.inf)  # [B, S]
            a = softargmax(scores)
            context = torch.einsum("bs,bsd->bd", a, memory)
            fed = torch.tanh(self.mix(torch.cat([h, context], -1)))
            logits.append(self.out(fed))
            weights.append(a)
        return torch.stack(logits, 1), torch.stack(weights, 1)


# %% packed-sequence
"""nn.GRU on a packed sequence: real tokens are moved to the front, the weights moved back to their places."""
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src = nn.Embedding(vocab_src, d_model)
        self.tgt = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.general = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))
        self.combine = nn.Linear(2 * d_model, d_model, bias=False)
        self.head = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        if key_padding_mask is None:
            key_padding_mask = src.new_zeros(src.shape, dtype=torch.bool)
        order = key_padding_mask.to(torch.uint8).argsort(dim=1, stable=True)  # real tokens first
        pad = key_padding_mask.gather(1, order)
        lengths = (~pad).sum(1)
        packed = pack_padded_sequence(
            self.src(src.gather(1, order)), lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, final = self.encoder(packed)
        keys, _ = pad_packed_sequence(states, batch_first=True, total_length=src.shape[1])  # [B, S, D]
        alive = (lengths > 0)[None, :, None]
        queries, _ = self.decoder(self.tgt(tgt_in), torch.where(alive, final, 0.0))  # [B, T, D]
        scores = torch.einsum("btd,de,bse->bts", queries, self.general, keys)
        weights = softargmax(scores.masked_fill(pad[:, None, :], float("-inf")))
        mixed = torch.tanh(self.combine(torch.cat([queries, torch.bmm(weights, keys)], dim=2)))
        back = order.argsort(dim=1)[:, None, :].expand_as(weights)
        return self.head(mixed), weights.gather(2, back)


# %% additive-attention-before-the-step
"""Bahdanau's order: the previous state asks, additive scores, the context goes into the GRU and into the
read-out."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRUCell(d_model, d_model)
        self.decoder = nn.GRUCell(2 * d_model, d_model)
        self.from_query = nn.Linear(2 * d_model, d_model)
        self.from_key = nn.Linear(d_model, d_model, bias=False)
        self.v = nn.Linear(d_model, 1, bias=False)
        self.out = nn.Sequential(nn.Linear(3 * d_model, d_model), nn.Tanh(), nn.Linear(d_model, vocab_tgt))

    def forward(self, src, tgt_in, key_padding_mask=None):
        B, S = src.shape
        x = self.src_embed(src)
        real = torch.ones(B, S, 1, dtype=x.dtype, device=x.device)
        if key_padding_mask is not None:
            real = 1 - key_padding_mask[..., None].to(x.dtype)
        state = x.new_zeros(B, x.shape[-1])
        keys = x.new_zeros(B, 0, x.shape[-1])
        for s in range(S):
            new = self.encoder(x[:, s], state)
            state = real[:, s] * new + (1 - real[:, s]) * state
            keys = torch.cat([keys, state[:, None]], 1)
        projected = self.from_key(keys)  # [B, S, D]
        logits, weights = [], []
        for t in range(tgt_in.shape[1]):
            y = self.tgt_embed(tgt_in[:, t])
            asked = self.from_query(torch.cat([state, y], -1))
            scores = self.v(torch.tanh(asked[:, None] + projected)).squeeze(-1)  # [B, S]
            e = torch.exp(scores - scores.amax(1, keepdim=True).detach()) * real[..., 0]
            w = e / e.sum(1, keepdim=True).clamp(min=1e-30)
            context = (w[..., None] * keys).sum(1)
            state = self.decoder(torch.cat([y, context], -1), state)
            logits.append(self.out(torch.cat([state, context, y], -1)))
            weights.append(w)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


# %% bidirectional-encoder
"""The encoder reads both ways and holds its state over padding; the decoder runs at once, finite fill with
dead rows zeroed."""
class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.forwards = nn.GRUCell(d_model, d_model)
        self.backwards = nn.GRUCell(d_model, d_model)
        self.join = nn.Linear(2 * d_model, d_model)
        self.bridge = nn.Linear(2 * d_model, d_model)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.query = nn.Linear(d_model, d_model)
        self.final = nn.Linear(2 * d_model, d_model)
        self.logits = nn.Linear(d_model, vocab_tgt)

    @staticmethod
    def run(cell, x, pad, steps):
        h, states = x.new_zeros(x.shape[0], x.shape[2]), {}
        for s in steps:
            h = torch.where(pad[:, s : s + 1], h, cell(x[:, s], h))
            states[s] = h
        return torch.stack([states[s] for s in sorted(states)], 1), h

    def forward(self, src, tgt_in, key_padding_mask=None):
        S = src.shape[1]
        pad = key_padding_mask if key_padding_mask is not None else torch.zeros_like(src).bool()
        x = self.src_embed(src)
        right, end = self.run(self.forwards, x, pad, range(S))
        left, start = self.run(self.backwards, x, pad, reversed(range(S)))
        keys = self.join(torch.cat([right, left], -1))  # [B, S, D]
        h0 = torch.tanh(self.bridge(torch.cat([end, start], -1)))
        states, _ = self.decoder(self.tgt_embed(tgt_in), h0.unsqueeze(0))  # [B, T, D]
        scores = torch.bmm(self.query(states), keys.mT)  # [B, T, S]
        scores = scores.masked_fill(pad.unsqueeze(1), torch.finfo(scores.dtype).min)
        weights = F.softmax(scores, -1).masked_fill(pad.unsqueeze(1), 0.0)
        return self.logits(F.relu(self.final(torch.cat([states, weights @ keys], -1)))), weights


# %% hand-made-gru
"""The GRU's own equations with nn.Linear; padding closes the update gate, so the state is kept."""
class Recurrence(nn.Module):
    def __init__(self, width, d_model):
        super().__init__()
        self.gates = nn.Linear(width + d_model, 2 * d_model)
        self.candidate = nn.Linear(width + d_model, d_model)

    def forward(self, x, h, closed=None):
        update, reset = torch.sigmoid(self.gates(torch.cat([x, h], -1))).chunk(2, -1)
        if closed is not None:
            update = update.masked_fill(closed[:, None], 0.0)
        return h + update * (torch.tanh(self.candidate(torch.cat([x, reset * h], -1))) - h)


class AttentionSeq2Seq(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model):
        super().__init__()
        self.source = nn.Embedding(vocab_src, d_model)
        self.target = nn.Embedding(vocab_tgt, d_model)
        self.encode = Recurrence(d_model, d_model)
        self.decode = Recurrence(d_model, d_model)
        self.W = nn.Parameter(torch.eye(d_model))
        self.W_f = nn.Parameter(torch.randn(d_model, 2 * d_model) / math.sqrt(2 * d_model))
        self.head = nn.Linear(d_model, vocab_tgt)

    def forward(self, src, tgt_in, key_padding_mask=None):
        x, y = self.source(src), self.target(tgt_in)
        h = x.new_zeros(x.shape[0], x.shape[-1])
        states = []
        for s in range(src.shape[1]):
            h = self.encode(x[:, s], h, None if key_padding_mask is None else key_padding_mask[:, s])
            states.append(h)
        keys = torch.stack(states, 1)
        logits, weights = [], []
        for t in range(tgt_in.shape[1]):
            h = self.decode(y[:, t], h)
            scores = luong_scores(h, keys, "general", W=self.W)
            if key_padding_mask is not None:
                scores = scores.masked_fill(key_padding_mask, -math.inf)
            w = F.softmax(scores, -1).nan_to_num(0.0)
            context = torch.matmul(w.unsqueeze(1), keys).squeeze(1)
            logits.append(self.head(torch.tanh(torch.cat([h, context], -1) @ self.W_f.T)))
            weights.append(w)
        return torch.stack(logits, 1), torch.stack(weights, 1)
