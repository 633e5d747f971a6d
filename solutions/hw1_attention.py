# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="softmax and its Jacobian, Luong, kernel regression, masks, why $1/\\sqrt d$"
# # Homework 1: From alignment scores to attention
#
# A translator who reads a long sentence once, closes the book and then writes the translation from memory
# will lose something on the way. A translator who may look back at the page before every word will not.
# Attention is the second translator. This notebook builds it from its smallest part, a softmax with a
# temperature, up to the scaled dot-product attention that every Transformer is made of, and then takes it
# apart again to see why each piece is there.
#
# **When you are done, you will be able to**
#
# - write a softmax that survives huge scores and empty rows, and say what its temperature does;
# - tell from a Jacobian whether a softmax still learns or has frozen;
# - put attention between two recurrent networks, and train it to reverse sequences in a few seconds;
# - recognise attention as kernel regression, a method from 1964;
# - write scaled dot-product attention with padding and causal masks that never returns a NaN;
# - derive the factor $1/\sqrt{d}$ instead of believing it;
# - predict what happens to the output when a key moves, grows, or changes its place;
# - choose weights by hand that make attention an identity, a permutation or a convolution.
#
# **What you need**: linear algebra, a little probability, and some PyTorch. No GPU, no downloads.

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
# The last two questions, @q1_14 and @q1_15, ask for a few sentences instead of code, and a person reads them.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged
# with ours in its place too, so an error costs its points once. Where you skipped one, PyTorch's own
# function will do, unless the question says otherwise.
#
# Answers @q1_1 and @q1_3 to @q1_7 are parts of models, so gradients must flow through them: stay in PyTorch
# there, and do not `detach`. Elsewhere any way to the right number is fine, unless the text rules it out.

# %% [markdown]
# ## The convention card
#
# The same in every homework. Some rows belong to later homeworks; the row on blocked keys matters from
# @q1_1 on.

# %% [markdown] card=true
# The convention card of the course stands here.

# %%
import math
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import Grader, after, pick_device, plots, seed_everything
from course_utils.hw1 import reversal
from course_utils.hw1.diagram import attention_diagram
from course_utils.hw1.kernels import gaussian_kernel
from course_utils.hw1.position_layer import position_layer
from course_utils.hw1.spot_the_error import DERIVATIONS, departs, draw
from course_utils.notebook.derivations import compare_lines

plt.rcParams["figure.dpi"] = 100  # for pictures of your own
seed_everything(0)
device = pick_device()
grader = Grader("hw1_attention")

# %% [markdown]
# ## Part I. Looking back
#
# In 2014 a neural translator was two recurrent networks: an *encoder* read the source and handed over its
# last hidden state, and a *decoder* wrote the target from that one vector (Sutskever 2014, Cho 2014). One
# vector of fixed size for a sentence of any length: the longer the sentence, the worse the translation.
# Bahdanau (2015) kept **all** the encoder's states and let the decoder choose among them before every word.
# Luong (2015) made the choice simpler, and it is Luong's version that we build in this part:
#
# 1. *score* every encoder state against the decoder's present state,
# 2. turn the scores into weights that are positive and sum to one,
# 3. average the encoder states with these weights, and use the average.
#
# We begin in the middle, with step 2, since all the rest depends on it.

# %% [markdown] question="q1_1" sources="002/1.1-weights 001/1.1-b"
# ### Softargmax: choosing softly
#
# Given scores $s_1, \dots, s_n$, the hard choice is the argmax: all the weight on the largest score. It has
# no useful derivative, so nothing can be learned through it. The soft choice is
#
# $$a_i = \frac{e^{\beta s_i}}{\sum_j e^{\beta s_j}}$$
#
# Most people call it softmax, but it is the *argmax* that it softens (it returns a place, not a value), and
# so we call the function `softargmax`. The number $\beta \ge 0$ is the inverse temperature: $\beta = 0$
# spreads the weight evenly, and as $\beta$ grows the largest score takes all. For the scores $(2, 1, 0)$:
#
# | $\beta$ | weights |
# |---|---|
# | 0 | 0.333, 0.333, 0.333 |
# | 1 | 0.665, 0.245, 0.090 |
# | 4 | 0.982, 0.018, 0.000 |
#
# The formula is short; the work is at its edges. Write `softargmax(scores, beta=1.0, dim=-1)`, this formula along one
# axis. {=formula} It must {-}
#
# - take `scores` of any shape and any floating dtype, normalise over the axis `dim` only, and keep shape
#   and dtype; {=shape} {=axis}
# - be **stable**: scores of size $10^4$ or $-10^4$ in float32 must give weights, neither NaN nor infinity; {=stable}
# - read the score `-inf` as "blocked": its weight is exactly 0, and the others share the weight as if it were
#   not there (good to have: at `beta = 0` too, where $0 \cdot \infty$ is NaN); {=blocked}
# - return **zeros** for a slice in which every score is `-inf` (nothing to choose from, so nothing is
#   chosen), and send back a gradient of zero there, not NaN. {=empty-slice} {=empty-gradient}
#
# `beta` is a finite number $\ge 0$; scores are finite or `-inf`. A *slice* is one vector of scores along `dim`;
# other slices must not notice an empty neighbour. {=neighbours} As everywhere in this course the input is not changed in
# place. {=in-place} Gradients flow through the weights, so do not `detach`. {=gradients} You may use `torch.softmax` or write the exponentials yourself.

# %% question="q1_1" points=6 minutes=15 difficulty=2
def softargmax(scores: Tensor, beta: float = 1.0, dim: int = -1) -> Tensor:
    """Softmax of beta * scores along dim, same shape and dtype; a slice that is all -inf gives zeros."""
    # BEGIN SOLUTION
    z = scores if beta == 1 else (beta * scores).masked_fill(scores == -math.inf, -math.inf)  # 0 * inf is NaN
    lowest = torch.finfo(z.dtype).min  # the score of one more choice, which takes all where the others are blocked
    z = F.pad(z.movedim(dim, -1), (0, 1), value=lowest)
    return torch.softmax(z, -1)[..., :-1].movedim(-1, dim)  # softmax subtracts the maximum: no overflow
    # END SOLUTION


# %% [markdown] help="q1_1"
# symptom: You get NaN. Large scores: `exp` overflowed to infinity, and infinity divided by infinity is NaN.
# A row of `-inf`: you subtracted a maximum of `-inf`, or divided by a sum of 0. If only the *gradient* is
# NaN, the NaN was made first and hidden afterwards: autograd still walks through it.
#
# hint: Adding a constant to all scores of a slice changes nothing, so you may subtract the slice's maximum,
# after which the largest exponent is 0. For an empty slice, make the maximum and the sum harmless *before*
# they are used.
#
# pseudo-code: Remember where the scores are `-inf`. Multiply the others by beta; the blocked ones are
# `-inf` again. Take the maximum along the axis, and where it is `-inf` use 0. Exponentiate what is left
# after subtracting it. Sum along the axis, and where the sum is 0 use 1. Divide.

# %% [markdown]
# What does the temperature do? The cell below shows the weights of the scores $2, 1.5, 0, -1$ as $\beta$ grows, and how
# spread out they are: their entropy $-\sum_i a_i \ln a_i$, divided by $\ln 4$. **Predict before you run it:** does the
# weight of the second score rise, fall, or both? Can the entropy turn back?
#
# <details><summary>What we found</summary>
#
# The second weight grows at first, as long as its score is above the average, and then it loses. The entropy falls from
# 1 to 0 and never turns back: its slope is $-\beta$ times the variance of the scores under the weights. And whatever is
# averaged with these weights, $h = \sum_i a_i v_i$, moves with $\beta$ at the rate
# $dh/d\beta = \sum_i a_i (s_i - \bar s)\, v_i$, the covariance of scores and values under the weights: values with
# scores above the average $\bar s = \sum_i a_i s_i$ gain. The cell tests both by small steps.
#
# </details>

# %% tags=["plot"]
with after("q1_1"):
    scores = torch.tensor([2.0, 1.5, 0.0, -1.0])
    betas = torch.linspace(0, 6, 121)
    weights = torch.stack([softargmax(scores, beta) for beta in betas.tolist()])  # [121, 4]
    entropy = -torch.special.xlogy(weights, weights).sum(-1) / math.log(4)
    shown = {f"weight of score {s:g}": w for s, w in zip(scores.tolist(), weights.T, strict=True)}
    plots.curves(
        betas, shown | {"entropy / ln 4": entropy}, "inverse temperature beta", "weight", "From even to hard",
        alt="Five curves over beta from 0 to 6: the weights of the four scores, and the entropy.",
    )
    s, v, beta, step = scores.double(), torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64), 0.8, 1e-5
    a, up, down = (softargmax(s, b) for b in (beta, beta + step, beta - step))
    slopes = ((up - down) @ v, torch.special.entr(up).sum() - torch.special.entr(down).sum())
    mean = a @ s
    formulas = (a @ ((s - mean) * v), -beta * (a @ (s - mean) ** 2))
    for name, slope, formula in zip(("h", "the entropy"), slopes, formulas, strict=True):
        print(f"d {name} / d beta at {beta}: {slope / (2 * step):.6f} by a small step, {formula:.6f} by the formula")

# %% [markdown] question="q1_2" sources="003/1-a-jac 004/12.4-formula 004/12.4-values 004/12.4-code 004/12.4-conclusion"
# ### The Jacobian: when a softmax stops learning
#
# Let $y = \mathrm{softmax}(z)$ for a vector $z$ of $n$ scores. How does weight $i$ react to score $j$?
# Differentiate, and the answer needs nothing but the weights:
#
# $$J_{ij} = \frac{\partial y_i}{\partial z_j} = y_i\,(\delta_{ij} - y_j)
# \qquad\text{with } \delta_{ij} = 1 \text{ if } i = j \text{ and } 0 \text{ otherwise.}$$
#
# At $z = (0, 0)$ the weights are $\tfrac12, \tfrac12$ and
# $J = \begin{pmatrix} 0.25 & -0.25 \\ -0.25 & 0.25 \end{pmatrix}$: what one weight gains the other loses.
# Each row sums to 0, and so does each column.
#
# Learning goes through $J$: every gradient that reaches the scores has been multiplied by it. So its size
# says how much can still be learned. We measure the size by the Frobenius norm, the root of the sum of the
# squared entries, and call it the `saturation` of $z$ (a *small* value means a saturated softmax). At
# $(0, 0)$ it is 0.5.
#
# Prince (2023) asks for the derivatives at $z = (-3, 1, 100, 5, -1)$. One score towers over the others, and
# all 25 derivatives all but vanish: the largest is $5.64 \cdot 10^{-42}$. Not zero, though! A careless
# program prints exactly 0 for $\partial y_3 / \partial z_3$, because $y_3$ rounds to 1 and $1 - y_3$ to 0.
# You can do better: the part of the weight that $i$ does *not* have is the sum of the others, and that sum
# is computed without loss.
#
# Write
#
# - `softmax_jacobian(z)`: the matrix `[n, n]` in closed form, in `z`'s dtype. {=jacobian} {=dtype} No autograd (no
#   `torch.autograd`, no `torch.func`, no finite differences). {=no-autograd} On the diagonal an exact
#   0 in place of $10^{-42}$ costs no points; but now you know how to do better. Off the diagonal every digit counts in
#   `float64`, for scores up to 30 apart: products have them all, differences have not;
# - `saturation(z)`: the Frobenius norm of that matrix, as one number (a float). {=saturation}
#
# `z` is a vector `[n]` of finite scores, $n \ge 1$, and may be large ($\pm 10^4$). {=any-n} {=large}

# %% question="q1_2" points=6 minutes=20 difficulty=2 uses=["q1_1"]
def softmax_jacobian(z: Tensor) -> Tensor:
    """The derivative of softmax(z) by z in closed form: z [n] -> J [n, n], J[i, j] = d y_i / d z_j."""
    # BEGIN SOLUTION
    y = softargmax(z)  # [n]
    off = -torch.outer(y, y)  # [n, n]
    off = off - torch.diag(off.diagonal())  # right outside the diagonal, 0 on it
    return off - torch.diag(off.sum(-1))  # rows of J sum to 0: J_ii = y_i * (sum of the other y)
    # END SOLUTION


def saturation(z: Tensor) -> float:
    """The Frobenius norm of the softmax's Jacobian at z [n]: near 0 where the softmax has saturated."""
    # BEGIN SOLUTION
    return float(torch.linalg.norm(softmax_jacobian(z.double())))  # squares of 1e-42 need float64's range
    # END SOLUTION


# %% [markdown] help="q1_2"
# symptom: Your matrix has only a diagonal (then its rows do not sum to 0), or all entries are positive
# (then a sign is lost), or the entry at `[2, 2]` for the saturated example is exactly 0 while its
# neighbours are around 1e-42.
#
# hint: There are two cases. For $i \ne j$ the entry is $-y_i y_j$. For $i = j$ it is $y_i (1 - y_i)$, and
# $1 - y_i$ is better computed as the sum of all the other weights. The rows of $J$ sum to 0: that gives the
# diagonal from the rest of its row.
#
# pseudo-code: Compute y with a stable softmax. Make the matrix of minus y_i times y_j. Replace its
# diagonal: entry (i, i) is minus the sum of the other entries of row i. The saturation is the root of the
# sum of all squared entries, turned into a float.

# %% [markdown]
# First, the size of the Jacobian for eight random scores, multiplied by a growing factor: the median and
# the mean over 400 draws. Then the 25 entries at $(-3, 1, 100, 5, -1)$, as powers of ten. **Predict before you run it:**
# does the median or the mean fall faster? And which row and column of the 25 are the largest?
#
# <details><summary>What we found</summary>
#
# The median: a few near ties among the draws keep the mean up. The row and the column of the score 100 are the largest.
# A saturated softmax is **in**sensitive: moving any score by 1 moves no weight by more than $10^{-41}$. It will not
# learn its way out, either, since the gradient that could tell it to is multiplied by the same $J$. Keep
# this picture in mind for Part III.
#
# </details>

# %% tags=["plot"]
with after("q1_2"):
    draws = torch.randn(400, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    factors = torch.logspace(-1, 2, 25)
    sizes = torch.tensor([[saturation(factor * z) for z in draws] for factor in factors])  # [25, 400]
    plots.curves(
        factors, {"median": sizes.median(1).values, "mean": sizes.mean(1)}, "factor on the scores",
        "size of the Jacobian", "Large scores freeze the softmax", logx=True, logy=True,
        alt="Two curves on logarithmic axes, median and mean: the Jacobian's size over a factor from 0.1 to 100.",
    )
    z = torch.tensor([-3.0, 1.0, 100.0, 5.0, -1.0], dtype=torch.float64)
    plots.heatmap(
        softmax_jacobian(z).abs().log10(), rows=z.tolist(), cols=z.tolist(), vmin=None,
        title="log10 |J| at (-3, 1, 100, 5, -1)", xlabel="by score", ylabel="weight of score",
        alt="A table of 5 by 5 exponents, with numbers: weight of a score by score.",
    )

# %% [markdown] question="q1_3" sources="002/1.1-scores"
# ### Alignment scores: four ways to compare
#
# Now step 1. The decoder is in state $q$ (the **query**), the encoder has left its states $k_1, \dots, k_S$
# (the **keys**), and we want one number per key that says how well it fits. Luong (2015) tried four kinds: {=dot} {=general} {=concat} {=location}
#
# | kind | score of key $k_s$ | parameters |
# |---|---|---|
# | `"dot"` | $q^\top k_s$ | none |
# | `"general"` | $q^\top W k_s$ | `W: [D, D]` |
# | `"concat"` | $v^\top \tanh(W\,[q; k_s])$ | `W: [A, 2D]`, `v: [A]` |
# | `"location"` | entry $s$ of $W q$ | `W: [S, D]` |
#
# $[q; k]$ is the query followed by the key, in this order; $A$ is the width of the hidden layer of `concat`,
# which is the additive score of Bahdanau (2015) in other notation. `location` is the odd one out: it looks at the query only, and has learned by
# heart which *place* to look at.
#
# A small example that shows the order: with $q = (1, 2)$ and the keys $(3, 0)$ and $(0, 1)$, `dot` gives
# $3$ and $2$. With $W = \begin{pmatrix} 0 & 1 \\ 0 & 0 \end{pmatrix}$, `general` gives $0$ and $1$; with
# $W$ transposed it would be $6$ and $0$. So the order matters: the query stands on the left of $W$.
#
# Write `luong_scores(query, keys, kind, W=None, v=None)` for a batch: `query` is `[B, D]`, one query for
# each example, `keys` is `[B, S, D]`, the result is `[B, S]`, in the inputs' dtype. {=batch} {=dtype} These are the scores,
# before any softmax, and without any scaling. {=no-scale} Parameters that a kind does not need are `None`. Gradients reach
# the query, the keys and the parameters. {=gradients} (Good to have: a `ValueError` for a `kind` that is none of the
# four. {-})

# %% question="q1_3" points=6 minutes=20 difficulty=2
def luong_scores(
    query: Tensor, keys: Tensor, kind: str, W: Tensor | None = None, v: Tensor | None = None
) -> Tensor:
    """Luong's alignment scores: query [B, D], keys [B, S, D] -> [B, S].

    W is [D, D] for "general", [A, 2D] for "concat" (with v [A]), [S, D] for "location"; "dot" has none.
    """
    # BEGIN SOLUTION
    if kind == "dot":
        return torch.einsum("bd,bsd->bs", query, keys)
    if kind == "general":
        return torch.einsum("bd,de,bse->bs", query, W, keys)
    if kind == "concat":
        both = torch.cat([query[:, None].expand_as(keys), keys], dim=-1)  # [B, S, 2D]
        hidden = torch.tanh(torch.einsum("bsc,ac->bsa", both, W))  # [B, S, A]
        return torch.einsum("bsa,a->bs", hidden, v)
    if kind == "location":
        return torch.einsum("bd,sd->bs", query, W)
    raise ValueError(f"unknown kind of score: {kind!r}")
    # END SOLUTION


# %% [markdown] help="q1_3"
# symptom: `general` is right for a symmetric `W` and wrong otherwise: you have used its transpose. `concat`
# gives an error about shapes: the query has no axis for the keys yet. All rows of the batch look alike: you
# compared a query with another example's keys.
#
# hint: `torch.einsum` lets you write the formula with its indices: `b` for the batch, `d` for the query's
# features, `e` for the key's, `s` for the place. An index that is missing on the right of the arrow is
# summed over.
#
# pseudo-code: dot: for every b and s, sum over d of query times key. general: the same, with W between
# them, its first index on the query's side. concat: repeat the query for every key, put the key behind it
# along the last axis, multiply by W transposed, tanh, then the inner product with v. location: query times
# W transposed; the keys are not used.

# %% [markdown]
# Here are the scores of four queries against six keys, and below them the scores after the keys have been
# shuffled. **Predict before you run the cell:** which kinds follow their keys to the new places?
#
# <details><summary>What we found</summary>
#
# Three of them do. `location` does not notice: its scores belong to places, not to what stands there. So it is tied to a
# longest length, and blind to the source.
#
# </details>

# %% tags=["plot"]
with after("q1_3"):
    rng = torch.Generator().manual_seed(3)
    queries, keys = torch.randn(4, 8, generator=rng), torch.randn(6, 8, generator=rng)
    W, W2, W3 = (torch.randn(n, m, generator=rng) for n, m in ((8, 8), (16, 16), (6, 8)))
    v = torch.randn(16, generator=rng)
    arguments = {
        "dot": {}, "general": {"W": W / 3}, "concat": {"W": W2 / 4, "v": v}, "location": {"W": W3},
    }
    shuffle = [3, 0, 5, 1, 4, 2]
    for order, title in ((range(6), "keys in order"), (shuffle, "keys shuffled")):
        memory = keys[list(order)].expand(4, 6, 8)  # the same keys for each of the four queries
        panels = {kind: luong_scores(queries, memory, kind, **more) for kind, more in arguments.items()}
        plots.heatmaps(
            panels, rows=range(4), cols=order, title=title, xlabel="key", ylabel="query", vmin=-7, vmax=7,
            alt=f"Scores of four queries against six keys, {title}, for dot, general, concat and location.",
        )


# %% [markdown] question="q1_4" sources="002/1.1-context"
# ### One step of attention
#
# Step 2 you have, step 3 is quickly said. With the weights $a = \mathrm{softmax}(\text{scores})$ over the
# $S$ keys, the **context** is the weighted average of the keys,
#
# $$c = \sum_{s=1}^{S} a_s\, k_s ,$$
#
# and Luong mixes it with the decoder's state into the *attentional state*
#
# $$\tilde h = \tanh\big(W_f\,[q; c]\big),$$
#
# from which the next word is predicted. Note who plays which part: the decoder's state asks (query), and
# the encoder's states both answer to the question (keys) and are what is handed over (values). In @q1_7 these
# two jobs of the encoder's states will get two different vectors.
#
# With $q = (1, 2)$ and the keys $(3, 0)$, $(0, 1)$ from above, the dot scores are $3, 2$, the weights
# $0.731, 0.269$ and the context is $(2.193, 0.269)$.
#
# Write `luong_step(query, keys, W_f, kind="dot", W=None, v=None)`: `query` `[B, D]`, `keys` `[B, S, D]`,
# `W_f` `[E, 2D]` (any $E$; often $E = D$), and `kind`, `W`, `v` as in @q1_3. {=kinds} In a batch of rows the formula
# reads $\tilde h = \tanh([q; c]\, W_f^\top)$. {=formula} Return the pair `(h_tilde, weights)`: `h_tilde` is `[B, E]`,
# `weights` is `[B, S]`. {=shapes} {=batch} The query comes first in $[q; c]$, there is no scaling ($\beta = 1$), no mask and
# no bias. {=order} {=no-scale} Scores of some thousands are no trouble to your softargmax, and so to this. {=large} Gradients
# reach the query, the keys and `W_f`. {=gradients} A model calls this at every step of every batch, so it is best to work on the whole batch at once:
# @q1_5 is trained within a time limit and may call it, and loops over examples or keys would make it slow.

# %% question="q1_4" points=5 minutes=15 difficulty=1 uses=["q1_1", "q1_3"]
def luong_step(
    query: Tensor,
    keys: Tensor,
    W_f: Tensor,
    kind: str = "dot",
    W: Tensor | None = None,
    v: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One Luong step: query [B, D], keys [B, S, D], W_f [E, 2D] -> h_tilde [B, E], weights [B, S]."""
    # BEGIN SOLUTION
    weights = softargmax(luong_scores(query, keys, kind, W, v))  # [B, S]
    context = torch.einsum("bs,bsd->bd", weights, keys)  # [B, D]
    h_tilde = torch.tanh(torch.cat([query, context], dim=-1) @ W_f.T)  # [B, E]
    return h_tilde, weights
    # END SOLUTION


# %% [markdown] help="q1_4"
# symptom: The weights of one example sum to something other than 1: the softmax ran over the batch instead
# of the keys. `h_tilde` leaves the interval from -1 to 1: the tanh is missing. Everything has the right
# shape but the wrong value: look at the order of query and context before `W_f`.
#
# hint: Three lines: weights from your @q1_3 and @q1_1, context as a weighted sum over the keys, then the two
# halves side by side along the last axis.
#
# pseudo-code: Weights: softargmax of the scores over the last axis. Context: for every example, the sum
# over s of weight s times key s. Put query and context together, query first, multiply by W_f transposed,
# tanh. Return that, and the weights.

# %% [markdown]
# A toy translation shows what the weights are good for. Each French word below is a vector of meaning, and
# the decoder's state is the meaning that it wants to say next (we made these vectors up; a trained model
# finds its own). French puts this adjective behind its noun, English in front, and the bright squares show
# the decoder jumping there and back.

# %% tags=["plot"]
with after("q1_4"):
    meanings = {"article": 0, "cat": 1, "black": 2, "sleep": 3, "on": 4, "sofa": 5}
    source = {"le": "article", "chat": "cat", "noir": "black", "dort": "sleep", "sur": "on", "un": "article",
              "canapé": "sofa"}
    target = {"the": "article", "black": "black", "cat": "cat", "sleeps": "sleep", "on": "on", "a": "article",
              "sofa": "sofa"}
    place = torch.eye(7) * 2  # which word of the sentence, so that the two articles differ
    concept = torch.eye(6) * 2
    keys = torch.cat([concept[[meanings[m] for m in source.values()]], place], dim=-1)  # [7, 13]
    queries = torch.cat([concept[[meanings[m] for m in target.values()]], place / 2], dim=-1)  # [7, 13]
    _, weights = luong_step(queries, keys.expand(7, 7, 13), torch.eye(26))
    plots.heatmap(
        weights, rows=list(target), cols=list(source), title="Where the decoder looks",
        xlabel="source word", ylabel="word being written",
        alt="Large weights along the diagonal, except that black looks at noir and cat at chat.",
    )

# %% [markdown] question="q1_5" sources="002/1.2-P-rnn 002/1.1-memory 002/1.3-tutorial"
# ### A sequence-to-sequence model with attention
#
# Time to build the second translator. The task is small and merciless: read 12 random symbols and write
# them **backwards**. A model without attention has to press all twelve through one vector, and gets about
# half of them. With attention it only has to learn where to look.
#
# Write the module `AttentionSeq2Seq(vocab_src, vocab_tgt, d_model)`:
#
# - an **encoder**: embed the source tokens, run a GRU over them (`nn.GRU`: a recurrent layer that reads a
#   sequence token by token and has a state after each); its states are the memory, `[B, S, d_model]`;
# - a **decoder**: embed the target tokens, run a second GRU over them, started from the encoder's last
#   *real* state;
# - between them, the attention of @q1_4 at every decoder step: score the step's state against the memory,
#   softmax, context, $\tilde h$; {=parts}
# - a linear layer from $\tilde h$ to the logits.

# %% [markdown]
# `forward(src, tgt_in, key_padding_mask=None)` returns `(logits, weights)`: {=shapes} {=weights} {=padding-weights}
#
# | name | shape | meaning |
# |---|---|---|
# | `src` | int64 `[B, S]` | source tokens |
# | `tgt_in` | int64 `[B, T]` | what the decoder reads: a start token first, so it is already shifted |
# | `key_padding_mask` | bool `[B, S]` or `None` | **True = padding**, always on the right |
# | `logits` | `[B, T, vocab_tgt]` | `logits[:, t]` predicts what follows `tgt_in[:, t]` |
# | `weights` | `[B, T, S]` | the weights of each step: exactly 0 on padding, rows sum to 1 |
#
# For example, to write the symbols 5, 2, 7 the decoder reads start, 5, 2: `logits[:, 0]` is its guess for the 5,
# made from the start token and the source.
#
# This is what the grader relies on:
#
# - `logits[:, t]` depends on `tgt_in[:, :t + 1]` and never on later tokens; do not shift `tgt_in` again; {=no-look-ahead}
# - **source padding never changes the logits**: not through the tokens that stand there, not through how
#   many there are; {=padding}
# - the decoder starts from the state after the last *real* token, not after the padding; {=last-real-state}
# - a source that is *all* padding has weights 0 and finite logits, and what stands in it moves nothing; {=all-padding}
# - only the mask says what is padding: every source symbol, 0 too, is a real one; {=only-the-mask}
# - gradients reach every parameter that the model uses, the encoder's through the attention too; {=gradients}
# - the returned weights are those that the model uses; {~weights-used}
# - rows of a batch do not influence each other, and any $S \ge 1$ and $T \ge 1$ work. {=rows}
#
# Names of parameters, kind of score and all else inside are yours. `nn.GRU`, `nn.Embedding` and `nn.Linear`
# may be used. Make no tensor on a fixed device. {~device} The check below looks at an untrained model; hidden checks also
# train it, look whether the context is made with the weights that you return, and try another device.

# %% [markdown]
# **The training run.** The grader builds `AttentionSeq2Seq(VOCAB, VOCAB + 1, D_MODEL)` and trains it with
# `course_utils.hw1.reversal.train_reversal`, the very function that you run below: `STEPS` steps of Adam on
# batches of `BATCH` fresh sequences of `LENGTH` symbols out of `VOCAB` (the target vocabulary has one more,
# the start token, number `VOCAB`), with the gradient's norm clipped to `CLIP` and a learning rate that
# rises to `RATE` over the first tenth of the run and then falls to 0 in a straight line. It takes some
# seconds on one CPU core. Then the model writes new sequences *by itself*, one greedy token at a time, and
# we count the share of right tokens. Models that follow @q1_4 come out around 0.9, models that ignore the
# context around 0.5, and the bar is **0.75**. A model that misses it is trained a second time, from where
# it stands, before the bar counts. The grader's own run is shorter (10 symbols, and a bar of 0.69), writes the symbols in a code
# that is drawn anew (each symbol has another one that is written for it), ends once the loss is small, and asks a new model that
# was given the trained weights: what counts is what the weights have learned. (Leave the scores unscaled, as in @q1_4: with a factor
# $1/\sqrt{d}$ the same model learns more slowly, and needs the second run.) The cell below shows the numbers.

# %% tags=["plot"]
names = ("LENGTH", "VOCAB", "D_MODEL", "STEPS", "BATCH", "RATE", "CLIP")
print("\n".join(f"{name:8}= {getattr(reversal, name)}" for name in names))


# %% question="q1_5" points=10 minutes=45 difficulty=4 uses=["q1_1", "q1_3", "q1_4"] limits={"wall": 120}
class AttentionSeq2Seq(nn.Module):
    """GRU encoder and GRU decoder with Luong attention between them."""

    def __init__(self, vocab_src: int, vocab_tgt: int, d_model: int) -> None:
        """Make the embeddings, the two GRUs, the attention's parameters and the output layer."""
        super().__init__()
        # BEGIN SOLUTION
        self.src_embed = nn.Embedding(vocab_src, d_model)
        self.tgt_embed = nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.GRU(d_model, d_model, batch_first=True)
        self.decoder = nn.GRU(d_model, d_model, batch_first=True)
        self.W = nn.Linear(d_model, d_model, bias=False)  # the score is "general"
        self.W_f = nn.Linear(2 * d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, vocab_tgt)
        # END SOLUTION

    def forward(
        self, src: Tensor, tgt_in: Tensor, key_padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """src [B, S], tgt_in [B, T], mask bool [B, S] -> logits [B, T, vocab_tgt], weights [B, T, S]."""
        # BEGIN SOLUTION
        if key_padding_mask is None:
            key_padding_mask = torch.zeros_like(src, dtype=torch.bool)
        memory, _ = self.encoder(self.src_embed(src))  # [B, S, D]
        lengths = (~key_padding_mask).sum(1)  # [B]
        after_n = F.pad(memory, (0, 0, 1, 0))  # [B, S + 1, D]: the state after n tokens stands at place n
        start = after_n.take_along_dim(lengths[:, None, None], dim=1)  # [B, 1, D]
        states, _ = self.decoder(self.tgt_embed(tgt_in), start.transpose(0, 1).contiguous())  # [B, T, D]
        scores = self.W(states) @ memory.mT  # [B, T, S]
        weights = softargmax(scores.masked_fill(key_padding_mask[:, None], -math.inf))  # [B, T, S]
        h_tilde = torch.tanh(self.W_f(torch.cat([states, weights @ memory], dim=-1)))  # [B, T, D]
        return self.out(h_tilde), weights
        # END SOLUTION


# %% [markdown] help="q1_5"
# symptom: The loss falls but the greedy accuracy stays near 0.5: the context does not reach the output. The
# loss falls to nothing within a few steps and the greedy accuracy is poor: the decoder sees the token that
# it should predict, so look for a second shift. Padding moves the logits: the decoder was started from the
# state after the padding, or the weights were masked after the softmax.
#
# hint: The decoder's states do not depend on the attention here, so you can run its GRU over the whole
# `tgt_in` at once and attend for all steps in one matrix product. The number of real tokens of each row is
# a sum over the mask; the state that you need stands at that number minus one, and for a row without real
# tokens there is none: zeros are a good start.
#
# pseudo-code: Memory: encoder GRU over the embedded source. Start: for each row, the memory at its last
# real token (zeros if it has none). States: decoder GRU over the embedded target from that start. Scores:
# each state against each memory entry, minus infinity on padding. Weights: softargmax over the source.
# Context: weights times memory. Logits: a linear layer on the tanh of another linear layer on state and
# context side by side.

# %% [markdown]
# The second picture is the reward: nobody told the model where to look. **Predict before you run the cell:** where will
# the weights of each step lie?
#
# <details><summary>What we found</summary>
#
# They run against the grain of the source. The line need not be the exact anti-diagonal: a GRU state knows its
# neighbours too, so a model may well look one place beside, and be right.
#
# </details>

# %% tags=["training"]
with after("q1_5"):
    seed_everything(0)
    model = AttentionSeq2Seq(reversal.VOCAB, reversal.VOCAB + 1, reversal.D_MODEL).to(device)
    losses = reversal.train_reversal(model, seed=0)
    print(f"greedy accuracy after {len(losses)} steps: {reversal.greedy_accuracy(model):.3f}")
    plots.curves(
        range(len(losses)), {"loss": losses}, "step", "cross-entropy", "Learning to reverse twelve symbols",
        alt="The training loss falls steeply at first and then flattens out near 0.",
    )
    batch = reversal.reversal_batch(1, torch.Generator().manual_seed(5))
    src, tgt_in, tgt_out = (x.to(device) for x in batch)
    with torch.no_grad():
        _, weights = model(src, tgt_in)
    plots.heatmap(
        weights[0], rows=tgt_out[0].tolist(), cols=src[0].tolist(), title="Learned alignment", numbers=False,
        xlabel="source symbol", ylabel="symbol to write",
        alt="Attention weights of the trained model on one sequence: symbols to write by source symbols.",
    )

# %% [markdown] told="000/0-intro 002/1-intro: motivation, shown by an experiment; 001/1.4-a 001/1.4-b: a comparison, measured here; 002/2.4-why: opinions, and a cost that homework 2 counts"
# Why is it so hard without attention? Follow the gradient. A network that reads step by step has a last state that
# depends on the first token through all the steps between. One read by attention depends on every token directly.
# **Predict before you run the cell:** by which factor does the gradient at the first token shrink when the sequence gets
# ten tokens longer, for the recurrent network and for the read?
#
# <details><summary>What we found</summary>
#
# For the recurrent network by the same factor again and again: a geometric decay, $7 \cdot 10^{-8}$ at 80 tokens here. For
# the even read it is $1/T$. That is the gain; the path from any token to any other has length 1. The price: every query
# meets every key, $T^2$ scores (homework 2 counts them), and since nothing is read in order, order must be told
# (@q1_11). Training is parallel over the places; *writing* stays one token at a time. Attention is older than the
# Transformer: it was added to recurrent networks first, as you just did. New in 2017 was to build from it alone.
#
# </details>

# %% tags=["plot"]
rng = torch.Generator().manual_seed(5)
W = torch.linalg.qr(torch.randn(16, 16, generator=rng, dtype=torch.float64)).Q * 0.85  # every step keeps 85% at most
lengths, by_state, by_read = [2, 5, 10, 20, 40, 80], [], []
for T in lengths:
    x = torch.randn(T, 16, generator=rng, dtype=torch.float64).requires_grad_()
    state = torch.zeros(16, dtype=torch.float64)
    for t in range(T):
        state = torch.tanh(W @ state + 0.1 * x[t])
    by_state.append(torch.autograd.grad(state.sum(), x)[0][0].norm())
    by_read.append(torch.autograd.grad((torch.full((T,), 1 / T).double() @ (0.1 * x)).sum(), x)[0][0].norm())
plots.curves(
    lengths, {"last state of a recurrent network": by_state, "one even read": by_read}, "length of the sequence",
    "gradient at the first token", "What the first token hears", logx=True, logy=True, marks=True,
    alt="Two curves on logarithmic axes over lengths 2 to 80: the gradient at the first token by the last state and by the "
    "even read.",
)

# %% [markdown]
# ## Part II. Attention is a weighted average
#
# Nothing in the formula knows about translation, or about recurrent networks. There are places with
# something stored at each of them, there is a place where we want to know something, and we average what is
# stored with weights that fall off as the places become less alike. Statisticians have done this for a long
# time.

# %% [markdown] question="q1_6" sources="000/0.1-nlm"
# ### Kernel regression, 1964
#
# You have points $x_1, \dots, x_S$ with measured values $y_1, \dots, y_S$, and want a guess at a new point
# $x$. Nadaraya (1964) and Watson (1964) independently proposed to average the measurements, the similar
# points counting more:
#
# $$\hat y(x) = \frac{\sum_j K(x, x_j)\, y_j}{\sum_j K(x, x_j)} .$$
#
# $K$ is a *kernel*, a positive number that says how alike two points are, such as the Gaussian
# $e^{-\|x - x_j\|^2 / 2}$. The same formula with patches of pixels for points is the non-local means of
# Buades (2005), which denoises a photograph by averaging over all the places that look alike. And if you
# read it with $x$ as the query, $x_j$ as the keys and $y_j$ as the *values*, there is (up to a factor,
# which cancels) one kernel that makes it attention.
#
# Write
#
# - `kernel_regression(x, xs, ys, kernel)`: `x` `[T, D]`, `xs` `[S, D]`, `ys` `[S, Dv]`, result `[T, Dv]` in
#   the inputs' dtype. {=regression} {=shapes} You call `kernel(a, b)` with **the query first** (a kernel need not be
#   symmetric). {=query-first} Gradients reach `x`, `xs` and `ys`. {=gradients} The kernel
#   broadcasts over the leading axes and drops the last: with `a` of shape `[..., D]` and `b` of shape
#   `[..., D]` it gives `[...]`, on two vectors one number. {=broadcasts} {=one-number} At every query at least one kernel value is well
#   above 0, so the division needs no guard;
# - `attention_kernel(d)`: returns such a kernel (a function of `a` and `b`, as above), with which the
#   regression equals scaled dot-product attention with queries `x`, keys `xs` and values `ys` of width `d`,
#   that is with scores $x \cdot x_j / \sqrt d$. {=attention-kernel} It does not normalise anything: the regression
#   does. {=no-normalising}
#
# By hand: `x` $= 0$, `xs` $= (0, 1)$, `ys` $= (10, 20)$, all of width 1. The Gaussian weights are $1$ and
# $e^{-1/2} = 0.607$, the guess is $(10 + 0.607 \cdot 20) / 1.607 = 13.78$. With the attention kernel both
# weights are $e^0 = 1$ and the guess is 15: the query 0 is equally alike to everything.

# %% question="q1_6" points=6 minutes=20 difficulty=2 uses=["q1_1"]
def kernel_regression(
    x: Tensor, xs: Tensor, ys: Tensor, kernel: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """The Nadaraya-Watson estimate at each query: x [T, D], xs [S, D], ys [S, Dv] -> [T, Dv]."""
    # BEGIN SOLUTION
    weights = kernel(x[:, None], xs[None])  # [T, S]
    return weights @ ys / weights.sum(-1, keepdim=True)  # [T, Dv]
    # END SOLUTION


def attention_kernel(d: int) -> Callable[[Tensor, Tensor], Tensor]:
    """The kernel(a, b) that makes kernel regression equal to scaled dot-product attention of width d."""
    # BEGIN SOLUTION
    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return torch.exp((a * b).sum(-1) / math.sqrt(d))  # [..., d], [..., d] -> [...]

    return kernel
    # END SOLUTION


# %% [markdown] help="q1_6"
# symptom: A shape error from the kernel: `x` is `[T, D]` and `xs` is `[S, D]`, and these do not broadcast
# yet. Constant values come back changed: the weights were not divided by their sum, or were summed over the
# queries.
#
# hint: Give `x` an axis for the keys and `xs` one for the queries, so that every query meets every key. If
# that looks like magic, write two loops first: the kernel also takes two single vectors. For the kernel,
# write attention's weight as a fraction and compare its numerator with $K(x, x_j)$.
#
# pseudo-code: Weights: the kernel of x with shape T, 1, D and xs with shape 1, S, D, which gives T, S.
# Result: the weights times ys, each row divided by the row's sum of weights. The attention kernel: sum of
# the products over the last axis, divided by the root of d, exponentiated.

# %% [markdown]
# Thirty noisy measurements of a curve, and three regressions: with the Gaussian; with the attention kernel on the bare
# numbers; and with the attention kernel after all keys were given the same length (the points are put on an arc of a
# circle). **Predict before you run the cell:** which of the three follow the data?
#
# <details><summary>What we found</summary>
#
# The first and the last. $e^{x x_j}$ on bare numbers has no notion of *near*: it prefers keys that are **large**, so a query
# on the right listens to the rightmost points only, however far they are. With keys of one length the two kernels agree,
# and that is no accident: $\|q - k\|^2 = \|q\|^2 - 2\, q \cdot k + \|k\|^2$, the first term cancels in the division, and if
# $\|k\|$ is the same for all keys so does the last.
#
# </details>

# %% tags=["plot"]
with after("q1_6"):
    rng = torch.Generator().manual_seed(6)
    xs = torch.rand(30, 1, generator=rng, dtype=torch.float64) * 6 - 3
    ys = torch.sin(2 * xs) + 0.5 * xs + 0.2 * torch.randn(30, 1, generator=rng, dtype=torch.float64)
    x = torch.linspace(-3, 3, 200, dtype=torch.float64)[:, None]
    width = 0.35  # of the Gaussian, in units of x

    def arc(x: Tensor) -> Tensor:
        """The points on an arc of a circle, so large that the attention kernel has the Gaussian's width."""
        angle = x / 2
        return 2 * 2**0.25 / width * torch.cat([angle.cos(), angle.sin()], dim=-1)  # [n, 2]

    plots.scatter_with_curve(
        xs[:, 0], ys[:, 0], x[:, 0], title="One regression, three kernels", points="measurements", curves={
            "Gaussian": kernel_regression(x / width, xs / width, ys, gaussian_kernel)[:, 0],
            "attention, bare": kernel_regression(x / width, xs / width, ys, attention_kernel(1))[:, 0],
            "attention, equal lengths": kernel_regression(arc(x), arc(xs), ys, attention_kernel(2))[:, 0],
        }, overlap=True,
        alt="Noisy points; Gaussian and equal-length attention follow them, bare attention is nearly a step.",
    )

# %% tags=["plot"]
attention_diagram()

# %% [markdown] question="q1_7" sources="000/0.1-pipeline 000/0.1-a 002/1.2-qkv 002/1.2-fig4 002/1.2-P-matrix 002/2.2-attn 003/1-code"
# ### Scaled dot-product attention
#
# This is the function that the rest of the course is built on. Vaswani (2017) takes many queries at once,
# gives keys and values their own vectors, and divides the scores by the root of $d$, the width of queries and
# keys:
#
# $$\mathrm{attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}}\right) V,$$
#
# the softmax running over the **keys**, separately for every query. One query by hand, $d = 4$: if its dot
# products with two keys are 4 and 2, the scores are 2 and 1, the weights 0.731 and 0.269.
#
# Write `attention(q, k, v, key_padding_mask=None, causal=False, beta=None)`, which returns
# `(out, weights)`.
#
# - **Shapes**: `q` `[B, T, D]`, `k` `[B, S, D]`, `v` `[B, S, Dv]` give `out` `[B, T, Dv]`, `weights`
#   `[B, T, S]`. {=formula} With heads, `q` `[B, H, T, Dh]` and so on, give `[B, H, T, Dv]` and `[B, H, T, S]`. $T$,
#   $S$, $D$ and $D_v$ may all differ. {=heads}
# - **Scale**: the scores are `beta` times the dot products; `beta=None` means $1/\sqrt{D}$ with $D$ the
#   last axis of `q` (with heads: $1/\sqrt{D_h}$). {=scale} {=beta} `beta = 0` is a legal value: an even spread over the
#   keys that are not blocked. {=beta-zero}
# - **`key_padding_mask`**: bool `[B, S]`, **True = padding**, at any place: that key gets weight exactly 0
#   from every query (and head) of its example. {=padding}
# - **`causal=True`**: query $i$ sees key $j$ if and only if $j \le i + (S - T)$, counting from 0. For
#   $T = S$ this is the lower triangle. For $T < S$ the queries are the *last* $T$ of $S$ positions, so the
#   last query sees all keys. For $T > S$ the first $T - S$ queries see nothing. {=causal}
# - Both masks may come together: a key is blocked if either blocks it. {=both}
# - **A row with every key blocked** has weights exactly 0 and output exactly 0, and all gradients are
#   finite. {=blocked-row} {=blocked-gradient} Elsewhere gradients are those of the formula. {=gradients}
# - `weights` are the weights after masking, they sum to 1 over the keys in every row that sees at least one
#   key. {=sums}
# - dtype and device are those of `q`; {=dtype} inputs (the mask too) are not changed; {=in-place} no tensor is made on a
#   fixed device. {~device}
#
# `F.scaled_dot_product_attention` and `nn.MultiheadAttention` may **not** be used in this answer. {=ruled-out} Hidden checks
# also try another device and larger shapes.

# %% question="q1_7" points=11 minutes=40 difficulty=3 uses=["q1_1"]
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_padding_mask: Tensor | None = None,
    causal: bool = False,
    beta: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, without F.scaled_dot_product_attention or nn.MultiheadAttention.

    q [B, T, D], k [B, S, D], v [B, S, Dv] -> out [B, T, Dv], weights [B, T, S]; or with heads [B, H, ...].
    key_padding_mask: bool [B, S], True = padding. causal: query i sees key j iff j <= i + (S - T).
    """
    # BEGIN SOLUTION
    T, S, D = q.shape[-2], k.shape[-2], q.shape[-1]
    scores = (q * (1 / math.sqrt(D) if beta is None else beta)) @ k.mT  # [B, ..., T, S]
    if causal:
        later = torch.ones(T, S, dtype=torch.bool, device=q.device).triu(S - T + 1)  # [T, S]
        scores = scores.masked_fill(later, -math.inf)
    if key_padding_mask is not None:
        heads = [1] * (q.dim() - 2)
        scores = scores.masked_fill(key_padding_mask.reshape(-1, *heads, S), -math.inf)  # [B, (1,) 1, S]
    weights = softargmax(scores)  # [B, ..., T, S]
    return weights @ v, weights
    # END SOLUTION


# %% [markdown] help="q1_7"
# symptom: Columns of the weights sum to 1 instead of rows: the softmax runs over the queries. A check with
# heads fails where the one without passes: your mask broadcasts against the wrong axes. A causal check with
# $T < S$ fails: your triangle starts in the upper left corner. NaN: a row is fully blocked. Only gradients
# are NaN: you repaired the NaN after it was made.
#
# hint: Multiply by `beta` first, then set blocked scores to `-inf`, *before* the softmax, with `masked_fill`
# (in the other order `beta = 0` gives $0 \cdot \infty$, which is NaN), and leave the rest to your
# `softargmax`: it was made for empty rows. A padding mask `[B, S]` needs an axis for the queries and, with
# heads, one for the heads. `triu` and `tril` take a `diagonal` that shifts the triangle.
#
# pseudo-code: Scores: q times k with its last two axes swapped, times beta, or times one over the root of
# q's last axis. Blocked: a T by S triangle of the pairs with j greater than i + S - T, if causal; the padding
# mask, with axes of size 1 between B and S; either blocks. Blocked scores become minus infinity. Weights:
# softargmax over the last axis. Output: weights times v.

# %% [markdown]
# The same scores without a mask, with the last two keys padded, and causal. The picture below them is what
# a model sees that writes word by word and has kept its old keys: three new queries, eight keys, and the
# last query sees them all.

# %% tags=["plot"]
with after("q1_7"):
    rng = torch.Generator().manual_seed(7)
    q, k = torch.randn(1, 8, 4, generator=rng), torch.randn(1, 8, 4, generator=rng)
    v = torch.eye(8)[None]
    padding = torch.arange(8)[None] >= 6
    panels = {
        "no mask": attention(q, k, v)[1][0],
        "padding": attention(q, k, v, key_padding_mask=padding)[1][0],
        "causal": attention(q, k, v, causal=True)[1][0],
    }
    plots.heatmaps(
        panels, rows=range(8), cols=range(8), xlabel="key", ylabel="query",
        alt="Attention weights of eight queries without mask, with the last two keys padded, and causal.",
    )
    plots.heatmap(
        attention(q[:, -3:], k, v, causal=True)[1][0], rows=range(5, 8), cols=range(8), xlabel="key",
        ylabel="query", title="Causal, the last three queries", numbers=False,
        alt="Three rows of causal weights: query 5 sees keys 0 to 5, query 6 one more, query 7 all eight.",
    )

# %% [markdown]
# You have now written the heart of the Transformer, and with your @q1_6 you can check it against statistics:
# `attention` with keys `xs` and values `ys` is kernel regression with `attention_kernel`. The two must
# agree to the last digits.

# %% tags=["plot"]
with after("q1_6", "q1_7", what="comparison"):
    rng = torch.Generator().manual_seed(8)
    x, xs, ys = (torch.randn(n, m, generator=rng, dtype=torch.float64) for n, m in ((5, 3), (9, 3), (9, 2)))
    by_regression = kernel_regression(x, xs, ys, attention_kernel(3))  # [5, 2]
    by_attention = attention(x[None], xs[None], ys[None])[0][0]  # [5, 2]
    print(f"largest difference: {(by_regression - by_attention).abs().max().item():.1e}")

# %% [markdown] told="002/1.2-analogy: a dictionary, checked by number"
# Luong's step is the same function too. **Which of his vectors are the queries, keys and values?** Fill in the dictionary
# before you open it; the cell below tests it.
#
# <details><summary>The dictionary</summary>
#
# The decoder's state, times $W$ for `general`, is the query. The encoder's states are the keys *and* the values. (In print
# one also finds "key and query" for the encoder's side. That cannot be: then nobody would be asking.) There is no
# scale, so `beta=1`.
#
# </details>

# %% tags=["plot"]
with after("q1_4", "q1_7", what="comparison"):
    rng = torch.Generator().manual_seed(9)
    state, memory, W = (torch.randn(*n, generator=rng, dtype=torch.float64) for n in ((2, 3), (2, 5, 3), (3, 3)))
    _, weights = luong_step(state, memory, torch.eye(6, dtype=torch.float64), "general", W)
    _, as_qkv = attention((state @ W)[:, None], memory, memory, beta=1.0)  # [2, 1, 5]
    print(f"Luong's weights as attention: largest difference {(weights - as_qkv[:, 0]).abs().max().item():.1e}")


# %% [markdown] question="q1_16" sources="001/1.1-a 004/12.1-eqs"
# ### The same with columns
#
# Half of the literature writes tokens as *columns*. Then every product turns round, and so does the softmax, and
# a formula that is copied from one half into the other is usually wrong. Prince (2023) is in the other half: `X` is
# `[D, N]`, one column per token, and with weights $\Omega$ and biases $\beta$
#
# $$Q = \Omega_q X + \beta_q \mathbf{1}^\top, \qquad K = \Omega_k X + \beta_k \mathbf{1}^\top, \qquad
# V = \Omega_v X + \beta_v \mathbf{1}^\top, \qquad \mathrm{Sa}[X] = V\,\mathrm{softmax}\big(K^\top Q\big).$$
#
# $\mathbf{1}^\top$ is a row of $N$ ones: each token gets the same bias. {=biases} Entry $(i, j)$ of $K^\top Q$ is the score of
# key $i$ for query $j$, so here a query owns a **column**, and the softmax runs down each column. {=formula} {=softmax-axis} There is no scale. {=no-scale}
#
# By hand: one feature, two tokens, $X = (0, \ln 3)$, all three $\Omega$ equal to 1, $\beta_q = 1$, the other biases 0.
# Then $Q = (1, 1 + \ln 3)$ and $K = V = (0, \ln 3)$. The first query's scores are $0$ and $\ln 3$, its weights
# $\tfrac14$ and $\tfrac34$, its output $\tfrac34 \ln 3 = 0.824$.
#
# Write `column_attention(X, Oq, Ok, Ov, bq, bk, bv)`: `X` `[D, N]`, the three `O` `[D, D]`, the three biases `[D]`. The
# result is `[D, N]`, in the inputs' dtype, {=dtype} for any $D, N \ge 1$. {=any-size} One of the three biases changes nothing at all. Which
# one? Guess before you look.

# %% question="q1_16" points=4 minutes=12 difficulty=2 uses=["q1_1", "q1_7"]
def column_attention(
    X: Tensor, Oq: Tensor, Ok: Tensor, Ov: Tensor, bq: Tensor, bk: Tensor, bv: Tensor
) -> Tensor:
    """Self-attention with tokens as columns, V softmax(K^T Q): X [D, N], O* [D, D], b* [D] -> [D, N]."""
    # BEGIN SOLUTION
    Q, K, V = (O @ X + b[:, None] for O, b in ((Oq, bq), (Ok, bk), (Ov, bv)))  # [D, N]
    return V @ softargmax(K.T @ Q, dim=0)  # [D, N]: column j holds the weights of query j
    # END SOLUTION


# %% [markdown] help="q1_16"
# symptom: An error about shapes, or right values only when $N = D$: a bias `[D]` was added along the tokens; give it
# an axis. Every check of values fails while the shapes fit: look at the axis of the softmax, and at which of $K$ and $Q$
# is transposed.
#
# hint: Follow one query, column $j$ of $Q$. Its scores are $K^\top q_j$, a column; softmax makes it a column of
# weights that sum to 1; $V$ times that column averages the columns of $V$.
#
# pseudo-code: Q, K, V: the matrix times X, plus the bias as a column. Weights: softmax over the first axis of K
# transposed times Q. Result: V times the weights.

# %% [markdown]
# Side by side with @q1_7. The weights are each other's transpose: rows that sum to one on the left, columns on the right.
# A printed solution has $\mathrm{softmax}(Q^\top K)\,V^\top$ with a softmax down the columns: then the weights of
# one *key* sum to one over the queries, and that is no attention. Below it is also measured how far the output moves
# when one of the biases does.
#
# <details><summary>Which bias is idle?</summary>
#
# $\beta_k$. It adds $\beta_k^\top q_j$ to every score of query $j$, the same number for each key, and a softmax ignores
# what is added to all of its scores. In homework 2 you meet the claim again.
#
# </details>

# %% tags=["plot"]
with after("q1_16", "q1_7"):
    rng = torch.Generator().manual_seed(16)
    X = torch.randn(3, 6, generator=rng, dtype=torch.float64)
    Os = [torch.randn(3, 3, generator=rng, dtype=torch.float64) for _ in range(3)]
    bs = [torch.randn(3, generator=rng, dtype=torch.float64) for _ in range(3)]
    Q, K, V = (O @ X + b[:, None] for O, b in zip(Os, bs, strict=True))  # [3, 6]
    by_rows, weights = attention(Q.T[None], K.T[None], V.T[None], beta=1.0)
    got = column_attention(X, *Os, *bs)
    print(f"columns against rows, transposed: largest difference {(got - by_rows[0].T).abs().max().item():.1e}")
    for i, name in enumerate(("bq", "bk", "bv")):
        moved = [b + 1.0 if i == n else b for n, b in enumerate(bs)]
        print(f"{name} + 1 moves the output by {(column_attention(X, *Os, *moved) - got).abs().max().item():.1e}")
    plots.heatmaps(
        {"rows: query by key": weights[0], "columns: key by query": (K.T @ Q).softmax(0)}, range(6), range(6),
        xlabel=("keys", "queries"), ylabel=("queries", "keys"),
        alt="Two matrices of attention weights, the second the transpose of the first.",
    )


# %% [markdown]
# ## Part III. How sharp should it be?
#
# Why divide by $\sqrt d$, and not by $d$, or not at all? In @q1_2 you saw that scores which lie far apart
# freeze the softmax. So we ask how far apart they lie at the start of training, when queries and keys are
# as good as random.

# %% [markdown] question="q1_8" sources="000/0.1-b-setup 000/0.1-b-i 000/0.1-b-ii 000/0.1-b-iii 000/0.1-b-iv 002/1.2-P-scale-1 002/1.2-P-scale-2 002/1.2-P-scale-3 003/1-a-mean 003/1-a-var"
# ### Mean and variance of a score
#
# Let $q$ and $k$ be two **independent** random vectors in $\mathbb{R}^d$, both distributed as
# $N(\mu, \sigma^2 I)$: the same mean vector $\mu$, and independent entries of standard deviation $\sigma$
# around it. Their dot product $q \cdot k = \sum_i q_i k_i$ is a random number. What are its mean and its
# variance?
#
# You need no more than this: the mean of a sum is the sum of the means; for independent variables the mean
# of a product is the product of the means, and the variance of a sum is the sum of the variances; and
# $E[x^2] = \mathrm{Var}(x) + E[x]^2$. Take care with the product $q_i k_i$: *both* factors are random, and
# the variance of a product is not the product of the variances unless the means are 0.
#
# Write the answer first:
#
# - `dot_mean(mu, sigma)`: the mean of $q \cdot k$; {=mean}
# - `dot_variance(mu, sigma)`: its variance; {=variance}
# - `unit_scale(d)`: the number by which $q \cdot k$ must be **divided** so that its variance becomes 1 when
#   the entries are standard normal ($\mu = 0$, $\sigma = 1$). {=scale}
#
# `mu` is a tensor `[d]` (any $d \ge 1$, entries of any sign and size), `sigma` a positive number, the
# **standard deviation**. To check yourself: for $\mu = (1, -1, 2)$ and $\sigma = 0.5$ the mean is 6 and the
# variance is 3.1875.

# %% [markdown]
# Then the derivation. A line of a derivation says something about letters, and each line below has **letters
# of its own**, so each can be tried by itself, at numbers where the lines after it say nothing:
#
# - `variance_from_moments(q1, q2, k1, k2)`: the variance of $q \cdot k$ from the raw moments of the entries,
#   $q1_i = E[q_i]$, $q2_i = E[q_i^2]$, and $k1$, $k2$ the same for $k$. {=moments} All $2d$ entries are independent of each
#   other, those of $q$ and of $k$ have different laws, and none needs to be normal; {=not-normal}
# - `variance_from_means(mq, vq, mk, vk)`: the same from their means $mq_i$, $mk_i$ and variances $vq_i$, $vk_i$; {=means}
# - `dot_variance(mu, sigma)` is the last line.
#
# The four letters of a line are tensors `[d]`. A line must give the next one where the letters are tied: put
# $q2 = vq + mq^2$ (and $k2$ likewise), and the first line becomes the second; put $mq = mk = \mu$ and
# $vq = vk = \sigma^2$, and the second becomes the third. {=tied} All five functions return a number: a Python number or
# a 0-dim tensor. {=numbers}
#
# By hand, with one entry each: $q$ is 0 or 2, each half of the time, and $k$ is always 3. Then $q1 = 1$, $q2 = 2$,
# $k1 = 3$, $k2 = 9$; the product is 0 or 6, and its variance is 9.

# %% question="q1_8" points=8 minutes=30 difficulty=3
def dot_mean(mu: Tensor, sigma: float) -> Tensor | float:
    """The mean of q . k for independent q, k ~ N(mu, sigma^2 I): mu [d] -> a number."""
    # BEGIN SOLUTION
    return mu @ mu
    # END SOLUTION


def variance_from_moments(q1: Tensor, q2: Tensor, k1: Tensor, k2: Tensor) -> Tensor | float:
    """The variance of q . k from the entries' raw moments E[q_i], E[q_i^2], E[k_i], E[k_i^2], each [d]."""
    # BEGIN SOLUTION
    return (q2 * k2 - (q1 * k1) ** 2).sum()  # Var(q_i k_i) = E[q_i^2] E[k_i^2] - (E[q_i] E[k_i])^2, and they add
    # END SOLUTION


def variance_from_means(mq: Tensor, vq: Tensor, mk: Tensor, vk: Tensor) -> Tensor | float:
    """The variance of q . k from the entries' means mq, mk and variances vq, vk, each [d]."""
    # BEGIN SOLUTION
    return (vq * vk + vq * mk**2 + mq**2 * vk).sum()  # (vq + mq^2) (vk + mk^2) - mq^2 mk^2, multiplied out
    # END SOLUTION


def dot_variance(mu: Tensor, sigma: float) -> Tensor | float:
    """The variance of q . k for independent q, k ~ N(mu, sigma^2 I): mu [d] -> a number."""
    # BEGIN SOLUTION
    return 2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4
    # END SOLUTION


def unit_scale(d: int) -> float:
    """The divisor that gives q . k variance 1 when the d entries of q and k are standard normal."""
    # BEGIN SOLUTION
    return math.sqrt(d)
    # END SOLUTION


# %% [markdown] help="q1_8"
# symptom: You are right for $\mu = 0$ and wrong otherwise. If your variance is
# $\sum_i \sigma^2(\mu_i^2 + \sigma^2)$ you held the query fixed and let only the key vary: that is half of
# the story, the mean over $q$ of the variance given $q$. If you have an extra factor $d$, you counted the
# sum over the entries twice. A line from moments that is right for normal entries only: it has used more
# than the four letters say.
#
# hint: The $d$ products $q_i k_i$ are independent of each other, so their variances add. For one product,
# $\mathrm{Var}(q_i k_i) = E[q_i^2]\,E[k_i^2] - (E[q_i]\,E[k_i])^2$: that is the first line. $E[q_i^2]$ is not
# the variance: put $vq_i + mq_i^2$ in its place, multiply out, and see what cancels.
#
# pseudo-code: Mean: the sum over i of mu_i times mu_i. From moments: the sum over i of q2 times k2, minus the
# square of q1 times k1. From means: the sum over i of three products, variance times variance, and each
# variance times the other's squared mean. Last line: put in mu and sigma; one term does not depend on i and is
# counted d times. For the unit scale, put mu to 0 and sigma to 1 and take the root.

# %% [markdown]
# Does it hold? Below are the scores of 100,000 pairs of random vectors (standard normal entries) for the widths 4, 16 and
# 64, raw and divided by `unit_scale(d)`. The last picture shows what the softmax feels: the median size of its Jacobian
# for eight keys, as the width grows. **Predict before you run the cells:** how much wider is the second histogram than the
# first? At which width is hardly anything left of the Jacobian, raw and scaled?
#
# <details><summary>What we found</summary>
#
# Raw, they spread like $\sqrt d$, so each is twice as wide as the one before; divided, they nearly lie on top of each
# other. Without the division the Jacobian collapses as $d$ grows; with it, it stays. Note *median*: near-ties happen at
# every width, and there a softmax still learns, so the mean falls only like $1/\sqrt d$. It is the typical example that
# learns nothing.
#
# </details>

# %% tags=["plot"]
with after("q1_8", what="test of your lines"):
    mu, sigma = torch.tensor([0.3, -1.2, 2.0, 0.7], dtype=torch.float64), 0.8
    v = torch.full_like(mu, sigma**2)  # the letters tied, so that all lines speak of the same q and k
    lines = [variance_from_moments(mu, v + mu**2, mu, v + mu**2), variance_from_means(mu, v, mu, v),
             dot_variance(mu, sigma)]
    names = ["variance_from_moments", "variance_from_means", "dot_variance"]
    print("your derivation, with the letters tied:", compare_lines(lines, names))
with after("q1_8"):
    rng = torch.Generator().manual_seed(9)
    widths, edges = [4, 16, 64], torch.linspace(-20, 20, 81)
    dots = {d: (torch.randn(100_000, d, generator=rng) * torch.randn(100_000, d, generator=rng)).sum(-1)
            for d in widths}
    for title, scale, span in (("Raw scores", lambda d: 1, 20), ("Divided by unit_scale(d)", unit_scale, 4)):
        centres = (edges[:-1] + edges[1:]) / 2 * span / 20
        density = {f"d = {d}": torch.histc(dots[d] / scale(d), 80, -span, span) / 100_000 * 40 / span
                   for d in widths}
        plots.curves(
            centres, density, "score", "density", title,
            alt=f"{title}: histograms of the dot product of random vectors of width 4, 16 and 64.",
        )

# %% tags=["plot"]
with after("q1_2", "q1_8"):
    rng, widths = torch.Generator().manual_seed(10), [4**i for i in range(1, 7)]
    raw, scaled = [], []
    for d in widths:
        q, k = torch.randn(200, d, generator=rng), torch.randn(200, 8, d, generator=rng)
        scores = torch.einsum("nd,nsd->ns", q, k)  # [200, 8]
        raw.append(np.median([saturation(z) for z in scores]))
        scaled.append(np.median([saturation(z / unit_scale(d)) for z in scores]))
    plots.curves(
        widths, {"raw": raw, "divided by unit_scale(d)": scaled}, "width d", "median size of the Jacobian",
        "What still gets through a softmax over eight keys", logx=True, logy=True, marks=True,
        alt="With growing width the Jacobian's size collapses for raw scores and is level for scaled ones.",
    )

# %% [markdown] question="q1_17" sources="003/1-a-frob 003/1-a-sharp 003/1-a-conclusion"
# ### How frozen is a sharp softmax?
#
# In @q1_2 you computed the size of the Jacobian, $\|J\|_F$, from all the weights. Often one knows only the largest of
# them, say from a log file: "the top weight is 0.99". How much can still get through?
#
# As the largest weight $a_{\max}$ goes to 1, $\|J\|_F$ goes to 0 in proportion to what is left. A bound in print is
# $n\,(1 - a_{\max})$: true, and useless for long sequences. In fact $n$ has no business in it. There is a
# constant $c$ with
#
# $$\|J\|_F \le c\,(1 - a_{\max}) \qquad\text{for every softmax over any number of scores.}$$ {=bound}
#
# Find the **smallest** such $c$. {=smallest} Write `saturation_bound(largest)`, which returns $c\,(1 - a_{\max})$ {=form} as
# a Python float, {=float} for `largest`, the largest weight $a_{\max}$: a Python number in $(0, 1]$.
#
# Two things have to be seen. That no smaller $c$ will do: look for weights whose $\|J\|_F$ is nearly as large as the
# bound. (Two weights, $a$ and $1 - a$, are a good place to start.) And that yours always does: $J$ has no negative
# eigenvalue, so its Frobenius norm is at most its trace.

# %% question="q1_17" points=3 minutes=12 difficulty=2
def saturation_bound(largest: float) -> float:
    """An upper bound on the Frobenius norm of a softmax's Jacobian, from its largest weight alone, whatever n."""
    # BEGIN SOLUTION
    return 2 * (1 - float(largest))  # |J|_F <= tr J = 1 - sum of a_i^2 <= 1 - largest^2 <= 2 (1 - largest)
    # END SOLUTION


# %% [markdown] help="q1_17"
# symptom: A check finds a softmax above your bound: $c$ is too small. A check says that it is never reached: $c$ is
# too large.
#
# hint: With two weights $J = a(1-a)\begin{pmatrix} 1 & -1 \\ -1 & 1 \end{pmatrix}$. Its norm is $2a(1-a)$; divide by
# $1 - a$ and let $a$ go to 1. For the other side: the trace of $J$ is $\sum_i a_i (1 - a_i) = 1 - \sum_i a_i^2$. Which
# of these squares do you know?
#
# pseudo-code: Return two times what the largest weight leaves to the others, as a float.

# %% [markdown]
# First your bound against softmaxes of all kinds: every dot must lie below the line, and near $a_{\max} = 1$ some come
# close. Then the question that matters in practice: scores with spread $s$, drawn from a normal law, eight of
# them. How large is the largest weight? **Predict before you run the cell:** at spread 16 (what unscaled scores have at
# width 256), in how many of 100 cases does one key take more than 95% of the weight? And at spread 1?
#
# <details><summary>What we found</summary>
#
# At spread 1 about never. At 4, 16, 64 and 256: in 24, 75, 94 and 98 of 100 cases. It becomes *likely* that one key
# takes it all, never certain: two scores may nearly tie at every spread, and equal keys share evenly whatever
# the width. "For large enough $d$ the softmax is one-hot" is printed often, and true only in probability.
#
# </details>

# %% tags=["plot"]
with after("q1_2", "q1_17"):
    rng = torch.Generator().manual_seed(17)
    spreads = 10 ** (2.5 * torch.rand(600, generator=rng, dtype=torch.float64) - 1)
    sizes = torch.randint(2, 40, (600,), generator=rng).tolist()
    drawn = [s * torch.randn(n, generator=rng, dtype=torch.float64) for s, n in zip(spreads, sizes, strict=True)]
    largest, shown = [z.softmax(0).max() for z in drawn], torch.linspace(0.03, 1, 100)
    plots.scatter_with_curve(
        largest, [saturation(z) for z in drawn], shown, {"your bound": [saturation_bound(a) for a in shown.tolist()]},
        "largest weight", "size of the Jacobian", "Below the line", points="random softmaxes",
        alt="Dots under a falling line that ends at zero where the largest weight is one.",
    )
with after("q1_17"):
    spreads = torch.logspace(-1, 3, 33)
    tops = (spreads[:, None, None] * torch.randn(4000, 8, generator=rng)).softmax(-1).amax(-1)  # [33, 4000]
    shown = {f"{part:.0%} of the draws are below": tops.quantile(part, dim=1) for part in (0.1, 0.5, 0.9)}
    plots.curves(
        spreads, shown | {"share above 0.95": (tops > 0.95).float().mean(1)}, "spread of the scores", "largest weight",
        "Eight normal scores: how fast the softmax sharpens", logx=True,
        alt="Four curves over the spread from 0.1 to 1000: three quantiles of the largest weight, and how often it is above 0.95.",
    )

# %% [markdown] question="q1_9" sources="001/1.1-c-attn"
# ### The temperature you need
#
# The scale $1/\sqrt d$ is a starting point. A model that wants to *copy* one value has to make its softmax
# sharp, by larger queries and keys, which is the same as a larger $\beta$. How large? The largest weight is
#
# $$a_{\max}(\beta) = \frac{1}{\sum_j e^{-\beta \Delta_j}}, \qquad \Delta_j = s_{\max} - s_j \ge 0,$$
#
# which starts at $1/n$ for $\beta = 0$ and grows with $\beta$. With $m$ scores tied at the top it stays below $1/m$.
#
# Write `beta_to_focus(scores, p)`: the smallest $\beta \ge 0$ at which the largest weight reaches `p`, as a
# Python float. {=float} `scores` is a tensor `[n]` of finite scores, $n \ge 1$, in any dtype; {=dtypes} `p` is a number,
# $0 < p \le 1$. With $m$ the number of scores equal to the largest: {=even} {=finite} {=never}
#
# | case | answer |
# |---|---|
# | `p` $\le 1/n$ | `0.0`: an even spread is enough (so it is for $n = 1$, always) |
# | $1/n <$ `p` $< 1/m$ | the finite $\beta$ with $a_{\max}(\beta) = p$ |
# | `p` $\ge 1/m$, and `p` $> 1/n$ | `math.inf`: no finite $\beta$ gets there; $1/m$ itself is only a limit |
#
# So for $n > 1$, `p = 1` always gives `inf`; and if *all* scores are tied, the answer is 0 up to `p`
# $= 1/n$ and `inf` above. {=ties} Scores count as tied when they are exactly equal. {=tied-is-equal} Adding a constant to
# all scores must not change the answer, {=shift} and doubling them must halve it. {=doubling}
#
# By hand: for the scores $(1, 0)$ and $p = 0.9$ we need $1 + e^{-\beta} = 1/0.9$, so
# $\beta = \ln 9 = 2.197$. For $(1, 1, 0)$ and $p = 0.45$: $2 + e^{-\beta} = 1/0.45$, so
# $\beta = \ln 4.5 = 1.504$; for $p = 0.5$ it is `inf`. In general there is no closed form, but $a_{\max}$
# is monotone, and a monotone function can be inverted by halving an interval. Find it to six digits or
# better, for `p` up to $1 - 10^{-6}$ (closer to 1 four digits will do). {=digits}

# %% question="q1_9" points=6 minutes=25 difficulty=3 uses=["q1_1"]
def beta_to_focus(scores: Tensor, p: float) -> float:
    """The smallest beta >= 0 at which the largest weight of softargmax(scores, beta) is p: scores [n]."""
    # BEGIN SOLUTION
    s = scores.double()
    gaps = s.max() - s  # [n]
    n, m = len(gaps), int((gaps == 0).sum())
    if p <= 1 / n:
        return 0.0
    if p >= 1 / m:
        return math.inf
    others = gaps[gaps > 0]  # [n - m]
    room = (1 - m * p) / p  # a_max = 1 / (m + sum of e^(-beta * gap)) >= p  <=>  that sum <= room
    low, high = 0.0, 1 / others.min().item()
    while torch.exp(-high * others).sum() > room:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        enough = torch.exp(-middle * others).sum() <= room
        low, high = (low, middle) if enough else (middle, high)
    return high
    # END SOLUTION


# %% [markdown] help="q1_9"
# symptom: Your loop never ends, or returns something like 1e300: `p` is not reachable (a tie at the top, or
# `p = 1`). Your answer is a little off for `p` near 1: $1/p - 1$ loses digits if you compare sums that are
# close to 1; compare the small parts instead.
#
# hint: Deal with the two cases of the table that need no search first. Then find some $\beta$ that is
# enough (try 1, 2, 4, 8, ...), and halve the interval between one that is not enough and one that is, a
# hundred times or so. Everything depends on the gaps to the largest score only.
#
# pseudo-code: Gaps: the largest score minus each score, in float64. n is their number, m the number of
# zeros among them. If p is at most 1/n return 0; if it is at least 1/m return infinity. Low is 0, high is
# 1; while high is not enough, double it. Repeat: if the middle is enough it is the new high, else the new
# low. Return high.

# %% [markdown]
# The largest weight as $\beta$ grows, for scores with a clear winner, with a close second and with a tie at
# the top. The dots are your answers for $p = 0.45$, $0.8$ and $0.99$, where there are any. Then the price
# of focus: the $\beta$ that it takes for a weight of 0.9, against the gap between the winner and seven
# equal rivals. **Predict before you run the cell:** the clear winner is 1.5 ahead, the close second leaves 0.4. How much
# more $\beta$ does it take there for 0.99? And where does the tie have no dot?
#
# <details><summary>What we found</summary>
#
# 3.6 times as much, 11.5 against 3.2: about the ratio of the gaps, 3.75, since the other rivals hardly count. The tie shares
# evenly and stays below 0.5, so it has a dot at 0.45 only. In the second picture $\beta$ is as one over the gap.
#
# </details>

# %% tags=["plot"]
with after("q1_9"):
    cases = {"clear winner": [2.0, 0.5, 0.0, -1.0], "close second": [2.0, 1.6, 0.0, -1.0],
             "tie at the top": [2.0, 2.0, 0.0, -1.0]}
    betas = torch.linspace(0, 13, 200, dtype=torch.float64)
    tops, answers = {}, []
    for name, values in cases.items():
        scores = torch.tensor(values, dtype=torch.float64)
        tops[name] = torch.stack([torch.softmax(beta * scores, -1).max() for beta in betas])
        answers += [(beta_to_focus(scores, p), p) for p in (0.45, 0.8, 0.99)]
    found = [(beta, p) for beta, p in answers if beta < math.inf]
    plots.scatter_with_curve(
        [beta for beta, _ in found], [p for _, p in found], betas, tops, "beta", "largest weight",
        "How much beta buys how much focus", points="your answers",
        alt="Three curves, one for each set of scores: the largest weight over beta from 0 to 13, with dots for your answers.",
    )
    gaps = torch.logspace(-2, 1, 13, dtype=torch.float64)
    needed = [beta_to_focus(torch.tensor([gap] + [0.0] * 7), 0.9) for gap in gaps.tolist()]
    plots.curves(
        gaps, {"p = 0.9, seven rivals": needed}, "gap to the rivals", "beta needed", "The price of focus",
        logx=True, logy=True, marks=True,
        alt="One curve on logarithmic axes: the beta that is needed over gaps from 0.01 to 10.",
    )

# %% [markdown] told="001/1.1-c-attn 001/1.1-c-fc 001/1.1-d-attn 001/1.1-d-fc: asked for a sketch there, shown by number here, and asked in part by the repairs and the focus"
# The two ends of the scale have names. **Hard** attention ($\beta \to \infty$) *copies* the value of the one best key; if
# two tie, their average. **Soft** attention at $\beta = 0$ *averages* all values, and so it does at any $\beta$ if the query is 0
# or all keys are equal. Hard or soft has nothing to do with self or cross: that is only a matter of where queries and
# keys come from. Could a fully connected layer, a matrix on the $m$ values of width $t$ written one below the other, do
# the same? **Write down its blocks** for a copy of value 2 and for the mean, then open.
#
# <details><summary>The two matrices</summary>
#
# A copy: the identity in the block of value 2, zeros elsewhere. The mean: $\tfrac1m$ times the identity in every block.
# In print one finds "weight 1 on the wanted input", which as a block of ones sums up the features, and "all weights equal",
# which does the same for the mean. The difference to attention: the matrix copies a fixed *place*, attention the place
# whose key fits.
#
# </details>

# %% tags=["plot"]
values = torch.randn(4, 3, generator=torch.Generator().manual_seed(15))  # m = 4 values of width t = 3
one_hot, even = torch.eye(4)[2], torch.full((4,), 0.25)
for name, weights in (("copy of value 2", one_hot), ("mean", even)):
    blocks = torch.kron(weights, torch.eye(3))  # [3, 12]: a block for each value
    by_layer, of_ones = blocks @ values.flatten(), torch.kron(weights, torch.ones(3, 3)) @ values.flatten()
    print(f"{name}: attention {(weights @ values).numpy().round(2)}, blocks of identities "
          f"{by_layer.numpy().round(2)}, blocks of ones {of_ones.numpy().round(2)}")

# %% [markdown]
# ## Part IV. Moving the pieces
#
# We know how attention works when it is left alone. Now push it a little and see what moves: one key
# (@q1_10), the order of all tokens (@q1_11), and finally the weight matrices themselves (@q1_12).

# %% [markdown] question="q1_10" sources="001/1.1-e 001/1.1-f"
# ### One key moves
#
# Take a single query $q$, keys $k_1, \dots, k_S$ (the rows of $K$) and values $v_1, \dots, v_S$ (the rows
# of $V$). The output is $h = \sum_i a_i v_i$ with $a = \mathrm{softmax}(s)$ and the scores
# $s = \beta\, K q$. How does $h$ change if key $j$ moves a little? The key acts through its own score
# $s_j = \beta\, q \cdot k_j$ alone, and the score through the Jacobian of @q1_2. Put the two together, and
# what comes out is short enough to remember: a derivative of the shape `[Dv, D]`, whose entry $(a, b)$ is
# $\partial h_a / \partial k_{j,b}$. It moves the output on the straight line *through* $h$ and $v_j$: towards $v_j$ when
# the score rises, away from it when the score falls, and nowhere else.
#
# And if key $j$ is not moved but *stretched*, $k_j \to \alpha\, k_j$ with $\alpha \to \infty$? "A longer
# key gets more weight" is a popular answer, and it is wrong half of the time: its score is multiplied by
# $\alpha$, and where that leads depends on the sign of $q \cdot k_j$. There are three cases, and you say
# what happens in each.
#
# Write, for `q` `[D]`, `K` `[S, D]`, `V` `[S, Dv]`, an integer `j` with $0 \le j < S$ (counted from 0) and
# a number `beta` $\ge 0$ (in the limit `beta` $> 0$; there is no other scale: the scores are `beta` times
# the dot products):
#
# - `key_jacobian(q, K, V, j, beta)`: the derivative of $h$ by key $j$, `[Dv, D]`. The closed form is one
#   line; find it; {=jacobian} {=beta}
# - `elongated_limit(q, K, V, j, beta)`: the limit `[Dv]` of the output as key $j$ is stretched without end,
#   its value $v_j$ staying as it is. The three cases are $q \cdot k_j > 0$, $< 0$ and exactly $= 0$. {=limit} (Good to
#   have: with a single key, $S = 1$, its weight is 1 whatever the score, so the output is $v_j$ in all cases.)
#
# Both keep the inputs' dtype, {=dtype} and change none of them. {=in-place}
#
# To check yourself, with all widths 1 and $\beta = 1$: the query 1, the keys $0$ and $\ln 3$ and the values $0$
# and $4$ give the weights $1/4$ and $3/4$ and the output 3. Its derivative by key 0 is $-0.75$, by key 1 it is
# $0.75$. Stretching key 1 leads to 4; stretching key 0, which has length 0, changes nothing. For the query
# $-1$ stretching key 1 leads to 0.

# %% question="q1_10" points=6 minutes=25 difficulty=3 uses=["q1_1"]
def key_jacobian(q: Tensor, K: Tensor, V: Tensor, j: int, beta: float) -> Tensor:
    """The derivative of one query's output by key j: q [D], K [S, D], V [S, Dv] -> [Dv, D]."""
    # BEGIN SOLUTION
    a = softargmax(K @ q, beta)  # [S]
    h = a @ V  # [Dv]
    return beta * a[j] * torch.outer(V[j] - h, q)  # [Dv, D]
    # END SOLUTION


def elongated_limit(q: Tensor, K: Tensor, V: Tensor, j: int, beta: float) -> Tensor:
    """The output of one query as key j is stretched without end: q [D], K [S, D], V [S, Dv] -> [Dv]."""
    # BEGIN SOLUTION
    scores = K @ q  # [S]
    if scores[j] > 0 or len(K) == 1:
        return V[j].clone()  # all the weight goes to key j
    if scores[j] < 0:
        scores = torch.where(torch.arange(len(K), device=K.device) == j, -math.inf, scores)  # key j drops out
    return softargmax(scores, beta) @ V  # [Dv]
    # END SOLUTION


# %% [markdown] help="q1_10"
# symptom: The Jacobian has the shape `[D, Dv]`: swap the two vectors of the outer product. It is off by a
# constant factor: `beta` is missing. It does not vanish when all values are equal, although the output
# cannot move then: you have $v_j$ where it should be $v_j - h$. The limit is wrong for half of all queries:
# look at the sign.
#
# hint: By the chain rule,
# $\partial h / \partial k_j = \sum_i v_i\, (\partial a_i / \partial s_j)\, (\partial s_j / \partial k_j)$,
# and the last factor is $\beta q^\top$. Put in $\partial a_i / \partial s_j = a_i(\delta_{ij} - a_j)$ and
# sum over $i$: the first part leaves $a_j v_j$, the second $a_j$ times the whole output. For the limit ask
# where the score of key $j$ goes: to $+\infty$, to $-\infty$, or nowhere?
#
# pseudo-code: Jacobian: weights a, output h; beta times a_j times the outer product of (v_j minus h) with
# q. Limit: if there is one key, or the dot product of q and k_j is positive, v_j. If it is negative, the
# attention output over the other keys alone. If it is zero, the output as it is.

# %% [markdown]
# Four keys in the plane, three queries, and key 0 stretched from its own length to sixteen times that.
# First its weight, then the distance between the output and *your* limit, which should go to zero in all three cases.
# Last, two tests of your Jacobian: move the key a little, and compare; and shake it with noise of standard deviation
# $\epsilon$, twenty thousand times. To first order the output is then shaken along $v_j - h$ only, with the covariance
# $\epsilon^2 J J^\top$, and its mean stays where it was up to order $\epsilon^2$. **Predict before you run the cell:** which
# of the three queries is at its limit from the start, and do the other two come near like one over the stretch, or faster?
#
# <details><summary>What we found</summary>
#
# The one with $q \cdot k = 0$ has nowhere to go. The other two fall along straight lines on a logarithmic axis, that is
# exponentially, and equally fast in the end, since $|q \cdot k| = 0.8$ for both.
#
# </details>

# %% tags=["plot"]
with after("q1_10"):
    rng = torch.Generator().manual_seed(11)
    K, V = (torch.randn(4, n, generator=rng, dtype=torch.float64) for n in (2, 3))
    K[0] = torch.tensor([1.0, 0.5])
    cases = {"q . k > 0": [0.6, 0.4], "q . k = 0": [-0.5, 1.0], "q . k < 0": [-0.6, -0.4]}
    stretches = torch.linspace(1, 16, 61, dtype=torch.float64)
    weight, distance = {}, {}
    for name, values in cases.items():
        q = torch.tensor(values, dtype=torch.float64)
        stretched = K.expand(61, 4, 2).clone()  # [61, S, D]
        stretched[:, 0] *= stretches[:, None]
        a = torch.softmax(stretched @ q, -1)  # [61, S]
        weight[name] = a[:, 0]
        distance[name] = (a @ V - elongated_limit(q, K, V, 0, 1.0)).norm(dim=-1).clamp(min=1e-12)
    plots.curves(stretches, weight, "stretch", "weight of key 0", "A longer key",
                 alt="Three curves, one for each query: the weight of key 0 over a stretch from 1 to 16.")
    plots.curves(stretches, distance, "stretch", "distance to your limit", "Does it get there?", logy=True,
                 alt="Three curves on a logarithmic axis: the distance between output and limit over the stretch.")
    step = torch.zeros_like(K)
    step[0] = torch.tensor([1e-4, -2e-4])
    moved = torch.softmax((K + step) @ q, -1) @ V - torch.softmax(K @ q, -1) @ V
    predicted = key_jacobian(q, K, V, 0, 1.0) @ step[0]
    print(f"moved {moved.norm():.6e}, off the prediction by {(moved - predicted).norm():.1e}")
    noise = 0.02 * torch.randn(20_000, 2, generator=rng, dtype=torch.float64)
    shaken = K.expand(20_000, 4, 2).clone()
    shaken[:, 0] += noise
    outputs = torch.softmax(shaken @ q, -1) @ V  # [20000, 3]
    J = key_jacobian(q, K, V, 0, 1.0)
    print(f"covariance under noise: measured {outputs.T.cov().norm():.2e}, predicted {(0.02**2 * J @ J.T).norm():.2e}; "
          f"the mean moved by {(outputs.mean(0) - torch.softmax(K @ q, -1) @ V).norm():.0e}")


# %% [markdown] question="q1_11" sources="004/12.3"
# ### The tokens trade places
#
# In **self-attention** queries, keys and values all come from the same tokens, the rows of $X$:
#
# $$\mathrm{Sa}(X) = \mathrm{softmax}\!\left(\frac{X W_q\, (X W_k)^\top}{\sqrt D}\right) X W_v ,$$
#
# the softmax over the keys, that is over each row. Let $P$ be a permutation matrix: one 1 in every row and
# column, zeros elsewhere, so that $PX$ has the rows of $X$ in another order. The theorem:
#
# $$\mathrm{Sa}(PX) = P\,\mathrm{Sa}(X).$$
#
# Shuffle the tokens, and the outputs are shuffled in the same way and otherwise the same. Self-attention
# has no idea of order: to it, a sentence is a bag of words. (That is why Transformers need positions, the
# subject of homework 3.)
#
# The proof takes two facts: $P^\top P = I$, and a softmax over rows does not care about the order of rows
# and columns, $\mathrm{softmax}(P A P^\top) = P\,\mathrm{softmax}(A)\,P^\top$. There is a printed proof
# that cancels $P$ against $P^\top$ *inside* the softmax, where nothing cancels. Watch that step in yours.
#
# Write the proof, line by line, each line in **letters of its own**. Below, $S$ stands for scores (the scale
# is already in them), $A$ for weights, $V$ for values: {=shuffled} {=scores} {=weights} {=output}
#
# | function | the line |
# |---|---|
# | `line_shuffled(X, P, Wq, Wk, Wv)` | $\mathrm{Sa}(PX)$, from its definition |
# | `line_scores(S, V, P)` | $\mathrm{softmax}(P S P^\top)\, P V$ |
# | `line_weights(A, V, P)` | $P A P^\top\, P V$ |
# | `line_output(A, V, P)` | $P A V$, which is $P\,\mathrm{Sa}(X)$ |
#
# `X`, `V` are `[N, D]`; `P`, `S`, `A` are `[N, N]`; the `W`s are `[D, D]`. Every line is a matrix `[N, D]` in the
# inputs' dtype, {=dtype} and every softmax runs over the last axis. {=softmax-axis} If $P$ is a permutation matrix, $S = QK^\top / \sqrt D$ with
# $Q = XW_q$, $K = XW_k$, $V = XW_v$, and $A = \mathrm{softmax}(S)$, all four are equal: that is the proof. {=agree}
# Evaluate each line **as it stands**, for *any* numbers in `S`, `A` and `V` and *any* square matrix `P`. {=any-matrix} There
# the lines differ, so none can stand for another, and you can see which step needs what.

# %% question="q1_11" points=6 minutes=20 difficulty=2 uses=["q1_1", "q1_7"]
def line_shuffled(X: Tensor, P: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor) -> Tensor:
    """Sa(PX) from its definition: X [N, D], P [N, N], W* [D, D] -> [N, D]."""
    # BEGIN SOLUTION
    Y = P @ X  # [N, D]
    return softargmax((Y @ Wq) @ (Y @ Wk).T / math.sqrt(Y.shape[-1])) @ (Y @ Wv)
    # END SOLUTION


def line_scores(S: Tensor, V: Tensor, P: Tensor) -> Tensor:
    """softmax(P S P^T) P V: scores S [N, N], values V [N, D], P [N, N] -> [N, D]."""
    # BEGIN SOLUTION
    return softargmax(P @ S @ P.T) @ (P @ V)  # P X Wq = P Q, and (P K)^T = K^T P^T
    # END SOLUTION


def line_weights(A: Tensor, V: Tensor, P: Tensor) -> Tensor:
    """P A P^T P V: weights A [N, N], values V [N, D], P [N, N] -> [N, D]."""
    # BEGIN SOLUTION
    return (P @ A @ P.T) @ (P @ V)  # softmax over rows commutes with a shuffle of rows and columns
    # END SOLUTION


def line_output(A: Tensor, V: Tensor, P: Tensor) -> Tensor:
    """P A V: weights A [N, N], values V [N, D], P [N, N] -> [N, D]."""
    # BEGIN SOLUTION
    return P @ (A @ V)  # P^T P = I: this is P Sa(X)
    # END SOLUTION


# %% [markdown] help="q1_11"
# symptom: All lines agree for a permutation, and a check with another `P` fails: you simplified a line with a
# fact that belongs to the next step. `line_shuffled` differs from the rest: you may have put `P` on the wrong side
# (tokens are *rows*, so it stands on the left), or scaled by something other than the root of `D`.
#
# hint: Write $Q = XW_q$, $K = XW_k$, $V = XW_v$. Replacing $X$ by $PX$ replaces them by $PQ$, $PK$, $PV$.
# The scores become $PQK^\top P^\top$. Pull $P$ and $P^\top$ out of the softmax, and see what $P^\top$ meets
# there. In code nothing is pulled or cancelled: each function is its formula.
#
# pseudo-code: Shuffled: the definition with PX in place of X. Scores: softmax over the last axis of P times S
# times P transposed, times P times V. Weights: the same without a softmax, with A for S. Output: P times A
# times V.

# %% [markdown]
# Seen on an example: seven tokens of width five. With a shuffle for $P$ your four lines agree. With a matrix
# that *averages* neighbours they do not, and the table says which steps break. The first needs nothing: it is how
# matrices multiply. Which property of a permutation does each of the others use?

# %% tags=["plot"]
with after("q1_11"):
    rng = torch.Generator().manual_seed(12)
    X = torch.randn(7, 5, generator=rng, dtype=torch.float64)
    Ws = [torch.randn(5, 5, generator=rng, dtype=torch.float64) / math.sqrt(5) for _ in range(3)]
    Q, K, V = (X @ W for W in Ws)  # [7, 5]
    S = Q @ K.T / math.sqrt(5)  # [7, 7]
    A = S.softmax(-1)
    shuffle = torch.eye(7, dtype=torch.float64)[[4, 0, 6, 2, 1, 5, 3]]
    average = (torch.eye(7, dtype=torch.float64) + torch.eye(7, dtype=torch.float64).roll(1, 0)) / 2
    for name, P in (("a shuffle", shuffle), ("an average of neighbours", average)):
        lines = [line_shuffled(X, P, *Ws), line_scores(S, V, P), line_weights(A, V, P), line_output(A, V, P)]
        steps = [f"{(a - b).abs().max().item():.1e}" for a, b in zip(lines, lines[1:], strict=False)]
        print(f"P is {name:25} largest difference of each step: {', '.join(steps)}")
    P = shuffle
    panels = {"Sa(X)": A @ V, "Sa(PX), your first line": line_shuffled(X, P, *Ws),
              "P Sa(X), your last": line_output(A, V, P)}
    plots.heatmaps(
        panels, xlabel="feature", ylabel="token", vmin=None,
        alt="Three matrices: the output for the old order, then twice the same with its rows shuffled.",
    )

# %% [markdown] question="q1_12" sources="001/1.3-c 001/1.3-d 001/1.3-e"
# ### Attention as other layers
#
# If self-attention does not know places, we tell it: give every token a one-hot vector of its position. The
# layer of this question sees $Z = [X, I_n]$, the content (width $d$) followed by the positions (width $n$),
# and computes, for heads $h = 0, \dots, H - 1$,
#
# $$\mathrm{head}_h = \mathrm{softmax}\!\left(\frac{Z W_q^h\, (Z W_k^h)^\top}{\sqrt A}\right) Z W_v^h,
# \qquad \mathrm{out} = [\mathrm{head}_0, \dots, \mathrm{head}_{H-1}]\; W_o .$$
#
# $A$ is the width of a head's queries and keys, $C$ that of its values. In code (it is
# `course_utils.hw1.position_layer.position_layer`; the heads are concatenated along the features, head 0 first):
#
# ```python
# Z = torch.cat([X, torch.eye(n)], dim=-1)                         # [n, d + n]
# scores = (Z @ Wq) @ (Z @ Wk).mT / math.sqrt(A)                   # [H, n, n]
# heads = scores.softmax(-1) @ (Z @ Wv)                            # [H, n, C]
# out = heads.transpose(0, 1).flatten(1) @ Wo                      # [n, d_out]
# ```

# %% [markdown]
# No training here: you choose the weights. A large score at one place and small ones elsewhere makes the
# softmax pick that place, and since $Z$ contains the positions, $W_q$ and $W_k$ can pick by position
# whatever the content is. Each function returns a dict with the keys `"Wq"`, `"Wk"` (both `[H, d + n, A]`),
# `"Wv"` (`[H, d + n, C]`) and `"Wo"` (`[H * C, d_out]`); $H$, $A$ and $C$ are yours to choose, and weights
# are cast to `X`'s dtype (float32 or float64) before use; entries with the precision of float32 will do. {=cast} They
# must work for **every** content `X` `[n, d]`: {=every-content}
#
# - `identity_layer(n, d)`: the output is `X`; {=identity}
# - `permutation_layer(perm, d)`: output $i$ is input `perm[i]`; `perm` is a list of the numbers
#   $0, \dots, n - 1$ in some order; {=permutation}
# - `pointwise_layer(W, n)`: output $i$ is $W x_i$, `W` `[d_out, d_in]`: the same linear map at each place
#   (a convolution of width 1); {=pointwise}
# - `convolution_layer(kernel, n)`: a circular convolution of odd width $K$. `kernel` is `[d_out, d_in, K]`
#   as in `nn.Conv1d`, and output $i$ is $\sum_{t=0}^{K-1}$ `kernel[:, :, t]`
#   $x_{(i + t - \lfloor K/2 \rfloor) \bmod n}$: tap $t$ reads the place $t - \lfloor K/2 \rfloor$ to the
#   right, round the corner where need be (several times round, if $K > n$). {=convolution} {=wraps} No flip. How many
#   heads does it need?
#
# (Cordonnier 2020 shows that attention layers can express any convolution in this way, and that trained
# ones sometimes do.) Make the softmax sharp enough, for every $n$ and for contents of any ordinary size {=sharp}:
# after the division by $\sqrt A$, a lead of 100 for the chosen place leaves the others
# $e^{-100} \approx 4 \cdot 10^{-44}$.

# %% question="q1_12" points=6 minutes=35 difficulty=4
def identity_layer(n: int, d: int) -> dict[str, Tensor]:
    """Weights that make the layer return its content: n places of width d -> dict of Wq, Wk, Wv, Wo."""
    # BEGIN SOLUTION
    return permutation_layer(list(range(n)), d)
    # END SOLUTION


def permutation_layer(perm: list[int], d: int) -> dict[str, Tensor]:
    """Weights with which output i is input perm[i]: places of width d -> dict of Wq, Wk, Wv, Wo."""
    # BEGIN SOLUTION
    n = len(perm)
    no_content = torch.zeros(d, n)  # content has no say in where to look
    Wq = torch.cat([no_content, 100 * math.sqrt(n) * torch.eye(n)[perm]])  # [d + n, n]: i asks for perm[i]
    Wk = torch.cat([no_content, torch.eye(n)])  # [d + n, n]: j answers to j
    Wv = torch.cat([torch.eye(d), torch.zeros(n, d)])  # [d + n, d]: hand over the content, drop the position
    return {"Wq": Wq[None], "Wk": Wk[None], "Wv": Wv[None], "Wo": torch.eye(d)}
    # END SOLUTION


def pointwise_layer(W: Tensor, n: int) -> dict[str, Tensor]:
    """Weights with which output i is W x_i: W [d_out, d_in], n places -> dict of Wq, Wk, Wv, Wo."""
    # BEGIN SOLUTION
    return identity_layer(n, W.shape[1]) | {"Wo": W.T}
    # END SOLUTION


def convolution_layer(kernel: Tensor, n: int) -> dict[str, Tensor]:
    """Weights of a circular convolution: kernel [d_out, d_in, K], n places -> dict of Wq, Wk, Wv, Wo."""
    # BEGIN SOLUTION
    _, d_in, K = kernel.shape
    shifts = [[(i + t - K // 2) % n for i in range(n)] for t in range(K)]  # head t looks t - K // 2 places on
    heads = [permutation_layer(shift, d_in) for shift in shifts]
    layer = {name: torch.cat([head[name] for head in heads]) for name in ("Wq", "Wk", "Wv")}  # [K, ...]
    return layer | {"Wo": kernel.permute(2, 1, 0).flatten(0, 1)}  # [K * d_in, d_out]: tap t behind head t
    # END SOLUTION


# %% [markdown] help="q1_12"
# symptom: The output is a blur of all tokens: the softmax is not sharp (think of the division by the root
# of $A$). It works for one `X` and not for another: content reaches the scores. The permutation is right
# for some `perm` and inverted for others: you have swapped the parts of query and key. The convolution is
# mirrored: the shift has the wrong sign.
#
# hint: Choose $A = n$, let the content rows of $W_q$ and $W_k$ be zero, and let the position rows of $W_k$
# be the identity. Then the scores of query $i$ are row $i$ of $W_q$'s position part: put one large number
# there, where should it stand? One head that picks **one** place per query is one tap, so $K$ heads make $K$ taps,
# whatever they are.
#
# pseudo-code: Permutation: one head; query of place i is a large number at coordinate perm[i], key of place
# j is a 1 at coordinate j; values take the content and drop the position; output is the identity. Identity:
# the permutation that does nothing. Pointwise: the identity with W transposed in Wo. Convolution: K
# permutation heads, head t shifting by t minus K // 2; Wo is the taps, each transposed, one below the other
# in the order of the heads.

# %% [markdown]
# Your layer as a convolution of width five. First, where each head looks, whatever the content. Then a
# signal and what the layer makes of it with a kernel that smooths and one that finds edges; the dots are
# `F.conv1d` with circular padding. **Predict before you open:** how many heads does a kernel of width $K$ need at least?
# Could one head do the smoothing? And the edges?
#
# <details><summary>So how many heads does it need?</summary>
#
# $K$ always suffice, one for each tap. Some kernels need fewer. One head mixes the places with weights that are not
# negative and sum to one, and passes the mixture through one matrix, so it reaches the kernels whose taps are one
# matrix times such weights: the smoothing kernel is one of them. The edges have taps of *both* signs, which one matrix
# times positive weights cannot give; two heads can, one for the positive taps and one for the negative. (All taps
# negative would be no trouble: the matrix may have any sign.) In general there are at least as many heads as there are
# linearly independent taps, and for most kernels with many channels that is $K$. Attention buys its freedom to look
# anywhere with heads; a convolution gets its neighbours for free, but is stuck with them.
#
# </details>

# %% tags=["plot"]
with after("q1_12"):
    n, taps = 48, {"smooth": [0.1, 0.2, 0.4, 0.2, 0.1], "edges": [-0.5, -1.0, 0.0, 1.0, 0.5]}
    noise = torch.randn(n, 1, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    signal = (torch.arange(n) % 24 < 12).double()[:, None] + 0.1 * noise  # [n, 1]: two boxes
    small = convolution_layer(torch.tensor([[taps["smooth"]]], dtype=torch.float64), 9)
    places = small["Wq"][:, 1:] @ small["Wk"][:, 1:].mT / math.sqrt(small["Wq"].shape[-1])  # [H, 9, 9]
    plots.heatmaps({f"head {h}": w for h, w in enumerate(places.softmax(-1))}, range(9), range(9),
                   xlabel="key", ylabel="query", alt="The weights of each head, one matrix per head.")
    by_layer, by_conv = {"signal": signal[:, 0]}, []
    for name, values in taps.items():
        kernel = torch.tensor(values, dtype=torch.float64)[None, None]  # [1, 1, 5]
        by_layer[name] = position_layer(signal, convolution_layer(kernel, n))[:, 0]
        by_conv.append(F.conv1d(F.pad(signal.T[None], (2, 2), mode="circular"), kernel)[0, 0])
    plots.scatter_with_curve(
        torch.arange(n).repeat(2), torch.cat(by_conv), torch.arange(n), by_layer, "place", "value",
        "Attention that is a convolution", points="F.conv1d",
        alt="A noisy box signal, smoothed and with its edges found by the attention layer; dots lie on both.",
    )

# %% [markdown]
# ## Part V. Reading with a pencil
#
# Printed mathematics is often slightly wrong. The remedy is cheap: put numbers into every line and see
# which one breaks. You have done it with your own lines in @q1_8 and @q1_11. Now do it to somebody else's.

# %% [markdown] question="q1_13" sources="000/0.1-b-i 000/0.1-b-iv 001/1.1-c-fc 001/1.1-f 004/12.3 004/12.4-conclusion"
# ### Spot the error
#
# Six short derivations as you may find them in lecture notes, in solutions and on slides. Some are right. In each
# all lines claim to be the same thing; the **first line** says what is asked for, and is true. Every line has a
# name. The letters at the top are the arguments of every line.
#
# **`"variance"`** of `mu` `[d]` and `sigma`: the variance of $q \cdot k$, for independent
# $q, k \sim N(\mu, \sigma^2 I)$, from $(q \cdot k)^2 = \mathrm{Tr}(q q^\top k k^\top)$ and
# $E[q q^\top] = \mu\mu^\top + \sigma^2 I$.
#
# | line | |
# |---|---|
# | `moments` | $\mathrm{Tr}\big(E[q q^\top]\,E[k k^\top]\big) - (\mu^\top\mu)^2$ |
# | `expanded` | $\mathrm{Tr}(\mu\mu^\top\mu\mu^\top) + 2\sigma^2\,\mathrm{Tr}(\mu\mu^\top) + \sigma^4\,\mathrm{Tr}(I) - (\mu^\top\mu)^2$ |
# | `traces` | $(\mu^\top\mu)^2 + 2\sigma^2\,\mu^\top\mu + d\,\sigma^4 - (\mu^\top\mu)^2$ |
# | `closed` | $2d\,\sigma^2\,\mu^\top\mu + d\,\sigma^4$ |
#
# **`"one_query"`** of `mu` `[d]` and `sigma`: a softmax compares the scores of *one* query. How far apart do they
# lie, on average over the queries?
#
# | line | |
# |---|---|
# | `given` | $E\big[\mathrm{Var}(q \cdot k \mid q)\big]$ |
# | `fixed` | hold $q$ fixed, only $k$ varies: $E[\sigma^2\, q^\top q]$ |
# | `closed` | $\sigma^2(\mu^\top\mu + d\,\sigma^2)$ |
#
# **`"copy"`** of `s` `[m]`, with one largest score, and `V` `[m, t]`: what sharp attention hands over.
#
# | line | |
# |---|---|
# | `sharp` | $\lim_{\beta \to \infty} \mathrm{softmax}(\beta s)\, V$ |
# | `selected` | the weights tend to a one-hot vector $e$ with its 1 at the largest score: $e^\top V$ |
# | `pooled` | the largest wins, so this is a max pooling over the $m$ values: $\max_i V_i$, entry by entry |

# %% [markdown]
# **`"longer_key"`** of `q` `[D]`, `K` `[S, D]`, `V` `[S, Dv]`, `j`: key $j$ is stretched, $k_j \to \alpha k_j$.
# Scores are $s = Kq$.
#
# | line | |
# |---|---|
# | `stretched` | the limit of the output for $\alpha \to \infty$ |
# | `ratio` | $\lim\; (r v_j + \sum_{i \ne j} e^{s_i} v_i) / (r + \sum_{i \ne j} e^{s_i})$ with $r = e^{\alpha s_j}$ |
# | `wins` | $r$ outgrows every other term: $v_j$ |
#
# **`"shuffled_tokens"`** of `X` `[N, D]`, a permutation `P` `[N, N]`, `Wq`, `Wk`, `Wv` `[D, D]`: the theorem of
# @q1_11, with $Q = XW_q$, $K = XW_k$, $V = XW_v$.
#
# | line | |
# |---|---|
# | `scores` | $\mathrm{softmax}\big(PQ\,(PK)^\top / \sqrt D\big)\, PV$ |
# | `cancelled` | $\mathrm{softmax}\big(QK^\top / \sqrt D\big)\, PV$, since $P^\top P = I$ |
# | `output` | $P\,\mathrm{softmax}\big(QK^\top / \sqrt D\big)\, V$ |
#
# **`"sensitive"`** of `z` `[n]`, with one largest score $z_m$: how strongly the largest weight $y_m$ of
# $\mathrm{softmax}(z)$ reacts to its own score.
#
# | line | |
# |---|---|
# | `quotient` | $\partial y_m / \partial z_m$ by the quotient rule |
# | `product` | $y_m (1 - y_m)$ |
# | `saturated` | where the score towers, the other weights vanish and drop out: $y_m$. So a saturated softmax is the most sensitive |
#
# The lines stand in `course_utils.hw1.spot_the_error` as functions: `DERIVATIONS["variance"]["closed"](mu, sigma)`
# is a number or a tensor. `draw("variance", rng)` makes random arguments for that derivation; `rng` is a
# `torch.Generator`. Evaluate them wherever you like, and more than once: a false line may hold at *some* arguments.
#
# Write `repairs()`, which takes nothing and returns a dict. {=form} For **each derivation with a false line**, {=each-false}
# and for no other, {=no-other} it maps the derivation's name to a pair `(line, repaired)`: the name of its **first** false
# line, {=first-line} and a function of the derivation's arguments that gives what this line should have been. {=repaired}

# %% question="q1_13" points=5 minutes=25 difficulty=2 uses=["q1_1", "q1_8", "q1_10", "q1_11"]
def repairs() -> dict[str, tuple[str, Callable[..., Tensor | float]]]:
    """For each false derivation, its name: (name of the first false line, function of its arguments that repairs it)."""
    # BEGIN SOLUTION
    def variance(mu: Tensor, sigma: float) -> Tensor:
        return 2 * sigma**2 * (mu @ mu) + len(mu) * sigma**4

    def copied(s: Tensor, V: Tensor) -> Tensor:
        return V[s.argmax()]  # the whole vector of the winner, not the largest entry of each column

    def limit(q: Tensor, K: Tensor, V: Tensor, j: int) -> Tensor:
        return elongated_limit(q, K, V, j, 1.0)  # where q . k_j < 0, r goes to 0

    def shuffled(X: Tensor, P: Tensor, Wq: Tensor, Wk: Tensor, Wv: Tensor) -> Tensor:
        return line_scores((X @ Wq) @ (X @ Wk).T / math.sqrt(X.shape[-1]), X @ Wv, P)

    def reaction(z: Tensor) -> Tensor:
        y = z.softmax(0).sort().values
        return y[-1] * y[:-1].sum()  # what vanishes is a factor, so the product vanishes with it

    return {
        "variance": ("closed", variance),
        "copy": ("pooled", copied),
        "longer_key": ("wins", limit),
        "shuffled_tokens": ("cancelled", shuffled),
        "sensitive": ("saturated", reaction),
    }
    # END SOLUTION


# %% [markdown] help="q1_13"
# symptom: A derivation that you believe to be false agrees with itself wherever you try it: perhaps it is right. One
# that you believe to be right breaks at the next random arguments: one point proves nothing. The last line of a
# derivation is true, and yet a line before it is not: two slips can cancel.
#
# hint: For each derivation print all its lines at three random points and look for the first that departs from the
# first line. Then ask what the step has used. Does it count an entry twice? Does it need the sign of something? Is
# there a factor that was taken for a term?
#
# pseudo-code: For every name: draw arguments a few times; for every line, compare with the first line; the first
# that differs anywhere is false. To repair it, take the line before and do the step again, or call what you wrote
# in an earlier question.

# %% [markdown]
# Your verdicts beside the dice: how far each line lies from the first one, the largest of twenty random draws.

# %% tags=["plot"]
with after("q1_13"):
    found, rng = repairs(), torch.Generator().manual_seed(14)
    for name, lines in DERIVATIONS.items():
        points = [draw(name, rng) for _ in range(20)]
        gaps = [f"{line} {max(departs(name, line, point) for point in points):.0e}" for line in lines]
        print(f"{name:16} {'you blame ' + found[name][0] if name in found else 'you let it stand':22} {', '.join(gaps)}")

# %% [markdown]
# Does it matter? Take the variance. If the printed line were true, the spread of the scores would grow like $d$,
# and not like $\sqrt d$, as soon as the entries have a mean, and dividing by $\sqrt d$ would be the wrong thing to
# do.
#
# <details><summary>And where the six come from</summary>
#
# All six stand in print, or nearly so. `one_query` is right for its own question, and printed as the answer to
# another one, the variance of $q \cdot k$, where half is missing. Note what it says: what the softmax feels is the spread
# across keys, and that needs the same $\sqrt d$. In `shuffled_tokens` the last line is right, so nobody who
# only looks at the theorem finds the slip. And `sensitive` has the conclusion upside down: the reaction is largest
# at a tie, where it is $\tfrac14$, and vanishes as the softmax saturates.
#
# </details>

# %% tags=["plot"]
with after("q1_13"):
    if "variance" in found:
        line, repaired = found["variance"]
        rng, sigma, widths = torch.Generator().manual_seed(14), 0.7, [1, 2, 4, 8, 16, 32, 64]
        measured, printed, mended = [], [], []
        for d in widths:
            mu = torch.linspace(0.5, 1.5, d, dtype=torch.float64)
            q, k = (mu + sigma * torch.randn(20_000, d, generator=rng, dtype=torch.float64) for _ in range(2))
            measured.append((q * k).sum(-1).var())
            printed.append(DERIVATIONS["variance"][line](mu, sigma))
            mended.append(repaired(mu, sigma))
        plots.curves(
            widths, {"measured": measured, f"{line}, as printed": printed, "your repair": mended},
            "width d", "variance of q . k", "One line against the dice", logx=True, logy=True, marks=True, overlap=True,
            alt="Three curves on logarithmic axes over the width: the variance measured, as printed, and by your repair.",
        )

# %% [markdown]
# ## Part VI. In your own words
#
# Two questions without code. A person reads your answers; five good sentences are better than a page. Write
# them in the cell below each question.

# %% [markdown] explain="q1_14" sources="002/1.2-P-scale-4 000/0.1-b-ii" points=3 minutes=8 difficulty=2
# ### In your own words: why divide by the square root of d?
#
# A friend trains a model with attention, leaves out the factor $1/\sqrt{d}$, and finds that it learns well at
# width 4 and hardly at all at width 1024. "I shall divide by $d$, to be safe", they say. Explain to them what goes wrong,
# and what they should do, in about five sentences.
#
# BEGIN SOLUTION
# For queries and keys with independent entries of mean 0 and variance 1, a score $q \cdot k$ is a sum of $d$
# products, each of mean 0 and variance 1; its variance is $d$, so typical scores are of the size $\sqrt d$ (@q1_8).
# At width 1024 that is 32: the largest score leads by many units, and the softmax puts nearly all weight on one
# key. There its Jacobian $\mathrm{diag}(a) - a a^\top$ is nearly zero (@q1_2), so hardly any gradient reaches the
# queries and keys, and the model stays with whatever it picked at random. Division by $\sqrt d$ gives the scores
# variance 1 at every width, so that the softmax starts neither frozen nor flat. Division by $d$ would make their
# spread $1/\sqrt d$: at large widths all weights would be nearly equal, and attention a plain average.
#
# **Rubric.** 1 point: the variance of a score grows like $d$ (its spread like $\sqrt d$). 1 point: large scores
# saturate the softmax, whose gradient then vanishes. 1 point: $\sqrt d$ brings the spread to 1 at every width,
# while $d$ would make it vanish.
# END SOLUTION

# %% [markdown] explain="q1_15" sources="001/1.3-b" points=3 minutes=8 difficulty=3
# ### In your own words: where things stand
#
# @q1_11 proved that self-attention has no idea of order. @q1_12 built a convolution, which is all about order, out
# of self-attention. Is that a contradiction? And is "a Transformer always needs positions" true? Answer both in about six
# sentences, with an example of a task that needs none. (Something to think about on the way: a decoder with a causal mask
# and without positions. Its last token is the last of two layers that each look back. Can it tell the order of the
# tokens before it?)
#
# BEGIN SOLUTION
# There is no contradiction: the theorem speaks of a layer that sees the tokens and nothing else, so that
# shuffling its input shuffles all it knows. In @q1_12 the input is $Z = [X, I_n]$, in which each row says where it
# stands. The layer is still equivariant in $Z$; but if only the content moves, $Z$ becomes $[PX, I_n]$, which is not $PZ$,
# and the output is that of the convolution of the shuffled content, in general no shuffle of the old output. Positions
# are needed where the order matters and nothing else tells it: for sentences, and for the features of an image too. They
# are not needed for sets, such as the points of a cloud or the items in a basket, where an answer that depended on the
# order would be wrong. A causal mask tells order as well: in one layer the last token sees all tokens alike and cannot
# know their order, but each earlier token has seen only those before it, so from the second layer on the states
# differ with the order.
#
# **Rubric.** 1 point: the theorem is about inputs that carry no position (or about shuffling all that the layer
# sees), and in @q1_12 the positions are part of the input. 1 point: positions are needed only where order matters and
# nothing else tells it, with an example of a set. 1 point: a causal mask lets order in, from the second layer on (or: the
# mask is not shuffled with the tokens).
# END SOLUTION

# %% [markdown]
# ## What to read next
#
# You started from a decoder that could not look back, and ended with a layer that looks anywhere, knows
# how sharply, keeps away from padding and the future, and can be a convolution if it must. In **homework
# 2** several of these run side by side as heads, and you will count what they cost.
#
# - Bahdanau, Cho and Bengio (2015), [*Neural machine translation by jointly learning to align and
#   translate*](https://arxiv.org/abs/1409.0473): the paper that let the decoder look back. See its
#   alignment pictures.
# - Luong, Pham and Manning (2015), [*Effective approaches to attention-based neural machine
#   translation*](https://arxiv.org/abs/1508.04025): the scores of @q1_3 and the step of @q1_4.
# - Vaswani and others (2017), [*Attention is all you need*](https://arxiv.org/abs/1706.03762): @q1_7, and a
#   footnote on the variance that became our @q1_8.
# - Nadaraya (1964), *On estimating regression*; Watson (1964), *Smooth regression analysis*: @q1_6, half a
#   century early. Buades, Coll and Morel (2005), *A non-local algorithm for image denoising*: the same on
#   photographs.
# - Cordonnier, Loukas and Jaggi (2020), [*On the relationship between self-attention and convolutional
#   layers*](https://arxiv.org/abs/1911.03584): @q1_12 in two dimensions, with proofs.
# - Sutskever, Vinyals and Le (2014), [*Sequence to sequence learning with neural
#   networks*](https://arxiv.org/abs/1409.3215): the translator without attention that Part I starts from.
# - Prince (2023), [*Understanding Deep Learning*](https://udlbook.github.io/udlbook/), chapter 12: a
#   gentle walk over the same ground, with exercises.
#
# Before you hand in, restart the kernel, run everything from top to bottom, and look at the checks once
# more.

# %%
grader.check_all()
