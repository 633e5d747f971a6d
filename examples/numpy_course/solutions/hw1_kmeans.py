# %% [markdown] summary="k-means: nearest centres, means of groups, empty clusters"
# # Homework 1: k-means, one step at a time
#
# A thousand points lie in the plane, in three heaps, and nobody has told you which point belongs to which heap.
# k-means finds out by doing two simple things in turn: give every point to its nearest centre, then move every
# centre to the middle of its points. You write both, and put them together.
#
# **When you are done, you will be able to**
#
# - compute all distances between two sets of points without a loop;
# - choose the axis over which a minimum or a mean runs, and say why;
# - group points by label and take means of the groups;
# - say what a mean of no points is, and decide what to do about it;
# - see in numbers that k-means never gets worse.
#
# **What you need**: arrays, indexing and broadcasting in NumPy. No downloads.

# %% [markdown] contents=true
# The table of contents stands here, with the times to read and to work.

# %% [markdown]
# ## How to work
#
# Each question has a text, one answer cell, a check and some help that unfolds. Replace the `raise
# NotImplementedError`, run the cell, then the check below it. The check tries your answer on small examples; the
# grader does the same on many more, and relies on nothing that is not written here.

# %%
import numpy as np

from course_utils import Grader, after

grader = Grader("hw1_kmeans")

# %% [markdown]
# ## Part I: the two steps

# %% [markdown] question="q1_1"
# ### To the nearest centre
#
# There are $n$ points $x_i$ and $k$ centres $c_j$, all with $d$ numbers. Point $i$ gets the label of the centre that
# is nearest in the usual, Euclidean, distance:
#
# $$\text{label}_i = \arg\min_j \sum_{m=1}^{d} (x_{im} - c_{jm})^2 .$$
#
# The points $(0, 0)$ and $(3, 1)$ with the centres $(1, 0)$ and $(4, 0)$ get the labels 0 and 1.
#
# Write `assign(points, centers)`:
#
# - `points` is an array `[n, d]` and `centers` one of `[k, d]`;
# - the result is an array `[n]` of whole numbers from 0 to $k - 1$;
# - of two centres that are equally near, the first one counts;
# - the inputs stay as they are.

# %% question="q1_1" points=50 minutes=15 difficulty=2
def assign(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The nearest center of each point: points [n, d], centers [k, d] -> labels [n]."""
    # BEGIN SOLUTION
    gaps = points[:, None] - centers  # [n, k, d]
    return (gaps**2).sum(-1).argmin(-1)  # [n]
    # END SOLUTION


# %% [markdown] help="q1_1"
# symptom: An error about shapes that cannot be broadcast, or labels of which there are `k` and not `n`.
#
# hint: Give the points an axis more, so that every point meets every centre: `[n, 1, d]` against `[k, d]`.
#
# pseudo-code: Subtract every centre from every point. Square, and sum over the coordinates. Of each point's k numbers
# take the place of the smallest.

# %% [markdown] question="q1_2"
# ### To the middle of its points
#
# Now the labels stay and the centres move: centre $j$ goes to the mean of the points with label $j$. A centre that no
# point has chosen has no mean, since zero divided by zero is not a number. Such a centre stays where it is.
#
# With the points $(0, 0)$, $(2, 0)$ and $(5, 5)$, the labels 0, 0 and 2, and three centres, the first goes to
# $(1, 0)$, the second stays, and the third goes to $(5, 5)$.
#
# Write `update(points, labels, centers)`:
#
# - `points` is `[n, d]`, `labels` an array `[n]` of whole numbers, `centers` is `[k, d]`, all numbers in float64;
# - the result is a new array `[k, d]` of float64;
# - there is no warning, and the inputs stay as they are.

# %% question="q1_2" points=50 minutes=20 difficulty=3 uses=["q1_1"]
def update(points: np.ndarray, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The mean of each cluster: points [n, d], labels [n], centers [k, d] -> new centers [k, d]."""
    # BEGIN SOLUTION
    mine = labels == np.arange(len(centers))[:, None]  # [k, n]
    counts = mine.sum(1, keepdims=True)  # [k, 1]
    return np.where(counts > 0, mine @ points / np.maximum(counts, 1), centers)  # [k, d]
    # END SOLUTION


# %% [markdown] help="q1_2"
# symptom: A row of NaN and a warning about an invalid value, or a centre at the origin where nothing is.
#
# hint: `points[labels == j]` are the points of centre j. How many are there, and what is done with none?
#
# pseudo-code: Copy the centres. For each of them: take its points; if there are any, put their mean in its place.

# %% [markdown]
# ## Part II: together
#
# The two steps in turn, on three heaps. Each line is the mean squared distance from a point to its centre: it falls,
# and then it stays, because neither step can make it larger.

# %% tags=["plot"]
with after("q1_1", "q1_2"):
    rng = np.random.default_rng(0)
    heaps = np.concatenate([rng.normal(middle, 0.5, (100, 2)) for middle in ([0, 0], [4, 0], [2, 3])])
    found = heaps[:3].copy()
    for step in range(6):
        chosen = assign(heaps, found)
        print(f"step {step}: {((heaps - found[chosen]) ** 2).sum(1).mean():.3f}")
        found = update(heaps, chosen, found)

# %% [markdown]
# ## What to read next
#
# - The method is Stuart Lloyd's, from 1957, printed in 1982: [Least squares quantization in
#   PCM](https://doi.org/10.1109/TIT.1982.1056489).
# - How to choose the first centres: [k-means++](https://theory.stanford.edu/~sergei/papers/kMeansPP-soda.pdf).
# - Broadcasting, in NumPy's own words: [the user guide](https://numpy.org/doc/stable/user/basics.broadcasting.html).
# - All ways to index an array: [the user guide](https://numpy.org/doc/stable/user/basics.indexing.html).
# - A library's k-means: [scikit-learn](https://scikit-learn.org/stable/modules/clustering.html#k-means).
# - What one does without centres: [DBSCAN](https://en.wikipedia.org/wiki/DBSCAN).
#
# **Before you hand in**: restart the kernel, run all cells, look at the checks, save, and run `course submit hw1`.
