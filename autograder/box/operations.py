"""The operations of torch that a vault runs: a list, and nothing that is not on it.

What needs more or fewer steps for other numbers is not on it where nothing needs it (series, iterations, rejection),
and else says how long it takes at most: a box sees how long it waits.

Names of aten's that are not made of others. Where a function of torch is, a box takes it apart and asks for the parts.
They compute: none reads a file, loads code, registers anything, or reaches memory that is not its tensors'.
`tests/box/test_operations.py` goes through everything that torch has registered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

VIEWS = """
alias as_strided diagonal expand permute select slice split split_with_sizes squeeze t transpose unbind unfold
unsqueeze unsafe_split unsafe_split_with_sizes view view_as_complex view_as_real _conj _neg_view detach lift
lift_fresh _unsafe_view
"""
MAKING = """
arange empty empty_like empty_permuted empty_strided eye full full_like linspace logspace new_empty new_empty_strided
new_full new_ones new_zeros ones ones_like scalar_tensor tril_indices triu_indices zeros zeros_like
_efficientzerotensor bartlett_window blackman_window hamming_window hann_window kaiser_window fft_fftfreq fft_rfftfreq
range
"""
COPYING = """
_reshape_copy _to_copy block_diag cat clone complex constant_pad_nd copy diag_embed diagonal_copy diagonal_scatter
flip lift_fresh_copy narrow_copy pixel_shuffle pixel_unshuffle channel_shuffle polar reflection_pad1d reflection_pad2d
reflection_pad3d repeat replication_pad1d replication_pad2d replication_pad3d roll rot90 select_scatter slice_scatter
stack as_strided_scatter _pack_padded_sequence _conj_physical tril triu
"""
ELEMENTWISE = """
abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min copysign cos cosh deg2rad div
elu eq erf erfc erfinv exp exp2 expm1 fill floor floor_divide fmax fmin fmod frac frexp ge gelu glu gt hardshrink
hardsigmoid hardswish hardtanh heaviside hypot isinf isnan isneginf isposinf ldexp le leaky_relu
lerp log log10 log1p log2 log_sigmoid_forward logaddexp logaddexp2 logical_and logical_not logical_or
logical_xor logit lt masked_fill maximum minimum mish mul nan_to_num ne neg nextafter pow
_prelu_kernel rad2deg reciprocal relu remainder round rsqrt rsub sgn sigmoid sign signbit silu sin sinc sinh softplus
softshrink special_entr special_xlog1py sqrt sub tan tanh threshold trunc where xlogy zero
"""
REDUCING = """
_aminmax _assert_async _is_all_true _is_any_true
_linalg_check_errors _local_scalar_dense _log_softmax _logcumsumexp _safe_softmax
_softmax all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod
cumsum dist equal histc kthvalue logcumsumexp logsumexp max mean median min mode nansum norm prod sort std
std_mean sum topk trace var var_mean linalg_vector_norm
"""
PRODUCTS = """
_cdist_forward _euclidean_dist _pdist_forward _trilinear addbmm addmm addmv addr baddbmm bmm
dot linalg_cross mm mv vdot
"""
PICKING = """
_index_put_impl _unsafe_index _unsafe_index_put bincount bucketize embedding gather index index_add index_copy
index_fill index_put index_reduce index_select isin masked_scatter masked_select nonzero nonzero_static put
repeat_interleave scatter scatter_add scatter_reduce searchsorted take unique_consecutive unique_dim _unique _unique2
"""
LAYERS = """
_adaptive_avg_pool2d _adaptive_avg_pool3d _convolution _embedding_bag _embedding_bag_forward_only _fused_sdp_choice
_slow_conv2d_forward _upsample_bicubic2d_aa
_upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d adaptive_max_pool2d
affine_grid_generator avg_pool2d avg_pool3d binary_cross_entropy binary_cross_entropy_with_logits col2im convolution
conv_tbc embedding_renorm grid_sampler_2d huber_loss im2col max_pool2d_with_indices max_pool3d_with_indices
mse_loss native_batch_norm native_dropout native_group_norm native_layer_norm nll_loss2d_forward
nll_loss_forward renorm slow_conv_dilated2d slow_conv_transpose2d smooth_l1_loss soft_margin_loss upsample_bicubic2d
upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
"""
RANDOM = """
bernoulli cauchy exponential geometric log_normal multinomial normal normal_functional rand rand_like
randint randint_like randn randn_like randperm rrelu_with_noise uniform
"""
ALGEBRA = """
_fft_c2c _fft_c2r _fft_r2c _linalg_det _linalg_slogdet _linalg_solve_ex
cholesky cholesky_inverse cholesky_solve geqrf linalg_cholesky_ex linalg_householder_product linalg_inv_ex
linalg_ldl_factor_ex linalg_lstsq linalg_lu linalg_lu_factor_ex linalg_lu_solve linalg_qr
linalg_solve_triangular lu_unpack triangular_solve
"""
# Nanoseconds for each number that these take at most, two or three times what was measured for the slowest numbers
# (benchmarks/vault_times.py).
_SLOWEST = {
    10: "div reciprocal rsqrt sqrt erf",
    15: "clamp clamp_max clamp_min gelu masked_fill where maximum minimum argmax argmin max min",
    25: """acos acosh asin asinh atan atan2 atanh celu cosh elu erfc exp exp2 expm1 hypot log log10 log1p log2
           log_sigmoid_forward logaddexp logaddexp2 logit logsumexp mish sigmoid silu sinh softplus tanh
           _softmax _log_softmax _safe_softmax masked_select nonzero nonzero_static masked_scatter
           binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss xlogy
           special_entr special_xlog1py any all equal _is_all_true _is_any_true""",
    40: """cos sin sinc tan erfinv _cdist_forward _pdist_forward
           embedding gather index index_add index_copy index_fill index_put index_reduce index_select put scatter
           scatter_add scatter_reduce take _index_put_impl _unsafe_index _unsafe_index_put bincount
           repeat_interleave""",
    60: "pow linalg_vector_norm norm renorm",
    150: "searchsorted bucketize histc logcumsumexp _logcumsumexp multinomial cummax cummin",
    400: "sort topk kthvalue median mode isin unique_consecutive unique_dim _unique _unique2 linalg_lstsq",
    4_000: "fmod remainder floor_divide",
}
_TIMES = {f"{name}{kind}": time for time, names in _SLOWEST.items() for name in names.split() for kind in ("", "_")}
# Of these the vault runs the same in place, too; of views it does not, since a box would not learn of the new shape.
IN_PLACE = (COPYING, ELEMENTWISE, REDUCING, PRODUCTS, PICKING, LAYERS, RANDOM)
GROUPS = (VIEWS, MAKING, COPYING, ELEMENTWISE, REDUCING, PRODUCTS, PICKING, LAYERS, RANDOM, ALGEBRA)

NAMES = frozenset(" ".join(GROUPS).split()) | frozenset(f"{name}_" for name in " ".join(IN_PLACE).split())


@lru_cache(maxsize=4096)
def is_allowed(func: Any) -> bool:
    """Whether a vault runs it: on the list, none that would run others unseen, nor resize its arguments."""
    into = any(argument.is_out for argument in func._schema.arguments)
    return bool(
        func.namespace == "aten" and func.overloadpacket.__name__ in NAMES and not into and not is_composite(func)
    )


@lru_cache(maxsize=4096)
def slowest(func: Any) -> int:
    """Nanoseconds for each number that it takes at most; 0 where its time does not follow from them."""
    return _TIMES.get("floor_divide" if func._overloadname.endswith("_mode") else func.overloadpacket.__name__, 0)


@lru_cache(maxsize=4096)
def is_composite(func: Any) -> bool:
    """Whether it is made of other operations, which a box asks for one by one."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def taken_apart(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What an operation that is made of others gives, its parts run one by one."""
    if func is torch.ops.aten.matmul.default and args[0].dim() > 1 < args[1].dim():  # what torch has in Python is slow
        return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
    return func.decompose(*args, **kwargs)
