"""What the errors of torch, NumPy and Python mean, in sentences of ours, and which shapes met on the line.

The sentences hold no number, so that they may be read before the deadline too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

MOST_SHAPES = 6  # of tensors on one line that are told
PRODUCT = "In a matrix product the left last axis must be as long as the right last but one"
TOGETHER = (
    "Two tensors that are taken together place by place, or the batches of a product, need axes of equal length, "
    "counted from the last, or of length 1"
)
RESHAPED = "A reshape must hold as many numbers as there are: the product of the new lengths is another"
MIXED = "Two dtypes meet in one operation: make what you create in that of the input (`x.new_zeros`, `dtype=x.dtype`)"
WHOLE = "Whole numbers or booleans stand where floating-point ones are needed: convert them, or create them so"
OUTSIDE = "An index lies outside of what it picks from: an embedding or axis is shorter than the largest index needs"
CUT = "What backward starts from has no gradient: a `detach`, `.item()`, `no_grad` or a new tensor cuts it off"
IN_PLACE = "A tensor that the gradient needs was changed in place (`+=`, `x[...] =`, a name that ends in `_`)"
ARGUMENTS = "A function is called with other arguments than it takes: look at the names in its first line"
UNPACKED = "What comes back has another number of parts, or of axes, than there are names on the left"

WORDS: tuple[tuple[str, str], ...] = (
    (
        r"shapes cannot be multiplied|size mismatch, got input|mismatch in its core dimension|shapes .* not aligned"
        r"|size for first two dimensions of batch2|inconsistent tensor size",
        PRODUCT,
    ),
    (r"must match the size of tensor b|operands could not be broadcast|shape mismatch|not broadcastable", TOGETHER),
    (
        r"expanded size of the tensor|expand\(.*number of sizes",
        "A tensor does not fit where it is put, or is widened along an axis longer than 1",
    ),
    (r"is invalid for input of size|cannot reshape array|unflatten.*don't multiply up", RESHAPED),
    (
        r"view size is not compatible",
        "`view` works only where the numbers lie in that order in memory, which a transpose changes: use `reshape`",
    ),
    (
        r"Sizes of tensors must match except|must have same number of dimensions: got|all the input array dim",
        "Tensors that are joined must be equal in all axes but the one along which they are joined",
    ),
    (
        r"stack expects each tensor to be equal size|input arrays must have the same shape",
        "Tensors that are stacked must all have the same shape",
    ),
    (
        r"Dimension out of range|axis -?\d+ is out of bounds|too many indices|at least 2 dimensions",
        "A tensor has fewer axes than this line takes for granted: negative axes (-1, -2) fit any number",
    ),
    (r"same dtype, but got|expected scalar type|must have the same dtype|expected m1 and m2", MIXED),
    (
        r"not implemented for '(?:Long|Int|Bool)|floating point dtype can require|infer output dtype"
        r"|bool tensors? (?:is|are) not supp|two bool tensors is"
        r"|can't be cast to the desired output type|expected to be floating point",
        WHOLE,
    ),
    (
        r"scalar types: Long|tensors used as indices must be",
        "Indices must be whole numbers: an index tensor has a floating-point dtype",
    ),
    (r"index out of range in self|out of bounds for|index out of range|Class values must be smaller", OUTSIDE),
    (
        r"does not match the shape of the indexed tensor|boolean index did not match",
        "A mask that picks places must have the shape of what it picks from",
    ),
    (r"does not require grad and does not have a grad_fn", CUT),
    (r"modified by an inplace operation|leaf Variable that requires grad", IN_PLACE),
    (
        r"backward through the graph a second time",
        "One graph is walked back twice: what is kept from an earlier step should be detached",
    ),
    (r"grad can be implicitly created only for scalar", "backward starts from one number: a mean or sum is missing"),
    (
        r"Can't call numpy\(\) on Tensor that requires grad",
        "A tensor with a gradient goes to NumPy: use `.detach()` first",
    ),
    (
        r"Boolean value of Tensor with more than one|truth value of an array",
        "A whole tensor stands where one yes or no is needed: use `torch.where`, a mask, `.any()` or `.all()`",
    ),
    (
        r"expected input with shape|Expected \d+D .*or \d+D|Expected \d+-dimensional|to have \d+ channels",
        "A layer is given a tensor whose axes are not those that it was made for",
    ),
    (r"loading state_dict", "The names or shapes of parameters are others than asked for"),
    (r"einsum", "The letters of the einsum do not fit the axes of what it is given"),
    (r"'NoneType'", "Something is None here: a function without `return`, or an option that was not given"),
    (r"values to unpack|cannot unpack", UNPACKED),
    (
        r"unexpected keyword argument|positional arguments? but|missing \d+ required|multiple values for argument",
        ARGUMENTS,
    ),
    (
        r"before assignment|where it is not associated with a value",
        "A name is read on a way through the function on which nothing was put into it",
    ),
    (
        r"name '.*' is not defined",
        "A name is used that nothing defines: a typing error, or a missing import or `self.`",
    ),
    (
        r"only supports boolean masks|integer and Boolean-type|condition to be a boolean",
        "A mask must be a tensor of booleans",
    ),
    (
        r"batch_size .* to match target|Expected target size",
        "Logits and labels do not fit: classes stand on axis 1 for torch",
    ),
    (r"Index tensor must have the same number", "`gather` and `scatter` take an index with as many axes as the tensor"),
    (r"object is not callable", "Something is called that is no function: look for brackets too many"),
    (
        r"object is not iterable|is not subscriptable",
        "A single thing stands where a list or tensor of several is needed",
    ),
    (r"elements cannot be converted to Scalar", "`.item()` and `float()` take one number, and here there are several"),
)
_WORDS = [(re.compile(pattern, re.IGNORECASE | re.DOTALL), words) for pattern, words in WORDS]


def in_words(text: str, source: str = "") -> str:
    """What an error's text means; "" where it is none that we know, or one that the line of code raises itself."""
    if source.startswith("raise"):
        return ""
    return next((words for pattern, words in _WORDS if pattern.search(text)), "")


def shapes_on(source: str, names: Mapping[str, Any]) -> str:
    """The shapes of the tensors that a line of code names, as in "`k` is [2, 5, 4], `q` is [2, 3, 4]"."""
    try:
        tree = ast.parse(source.strip())
    except SyntaxError:  # a part of a longer statement
        try:
            tree = ast.parse(source.strip().rstrip(":,([{").removeprefix("return").strip())
        except SyntaxError:
            return ""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    arrays = [name for name in sorted(read & names.keys()) if _is_plain_array(names[name])]
    return ", ".join(f"`{name}` is {list(names[name].shape)}" for name in arrays[:MOST_SHAPES])


def _is_plain_array(value: Any) -> bool:
    """Whether this is an array or tensor and nothing of the student's own that looks like one."""
    torch = sys.modules.get("torch")
    return type(value) is np.ndarray or torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter)
