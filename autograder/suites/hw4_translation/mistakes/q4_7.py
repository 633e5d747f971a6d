# %% eos-not-counted
"""Your scores divide by the number of words without EOS, though the sum has EOS in it. The divisor counts the terms
of the sum."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / max(1, len(tokens) - 1) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% eos-not-paid
"""Ending costs nothing in your search: EOS's log-probability is not in the sum, so short sentences win too
easily."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        ended, live = live, []
        paid = {tuple(tokens): s for s, tokens in ended}
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                s = paid[tuple(tokens[:-1])]
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% length-penalty-ignored
"""Your result does not depend on length_penalty: the sums are compared as they are."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s, tokens) for s, tokens in live]


# %% logits-summed
"""You add up logits. They are log-probabilities only after log_softmax: another constant in every step, so
hypotheses cannot be compared."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% finished-forgotten
"""A hypothesis that has ended disappears from your search, so the result never has an end: put finished ones aside
and let them compete."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live] or found


# %% unfinished-ignored
"""A hypothesis that runs into max_len without EOS competes too, with the score of what it has. You look at finished
ones only."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found or [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% greedy-lost
"""A beam may drop greedy's hypothesis on the way and end with a worse one. Let greedy's hypothesis compete in the
end."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% finished-ones-extended
"""Hypotheses go on behind their EOS in your search, and every further word costs. One that ends in EOS leaves the
beam."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live = [(0.0, [])]
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = sorted(longer, reverse=True)[:width]
    return [(s / len(t) ** length_penalty, t[: t.index(eos_id)] if eos_id in t else t) for s, t in live]


# %% beam-filled-up
"""At width 1 your search goes on after greedy has ended: a place that a finished hypothesis leaves is filled with
the next best. Then width 1 is not greedy."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True):
            if tokens[-1] == eos_id:
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            elif len(live) < width:
                live.append((s, tokens))
            if len(live) == width:
                break
        if not live:
            break
    return found + [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% memory-of-another-sentence
"""Right for one sentence, wrong in a batch: your beams stand sentence by sentence, and the memory is repeated batch
by batch. repeat and repeat_interleave order their copies differently."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    B, device = len(src), src.device
    memory = model.encode(src, src_padding).repeat(width, 1, 1)  # [B * W, S, D]
    padding = None if src_padding is None else src_padding.repeat(width, 1)
    best = _greedy_scored(model, src, src_padding, bos_id, eos_id, max_len, length_penalty)
    live = torch.full((B, width, 1), bos_id, device=device)
    sums = torch.full((B, width), -math.inf, dtype=memory.dtype, device=device)
    sums[:, 0] = 0.0
    for n in range(1, max_len + 1):
        logp = model.decode(live.flatten(0, 1), memory, padding)[:, -1].log_softmax(-1)  # [B * W, V]
        V = logp.shape[-1]
        sums, places = (sums[:, :, None] + logp.view(B, width, V)).flatten(1).topk(width, dim=1)  # [B, W]
        parents = live.gather(1, (places // V)[:, :, None].expand(-1, -1, n))
        live = torch.cat([parents, (places % V)[:, :, None]], dim=2)
        ended = live[:, :, -1] == eos_id
        for b, w in (ended | torch.tensor(n == max_len, device=device)).nonzero().tolist():
            tokens, score = live[b, w, 1:].tolist(), sums[b, w].item() / n**length_penalty
            best[b] = max(best[b], (score, tokens[:-1] if tokens[-1] == eos_id else tokens))
        sums = sums.masked_fill(ended, -math.inf)
        if sums.isinf().all():
            break
    return [tokens for _, tokens in best]


def _greedy_scored(model, src, src_padding, bos_id, eos_id, max_len, length_penalty):
    """(score, tokens) of greedy's hypothesis for each sentence."""
    rows = greedy_decode(model, src, src_padding, bos_id, eos_id, max_len)
    scored = []
    for b, tokens in enumerate(rows):
        padding = None if src_padding is None else src_padding[b : b + 1]
        labels = (tokens + [eos_id])[:max_len]
        tgt = torch.tensor([[bos_id, *labels[:-1]]], device=src.device)
        logp = model.decode(tgt, model.encode(src[b : b + 1], padding), padding)[0].log_softmax(-1)
        total = sum(logp[t, v].item() for t, v in enumerate(labels))
        scored.append((total / max(1, len(labels)) ** length_penalty, tokens))
    return scored


# %% beam-not-masked
"""More padding behind a sentence changes its translation: src_padding is lost on the way to decode."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for _ in range(max_len):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1))[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / len(tokens) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / len(tokens) ** length_penalty, tokens) for s, tokens in live]


# %% penalty-of-wu
"""You divide by ((5 + n) / 6) to the power of length_penalty, as Wu and others do. Here the sum is divided by n to that
power, with n the number of its terms."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for n in range(1, max_len + 1):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / ((5 + n) / 6) ** length_penalty, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / ((5 + n) / 6) ** length_penalty, tokens) for s, tokens in live]


# %% always-the-mean
"""Your scores are the same for every length_penalty: you divide by the number of terms, and not by its power."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    results = []
    for b in range(len(src)):
        padding = None if src_padding is None else src_padding[b : b + 1]
        memory = model.encode(src[b : b + 1], padding)
        found = _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty)
        found += _beam(model, memory, padding, bos_id, eos_id, max_len, 1, length_penalty)  # greedy
        results.append(max(found)[1])
    return results


def _beam(model, memory, padding, bos_id, eos_id, max_len, width, length_penalty):
    """All (score, tokens) that the search ends with."""
    live, found = [(0.0, [])], []
    for n in range(1, max_len + 1):
        tgt = torch.tensor([[bos_id, *tokens] for _, tokens in live], device=memory.device)
        mask = None if padding is None else padding.repeat(len(live), 1)
        logp = model.decode(tgt, memory.repeat(len(live), 1, 1), mask)[:, -1].log_softmax(-1).tolist()
        longer = [(s + p, tokens + [v]) for (s, tokens), row in zip(live, logp, strict=True) for v, p in enumerate(row)]
        live = []
        for s, tokens in sorted(longer, reverse=True)[:width]:
            if tokens[-1] == eos_id:
                found.append((s / n, tokens[:-1]))
            else:
                live.append((s, tokens))
        if not live:
            break
    return found + [(s / n, tokens) for s, tokens in live]
