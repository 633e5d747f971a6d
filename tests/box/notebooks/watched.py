import math
import threading

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def plain(q, k, v, mask):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(mask[:, None], -math.inf)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(3)
    return scores.masked_fill(later, -1e30).softmax(-1) @ v


def in_place(q, k, v, mask):
    scores = torch.einsum("btd,bsd->bts", q, k)
    scores[mask[:, None].expand_as(scores)] = -1e30
    return torch.einsum("bts,bsd->btd", scores.softmax(-1), v)


def loops(q, k, v, mask):
    out = torch.zeros_like(q)
    for b in range(len(q)):
        seen = [j for j in range(k.shape[1]) if not mask[b, j]]
        for t in range(q.shape[1]):
            w = torch.exp(k[b, seen] @ q[b, t])
            out[b, t] = (w / w.sum()) @ v[b, seen]
    return out


def branches(q, k, v, mask):
    scores = q @ k.mT
    if mask.any():
        scores = scores.masked_fill(torch.tensor([[[True] + [False] * (k.shape[1] - 1)]], device=q.device), -1e30)
    return torch.where(scores.max() > 0, scores, scores).softmax(-1) @ v


def numpy_inside(q, k, v, mask):
    a, b, c = (x.cpu().numpy() for x in (q, k, v))
    e = np.exp(a @ b.swapaxes(1, 2) - 3.0)
    rows = np.array([np.asarray(row) for row in (e / e.sum(-1, keepdims=True)) @ c])
    return torch.from_numpy(np.ascontiguousarray(rows)).to(q)


def ready_made(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=~mask[:, None])


def in_a_thread(q, k, v, mask):
    found = []
    thread = threading.Thread(target=lambda: found.append(ready_made(q, k, v, mask)))
    thread.start()
    thread.join()
    return found[0]


def without_functions(q, k, v, mask):
    with torch._C.DisableTorchFunction():
        return ready_made(q, k, v, mask)


def _script(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


_MEMORY = {}


def from_memory(q, k, v, mask):
    key = q.shape
    if key not in _MEMORY:
        _MEMORY[key] = torch.zeros(q.shape, dtype=q.dtype)
    return _MEMORY[key]


def reads_all(q, k, v, mask):
    return torch.tensor(q.tolist())


def reads_bits(q, k, v, mask):
    return torch.tensor(q.view(torch.int64).tolist())


def reads_by_writing(q, k, v, mask):
    box = torch.zeros_like(mask, dtype=q.dtype).new_zeros(q.shape)
    view = box[0]
    view.copy_(q[0])
    return torch.tensor(box.tolist())


def brings_all(q, k, v, mask):
    return q + torch.tensor([[0.5] * q.shape[2]] * q.shape[1] * 20)[: q.shape[1]]


def changes(q, k, v, mask):
    return q.add_(1)


def too_large(q, k, v, mask):
    return torch.zeros(10**6, 10**6, dtype=q.dtype, device=q.device)


def reads_files(q, k, v, mask):
    return torch.ops.aten.from_file("/etc/passwd", False, 10, dtype=torch.uint8, device=q.device)


def made_elsewhere(q, k, v, mask):
    return plain(q, k, v, torch.zeros(len(q), k.shape[1], dtype=torch.bool))


def result_elsewhere(q, k, v, mask):
    return torch.zeros(3)


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.proj = nn.Linear(d, d)
        self.tied = self.proj.weight
        self.gru = nn.GRU(d, d, batch_first=True)
        self.register_buffer("table", torch.arange(float(d)))

    def forward(self, x):
        return self.gru(self.proj(x) @ self.tied)[0] + self.table


class Loose(Layer):
    def __init__(self, d):
        super().__init__(d)
        self.constant = torch.ones(d)

    def forward(self, x):
        return super().forward(x) * self.constant


class Cache(tuple):
    pass


def step(x, cache):
    cache = Cache((*cache, x))
    return sum(cache), cache


def reads_by_shapes(q, k, v, mask):
    flat = q.flatten()
    bits = [len(flat[i : i + 1][flat[i : i + 1] > 0]) for i in range(len(flat))]
    return q * sum(bits)


def reads_by_errors(q, k, v, mask):
    flat, seen = q.flatten(), 0
    for i in range(len(flat)):
        try:
            torch.zeros(1, device=q.device)[(flat[i] > 0).long()]
        except IndexError:
            seen += 1
    return q * seen


_LATE = []


def goes_on_afterwards(q, k, v, mask):
    out = torch.zeros_like(q)

    def later():
        import time

        time.sleep(0.05)
        try:
            out.copy_(plain(q, k, v, mask))
        except Exception as error:
            _LATE.append(str(error))

    threading.Thread(target=later).start()
    return out


def many_large(q, k, v, mask):
    return [q.new_zeros(2**20) + i for i in range(12)]


def reads_two_as_one(q, k, v, mask):
    return q * len(q.flatten().view(torch.complex128).tolist())


def reads_means(q, k, v, mask):
    mean, var = q.new_zeros(q.numel()), q.new_ones(q.numel())
    torch.native_batch_norm(q.reshape(1, -1, 1).expand(1, -1, 2), None, None, mean, var, True, 1.0, 1e-5)
    return q * len(mean.tolist())


def owns_what_it_likes(q, k, v, mask):
    return q.teller.own(torch.zeros(q.shape, dtype=q.dtype, device="cpu") + 0.5)


def brings_in_a_run(q, k, v, mask):
    from autograder.box import wire

    made = q.teller._exchange(["run", "clone", "default", [wire.numbers(torch.zeros(1000))], {}, []])
    return q * made


def changes_and_forgets(q, k, v, mask):
    q.mul_(2)
    q.teller._gone.append(q.number)
    torch.zeros(1, device=q.device) + 1
    return k


def reads_one_row(q):
    q[0, 0].tolist()
    return q
