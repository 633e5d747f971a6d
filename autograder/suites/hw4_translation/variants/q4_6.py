# %% sentence-by-sentence
"""One sentence at a time, without its padding: a loop over plain lists."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    results = []
    for i in range(src.shape[0]):
        mask = None if src_padding is None else src_padding[i : i + 1]
        memory = model.encode(src[i : i + 1], mask)
        tokens = [bos_id]
        while len(tokens) <= max_len:
            logits = model.decode(torch.tensor([tokens], device=src.device), memory, mask)
            token = int(logits[0, -1].argmax())
            if token == eos_id:
                break
            tokens.append(token)
        results.append(tokens[1:])
    return results


# %% fixed-size-table
"""A table of max_len + 1 columns filled from the left; ended sentences are frozen at EOS and cut by counting."""
@torch.inference_mode()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    B = src.shape[0]
    memory = model.encode(src, src_padding)
    table = torch.full((B, max_len + 1), eos_id, dtype=torch.long, device=src.device)
    table[:, 0] = bos_id
    alive = torch.ones(B, dtype=torch.bool, device=src.device)
    length = torch.zeros(B, dtype=torch.long, device=src.device)
    for t in range(max_len):
        logits = model.decode(table[:, : t + 1], memory, src_padding)[:, t]
        token = torch.where(alive, logits.argmax(dim=-1), eos_id)
        table[:, t + 1] = token
        alive = alive & (token != eos_id)
        length += alive
        if not bool(alive.any()):
            break
    return [table[i, 1 : 1 + n].tolist() for i, n in enumerate(length.tolist())]


# %% only-the-living
"""Sentences leave the batch when they end: only those that go on are decoded."""
@torch.no_grad()
def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    memory = model.encode(src, src_padding)
    results = [[] for _ in range(len(src))]
    going = list(range(len(src)))
    for _ in range(max_len):
        if not going:
            break
        tgt = torch.tensor([[bos_id, *results[i]] for i in going], device=src.device)
        mask = None if src_padding is None else src_padding[going]
        best = model.decode(tgt, memory[going], mask)[:, -1, :].topk(1).indices[:, 0].tolist()
        for i, token in zip(going, best, strict=True):
            if token != eos_id:
                results[i].append(token)
        going = [i for i, token in zip(going, best, strict=True) if token != eos_id]
    return results


# %% all-steps-then-cut
"""Always max_len steps, log-probabilities instead of logits, cut by takewhile at the end; leaves the model in the
mode it was in."""
from itertools import takewhile


def greedy_decode(model, src, src_padding, bos_id, eos_id, max_len):
    mode = model.training
    model.eval()
    with torch.no_grad():
        memory = model.encode(src, src_padding)
        ys = src.new_full((src.size(0), 1), bos_id)
        for _ in range(max_len):
            logp = F.log_softmax(model.decode(ys, memory, src_padding), dim=-1)[:, -1:]
            ys = torch.cat((ys, logp.max(-1).indices), 1)
    model.train(mode)
    return [list(takewhile(lambda token: token != eos_id, row[1:])) for row in ys.tolist()]
