# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="layer norm and its gradient, sinusoids, encoder and decoder layers"
# # Homework 3: Normalisation, positions, blocks
#
# Attention moves information between tokens. That alone makes no Transformer: stack ten attention layers
# and the signal fades or blows up, the tokens have forgotten their order, and nothing but weighted averages
# has been computed. Four plain parts turn attention into something that can be stacked a hundred times: a
# **norm** that keeps every token at the same size, **positions** that say who stands where, a
# **feed-forward** layer that works on each token alone, and a **residual** road past all of them (a layer adds
# its result to what is there instead of replacing it; other texts say residual or skip connection). This
# notebook builds each part, looks at what it does and does not do, puts them together, and ends in a ward
# where eleven small Transformers refuse to learn.
#
# **When you are done, you will be able to**
#
# - write layer norm and its gradient by hand, and say what they leave out of $x$;
# - tell layer norm from batch norm by what an output depends on, and prove the claim with a Jacobian;
# - prove that layer norm puts every token on a sphere, and say when the proof fails;
# - build sinusoidal positions, and show that a step in time is one fixed rotation;
# - write an encoder and a decoder layer, pre-norm and post-norm, that agree with PyTorch's up to rounding;
# - build a classifier whose answer does not notice padding;
# - find out why a Transformer does not train.
#
# **What you need**: homeworks 1 and 2, or at least their ideas. No GPU, no downloads.

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
# Questions @q3_11 and @q3_12 ask for a few sentences instead of code, and a person reads them.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged
# with ours in its place too, so an error costs its points once, apart from one small check in @q3_7 and one in
# @q3_8: they are clearly named, and try all your own parts together.
#
# Answers @q3_1, @q3_3 (its first function) and @q3_6 to @q3_9 are parts of models, so gradients must flow through
# them: stay in PyTorch there, and do not `detach`.

# %% [markdown]
# ## The convention card
#
# The same in every homework. The rows on layer norm and on blocks are at work in this one.

# %% [markdown] card=true
# The convention card of the course stands here.

# %%
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import Grader, after, plots, seed_everything
from course_utils.hw3.patients import BAR, STEPS, VOCAB, WARD, accuracy, patient, toy_batch, train_patient
from course_utils.instruments.torch_match import decoder_layer_state, encoder_layer_state
from course_utils.notebook.derivations import Chain, Line, Tie, show_chain
from course_utils.notebook.training import fast, progress

plt.rcParams["figure.dpi"] = 100  # for pictures of your own
seed_everything(0)
grader = Grader("hw3_blocks")

# %% [markdown]
# ## What you bring along
#
# From homework 1: `softargmax` and `attention`. From homework 2: `split_heads`, `merge_heads` and
# `MultiHeadAttention`, called as `mha(query, key, value, key_padding_mask=None, causal=False)`, which
# returns the pair `(out, weights)`. The cells below hold our versions. Replace them by your own if you like:
# the rest of the notebook asks for the names and meanings only.

# %% given="hw1_attention q1_1 q1_7"
from hw1_attention import attention, softargmax  # noqa: F401

# %% given="hw2_multihead q2_1 q2_2"
from hw2_multihead import MultiHeadAttention, merge_heads, split_heads  # noqa: F401

# %% [markdown]
# ## Part I. Keeping tokens at size
#
# A deep network multiplies. If each layer makes its input a tenth larger, fifty layers make it 117 times
# larger ($1.1^{50}$), and gradients grow in the same way on the road back. Normalisation stops that by
# decree: whatever comes in, what goes out has mean 0 and variance 1. The question is, the mean and variance
# of *what*? Batch norm (Ioffe 2015) takes them over the examples of a batch, layer norm (Ba 2016) over the
# features of one token. Transformers use the second, and at the end of this part you will be asked why.

# %% [markdown] question="q3_1" sources="001/1.4-e-def 003/3-intro"
# ### Layer norm
#
# Take one token, a vector $x$ of $D$ features. Its mean and its **biased** variance (divided by $D$, not by
# $D - 1$) are
#
# $$\mu = \frac1D \sum_j x_j, \qquad \sigma^2 = \frac1D \sum_j (x_j - \mu)^2,$$
#
# and layer norm returns
#
# $$y_i = \gamma_i\, \hat x_i + \beta_i, \qquad \hat x_i = \frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}} .$$
#
# The gains $\gamma$ and shifts $\beta$, one for each feature, are learned: they give the next layer a say in
# the size it gets. The small $\varepsilon$ stands **inside** the root and keeps a token whose features are
# all equal from dividing by 0: {=eps-inside} then $\hat x = 0$ and $y = \beta$. {=constant-token}
#
# By hand: $x = (1, 2, 3, 6)$ has $\mu = 3$ and $\sigma^2 = (4 + 1 + 0 + 9) / 4 = 3.5$. With
# $\varepsilon = 0$, $\gamma = 1$ and $\beta = 0$ the result is $(-1.069, -0.535, 0, 1.604)$. If you find
# $(-0.926, -0.463, 0, 1.389)$ you divided by $D - 1$. {=biased}
#
# Write `layer_norm(x, gamma, beta, eps=1e-5)` for `x` of shape `[..., D]`, with any number of leading axes
# (also none), {=any-axes} `gamma` and `beta` of shape `[D]`. The result has the shape and dtype of `x`. {=dtype} Mean and
# variance are taken over the last axis **only**: no token may notice another one. {=last-axis-only} Gradients flow, through mean and
# variance too. {=gradients} Here and in @q3_2 and @q3_3, take
# the mean away before you square: {=mean-first} on paper the variance is also the mean of the squares less the square of the
# mean, but far from 0 that is a small difference of two huge numbers, and float32 loses it. PyTorch has this as
# `F.layer_norm`. It may be used, but @q3_2 takes layer norm apart: better write yours from mean and variance, and compare.

# %% question="q3_1" points=6 minutes=10 difficulty=1
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalise over the last axis: x [..., D], gamma [D], beta [D] -> [..., D]."""
    # BEGIN SOLUTION
    mean = x.mean(-1, keepdim=True)  # [..., 1]
    var = x.var(-1, keepdim=True, correction=0)  # [..., 1], divided by D
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta
    # END SOLUTION


# %% [markdown] help="q3_1"
# symptom: Your result is a few per cent too small, and more so for small D: the variance was divided by
# D - 1. A token changes when its neighbours in the batch do: the mean runs over more than the last axis.
# Shapes do not broadcast: the mean has lost its axis.
#
# hint: `x.var(...)` divides by D - 1 unless you tell it otherwise (look for `correction` or `unbiased`), and
# both `mean` and `var` can keep the axis that they reduce.
#
# pseudo-code: Mean over the last axis, axis kept. Mean of the squared distance from it, axis kept. Distance
# divided by the root of (that plus eps). Times gamma, plus beta.

# %% [markdown]
# What does it look like? With three features we can draw it. Subtracting the mean moves a point straight
# onto the plane $x_1 + x_2 + x_3 = 0$; dividing by the standard deviation then slides it along the plane to
# distance $\sqrt 3$ from the origin. Sphere and plane meet in a circle, so layer norm maps all of space onto
# **one circle**: of three numbers a single angle is left. In $D$ dimensions two numbers are lost, the mean
# and the size, and $D - 2$ are left. Everything that a token wants to say must be said by its direction.

# %% tags=["plot"]
with after("q3_1"):
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(150, 3, generator=rng, dtype=torch.float64)
    y = layer_norm(x, torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    plots.sphere(
        {"x": x, "layer_norm(x)": y}, math.sqrt(3), (1, 1, 1), "Three features: a cloud becomes a circle",
        alt="A cloud of points in space, and their images: a circle where the sphere of radius 1.73 meets the "
        "plane on which the three features sum to 0.",
    )

# %% [markdown] question="q3_2" sources="003/3-intro"
# ### The gradient of layer norm, by hand
#
# Autograd would do it. But the formula is short, it explains a good deal, and whoever has derived it once
# can read the fused kernels that run in practice. Given the gradient `dy` of a loss by the output $y$, find
# those by $x$, $\gamma$ and $\beta$.
#
# The two easy ones: each $\gamma_i$ and $\beta_i$ is used by every token, so their gradients are **summed
# over all leading axes**: {=sums}
#
# $$d\gamma_i = \sum_{\text{tokens}} dy_i\, \hat x_i, \qquad d\beta_i = \sum_{\text{tokens}} dy_i .$$
#
# For $dx$ look at one token, and write $g_i = \gamma_i\, dy_i$ for the gradient that arrives at $\hat x_i$,
# and $s = \sqrt{\sigma^2 + \varepsilon}$. A feature $x_j$ acts along three roads:
#
# 1. directly on $\hat x_j$, with the factor $1/s$;
# 2. through $\mu$ on all of them: $\partial \mu / \partial x_j = 1/D$, and $\mu$ stands in every $\hat x_i$ with a minus;
# 3. through $\sigma^2$ on all of them: $\partial \sigma^2 / \partial x_j = 2 (x_j - \mu) / D$, and $s$ divides every $\hat x_i$.
#
# Add the three contributions of $\sum_i g_i\, \hat x_i$, with a pencil, and you have $dx_j$ in one line: $g$, $\hat x$, $s$ and
# two means over the features are all that is left. (The line itself is folded into the help.) {=formula} Before you write code, ask
# your result three questions. What does it sum to over the features? What is its dot product with $x$, for $\varepsilon = 0$? And
# what happens to it when the token is twice as long? The forward pass forgot something, so no gradient can ask for a change of it.
#
# By hand: for $x = (1, 2, 3, 6)$, $\gamma = 1$, $\varepsilon = 0$ and $dy = (1, 0, 0, 0)$,
# $dx = (0.248, -0.210, -0.134, 0.095)$. It sums to 0, and $dx \cdot x = 0$ too.
#
# Write `layer_norm_backward(dy, x, gamma, eps=1e-5)`, which returns the tuple `(dx, dgamma, dbeta)`: `dy`
# and `x` are `[..., D]` with any number of leading axes (also none), `gamma` is `[D]`; `dx` has the shape
# of `x`, the other two are `[D]`. {=shapes} By hand means: no `torch.autograd`, no `.backward()`, no `torch.func`,
# no ready-made backward function, and no finite differences: in `float64` `dx` has all the digits of a formula. {=by-hand} A
# hidden check gives tensors whose numbers cannot be looked at: torch's functions and NumPy's usual ones work on them, and
# lists of Python numbers do not.

# %% question="q3_2" points=12 minutes=35 difficulty=3
def layer_norm_backward(dy: Tensor, x: Tensor, gamma: Tensor, eps: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of layer norm without autograd: dy, x [..., D], gamma [D] -> dx [..., D], dgamma, dbeta [D]."""
    # BEGIN SOLUTION
    centred = x - x.mean(-1, keepdim=True)  # [..., D]
    s = torch.sqrt(centred.square().mean(-1, keepdim=True) + eps)  # [..., 1]
    x_hat = centred / s
    g = gamma * dy  # [..., D]: what arrives at x_hat
    dx = (g - g.mean(-1, keepdim=True) - x_hat * (g * x_hat).mean(-1, keepdim=True)) / s
    D = x.shape[-1]
    return dx, (dy * x_hat).reshape(-1, D).sum(0), dy.reshape(-1, D).sum(0)
    # END SOLUTION


# %% [markdown] help="q3_2"
# symptom: `dx` is right only when all gains are equal: gamma must be multiplied in before the means are
# taken. `dx` does not sum to 0 over the features: the road through the mean is missing. `dx` is not
# orthogonal to `x`: the road through the variance is missing, or lacks x-hat on one of its two places.
# `dgamma` has the shape of `x`: nothing was summed.
#
# hint: The three roads add to
# $dx_j = \frac1s \big( g_j - \frac1D \sum_i g_i - \hat x_j\, \frac1D \sum_i g_i\, \hat x_i \big)$: the two subtracted terms
# are projections, onto $(1, \dots, 1)$ and onto $\hat x$. Begin with $\hat x$ and $s$ as in the forward pass. The formula has
# two means over the last axis, one of $g$ and one of $g \hat x$. To sum over all axes but the last, whatever their number, reshape to
# `[-1, D]` first.
#
# pseudo-code: x_hat and s as in @q3_1. g is gamma times dy. dx is g, minus its mean, minus x_hat times the mean
# of g times x_hat, all divided by s. dgamma is dy times x_hat, and dbeta is dy, both flattened to rows of
# length D and summed over the rows.

# %% [markdown]
# Your gradient against autograd's, and then the third of the questions above: the size of $dx$ for the same $dy$ as the
# token grows. Sketch the curve before you run the cell. What does $\varepsilon$ do at the small end? And where a residual
# stream grows from layer to layer, which layers get the smaller gradients through their norms?

# %% tags=["plot"]
with after("q3_1", "q3_2"):
    rng = torch.Generator().manual_seed(2)
    x, dy = (torch.randn(4, 5, 16, generator=rng, dtype=torch.float64) for _ in range(2))
    gamma, beta = (torch.randn(16, generator=rng, dtype=torch.float64) for _ in range(2))
    leaves = [t.clone().requires_grad_() for t in (x, gamma, beta)]
    layer_norm(*leaves).backward(dy)
    for name, mine, leaf in zip(("dx", "dgamma", "dbeta"), layer_norm_backward(dy, x, gamma), leaves, strict=True):
        print(f"{name:7} largest difference from autograd: {(mine - leaf.grad).abs().max():.1e}")
    factors = torch.logspace(-5, 3, 33, dtype=torch.float64)
    sizes = [layer_norm_backward(dy[0, 0], factor * x[0, 0], gamma)[0].norm() for factor in factors]
    plots.curves(
        factors, {"size of dx": sizes}, "factor on the token", "size of dx", "A long token hears little",
        logx=True, logy=True,
        alt="One curve on logarithmic axes: the size of dx over the factor on the token, from 0.00001 to 1000.",
    )

# %% [markdown]
# <details><summary>What we see</summary>
#
# Below a factor of 0.001 the curve is level: $s$ is the root of $\varepsilon$ there, whatever the token. Beyond 0.01 it
# falls along a line of slope $-1$: twice the token, half the gradient. So late layers, on a long stream, get the smaller ones.
#
# </details>

# %% [markdown] question="q3_3" sources="003/3-a-ln 003/3-a-bn 001/1.4-e-def"
# ### Batch norm, and what depends on what
#
# Batch norm is the same formula with rows and columns exchanged. For `x` of shape `[B, D]`, $B$ examples (rows)
# of $D$ features (columns), it normalises every **column**: mean and biased variance are taken over the $B$
# examples, and feature $j$ has its gain $\gamma_j$ and shift $\beta_j$ as before. {=columns} This is batch norm in
# *training* mode, without running averages. (When it is used later, it takes averages collected in
# training, and an output depends on its own input only.)
#
# By hand: for two rows $(1, 10)$ and $(3, 30)$, with $\varepsilon = 0$, $\gamma = 1$ and $\beta = 0$, the
# columns become $(-1, 1)$ each, so the result is the rows $(-1, -1)$ and $(1, 1)$. A batch of one has nothing to
# compare with: its variance is 0 and $\beta$ comes out. {=batch-of-one} (torch's own `F.batch_norm` refuses to do that in training;
# your function does it.)
#
# Now pick one output entry $y_{bj}$. Which inputs can change it? Sort all entries of $x$ into four kinds:
#
# | name | entries |
# |---|---|
# | `"same"` | $x_{bj}$ itself |
# | `"same row"` | the other entries of row $b$: the same example, another feature |
# | `"same column"` | the other entries of column $j$: another example, the same feature |
# | `"elsewhere"` | all the rest |
#
# Write
#
# - `batch_norm(x, gamma, beta, eps=1e-5)`: training-mode batch norm of `x` `[B, D]`, `gamma` and `beta`
#   `[D]`; the result is `[B, D]`;
# - `depends_on(kind)`: the **set** {=a-set} of those names on which an output entry depends, for `kind` `"layer"`
#   (layer norm of each row) and `"batch"` (batch norm in training mode). An entry counts if changing it can
#   change the output, for some $x$. It is held against the Jacobians of your own two norms and of torch's. {=jacobian}

# %% question="q3_3" points=8 minutes=15 difficulty=2 uses=["q3_1"]
def batch_norm(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Training-mode batch norm, every column over the rows: x [B, D], gamma [D], beta [D] -> [B, D]."""
    # BEGIN SOLUTION
    mean = x.mean(0)  # [D]
    var = x.var(0, correction=0)  # [D], divided by B
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta
    # END SOLUTION


def depends_on(kind: str) -> set[str]:
    """What an output entry depends on, out of "same", "same row", "same column", "elsewhere"."""
    # BEGIN SOLUTION
    return {"same", "same row" if kind == "layer" else "same column"}
    # END SOLUTION


# %% [markdown] help="q3_3"
# symptom: Your batch norm gives `beta` for a batch of one: that is right, there is nothing to compare with.
# It gives NaN there: you divided by B - 1.
#
# hint: Ask the Jacobian, not your memory: `torch.autograd.functional.jacobian` of your two functions on a
# small `x`, and look which entries of row (b, j) are not zero. Layer norm is not elementwise: the mean and
# the variance of a row pull all its features in.
#
# pseudo-code: Batch norm is layer norm with the mean and the variance over axis 0. For the sets: which
# numbers went into the mean that was subtracted from this entry?

# %% [markdown]
# The Jacobian knows. Here is the derivative of one output entry (the one in row 1, column 2) by every input
# entry, in size; what is exactly 0 stays white. Before you run it: which entries are small, and which are exactly 0? So which of the two norms gives an answer that depends on
# who else is in the batch?

# %% tags=["plot"]
with after("q3_1", "q3_3"):
    rng = torch.Generator().manual_seed(3)
    x = torch.randn(4, 6, generator=rng, dtype=torch.float64)
    one, zero = torch.ones(6, dtype=torch.float64), torch.zeros(6, dtype=torch.float64)
    panels = {}
    for kind, norm in (("layer", layer_norm), ("batch", batch_norm)):
        jacobian = torch.autograd.functional.jacobian(lambda x, norm=norm: norm(x, one, zero)[1, 2], x)  # [4, 6]
        panels[f"{kind} norm: {', '.join(sorted(depends_on(kind)))}"] = jacobian.abs()
    plots.heatmaps(
        panels, range(4), range(6), xlabel="feature", ylabel="example", numbers=True, blank_zeros=True,
        alt="Two tables with numbers, for layer norm and batch norm: the derivative of the output in row 1, column 2 by each "
        "of 4 by 6 inputs. What is exactly 0 is white.",
    )

# %% [markdown] question="q3_4" sources="003/3-b"
# ### The sphere, proved
#
# In the picture of @q3_1 all points ended at the same distance from the origin. Let now $\gamma$ and $\beta$
# be two **numbers**, the same for every feature, and $\varepsilon = 0$. Claim: for every $x \in
# \mathbb{R}^d$ that is not constant, the distance of $y$ from the point $(\beta, \dots, \beta)$ depends on
# $\gamma$ and $d$ alone.
#
# By hand: $x = (1, 2, 3, 6)$ and $\gamma = 1$ gave $(-1.069, -0.535, 0, 1.604)$. The squares are
# $1.143 + 0.286 + 0 + 2.571 = 4$, so the distance is 2, and $d = 4$.
#
# You write the proof as three lines, **each in letters of its own**, so that no line can stand for another:
#
# - `radius_from_entries(x, mean, sigma, gamma)`: the definition. The norm of the vector with the entries
#   $\gamma\,(x_i - m) / s$, for `x` `[d]` and *any* numbers `mean` $= m$ and `sigma` $= s > 0$, whether they are
#   those of $x$ or not; {=from-entries}
# - `radius_from_sum(total, sigma, gamma)`: the same, when of the entries nothing is known but `total`, the sum of
#   their squared distances $\sum_i (x_i - m)^2 \ge 0$; again any `total` and any `sigma` $> 0$; {=from-sum}
# - `layer_norm_radius(gamma, d)`: the result, when the mean and the deviation are $x$'s own. `d` is an int $\ge 2$. {=radius}
#
# `gamma` is a number of either sign, and may be 0: a distance is never negative. {=never-negative} All results are
# numbers. {=numbers}
#
# A line must give the next one where the letters are tied: the first the second where
# `total` $= \sum_i (x_i - m)^2$, {=first-step} the second the third where `total` $= d s^2$. {=second-step} (The second tie is
# all there is to the proof: which $m$ and $s$ make it true?) Each line is also tried by itself, at letters that are *not*
# tied. No line may look up more than its letters: `mean` and `sigma` count as they are given. {=letters-count}

# %% question="q3_4" points=8 minutes=20 difficulty=2
def radius_from_entries(x: Tensor, mean: float, sigma: float, gamma: float) -> Tensor | float:
    """The norm of gamma (x - mean) / sigma: x [d], any numbers mean and sigma > 0 -> a number."""
    # BEGIN SOLUTION
    return (gamma * (x - mean) / sigma).square().sum().sqrt()  # beta has cancelled
    # END SOLUTION


def radius_from_sum(total: float, sigma: float, gamma: float) -> float:
    """The same from the sum of the squared distances, total >= 0, and any sigma > 0 -> a number."""
    # BEGIN SOLUTION
    return abs(gamma) / sigma * math.sqrt(total)  # a constant leaves a root by its absolute value
    # END SOLUTION


def layer_norm_radius(gamma: float, d: int) -> float:
    """The norm of y - beta for layer norm with eps = 0 of any x [d] that is not constant."""
    # BEGIN SOLUTION
    return abs(gamma) * math.sqrt(d)  # total = d sigma^2: sigma cancels
    # END SOLUTION


# %% [markdown] help="q3_4"
# symptom: Right for positive gamma, negative for negative: the root of $\gamma^2$ is not $\gamma$. A little
# too small: your variance is the unbiased one, which gives $\sqrt{d - 1}$. A line is right where the letters are
# tied and wrong elsewhere: it computes a mean or a deviation of its own in place of the given one.
#
# hint: $\beta$ is gone when it is subtracted, so every entry is $\gamma (x_i - m) / s$. Square, sum, root. Then ask
# which factors are the same in every term of the sum, and how they leave the root. For the last line: what is
# $\sum_i (x_i - \mu)^2$ in terms of $\sigma^2$?
#
# pseudo-code: Entries: distance from mean, times gamma, over sigma; the root of the sum of squares. Sum: gamma's
# absolute value, over sigma, times the root of the total. Result: put d sigma squared for the total, and cancel.

# %% [markdown]
# Your three lines side by side, where their letters are tied, and then where they are not. A wrong step shows at once.

# %% tags=["plot"]
def _tied_entries(rng: torch.Generator) -> tuple[dict, dict]:
    x = 2 * torch.randn(4, generator=rng, dtype=torch.float64)
    mean, sigma, gamma = 0.7, 1.6, -1.7  # not x's own
    total = (x - mean).square().sum().item()
    return {"x": x, "mean": mean, "sigma": sigma, "gamma": gamma}, {"total": total, "sigma": sigma, "gamma": gamma}


def _tied_sum(rng: torch.Generator) -> tuple[dict, dict]:
    d, sigma = int(torch.randint(2, 50, (1,), generator=rng)), 0.4
    return {"total": d * sigma**2, "sigma": sigma, "gamma": -0.6}, {"gamma": -0.6, "d": d}


with after("q3_4", what="comparison"):
    names = (radius_from_entries, radius_from_sum, layer_norm_radius)
    ties = [Tie("total = sum (x_i - mean)^2", _tied_entries), Tie("total = d sigma^2", _tied_sum)]
    show_chain(Chain([Line(f.__name__, f) for f in names], ties))
    x, gamma = torch.tensor([1.0, 2.0, 3.0, 6.0], dtype=torch.float64), -1.7
    print(f"x = (1, 2, 3, 6), its own mean and deviation: {radius_from_entries(x, 3.0, math.sqrt(3.5), gamma):.4f}, "
          f"and |gamma| sqrt(4) = {layer_norm_radius(gamma, 4):.4f}")
    print(f"with another mean and deviation, 2 and 1: {radius_from_entries(x, 2.0, 1.0, gamma):.4f}, no sphere")

# %% [markdown]
# **When does it fail?** Predict before you run the next cell: what happens to a token whose features hardly differ, when
# $\varepsilon$ is not 0? And to one whose features are all equal? The picture shows the distance, divided by $\sqrt d$, for
# tokens of ever smaller spread ($d = 64$, $\gamma = 1$).

# %% tags=["plot"]
with after("q3_1", "q3_4"):
    x = torch.randn(64, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    x = (x - x.mean()) / x.std(correction=0)  # spread 1
    spreads = torch.logspace(-6, 1, 57, dtype=torch.float64)
    one, zero = torch.ones(64, dtype=torch.float64), torch.zeros(64, dtype=torch.float64)
    ratios = {
        f"eps = {eps:g}": [layer_norm(spread * x, one, zero, eps).norm() / layer_norm_radius(1.0, 64)
                           for spread in spreads]
        for eps in (0.0, 1e-8, 1e-5, 1e-2)
    }
    plots.curves(
        spreads, ratios, "spread of the token", "distance / radius", "Where the sphere ends", logx=True,
        alt="Four curves, one for each eps: distance over radius, for spreads from 0.000001 to 10.",
    )

# %% [markdown] told="003/3-b"
# <details><summary>What we see</summary>
#
# - $\varepsilon > 0$: the second tie becomes `total` $= d\,(s^2 - \varepsilon)$, since $s$ is now the root of
#   $\sigma^2 + \varepsilon$. The distance is $|\gamma| \sqrt d\, \cdot \sigma / \sqrt{\sigma^2 + \varepsilon}$,
#   strictly shorter. For a spread of 1 and $\varepsilon = 10^{-5}$ nobody notices; at $\sigma =
#   \sqrt\varepsilon \approx 0.003$ the token is at 0.707 of its distance, and below that it shrinks to nothing.
# - $x$ constant: then $\sigma = 0$ and, with $\varepsilon = 0$, the first line divides 0 by 0. There is no
#   direction left to go in. (With $\varepsilon > 0$ the output is $\beta$, at distance 0.)
# - The unbiased variance: the second tie becomes `total` $= (d - 1) s^2$, and the radius $|\gamma| \sqrt{d - 1}$.
# - A *different* gain for each feature: $\gamma$ no longer leaves the sum, and the points lie on an ellipsoid.
#
# </details>

# %% [markdown] explain="q3_11" sources="001/1.4-e-def 003/3-a-bn" points=3 minutes=8 difficulty=2
# ### In your own words: why do Transformers normalise tokens, not batches?
#
# A colleague replaces every layer norm of a translation model by batch norm, taken over all tokens of a
# batch, and is puzzled: training is shaky, and sentences are translated differently when they are put into
# another batch. Explain what happened, in training and when the model writes a sentence. Five sentences or so.
#
# BEGIN SOLUTION
# Layer norm computes mean and variance from the features of one token, so a token's output depends on
# nothing but the token itself. Batch norm computes them for each feature over all examples and places in the
# batch, so every output depends on all the other sentences in it, and a different batch gives a different
# translation. Sentences have different lengths: the padding either enters the statistics, which then change
# with the amount of padding, or must be left out, and then their quality changes from batch to batch with
# the number and kind of real tokens, which makes training noisy. When the model writes, there is often one
# sentence and one new token at a time: over one token, training-mode batch norm gives a constant, and running
# averages from training are statistics of other data. In a decoder, statistics over all places also carry
# information from later tokens to earlier ones, which the causal mask was to prevent.
#
# **Rubric.** 1 point: the dependence, token alone against everything in the batch. 1 point: varying lengths
# and padding spoil or shift the batch's statistics. 1 point: generation (batch of one, one token, running
# averages that do not fit, or the leak from later places).
# END SOLUTION

# %% [markdown]
# ## Part II. Who stands where
#
# In homework 1 you proved that self-attention commutes with permutations: shuffle the tokens and the outputs
# are shuffled, nothing more. Norms and feed-forward layers work on each token alone, so they cannot help.
# *The dog bites the man* and *the man bites the dog* are the same bag of words, unless each token is told
# its place. Vaswani (2017) adds a fixed vector to each token, made of sines and cosines.

# %% [markdown] question="q3_5" sources="002/MT-1 002/2.2-embed 001/1.3-b 001/1.5-c"
# ### Sinusoids, and the matrix of a step
#
# Place $t = 0, 1, 2, \dots$ gets a vector of width $d$, in which columns come in pairs. Pair $i$ turns with
# its own frequency $\omega_i$:
#
# $$PE_{t,\,2i} = \sin(\omega_i t), \qquad PE_{t,\,2i+1} = \cos(\omega_i t), \qquad
# \omega_i = 10000^{-2i/d} .$$
#
# Think of $d/2$ clocks with one hand each. The first turns once in $2\pi \approx 6.3$ places; the last one, in
# a wide table, needs nearly 63,000. Any single clock is ambiguous, all together are not. By hand, with $d = 4$: the
# frequencies are $1$ and $0.01$, and place 3 is $(0.141, -0.990, 0.030, 1.000)$.
#
# Why clocks, and not the plain number $t$? Because a step forward is the **same rotation everywhere**. From
# the addition theorems,
#
# $$\begin{pmatrix} \sin \omega(t + o) \\ \cos \omega(t + o) \end{pmatrix} =
# \begin{pmatrix} \cos\omega o & \sin\omega o \\ -\sin\omega o & \cos\omega o \end{pmatrix}
# \begin{pmatrix} \sin\omega t \\ \cos\omega t \end{pmatrix},$$
#
# and the matrix does not contain $t$. So there is a matrix $M$, the same for all places, with
# $PE(t + o) = M\,PE(t)$: a linear layer can look "three to the left" without knowing where it is. (Rotary
# positions, Su 2021, build on exactly this.) And since each pair has length 1, every position vector has
# the same length $\sqrt{d/2}$.
#
# Write
#
# - `sinusoidal_encoding(n, d)`: the table `[n, d]` for places $0$ to $n - 1$, {=from-zero} in torch's default dtype. {=default-dtype} Sine
#   stands in the even columns, cosine in the odd ones (columns count from 0). {=table} For **odd** $d$ the last column
#   is the sine of a pair that lacks its cosine; the formula for $\omega_i$ is the same, with that odd $d$. {=odd-width}
# - `shift_matrix(offset, d)`: the matrix $M$ `[d, d]`, for **even** $d$, with $PE(t + o) = M\,PE(t)$ for every
#   $t$, where $PE(t)$ is a column. {=shift} `offset` is an int and may be 0 or negative. {=negative-offset} Default dtype.
#
# Both are exact up to rounding, so no fitting. {=exact} It is good practice to compute the angles in float64 and to cast
# at the end, since in float32 an angle in the thousands has lost several digits.

# %% question="q3_5" points=11 minutes=25 difficulty=3
def sinusoidal_encoding(n: int, d: int) -> Tensor:
    """Positions 0 .. n - 1 -> [n, d]: sine in even, cosine in odd columns, base 10000."""
    # BEGIN SOLUTION
    omega = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [ceil(d / 2)]
    angles = torch.arange(n, dtype=torch.float64)[:, None] * omega  # [n, ceil(d / 2)]
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # [n, ceil(d / 2), 2]
    return pairs.flatten(1)[:, :d].to(torch.get_default_dtype())  # an odd d drops the last cosine
    # END SOLUTION


def shift_matrix(offset: int, d: int) -> Tensor:
    """M [d, d] with PE(t + offset) = M PE(t) for every t; d is even."""
    # BEGIN SOLUTION
    omega = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)  # [d / 2]
    cos, sin = torch.cos(omega * offset), torch.sin(omega * offset)
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1).reshape(-1, 2, 2)  # [d / 2, 2, 2]
    return torch.block_diag(*blocks).to(torch.get_default_dtype())
    # END SOLUTION


# %% [markdown] help="q3_5"
# symptom: The first pair is right and the others turn too fast or too slowly: the exponent is $2i/d$ with
# $i$ the number of the *pair*, that is, the even column itself over $d$. Odd widths fail: there is one sine
# more than there are cosines. The shift goes backwards: the two sines of the block have changed signs (your
# matrix is the transpose, which is the step back).
#
# hint: Make all angles in one product, places as a column times frequencies as a row. Sines and cosines then
# go into `[:, 0::2]` and `[:, 1::2]`. For the matrix: one 2 by 2 block for each pair, along the diagonal.
#
# pseudo-code: Frequencies: 10000 to the power of minus (0, 2, 4, ...) / d. Angles: place times frequency.
# Even columns: sine; odd columns: cosine of as many angles as there are odd columns. Shift: for each
# frequency the block (cos, sin; -sin, cos) of frequency times offset at rows and columns 2i, 2i + 1.

# %% [markdown]
# First the table for 64 places of width 32: fast clocks on the left, slow ones on the right. Then three shift
# matrices for width 8. A step of 1 turns the first pair by 57 degrees and hardly touches the last; a step of
# $-1$ is the transpose of it, since rotations are undone by their transposes.

# %% tags=["plot"]
with after("q3_5"):
    table = sinusoidal_encoding(64, 32)
    plots.heatmap(table, title="Sinusoidal positions", xlabel="column", ylabel="place", vmin=-1, vmax=1, numbers=False,
                  alt="A table of 64 places by 32 columns: quick stripes in the left columns, slower and slower "
                  "ones to the right, constant at the right edge.")
    plots.heatmaps(
        {f"offset {offset}": shift_matrix(offset, 8) for offset in (1, -1, 10)},
        xlabel="PE(t)", ylabel="PE(t + offset)", vmin=-1, vmax=1,
        alt="Three block-diagonal matrices, each of four 2 by 2 rotations; the second is the transpose of the first.",
    )

# %% [markdown]
# Since a step is a rotation, the dot product of two positions depends on their distance only:
# $PE(t) \cdot PE(t + k) = \sum_i \cos(\omega_i k)$. Here it is for two widths and two starting places, divided
# by its largest value: the curves around $t = 40$ and $t = 80$ are the same. Places that are close look alike,
# places that are far do not. But cosine is even: the dot product alone cannot tell left from right. That
# takes a matrix in between, such as your $M$, and attention has two to offer, $W_q$ and $W_k$.

# %% tags=["plot"]
with after("q3_5"):
    curves, steps = {}, torch.arange(-40, 41)
    for d in (32, 128):
        table = sinusoidal_encoding(121, d)
        for t in (40, 80):
            curves[f"d = {d}, around t = {t}"] = (table[t + steps] @ table[t]) / (d / 2)
    plots.curves(
        steps, curves, "distance k", "PE(t) . PE(t + k), scaled", "Closeness is distance, not place", overlap=True,
        alt="Four curves, two and two on top of each other, with their peak of 1 at distance 0, falling on both "
        "sides with ripples, symmetric to left and right.",
    )
    gap = (sinusoidal_encoding(107, 64)[7:] - sinusoidal_encoding(100, 64) @ shift_matrix(7, 64).T).abs().max()
    print(f"PE(t + 7) against M PE(t), 100 places: largest difference {gap:.1e}")

# %% [markdown]
# ## Part III. Blocks
#
# Now the parts come together. A block has two or three *branches* (self-attention, cross-attention,
# feed-forward), and around each of them a residual road and a norm. It takes `[B, N, D]` and gives
# `[B, N, D]`, so that blocks can be stacked.

# %% [markdown] question="q3_6" sources="001/1.4-d 002/2.2-ffn"
# ### The feed-forward layer
#
# Attention mixes tokens, linearly in the values. It does little with the features of a single token. That is
# the work of the feed-forward layer, and in an encoder it holds most of the weights:
#
# $$\mathrm{ff}(x) = W_2\; \phi(W_1 x + b_1) + b_2, \qquad W_1: [d_{ff}, D], \quad W_2: [D, d_{ff}].$$
#
# The same two matrices are used at **every position**, and no position sees another one. {=position-wise} $\phi$ is either
# the ReLU, $\max(0, z)$, {=relu} or the **exact** GELU, {=exact-gelu} $z\,\Phi(z)$ with the normal distribution function $\Phi$
# (the one with erf; not its approximation by tanh). At $z = -1$ ReLU gives 0 and GELU $-0.159$; at $z = 1$
# they give 1 and $0.841$. Without $\phi$ the two layers would be one linear map with a detour.
#
# Count the weights: $2 D d_{ff} + d_{ff} + D$. With $D = 512$ and $d_{ff} = 2048$, as in the paper of 2017,
# that is 2,099,712 for each layer, twice the 1,050,624 of its attention.
#
# Write the module `FeedForward(d_model, d_ff, activation="gelu", dropout=0.0)`. Its parameters are two
# `nn.Linear` named `fc1` and `fc2`, with biases. {=names} `activation` is `"gelu"` or `"relu"`, written like that; anything else raises a
# `ValueError` when the module is made. {=other-activations} Dropout comes after the activation (and nowhere else: the block adds
# its own). {=dropout} `forward(x)`: `[..., D]` to `[..., D]`. {=formula}

# %% question="q3_6" points=5 minutes=10 difficulty=1
class FeedForward(nn.Module):
    """Two linear layers with an activation between, at each position alone: fc1, fc2."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "gelu", dropout: float = 0.0) -> None:
        """activation is "gelu" (exact) or "relu"; anything else is a ValueError."""
        super().__init__()
        # BEGIN SOLUTION
        if activation not in ("gelu", "relu"):
            raise ValueError(f'activation is "gelu" or "relu", not {activation!r}')
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)
        self.activation = F.gelu if activation == "gelu" else F.relu
        self.dropout = nn.Dropout(dropout)
        # END SOLUTION

    def forward(self, x: Tensor) -> Tensor:
        """x [..., D] -> [..., D]."""
        # BEGIN SOLUTION
        return self.fc2(self.dropout(self.activation(self.fc1(x))))
        # END SOLUTION


# %% [markdown] help="q3_6"
# symptom: Off by less than a thousandth: the GELU is the approximated one. Weights cannot be loaded: the
# layers have other names, or sit inside an `nn.Sequential`. An unknown activation fails only when the
# module is called, or never.
#
# hint: `F.gelu` is exact unless told otherwise. Choose the function in `__init__` and keep it as an
# attribute.
#
# pseudo-code: Init: refuse unknown activations; make fc1 (D to d_ff), fc2 (d_ff to D), a dropout. Forward:
# fc1, activation, dropout, fc2.

# %% [markdown]
# The two activations, and what depends on what: how much output token $i$ moves when input token $j$ does
# (the size of that block of the Jacobian). For the feed-forward layer it is a diagonal: $N$ small networks
# side by side, with shared weights. For attention it is a full table.

# %% tags=["plot"]
z = torch.linspace(-4, 4, 161)
plots.curves(
    z, {"GELU": F.gelu(z), "ReLU": F.relu(z)}, "z", "value", "Two activations",
    alt="GELU follows ReLU at a distance: it dips to -0.17 near z = -0.75 and joins ReLU beyond 3 on both sides.",
)


def token_influence(layer, x: Tensor) -> Tensor:
    """How much each output token depends on each input token: x [N, D] -> [N, N] (rows: outputs)."""
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x[None])[0], x)  # [N, D, N, D]
    return jacobian.square().sum((1, 3)).sqrt()


with after("q3_6"):
    seed_everything(0)
    ff, mha = FeedForward(16, 32).eval(), MultiHeadAttention(16, 4).eval()
    x = torch.randn(7, 16)
    panels = {"feed-forward": token_influence(ff, x), "attention": token_influence(lambda x: mha(x, x, x)[0], x)}
    plots.heatmaps(
        panels, range(7), range(7), xlabel="input token", ylabel="output token",
        alt="Influence of input on output tokens. Feed-forward: only the diagonal. Attention: every entry.",
    )

# %% [markdown] question="q3_7" sources="001/1.4-e-where 003/0-figure 003/3-intro 004/12.2"
# ### The encoder layer
#
# Two branches, each on a residual road. There are two customs for where the norm goes:
#
# $$\text{pre-norm:}\quad x \leftarrow x + \mathrm{branch}(\mathrm{norm}(x)), \qquad\qquad
# \text{post-norm:}\quad x \leftarrow \mathrm{norm}(x + \mathrm{branch}(x)).$$
#
# Post-norm is the Transformer of 2017, pre-norm is what most models use today, and the picture below shows
# why. In pre-norm the road itself has no obstacle: with branches that give 0 the layer is the identity. {=residual} In
# post-norm with such branches it is `norm2(norm1(x))`. The sum needs two things of one size, and *that* is why a block's
# output is as wide as its input. Attention alone would not ask for it (its values may have any width), nor would heads. To
# see it, try `x + nn.Linear(8, 6)(x)` on an `x` of width 8.
#
# Write `EncoderLayer(d_model, n_heads, d_ff, dropout=0.0, norm_first=True)`, with
# `forward(x, key_padding_mask=None)`: `[B, N, D]` to `[B, N, D]`. In pre-norm, in this order:
#
# 1. $x \leftarrow x + \mathrm{drop}(\mathrm{self\_attn}(\mathrm{norm1}(x)))$: queries, keys and values are all
#    the normed $x$, and padded keys are blocked; {=padding}
# 2. $x \leftarrow x + \mathrm{drop}(\mathrm{ff}(\mathrm{norm2}(x)))$.
#
# For `norm_first=False` the same two with the norm outside. {=norm-orders} The parts are named `self_attn` (a
# `MultiHeadAttention`), `ff` (a `FeedForward` with exact GELU), `norm1`, `norm2` (both `nn.LayerNorm`, default
# eps). {=names} `dropout` is used in four places: on the attention weights (give it to `self_attn`), after the
# activation (give it to `ff`), and on the output of each branch before it is added; nowhere else. {=dropout-places}

# %% [markdown]
# **The test that counts.** Your layer must agree with `nn.TransformerEncoderLayer`, given the same weights, {=agrees} and so **you may not use**
# `nn.TransformerEncoderLayer`, `nn.MultiheadAttention` (nor `F.multi_head_attention_forward`, its inside) or
# `F.scaled_dot_product_attention` in it. {=ruled-out} `nn.LayerNorm` is fine. One difference is on the card: for a sequence that
# is all padding PyTorch gives NaN, and ours gives `o_proj`'s bias in the attention branch. {=only-padding} In a sequence that has
# real tokens, outputs at padded places are left out of every loss, and are not compared.
#
# How the names correspond (`course_utils.instruments.torch_match.encoder_layer_state(theirs)` translates, and
# `mha_state` does it for attention alone):
#
# | `nn.TransformerEncoderLayer` | `EncoderLayer` |
# |---|---|
# | `self_attn.in_proj_weight` `[3D, D]`, `self_attn.in_proj_bias` `[3D]` | `self_attn.q_proj`, `k_proj`, `v_proj`: three pieces of `D` rows, in this order |
# | `self_attn.out_proj` | `self_attn.o_proj` |
# | `linear1`, `linear2` | `ff.fc1`, `ff.fc2` |
# | `norm1`, `norm2` | `norm1`, `norm2` |
#
# To compare by yourself, make theirs with `activation="gelu"` (their default is ReLU), `batch_first=True`,
# `dropout=0.0` and the `norm_first` you want.

# %% question="q3_7" points=12 minutes=30 difficulty=3 uses=["q3_6"]
class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each on a residual road: self_attn, ff, norm1, norm2.

    Not allowed: nn.TransformerEncoderLayer, nn.MultiheadAttention, F.multi_head_attention_forward,
    F.scaled_dot_product_attention.
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.0, norm_first: bool = True
    ) -> None:
        """Make the two branches, their norms and the dropout."""
        super().__init__()
        # BEGIN SOLUTION
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first
        # END SOLUTION

    def forward(self, x: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """x [B, N, D], key_padding_mask bool [B, N] (True = padding) -> [B, N, D]."""
        # BEGIN SOLUTION
        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.self_attn(x, x, x, key_padding_mask=key_padding_mask)[0])

        def think(x: Tensor) -> Tensor:
            return self.dropout(self.ff(x))

        if self.norm_first:
            x = x + attend(self.norm1(x))
            return x + think(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + think(x))
        # END SOLUTION


# %% [markdown] help="q3_7"
# symptom: Right in one norm order and wrong in the other: look where the residual starts. In pre-norm the
# raw `x` is added, not the normed one. `MultiHeadAttention` gives a pair and you added the pair. Weights
# cannot be loaded: compare the names with the table.
#
# hint: In pre-norm query, key and value are **all** the normed `x`. Write each branch as a small function
# that ends in dropout; then both norm orders are two lines each.
#
# pseudo-code: Attend: self-attention of x with itself under the padding mask, first of the pair, dropout.
# Think: ff, dropout. Pre-norm: add attend of norm1 of x to x; add think of norm2 of x to x. Post-norm: x is
# norm1 of (x plus attend of x); then norm2 of (x plus think of x).

# %% [markdown]
# Your layer beside PyTorch's, with the same weights, in both norm orders. In float64 the largest difference should
# be about $10^{-15}$.

# %% tags=["plot"]
with after("q3_6", "q3_7", what="comparison"):
    seed_everything(1)
    x = torch.randn(3, 6, 24, dtype=torch.float64)
    padding = torch.arange(6) >= torch.tensor([6, 4, 1])[:, None]  # [3, 6]
    for norm_first in (True, False):
        theirs = nn.TransformerEncoderLayer(
            24, 4, 40, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first
        ).double()
        mine = EncoderLayer(24, 4, 40, norm_first=norm_first).double()
        mine.load_state_dict(encoder_layer_state(theirs))
        gap = (mine(x, padding) - theirs(x, src_key_padding_mask=padding)).abs().max()
        print(f"norm_first={norm_first}: largest difference from PyTorch's layer {gap:.1e}")

# %% [markdown]
# Now the two orders in deep stacks. We make stacks of 2 to 32 layers (Xavier's initial weights, biases as
# they come, and for pre-norm one norm at the very end, as is usual), send random tokens through, take a loss,
# and look at the gradient of one matrix, `ff.fc2`, in the first and in the last layer, before any training. In pre-norm the sum
# on the residual road grows with each layer, and the last norm divides by its size. So predict: how does the gradient of the
# last layer change with the depth, in pre-norm and in post-norm? On these axes a power of the depth is a straight line.

# %% tags=["plot"]
def stack_gradients(depth: int, norm_first: bool, seed: int, D: int = 32) -> tuple[float, float]:
    """The gradient's size at ff.fc2 of the first and of the last layer of a fresh stack."""
    seed_everything(seed)
    x, target = torch.randn(4, 10, D), torch.randn(4, 10, D)
    layers = nn.ModuleList(EncoderLayer(D, 4, 4 * D, norm_first=norm_first) for _ in range(depth))
    for parameter in layers.parameters():
        if parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter)
    for layer in layers:
        x = layer(x)
    F.mse_loss(F.layer_norm(x, (D,)) if norm_first else x, target).backward()
    return tuple(layers[i].ff.fc2.weight.grad.norm().item() for i in (0, -1))


with after("q3_6", "q3_7"):
    depths, rows = [2, 4, 8, 16, 32], {}
    for norm_first, label in ((True, "pre-norm"), (False, "post-norm")):
        seeds = progress(range(8), label=label)
        sizes = torch.tensor([[stack_gradients(depth, norm_first, seed) for depth in depths] for seed in seeds])
        rows[f"{label}, last layer"] = sizes.mean(0)[:, 1]
        rows[f"{label}, first layer"] = sizes.mean(0)[:, 0]
    plots.curves(
        depths, rows, "layers in the stack", "gradient of fc2", "Who hears the loss, before training? (mean of 8 seeds)",
        logx=True, logy=True, marks=True,
        alt="Four curves on logarithmic axes over stacks of 2 to 32 layers: the gradient in the first and in the last layer, "
        "for pre-norm and post-norm.",
    )
    print({label: [round(v, 3) for v in row.tolist()] for label, row in rows.items()})

# %% [markdown]
# And what comes of it? Twelve layers learn to write the mean of all tokens to every place, with Adam at a full rate (0.01)
# from the first step on: once pre-norm, once post-norm, and once post-norm with a warm-up of 40 steps. Which ends where?

# %% tags=["training"]
def deep_run(norm_first: bool, warmup: int, steps: int, seed: int = 0) -> list[float]:
    """The losses of a stack of twelve layers that learns to write the mean of all tokens to every place."""
    seed_everything(seed)
    layers = nn.ModuleList(EncoderLayer(32, 4, 64, norm_first=norm_first) for _ in range(12))
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / max(warmup, 1), 1.0))
    losses = []
    for _ in progress(range(steps)):
        x = torch.randn(16, 6, 32)
        y = x
        for layer in layers:
            y = layer(y)
        loss = F.mse_loss(F.layer_norm(y, (32,)), F.layer_norm(x.mean(1, keepdim=True), (32,)).expand_as(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


with after("q3_6", "q3_7"):
    n = 12 if fast() else 120
    runs = {"pre-norm": deep_run(True, 0, n), "post-norm": deep_run(False, 0, n), "post-norm, warm-up": deep_run(False, 40, n)}
    plots.curves(range(n), runs, "step", "loss", "Twelve layers, with and without warm-up", logy=True,
                 alt="Loss over 120 steps, three curves: pre-norm, post-norm, and post-norm with a warm-up.")

# %% [markdown] told="001/1.4-e-where"
# <details><summary>What we see</summary>
#
# The last layer of a post-norm stack gets a gradient of about 0.2 at **every** depth: thirty-two layers, all pulling with
# full strength at an output that every one of them moves. In pre-norm it falls, from 0.18 at 2 layers to 0.05 at 32: about
# like one over the root of the depth. Xiong (2020) found this, and concluded that post-norm needs a *warm-up*, small steps at
# first, and that pre-norm can do without. In our run (mean of the last 20 steps) pre-norm ends at a loss of 0.28, post-norm
# with a warm-up at 0.99, and without at 1.75, where 2 is what chance gives; with another seed at 0.33, 0.96 and 1.83. At half
# the rate twelve layers forgive more: 0.20, 0.47 and 0.56. Try 24 layers there.
#
# </details>

# %% [markdown] explain="q3_12" sources="001/1.4-e-where 004/12.2" points=3 minutes=8 difficulty=2
# ### In your own words: what does the residual road buy, and what does the norm on it cost?
#
# Someone proposes to save memory by leaving out the residual additions of a deep pre-norm stack:
# $x \leftarrow \mathrm{branch}(\mathrm{norm}(x))$. Explain why this is a bad idea, and then why the place of
# the norm, on the road (post-norm) or beside it (pre-norm), changes how a deep stack must be trained. Use what you saw in the
# picture above. Five sentences or so.
#
# BEGIN SOLUTION
# With the residual, each layer adds a correction to what is there: a freshly made stack passes its input on,
# and the derivative of every layer contains the identity, so the gradient reaches the first layer along the
# sum without being multiplied by any weight. Without it, the signal must pass through every random branch,
# and attention, which averages, makes the tokens more alike in each: after many layers the input can hardly
# be recognised, and the gradient is a product of many Jacobians, which vanishes or explodes. In pre-norm the
# norms stand inside the branches and the road is free; the sum grows with depth, so later layers change it
# by less, and the gradient of the last layers falls like one over the root of the depth. In post-norm every
# layer normalises the road itself: each of them divides the identity part by the size of the sum, and the
# last layers get gradients of full size at any depth. All layers then take large steps at once, which is why
# post-norm stacks need a warm-up (or a careful initialisation) and pre-norm stacks usually do not.
#
# **Rubric.** 1 point: the residual keeps the signal and gives the gradient a path through the identity. 1
# point: pre-norm leaves the road free, post-norm puts a norm on it in every layer. 1 point: the consequence
# for training: full gradients near the output at every depth in post-norm, hence warm-up; falling with depth
# in pre-norm.
# END SOLUTION

# %% [markdown] question="q3_8" sources="002/2.3-cross 003/0-figure 003/2-b-iii"
# ### The decoder layer
#
# A decoder writes one token after the other while it looks at a source text. Its layer has three branches, in this order:
# self-attention, **cross-attention**, feed-forward, each on a residual road as in @q3_7, in pre-norm and in
# post-norm. {=norm-orders} You have written such roads, so the parts are given this time: read `__init__`. {=names} What is new
# is who asks whom, and who may see what. Three facts decide it:
#
# - In training the whole target goes in at once, and the output at token $i$ is asked for token $i + 1$. A token that
#   saw the next one could copy it, so in self-attention token $i$ sees the tokens $0, \dots, i$. {=causal}
# - The target asks and the source answers: in cross-attention the queries come from the stream of the target, and keys and
#   values are both the *memory* `[B, S, D]`, the encoder's output, which is taken as it is: no norm of this layer
#   touches it, nor does dropout. {=memory-as-it-is}
# - The source is known before the first word is written: every token may look at all of the memory but its
#   padding. {=memory-padding} (A memory that is all padding gives a cross-attention of exactly `o_proj`'s bias, never
#   NaN.) {=only-padding}
#
# And a riddle before you write: why is there no mask for padding of the *target*, which is in the batch too? Think of where
# that padding stands. (The answer is folded below the pictures.)
#
# Write the `forward(x, memory, memory_padding_mask=None)` of `DecoderLayer(d_model, n_heads, d_ff, dropout=0.0,
# norm_first=True)`: `x` is `[B, T, D]`, `memory` `[B, S, D]`, the mask bool `[B, S]` with True for padding; the result is
# `[B, T, D]`. `norm1` belongs to self-attention, `norm2` to cross-attention, `norm3` to the feed-forward layer. `dropout` is in
# the three parts already, and goes onto the output of each branch, as in @q3_7, and nowhere else. {=dropout-places}
#
# It must agree with `nn.TransformerDecoderLayer`, {=agrees} so **you may not use** `nn.TransformerDecoderLayer`,
# `nn.MultiheadAttention`, `F.multi_head_attention_forward` or `F.scaled_dot_product_attention` in it. {=ruled-out} Names: as
# in @q3_7, and `multihead_attn` is our `cross_attn`, `norm3` is `norm3`; `decoder_layer_state(theirs)` translates.

# %% question="q3_8" points=9 minutes=20 difficulty=3 uses=["q3_6"]
class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, feed-forward: self_attn, cross_attn, ff, norm1, norm2, norm3.

    Not allowed: nn.TransformerDecoderLayer, nn.MultiheadAttention, F.multi_head_attention_forward,
    F.scaled_dot_product_attention.
    """

    def __init__(
        self, d_model: int, n_heads: int, d_ff: int, dropout: float = 0.0, norm_first: bool = True
    ) -> None:
        """Make the three branches, their norms and the dropout."""
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.cross_attn = MultiHeadAttention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, memory: Tensor, memory_padding_mask: Tensor | None = None) -> Tensor:
        """x [B, T, D], memory [B, S, D], memory_padding_mask bool [B, S] (True = padding) -> [B, T, D]."""
        # BEGIN SOLUTION
        def attend(x: Tensor) -> Tensor:
            return self.dropout(self.self_attn(x, x, x, causal=True)[0])

        def look(x: Tensor) -> Tensor:
            return self.dropout(self.cross_attn(x, memory, memory, key_padding_mask=memory_padding_mask)[0])

        def think(x: Tensor) -> Tensor:
            return self.dropout(self.ff(x))

        if self.norm_first:
            x = x + attend(self.norm1(x))
            x = x + look(self.norm2(x))
            return x + think(self.norm3(x))
        x = self.norm1(x + attend(x))
        x = self.norm2(x + look(x))
        return self.norm3(x + think(x))
        # END SOLUTION


# %% [markdown] help="q3_8"
# symptom: A token's output changes when a later token does: the self-attention is not causal. It agrees with
# PyTorch without a mask and not with one: the padding mask belongs to the *memory*, in cross-attention only.
# It fails when T and S differ: causal was set in cross-attention too, or keys were taken from `x`.
#
# hint: Cross-attention takes its queries from `x` (normed in pre-norm) and **both** keys and values from
# `memory`, which is not normed here.
#
# pseudo-code: Attend: causal self-attention of x with itself. Look: queries x, keys and values memory, padded memory
# blocked. Think: ff. Each ends in dropout (attention gives a pair: take its first). In pre-norm x grows by attend of norm1 of
# x, then by look of norm2 of x, then by think of norm3 of x; in post-norm the norm stands around each sum.

# %% [markdown]
# The same comparison for the decoder layer, with five target tokens and a padded memory of seven.

# %% tags=["plot"]
with after("q3_6", "q3_8", what="comparison"):
    seed_everything(2)
    x, memory = torch.randn(3, 5, 24, dtype=torch.float64), torch.randn(3, 7, 24, dtype=torch.float64)
    padding = torch.arange(7) >= torch.tensor([7, 4, 1])[:, None]  # [3, 7]
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for norm_first in (True, False):
        theirs = nn.TransformerDecoderLayer(
            24, 4, 40, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm_first
        ).double()
        mine = DecoderLayer(24, 4, 40, norm_first=norm_first).double()
        mine.load_state_dict(decoder_layer_state(theirs))
        expected = theirs(x, memory, tgt_mask=ahead, memory_key_padding_mask=padding)
        print(f"norm_first={norm_first}: largest difference {(mine(x, memory, padding) - expected).abs().max():.1e}")

# %% [markdown]
# Which token hears which? The encoder layer with two padded tokens at the end; the decoder layer by its own
# tokens, and by the memory, of which again the last two are padding. Sketch the three tables before you run the cell: which
# columns are empty, and where is there a triangle?

# %% tags=["plot"]
with after("q3_6", "q3_7", "q3_8"):
    seed_everything(3)
    encoder, decoder = EncoderLayer(16, 4, 32).eval(), DecoderLayer(16, 4, 32).eval()
    x, memory, padding = torch.randn(7, 16), torch.randn(7, 16), (torch.arange(7) >= 5)[None]
    panels = {
        "encoder layer": token_influence(lambda x: encoder(x, padding), x),
        "decoder layer, own tokens": token_influence(lambda x: decoder(x, memory[None], padding), x),
        "decoder layer, memory": token_influence(lambda m: decoder(x[None], m, padding), memory),
    }
    plots.heatmaps(
        {name: (1e-4 + panel).log10() for name, panel in panels.items()}, range(7), range(7), vmin=None,
        title="log10 of the influence", xlabel="input token", ylabel="output token",
        alt="Three tables of 7 by 7: the influence of input tokens on output tokens in the encoder layer, in the decoder layer "
        "by its own tokens, and by the memory.",
    )

# %% [markdown]
# <details><summary>What we see, and the riddle</summary>
#
# Empty columns: nobody looks at padding (the padded tokens of the encoder look at themselves by the residual road only). The
# triangle: nobody looks ahead. And that is why padding of the target needs no mask: it stands on the right, so a real
# token could see it only by looking ahead. What comes out at padded places themselves is left out of the loss.
#
# </details>

# %% [markdown]
# ## Part IV. A model, and eleven that do not learn
#
# The toy task of this part is a race. A sequence begins with the token `CLS` (id 1); then come spectators
# (ids 6 to 9) and four runners (ids 2 to 5), in random order, then padding (id 0) up to 12 places. All four
# runners are always there. Which one is in front? That is the class, 0 to 3.
#
# The bag of words says nothing, since it always holds the same runners: a model must know the places and
# compare them. Guessing gives 0.25. Here are three sequences.

# %%
NAMES = ["-", "CLS", "A", "B", "C", "D", "s", "s", "s", "s"]  # of the ids 0 to 9: s is a spectator
ids, padding, labels = toy_batch(torch.Generator().manual_seed(0), 3)
for row, label in zip(ids.tolist(), labels.tolist(), strict=True):
    print(*(NAMES[i] for i in row), " in front:", "ABCD"[label])

# %% [markdown] question="q3_9" sources="003/2-b-i 001/1.5-b 000/2-preamble"
# ### A classifier that does not notice padding
#
# BERT (Devlin 2019) classifies a text like this: embed the tokens, add positions, run a stack of encoder
# layers, read one vector off the top, and put a linear layer on it. The vector is either the output at the
# **first token** (a special token such as `CLS` that has nothing else to do), or the mean of the outputs over
# the **real** tokens. Both are fine here.
#
# Write `EncoderClassifier(vocab, d_model, n_heads, d_ff, n_layers, n_classes, max_len)` with
# `forward(ids, key_padding_mask=None)`: `ids` are ints `[B, N]` with $N \le$ `max_len`, the mask is bool
# `[B, N]`, True for padding; {=shapes} the result is logits `[B, n_classes]` (no softmax). {=logits} Every sequence has at least
# one real token, and padding stands on the right. The inside is free: your own `EncoderLayer`, or
# `nn.TransformerEncoder`; learned or sinusoidal positions. It is judged by what it does, in evaluation mode:
#
# - **the padded part never moves the logits**: neither the ids that stand there, nor how many there are. {=padding-silent} A
#   sequence of 5 tokens has the same logits alone, padded to 9, or in a batch with longer ones. Padding must
#   be kept out twice: of every attention, and of the read-out; {=kept-out-twice}
# - no example notices its neighbours in the batch; {=neighbours}
# - the order of the tokens matters (so: positions), {=order} and every real token can matter; {=every-token}
# - no mask means that nothing is padding; {=no-mask}
# - it can learn: trained on the race by `train_patient(model, steps=300)` (the training run of @q3_10 too, hence
#   its name), it must do clearly better than guessing, 0.45 where guessing gives 0.25. {~learns} Ours ends above 0.99, and common designs between 0.6 and 1.
#   The grader gives the tokens and the runners other names, drawn anew, and asks a new model with the trained weights.
#   The public check only looks whether gradients reach every parameter. {=can-learn}
#
# The hidden checks also try whether it learns, and devices.

# %% question="q3_9" points=10 minutes=30 difficulty=3 uses=["q3_5", "q3_6", "q3_7"] limits={"wall": 120}
class EncoderClassifier(nn.Module):
    """Embedding, positions, encoder layers, and a linear read-out that padding never reaches."""

    def __init__(
        self, vocab: int, d_model: int, n_heads: int, d_ff: int, n_layers: int, n_classes: int, max_len: int
    ) -> None:
        """Make the embedding, the positions, the layers and the read-out."""
        super().__init__()
        # BEGIN SOLUTION
        self.embed = nn.Embedding(vocab, d_model)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model))
        self.layers = nn.ModuleList(EncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_classes)
        # END SOLUTION

    def forward(self, ids: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """ids [B, N], key_padding_mask bool [B, N] (True = padding) -> logits [B, n_classes]."""
        # BEGIN SOLUTION
        x = self.embed(ids) + self.positions[: ids.shape[1]]  # [B, N, D]
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        return self.head(self.norm(x[:, 0]))  # read out at the first token
        # END SOLUTION


# %% [markdown] help="q3_9"
# symptom: Logits change with the ids at padded places: the mask does not reach every layer, or the mean runs
# over padding. They change with the *number* of padded places only: you divided by N instead of the number
# of real tokens. They do not change when real tokens trade places: there are no positions. A warning about
# nested tensors: `nn.TransformerEncoder(..., enable_nested_tensor=False)`.
#
# hint: Reading at the first token is the shortest way: it is never padding. For the mean, set the outputs at
# padded places to 0, sum over places, and divide by the count of real tokens of each row.
#
# pseudo-code: Embed, add the first N rows of the position table, run the layers with the mask, take the
# output at place 0, norm, linear.

# %% [markdown]
# Train it, and then ask it what it looked at. We put a spectator in the place of each token in turn and see
# how far the logits move. The runner in front should matter most; the padded places at the right end must
# have exactly nothing to say.

# %% tags=["training"]
with after("q3_5", "q3_6", "q3_7", "q3_9"):
    seed_everything(0)
    classifier = EncoderClassifier(VOCAB, 32, 4, 64, 2, 4, 12)
    losses = train_patient(classifier, steps=30 if fast() else 300)
    print(f"accuracy after {len(losses)} steps: {accuracy(classifier):.3f}")
    plots.curves(
        range(len(losses)), {"loss": losses}, "step", "cross-entropy", "Learning to watch a race",
        alt="The training loss stays near 1.4 for some 30 steps, then falls quickly and ends near 0, with spikes.",
    )
    ids, padding, labels = toy_batch(torch.Generator().manual_seed(8), 40)
    row = int(((padding.sum(1) == 3) & (labels == 1)).nonzero()[0])
    ids, padding = ids[row : row + 1], padding[row : row + 1]
    with torch.no_grad():
        logits = classifier(ids, padding)
        moved = []
        for place in range(12):
            other = ids.clone()
            other[0, place] = 7 if ids[0, place] != 7 else 8
            moved.append((classifier(other, padding) - logits).norm())
    plots.bars(
        [f"{NAMES[i]}\n{place}" for place, i in enumerate(ids[0].tolist())], moved, "token and place",
        "change of the logits", "What the classifier looked at",
        alt="Bars over the 12 places. The first runner, B at place 2, moves the logits by far the most; the three "
        "padded places have no bar.",
    )

# %% [markdown] question="q3_10" sources="003/1-code 003/2-code 001/1.5-b 003/2-b-premise"
# ### Dead Transformers
#
# A Transformer that is wrong seldom crashes. It runs, the loss is a number, and nothing is learned. This is
# the most common way to lose a week, so here is some practice. The ward holds eleven small encoder classifiers
# for the race, in plain parts: read the classes in `course_utils/hw3/patients.py`, they are short. `patient(number, seed)`
# makes one, and **each has one fault**. They have numbers, no names, and no twin: no healthy model has the same
# weights. `patient(0, seed)` is a healthy one to compare with. Some faults are in the values, some in the settings, some in
# what the forward pass does.
#
# What you find inside a `model`:
#
# | part | what it is |
# |---|---|
# | `embed`, `positions` | token embedding; a fixed table `[12, D]` of positions (a buffer, not learned) |
# | `blocks[i].norm1`, `attn`, `norm2`, `fc1`, `fc2`, `dropout` | the parts of a block |
# | `blocks[i].steps` | its forward pass, as words: `"keep"` notes the stream, `"add"` adds to that note what was computed since, with dropout; `"relu"`, `"detach"`; any other word calls the part of that name |
# | `blocks[i].attn.q_proj`, `k_proj`, `v_proj`, `o_proj`, `n_heads`, `scale`, `sees` | its attention; `scale` multiplies the scores, `sees` is `"all"` or `"past"` |
# | `norm`, `fc`, `head` | the read-out of the first token: `head(relu(fc(norm(x))))` |
# | `padding_is` | the value in `key_padding_mask` that means padding |
#
# A healthy model is the pre-norm encoder of @q3_7 with ReLU, and what stands on the card holds for it. The training run is
# `train_patient(model, steps=STEPS, seed)`: 150 steps of Adam on fresh batches, the same for all (it trains whatever has
# `requires_grad`). A healthy model ends with an accuracy above 0.95, a sick one below 0.7. To save time the checks end a run
# once the loss is small, and do not train a model whose weights, outputs and gradients are those of the model before it
# fell ill. The grader's patients are made elsewhere, have other weights, and their race has other names for tokens and runners.

# %% [markdown]
# Write `dead_transformer_fix(model)`: it gets a patient that has **not** been trained, does not know which,
# finds the fault, mends it, and returns the model. {=returned} You may change the model in place. Rules:
#
# - after your mending and the stated run, the model's accuracy on new sequences is at least 0.85 (`BAR`),
#   for every fault and whatever the seed; {=learns}
# - a mended model shows the signs of a healthy one before any training: every parameter gets a gradient, the order of the tokens
#   counts and padding does not, two calls in training mode differ by less than 0.9 of the logits' spread, no layer has equal
#   units only, the first token reaches the logits when all branches give 0, and `scale` is within a factor of 3; {=signs}
# - what is healthy stays as it is: a model without a fault comes back with the weights and settings that it
#   had, {=healthy-kept} and a sick one keeps the weights that were good, also those of a layer whose bias alone is sick. {=good-kept} A
#   fresh model in place of the sick one, or beside it, is not a cure; {~no-fresh-model}
# - no training inside the function. {~no-training}
#
# The hidden checks also try patients with new weights, and look whether a fresh model was put in or beside, or something
# was trained.
#
# **How to diagnose.** Begin with the symptom, one at a time, and write it down. Does each parameter get a gradient? Is it
# of a sensible size, compared with a healthy model's? What is the spread of the activations at each stage, how many ReLUs
# fire, how even are the attention weights? Does the output change when you permute tokens, when you change a padded one,
# when you change a real one? Then look at the parts that could cause it: values, settings, masks, the steps of the forward
# pass.

# %% [markdown]
# Three exhibits, before you begin. First, how the patients train, beside a healthy model. All you see is that they do not
# learn: a loss curve is a symptom, and no diagnosis.

# %% tags=["training"]
n_steps = 20 if fast() else STEPS
curves = {number: train_patient(patient(number, 0), n_steps, seed=0) for number in progress((0, *WARD))}
smooth = {number: torch.tensor(losses).unfold(0, 10, 1).mean(-1) for number, losses in curves.items()}
plots.curve_grid(
    range(n_steps - 9), {f"patient {number}": {"sick": smooth[number], "healthy": smooth[0]} for number in WARD},
    "step", "loss (mean of 10 steps)", "The ward, and a healthy model",
    alt="Eleven panels of loss curves. The healthy model's loss falls from 1.4 to nearly 0; each patient's stays "
    "near 1.4 or falls far less.",
)

# %% [markdown]
# Second, a chart of gradients: their size in each part of the model, at the first step, as a power of ten (-9 stands for
# none). Third, a few questions asked of each patient: how far do the logits move when the tokens behind the first trade
# places, when a padded token changes, and when the same batch is given twice in training mode? Between them the charts show most
# of the faults to a trained eye, and not all.

# %% tags=["plot"]
def gradient_sizes(model: nn.Module) -> list[float]:
    """log10 of the gradient's norm in each part of a patient, for one batch; -9 where there is none."""
    ids, padding, labels = toy_batch(torch.Generator().manual_seed(9), 64)
    seed_everything(9)
    F.cross_entropy(model(ids, padding), labels).backward()
    sizes = []
    for part in (model.embed, *model.blocks, model.norm, model.fc, model.head):
        squares = [p.grad.square().sum().item() for p in part.parameters() if p.grad is not None]
        sizes.append(math.log10(max(math.sqrt(sum(squares)), 1e-9)))
    return sizes


@torch.no_grad()
def moved_by(model: nn.Module) -> list[float]:
    """log10 of how far the logits move: by the order of tokens, by a padded token, by chance in training mode."""
    ids, padding, _ = toy_batch(torch.Generator().manual_seed(9), 64)
    whole, none = ids[padding.sum(1) == 0], torch.zeros(12, dtype=torch.bool)
    seed_everything(9)
    chance = model.train()(ids, padding) - model(ids, padding)
    model.eval()
    order = model(whole[:, [0, *range(11, 0, -1)]], none.expand_as(whole)) - model(whole, none.expand_as(whole))
    padded = model(ids.masked_fill(padding, 7), padding) - model(ids, padding)
    return [math.log10(max(move.abs().max().item(), 1e-9)) for move in (order, padded, chance)]


rows = ["healthy", *(f"patient {number}" for number in WARD)]
models = [patient(number, 0) for number in (0, *WARD)]
plots.heatmap(
    [gradient_sizes(model) for model in models], rows=rows, vmin=None, xlabel="part", ylabel="",
    cols=["embed", "block 0", "block 1", "norm", "fc", "head"], title="log10 of the gradient at the first step",
    alt="A table of exponents, one row for each patient: some have gradients in the head only, some none below the last "
    "norm, others look much like the healthy one.",
)
plots.heatmap(
    [moved_by(model) for model in models], rows=rows, vmin=None, xlabel="what changes", ylabel="",
    cols=["order", "padding", "chance"], title="log10 of how far the logits move",
    alt="A table of exponents: in the healthy model order moves the logits, padding and chance do not; several patients "
    "differ in one of the three.",
)

# %% question="q3_10" points=13 minutes=45 difficulty=4 uses=["q3_5"] limits={"wall": 120}
def dead_transformer_fix(model: nn.Module) -> nn.Module:
    """Find the one fault of an untrained patient, mend it, and return the model; a healthy one stays as it is."""
    # BEGIN SOLUTION
    model.requires_grad_(True)
    model.padding_is = True
    if (model.positions == model.positions[0]).all():
        model.positions = sinusoidal_encoding(*model.positions.shape).to(model.positions)
    for block in model.blocks:
        block.attn.scale = 1 / math.sqrt(block.attn.q_proj.out_features // block.attn.n_heads)
        block.attn.sees = "all"  # a first token that sees the past alone sees nothing
        block.steps = ("keep", "norm1", "attn", "add", "keep", "norm2", "fc1", "relu", "fc2", "add")
    for module in model.modules():
        if isinstance(module, nn.Dropout) and module.p > 0.5:
            module.p = 0.0
        if isinstance(module, nn.LayerNorm) and not module.weight.any():
            nn.init.ones_(module.weight)
        if isinstance(module, nn.Linear) and (module.weight == module.weight[0]).all():  # equal units stay equal
            module.reset_parameters()
        if isinstance(module, nn.Linear) and module.bias.max() < -1:  # no ReLU behind it would fire
            nn.init.zeros_(module.bias)
    return model
    # END SOLUTION


# %% [markdown] help="q3_10"
# symptom: Gradients in the head only: either nothing else wants one (`requires_grad`), or something on the way lets none
# through (a ReLU that never fires, gains of 0, a step of the forward pass). Order does not count: the positions, or a first token
# that does not look at the others. Padding counts: what does the model take for padding? Chance counts: dropout. Nothing
# of it, and it does not learn: compare the attention weights, the spread of each matrix's rows, and the size of the stream
# from block to block with those of a healthy model. The healthy model changed: something is reset without looking whether
# it was wrong.
#
# hint: Write one `if` for each finding, with a test that a healthy model does not meet. Take a healthy model and a patient, and
# compare part by part what *kind* of numbers stand there (`state_dict()`: means, spreads, equal rows), then the settings that
# are no tensors (`scale`, `sees`, `steps`, `p`, `padding_is`, `requires_grad`). Your `sinusoidal_encoding` is a good table;
# `reset_parameters()` draws a linear layer anew, weights and all, so keep it for layers whose weights are sick.
#
# pseudo-code: Let all parameters want gradients. Set the mask's meaning, each attention's scale and what it sees, and each
# block's steps as a pre-norm encoder has them. If the positions do not differ, write a good table. For each layer norm whose
# gains are all 0: ones. For each linear layer: if its weights are all equal draw them anew; if all its biases are far below 0
# set them to 0. For each dropout above one half: switch it off. Return the model.

# %% [markdown]
# And the ward after your visit: the loss of each patient before and after mending, and what it can do.

# %% tags=["training"]
with after("q3_5", "q3_10"):
    panels, mended = {}, [dead_transformer_fix(patient(number, 0)) for number in WARD]
    for number, model in progress([*zip(WARD, mended, strict=True)]):
        losses = train_patient(model, n_steps, seed=0)
        panels[f"patient {number}: {accuracy(model):.2f}"] = {
            "sick": smooth[number], "mended": torch.tensor(losses).unfold(0, 10, 1).mean(-1),
        }
    plots.curve_grid(
        range(n_steps - 9), panels, "step", "loss (mean of 10 steps)", f"After the visit (accuracy; the bar is {BAR})",
        alt="Eleven panels: the mended models' losses fall to nearly 0, the sick ones' do not; each panel names the "
        "accuracy of the mended model.",
    )

# %% [markdown]
# ## What to read next
#
# You have all the parts of a Transformer on the table, and you have seen how quietly each of them can
# fail. In **homework 4** an encoder and a decoder made of these layers learn to translate.
#
# - Ba, Kiros and Hinton (2016), [*Layer normalization*](https://arxiv.org/abs/1607.06450): @q3_1, invented
#   for recurrent networks.
# - Ioffe and Szegedy (2015), [*Batch normalization: accelerating deep network training by reducing
#   internal covariate shift*](https://arxiv.org/abs/1502.03167): @q3_3. Its explanation by "covariate
#   shift" has been disputed since (Santurkar and others, 2018, [*How does batch normalization help
#   optimization?*](https://arxiv.org/abs/1805.11604)).
# - Vaswani and others (2017), [*Attention is all you need*](https://arxiv.org/abs/1706.03762): blocks,
#   post-norm and sinusoids in one short paper.
# - Su and others (2021), [*RoFormer: enhanced Transformer with rotary position
#   embedding*](https://arxiv.org/abs/2104.09864): the rotation of @q3_5 put into attention itself.
# - Xiong and others (2020), [*On layer normalization in the Transformer
#   architecture*](https://arxiv.org/abs/2002.04745): pre-norm, post-norm and warm-up, with the proof
#   behind our picture. Liu and others (2020), [*Understanding the difficulty of training
#   Transformers*](https://arxiv.org/abs/2004.08249), tells a second half of the story.
# - Hendrycks and Gimpel (2016), [*Gaussian error linear units*](https://arxiv.org/abs/1606.08415): GELU.
# - Devlin and others (2019), [*BERT: pre-training of deep bidirectional Transformers for language
#   understanding*](https://arxiv.org/abs/1810.04805): the classifier of @q3_9, large and pre-trained.
# - Karpathy (2019), [*A recipe for training neural
#   networks*](https://karpathy.github.io/2019/04/25/recipe/): a debugger's habits, for @q3_10.
#
# Before you hand in, restart the kernel, run everything from top to bottom, and look at the checks once
# more.

# %%
grader.check_all()
