# %% whole-batch
"""All sentences at once in tensors [B, W, n]; ended places are set to minus infinity; greedy's hypothesis is scored
by one pass with its own words."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    B, device = len(src), src.device
    memory = model.encode(src, src_padding).repeat_interleave(width, dim=0)  # [B * W, S, D]
    padding = None if src_padding is None else src_padding.repeat_interleave(width, dim=0)
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


# %% recursive
"""A search that calls itself, one sentence at a time; scores as floats, greedy by width 1."""
@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    def grow(row, beam, n, w):
        """Yields (score, tokens) of everything that ends, or is left after max_len words."""
        if n == max_len or not beam:
            yield from ((total / max(n, 1) ** length_penalty, words) for total, words in beam)
            return
        memory, mask = row
        tgt = torch.tensor([[bos_id, *words] for _, words in beam], device=src.device)
        wide = memory.expand(len(beam), -1, -1), None if mask is None else mask.expand(len(beam), -1)
        logp = torch.log_softmax(model.decode(tgt, *wide)[:, -1], dim=-1)
        totals = logp + torch.tensor([total for total, _ in beam], dtype=logp.dtype, device=logp.device)[:, None]
        top = torch.topk(totals.reshape(-1), min(w, totals.numel()))
        following = []
        for total, place in zip(top.values.tolist(), top.indices.tolist(), strict=True):
            parent, word = divmod(place, logp.shape[1])
            if word == eos_id:
                yield total / (n + 1) ** length_penalty, beam[parent][1]
            else:
                following.append((total, [*beam[parent][1], word]))
        yield from grow(row, following, n + 1, w)

    answers = []
    for i in range(len(src)):
        mask = None if src_padding is None else src_padding[i : i + 1]
        row = model.encode(src[i : i + 1], mask), mask
        ends = [end for w in (1, width) for end in grow(row, [(0.0, [])], 0, w)]
        answers.append(max(ends, key=lambda end: end[0])[1])
    return answers


# %% finished-stay-in-the-beam
"""Finished hypotheses keep their place and compete by score for it with those that live; all that ever ended are
remembered; greedy comes from 4.6."""
class Hypothesis:
    def __init__(self, words, total, done):
        self.words, self.total, self.done = words, total, done

    def score(self, alpha):
        return self.total / max(1, len(self.words) + self.done) ** alpha


@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    greedy = greedy_decode(model, src, src_padding, bos_id, eos_id, max_len)
    if width == 1:
        return greedy
    results = []
    for b, first in enumerate(greedy):
        mask = None if src_padding is None else src_padding[b].unsqueeze(0)
        memory = model.encode(src[b].unsqueeze(0), mask)

        def next_logp(words, memory=memory, mask=mask):
            tgt = torch.tensor([[bos_id, *words]], device=src.device)
            return model.decode(tgt, memory, mask)[0].log_softmax(-1)

        every = next_logp(first)
        total = sum(float(every[t, word]) for t, word in enumerate(first))
        done = len(first) < max_len
        best = Hypothesis(first, total + (float(every[len(first), eos_id]) if done else 0.0), done)
        beam = [Hypothesis([], 0.0, False)]
        for _ in range(max_len):
            pool = [h for h in beam if h.done]
            for h in (h for h in beam if not h.done):
                logp = next_logp(h.words)[-1]
                for word in logp.topk(min(width, len(logp))).indices.tolist():
                    ends = word == eos_id
                    pool.append(Hypothesis(h.words if ends else [*h.words, word], h.total + float(logp[word]), ends))
            beam = sorted(pool, key=lambda h: -h.score(length_penalty))[:width]
            best = max([best, *(h for h in beam if h.done)], key=lambda h: h.score(length_penalty))
            if all(h.done for h in beam):
                break
        results.append(max([best, *beam], key=lambda h: h.score(length_penalty)).words)
    return results


# %% refilled-beam
"""A place that a finished hypothesis leaves is filled with the next best; width 1 is greedy by definition; a heap
keeps what has ended."""
import heapq


@torch.no_grad()
def beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty):
    greedy = greedy_decode(model, src, src_padding, bos_id, eos_id, max_len)
    if width == 1:
        return greedy
    memory = model.encode(src, src_padding)
    results = []
    for b in range(len(src)):
        def logp_of(rows, b=b):
            K = len(rows)
            mask = None if src_padding is None else src_padding[[b] * K]
            return model.decode(torch.tensor(rows, device=src.device), memory[[b] * K], mask).log_softmax(-1)

        labels = [*greedy[b], eos_id][:max_len]
        right = logp_of([[bos_id, *labels][:-1]])[0].gather(1, torch.tensor(labels, device=src.device)[:, None])
        ended = [(-right.sum().item() / len(labels) ** length_penalty, greedy[b])]
        rows, sums = [[bos_id]], [0.0]
        for n in range(1, max_len + 1):
            logp = logp_of(rows)[:, -1]
            totals = logp + torch.tensor(sums, dtype=logp.dtype, device=logp.device)[:, None]
            for row, total in zip(rows, totals[:, eos_id].tolist(), strict=True):
                heapq.heappush(ended, (-total / n**length_penalty, row[1:]))
            totals[:, eos_id] = -math.inf
            values, places = totals.flatten().topk(min(width, totals.numel()))
            alive = [(s, p) for s, p in zip(values.tolist(), places.tolist(), strict=True) if s > -math.inf]
            if not alive:
                break
            rows = [[*rows[p // totals.shape[1]], p % totals.shape[1]] for _, p in alive]
            sums = [s for s, _ in alive]
        else:
            for row, total in zip(rows, sums, strict=True):
                heapq.heappush(ended, (-total / max_len**length_penalty, row[1:]))
        results.append(ended[0][1])
    return results
