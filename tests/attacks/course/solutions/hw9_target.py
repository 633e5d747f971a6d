# %% [markdown]
# # A small homework to attack
# The submissions in the folders beside this one are for it. MARK-OF-THE-SOLUTION

# %%
import torch
from torch import Tensor, nn

# %% [markdown] question="q9_1"
# ## 9.1 Row weights
# The softmax of each row, with weight exactly 0 where `blocked` is True. The last row is never blocked whole.

# %% question="q9_1" points=30 minutes=5 difficulty=1
def row_weights(scores: Tensor, blocked: Tensor | None = None) -> Tensor:
    """The weights of each row: scores [..., S], blocked [..., S] -> [..., S]."""
    # BEGIN SOLUTION
    mark = "MARK-OF-THE-SOLUTION"  # noqa: F841  an attack that reads this string has seen what it may not
    if blocked is not None:
        scores = scores.masked_fill(blocked, -torch.inf)
    return torch.softmax(scores, -1)
    # END SOLUTION

# %% [markdown] help="q9_1"
# symptom: the rows do not sum to 1
#
# hint: softmax
#
# pseudo-code: put -inf where blocked, exponentiate, divide by the sum

# %% [markdown] question="q9_2"
# ## 9.2 A gate
# A module with one `nn.Linear(dim, dim)` called `linear`; it gives x * sigmoid(linear(x)).

# %% question="q9_2" points=30 minutes=5 difficulty=1
class Gate(nn.Module):
    """x * sigmoid(linear(x)): [..., dim] -> [..., dim]."""

    # BEGIN SOLUTION
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.linear(x))
    # END SOLUTION

# %% [markdown] help="q9_2"
# symptom: the sizes do not fit
#
# hint: two arms of the same size
#
# pseudo-code: push x through the layer, squash it, multiply by x

# %% [markdown] question="q9_3"
# ## 9.3 A kernel
# A function of the width that gives back a function of two vectors: exp(-|x - y|^2 / (2 width^2)).

# %% question="q9_3" points=20 minutes=5 difficulty=1 uses=["q9_1", "q9_2"]
def make_kernel(width: float):
    """A Gaussian kernel of that width."""
    # BEGIN SOLUTION
    return lambda x, y: torch.exp(-(x - y).square().sum(-1) / (2 * width**2))
    # END SOLUTION

# %% [markdown] help="q9_3"
# symptom: what comes back cannot be called
#
# hint: return a function
#
# pseudo-code: return a lambda of x and y

# %% [markdown] question="q9_4"
# ## 9.4 Describe
# A dict with the `count` (int), the `mean` (a number) and the `trend` ("rising", "falling" or "flat": last against first).

# %% question="q9_4" points=20 minutes=5 difficulty=1
def describe(values: list[float]) -> dict:
    """The count, mean and trend of some numbers."""
    # BEGIN SOLUTION
    step = values[-1] - values[0]
    trend = "rising" if step > 0 else "falling" if step < 0 else "flat"
    return {"count": len(values), "mean": sum(values) / len(values), "trend": trend}
    # END SOLUTION

# %% [markdown] help="q9_4"
# symptom: a key is missing
#
# hint: len and sum
#
# pseudo-code: count, divide the sum by the count, compare the ends
