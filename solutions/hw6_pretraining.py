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
from course_utils import Grader, seed_everything

seed_everything(0)
grader = Grader("hw6_pretraining")

# %% [markdown]
# ## Part I. TODO a name
#
# TODO: what the questions of this part have in common.

# %% [markdown] question="q6_1"
# ### TODO: a title in plain words
#
# TODO: what it is and why it matters, a formula, a number worked by hand, and every convention that the suite
# relies on. An example to write over: the *root mean square* of numbers is
# $\sqrt{(x_1^2 + \dots + x_n^2) / n}$. For $1$ and $7$ it is $\sqrt{50 / 2} = 5$.
#
# Write `mask_tokens(numbers)`. It takes a list of floats and returns a float, 0 for an empty list.

# %% question="q6_1" points=7 minutes=15 difficulty=2
def mask_tokens(numbers: list[float]) -> float:
    """The root mean square of the numbers, 0 for none."""
    # BEGIN SOLUTION
    # TODO: the reference's answer
    return (sum(x * x for x in numbers) / max(len(numbers), 1)) ** 0.5
    # END SOLUTION


# %% [markdown] help="q6_1"
# symptom: TODO: what one sees. For example: the result grows with the length of the list.
#
# hint: TODO: a question that leads on. For example: what does a mean divide by?
#
# pseudo-code: TODO: the steps in words. For example: square every number, take the mean, take its root.

# %% [markdown]
# ## What to read next
#
# TODO: two or three sentences: where you started, where you are, what comes in the next homework.
#
# - TODO: author (year), [*a paper*](https://arxiv.org/abs/1706.03762): which question it stands behind.
# - TODO: author (year), [*a second one*](https://arxiv.org/abs/1409.0473).
# - TODO: author (year), [*a third one*](https://arxiv.org/abs/1508.04025).
# - TODO: author (year), [*a fourth one*](https://arxiv.org/abs/1911.03584).
# - TODO: author (year), [*a fifth one*](https://arxiv.org/abs/1409.3215).
# - TODO: author (year), [*a book*](https://udlbook.github.io/udlbook/), and the chapter.
#
# Before you hand in, restart the kernel, run everything from top to bottom, and look at the checks once
# more.

# %%
grader.check_all()
