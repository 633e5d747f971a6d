# %% eos-kept
"""Your sentences end with EOS. The result has the tokens before it."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id) + 1] if eos_id in row else row for row in rows]


# %% bos-kept
"""Your sentences begin with BOS. It was only there to start from: leave it out of the result."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written.tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% stops-at-the-first-eos-of-the-batch
"""Sentences are cut short when they are decoded together: your loop stops as soon as one of them has ended. It
stops when all have."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.any():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% goes-on-after-eos
"""After its end a sentence goes on in your result: you take the EOS out and keep what was written behind it. Cut at
the first EOS."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [[token for token in row if token != eos_id] for row in rows]


# %% last-token-always-cut
"""A sentence that runs into max_len loses its last word: you take away the last token, EOS or not."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row[:-1] for row in rows]


# %% one-step-short
"""You make max_len - 1 steps: BOS is no step. A sentence that does not end has max_len tokens."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len - 1):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% encoder-without-mask
"""The same sentence is translated differently with more padding behind it: src_padding does not reach encode."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% decoder-without-mask
"""The same sentence is translated differently with more padding behind it: src_padding does not reach decode."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% last-word-only
"""Your decoder sees the last word alone, without what was written before it, and always at position 0. Give it all
words so far."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written[:, -1:], memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% sampled
"""Your output changes from call to call: you draw the next word. Greedy takes the most likely one."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].softmax(-1).multinomial(1).squeeze(1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% one-step-too-many
"""You make max_len + 1 steps: a sentence that does not end has max_len tokens, and BOS is none of them."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len + 1):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


# %% bos-never-written
"""You keep the model from writing BOS. Greedy decoding takes the likeliest token, whichever it is."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = torch.full((len(src), 1), bos_id, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        logits = model.decode(written, memory, src_padding)[:, -1].clone()
        logits[:, bos_id] = -math.inf
        token = logits.argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended = ended | (token == eos_id)
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]
