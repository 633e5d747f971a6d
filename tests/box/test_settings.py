"""What a notebook sets ends with its cells, and a GPU that is not there costs nothing."""

from __future__ import annotations

import pytest
import torch

from autograder.judge.proxies import Student

SETS = {
    "device": "torch.set_default_device('meta')",
    "no gpu": "torch.set_default_device('cuda')",
    "dtype": "torch.set_default_dtype(torch.float64)",
    "threads": "torch.set_num_threads(7)",
    "grad": "torch.set_grad_enabled(False)",
    "inference": "torch.inference_mode().__enter__()",
    "deterministic": "torch.use_deterministic_algorithms(True)",
    "matmul": "torch.set_float32_matmul_precision('medium')",
    "anomaly": "torch.autograd.set_detect_anomaly(True)",
    "autocast": "torch.autocast('cpu').__enter__()",
    "autocast dtype": "torch.set_autocast_dtype('cpu', torch.float16)",
    "smallest numbers": "torch.set_flush_denormal(True)",
    "attention": "torch.backends.cuda.enable_math_sdp(False); torch.backends.cuda.enable_flash_sdp(False)",
    "printing": "torch.set_printoptions(precision=1); np.set_printoptions(precision=1)",
    "errors": "np.seterr(all='raise')",
    "warnings": "warnings.simplefilter('error')",
    "module hooks": "torch.nn.modules.module.register_module_forward_hook(lambda *_: torch.zeros(()))",
    "trace": "sys.settrace(lambda *_: None)",
    "recursion": "sys.setrecursionlimit(120)",
    "folder": "os.mkdir('elsewhere'); os.chdir('elsewhere')",
    "collector": "gc.disable()",
    "mode": "class Zero(torch.overrides.TorchFunctionMode):\n"
    "    def __torch_function__(self, f, types, args=(), kwargs=None):\n"
    "        return torch.zeros(3)\n"
    "Zero().__enter__()",
}
START = """
import gc, os, sys, warnings
import numpy as np
import torch
HOME = os.getcwd()
layer = torch.nn.Linear(2, 2)
"""
STATE = """
def state():
    x = torch.ones(2, requires_grad=True)
    y = layer(x)
    there = [str(torch.zeros(1).device), str(torch.zeros(1).dtype), torch.get_num_threads(), torch.is_grad_enabled()]
    there += [torch.is_inference_mode_enabled(), torch.are_deterministic_algorithms_enabled()]
    there += [torch.get_float32_matmul_precision(), torch.is_anomaly_enabled(), torch.is_autocast_enabled('cpu')]
    there += [repr(torch.tensor(1 / 3)), repr(np.array(1 / 3)), np.geterr()['divide'], str(warnings.filters)]
    there += [list(y.shape), y.requires_grad, sys.gettrace() is None, sys.getrecursionlimit(), os.getcwd() == HOME]
    there += [gc.isenabled(), str(torch.get_autocast_dtype('cpu')), (x.double() * 1e-310).sum().item() > 0]
    there += [torch.backends.cuda.math_sdp_enabled(), torch.backends.cuda.flash_sdp_enabled()]
    return there
"""


def cell(source: str) -> dict[str, str]:
    return {"id": "cell", "source": source}


@pytest.fixture
def opened(boxes):
    """Open boxes, each with some cells."""
    found = []

    def opened(*cells: str) -> tuple[Student, list]:
        found.append(boxes.open())
        student = Student(found[-1].channel, wall=boxes.limits.wall)
        return student, student.load([cell(source) for source in cells], wall=20)

    yield opened
    for box in found:
        box.close()


def test_settings_end_with_the_cells_that_made_them(opened) -> None:
    usual = opened(START, STATE)[0]["state"]()
    for name, source in SETS.items():
        student, outcomes = opened(START, STATE, source)
        assert [outcome.fault for outcome in outcomes] == [None] * 3, name
        assert student["state"]() == usual, name
        assert student["state"]() == usual, name


def test_settings_of_a_call_end_with_it(opened) -> None:
    student, _ = opened(START, STATE, "def sets():\n    " + "\n    ".join(
        source for name, source in SETS.items() if name not in ("mode", "no gpu", "device")
    ))  # fmt: skip
    usual = student["state"]()
    student["sets"]()
    assert student["state"]() == usual


GPU = """
device = torch.device("cuda")
model = torch.nn.Linear(2, 2).to(device)
again = torch.nn.Linear(2, 2).cuda()
x = torch.ones(3, 2, device="cuda:0").to("cuda", torch.float64).float()
ones = model(x.cuda(non_blocking=True)) - again(torch.ones(3, 2).to(device=device))
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without a GPU is what this is about")
def test_what_cells_put_on_a_gpu_stays_on_the_cpu_and_is_told(opened) -> None:
    asks = "def f():\n    return ones.shape, device.type"
    student, outcomes = opened(START, GPU, "y = torch.ones(2, device='cpu')", asks)
    assert [outcome.fault for outcome in outcomes] == [None] * 4
    assert [outcome.on_cpu for outcome in outcomes] == [False, True, False, False]
    assert student["f"]() == ((3, 2), "cpu")
    student, outcomes = opened(START, "torch.set_default_device('cuda')\nx = torch.ones(2)")
    assert outcomes[1].fault is None and outcomes[1].on_cpu


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine without a GPU is what this is about")
def test_what_torch_remembers_of_a_gpu_is_still_so_when_the_cells_have_run(opened) -> None:
    asks = [
        "torch.get_device_module('cuda').empty_cache()",
        "with torch.random.fork_rng(): torch.rand(2)",
        "with torch.random.fork_rng(device_type='cuda'): torch.rand(2)",
        "scaler = torch.amp.GradScaler('cuda')",
        "with torch.autocast('cuda'): y = model(x)",
        "with torch.device('cuda'): assert torch.nn.Linear(2, 2).weight.device.type == 'cpu'",
    ]
    draws = "def draws():\n    with torch.random.fork_rng():\n        return torch.rand(2).shape"
    student, outcomes = opened(START, GPU, *asks, draws)
    assert [outcome.fault for outcome in outcomes] == [None] * 9
    assert student["draws"]() == (2,)
