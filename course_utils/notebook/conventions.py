"""The convention card: printed at the top of every notebook, and read by the checks from here."""

from __future__ import annotations

from collections.abc import Iterable

CARD: list[tuple[str, str]] = [
    (
        "shapes",
        "batch first: `[B, N, D]`; query length `T`, key length `S`; `H` heads of width `Dh = D / H`; weights "
        "`[B, H, T, S]`",
    ),
    ("padding", "`key_padding_mask: bool [B, S]`, **True = padding**, never attended to (PyTorch's polarity)"),
    (
        "causal",
        "query `i` may see key `j` iff `j <= i + (S - T)`: the last query sees everything (plain lower triangle "
        "when `T == S`)",
    ),
    ("boolean masks that you make", "**True = blocked**"),
    (
        "a row with every key blocked",
        "attention's output is exactly zero (so a `MultiHeadAttention` gives `o_proj`'s bias), weights zero, "
        "gradients finite: never NaN",
    ),
    ("scale", "`1 / sqrt(Dh)`: the width that the dot product runs over"),
    ("linear layers", "`nn.Linear`; attention's are `q_proj, k_proj, v_proj, o_proj`"),
    ("layer norm", "over the last axis, biased variance, `eps` inside the root, default `1e-5`"),
    (
        "blocks",
        "pre-norm by default (`norm_first=True`), post-norm on request; dropout on attention weights and on "
        "each residual branch",
    ),
    (
        "devices",
        "no tensor is made on a fixed device: new tensors take their input's; a module's constants are buffers",
    ),
    ("dtype", "results keep the input's dtype; float64 in, float64 out"),
    ("inputs", "never changed in place"),
    ("numbers", 'a "number" is a Python number or a 0-dim tensor'),
]


def card_markdown(extra_rows: Iterable[tuple[str, str]] | None = None) -> str:
    """The card as a Markdown table, with a homework's own rows at the end."""
    rows = [("what", "convention"), ("---", "---"), *CARD, *(extra_rows or [])]
    return "\n".join(f"| {what} | {convention} |" for what, convention in rows)
