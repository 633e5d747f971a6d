# %% every-word-at-place-0
"""The first word is right, and later ones are not: every word gets position 0, because it comes alone. It stands
where it stands in the sentence."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for _ in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[0]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% places-one-late
"""Your words stand one place too far to the right: BOS is at position 0, and the word of step t at position t."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len + 1, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t + 1]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% one-cache-for-all-layers
"""All your layers share one cache, so each reads the others' keys. Every layer needs its own."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[0] is not None:
                k, v = torch.cat([caches[0][0], k], dim=2), torch.cat([caches[0][1], v], dim=2)
            caches[0] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% keys-of-raw-x
"""Your cache holds the keys and values of x. In pre-norm they are made of norm1(x), like the query."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, x)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% memory-not-masked
"""More padding behind a sentence changes its translation: src_padding is missing in the cross-attention."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i])
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% memory-keys-of-one-layer
"""All your layers look at the memory through the keys of the first. Each layer has projections of its own."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[0], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% everything-computed-again
"""The words are right and nothing is saved: all words so far go through the decoder in every step. Only the newest
should."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)
    written = src.new_full((len(src), 1), bos_id)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1:].argmax(-1)
        written = torch.cat([written, token], dim=1)
        if (written[:, 1:] == eos_id).any(1).all():
            break
    return [row[: row.index(eos_id)] if eos_id in row else row for row in written[:, 1:].tolist()]


# %% encoder-in-every-step
"""The words are right, but the encoder runs in every step. The source does not change while you write."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        memory = model.encode(src, src_padding)
        fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% stops-at-the-first-eos-of-the-batch
"""Sentences are cut short when they are decoded together: your loop stops as soon as one of them has ended."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = model.decoder_norm(x) @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if any(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))


# %% decoder-norm-forgotten
"""Already the first word is wrong: the logits are made from the last layer's output as it is. decoder_norm comes
first."""
@torch.no_grad()
def cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    B, _, D = memory.shape
    places = sinusoidal_encoding(max_len, D).to(memory)
    fixed = [_project(layer.cross_attn, memory) for layer in model.decoder_layers]
    caches = [None] * len(model.decoder_layers)
    token = torch.full((B, 1), bos_id, device=src.device)
    results, ended = [[] for _ in range(B)], [False] * B
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + places[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            k, v = _project(layer.self_attn, h)
            if caches[i] is not None:
                k, v = torch.cat([caches[i][0], k], dim=2), torch.cat([caches[i][1], v], dim=2)
            caches[i] = (k, v)
            x = x + _attend(layer.self_attn, h, k, v)
            x = x + _attend(layer.cross_attn, layer.norm2(x), *fixed[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        logits = x @ model.tgt_embed.weight.T
        token = logits.argmax(-1)  # [B, 1]
        for b, word in enumerate(token[:, 0].tolist()):
            ended[b] = ended[b] or word == eos_id
            if not ended[b]:
                results[b].append(word)
        if all(ended):
            break
    return results


def _project(mha, x):
    """Keys and values [B, H, N, Dh] of x [B, N, D]."""
    return split_heads(mha.k_proj(x), mha.n_heads), split_heads(mha.v_proj(x), mha.n_heads)


def _attend(mha, x, k, v, padding=None):
    """One query x [B, 1, D] looks at keys and values [B, H, N, Dh]."""
    return mha.o_proj(merge_heads(attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)[0]))
