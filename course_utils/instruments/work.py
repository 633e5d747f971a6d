"""Work counted instead of timed: floating-point operations, and the tensors that are made on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

READING = frozenset(
    """sum nansum mean prod max min amax amin aminmax _aminmax any all argmax argmin count_nonzero median mode
kthvalue topk sort cumsum cumprod cummax cummin logcumsumexp _logcumsumexp logsumexp norm linalg_vector_norm
dist equal histc std std_mean var var_mean trace _softmax _log_softmax _safe_softmax _is_all_true _is_any_true
avg_pool2d max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d _adaptive_avg_pool2d
_adaptive_avg_pool3d native_layer_norm native_group_norm native_batch_norm mse_loss smooth_l1_loss huber_loss
soft_margin_loss binary_cross_entropy nll_loss_forward nll_loss2d_forward binary_cross_entropy_with_logits""".split()
)
ADDING = {"index_add": 3, "index_reduce": 3, "scatter_add": 2, "scatter_reduce": 2, "index_put": 2}  # what they read


def count_work(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What one call `f(*args, **kwargs)` costs, and its `result`: compare that too.

    `flops`: multiply-adds x 2 of all matrix products, as `torch.utils.flop_counter` counts them;
    `largest`: numbers in the largest tensor that was made on the way; `made`: numbers in all of them together, which
    also sees a product written as multiply-then-sum. Views of a tensor are not new ones. Of an operation that reads all
    of what it is given, however small its result is, those that it reads count as made, where they are more.
    """
    counter = _Counter()
    with sdpa_kernel(SDPBackend.MATH), _no_fast_path(), counter:  # fused kernels would count as no work at all
        result = f(*args, **kwargs)
    return {"result": result, "flops": counter.flops, "largest": counter.largest, "made": counter.made}


def functions_called(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
    """The result of a call, and the names of all functions of torch that it uses, as `torch.nn.functional.softmax`."""
    calls = _Calls()
    with calls:
        result = f(*args, **kwargs)
    return result, sorted(calls.names)


class _Counter(TorchDispatchMode):
    """Notes the operations of every product, and the size of every tensor that is made in memory of its own.

    The formulas are those of torch's `FlopCounterMode`; the mode itself loads all of torch's compiler first.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # to skip the compiler, torch imports it: seconds in every new process

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.largest = 0
        self.made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        formula = flop_registry.get(func.overloadpacket)
        if formula is None:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        result = func(*args, **kwargs)
        if formula is not None:
            self.flops += int(formula(*args, **kwargs, out_val=result))
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        given, made = set(map(_memory, inputs)), 0
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and _memory(leaf) not in given:
                self.largest = max(self.largest, leaf.numel())
                made += leaf.numel()
        self.made += max(made, numbers_read(func.overloadpacket.__name__, args, inputs))
        return result


def numbers_read(name: str, args: Sequence[Any], tensors: Sequence[Tensor]) -> int:
    """How many numbers an operation reads, where its result does not show it."""
    plain = name.removesuffix("_")
    if plain in READING:
        return max((tensor.numel() for tensor in tensors), default=0)
    place = ADDING.get(plain)
    return args[place].numel() if place is not None and len(args) > place and isinstance(args[place], Tensor) else 0


class _Calls(TorchFunctionMode):
    """Notes the name of every function of torch that is called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = getattr(func, "overloadpacket", func)  # of torch.ops, whatever the overload
        self.names.add(resolve_name(named) or getattr(named, "__name__", ""))
        return func(*args, **(kwargs or {}))


class _no_fast_path:
    """Keeps `nn.MultiheadAttention` and `nn.TransformerEncoderLayer` from their fused kernels."""

    def __enter__(self) -> None:
        self._before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch.backends.mha.set_fastpath_enabled(self._before)


def _memory(tensor: Tensor) -> int:
    """What tells whether two tensors share their memory."""
    return tensor.untyped_storage()._cdata
