"""Public checks of q5_2: PatchEmbedding and as_convolution."""

import torch
import torch.nn.functional as F

from course_utils.checking.compare import check, same, tensor

F64 = torch.float64
P, C, D = 2, 3, 5


def _weights(p=P, channels=C, d_model=D):
    g = torch.Generator().manual_seed(52)
    return {
        "proj.weight": torch.randn(d_model, channels * p * p, generator=g, dtype=F64),
        "proj.bias": torch.randn(d_model, generator=g, dtype=F64),
    }


def _images(B=2, channels=C, H=4, W=6):
    return torch.randn(B, channels, H, W, generator=torch.Generator().manual_seed(53), dtype=F64)


def _module(PatchEmbedding, p=P, channels=C, d_model=D):
    """The embedding in float64, with fixed weights put in by name."""
    embedding = PatchEmbedding(p, channels, d_model)
    embedding.double()
    state, weights = dict(embedding.state_dict()), _weights(p, channels, d_model)
    for name, value in weights.items():
        check(name in state, f"the module has no `{name}`: its one layer is proj, an nn.Linear(C * patch * patch, D)")
        tensor(state[name], name, value.shape)
    embedding.load_state_dict({**state, **weights})
    return embedding


def test_names_and_shape(PatchEmbedding):
    """The one layer is proj, an nn.Linear(C * patch * patch, D); images [B, C, H, W] become tokens [B, N, D]."""
    # keeps: embedding, proj
    tensor(_module(PatchEmbedding)(_images()), "the embedding of [2, 3, 4, 6] with patch 2", (2, 6, D), F64)


def test_value_of_one_token(PatchEmbedding):
    """Token n is proj of patch n, flattened as (channel, row, column)."""
    # keeps: embedding, order
    images, weights = _images(), _weights()
    tokens = tensor(_module(PatchEmbedding)(images), "the embedding", (2, 6, D), F64)
    for n, square in ((0, images[:, :, :2, :2]), (1, images[:, :, :2, 2:4]), (3, images[:, :, 2:, :2])):
        expected = F.linear(square.flatten(1), weights["proj.weight"], weights["proj.bias"])
        same(tokens[:, n], expected, f"token {n}")


def test_as_convolution(PatchEmbedding, as_convolution):
    """as_convolution gives an nn.Conv2d whose outputs [B, D, rows, cols] are the same tokens."""
    # keeps: convolution, grid
    embedding, images = _module(PatchEmbedding), _images()
    convolution = as_convolution(embedding)
    check(tuple(convolution.kernel_size) == (P, P), f"the kernel of the convolution is {convolution.kernel_size}: it "
          f"covers one patch, {P} x {P}")
    convolution.double()
    got = tensor(convolution(images), "the convolution's output", (2, D, 2, 3))
    same(got.flatten(2).mT, embedding(images), "the convolution's output read as tokens", rtol=1e-5, atol=1e-5)


def test_dtype_and_stride(PatchEmbedding, as_convolution):
    """The convolution has the weights of proj, number for number, in their dtype; filters move on by a patch."""
    # keeps: weights, convolution
    for dtype in (torch.float64, torch.float32):
        embedding = _module(PatchEmbedding)
        if dtype is torch.float32:
            embedding.float()
        convolution = as_convolution(embedding)
        check(tuple(convolution.stride) == (P, P), f"the stride of the convolution is {convolution.stride}: it moves "
              f"on by one patch, {P} pixels")
        state, own = dict(convolution.state_dict()), dict(embedding.state_dict())
        weight = tensor(state["weight"], "the filters of the convolution", (D, C, P, P), dtype)
        same(weight.flatten(1), own["proj.weight"], "the filters, flattened, against proj.weight", rtol=0, atol=0)
        check("bias" in state, "the convolution has no bias, and proj has one")
        same(tensor(state["bias"], "the convolution's bias", (D,), dtype), own["proj.bias"], "its bias", rtol=0, atol=0)
        same(embedding(_images().to(dtype)).flatten(1), convolution(_images().to(dtype)).flatten(2).mT.flatten(1),
             "the convolution's output read as tokens")


def test_each_on_its_own(PatchEmbedding, as_convolution):
    """Each embedding gets a convolution of its own, other sizes work, proj is all that is trained, and pixels learn."""
    # keeps: convolution, proj, gradients
    first, images = _module(PatchEmbedding), _images()
    second = PatchEmbedding(P, C, D)
    second.double()
    second.load_state_dict({name: -value for name, value in first.state_dict().items()})
    convolution = as_convolution(first)
    as_convolution(second)
    same(convolution(images).flatten(2).mT, first(images), "the convolution of one embedding, after another was "
         "converted")
    other = _module(PatchEmbedding, 3, 2, 4)
    same(as_convolution(other)(_images(3, 2, 9, 6)).flatten(2).mT, other(_images(3, 2, 9, 6)), "the convolution for "
         "patches of 3, two channels and images of 9 x 6")
    names = sorted(PatchEmbedding(P, C, D).state_dict())
    check(set(names) >= {"proj.weight", "proj.bias"}, f"the parameters are {names}, and should be those of proj")
    x = images.clone().requires_grad_()
    got = first(x)
    check(got.requires_grad, "no gradient flows back to the images")
    got.sum().backward()
    check(x.grad is not None and (x.grad != 0).any(), "no gradient flows back to the images")


def probe_tokens(PatchEmbedding):
    return _module(PatchEmbedding)(_images())


def probe_tall_images(PatchEmbedding):
    return _module(PatchEmbedding, 3, 2, 4)(_images(3, 2, 9, 6))


def probe_square_images(PatchEmbedding):
    return _module(PatchEmbedding)(_images(H=6))


def probe_one_channel(PatchEmbedding):
    return _module(PatchEmbedding, channels=1)(_images(channels=1))


def probe_shape(PatchEmbedding):
    return list(_module(PatchEmbedding)(_images()).shape)


def probe_names(PatchEmbedding):
    return {name: list(value.shape) for name, value in PatchEmbedding(P, C, D).state_dict().items()}


def probe_convolution(PatchEmbedding, as_convolution):
    convolution = as_convolution(_module(PatchEmbedding))
    convolution.double()
    return convolution(_images())


def probe_convolution_float32(PatchEmbedding, as_convolution):
    embedding = _module(PatchEmbedding)
    embedding.float()
    return as_convolution(embedding)(_images().float())


def probe_convolution_of_other_sizes(PatchEmbedding, as_convolution):
    convolution = as_convolution(_module(PatchEmbedding, 3, 2, 4))
    convolution.double()
    return convolution(_images(3, 2, 9, 6))


def probe_kernel(PatchEmbedding, as_convolution):
    convolution = as_convolution(_module(PatchEmbedding))
    return [list(convolution.kernel_size), list(convolution.stride)]


def probe_kernel_weights(PatchEmbedding, as_convolution):
    convolution = as_convolution(_module(PatchEmbedding))
    convolution.double()
    return dict(convolution.state_dict())


def probe_dtype_of_the_convolution(PatchEmbedding, as_convolution):
    return [str(value.dtype) for value in as_convolution(_module(PatchEmbedding)).state_dict().values()]


def probe_embedding_afterwards(PatchEmbedding, as_convolution):
    embedding = _module(PatchEmbedding)
    as_convolution(embedding)
    return embedding(_images())


def probe_float32(PatchEmbedding):
    embedding = _module(PatchEmbedding)
    embedding.float()
    return str(embedding(_images().float()).dtype)


def probe_gradient(PatchEmbedding):
    images = _images().requires_grad_()
    tokens = _module(PatchEmbedding)(images)
    (tokens * torch.linspace(-1, 1, tokens.numel(), dtype=F64).reshape(tokens.shape)).sum().backward()
    return images.grad


def probe_exact_weights(PatchEmbedding, as_convolution):
    embedding = _module(PatchEmbedding)
    weight = dict(as_convolution(embedding).state_dict())["weight"]
    return bool((weight.double().flatten().sum() - embedding.state_dict()["proj.weight"].sum()).abs() < 1e-12)


def probe_convolution_after_another(PatchEmbedding, as_convolution):
    first, second = _module(PatchEmbedding), PatchEmbedding(P, C, D)
    second.double()
    second.load_state_dict({name: -value for name, value in first.state_dict().items()})
    convolution = as_convolution(first)
    as_convolution(second)
    convolution.double()
    return convolution(_images())
