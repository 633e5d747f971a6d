# %% inverse-distribution-function
"""Draws by a running sum and one uniform number for each row; ids kept in one tensor; mask by comparison."""
def sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None):
    lengths = [len(p) for p in prompts]
    T = max(lengths)
    if T + n > model.max_len:
        raise ValueError("there is no room for that many tokens")
    if n == 0:
        return [list(p) for p in prompts]
    device = next(iter(model.parameters())).device
    left = torch.tensor([T - length for length in lengths], device=device)[:, None]
    ids = torch.full((len(prompts), T + n), 1, dtype=torch.long, device=device)
    for b, p in enumerate(prompts):
        ids[b, T - len(p) : T] = torch.tensor(p, device=device)
    mode = model.training
    try:
        model.eval()
        with torch.inference_mode():
            cache, start = model.new_cache(), 0
            for t in range(T, T + n):
                mask = torch.arange(t, device=device)[None] < left
                logits = model(ids[:, start:t], key_padding_mask=mask, cache=cache)[:, -1, :]
                p = next_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p).double()
                u = torch.rand(len(prompts), 1, generator=generator, dtype=torch.float64).to(device)
                c = p.cumsum(-1)
                ids[:, t] = (c <= u * c[:, -1:]).sum(-1)
                start = t
    finally:
        model.train(mode)
    return [row[T - length :] for row, length in zip(ids.tolist(), lengths, strict=True)]


# %% gumbel
"""Largest of log p plus Gumbel noise; greedy without a draw; a context manager for the mode; one call more than needed,
which fills the cache."""
from contextlib import contextmanager


@contextmanager
def _still(model):
    before = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(before)


@torch.no_grad()
def sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None):
    T = max(len(p) for p in prompts)
    if T + n > model.max_len:
        raise ValueError(f"{T} + {n} > {model.max_len}")
    dev = model.token_embed.weight.device
    pad = torch.zeros(len(prompts), T, dtype=torch.bool, device=dev)
    x = torch.zeros(len(prompts), T, dtype=torch.long, device=dev)
    for i, p in enumerate(prompts):
        pad[i, : T - len(p)] = True
        x[i, T - len(p) :] = torch.as_tensor(p, device=dev)
    out = [list(p) for p in prompts]
    with _still(model):
        cache = model.new_cache()
        logits = model(x, pad, cache)
        for _ in range(n):
            p = next_probabilities(logits[:, -1], temperature, top_k, top_p)
            if temperature == 0:
                pick = p.argmax(-1)
            else:
                noise = torch.rand(p.shape, generator=generator, dtype=torch.float64).clamp_min(1e-300).to(dev)
                pick = (p.double().log() - torch.log(-torch.log(noise))).argmax(-1)
            for i in range(len(out)):
                out[i].append(pick[i].item())
            pad = torch.cat([pad, torch.zeros_like(pad[:, :1])], 1)
            logits = model(pick[:, None], pad, cache)
    return out


# %% python-draws
"""Probabilities as Python lists, bisected by numbers of the generator; positions of rows in a list of lists."""
import bisect
import itertools


def sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None):
    if not prompts:
        return []
    width = max(map(len, prompts))
    if width + n > model.max_len:
        raise ValueError("beyond max_len")
    texts = [list(p) for p in prompts]
    params = list(model.parameters())
    new = [[texts[i][0]] * (width - len(p)) + list(p) for i, p in enumerate(prompts)]
    blocked = [[True] * (width - len(p)) + [False] * len(p) for p in prompts]
    training = model.training
    model.eval()
    try:
        cache = model.new_cache()
        for _ in range(n):
            with torch.no_grad():
                ids = torch.tensor(new, device=params[0].device)
                logits = model(ids, torch.tensor(blocked, device=params[0].device), cache)[:, -1]
            rows = next_probabilities(logits, temperature, top_k, top_p).tolist()
            draws = torch.rand(len(rows), generator=generator, dtype=torch.float64).tolist()
            new = []
            for text, row, u in zip(texts, rows, draws, strict=True):
                sums = list(itertools.accumulate(row))
                i = bisect.bisect_right(sums, u * sums[-1])
                while row[i] == 0:
                    i -= 1
                text.append(i)
                new.append([i])
            blocked = [b + [False] for b in blocked]
    finally:
        model.train(training)
    return texts


# %% torchs-own-generator-by-name
"""None becomes torch's own generator by name; exponential races for the draw; masks from lengths; keyword arguments."""
@torch.inference_mode()
def sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None):
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    room = int(lengths.max())
    if room + n > model.max_len:
        raise ValueError(f"prompts of {room} tokens leave no room for {n} more")
    source = generator if generator is not None else torch.default_generator
    where = next(model.parameters()).device
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(p[::-1]) for p in prompts], batch_first=True).flip(1).to(where)
    gaps = (room - lengths).to(where)
    texts, training = [prompt[:] for prompt in prompts], model.training
    model.eval()
    try:
        memory, fresh = model.new_cache(), ids
        for step in range(n):
            mask = torch.arange(room + step, device=where).unsqueeze(0) < gaps.unsqueeze(1)
            p = next_probabilities(model(fresh, cache=memory, key_padding_mask=mask)[:, -1], temperature, top_k, top_p)
            race = torch.empty(p.shape, dtype=torch.float64).exponential_(generator=source).to(where)
            fresh = (p.double() / race).argmax(dim=1, keepdim=True)
            for text, token in zip(texts, fresh.squeeze(1).tolist(), strict=True):
                text.append(token)
    finally:
        model.train(training)
    return texts
