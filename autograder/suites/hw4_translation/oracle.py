"""What the suites of hw4 compare with: a translator made of torch's own nn.Transformer, and searches in plain loops."""

import itertools
import math
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor, nn

from course_utils.checking.compare import Wrong, check
from course_utils.hw4.decoding_weights import lively_weights, put_weights

F64 = torch.float64
MARGIN = 1e-3  # by how much the best token leads where answers are compared token for token


@cache
def sinusoids(n, d, first=0, base=10000.0):
    """[n, d], by the formula, entry by entry; made once, so nobody may write to it."""
    table = torch.empty(n, d, dtype=F64)
    for t, i in itertools.product(range(n), range(d)):
        angle = (t + first) / base ** ((i - i % 2) / d)
        table[t, i] = math.cos(angle) if i % 2 else math.sin(angle)
    return table


class Translator:
    """nn.Transformer with embeddings before and a tied output behind it; keywords put it together in a wrong way."""

    def __init__(self, weights, n_heads):
        self.weights = {name: value.detach().clone() for name, value in weights.items()}
        vocab, self.width = weights["tgt_embed.weight"].shape
        layers = len({name.split(".")[1] for name in weights if name.startswith("encoder_layers.")})
        d_ff = len(weights["encoder_layers.0.ff.fc1.bias"])
        self._sizes = self.width, n_heads, layers, layers, d_ff
        self.core = _idle[self._sizes].pop() if _idle[self._sizes] else _core(self._sizes)
        self.core.load_state_dict(_torch_state(self.weights), assign=True)
        self.src = nn.Parameter(self.weights["src_embed.weight"])
        self.tgt = nn.Parameter(self.weights["tgt_embed.weight"])
        self._positions = sinusoids(64, self.width)

    def __del__(self):
        if hasattr(self, "core"):
            _idle[self._sizes].append(self.core)

    def parameters(self):
        """Names of the contract and the parameters that stand for them; q, k, v share one of torch's."""
        return [self.src, self.tgt, *self.core.parameters()]

    def gradients(self):
        """The gradients after a backward pass, by the names of the contract."""
        grads = {name: parameter.grad for name, parameter in self.core.named_parameters()}
        found = {"src_embed.weight": self.src.grad, "tgt_embed.weight": self.tgt.grad}
        for name in self.weights:
            if name not in found:
                theirs, part = _torch_name(name)
                found[name] = grads[theirs] if part is None else grads[theirs].chunk(3)[part]
        return found

    def positions(self, n, first=0):
        if first:
            return sinusoids(n, self.width, first)
        while len(self._positions) < n:
            self._positions = sinusoids(2 * len(self._positions), self.width)
        return self._positions[:n].to(self.tgt.dtype)

    def _embed(self, table, ids, scale=None, first=0, positions=True, still=False):
        x = table[ids] * (math.sqrt(self.width) if scale is None else scale)
        if still:  # every token at the first position
            return x + self.positions(1)
        return x + self.positions(ids.shape[1], first).to(x.dtype) if positions else x

    def encode(self, src, padding=None, norm=True, masked=True, layers=None, **embedding):
        x = self._embed(self.src, src, **embedding)
        for layer in list(self.core.encoder.layers)[:layers]:
            x = layer(x, src_key_padding_mask=padding if masked else None)
        return self.core.encoder.norm(x) if norm else x

    def decode(self, tgt, memory, padding=None, norm=True, masked=True, causal=True, alone=False, layers=None,
               **embedding):
        x = self._embed(self.tgt, tgt, **embedding)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if causal else None
        if alone:  # every token sees itself and no other
            later = ~torch.eye(x.shape[1], dtype=torch.bool)
        for layer in list(self.core.decoder.layers)[:layers]:
            x = layer(x, memory, tgt_mask=later, memory_key_padding_mask=padding if masked else None)
        return (self.core.decoder.norm(x) if norm else x) @ self.tgt.T

    def __call__(self, src, tgt, padding=None):
        return self.decode(tgt, self.encode(src, padding), padding)


_idle = defaultdict(list)  # by their sizes: cores of translators that are gone, for the next ones to put weights into


def _core(sizes):
    """An nn.Transformer without numbers. To make one takes longer than to ask it: torch copies it layer by layer."""
    with warnings.catch_warnings(action="ignore"):  # about its fast path, which pre-norm layers do not have
        return nn.Transformer(*sizes, 0.0, "gelu", batch_first=True, norm_first=True, device="meta")


@cache
def _torch_name(name):
    """torch's name for a weight, and which third of it where torch has three in one."""
    name = name.replace("encoder_layers", "encoder.layers").replace("decoder_layers", "decoder.layers")
    name = name.replace("encoder_norm", "encoder.norm").replace("decoder_norm", "decoder.norm")
    name = name.replace("cross_attn", "multihead_attn").replace("ff.fc1", "linear1").replace("ff.fc2", "linear2")
    for part, letter in enumerate("qkv"):
        for kind in ("weight", "bias"):
            if name.endswith(f"{letter}_proj.{kind}"):
                return name.replace(f"{letter}_proj.{kind}", f"in_proj_{kind}"), part
    return name.replace("o_proj", "out_proj"), None


def _torch_state(weights):
    parts = {}
    for name, value in weights.items():  # q comes before k, and k before v
        if not name.endswith("embed.weight"):
            parts.setdefault(_torch_name(name)[0], []).append(value)
    return {name: torch.cat(values) for name, values in parts.items()}


@dataclass(frozen=True)
class SearchTask:
    """A lively model, sentences for it, and what greedy decoding writes."""

    weights: dict
    oracle: Translator
    sizes: tuple
    src: Tensor
    padding: Tensor
    bos: int
    eos: int
    max_len: int
    steps: list  # the likeliest tokens of all max_len steps, with no regard to EOS

    @property
    def greedy(self):
        return self.cut(self.eos, self.max_len)

    def cut(self, eos, max_len):
        """What greedy decoding writes with this EOS and at most so many steps (no more than the problem's own)."""
        rows = [row[:max_len] for row in self.steps]
        return [row[: row.index(eos)] if eos in row else row for row in rows]

    def more(self, eos, max_len):
        """`cut`, for any number of steps."""
        steps, _ = greedy_steps(self.oracle, self.src, self.padding, self.bos, max_len)
        return replace(self, steps=steps).cut(eos, max_len)

    def arguments(self, **other):
        """What follows the model in a call of greedy_decode."""
        given = {"src": self.src, "padding": self.padding, "bos": self.bos, "eos": self.eos, "max_len": self.max_len}
        return tuple({**given, **other}.values())

    def row(self, i):
        return self.src[i : i + 1], self.padding[i : i + 1]


SIZES = (9, 11, 12, 3, 20, 2)  # src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers


def lengths_to_padding(lengths, longest):
    return torch.arange(longest) >= torch.tensor(lengths)[:, None]


def draw_problem(rng, sizes=SIZES, max_len=9, rows=5, bos=4, longest=6, tries=400):
    """A problem whose rows end at different steps, one of them never, and on which no step is a close call."""
    for _ in range(tries):
        seed = int(torch.randint(2**31, (1,), generator=rng))
        weights = lively_weights(seed, *sizes)
        oracle = Translator(weights, sizes[3])
        src = torch.randint(sizes[0], (40, longest), generator=rng)
        padding = lengths_to_padding(torch.randint(1, longest + 1, (40,), generator=rng).tolist(), longest)
        written, leads = greedy_steps(oracle, src, padding, bos, max_len)
        for eos in range(sizes[1]):
            chosen = _varied(written, leads, bos, eos, rows) if eos != bos else []
            if len(padding[chosen].sum(1).unique()) >= min(3, rows):
                steps = [written[i] for i in chosen]
                return SearchTask(weights, oracle, sizes, src[chosen], padding[chosen], bos, eos, max_len, steps)
    raise RuntimeError("no lively problem was found")


def _varied(written, leads, bos, eos, rows):
    """Indices of sentences that end at different steps (one does not end) and say different things on the way."""
    by_length = {}
    for i, row in enumerate(written):
        said = row[: row.index(eos)] if eos in row else row
        if min(leads[i]) > MARGIN and bos not in row and len(set(said)) >= min(len(said), 3):
            by_length.setdefault(len(said), []).append(i)
    most = len(written[0])
    if most not in by_length or len(by_length) < 4 or sorted(by_length)[-2] < 3:
        return []
    turns = itertools.zip_longest(by_length.pop(most)[:1], *by_length.values())
    chosen = [i for turn in turns for i in turn if i is not None][:rows]
    return chosen if len(chosen) == rows else []


def draw_with_bos(rng, sizes=SIZES, max_len=6, tries=100):
    """A problem whose sentences all get BOS as a token, and no EOS before it."""
    for _ in range(tries):
        weights = lively_weights(int(torch.randint(2**31, (1,), generator=rng)), *sizes)
        oracle = Translator(weights, sizes[3])
        src = torch.randint(sizes[0], (40, 5), generator=rng)
        padding = lengths_to_padding(torch.randint(1, 6, (40,), generator=rng).tolist(), 5)
        for bos in range(sizes[1]):
            written, leads = greedy_steps(oracle, src, padding, bos, max_len)
            chosen = [i for i, row in enumerate(written) if bos in row[:4] and min(leads[i]) > MARGIN][:3]
            rows = [written[i] for i in chosen]
            ends = [t for t in range(sizes[1]) if t != bos and not any(t in row for row in rows)]
            if len(chosen) == 3 and ends:
                return SearchTask(weights, oracle, sizes, src[chosen], padding[chosen], bos, ends[0], max_len, rows)
    raise RuntimeError("no model that writes BOS was found")


@torch.no_grad()
def greedy_steps(model, src, padding, bos, max_len):
    """The likeliest token at each step, EOS or not, and its lead over the next: two lists of B rows."""
    memory, written, leads = model.encode(src, padding), torch.full((len(src), 1), bos), []
    for _ in range(max_len):
        best = model.decode(written, memory, padding)[:, -1].topk(2)
        leads.append(best.values[:, 0] - best.values[:, 1])
        written = torch.cat([written, best.indices[:, :1]], 1)
    return written[:, 1:].tolist(), torch.stack(leads, 1).tolist()


@torch.no_grad()
def total_and_count(problem, i, tokens):
    """Sum of the log-probabilities of what was written, EOS included if it came, and their number."""
    src, padding = problem.row(i)
    written = [*tokens, problem.eos] if len(tokens) < problem.max_len else list(tokens)
    inputs = torch.tensor([[problem.bos, *written[:-1]]])
    logp = problem.oracle(src, inputs, padding)[0].log_softmax(-1)
    return logp[range(len(written)), written].sum().item(), len(written)


def score(problem, i, tokens, length_penalty):
    total, count = total_and_count(problem, i, tokens)
    return total / count**length_penalty


@torch.no_grad()
def all_hypotheses(problem, i):
    """Every possible result for a sentence: tokens, sum of log-probabilities, their number, the sum without EOS's."""
    src, padding = problem.row(i)
    memory = problem.oracle.encode(src, padding)
    found, live = [], [((), 0.0)]
    for step in range(problem.max_len):
        grown = []
        ids = torch.tensor([[problem.bos, *tokens] for tokens, _ in live])
        n = len(live)
        logp = problem.oracle.decode(ids, memory.expand(n, -1, -1), padding.expand(n, -1))[:, -1].log_softmax(-1)
        for (tokens, total), row in zip(live, logp.tolist(), strict=True):
            for token, value in enumerate(row):
                if token == problem.eos:
                    found.append((tokens, total + value, step + 1, total))
                else:
                    grown.append(((*tokens, token), total + value))
        live = grown
    return found + [(tokens, total, problem.max_len, total) for tokens, total in live]


@torch.no_grad()
def trees(problem):
    """For each sentence: the log-probabilities of the next token after every beginning without EOS."""
    memory, rows = problem.oracle.encode(problem.src, problem.padding), len(problem.src)
    words = [token for token in range(problem.sizes[1]) if token != problem.eos]
    found = [{} for _ in range(rows)]
    for step in range(problem.max_len):
        begun = list(itertools.product(words, repeat=step))
        ids = torch.tensor([[problem.bos, *tokens] for tokens in begun]).repeat(rows, 1)
        seen = (part.repeat_interleave(len(begun), 0) for part in (memory, problem.padding))
        logp = problem.oracle.decode(ids, *seen)[:, -1].log_softmax(-1).reshape(rows, len(begun), -1).tolist()
        for tree, values in zip(found, logp, strict=True):
            tree.update(zip(begun, values, strict=True))
    return found


FILLED = {"filled": 1, "filled from twice as many": 2, "filled, every end counts": None}
STAY = ("ended ones stay, by sum", "ended ones stay, by score")  # in their places, until better ones take them
BEAMS = ("plain", "shrinking", *FILLED, *STAY, *(f"{kind}, and may be lost" for kind in STAY))  # all of them are right


def beam(tree, eos, max_len, width, length_penalty, kind="plain"):
    """What a beam search of some kind finds: (tokens with EOS, sum of log-probabilities), and when it had enough.

    The second result has two steps: after which nothing lived, and after which `width` hypotheses had ended.
    """
    live, ended, held, still, enough = [((), 0.0)], [], [], max_len + 1, max_len + 1
    for n in range(1, max_len + 1):
        grown = [[((*tokens, v), total + x) for v, x in enumerate(tree[tokens])] for tokens, total in live]
        if kind == "one word each" and n > 1:
            grown = [[max(each, key=lambda h: h[1])] for each in grown]
        ranked = sorted(itertools.chain(*grown), key=lambda h: -h[1])
        if kind in FILLED:
            counted = ranked[: FILLED[kind] and FILLED[kind] * width]
            ended = ended + [h for h in counted if h[0][-1] == eos]
            live = [h for h in ranked if h[0][-1] != eos][:width]
        elif "stay" in kind:
            power = length_penalty if "score" in kind else 0
            kept = sorted(ranked + held, key=lambda h, power=power: -h[1] / len(h[0]) ** power)[:width]
            live = [h for h in kept if h[0][-1] != eos]
            new = [h for h in kept if h[0][-1] == eos]
            ended = new if "lost" in kind else ended + [h for h in new if h not in held]
            held = new
        else:
            kept = ranked[: width - len(ended) if kind == "shrinking" else width]
            live = [h for h in kept if h[0][-1] != eos]
            ended = ended + [h for h in kept if h[0][-1] == eos]
        if len(ended) >= width:
            enough = min(enough, n)
        if not live or (kind == "stops at the first end" and ended):
            still = n
            live = []
            break
    return ended + live, (still, enough)


def as_tokens(got, rows, what):
    """The result as a list of lists of ints: B rows, each a list or tuple of whole numbers."""
    if isinstance(got, Tensor) and got.ndim == 2:
        raise Wrong(f"{what}: a tensor of shape {list(got.shape)}, expected a list of {rows} lists (rows end at "
                    "different steps, and what comes after EOS is not part of the result)")
    check(isinstance(got, (list, tuple)), f"{what}: expected a list of {rows} lists of ints, not {type(got).__name__}")
    check(len(got) == rows, f"{what}: {len(got)} rows, expected {rows}: one list per sentence")
    return [_row(row, f"{what}, row {i}") for i, row in enumerate(got)]


def _row(row, what):
    told = f"{what}: expected a list of ints"
    check(not isinstance(row, Tensor), f"{told}, not a tensor: .tolist() makes one")
    check(isinstance(row, (list, tuple)), f"{told}, not {type(row).__name__}")
    check(not any(isinstance(token, Tensor) for token in row), f"{told}, and it has tensors in it: .tolist() makes "
          "ints of them")
    check(all(type(token) is int for token in row), f"{told}, and got {row!r:.80}")
    return list(row)


@dataclass(frozen=True)
class Call:
    """What was written in one call, and what should have been; `causes` are functions by sentence."""

    got: list
    expected: list
    problem: SearchTask
    what: str
    causes: dict
    max_len: int

    def explained(self, cause):
        """Whether this cause gives what was written."""
        usual = _usual_causes(self.expected, self.problem, self.max_len)
        if cause in usual:
            return usual[cause] == self.got
        return cause in self.causes and self.causes[cause]() == self.got


def a_call(got, expected, problem, what, causes=None, max_len=None):
    return Call(as_tokens(got, len(expected), what), expected, problem, what, causes or {}, max_len or problem.max_len)


def compare_calls(calls):
    """`Wrong` with the first row that differs and, if just one fits all the calls, a likely cause."""
    wrong = [call for call in calls if call.got != call.expected]
    if not wrong:
        return
    first = wrong[0]
    i = next(i for i, (a, b) in enumerate(zip(first.got, first.expected, strict=True)) if a != b)
    message = f"{first.what}: sentence {i} gives {first.got[i]}, expected {first.expected[i]}"
    fits = [*_usual_causes(first.expected, first.problem, first.max_len), *first.causes]
    for call in [*wrong, *(call for call in calls if call.got == call.expected)]:
        fits = [cause for cause in fits if call.explained(cause)]
    raise Wrong(f"{message}. Likely cause: {fits[0]}." if len(fits) == 1 else message)


def compare_rows(got, expected, problem, what, causes=None, max_len=None):
    """`compare_calls` for a single one."""
    compare_calls([a_call(got, expected, problem, what, causes, max_len)])


def _usual_causes(expected, problem, most):
    eos, bos = problem.eos, problem.bos
    ended = [len(row) < most for row in expected]
    return {
        "EOS is part of your result; it ends a sentence and is left out":
            [[*row, eos] if end else row for row, end in zip(expected, ended, strict=True)],
        "BOS is part of your result; only what comes after it is": [[bos, *row] for row in expected],
        "BOS and EOS are part of your result":
            [[bos, *row, eos] if end else [bos, *row] for row, end in zip(expected, ended, strict=True)],
        "the last token is missing where no EOS came: max_len counts steps, not BOS":
            [row if end else row[:-1] for row, end in zip(expected, ended, strict=True)],
        "the last token of every row is missing": [row[:-1] for row in expected],
        "the first token is missing": [row[1:] for row in expected],
    }


def loaded(Transformer, weights, sizes, **options):
    """The student's model in float64 and evaluation mode, with these weights."""
    return put_weights(Transformer(*sizes, **options), weights)


def check_parameters(model, weights):
    """`Wrong` where the model has parameters besides those of the contract."""
    own = model.parameter_shapes()
    table = tuple(weights["tgt_embed.weight"].shape)
    extra = sorted(set(own) - set(weights), key=lambda name: (tuple(own[name]) == table, name))
    if "tgt_embed.weight" in own:
        check(not extra, f"`{extra[0] if extra else ''}` is a parameter too many (an output layer shares the weight of "
              "tgt_embed and has no bias; positions are not learned)")
    else:  # the one weight of tgt_embed and an output layer goes by its other name
        check(len(extra) == 1, f"`{extra[0] if extra else 'tgt_embed.weight'}` is a parameter too many, or tgt_embed "
              "is missing")
