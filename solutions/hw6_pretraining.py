# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="TODO: half a line for the table in README.md"
# # Homework 6: TODO a title
#
# TODO: a few sentences that make one want to read on: a question, a picture, what this homework builds.
#
# **When you are done, you will be able to**
#
# - TODO: do something that one can try, such as: derive the factor $1/\sqrt d$ instead of believing it;
# - TODO: a second thing;
# - TODO: a third thing;
# - TODO: a fourth thing;
# - TODO: a fifth thing.
#
# **What you need**: TODO: what one should know, and the homeworks that come before.

# %% [markdown] contents=true
# The table of contents stands here, with the times to read and to work.

# %% [markdown]
# ## How to work
#
# Every question has a text, one answer cell, a check and a ladder of help. Replace the `raise
# NotImplementedError` in the answer cell, run the cell, then run the check below it. The check tries your
# answer on small examples; the grader that computes your points does the same on many more inputs, and
# relies on nothing that is not written in this notebook. The help is folded: first what you might be
# seeing, then a hint, then the steps in words. Opening it costs nothing.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged with
# ours in its place too, so an error costs its points once.

# %% [markdown]
# ## The convention card
#
# The same in every homework.

# %% [markdown] card=true
# The convention card of the course stands here.

# %%
import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import Grader, after, pick_device, plots, seed_everything
from course_utils.hw6.claims import CLAIMS, holds
from course_utils.hw6.gpt2_file import GPT2, find_gpt2
from course_utils.hw6.language_runs import characters_of, ids_of, repeated, train_language_model, words_of
from course_utils.hw6.mask_runs import fixed_or_anew
from course_utils.hw6.stories import corpus
from course_utils.instruments.work import count_work
from course_utils.notebook.training import fast

plt.rcParams["figure.dpi"] = 100  # for pictures of your own
seed_everything(0)
device = pick_device()
grader = Grader("hw6_pretraining")

# %% given="hw1_attention q1_1 q1_7"
from hw1_attention import attention

# %% given="hw2_multihead q2_1 q2_2"
from hw2_multihead import MultiHeadAttention, merge_heads, split_heads

# %% [markdown]
# ## Part III. A model that writes
#
# BERT fills gaps. It looks left and right, and so it cannot write: when it writes, there is no right. A model that
# writes predicts each word from the words before it and from nothing else. Take the encoder, put a causal mask on its
# self-attention, ask every token for its successor, and you have a GPT. One pass over $N$ words gives $N - 1$ lessons,
# where BERT gets 15% of them; and what it has learnt it can say, one word after another.

# %% [markdown] question="q6_7" sources="003/2-b-ii 001/1.5-b"
# ### A language model
#
# Write `class GPT(nn.Module)`, made by `GPT(vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0)`. What
# it computes is GPT-2 (Radford 2019), pre-norm as in homework 3:
#
# $$x_i = E[\text{id}_i] + P[i], \qquad x \leftarrow x + \mathrm{attn}(\mathrm{norm}_1(x)), \qquad
# x \leftarrow x + \mathrm{ff}(\mathrm{norm}_2(x)), \qquad \text{logits} = \mathrm{norm}_f(x)\, E^\top$$
#
# The middle two are a block, and there are `n_layers` of them. The names inside, by which weights are put in {=names}:
#
# | name | what |
# |---|---|
# | `token_embed`, `position_embed` | `nn.Embedding`: $E$ `[V, D]`, $P$ `[max_len, D]` |
# | `blocks` | `nn.ModuleList`, each with `norm1`, `attn` (a `MultiHeadAttention`, or yours with its `q_proj`, `k_proj`, `v_proj`, `o_proj`), `norm2`, and `ff` with `fc1`, `fc2` |
# | `final_norm` | `nn.LayerNorm` |
#
# - `max_len` stays an attribute of the model {=max-len-kept}.
# - Attention is causal: logits at place $i$ do not depend on later tokens {=causal}.
# - `ff` is `fc2(gelu(fc1(x)))` with the **tanh approximation**, `F.gelu(x, approximate="tanh")`, as in the published
#   model {=tanh-gelu}. (The `FeedForward` of homework 3 has the exact one.)
# - The logits have no bias and no matrix of their own: they are products with `token_embed.weight` {=tied}. A second name
#   for the same parameter is allowed.
# - In training mode there is dropout on the sum of the embeddings, on the attention weights, and on each branch before
#   it is added; none inside `ff`. In evaluation mode there is none {=dropout}.
# - Embeddings and linear weights start as $N(0, 0.02^2)$, biases at 0. That is not compared, but try the other: with
#   PyTorch's own start the first loss is far above $\ln V$, which is what a model that knows nothing should have {=small-start}.
#
# Dtype and device are those of the weights. This is `forward(ids)`, `[B, T]` to logits `[B, T, V]`. Its other two
# arguments, for padding and for a cache, come in the next cell; write the class with all three.

# %% [markdown]
# **Padding on the left.** Prompts have different lengths, and all of them must end in the same column, for that is where
# the next word comes {-}. So shorter ones are filled up on the left: `forward(ids, key_padding_mask)`, bool `[B, T]`,
# True = padding. In each row
#
# - positions count from the first real token: it gets $P[0]$ whatever stands before it {=left-positions};
# - what stands in the padding changes no real logit {=left-content};
# - logits at padding are finite, and otherwise free {=left-finite}. (What does a softmax make of a row in which all is blocked?)
#
# **A cache.** As in @q2_7 nothing old changes under a causal mask. `new_cache()` gives an empty cache, whose inside is
# yours, and `forward(ids, key_padding_mask, cache)` takes it:
#
# - `ids` `[B, T]` are then the tokens **after** those that the cache holds, one or several {=chunks}. Their logits come back,
#   `[B, T, V]`, and are those of a pass over the whole text {=cache-logits};
# - the cache is changed in place, so that the next call finds them {=in-place}. Two caches share nothing {=two-caches};
# - the mask covers **all** tokens so far, those in the cache too {=mask-so-far}. Whoever gives a mask once gives it at
#   every call; None means that there is no padding so far;
# - only the new tokens run through the layers. This is **counted** {=counted}.
#
# Gradients through a cache are not needed. More columns than `max_len`, the cache and the padding counted in, are a
# `ValueError` {=too-long}.
#
# By hand: `max_len = 8`, a row of two paddings and three tokens. Its positions are $0, 1, 2$ behind the padding. The
# cache holds 5 columns; the next token gets position 3, and after three more the model is full, although the row has
# only six real tokens.
#
# Hidden checks also try other sizes, chunks of every length, masks with a cache, dropout place by place, and float32.

# %% question="q6_7" points=12 minutes=60 difficulty=4
class GPT(nn.Module):
    """A causal language model: token_embed, position_embed, blocks, final_norm; attribute max_len."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        n_heads: int,
        d_ff: int,
        n_layers: int,
        max_len: int,
        dropout: float = 0.0,
    ) -> None:
        """Make the embeddings, the blocks and the last norm; start small."""
        super().__init__()
        # BEGIN SOLUTION
        self.max_len = max_len
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(_Block(d_model, n_heads, d_ff, dropout) for _ in range(n_layers))
        self.final_norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        for name, parameter in self.named_parameters():
            if "norm" not in name:
                nn.init.zeros_(parameter) if name.endswith("bias") else nn.init.normal_(parameter, std=0.02)
        # END SOLUTION

    def new_cache(self) -> Any:
        """A cache that holds no token yet."""
        # BEGIN SOLUTION
        return [{} for _ in self.blocks]  # for each block its keys and values, [B, H, S, Dh]
        # END SOLUTION

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None, cache: Any = None) -> Tensor:
        """ids [B, T], key_padding_mask bool [B, S] (S = T without a cache; True = padding) -> logits [B, T, V]."""
        # BEGIN SOLUTION
        T = ids.shape[1]
        past = cache[0]["k"].shape[2] if cache and cache[0] else 0
        if past + T > self.max_len:
            raise ValueError(f"{past + T} columns are more than max_len = {self.max_len}")
        places = torch.arange(past, past + T, device=ids.device)  # [T]
        if key_padding_mask is not None:
            places = (places - key_padding_mask.sum(1, keepdim=True)).clamp(min=0)  # [B, T]: from the first real one
        x = self.dropout(self.token_embed(ids) + self.position_embed(places))  # [B, T, D]
        for block, kept in zip(self.blocks, cache or [None] * len(self.blocks), strict=True):
            x = block(x, key_padding_mask, kept)
        return self.final_norm(x) @ self.token_embed.weight.T  # [B, T, V]


class _Block(nn.Module):
    """norm1, attn, norm2, ff: each branch normed first, dropped out, and added."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = nn.ModuleDict({"fc1": nn.Linear(d_model, d_ff), "fc2": nn.Linear(d_ff, d_model)})
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, key_padding_mask: Tensor | None, kept: dict[str, Tensor] | None) -> Tensor:
        x = x + self.dropout(self.attend(self.norm1(x), key_padding_mask, kept))
        hidden = F.gelu(self.ff["fc1"](self.norm2(x)), approximate="tanh")  # [B, T, d_ff]
        return x + self.dropout(self.ff["fc2"](hidden))

    def attend(self, x: Tensor, key_padding_mask: Tensor | None, kept: dict[str, Tensor] | None) -> Tensor:
        mha = self.attn
        q, k, v = (split_heads(project(x), mha.n_heads) for project in (mha.q_proj, mha.k_proj, mha.v_proj))
        if kept:
            k, v = torch.cat([kept["k"], k], dim=2), torch.cat([kept["v"], v], dim=2)  # [B, H, S, Dh]
        if kept is not None:
            kept.update(k=k, v=v)
        heads, weights = attention(q, k, v, key_padding_mask, causal=True)  # the last query sees everything
        heads = F.dropout(weights, mha.dropout, self.training) @ v
        return mha.o_proj(merge_heads(heads))  # [B, T, D]
        # END SOLUTION


# %% [markdown] help="q6_7"
# symptom: The first loss is 20 or more: PyTorch's embeddings start at size 1, and the logits are products with them.
# Right without padding and wrong with it: positions still count from column 0. NaN appears with padding: a padding
# token sees nothing, and its softmax has only `-inf`; use the given `attention`, which knows such rows. Right token by
# token and wrong in chunks: the causal mask of a chunk ends in the lower right corner, as on the card. The second text is
# wrong: caches share a list. Dropped out in evaluation: `F.dropout` needs `training=self.training`.
#
# hint: With a cache, three things change: where positions begin, which keys and values attention gets, and nothing
# else. The given `attention(q, k, v, key_padding_mask, causal=True)` aligns its mask to the last query already, so a
# chunk needs no mask of its own. The number of paddings in a row is `key_padding_mask.sum(1)`.
#
# pseudo-code: past = columns in the cache. Too long? ValueError. places = past ... past + T - 1, minus the paddings of
# the row, not below 0. x = dropout(E[ids] + P[places]). Each block: norm1; q, k, v of the new tokens; append k and v to
# the block's cache; attention with the mask; o_proj; dropout; add. norm2, fc1, gelu, fc2, dropout, add. final_norm,
# times E transposed.

# %% [markdown]
# Left padding, right and wrong. The same four prompts once alone, and once as a batch in which the shorter ones are
# filled up on the left: the largest change of a last logit, with your mask, with no mask, and with the tokens pushed
# to the left instead, so that the last column is padding.

# %% tags=["plot"]
with after("q6_7"):
    seed_everything(3)
    small = GPT(50, 32, 4, 64, 2, 24).eval()
    for parameter in small.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    rows = [torch.randint(50, (length,)) for length in (3, 6, 9, 12)]
    left = torch.stack([F.pad(row, (12 - len(row), 0)) for row in rows])  # [4, 12]
    padding = torch.stack([torch.arange(12) < 12 - len(row) for row in rows])
    right = torch.stack([F.pad(row, (0, 12 - len(row))) for row in rows])
    with torch.no_grad():
        alone = torch.stack([small(row[None])[0, -1] for row in rows])  # [4, V]
        ends = {"left, with the mask": small(left, padding)[:, -1], "left, no mask": small(left)[:, -1],
                "right, last column": small(right)[:, -1]}
    changes = {name: [float((end - one).abs().max()) for end, one in zip(got, alone, strict=True)] for name, got in ends.items()}
    plots.bars([f"{len(row)} tokens" for row in rows], changes, "prompt", "largest change of a last logit",
               alt="For each prompt the change of its last logits by padding: none with padding on the left and its "
               "mask; large without the mask, and large with padding on the right; none for the longest prompt.")
    print({name: f"{max(values):.1e}" for name, values in changes.items()})

# %% [markdown]
# Now let it learn. The stories of this homework as one long text, words as tokens, a model of 100,000 parameters, half
# a minute on a CPU. The first loss should be near $\ln V$, the dashed line.

# %% tags=["training"]
with after("q6_7", what="run"):
    seed_everything(0)
    told, held_out = corpus(200 if fast() else 3000, 100)
    words, _ = words_of([*told, *held_out])
    train_ids, test_ids = ids_of(words, words_of(told)[1]), ids_of(words, words_of(held_out)[1])
    writer = GPT(len(words), 64, 4, 256, 2, 64, dropout=0.1).to(device)
    losses = train_language_model(writer, train_ids.to(device), steps=4 if fast() else 400)
    print(f"first loss {losses[0]:.2f}, ln V = {math.log(len(words)):.2f}, last losses {sum(losses[-10:]) / 10:.2f}")
    plots.curves(range(len(losses)), {"loss": losses, "ln V": [math.log(len(words))] * len(losses)}, "step", "loss per word",
                 alt="The loss falls from ln V, quickly at first, and levels off.")

# %% [markdown] question="q6_8"
# ### Weights that somebody else has trained
#
# GPT-2's weights are public. The published model is the one of @q6_7, with other names and one difference of taste: its
# linear layers store their matrices as `[in, out]` and compute $xW + b$, while `nn.Linear` stores `[out, in]`; and
# queries, keys and values come from one wide layer, side by side.
#
# Write `from_gpt2(state)`. It takes a dict from published names to tensors, and returns a new dict from the names of
# your `GPT` to tensors:
#
# | published | yours |
# |---|---|
# | `wte.weight`, `wpe.weight` | `token_embed.weight`, `position_embed.weight` |
# | `h.i.ln_1`, `h.i.ln_2`, `ln_f` (`.weight`, `.bias`) | `blocks.i.norm1`, `blocks.i.norm2`, `final_norm` |
# | `h.i.attn.c_attn` (`.weight` `[D, 3D]`, `.bias` `[3D]`) | `blocks.i.attn.q_proj`, `.k_proj`, `.v_proj`: thirds, in this order |
# | `h.i.attn.c_proj` (`.weight` `[D, D]`) | `blocks.i.attn.o_proj` |
# | `h.i.mlp.c_fc` (`[D, 4D]`), `h.i.mlp.c_proj` (`[4D, D]`) | `blocks.i.ff.fc1`, `blocks.i.ff.fc2` |
#
# - Every `c_` matrix is stored `[in, out]` and must be transposed {=transposed}; embeddings are not {=embeddings}.
# - All names may begin with `transformer.` {=prefix}.
# - `h.i.attn.bias` and `h.i.attn.masked_bias` are masks that got into the file, and `lm_head.weight` is `wte.weight` once
#   more: all three are left out {=left-out}. Other names that are not in the table are ignored {=others-ignored}.
# - The number of layers is the largest $i$ plus 1 {=layers}. (As text, `"9"` is larger than `"11"`.)
# - A tensor that is missing is a `KeyError` or a `ValueError`, and the error holds its published name without the prefix,
#   such as `h.3.ln_1.bias` {=missing}.
# - `state` is not changed {=state-kept}.
#
# With it your `GPT` *is* GPT-2 (the published file can be had, see below @q6_10): hidden checks hold its logits against the published model's, computed with the published weights {~agreement}.

# %% question="q6_8" points=7 minutes=25 difficulty=2
def from_gpt2(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Published GPT-2 weights by their names -> the weights of a GPT by its names."""
    # BEGIN SOLUTION
    state = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    layers = [int(name.split(".")[1]) for name in state if name.startswith("h.")]
    ours = {"token_embed.weight": state["wte.weight"], "position_embed.weight": state["wpe.weight"]}
    for i in range(max(layers, default=-1) + 1):
        for theirs, mine in (("ln_1", "norm1"), ("ln_2", "norm2")):
            for kind in ("weight", "bias"):
                ours[f"blocks.{i}.{mine}.{kind}"] = state[f"h.{i}.{theirs}.{kind}"]
        for theirs, mine in (("attn.c_proj", "attn.o_proj"), ("mlp.c_fc", "ff.fc1"), ("mlp.c_proj", "ff.fc2")):
            ours[f"blocks.{i}.{mine}.weight"] = state[f"h.{i}.{theirs}.weight"].T  # [in, out] -> [out, in]
            ours[f"blocks.{i}.{mine}.bias"] = state[f"h.{i}.{theirs}.bias"]
        weights = state[f"h.{i}.attn.c_attn.weight"].chunk(3, dim=1)  # [D, 3D]: q, k, v side by side
        biases = state[f"h.{i}.attn.c_attn.bias"].chunk(3)
        for name, weight, bias in zip("qkv", weights, biases, strict=True):
            ours[f"blocks.{i}.attn.{name}_proj.weight"] = weight.T
            ours[f"blocks.{i}.attn.{name}_proj.bias"] = bias
    for kind in ("weight", "bias"):
        ours[f"final_norm.{kind}"] = state[f"ln_f.{kind}"]
    return {name: tensor.clone() for name, tensor in ours.items()}
    # END SOLUTION


# %% [markdown] help="q6_8"
# symptom: `load_state_dict` complains about shapes `[3072, 768]` and `[768, 3072]`: a transpose is missing. It loads
# without complaint and the model talks nonsense: the square matrices fit either way round (`c_proj` of attention), or
# queries and keys are exchanged. The KeyError names `transformer.h.0...`: strip the prefix before you look.
#
# hint: Make one dict without prefixes first. Then every line is a name, a name, and perhaps a transpose; an f-string
# and two short loops do it. `dict[...]` raises the KeyError that is asked for all by itself.
#
# pseudo-code: Strip prefixes. Number of layers: over names that begin with `h.`, the whole number after it. Copy
# embeddings, norms. For each layer: c_attn cut into three along its outputs, each transposed; the other three
# transposed; biases as they are. Return.

# %% [markdown] question="q6_9"
# ### Which word next?
#
# A language model gives a number for every word, and somebody has to choose. The likeliest word every time is dull, and
# soon repeats itself. Drawing from all probabilities is lively, until it draws one of the thousands of words of which
# each is nearly impossible and which together are not. So one bends the distribution first. Write
# `next_probabilities(logits, temperature=1.0, top_k=None, top_p=None)`: `logits` `[..., V]`, with any number of axes in
# front, to probabilities of the same shape and dtype {=axes}. Row by row, in this order:
#
# 1. **Temperature**: the logits are divided by it {=temperature}. `temperature=0` gives all weight to the largest logit, to the first of
#    several that are equal {=zero}.
# 2. **top_k** keeps the $k$ most likely tokens {=top-k}; more than $V$ keeps all {=large-k}.
# 3. **top_p** keeps the smallest set of most likely tokens whose probability, *after* temperature and `top_k` (so the kept
#    ones sum to 1), is at least `top_p` {=top-p} {=p-after-k}. `top_p=1` removes nothing.
#
# What is not kept gets exactly 0 {=zeros}, and the kept ones sum to 1 {=sum-one}. Where tokens at the edge are equally likely, the one with the
# lower id stays {=ties}. A logit of `-inf` gets 0 {=inf}; there is always one that is finite. Logits may be large, and the result is
# finite all the same {=finite}. `logits` are not changed {=not-changed}.
#
# `temperature < 0` {=bad-temperature}, `top_k < 1` {=bad-k} and a `top_p` outside $(0, 1]$ {=bad-p} are `ValueError`s, at temperature 0 too {=checked-at-zero}.
#
# By hand: probabilities $\frac12, \frac14, \frac18, \frac18$. `top_p=0.75` keeps two tokens, with $\frac23$ and $\frac13$; `top_p=0.8` keeps
# three, with $\frac47, \frac27, \frac17$: of the two equal ones the lower id. `top_k=3` and `top_p=0.8` keep two: after
# `top_k` they are $\frac47, \frac27, \frac17$, and $\frac47 + \frac27 = 0.857$ is enough.

# %% question="q6_9" points=8 minutes=30 difficulty=3
def next_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Tensor:
    """logits [..., V] -> probabilities [..., V] after temperature, top_k and top_p."""
    # BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"temperature = {temperature} is below 0")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k = {top_k} keeps nothing")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p = {top_p} is not in (0, 1]")
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    ranked, ids = torch.sort(logits, dim=-1, descending=True, stable=True)  # of equals the lower id first
    p = torch.softmax((ranked - ranked[..., :1]) / temperature, dim=-1)
    if top_k is not None:
        p = torch.cat([p[..., :top_k], torch.zeros_like(p[..., top_k:])], dim=-1)
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None and top_p < 1:
        before = p.cumsum(-1) - p  # the weight of all that are likelier
        p = p.masked_fill(before >= top_p, 0.0)
        p = p / p.sum(-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, ids, p)
    # END SOLUTION


# %% [markdown] help="q6_9"
# symptom: One token too few with top_p: the token that crosses the edge belongs to the set, so ask for the weight
# *before* it. Equal logits give too many tokens: a comparison with the k-th value keeps all that are equal to it; keep
# places instead. top_k and top_p together keep too many: divide by the sum between the two. NaN at low temperature:
# large logits overflow; subtract the largest first.
#
# hint: Sort once, with `stable=True`, so that equals keep the order of their ids. Everything else is a matter of places
# in the sorted row. Then put the result back where it came from: `scatter`.
#
# pseudo-code: Check the arguments. Temperature 0: a row of zeros with a 1 at argmax. Sort; subtract the largest, divide by
# temperature, softmax. Zero behind place k, divide by the sum. cumsum minus itself is the weight before; zero where
# that has reached top_p, divide by the sum. Scatter back.

# %% [markdown]
# One distribution, bent in four ways. The temperature changes all probabilities and removes nothing; the other two
# remove the tail and leave the rest in proportion. Look at the last two: `top_k` keeps as many when the model is sure as
# when it is not, `top_p` adapts.

# %% tags=["plot"]
with after("q6_9"):
    sure, unsure = torch.tensor([5.0, 3.0, 2.0, 1.5, 1.0, 0.5, 0.2, 0.0]), torch.linspace(2, 1, 8)
    ways = {"as it is": {}, "temperature 0.5": {"temperature": 0.5}, "temperature 2": {"temperature": 2.0},
            "top_k = 3": {"top_k": 3}, "top_p = 0.9": {"top_p": 0.9}}
    for title, logits in (("a model that is sure", sure), ("a model that is not", unsure)):
        plots.bars(range(8), {name: next_probabilities(logits, **way) for name, way in ways.items()}, "token", "probability", title,
                   alt=f"Bars of the probabilities of eight tokens in {title}, for five settings: temperatures sharpen "
                   "and flatten, top_k keeps three tokens, top_p as many as are needed for 90%.")

# %% [markdown] question="q6_10" sources="003/2-b-ii"
# ### Writing
#
# Now the loop. Write `sample(model, prompts, n, temperature=1.0, top_k=None, top_p=None, generator=None)`. `prompts` is a
# list of non-empty lists of ints, of different lengths; the result is a list of lists of Python ints, each prompt
# followed by `n` more tokens {=form}. `model` is a `GPT`, or anything with the same `model(ids, key_padding_mask, cache)`,
# `new_cache()` and `max_len`, such as `Echo` of `course_utils.hw6.echo`, with which you can try your loop at once.
#
# - `temperature=0` is greedy: the likeliest token each time. Every prompt gets what it would get **alone** {=as-alone}.
# - Otherwise each token is drawn from `next_probabilities` of @q6_9 (which you may use), given all before it {=distribution}. All
#   chance comes from `generator`, a `torch.Generator`: the same state gives the same text {=reproducible}, and torch's global
#   generator is not touched {=global-untouched}. None means torch's global one.
# - One batch, with a cache: at most `n + 1` calls of the model, however many prompts there are {=calls}, and after the first
#   call each gets **one** token per prompt. This is **counted** {=one-token}.
# - The model is in evaluation mode inside, and no gradients are recorded {=eval-inside}. Afterwards it is in the mode in which
#   it came {=mode-back}, after an error too {=mode-after-error}.
# - Longest prompt plus `n` above `model.max_len` is a `ValueError`, before the model is called at all {=too-long}.
# - `n = 0` returns the prompts {=none}. `prompts` are not changed {=prompts-kept}.
# - New tensors go to the device of the model's parameters {~device}.
#
# Hidden checks also try the device, many prompts at once, and the distribution of later tokens. They are statistics,
# with thresholds such that a right answer fails about once in a thousand million runs.

# %% question="q6_10" points=9 minutes=40 difficulty=4 uses=["q6_9"] limits={"wall": 60}
def sample(
    model: nn.Module,
    prompts: list[list[int]],
    n: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> list[list[int]]:
    """Each prompt and n more tokens, drawn one after another: one batch, cached."""
    # BEGIN SOLUTION
    longest = max(map(len, prompts), default=0)
    if longest + n > model.max_len:
        raise ValueError(f"{longest} tokens and {n} more are beyond max_len = {model.max_len}")
    device, was_training = next(model.parameters()).device, model.training
    new = torch.tensor([[0] * (longest - len(row)) + list(row) for row in prompts], device=device)  # [B, T]
    padding = torch.tensor([[i < longest - len(row) for i in range(longest)] for row in prompts], device=device)
    written, cache = [list(row) for row in prompts], model.new_cache()
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(n if prompts else 0):
                p = next_probabilities(model(new, padding, cache)[:, -1], temperature, top_k, top_p)  # [B, V]
                if generator is not None:
                    p = p.to(generator.device)
                new = torch.multinomial(p, 1, generator=generator).to(device)  # [B, 1]
                padding = F.pad(padding, (0, 1))  # the mask covers all tokens so far
                for row, token in zip(written, new[:, 0].tolist(), strict=True):
                    row.append(token)
    finally:
        model.train(was_training)
    return written
    # END SOLUTION


# %% [markdown] help="q6_10"
# symptom: The longest prompt is right and the others are not: the mask or the left padding is missing, or the mask does
# not grow with the text. The first token is right and later ones are not: after the first call the model wants the new
# tokens alone. Twice as many calls as allowed: the prompt is read token by token. The model stays in evaluation mode
# after an error: `try` ... `finally`.
#
# hint: `ids` `[B, T]` filled up on the left, a mask beside it, a new cache. The first call takes all of it, each further
# call a column `[B, 1]`. Only the last column's logits matter. `torch.multinomial` takes a generator.
#
# pseudo-code: Too long? ValueError. Pad on the left, mask. Note the mode, eval; try: without gradients, n times: model of
# the new tokens, mask and cache; last column; next_probabilities; draw; append to each row; the drawn column is what is
# new; one more column of False for the mask. Finally: the mode back.

# %% [markdown]
# What your model writes about the people of the stories, and what greedy decoding does: it runs in circles. The bars
# count how many of the pairs of neighbouring words in 40 words were there before in the same text.

# %% tags=["training"]
with after("q6_7", "q6_9", "q6_10", what="text"):
    prompts = [ids_of(words, tale.sentences[0][:3]).tolist() for tale in held_out[: 5 if fast() else 40]]
    repeats = {}
    for name, way in {"greedy": {"temperature": 0.0}, "temperature 0.7": {"temperature": 0.7}, "top_p 0.9": {"top_p": 0.9},
                      "as it is": {}}.items():
        texts = sample(writer, prompts, 10 if fast() else 40, **way, generator=torch.Generator().manual_seed(1))
        repeats[name] = sum(map(repeated, texts)) / len(texts)
        print(f"{name:16}", " ".join(words[i] for i in texts[0]))
    plots.bars(list(repeats), list(repeats.values()), "", "share of repeated pairs", "Repetition in 40 words",
               alt="The share of pairs of words that were there before: largest for greedy decoding, smaller with chance.")

# %% [markdown]
# And what the cache saves: FLOPs for $n$ more words after a prompt of 8, with your `sample`, and without a cache, where
# every word so far runs through all layers again for each new one.

# %% tags=["plot"]
with after("q6_7", "q6_9", "q6_10"):
    seed_everything(0)
    counted_model, lengths, prompt = GPT(60, 32, 4, 128, 2, 72).eval(), [4, 8, 16, 32, 64], list(range(8))
    with torch.no_grad():
        steps = [count_work(counted_model, torch.zeros(1, 8 + t, dtype=torch.long))["flops"] for t in range(64)]
        cached = [count_work(sample, counted_model, [prompt], n, 0.0)["flops"] for n in lengths]
    again = [sum(steps[:n]) for n in lengths]
    plots.curves(lengths, {"all over again": again, "with your cache": cached}, "words written", "FLOPs", logx=True, logy=True,
                 marks=True, alt="Two lines over the number of words: with a cache the work grows in proportion, without it with the square.")
    print(f"64 words: {again[-1] / cached[-1]:.0f} times less work with the cache")

# %% [markdown]
# **GPT-2 itself.** `course data gpt2`, in a terminal, tells where the published file is, how large it is, and whether a
# copy of yours is whole (548 MB; nothing here needs it). With the file beside this notebook, as `gpt2.safetensors`, the
# next cell reads it through *your* `from_gpt2` into *your* `GPT`, and writes with *your* `sample`; words become
# tokens by the library `tokenizers`, with the published `tokenizer.json` beside it.

# %% tags=["training"]
with after("q6_7", "q6_8", "q6_9", "q6_10", what="text"):
    if (found := find_gpt2(Path())) is None:
        print("There is no gpt2.safetensors here, and that is all right: `course data gpt2` tells where to get it.")
    else:
        gpt2 = GPT(**GPT2)
        gpt2.load_state_dict(from_gpt2(found.state()))
        encode, decode = found.tokenizer()
        prompts = ["The meaning of attention is", "Once upon a time, a machine", "In 1905, Albert"]
        for row in sample(gpt2.to(device), [encode(text) for text in prompts], 5 if fast() else 30, 0.8, top_p=0.9,
                          generator=torch.Generator().manual_seed(0)):
            print(decode(row), end="\n\n")

# %% [markdown] question="q6_11"
# ### How good is it?
#
# A language model gives a text a probability. The mean of $-\ln p$ over its tokens is the loss, and its exponential is
# the **perplexity**: a model with perplexity 7 is as unsure as if it chose evenly among 7 tokens each time. Write
#
# - `perplexity(model, ids)`, `ids` long `[N]` with $N \ge 2$, a Python float {=float}:
#
# $$\exp\Big(-\frac{1}{N - 1} \sum_{i=1}^{N-1} \ln p(\text{id}_i \mid \text{the tokens before it})\Big)$$
#
#   Each of the tokens 1 to $N - 1$ is predicted once, from **all** tokens before it {=all-before}, but from at most the last
#   `model.max_len` of them {=windows}. In every such window positions start at 0 {=window-positions}. Any number of calls is
#   fine. Evaluation mode and no gradients inside {=eval-inside}, the mode restored {=mode-back}.
#
# - `bits_per_character(perplexity, n_tokens, n_characters)`, a float {=bits}. A perplexity per word and one per letter are of different
#   things: a word costs more to guess, and there are fewer of them. What can be compared is how many bits the whole text
#   costs, for each character of it. There were `n_tokens` predictions with that perplexity, and there are `n_characters`
#   characters.
#
# By hand: a model that gives all of $V$ tokens the same probability has perplexity $V$. With 27 letters it needs
# $\log_2 27 = 4.75$ bits per character. A model of words with perplexity 1,000 and 5.5 characters per word needs
# $\log_2 1000 / 5.5 = 1.81$.
#
# With `max_len = 4` and ids $a\,b\,c\,d\,e\,f$: $b$ is predicted from $a$; $c$ from $ab$; $d$ from $abc$; $e$ from $abcd$;
# $f$ from $bcde$, with $b$ at position 0.

# %% question="q6_11" points=6 minutes=25 difficulty=3
def perplexity(model: nn.Module, ids: Tensor) -> float:
    """exp of the mean negative log-likelihood of ids[1:], each from at most model.max_len tokens before it."""
    # BEGIN SOLUTION
    N, L = len(ids), model.max_len
    ids = ids.to(next(model.parameters()).device)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            logits = [model(ids[None, : min(L, N - 1)])[0]]  # predicts tokens 1 ... L
            windows = ids[1:-1].unfold(0, L, 1) if N - 2 >= L else ids.new_empty(0, L)  # [N - 1 - L, L]
            logits += [model(some)[:, -1] for some in windows.split(64) if len(some)]
            return math.exp(F.cross_entropy(torch.cat(logits), ids[1:]).item())
    finally:
        model.train(was_training)
    # END SOLUTION


def bits_per_character(perplexity: float, n_tokens: int, n_characters: int) -> float:
    """What a text costs: n_tokens predictions of that perplexity, over n_characters characters."""
    # BEGIN SOLUTION
    return n_tokens * math.log2(perplexity) / n_characters
    # END SOLUTION


# %% [markdown] help="q6_11"
# symptom: Right for short texts and too large for long ones: the text was cut into pieces, so the first token of each
# piece is guessed from nothing. Too good to be true: logits at place i predict token i + 1, and you compared them with token i.
# Bits come out as nats: the logarithm has base 2.
#
# hint: One pass over the first `max_len` tokens predicts tokens 1 to `max_len`. Every later token needs a window of its
# own, of which only the last logits count; `unfold` makes all windows at once.
#
# pseudo-code: eval, no gradients. logits of ids[:max_len] (without the last token of the text); for i from max_len + 1 to
# N - 1: the last logits of ids[i - max_len : i]. Cross-entropy against ids[1:], mean, exp. Mode back.

# %% [markdown]
# Two models of the same stories, one that reads words and one that reads letters, each trained for the same time. Their
# perplexities look as if the second were far better. Bits per character tell.

# %% tags=["training"]
with after("q6_7", "q6_11", what="run"):
    seed_everything(0)
    letters, text = characters_of(told)
    spelt, held_text = ids_of(letters, text), characters_of(held_out)[1][: 500 if fast() else 3000]
    speller = GPT(len(letters), 64, 4, 256, 2, 64, dropout=0.1).to(device)
    train_language_model(speller, spelt.to(device), steps=4 if fast() else 400)
    held_words = "".join(held_text).split(" ")[:-1]
    held = {"words": (writer, ids_of(words, held_words)), "letters": (speller, ids_of(letters, list(" ".join(held_words))))}
    found = {name: (perplexity(model, ids), len(ids) - 1) for name, (model, ids) in held.items()}
    bits = {name: bits_per_character(each, count, len(" ".join(held_words))) for name, (each, count) in found.items()}
    for name, (each, count) in found.items():
        print(f"{name:8} perplexity {each:6.2f} over {count} tokens: {bits[name]:.2f} bits per character")
    plots.bars(list(found), {"perplexity": [each for each, _ in found.values()], "bits per character": list(bits.values())},
               alt="Perplexity and bits per character of a model of words and of one of letters: the letters have the "
               "much smaller perplexity and about as many bits per character or more.", logy=True)

# %% [markdown]
# ## Part IV. Reading with a pencil
#
# A claim is broken by an example, and one is enough.

# %% [markdown] question="q6_13" sources="001/1.3-b"
# ### Spot the error
#
# Six sentences as you may find them in a blog, a paper or an exam. Which of them are false? All attention in them is
# causal, one head, with residual connections and without norms; vectors are rows, $Q = X W_q$.
#
# | name | claim | an example consists of |
# |---|---|---|
# | `"order_needs_positions"` | Without position embeddings a causal decoder cannot tell orders apart: let the tokens before the last one change places, and the last output is the same. | `x` `[N, D]`, $N \ge 3$; `order`, a list of the numbers $0$ to $N - 2$; `Wq`, `Wk`, `Wv` `[L, D, D]`, one matrix per layer |
# | `"loss_reaches_every_word"` | The loss of masked words looks at every token: its gradient is zero at no place of the sentence. | `logits` `[N, V]`, up to 10; `labels` `[N]`, with -100 where nothing is asked |
# | `"nucleus_keeps_most_words"` | Top-p with $p = 0.9$ keeps at least 90% of the vocabulary. | `probabilities` `[V]` |
# | `"lower_perplexity_knows_better"` | Perplexities compare models, whatever their vocabularies: of two models of one text, the one with the lower perplexity has the fewer bits per character. | numbers `perplexity_a`, `tokens_a`, `perplexity_b`, `tokens_b`, `characters` |
# | `"neighbours_tell_inference"` | "Does the first sentence imply the second?" is a self-supervised contrastive task like next-sentence prediction: the label comes free with the text, for pairs that stand alike (neighbours) agree in it. | `document`, a list of sentences, each a list of the facts (numbers) that it states; places `i`, `j` of two pairs: `i`, `i + 1` and `j`, `j + 1` |
# | `"same_places_teach_as_much"` | Masking the same places in every epoch is as good as drawing them anew: after $E$ epochs the loss has asked for as many different words. | `fixed` bool `[N]`, `anew` bool `[E, N]`, each epoch with as many True as `fixed` |
#
# A sentence implies another here when it states all facts of the other. Write `false_claims()`, which takes nothing and
# returns a dict: for **each false claim**, and for no other {~all-false}, its name mapped to a counter-example, a dict with exactly the
# keys of the third column {=form}, on which the claim fails {=breaks}. Tensors may be float32 or float64, axes up to 64.
#
# `holds(name, example)` from `course_utils.hw6.claims` tries a claim on an example: True if the claim is true of it, False if
# it fails by more than rounding, and a `ValueError` that says what is expected if the example is not one {-}. It proves
# nothing when it says True. The last claim is a matter of experience, and the experiment below has an opinion. Whether
# you have found all false claims is what hidden checks also try.

# %% question="q6_13" points=6 minutes=25 difficulty=3
def false_claims() -> dict[str, dict[str, Any]]:
    """Each false claim's name, with a counter-example: a dict of the arguments on which it fails."""
    # BEGIN SOLUTION
    rng = torch.Generator().manual_seed(0)
    two_layers = {W: torch.randn(2, 4, 4, generator=rng) for W in ("Wq", "Wk", "Wv")}
    return {
        "order_needs_positions": {"x": torch.randn(4, 4, generator=rng), "order": [2, 0, 1], **two_layers},
        "loss_reaches_every_word": {"logits": torch.zeros(2, 3), "labels": torch.tensor([1, -100])},
        "nucleus_keeps_most_words": {"probabilities": torch.tensor([0.9, 0.05, 0.05])},
        "lower_perplexity_knows_better": {
            "perplexity_a": 3.0, "tokens_a": 100, "perplexity_b": 50.0, "tokens_b": 20, "characters": 100,
        },
        "neighbours_tell_inference": {"document": [[1, 2], [1], [3]], "i": 0, "j": 1},
        "same_places_teach_as_much": {
            "fixed": torch.tensor([True, False]), "anew": torch.tensor([[True, False], [False, True]]),
        },
    }
    # END SOLUTION


# %% [markdown] help="q6_13"
# symptom: `holds` says True for everything that you try about orders: one layer cannot break that claim, and two can. A
# `ValueError`: read it, it names what does not fit.
#
# hint: In one causal layer without positions the last token takes a weighted sum over all others, and a sum has no
# order. But what have the others seen, when they change places? For the rest, take two or three tokens, and make the
# example as lopsided as you can.
#
# pseudo-code: For each claim: a small example in which every ingredient matters (two layers, a label that is -100, one
# token with nearly all the weight, few long tokens against many short ones, a sentence that repeats half of its
# neighbour, two epochs), ask `holds`, and keep the example if the claim fails.

# %% [markdown]
# Does a causal mask know the order? Random stacks of one to four layers without positions, 200 of them each: how far the last
# output moves when the tokens before it change places. With one layer it does not move at all: each token before the
# last is itself, and the last takes a sum. From two layers on it does, for then a token has heard those before it.

# %% tags=["plot"]
with after("q6_7"):
    seed_everything(0)
    moved = {"with a causal mask": [], "without a mask": []}
    for depth in (1, 2, 3, 4):
        layers, x = torch.randn(200, depth, 3, 16, 16) / 4, torch.randn(200, 8, 16)
        for name, causal in (("with a causal mask", True), ("without a mask", False)):
            ends = []
            for h in (x, torch.cat([x[:, [6, 5, 4, 3, 2, 1, 0]], x[:, -1:]], 1)):
                for l in range(depth):
                    h = h + attention(h @ layers[:, l, 0], h @ layers[:, l, 1], h @ layers[:, l, 2], causal=causal)[0]
                ends.append(h[:, -1])  # [200, 16]
            moved[name].append(float((ends[0] - ends[1]).norm(dim=-1).mean()))
    plots.curves([1, 2, 3, 4], moved, "layers", "how far the last output moves", "The order of the past, without positions", marks=True,
                 alt="How far the last output moves when the past is turned round, over the number of layers: with a "
                 "causal mask zero for one layer and clearly more from two on; without a mask always zero.")

# %% [markdown]
# And the last claim. The same small model of masked words, the same 60 sentences, the same number of steps: once the chosen
# places are drawn once and for all, once anew in every epoch. The loss is measured on other sentences.

# %% tags=["training"]
with after("q6_7", what="run"):
    curves = fixed_or_anew(epochs=2 if fast() else 30)
    plots.curves(curves.pop("epoch"), curves, "epoch", "loss on other sentences", "Masks that stay, and masks drawn anew",
                 alt="The loss of masked words on other sentences over epochs: it falls further with masks drawn anew.")

# %% tags=["plot"]
with after("q6_13"):
    found = false_claims()
    for name in CLAIMS:
        if name in found:
            print(f"{name:30} {'holds on your example' if holds(name, found[name]) else 'broken by your example'}")
        else:
            print(f"{name:30} you let it stand")
