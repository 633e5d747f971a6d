# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="multi-head attention, counting, KV cache, linear and windowed attention"
# # Homework 2: Heads, masks and what they cost
#
# One softmax makes one choice. A word in a sentence has more than one question to ask: which word stands
# before me, who is the subject, where did I meet this name last? So a Transformer runs several attentions
# side by side. Each looks at *all* features of every token, through narrow projections of its own, and is called a head.
# In this notebook you build
# that layer, tell it what it may see, and then take out the pocket calculator: how many parameters, how many
# operations, how far does it see, and which of this work can be saved?
#
# **When you are done, you will be able to**
#
# - write multi-head attention that takes PyTorch's weights and gives PyTorch's numbers;
# - say which mask belongs to which attention of BERT, GPT and a translator, and prove it by experiment;
# - count parameters and operations exactly, and know when attention is the expensive part and when it is not;
# - bound how far information travels through a stack of layers;
# - write a key-value cache, which spares a chat model from reading everything again for every word;
# - make attention linear in the length, and say what you paid for it;
# - break a false claim with a counter-example.
#
# **What you need**: homework 1 (its `attention` is given below) and some PyTorch. No GPU, no downloads.

# %% [markdown] contents=true
# The table of contents stands here, with the times to read and to work.

# %% [markdown]
# ## How to work
#
# Every question has a text, one answer cell, a check and a ladder of help. Replace the `raise
# NotImplementedError` in the answer cell, run the cell, then run the check below it. The check tries your
# answer on small examples and says what it found; the grader that computes your points does the same on
# many more inputs, and relies on nothing that is not written in this notebook. The help is folded: first
# what you might be seeing, then a hint, then the steps in words. Opening it costs nothing. Pictures that
# need your answers appear as soon as the answers are there.
#
# Questions @q2_11 and @q2_12, at the end, ask for a few sentences instead of code, and a person reads them.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged
# with ours in its place too, so an error costs its points once, but for one small case in @q2_2 and in @q2_7 that
# tries your own parts together.
#
# Answers @q2_1, @q2_2, @q2_13, @q2_8 and @q2_9 are parts of models, so gradients must flow through them: stay in PyTorch
# there, and do not `detach`.

# %% [markdown]
# ## The convention card
#
# The same in every homework. The rows on padding, causal masks and blocked keys are at work in this one.

# %% [markdown] card=true
# The convention card of the course stands here.

# %%
import math
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import Grader, after, pick_device, plots, seed_everything
from course_utils.hw2 import three_jobs
from course_utils.hw2.claims import CLAIMS, holds
from course_utils.hw2.diagram import multi_head_diagram
from course_utils.hw2.feature_maps import elu_features, exp_features
from course_utils.hw2.kv_runs import decode_stepwise, work_per_step
from course_utils.instruments.work import count_work

plt.rcParams["figure.dpi"] = 100  # for pictures of your own
seed_everything(0)
device = pick_device()
grader = Grader("hw2_multihead")

# %% [markdown]
# **Given: attention from homework 1.** `softargmax(scores, beta, dim)` is a softmax that survives rows of
# `-inf`, and `attention(q, k, v, key_padding_mask=None, causal=False, beta=None)` is scaled dot-product
# attention. It takes `[B, N, D]` and, with one more axis, `[B, H, N, Dh]`; the scale is one over the root of
# the last axis; it returns `(out, weights)`. You may replace the cell by your own version.

# %% given="hw1_attention q1_1 q1_7"
from hw1_attention import attention, softargmax

# %% [markdown]
# ## Part I. Several heads
#
# A head is an attention of its own, with its own queries, keys and values, on `Dh = D / H` features instead
# of `D`. Nobody computes the heads in a loop, though. One wide projection of the whole input makes the queries of all heads
# at once, and then its *results* are dealt out like cards: the first `Dh` to head 0, the next `Dh` to head 1.
# Nearly all that can go wrong is in the dealing, and so we begin there.

# %% [markdown] question="q2_1" sources="002/2.2-mha 002/2.1-shapes"
# ### Split and merge
#
# Write two functions that are exact inverses of each other: {=inverses}
#
# - `split_heads(x, n_heads)`: `[B, N, D]` to `[B, H, N, Dh]` with `Dh = D / H`. Head $h$ holds the **columns**
#   $h D_h$ to $(h + 1) D_h - 1$ of every token:
#
# $$\mathrm{split}(x)_{b,h,n,c} = x_{b,\,n,\;h D_h + c}$$ {=split}
#
# - `merge_heads(x)`: `[B, H, N, Dh]` back to `[B, N, D]`, head 0 first. The number of heads stands in the
#   shape, so it is no argument. {=merge}
#
# A small example, one sequence of two tokens with $D = 4$: the tokens $(0, 1, 2, 3)$ and $(4, 5, 6, 7)$ and
# two heads. Head 0 holds $(0, 1)$ and $(4, 5)$, head 1 holds $(2, 3)$ and $(6, 7)$. Every head still has
# *all* tokens, and each token has given every head a part of itself.
#
# The number of heads divides `D`. These functions only move numbers: any dtype will do, {=dtypes} gradients pass through, {=gradients}
# and the input is not changed. {~unchanged} (Hidden checks also look whether the input is as it was.)
#
# There is a trap. `x.reshape(B, H, N, Dh)` has the right shape and runs without complaint. The picture below
# shows what it does.

# %% question="q2_1" points=6 minutes=15 difficulty=1
def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Deal the features out to the heads: [B, N, D] -> [B, H, N, Dh]."""
    # BEGIN SOLUTION
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)  # [B, N, H, Dh] -> [B, H, N, Dh]
    # END SOLUTION


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: [B, H, N, Dh] -> [B, N, D]."""
    # BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)  # [B, N, H, Dh] -> [B, N, D]
    # END SOLUTION


# %% [markdown] help="q2_1"
# symptom: The shapes are right but the values are not: you went from `[B, N, D]` to `[B, H, N, Dh]` in one
# reshape, which cuts the *sequence* into pieces and not the features. Or head 0 holds columns 0, H, 2H, ...:
# you split `D` into `Dh` times `H` instead of `H` times `Dh`. `view` complains about strides: after a
# transpose the numbers are no longer in memory order; use `reshape` or `flatten`.
#
# hint: A reshape may only split the axis that you want to split, or merge neighbours. Splitting `D` gives two
# axes where there was one, at the *end*. Then the axes are in the wrong order, and that is what `transpose`
# is for.
#
# pseudo-code: Split: view the last axis as two, heads first and then the features of a head, which gives
# B, N, H, Dh; swap the axes N and H. Merge: swap them back; flatten the last two axes into one.

# %% [markdown]
# Four tokens of width six, numbered in reading order, and three heads. On the left the tokens, then head 1 as
# your `split_heads` makes it, then what a bare `reshape` calls head 1. It has the right shape, and holds
# pieces of two tokens only, cut into lines that never belonged together.

# %% tags=["plot"]
with after("q2_1"):
    x = torch.arange(24.0).reshape(1, 4, 6)
    panels = {
        "4 tokens, 6 features": x[0],
        "head 1, split_heads": split_heads(x, 3)[0, 1],
        "head 1, bare reshape": x.reshape(1, 3, 4, 2)[0, 1],
    }
    plots.heatmaps(
        panels, rows=range(4), xlabel="feature", ylabel="token", numbers=True, vmax=23,
        alt="Numbered tokens; split_heads takes columns 2 and 3, a bare reshape takes the numbers 8 to 15.",
    )
    print("merge(split(x)) equals x:", torch.equal(merge_heads(split_heads(x, 3)), x))

# %% [markdown] question="q2_2" sources="000/0.2-formula 000/0.2-c-i 000/0.2-c-ii-dv 000/4-cross 001/1.2-a 001/1.3-a 001/1.4-c 002/2.2-scale 002/2.3-cross 003/2-code"
# ### Multi-head attention
#
# Here is the layer of Vaswani (2017). With queries from one sequence $X$ and keys and values from another, $Y$
# (or the same),
#
# $$\mathrm{head}_h = \mathrm{attention}(X W_q^h,\; Y W_k^h,\; Y W_v^h), \qquad
# \mathrm{out} = [\mathrm{head}_0, \dots, \mathrm{head}_{H-1}]\; W_o .$$
#
# Every head sees the **whole** input through its own projections; it is the *projections* that are narrow,
# not the input. (A layer that cuts the input first, and projects each piece, is another and poorer one: its
# heads are blind to most features.) The three projections of all heads together are three matrices
# `[D, D]`, the fourth mixes what the heads have found.
#
# Write the module `MultiHeadAttention(d_model, n_heads, dropout=0.0, bias=True)`:
#
# - four linear layers `nn.Linear(d_model, d_model)` named `q_proj`, `k_proj`, `v_proj`, `o_proj`, with biases
#   if and only if `bias`, {=no-biases} no other parameters; {=projections} the attribute `n_heads`. {=n-heads} Weights are put in by these names;
# - head $h$ has the columns of @q2_1, so row block $h$ of `q_proj.weight`, `k_proj.weight`, `v_proj.weight` and
#   column block $h$ of `o_proj.weight` belong to it; {=head-columns}
# - `d_model % n_heads != 0` raises a `ValueError` when the module is made; {=divides}
# - the scale is $1/\sqrt{D_h}$: the width that the dot product runs over. With $D = 64$ and $H = 8$ the scores
#   of random queries and keys have variance 1; with $1/\sqrt{D}$ they would have $1/8$; {=scale}
# - dropout, in training mode only, acts on the attention weights (after the softmax), on each weight of each head by
#   itself. {=dropout}

# %% [markdown]
# `forward(query, key, value, key_padding_mask=None, causal=False)` returns `(out, weights)`:
#
# | name | shape | meaning |
# |---|---|---|
# | `query` | `[B, T, D]` | self-attention passes the same tensor three times |
# | `key`, `value` | `[B, S, D]` | in cross-attention `key` and `value` may differ from `query`, and from each other |
# | `key_padding_mask` | bool `[B, S]` or `None` | **True = padding**, for all heads and queries of its example |
# | `causal` | bool | as on the card: query $i$ sees key $j$ iff $j \le i + (S - T)$ |
# | `out` | `[B, T, D]` | after `o_proj` |
# | `weights` | `[B, H, T, S]` | of every head, not averaged |
#
# The three inputs may be one tensor, two or three; {=self-and-cross} a padded key is blocked for its own example alone, {=padding}
# and `causal` goes by the card also where $T$ and $S$ differ. {=causal}
#
# A query that may see no key, by one mask or by both together, has weights 0, so its output is `o_proj`'s bias (0 without
# bias); {=nothing-to-see} nothing is ever NaN, {=never-nan} gradients neither, and they reach all three inputs, from the output and from the
# weights. {=gradients} With dropout active the returned weights may be those before or after it.

# %% [markdown]
# **The test that counts.** `nn.MultiheadAttention` is the same layer, with other names: its `in_proj_weight`
# `[3D, D]` is `q_proj.weight`, `k_proj.weight` and `v_proj.weight` one below the other, `in_proj_bias` `[3D]`
# likewise, and `out_proj` is our `o_proj`. With its weights, your module must give its numbers, for self and
# cross attention, with padding, with a causal mask, without biases. {=agrees}
#
# In this answer `nn.MultiheadAttention`, `F.multi_head_attention_forward` (which is its inside) and
# `F.scaled_dot_product_attention` may **not** be used. {~ruled-out} The given `attention` may, and takes most of the work
# off you. But it knows no dropout: where there is some, drop weights that it has returned and multiply by the values yourself,
# and only there. (Who multiplies twice in every call pays for three products, and the count of @q2_5 will not come out.)
# Hidden checks also look for the functions that are ruled out.

# %% tags=["plot"]
multi_head_diagram(3)

# %% question="q2_2" points=16 minutes=45 difficulty=3 uses=["q2_1"]
class MultiHeadAttention(nn.Module):
    """Multi-head attention, without nn.MultiheadAttention, its F.multi_head_attention_forward, or
    F.scaled_dot_product_attention.
    """

    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        """Make q_proj, k_proj, v_proj and o_proj; n_heads must divide d_model, else a ValueError."""
        super().__init__()
        # BEGIN SOLUTION
        if d_model % n_heads:
            raise ValueError(f"n_heads = {n_heads} does not divide d_model = {d_model}")
        self.n_heads = n_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)
        # END SOLUTION

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        causal: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """query [B, T, D], key and value [B, S, D] -> out [B, T, D], weights [B, H, T, S]."""
        # BEGIN SOLUTION
        q = split_heads(self.q_proj(query), self.n_heads)  # [B, H, T, Dh]
        k = split_heads(self.k_proj(key), self.n_heads)  # [B, H, S, Dh]
        v = split_heads(self.v_proj(value), self.n_heads)  # [B, H, S, Dh]
        heads, weights = attention(q, k, v, key_padding_mask, causal)  # [B, H, T, Dh], [B, H, T, S]
        if self.training and self.dropout > 0:
            heads = F.dropout(weights, self.dropout) @ v
        return self.o_proj(merge_heads(heads)), weights  # [B, T, D]
        # END SOLUTION


# %% [markdown] help="q2_2"
# symptom: Right for one head and wrong for several: the scale is $1/\sqrt D$ instead of $1/\sqrt{D_h}$, or the
# heads are dealt out in another order. Wrong only where the rows of the batch have different padding: the
# mask met the wrong axis (repeating it for the heads in the wrong order mixes the examples). Wrong for cross
# attention only: keys or values were projected from `query`. `load_state_dict` complains: a name differs, or
# there is a parameter too many. Outputs change from call to call in `eval()`: dropout is always on.
#
# hint: Project first, split afterwards. The given `attention` knows four axes: it broadcasts the padding mask
# over heads and queries and takes the scale from the last axis. All that is left is to merge, and to apply
# `o_proj`, to *every* row, also to those that saw nothing.
#
# pseudo-code: Make: refuse if the remainder is not 0; remember the number of heads and the dropout; four
# linear layers. Forward: q, k, v are the projections of query, key and value, each split into heads.
# Attention with both masks. In training with dropout, drop weights and multiply by v again. Merge the heads,
# apply o_proj, and return it with the weights.

# %% [markdown]
# First the test that counts, on a batch with unequal padding. The largest difference should be about
# $10^{-7}$, the last digits of float32.

# %% tags=["plot"]
with after("q2_2", what="comparison"):
    seed_everything(1)
    theirs = nn.MultiheadAttention(24, 3, batch_first=True)
    ours = MultiHeadAttention(24, 3)
    with torch.no_grad():
        q, k, v = theirs.in_proj_weight.chunk(3)
        theirs.in_proj_bias.normal_()
        bq, bk, bv = theirs.in_proj_bias.chunk(3)
        out = theirs.out_proj
        weights = {"q_proj.weight": q, "k_proj.weight": k, "v_proj.weight": v, "o_proj.weight": out.weight}
        biases = {"q_proj.bias": bq, "k_proj.bias": bk, "v_proj.bias": bv, "o_proj.bias": out.bias}
        ours.load_state_dict(weights | biases)
        x, y = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
        padding = torch.arange(7) >= torch.tensor([[7], [4]])  # [2, 7]
        a = theirs(x, y, y, key_padding_mask=padding, average_attn_weights=False)
        b = ours(x, y, y, key_padding_mask=padding)
    for name, left, right in zip(("output", "weights"), a, b, strict=True):
        print(f"largest difference of the {name}: {(left - right).abs().max():.0e}")

# %% [markdown]
# **What do heads do?** Give them jobs and watch. The sequences below have 12 symbols out of 12, and one of
# them is *marked*. At every place a model must name three symbols: the one just **before**, the **first** of
# the sequence, and the **marked** one. The model is an embedding, one `MultiHeadAttention` of yours and a
# linear layer (`course_utils.hw2.three_jobs`). We train it twice (some seconds), with one head of width 24 and
# with three of width 8: the same number of parameters, and (as you will prove in @q2_5) of operations.

# %% tags=["training"]
with after("q2_2"):
    shares = {}
    for name, n_heads in (("one head", 1), ("three heads", 3)):
        seed_everything(0)
        model = three_jobs.ThreeJobs(MultiHeadAttention(three_jobs.D_MODEL, n_heads)).to(device)
        three_jobs.train_three_jobs(model)
        shares[name] = list(three_jobs.job_accuracy(model).values())
    three_heads = model
    plots.bars(
        three_jobs.JOBS, shares, "job", "share of right answers", "Three jobs, one softmax or three",
        alt="Bars of right answers: three jobs, each by one head and by three heads.",
    )

# %% [markdown]
# One head has one set of weights per query. It can spread them over two places, and it does, but then it
# hands over a *mixture* of the two values, which the read-out must take apart. Two jobs it manages more or
# less; the third does not fit. Three heads take one job each. Nobody told them to, and which head takes which job
# depends on the first random weights alone. (We tried ten seeds, and found one job per head each time. Other
# starting weights than those of `nn.Linear` may end with two heads on the same job and nobody on the third.)
#
# Below, each head's weights on one new sequence (the marked symbol carries a star), and then the weight that
# each head puts on each job's place, averaged over 256 sequences. (Two places in twelve serve two jobs at
# once: at places 0 and 1, "before" is the first symbol. And the marked symbol is the first one in a twelfth
# of the sequences. So a perfect row reads something like 1, 0.17, 0.08.)

# %% tags=["training"]
with after("q2_2"):
    symbols, marked, _ = three_jobs.three_jobs_batch(1, torch.Generator().manual_seed(6))
    with torch.no_grad():
        _, weights = three_heads(symbols.to(device), marked.to(device))  # [1, 3, 12, 12]
    names = [chr(ord("a") + s) + "*" * (n == marked.item()) for n, s in enumerate(symbols[0].tolist())]
    plots.heatmaps(
        {f"head {h}": w for h, w in enumerate(weights[0])}, rows=names, cols=names, vmax=1, xlabel="looks at",
        ylabel="symbol", title="What three heads have learned",
        alt="Three weight matrices: one bright below the diagonal, one in the first column, one in the marked.",
    )
    plots.heatmap(
        three_jobs.head_jobs(three_heads), rows=[f"head {h}" for h in range(3)], cols=three_jobs.JOBS, vmax=1,
        title="Weight on each job's place", xlabel="job", ylabel="",
        alt="A table of three heads and three jobs: in every row one entry is near 1, each in another column.",
    )

# %% [markdown] told="003/1-code 003/2-code 002/2.2-mha"
# **A listing to debug.** Somebody wrote the core of the layer like this (in the manner of several listings in print). It
# passes on a first example, a square batch of two in float32. Find five things that go wrong elsewhere, and for each an
# input that shows it, before you unfold ours.
#
# ```python
# def core(q, k, v, padding, mask):                                # q [B, H, T, Dh], padding [B, S], a global triangle `mask`
#     scores = q @ k.mT / math.sqrt(H * Dh)
#     scores = scores.masked_fill(padding.repeat(H, 1).view(B, H, 1, S), -math.inf)
#     scores += mask[:T, :S]                                       # -inf above the diagonal
#     weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
#     return (weights @ v).transpose(1, 2).reshape(B, T, -1)
# ```
#
# <details><summary>What we found</summary>
#
# 1. The scale has the width of the model: the dot product runs over $D_h$. Any input with more than one head shows it.
# 2. `repeat(H, 1)` lays the copies of the *batch* one after the other, so examples get each other's padding. It takes two
#    rows with different padding to see that.
# 3. `mask[:T, :S]` starts in the upper left corner: with one new query and ten cached keys, it sees key 0 alone.
# 4. A query whose keys are all blocked is NaN: padding on the left and a causal mask do that.
# 5. A softmax in float32 costs float64 inputs half of their digits, and a check of gradients by differences fails.
#
# The triangle also ends at the length that somebody chose for it, and nothing says so until a text is longer.
#
# </details>

# %% [markdown] question="q2_13" sources="001/1.2-b 000/0.2-formula"
# ### The layer that the formula does not mean
#
# Look at a formula as it stands in some lecture notes: "split $X$ into $X_0, \dots, X_{H-1}$, and let head $h$ project its
# part, $X_h W_h$". Read literally, each head is given a **slice of the input** and a small matrix `[Dh, Dh]`. That is not
# the layer of @q2_2, where each head projects the whole input. It is another layer, one that convolutional networks
# have had for long, under the name of *groups*. Let us build it three times, and then see what it cannot do.
#
# `W` is `[H, Dh, Dh]`, one matrix per head, and $D = H D_h$; slices are those of @q2_1, head $h$ has the features $h D_h$
# to $(h + 1) D_h - 1$. A head's matrix stands to the left of a feature vector, as in `nn.Linear`: head $h$ maps its slice
# $s$ to $W_h s$, which goes to the same place of the output. Write
#
# - `per_head_projection(x, W)`: `x` `[B, N, D]` to `[B, N, D]`; {=per-head} gradients flow to `x` and to `W`; {=gradients}
# - `block_diagonal(W)`: the matrix `[D, D]` that does the same to the whole vector at once, zeros outside of the blocks, {=blocks}
#   so that `per_head_projection(x, W)` equals `x @ block_diagonal(W).T`; {=same-map}
# - `as_grouped_convolution(W)`: the same as an `nn.Conv1d` {=is-a-convolution} from $D$ to $D$ channels, of width 1, with `groups=H` and
#   `bias=False`. {=groups} It takes `[B, D, N]` (channels before places) and gives `[B, D, N]`: what `per_head_projection` gives,
#   transposed. {=same-as-convolution} Its weight is a **copy** of `W`, {=copied} in `W`'s dtype and on `W`'s device. {=keeps-dtype}
#
# A small example, $H = 2$ and $D_h = 2$, with $W_0$ the rows $(0, 1)$, $(1, 0)$ and $W_1$ twice the identity:
# $(1, 2, 3, 4)$ becomes $(2, 1, 6, 8)$. {=worked} The number of heads need not be the width of a head. {=any-sizes}

# %% question="q2_13" points=5 minutes=20 difficulty=2 uses=["q2_1"]
def per_head_projection(x: Tensor, W: Tensor) -> Tensor:
    """Each head's matrix on each head's slice: x [B, N, D], W [H, Dh, Dh] -> [B, N, D]."""
    # BEGIN SOLUTION
    slices = split_heads(x, len(W))  # [B, H, N, Dh]
    return merge_heads(slices @ W.mT)  # rows on the left, so the matrices are transposed
    # END SOLUTION


def block_diagonal(W: Tensor) -> Tensor:
    """One matrix for the whole vector, W's matrices along its diagonal: [H, Dh, Dh] -> [D, D]."""
    # BEGIN SOLUTION
    return torch.block_diag(*W)
    # END SOLUTION


def as_grouped_convolution(W: Tensor) -> nn.Conv1d:
    """The same map as a convolution of width 1 in H groups, without bias; its weight is a copy of W."""
    # BEGIN SOLUTION
    H, Dh, _ = W.shape
    convolution = nn.Conv1d(H * Dh, H * Dh, 1, groups=H, bias=False, dtype=W.dtype, device=W.device)
    with torch.no_grad():
        convolution.weight.copy_(W.reshape(H * Dh, Dh, 1))  # [D, Dh, 1]: a row of W is an output channel
    return convolution
    # END SOLUTION


# %% [markdown] help="q2_13"
# symptom: Right for symmetric matrices and wrong for others: `x @ W` multiplies by the transpose. Right for two heads of
# width two and wrong else: `H` and `Dh` have changed places. The convolution complains about shapes: it wants
# `[B, D, N]`, and its weight is `[D, Dh, 1]`. It is right until you change `W`: the weight shares its memory.
#
# hint: `split_heads` gives `[B, H, N, Dh]`, and `@` multiplies matrix by matrix, with a broadcast over the batch. For the
# matrix, look for a function of torch that lays blocks along a diagonal. The weight of a convolution with groups has one row
# per *output* channel, and a row holds as many numbers as its group has *input* channels.
#
# pseudo-code: Project: split; times the transposes; merge. Matrix: blocks along the diagonal. Convolution: an nn.Conv1d from
# D to D, width 1, H groups, no bias, dtype and device of W; copy W, reshaped to D by Dh by 1, into its weight.

# %% [markdown]
# Which output feature hears which input feature? The size of the derivative, for your `per_head_projection`, for the query
# projection of @q2_2, and for an ordinary convolution of width 1. How many weights does each have? Predict both, then run.

# %% tags=["plot"]
with after("q2_1", "q2_2", "q2_13"):
    seed_everything(13)
    W, x = torch.randn(3, 4, 4), torch.randn(1, 1, 12)
    dense, ordinary = MultiHeadAttention(12, 3).q_proj, nn.Conv1d(12, 12, 1, bias=False)

    def hears(f) -> Tensor:
        """The size of the derivative of each of 12 outputs by each of 12 inputs."""
        return torch.autograd.functional.jacobian(lambda z: f(z).flatten(), x).reshape(12, 12).abs()

    panels = {"per_head_projection": hears(lambda z: per_head_projection(z, W)), "q_proj": hears(dense),
              "ordinary convolution": hears(lambda z: ordinary(z.mT).mT)}
    plots.heatmaps({name: panel / panel.max() for name, panel in panels.items()}, xlabel="input feature",
                   ylabel="output feature", title="Who hears whom (each divided by its largest; white: exactly 0)",
                   blank_zeros=True, alt="Three tables of 12 by 12: the size of the derivative of output by input features.")
    grouped = as_grouped_convolution(W)
    print(f"weights: {W.numel()} per head and in {grouped.weight.numel()} of the grouped convolution, "
          f"{dense.weight.numel()} in q_proj")
    print(f"convolution against projection: {(grouped(x.mT).mT - per_head_projection(x, W)).abs().max():.0e}")

# %% [markdown] told="001/1.2-b 000/0.2-formula"
# <details><summary>What it cannot do</summary>
#
# It has $H D_h^2 = D^2 / H$ weights in place of $D^2$: $H$ times fewer. The price is blindness: a head of this layer never hears
# a feature outside of its slice, so whatever must be compared has to lie in one slice already. `MultiHeadAttention` contains
# this layer (make its matrices block-diagonal) and much more. In the language of convolutions, a full layer of heads is a
# convolution of width 1, then something done in groups, then a convolution of width 1 again; the two outer ones are there to
# bring the features together that the groups keep apart. More *filters*, the answer that one often hears when asked what
# heads are in a convolutional network, is something else: every filter sees every channel.
#
# </details>

# %% [markdown] question="q2_3" sources="002/2.2-padding 002/2.3-causal 003/2-b-premise 003/2-b-i 003/2-b-ii 003/2-b-iii 001/1.5-b"
# ### Masks, and who needs which
#
# A mask says which keys a query may **not** see. There are two reasons to hide a key: it is not there (a
# batch is a rectangle, sentences are not, and the rest is *padding*), or it is not there *yet* (a model that
# predicts the next token must not read it). {-} Boolean masks in this course have **True = blocked**.
#
# - `padding_mask(lengths, max_len=None)`: `lengths` is a list of ints or an integer tensor `[B]`, {=list-or-tensor} the number of
#   real tokens of each example; padding is on the **right**. The result is bool `[B, max_len]`, True where
#   there is padding, {=padding-mask} on the device of `lengths` if that is a tensor. {~device} `max_len=None` means the largest length. {=max-len}
#   A length may be 0. {=length-zero} For lengths $(3, 1)$ and `max_len=4` the rows are `F F F T` and `F T T T`.
# - `causal_mask(T, S=None)`: bool `[T, S]`, True where key $j$ is hidden from query $i$, that is where
#   $j > i + (S - T)$. {=causal-mask} `S=None` means $S = T$. The last query sees all keys. {=last-sees-all} For $T = 2$, $S = 4$ the rows are
#   `F F F T` and `F F F F`; for $T > S$ the first $T - S$ rows are all True.
# - `masks_for(architecture)`: which attention needs which mask? `architecture` is one of
#
# | architecture | example | attentions that it has |
# |---|---|---|
# | `"encoder"` | BERT reads whole sentences | the encoder's self-attention |
# | `"decoder"` | GPT writes token after token | the decoder's self-attention |
# | `"encoder-decoder"` | a translator | both, and cross-attention from the decoder to the encoder's output |
#
# Return a dict with exactly the attentions that the architecture has as keys, {=attentions} out of `"encoder_self"`,
# `"decoder_self"` and `"cross"`, each mapped to the `set` of masks that it **needs**, out of `"padding"` and
# `"causal"`. A mask is needed if without it the output at some *real* position would depend on padding, or,
# in a decoder, on a token that is not written yet. {=needed} What happens at padded positions does not matter: nobody
# reads them. Padding is on the **right**, in the source and in the target. Careful, that last sentence has a
# consequence, and for one of the attentions the popular answer has a mask too many. (Hidden checks also look at devices.)

# %% question="q2_3" points=9 minutes=20 difficulty=2
def padding_mask(lengths: list[int] | Tensor, max_len: int | None = None) -> Tensor:
    """True where there is padding: lengths [B] -> bool [B, max_len]."""
    # BEGIN SOLUTION
    lengths = torch.as_tensor(lengths)
    max_len = int(lengths.max()) if max_len is None else max_len
    return torch.arange(max_len, device=lengths.device) >= lengths[:, None]  # [B, max_len]
    # END SOLUTION


def causal_mask(T: int, S: int | None = None) -> Tensor:
    """True where a key comes too late for a query: bool [T, S], the last query sees everything."""
    # BEGIN SOLUTION
    S = T if S is None else S
    return torch.arange(S) > torch.arange(T)[:, None] + (S - T)  # [T, S]
    # END SOLUTION


def masks_for(architecture: str) -> dict[str, set[str]]:
    """The attentions of "encoder", "decoder" or "encoder-decoder", each with the set of masks that it needs."""
    # BEGIN SOLUTION
    encoder, decoder, cross = {"encoder_self": {"padding"}}, {"decoder_self": {"causal"}}, {"cross": {"padding"}}
    return {"encoder": encoder, "decoder": decoder, "encoder-decoder": encoder | decoder | cross}[architecture]
    # END SOLUTION


# %% [markdown] help="q2_3"
# symptom: Everything is inverted: True means blocked here. The causal mask is right for $T = S$ only: your
# triangle starts in the upper left corner, and with a cache of old keys the newest query would see key 0
# alone. One token is off: the diagonal itself is *allowed*. `masks_for` is refused for the decoder: ask what a
# real position could read that it must not, once the causal mask is there.
#
# hint: Both masks are one comparison of an `arange` with something that has one more axis. For `masks_for`,
# draw a sentence with padding at its right end, and go through the real positions one by one: what may they
# see? Cross-attention asks about the *source*, which is complete before the decoder starts.
#
# pseudo-code: Padding: compare 0, 1, ..., max_len - 1 (as a row) with the lengths (as a column); True where the
# place is at least the length. Causal: compare the key's number (row) with the query's number plus S minus T
# (column); True where it is greater. Masks: the encoder reads whole sentences, so nothing but padding needs
# hiding; in the decoder, padding on the right stands later than every real token; the source's padding must
# be hidden from the decoder too.

# %% [markdown]
# The masks, and below each the attention that it makes of the same random scores: six tokens, of which the
# last two are padding. Which rows of weights will be the same in the second and the third? And what do rows 4 and 5 of
# the third look at?
#
# <details><summary>What we see</summary>
#
# Rows 0 to 3 are the same: that is the consequence. Rows 4 and 5 belong to padding, they look at real
# tokens, and nobody will ever read what they found.
#
# </details>

# %% tags=["plot"]
with after("q2_3"):
    scores = 1.5 * torch.randn(6, 6, generator=torch.Generator().manual_seed(3))
    padding = padding_mask([4], 6).expand(6, 6)
    masks = {"padding": padding, "causal": causal_mask(6), "padding or causal": padding | causal_mask(6)}
    plots.heatmaps(
        masks, rows=range(6), cols=range(6), vmax=1, xlabel="key", ylabel="query", title="Masks: bright = blocked",
        alt="Masks: padding blocks the last two columns, causal everything right of the diagonal, and both.",
    )
    produced = {name: softargmax(scores.masked_fill(mask, -math.inf)) for name, mask in masks.items()}
    plots.heatmaps(
        produced, rows=range(6), cols=range(6), vmax=1, xlabel="key", ylabel="query", title="Weights",
        alt="The attention weights under these masks: dark where blocked, and every row sums to one.",
    )

# %% [markdown]
# Do not believe it, try it. We change the padding tokens, and look how far the outputs at *real* positions
# move: without masks, and with those that your `masks_for` names. The last two lines are what you get when the padding is on
# the **left**, as programs that write many answers at once like to have it. Predict each line before you run it.

# %% tags=["plot"]
with after("q2_2", "q2_3", what="experiment"):
    seed_everything(2)
    mha = MultiHeadAttention(12, 3)
    x = torch.randn(1, 6, 12)
    right, left = padding_mask([4], 6), padding_mask([4], 6).flip(1)  # [1, 6]
    encoder, decoder = masks_for("encoder")["encoder_self"], masks_for("decoder")["decoder_self"]
    for name, pads, masks in (
        ("encoder, no mask", right, set()),
        (f"encoder, {', '.join(sorted(encoder))}", right, encoder),
        ("decoder, no mask", right, set()),
        (f"decoder, {', '.join(sorted(decoder))}, padding on the right", right, decoder),
        (f"decoder, {', '.join(sorted(decoder))}, padding on the left", left, decoder),
        ("decoder, both masks, padding on the left", left, {"padding", "causal"}),
    ):
        hide, causal = "padding" in masks, "causal" in masks
        changed = torch.where(pads[..., None], x + 1, x)
        mask = pads if hide else None
        a, b = (mha(z, z, z, key_padding_mask=mask, causal=causal)[0] for z in (x, changed))
        print(f"{name:44} real outputs move by {(a - b)[~pads].abs().max():.3f}")


# %% [markdown] told="003/2-b-ii"
# <details><summary>What we see</summary>
#
# An encoder without a mask reads the padding. A decoder with padding on the right needs no mask for it: the padding lies in
# the future, which the causal mask hides already. On the left every real token sees it, and the causal mask does not help.
#
# </details>

# %% [markdown]
# ## Part II. Counting
#
# People say "attention is quadratic", buy larger machines, and are surprised. Exact counts are not hard and
# pay at once. Three things can be counted: numbers that are stored (parameters), numbers that are computed
# (operations), and tokens that can be reached (the receptive field).

# %% [markdown] question="q2_4" sources="004/12.1-qkv 004/12.1-attn 004/12.1-fc 004/12.5-params 000/0.2-c-iii-dims"
# ### Parameters: what is stored
#
# A self-attention layer reads a sequence of $N$ tokens of width $D$ and writes one of the same size. So could
# a plain fully connected layer: flatten the sequence to one vector of $ND$ numbers, and map it to $ND$
# numbers. Prince (2023) asks for the difference. Write
#
# - `qkv_parameters(D)`: the pair `(weights, biases)` of the three linear layers that make queries, keys and
#   values, each from width $D$ to width $D$, with biases; no output projection; {=qkv}
# - `attention_entries(N)`: how many attention weights $a_{ij}$ one head computes for one sequence of $N$ tokens
#   attending to itself. They are computed from the input, not stored, and a mask does not make them fewer; {=entries}
# - `dense_parameters(N, D)`: the pair `(weights, biases)` of the fully connected layer from $ND$ to $ND$; {=dense}
# - `mha_parameters(D, H, bias=True)`: all parameters of your @q2_2, one number: weights plus biases of the
#   **four** projections (weights only for `bias=False`). {=mha}
#
# The results are exact whole numbers, counts and not orders of magnitude; {=exact} the pairs are tuples (or lists) of
# two. {=pairs}
#
# To check yourself: for $D = 64$, queries, keys and values take 12,288 weights and 192 biases. For $N = 100$
# tokens of that width the fully connected layer takes 40,960,000 weights and 6,400 biases. The base model of
# Vaswani (2017) has $D = 512$ and $H = 8$: 1,050,624 parameters in one attention layer with biases. What
# would change with 16 heads? (Think first: the heads share four matrices.)

# %% question="q2_4" points=4 minutes=15 difficulty=1
def qkv_parameters(D: int) -> tuple[int, int]:
    """(weights, biases) of the linear layers for queries, keys and values, width D to width D."""
    # BEGIN SOLUTION
    return 3 * D * D, 3 * D
    # END SOLUTION


def attention_entries(N: int) -> int:
    """The attention weights that one head computes for N tokens attending to themselves."""
    # BEGIN SOLUTION
    return N * N
    # END SOLUTION


def dense_parameters(N: int, D: int) -> tuple[int, int]:
    """(weights, biases) of a fully connected layer from all N * D numbers of a sequence to N * D numbers."""
    # BEGIN SOLUTION
    return (N * D) ** 2, N * D
    # END SOLUTION


def mha_parameters(D: int, H: int, bias: bool = True) -> int:
    """All parameters of a MultiHeadAttention of width D with H heads."""
    # BEGIN SOLUTION
    return 4 * D * D + (4 * D if bias else 0)  # the heads share the four matrices: H does not matter
    # END SOLUTION


# %% [markdown] help="q2_4"
# symptom: Off by a factor $H$ in `mha_parameters`: you counted heads of width $D$, or matrices of size
# $D_h \times D_h$. Every head's projection is $D \times D_h$, and there are $H$ of them. Biases too few: there
# is one bias per *output* number, not one per layer.
#
# hint: `nn.Linear(n, m)` has $nm$ weights and $m$ biases. Everything here is made of linear layers.
#
# pseudo-code: qkv: three layers from D to D. Entries: every query with every key. Dense: one layer from N
# times D to N times D. Mha: four layers from D to D, whatever H is.

# %% [markdown]
# The parameters of both layers as the sequence grows, at width 64. The attention layer does not notice. It
# has learned *how to look*, not what stands where; and the dense layer, which has learned every pair of
# places separately, cannot even be fed a sequence of another length.

# %% tags=["plot"]
with after("q2_4"):
    lengths = [2**i for i in range(11)]
    plots.curves(
        lengths,
        {"fully connected": [sum(dense_parameters(N, 64)) for N in lengths],
         "multi-head attention": [mha_parameters(64, 4) for _ in lengths],
         "attention weights computed": [attention_entries(N) for N in lengths]},
        "tokens N", "numbers", "What is stored, and what is computed (D = 64)", logx=True, logy=True, marks=True,
        alt="Dense parameters grow as the square of the length; those of attention are level.",
    )
    with after("q2_2", what="comparison"):
        counted = sum(p.numel() for p in MultiHeadAttention(512, 8).parameters())
        print(f"D = 512, H = 8: {mha_parameters(512, 8):,} predicted, {counted:,} in your module")

# %% [markdown] question="q2_5" sources="000/0.2-c-ii 000/0.2-c-iii-cost 003/2-c 003/2-d 004/12.5-compute"
# ### Operations: what is computed
#
# We count as `torch.utils.flop_counter` does: a product of matrices `[n, m]` and `[m, p]` takes $nmp$
# multiplications with an addition each, and **every multiply-add counts as 2**. So such a product costs
# $2nmp$ FLOPs. Nothing but matrix products is counted: no biases, no softmax, no scaling, no masks, no
# dropout. They are there, but they are small beside the rest.
#
# Write
#
# - `mha_flops(T, S, d_head, H)`: the FLOPs of one forward pass of your @q2_2 for **one** example, with $T$
#   queries, and $S$ keys and values, $H$ heads of width `d_head`, so `d_model` is $D = H \cdot$ `d_head`. Four
#   projections (whose rows are $T$ for two of them and $S$ for the other two: which?) and, in every head, the
#   scores and the weights times the values. {=flops} A causal or a padding mask saves nothing: the blocked scores are
#   computed all the same, and thrown away;
# - `bottleneck(T, S, d_model)`: `"projections"` if the four projections together cost more, `"attention"` if
#   the two products of all heads together cost more. (Where they cost exactly the same, both answers are
#   right.) {=bottleneck}
#
# To check yourself: $T = S = 24$ and $D = 32$ cost 270,336 FLOPs, 196,608 of them in the projections and
# 73,728 in the two products, and that for **any** number of heads. {=any-heads} For $T = 5$, $S = 7$, three heads of width 4:
# 6,912 and 1,680, together 8,592.
#
# At $N = 8$ tokens of width 256 the two products are 1.5 % of the work. At 512 tokens of width 16 they are
# 94 %. So is attention quadratic? It depends, and your `bottleneck` says on what.

# %% question="q2_5" points=8 minutes=25 difficulty=3
def mha_flops(T: int, S: int, d_head: int, H: int) -> int:
    """FLOPs (multiply-adds x 2) of one forward pass: T queries, S keys, H heads of width d_head."""
    # BEGIN SOLUTION
    D = H * d_head
    projections = 2 * (T + S + S + T) * D * D  # queries, keys, values, output
    products = 2 * 2 * H * T * S * d_head  # scores, and weights times values
    return projections + products
    # END SOLUTION


def bottleneck(T: int, S: int, d_model: int) -> str:
    """Which part of one forward pass costs more FLOPs: "projections" or "attention"."""
    # BEGIN SOLUTION
    projections = 2 * (T + S + S + T) * d_model**2
    products = 2 * 2 * T * S * d_model
    return "attention" if products > projections else "projections"
    # END SOLUTION


# %% [markdown] help="q2_5"
# symptom: Half of what is expected: a multiply-add counts as 2. Right for $T = S$ and wrong otherwise: the
# output projection has as many rows as there are *queries*, the value projection as there are *keys*. It grows
# with the number of heads at fixed width: $H$ heads have width $D / H$, so $H$ cancels.
#
# hint: Write the six products of the layer with the shapes of their factors. `[T, D]` times `[D, D]`; in each
# head `[T, Dh]` times `[Dh, S]`; and so on.
#
# pseudo-code: D is H times d_head. Projections: 2 times D squared times (T for q, S for k, S for v, T for o).
# Products: H times (2 T Dh S for the scores plus 2 T S Dh for the values). Sum. The bottleneck compares the two
# parts.

# %% [markdown]
# Predicted and measured. The curves are the two parts and your `mha_flops`; the dots are what the FLOP counter
# finds when it watches your `MultiHeadAttention` at work, at width 64. Before you run it: at how many tokens do the two
# parts cross, in terms of $D$?

# %% tags=["plot"]
with after("q2_2", "q2_5"):
    mha, lengths = MultiHeadAttention(64, 4), [2**i for i in range(3, 11)]
    inputs = {N: torch.randn(1, N, 64) for N in lengths}
    measured = [count_work(mha, x, x, x)["flops"] for x in inputs.values()]
    predicted = [mha_flops(N, N, 16, 4) for N in lengths]
    print("measured equals predicted at every length:", measured == predicted)
    if measured != predicted:
        print("If your formula is right, your layer multiplies more than it has to: does it multiply weights and values twice?")
    plots.scatter_with_curve(
        lengths, measured, lengths, {
            "your mha_flops": predicted,
            "projections": [8 * N * 64**2 for N in lengths],
            "the two products": [4 * N**2 * 64 for N in lengths],
        }, "tokens N", "FLOPs", "Where the work is (D = 64)", points="measured", logx=True, logy=True,
        alt="FLOPs over tokens on logarithmic axes: curves for your formula, projections and products, and measured dots.",
    )

# %% [markdown] told="003/2-d"
# <details><summary>Where they cross</summary>
#
# At $N = 2D$, here 128 tokens: to the left of it, this *layer* spends its time in its linear maps. A whole block of a
# Transformer has a feed-forward layer too (homework 3), with $16 N D^2$ FLOPs at its usual width of $4D$. Against both
# together the two products win only from $N = 6D$ on.
#
# </details>

# %% [markdown]
# And the number of heads? The operations stay. What grows is the number of attention weights: every head has
# its own $T \times S$ of them, which must be made, put through a softmax and kept for the backward pass.

# %% tags=["plot"]
with after("q2_2", "q2_5", what="table"):
    x = torch.randn(1, 24, 32)
    for H in (1, 2, 4, 8):
        mha = MultiHeadAttention(32, H)
        flops, entries = count_work(mha, x, x, x)["flops"], mha(x, x, x)[1].numel()
        print(f"{H} heads of width {32 // H:2}: {flops:,} FLOPs ({mha_flops(24, 24, 32 // H, H):,} predicted), "
              f"{entries:,} attention weights")


# %% [markdown] question="q2_6" sources="003/2-a"
# ### How far does it see?
#
# A soft attention sees every token at once, if only a little. But trained heads are often sharp: nearly all of
# a query's weight lies on one key. Let us take that to the limit. In **argmax attention** each head of each
# position looks at exactly one position of the layer below, and the residual connection carries the position
# itself along. So after one layer with $k$ heads, an output depends on at most $k + 1$ inputs: itself and $k$
# others. And after $n$ layers?
#
# - `receptive_field(heads, layers)`: the largest possible number of input positions that one output can depend
#   on, in a stack of `layers` layers with `heads` heads each, residual connections included, in a sequence that
#   is long enough. A whole number. {=bound}
#
# That is a bound. How many positions it really is depends on where the heads look. Write
#
# - `reach(attended)`: the set of input positions (ints) on which the output at **position 0**, after the last
#   layer, depends. `attended` is a nested list `[layers][N][heads]`, first layer first:
#   `attended[l][n][h]` is the position, in the input of layer `l`, at which head `h` of position `n` looks. {=reach}
#   Position 0 itself is always in the set; {=itself} without any layer, `reach([])`, it is alone there. {=no-layers}
#
# An example with $N = 4$ positions, two layers and one head, `attended = [[[1], [2], [3], [0]],
# [[2], [0], [0], [0]]]`. In the second (last) layer position 0 looks at position 2, so it depends on what 0 and
# 2 held after the first layer. There, position 0 had looked at 1, and position 2 at 3. Together:
# $\{0, 1, 2, 3\}$, four positions, and `receptive_field(1, 2)` says no more is possible. Note the direction: the
# path is followed from the output **down**, last layer first. {=from-the-output-down}

# %% question="q2_6" points=7 minutes=20 difficulty=2
def receptive_field(heads: int, layers: int) -> int:
    """The most input positions that one output can depend on, with argmax attention and residuals."""
    # BEGIN SOLUTION
    return (heads + 1) ** layers
    # END SOLUTION


def reach(attended: list[list[list[int]]]) -> set[int]:
    """The input positions that reach position 0: attended [layers][N][heads], first layer first."""
    # BEGIN SOLUTION
    found = {0}
    for layer in reversed(attended):  # from the output down
        found |= {int(position) for n in found for position in layer[n]}
    return found
    # END SOLUTION


# %% [markdown] help="q2_6"
# symptom: $k^n$: you forgot the residual, which keeps the position itself. $nk + 1$: every position that is
# reached in one layer branches again in the next. The set is right for one layer and wrong for two: you
# followed the layers upwards, and asked where information from position 0 *goes*.
#
# hint: Keep a set of positions. At the output it is {0}. One layer down it contains all it had (residual), and
# all that any of them looked at.
#
# pseudo-code: Bound: heads plus one, to the power of layers. Reach: start with the set of 0; for every layer
# from the last to the first, add the positions that the members of the set look at in that layer.

# %% [markdown]
# Three layers, two heads, 27 positions. A row is a level of the stack, the output on top, the input at the
# bottom; bright positions matter for output 0. First the heads look 1 and 2 places on in the last layer, 3 and 6
# in the middle one, 9 and 18 in the first; then all look at random; then both always at the next position. How many
# inputs does the output hear in each case?
#
# <details><summary>What we see</summary>
#
# In the first no effort is wasted, and the field is $3^3 = 27$: everything. At random some heads meet. In the last the field
# grows by one per layer.
#
# </details>

# %% tags=["plot"]
with after("q2_6"):
    rng, N, layers = torch.Generator().manual_seed(6), 27, 3
    steps = [[9, 18], [3, 6], [1, 2]]  # by layer, first layer first
    stacks = {
        "spread out": [[[(n + s) % N for s in pair] for n in range(N)] for pair in steps],
        "at random": torch.randint(N, (layers, N, 2), generator=rng).tolist(),
        "the next one": [[[(n + 1) % N] * 2 for n in range(N)] for _ in range(layers)],
    }
    panels = {}
    for name, attended in stacks.items():
        levels = [reach(attended[layers - depth:]) for depth in range(layers + 1)]  # output first, input last
        panels[f"{name}: {len(levels[-1])}"] = [[float(n in level) for n in range(N)] for level in levels]
    plots.heatmaps(
        panels, rows=["output", "2", "1", "input"], xlabel="position", ylabel="after layer",
        title=f"Positions that reach output 0 (at most {receptive_field(2, layers)})",
        alt="Three stacks of four levels by 27 positions, for heads well spread, at random and all equal: bright ones matter.",
    )
    random_sizes = [len(reach(torch.randint(N, (layers, N, 2), generator=rng).tolist())) for _ in range(1000)]
    print(f"at random, on average over 1000 stacks: {sum(random_sizes) / 1000:.1f} of {N} positions")


# %% [markdown]
# ## Part III. Saving work
#
# Now that we know what everything costs, we can try not to pay. First by not computing a thing twice (@q2_7),
# then by changing the order of multiplication (@q2_8), and last by looking at less (@q2_9).

# %% [markdown] question="q2_7" sources="004/12.7"
# ### The key-value cache
#
# A language model writes one token, appends it to its input, and starts again. Under a causal mask an old
# token does not see the new one: its query, key, value and output are what they were. So the only new work is
# for the new token. It needs its own query, and the keys and values of everything so far. Keep those, and a
# step of generation becomes:
#
# 1. project the **new** token alone, to one query, one key and one value (per head);
# 2. append key and value to the cache;
# 3. let the one query attend to all cached keys, itself included;
# 4. merge the heads, apply the output projection.
#
# Nobody needs the old queries again, so they are not kept. And no mask is needed: all that is in the cache is
# past. Write
#
# - `class KVCache`: `KVCache()`, without arguments, is an empty cache for one attention layer. What is inside
#   is yours, more methods too. Two caches share nothing; {=own-caches}
# - `cached_step(mha, x_t, cache)`: one step of causal self-attention, returns the pair `(out, cache)`. `x_t` and
#   `out` are `[B, 1, D]`, in the same dtype. `mha` is a `MultiHeadAttention` as in @q2_2; rely on its `q_proj`,
#   `k_proj`, `v_proj`, `o_proj` and `n_heads` only. Dropout is off, in training mode too. {=no-dropout} The returned cache goes into the next
#   step; you may change the given one and return it, or make a new one.
#
# If the tokens $x_0, \dots, x_{N-1}$ are fed one by one, starting from an empty cache, the outputs must be those
# of the full pass `mha(x, x, x, causal=True)[0]`, row by row, for every batch size and every length. {=full-pass} Work is
# **counted**, not timed: only the new token is projected, {=new-token-alone} and the work of a step is linear in the length so far. {=linear-work}
# An old token keeps the key and the value that it got in its own step, even if `mha` has other weights by now. {=old-keys-stay}
# The cache is on the device of the layer. {~device} (Hidden checks also look at that.)
#
# With $t$ keys in the cache after appending, a step costs $8D^2$ FLOPs for the four projections and $4tD$ for
# the two products. A full pass over $t$ tokens costs $8tD^2 + 4t^2D$ (@q2_5): exactly $t$ times as much. At $D = 64$
# and $t = 100$ that is 58,368 against 5,836,800.

# %% question="q2_7" points=12 minutes=35 difficulty=3 uses=["q2_1", "q2_2"] limits={"wall": 60}
class KVCache:
    """Keys and values of the tokens so far, for one attention layer."""

    def __init__(self) -> None:
        """Start empty."""
        # BEGIN SOLUTION
        self.k: Tensor | None = None  # [B, H, t, Dh]
        self.v: Tensor | None = None  # [B, H, t, Dh]
        # END SOLUTION


def cached_step(mha: nn.Module, x_t: Tensor, cache: KVCache) -> tuple[Tensor, KVCache]:
    """One step of causal self-attention: x_t [B, 1, D], the cache so far -> out [B, 1, D], the cache after it."""
    # BEGIN SOLUTION
    q = split_heads(mha.q_proj(x_t), mha.n_heads)  # [B, H, 1, Dh]
    k = split_heads(mha.k_proj(x_t), mha.n_heads)
    v = split_heads(mha.v_proj(x_t), mha.n_heads)
    if cache.k is not None:
        k, v = torch.cat([cache.k, k], dim=2), torch.cat([cache.v, v], dim=2)  # [B, H, t, Dh]
    cache.k, cache.v = k, v
    out, _ = attention(q, k, v)  # [B, H, 1, Dh]: all that is cached is past, so no mask
    return mha.o_proj(merge_heads(out)), cache
    # END SOLUTION


# %% [markdown] help="q2_7"
# symptom: The first step is right and the rest is not: the cache forgets, or the step attends to the old keys
# only and leaves itself out. A second sequence starts wrong: two caches share a list (a mutable class attribute
# or default argument). Too much work is counted: you cached the *inputs* and project them all again in each
# step. A causal mask with one query that starts in the upper left corner shows the newest token key 0 only;
# here you need none.
#
# hint: Write down which tensors of the full pass depend on the new token: one row of the queries, keys and
# values each, and one row of the output. The keys grow along the axis of the tokens, which is axis 2 after
# `split_heads`.
#
# pseudo-code: Cache: two entries, both nothing at first; appending joins along the token axis. Step: q, k, v
# from x_t, split into heads; append k and v; attention of q to all cached keys and values; merge; o_proj.
# Return that, and the cache.

# %% [markdown]
# 256 tokens, one by one, and the largest difference from the full pass. Then the work per new token, as
# the text grows, with your cache and without. The curve of "all over again" is what makes a chat model without a
# cache slower with every word. The price is memory: the cache of one layer holds $2tD$ numbers, and all layers have
# one.

# %% tags=["plot"]
with after("q2_7"):
    seed_everything(7)
    mha, x, lengths = MultiHeadAttention(64, 4), torch.randn(1, 256, 64), range(16, 257, 16)
    with torch.no_grad():
        steps = torch.cat(decode_stepwise(cached_step, KVCache, mha, x), dim=1)  # [1, 256, 64]
        full, _ = mha(x, x, x, causal=True)
    print(f"largest difference from the full pass: {(steps - full).abs().max():.0e}")
    with_cache = [work["flops"] for work in work_per_step(cached_step, KVCache, mha, x, lengths)]
    without = [count_work(mha, *[x[:, :t]] * 3, causal=True)["flops"] for t in lengths]
    plots.curves(
        lengths, {"all over again": without, "with your cache": with_cache}, "tokens so far",
        "FLOPs for one more token", "What one more token costs (D = 64)", logy=True, marks=True,
        alt="Work per new token against length: without a cache far above, and growing much faster.",
    )

# %% [markdown]
# **By the clock.** FLOPs are what has to be done; seconds and bytes are what a machine makes of it, and the two need not
# agree. Three ways to the outputs of a text of 256 tokens, at $D = 256$ with eight heads: **prefill**, the whole text in
# one causal call, as a chat model reads your question; **decode**, token after token with your cache, as it writes its
# answer; and token after token **all over again**. The cell takes them in turns on one thread, and shows FLOPs, time and
# memory at its fullest, all as ratios to prefill (some seconds, most of them for the third). Predict before you look: decode has fewer FLOPs than prefill, since its
# queries never meet later keys. Is it faster? And which of the three needs the most memory?
#
# <details><summary>What ours did</summary>
#
# Decode had 0.83 times the FLOPs of prefill and took 3 to 7 times the time, on a busy machine: 256 calls with one row each
# start every product 256 times and read all weights of the layer 256 times, and what is read is used for a single row.
# (On a GPU the gap is wider still. Whoever serves a chat model therefore decodes for many users at once.) Its memory was
# 0.13 times prefill's: one row of weights per head at a time, and not 256. All over again had 114 times the FLOPs and took
# 88 to 106 times the time, and no more memory than prefill, since each call gives back what it took.
#
# </details>

# %% tags=["plot"]
from course_utils.notebook.clock import in_turns, peak_bytes

with after("q2_7", what="measurement"), torch.no_grad():
    seed_everything(7)
    mha, x = MultiHeadAttention(256, 8).eval(), torch.randn(1, 256, 256)

    def all_over_again():
        """One call for each length, of which only the last row is wanted."""
        for t in range(1, x.shape[1] + 1):
            mha(x[:, :t], x[:, :t], x[:, :t], causal=True)

    ways = {"prefill": lambda: mha(x, x, x, causal=True), "decode": lambda: decode_stepwise(cached_step, KVCache, mha, x),
            "all over again": all_over_again}
    seconds = in_turns(ways)
    found = {way: (count_work(call)["flops"], seconds[way], peak_bytes(call)) for way, call in ways.items()}
    for way, measures in found.items():
        ratios = [mine / other for mine, other in zip(measures, found["prefill"], strict=True)]
        print(f"{way:15} {ratios[0]:7.2f} times the FLOPs {ratios[1]:7.1f} times the time {ratios[2]:6.2f} times the memory")

# %% [markdown]
# **What the fused kernel does.** `F.scaled_dot_product_attention` is ruled out in @q2_2, because it is the answer; outside
# of such answers you may use it, and in real work you should. It computes what your `attention` computes, in one kernel: it
# takes a block of queries and walks over the keys block by block, and for each query it carries along the largest score so
# far, the sum of the exponentials and the sum of the values, and rescales the sums whenever a larger score turns up. So it
# never writes down the $T \times S$ weights, and the numbers stay in the processor's fast memory. The price: it has no
# weights to return. That is also why a layer that returns them, yours or `nn.MultiheadAttention` with `need_weights=True`,
# cannot use it. How much does that save at 1,024 tokens and eight heads of width 32?
#
# <details><summary>What ours did</summary>
#
# The numbers agree to rounding. The given `attention` took 6.8 times the time and 132 times the memory: 143 MB at its
# fullest (scores, weights and what lies between them have 34 MB each), against 1 MB, which is little more than the output.
#
# </details>

# %% tags=["plot"]
with torch.no_grad():
    q, k, v = torch.randn(3, 1, 8, 1024, 32)
    ways = {"attention": lambda: attention(q, k, v), "fused": lambda: F.scaled_dot_product_attention(q, k, v)}
    gap = (ways["attention"]()[0] - ways["fused"]()).abs().max()
    seconds, memory = in_turns(ways), {way: peak_bytes(call) for way, call in ways.items()}
    print(f"largest difference {gap:.0e}; the given attention takes {seconds['attention'] / seconds['fused']:.1f} times the time "
          f"and {memory['attention'] / memory['fused']:.0f} times the memory of the fused kernel")

# %% [markdown] question="q2_8" sources="004/12.10"
# ### Linear attention
#
# Homework 1 showed attention as kernel regression, with the kernel $e^{q \cdot k / \sqrt D}$. What if the kernel
# were a dot product itself, of *features*, $\phi(q) \cdot \phi(k)$? Then
#
# $$\mathrm{out}_i = \frac{\sum_j \big(\phi(q_i) \cdot \phi(k_j)\big)\, v_j}{\sum_j \phi(q_i) \cdot \phi(k_j)}
# = \frac{\phi(q_i)^\top \big[\sum_j \phi(k_j)\, v_j^\top\big]}{\phi(q_i)^\top \big[\sum_j \phi(k_j)\big]} ,$$
#
# and the two sums in brackets do not depend on $i$. Compute them once, and every query is served from them. No
# $T \times S$ matrix is ever made, and the cost is linear in the length (Katharopoulos 2020). All of it is the
# associative law: $(\Phi_q \Phi_k^\top) V = \Phi_q (\Phi_k^\top V)$, where the rows of $\Phi_q$ and $\Phi_k$ are the
# features of the queries and of the keys.
#
# With a causal mask the sums for query $i$ run over the keys that it may see. As $i$ grows they only gain
# terms: a *running* sum. Read in this way, attention is a recurrent network, with the sums as its state.
#
# Write `linear_attention(q, k, v, feature_map, causal=False)`, which returns `out` alone:
#
# - `q` `[B, T, D]`, `k` `[B, S, D]`, `v` `[B, S, Dv]`, `out` `[B, T, Dv]`, dtype kept; {=shapes}
# - `feature_map` is a function from `[..., D]` to `[..., F]`, where the width $F$ need not be $D$ (and has nothing
#   to do with torch's `F`). You apply it to queries
#   and keys. {=features} Products $\phi(q) \cdot \phi(k)$ are positive. There is no other scale; {=normalised}
# - `causal=True`: query $i$ sees the keys $j \le i + (S - T)$, as on the card; {=causal} a query that sees none has output 0. {=sees-none}
#   (If you want to begin with $T = S$: then it is the running sum up to and including $i$.)
# - the result equals the quadratic form, on the left above, to rounding, {=quadratic-form} and so do its gradients; {=gradients}
# - work and the largest tensor on the way are **counted**, and must grow in proportion to the length,
#   $N = T = S$, in both cases. {=linear} A tensor `[B, N, F, Dv]` is allowed, one with $T \times S$ entries is not.
#
# By hand, with $D = D_v = 1$ and $\phi(x) = \mathrm{elu}(x) + 1$ (that is $x + 1$ for $x \ge 0$): $q = 1$, keys
# $(0, 1)$, values $(3, 6)$. $\phi(q) = 2$, $\phi(k) = (1, 2)$, so the weights are $2/6$ and $4/6$ and the output
# is 5. A softmax would have weights 0.269 and 0.731, and give 5.19. It is *another* attention, not a faster
# way to the same numbers.

# %% question="q2_8" points=11 minutes=35 difficulty=4
def linear_attention(
    q: Tensor, k: Tensor, v: Tensor, feature_map: Callable[[Tensor], Tensor], causal: bool = False
) -> Tensor:
    """Attention with the kernel phi(q) . phi(k), without a [T, S] matrix.

    q [B, T, D], k [B, S, D], v [B, S, Dv] -> out [B, T, Dv]; feature_map is phi: [..., D] -> [..., F].
    """
    # BEGIN SOLUTION
    T, S = q.shape[1], k.shape[1]
    q, k = feature_map(q), feature_map(k)  # [B, T, F], [B, S, F]
    if not causal:
        return q @ (k.mT @ v) / (q @ k.sum(1)[..., None])  # the state is [B, F, Dv], its norm [B, F, 1]
    nothing = max(T - S, 0)  # the first queries may see no key
    states = F.pad((k[..., None] * v[..., None, :]).cumsum(1), (0, 0, 0, 0, nothing, 0))[:, -T:]  # [B, T, F, Dv]
    norms = F.pad(k.cumsum(1), (0, 0, nothing, 0))[:, -T:]  # [B, T, F]
    total = (q * norms).sum(-1, keepdim=True)  # [B, T, 1]
    return (q[:, :, None] @ states).squeeze(2) / total.masked_fill(total == 0, 1.0)  # [B, T, Dv]
    # END SOLUTION


# %% [markdown] help="q2_8"
# symptom: Constant values come back changed: the normaliser is missing, or sums over the queries instead of the
# keys. The causal output at the first position is not $v_0$: the running sum includes the future, or leaves out
# the position itself. The largest tensor grows with the square of the length: somewhere $\Phi_q \Phi_k^\top$ is
# formed, perhaps inside an einsum; use brackets to fix the order.
#
# hint: Without a mask: one matrix `[F, Dv]` and one vector `[F]` per example, both sums over the keys. With a
# mask: `cumsum` along the keys gives all running sums at once; or write a loop over the positions that carries
# the two sums along. For $T \ne S$ ask which running sum query $i$ needs.
#
# pseudo-code: Features of q and k. Not causal: state is features of k, transposed, times v; norm is the sum of
# the features of k over the keys; output is q times state, divided by q times norm. Causal: for every key the
# outer product of its features and its value, summed up to it; likewise the features alone; query i takes the
# sums up to key i + S - T (zeros if that is negative); output is features of q times that state, divided by
# features of q times that norm, with 1 in place of a norm of 0.

# %% [markdown]
# What you gain: the FLOPs of the two products for softmax attention and for your linear attention, at width 32,
# measured. At which length do you expect them to be equal, and how far apart at 2048 tokens?
#
# What you pay: the weights of both, on the same ten keys of equal length and ten queries, each a noisy copy of one
# key. Feed the identity matrix as values, and the output *is* the weights. The softmax finds the match every time.
# With $\phi = \mathrm{elu} + 1$ the picture goes flat: a query that matches one key very well cannot say so with
# emphasis, because this kernel grows like a polynomial and not like an exponential. $\phi = \exp$, entry by entry,
# is bolder, but it cares about single large features, and not about the match of the whole vectors.

# %% tags=["plot"]
with after("q2_8"):
    lengths = [2**i for i in range(4, 12)]
    work = {"softmax": [], "linear": []}
    for N in lengths:
        q, k, v = (torch.randn(1, N, 32) for _ in range(3))
        work["softmax"].append(count_work(attention, q, k, v)["flops"])
        work["linear"].append(count_work(linear_attention, q, k, v, elu_features)["flops"])
    plots.curves(
        lengths, work, "tokens N", "FLOPs", "The order of multiplication (D = 32)", logx=True, logy=True, marks=True,
        alt="FLOPs over tokens on logarithmic axes: one curve for softmax attention, one for linear attention.",
    )
    print(f"at N = {lengths[-1]}, softmax attention costs {work['softmax'][-1] / work['linear'][-1]:.0f} times as much")
    rng = torch.Generator().manual_seed(8)
    k = 5 * F.normalize(torch.randn(1, 10, 8, generator=rng), dim=-1)
    q, eye = k + 0.3 * torch.randn(1, 10, 8, generator=rng), torch.eye(10)[None]  # every query matches one key
    panels = {"softmax": attention(q, k, eye)[0][0], "elu + 1": linear_attention(q, k, eye, elu_features)[0],
              "exp": linear_attention(q, k, eye, exp_features)[0]}
    plots.heatmaps(
        panels, vmax=1, xlabel="key", ylabel="query", title="Every query has one key that it matches",
        alt="Weights: softmax is bright on the diagonal, elu + 1 is flat, exp is bright in patches elsewhere too.",
    )

# %% [markdown] question="q2_9" sources="004/12.8 004/12.9"
# ### Windows, strides and channels
#
# In a picture cut into patches, $N$ is large. Three ways out of the square:
#
# **Windows.** Cut the sequence into neighbouring blocks of $w$ tokens and let each block attend to itself alone.
# Each of the $N / w$ blocks costs $4 w^2 D$, together $4 N w D$: linear in $N$. (Then nothing passes between
# blocks; the Swin Transformer of Liu (2021) shifts the blocks from layer to layer to mend that.)
#
# **Strides.** Or let each token attend to every $s$-th one, far and wide: token $i$ sees the tokens $j$ with $j \bmod s =
# i \bmod s$. There are $s$ such groups of $N / s$ tokens, and the cost is $4 N^2 D / s$. A layer of windows of $s$ and
# a layer of strides of $s$, one after the other, let every token reach every other: that is how Child (2019) made long
# sequences affordable.
#
# **Channels.** Turn the matrix on its side: let the $D$ *channels* attend to each other, each described by its
# values at all $N$ places. This is the channel attention of DaViT (Ding 2022), which alternates it with windows:
#
# $$\mathrm{channel\_attention}(Q, K, V) = \mathrm{attention}(Q^\top, K^\top, V^\top)^\top ,$$
#
# a map of $D \times D$ weights, and each of them has seen the whole picture.

# %% [markdown]
# Write, for `q`, `k`, `v` `[B, N, D]`, all in one dtype that the result keeps, {=dtype} with no token seeing another
# example of the batch: {=rows-apart}
#
# - `window_attention(q, k, v, window)`: blocks `0` to `window - 1`, `window` to `2 * window - 1`, and so on; the
#   scale is $1/\sqrt D$. {=windows} If `window` does not divide $N$, a `ValueError`. {=window-divides} (Merely
#   masking a full attention gives the right numbers too, but saves nothing: good to have is the work of $4 N w D$
#   alone, and the picture below counts it.)
# - `strided_attention(q, k, v, stride)`: token $i$ sees the tokens $j$ with `j % stride == i % stride`; the scale is
#   $1/\sqrt D$ here too. {=strides} The outputs stand in the tokens' own order. {=own-order} If `stride` does not
#   divide $N$, a `ValueError`. {=stride-divides}
# - `channel_attention(q, k, v)`: as above; the dot product runs over the $N$ places now, so the scale is
#   $1/\sqrt N$. {=channels}
# - `attention_cost(N, D, kind)`: the FLOPs (multiply-adds x 2, as in @q2_5) of the **two products** alone, scores
#   and weights times values, without projections, for one head over the whole width: `"patches"` is ordinary
#   attention between the $N$ patches, `"channels"` the attention between the $D$ channels. {=cost}
#
# The three attentions return `out` `[B, N, D]` alone. {=alone} Large scores do not overflow, {=large-scores} and
# gradients flow to queries, keys and values. {=gradients}
#
# A small example, $N = 6$: windows of 3 are the tokens 0, 1, 2 and 3, 4, 5. A stride of 3 has three groups of two: 0, 3
# and 1, 4 and 2, 5.
#
# To check yourself, with Prince's (2023) numbers: 256 patches of 512 channels cost 134,217,728 between patches
# and 268,435,456 between channels. With four times as many patches it is 2,147,483,648 and 1,073,741,824.

# %% question="q2_9" points=8 minutes=30 difficulty=2
def window_attention(q: Tensor, k: Tensor, v: Tensor, window: int) -> Tensor:
    """Attention inside neighbouring blocks of `window` tokens: [B, N, D] each -> out [B, N, D]."""
    # BEGIN SOLUTION
    if q.shape[1] % window:
        raise ValueError(f"window = {window} does not divide N = {q.shape[1]}")
    q, k, v = (x.unflatten(1, (-1, window)) for x in (q, k, v))  # [B, N / w, w, D]: blocks stand where heads do
    return attention(q, k, v)[0].flatten(1, 2)
    # END SOLUTION


def strided_attention(q: Tensor, k: Tensor, v: Tensor, stride: int) -> Tensor:
    """Attention among tokens whose places are equal modulo `stride`: [B, N, D] each -> out [B, N, D]."""
    # BEGIN SOLUTION
    if q.shape[1] % stride:
        raise ValueError(f"stride = {stride} does not divide N = {q.shape[1]}")
    q, k, v = (x.unflatten(1, (-1, stride)).transpose(1, 2) for x in (q, k, v))  # [B, s, N / s, D]: a group per place
    out, _ = attention(q, k, v)
    return out.transpose(1, 2).flatten(1, 2)  # back into the tokens' own order
    # END SOLUTION


def channel_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention between channels, each described by its N values: [B, N, D] each -> out [B, N, D]."""
    # BEGIN SOLUTION
    return attention(q.mT, k.mT, v.mT)[0].mT
    # END SOLUTION


def attention_cost(N: int, D: int, kind: str) -> int:
    """FLOPs of the two products of attention between the "patches" or between the "channels"."""
    # BEGIN SOLUTION
    return {"patches": 4 * N * N * D, "channels": 4 * N * D * D}[kind]
    # END SOLUTION


# %% [markdown] help="q2_9"
# symptom: Windows: right numbers, and the dots lie above the line in the picture: you made the full map and
# masked it. Each window holds every $w$-th token: you split $N$ into $w$ times $N / w$ instead of $N / w$ times $w$.
# Strides: the right numbers at the wrong tokens: the groups were laid one after the other, and never dealt back.
# Channels: weights look too sharp or too flat: the scale came from $D$, but the dot product runs over $N$. The output
# is `[B, D, N]`: turn it back. Cost: half of what is expected, since a multiply-add counts as 2 and there are two products.
#
# hint: `attention` accepts one axis more than `[B, N, D]`. For it, blocks are as good as heads: it never lets them
# see each other. A stride is a window of the sequence written as a table with $s$ columns and read down the columns. For
# channels, swap the last two axes of all three inputs, and those of the result.
#
# pseudo-code: Windows: refuse if there is a remainder; view the token axis as two, number of blocks and window;
# attention; put the two axes together again. Strides: refuse; view the token axis as two, the second of length stride;
# swap the two; attention; swap back; put together. Channels: transpose, attention, transpose. Cost: 2 times (the number
# of pairs) times (the length of a dot product), and twice that for two products; between channels N and D change
# roles.

# %% [markdown]
# Sixteen tokens: with the identity as values, the output is the weights, and the patterns are plain to see. A layer of
# windows and a layer of strides of four, multiplied: no entry is empty. Then the costs at $D = 512$ as the picture grows,
# predicted and, as dots, measured. Where will patches and channels cross? Decide before you look.

# %% tags=["plot"]
with after("q2_9"):
    rng, D, w = torch.Generator().manual_seed(9), 512, 64
    q, k = (torch.randn(1, 16, 16, generator=rng) for _ in range(2))
    eye = torch.eye(16)[None]
    windows, strides = window_attention(q, k, eye, 4)[0], strided_attention(q, k, eye, 4)[0]
    plots.heatmaps(
        {"all see all": attention(q, k, eye)[0][0], "windows of four": windows, "strides of four": strides,
         "windows, then strides": strides @ windows}, xlabel="key", ylabel="query", blank_zeros=True,
        title="Weights (white: exactly 0)",
        alt="Full attention; four blocks along the diagonal; a grid of points four apart; the product of the two, full.",
    )
    print(f"smallest entry of the product: {(strides @ windows).min():.1e}")
    lengths, small = [2**i for i in range(6, 13)], [2**i for i in range(6, 10)]
    measured = []
    for N in small:
        x = torch.randn(1, N, D)
        measured += [count_work(attention, x, x, x)["flops"], count_work(channel_attention, x, x, x)["flops"],
                     count_work(window_attention, x, x, x, w)["flops"], count_work(strided_attention, x, x, x, 8)["flops"]]
    plots.scatter_with_curve(
        [N for N in small for _ in range(4)], measured, lengths, {
            "patches": [attention_cost(N, D, "patches") for N in lengths],
            "channels": [attention_cost(N, D, "channels") for N in lengths],
            f"windows of {w}": [4 * N * w * D for N in lengths],
            "strides of 8": [attention_cost(N, D, "patches") / 8 for N in lengths],
        }, "patches N", "FLOPs", f"The square and three ways out (D = {D})", points="measured", logx=True, logy=True,
        alt="Costs over patches on logarithmic axes: curves for patches, channels, windows and strides, and measured dots.",
    )

# %% [markdown]
# ## Part IV. Reading with a pencil
#
# A formula is broken by a number (homework 1). A claim is broken by an example, and one is enough. The art is to
# find the right one, and to know when to stop looking, since some claims are true.

# %% [markdown] question="q2_10" sources="000/4-cross 000/0.2-formula 000/0.2-c-iii-cost 004/12.5-compute 004/12.7 002/2.2-padding"
# ### Spot the error
#
# Here are eight sentences as you may find them in a blog, a paper or a solution to an exercise. Some are true, some are
# false. In all of them vectors are rows and weights stand on the right ($Q = X W_q$), there are no biases but where one is
# mentioned, and scores are divided by the root of the width that the dot product runs over.
#
# | name | claim | an example consists of |
# |---|---|---|
# | `"exchange_heads"` | The order of the heads means nothing. Let heads $i$ and $j$ trade places, together with their columns of $W_q$, $W_k$, $W_v$ and their rows of $W_o$, and the output is the same for every input. | `x` `[N, D]`, `Wq`, `Wk`, `Wv`, `Wo` `[D, D]`, numbers `n_heads`, `i`, `j` |
# | `"heads_get_slices"` | Multi-head attention gives each head a slice of the input: head $h$ sees the features $h D_h$ to $(h + 1) D_h - 1$ of every token. Whatever stands in the other features, its output is the same. | `x` `[N, D]`, `Wq`, `Wk`, `Wv` `[D, D]`, numbers `n_heads`, `head` |
# | `"more_heads_cost_less"` | A head of width $D / H$ has only a part of the work. So, at the same width $D$, a layer with more heads takes fewer FLOPs in its matrix products. | whole numbers `N`, `D`, `fewer`, `more` (both divide `D`) |
# | `"cross_needs_equal_width"` | Cross-attention multiplies queries of one sequence with keys of another, so the tokens of both must have the same width, or no output can be computed. | `x` `[T, D1]`, `y` `[S, D2]`, `Wq` `[D1, A]`, `Wk` `[D2, A]`, `Wv` `[D2, C]` |
# | `"mask_after_softmax"` | It does not matter where you mask. Setting the weights of blocked keys to 0 after the softmax gives the same output as setting their scores to $-\infty$ before it. | `scores` `[T, S]`, `blocked` bool `[T, S]`, `values` `[S, Dv]` |
# | `"cache_without_mask"` | The keys and values of the tokens so far do not change when one more token joins at the end. So they can be cached in every layer of a stack of self-attention layers (one head, residual connections), even if the layers have no causal mask. | `x` `[N, D]`, $N \ge 2$, its last row is the token that joins; `Wq`, `Wk`, `Wv` `[L, D, D]`, one matrix per layer |
# | `"new_key_meets_old_queries"` | When a token joins a causal self-attention layer, its key must be multiplied with the queries of all earlier tokens, since their outputs are others than before. | `x` `[N, D]`, $N \ge 2$, its last row is the token that joins; `Wq`, `Wk`, `Wv` `[D, D]` |
# | `"key_bias_is_idle"` | The bias of the keys is $D$ parameters for nothing. Whatever vector `bk` is added to all keys of a self-attention head, its output stays the same. | `x` `[N, D]`, `Wq`, `Wk`, `Wv` `[D, D]`, `bk` `[D]` |

# %% [markdown]
# Write `broken_claims()`, which takes nothing and returns a dict: for **each false claim**, {=each-false} and for no other, {=no-other} its
# name mapped to a counter-example, a dict with exactly the keys of the third column, {=form} on which the claim fails. {=breaks}
# Tensors may be float32 or float64, with axes of 64 at most and numbers up to $10^6$ in them (scores up to $10^4$).
#
# `holds(name, example)` from `course_utils.hw2.claims` tries a claim on an example: True if the claim is true of it (or says
# nothing about it), False if it fails by more than rounding (a millionth of the size of what is compared), and a `ValueError`
# that says what is expected if the example is not one. {-} `holds` proves nothing when it says True: perhaps you tried
# the wrong example. A claim that you believe needs a reason.

# %% question="q2_10" points=8 minutes=35 difficulty=3
def broken_claims() -> dict[str, dict[str, Tensor | int]]:
    """Each false claim's name, with a counter-example: a dict of the arguments on which it fails."""
    # BEGIN SOLUTION
    rng = torch.Generator().manual_seed(0)
    one_layer = {W: torch.randn(4, 4, generator=rng) for W in ("Wq", "Wk", "Wv")}
    two_layers = {W: torch.randn(2, 4, 4, generator=rng) for W in ("Wq", "Wk", "Wv")}
    return {
        "heads_get_slices": {"x": torch.randn(3, 4, generator=rng), **one_layer, "n_heads": 2, "head": 0},
        "more_heads_cost_less": {"N": 10, "D": 8, "fewer": 1, "more": 4},  # both cost the same
        "cross_needs_equal_width": {
            "x": torch.randn(2, 3, generator=rng), "y": torch.randn(4, 5, generator=rng),
            "Wq": torch.randn(3, 6, generator=rng), "Wk": torch.randn(5, 6, generator=rng),  # they meet at width 6
            "Wv": torch.randn(5, 2, generator=rng),
        },
        "mask_after_softmax": {
            "scores": torch.zeros(1, 2),  # half of the weight is thrown away and nobody gets it
            "blocked": torch.tensor([[False, True]]),
            "values": torch.ones(2, 1),
        },
        "cache_without_mask": {"x": torch.randn(3, 4, generator=rng), **two_layers},  # one layer would not do
        "new_key_meets_old_queries": {"x": torch.randn(3, 4, generator=rng), **one_layer},  # nobody sees the new key
    }
    # END SOLUTION


# %% [markdown] help="q2_10"
# symptom: `holds` says True for everything that you try: the example is too special. A stack of one layer, one head alone, a
# mask that blocks nothing, values that are all zero, equal widths: such examples break nothing. A `ValueError`: read it, it
# names the shape that is wrong.
#
# hint: Take the claims one at a time, and try random tensors first: a false claim about tensors usually breaks at
# once. One that survives a hundred random tries may be true, so look for the reason (what does a softmax do if
# the same number is added to a whole row? is a sum changed by the order of its terms?). For the caches, ask what
# the keys of the *second* layer are made of, and who may look at the newest token. For counts you have the formula of @q2_5;
# for widths, write the shapes of the six products of a cross-attention.
#
# pseudo-code: For each claim: make a small random example in which every ingredient matters (a key that is
# blocked, two layers, more than one head, two widths), ask `holds`, and keep the example if the claim fails.

# %% [markdown]
# What your examples do, and two pictures of what the claims forget: where the two masks put the weight of one row, and
# what of an old token changes when a new one joins a stack of three layers, with a causal mask and without.

# %% tags=["plot"]
with after("q2_10"):
    found = broken_claims()
    for name in CLAIMS:
        if name in found:
            print(f"{name:26} {'holds on your example' if holds(name, found[name]) else 'broken by your example'}")
        else:
            print(f"{name:26} you let it stand")
    rng, blocked = torch.Generator().manual_seed(10), torch.tensor([0, 0, 1, 0, 1, 1], dtype=torch.bool)
    scores = torch.randn(6, generator=rng)
    plots.bars(
        [f"{j}{'*' if b else ''}" for j, b in enumerate(blocked.tolist())],
        {"masked before": scores.masked_fill(blocked, -math.inf).softmax(-1), "masked after": scores.softmax(-1) * ~blocked},
        "key (* blocked)", "weight", "Masked before and after the softmax",
        alt="Bars of six weights: masked before they sum to 1; masked after, each is smaller, and their sum is far below 1.",
    )
    x, weights = torch.randn(7, 8, generator=rng), torch.randn(3, 3, 8, 8, generator=rng) / 3
    changes = {}
    for causal in (True, False):
        old, new, sizes = x[None, :-1], x[None], []
        for Wq, Wk, Wv in weights:
            sizes.append(float((old @ Wk - (new @ Wk)[:, :-1]).abs().max()))
            old, new = (z + attention(z @ Wq, z @ Wk, z @ Wv, causal=causal)[0] for z in (old, new))
        changes["causal" if causal else "no mask"] = sizes
    plots.bars(["layer 0", "layer 1", "layer 2"], changes, "layer", "largest change of an old key",
               "A token joins: do old keys stay?",
               alt="With a causal mask no old key changes in any layer; without one those of layers 1 and 2 do.")

# %% [markdown]
# ## Part V. In your own words
#
# Two questions without code. A person reads your answers; five good sentences are better than a page. Write
# them in the cell below each question.

# %% [markdown] explain="q2_11" sources="000/0.2-c-iii-why 002/MT-2" points=3 minutes=8 difficulty=2
# ### In your own words: why several heads?
#
# Eight heads of width 64 have as many parameters as one head of width 512, and cost as many operations. "Then
# heads are only there so that a GPU can work in parallel", says a friend. Are they right? Answer in about five sentences,
# with an example from this notebook.
#
# BEGIN SOLUTION
# The four projections are $D \times D$ whatever the number of heads, and the products cost $H \cdot T S D_h = T S D$,
# so neither parameters nor FLOPs depend on $H$. One wide matrix product is as parallel as eight narrow ones, so
# speed is no reason. The reason is the softmax: a head has one set of weights per query, and everything that it
# hands over, in all its features, is mixed with these same weights. A query that needs the token before it and
# the marked token must, with one head, take a mixture of both values, as in @q2_2, where one head did not manage
# three jobs; with several heads each head chooses for itself, and the output is a sum of differently mixed
# parts. The price is $H$ maps of $T \times S$ weights to compute, normalise and keep instead of one, and scores
# from only $D_h$ features each, so that very many heads can no longer tell keys apart.
#
# **Rubric.** 1 point: parameters and FLOPs do not depend on $H$, because the heads share the width. 1 point: one
# head has one set of weights per query for all its features, several heads can look at several places (or:
# mix features differently) at once. 1 point: a wide product is just as parallel, and more heads do have a cost
# ($H$ times as many attention weights, or narrow queries and keys).
# END SOLUTION

# %% [markdown] explain="q2_12" sources="002/2.4-why 003/2-d" points=3 minutes=8 difficulty=3
# ### In your own words: is the square the problem?
#
# A company runs two models of width $D = 1024$. One reads support tickets of about 200 tokens, the other writes
# stories of up to 100,000 tokens. "Attention is quadratic", says the manager, "let us use linear attention in
# both." Advise them in about five sentences. Use numbers, for each of the two models.
#
# BEGIN SOLUTION
# The two products cost more than the projections only from $N = 2D = 2048$ tokens on. At 200 tokens they are about
# a tenth of the attention layer's work ($N / (N + 2D) = 200 / 2248 = 9$ %), so the ticket model would gain next to
# nothing. At 100,000 tokens they are 98 %, so there the square is real. With a key-value cache the story model
# does not recompute the past, but each new token still attends to all earlier ones, so a step's work and the cache
# itself grow in proportion to the length; linear attention keeps a state of fixed size instead. What is lost is
# the softmax: the weights become smooth, so that a query cannot pick out one key among very many, and everything
# that was read must fit into that state. I would leave the first model alone, and try windows, or linear
# attention in some of the layers, in the second.
#
# **Rubric.** 1 point: the crossover at $N = 2D$ (or an equivalent count), hence no gain for short tickets and a
# large one for long stories. 1 point: the cache saves recomputation, but work per token and memory still grow with
# the length. 1 point: linear attention is another function, with flatter weights or a state of fixed size, so
# exact look-up suffers.
# END SOLUTION

# %% [markdown]
# ## What to read next
#
# You have the layer, its masks, its price list and three ways to pay less. In **homework 3** it gets
# company: normalisation, positions, a feed-forward network, and residual connections, which together make
# a block.
#
# - Vaswani and others (2017), [*Attention is all you need*](https://arxiv.org/abs/1706.03762): section
#   3.2 is your @q2_2, and its table 1 is Part II in four lines.
# - Voita and others (2019), [*Analyzing multi-head self-attention: specialized heads do the heavy
#   lifting, the rest can be pruned*](https://arxiv.org/abs/1905.09418); Michel, Levy and Neubig (2019),
#   [*Are sixteen heads really better than one?*](https://arxiv.org/abs/1905.10650): what trained heads
#   do, and how many can be taken away.
# - Clark and others (2019), [*What does BERT look at? An analysis of BERT's
#   attention*](https://arxiv.org/abs/1906.04341): heads with jobs, in a trained model.
# - Shazeer (2019), [*Fast Transformer decoding: one write-head is all you
#   need*](https://arxiv.org/abs/1911.02150); Ainslie and others (2023), [*GQA: training generalized
#   multi-query Transformer models from multi-head checkpoints*](https://arxiv.org/abs/2305.13245): heads
#   that share their keys and values, to make the cache of @q2_7 smaller.
# - Katharopoulos and others (2020), [*Transformers are RNNs: fast autoregressive Transformers with linear
#   attention*](https://arxiv.org/abs/2006.16236); Choromanski and others (2021), [*Rethinking attention
#   with performers*](https://arxiv.org/abs/2009.14794): @q2_8, and how to come closer to the softmax.
# - Child and others (2019), [*Generating long sequences with sparse
#   Transformers*](https://arxiv.org/abs/1904.10509): the strides of @q2_9.
# - Liu and others (2021), [*Swin Transformer: hierarchical Vision Transformer using shifted
#   windows*](https://arxiv.org/abs/2103.14030); Ding and others (2022), [*DaViT: dual attention vision
#   transformers*](https://arxiv.org/abs/2204.03645): @q2_9.
# - Dao and others (2022), [*FlashAttention: fast and memory-efficient exact attention with
#   IO-awareness*](https://arxiv.org/abs/2205.14135): the same numbers as the attention of @q2_2, with much
#   less traffic to memory. A reminder that operations are not all that can be counted.
# - Prince (2023), [*Understanding Deep Learning*](https://udlbook.github.io/udlbook/), chapter 12, with
#   its exercises on counting.
#
# Before you hand in, restart the kernel, run everything from top to bottom, and look at the checks once
# more.

# %%
grader.check_all()
