# %% tables-allocated-once
"""Keys and values in tables of max_len places, filled in place; scores by einsum with padding as minus infinity."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)
    B, S, D = memory.shape
    H = model.decoder_layers[0].self_attn.n_heads
    hidden = torch.zeros(B, S, dtype=torch.bool, device=src.device) if src_padding is None else src_padding
    positions = sinusoidal_encoding(max_len, D).to(dtype=memory.dtype, device=memory.device)

    def heads(x):
        return x.reshape(B, -1, H, D // H)  # [B, N, H, Dh]

    def look(mha, x, k, v, blocked=None):
        scores = torch.einsum("bhd,bnhd->bhn", heads(mha.q_proj(x))[:, 0], k) * (D // H) ** -0.5
        if blocked is not None:
            scores = scores.masked_fill(blocked[:, None], -math.inf)
        weights = softargmax(scores)
        return mha.o_proj(torch.einsum("bhn,bnhd->bhd", weights, v).reshape(B, 1, D))

    source = [(heads(a.k_proj(memory)), heads(a.v_proj(memory))) for a in (lay.cross_attn for lay in model.decoder_layers)]
    tables = [[memory.new_empty(B, max_len, H, D // H) for _ in "kv"] for _ in model.decoder_layers]
    out = torch.full((B, max_len + 1), eos_id, device=src.device)
    out[:, 0] = bos_id
    going = torch.ones(B, dtype=torch.bool, device=src.device)
    for t in range(max_len):
        x = model.tgt_embed(out[:, t : t + 1]) * D**0.5 + positions[t : t + 1]
        for layer, (keys, values), (mk, mv) in zip(model.decoder_layers, tables, source, strict=True):
            h = layer.norm1(x)
            keys[:, t] = heads(layer.self_attn.k_proj(h))[:, 0]
            values[:, t] = heads(layer.self_attn.v_proj(h))[:, 0]
            x = x + look(layer.self_attn, h, keys[:, : t + 1], values[:, : t + 1])
            x = x + look(layer.cross_attn, layer.norm2(x), mk, mv, hidden)
            x = x + layer.ff(layer.norm3(x))
        best = F.linear(model.decoder_norm(x[:, 0]), model.tgt_embed.weight).argmax(-1)
        out[:, t + 1] = torch.where(going, best, eos_id)
        going &= best != eos_id
        if not going.any():
            break
    rows = out[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% cache-class
"""A cache object for each attention: the self-attention's grows, the memory's is filled once."""
class Keeper:
    """Keys and values of one attention layer."""

    def __init__(self, mha, padding=None):
        self.mha, self.padding, self.k, self.v = mha, padding, [], []

    def add(self, x):
        self.k.append(split_heads(self.mha.k_proj(x), self.mha.n_heads))
        self.v.append(split_heads(self.mha.v_proj(x), self.mha.n_heads))
        return self

    def ask(self, x):
        q = split_heads(self.mha.q_proj(x), self.mha.n_heads)
        out, _ = attention(q, torch.cat(self.k, dim=2), torch.cat(self.v, dim=2), key_padding_mask=self.padding)
        return self.mha.o_proj(merge_heads(out))


def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    with torch.no_grad():
        memory = model.encode(src, src_padding)
        own = [Keeper(layer.self_attn) for layer in model.decoder_layers]
        other = [Keeper(layer.cross_attn, src_padding).add(memory) for layer in model.decoder_layers]
        where = sinusoidal_encoding(max_len, memory.shape[-1]).to(memory)
        written = [src.new_full((len(src), 1), bos_id)]
        while len(written) <= max_len and not _all_ended(written, eos_id):
            x = model.tgt_embed(written[-1]) * math.sqrt(memory.shape[-1]) + where[len(written) - 1]
            for layer, mine, theirs in zip(model.decoder_layers, own, other, strict=True):
                h = layer.norm1(x)
                x = x + mine.add(h).ask(h)
                x = x + theirs.ask(layer.norm2(x))
                x = x + layer.ff(layer.norm3(x))
            written.append((model.decoder_norm(x) @ model.tgt_embed.weight.T).argmax(-1))
    rows = torch.cat(written, dim=1)[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


def _all_ended(written, eos_id):
    return len(written) > 1 and bool((torch.cat(written[1:], dim=1) == eos_id).any(1).all())


# %% fused-attention
"""F.scaled_dot_product_attention on the cached keys and values, with a mask of allowed keys for the memory."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)
    D = memory.shape[-1]
    allowed = None if src_padding is None else ~src_padding[:, None, None, :]  # [B, 1, 1, S]

    def keys_values(mha, x):
        return [split_heads(p(x), mha.n_heads) for p in (mha.k_proj, mha.v_proj)]

    def attend(mha, x, k, v, mask=None):
        out = F.scaled_dot_product_attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, attn_mask=mask)
        return mha.o_proj(merge_heads(out))

    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [keys_values(layer.cross_attn, memory) for layer in model.decoder_layers]
    past = {}
    tokens = torch.full((src.shape[0],), bos_id, device=src.device)
    columns = []
    for t in range(max_len):
        x = (model.tgt_embed(tokens) * math.sqrt(D) + places[t]).unsqueeze(1)
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = keys_values(layer.self_attn, h)
            if i in past:
                k, v = torch.cat([past[i][0], k], 2), torch.cat([past[i][1], v], 2)
            past[i] = k, v
            x = x + attend(layer.self_attn, h, k, v)
            x = x + attend(layer.cross_attn, layer.norm2(x), *fixed[i], allowed)
            x = x + layer.ff(layer.norm3(x))
        tokens = torch.einsum("bd,vd->bv", model.decoder_norm(x)[:, 0], model.tgt_embed.weight).argmax(1)
        columns.append(tokens.tolist())
        if all(eos_id in row for row in zip(*columns, strict=True)):
            break
    rows = [list(row) for row in zip(*columns, strict=True)] or [[] for _ in range(len(src))]
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% one-sentence-at-a-time
"""Encoded together, written one after the other; a generator yields the words of one sentence, and the padding is
cut off the memory."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)
    keep = torch.ones_like(src, dtype=torch.bool) if src_padding is None else ~src_padding
    places = sinusoidal_encoding(max_len, memory.shape[-1]).to(memory)
    return [list(_words(model, memory[b, keep[b]][None], places, bos_id, eos_id)) for b in range(len(src))]


def _words(model, memory, places, bos_id, eos_id):
    D = memory.shape[-1]
    crosses = [(layer.cross_attn.k_proj(memory), layer.cross_attn.v_proj(memory)) for layer in model.decoder_layers]
    selves = [(memory[:, :0], memory[:, :0]) for _ in model.decoder_layers]  # empty

    def attend(mha, x, k, v):
        q, k, v = (split_heads(y, mha.n_heads) for y in (mha.q_proj(x), k, v))
        return mha.o_proj(merge_heads(attention(q, k, v)[0]))

    word = bos_id
    for place in places:
        x = model.tgt_embed.weight[word].reshape(1, 1, D) * math.sqrt(D) + place
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = selves[i]
            selves[i] = torch.cat([k, layer.self_attn.k_proj(h)], 1), torch.cat([v, layer.self_attn.v_proj(h)], 1)
            x = x + attend(layer.self_attn, h, *selves[i])
            x = x + attend(layer.cross_attn, layer.norm2(x), *crosses[i])
            x = x + layer.ff(layer.norm3(x))
        word = int((model.tgt_embed.weight @ model.decoder_norm(x)[0, 0]).argmax())
        if word == eos_id:
            return
        yield word
