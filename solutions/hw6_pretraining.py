# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="masked words, next sentences, BERT, contrastive tasks, GPT, sampling, fine-tuning"
# # Homework 6: Pretraining, BERT and GPT
#
# Labels are expensive, text is not. The idea of *pretraining* is to take a task whose answers stand in the text itself:
# hide a word and ask for it, tear two sentences apart and ask whether they belong together, stop in the middle and ask how
# it goes on. Nobody has to label anything, and a model that gets good at such tasks has learned much of what the
# task that you really have needs.
#
# You build both classics: **BERT**, an encoder that reads in both directions and fills gaps, and **GPT**, a decoder that
# reads from left to right and writes. Your `BERT` computes what the published one computes, weight for weight. It learns
# on short stories that a grammar writes, in two minutes on a laptop.
#
# **When you are done, you will be able to**
#
# - mask words, draw sentence pairs and pack them, and say where each label comes from;
# - build BERT with its two heads, and show that it agrees with the published model;
# - say which weights which of the two losses reaches, and why there are two;
# - tell generative from contrastive tasks, write InfoNCE, and find the leaks of a task that you invented;
# - fine-tune a pretrained encoder, and measure what pretraining was worth;
# - build a language model that writes, and judge what it writes.
#
# **What you need**: homeworks 1 to 3, or at least their ideas, and some minutes for training. No GPU, no downloads.

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
# Questions @q6_14 and @q6_15 ask for a few sentences instead of code, and a person reads them.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged
# with ours in its place too, so an error costs its points once.
#
# The checkpoint `hw6_pretraining.safetensors` that Part II writes is yours to keep: @q6_12 is judged with a brief
# pretraining of its own.

# %% [markdown]
# ## The convention card
#
# The same in every homework.

# %% [markdown] card=true
# The convention card of the course stands here.

# %%
import copy
import math
import os
import random
from collections.abc import Callable, Collection, Sequence
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
from course_utils.instruments.work import count_work
from course_utils.notebook.training import Curves, fast, load_checkpoint, progress, save_checkpoint, to_device

plt.rcParams["figure.dpi"] = 100  # for pictures of your own
seed_everything(0)
device = pick_device()
grader = Grader("hw6_pretraining")

# %% [markdown]
# ## What you bring along
#
# From homework 1: `softargmax` and `attention`. From homework 2: `split_heads`, `merge_heads` and `MultiHeadAttention`.
# From homework 3: `FeedForward` and `EncoderLayer(d_model, n_heads, d_ff, dropout=0.0, norm_first=True)`, called as
# `layer(x, key_padding_mask=None)`. The cells below hold our versions. Replace them by your own if you like: the rest
# of the notebook asks for the names and meanings only.

# %% given="hw1_attention q1_1 q1_7"
from hw1_attention import attention, softargmax  # noqa: F401

# %% given="hw2_multihead q2_1 q2_2"
from hw2_multihead import MultiHeadAttention, merge_heads, split_heads  # noqa: F401

# %% given="hw3_blocks q3_6 q3_7"
from hw3_blocks import EncoderLayer, FeedForward  # noqa: F401

# %% [markdown]
# ## Part I. Labels for free
#
# The stories come from `course_utils/hw6/stories.py`: short, and worth reading once. Each sentence moves things between
# people. What happens goes round with the day: something is *taken* in the morning, *shown* at noon, *given* away in the
# evening, *hidden* at night, and then it is morning again. Who gives something away has it no longer, so the other person
# acts next; otherwise the same person goes on. So **who does what follows from the sentence before**, and nothing else
# ties sentences together: a story begins at any time of the day, and its theme (the sea, the kitchen, ...) shows in six
# sentences of ten only.
#
# Five numbers are special: 0 is padding (`PAD`), 1 opens an input (`CLS`), 2 ends a sentence (`SEP`), 3 hides a word
# (`MASK`), 4 stands for unknown words (`UNK`).
# %%
from course_utils.hw6.leaks import leaks, shared_words
from course_utils.hw6.pretraining import (
    BETAS,
    CHECKPOINT,
    MAX_LEN,
    STEPS,
    accuracy,
    build_model,
    make_batches,
    order_task,
    padded,
    rate_at,
)
from course_utils.hw6.stories import CLS, MASK, SEP, SPECIAL_IDS, corpus, encoded, read_folder, words

vocabulary = words()

# %% tags=["plot"]
train, held_out = corpus()
documents = encoded(train)
for sentence in train[0].sentences:
    print(" ".join(sentence))
print(f"theme {train[0].theme}, mood {train[0].mood}; who acts: {', '.join(train[0].actors)}")
print(f"{len(train)} stories to train on, {len(held_out)} held out, {len(vocabulary)} tokens")
print(documents[0][0])

# %% [markdown] question="q6_1" sources="004/12.6-labels"
# ### Hiding words
#
# *Masked language modelling*: hide some words of a text, and ask the model for them. The label is the word that was
# there, so any text is a labelled text. BERT hides 15 percent of the words. Too few, and most of the computation teaches
# nothing; too many, and there is no context left to guess from.
#
# But a model that is used later never sees `[MASK]`. {-} If a mask stood at every chosen place, the model could learn that
# the other places need no thought. So a chosen word meets one of three fates:
#
# | with probability | the input holds | the label is |
# |---|---|---|
# | 0.8 | `mask_id` | the old word |
# | 0.1 | a random word | the old word |
# | 0.1 | the old word, unchanged | the old word |
#
# Whatever the model sees at a place, the word there may be wrong, so every place needs a thought.
#
# Write `mask_tokens(ids, mask_id, vocab_size, special_ids, p=0.15, generator=None)`. `ids` is int64 of any shape, and
# `special_ids` a collection of ints (a tuple, list, set, ...), `mask_id` among them. It returns `(inputs, labels)`, both
# int64 with the shape of `ids`. {=shapes}
#
# - A special token is never chosen, and stays. {=special}
# - Every other position is chosen with probability `p`, each by itself; {=rate} `p=0` chooses none, `p=1` all. {=edges}
# - Each chosen position by itself becomes `mask_id` with probability 0.8, a random token with 0.1, {=fates} and stays
#   with 0.1. {=stays}
# - A random token is drawn evenly from the ids in `range(vocab_size)` that are **not special**. {=even} At least one is.

# %% [markdown]
# - `labels` is the old token at every chosen position, also where it stays, and `-100` everywhere else. {=labels}
# - All chance comes from `generator`, a `torch.Generator` on the CPU, or from torch's own numbers where it is None: the
#   same state of it gives the same result, {=generator} and the next call with it another one. {=moves-on}
# - `p` outside $[0, 1]$ is a `ValueError`. {=p-range}
# - `ids` itself is not changed. {=copy}
#
# By hand: with 1,000 words, none special, about 150 are chosen; about 120 of these become `[MASK]`, 15 another word, 15
# stay. Hidden checks try the same with other vocabularies, other special ids and other shapes, and count over many draws.

# %% question="q6_1" points=7 minutes=20 difficulty=2
def mask_tokens(
    ids: Tensor, mask_id: int, vocab_size: int, special_ids: Collection[int], p: float = 0.15,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """ids [...] -> inputs [...], some words hidden, and labels [...]: the old word where chosen, -100 elsewhere."""
    # BEGIN SOLUTION
    if not 0 <= p <= 1:
        raise ValueError(f"p is a probability between 0 and 1, not {p}")
    special = torch.isin(ids, torch.tensor(list(special_ids), dtype=ids.dtype, device=ids.device))
    others = torch.tensor([i for i in range(vocab_size) if i not in set(special_ids)], device=ids.device)
    chance, fate = (torch.rand(ids.shape, generator=generator).to(ids.device) for _ in range(2))
    drawn = others[torch.randint(len(others), ids.shape, generator=generator).to(ids.device)]
    chosen = (chance < p) & ~special
    inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (fate >= 0.9), drawn, inputs)
    return inputs, torch.where(chosen, ids, -100)
    # END SOLUTION


# %% [markdown] help="q6_1"
# symptom: Too many words are masked, and none stays: the three fates were drawn one after another, each from what the last
# one left. Special tokens appear as random words: draw from the *others*. Two runs from the same generator differ: a
# `torch.rand` or `randint` without `generator=` is left.
#
# hint: Draw two uniform numbers for every position: one decides whether it is chosen, the other its fate (below 0.8, from 0.9
# on, between). A table of the ids that are not special, indexed by `randint`, gives random words.
#
# pseudo-code: Refuse a wrong p. Special: is the token in the collection? Chosen: first number below p, and not special.
# Inputs: mask_id where chosen and the second number is below 0.8; a drawn word where chosen and it is at least 0.9; else the
# old one. Labels: the old one where chosen, else -100.

# %% [markdown]
# Masking at work: a story, what the model is given, and what it is asked. Run the cell again with another seed.

# %% tags=["plot"]
with after("q6_1"):
    rows = [sentence for sentence in documents[0][:4]]
    ids, _, padding = padded([(row, [0] * len(row)) for row in rows])
    inputs, labels = mask_tokens(ids, MASK, len(vocabulary), SPECIAL_IDS, 0.25, torch.Generator().manual_seed(4))
    shown = {"the story": ids, "what the model reads": inputs}
    tables = {name: ([vocabulary.decode(row) for row in table.tolist()], padding) for name, table in shown.items()}
    asked = [[vocabulary.tokens[i] if i >= 0 else "" for i in row] for row in labels.tolist()]
    plots.token_tables(tables | {"what it is asked for": (asked, labels < 0)}, "Words hidden, a quarter of them here",
                       alt="Three tables of words: four sentences; the same with some words replaced by [mask] or "
                       "another word; and the words that are asked for, at those places only.")

# %% [markdown] question="q6_2"
# ### Pairs of sentences
#
# Gaps teach what fits into a sentence. For questions about *two* sentences BERT has a second task, **next sentence
# prediction**: two sentences stand in one input, and the model says whether the second followed the first in the text.
# Right pairs stand in the documents. Wrong ones are made: the second comes from another document.
#
# Write `sentence_pairs(documents, rng)`. `documents` is a list of documents, a document a list of sentences, a sentence a
# list of ints; `rng` is a `random.Random`. It returns a list of `(first, second, is_next)`:
#
# - one for every sentence that has a successor in its document, {=one-each} in the order of the text; {=in-order}
# - with probability 1/2 the true successor and `True`; {=half} otherwise `False` and a sentence of *another* document {=another}
#   that is **not equal to the true successor**. {=not-the-successor} (*Another* is another place in the list: two
#   documents may well be equal.) Every such sentence can be drawn, with any weights. {=every-candidate}
# - Where a sentence with a successor has no such candidate, that is a `ValueError`, **whatever the coin says**: a data set
#   that works by luck is a trap. {=no-candidate}
# - All chance comes from `rng`; {=rng} `documents` are not changed. {=untouched}

# %% [markdown]
# Then `pack(first, second, cls_id, sep_id, max_len)` makes one input of two sentences, and says which token belongs to which:
#
# | ids | `cls` | first ... | `sep` | second ... | `sep` |
# |---|---|---|---|---|---|
# | segments | 0 | 0 | 0 | 1 | 1 |
#
# It returns two lists of ints of equal length, `(ids, segments)`. {=layout}
#
# - If there are more than `max_len` tokens in all, the **last token of the longer sentence** goes, of the second where both
#   are equally long, again and again until it fits. {=longer-first} So neither sentence is lost because of the other.
# - `max_len` below 3 is a `ValueError`. {=too-small} Sentences may be empty. {=empty} `first` and `second` are not changed.
#   {=unchanged}
#
# By hand: sentences of 5 and 3 tokens in 3 + 5 places: the first loses two (5, 3 to 4, 3 to 3, 3), then the second one (3, 2).

# %% question="q6_2" points=6 minutes=20 difficulty=2
def sentence_pairs(
    documents: Sequence[Sequence[Sequence[int]]], rng: random.Random
) -> list[tuple[Sequence[int], Sequence[int], bool]]:
    """One (first, second, is_next) for every sentence with a successor; wrong seconds come from other documents."""
    # BEGIN SOLUTION
    pairs = []
    for d, document in enumerate(documents):
        others = [sentence for e, other in enumerate(documents) if e != d for sentence in other]
        for first, follows in zip(document, document[1:], strict=False):
            if all(sentence == follows for sentence in others):
                raise ValueError(f"document {d}: no other document has a sentence that differs from {follows}")
            is_next, second = rng.random() < 0.5, follows
            while not is_next and second == follows:
                second = rng.choice(others)
            pairs.append((first, second, is_next))
    return pairs
    # END SOLUTION


def pack(
    first: Sequence[int], second: Sequence[int], cls_id: int, sep_id: int, max_len: int
) -> tuple[list[int], list[int]]:
    """[cls] first [sep] second [sep] and its segments, at most max_len of each; the longer sentence is cut first."""
    # BEGIN SOLUTION
    if max_len < 3:
        raise ValueError(f"max_len is {max_len}, and the special tokens alone are 3")
    first, second = list(first), list(second)
    while len(first) + len(second) + 3 > max_len:
        (first if len(first) > len(second) else second).pop()
    return [cls_id, *first, sep_id, *second, sep_id], [0] * (len(first) + 2) + [1] * (len(second) + 1)
    # END SOLUTION


# %% [markdown] help="q6_2"
# symptom: Now and then a "wrong" pair is the true successor: two documents share a sentence, and it was drawn. The
# ValueError comes in some runs only: the candidates are looked at after the coin has fallen. Segments are one too short:
# the first `sep` belongs to segment 0, the second to 1.
#
# hint: Collect the sentences of the other documents first, and look whether one of them differs from the successor. Then
# throw the coin, and draw until it differs. For `pack`, pop from the longer list while there are too many.
#
# pseudo-code: For each document: the sentences of all others. For each neighbouring pair: ValueError if all of those equal
# the successor; coin; if wrong, draw from those that differ. Pack: copy both; while too long pop from the first if it is
# longer, else from the second; put them together.

# %% [markdown]
# Three pairs of our stories as BERT reads them. Can you tell which of them belong together? Look at *who*, and at *when*.

# %% tags=["plot"]
with after("q6_2"):
    some = sentence_pairs(documents[:40], random.Random(1))[:3]
    for first, second, is_next in some:
        ids, segments = pack(first, second, CLS, SEP, MAX_LEN)
        print(" ".join(vocabulary.decode(ids)))
        print("".join(map(str, segments)), "-> is next" if is_next else "-> from another story")

# %% [markdown]
# ## Part II. BERT

# %% [markdown] question="q6_3" sources="000/2-preamble 003/2-b-i"
# ### The model
#
# BERT is the encoder of homework 3, a little input layer, and two small heads. Write $E$ for the table of tokens, $P$ for
# learned positions, $S$ for the two segments:
#
# $$\begin{aligned}
# x_t &= \mathrm{dropout}(\mathrm{norm}(E[\text{id}_t] + P[t] + S[\text{segment}_t])), \qquad
#   h = \text{layers}(x) \quad (\text{post-norm}) \\
# \text{words}_t &= \mathrm{norm}(\mathrm{gelu}(W h_t + c))\, E^\top + b, \qquad
#   \text{pair} = W_2 \tanh(W_1 h_0 + c_1) + c_2
# \end{aligned}$$
#
# The word head asks every place for a word; its last matrix is the table of tokens itself, *tied* as in @q4_2, with a bias
# for each word. The pair head reads the first place only, where `[CLS]` stands: the model brings there whatever it
# wants to say about the input as a whole.
#
# Positions are learned here, so there are `max_len` of them and no more. Padding is masked in every layer, since attention
# looks in both directions.

# %% [markdown]
# Write `BERT(vocab_size, d_model, n_heads, d_ff, n_layers, max_len, dropout=0.0)` with
#
# - `encode(ids, segments=None, key_padding_mask=None)`: int64 `[B, N]`, int64 `[B, N]`, bool `[B, N]` (True = padding) to
#   $h$, `[B, N, D]`; {=encode}
# - `forward(ids, segments=None, key_padding_mask=None)`: `(word_logits [B, N, V], pair_logits [B, 2])`. Column 0 means "is
#   next", as in the published model. {=forward}
#
# and these names, so that weights can be put in: {=names}
#
# | name | what |
# |---|---|
# | `token_embed`, `position_embed`, `segment_embed` | `nn.Embedding` of $V$, `max_len` and 2 rows |
# | `embed_norm` | `nn.LayerNorm` of their sum, before dropout |
# | `layers` | `nn.ModuleList` of `EncoderLayer(..., norm_first=False)` |
# | `mlm_dense`, `mlm_norm`, `mlm_bias` | `nn.Linear(D, D)`, `nn.LayerNorm(D)`, `nn.Parameter` `[V]` |
# | `pooler`, `nsp` | `nn.Linear(D, D)`, `nn.Linear(D, 2)` |
#
# A second name for the tied weight is allowed, other parameters are not. `segments=None` means all 0. {=no-segments} More
# than `max_len` tokens are a `ValueError`. {=too-long} What stands in padding, and how much of it there is, never moves a
# real token. {=padding} The GELU is the exact one. Embeddings and linear weights start as $N(0, 0.02^2)$, biases at 0: {=start}
# with PyTorch's own start the first loss is 20 to 90 instead of $\ln V$. It agrees with the published
# `BertForPreTraining` given its weights (its `layer_norm_eps` set to our 1e-5). Hidden checks load other sizes, in float32
# and float64, and look at gradients.
#
# To check yourself: `BERT(11, 8, 2, 16, 1, 6)` has 957 trained numbers.

# %% question="q6_3" points=9 minutes=35 difficulty=3
class BERT(nn.Module):
    """An encoder with learned positions and two heads: hidden words, and pairs of sentences."""

    def __init__(
        self, vocab_size: int, d_model: int, n_heads: int, d_ff: int, n_layers: int, max_len: int, dropout: float = 0.0
    ) -> None:
        """Make the parts of the table; embeddings and linear weights start as N(0, 0.02^2), biases at 0."""
        super().__init__()
        # BEGIN SOLUTION
        self.token_embed = nn.Embedding(vocab_size, d_model)
        self.position_embed = nn.Embedding(max_len, d_model)
        self.segment_embed = nn.Embedding(2, d_model)
        self.embed_norm, self.mlm_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, n_heads, d_ff, dropout, norm_first=False) for _ in range(n_layers)
        )
        self.mlm_dense, self.pooler, self.nsp = (nn.Linear(d_model, n) for n in (d_model, d_model, 2))
        self.mlm_bias = nn.Parameter(torch.zeros(vocab_size))
        for part in self.modules():
            if isinstance(part, (nn.Linear, nn.Embedding)):
                nn.init.normal_(part.weight, std=0.02)
            if isinstance(part, nn.Linear):
                nn.init.zeros_(part.bias)
        # END SOLUTION

    def encode(self, ids: Tensor, segments: Tensor | None = None, key_padding_mask: Tensor | None = None) -> Tensor:
        """ids, segments [B, N], key_padding_mask bool [B, N] (True = padding) -> h [B, N, D]."""
        # BEGIN SOLUTION
        N, longest = ids.shape[1], self.position_embed.num_embeddings
        if N > longest:
            raise ValueError(f"{N} tokens are more than the {longest} that this model has positions for")
        if segments is None:
            segments = torch.zeros_like(ids)
        places = torch.arange(N, device=ids.device)
        x = self.token_embed(ids) + self.position_embed(places) + self.segment_embed(segments)  # [B, N, D]
        x = self.dropout(self.embed_norm(x))
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        return x
        # END SOLUTION

    def forward(
        self, ids: Tensor, segments: Tensor | None = None, key_padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The same -> word logits [B, N, V] and pair logits [B, 2], column 0 = "is next"."""
        # BEGIN SOLUTION
        h = self.encode(ids, segments, key_padding_mask)  # [B, N, D]
        guess = self.mlm_norm(F.gelu(self.mlm_dense(h)))
        return guess @ self.token_embed.weight.T + self.mlm_bias, self.nsp(torch.tanh(self.pooler(h[:, 0])))
        # END SOLUTION


# %% [markdown] help="q6_3"
# symptom: Weights cannot be loaded: compare `state_dict().keys()` with the table. All numbers are off by a bit: the layers are
# pre-norm (the default), `embed_norm` is missing, or there is a norm too many at the end: post-norm needs none. The first
# loss is far above $\ln V$: the start is PyTorch's.
#
# hint: `nn.Embedding` of the places 0 to N - 1 broadcasts over the batch. `self.modules()` walks through all parts, those of the
# layers too: give each `nn.Linear` and `nn.Embedding` its start there. The tied product is `@ self.token_embed.weight.T`.
#
# pseudo-code: Encode: refuse long inputs; sum of three embeddings, norm, dropout; every layer with the mask. Forward:
# encode; dense, gelu, norm, times the transposed table, plus bias; and the first place through pooler, tanh, nsp.

# %% [markdown]
# What each head sees of a fresh model: the word logits are nearly even, so its loss is $\ln V$, and the pair logits are
# nearly 0, so its loss is $\ln 2$. That is what ignorance costs.

# %% tags=["plot"]
with after("q6_2", "q6_3"):
    seed_everything(0)
    fresh = build_model(BERT)
    ids, segments, padding = padded([pack(a, b, CLS, SEP, MAX_LEN) for a, b, _ in sentence_pairs(documents[:9], random.Random(0))])
    with torch.no_grad():
        logits, pair = fresh(ids, segments, padding)
    known = -logits.log_softmax(-1).gather(-1, ids[..., None])[..., 0][~padding].mean()
    print(f"{sum(x.numel() for x in fresh.parameters()):,} weights; ln V = {math.log(len(vocabulary)):.3f}, "
          f"cost of a word {known:.3f}; ln 2 = 0.693, pair logits up to {pair.abs().max():.3f}")
    plots.heatmap((logits[0] - logits[0].mean(-1, keepdim=True))[:8, :40], vocabulary.decode(ids[0, :8].tolist()), None,
                  "Word logits of a fresh model", xlabel="word", ylabel="place", numbers=False, vmin=None,
                  alt="A table of small numbers of both signs without a pattern: the fresh model prefers no word.")

# %% [markdown] question="q6_4" sources="004/12.6-why"
# ### Two losses, and whom they reach
#
# The **word loss** is the cross-entropy at the chosen places, where the label is not $-100$; the **pair loss** is the
# cross-entropy of the pair logits, with "is next" in column 0. BERT's loss is their sum.
#
# Write `pretraining_loss(word_logits, pair_logits, labels, is_next)`, for `[B, N, V]`, `[B, 2]`, int64 `[B, N]`, bool `[B]`. It
# returns `(total, words, pairs)`, three 0-dim tensors with gradients: {=three}
#
# - `words` is the mean over all chosen places of the batch; {=words} if none is chosen it is exactly 0, {=no-labels} and still
#   attached to the logits: `words.backward()` works and gives gradients of zero; {=attached}
# - `pairs` is the mean over the batch: `is_next` True is class **0**; {=pairs} `total` is the sum of the two. {=total}
#
# Cross-entropy from torch is allowed here (mind its mean over nothing, which is NaN).
#
# Second, what does each loss teach? Write `reached(task)` for `"words"` and `"pairs"`: the set of BERT's top-level names in the
# table above (`"token_embed"`, ..., `"nsp"`) that get a gradient from **that loss alone**, {=reached} for an input with some
# places chosen. Think before you try it out; the picture below tries it out. A part counts as reached where its gradient is
# not zero by construction. Anything else than these two tasks is a `ValueError`. {=other-task}

# %% question="q6_4" points=6 minutes=20 difficulty=2
def pretraining_loss(
    word_logits: Tensor, pair_logits: Tensor, labels: Tensor, is_next: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """[B, N, V], [B, 2], labels [B, N] (-100 = not asked), is_next bool [B] -> total, words, pairs, each 0-dim."""
    # BEGIN SOLUTION
    chosen = labels != -100
    each = F.cross_entropy(word_logits[chosen], labels[chosen], reduction="sum")
    words = each / chosen.sum().clamp(min=1)
    pairs = F.cross_entropy(pair_logits, (~is_next).long())
    return words + pairs, words, pairs
    # END SOLUTION


def reached(task: str) -> set[str]:
    """The top-level names of BERT's parts that get a gradient from this loss alone."""
    # BEGIN SOLUTION
    encoder = {"token_embed", "position_embed", "segment_embed", "embed_norm", "layers"}
    heads = {"words": {"mlm_dense", "mlm_norm", "mlm_bias"}, "pairs": {"pooler", "nsp"}}
    if task not in heads:
        raise ValueError(f"the tasks are {sorted(heads)}, not {task!r}")
    return encoder | heads[task]
    # END SOLUTION


# %% [markdown] help="q6_4"
# symptom: NaN where nothing is chosen: a mean over no places. The pair loss falls while the model gets worse: the classes are
# the wrong way round. `words` is right and `backward` fails: a Python 0 is not attached to anything.
#
# hint: A *sum* over no places is 0 and stays attached. Divide it by the number of places, but at least by 1. `~is_next` as a
# number is the class. For `reached`: through what does each loss look at the encoder?
#
# pseudo-code: Chosen places: label not -100. Words: summed cross-entropy over them, by max(1, their number). Pairs: cross-entropy
# with class 0 for True. Reached: embeddings, norm and layers by both; the parts of its own head by each.

# %% [markdown]
# Which parameters does which loss reach? Each bar is the size of a part's gradient from one loss alone, in a fresh model.

# %% tags=["plot"]
with after("q6_1", "q6_2", "q6_3", "q6_4"):
    seed_everything(0)
    fresh = build_model(BERT)
    batch = next(make_batches(documents, sentence_pairs, pack, mask_tokens, len(vocabulary), 1))
    names, sizes = list(dict.fromkeys(name.split(".")[0] for name, _ in fresh.named_parameters())), {}
    for which, task in ((1, "words"), (2, "pairs")):
        fresh.zero_grad()
        pretraining_loss(*fresh(*batch[:3]), batch.labels, batch.is_next)[which].backward()
        sizes[task] = [sum((x.grad.norm().item() for n, x in fresh.named_parameters()
                            if n.split(".")[0] == name and x.grad is not None), 0.0) for name in names]
    plots.bars(names, sizes, "part", "size of the gradient", "Whom each loss reaches", logy=True,
               alt="Bars for each part of BERT on a logarithmic axis: its gradient from the word loss and from the pair loss.")

# %% [markdown] explain="q6_14" sources="004/12.6-why" points=2 minutes=8 difficulty=1
# ### In your own words: why two tasks?
#
# BERT was trained on hidden words *and* on pairs. Say what the word loss alone would leave untaught, with the picture
# above, what the pair task adds, and why a low pair loss alone would be no sign that the model understands words. Name one
# reason to doubt that the pair task is worth its cost. Four sentences or so.
#
# BEGIN SOLUTION
# The word loss asks every chosen place about itself, so it teaches tokens in their context, but it gives pooler and pair head no
# gradient at all, and nothing asks the first place to sum up the input. The pair loss trains exactly that read-out, and asks
# for relations that go beyond one sentence. Alone it would be a poor teacher: one bit for each pair against some words for each
# sentence, and it can be small although most words were never needed, say where the topic gives the answer away. That is also
# the doubt: with seconds from other documents the task is often solved by topic, and later models (RoBERTa) dropped it without
# loss or replaced it by sentence order (ALBERT).
#
# **Rubric.** 1 point: the pair head and the read-out at `[CLS]` get no gradient from words, the pair task trains them. 1 point: a
# pair label is little information, or is told by topic, and later work dropped or replaced it.
# END SOLUTION

# %% [markdown]
# ### The pretraining run
#
# Now both tasks, on the stories: 1,500 steps of 64 pairs, masks and pairs drawn anew in every epoch. The cell
# writes a checkpoint every 250 steps, and goes on from it if it is interrupted and run again; to begin anew, set `RESUME =
# False`.
#
# **Predict first.** How far can the word loss fall, if a name is one of ten and nothing tells which? Which of the two losses
# will move first, and will the other fall with it? How many pairs can be told right at best, if a wrong second sentence
# sometimes fits by accident?
#
# <details><summary>What ours did</summary>
#
# It took about 40 seconds of one core, and some minutes on a busy laptop. The word loss on held-out stories fell from
# 4.5 to 1.12. It cannot reach 0: which of ten names, and which of eight things, is often anybody's guess. The pair loss stays at
# $\ln 2 = 0.693$ for the first half of the run, as if there was nothing to learn, and then falls within a hundred steps, to 0.36 at the
# end: 86 percent of the pairs are told right. A quarter of the wrong pairs fit by accident, so 1 is out of reach. That plateau is
# typical of labels that need two sides at once: neither sentence alone says anything, and the model must first know words.
#
# </details>
#
# With `COURSE_FAST=1` in the environment the cell makes 30 steps into a file of another name.

# %% tags=["training"]
RESUME = True
bert = None
with after("q6_1", "q6_2", "q6_3", "q6_4", what="training run"):
    steps, every, file = (30, 15, Path(f"fast_{CHECKPOINT}")) if fast() else (STEPS, 250, Path(CHECKPOINT))
    seed_everything(0)
    bert = build_model(BERT).to(device)
    optimizer = torch.optim.AdamW(bert.parameters(), betas=BETAS)
    start, curves = load_checkpoint(file, bert, optimizer) if RESUME and file.exists() else 0, Curves()
    look = to_device(next(make_batches(encoded(held_out), sentence_pairs, pack, mask_tokens, len(vocabulary), 1, 600, 1)), device)
    batches = make_batches(documents, sentence_pairs, pack, mask_tokens, len(vocabulary), steps)
    for step, batch in enumerate(progress(batches, total=steps), 1):
        if step <= start:
            continue  # these were made before
        inputs, segments, padding, labels, is_next = to_device(batch, device)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps)
        total, _, _ = pretraining_loss(*bert(inputs, segments, padding), labels, is_next)
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(bert.parameters(), 1.0)
        optimizer.step()
        if step % 25 == 0 or step % every == 0 or step == steps:
            with torch.no_grad():
                word_logits, pair_logits = bert(*look[:3])
                _, words_now, pairs_now = pretraining_loss(word_logits, pair_logits, *look[3:])
            right = (pair_logits.argmax(1) == (~look[4]).long()).double().mean()
            curves.add(step, words=words_now.item(), pairs=pairs_now.item(), right=right.item())
        if step % every == 0 or step == steps:
            save_checkpoint(file, bert, optimizer, step, note=f"words {words_now:.3f}, pairs {pairs_now:.3f}")
            print(f"step {step}: words {words_now:.3f}, pairs {pairs_now:.3f}, pairs told right {right:.3f}")
    bert.eval()

# %% tags=["training"]
with after("q6_1", "q6_2", "q6_3", "q6_4", what="picture"):
    if curves.values:
        curves.plot("words", "pairs", title="Two tasks, one encoder", ylabel="loss on held-out stories",
                    alt="Loss on held-out stories over the steps: one curve for words, one for pairs.")
    hidden = torch.tensor([[CLS, *documents[0][0], SEP]], device=device)
    for place in (1, 3, 5):
        asked = hidden.clone()
        asked[0, place] = MASK
        with torch.no_grad():
            best = bert(asked)[0][0, place].softmax(-1).topk(4)
        print(" ".join(vocabulary.decode(asked[0].tolist())), "->",
              ", ".join(f"{vocabulary.tokens[i]} {p:.2f}" for p, i in zip(best.values, best.indices, strict=True)))

# %% [markdown] question="q6_12"
# ### Fine-tuning
#
# What was it good for? Take a task that somebody had to label: are two sentences *told in the right order*? The encoder
# was not asked that before. *Fine-tuning* puts a small new head on a copy of the pretrained encoder and trains **all of it** on
# the few labels that there are.
#
# Write `fine_tune(bert, examples, labels, n_classes, steps=150, rate=1e-3, seed=0)`. `examples` is `(ids, segments,
# key_padding_mask)`, tensors `[n, N]` as `encode` takes them; segments and mask may be None. {=nones} `labels` is int64 `[n]`. It
# returns an `nn.Module` whose `forward(ids, segments=None, key_padding_mask=None)` gives logits `[B, n_classes]`. {=classifier}
#
# - It starts from `bert`'s encoder and is trained end to end: embeddings and layers move as the new head does. {=end-to-end}
#   `steps` counts updates. {=steps} Read-out (first token, masked mean, `pooler`, ...), optimiser and batches are yours.
# - `bert` itself is not changed: its weights, {=weights} gradients, mode and `requires_grad` are what they were. {=bert-stays}
# - Neither the content nor the amount of padding moves the logits. {=padding}
# - The result is in evaluation mode. {=evaluation}
# - The same seed gives the same classifier, whatever happened before. {=seed}

# %% [markdown]
# **How this question is judged.** By these rules, and by what pretraining brings in 60 steps on 96 labels. The grader
# pretrains a small `BERT` of yours for a second, on hidden words of a language that it has just invented: words of four
# kinds, each sentence of one kind. Then you are given labels for sentences in half of the words, and asked about sentences in
# the other half, of which only pretraining can know. {~beats-scratch} Hidden checks also try a `bert` in training mode, with frozen
# parameters or with gradients on it, and look whether all of the encoder was trained. {~frozen}

# %% question="q6_12" points=7 minutes=25 difficulty=3 uses=["q6_3"] limits={"wall": 60}
def fine_tune(
    bert: nn.Module, examples: tuple[Tensor, Tensor | None, Tensor | None], labels: Tensor, n_classes: int,
    steps: int = 150, rate: float = 1e-3, seed: int = 0,
) -> nn.Module:
    """A classifier on a copy of bert's encoder, trained on examples (ids, segments, key_padding_mask) [n, N]."""
    # BEGIN SOLUTION
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = _Classifier(bert, n_classes).to(labels.device).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        for _ in range(steps):
            rows = torch.randperm(len(labels))[:32].to(labels.device)
            batch = [None if part is None else part[rows] for part in examples]
            loss = F.cross_entropy(model(*batch), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


class _Classifier(nn.Module):
    """A copy of bert's encoder, and a linear head on the first token."""

    def __init__(self, bert: nn.Module, n_classes: int) -> None:
        super().__init__()
        self.bert = copy.deepcopy(bert).requires_grad_(True)
        self.head = nn.Linear(bert.token_embed.embedding_dim, n_classes, dtype=bert.token_embed.weight.dtype)

    def forward(self, ids: Tensor, segments: Tensor | None = None, key_padding_mask: Tensor | None = None) -> Tensor:
        """ids, segments, key_padding_mask [B, N] -> logits [B, n_classes]."""
        return self.head(self.bert.encode(ids, segments, key_padding_mask)[:, 0])
    # END SOLUTION


# %% [markdown] help="q6_12"
# symptom: `bert` is another after the call: you trained it, not a copy, or `.train()` and `.eval()` reached it. Logits move with
# padding: the mask did not reach `encode`, or the mean runs over padded places. The same seed gives two classifiers: the head's
# start or the batches were drawn before the seed was set.
#
# hint: `copy.deepcopy(bert)` takes weights, and also frozen flags along: set `requires_grad_(True)` on the copy. Seed torch as the
# very first thing (inside `torch.random.fork_rng()`, if others are not to notice).
#
# pseudo-code: Seed. A module that holds the copy and a linear layer; forward: encode, first token, linear. Train mode; steps times:
# some rows, cross-entropy, zero_grad, backward, step. Evaluation mode; return.

# %% [markdown]
# Pretrained against fresh weights, from 16 to 512 labels, three seeds each. The task is the order of two sentences, told
# from 500 new pairs. **Predict first**: how many labels does each of the two need? The cell takes about half a minute.
#
# <details><summary>What ours did</summary>
#
# The pretrained encoder is right on eight of ten with 16 labels and on all with 32; the fresh one guesses, with 512 labels too.
#
# </details>

# %% tags=["training"]
with after("q6_3", "q6_12", what="experiment"):
    new, answers = order_task(500, 777)
    counts = [16, 64] if fast() else [16, 32, 64, 128, 512]
    seeds = range(1) if fast() else range(3)
    told = {"pretrained": [], "from scratch": []}
    for n in counts:
        for name, results in told.items():
            scores = []
            for seed in seeds:
                seed_everything(seed)
                begin = bert if name == "pretrained" and bert is not None else build_model(BERT)
                some, labels = order_task(n, 1000 + seed)
                one = fine_tune(begin.cpu(), some, labels, 2, steps=10 if fast() else 60, seed=seed)
                scores.append(accuracy(one, new, answers))
            results.append(sum(scores) / len(scores))
        print(f"{n} labels:", "  ".join(f"{name} {values[-1]:.3f}" for name, values in told.items()))
    plots.curves(counts, told, "labels", "right on 500 new pairs", "What pretraining was worth", logx=True, marks=True,
                 alt="Share told right over the number of labels: one curve pretrained, one from scratch.")

# %% [markdown]
# Is it always worth so much? The stories come with other labels: their **theme**, their **mood**, and **who** is meant where a
# sentence says *they*. **Predict first**: for which of the three is a list of words enough, so that fresh weights will do? For
# which must the model look from one sentence into the other?
#
# <details><summary>What ours did</summary>
#
# With 256 labels and one seed, pretrained against fresh: theme 0.64 and 0.87, mood 0.75 and 0.81, who 0.21 and 0.65. Here
# pretraining *hurts*. Theme and mood stand in single words, which fresh weights pick up quickly. And our classifier reads
# the first token, which pretraining has taught one thing: do these two sentences belong together? That was just what the order
# of sentences needed, and here it must first be unlearned, in 60 steps. What pretraining is worth depends on the task, and
# on where you read. Try the mean of all tokens, or more steps.
#
# </details>

# %% tags=["training"]
from course_utils.hw6.story_labels import LABELS, labelled_pairs

with after("q6_3", "q6_12", what="experiment"):
    for what, classes in LABELS.items():
        asked = labelled_pairs(what, 500, 778)
        for n in [16] if fast() else [16, 64, 256]:
            scores = {}
            for name in told:
                seed_everything(0)
                begin = bert if name == "pretrained" and bert is not None else build_model(BERT)
                some = labelled_pairs(what, n, 2000)
                one = fine_tune(begin.cpu(), some.examples, some.labels, len(classes), steps=10 if fast() else 60)
                scores[name] = accuracy(one, *asked)
            print(f"{what}, {len(classes)} answers, {n} labels:",
                  "  ".join(f"{name} {score:.2f}" for name, score in scores.items()))

# %% [markdown]
# ### Your own text
#
# Everything above works for any folder of `.txt` files. Set the environment variable `STORIES` to one, restart, and run the
# cell: paragraphs become documents, the 8,000 most frequent words tokens. Otherwise it says that it was skipped. Real text is
# larger than this model, so do not expect more than the most frequent words from a few hundred steps.

# %% tags=["training"]
folder = os.environ.get("STORIES")
if not folder:
    print("Skipped: set STORIES to a folder of .txt files to train on them.")
else:
    with after("q6_1", "q6_2", "q6_3", "q6_4", what="training run"):
        texts, own = read_folder(folder)
        own_documents = [[own.encode(sentence) for sentence in text] for text in texts]
        seed_everything(0)
        real, steps = build_model(BERT, len(own)).to(device), 20 if fast() else 400
        optimizer, losses = torch.optim.AdamW(real.parameters(), lr=1e-3), []
        for batch in progress(make_batches(own_documents, sentence_pairs, pack, mask_tokens, len(own), steps), total=steps):
            inputs, segments, padding, labels, is_next = to_device(batch, device)
            total, word_loss, _ = pretraining_loss(*real(inputs, segments, padding), labels, is_next)
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            losses.append(word_loss.item())
        plots.curves(range(1, len(losses) + 1), {"word loss": losses}, "step", "loss", "Your own text",
                     alt="The word loss of the training run falls, quickly at first, then slowly.")

# %% [markdown]
# ## Part III. Tasks of your own
#
# Hidden words and next sentences are two ways to get labels for nothing. There are many more, of two kinds.

# %% [markdown] question="q6_5" sources="004/12.6-labels"
# ### Generative and contrastive
#
# A **generative** task asks for a piece of the data itself: the answer is a word or several out of the vocabulary. A
# **contrastive** task shows pieces and asks which belong together, or whether they do: nothing has to be produced, only told
# apart. Write `task_kind(task)`, `"generative"` or `"contrastive"`, for these six: {=kinds}
#
# `"masked words"`, `"next sentence"`, `"next word"`, `"sentence order"`, `"which caption belongs to which image"`,
# `"fill the gap of a span"`.
#
# Any other name is a `ValueError`. {=unknown}
#
# The most used contrastive loss is **InfoNCE** (van den Oord 2018; CLIP trains on it). Two encoders give `a` and `b`, both `[B, D]`;
# row $i$ of one belongs to row $i$ of the other. Scale all rows to length 1, and take the table of similarities over a
# temperature, $s_{ij} = \hat a_i \cdot \hat b_j / \tau$. Every row is then a question with $B$ answers, "which $b$ belongs to
# $a_i$?", and so is every column:
#
# $$L = \frac12 \Big( \frac1B \sum_i -\log \frac{e^{s_{ii}}}{\sum_j e^{s_{ij}}}
#   + \frac1B \sum_i -\log \frac{e^{s_{ii}}}{\sum_j e^{s_{ji}}} \Big).$$

# %% [markdown]
# Write `info_nce(a, b, temperature=0.1)`, a 0-dim tensor: {=one-number} the mean of the cross-entropies in both directions. {=both-ways}
# The length of a row does not matter. {=lengths} `B = 1` gives 0. {=one-row} It is finite in float32 for
# temperatures from `1e-6` on. {=cold} Rows are not zero. Gradients flow into both. {=gradients}
#
# By hand: if all rows of `a` and `b` are the same vector, every similarity is the same, and the loss is $\ln B$. If `a = b` has
# orthogonal rows and $\tau = 1$, it is $\ln(1 + (B - 1)/e)$: 0.3133 for $B = 2$.

# %% question="q6_5" points=6 minutes=20 difficulty=2
def task_kind(task: str) -> str:
    """"generative" or "contrastive", for the six tasks of the text."""
    # BEGIN SOLUTION
    kinds = dict.fromkeys(("masked words", "next word", "fill the gap of a span"), "generative")
    kinds |= dict.fromkeys(("next sentence", "sentence order", "which caption belongs to which image"), "contrastive")
    if task not in kinds:
        raise ValueError(f"the tasks are {', '.join(kinds)}, not {task!r}")
    return kinds[task]
    # END SOLUTION


def info_nce(a: Tensor, b: Tensor, temperature: float = 0.1) -> Tensor:
    """a, b [B, D], row i belongs to row i -> the mean of both directions' cross-entropies, 0-dim."""
    # BEGIN SOLUTION
    a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
    similarities = a @ b.T / temperature  # [B, B]
    own = torch.arange(len(a), device=a.device)
    return (F.cross_entropy(similarities, own) + F.cross_entropy(similarities.T, own)) / 2
    # END SOLUTION


# %% [markdown] help="q6_5"
# symptom: Right where `a` and `b` are alike and wrong elsewhere: only one direction is there. Infinite at a small temperature: exp
# was taken before a maximum was subtracted. The loss changes with the length of a row: scale to length 1.
#
# hint: The table $s$ holds logits, and the right class of row $i$ is $i$. Both directions are one function, of $s$ and of $s^\top$.
# `log_softmax` and `F.cross_entropy` are stable.
#
# pseudo-code: Kinds: is a word to be written (generative), or a belonging to be told? InfoNCE: normalise rows; product over
# temperature; mean of cross-entropy of the table and of its transpose, with labels 0 to B - 1.

# %% [markdown]
# What the temperature does. Two noisy views of 64 random vectors, and how the loss, and the share of its gradient that the
# *hardest* wrong answer of each row gets, depend on $\tau$. Warm, all 63 wrong answers are pushed alike; cold, only the nearest is.

# %% tags=["plot"]
with after("q6_5"):
    g = torch.Generator().manual_seed(0)
    meaning = torch.randn(64, 16, generator=g)
    a, b = (meaning + 0.7 * torch.randn(64, 16, generator=g) for _ in range(2))
    temperatures = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]
    losses = [info_nce(a, b, t).item() for t in temperatures]
    wrong = (F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T).masked_fill(torch.eye(64, dtype=torch.bool), -torch.inf)
    hardest = [(wrong / t).softmax(-1).amax(-1).mean() for t in temperatures]
    plots.curves(temperatures, {"loss": losses, "share of the hardest": hardest}, "temperature", "", "InfoNCE by temperature",
                 logx=True, marks=True,
                 alt="The loss is least at a temperature near 0.1 to 0.2 and grows to both sides. The share of the hardest wrong "
                 "answer falls from nearly 1 at 0.02 to about 1/63 at 2.")

# %% [markdown] question="q6_6" sources="004/12.6-novel"
# ### Two tasks of your own
#
# Invent **two contrastive tasks** that need no human label. Write `my_tasks()`, which returns `(task_1, task_2)`, two functions
# `task(documents, rng)`: `documents` as in @q6_2, `rng` a `random.Random`; each returns a list of `(first, second, label)`, two
# lists of ints and a bool. {=form}
#
# A bad task has a **leak**: the label can be told without reading what was meant to be read. So a task must keep to rules that a
# program can check, on at least 400 stories of our grammar:
#
# - all chance comes from `rng`; {=reproducible} the documents are not changed; {=documents-stay}
# - at least as many examples as there are documents with two or more sentences; {=enough} all tokens come from the
#   documents; {=tokens}
# - each label has between 35 and 65 percent; {=balance}
# - the label cannot be told from `first` alone, nor from `second` alone, nor from the two lengths: a linear classifier on
#   counts of words, or on the lengths, stays below 65 percent on examples that it has not seen; {=leaks}
# - neither is next-sentence prediction: {=not-nsp} that is a task where at least 90 percent of one label are a sentence and its
#   true successor, and at least 80 percent of the other take `second` from another document;
# - the two are not the same task: not the same examples with the same labels, nor with all labels reversed, from the same
#   `rng`. {=two}
#
# *Sentence order* is allowed, since it keeps to the rules here. In many texts it would not: openings give it away.

# %% question="q6_6" points=7 minutes=30 difficulty=3
def my_tasks() -> tuple[Callable, Callable]:
    """Two functions task(documents, rng) -> list of (first, second, label)."""
    # BEGIN SOLUTION
    def told_in_order(documents, rng):
        """Two neighbouring sentences: in their order (True), or the other way round?"""
        examples = []
        for document in documents:
            for pair in zip(document, document[1:], strict=False):
                label = rng.random() < 0.5
                first, second = pair if label else pair[::-1]
                examples.append((list(first), list(second), label))
        return examples

    def same_story(documents, rng):
        """Two sentences at any places: of one story (True), or of two?"""
        examples = []
        for document in documents:
            for _ in range(len(document) // 2):
                first, second = rng.sample(document, 2)
                label = rng.random() < 0.5
                while not label and second in document:
                    second = rng.choice(rng.choice(documents))
                examples.append((list(first), list(second), label))
        return examples

    return told_in_order, same_story
    # END SOLUTION


# %% [markdown] help="q6_6"
# symptom: `second` alone tells the label: wrong seconds were made in a way that leaves traces (shuffled words, a word that never
# stands there, sentences of a special kind). The labels are balanced only on average over few documents: throw the coin for
# each example. Results differ from run to run: `random.random()` instead of `rng.random()`.
#
# hint: Make wrong examples from the same material as right ones, so that each side by itself looks the same: swap two sentences,
# take one from another story, exchange a word for one of the same kind *in both directions*. Which relation between two
# sentences do you want to ask about?
#
# pseudo-code: For each document, for some pairs of its sentences: coin; if wrong, spoil the relation (swap, or another document's
# sentence); append (first, second, coin). Once for each of two relations.

# %% [markdown]
# How hard are they? For next sentence, sentence order and your two: what a linear classifier tells from each side and from the
# lengths, and what a *bag of words* tells that counts the words which the two sentences share. Where that bar is high, the task
# can be solved without reading in order.

# %% tags=["plot"]
def turned(documents: list, rng: random.Random) -> list:
    """Neighbouring sentences, told in their order or the other way round."""
    pairs = [pair for document in documents for pair in zip(document, document[1:], strict=False)]
    coins = [rng.random() < 0.5 for _ in pairs]
    return [(*(pair if coin else pair[::-1]), coin) for pair, coin in zip(pairs, coins, strict=True)]


with after("q6_2", "q6_6"):
    four = {"next sentence": sentence_pairs, "sentence order": turned}
    four |= dict(zip(("your first", "your second"), my_tasks(), strict=True))
    made = {name: task(documents[:600], random.Random(0)) for name, task in four.items()}
    found = {name: leaks(examples) | {"shared words": shared_words(examples)} for name, examples in made.items()}
    plots.bars(list(found), {key: [found[name][key] for name in found] for key in ("first", "second", "lengths", "shared words")},
               "task", "told right", "What can be told without reading",
               alt="Four groups of bars, one for each task: told right by the first, the second, lengths and shared words.")
    print({name: {key: round(value, 3) for key, value in row.items()} for name, row in found.items()})

# %% [markdown] explain="q6_15" sources="004/12.6-novel" points=2 minutes=8 difficulty=2
# ### In your own words: what makes a good contrastive task?
#
# Judge your own two tasks of @q6_6. What must a model know to solve each, which shortcut did you have to close (or is still
# open, say that of shared words), and for which use would you expect each to help? Then say why "does the second sentence
# follow logically from the first?" is no such task. Five sentences or so.
#
# BEGIN SOLUTION
# A good contrastive task has labels that come from the text by construction, needs both sides and what one wants to be learned,
# and has no cheaper way to its label. Our first, sentence order, needs what happens after what and who has the thing; both sides
# have the same words whatever the label, so topic and shared words tell nothing, and only openings could leak, which these stories
# have not. Our second, same story, needs theme, mood and people; it says nothing about order, and shared names are a shortcut
# that is still open, so it may teach topics more than reading. The first should help where relations between sentences matter, the
# second for search and sorting by topic. "Follows logically" cannot be computed from the text: somebody has to judge each pair, so it
# is supervised learning with human labels, however contrastive it looks.
#
# **Rubric.** 1 point: names what each own task requires and at least one shortcut, closed or open. 1 point: labels by construction,
# and logical inference needs human labels.
# END SOLUTION

# %% [markdown]
# ## Part IV. A model that writes
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
# with thresholds such that a right answer fails less than once in a thousand million runs.

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
# What your model writes about the people of the stories, in four ways. The bars count how many of the pairs of
# neighbouring words in 40 words were there before in the same text. Which way runs in circles?

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
               alt="Four bars, one for each way: the share of pairs of words that were there before.")

# %% [markdown]
# Greedy decoding does: what was likely once is likely again, and chance leads out.
#
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
# Two models of the same stories, one that reads words and one that reads letters, each trained for the same time. Which
# one has the smaller perplexity, and is it the better one? Bits per character tell.

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
               alt="Bars on a logarithmic axis: perplexity and bits per character of a model of words and of one of letters.",
               logy=True)

# %% [markdown]
# ## Part V. Before you believe it
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
# output moves when the tokens before it change places. From how many layers on does it move?
#
# <details><summary>What we see</summary>
#
# With one layer it does not move at all: each token before the
# last is itself, and the last takes a sum. From two layers on it does, for then a token has heard those before it.
#
# </details>

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
                 alt="How far the last output moves when the past is turned round, over one to four layers, with and without a mask.")

# %% [markdown]
# And the last claim. The same small model of masked words, the same 60 sentences, the same number of steps: once the chosen
# places are drawn once and for all, once anew in every epoch. The loss is measured on other sentences.

# %% tags=["training"]
with after("q6_7", what="run"):
    curves = fixed_or_anew(epochs=2 if fast() else 30)
    plots.curves(curves.pop("epoch"), curves, "epoch", "loss on other sentences", "Masks that stay, and masks drawn anew",
                 alt="The loss of masked words on other sentences over epochs: masks that stay, and masks drawn anew.")

# %% tags=["plot"]
with after("q6_13"):
    found = false_claims()
    for name in CLAIMS:
        if name in found:
            print(f"{name:30} {'holds on your example' if holds(name, found[name]) else 'broken by your example'}")
        else:
            print(f"{name:30} you let it stand")

# %% [markdown]
# ## What to read next
#
# - Devlin and others (2019), [*BERT: pre-training of deep bidirectional transformers for language
#   understanding*](https://arxiv.org/abs/1810.04805): Parts I and II, at full size.
# - Liu and others (2019), [*RoBERTa*](https://arxiv.org/abs/1907.11692): without the pair task, with masks drawn anew. Lan and
#   others (2020), [*ALBERT*](https://arxiv.org/abs/1909.11942): sentence order instead.
# - Clark and others (2020), [*ELECTRA*](https://arxiv.org/abs/2003.10555): was this word replaced? A contrastive task for every
#   place.
# - Van den Oord, Li and Vinyals (2018), [*Representation learning with contrastive predictive
#   coding*](https://arxiv.org/abs/1807.03748): InfoNCE. Radford and others (2021), [*Learning transferable visual models from natural
#   language supervision*](https://arxiv.org/abs/2103.00020): CLIP.
# - Radford and others (2018, 2019), [*Language models are unsupervised multitask
#   learners*](https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf): GPT-2.
# - Holtzman and others (2020), [*The curious case of neural text degeneration*](https://arxiv.org/abs/1904.09751): why one samples
#   from the nucleus.
# - Prince (2023), [*Understanding Deep Learning*](https://udlbook.github.io/udlbook/), chapter 12.
#
# Before you hand in, restart the kernel, run everything from top to bottom, and look at the checks once more.

# %%
grader.check_all()
