# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] summary="training, greedy and beam search, cached decoding, BLEU"
# # Homework 4: A translation Transformer
#
# Three homeworks of parts. In this one they become a machine: an encoder that reads a sentence, a decoder
# that writes another one, a training loop, and three ways of asking the trained model for a translation. This
# is the model of Vaswani (2017), whole, and much of what was built since is a variation of it.
#
# Our language pair is English and German. The parts are built and tried on **number words**, a translation task with a
# grammar of its own (*fifty-six* is *sechs-und-fünfzig*, six and fifty) that is small enough to count in. Then the
# machine learns **everyday sentences**, of which there is no end: verbs that move to the end, prefixes that part,
# endings that agree. A laptop learns them in a few minutes, you type your own, and the same notebook trains on a real
# corpus if you have one.
#
# **When you are done, you will be able to**
#
# - turn lists of tokens into padded, shifted batches, and say what each position is asked to predict;
# - build the whole Transformer, and show that it gives PyTorch's numbers;
# - smooth labels, warm up a learning rate, and write a training step that you can trust;
# - decode greedily, with a beam, and with a cache, and know what each of them promises;
# - say where the operations go, and what a second target language costs;
# - train, save, resume, and judge a translation with exact match, BLEU and chrF.
#
# **What you need**: homeworks 1 to 3, or at least their ideas, and some minutes for training. No GPU, no
# downloads.

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
# The last three questions, @q4_11 to @q4_13, ask for a few sentences instead of code, and a person reads them.
#
# Later questions may use your earlier answers. Where an earlier one is wrong, the later one is judged
# with ours in its place too, so an error costs its points once.
#
# **Hand in the checkpoint** `hw4_translation.safetensors` that Part IV writes together with the notebook,
# if your course lets you: @q4_10 is judged by it.

# %% [markdown]
# ## The convention card
#
# The same in every homework. All of its rows meet in this one.

# %% [markdown] card=true
# The convention card of the course stands here.

# %%
import copy
import math
import warnings
from collections.abc import Sequence

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils import Grader, after, pick_device, plots, seed_everything
from course_utils.data import BOS, EOS, PAD
from course_utils.hw4.captions import train_captions
from course_utils.instruments.torch_match import decoder_layer_state, encoder_layer_state
from course_utils.instruments.work import count_work
from course_utils.notebook.runs import TrainingRun
from course_utils.notebook.training import (
    EarlyStop,
    autocast_for,
    fast,
    progress,
    to_device,
)

plt.rcParams["figure.dpi"] = 100  # for pictures of your own
seed_everything(0)
device = pick_device()
grader = Grader("hw4_translation")

# %% [markdown]
# ## What you bring along
#
# From homework 1: `softargmax` and `attention`. From homework 2: `split_heads`, `merge_heads` and
# `MultiHeadAttention`. From homework 3: `sinusoidal_encoding`, `FeedForward`, `EncoderLayer`, called as
# `layer(x, key_padding_mask=None)`, and `DecoderLayer`, called as `layer(x, memory, memory_padding_mask=None)`,
# causal by itself. The cells below hold our versions. Replace them by your own if you like: the rest of the
# notebook asks for the names and meanings only.

# %% given="hw1_attention q1_1 q1_7"
from hw1_attention import attention, softargmax  # noqa: F401

# %% given="hw2_multihead q2_1 q2_2"
from hw2_multihead import MultiHeadAttention, merge_heads, split_heads  # noqa: F401

# %% given="hw3_blocks q3_5 q3_6 q3_7 q3_8"
from hw3_blocks import DecoderLayer, EncoderLayer, FeedForward, shift_matrix, sinusoidal_encoding  # noqa: F401

# %%
print(f"training will run on: {device}")

# %% [markdown]
# ## Part I. From sentences to a model
#
# The task itself, its sizes and its scores come from `course_utils/hw4/translation.py`: short, and worth reading once.

# %%
from course_utils.hw4.translation import (
    BETAS,
    MAX_LEN,
    RATE,
    SIZES,
    WARMUP,
    WordList,
    bleu,
    build_model,
    chrf,
    corpus,
    cross_attention,
    encode_pairs,
    exact_match,
    make_batches,
    translate,
    vocabularies,
)

# %% [markdown]
# Here are some pairs. The words are tokens, hyphens and commas too, and German's long words are taken apart
# (in print *sechs und fünfzig* is one word). `corpus()` gives the pairs to train on and those that are held
# out, and the two **vocabularies**: `encode` turns tokens into numbers and `decode` turns them back. Four
# numbers are special in both: 0 is padding (`PAD`), 1 begins a sentence (`BOS`), 2 ends it (`EOS`), and 3
# stands for words that the vocabulary does not have.

# %% tags=["plot"]
data = corpus()
for source, target in data.train[:5]:
    print(" ".join(source), " -> ", " ".join(target))
print(f"{len(data.train)} pairs to train on, {len(data.held_out)} held out;", end=" ")
print(f"{len(data.source)} English and {len(data.target)} German tokens")
print(data.target.encode(data.train[0][1]))

# %% [markdown] question="q4_1"
# ### Padding and shifting
#
# Sentences have different lengths, and a tensor has not. So short sentences are filled up **on the right**
# with `pad_id`, to the length of the longest in the batch, and a mask says which places are filling.
#
# The decoder is trained by **teacher forcing**: at every place it is given the right words so far, and asked
# for the next one. That is one sequence, written down twice and shifted by one:
#
# | place | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | inputs | BOS | sechs | und | fünfzig |
# | labels | sechs | und | fünfzig | EOS |
#
# Because the decoder is causal, place $t$ sees the inputs $0, \dots, t$ and never its own label, and all places
# of all sentences are trained in one pass. {-} Without the shift the model would be asked to copy what it sees.
#
# Write
#
# - `pad_batch(sequences, pad_id)`: `sequences` is a list of $B$ lists of ints. It returns the pair
#   `(ids, key_padding_mask)`: `ids` is an int64 tensor `[B, N]`, with $N$ the length of the longest, filled up with
#   `pad_id`, whichever number that is,{=ids} and the mask is bool `[B, N]`, **True = padding**.{=mask} The mask follows
#   from the *lengths*: a `pad_id` inside a sentence is a real token, and not masked.{=pad-inside}
# - `teacher_forcing(target, bos_id, eos_id, pad_id)`: `target` is a list of lists **without** BOS and EOS, the
#   longest of length $T$. It returns the pair `(inputs, labels)`, both int64 `[B, T + 1]`, padded on the right
#   with `pad_id`.{=forcing} (What stands in `inputs` where the label is padding does not matter: nothing is asked there.)
#
# A sentence may be empty, and the lists that you are given stay as they are.{=given-stays}
#
# By hand, with PAD 0, BOS 1 and EOS 2: the targets `[7, 8, 9]` and `[5]` give the inputs `[[1, 7, 8, 9],
# [1, 5, 0, 0]]` and the labels `[[7, 8, 9, 2], [5, 2, 0, 0]]`.

# %% question="q4_1" points=6 minutes=15 difficulty=1
def pad_batch(sequences: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """B lists of ints -> ids [B, N], padded on the right, and key_padding_mask bool [B, N] (True = padding)."""
    # BEGIN SOLUTION
    longest = max(map(len, sequences), default=0)
    ids = torch.tensor([[*s, *[pad_id] * (longest - len(s))] for s in sequences], dtype=torch.long)  # [B, N]
    lengths = torch.tensor([len(s) for s in sequences])
    return ids, torch.arange(longest) >= lengths[:, None]
    # END SOLUTION


def teacher_forcing(
    target: Sequence[Sequence[int]], bos_id: int, eos_id: int, pad_id: int
) -> tuple[Tensor, Tensor]:
    """B lists without BOS and EOS, the longest of length T -> inputs and labels, both [B, T + 1]."""
    # BEGIN SOLUTION
    inputs, _ = pad_batch([[bos_id, *s] for s in target], pad_id)
    labels, _ = pad_batch([[*s, eos_id] for s in target], pad_id)
    return inputs, labels
    # END SOLUTION


# %% [markdown] help="q4_1"
# symptom: A real token is masked: you compared `ids == pad_id` instead of looking at the lengths. EOS stands at
# the end of the row behind the padding, or is missing in all but the longest sentence: it was added after
# padding. Labels equal inputs: the shift is missing.
#
# hint: Add BOS and EOS to the *lists*, then pad. Both results then have length T + 1 by themselves. For the
# mask compare a row of places with a column of lengths.
#
# pseudo-code: N is the largest length. Each row: the sentence and N minus its length times pad. Mask: place
# at least length. Inputs: pad_batch of BOS + sentence. Labels: pad_batch of sentence + EOS.

# %% [markdown]
# Three sentences of the corpus as a batch: what the encoder reads, what the decoder reads, and what it is asked
# for. Grey is padding.

# %% tags=["plot"]
with after("q4_1"):
    some = sorted(data.train[:40], key=lambda pair: len(pair[1]))[::13][:3]
    sources, targets = encode_pairs(some)
    src, src_padding = pad_batch(sources, PAD)
    inputs, labels = teacher_forcing(targets, BOS, EOS, PAD)
    plots.token_tables(
        {
            "source": ([[data.source.tokens[i] for i in row] for row in src.tolist()], src_padding),
            "inputs": ([[data.target.tokens[i] for i in row] for row in inputs.tolist()], inputs == PAD),
            "labels": ([[data.target.tokens[i] for i in row] for row in labels.tolist()], labels == PAD),
        },
        "One batch: padded on the right, labels one step ahead",
        alt="Three tables of tokens with three rows each. Short rows end in grey padding. The inputs begin with bos, "
        "and the labels are the same words one place further left, with eos at the end.",
    )

# %% [markdown] told="003/0-figure 002/2-overview 002/2.3-cross 003/2-b-iii: the question that follows builds all of it"
# The whole machine of the next question. On the left the encoder, read once for each source; on the right the decoder,
# which asks it in every layer. The source's padding is masked in two places, in the encoder's self-attention and in the
# decoder's cross-attention; the decoder's self-attention is causal. (The figure of 2017 has its norms behind the sums;
# ours are pre-norm, which is why each stack ends with one.)

# %% tags=["plot"]
plots.diagram(
    {
        "source tokens": (0, 0, "data"), "√D · E_s + positions": (0, 1, "layer"),
        "n × self-attention,\nfeed-forward": (0, 2.2, "attention"), "encoder_norm": (0, 3.3, "norm"),
        "memory [B, S, D]": (0, 4.3, "data"),
        "target tokens so far": (4.2, 0, "data"), "√D · E_t + positions": (4.2, 1, "layer"),
        "n × causal self-att.,\ncross-att., feed-forward": (4.2, 2.2, "attention"), "decoder_norm": (4.2, 3.3, "norm"),
        "times E_t transposed": (4.2, 4.3, "output"), "logits [B, T, V]": (4.2, 5.3, "data"),
    },
    [
        ("source tokens", "√D · E_s + positions"), ("√D · E_s + positions", "n × self-attention,\nfeed-forward"),
        ("n × self-attention,\nfeed-forward", "encoder_norm"), ("encoder_norm", "memory [B, S, D]"),
        ("target tokens so far", "√D · E_t + positions"),
        ("√D · E_t + positions", "n × causal self-att.,\ncross-att., feed-forward"),
        ("n × causal self-att.,\ncross-att., feed-forward", "decoder_norm"), ("decoder_norm", "times E_t transposed"),
        ("times E_t transposed", "logits [B, T, V]"),
        ("memory [B, S, D]", "n × causal self-att.,\ncross-att., feed-forward", "keys, values"),
    ],
    "Encoder and decoder",
    alt="Two columns of boxes. Left: source tokens, embedding plus positions, n encoder layers, encoder_norm, memory. Right: "
    "target tokens, embedding plus positions, n decoder layers, decoder_norm, the transposed target embedding, logits. An "
    "arrow from the memory to the decoder layers carries keys and values.",
)

# %% [markdown] question="q4_2" sources="002/2.1-shapes 002/2.2-embed 002/2.3-cross 003/2-b-iii"
# ### The Transformer
#
# You have all the layers. The model is the wiring, drawn above. Write $E_s$ and $E_t$ for the two embedding tables, $D$ for
# `d_model`, and $PE$ for the sinusoidal positions, which begin with place 0 on both sides.
#
# $$\begin{aligned}
# \text{encode:} \quad & x = \sqrt D\, E_s[\text{src}] + PE, \quad x \leftarrow \text{encoder layers}(x), \quad
#   \text{memory} = \mathrm{norm}_e(x) \\
# \text{decode:} \quad & y = \sqrt D\, E_t[\text{tgt}] + PE, \quad y \leftarrow \text{decoder layers}(y, \text{memory}),
#   \quad \text{logits} = \mathrm{norm}_d(y)\, E_t^\top
# \end{aligned}$$
#
# Two things in it are new.
#
# - **The output layer is the target embedding**, transposed: the logit of a word is the dot product of the
#   decoder's last vector with the word's own embedding. This is called *tying* (Press and Wolf 2017). It saves
#   $V D$ weights, and what is learned about a word as an output serves it as an input. There is no bias.
# - **The factor** $\sqrt D$. For the logits, embeddings should be small: entries of variance $1/D$ give
#   logits of variance about 1, since the normed vector has length about $\sqrt D$. Beside the positions, whose
#   entries have a root mean square of 0.7, such embeddings would drown. The factor brings their entries back to
#   variance 1. PyTorch makes `nn.Embedding` with variance 1. So it pays to give both tables a standard deviation of
#   $D^{-1/2}$ when they are made (`nn.init.normal_`). No check asks for it, but the experiment below shows the first
#   loss of *your* model, and a run that begins ten times too high may end before it has come down.

# %% [markdown]
# Write `Transformer(src_vocab, tgt_vocab, d_model, n_heads, d_ff, n_layers, dropout=0.0, max_len=512)`:
#
# - `encode(src, src_padding=None)`: int64 `[B, S]`, bool `[B, S]` with True = padding, to memory `[B, S, D]`;{=encode}
# - `decode(tgt, memory, src_padding=None)`: int64 `[B, T]` and the memory to logits `[B, T, V]`, with $V$ the
#   number of target words (`tgt_vocab`),{=decode} where row $t$ depends on the tokens $0, \dots, t$ alone {=causal} and on
#   the memory that is not padding;{=padding}
# - `forward(src, tgt, src_padding=None)`: both, logits `[B, T, V]`.{=forward}
#
# Names, so that weights can be put in: `src_embed` and `tgt_embed` (`nn.Embedding`), `encoder_layers` and
# `decoder_layers` (`nn.ModuleList` of `n_layers` layers each, pre-norm), `encoder_norm` and `decoder_norm`
# (`nn.LayerNorm`);{=names} a second name for the tied weight is allowed, other parameters are not.{=tied} The table of
# positions, for up to `max_len` places,{=max-len} is a **buffer**: it moves with the model to another device or
# dtype,{=buffer} and is not trained.{=not-trained} `dropout` goes to all layers,{=dropout} and, if you like, as in the
# paper and in our solution, onto the sum of embedding and position. Padding in `tgt` needs no mask (@q3_8 says why). It
# must agree with `nn.Transformer`,{=agrees} which **you may not use** here, nor `nn.TransformerEncoder`,
# `nn.TransformerDecoder` or their layers.{=own-layers}
#
# Hidden checks try other sizes as well, an odd `d_model` among them (the sinusoids of @q3_5 know what to do), and a
# source that is nothing but padding: as on the card, attention to it gives zero.
#
# To check yourself: with `Transformer(11, 13, 8, 2, 16, 1)` there are 1,728 trained numbers: $24 \cdot 8 = 192$ in
# the embeddings, 600 in the encoder layer, 904 in the decoder layer, and 32 in the two norms.

# %% question="q4_2" points=16 minutes=45 difficulty=3
class Transformer(nn.Module):
    """Encoder, decoder, sinusoidal positions, output tied to tgt_embed.

    Not allowed: nn.Transformer, nn.TransformerEncoder, nn.TransformerDecoder and their layers.
    """

    def __init__(
        self, src_vocab: int, tgt_vocab: int, d_model: int, n_heads: int, d_ff: int, n_layers: int,
        dropout: float = 0.0, max_len: int = 512,
    ) -> None:
        """Make src_embed, tgt_embed, encoder_layers, decoder_layers, encoder_norm, decoder_norm and a buffer."""
        super().__init__()
        # BEGIN SOLUTION
        sizes = (d_model, n_heads, d_ff, dropout)
        self.scale = math.sqrt(d_model)
        self.src_embed, self.tgt_embed = nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model)
        self.encoder_layers = nn.ModuleList(EncoderLayer(*sizes) for _ in range(n_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(n_layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoidal_encoding(max_len, d_model), persistent=False)
        for table in (self.src_embed, self.tgt_embed):
            nn.init.normal_(table.weight, std=d_model**-0.5)
        # END SOLUTION

    def encode(self, src: Tensor, src_padding: Tensor | None = None) -> Tensor:
        """src [B, S], src_padding bool [B, S] (True = padding) -> memory [B, S, D]."""
        # BEGIN SOLUTION
        x = self.dropout(self.scale * self.src_embed(src) + self.positions[: src.shape[1]])  # [B, S, D]
        for layer in self.encoder_layers:
            x = layer(x, src_padding)
        return self.encoder_norm(x)
        # END SOLUTION

    def decode(self, tgt: Tensor, memory: Tensor, src_padding: Tensor | None = None) -> Tensor:
        """tgt [B, T], memory [B, S, D], src_padding bool [B, S] -> logits [B, T, V]."""
        # BEGIN SOLUTION
        x = self.dropout(self.scale * self.tgt_embed(tgt) + self.positions[: tgt.shape[1]])  # [B, T, D]
        for layer in self.decoder_layers:
            x = layer(x, memory, src_padding)
        return self.decoder_norm(x) @ self.tgt_embed.weight.T  # [B, T, V]
        # END SOLUTION

    def forward(self, src: Tensor, tgt: Tensor, src_padding: Tensor | None = None) -> Tensor:
        """src [B, S], tgt [B, T], src_padding bool [B, S] -> logits [B, T, V]."""
        # BEGIN SOLUTION
        return self.decode(tgt, self.encode(src, src_padding), src_padding)
        # END SOLUTION


# %% [markdown] help="q4_2"
# symptom: Weights cannot be loaded: compare `state_dict().keys()` with the names above. Logits are right without
# padding only: the mask must reach the encoder *and* the cross-attention. All logits are off by a bit: a final
# norm is missing, or the positions were scaled too (only the embedding is). Loss of 30 and more at the first
# step: the embeddings have variance 1.
#
# hint: "Embed, scale, add positions, drop" is one line on each side. The tied output is a plain
# product with `self.tgt_embed.weight.T`. `register_buffer` for the positions; slice the first T or S rows.
#
# pseudo-code: Encode: table of src times root D, plus the first S positions, dropout; each encoder layer with
# the mask; encoder_norm. Decode: the same with tgt; each decoder layer with memory and mask; decoder_norm; times
# the transposed target table. Forward: decode of encode.

# %% [markdown]
# Your model beside `nn.Transformer`, with the same weights. PyTorch's has neither embeddings nor an output layer, so
# both use yours.

# %% tags=["plot"]
def weights_of(theirs: nn.Transformer) -> dict[str, Tensor]:
    """The weights of nn.Transformer under our names; it has no embeddings."""
    state = {}
    for i, layer in enumerate(theirs.encoder.layers):
        state |= {f"encoder_layers.{i}.{name}": value for name, value in encoder_layer_state(layer).items()}
    for i, layer in enumerate(theirs.decoder.layers):
        state |= {f"decoder_layers.{i}.{name}": value for name, value in decoder_layer_state(layer).items()}
    for side in ("encoder", "decoder"):
        norm = getattr(theirs, side).norm
        state |= {f"{side}_norm.weight": norm.weight.detach(), f"{side}_norm.bias": norm.bias.detach()}
    return state


with after("q4_2", what="comparison"):
    seed_everything(1)
    with warnings.catch_warnings(action="ignore"):  # it tells that a fast path is not for pre-norm
        theirs = nn.Transformer(24, 4, 2, 2, 40, 0.0, "gelu", batch_first=True, norm_first=True).double()
    mine = Transformer(11, 13, 24, 4, 40, 2).double()
    print("not in nn.Transformer:", mine.load_state_dict(weights_of(theirs), strict=False).missing_keys)
    src, tgt = torch.randint(4, 11, (3, 7)), torch.randint(4, 13, (3, 5))
    padding = torch.arange(7) >= torch.tensor([7, 4, 1])[:, None]  # [3, 7]
    x, y = mine.src_embed(src) * math.sqrt(24), mine.tgt_embed(tgt) * math.sqrt(24)
    x, y = x + sinusoidal_encoding(7, 24), y + sinusoidal_encoding(5, 24)
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    out = theirs(x, y, tgt_mask=ahead, src_key_padding_mask=padding, memory_key_padding_mask=padding)
    gap = (mine(src, tgt, padding) - out @ mine.tgt_embed.weight.T).abs().max()
    print(f"largest difference of the logits from nn.Transformer's: {gap:.1e}")

# %% [markdown]
# How large are the logits of a fresh model, and what does it think of a sentence before any training? A model
# that knows nothing should say so: 36 words, so a cross-entropy near $\ln 36 = 3.58$. Guess first: where will yours
# begin, below that, near it, or above? The cell asks your model as you made it, and then with tables of either variance.

# %% tags=["plot"]
with after("q4_1", "q4_2"):
    batch = make_batches(data.train, pad_batch, teacher_forcing, steps=1)[0]
    src, src_padding, inputs, labels = batch
    first_losses = {}
    for label, std in (("as you made it", None), ("variance 1 / D", 64**-0.5), ("variance 1", 1.0)):
        seed_everything(0)
        model = build_model(Transformer)
        for table in (model.src_embed, model.tgt_embed) if std else ():
            nn.init.normal_(table.weight, std=std)
        logits = model(src, inputs, src_padding)
        first_losses[label] = F.cross_entropy(logits.mT, labels, ignore_index=PAD).item()
        print(f"{label:15} spread of the logits {logits.std():5.2f}, loss {first_losses[label]:6.2f}")
    if first_losses["as you made it"] > 20:
        print("Your first loss is far too high: give both tables a standard deviation of D ** -0.5 when they are made.")

# %% [markdown]
# <details><summary>What ours did, and why</summary>
#
# Ours begins at 6.1. The reason is the tie: the residual road carries the last word's embedding to the output, where it
# meets itself, so a fresh model wants to **repeat the word that it has just read**. That is soon unlearned. With
# embeddings of variance 1 the same opinion is held ten times as firmly, and the loss begins at 61.
#
# </details>

# %% [markdown]
# ## Part II. Training
#
# A model that is only wired up knows nothing. It needs a loss that says how far off it is (@q4_3), a learning rate
# that is neither too large at the start nor too small later (@q4_4), and a loop that applies both (@q4_5).

# %% [markdown] question="q4_3"
# ### Label smoothing
#
# Cross-entropy asks for certainty: the loss goes on falling while the right logit grows without bound. Label
# smoothing (Szegedy 2016) asks for a little less. With $V$ words and smoothing $\varepsilon$, the target is no
# longer 1 for the right word $y$ and 0 for the others, but
#
# $$q_v = (1 - \varepsilon)\,[v = y] + \frac{\varepsilon}{V}, \qquad
# \ell = -\sum_v q_v \log p_v = -(1 - \varepsilon) \log p_y - \frac{\varepsilon}{V} \sum_v \log p_v ,$$
#
# where $p$ is the softmax of the logits, and $[v = y]$ is 1 for $v = y$ and 0 otherwise. All words share $\varepsilon$,
# **the right one too**.{=share} By hand, with
# $V = 4$ and $\varepsilon = 0.1$: the target of the right word is $0.925$, that of each other word $0.025$. If $p$
# is uniform, $\ell = \ln 4 = 1.386$ for every $\varepsilon$. The smallest possible loss is no longer 0 but the
# entropy of $q$, here $0.349$.
#
# Write `smoothed_loss(logits, labels, pad_id, smoothing=0.1)`: `logits` `[B, T, V]`, `labels` int64 `[B, T]`; one
# number, a 0-dim tensor with a gradient:{=number} the **mean over all real tokens** of the batch (not the mean of the
# sentences' means),{=mean} where labels equal to `pad_id` count as nothing.{=padding} `pad_id` need not be a word of the
# vocabulary.{=pad-outside} Logits may be in the thousands.{=large} It must agree with `nn.CrossEntropyLoss` with
# `label_smoothing` and `ignore_index`,{=agrees} so **neither that nor** `F.cross_entropy` **is allowed** in
# it;{=by-hand} `log_softmax` is.

# %% question="q4_3" points=8 minutes=20 difficulty=2
def smoothed_loss(logits: Tensor, labels: Tensor, pad_id: int, smoothing: float = 0.1) -> Tensor:
    """Label-smoothed cross-entropy, mean over real tokens: logits [B, T, V], labels [B, T] -> [].

    Not allowed: nn.CrossEntropyLoss, F.cross_entropy.
    """
    # BEGIN SOLUTION
    real = labels != pad_id  # [B, T]
    logp = logits[real].log_softmax(-1)  # [n, V]: the n real tokens
    right = logp.gather(-1, labels[real][:, None]).mean()
    return -(1 - smoothing) * right - smoothing * logp.mean()
    # END SOLUTION


# %% [markdown] help="q4_3"
# symptom: Right for smoothing 0, a little off otherwise: the share $\varepsilon$ was given to the $V - 1$ wrong
# words only. Right without padding only: you divided by B times T. NaN for large logits: `softmax` then `log`.
# An error when `pad_id` is -100: the padded labels were looked up like words.
#
# hint: Take the real tokens out first, `logits[labels != pad_id]` is `[n, V]`. Then two means are needed: of the
# log-probability of the right word, and of all log-probabilities.
#
# pseudo-code: Keep the real places. Log-softmax over V. Right: the entry at the label. Minus (1 - eps) times the
# mean of right, minus eps times the mean over everything.

# %% [markdown]
# Two pictures: the targets for a vocabulary of 6 words; and the loss as the right logit grows, the others being
# 0 ($V = 36$, as in our German). Without smoothing it falls for ever. With smoothing there is a best logit, and
# who goes beyond it pays: at $\varepsilon = 0.1$ that is 5.8.

# %% tags=["plot"]
with after("q4_3"):
    hard = F.one_hot(torch.tensor(2), 6).double()
    plots.bars(
        ["der", "die", "drei", "und", "acht", "elf"],
        {f"smoothing {eps}": (1 - eps) * hard + eps / 6 for eps in (0.0, 0.1, 0.3)}, "word", "target",
        "What the model is asked to say",
        alt="Bars of the targets for six words, the third being right: 1, 0.917 and 0.75 for it, and 0, 0.017 and 0.05 "
        "for each of the others, at smoothing 0, 0.1 and 0.3.",
    )
    z = torch.linspace(0, 14, 141, dtype=torch.float64)
    logits = torch.zeros(141, 1, 36, dtype=torch.float64)
    logits[:, 0, 4] = z
    curves = {
        f"smoothing {eps}": [smoothed_loss(row[None], torch.tensor([[4]]), PAD, eps) for row in logits]
        for eps in (0.0, 0.1, 0.3)
    }
    plots.curves(
        z, curves, "logit of the right word", "loss", "Certainty is punished",
        alt="Without smoothing the loss falls towards 0. With 0.1 it has its minimum near 5.8 and rises slowly after "
        "it; with 0.3 the minimum is higher, near 4.4, and the rise steeper.",
    )
    best = z[torch.stack(curves["smoothing 0.1"]).argmin()]
    print(f"the best logit for smoothing 0.1: {best:.1f}; exactly, {math.log(36 * 0.9 / 0.1 + 1):.2f}")

# %% [markdown] question="q4_4"
# ### Warm-up
#
# Adam divides each gradient by the root of a running mean of its squares, and in the first steps that mean rests on a
# handful of batches. Large steps on such evidence can spoil a Transformer for good (most of all a post-norm one,
# @q3_7). The paper of 2017 therefore raises the rate from 0 **in a straight line** for $w$ = `warmup` steps, and from
# then on lets it fall like one over the **root of the step** $s$. The two arms meet at $s = w$, in the peak $(D w)^{-1/2}$.
#
# These three facts are the schedule: with a pencil, find the formula of each arm. (One of them does not contain $w$ at all,
# and at every step the smaller one holds, so that no `if` is needed. Both are folded into the help.) By hand: with
# $D = 512$ and $w = 4000$, the paper's values, $\mathrm{rate}(1) = 1.75 \cdot 10^{-7}$, the peak is
# $6.99 \cdot 10^{-4}$, and at step 16,000 it is half of that.
#
# Write `noam_rate(step, d_model, warmup)`: one number.{=rate} Steps count from 1; but schedulers like to ask for step 0,
# so the answer there must be finite too (0 is the natural one, the value for step 1 is as good).{=zero}

# %% question="q4_4" points=4 minutes=10 difficulty=1
def noam_rate(step: int, d_model: int, warmup: int) -> float:
    """The learning rate of Vaswani et al. at a step >= 0."""
    # BEGIN SOLUTION
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    # END SOLUTION


# %% [markdown] help="q4_4"
# symptom: The peak is not at `warmup`: the two arms do not meet there. The rate only ever grows, or
# only ever falls: `max` in the place of `min`, or one arm is missing. A ZeroDivisionError: step 0.
#
# hint: The rising arm is a number times $s$, and at $s = w$ it is $(D w)^{-1/2}$: so it is $D^{-1/2}\, s\, w^{-3/2}$. The falling
# one is a number times $s^{-1/2}$, and at $s = w$ it is the same: so it is $D^{-1/2}\, s^{-1/2}$. `0 ** -0.5` is an error in
# Python: guard the step before the formula.
#
# pseudo-code: Step is at least 1. The smaller of step to the minus one half, and step times warmup to the minus
# three halves; times d_model to the minus one half.

# %% [markdown]
# The schedule for three settings. What do the width and the warm-up each change?

# %% tags=["plot"]
with after("q4_4"):
    steps = range(1, 20001, 50)
    plots.curves(
        list(steps), {f"D = {D}, warm-up {w}": [noam_rate(s, D, w) for s in steps]
                      for D, w in ((512, 4000), (512, 8000), (256, 4000))},
        "step", "rate", "The schedule of 2017",
        alt="Three curves, one for each setting: the rate over 20,000 steps, with a peak at the end of the warm-up.",
    )
    peak = RATE * noam_rate(WARMUP, SIZES["d_model"], WARMUP)
    print(f"our run below: {RATE} times the schedule with warm-up {WARMUP}, so the peak is {peak:.4f}")

# %% [markdown] question="q4_5"
# ### The training loop
#
# One step of training, in the order in which nothing goes wrong:
#
# 1. training mode (dropout on), here or at the latest in `fit`;{=mode}
# 2. forward pass, and the loss;
# 3. clear the old gradients, whoever left them;{=clear}
# 4. backward pass;
# 5. **clip**: if the norm $g$ of all gradients together is larger than 1, divide them all by $g$;{=clip}
# 6. one step of the optimizer.{=step}
#
# Write
#
# - `train_step(model, batch, optimizer, pad_id)`, with `batch = (src, src_padding, inputs, labels)` as @q4_1 makes
#   them, the first two `[B, S]` and the last two `[B, T]`: one step as above with the loss
#   `smoothed_loss(logits, labels, pad_id)`, its smoothing at the default (the plain loss is right too).{=batch} Padding
#   in the source is where `src_padding` says, and among the labels where `pad_id` stands.{=padding} It returns that loss,
#   the one **before** the update, as a Python float.{=float} The batch may be on another device than the model:
#   `to_device(batch, device)` moves it. On CUDA, run the forward pass and the loss in
#   `with autocast_for(device):` (bfloat16 there, nothing changed on a CPU).
# - `fit(model, batches, ...)`: a step for each batch in turn,{=every-batch} with a progress bar, and a list of the losses
#   as the result, one for each step in the order of the batches.{=losses} The arguments behind `batches` are free as long
#   as they have defaults; keep those of the stub if you want to use our training cell in Part IV. There, `batches` is a
#   list of batches, run through `epochs` times;{=epochs} `optimizer=None` means Adam with `betas=BETAS`;{=adam} and before
#   each step the rate of all `optimizer.param_groups` is set to `rate * noam_rate(step, d_model, warmup)`, where
#   `d_model` is the width of the model's embeddings and steps count on from `start` (the first is `start + 1`).{=schedule}
#
# A bar is `bar = progress(batches, label="training")`: iterate over `bar`, and `bar.show(loss=..., rate=...)`
# writes beside it.
#
# The oldest test of a training loop: **overfit one small batch**. A model that cannot learn eight sentences by
# heart has an error in it.{=by-heart} With label smoothing the loss does not go to 0 but to the entropy of the targets,
# which is 0.665 for our 36 words.

# %% question="q4_5" points=10 minutes=30 difficulty=2 uses=["q4_1", "q4_2", "q4_3", "q4_4"] limits={"wall": 60}
def train_step(
    model: nn.Module, batch: tuple[Tensor, Tensor, Tensor, Tensor], optimizer: torch.optim.Optimizer, pad_id: int
) -> float:
    """One update with the gradient's norm clipped to 1; returns the loss before it."""
    # BEGIN SOLUTION
    device = next(model.parameters()).device
    src, src_padding, inputs, labels = to_device(batch, device)
    model.train()
    with autocast_for(device):
        loss = smoothed_loss(model(src, inputs, src_padding), labels, pad_id)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()
    # END SOLUTION


def fit(
    model: nn.Module, batches: Sequence[tuple[Tensor, Tensor, Tensor, Tensor]],
    optimizer: torch.optim.Optimizer | None = None, pad_id: int = PAD, epochs: int = 1,
    rate: float = RATE, warmup: int = WARMUP, start: int = 0,
) -> list[float]:
    """Train on the batches, `epochs` times over, with a progress bar; returns the loss of every step."""
    # BEGIN SOLUTION
    if optimizer is None:
        optimizer = torch.optim.Adam(model.parameters(), betas=BETAS)
    losses = []
    bar = progress([batch for _ in range(epochs) for batch in batches], label="training")
    for step, batch in enumerate(bar, start + 1):
        now = rate * noam_rate(step, model.tgt_embed.embedding_dim, warmup)
        for group in optimizer.param_groups:
            group["lr"] = now
        losses.append(train_step(model, batch, optimizer, pad_id))
        bar.show(loss=losses[-1], rate=now)
    return losses
    # END SOLUTION


# %% [markdown] help="q4_5"
# symptom: The loss falls and then explodes, or the model learns more and more slowly: gradients add up because
# they are never cleared. The size of the update does not depend on clipping: it came before `backward` or after
# `step`, or it clipped each parameter by itself. Memory grows from step to step: the loss was kept as a tensor
# with its whole graph.
#
# hint: `nn.utils.clip_grad_norm_(parameters, 1.0)` between `backward` and `step`. `loss.item()` is a float.
#
# pseudo-code: train_step: move the batch; model.train(); logits; smoothed_loss; zero_grad; backward; clip; step;
# return the loss as a float. fit: one bar over the batches of all epochs; for each: set the rate in every group; train_step; note the
# loss; show it.

# %% [markdown]
# Eight sentences, learned by heart. The dashed line is the least possible loss, the entropy of the smoothed
# targets.

# %% tags=["training"]
with after("q4_1", "q4_2", "q4_3", "q4_4", "q4_5"):
    batch = make_batches(data.train, pad_batch, teacher_forcing, steps=1, size=8)[0]
    seed_everything(0)
    losses = fit(build_model(Transformer), [batch], epochs=120, warmup=40)
    least = -(0.9 + 0.1 / 36) * math.log(0.9 + 0.1 / 36) - 35 * 0.1 / 36 * math.log(0.1 / 36)
    plots.curves(
        range(1, 121), {"loss": losses, "entropy of the targets": [least] * 120}, "step", "smoothed loss",
        "Eight sentences by heart",
        alt="The loss falls from 6 to the entropy of the targets, 0.665, within some 60 steps, and stays there.",
    )
    print(f"loss after 120 steps {losses[-1]:.3f}, least possible {least:.3f}")

# %% [markdown]
# ## Part III. Decoding
#
# Training is one parallel pass over sentences that are known. Translating is not: the word that is written next
# becomes an input. A decoding method gets a model, a padded batch of sources, and returns one list of tokens for
# each sentence. All three of this part have the same form:
#
# - `src` int64 `[B, S]`, `src_padding` bool `[B, S]` (True = padding) or `None`, `bos_id`, `eos_id`, `max_len`;
# - the result is a **list of B lists of ints**: the tokens after BOS, up to EOS and without it. At most `max_len`
#   steps are made, the one that gives EOS counted; a sentence that has no EOS by then is returned as it is;
# - the model comes in evaluation mode, and stays in it. Use its `encode` and `decode`. Gradients are not needed:
#   `@torch.no_grad()` saves their time and memory;
# - **no sentence notices the others in its batch**, nor how much padding it was given.

# %% [markdown] question="q4_6"
# ### Greedy decoding
#
# Begin with BOS. Ask for the logits of the next word, take the largest, append it, ask again:
#
# $$y_{t+1} = \arg\max_v\; \mathrm{logits}_v(y_0 \dots y_t,\ \text{source}), \qquad y_0 = \text{BOS}.$$
#
# The sentences of a batch end at different times. The short ones go on being extended until the last has ended,
# which does no harm, if what comes after the **first** EOS is cut off.{=first-eos} You may stop when all have ended: then
# the number of steps is that of the longest sentence. BOS is a token like any other, should the model find it
# likeliest.{=bos-too}
#
# By hand: if a model gives the words 7, 8, EOS whatever happens, then `max_len` 5 or 3 gives `[7, 8]` (the third step
# gave EOS); `max_len` 2 gives `[7, 8]` too, unfinished; `max_len` 1 gives `[7]`.
#
# Write `greedy_decode(model, src, src_padding, bos_id, eos_id, max_len)`, in the form above:
#
# - the likeliest tokens,{=greedy} as a list of B lists of ints;{=form}
# - at most `max_len` steps;{=steps}
# - `None` for `src_padding` means that nothing is padding;{=none-mask}
# - no sentence notices the others,{=rows} or its padding;{=not-noticed}
# - the model stays as it was, in evaluation mode.{=model-stays}
#
# It is enough to encode the source once, before the first step (@q4_8 will ask for that).

# %% question="q4_6" points=8 minutes=20 difficulty=2 uses=["q4_2"]
@torch.no_grad()
def greedy_decode(
    model: nn.Module, src: Tensor, src_padding: Tensor | None, bos_id: int, eos_id: int, max_len: int
) -> list[list[int]]:
    """The most likely next token, again and again: src [B, S] -> B lists, without BOS and EOS."""
    # BEGIN SOLUTION
    memory = model.encode(src, src_padding)  # [B, S, D]
    written = src.new_full((len(src), 1), bos_id)  # [B, 1 + t]
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(max_len):
        token = model.decode(written, memory, src_padding)[:, -1].argmax(-1)  # [B]
        written = torch.cat([written, token[:, None]], dim=1)
        ended |= token == eos_id
        if ended.all():
            break
    rows = written[:, 1:].tolist()
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]
    # END SOLUTION


# %% [markdown] help="q4_6"
# symptom: Sentences are cut short when they are decoded together: the loop stopped at the first EOS of *any*
# sentence. Rubbish follows after a sentence's end: cut at the first EOS, not the last. One token too many: the
# step that gives EOS counts.
#
# hint: Only the last place of the logits is needed, `[:, -1]`. Keep a bool for each sentence that remembers whether
# it has ended.
#
# pseudo-code: Encode. Begin with a column of BOS. max_len times: logits of the last place, argmax, append; note
# who has written EOS; leave the loop if all have. Cut each row at its first EOS.

# %% [markdown] question="q4_7"
# ### Beam search
#
# Greedy takes the best word now, and may regret it. Suppose the first word is A with probability 0.5 or B with
# 0.4; after A the best sentence goes on with 0.4, after B with 0.9. Greedy takes A and gets
# $0.5 \cdot 0.4 = 0.20$, while B would have had $0.4 \cdot 0.9 = 0.36$. **Beam search** keeps the `width` best
# beginnings alive.
#
# For one sentence, with the beginnings $h$ of equal length and the sums $s(h)$ of their log-probabilities:
#
# 1. extend every living beginning by every word, so that $s(hv) = s(h) + \log p(v \mid h)$;{=extend}
# 2. keep the `width` extensions with the largest sums, whichever beginnings they come from;{=keep}
# 3. those that end in EOS are finished: put them aside. The rest live on. Stop after `max_len` steps, or when
#    none lives.{=stop} (A beam that shrinks or is filled up as hypotheses finish is right too, and so is one in which
#    finished hypotheses keep their places beside those that live, if it keeps what follows.)
#
# In the end the hypothesis with the best **score** is returned,
#
# $$\mathrm{score}(y) = \frac{\sum_t \log p(y_t \mid y_{<t})}{n^{\alpha}},$$
#
# where the sum has $n$ terms, that of EOS included if there is one, and $\alpha$ is `length_penalty`.{=score} With
# $\alpha = 0$ it is the plain log-probability, which likes short sentences, since every word costs something;
# $\alpha = 1$ is the mean for each token. Who competes:
#
# - all finished hypotheses that the search has put aside (or still holds);{=finished}
# - those that are **unfinished** after `max_len` steps, with their $n$ = `max_len` terms;{=unfinished}
# - **greedy's hypothesis**. A beam may lose it on the way, and then end worse than greedy. With it in the race
#   the result never scores below greedy's.{=greedy}
#
# With `width` 1 the result is greedy's.{=width-one} In the small example (natural logarithms): $\ln 0.20 = -1.609$ against
# $\ln 0.36 = -1.022$.
#
# Write `beam_search(model, src, src_padding, bos_id, eos_id, max_len, width, length_penalty)`, with the form of
# result as in @q4_6:{=form} `src_padding` may be `None`,{=none-mask} no sentence notices the others {=rows} or its
# padding,{=not-noticed} and the model stays as it was.{=model-stays} Searching sentence by sentence is fine.

# %% question="q4_7" points=14 minutes=50 difficulty=4 uses=["q4_2", "q4_6"]
@torch.no_grad()
def beam_search(
    model: nn.Module, src: Tensor, src_padding: Tensor | None, bos_id: int, eos_id: int, max_len: int,
    width: int, length_penalty: float,
) -> list[list[int]]:
    """The best-scoring of what a beam of this width and greedy find: src [B, S] -> B lists, without BOS and EOS."""
    # BEGIN SOLUTION
    memory = model.encode(src, src_padding)  # [B, S, D]
    results = []
    for b in range(len(src)):
        one = (memory[b : b + 1], None if src_padding is None else src_padding[b : b + 1])
        found = [_search(model, *one, bos_id, eos_id, max_len, w, length_penalty) for w in {1, width}]  # 1 is greedy
        results.append(max(found)[1])
    return results


def _search(
    model: nn.Module, memory: Tensor, padding: Tensor | None, bos_id: int, eos_id: int, max_len: int,
    width: int, length_penalty: float,
) -> tuple[float, list[int]]:
    """Score and tokens of the best hypothesis for one sentence: memory [1, S, D], padding [1, S]."""
    live = torch.full((1, 1), bos_id, device=memory.device)  # [K, 1 + n]
    sums = memory.new_zeros(1)  # [K]
    best: tuple[float, list[int]] = (-math.inf, [])
    for n in range(1, max_len + 1):
        K = len(live)
        mask = None if padding is None else padding.expand(K, -1)
        logp = model.decode(live, memory.expand(K, -1, -1), mask)[:, -1].log_softmax(-1)  # [K, V]
        V = logp.shape[1]
        sums, places = (sums[:, None] + logp).flatten().topk(min(width, K * V))
        live = torch.cat([live[places // V], places[:, None] % V], dim=1)
        ended = live[:, -1] == eos_id
        for total, tokens in zip(sums.tolist(), live[:, 1:].tolist(), strict=True):
            if tokens[-1] == eos_id:
                best = max(best, (total / n**length_penalty, tokens[:-1]))
            elif n == max_len:
                best = max(best, (total / n**length_penalty, tokens))
        live, sums = live[~ended], sums[~ended]
        hope = max((n + 1) ** length_penalty, max_len**length_penalty)  # sums only fall, so nobody can beat this
        if not len(live) or sums[0].item() / hope < best[0]:
            break
    return best
    # END SOLUTION


# %% [markdown] help="q4_7"
# symptom: Width 1 differs from greedy: finished hypotheses were replaced by worse beginnings (at width 1 the search
# ends with the first EOS), or the first of the `width` beginnings is there several times. Sentences come out too
# short: EOS's log-probability is missing in the sum, or unfinished ones do not compete. A wide beam sometimes scores
# below greedy: greedy's hypothesis does not compete.
#
# hint: Begin with **one** beginning, BOS, with sum 0. `topk` over the flattened `[K, V]` table gives the
# extensions; `// V` is the beginning, `% V` the word. A search of width 1 is greedy decoding with its score: you
# can run it beside the other and take the better.
#
# pseudo-code: For each sentence: live is BOS, sums 0. max_len times: log-probabilities of the next word for all
# that live; add the sums; the best `width` of all extensions; those with EOS go to the finished with score sum over
# n to the alpha; the others live. If the steps are used up the living are scored too. Take the best of these and of
# what width 1 finds.

# %% [markdown]
# The small example above, as a "model" with a table of probabilities in the place of a network. Its tokens are BOS,
# EOS, A, B and C. After A comes EOS with 0.4 (or A or C, with 0.3 each), after B comes C with 0.9, and all that is
# longer ends for sure. With $\alpha = 1$ the longer sentence gains even more.

# %% tags=["plot"]
class Table(nn.Module):
    """A model that looks its next word up; it needs no source."""

    ROWS = {(): [0, 0.1, 0.5, 0.4, 0], (2,): [0, 0.4, 0.3, 0, 0.3], (3,): [0, 0, 0.1, 0, 0.9]}

    def encode(self, src: Tensor, src_padding: Tensor | None = None) -> Tensor:
        return torch.zeros(*src.shape, 1)

    def decode(self, tgt: Tensor, memory: Tensor, src_padding: Tensor | None = None) -> Tensor:
        rows = [[self.ROWS.get(tuple(row[1 : t + 1]), [0, 1, 0, 0, 0]) for t in range(len(row))] for row in tgt.tolist()]
        return torch.tensor(rows).log()  # [B, T, V]


with after("q4_6", "q4_7", what="experiment"):
    asked = (Table(), torch.zeros(1, 1, dtype=torch.long), None, 0, 1, 4)
    names = ["BOS", "EOS", "A", "B", "C"]
    print("greedy:          ", [names[i] for i in greedy_decode(*asked)[0]])
    for width, alpha in ((1, 0.0), (2, 0.0), (2, 1.0)):
        print(f"width {width}, alpha {alpha:g}:", [names[i] for i in beam_search(*asked, width, alpha)[0]])

# %% [markdown] question="q4_8" sources="004/12.7"
# ### Greedy decoding with a cache
#
# `greedy_decode` computes the whole decoder for all words so far, in every step, and throws all but the last row
# away. In @q2_7 you saw that nothing of this is needed. Under the causal mask the keys and values of old words do
# not change, so each decoder layer keeps them; and the keys and values of the **memory** do not change at all, so
# each layer can project them **once**, before the first step. A step then handles one word for each sentence, in
# pre-norm:
#
# 1. $x = \sqrt D\,E_t[\text{token}] + PE_t$, `[B, 1, D]`: mind the place, the new word stands at place $t$, not at 0;
# 2. in each layer: $h = \mathrm{norm1}(x)$; append the key and the value of $h$ to the layer's cache; the query of
#    $h$ attends to the cache, through `o_proj`, and is added to $x$;
# 3. the query of $\mathrm{norm2}(x)$ attends to the memory's keys and values (with `src_padding`), added to $x$;
# 4. $x \leftarrow x + \mathrm{ff}(\mathrm{norm3}(x))$;
# 5. after the last layer $\mathrm{norm}_d$, logits, argmax.
#
# Write `cached_greedy_decode(model, src, src_padding, bos_id, eos_id, max_len)` with exactly the output of
# @q4_6,{=same-output} and in the same form: `src_padding` may be `None`,{=none-mask} no sentence notices the others {=rows}
# or its padding,{=not-noticed} and the model stays as it was.{=model-stays} It may rely on the names inside the model: those of @q4_2, the layers' `self_attn`, `cross_attn`, `ff`, `norm1`, `norm2`,
# `norm3`, and the attentions' `q_proj`, `k_proj`, `v_proj`, `o_proj`, `n_heads`. Work is counted: the encoder runs
# once,{=encoder-once} only the new word goes through the decoder's layers, and the work of a step is linear in what has
# been written.{=linear} (Projecting the memory once and not in every step is good to have, and the picture below shows it.)
#
# For one layer, a source of $S$ words and step $t$ (counted from 1), the multiply-adds times 2 of one sentence are
# $8D^2 + 4tD$ in self-attention, $4D^2 + 4SD$ in cross-attention, and $4 D d_{ff}$ in the feed-forward part. With
# $D = 64$, $d_{ff} = 128$, $S = 12$ and $t = 10$: 35,328, 19,456 and 32,768.

# %% question="q4_8" points=12 minutes=40 difficulty=4 uses=["q4_2", "q4_6"] limits={"wall": 60}
@torch.no_grad()
def cached_greedy_decode(
    model: nn.Module, src: Tensor, src_padding: Tensor | None, bos_id: int, eos_id: int, max_len: int
) -> list[list[int]]:
    """What greedy_decode gives, with the keys and values of old words and of the memory kept."""
    # BEGIN SOLUTION
    memory = model.encode(src, src_padding)  # [B, S, D]
    D = memory.shape[-1]
    positions = sinusoidal_encoding(max_len, D).to(memory)
    sources = [_keys_and_values(layer.cross_attn, memory) for layer in model.decoder_layers]
    past = [_keys_and_values(layer.self_attn, memory[:, :0]) for layer in model.decoder_layers]  # empty
    token, written = src.new_full((len(src), 1), bos_id), []
    ended = torch.zeros_like(token, dtype=torch.bool)
    for t in range(max_len):
        x = model.tgt_embed(token) * math.sqrt(D) + positions[t]  # [B, 1, D]
        for i, layer in enumerate(model.decoder_layers):
            h = layer.norm1(x)
            new = _keys_and_values(layer.self_attn, h)
            past[i] = tuple(torch.cat(pair, dim=2) for pair in zip(past[i], new, strict=True))  # [B, H, t + 1, Dh]
            x = x + _look(layer.self_attn, h, *past[i])
            x = x + _look(layer.cross_attn, layer.norm2(x), *sources[i], src_padding)
            x = x + layer.ff(layer.norm3(x))
        token = (model.decoder_norm(x) @ model.tgt_embed.weight.T).argmax(-1)  # [B, 1]
        written.append(token)
        ended |= token == eos_id
        if ended.all():
            break
    rows = torch.cat(written, dim=1).tolist() if written else [[] for _ in src]
    return [row[: row.index(eos_id)] if eos_id in row else row for row in rows]


def _keys_and_values(mha: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    """x [B, N, D] -> keys and values, each [B, H, N, Dh]."""
    return tuple(split_heads(project(x), mha.n_heads) for project in (mha.k_proj, mha.v_proj))


def _look(mha: nn.Module, x: Tensor, k: Tensor, v: Tensor, padding: Tensor | None = None) -> Tensor:
    """One query for each sentence: x [B, 1, D], k and v [B, H, N, Dh] -> [B, 1, D]."""
    heads, _ = attention(split_heads(mha.q_proj(x), mha.n_heads), k, v, padding)
    return mha.o_proj(merge_heads(heads))
    # END SOLUTION


# %% [markdown] help="q4_8"
# symptom: The first word is right and the others are not: every word was given place 0, or the cache holds keys of
# raw `x` instead of `norm1(x)`, or it is shared by all layers. Right for one sentence and wrong for a batch:
# `src_padding` is missing in cross-attention. The counted work grows too fast: the memory is projected again in every
# step (`cross_attn(x, memory, memory)` does that), or all words go through the layers.
#
# hint: Two helpers are enough: keys and values of some tokens, `[B, H, N, Dh]`, and one query that looks at given
# keys and values. Self-attention needs no mask, since all that is in the cache is past.
#
# pseudo-code: Encode. For each layer: keys and values of the memory. For t below max_len: embed the last token,
# scale, add position t. For each layer: norm1, append key and value, attend, add; norm2, attend to memory, add;
# norm3, ff, add. Norm, tied logits, argmax; note who ended. Cut at EOS.

# %% [markdown]
# Counted, not timed: the FLOPs of decoding one sentence of 12 words with and without a cache, for translations of
# growing length. (The EOS number is one that no model gives, so that nothing ends early.)

# %% tags=["plot"]
with after("q4_2", "q4_6", "q4_8"):
    seed_everything(0)
    model = build_model(Transformer).eval()
    src = torch.randint(4, 37, (1, 12))
    lengths = [4, 8, 16, 32, 64]
    costs = {
        name: [count_work(decode, model, src, None, BOS, -1, n)["flops"] for n in lengths]
        for name, decode in (("without a cache", greedy_decode), ("with a cache", cached_greedy_decode))
    }
    plots.curves(
        lengths, costs, "words written", "FLOPs", "What a translation costs", logx=True, logy=True, marks=True,
        alt="Two lines on double logarithmic axes. Without a cache the cost grows about with the square of the "
        "length, with a cache about in proportion to it.",
    )
    a, b = (costs[name][-1] for name in costs)
    print(f"64 words: {a / 1e6:.1f} million FLOPs without, {b / 1e6:.1f} with a cache, {a / b:.0f} times less")

# %% [markdown] question="q4_9" sources="002/MT-3 002/MT-4 003/2-c"
# ### Where the work goes
#
# A translator has three kinds of attention. The source has $M$ words, the target $N$, the width (our $D$) is $k$.
# Count as in @q2_5: multiply-adds times 2 of all matrix products of one `MultiHeadAttention`, the four projections and the two
# products, for one sentence and **one** layer; no softmax, no bias; a mask saves nothing.{=mask} What was the count for $T$
# queries and $S$ keys and values, for any number of heads? Write it down once more, with a pencil: which of the four
# projections act on $T$ rows and which on $S$, and how large are the two products? (It is folded into the help.) Then write
#
# - `stack_costs(M, N, k)`: a dict with the keys `"encoder_self"`, `"decoder_self"` and `"cross"`:{=keys} the FLOPs of
#   one layer's attention of each kind, when the whole target is processed at once, as in training;{=costs}
# - `extra_cost_for_second_language(M, N, k)`: one number. The same source is to be translated into a second
#   language, of length $N$ as well, by a decoder with weights of its own, and the encoder's output is at hand.
#   What must be computed again, out of the three? {-} (So everything that the new decoder's layer computes counts,
#   its projections of the memory included; what the encoder did does not.){=second}
#
# To check yourself: $M = 7$, $N = 5$, $k = 12$ gives 10,416 for the encoder's self-attention, and a second language
# costs 15,552, however much the encoder has cost.

# %% question="q4_9" points=5 minutes=15 difficulty=2
def stack_costs(M: int, N: int, k: int) -> dict[str, int]:
    """FLOPs of one layer's attentions, source of length M, target of length N, width k."""
    # BEGIN SOLUTION
    def cost(T: int, S: int) -> int:
        return 4 * (T + S) * k**2 + 4 * T * S * k  # four projections, two products

    return {"encoder_self": cost(M, M), "decoder_self": cost(N, N), "cross": cost(N, M)}
    # END SOLUTION


def extra_cost_for_second_language(M: int, N: int, k: int) -> int:
    """FLOPs that a second target language of length N adds, the encoder's output being at hand."""
    # BEGIN SOLUTION
    costs = stack_costs(M, N, k)
    return costs["decoder_self"] + costs["cross"]
    # END SOLUTION


# %% [markdown] help="q4_9"
# symptom: Right when M = N only: in cross-attention queries come from the target and keys from the source. Half of
# what is expected: a multiply-add counts as 2. The decoder's self-attention came out at half: the mask saves nothing.
#
# hint: With $T$ queries and $S$ keys and values the count is $4\,(T + S)\,k^2 + 4\,T S\,k$: queries and outputs are
# projected $T$ times, keys and values $S$ times, at $2 k^2$ each; scores and their mix of values are $2\,T S\,k$ each. Write that as
# one function of T and S, and call it with the right pair three times. The encoder never sees the target.
#
# pseudo-code: cost(T, S) as in the hint. Encoder: (M, M). Decoder: (N, N). Cross: (N, M). Second language: decoder plus
# cross.

# %% [markdown]
# The costs as the source grows. The encoder reads it alone, so a second language never pays for that part.

# %% tags=["plot"]
with after("q4_9"):
    lengths = [8, 16, 32, 64, 128, 256, 512, 1024, 2048]
    rows = {kind: [stack_costs(n, 32, 64)[kind] for n in lengths] for kind in ("encoder_self", "decoder_self", "cross")}
    rows["second language"] = [extra_cost_for_second_language(n, 32, 64) for n in lengths]
    plots.curves(
        lengths, rows, "source length M", "FLOPs of one layer", "A long source, a target of 32 words, width 64",
        logx=True, logy=True, marks=True,
        alt="The encoder's cost grows in proportion to M and, beyond some hundred words, with its square. The decoder's "
        "self-attention is level; cross-attention and the second language grow in proportion to M.",
    )

# %% [markdown]
# ## Part IV. Does it translate?
#
# Number words have served us so far: small, and quick to count. But each has one right translation, and nobody is moved
# by them. Now **sentences**: a grammar (`course_utils/data/everyday.py`) writes English and German side by side, about
# people, animals, things, places and times. Its few hundred words hold what makes German hard: gender and case with
# their endings, the verb in the second place or at the very end, verbs that fall apart (*schaltet ... aus*), the perfect with
# its participle last, *nicht* and *kein*. Where German has several good ways, the grammar knows them, up to five.
#
# **One switch** chooses what is trained on; no cell below it asks which. `"sentences"` is what the course is about and what
# @q4_10 judges; `"numbers"` is small. (A real corpus, with parts of words for words, has a cell of its own at the end of
# this part.) With `COURSE_FAST=1` in the environment it is always the numbers, for 40 steps into files of other names:
# enough to see that everything runs, and nothing is learned.
#
# What is held out asks for more than memory: **unseen sentences** (each kept out of training by its own words), **unseen
# combinations** (all words known, but a verb never met this object, or an adjective this noun), and **longer sentences**
# (three clauses, where training has at most two).

# %% tags=["training"]
from course_utils.hw4.tasks import load_task

CORPUS = "sentences"  # or "numbers"
task = load_task(CORPUS)
recipe = task.recipe
for source, target in task.train[:4]:
    print(" ".join(source), " -> ", " ".join(target))
print(f"{len(task.train):,} pairs to train on; {len(task.source)} source and {len(task.target)} target tokens")
for kind, examples in task.tests.items():
    print(f"\n{len(examples)} {kind}, such as:  {' '.join(examples[0].source)}")
    for reference in examples[0].references:
        print("   ", " ".join(reference))

# %% tags=["training"]
from course_utils.hw4.shown import beside


def written_by(model: nn.Module, examples, decode=None) -> list[list[str]]:
    """The translations of examples in words, by your greedy_decode or another decoding function of its form."""
    src, src_padding = pad_batch([task.source.encode(example.source) for example in examples], PAD)
    ids = translate(model, decode or greedy_decode, src, src_padding, recipe.max_len)
    return [task.target.decode(row) for row in ids]

# %% [markdown]
# The run. Every `recipe.every` steps it looks at 150 held-out sentences: how many of them come out right to the last word
# (as *any* of their references), their BLEU (@q4_10), and the first ten of them beside a reference. At each look the run is
# written down in a folder, and the best model so far into `hw4_translation.safetensors`, the file to hand in. If you
# interrupt the cell, it says so in one line, and goes on from the last look when you run it again; of a finished run it shows
# the same curves again and trains nothing. To begin anew, set `RESUME = False`.
#
# On one core it takes about 115 seconds of processor time, on a busy laptop some minutes; the bar tells how long is
# left. On a CPU it is repeatable: the same seed gives the same numbers, up to the rounding of another machine.
#
# **Predict first.** A sentence has about nine German tokens. If each next token comes out right with a chance of 0.9, how
# many sentences are right to the last one? Will exact match creep up with the loss, or lag behind it and then rise? What
# will it learn first: words, order, or endings? The ten translations of the first looks tell.
#
# <details><summary>What ours did</summary>
#
# Exact match was 0.02 after 200 steps, where BLEU was 20 already, then 0.40 after 400, 0.71 after 600, 0.86 after 1,000 and
# 0.95 at the best look; BLEU was 66, 87, 94 and 98. ($0.9^9$ is 0.39, $0.99^9$ is 0.91: exact match lags, then rises.) The first
# look has articles, verbs and the full stop in the right places, and nouns that were never asked for. The last errors are single
# rare words, and clauses that come apart in long sentences.
#
# </details>

# %% tags=["training"]
RESUME = True
young = None  # the model at the first look with one sentence in five right, for comparisons below
with after("q4_1", "q4_2", "q4_3", "q4_4", "q4_5", "q4_6", what="training run"):
    batches = make_batches(
        task.train, pad_batch, teacher_forcing, steps=recipe.steps, size=recipe.batch, alike=recipe.alike,
        source=task.source, target=task.target,
    )
    seed_everything(0)
    model = task.build(Transformer).to(device)
    optimizer = torch.optim.Adam(model.parameters(), betas=BETAS)
    run = TrainingRun(task.folder, task.checkpoint, anew=not RESUME)
    young = run.kept("young", copy.deepcopy(model))
    curves, stop = run.curves, EarlyStop(recipe.patience, higher=True)
    over = any([stop(score) for score in curves.values.get(recipe.score, [])])  # the looks of an earlier run
    start = recipe.steps if run.finished or over else run.resume(model, optimizer)
    print(f"{recipe.sizes}, {sum(p.numel() for p in model.parameters()):,} weights, beginning at step {start}")
    print("\n".join(f"  {i:2}  {' '.join(example.source)}" for i, example in enumerate(task.look[:10], 1)))
    with run.going(start, recipe.steps) as bar:
        for done in range(start, recipe.steps, recipe.every):
            step = done + recipe.every
            losses = fit(
                model, batches[done:step], optimizer, rate=recipe.rate, warmup=recipe.warmup, start=done
            )
            outputs, references = written_by(model, task.look), [example.references for example in task.look]
            scores = {"exact": exact_match(outputs, references), "bleu": bleu(outputs, references)}
            for i, loss in enumerate(losses, done + 1):
                curves.add(i, loss=loss)
            curves.add(step, **scores)
            run.save(model, optimizer, step)
            run.look(scores[recipe.score], model)  # keeps the best
            if young is None and scores["exact"] >= 0.2:
                young = copy.deepcopy(model).eval()
                run.keep("young", young)
            told = f"step {step}: loss {losses[-1]:.3f}, exact match {scores['exact']:.3f}, BLEU {scores['bleu']:.1f}"
            bar.say(f"{told}\n{beside(outputs[:10], task.look[:10])}")
            if stop(scores[recipe.score]):
                break
    run.finish(model)
    model.eval()
    curves.plot("loss", title="Learning to translate", ylabel="smoothed loss", smooth=10)
    curves.plot("exact", title="Right to the last word", ylabel=f"share of {len(task.look)} sentences")
    curves.plot("bleu", title="The same in BLEU", ylabel="BLEU")

# %% [markdown] question="q4_10"
# ### Evaluation
#
# The loss says how well the model continues *right* beginnings. Whether it translates, only decoding can tell. Three
# scores, each for a whole set of sentences, of which each may have **several good translations**, its references:
#
# - **exact match**: the share of outputs that are one of their references, token for token. Strict, and as good as the
#   list of references is complete;
# - **BLEU** (Papineni 2002): how many of the output's runs of 1, 2, 3 and 4 tokens occur in a reference (their
#   precisions, averaged by the geometric mean), times a penalty for outputs that are too short. From 0 to 100;
# - **chrF** (Popović 2015): the same idea with runs of *characters*, precision and recall together. From 0 to 100.
#
# Nobody should write BLEU by hand again: papers could not be compared for years because everybody's tokens were
# different (Post 2018). `exact_match`, `bleu` and `chrf` above take two lists, outputs and references: an output is a list of
# tokens, and its references are a *list of* lists of tokens, one or more. The last two ask sacrebleu.
#
# Write `evaluate_translation(model, pairs, ...)`: `pairs` is a list of (source tokens, references), words and not
# numbers, with one or more references each; translate all sources with your `greedy_decode`, turn the outputs into
# words,{=greedy} and return a dict with the keys {=keys} `"exact"` (0 to 1),{=exact} `"bleu"`{=bleu} and `"chrf"` (0 to
# 100).{=chrf} All references of a sentence count, whichever stands first.{=several} Further arguments are free if they have
# defaults (keep those of the stub to use our cells below); without them the vocabularies are those of the number words,
# `vocabularies()`. Dropout is off while you decode {=dropout} (`translate` sees to it, and cuts large sets into pieces).
#
# **How this question is judged.** A small part: the function, on models of known quality. The larger part, which only
# hidden checks can try: that your model *learned*.{~learned} If you handed in `hw4_translation.safetensors`, it is loaded
# into your `Transformer` with the sizes of the recipe for sentences. It gets everyday sentences that no run was trained on, under
# new numbers for all words (its embeddings are put in the same new order), and the share that your model and your `greedy_decode`
# translate as one of the references counts: at least 0.6, where our runs reach more than 0.9. Without a file (or if it
# does not load, or falls short), your parts train a smaller model for 100 steps on numbers below ten thousand
# (`train_briefly` in `course_utils/hw4/translation.py`), whose words are numbered anew in each grading, and the loss and
# the exact match after that count. Both are computed from the model's weights. Right models pass either with a wide
# margin.

# %% question="q4_10" points=8 minutes=20 difficulty=2 uses=["q4_1", "q4_2", "q4_3", "q4_4", "q4_5", "q4_6"] limits={"wall": 120, "cpu": 300}
def evaluate_translation(
    model: nn.Module, pairs: Sequence[tuple[list[str], list[list[str]]]], source: WordList | None = None,
    target: WordList | None = None, max_len: int = MAX_LEN,
) -> dict[str, float]:
    """Translate the sources of the pairs greedily; returns "exact" (0 to 1), "bleu" and "chrf" (0 to 100)."""
    # BEGIN SOLUTION
    if source is None or target is None:
        source, target = vocabularies()
    src, src_padding = pad_batch([source.encode(tokens) for tokens, _ in pairs], PAD)
    outputs = [target.decode(ids) for ids in translate(model, greedy_decode, src, src_padding, max_len)]
    references = [several for _, several in pairs]
    return {
        "exact": exact_match(outputs, references),
        "bleu": bleu(outputs, references),
        "chrf": chrf(outputs, references),
    }
    # END SOLUTION


# %% [markdown] help="q4_10"
# symptom: Exact match is 0 although the translations look right: words were compared with numbers, EOS was left in
# the outputs, or an output was compared with the list of its references. BLEU of 1 where 100 is expected: shares and
# percent. Scores change from call to call: dropout was on. Too low where a sentence has several references: only the
# first was looked at.
#
# hint: Encode the sources with the source vocabulary, pad them, `translate(model, greedy_decode, src, src_padding)`,
# decode with the *target* vocabulary.
#
# pseudo-code: Vocabularies, if none were given. Sources to numbers, padded. Greedy translations, to words. The three
# scores against the references of the pairs, in a dict.

# %% [markdown]
# The three held-out sets, by the young model (the first that had one sentence in five right) and by the best one of the
# whole run; and, for the first set, by the first reference alone.
#
# Predict before you run it: on which set will the model be worst, and why? Which score tells the young model from the
# best one most clearly? What will one reference instead of all do to each score?
#
# <details><summary>What ours did</summary>
#
# | 2,400 steps, seeds 0 and 1 | exact match | BLEU | chrF |
# |---|---|---|---|
# | unseen sentences | 0.956, 0.970 | 98.6, 99.1 | 99.3, 99.5 |
# | unseen combinations | 0.914, 0.928 | 97.4, 97.6 | 98.8, 98.7 |
# | longer sentences | 0.062, 0.062 | 57.7, 56.1 | 72.5, 70.5 |
#
# Longer sentences break it: it has never seen their places, nor three clauses, and it leaves words out; BLEU still finds half
# of the runs. Combinations cost a few percent: it puts known words together well. The young model has 0.38 of the unseen sentences
# right, with BLEU 65 and chrF 78: exact match tells the two apart most clearly, chrF least. With the first reference alone exact match falls from
# 0.96 to 0.78 and BLEU from 99 to 90, though not one translation has changed.
#
# </details>

# %% tags=["training"]
with after("q4_1", "q4_2", "q4_5", "q4_6", "q4_10", what="evaluation"):
    sets = {kind: [(example.source, example.references) for example in some] for kind, some in task.tests.items()}
    sets["the first set, one reference"] = [(source, several[:1]) for source, several in next(iter(sets.values()))]
    for name, one in (("young", young), ("best", model)):
        for kind, pairs in sets.items() if one is not None else ():
            scores = evaluate_translation(one, pairs, task.source, task.target, recipe.max_len)
            print(f"{name:6} {kind:29}", "  ".join(f"{key} {value:7.3f}" for key, value in scores.items()))

# %% [markdown]
# **Where it fails.** Two tables, both counted by comparing what was written with the nearest reference. The first: of
# sentences that have something hard in them, how many are right? The second: what kinds of errors do wrong
# translations have? An *ending* is another form of the right article, adjective or noun; *place of the verb* means that
# all words are right and a verb stands elsewhere. Guess before you look: endings, order, or plain words?
#
# <details><summary>What ours did</summary>
#
# Of the 22 wrong translations of unseen sentences (seed 0) hardly any has a wrong ending, and not one a verb in the wrong
# place: what German classes sweat over is regular, and regular is what a network learns. Sentences with *because* (0.78 right),
# *when* and *nicht* (0.82) are hardest, since they are long and the verb comes late. Of the 43 wrong
# combinations, 14 have a wrong word, 16 lack one and 16 have one too many; 6 have a wrong ending.
#
# </details>

# %% tags=["training"]
from course_utils.hw4.error_kinds import KINDS, kinds_of_errors, shares_right, table_of_errors

with after("q4_1", "q4_2", "q4_5", "q4_6", what="table"):
    if task.name != "sentences":
        print("These tables are for the sentences: their grammar knows what is hard about each.")
    else:
        written = {kind: written_by(model, examples) for kind, examples in task.tests.items()}
        first, second, third = (shares_right(written[kind], examples) for kind, examples in task.tests.items())
        print(f"{'share right':24}" + "".join(f"{kind:>24}" for kind in task.tests))
        for name in second:
            cells = (f"{found[name][1]:.2f} of {found[name][0]:3}" if name in found else "-" for found in (first, second, third))
            print(f"{name:24}" + "".join(f"{cell:>24}" for cell in cells))
        print(f"\n{'wrong translations with':24}")
        counts = [table_of_errors(written[kind], examples) for kind, examples in task.tests.items()]
        for kind in KINDS:
            print(f"{kind:24}" + "".join(f"{count[kind]:>24}" for count in counts))
        kind = "unseen combinations"
        wrong = [(o, e) for o, e in zip(written[kind], task.tests[kind], strict=True) if kinds_of_errors(o, e.references)]
        for output, example in wrong[:6]:
            print(f"\n{' '.join(example.source)}   {sorted(kinds_of_errors(output, example.references))}")
            print(beside([output], [example]))

# %% [markdown]
# **Your own sentence.** Type one. The model knows a few hundred words (the second line lists some); what it does not know, it
# reads as `<unk>`, and it says so. Try a sentence about somebody in this room, then a question, then a very long one.

# %% tags=["training"]
from course_utils.hw4.shown import read_sentence, told_unknown

MY_SENTENCE = "The small dog doesn't find the ball because my sister hid it in the garden."


def say(text: str) -> None:
    """Translate a sentence of your own, greedily and with a beam of 4."""
    tokens, unknown = read_sentence(text, task.source)
    src = torch.tensor([task.source.encode(tokens)], device=device)
    print(" ".join(tokens))
    print(told_unknown(unknown, task.source) or "(all words are known)")
    print("  greedy:", " ".join(task.target.decode(greedy_decode(model, src, None, BOS, EOS, recipe.max_len)[0])))
    beamed = beam_search(model, src, None, BOS, EOS, recipe.max_len, 4, 1.0)[0]
    print("  beam:  ", " ".join(task.target.decode(beamed)))


with after("q4_1", "q4_2", "q4_5", "q4_6", "q4_7", what="translator"):
    print("some words that it knows:", ", ".join(task.source.tokens[9::9]))
    say(MY_SENTENCE)
    say("Did the old woman call her neighbour yesterday?")

# %% [markdown]
# **Where does it look?** The cross-attention of the trained model while it writes, the mean over the heads of each decoder
# layer. Rows are the words that it is about to write. Three sentences with a verb that moves: a perfect (*called* becomes
# *hat ... angerufen*), a verb that falls apart (*turns off* becomes *schaltet ... aus*), and a verb that goes to the end behind
# *weil*. Which words does the model look at when it must write the verb's last piece? (Jain and Wallace, below, warn of
# reading too much into such pictures.)

# %% tags=["training"]
from course_utils.hw4.shown import looked_at

MOVING = (
    "the old woman called her neighbour yesterday .",
    "my father turns off the lamp in the evening .",
    "we laugh , because the dog does not find the red ball .",
)
with after("q4_1", "q4_2", "q4_5", "q4_6", what="picture"):
    for text in MOVING if task.name == "sentences" else [" ".join(task.look[0].source)]:
        src = torch.tensor([task.source.encode(text.split())], device=device)
        ids = greedy_decode(model, src, None, BOS, EOS, recipe.max_len)[0]
        weights = cross_attention(model, src, torch.tensor([[BOS, *ids]], device=device))[:, 0].mean(1)  # [L, T, S]
        read, written = ([words.tokens[i] for i in some] for words, some in ((task.source, src[0]), (task.target, [*ids, EOS])))
        last = weights[-1]
        plots.heatmap(
            last, written, read, "Cross-attention of the last layer, mean of the heads", numbers=False,
            xlabel="source", ylabel="about to write",
            alt=f"Attention of the last layer for: {text} {looked_at(last, written, read)}.",
        )

# %% [markdown]
# **Greedy against beam.** Where several translations are good, the model spreads its probability over them, and greedy may
# take a first word that is likely in sum but has no single good way to go on. The cell asks both models, with the score
# $\alpha = 1$, and shows sentences of the best one on which greedy and a beam of 4 differ. Will a wider beam find better
# scores? More right sentences? Say what you expect for the young and for the best model, then run it.
#
# <details><summary>What ours did, and where the two differ</summary>
#
# Young: the score rises from -0.361 (greedy) to -0.346 at width 2 and -0.344 at width 4, and exact match stays at 0.41: the
# search did its work, the model does not know better; BLEU even falls a little, from 69.7 to 68.4. Best: greedy and beam differ on
# 2 of 100 sentences, and there in the *order* only, where both ways are good: *du hast ihre Hemden am Abend nicht angezogen* or
# *du hast am Abend ihre Hemden ...*. Greedy decides between *ihre* and *am* by the next word alone, the beam by the whole sentence; the
# scores are -0.2251 and -0.2242. Where the model is sure, there is nothing to search for.
#
# </details>

# %% tags=["training"]
def beam(width: int, alpha: float = 1.0):
    """beam_search in the form of the other decoding functions."""
    return lambda *asked: beam_search(*asked, width, alpha)


def score_of(model: nn.Module, examples, outputs: list[list[str]]) -> float:
    """The model's own score (alpha = 1) of outputs: mean log-probability of a token, EOS included, mean over sentences."""
    src, padding = pad_batch([task.source.encode(example.source) for example in examples], PAD)
    inputs, labels = teacher_forcing([task.target.encode(words) for words in outputs], BOS, EOS, PAD)
    src, padding, inputs, labels = to_device((src, padding, inputs, labels), device)
    with torch.no_grad():
        logp = model(src, inputs, padding).log_softmax(-1).gather(-1, labels[..., None])[..., 0]  # [B, T]
    return (logp.masked_fill(labels == PAD, 0).sum(1) / (labels != PAD).sum(1)).mean().item()


with after("q4_1", "q4_2", "q4_6", "q4_7", what="comparison"):
    some = next(iter(task.tests.values()))[: 10 if fast() else 100]
    references = [example.references for example in some]
    for name, one in (("young", young), ("best", model)):
        for width in (1, 2, 4) if one is not None else ():
            outputs = written_by(one, some, beam(width))
            right, points = exact_match(outputs, references), bleu(outputs, references)
            print(f"{name:6} width {width}: score {score_of(one, some, outputs):.4f}, exact {right:.3f}, BLEU {points:.1f}")
    greedy, beamed = written_by(model, some), written_by(model, some, beam(4))
    differ = [i for i in range(len(some)) if greedy[i] != beamed[i]]
    print(f"\nthe best model: greedy and a beam of 4 differ on {len(differ)} of {len(some)} sentences")
    for i in differ[:6]:
        print(f"\n{' '.join(some[i].source)}")
        for name, output in (("greedy", greedy[i]), ("beam", beamed[i])):
            score = score_of(model, some[i : i + 1], [output])
            print(f"  {name:6} {score:.4f} {'right' if output in some[i].references else 'wrong'}  {' '.join(output)}")

# %% [markdown]
# **The length penalty.** With $\alpha = 0$ every further word costs, so a beam may prefer the shorter of two translations; a
# large $\alpha$ may prefer the longer. How large is the difference here, and on which sentences would it matter? The cell
# shows the mean length, the scores, and sentences whose translation depends on $\alpha$.
#
# <details><summary>What ours did</summary>
#
# The young model wrote 7.4 words with $\alpha = 0$ (BLEU 60.5: too short, and some sentences just end) and 8.2 with $\alpha = 1$
# (BLEU 68.4). With $\alpha = 3$ both models babble until they must stop: the best one falls from 98 to 79 percent right and
# from BLEU 99.6 to 54, with 15 words a sentence instead of 9. For the best model 0 and 1 are the same: the penalty matters where the
# model is unsure, and then it should be chosen on held-out sentences.
#
# </details>

# %% tags=["training"]
with after("q4_1", "q4_2", "q4_6", "q4_7", what="comparison"):
    for name, one in (("young", young), ("best", model)):
        by_alpha = {alpha: written_by(one, some, beam(4, alpha)) for alpha in (0.0, 1.0, 3.0)} if one is not None else {}
        for alpha, outputs in by_alpha.items():
            length = sum(map(len, outputs)) / len(outputs)
            right, points = exact_match(outputs, references), bleu(outputs, references)
            print(f"{name:6} alpha {alpha:g}: {length:.2f} words, exact {right:.3f}, BLEU {points:.1f}")
        shown = [i for i in range(len(some)) if by_alpha and by_alpha[0.0][i] != by_alpha[3.0][i]][:3]
        for i in shown:
            print(f"  {' '.join(some[i].source)}")
            print(f"    alpha 0: {' '.join(by_alpha[0.0][i])}\n    alpha 3: {' '.join(by_alpha[3.0][i])}")

# %% [markdown]
# ### Where the seconds go
#
# Above we counted; now the clock and the memory of this machine, as ratios. *Memory* is the most that the tensors made in
# the call held at one time, weights not counted. Four questions, one line each. What do you expect: is a beam of 4 four times
# as dear as greedy? Does a cache save what the count of FLOPs promised, for short sentences too? And how much faster is it to
# *read* a translation that is known (one pass over all words, as in training: **prefill**) than to *write* it word by word
# (**decode**)?
#
# <details><summary>What ours did, and why</summary>
#
# A beam of 4 took 13 times as long as greedy, not 4 times, at no more memory: ours searches sentence by sentence, so
# that 16 sentences are 16 loops (of width 4, and once more of width 1) where greedy has one. A cache made 12 words 2.2 times as
# fast and 96 words 10.7 times, at a third of the memory: short sentences are dominated by the number of calls, not by their
# work. Writing 96 words took 6 times as long as reading them in one pass, which needs three times the memory, since all logits
# are there at once. That is why servers speak of prefill and decode as two different loads: the first is bound by arithmetic, the
# second by calls and memory traffic.
#
# </details>

# %% tags=["training"]
from course_utils.notebook.clock import cost_of

with after("q4_1", "q4_2", "q4_6", "q4_7", "q4_8", what="measurement"):
    few = 4 if fast() else 16
    sources, _ = encode_pairs([(example.source, []) for example in some[:few]], task.source, task.target)
    src, padding = to_device(pad_batch(sources, PAD), device)

    def told(what, dear, cheap):
        time, memory = dear.seconds / cheap.seconds, dear.peak / cheap.peak
        print(f"{what:52} {time:6.1f} times the time, {memory:6.1f} times the memory")

    def cost(decode, length, *more):
        """Of writing exactly so many words: the EOS number is one that no model gives."""
        return cost_of(decode, model, src, padding, BOS, -1, length, *more, rounds=1 if more else 3)

    told("a beam of 4 against greedy, 12 words", cost(beam_search, 12, 4, 1.0), cost(greedy_decode, 12))
    for length in (12, 16 if fast() else 96):
        cached = cost(cached_greedy_decode, length)
        told(f"greedy without against with a cache, {length} words", cost(greedy_decode, length), cached)
    known = src.new_full((len(src), length), BOS)  # any words will do
    with torch.no_grad():
        reading = cost_of(model.decode, known, model.encode(src, padding), padding)
    told(f"writing {length} words (cached) against reading them", cached, reading)

# %% [markdown]
# **And in training?** Take one step apart, and look at what is computed for nothing. Batches of sentences of one length
# (`alike` in the recipe) have little padding; drawn by chance they have more, and each padded place costs as much as a real
# one.

# %% tags=["training"]
with after("q4_1", "q4_2", "q4_3", "q4_5", what="measurement"):
    def padded(batches):
        """The share of places in sources and labels that are padding."""
        return sum(b[1].sum() + (b[3] == PAD).sum() for b in batches).item() / sum(b[1].numel() + b[3].numel() for b in batches)

    mixed = make_batches(task.train, pad_batch, teacher_forcing, steps=40, size=recipe.batch,
                         source=task.source, target=task.target)
    shown = copy.deepcopy(model).train()
    adam = torch.optim.Adam(shown.parameters(), lr=0.0)

    def seconds(batches, part):
        return sum(cost_of(part, batch, rounds=1).seconds for batch in batches) / len(batches)

    def forward(batch):
        src, src_padding, inputs, labels = to_device(batch, device)
        return smoothed_loss(shown(src, inputs, src_padding), labels, PAD)

    for name, some_batches in (("by chance", mixed), ("alike", batches[:40])):
        once = some_batches[: 4 if fast() else 20]
        go, both = seconds(once, forward), seconds(once, lambda batch: forward(batch).backward())
        step = seconds(once, lambda batch: train_step(shown, batch, adam, PAD))
        words = sum((batch[3] != PAD).sum().item() for batch in once) / len(once)
        print(f"{name:10} padding {padded(some_batches):.0%}; a step: forward {go / step:.0%}, backward {(both - go) / step:.0%}, "
              f"clipping and Adam {(step - both) / step:.0%}; {words / step:,.0f} target words a second")

# %% [markdown]
# What makes it faster, in the order of what it brings here: batches that are alike; fewer looks, each of which decodes 150
# sentences; more sentences in a batch, until the arithmetic and not the calls from Python take the time; a cache and one
# batch for all beams when decoding; on a GPU bfloat16 (`autocast_for`) and larger models, since this one is too small to keep
# it busy. More threads bring little: the matrices are small. So `seed_everything` has torch compute on one, which leaves the
# other cores to you; `COURSE_THREADS=4` in the environment, or `torch.set_num_threads(4)`, asks for more.

# %% [markdown]
# ### A real corpus
#
# Everything above works for any pairs of sentences. **Multi30k** (Elliott 2016) has 29,000 captions of photographs in
# English and German, for non-commercial research and education; it does not come with the course. In a terminal beside
# this notebook, `course data multi30k` fetches it and checks it (2 MB); a copy of your own may lie in a folder that the
# environment variable `MULTI30K` names. Where it is there, the cell below trains on it, into files of its own.
# (For pairs of your own, separated by tabs, there is `course_utils.data.read_pairs(path)`.)
#
# Real text needs one thing more. *Antriebsradsystem* occurs once, and a vocabulary of whole words would be full of such
# guests. So words are cut into **pieces** by byte pairs (Sennrich 2016): begin with single bytes, merge the most frequent
# pair of neighbours, and again, 4,000 times. Frequent words end as one piece, rare ones as several, and nothing is unknown.
# Both languages share the pieces, and the model shares their vectors between source, target and output. BLEU is computed
# here as papers do, on whole sentences as they are written, and comes with sacrebleu's *signature*, which says how.
#
# The run looks at validation BLEU, keeps the best model, stops early when it no longer rises, and goes on where it was
# stopped. On a processor 600 steps are some minutes. For longer runs a terminal is the better place, with the same answers
# of yours: `course train hw4 --corpus multi30k --minutes 60`. On a GPU the model is larger and its arithmetic bfloat16.

# %% tags=["training"]
import os
from pathlib import Path

captions = Path(os.environ.get("MULTI30K", "multi30k"))
if not captions.is_dir():
    print("Skipped: `course data multi30k` in a terminal beside this notebook fetches the corpus.")
else:
    with after("q4_1", "q4_2", "q4_3", "q4_4", "q4_5", "q4_6", "q4_8", what="training run"):
        steps = 8 if fast() else 12_000 if device.type == "cuda" else 600
        run = train_captions(globals(), str(captions), "hw4_captions", steps=steps)
        run.curves.plot("bleu", title="English captions into German", ylabel="BLEU on the validation set",
                        alt="BLEU on the validation captions rises from 0, quickly at first, then slowly.")

# %% [markdown]
# ## Part V. In your own words
#
# Three questions for a few sentences each. A person reads them, and a clear reason counts for more than length.

# %% [markdown] explain="q4_11" points=3 minutes=8 difficulty=2
# ### In your own words: the loss that was too good
#
# A friend trains a translation Transformer, and is delighted: the loss is at its minimum after a few hundred
# steps, on held-out sentences too. But decoding gives the same word again and again. It turns out that the
# decoder was fed the *labels* as inputs (without BOS, not shifted). What happened, how could the held-out loss stay
# silent, and would a low loss be enough if all were right? Five sentences or so.
#
# BEGIN SOLUTION
# With unshifted inputs the word that is asked for at place t stands at place t of the input, which the causal mask
# allows the decoder to see: it learned to copy its input and needed neither the source nor the earlier words. The
# held-out loss is computed with the same teacher forcing, so the answer stands in its input there too, and copying
# works on any sentence. In decoding there is no answer to copy: the model is given the last word, repeats it, and
# goes on. With the shift, place t sees BOS and the words before t, the causal mask hides all later inputs, and so
# the next word must be predicted from the prefix and the source. What remains: in training the prefix is always
# right, in decoding it is the model's own, so after an error the model is in a place that it never saw in
# training (exposure bias), and a low loss is no proof of good translations: one has to decode.
#
# **Rubric.** 1 point: the model learned to copy its input, since the causal mask allows place t to see place t. 1
# point: held-out loss uses teacher forcing as well, so it contains the answer too; only decoding shows it. 1 point:
# own prefix against right prefix as the remaining difference.
# END SOLUTION

# %% [markdown] explain="q4_12" points=3 minutes=8 difficulty=2
# ### In your own words: three scores, one model
#
# A system translates invoices. On a test set it has exact match 0.61, BLEU 93 and chrF 96, and its maker writes
# "translation quality above 90 percent". Would you let it print the sums? Would you judge a translator of novels by the
# same score, and would a wider beam help either of them? Five sentences or so, with reasons.
#
# BEGIN SOLUTION
# No: 39 of 100 outputs differ from the right one, and in a sum every difference is an error of money. BLEU counts shared
# runs of tokens and chrF shared runs of characters, all with equal weight: *drei* for *vier* changes one token of ten,
# most runs still match, and the score hardly falls, although the meaning is another number. Neither knows which word
# matters, and both are averages over the whole set. Exact match sees any difference but not its size, and it is useless
# where a sentence has many good translations, as ordinary text has: there nearly every output would count as wrong, and
# BLEU or chrF (with human reading) say more. A wider beam finds outputs that the *model* thinks more likely; where the model
# is wrong or likes short outputs, the more likely one can be the worse translation, so the score that was searched for
# and the quality that was wanted are two things.
#
# **Rubric.** 1 point: BLEU and chrF weigh all tokens alike and reward overlap, so a single wrong number word costs
# little. 1 point: exact match is right for numbers and too strict where several translations are good. 1 point: the
# model's score is not quality (search error against model error, length).
# END SOLUTION

# %% [markdown] explain="q4_13" points=3 minutes=10 difficulty=2 sources="001/1.4-a 001/1.4-b 002/2.4-why"
# ### In your own words: Transformer against RNN
#
# A colleague has a translator of 2015: a recurrent encoder, a recurrent decoder, and attention between them, as in
# homework 1. "Your Transformer has no recurrence, so everything runs in parallel. Attention was the new idea, it sees any
# distance at no cost, and it scales." Which of these claims hold, in training and in decoding, and what do they cost for $n$
# words of width $d$? What does self-attention do that a fixed linear layer over the $n$ places does not, and what must a
# Transformer be given that an RNN has for free? Six sentences or so.
#
# BEGIN SOLUTION
# Parallel is true of training: all places of known sentences are computed in one pass, where an RNN needs $n$ steps one
# after another. Decoding stays sequential in both, since each word is an input of the next. Attention was not new: the
# colleague's model has it, between decoder and encoder; new was to use nothing else, also within a sentence. Any two places
# are one step apart instead of up to $n$, so gradients need not survive a long chain, but this is paid for: each layer
# costs about $n^2 d$ for the scores and $n d^2$ for the projections, an RNN about $n d^2$, so that long inputs are where a
# Transformer does *not* scale. Self-attention relates every place to every other with weights that depend on the words
# themselves; a fixed layer over places mixes all inputs in the same way, and is tied to one length. An RNN reads in order
# and so knows order; attention does not, and must be given positions (and, in the decoder, a causal mask).
#
# **Rubric.** 1 point: parallel in training only, decoding word by word in both. 1 point: path length 1 against $n$, and its
# price of $n^2 d$ (with the width) for each layer. 1 point: weights that depend on the input, or positions that must be
# given, or that attention was there before.
# END SOLUTION

# %% [markdown]
# ## What to read next
#
# You have built the machine of 2017, and it works. **Homework 5** puts its encoder to work on images.
#
# - Vaswani and others (2017), [*Attention is all you need*](https://arxiv.org/abs/1706.03762): read it
#   again, now that you have built what it describes.
# - Sutskever, Vinyals and Le (2014), [*Sequence to sequence learning with neural
#   networks*](https://arxiv.org/abs/1409.3215): translation before attention; beam search with small
#   beams.
# - Press and Wolf (2017), [*Using the output embedding to improve language
#   models*](https://arxiv.org/abs/1608.05859): tying.
# - Szegedy and others (2016), [*Rethinking the Inception architecture for computer
#   vision*](https://arxiv.org/abs/1512.00567): label smoothing, on the side. Müller, Kornblith and Hinton
#   (2019), [*When does label smoothing help?*](https://arxiv.org/abs/1906.02629)
# - Wu and others (2016), [*Google's neural machine translation system: bridging the gap between human and
#   machine translation*](https://arxiv.org/abs/1609.08144): length penalties and what production needs.
# - Stahlberg and Byrne (2019), [*On NMT search errors and model errors: cat got your
#   tongue?*](https://arxiv.org/abs/1908.10090): the best-scoring translation is often the empty one.
#   Meister, Vieira and Cotterell (2020), [*If beam search is the answer, what was the
#   question?*](https://arxiv.org/abs/2010.02650)
# - Papineni and others (2002), [*BLEU: a method for automatic evaluation of machine
#   translation*](https://aclanthology.org/P02-1040/); Popović (2015), [*chrF: character n-gram F-score
#   for automatic MT evaluation*](https://aclanthology.org/W15-3049/); Post (2018), [*A call for clarity
#   in reporting BLEU scores*](https://arxiv.org/abs/1804.08771).
# - Sennrich, Haddow and Birch (2016), [*Neural machine translation of rare words with subword
#   units*](https://aclanthology.org/P16-1162/): pieces of words. Elliott and others (2016), [*Multi30K: multilingual
#   English-German image descriptions*](https://aclanthology.org/W16-3210/): the captions.
# - Jain and Wallace (2019), [*Attention is not explanation*](https://arxiv.org/abs/1902.10186), before
#   you trust the alignment pictures too far.
#
# Before you hand in, restart the kernel, run everything from top to bottom, look at the checks once more,
# and put `hw4_translation.safetensors` beside the notebook.

# %%
grader.check_all()
